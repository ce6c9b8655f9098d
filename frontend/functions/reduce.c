// Axes, by name or number, and reductions along them.

#include "frontend/functions/functions.h"

#include <string.h>

// ---- axes ----

// The axis of a name in a tensor of a rank; -1 for none.
static int axis_named(const char *word, int rank) {
    static const struct {
        const char *word;
        int rank, axis;
    } known[] = {{"height", 4, 1}, {"width", 4, 2}, {"positions", 3, 1}};
    if (strcmp(word, "batch") == 0)
        return rank > 0 ? 0 : -1;
    if (strcmp(word, "channels") == 0)
        return rank - 1;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(word, known[i].word) == 0 && rank == known[i].rank)
            return known[i].axis;
    return -1;
}

bool expect_axis(Expansion *e, const Call *c, Value v, NodeId x, int *axis) {
    Type t = *node_type(e, x);
    bool word = v.kind == VALUE_WORD;
    double number = word           ? axis_named(v.text, t.rank)
                    : v.number < 0 ? v.number + t.rank
                                   : v.number;
    *axis = (int)number;
    if (number >= 0 && number < t.rank && number == *axis)
        return true;
    const char *name = word ? arena_format(e->arena, "`%s`", v.text)
                            : arena_format(e->arena, "%g", v.number);
    Diagnostic *d = report(e->diags, D_wrong_rank, v.at.source ? v.at : c->at,
                           "%s has no axis %s", tensor_text(e, x), name);
    if (c->arg[0].at.source != NULL)
        diag_secondary(d, c->arg[0].at, "this is %s", tensor_text(e, x));
    diag_note(d, "images are [batch, height, width, channels], sequences "
                 "[batch, positions, channels]; numbers count from 0");
    if (builtin_id(c->builtin) == B_max || builtin_id(c->builtin) == B_min)
        diag_note(d, "the larger of two tensors, or of a tensor and a number, "
                     "is maximum(a, b), the smaller minimum(a, b)");
    return false;
}

// The axes of an argument as a bit set; 0 after a report.
static unsigned read_axes(Expansion *e, const Call *c, const Value *v,
                          NodeId x) {
    int count = v->kind == VALUE_LIST ? v->list.count : 1, axis;
    unsigned axes = 0;
    for (int i = 0; i < count; i++) {
        Value one = v->kind == VALUE_LIST ? v->list.item[i] : *v;
        if (!expect_axis(e, c, one, x, &axis))
            return 0;
        if (axes >> axis & 1) {
            report(e->diags, D_out_of_range, one.at.source ? one.at : c->at,
                   "this axis is named twice");
            return 0;
        }
        axes |= 1u << axis;
    }
    return axes;
}

// ---- reductions ----

typedef struct {
    NodeId x;
    unsigned axes;
    bool keep;
} Reduction;

// sum, mean, max and var have x, axes and keep in the same positions.
static bool read_reduction(Expansion *e, const Call *c, Reduction *r) {
    *r = (Reduction){.x = as_float(e, c->arg[0].node),
                     .axes = read_axes(e, c, &c->arg[1], c->arg[0].node),
                     .keep = c->arg[2].boolean};
    return r->axes != 0 && expect_valid(e, c, &c->arg[0], r->axes);
}

static NodeId reduce_all(Expansion *e, const Reduction *r, NodeId x, Op op) {
    Type t = *node_type(e, x), left = {.dtype = F32};
    int64_t axis[MAX_RANK];
    int count = 0;
    for (int i = 0; i < t.rank; i++) {
        bool reduced = r->axes >> i & 1;
        if (reduced)
            axis[count++] = i;
        if (!reduced || r->keep)
            left.dim[left.rank++] = reduced ? 1 : t.dim[i];
    }
    NodeId y = graph_reduce(e->graph, op, x, count, axis);
    return graph_reshape(e->graph, y, left.rank, left.dim);
}

// Reduces x over valid samples.
static NodeId reduce(Expansion *e, const Reduction *r, NodeId x, Op op) {
    double neutral = op == OP_max ? LOWEST : 0;
    return reduce_all(e, r, samples_mask(e, x, r->x, r->axes, neutral), op);
}

Value lower_sum(Expansion *e, const Call *c) {
    Reduction r;
    if (call_arg(c, P_sum_axes)->kind == VALUE_NONE)
        return reduce_loss(e, c, false);
    if (!read_reduction(e, c, &r))
        return value_poison();
    return value_tensor(reduce(e, &r, r.x, OP_sum), c->at);
}

Value lower_mean(Expansion *e, const Call *c) {
    Reduction r;
    if (call_arg(c, P_mean_axes)->kind == VALUE_NONE)
        return reduce_loss(e, c, true);
    if (!read_reduction(e, c, &r))
        return value_poison();
    NodeId count = samples_count(e, r.x, r.axes);
    NodeId sum = reduce(e, &r, r.x, OP_sum);
    return value_tensor(add_binary(e, OP_div, sum, count), c->at);
}

// False, with a report, if an extreme of a tensor has no axes.
static bool expect_axes(Expansion *e, const Call *c) {
    if (c->arg[1].kind != VALUE_NONE)
        return true;
    Diagnostic *d = report(e->diags, D_missing_argument, c->at,
                           "%s needs `axes`", c->builtin->name);
    diag_note(d, "as in: %s(x, [height, width])", c->builtin->name);
    return false;
}

Value lower_max(Expansion *e, const Call *c) {
    Reduction r;
    if (!expect_axes(e, c) || !read_reduction(e, c, &r))
        return value_poison();
    return value_tensor(reduce(e, &r, r.x, OP_max), c->at);
}

