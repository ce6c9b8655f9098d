// Tune: three times over, with nothing riding, with statistics alone and with
// all that there are plans for, the step is run with one candidate after
// another of every call at once.
//
// What a fusion saves follows from the parts: the kernel and the calls without
// it against the calls with it.

#include "runtime/cuda/tune.h"

#include <stdlib.h>

enum { ROUNDS = 8 }; // candidates of a call
// What is not faster by so much may be no more than noise: the library's order
// counts then.
static const double CLEARLY = 0.99;

// What is known of a row of the tuning.
typedef struct {
    double best; // seconds of a call
    int next;    // candidate to try
    bool done;   // there is no other
} Cost;

typedef struct {
    const RtTuner *t;
    RtTuning *tuning;
    Cost *cost;      // of each of its rows
    double *seconds; // of each launch, as measured last
    double *kernel;  // of each launch with nothing riding; negative: unknown
    double forms;    // what making those of a batch_norm takes
    bool full;       // everything rides
} Tune;

static bool is_kind(const Tune *u, int fusion, RtFusionKind kind) {
    return u->t->plan->fusion[fusion].kind == kind;
}

// ---- candidates ----

static int row_of(const Tune *u, int call, unsigned with) {
    const RtCall *calls = u->t->plan->call;
    for (int i = 0; i < u->tuning->num_tuned; i++)
        if (u->tuning->tuned[i].with == with &&
            rt_call_same(&calls[u->tuning->tuned[i].call], &calls[call]))
            return i;
    return -1;
}

// The mean of the launches of this step that run plan `planned`; negative:
// there are none.
static double mean_of(const Tune *u, const RtConvolutions *v, int planned) {
    double sum = 0;
    int count = 0;
    for (int i = 0; i < u->t->launches; i++)
        if (u->t->call[i] >= 0 &&
            rt_convolutions_of(v, u->t->call[i]) == planned) {
            sum += u->seconds[i];
            count++;
        }
    return count > 0 ? sum / count : -1;
}

// Where all rides, a call after which forms are made takes as much longer; so
// what is known of it stays.
static void learn_forms(Tune *u, const Cost *c, double seconds) {
    double more = seconds - c->best;
    if (more > 0 && (u->forms < 0 || more < u->forms))
        u->forms = more;
}

static void learn(Tune *u, const RtPlanned *p, double seconds) {
    int row = row_of(u, p->first, p->with);
    if (row < 0) {
        row = u->tuning->num_tuned++;
        u->tuning->tuned[row] =
            (RtTuned){.call = p->first, .with = p->with, .engine = -1};
        u->cost[row] = (Cost){.best = -1};
    }
    Cost *c = &u->cost[row];
    if (u->full && p->with == 1u << RT_FUSED_STATISTICS && c->best >= 0) {
        learn_forms(u, c, seconds);
        return;
    }
    // Past the last candidate the library's own choice comes again.
    c->done |= p->plan->candidate < c->next;
    c->next = c->done ? c->next : p->plan->candidate + 1;
    if (c->best < 0 || seconds < CLEARLY * c->best) {
        c->best = seconds;
        u->tuning->tuned[row].candidate = p->plan->candidate;
        u->tuning->tuned[row].engine = p->plan->engine;
    }
}

static void learn_all(Tune *u, const RtConvolutions *v) {
    RtPlanned p;
    for (int i = 0; rt_convolutions_planned(v, i, &p); i++) {
        double seconds = mean_of(u, v, i);
        if (p.plan != NULL && seconds >= 0)
            learn(u, &p, seconds);
    }
}

static bool measure(Tune *u, const RtTuning *with, RtConvolutions **v,
                    RtError *e) {
    const RtTuner *t = u->t;
    *v = rt_convolutions_new(t->cudnn, t->plan, with, e);
    return *v != NULL && t->measure(t->arg, *v, u->seconds, e);
}

