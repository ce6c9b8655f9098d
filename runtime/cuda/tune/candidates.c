// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Candidates: products first; then convolutions in three stages, without
// fusions, with statistics alone and with all fusions; then tile kernels in
// place of these; then merged launches.  In each run of the step every
// convolution uses its next candidate.

#include "runtime/cuda/tune/tune.h"

#include <stdlib.h>

enum { ROUNDS = 8 }; // candidates of a call

typedef struct {
    RtFusionGains known;
    double *seconds;      // of each launch, as measured last
    bool full;            // all fusions are taken
    RtConvolutions *last; // measured last; the next takes its plans
} Tune;

// ---- bn_finalize ----

// The plan of a launch; false: it has none of cuDNN.
static bool plan_of(const Tune *u, const RtConvolutions *v, int launch,
                    RtPlanned *p) {
    int call = u->known.t->call[launch];
    int planned = call < 0 ? -1 : rt_convolutions_plan_of(v, call);
    return planned >= 0 && rt_convolutions_plan_at(v, planned, p);
}

// bn_finalize takes the time by which a call before it, with all fusions, takes
// longer than it did with statistics alone.
static void learn_finalize(Tune *u, const RtConvolutions *v) {
    RtPlanned p;
    for (int i = 0; i < u->known.t->launches; i++) {
        if (!plan_of(u, v, i, &p) || p.with != 1u << RT_FUSED_STATISTICS ||
            !rt_convolutions_finalize(v, u->known.t->call[i]))
            continue;
        int row = rt_fusion_gains_row(&u->known, p.first, p.with);
        double more = row < 0 ? 0 : u->seconds[i] - u->known.times[row].best;
        if (more > 0 && (u->known.finalize < 0 || more < u->known.finalize))
            u->known.finalize = more;
    }
}

// The seconds of a launch without the bn_finalize after it.
static double seconds_of(const Tune *u, const RtConvolutions *v, int launch) {
    double seconds = u->seconds[launch];
    if (u->known.finalize < 0 ||
        !rt_convolutions_finalize(v, u->known.t->call[launch]))
        return seconds;
    return seconds > u->known.finalize ? seconds - u->known.finalize : 0;
}

// ---- candidates ----

// The mean of the step's launches that run plan `planned`; negative: none do.
static double mean_of(const Tune *u, const RtConvolutions *v, int planned) {
    double sum = 0;
    int count = 0;
    for (int i = 0; i < u->known.t->launches; i++)
        if (u->known.t->call[i] >= 0 &&
            rt_convolutions_plan_of(v, u->known.t->call[i]) == planned) {
            sum += seconds_of(u, v, i);
            count++;
        }
    return count > 0 ? sum / count : -1;
}

static bool add_row(const Tune *u, const RtPlanned *p, int group,
                    double seconds, RtError *e) {
    const RtCall *c = &u->known.t->plan->call[p->first];
    char way[48];
    snprintf(way, sizeof way, "engine %lld, number %d",
             (long long)p->plan->engine, p->plan->candidate);
    RtTuningResult *row =
        rt_tuning_results_add(u->known.t->results, group, way, seconds, e);
    if (row == NULL)
        return false;
    rt_tuning_result_call(row, c, p->with);
    row->number = p->plan->candidate;
    return true;
}

static int row_new(Tune *u, const RtPlanned *p) {
    int row = u->known.chosen->num_plans++;
    u->known.chosen->plan[row] =
        (RtChosenPlan){.call = p->first, .with = p->with, .engine = -1};
    u->known.times[row] =
        (RtCallTimes){.best = -1, .group = u->known.t->results->count};
    return row;
}

