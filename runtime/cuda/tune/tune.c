// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tune: runs the device's step with each candidate, in a workspace of its own,
// and takes the least time of some runs.
#define _POSIX_C_SOURCE 200809L

#include "runtime/cuda/tune/tune.h"

#include <stdlib.h>
#include <string.h>

// ---- the file ----

// Its plan has all calls, also those that tile kernels replace.
static RtTuningKey key_of(const RtCuda *c) {
    const RtLibraryCalls *calls = &c->calls;
    return (RtTuningKey){
        .plan = c->tiled_call != NULL ? &c->untiled_plan : c->plan,
        .tiles = c->tiles.count > 0 ? &c->tiles : NULL,
        .gpu = c->gpu.name,
        .capability = rt_gpu_capability(&c->gpu),
        .processors = c->gpu.processors,
        .driver = c->gpu.driver,
        .cudnn = calls->cudnn.library != NULL ? calls->cudnn.version() : 0,
        .cublaslt =
            calls->matmuls != NULL ? rt_matmuls_version(calls->matmuls) : 0};
}

static char *path_in_cache(const RtTuningKey *key) {
    RtCache cache;
    char *path = NULL;
    rt_cache_open(&cache, &rt_private_files);
    if (cache.folder != NULL)
        path = rt_tuning_path(cache.folder, key);
    rt_cache_close(&cache);
    return path;
}