// The rows of the tuning, each with its next candidate.
static bool next_candidates(const Tune *u, RtTuning *next, RtError *e) {
    if (!rt_tuning_new(next, u->t->plan, e))
        return false;
    next->compiles = true;
    next->num_tuned = u->tuning->num_tuned;
    for (int i = 0; i < next->num_tuned; i++) {
        next->tuned[i] = u->tuning->tuned[i];
        if (!u->cost[i].done) {
            next->tuned[i].candidate = u->cost[i].next;
            next->tuned[i].engine = -1;
        }
    }
    for (int i = 0; i < u->t->plan->num_fusions; i++)
        next->wanted[i] = u->tuning->wanted[i];
    return true;
}

static bool take_round(Tune *u, RtError *e) {
    RtTuning next;
    RtConvolutions *v = NULL;
    if (!next_candidates(u, &next, e))
        return false;
    bool good = measure(u, &next, &v, e);
    if (good)
        learn_all(u, v);
    if (v != NULL)
        rt_convolutions_free(v);
    rt_tuning_free(&next);
    return good;
}

static void learn_kernels(Tune *u) {
    for (int i = 0; i < u->t->launches; i++)
        if (u->kernel[i] < 0 || u->seconds[i] < u->kernel[i])
            u->kernel[i] = u->seconds[i];
}

static bool any_left(const Tune *u) {
    for (int i = 0; i < u->tuning->num_tuned; i++)
        if (!u->cost[i].done)
            return true;
    return false;
}

// Which fusions ride while candidates are tried: of kinds up to `most`.
static bool take_stage(Tune *u, int most, RtError *e) {
    for (int i = 0; i < u->t->plan->num_fusions; i++)
        u->tuning->wanted[i] = (int)u->t->plan->fusion[i].kind <= most;
    u->full = most == RT_FUSED_BACKWARD;
    for (int i = 0; i < ROUNDS; i++) {
        if (!take_round(u, e))
            return false;
        if (most < 0)
            learn_kernels(u);
        if (!any_left(u))
            return true;
    }
    return true;
}

// ---- what to take ----

static double cost_of(const Tune *u, int call, unsigned with) {
    int row = row_of(u, call, with);
    return row < 0 ? -1 : u->cost[row].best;
}

static double kernel_of(const Tune *u, const RtFusion *f) {
    return f->launch >= 0 && f->launch < u->t->launches ? u->kernel[f->launch]
                                                        : 0;
}

static bool rides_statistics(const Tune *u, int call) {
    const RtPlan *p = u->t->plan;
    for (int i = 0; i < p->num_fusions; i++)
        if (is_kind(u, i, RT_FUSED_STATISTICS) && p->fusion[i].call == call)
            return cost_of(u, call, 1u << RT_FUSED_STATISTICS) >= 0;
    return false;
}

// Seconds that a fusion saves on its own call; negative where it costs some or
// was not run.
static double gain_on_call(const Tune *u, const RtFusion *f, unsigned before) {
    double without = cost_of(u, f->call, before);
    double with = cost_of(u, f->call, before | 1u << f->kind);
    return without < 0 || with < 0 ? -1 : without + kernel_of(u, f) - with;
}

static double gain_of(const Tune *u, const RtFusion *f) {
    if (f->kind != RT_FUSED_PROLOGUE)
        return gain_on_call(u, f, 0);
    unsigned before =
        rides_statistics(u, f->call) ? 1u << RT_FUSED_STATISTICS : 0;
    double gain = gain_on_call(u, f, before);
    if (f->together < 0)
        return gain;
    const RtFusion *weight = &u->t->plan->fusion[f->together];
    double without = cost_of(u, weight->call, 0);
    double with = cost_of(u, weight->call, 1u << weight->kind);
    return without < 0 || with < 0 ? -1 : gain + without - with;
}

