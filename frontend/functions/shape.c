// Shapes: queries, flatten, reshape and transpose.

#include "frontend/functions/functions.h"

// ---- queries ----

static Value size_of_axis(Expansion *e, const Call *c, int axis, int rank) {
    Type t = *node_type(e, c->arg[0].node);
    if (rank != 0 && !expect_rank(e, c, &c->arg[0], rank))
        return value_poison();
    if (t.rank == 0) {
        Diagnostic *d = report(e->diags, D_wrong_rank, c->at,
                               "a single number has no channels");
        diag_secondary(d, c->arg[0].at, "this is %s",
                       tensor_text(e, c->arg[0].node));
        return value_poison();
    }
    axis = axis < 0 ? t.rank - 1 : axis;
    Value v = value_number((double)t.dim[axis], c->at);
    v.follows_batch = samples_need_mask(e, c->arg[0].node, 1u << axis);
    return v;
}

Value lower_channels_of(Expansion *e, const Call *c) {
    return size_of_axis(e, c, -1, 0);
}

Value lower_height_of(Expansion *e, const Call *c) {
    return size_of_axis(e, c, 1, 4);
}

Value lower_width_of(Expansion *e, const Call *c) {
    return size_of_axis(e, c, 2, 4);
}

// ---- flatten ----

// Flattens all axes but the batch.
Value lower_flatten(Expansion *e, const Call *c) {
    NodeId x = call_node(c, P_flatten_x);
    Type t = *node_type(e, x);
    if (t.rank < 2) {
        report(e->diags, D_wrong_rank, c->at,
               "there is nothing to flatten in %s", tensor_text(e, x));
        return value_poison();
    }
    Type flat = type_of(t.dtype, 2, t.dim);
    flat.dim[1] = type_count(&t) / t.dim[0];
    return value_tensor(
        add_checked(
            e, c,
            (Node){.op = OP_reshape, .type = &flat, .num_args = 1, .arg = &x}),
        c->at);
}

// ---- reshape ----

// The requested shape of `count` elements; one size may be -1, and is inferred.
// False if none fits.
static bool read_shape(const Value *v, int64_t count, Type *t) {
    int rank = v->kind == VALUE_LIST ? v->list.count : 1, open = -1;
    int64_t known = 1;
    if (rank > MAX_RANK)
        return false;
    t->rank = rank;
    for (int i = 0; i < rank; i++) {
        const Value *one = v->kind == VALUE_LIST ? &v->list.item[i] : v;
        t->dim[i] = (int64_t)one->number;
        if (t->dim[i] == 0 || (t->dim[i] < 0 && open >= 0))
            return false;
        if (t->dim[i] < 0)
            open = i;
        else if (__builtin_mul_overflow(known, t->dim[i], &known))
            return false;
    }
    if (open < 0)
        return known == count;
    t->dim[open] = count / known;
    return count % known == 0 && t->dim[open] > 0 && t->dim[open] <= INT32_MAX;
}

Value lower_reshape(Expansion *e, const Call *c) {
    const Value *x = call_arg(c, P_reshape_x);
    const Value *shape = call_arg(c, P_reshape_shape);
    Type t = *node_type(e, x->node), to = {.dtype = t.dtype};
    if (read_shape(shape, type_count(&t), &to))
        return value_tensor(graph_reshape(e->graph, x->node, to.rank, to.dim),
                            c->at);
    Diagnostic *d = report(
        e->diags, D_incompatible_shapes, shape->at.source ? shape->at : c->at,
        "%s cannot be put into this shape", tensor_text(e, x->node));
    diag_secondary(d, x->at, "it has %s numbers", count_text(e, x->node));
    diag_note(d, "the sizes must multiply to that; one of them may be -1");
    return value_poison();
}

// ---- transpose ----

NodeId axis_swapped(Expansion *e, NodeId x, int axis) {
    int64_t order[MAX_RANK];
    int last = node_type(e, x)->rank - 1;
    for (int i = 0; i <= last; i++)
        order[i] = i;
    order[axis] = last;
    order[last] = axis;
    return graph_transpose(e->graph, x, order);
}

Value lower_transpose(Expansion *e, const Call *c) {
    const Value *x = call_arg(c, P_transpose_x);
    const Value *list = call_arg(c, P_transpose_order);
    Type t = *node_type(e, x->node);
    int count = list->kind == VALUE_LIST ? list->list.count : 1;
    int64_t order[MAX_RANK];
    unsigned seen = 0;
    for (int i = 0; i < count && i < t.rank; i++) {
        int axis;
        Value one = list->kind == VALUE_LIST ? list->list.item[i] : *list;
        if (!expect_axis(e, c, one, x->node, &axis))
            return value_poison();
        order[i] = axis;
        seen |= 1u << axis;
    }
    if (count == t.rank && seen == (1u << t.rank) - 1)
        return value_tensor(graph_transpose(e->graph, x->node, order), c->at);
    Diagnostic *d =
        report(e->diags, D_out_of_range, list->at.source ? list->at : c->at,
               "an order names each axis once");
    diag_secondary(d, x->at, "this is %s", tensor_text(e, x->node));
    return value_poison();
}
