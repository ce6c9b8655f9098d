// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Costs: what is known of a step's calls and kernels while it is tuned, and
// what follows from it for what rides.
#ifndef RUNTIME_CUDA_COSTS_H
#define RUNTIME_CUDA_COSTS_H

#include "runtime/cuda/tune/tune.h"

// What is known of a row of the tuning.
typedef struct {
    double best; // seconds of a call
    int next;    // candidate to try
    bool done;   // there is no other
    int group;   // of its rows in the table
} RtCallTimes;

typedef struct {
    const RtTuner *t;
    RtChosen *tuning;
    RtCallTimes *cost; // of each of its rows
    double *kernel;    // of each launch with nothing riding; negative: unknown
    double forms;      // what making those of a batch_norm takes
} RtFusionGains;

// The row of a call with these fusions on it; -1: it was not run so.
int rt_fusion_gains_row(const RtFusionGains *c, int call, unsigned with);

// Sets what is wanted of the plan's fusions to what saves time.
void rt_fusion_gains_choose(const RtFusionGains *c);
// Adds what fusions cost and save to the table, where v does the calls.
bool rt_fusion_gains_report(const RtFusionGains *c, const RtConvolutions *v,
                            RtError *e);

#endif