// What is read of a batch_norm's forms must save more than making them takes,
// and with the statistics more than those cost.
static void want_norm(Tune *u, int statistics) {
    const RtPlan *p = u->t->plan;
    const RtFusion *s = &p->fusion[statistics];
    double readers = 0;
    for (int i = 0; i < p->num_fusions; i++) {
        const RtFusion *f = &p->fusion[i];
        if (f->norm != s->norm || f == s || f->kind == RT_FUSED_PROLOGUE_WEIGHT)
            continue;
        double gain = gain_of(u, f);
        u->tuning->wanted[i] = gain > 0;
        if (f->together >= 0)
            u->tuning->wanted[f->together] = gain > 0;
        readers += gain > 0 ? gain : 0;
    }
    readers -= u->forms > 0 ? u->forms : 0;
    bool reads = readers > 0;
    bool takes = gain_of(u, s) + (reads ? readers : 0) > 0;
    for (int i = 0; i < p->num_fusions; i++)
        if (p->fusion[i].norm == s->norm)
            u->tuning->wanted[i] &= &p->fusion[i] == s ? takes : takes && reads;
    u->tuning->wanted[statistics] = takes;
}

// Another step's fusions are as those of the measured step that are alike.
static void want_alike(Tune *u, int fusion) {
    const RtPlan *p = u->t->plan;
    const RtFusion *f = &p->fusion[fusion];
    u->tuning->wanted[fusion] = true;
    for (int i = 0; i < p->num_fusions; i++) {
        const RtFusion *like = &p->fusion[i];
        if (like->step == u->t->step && like->kind == f->kind &&
            p->norm[like->norm].number == p->norm[f->norm].number &&
            rt_call_same(&p->call[like->call], &p->call[f->call]))
            u->tuning->wanted[fusion] = u->tuning->wanted[i];
    }
}

static void want(Tune *u) {
    const RtPlan *p = u->t->plan;
    for (int i = 0; i < p->num_fusions; i++)
        if (p->fusion[i].step == u->t->step &&
            is_kind(u, i, RT_FUSED_STATISTICS))
            want_norm(u, i);
    for (int i = 0; i < p->num_fusions; i++)
        if (p->fusion[i].step != u->t->step)
            want_alike(u, i);
}

// ---- all of it ----

static bool take_total(Tune *u, const RtTuning *with, double *total,
                       RtError *e) {
    RtConvolutions *v = NULL;
    bool good = measure(u, with, &v, e);
    *total = 0;
    for (int i = 0; good && i < u->t->launches; i++)
        *total += u->seconds[i];
    if (v != NULL)
        rt_convolutions_free(v);
    return good;
}

static bool tune(Tune *u, double *before, double *after, RtError *e) {
    for (int i = 0; i < u->t->launches; i++)
        u->kernel[i] = -1;
    if (!take_total(u, NULL, before, e) || !take_stage(u, -1, e) ||
        !take_stage(u, RT_FUSED_STATISTICS, e) ||
        !take_stage(u, RT_FUSED_BACKWARD, e))
        return false;
    want(u);
    return take_total(u, u->tuning, after, e);
}

bool rt_tune(const RtTuner *t, RtTuning *out, double *before, double *after,
             RtError *e) {
    if (!rt_tuning_new(out, t->plan, e))
        return false;
    size_t launches = (size_t)t->launches + 1;
    size_t rows = rt_tuning_room(t->plan);
    Tune u = {.t = t,
              .tuning = out,
              .cost = calloc(rows, sizeof *u.cost),
              .seconds = calloc(launches, sizeof *u.seconds),
              .kernel = calloc(launches, sizeof *u.kernel),
              .forms = -1};
    bool good = u.cost != NULL && u.seconds != NULL && u.kernel != NULL
                    ? tune(&u, before, after, e)
                    : rt_fail(e, EXIT_MEMORY, "no memory for a tuning");
    free(u.cost);
    free(u.seconds);
    free(u.kernel);
    if (!good)
        rt_tuning_free(out);
    return good;
}
