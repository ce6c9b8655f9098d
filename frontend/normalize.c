// Numbers for each channel: normalize.

#include "frontend/expand.h"

// A number for each channel, or one for all; inverted if asked.  NO_NODE after
// a report.
static NodeId channel_numbers(Expansion *e, const Call *c, const Value *v,
                              int64_t channels, bool invert) {
    int count = v->kind == VALUE_LIST ? v->list.count : 1;
    if (v->kind == VALUE_LIST && count != channels) {
        report(e->diags, D_length, v->at,
               "this list has %d number%s and the image %lld channel%s", count,
               count == 1 ? "" : "s", (long long)channels,
               channels == 1 ? "" : "s");
        return NO_NODE;
    }
    double *number = ARENA_ARRAY(e->arena, (size_t)count, double);
    for (int i = 0; i < count; i++) {
        number[i] = v->kind == VALUE_LIST ? v->list.item[i].number : v->number;
        if (invert && number[i] <= 0) {
            report(e->diags, D_range, v->at.source ? v->at : c->at,
                   "a standard deviation must be above 0");
            return NO_NODE;
        }
        if (invert)
            number[i] = 1 / number[i];
    }
    return v->kind == VALUE_LIST ? graph_vector(e->graph, number, count)
                                 : number_node(e, number[0]);
}

// (x - mean) / std for each channel.
Value lower_normalize(Expansion *e, const Call *c) {
    const Value *x = call_arg(c, P_normalize_x);
    Type t = node_type(e, x->node);
    if (t.rank == 0) {
        report(e->diags, D_rank, c->at, "there are no channels to normalize");
        return value_poison();
    }
    int64_t channels = t.dim[t.rank - 1];
    NodeId mean =
        channel_numbers(e, c, call_arg(c, P_normalize_mean), channels, false);
    NodeId std =
        channel_numbers(e, c, call_arg(c, P_normalize_std), channels, true);
    NodeId y = mean == NO_NODE
                   ? NO_NODE
                   : graph_op2(e->graph, OP_sub, as_float(e, x->node), mean);
    return value_tensor(add_binary(e, OP_mul, y, std), c->at);
}
