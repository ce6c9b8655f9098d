// Fuses for a described device: a kernel that computes several values needs the
// registers of all, and with few resident blocks its loads wait.  Then other
// choices are priced, each by the time of all kernels of the graph.

#include "passes/fuse.h"

enum { MAX_CHOICES = 16 };

typedef struct {
    const FuseAnalysis *f;
    Graph *old, *best;
    int64_t rewrites; // that the old graph has before fuse
    double seconds;   // of the best
    Arena *a;
} Choice;

// Time of the graph's kernels; *time gets that of each group, in arena a.
static double graph_seconds(const FuseAnalysis *f, const Graph *g, Arena *a,
                            const KernelTime **time) {
    const TimeModel *time_model = &f->options->time_model;
    const GraphPlan *p = graph_plan(g, false, a);
    double seconds = p->num_groups * time_model->launch;
    *time = time_model->times(time_model, p, a);
    for (int i = 0; i < p->num_groups; i++)
        seconds += kernel_seconds(&(*time)[i], (*time)[i].resident);
    return seconds;
}

static bool has_sum(const FuseAnalysis *f, const Cluster *c) {
    for (int i = 1; i < c->num_roots; i++)
        if (traits(f, c->root[i]) & REDUCES)
            return true;
    return false;
}

// Takes the sums out of the kernel that computes their operand, or else the
// last root out of those that read the same.
static void share_refuse(const FuseAnalysis *f, const Cluster *c) {
    NodeId last = c->root[c->num_roots - 1];
    if (!has_sum(f, c) || (traits(f, c->root[0]) & REDUCES))
        f->fusible[last] = FUSE_NONE;
    else
        for (int i = 0; i < c->num_roots; i++)
            f->fusible[c->root[i]] = traits(f, c->root[i]) & REDUCES
                                         ? FUSE_NO_PRODUCER
                                         : FUSE_NO_REDUCTION;
}

static void share_allow(const FuseAnalysis *f, const Cluster *c) {
    for (int i = 0; i < c->num_roots; i++)
        f->fusible[c->root[i]] = FUSE_ANY;
}

// Whether a kernel of several values would be faster with more resident blocks.
static bool is_limited(const Cluster *c, const KernelTime *time) {
    return c->num_roots > 1 &&
           (c->kind == GROUP_GRID || c->kind == GROUP_ROWS) &&
           time->resident < time->blocks &&
           time_exceeds(kernel_seconds(time, time->resident),
                        time->least + time->tail);
}

// Fuses once more without one sharing, and keeps the faster graph.
static void choose(Choice *c, const Cluster *shared) {
    Clusters clusters = {0};
    const KernelTime *time;
    share_refuse(c->f, shared);
    c->old->rewrites = c->rewrites;
    Graph *other = fuse(c->f, c->old, &clusters);
    double seconds = graph_seconds(c->f, other, c->a, &time);
    arena_free(clusters.own);
    if (seconds < c->seconds) {
        graph_free(c->best);
        c->best = other;
        c->seconds = seconds;
    } else {
        share_allow(c->f, shared);
        graph_free(other);
    }
}

Graph *fuse_by_time(const FuseAnalysis *f, Graph *g) {
    Clusters first = {0};
    const KernelTime *time;
    Choice c = {.f = f, .old = g, .rewrites = g->rewrites, .a = arena_new()};
    c.best = fuse(f, g, &first);
    c.seconds = graph_seconds(f, c.best, c.a, &time);
    for (int k = 0, left = MAX_CHOICES; k < first.count && left > 0; k++)
        if (is_limited(&first.cluster[k], &time[first.group[k]])) {
            choose(&c, &first.cluster[k]);
            left--;
        }
    arena_free(first.own);
    arena_free(c.a);
    return c.best;
}
