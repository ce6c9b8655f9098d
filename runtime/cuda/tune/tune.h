// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tune: measures candidates of library calls, library fusions, tile kernels and
// merged launches on a GPU, and keeps the fastest in a file.
//
// The rest of the device needs three functions of this folder, which device.c
// calls, and the RtChosen that they fill.
#ifndef RUNTIME_CUDA_TUNE_H
#define RUNTIME_CUDA_TUNE_H

#include "runtime/cuda/launch/launch.h"

#include <stdio.h>

// ---- tune.c ----

// Finds the file that the options (NULL: none) name, or one in the user's
// cache, and chooses tile kernels as it says if it fits: the calls of others
// need libraries, which are not open yet.  If the options ask to tune it
// chooses none.
bool rt_tuning_tiles(RtCuda *c, const RtOptions *o, RtError *e);

// Fills c->chosen from that file; one that the options name must fit.  Not if
// they ask to tune.  The libraries are open, for their versions.
bool rt_tuning_load(RtCuda *c, const RtOptions *o, RtError *e);

// RtDevice's tune: measures, writes the file and returns a table in *report.
bool rt_tune(RtDevice *d, const RtStep *step, const char **report, RtError *e);

// ---- cold_cache_timer.c ----

// Times each launch of a step by events between them.  Before each library call
// it overwrites the L2 cache, so that the call finds its operands in memory
// whatever candidates run before it.  Kernels find the cache as the launch
// before left it, as in a step that is not timed.
typedef struct {
    RtLaunchTimer timer; // first; `failed` is its own
    const RtDriver *cu;
    CUstream stream;
    int launches;
    int *call;          // of each launch; -1: a kernel
    const bool *within; // launches that count to the one before; NULL: none
    CUevent *begin;     // of each launch, and the end of the last
    CUevent *end;       // of the work before a call, while the cache is warm
    CUdeviceptr cold;
    size_t cold_bytes;
} RtColdTimer;

// Allocates GPU memory beside the plan's.
bool rt_tune_alloc(const RtDriver *cu, CUdeviceptr *at, size_t bytes,
                   RtError *e);

bool rt_cold_timer_open(RtColdTimer *g, const RtGpu *gpu, CUstream stream,
                        int launches, RtError *e);
void rt_cold_timer_close(RtColdTimer *g);
// Ends a run: waits, and lowers each of seconds[] to the launch's time; a
// negative one is replaced.  A failed launch takes infinitely long, one that
// counts to the launch before no time.
bool rt_cold_timer_read(RtColdTimer *g, double *seconds, RtError *e);

// ---- results.c ----

// One way to run a launch, or launches with alternatives, and its time.
typedef struct {
    char launch[80]; // "conv 64x12x12x8 by 8x3x3"
    char model[96];  // "first.conv_1, tiny.net:4"
    char way[48];    // "engine 43"
    int group;       // rows of one group exclude each other
    int number;      // of the way in its group
    double seconds;
    bool chosen;
} RtTuningResult;

typedef struct {
    RtTuningResult *row;
    int count, room;
} RtTuningResults;

// A new row of that group; NULL: out of memory.
RtTuningResult *rt_tuning_results_add(RtTuningResults *t, int group,
                                      const char *way, double seconds,
                                      RtError *e);
void rt_tuning_results_free(RtTuningResults *t);
// The rows by groups, fastest first.
void rt_tuning_results_print(FILE *f, const RtTuningResults *t);
// The row is of a call with its fusions: "conv 64x12x12x8 by 8x3x3 +
// statistics", and its layer; or has the model's lines of a launch.
void rt_tuning_result_call(RtTuningResult *r, const RtCall *c, unsigned with);
void rt_tuning_result_lines(RtTuningResult *r, const RtStep *step, int launch);

// ---- candidates.c ----

// A way to run a step.
typedef struct {
    RtConvolutions *convolutions; // NULL: the device's own
    const bool *merged;           // for each merged launch; NULL: none is
    const bool *within; // launches that count to the one before; NULL: none
    const int *tile;    // of tile kernels, as RtChosen has them; NULL: none
} RtCandidate;

