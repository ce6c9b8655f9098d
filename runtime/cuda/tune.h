// Tuning, the measuring: which of the library's plans is fastest for each call,
// and which kernels ride, found by running a step with each.
//
// Launches are timed where they stand in the step, so that what they find in
// the caches is what they will find.
#ifndef RUNTIME_CUDA_TUNE_H
#define RUNTIME_CUDA_TUNE_H

#include "runtime/cuda/convolution.h"

// Runs the step with its calls done by v, and says how long each launch took;
// 0 where a call has saved it.
typedef bool RtMeasure(void *arg, RtConvolutions *v, double *seconds,
                       RtError *e);

typedef struct {
    const RtCudnn *cudnn;
    const RtPlan *plan;
    int step;
    int launches;    // of the step, kernels and calls
    const int *call; // that each launch is; -1: a kernel
    RtMeasure *measure;
    void *arg;
} RtTuner;

// Fills a new tuning.  *before and *after are seconds of the step's launches.
bool rt_tune(const RtTuner *t, RtTuning *out, double *before, double *after,
             RtError *e);

#endif