// -max(-x)
Value lower_min(Expansion *e, const Call *c) {
    Reduction r;
    if (!expect_axes(e, c) || !read_reduction(e, c, &r))
        return value_poison();
    NodeId y = reduce(e, &r, add_unary(e, OP_neg, r.x), OP_max);
    return value_tensor(add_unary(e, OP_neg, y), c->at);
}

// The sum of squared deviations from the mean, divided by a count.
static NodeId variance(Expansion *e, const Reduction *r, NodeId count) {
    Reduction kept = *r;
    kept.keep = true;
    NodeId samples = samples_count(e, r->x, r->axes);
    NodeId sum = reduce(e, &kept, r->x, OP_sum);
    NodeId mean = add_binary(e, OP_div, sum, samples);
    NodeId error = add_binary(e, OP_sub, r->x, mean);
    NodeId square = add_binary(e, OP_mul, error, error);
    return add_binary(e, OP_div, reduce(e, r, square, OP_sum), count);
}

static double element_count(Type t, unsigned axes) {
    double count = 1;
    for (int i = 0; i < t.rank; i++)
        count *= axes >> i & 1 ? (double)t.dim[i] : 1;
    return count;
}

Value lower_var(Expansion *e, const Call *c) {
    Reduction r;
    if (!read_reduction(e, c, &r))
        return value_poison();
    bool unbiased = call_flag(c, P_var_unbiased);
    double count = element_count(*node_type(e, r.x), r.axes);
    if (unbiased && count < 2) {
        Diagnostic *d = report(e->diags, D_out_of_range, c->at,
                               "one number has no unbiased variance");
        diag_note(d, "unbiased=false gives 0");
        return value_poison();
    }
    if (samples_need_mask(e, r.x, r.axes)) {
        NodeId among = samples_count(e, r.x, r.axes);
        if (unbiased)
            among = add_binary(e, OP_sub, among, number_node(e, 1));
        return value_tensor(variance(e, &r, among), c->at);
    }
    NodeId var = reduce_all(e, &r, r.x, OP_var);
    if (unbiased)
        var = add_binary(e, OP_mul, var, number_node(e, count / (count - 1)));
    return value_tensor(var, c->at);
}

// The index of the maximum along an axis, the first of several.
Value lower_argmax(Expansion *e, const Call *c) {
    const Value *x = call_arg(c, P_argmax_x);
    Type t = *node_type(e, x->node);
    int axis;
    if (!expect_axis(e, c, *call_arg(c, P_argmax_axis), x->node, &axis))
        return value_poison();
    NodeId last = axis_swapped(e, as_float(e, x->node), axis);
    last = samples_mask(e, last, last, 1u << (t.rank - 1), LOWEST);
    Attr attr = attr_int(ATTR_axis, t.rank - 1);
    NodeId y = graph_add(e->graph, (Node){.op = OP_argmax,
                                          .num_args = 1,
                                          .arg = &last,
                                          .num_attrs = 1,
                                          .attr = &attr,
                                          .group = -1});
    // The last axis is now at the position of the removed one.
    Type left = *node_type(e, last);
    left.dim[t.rank - 1] = 1;
    y = axis_swapped(e, graph_reshape(e->graph, y, t.rank, left.dim), axis);
    int rank = 0;
    for (int i = 0; i < t.rank; i++)
        if (i != axis)
            left.dim[rank++] = t.dim[i];
    return value_tensor(graph_reshape(e->graph, y, rank, left.dim), c->at);
}

// ---- softmax and one_hot ----

// softmax and log_softmax.
Value lower_softmax(Expansion *e, const Call *c) {
    bool logs = builtin_id(c->builtin) == B_log_softmax;
    int axis;
    if (!expect_axis(e, c, c->arg[1], c->arg[0].node, &axis))
        return value_poison();
    NodeId x = axis_swapped(e, as_float(e, c->arg[0].node), axis);
    unsigned last = 1u << (node_type(e, x)->rank - 1);
    x = samples_mask(e, x, x, last, MASKED);
    NodeId y = add_unary(e, logs ? OP_log_softmax : OP_softmax, x);
    if (logs)
        y = samples_mask(e, y, y, last, 0);
    return value_tensor(axis_swapped(e, y, axis), c->at);
}

// 1 at an index, 0 elsewhere.
Value lower_one_hot(Expansion *e, const Call *c) {
    const Value *x = call_arg(c, P_one_hot_x);
    Type t = *node_type(e, x->node);
    if ((t.dtype != I32 && t.dtype != U8) || t.rank == MAX_RANK) {
        Diagnostic *d = report(e->diags, D_wrong_kind, c->at,
                               "one_hot needs whole numbers");
        diag_secondary(d, x->at, "this is %s", tensor_text(e, x->node));
        if (e->mixes_labels && x->node == e->label)
            diag_note(d, "where samples are mixed, a label is shares of "
                         "classes already");
        return value_poison();
    }
    Type classes = {.dtype = I32, .rank = t.rank + 1};
    for (int i = 0; i < t.rank; i++)
        classes.dim[i] = 1;
    classes.dim[t.rank] = call_count(c, P_one_hot_classes);
    t.dim[t.rank++] = 1;
    NodeId arg[] = {graph_reshape(e->graph, graph_cast(e->graph, x->node, I32),
                                  t.rank, t.dim),
                    graph_iota(e->graph, classes, classes.rank - 1)};
    NodeId is =
        add_checked(e, c, (Node){.op = OP_eq, .num_args = 2, .arg = arg});
    return value_tensor(is == NO_NODE ? is : as_float(e, is), c->at);
}
