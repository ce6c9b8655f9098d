// Which axis of a tensor runs over the samples of the batch, for people: a
// size that merely equals the batch is no N.

#include "frontend/expand.h"

enum { NO_AXIS = -1 };

static int transposed_axis(const Node *d, int axis) {
    for (int i = 0; i < d->type->rank; i++)
        if (node_ints(d, ATTR_order, i, i) == axis)
            return i;
    return NO_AXIS;
}

// Samples stay first where rows are made of them and taken apart again.
static int reshaped_axis(Type from, Type to, int axis) {
    int64_t before = 1, now = 1;
    if (axis == 0)
        return 0;
    for (int i = 0; i < axis; i++)
        before *= from.dim[i];
    for (int i = 0; i < to.rank; now *= to.dim[i++])
        if (now == before && to.dim[i] == from.dim[axis])
            return i;
    return NO_AXIS;
}

// Shapes are aligned by their last axes; an axis that is summed over is gone.
static int kept_axis(Type from, Type to, int axis) {
    int now = axis + to.rank - from.rank;
    bool kept = now >= 0 && to.dim[now] == from.dim[axis];
    return kept ? now : NO_AXIS;
}

static int moved_axis(const Graph *g, const Node *d, int arg, int axis) {
    Type from = *g->node[d->arg[arg]].type;
    switch (d->op) {
    case OP_transpose:
        return transposed_axis(d, axis);
    case OP_reshape:
        return reshaped_axis(from, *d->type, axis);
    case OP_gather: // rows of the table for each place of the index
        return arg == 1 ? axis : NO_AXIS;
    default:
        return kept_axis(from, *d->type, axis);
    }
}

static int axis_of(const Graph *g, const Node *d, const signed char *of) {
    if (d->op == OP_input)
        return d->type->rank > 0 ? 0 : NO_AXIS;
    for (int i = 0; i < d->num_args; i++) {
        int axis = of[d->arg[i]];
        if (axis != NO_AXIS)
            axis = moved_axis(g, d, i, axis);
        if (axis != NO_AXIS)
            return axis;
    }
    return NO_AXIS;
}

bool has_samples(Expansion *e, NodeId n) {
    e->work += n;
    signed char *of = ARENA_ARRAY(e->arena, (size_t)n + 1, signed char);
    for (NodeId i = 0; i <= n; i++)
        of[i] = (signed char)axis_of(e->graph, &e->graph->node[i], of);
    return of[n] == 0;
}

static const char *shape_text(Expansion *e, Type t, bool samples) {
    Text text = text_new(e->arena);
    text_add(&text, "%s[", dtype_name(t.dtype));
    for (int i = 0; i < t.rank; i++) {
        if (i == 0 && samples && t.dim[0] == e->recipe.batch)
            text_add(&text, "N");
        else
            text_add(&text, "%s%lld", i ? ", " : "", (long long)t.dim[i]);
    }
    text_add(&text, "]");
    return text_string(&text);
}

const char *type_text(Expansion *e, Type t) {
    return shape_text(e, t, false);
}

const char *samples_text(Expansion *e, Type t) {
    return shape_text(e, t, true);
}

const char *tensor_text(Expansion *e, NodeId n) {
    return shape_text(e, *node_type(e, n), has_samples(e, n));
}

const char *count_text(Expansion *e, NodeId n) {
    const Type *t = node_type(e, n);
    long long count = (long long)type_count(t), batch = e->recipe.batch;
    if (!has_samples(e, n) || t->dim[0] != batch)
        return arena_format(e->arena, "%lld", count);
    return arena_format(e->arena, "%lld x %lld", batch, count / batch);
}

const char *joint_text(Expansion *e, Value v) {
    return v.kind == VALUE_TENSOR ? tensor_text(e, v.node)
                                  : type_text(e, type_scalar(F32));
}
