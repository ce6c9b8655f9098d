// The plan: see plan.h.
#include "passes/plan/plan.h"

#include <math.h>
#include <string.h>

static void plan_group(const Graph *g, Group *group, Arena *a) {
    group->backward = group_backward(g, group);
    group->columns = group_columns(g, group);
    group->region = group_regions(g, group, a);
    group->bytes = group_bytes(g, group, NULL);
    group_grid(g, group);
}

GraphPlan *graph_plan(const Graph *g, bool merges, Arena *a) {
    GraphPlan *p = ARENA_NEW(a, GraphPlan);
    Group *group = graph_groups(g, a, &p->num_groups);
    for (int k = 0; k < p->num_groups; k++)
        plan_group(g, &group[k], a);
    p->graph = g;
    p->group = group;
    p->stored = graph_stored(g, a);
    p->edge = graph_edges(g, a, group, p->num_groups, &p->num_edges);
    p->fusions = groups_library_fusions(g, group, p->num_groups, a);
    p->forks = graph_forks(g, &p->fusions, a);
    if (merges)
        p->merged = graph_merged_launches(g, &p->fusions, a);
    return p;
}

// ---- merged launches by their prices ----

double price_seconds(const Price *p, int resident) {
    int blocks = p->blocks < resident ? p->blocks : resident;
    return blocks < 1 ? p->least : fmax(p->least, p->latency / blocks);
}

bool price_exceeds(double seconds, double other) {
    return seconds > 1.25 * other;
}

// A merged launch takes the registers of its largest kernel, and so has the
// fewest resident blocks of its kernels.
static bool merge_is_slower(const MergedLaunch *m, const Price *price,
                            const Pricing *pricing) {
    double merged = (m->count - 1) * pricing->barrier;
    double apart = (m->count - 1) * pricing->launch;
    int resident = price[m->first].resident;
    for (int k = m->first; k < m->first + m->count; k++)
        if (price[k].resident < resident)
            resident = price[k].resident;
    for (int k = m->first; k < m->first + m->count; k++) {
        apart += price_seconds(&price[k], price[k].resident);
        merged += price_seconds(&price[k], resident);
    }
    return price_exceeds(merged, apart);
}

void plan_merges_by_price(GraphPlan *p, const Pricing *pricing, Arena *a) {
    MergedLaunches *m = &p->merged;
    if (m->count == 0 || pricing->prices == NULL)
        return;
    const Price *price = pricing->prices(pricing, p, a);
    int kept = 0;
    for (int i = 0; i < m->count; i++)
        if (!merge_is_slower(&m->launch[i], price, pricing))
            m->launch[kept++] = m->launch[i];
    m->count = kept;
}

// ---- the steps of a program ----

const Step *plan_step(const Plan *p, const char *name) {
    return step_named(p->step, p->num_steps, name);
}

Graph *plan_graph(const Plan *p, const char *name) {
    const Step *step = plan_step(p, name);
    return step ? step->graph : NULL;
}

int64_t plan_process_bytes(const Plan *p) {
    return p->arena_bytes + (p->lockstep - 1) * (p->arena_bytes - p->partial);
}
