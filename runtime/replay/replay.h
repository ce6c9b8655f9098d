// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Replay: computes a kernel's operations one by one, to find the first that
// makes a non-finite number.
//
// A trainer carries the graphs of its training steps as text.  The operations
// behind a kernel's result are evaluated by their definitions from memory
// before the launch, with results rounded to f32 as in the kernel.  No kernel
// is compiled, so this works for any fused kernel on any device.
#ifndef REPLAY_REPLAY_H
#define REPLAY_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Replay Replay;

// Parses one of several graphs by its name; NULL: not there.
Replay *replay_open(const char *text, size_t length, const char *name);
void replay_close(Replay *r);

// The assignment of a state, and the launch that computes it.
bool replay_assignment(const Replay *r, const char *state, uint32_t *node,
                       int *launch);

// Reads memory before the launch: an input or a state by name, or else a node
// that another launch stored.  False: not there, or another count.  `to` NULL:
// only checks.
typedef struct ReplayMemory ReplayMemory;
struct ReplayMemory {
    bool (*read)(const ReplayMemory *m, uint32_t node, const char *name,
                 int64_t count, double *to);
};

// The query: which node, and limits.
typedef struct {
    uint32_t node; // stored and not finite
    double max;    // largest finite number of its stored type
    size_t room;   // bytes that the replay may allocate
} ReplayQuery;

// Describes the first operation that is not finite, and the ranges of its
// operands.  False: not found, for lack of memory or of stored inputs.
bool replay_explain(const Replay *r, const ReplayQuery *query,
                    const ReplayMemory *m, char *message, size_t length);

#endif