// Runs the step so and writes the seconds of each launch; 0 if a call does its
// work.
typedef bool RtMeasure(void *arg, const RtCandidate *t, double *seconds,
                       RtError *e);

typedef struct {
    const RtCudnn *cudnn; // NULL: no convolutions
    RtMatmuls *matmuls;   // NULL: cuBLASLt is not used
    RtTiles *tiles;       // NULL: there are no tile kernels
    const RtPlan *plan;
    int step;
    int launches;    // of the step
    const int *call; // of each launch; -1: a kernel
    RtMeasure *measure;
    void *arg;
    RtTuningResults *results; // measurements are added
} RtTuner;

// A smaller difference may be noise.  The earlier candidate is kept then: the
// library's order for plans, one launch before several.
static inline bool rt_clearly_less(double seconds, double than) {
    return seconds < 0.99 * than;
}

// Fills new choices.  *before and *after are seconds of the step's launches.
bool rt_tuner_run(const RtTuner *t, RtChosen *out, double *before,
                  double *after, RtError *e);

// ---- matmul_candidates.c ----

// Measures each product's algorithms, and uses the fastest from then on.
bool rt_tune_matmuls(const RtTuner *t, RtChosen *out, RtError *e);

// ---- merge_candidates.c ----

// The merged launches beside v (NULL: no convolutions) and tile kernels (NULL:
// none) that are not `unmerged`.
bool rt_tune_merged(const RtTuner *t, const RtConvolutions *v, const int *tile,
                    const bool *unmerged, bool *merged, RtError *e);
// Measures merged launches, and finds those that are faster one by one.
bool rt_tune_merges(const RtTuner *t, RtConvolutions *v, RtChosen *out,
                    RtError *e);

// ---- tile_candidates.c ----

// Measures each tile kernel against the calls and kernels in whose place it is,
// and its configurations, beside convolutions v (NULL: none).  Kernels that
// share a prologue are taken together.
bool rt_tune_tiles(const RtTuner *t, RtConvolutions *v, RtChosen *out,
                   RtError *e);

// ---- fusion_gain.c ----

// The times of a chosen plan and its candidates.
typedef struct {
    double best; // seconds
    int next;    // candidate to measure
    bool done;   // there is no other
    int group;   // of its results
} RtCallTimes;

typedef struct {
    const RtTuner *t;
    RtChosen *chosen;
    RtCallTimes *times; // of each of its plans
    double *kernel; // seconds of each launch without fusions; negative: unknown
    double finalize; // seconds of bn_finalize; negative: unknown
} RtFusionGains;

// The index of the plan of a call with these fusions; -1: it was not measured.
int rt_fusion_gains_row(const RtFusionGains *c, int call, unsigned with);
// Chooses the fusions that save time.
void rt_fusion_gains_choose(const RtFusionGains *c);
// Adds their gains to the results, beside convolutions v.
bool rt_fusion_gains_report(const RtFusionGains *c, const RtConvolutions *v,
                            RtError *e);

// ---- tuning_file.c ----

enum { RT_TUNING_FORMAT = 4 };

// A file is valid for the same calls, fusions, merged launches and code of tile
// kernels on the same kind of GPU with the same versions; 0 for libraries that
// are not used, which may have been while it was measured.
typedef struct {
    const RtPlan *plan;
    const RtTiles *tiles; // NULL: the plan has no tile kernels
    const char *gpu;      // its name
    int capability, processors, driver;
    size_t cudnn, cublaslt;
} RtTuningKey;

// The path in a folder, named after the key; the caller frees it.
char *rt_tuning_path(const char *folder, const RtTuningKey *key);

// False: there is no file, it is damaged, or it is for another key; *e has the
// reason.
bool rt_tuning_read(RtChosen *t, const char *path, const RtTuningKey *key,
                    const RtFiles *files, RtError *e);
bool rt_tuning_write(const RtChosen *t, const char *path,
                     const RtTuningKey *key, const RtFiles *files, RtError *e);
// A hash of the text of its file, not 0; 0: no memory.
uint64_t rt_tuning_hash(const RtChosen *t, const RtTuningKey *key);

#endif
