// Cost: launches, flops and bytes of a plan.

#include "passes/passes.h"
#include "passes/plan/attention_tiles.h"

// The kernel in f32 has two products forward, and five backward in one pass:
// scores, gradients of weights, and the gradients of queries, keys and values.
// In two passes there are seven, as the first two are computed in both.  With a
// causal mask, half of each.
static int64_t attention_flops(const Graph *g, const Node *d) {
    Attention s = attention_of(g, d);
    int64_t products = d->op == OP_attention                ? 2
                       : d->op != OP_attention_grad         ? 0
                       : attention_tiles(&s, true).one_pass ? 5
                                                            : 7;
    int64_t columns = s.causal ? (s.positions + 1) / 2 : s.positions;
    return 2 * products * s.samples * s.heads * s.positions * columns * s.size;
}

int64_t node_flops(const Graph *g, NodeId n) {
    const Node *d = &g->node[n];
    Type t = *d->type;
    const Type *a = d->num_args ? g->node[d->arg[0]].type : NULL;
    const Type *b = d->num_args > 1 ? g->node[d->arg[1]].type : NULL;
    switch (d->op) {
    case OP_conv: // each result: a window of the channels of its group
        return 2 * type_count(&t) * b->dim[1] * b->dim[2] * b->dim[3];
    case OP_conv_grad_input:
        return 2 * type_count(a) * b->dim[1] * b->dim[2] * b->dim[3];
    case OP_conv_grad_weight:
        return 2 * type_count(a) * t.dim[1] * t.dim[2] * t.dim[3];
    case OP_matmul:
        return 2 * type_count(&t) *
               a->dim[a->rank - (node_int(d, ATTR_ta, 0) ? 2 : 1)];
    case OP_attention:
    case OP_attention_lse:
    case OP_attention_grad:
        return attention_flops(g, d);
    default:
        return 0;
    }
}

// Values that depend on a batched input have the batch dimension until a sum
// over it.
bool *graph_batched(const Graph *g, Arena *a) {
    bool *is = ARENA_ARRAY(a, g->count, bool);
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        is[n] = d->op == OP_input && d->type->rank > 0;
        for (int i = 0; i < d->num_args; i++)
            is[n] |= is[d->arg[i]];
        bool summed = d->op == OP_conv_grad_weight ||
                      (d->op == OP_matmul && d->type->rank == 2 &&
                       node_int(d, ATTR_ta, 0) && !node_int(d, ATTR_tb, 0)) ||
                      d->op == OP_gather_grad || d->op == OP_assign ||
                      (op_info[d->op].traits & REDUCES_ALL);
        if ((op_info[d->op].traits & REDUCES) && !summed)
            summed = node_ints(d, ATTR_axes, 0, 1) == 0;
        is[n] &= !summed && d->type->rank > 0;
    }
    return is;
}

int64_t plan_bound(const Plan *plan) {
    int64_t most = 0;
    for (int i = 0; i < plan->num_steps; i++) {
        int64_t bytes = plan->step[i].graph->live_bytes;
        most = bytes > most ? bytes : most;
    }
    return plan->state_bytes + most;
}

Cost graph_cost(const GraphPlan *p) {
    const Graph *g = p->graph;
    Arena *a = arena_new();
    Cost cost = {.arena = g->arena_bytes, .launches = p->num_groups};
    bool *batch = graph_batched(g, a);
    for (int k = 0; k < p->num_groups; k++) {
        cost.bytes += p->group[k].bytes;
        cost.batch_bytes += group_bytes(g, &p->group[k], batch);
    }
    for (NodeId n = 0; n < g->count; n++)
        cost.flops += node_flops(g, n);
    arena_free(a);
    return cost;
}

static bool times_add(int64_t *to, int64_t times, int64_t each) {
    int64_t all;
    return !__builtin_mul_overflow(times, each, &all) &&
           !__builtin_add_overflow(*to, all, to);
}

bool update_cost(const Program *p, const Plan *plan, Cost *cost) {
    bool counted = true;
    *cost = (Cost){0};
    for (int i = 0; i < plan->num_steps && counted; i++) {
        const Step *s = &plan->step[i];
        int64_t times = step_runs(&p->recipe, s);
        if (times == 0)
            continue;
        Cost each = graph_cost(s->plan);
        counted = times_add(&cost->launches, times, each.launches) &&
                  times_add(&cost->flops, times, each.flops) &&
                  times_add(&cost->bytes, times, each.bytes) &&
                  times_add(&cost->batch_bytes, times, each.batch_bytes);
        if (each.arena > cost->arena)
            cost->arena = each.arena;
    }
    return counted;
}
