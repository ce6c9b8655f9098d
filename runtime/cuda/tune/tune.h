// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tuning, the measuring: which of the libraries' plans is fastest for each
// call, which kernels ride, and which are joined, found by running a step with
// each.
//
// Launches are timed where they stand in the step, calls with a cold cache
// (gauge.h).
#ifndef RUNTIME_CUDA_TUNE_H
#define RUNTIME_CUDA_TUNE_H

#include "runtime/cuda/libraries/convolution.h"
#include "runtime/cuda/libraries/matmul.h"
#include "runtime/cuda/tune/results.h"

// How a step is run to be measured.
typedef struct {
    RtConvolutions *convolutions; // that do its calls; NULL: the device's own
    const bool *joined;           // for each of the plan's joins; NULL: none is
    const bool *within; // launches that count to the one before; NULL: none
} RtCandidate;

// Runs the step so, and says how long each launch took; 0 where a call has
// saved it.
typedef bool RtMeasure(void *arg, const RtCandidate *t, double *seconds,
                       RtError *e);

typedef struct {
    const RtCudnn *cudnn; // NULL: it has no calls
    RtMatmuls *matmuls;   // NULL: no products of its own
    const RtPlan *plan;
    int step;
    int launches;    // of the step, kernels and calls
    const int *call; // that each launch is; -1: a kernel
    RtMeasure *measure;
    void *arg;
    RtTuningResults *tried; // what is measured is added to it
} RtTuner;

// What is not less by so much may be no more than noise: what comes first is
// kept then, of plans in the library's order, and a launch in place of several.
static inline bool rt_clearly_less(double seconds, double than) {
    return seconds < 0.99 * than;
}

// Fills a new tuning.  *before and *after are seconds of the step's launches.
bool rt_tune(const RtTuner *t, RtChosen *out, double *before, double *after,
             RtError *e);

// ---- tune_products.c ----

// Tries each product's algorithms, and has the fastest taken from then on.
bool rt_tune_matmuls(const RtTuner *t, RtChosen *out, RtError *e);

// ---- tune_joins.c ----

// Which joins are taken where v (NULL: nothing) does the calls; those that are
// apart are not.
bool rt_tune_merged(const RtPlan *plan, const RtConvolutions *v,
                    const bool *apart, bool *joined, RtError *e);
// Tries joins, and finds those whose kernels are faster one by one.
bool rt_tune_merges(const RtTuner *t, RtConvolutions *v, RtChosen *out,
                    RtError *e);

#endif
