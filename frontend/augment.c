// Augmentation: operations of the train graph, random by sample and epoch.
// The evaluation graph leaves them out.

#include "frontend/expand.h"

// Numbers in 0 .. 1, one for each sample: functions of the seed, the epoch and
// the sample's index, other ones for every use in a model.
static NodeId random_samples(Expansion *e, const Call *c, const char *what) {
    Graph *g = e->graph;
    const char *name = arena_format(e->arena, "%s.%s", c->path, what);
    NodeId step = run_node(e, RUN_STEP), arg[3];
    arg[0] = run_node(e, RUN_SEED);
    arg[1] = graph_op2(g, OP_div, step, run_node(e, RUN_EPOCH_STEPS));
    arg[2] = input_node(e, INPUT_INDEX);
    Attr stream = attr_int(ATTR_stream, stream_of(name));
    return graph_add(g, (Node){.op = OP_uniform,
                               .num_args = 3,
                               .arg = arg,
                               .num_attrs = 1,
                               .attr = &stream,
                               .group = -1});
}

// A whole number in 0 .. count-1 for each sample.
static NodeId random_places(Expansion *e, const Call *c, const char *what,
                            int64_t count) {
    NodeId u = random_samples(e, c, what);
    NodeId place = graph_op1(
        e->graph, OP_floor,
        graph_op2(e->graph, OP_mul, u, number_node(e, (double)count)));
    return graph_cast(e->graph, place, I32);
}

static NodeId whole_number(Expansion *e, int64_t value) {
    return graph_constant(e->graph, type_scalar(I32), (double)value);
}

// ---- random_crop ----

static bool check_crop(Expansion *e, const Call *c, Type t, int64_t pad,
                       bool reflect) {
    int64_t size = call_count(c, P_random_crop_size);
    if (t.dim[1] != size || t.dim[2] != size) {
        report(e->diags, D_not_built, c->at,
               "random_crop to another size than the image's, %lld x %lld, is "
               "not supported yet",
               (long long)t.dim[1], (long long)t.dim[2]);
        return false;
    }
    if (pad >= size && reflect) {
        report(e->diags, D_range, c->at,
               "mode=reflect needs a pad smaller than the image");
        return false;
    }
    return true;
}

// Pads and crops back to the size, at a place that is random.
Value lower_random_crop(Expansion *e, const Call *c) {
    const Value *x = call_arg(c, P_random_crop_x);
    int64_t pad = call_count(c, P_random_crop_pad);
    const char *mode = call_arg(c, P_random_crop_mode)->text;
    if (!expect_rank(e, c, x, 4) ||
        !check_crop(e, c, node_type(e, x->node), pad, *mode == 'r'))
        return value_poison();
    if (!e->training)
        return *x;
    NodeId arg[] = {x->node, NO_NODE, NO_NODE};
    static const char *const axis[] = {"y", "x"};
    for (int i = 0; i < 2; i++) {
        NodeId place = random_places(e, c, axis[i], 2 * pad + 1);
        arg[1 + i] = graph_op2(e->graph, OP_sub, place, whole_number(e, pad));
    }
    Attr attr = attr_text(ATTR_mode, mode);
    return value_tensor(add_checked(e, c,
                                    (Node){.op = OP_shift,
                                           .num_args = 3,
                                           .arg = arg,
                                           .num_attrs = 1,
                                           .attr = &attr}),
                        c->at);
}

// ---- flip_lr ----

Value lower_flip_lr(Expansion *e, const Call *c) {
    const Value *x = call_arg(c, P_flip_lr_x);
    if (!expect_rank(e, c, x, 4))
        return value_poison();
    if (!e->training)
        return *x;
    NodeId p = number_node(e, call_number(c, P_flip_lr_p));
    NodeId mirrored =
        graph_op2(e->graph, OP_lt, random_samples(e, c, "flip"), p);
    return value_tensor(graph_op2(e->graph, OP_flip, x->node, mirrored), c->at);
}

// ---- cutout ----

// Whether a pixel's place along an axis is in the box: bool, [N,H,1,1] for
// axis 1 and [N,1,W,1] for axis 2.
static NodeId in_box(Expansion *e, const Call *c, Type t, int axis,
                     int64_t size) {
    Graph *g = e->graph;
    NodeId first =
        random_places(e, c, axis == 1 ? "y" : "x", t.dim[axis] - size + 1);
    first = graph_reshape(g, first, 4, (int64_t[]){t.dim[0], 1, 1, 1});
    Type along = type_of(I32, 4, (int64_t[]){1, 1, 1, 1});
    along.dim[axis] = t.dim[axis];
    NodeId place = graph_iota(g, along, axis);
    NodeId end = graph_op2(g, OP_add, first, whole_number(e, size));
    NodeId behind = graph_op2(g, OP_le, first, place);
    NodeId before = graph_op2(g, OP_lt, place, end);
    return graph_op2(g, OP_and, behind, before);
}

static NodeId fill_node(Expansion *e, const Call *c, const Value *fill,
                        int64_t channels) {
    if (fill->kind == VALUE_NUMBER)
        return number_node(e, fill->number);
    if (fill->list.count != channels) {
        report(e->diags, D_length, fill->at.source ? fill->at : c->at,
               "this list has %d numbers and the image %lld channels",
               fill->list.count, (long long)channels);
        return NO_NODE;
    }
    double *number = ARENA_ARRAY(e->arena, (size_t)channels, double);
    for (int i = 0; i < fill->list.count; i++)
        number[i] = fill->list.item[i].number;
    return graph_vector(e->graph, number, fill->list.count);
}

// Fills a square that lies inside the image, at a place that is random.
Value lower_cutout(Expansion *e, const Call *c) {
    const Value *x = call_arg(c, P_cutout_x);
    int64_t size = call_count(c, P_cutout_size);
    if (!expect_rank(e, c, x, 4))
        return value_poison();
    Type t = node_type(e, x->node);
    if (size > t.dim[1] || size > t.dim[2]) {
        report(e->diags, D_window, c->at,
               "a square of %lld does not fit an image of %lld x %lld",
               (long long)size, (long long)t.dim[1], (long long)t.dim[2]);
        return value_poison();
    }
    if (!e->training)
        return *x;
    NodeId fill = fill_node(e, c, call_arg(c, P_cutout_fill), t.dim[3]);
    if (fill == NO_NODE)
        return value_poison();
    NodeId rows = in_box(e, c, t, 1, size), columns = in_box(e, c, t, 2, size);
    NodeId inside = graph_op2(e->graph, OP_and, rows, columns);
    return value_tensor(
        graph_op3(e->graph, OP_select, inside, fill, as_float(e, x->node)),
        c->at);
}
