// Buckets: parts of a shard's terms whose sums over ranks run at once.
//
// Terms are in the arena in the order in which the backward pass computes them.
// A bucket is a range of them: its sum over ranks begins when the last of them
// is stored, while the backward pass goes on (PyTorch's
// DistributedDataParallel; Li et al., 2020).  A bucket is full with FULL bytes:
// at 400 Gb/s they take 80 us, beside which the start of a sum, of some 10 us,
// is little, and what is left to add when the backward pass ends is at most a
// bucket.
#include "passes/live_range.h"
#include "passes/passes.h"

#include <stdio.h>
#include <stdlib.h>

enum { FULL = 4 << 20 };

// ---- the bucket of each state ----

// The bucket of that state in an earlier step; -1: it is in none.
static int64_t find_bucket(const Steps *s, int before, const char *name) {
    for (int i = 0; i < before; i++) {
        NodeId n = graph_find(s->step[i].graph, name);
        if (n != NO_NODE)
            return state_bucket(&s->step[i].graph->node[n]);
    }
    return -1;
}

// Steps of later stages have terms of their own after those of the first.
void steps_buckets(Steps *s) {
    int64_t bucket = 0, bytes = 0;
    for (int i = 0; i < s->count; i++) {
        Graph *g = s->step[i].graph;
        for (NodeId n = 0; n < g->count; n++) {
            if (!state_is(&g->node[n], STATE_PARTIAL))
                continue;
            const char *name = node_text(&g->node[n], ATTR_name);
            int64_t known = find_bucket(s, i, name);
            if (known < 0 && bytes >= FULL) {
                bucket++;
                bytes = 0;
            }
            if (known < 0)
                bytes += slot_bytes(g, n);
            leaf_set(g, n, ATTR_bucket, known < 0 ? bucket : known);
        }
    }
}

// ---- the buckets of a plan ----

// The last launch that stores terms of each bucket.
static void find_ready(Bucket *bucket, const GraphPlan *p) {
    const Graph *g = p->graph;
    for (int k = 0; k < p->num_groups; k++)
        for (NodeId n = p->group[k].first; n <= p->group[k].last; n++) {
            const Node *d = &g->node[n];
            int64_t own =
                d->op == OP_assign ? state_bucket(&g->node[d->arg[0]]) : -1;
            if (own >= 0)
                bucket[own].ready = k;
        }
}

// The first launch of the update that reads sums of each bucket.
static void find_needed(Bucket *bucket, const Step *step) {
    const GraphPlan *p = step->plan;
    for (int k = p->num_groups; k-- > 0;)
        for (int i = 0; i < p->group[k].num_inputs; i++) {
            int64_t own = state_bucket(&p->graph->node[p->group[k].input[i]]);
            if (own < 0)
                continue;
            bucket[own].needed = k;
            bucket[own].needed_by = step->name;
        }
}

// Widens the ranges of buckets by the states in g.
static void add_ranges(Bucket *bucket, const Graph *g) {
    for (NodeId n = 0; n < g->count; n++) {
        int64_t own = state_bucket(&g->node[n]), begin = g->node[n].offset;
        if (own < 0)
            continue;
        Bucket *b = &bucket[own];
        int64_t end = begin + slot_bytes(g, n), last = b->offset + b->bytes;
        if (b->bytes == 0 || begin < b->offset)
            b->offset = begin;
        b->bytes = (end > last ? end : last) - b->offset;
    }
}

static int64_t count_buckets(const Plan *plan) {
    int64_t count = 0;
    for (int i = 0; i < plan->num_steps; i++) {
        const Graph *g = plan->step[i].graph;
        for (NodeId n = 0; n < g->count; n++)
            if (state_bucket(&g->node[n]) >= count)
                count = state_bucket(&g->node[n]) + 1;
    }
    return count;
}

// Passes keep the order of states, so memory_states places those of a bucket
// side by side.
static void check_ranges(const Bucket *bucket, int64_t count) {
    for (int64_t i = 1; i < count; i++)
        if (bucket[i - 1].offset + bucket[i - 1].bytes > bucket[i].offset) {
            fprintf(stderr, "sinter: internal error: buckets overlap\n");
            abort();
        }
}

static int by_ready(const void *a, const void *b) {
    const Bucket *x = a, *y = b;
    return x->ready != y->ready
               ? x->ready - y->ready
               : (x->offset > y->offset) - (x->offset < y->offset);
}

static bool updates(const Step *s, int stage) {
    return (s->kind == STEP_OPTIMIZE || s->kind == STEP_APPLY) &&
           s->stage == stage;
}

void plan_buckets(Plan *plan, Step *step, Arena *a) {
    int64_t count = count_buckets(plan);
    Bucket *bucket = ARENA_ARRAY(a, (size_t)count + 1, Bucket);
    for (int64_t i = 0; i < count; i++)
        bucket[i] = (Bucket){.ready = -1};
    find_ready(bucket, step->plan);
    // The steps of the update run in their order.
    for (int i = plan->num_steps; i-- > 0;)
        if (updates(&plan->step[i], step->stage))
            find_needed(bucket, &plan->step[i]);
    for (int i = 0; i < plan->num_steps; i++)
        add_ranges(bucket, plan->step[i].graph);
    check_ranges(bucket, count);
    step->num_buckets = 0;
    for (int64_t i = 0; i < count; i++)
        if (bucket[i].ready >= 0)
            bucket[step->num_buckets++] = bucket[i];
    qsort(bucket, (size_t)step->num_buckets, sizeof *bucket, by_ready);
    step->bucket = bucket;
}
