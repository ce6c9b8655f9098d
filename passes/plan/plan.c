// The plan: see plan.h.
#include "passes/plan/plan.h"

#include <string.h>

static void plan_group(const Graph *g, Group *group, Arena *a) {
    group->backward = group_backward(g, group);
    group->columns = group_columns(g, group);
    group->region = group_regions(g, group, a);
    group->bytes = group_bytes(g, group, NULL);
    group_grid(g, group);
}

const GraphPlan *graph_plan(const Graph *g, bool merges, Arena *a) {
    GraphPlan *p = ARENA_NEW(a, GraphPlan);
    Group *group = graph_groups(g, a, &p->num_groups);
    for (int k = 0; k < p->num_groups; k++)
        plan_group(g, &group[k], a);
    p->graph = g;
    p->group = group;
    p->stored = graph_stored(g, a);
    p->edge = graph_edges(g, a, group, p->num_groups, &p->num_edges);
    p->fusions = groups_library_fusions(g, group, p->num_groups, a);
    if (merges)
        p->merged = graph_merged_launches(g, &p->fusions, a);
    return p;
}

const Step *plan_step(const Plan *p, const char *name) {
    for (int i = 0; i < p->num_steps; i++)
        if (strcmp(p->step[i].name, name) == 0)
            return &p->step[i];
    return NULL;
}

Graph *plan_graph(const Plan *p, const char *name) {
    const Step *step = plan_step(p, name);
    return step ? step->graph : NULL;
}
