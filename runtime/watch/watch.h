// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Watch: those who look at a step while it runs, launch by launch.
#ifndef RUNTIME_WATCH_H
#define RUNTIME_WATCH_H

#include "runtime/runtime.h"

// ---- snapshot.c ----

// Runs a step and writes what it reads and leaves to a file, in the order in
// which it is there: "sinter 1\n", the number of the step as int32, 0 as
// int32, then records of int32 when, int32 0, uint64 offset, uint64 bytes, and
// the bytes.  when is -1 for inputs and states before the step, the number of
// the launch for what that has left, and -2 for states after the step.
bool rt_snapshot_run(const char *path, const RtFiles *files, const RtPlan *plan,
                     RtDevice *d, const RtStep *step, RtError *e);

// ---- anomaly.c ----

// Looks for the first value of a step that is not finite.
typedef struct {
    RtWatch watch;
    const RtPlan *plan;
    RtDevice *device;
    int run;                // of a step that has been looked at, from 1
    int step, launch, next; // next: of what is stored
    bool found;
    const RtStored *stored; // what it is in; NULL: in a state
    const RtState *state;
    char text[600]; // where, and what the kernel had read
} RtAnomaly;

// Has the next run of a step looked at.
void rt_anomaly_begin(RtAnomaly *b, const RtPlan *plan, RtDevice *d,
                      const RtStep *step);
void rt_anomaly_end(RtAnomaly *b);

// All states, one after another; NULL: no memory.  Whether all that is saved is
// finite.
char *rt_states_copy(const RtPlan *plan, RtDevice *d, bool *finite);
void rt_states_restore(const RtPlan *plan, RtDevice *d, const char *copy);

// ---- kernel_replay.c ----

// Looks for the operation, of those in the kernel that is to blame, that is the
// first whose result is not finite.
typedef struct {
    RtWatch watch;
    const RtPlan *plan;
    RtDevice *device;
    const RtAnomaly *anomaly;
    struct Replay *replay;
    uint32_t node;
    int run, launch; // of the step; the launch that comes
    int target;      // the launch that is to blame
    bool *left;      // of what is stored, what has been left in this run
    bool found;
    char text[800]; // in which kernel, which, and what it had read
} RtKernelReplay;

// false: the trainer carries no graph of the step, or nothing of it is known.
bool rt_kernel_replay_open(RtKernelReplay *m, const RtTrainer *t,
                           const RtPlan *plan, RtDevice *d,
                           const RtAnomaly *anomaly);
void rt_kernel_replay_close(RtKernelReplay *m);
// Has the next run of a step looked at, which follows from the same states as
// what the blame is of.
void rt_kernel_replay_begin(RtKernelReplay *m, const RtStep *step);

#endif
