// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Call: of an instance, from a program of the user.
#ifndef RUNTIME_CALL_H
#define RUNTIME_CALL_H

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/instance/instance.h"

struct RtInstance {
    const RtTrainer *trainer;
    const RtPlan *plan;
    RtDevice *device;
    RtCheckpoint *checkpoint;
    RtProgress at;
    RtLockstep lockstep; // of shards with sums
    char *batch;         // room for one that is short, and for the output
    float *output;       // of a batch
    bool prepared;       // for predictions
    bool begun;          // a run of training
    bool changed;        // weights are not those of the last init
    bool broken;         // the device has failed
    // Absolute path of loaded weights beside which no tokenizer was found yet;
    // NULL: none.
    char *unsearched;
    // texts.c, which only libraries of models that generate have, sets these.
    struct RtGeneration *generation; // NULL before the first text
    struct RtTokenizer *tokenizer;   // NULL: none
    bool chosen; // the tokenizer, by a call, so that loads leave it
    void (*free_texts)(RtInstance *m);
    bool cached; // since the last decode step, no step has run
};

extern _Thread_local RtError rt_last; // error of this thread

typedef struct {
    RtInstance *m;
    RtGuard guard, *outer;
    int threads; // of this thread's OpenMP team before the call
} RtInstanceCall;

// The thread's own settings of OpenMP are the caller's.
void rt_instance_enter(RtInstanceCall *c, RtInstance *m);
int rt_instance_leave(RtInstanceCall *c, bool good);
// The call ended within the device.
int rt_instance_leave_broken(RtInstanceCall *c);

// Runs `work`, an expression that is false after an error in rt_last, and
// returns from the function.
#define CALL(m, work)                                                          \
    do {                                                                       \
        RtInstanceCall call;                                                   \
        if ((m)->broken)                                                       \
            return rt_fail(&rt_last, EXIT_DEVICE,                              \
                           "its device has failed: free the instance"),        \
                   EXIT_DEVICE;                                                \
        rt_instance_enter(&call, (m));                                         \
        if (setjmp(call.guard.at) != 0)                                        \
            return rt_instance_leave_broken(&call);                            \
        return rt_instance_leave(&call, (work));                               \
    } while (0)

// Computes what predictions share, after weights have changed.
void rt_instance_prepare(RtInstance *m);

#endif