static bool learn(Tune *u, const RtPlanned *p, double seconds, RtError *e) {
    int row = rt_fusion_gains_row(&u->known, p->first, p->with);
    if (row < 0)
        row = row_new(u, p);
    RtCallTimes *c = &u->known.times[row];
    // Past the last candidate the library's first choice comes again.
    c->done |= p->plan->candidate < c->next;
    if (!c->done && !add_row(u, p, c->group, seconds, e))
        return false;
    c->next = c->done ? c->next : p->plan->candidate + 1;
    if (c->best < 0 || rt_clearly_less(seconds, c->best)) {
        c->best = seconds;
        u->known.chosen->plan[row].candidate = p->plan->candidate;
        u->known.chosen->plan[row].engine = p->plan->engine;
    }
    return true;
}

// Calls with statistics alone are known from the stage before.
static bool is_known(const Tune *u, const RtPlanned *p) {
    return u->full && p->with == 1u << RT_FUSED_STATISTICS &&
           rt_fusion_gains_row(&u->known, p->first, p->with) >= 0;
}

static bool learn_all(Tune *u, const RtConvolutions *v, RtError *e) {
    RtPlanned p;
    if (u->full)
        learn_finalize(u, v);
    for (int i = 0; rt_convolutions_plan_at(v, i, &p); i++) {
        double seconds = mean_of(u, v, i);
        if (p.plan != NULL && seconds >= 0 && !is_known(u, &p) &&
            !learn(u, &p, seconds, e))
            return false;
    }
    return true;
}

// Plans convolutions so, if there are any.
static bool plan_as(Tune *u, const RtChosen *chosen, RtError *e) {
    const RtTuner *t = u->known.t;
    if (t->cudnn == NULL)
        return true;
    u->last = rt_convolutions_next(u->last, t->cudnn, t->plan, chosen, e);
    return u->last != NULL;
}

static bool measure(Tune *u, const RtChosen *chosen, RtError *e) {
    const RtTuner *t = u->known.t;
    return plan_as(u, chosen, e) &&
           t->measure(t->arg, &(RtCandidate){.convolutions = u->last},
                      u->seconds, e);
}

// The choices so far, each with its next candidate.
static bool next_candidates(const Tune *u, RtChosen *next, RtError *e) {
    if (!rt_chosen_new(next, u->known.t->plan, e))
        return false;
    next->may_compile = true;
    next->num_plans = u->known.chosen->num_plans;
    for (int i = 0; i < next->num_plans; i++) {
        next->plan[i] = u->known.chosen->plan[i];
        if (!u->known.times[i].done) {
            next->plan[i].candidate = u->known.times[i].next;
            next->plan[i].engine = -1;
        }
    }
    for (int i = 0; i < u->known.t->plan->num_fusions; i++)
        next->fused[i] = u->known.chosen->fused[i];
    return true;
}

static bool measure_round(Tune *u, RtError *e) {
    RtChosen next;
    if (!next_candidates(u, &next, e))
        return false;
    bool good = measure(u, &next, e) && learn_all(u, u->last, e);
    rt_chosen_free(&next);
    return good;
}

static void learn_kernels(Tune *u) {
    for (int i = 0; i < u->known.t->launches; i++)
        if (u->known.kernel[i] < 0 || u->seconds[i] < u->known.kernel[i])
            u->known.kernel[i] = u->seconds[i];
}

static bool any_left(const Tune *u) {
    for (int i = 0; i < u->known.chosen->num_plans; i++)
        if (!u->known.times[i].done)
            return true;
    return false;
}

// Measures candidates with the fusions of kinds up to `most`.
static bool measure_stage(Tune *u, int most, RtError *e) {
    for (int i = 0; i < u->known.t->plan->num_fusions; i++)
        u->known.chosen->fused[i] =
            (int)u->known.t->plan->fusion[i].kind <= most;
    u->full = most == RT_FUSED_BACKWARD;
    for (int i = 0; i < ROUNDS; i++) {
        if (!measure_round(u, e))
            return false;
        if (most < 0)
            learn_kernels(u);
        if (!any_left(u))
            return true;
    }
    return true;
}

