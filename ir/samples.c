// Which axis of a tensor runs over the samples of the batch: a size that merely
// equals the batch does not.

#include "ir/ir.h"

static int transposed_axis(const Node *d, int axis) {
    for (int i = 0; i < d->type->rank; i++)
        if (node_ints(d, ATTR_order, i, i) == axis)
            return i;
    return NO_SAMPLES;
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
    return NO_SAMPLES;
}

// Shapes are aligned by their last axes; an axis that is summed over is gone.
static int kept_axis(Type from, Type to, int axis) {
    int now = axis + to.rank - from.rank;
    bool kept = now >= 0 && to.dim[now] == from.dim[axis];
    return kept ? now : NO_SAMPLES;
}

static int moved_axis(const Graph *g, const Node *d, int arg, int axis) {
    Type from = *g->node[d->arg[arg]].type;
    switch (d->op) {
    case OP_transpose:
        return transposed_axis(d, axis);
    case OP_reshape:
        return reshaped_axis(from, *d->type, axis);
    case OP_pad:
    case OP_slice: // of samples, too: others or fewer, as two batches in one
        return axis;
    case OP_gather: // rows of the table for each place of the index
        return arg == 1 ? axis : NO_SAMPLES;
    default:
        return kept_axis(from, *d->type, axis);
    }
}

static int axis_of(const Graph *g, const Node *d, const signed char *of) {
    if (d->op == OP_input)
        return d->type->rank > 0 ? 0 : NO_SAMPLES;
    for (int i = 0; i < d->num_args; i++) {
        int axis = of[d->arg[i]];
        if (axis != NO_SAMPLES)
            axis = moved_axis(g, d, i, axis);
        if (axis != NO_SAMPLES)
            return axis;
    }
    return NO_SAMPLES;
}

signed char *graph_samples(const Graph *g, NodeId count, Arena *a) {
    signed char *axis = ARENA_ARRAY(a, count, signed char);
    for (NodeId n = 0; n < count; n++)
        axis[n] = (signed char)axis_of(g, &g->node[n], axis);
    return axis;
}
