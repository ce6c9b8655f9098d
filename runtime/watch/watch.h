// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Watch: observers of a step's launches.
#ifndef RUNTIME_WATCH_H
#define RUNTIME_WATCH_H

#include "runtime/runtime.h"

// ---- snapshot.c ----

// Runs a step and writes its inputs and results to a file: "sinter 1\n", the
// number of the step as int32, 0 as int32, then records of int32 when, int32 0,
// uint64 offset, uint64 bytes, and the bytes. when: -1 for inputs and states
// before the step, the number of the launch for its results, -2 for states
// after the step.  Results of a launch whose work a tile kernel does follow its
// launch, and are only those of the step if it stores them.
bool rt_snapshot_run(const char *path, const RtFiles *files, const RtPlan *plan,
                     RtDevice *d, const RtStep *step, RtError *e);

// ---- anomaly.c ----

// Finds the first tensor of a step that is not finite.
typedef struct {
    RtWatch watch;
    const RtPlan *plan;
    RtDevice *device;
    int run;                // number of the step's run, from 1
    int step, launch, next; // next: index in the plan's stored tensors
    bool found;
    const RtStored *stored; // the tensor; NULL: a state
    const RtState *state;
    char text[600]; // description, with the ranges of the kernel's inputs
} RtAnomaly;

// Observes the next run of a step.
void rt_anomaly_begin(RtAnomaly *a, const RtPlan *plan, RtDevice *d,
                      const RtStep *step);
void rt_anomaly_end(RtAnomaly *a);

// A copy of all states that the device holds; NULL: no memory. *finite: whether
// all saved ones are.
char *rt_states_copy(const RtPlan *plan, RtDevice *d, bool *finite);
void rt_states_restore(const RtPlan *plan, RtDevice *d, const char *copy);

// ---- kernel_replay.c ----

// Finds the first operation in the anomaly's kernel that is not finite.
typedef struct {
    RtWatch watch;
    const RtPlan *plan;
    RtDevice *device;
    const RtAnomaly *anomaly;
    struct Replay *replay;
    uint32_t node;
    int run, launch; // of the step; the next launch
    int target;      // the launch to replay
    bool *written;      // for each stored tensor: written in this run
    bool found;
    char text[800]; // description: kernel, operation, inputs
} RtKernelReplay;

// False: the trainer has no graph of the step, or the anomaly has no kernel.
bool rt_kernel_replay_open(RtKernelReplay *r, const RtTrainer *t,
                           const RtPlan *plan, RtDevice *d,
                           const RtAnomaly *anomaly);
void rt_kernel_replay_close(RtKernelReplay *r);
// Observes the next run of a step, from the same states as the anomaly's.
void rt_kernel_replay_begin(RtKernelReplay *r, const RtStep *step);

#endif