static void mark_chosen(const Tune *u, const RtConvolutions *v) {
    RtPlanned p;
    for (int i = 0; rt_convolutions_plan_at(v, i, &p); i++) {
        int row =
            p.calls > 0 ? rt_fusion_gains_row(&u->known, p.first, p.with) : -1;
        for (int k = 0; row >= 0 && k < u->known.t->results->count; k++) {
            RtTuningResult *is = &u->known.t->results->row[k];
            is->chosen |= is->group == u->known.times[row].group &&
                          is->number == p.plan->candidate;
        }
    }
}

// ---- the whole step ----

static bool measure_total(const Tune *u, RtConvolutions *v, const int *tile,
                          const bool *unmerged, double *total, RtError *e) {
    const RtPlan *p = u->known.t->plan;
    bool *merged = calloc((size_t)p->num_merged + 1, sizeof *merged);
    bool good = merged != NULL || rt_fail(e, EXIT_MEMORY, "out of memory");
    const RtCandidate candidate = {
        .convolutions = v, .merged = merged, .tile = tile};
    good = good && rt_tune_merged(u->known.t, v, tile, unmerged, merged, e) &&
           u->known.t->measure(u->known.t->arg, &candidate, u->seconds, e);
    *total = 0;
    for (int i = 0; good && i < u->known.t->launches; i++)
        *total += u->seconds[i];
    free(merged);
    return good;
}

static bool measure_before(Tune *u, double *before, RtError *e) {
    return plan_as(u, NULL, e) &&
           measure_total(u, u->last, NULL, NULL, before, e);
}

static bool tune_convolutions(Tune *u, RtError *e) {
    for (int i = 0; i < u->known.t->launches; i++)
        u->known.kernel[i] = -1;
    if (u->known.t->cudnn == NULL)
        return true;
    if (!measure_stage(u, -1, e) || !measure_stage(u, RT_FUSED_STATISTICS, e) ||
        !measure_stage(u, RT_FUSED_BACKWARD, e))
        return false;
    rt_fusion_gains_choose(&u->known);
    return true;
}

// Measures the step as later runs will run it.
static bool measure_after(Tune *u, double *after, RtError *e) {
    if (!plan_as(u, u->known.chosen, e) ||
        !rt_tune_tiles(u->known.t, u->last, u->known.chosen, e) ||
        !rt_tune_merges(u->known.t, u->last, u->known.chosen, e) ||
        !measure_total(u, u->last, u->known.chosen->tile,
                       u->known.chosen->unmerged, after, e))
        return false;
    if (u->last == NULL)
        return true;
    bool good = rt_fusion_gains_report(&u->known, u->last, e);
    mark_chosen(u, u->last);
    return good;
}

static bool tune(Tune *u, double *before, double *after, RtError *e) {
    return measure_before(u, before, e) &&
           (u->known.t->matmuls == NULL ||
            rt_tune_matmuls(u->known.t, u->known.chosen, e)) &&
           tune_convolutions(u, e) && measure_after(u, after, e);
}

bool rt_tuner_run(const RtTuner *t, RtChosen *out, double *before,
                  double *after, RtError *e) {
    if (!rt_chosen_new(out, t->plan, e))
        return false;
    size_t launches = (size_t)t->launches + 1;
    size_t rows = rt_chosen_room(t->plan);
    Tune u = {.known = {.t = t,
                        .chosen = out,
                        .times = calloc(rows, sizeof *u.known.times),
                        .kernel = calloc(launches, sizeof *u.known.kernel),
                        .finalize = -1},
              .seconds = calloc(launches, sizeof *u.seconds)};
    bool good =
        u.known.times != NULL && u.seconds != NULL && u.known.kernel != NULL
            ? tune(&u, before, after, e)
            : rt_fail(e, EXIT_MEMORY, "out of memory for tuning");
    rt_convolutions_free(u.last);
    free(u.known.times);
    free(u.seconds);
    free(u.known.kernel);
    if (!good)
        rt_chosen_free(out);
    return good;
}
