// Interpolation: samples an image between its pixels, with half-pixel centres:
// along two independent axes, clamped to the edge, or at the coordinates of an
// affine map.

#include "frontend/functions/functions.h"

AxisTaps axis_taps(Expansion *e, NodeId first, NodeId length, int64_t size) {
    Graph *g = e->graph;
    NodeId i = as_float(e, graph_iota(g, type_of(I32, 1, &size), 0));
    NodeId each = number_node(e, 1.0 / (double)size);
    NodeId centre = graph_op2(g, OP_add, i, number_node(e, 0.5));
    centre = graph_op2(g, OP_mul, centre, each);
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
        right = as_float(e, right);
        row[i] = lerp(e, as_float(e, left), right, across);
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

// ---- affine maps ----

// The distance of each pixel's row or column from the image's centre, [1,H,W]:
// a product with it has all pixels, so that fuse stores coefficients, which
// cost sines, and does not compute them for each pixel.
static NodeId from_centre(Expansion *e, const int64_t size[2], int axis) {
    Type all = type_of(I32, 3, (int64_t[]){1, size[0], size[1]});
    NodeId i = as_float(e, graph_iota(e->graph, all, 1 + axis));
    return graph_op2(e->graph, OP_sub, i,
                     number_node(e, 0.5 * (double)(size[axis] - 1)));
}

// Places far outside are as good as the first outside, whose number is whole.
static NodeId near_image(Expansion *e, NodeId at, int64_t size) {
    Graph *g = e->graph;
    NodeId before = number_node(e, -1);
    NodeId behind = graph_op2(g, OP_le, before, at); // not of NaN
    at = graph_op3(g, OP_select, behind, at, before);
    return graph_op2(g, OP_minimum, at, number_node(e, (double)size));
}

PixelTaps affine_taps(Expansion *e, const NodeId matrix[6],
                      const int64_t size[2]) {
    Graph *g = e->graph;
    NodeId y = from_centre(e, size, 0), x = from_centre(e, size, 1);
    PixelTaps taps;
    for (int axis = 0; axis < 2; axis++) {
        const NodeId *row = matrix + (axis == 0 ? 3 : 0);
        NodeId at = graph_op2(g, OP_mul, row[1], y);
        at = graph_op2(g, OP_add, graph_op2(g, OP_mul, row[0], x), at);
        at = graph_op2(g, OP_add, at, row[2]);
        at = graph_op2(g, OP_add, at,
                       number_node(e, 0.5 * (double)(size[axis] - 1)));
        taps.at[axis] = near_image(e, at, size[axis]);
        taps.size[axis] = size[axis];
    }
    return taps;
}

// The pixel at a row and a column, i32[N,H,W], as `type`, or outside `fill`;
// NO_NODE: that of the edge.
static NodeId pixel_at(Expansion *e, NodeId x, const PixelTaps *at, NodeId row,
                       NodeId column, NodeId fill, DType type) {
    Graph *g = e->graph;
    NodeId pixel = graph_op3(g, OP_take, x, row, column), inside = NO_NODE;
    const NodeId coordinate[] = {row, column};
    pixel = graph_cast(g, pixel, type);
    if (fill == NO_NODE)
        return pixel;
    for (int i = 0; i < 2; i++) {
        NodeId below =
            graph_op2(g, OP_lt, coordinate[i], int_node(e, at->size[i]));
        NodeId in = graph_op2(g, OP_le, int_node(e, 0), coordinate[i]);
        in = graph_op2(g, OP_and, in, below);
        inside = i == 0 ? in : graph_op2(g, OP_and, inside, in);
    }
    Type t = *node_type(e, inside);
    int64_t each[] = {t.dim[0], t.dim[1], t.dim[2], 1};
    return graph_op3(g, OP_select, graph_reshape(g, inside, 4, each), pixel,
                     fill);
}

NodeId warp_nearest(Expansion *e, NodeId x, const PixelTaps *at, NodeId fill) {
    NodeId coordinate[2];
    for (int i = 0; i < 2; i++) {
        NodeId half =
            graph_op2(e->graph, OP_add, at->at[i], number_node(e, 0.5));
        coordinate[i] =
            graph_cast(e->graph, graph_op1(e->graph, OP_floor, half), I32);
    }
    DType type = node_type(e, fill == NO_NODE ? x : fill)->dtype;
    return pixel_at(e, x, at, coordinate[0], coordinate[1], fill, type);
}

NodeId warp_bilinear(Expansion *e, NodeId x, const PixelTaps *at, NodeId fill) {
    Graph *g = e->graph;
    NodeId coordinate[2][2], weight[2], row[2];
    for (int i = 0; i < 2; i++) {
        NodeId before = graph_op1(g, OP_floor, at->at[i]);
        Type t = *node_type(e, before);
        int64_t each[] = {t.dim[0], t.dim[1], t.dim[2], 1};
        weight[i] =
            graph_reshape(g, graph_op2(g, OP_sub, at->at[i], before), 4, each);
        coordinate[i][0] = graph_cast(g, before, I32);
        coordinate[i][1] =
            graph_op2(g, OP_add, coordinate[i][0], int_node(e, 1));
    }
    for (int i = 0; i < 2; i++) {
        const NodeId *column = coordinate[1];
        NodeId right =
            pixel_at(e, x, at, coordinate[0][i], column[1], fill, F32);
        NodeId left =
            pixel_at(e, x, at, coordinate[0][i], column[0], fill, F32);
        row[i] = lerp(e, left, right, weight[1]);
    }
    return lerp(e, row[0], row[1], weight[0]);
}
