// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Trials: the least of some runs, in a workspace of their own.
#define _POSIX_C_SOURCE 200809L

#include "runtime/cuda/tune/trial.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    const RtTuneTarget *b;
    RtColdTimer gauge;
    bool *none; // for each join: it is not taken
} Trials;

// ---- one trial ----

// The first run loads what the library brings.
static bool measure_runs(Trials *t, double *seconds, RtError *e) {
    enum { RUNS = 6 };
    const RtMaker *maker = &t->b->maker;
    bool good = true;
    for (int run = 0; good && run < RUNS; run++) {
        for (int i = 0; run < 2 && i < t->gauge.launches; i++)
            seconds[i] = -1;
        good = maker->make(maker->arg, false, false, e) &&
               rt_cold_timer_read(&t->gauge, seconds, e);
    }
    return good;
}

static bool measure_as(Trials *t, const RtCandidate *trial, double *seconds,
                       RtError *e) {
    const RtTuneTarget *b = t->b;
    bool *joins = *b->joins;
    memset(t->gauge.failed, 0, (size_t)t->gauge.launches * sizeof(bool));
    t->gauge.within = trial->within;
    if (trial->joined != NULL)
        memcpy(t->none, trial->joined, (size_t)b->plan->num_joins);
    *b->gauge = &t->gauge;
    *b->joins = t->none;
    bool good = rt_library_calls_set_flags(b->calls, b->kernels, e) &&
                measure_runs(t, seconds, e);
    *b->gauge = NULL;
    *b->joins = joins;
    memset(t->none, 0, (size_t)b->plan->num_joins);
    return good;
}

static bool measure(void *arg, const RtCandidate *trial, double *seconds,
                    RtError *e) {
    Trials *t = arg;
    RtLibraryCalls *calls = t->b->calls;
    const RtDriver *cu = t->b->gpu->cu;
    RtConvolutions *own = calls->convolutions;
    CUdeviceptr room = 0;
    if (trial->convolutions != NULL)
        calls->convolutions = trial->convolutions;
    size_t bytes =
        rt_library_calls_workspace(calls) + 1; // of which there are any
    bool good = rt_cold_timer_memory(cu, &room, bytes, e);
    if (good) {
        rt_library_calls_use(calls, calls->convolutions, room);
        good = measure_as(t, trial, seconds, e);
    }
    rt_library_calls_use(calls, own, 0);
    if (room != 0)
        cu->memory_free(room);
    return good;
}

// ---- all of them ----

static char *table_of(const RtTuningResults *tried, double before, double after,
                      const char *path) {
    char *text = NULL;
    size_t length;
    FILE *f = open_memstream(&text, &length);
    if (f == NULL)
        return NULL;
    rt_tuning_results_print(f, tried);
    fprintf(f,
            "\nthe launches of a step take %.3f ms one after the other, "
            "library calls with a cold cache; tuned %.3f ms; written to %s\n",
            1000 * before, 1000 * after, path);
    if (fclose(f) == 0)
        return text;
    free(text);
    return NULL;
}

static bool tune_within(Trials *t, RtTuningResults *tried, char **said,
                        RtError *e) {
    const RtTuneTarget *b = t->b;
    RtChosen tuning;
    double before, after;
    const RtTuner tuner = {
        .cudnn = b->calls->convolutions != NULL ? &b->calls->cudnn : NULL,
        .matmuls = b->calls->matmuls,
        .plan = b->plan,
        .step = b->step,
        .launches = t->gauge.launches,
        .call = t->gauge.call,
        .measure = measure,
        .arg = t,
        .tried = tried};
    if (!rt_tune(&tuner, &tuning, &before, &after, e))
        return false;
    bool good = rt_tuning_write(&tuning, b->calls->path, &b->calls->key,
                                b->calls->files, e);
    rt_chosen_free(&tuning);
    if (good)
        *said = table_of(tried, before, after, b->calls->path);
    return good && (*said != NULL || rt_fail(e, EXIT_MEMORY, "out of memory"));
}

static bool is_possible(const RtTuneTarget *b, RtError *e) {
    if (b->calls->convolutions == NULL && b->calls->matmuls == NULL &&
        b->plan->num_joins == 0)
        return rt_fail(e, EXIT_USAGE, "this trainer has nothing to tune");
    return b->calls->path != NULL ||
           rt_fail(e, EXIT_IO,
                   "no place for the tuning result: neither XDG_CACHE_HOME nor "
                   "HOME is a writable folder; name a file with --tuning=FILE");
}

bool rt_tune_step(const RtTuneTarget *b, char **said, RtError *e) {
    Trials t = {.b = b,
                .none = calloc((size_t)b->plan->num_joins + 1, sizeof(bool))};
    RtTuningResults tried = {0};
    bool good =
        (t.none != NULL || rt_fail(e, EXIT_MEMORY, "out of memory")) &&
        is_possible(b, e) &&
        rt_cold_timer_open(&t.gauge, b->gpu, b->maker.stream, b->launches, e) &&
        tune_within(&t, &tried, said, e);
    rt_cold_timer_close(&t.gauge);
    rt_tuning_results_free(&tried);
    free(t.none);
    return good;
}
