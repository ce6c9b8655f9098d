// Optimizer shards: divides an update into those of optimizer shards and the
// rest (ZeRO-1; Rajbhandari et al., "ZeRO: memory optimizations toward training
// trillion parameter models", 2020).
//
//   requires   The update is lowered to assignments.
//   preserves  The value of every assignment that is left.
//   result     A shard's update assigns its parameters and their optimizer
//              states.  The rest has the assignments that belong to no shard:
//              statistics, metrics and numbers of the run.
//
// Each part computes the norms and the finite check that it needs, from all
// gradients.  The updates of shards change nothing that another part reads, so
// their order does not matter, and the rest is the last.
#include "passes/live_range.h"
#include "passes/passes.h"

static bool is_left(const Graph *g, NodeId n, int shard) {
    const Node *d = &g->node[n];
    return d->op == OP_assign
               ? node_optimizer_shard(&g->node[d->arg[0]]) == shard
               : (op_info[d->op].traits & EFFECT) != 0;
}

static bool is_divided(const Graph *g) {
    for (NodeId n = 0; n < g->count; n++)
        if (node_optimizer_shard(&g->node[n]) >= 0)
            return true;
    return false;
}

Graph *pass_optimizer_shards(Graph *g, Arena *scratch, const PassOptions *o) {
    int shard = o->part == PART_OPTIMIZE ? o->optimizer_shard : -1;
    if (o->part < PART_OPTIMIZE || !is_divided(g))
        return g;
    Graph *out = graph_like(g);
    NodeId *now = graph_map_new(g, scratch);
    bool *needed = ARENA_ARRAY(scratch, g->count, bool);
    for (NodeId n = g->count; n-- > 0;) {
        needed[n] |= is_left(g, n, shard);
        for (int i = 0; needed[n] && i < g->node[n].num_args; i++)
            needed[g->node[n].arg[i]] = true;
    }
    for (NodeId n = 0; n < g->count; n++) {
        out->origin = g->node[n].from;
        if (needed[n])
            now[n] = graph_copy(out, g, n, now);
    }
    return out;
}

// ---- the shards of a plan ----

static void widen(OptimizerShard *s, int64_t begin, int64_t end, bool param) {
    int64_t *offset = param ? &s->params : &s->states;
    int64_t *bytes = param ? &s->param_bytes : &s->state_bytes;
    int64_t last = *offset + *bytes;
    if (*bytes == 0 || begin < *offset)
        *offset = begin;
    *bytes = (end > last ? end : last) - *offset;
}

static void add_states(OptimizerShard *shard, const Graph *g) {
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        int own = node_optimizer_shard(d);
        if (own >= 0)
            widen(&shard[own], d->offset, d->offset + slot_bytes(g, n),
                  d->op == OP_param);
    }
}

void plan_optimizer_shards(Plan *plan, int shards, Arena *a) {
    OptimizerShard *shard = ARENA_ARRAY(a, (size_t)shards + 1, OptimizerShard);
    for (int i = 0; i < plan->num_steps; i++)
        add_states(shard, plan->step[i].graph);
    plan->optimizer_shard = shard;
    plan->num_optimizer_shards = shards;
}
