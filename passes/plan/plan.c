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
    p->tiles = graph_tile_fusions(g, &p->fusions, &p->forks, a);
    return p;
}

// ---- merged launches by their times ----

double kernel_seconds(const KernelTime *time, int resident) {
    enum { FULL = 2 }; // blocks whose warps issue an instruction in each cycle
    int blocks = time->blocks < resident ? time->blocks : resident;
    double one = fmax(FULL * time->issue, time->latency); // if one is resident
    return (blocks < 1 ? time->least : fmax(time->least, one / blocks)) +
           time->tail;
}

bool time_exceeds(double seconds, double other) {
    return seconds > 1.25 * other;
}

// A merged launch takes the registers of its largest kernel, and so has the
// fewest resident blocks of its kernels.  It is refused if a kernel has then
// too few loads in flight, or takes so long before its last block's sums that a
// launch saved is small against it.  Fills in the reason.
static bool merge_is_refused(const MergedLaunch *m, const KernelTime *time,
                             const TimeModel *time_model, MergeRefusal *why) {
    int resident = time[m->first].resident;
    for (int k = m->first; k < m->first + m->count; k++)
        if (time[k].resident < resident)
            resident = time[k].resident;
    for (int k = m->first; k < m->first + m->count; k++) {
        double tail = time[k].tail;
        double alone = kernel_seconds(&time[k], time[k].resident) - tail;
        double merged = kernel_seconds(&time[k], resident) - tail;
        *why = (MergeRefusal){.kernel = k,
                              .resident = time[k].resident,
                              .merged_resident = resident,
                              .seconds = alone,
                              .merged_seconds = merged};
        if (merged > alone || alone > time_model->max_merged_seconds)
            return true;
    }
    return false;
}

static void piece_add(MergedLaunches *to, MergedLaunch piece) {
    for (int i = 0; i < to->count; i++)
        if (to->launch[i].first == piece.first &&
            to->launch[i].count == piece.count)
            return;
    if (piece.count > 1)
        to->launch[to->count++] = piece;
}

// Cuts a merged launch at the kernels that refuse it.
static void merge_cut(GraphPlan *p, const MergedLaunch *all,
                      const KernelTime *time, const TimeModel *time_model,
                      MergedLaunches *kept) {
    MergedLaunch piece = {all->first, 1};
    for (int k = all->first + 1; k < all->first + all->count; k++) {
        MergedLaunch longer = {piece.first, piece.count + 1};
        MergeRefusal why;
        if (!merge_is_refused(&longer, time, time_model, &why)) {
            piece = longer;
            continue;
        }
        p->refusal[k] = why;
        piece_add(kept, piece);
        piece = (MergedLaunch){k, 1};
    }
    piece_add(kept, piece);
}

void plan_merges_by_time(GraphPlan *p, const TimeModel *time_model, Arena *a) {
    MergedLaunches kept = {0};
    if (p->merged.count == 0 || time_model->times == NULL)
        return;
    const KernelTime *time = time_model->times(time_model, p, a);
    size_t most = (size_t)(p->merged.count * MAX_MERGED);
    kept.launch = ARENA_ARRAY(a, most, MergedLaunch);
    p->refusal = ARENA_ARRAY(a, (size_t)p->num_groups + 1, MergeRefusal);
    for (int k = 0; k < p->num_groups; k++)
        p->refusal[k].kernel = NO_LAUNCH;
    for (int i = 0; i < p->merged.count; i++)
        merge_cut(p, &p->merged.launch[i], time, time_model, &kept);
    p->merged = kept;
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
