// Interpolation: samples an image between its pixels, along two independent
// axes, with half-pixel centres and clamping to the edge.

#include "frontend/functions/functions.h"

AxisTaps axis_taps(Expansion *e, NodeId first, NodeId length, int64_t size) {
    Graph *g = e->graph;
    NodeId i = as_float(e, graph_iota(g, type_of(I32, 1, &size), 0));
    NodeId centre =
        graph_op2(g, OP_mul, graph_op2(g, OP_add, i, number_node(e, 0.5)),
                  number_node(e, 1.0 / (double)size));
    NodeId far = graph_op2(g, OP_mul, rand_broadcast(e, length, 2), centre);
    NodeId at = graph_op2(g, OP_add, rand_broadcast(e, first, 2), far);
    at = graph_op2(g, OP_sub, at, number_node(e, 0.5));
    NodeId before = graph_op1(g, OP_floor, at);
    NodeId after = graph_op2(g, OP_add, before, number_node(e, 1));
    return (AxisTaps){graph_cast(g, before, I32), graph_cast(g, after, I32),
                      graph_op2(g, OP_sub, at, before)};
}

static NodeId lerp(Expansion *e, NodeId a, NodeId b, NodeId weight) {
    Graph *g = e->graph;
    NodeId change = graph_op2(g, OP_mul, weight, graph_op2(g, OP_sub, b, a));
    return graph_op2(g, OP_add, a, change);
}

NodeId interpolate_bilinear(Expansion *e, NodeId x, const AxisTaps axis[2]) {
    Graph *g = e->graph;
    const AxisTaps *y = &axis[0], *w = &axis[1];
    Type rows = *node_type(e, y->weight), columns = *node_type(e, w->weight);
    NodeId down = graph_reshape(g, y->weight, 4,
                                (int64_t[]){rows.dim[0], rows.dim[1], 1, 1});
    NodeId across = graph_reshape(
        g, w->weight, 4, (int64_t[]){columns.dim[0], 1, columns.dim[1], 1});
    NodeId row[2];
    for (int i = 0; i < 2; i++) {
        NodeId at = i == 0 ? y->before : y->after;
        NodeId left = graph_op3(g, OP_take, x, at, w->before);
        NodeId right = graph_op3(g, OP_take, x, at, w->after);
        row[i] = lerp(e, as_float(e, left), as_float(e, right), across);
    }
    return lerp(e, row[0], row[1], down);
}

NodeId interpolate_nearest(Expansion *e, NodeId x, const AxisTaps axis[2]) {
    Graph *g = e->graph;
    NodeId at[2];
    for (int i = 0; i < 2; i++) {
        NodeId first = graph_op2(g, OP_lt, axis[i].weight, number_node(e, 0.5));
        at[i] = graph_op3(g, OP_select, first, axis[i].before, axis[i].after);
    }
    return graph_op3(g, OP_take, x, at[0], at[1]);
}
