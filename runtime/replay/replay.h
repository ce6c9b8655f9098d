// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Replay: what a kernel computes, one operation after another, to see which of
// them makes the first number that is not finite.
//
// A trainer carries the graphs of its training steps as text.  The operations
// behind what a kernel leaves are evaluated from what is in memory before the
// kernel runs, by the definition of each, with results rounded to f32 as the
// kernel has them between its operations.  No kernel is built for that, so that
// it tells of any fused kernel, on any device.
#ifndef REPLAY_REPLAY_H
#define REPLAY_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Replay Replay;

// Reads the graph of that name from the text of several; NULL: it is not there.
Replay *replay_open(const char *text, size_t length, const char *name);
void replay_close(Replay *r);

// The assignment of a state, and which launch of the step makes it.
bool replay_assignment(const Replay *r, const char *state, uint32_t *node,
                       int *launch);

// What is in memory before the launch: the numbers of an input or a state, by
// its name, or else of a node that another launch has left.  false: it is not
// there, or has another count.  With `to` NULL it is only asked for.
typedef struct ReplayMemory ReplayMemory;
struct ReplayMemory {
    bool (*read)(const ReplayMemory *m, uint32_t node, const char *name,
                 int64_t count, double *to);
};

// What is to be found out.
typedef struct {
    uint32_t node; // is stored and not finite
    double max;    // finite number of the type it is stored as
    size_t room;   // bytes that may be taken
} ReplayQuery;

// Says which operation is the first that is not finite, and between what its
// operands are.  false: it cannot be seen so, as for want of room, or of what
// the kernel has read.
bool replay_explain(const Replay *r, const ReplayQuery *query,
                    const ReplayMemory *m, char *message, size_t length);

#endif
