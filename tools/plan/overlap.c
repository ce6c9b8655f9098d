// Overlap: when sums over ranks begin and end beside the backward pass.
#include "tools/plan/plan.h"

#include <math.h>
#include <stdlib.h>

// ---- the order in which terms are complete ----

// A term of the sums over ranks: a gradient, a metric, a statistic.
typedef struct {
    NodeId node;
    double bytes, ready;
} Term;

// Seconds from the begin of a step to the end of the launch that computes n.
static double end_of(const GraphPlan *p, NodeId n, const double *seconds) {
    double end = 0;
    for (int i = 0; i < p->num_groups && p->group[i].first <= n; i++)
        end += seconds[i];
    return end;
}

// The value that the copy of an assignment's launch begins with.
static NodeId copied_from(const Graph *g, NodeId assigned) {
    NodeId n = g->node[assigned].arg[1];
    while (g->node[n].group == g->node[assigned].group &&
           g->node[n].num_args == 1)
        n = g->node[n].arg[0];
    return n;
}

static int by_ready(const void *a, const void *b) {
    const Term *x = a, *y = b;
    if (x->ready != y->ready)
        return x->ready > y->ready ? 1 : -1;
    return x->node > y->node ? 1 : -1;
}

static Term *terms_of(Arena *a, const GraphPlan *p, const double *seconds,
                      int *count) {
    const Graph *g = p->graph;
    Term *term = ARENA_ARRAY(a, g->count + 1, Term);
    *count = 0;
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        if (d->op == OP_assign && state_is(&g->node[d->arg[0]], STATE_PARTIAL))
            term[(*count)++] = (Term){n, (double)graph_bytes(g, d->type),
                                      end_of(p, copied_from(g, n), seconds)};
    }
    qsort(term, (size_t)*count, sizeof *term, by_ready);
    return term;
}

static void buckets_fill(Arena *a, Timeline *t, const GraphPlan *p,
                         const double *seconds) {
    const double least = 4 << 20; // bytes of all buckets but the last
    int count;
    const Term *term = terms_of(a, p, seconds, &count);
    t->bucket = ARENA_ARRAY(a, (size_t)count + 1, BucketTime);
    for (int i = 0; i < count; i++) {
        if (t->count == 0 || t->bucket[t->count - 1].bytes >= least)
            t->count++;
        t->bucket[t->count - 1].bytes += term[i].bytes;
        t->bucket[t->count - 1].ready = term[i].ready;
        t->bytes += term[i].bytes;
    }
}

Timeline timeline_of(Arena *a, const Program *p, const Plan *plan,
                     double *const *seconds) {
    Timeline t = {0};
    for (int i = 0; i < plan->num_steps; i++) {
        const Step *s = &plan->step[i];
        int runs = step_runs(&p->recipe, s);
        if (runs == 0)
            continue;
        double all = end_of(s->plan, s->plan->graph->count, seconds[i]);
        if (s->kind == STEP_TRAIN) {
            t.shard = all;
            buckets_fill(a, &t, s->plan, seconds[i]);
        } else if (s->kind == STEP_APPLY) {
            t.apply = all;
        } else {
            t.other += runs * all;
        }
    }
    return t;
}

// ---- sums beside the backward pass ----

Exchange exchange_of(const Timeline *t, const World *w) {
    Exchange e = {.sum = {0}};
    double end = 0;
    for (int i = 0; i < t->count; i++) {
        BucketTime *b = &t->bucket[i];
        Sum s = sum_over(w, b->bytes);
        end = fmax(end, b->ready) + s.seconds;
        b->end = end;
        e.sum = sum_add(e.sum, s);
    }
    e.exposed = fmax(end - t->shard, w->host ? e.sum.busy : 0);
    return e;
}
