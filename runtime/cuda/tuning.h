// Tuning: which plan of cuDNN each call takes and what rides on it, as measured
// on one GPU, kept in a file so that later runs do the same at once.
#ifndef RUNTIME_CUDA_TUNING_H
#define RUNTIME_CUDA_TUNING_H

#include "runtime/cuda/cudnn.h"

// The plan of a call and of those alike.
typedef struct {
    int call; // of the plan's calls
    unsigned with;
    int candidate;
    int64_t engine; // that the candidate was; -1: look from the candidate on
} RtTuned;

typedef struct {
    RtTuned *tuned;
    int num_tuned;
    bool *wanted;  // for each of the plan's fusions
    bool compiles; // where it says nothing, fusions may be compiled
} RtTuning;

bool rt_tuning_new(RtTuning *t, const RtPlan *plan, RtError *e);
void rt_tuning_free(RtTuning *t);
// Rows that a tuning of a plan has room for.
size_t rt_tuning_room(const RtPlan *plan);

// What a tuning is good for: the same calls and fusions on the same kind of GPU
// with the same versions.
typedef struct {
    const RtPlan *plan;
    const char *gpu; // its name
    int capability, processors, driver;
    size_t cudnn;
} RtTuningKey;

// Names a file in a folder after what it is good for; the caller frees it.
char *rt_tuning_path(const char *folder, const RtTuningKey *key);

// false: there is none, or what there is does not fit the plan.
bool rt_tuning_read(RtTuning *t, const char *path, const RtPlan *plan,
                    const RtFiles *files);
bool rt_tuning_write(const RtTuning *t, const char *path, const RtPlan *plan,
                     const RtFiles *files, RtError *e);

#endif