static bool choose_none(RtTiles *k, RtError *e) {
    int *none = calloc((size_t)k->count + 1, sizeof *none);
    if (none == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    rt_tiles_choose(k, none);
    free(none);
    return true;
}

bool rt_tuning_tiles(RtCuda *c, const RtOptions *o, RtError *e) {
    const char *given = o != NULL ? o->tuning : NULL;
    const RtTuningKey key = key_of(c);
    RtChosen chosen;
    RtError own;
    c->tuning_files = given != NULL ? &rt_system_files : &rt_private_files;
    c->tuning_path = given != NULL ? rt_path("%s", given) : path_in_cache(&key);
    if (c->tuning_path == NULL && given != NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    if (o != NULL && o->tune)
        return choose_none(&c->tiles, e);
    if (c->tuning_path == NULL || c->tiles.count == 0 ||
        !rt_tuning_read(&chosen, c->tuning_path, &key, c->tuning_files, &own))
        return true;
    rt_tiles_choose(&c->tiles, chosen.tile);
    rt_chosen_free(&chosen);
    return true;
}

bool rt_tuning_load(RtCuda *c, const RtOptions *o, RtError *e) {
    const char *given = o != NULL ? o->tuning : NULL;
    const RtTuningKey key = key_of(c);
    RtError own;
    if (c->tuning_path == NULL || (o != NULL && o->tune))
        return true;
    c->is_chosen =
        rt_tuning_read(&c->chosen, c->tuning_path, &key, c->tuning_files, &own);
    if (c->is_chosen)
        c->device.tuning = rt_tuning_hash(&c->chosen, &key);
    else if (given != NULL)
        *e = own;
    return c->is_chosen || given == NULL;
}

// ---- one candidate ----

typedef struct {
    RtCuda *c;
    RtColdTimer timer;
    bool *merged; // for each merged launch of the plan
    int *none;    // choices of tile kernels: not one
} Bench;

// The first run loads the libraries' kernels and does not count.
static bool measure_runs(Bench *b, double *seconds, RtError *e) {
    enum { RUNS = 6 };
    bool good = true;
    for (int run = 0; good && run < RUNS; run++) {
        for (int i = 0; run < 2 && i < b->timer.launches; i++)
            seconds[i] = -1;
        rt_cuda_launch_step(b->c, false, false);
        good = rt_cold_timer_read(&b->timer, seconds, e);
    }
    return good;
}

static bool measure_as(Bench *b, const RtCandidate *candidate, double *seconds,
                       RtError *e) {
    RtCuda *c = b->c;
    bool *own = c->merged;
    memset(b->timer.timer.failed, 0, (size_t)b->timer.launches * sizeof(bool));
    memset(b->merged, 0, (size_t)c->plan->num_merged);
    if (candidate->merged != NULL)
        memcpy(b->merged, candidate->merged, (size_t)c->plan->num_merged);
    b->timer.within = candidate->within;
    rt_tiles_choose(&c->tiles,
                    candidate->tile != NULL ? candidate->tile : b->none);
    c->timer = &b->timer.timer;
    c->merged = b->merged;
    bool good = rt_library_calls_set_flags(&c->calls, &c->kernels, e) &&
                measure_runs(b, seconds, e);
    c->timer = NULL;
    c->merged = own;
    return good;
}

static bool measure(void *arg, const RtCandidate *candidate, double *seconds,
                    RtError *e) {
    Bench *b = arg;
    RtLibraryCalls *calls = &b->c->calls;
    RtConvolutions *own = calls->convolutions;
    CUdeviceptr workspace = 0;
    if (candidate->convolutions != NULL)
        calls->convolutions = candidate->convolutions;
    size_t bytes = rt_library_calls_workspace(calls) + 1; // not 0
    bool good = rt_tune_alloc(&b->c->cu, &workspace, bytes, e);
    if (good) {
        rt_library_calls_use(calls, calls->convolutions, workspace);
        good = measure_as(b, candidate, seconds, e);
    }
    rt_library_calls_use(calls, own, 0);
    if (workspace != 0)
        b->c->cu.memory_free(workspace);
    return good;
}

// ---- all candidates ----

static char *report_of(const RtTuningResults *results, double before,
                       double after, const char *path) {
    char *text = NULL;
    size_t length;
    FILE *f = open_memstream(&text, &length);
    if (f == NULL)
        return NULL;
    rt_tuning_results_print(f, results);
    fprintf(f,
            "\nthe launches of a step take %.3f ms one after the other, "
            "library calls with a cold cache; tuned %.3f ms; written to %s\n",
            1000 * before, 1000 * after, path);
    if (fclose(f) == 0)
        return text;
    free(text);
    return NULL;
}

static bool tune_step(Bench *b, RtTuningResults *results, RtError *e) {
    RtCuda *c = b->c;
    RtChosen chosen;
    double before, after;
    const RtTuningKey key = key_of(c);
    const RtTuner tuner = {
        .cudnn = c->calls.convolutions != NULL ? &c->calls.cudnn : NULL,
        .matmuls = c->calls.matmuls,
        .tiles = c->tiles.count > 0 ? &c->tiles : NULL,
        .plan = c->plan,
        .step = c->step,
        .launches = b->timer.launches,
        .call = b->timer.call,
        .measure = measure,
        .arg = b,
        .results = results};
    if (!rt_tuner_run(&tuner, &chosen, &before, &after, e))
        return false;
    bool good =
        rt_tuning_write(&chosen, c->tuning_path, &key, c->tuning_files, e);
    rt_chosen_free(&chosen);
    if (!good)
        return false;
    c->report = report_of(results, before, after, c->tuning_path);
    return c->report != NULL || rt_fail(e, EXIT_MEMORY, "out of memory");
}

static bool is_possible(const RtCuda *c, RtError *e) {
    if (c->calls.convolutions == NULL && c->calls.matmuls == NULL &&
        c->plan->num_merged == 0 && c->tiles.count == 0)
        return rt_fail(e, EXIT_USAGE, "this trainer has nothing to tune");
    return c->tuning_path != NULL ||
           rt_fail(e, EXIT_IO,
                   "no place for the tuning result: neither XDG_CACHE_HOME nor "
                   "HOME is a writable folder; name a file with --tuning=FILE");
}

// Candidates launch kernels that the plan so far does not.  Without cooperative
// launches, kernels with phases are those of merged launches only: the device
// would not have opened with others.
static bool load_all_kernels(RtCuda *c, RtError *e) {
    for (int i = 0; i < c->plan->num_kernels; i++)
        c->needed[i] = c->gpu.cooperates || c->plan->kernel[i].phases <= 1;
    rt_kernels_close(&c->kernels);
    return rt_kernels_start(&c->kernels, &c->gpu, c->trainer, c->plan,
                            c->needed, &rt_private_files, e) &&
           rt_kernels_load(&c->kernels, c->needed, NULL, e);
}

static bool tune(RtCuda *c, int launches, RtError *e) {
    Bench b = {.c = c,
               .merged = calloc((size_t)c->plan->num_merged + 1, sizeof(bool)),
               .none = calloc((size_t)c->tiles.count + 1, sizeof(int))};
    RtTuningResults results = {0};
    bool good = ((b.merged != NULL && b.none != NULL) ||
                 rt_fail(e, EXIT_MEMORY, "out of memory")) &&
                is_possible(c, e) &&
                rt_cold_timer_open(&b.timer, &c->gpu, c->stream, launches, e) &&
                tune_step(&b, &results, e);
    rt_cold_timer_close(&b.timer);
    rt_tuning_results_free(&results);
    free(b.merged);
    free(b.none);
    return good;
}

// Runs the step first to count its launches.
bool rt_tune(RtDevice *d, const RtStep *step, const char **report, RtError *e) {
    RtCuda *c = rt_cuda_of(d);
    rt_cuda_run(d, step);
    d->sync(d);
    bool good = load_all_kernels(c, e) && tune(c, c->merging.launch, e);
    *report = c->report;
    return good;
}
