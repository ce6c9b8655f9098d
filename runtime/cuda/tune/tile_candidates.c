// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tile candidates: a step runs without tile kernels, then with all of them, in
// each run with their next configurations.
//
// The time of a tile kernel is that of the launches in whose place it is: its
// call's, its epilogue's, its pool's, and an equal share of each prologue's,
// which no run with all tile kernels launches.  Kernels with a common prologue
// are taken together or not at all, so that these shares add up to the time
// saved.

#include "runtime/cuda/tune/tune.h"

#include <stdlib.h>

// The measurements of a tile kernel.
typedef struct {
    double library, best; // seconds without it, and of its best configuration
    int choice;           // that configuration, as RtChosen has it
    int last;             // measured last
    bool is_new;          // in this run
    int set;              // the first of the kernels that are taken together
    int group;            // of its results
} Known;

typedef struct {
    const RtTuner *t;
    const RtTiles *k;
    RtConvolutions *v;
    Known *known;
    int *tile;       // choices of a run
    double *seconds; // of each launch, as measured last
} Tune;

static bool is_measured(const Tune *u, int i) {
    return u->k->tile[i].step == u->t->step && u->k->best[i] >= 0;
}

// ---- times ----

// Tile kernels that share the prologue at a launch.
static int readers_of(const RtTiles *k, const RtFusedLaunch *p) {
    int readers = 0;
    for (int i = 0; i < k->num_fused; i++)
        readers +=
            k->fused[i].step == p->step && k->fused[i].launch == p->launch;
    return readers;
}

// The kernels of attention's gradient are one launch of the plan: each has half
// of its time.
static int sharers_of(const RtTiles *k, const RtTile *tile) {
    int sharers = 0;
    for (int i = 0; i < k->count; i++)
        sharers += k->tile[i].call < 0 && k->tile[i].step == tile->step &&
                   k->tile[i].launch == tile->launch;
    return sharers;
}

static double seconds_of(const Tune *u, const RtTile *tile) {
    const RtTiles *k = u->k;
    double sum = 0;
    if (tile->call < 0)
        return u->seconds[tile->launch] / sharers_of(k, tile);
    for (int i = 0; i < u->t->launches; i++)
        if (u->t->call[i] == tile->call || i == tile->launch)
            sum += u->seconds[i];
    for (int i = 0; i < k->num_fused; i++)
        if (k->fused[i].step == tile->step && k->fused[i].call == tile->call)
            sum += u->seconds[k->fused[i].launch] / readers_of(k, &k->fused[i]);
    return sum;
}

// ---- results ----

static bool add_row(const Tune *u, int i, const char *way, double seconds,
                    int number, RtError *e) {
    const RtTile *tile = &u->k->tile[i];
    const RtPlan *p = u->t->plan;
    RtTuningResult *row = rt_tuning_results_add(
        u->t->results, u->known[i].group, way, seconds, e);
    if (row == NULL)
        return false;
    snprintf(row->launch, sizeof row->launch, "%s", tile->name);
    if (tile->call >= 0)
        snprintf(row->model, sizeof row->model, "%s",
                 p->call[tile->call].layer);
    else
        rt_tuning_result_lines(row, &p->step[tile->step], tile->launch);
    row->number = number;
    return true;
}

static void mark_chosen(const Tune *u, const RtChosen *out) {
    for (int r = 0; r < u->t->results->count; r++) {
        RtTuningResult *row = &u->t->results->row[r];
        for (int i = 0; i < u->k->count; i++)
            row->chosen |= is_measured(u, i) &&
                           row->group == u->known[i].group &&
                           row->number == out->tile[i];
    }
}

// ---- runs ----

static bool measure(const Tune *u, const int *tile, RtError *e) {
    const RtCandidate candidate = {.convolutions = u->v, .tile = tile};
    return u->t->measure(u->t->arg, &candidate, u->seconds, e);
}

static bool measure_library(const Tune *u, RtError *e) {
    if (!measure(u, NULL, e))
        return false;
    for (int i = 0; i < u->k->count; i++) {
        const RtTile *tile = &u->k->tile[i];
        Known *own = &u->known[i];
        if (!is_measured(u, i))
            continue;
        own->library = seconds_of(u, tile);
        own->group = u->t->results->count;
        if (!add_row(u, i, tile->call < 0 ? "kernel" : "library", own->library,
                     0, e))
            return false;
    }
    return true;
}

// The next configuration behind a choice that is on the GPU, as a choice; 0:
// there is none.
static int next_of(const RtTiles *k, int i, int choice) {
    for (int c = choice; c < k->tile[i].num_configs; c++)
        if (rt_tiles_has(k, i, c))
            return c + 1;
    return 0;
}

