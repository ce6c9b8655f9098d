// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the files of the CUDA device share: the device once it is open.
#ifndef RUNTIME_CUDA_OPENED_H
#define RUNTIME_CUDA_OPENED_H

#include "runtime/cuda/launch/merged_launch.h"
#include "runtime/cuda/memory/memory.h"
#include "runtime/cuda/tune/trial.h"

enum { RECENT = 4 }; // launches that an error tells of

typedef struct {
    RtDevice device;
    const RtTrainer *trainer;
    const RtPlan *plan;
    RtPlan unjoined; // it without its joins, for a GPU that cannot take any
    RtDriver cu;
    RtGpu gpu;
    RtKernels kernels;
    RtLibraryCalls calls;
    RtStaging staging;
    RtGather gather;
    RtCopyStream copies;
    RtAsyncReadback notes;
    RtTraceSpans spans;
    CUstream stream;
    CUdeviceptr arena;
    RtStepGraph *replay;        // one for each step
    int step;                   // that runs, or ran last; -1: none has
    bool is_captured;           // it is being recorded
    bool is_refused;            // and cannot be
    RtError why;                // as this says
    RtError error;              // of the last call that failed
    bool is_marked;             // its phases are
    RtPhase phase;              // that now is
    bool names_phase;           // a range of it is open for a profiler
    RtWork work;                // and what is done; RT_NUM_WORKS: nothing
    int first;                  // launch of those that are joined
    bool *joins;                // that are taken
    RtMerging joining;          // launches of the step on their way
    CUdeviceptr *at;            // room for the arguments of any kernel
    void **argument;            // where each of them is
    bool *wanted;               // kernels that are launched
    bool is_listing;            // which are, and none is yet
    bool is_ahead;              // of the libraries, which are not open yet
    const char *recent[RECENT]; // the last that were made, in a ring
    int64_t made;
    RtColdTimer *gauge; // of launches that are measured; NULL: none are
    char name[16], description[192];
    char *tuned; // what came of measuring
} RtCuda;

static inline RtCuda *rt_cuda_of(RtDevice *d) {
    return (RtCuda *)(void *)d; // device is its first field
}

// ---- launch.c ----

// Ends the program with the device's error unless a call was good.
void rt_cuda_check(const RtCuda *c, bool good);

// Whether a call does what a launch of a step would.
bool rt_cuda_is_fused(const RtCuda *c, int step, int launch);

// What makes the launches of the device's step.
RtMaker rt_cuda_maker(RtCuda *c);

// What a device is given to do in a step, as in runtime/device.h.
void rt_cuda_run(RtDevice *d, const RtStep *step);
void rt_cuda_phase(RtDevice *d, RtPhase phase);
void rt_cuda_launch(RtDevice *d, int kernel, int grid, const size_t *arg);
void rt_cuda_library_call(RtDevice *d, int call, size_t a, size_t b,
                          size_t out);

#endif
