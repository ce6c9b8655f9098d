// Clip: gradients that are too large are made smaller.
//
// The formulas are those of torch.nn.utils.clip_grad_norm_ and
// clip_grad_value_.  They see the gradients of the loss itself, after the loss
// scale was taken out.  A NaN stays one.

#include "passes/update.h"

#include <string.h>

// limit / (norm + 1e-6), at most 1.
static NodeId norm_factor(Graph *g, NodeId limit, const NodeId *gradient,
                          NodeId count) {
    NodeId *square = ARENA_ARRAY(g->arena, (size_t)count + 1, NodeId);
    int squares = 0;
    for (NodeId n = 0; n < count; n++)
        if (gradient[n] != NO_NODE)
            square[squares++] = graph_op2(g, OP_mul, gradient[n], gradient[n]);
    if (squares == 0)
        return NO_NODE;
    NodeId sum = graph_add(g, (Node){.op = OP_total,
                                     .num_args = squares,
                                     .arg = square,
                                     .group = -1});
    NodeId norm = graph_op1(g, OP_sqrt, sum);
    norm = graph_op2(g, OP_add, norm, graph_number(g, 1e-6));
    NodeId ratio = graph_op2(g, OP_div, limit, norm);
    NodeId larger = graph_op2(g, OP_lt, graph_number(g, 1), ratio);
    return graph_op3(g, OP_select, larger, graph_number(g, 1), ratio);
}

static NodeId clamp(Graph *g, NodeId x, NodeId limit) {
    NodeId least = graph_op1(g, OP_neg, limit);
    NodeId low =
        graph_op3(g, OP_select, graph_op2(g, OP_lt, x, least), least, x);
    return graph_op3(g, OP_select, graph_op2(g, OP_lt, limit, x), limit, low);
}

void gradients_clip(Graph *g, Node clip, NodeId *gradient, NodeId count) {
    bool norm = strcmp(node_text(&clip, ATTR_mode), "norm") == 0;
    NodeId limit = clip.arg[0];
    g->origin = clip.from;
    NodeId factor = norm ? norm_factor(g, limit, gradient, count) : NO_NODE;
    for (NodeId n = 0; n < count; n++)
        if (gradient[n] != NO_NODE)
            gradient[n] = norm ? graph_op2(g, OP_mul, gradient[n], factor)
                               : clamp(g, gradient[n], limit);
}
