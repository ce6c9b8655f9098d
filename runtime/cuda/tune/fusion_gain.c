// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Fusion gain: the time of the kernel and the calls without a fusion, less that
// of the calls with it.

#include "runtime/cuda/tune/tune.h"

static bool is_kind(const RtFusionGains *c, int fusion, RtFusionKind kind) {
    return c->t->plan->fusion[fusion].kind == kind;
}

int rt_fusion_gains_row(const RtFusionGains *c, int call, unsigned with) {
    const RtCall *calls = c->t->plan->call;
    for (int i = 0; i < c->chosen->num_plans; i++)
        if (c->chosen->plan[i].with == with &&
            rt_call_same(&calls[c->chosen->plan[i].call], &calls[call]))
            return i;
    return -1;
}

// ---- choice ----

static double cost_of(const RtFusionGains *c, int call, unsigned with) {
    int row = rt_fusion_gains_row(c, call, with);
    return row < 0 ? -1 : c->times[row].best;
}

static double kernel_of(const RtFusionGains *c, const RtFusion *f) {
    return f->launch >= 0 && f->launch < c->t->launches ? c->kernel[f->launch]
                                                        : 0;
}

static bool fuses_statistics(const RtFusionGains *c, int call) {
    const RtPlan *p = c->t->plan;
    for (int i = 0; i < p->num_fusions; i++)
        if (is_kind(c, i, RT_FUSED_STATISTICS) && p->fusion[i].call == call)
            return cost_of(c, call, 1u << RT_FUSED_STATISTICS) >= 0;
    return false;
}

// Seconds of a fusion's kernel and calls; negative: not measured.
typedef struct {
    double separate, fused;
} Ways;

static Ways ways_on_call(const RtFusionGains *c, const RtFusion *f,
                         unsigned before) {
    Ways w = {cost_of(c, f->call, before),
              cost_of(c, f->call, before | 1u << f->kind)};
    w.separate += w.separate < 0 ? 0 : kernel_of(c, f);
    return w;
}

static double sum_of(double a, double b) {
    return a < 0 || b < 0 ? -1 : a + b;
}

// Includes the fusion that is taken together with it.
static Ways ways_of(const RtFusionGains *c, const RtFusion *f) {
    if (f->kind != RT_FUSED_PROLOGUE)
        return ways_on_call(c, f, 0);
    unsigned before =
        fuses_statistics(c, f->call) ? 1u << RT_FUSED_STATISTICS : 0;
    Ways w = ways_on_call(c, f, before);
    if (f->paired < 0)
        return w;
    const RtFusion *weight = &c->t->plan->fusion[f->paired];
    return (Ways){
        sum_of(w.separate, cost_of(c, weight->call, 0)),
        sum_of(w.fused, cost_of(c, weight->call, 1u << weight->kind))};
}

// The seconds that it saves; negative if it costs some or was not measured.
static double gain_of(const RtFusionGains *c, const RtFusion *f) {
    Ways w = ways_of(c, f);
    return w.separate < 0 || w.fused < 0 ? -1 : w.separate - w.fused;
}

// The fusions that read a batch_norm's parameters must save more than
// bn_finalize takes, and together with the statistics' fusion more than that
// costs.
static void choose_norm(const RtFusionGains *c, int statistics) {
    const RtPlan *p = c->t->plan;
    const RtFusion *s = &p->fusion[statistics];
    double readers = 0;
    for (int i = 0; i < p->num_fusions; i++) {
        const RtFusion *f = &p->fusion[i];
        if (f->norm != s->norm || f == s || f->kind == RT_FUSED_PROLOGUE_WEIGHT)
            continue;
        double gain = gain_of(c, f);
        c->chosen->fused[i] = gain > 0;
        if (f->paired >= 0)
            c->chosen->fused[f->paired] = gain > 0;
        readers += gain > 0 ? gain : 0;
    }
    readers -= c->finalize > 0 ? c->finalize : 0;
    bool reads = readers > 0;
    bool takes = gain_of(c, s) + (reads ? readers : 0) > 0;
    for (int i = 0; i < p->num_fusions; i++)
        if (p->fusion[i].norm == s->norm)
            c->chosen->fused[i] &= &p->fusion[i] == s ? takes : takes && reads;
    c->chosen->fused[statistics] = takes;
}

// Another step's fusions follow equal ones of the measured step.
static void choose_alike(const RtFusionGains *c, int fusion) {
    const RtPlan *p = c->t->plan;
    const RtFusion *f = &p->fusion[fusion];
    c->chosen->fused[fusion] = true;
    for (int i = 0; i < p->num_fusions; i++) {
        const RtFusion *like = &p->fusion[i];
        if (like->step == c->t->step && like->kind == f->kind &&
            p->norm[like->norm].number == p->norm[f->norm].number &&
            rt_call_same(&p->call[like->call], &p->call[f->call]))
            c->chosen->fused[fusion] = c->chosen->fused[i];
    }
}

void rt_fusion_gains_choose(const RtFusionGains *c) {
    const RtPlan *p = c->t->plan;
    for (int i = 0; i < p->num_fusions; i++)
        if (p->fusion[i].step == c->t->step &&
            is_kind(c, i, RT_FUSED_STATISTICS))
            choose_norm(c, i);
    for (int i = 0; i < p->num_fusions; i++)
        if (p->fusion[i].step != c->t->step)
            choose_alike(c, i);
}

// ---- the table ----

static bool add_way(const RtFusionGains *c, const RtFusion *f, int group,
                    const char *way, double seconds, bool chosen, RtError *e) {
    static const char *const name[] = {
        [RT_FUSED_STATISTICS] = "statistics",
        [RT_FUSED_PROLOGUE] = "prologue",
        [RT_FUSED_BACKWARD] = "backward",
    };
    const RtCall *call = &c->t->plan->call[f->call];
    RtTuningResult *row =
        rt_tuning_results_add(c->t->results, group, way, seconds, e);
    if (row == NULL)
        return false;
    snprintf(row->launch, sizeof row->launch, "%s of %s", name[f->kind],
             rt_call_name(call->kind));
    snprintf(row->model, sizeof row->model, "%s", call->layer);
    row->chosen = chosen;
    return true;
}

bool rt_fusion_gains_report(const RtFusionGains *c, const RtConvolutions *v,
                            RtError *e) {
    const RtPlan *p = c->t->plan;
    const bool *taken = rt_convolutions_taken(v);
    bool good = true;
    for (int i = 0; good && i < p->num_fusions; i++) {
        const RtFusion *f = &p->fusion[i];
        Ways w = ways_of(c, f);
        int group = c->t->results->count;
        if (f->step == c->t->step && f->kind != RT_FUSED_PROLOGUE_WEIGHT &&
            w.separate >= 0 && w.fused >= 0)
            good = add_way(c, f, group, "separate", w.separate, !taken[i], e) &&
                   add_way(c, f, group, "fused", w.fused, taken[i], e);
    }
    return good;
}