// Kernels without another configuration run with their best one.
static bool next_candidates(const Tune *u) {
    bool any = false;
    for (int i = 0; i < u->k->count; i++) {
        Known *own = &u->known[i];
        int next = next_of(u->k, i, own->last);
        own->is_new = is_measured(u, i) && next > 0;
        own->last = own->is_new ? next : own->last;
        u->tile[i] = own->is_new ? next : own->choice;
        any |= own->is_new;
    }
    return any;
}

static bool learn(const Tune *u, int i, RtError *e) {
    const RtTile *tile = &u->k->tile[i];
    Known *own = &u->known[i];
    double seconds = seconds_of(u, tile);
    if (own->choice == 0 || rt_clearly_less(seconds, own->best)) {
        own->best = seconds;
        own->choice = u->tile[i];
    }
    return add_row(u, i, tile->config[u->tile[i] - 1].name, seconds, u->tile[i],
                   e);
}

static bool measure_tiles(const Tune *u, RtError *e) {
    while (next_candidates(u)) {
        if (!measure(u, u->tile, e))
            return false;
        for (int i = 0; i < u->k->count; i++)
            if (u->known[i].is_new && !learn(u, i, e))
                return false;
    }
    return true;
}

// ---- choices ----

static bool reads(const RtTile *tile, const RtFusedLaunch *p) {
    return p->step == tile->step && p->call == tile->call;
}

static bool are_together(const RtTiles *k, const RtTile *a, const RtTile *b) {
    if (a->call < 0 || b->call < 0)
        return a->call < 0 && b->call < 0 && a->launch == b->launch;
    for (int p = 0; p < k->num_fused; p++)
        for (int q = 0; q < k->num_fused; q++)
            if (reads(a, &k->fused[p]) && reads(b, &k->fused[q]) &&
                k->fused[p].launch == k->fused[q].launch)
                return true;
    return false;
}

static void join(const Tune *u, int i, int j) {
    int a = u->known[i].set, b = u->known[j].set;
    for (int n = 0; n < u->k->count; n++)
        if (u->known[n].set == (a > b ? a : b))
            u->known[n].set = a > b ? b : a;
}

static void find_sets(const Tune *u) {
    for (int i = 0; i < u->k->count; i++)
        u->known[i].set = i;
    for (int i = 0; i < u->k->count; i++)
        for (int j = 0; j < i; j++)
            if (is_measured(u, i) && is_measured(u, j) &&
                are_together(u->k, &u->k->tile[i], &u->k->tile[j]))
                join(u, i, j);
}

static bool saves(const Tune *u, int set) {
    double library = 0, tile = 0;
    for (int i = 0; i < u->k->count; i++)
        if (is_measured(u, i) && u->known[i].set == set) {
            library += u->known[i].library;
            tile += u->known[i].best;
        }
    return rt_clearly_less(tile, library);
}

// Kernels of other steps follow one with the same code.
static int choice_alike(const Tune *u, const RtChosen *out, int i) {
    for (int j = 0; j < u->k->count; j++)
        if (is_measured(u, j) && u->k->tile[j].code == u->k->tile[i].code)
            return out->tile[j];
    return u->k->best[i] + 1;
}

static void choose(const Tune *u, RtChosen *out) {
    find_sets(u);
    for (int i = 0; i < u->k->count; i++)
        if (is_measured(u, i) && saves(u, u->known[i].set))
            out->tile[i] = u->known[i].choice;
    for (int i = 0; i < u->k->count; i++)
        if (!is_measured(u, i))
            out->tile[i] = choice_alike(u, out, i);
    mark_chosen(u, out);
}

bool rt_tune_tiles(const RtTuner *t, RtConvolutions *v, RtChosen *out,
                   RtError *e) {
    if (t->tiles == NULL)
        return true;
    size_t count = (size_t)t->tiles->count + 1;
    Tune u = {.t = t,
              .k = t->tiles,
              .v = v,
              .known = calloc(count, sizeof *u.known),
              .tile = calloc(count, sizeof *u.tile),
              .seconds = calloc((size_t)t->launches + 1, sizeof *u.seconds)};
    bool good = (u.known != NULL && u.tile != NULL && u.seconds != NULL) ||
                rt_fail(e, EXIT_MEMORY, "out of memory for tuning");
    good = good && measure_library(&u, e) && measure_tiles(&u, e);
    if (good)
        choose(&u, out);
    free(u.known);
    free(u.tile);
    free(u.seconds);
    return good;
}
