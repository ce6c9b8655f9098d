// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tuning: which plan of cuDNN and which algorithm of cuBLASLt each call takes,
// what rides on calls and which kernels are joined, as measured on one GPU,
// kept in a file so that later runs do the same at once.
#ifndef RUNTIME_CUDA_TUNING_H
#define RUNTIME_CUDA_TUNING_H

#include "runtime/cuda/libraries/cudnn.h"

enum { RT_TUNING_FORMAT = 2, RT_FUSION_SETS = 1 << (RT_FUSED_BACKWARD + 1) };

// The plan of a call and of those alike.
typedef struct {
    int call; // of the plan's calls
    unsigned with;
    int candidate;
    int64_t engine; // that the candidate was; -1: look from the candidate on
} RtChosenPlan;

// The algorithm of a product and of those alike.
typedef struct {
    int call, candidate;
    uint64_t digest; // of what the candidate was
} RtChosenAlgorithm;

typedef struct {
    RtChosenPlan *tuned;
    int num_tuned;
    RtChosenAlgorithm *product;
    int num_products;
    bool *wanted;  // for each of the plan's fusions
    bool *apart;   // for each of its joins: it is not taken
    bool compiles; // where it says nothing, fusions may be compiled
} RtChosen;

bool rt_chosen_new(RtChosen *t, const RtPlan *plan, RtError *e);
void rt_chosen_free(RtChosen *t);
// Rows that a tuning of a plan has room for, of calls with what rides on them.
size_t rt_chosen_room(const RtPlan *plan);

// What a tuning is good for: the same calls, fusions and joins on the same kind
// of GPU with the same versions; of libraries that are not used, 0.
typedef struct {
    const RtPlan *plan;
    const char *gpu; // its name
    int capability, processors, driver;
    size_t cudnn, cublaslt;
} RtTuningKey;

// What of a plan it depends on, as 32 digits.
enum { RT_TUNING_DIGITS = 32 };
void rt_tuning_digest(const RtPlan *plan, char to[RT_TUNING_DIGITS + 1]);
// Names a file in a folder after what it is good for; the caller frees it.
char *rt_tuning_path(const char *folder, const RtTuningKey *key);

// ---- tuning_file.c ----

// false: there is none, it is none, or it is for something else than the key;
// *e says which.
bool rt_tuning_read(RtChosen *t, const char *path, const RtTuningKey *key,
                    const RtFiles *files, RtError *e);
bool rt_tuning_write(const RtChosen *t, const char *path,
                     const RtTuningKey *key, const RtFiles *files, RtError *e);

#endif
