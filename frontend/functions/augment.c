// Augment: functions of which modules of std/ make augmentations.  They draw a
// number for each sample, number the elements of an axis, and sample an image
// at the coordinates of an affine map.

#include "frontend/functions/functions.h"

#include <math.h>

Value lower_is_training(Expansion *e, const Call *c) {
    return (Value){.kind = VALUE_BOOL, .boolean = e->training, .at = c->at};
}

// ---- draw ----

// Least and most, from [least, most] or a distance from `around`; false after a
// report.
static bool read_draw(Expansion *e, const Call *c, double range[2]) {
    const Value *v = call_arg(c, P_draw_range);
    const Value *least = call_arg(c, P_draw_least);
    double around = call_number(c, P_draw_around);
    bool pair = v->kind == VALUE_LIST && v->list.count == 2;
    for (int i = 0; i < 2; i++)
        range[i] = pair     ? v->list.item[i].number
                   : i == 0 ? around - v->number
                            : around + v->number;
    if ((v->kind == VALUE_LIST && !pair) || range[0] > range[1]) {
        report(e->diags, D_out_of_range, v->at.source ? v->at : c->at,
               "numbers are drawn from a range [least, most], or up to a "
               "distance that is not below 0");
        return false;
    }
    for (int i = 0; i < 2 && least->kind == VALUE_NUMBER; i++)
        range[i] = fmax(range[i], least->number);
    return true;
}

Value lower_draw(Expansion *e, const Call *c) {
    NodeId x = call_node(c, P_draw_x), u;
    double range[2];
    if (!read_draw(e, c, range))
        return value_poison();
    if (range[0] == range[1])
        u = number_node(e, range[0]);
    else
        u = rand_range(e, c, "draw", range[0], range[1]);
    return value_tensor(rand_broadcast(e, u, node_type(e, x)->rank), c->at);
}

Value lower_chance(Expansion *e, const Call *c) {
    int rank = node_type(e, call_node(c, P_chance_x))->rank;
    NodeId p = number_node(e, call_number(c, P_chance_p));
    NodeId u = rand_broadcast(e, rand_fraction(e, c, "chance"), rank);
    return value_tensor(graph_op2(e->graph, OP_lt, u, p), c->at);
}

// ---- iota ----

Value lower_iota(Expansion *e, const Call *c) {
    NodeId x = call_node(c, P_iota_x);
    int axis;
    if (!expect_axis(e, c, *call_arg(c, P_iota_axis), x, &axis))
        return value_poison();
    Type t = *node_type(e, x), along = {.dtype = I32, .rank = t.rank};
    for (int i = 0; i < t.rank; i++)
        along.dim[i] = i == axis ? t.dim[i] : 1;
    return value_tensor(as_float(e, graph_iota(e->graph, along, axis)), c->at);
}

// ---- per_channel ----

Value lower_per_channel(Expansion *e, const Call *c) {
    Type t = *node_type(e, call_node(c, P_per_channel_x));
    NodeId n =
        fill_node(e, c, call_arg(c, P_per_channel_numbers), t.dim[t.rank - 1]);
    return n == NO_NODE ? value_poison() : value_tensor(n, c->at);
}

// ---- warp_affine ----

// A coefficient, f32[N,1,1]; NO_NODE unless it is a number or a tensor with one
// for each sample or for all.
static NodeId coefficient(Expansion *e, Value v) {
    const int64_t each[] = {e->recipe.batch, 1, 1};
    if (v.kind == VALUE_NUMBER && v.unit == UNIT_NONE)
        v = value_tensor(number_node(e, v.number), v.at);
    if (v.kind != VALUE_TENSOR)
        return NO_NODE;
    Type t = *node_type(e, v.node);
    int64_t count = type_count(&t);
    NodeId n = as_float(e, v.node);
    if (count == each[0] && t.rank > 0 && t.dim[0] == each[0])
        return graph_reshape(e->graph, n, 3, each);
    NodeId none = graph_constant(e->graph, type_of(F32, 3, each), 0);
    return count == 1 ? graph_op2(e->graph, OP_add,
                                  graph_reshape(e->graph, n, 0, NULL), none)
                      : NO_NODE;
}

static bool read_matrix(Expansion *e, const Call *c, NodeId matrix[6]) {
    const Value *v = call_arg(c, P_warp_affine_matrix);
    bool good = v->list.count == 6;
    for (int i = 0; good && i < 6; i++) {
        matrix[i] = coefficient(e, v->list.item[i]);
        good = matrix[i] != NO_NODE;
    }
    if (!good)
        report(e->diags, D_wrong_kind, v->at.source ? v->at : c->at,
               "a matrix is a list of six, each a number or f32[N, 1, 1, 1]");
    return good;
}

Value lower_warp_affine(Expansion *e, const Call *c) {
    const Value *x = call_arg(c, P_warp_affine_x);
    const char *mode = call_arg(c, P_warp_affine_interpolation)->text;
    Transform warp = {.kind = TRANSFORM_WARP, .mode = mode};
    if (!expect_rank(e, c, x, 4) || !read_matrix(e, c, warp.matrix))
        return value_poison();
    Type t = *node_type(e, x->node);
    NodeId fill = fill_node(e, c, call_arg(c, P_warp_affine_fill), t.dim[3]);
    if (fill == NO_NODE)
        return value_poison();
    PixelTaps at = affine_taps(e, warp.matrix, &t.dim[1]);
    NodeId y = *mode == 'n' ? warp_nearest(e, x->node, &at, fill)
                            : warp_bilinear(e, x->node, &at, fill);
    transform_add(e, c, x->node, y, warp);
    return value_tensor(y, c->at);
}
