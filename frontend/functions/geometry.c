// Geometry: augmentations that move pixels.  They are operations of the train
// graph, random by sample and epoch.  The evaluation graph skips them, or takes
// the centre if they change an image's size.

#include "frontend/functions/functions.h"

#include <math.h>

// ---- crops ----

NodeId image_crop(Expansion *e, NodeId x, const int64_t size[2],
                  const int64_t first[2]) {
    Type t = *node_type(e, x);
    int64_t low[4] = {0, first[0], first[1], 0}, high[4] = {0};
    for (int i = 0; i < 2; i++)
        high[1 + i] = t.dim[1 + i] - size[i] - first[i];
    return graph_slice(e->graph, x, low, high);
}

static NodeId crop_centre(Expansion *e, const Call *c, NodeId x,
                          const int64_t size[2]) {
    Type t = *node_type(e, x);
    Transform cut = {
        .kind = TRANSFORM_CROP,
        .first = {(t.dim[1] - size[0]) / 2, (t.dim[2] - size[1]) / 2}};
    NodeId y = image_crop(e, x, size, cut.first);
    transform_add(e, c, x, y, cut);
    return y;
}

// A crop at a random offset of the padded image.
static NodeId crop_random(Expansion *e, const Call *c, NodeId x,
                          const int64_t size[2], int64_t pad,
                          const char *mode) {
    static const char *const axis[] = {"y", "x"};
    static const int64_t start[2] = {0, 0};
    Type t = *node_type(e, x);
    NodeId arg[] = {x, NO_NODE, NO_NODE};
    for (int i = 0; i < 2; i++) {
        int64_t num_offsets = t.dim[1 + i] + 2 * pad - size[i] + 1;
        NodeId offset = rand_index(e, c, axis[i], num_offsets);
        arg[1 + i] = graph_op2(e->graph, OP_sub, offset, int_node(e, pad));
    }
    Attr attr = attr_text(ATTR_mode, mode);
    NodeId moved = add_checked(e, c,
                               (Node){.op = OP_shift,
                                      .num_args = 3,
                                      .arg = arg,
                                      .num_attrs = 1,
                                      .attr = &attr});
    if (moved == NO_NODE)
        return NO_NODE;
    NodeId y = image_crop(e, moved, size, start);
    transform_add(e, c, x, y,
                  (Transform){.kind = TRANSFORM_RANDOM_CROP,
                              .offset = {arg[1], arg[2]},
                              .mode = mode});
    return y;
}

static bool check_fits(Expansion *e, const Call *c, Type t, int64_t size) {
    if (size <= t.dim[1] && size <= t.dim[2])
        return true;
    report(e->diags, D_window_too_large, c->at,
           "%s to %lld x %lld does not fit an image of %lld x %lld",
           c->builtin->name, (long long)size, (long long)size,
           (long long)t.dim[1], (long long)t.dim[2]);
    return false;
}

// Reflect padding is narrower than the image and than the crop.  Offsets are
// f32, where larger ranges are not uniform.
static bool check_pad(Expansion *e, const Call *c, Type t, int64_t size,
                      int64_t pad, const char *mode) {
    enum { MOST = 1 << 16 };
    bool image = pad >= t.dim[1] || pad >= t.dim[2];
    if (pad > MOST) {
        report(e->diags, D_out_of_range, c->at, "%s moves by %d pixels at most",
               c->builtin->name, MOST);
        return false;
    }
    if (*mode != 'r' || (!image && pad < size))
        return true;
    report(e->diags, D_out_of_range, c->at,
           "mode=reflect needs a pad smaller than %s",
           image ? "the image" : "`size`");
    return false;
}

Value lower_random_crop(Expansion *e, const Call *c) {
    const Value *x = call_arg(c, P_random_crop_x);
    int64_t size = call_count(c, P_random_crop_size);
    int64_t pad = call_count(c, P_random_crop_pad);
    const char *mode = call_arg(c, P_random_crop_mode)->text;
    if (!expect_rank(e, c, x, 4))
        return value_poison();
    Type t = *node_type(e, x->node);
    if (!check_fits(e, c, t, size) || !check_pad(e, c, t, size, pad, mode))
        return value_poison();
    const int64_t square[] = {size, size};
    NodeId y = e->training ? crop_random(e, c, x->node, square, pad, mode)
                           : crop_centre(e, c, x->node, square);
    return y == NO_NODE ? value_poison() : value_tensor(y, c->at);
}

Value lower_random_translate(Expansion *e, const Call *c) {
    const Value *x = call_arg(c, P_random_translate_x);
    int64_t most = call_count(c, P_random_translate_most);
    const char *mode = call_arg(c, P_random_translate_mode)->text;
    if (!expect_rank(e, c, x, 4))
        return value_poison();
    Type t = *node_type(e, x->node);
    if (!check_pad(e, c, t, INT32_MAX, most, mode))
        return value_poison();
    if (!e->training)
        return *x;
    NodeId y = crop_random(e, c, x->node, &t.dim[1], most, mode);
    return y == NO_NODE ? value_poison() : value_tensor(y, c->at);
}

// ---- random_resized_crop ----

// A pair of numbers, low and high; false after a report.
static bool read_range(Expansion *e, const Call *c, ParamId p, double most,
                       double range[2]) {
    const Value *v = call_arg(c, p);
    if (v->kind == VALUE_NONE)
        return true;
    bool good = v->kind == VALUE_LIST && v->list.count == 2;
    for (int i = 0; good && i < 2; i++)
        range[i] = v->list.item[i].number;
    good = good && range[0] > 0 && range[0] <= range[1] && range[1] <= most;
    if (!good)
        report(e->diags, D_out_of_range, v->at,
               "`%s` of %s must be [least, most], both above 0%s",
               param_info[p].name, c->builtin->name,
               most == 1 ? " and at most 1" : "");
    return good;
}

// Sets length and first offset of the crop along an axis, f32[N].
static void crop_axis(Expansion *e, const Call *c, Transform *crop, int axis,
                      NodeId area, NodeId ratio, int64_t from) {
    Graph *g = e->graph;
    NodeId square = graph_op2(g, axis == 0 ? OP_div : OP_mul, area, ratio);
    NodeId whole = number_node(e, (double)from);
    NodeId length =
        graph_op2(g, OP_minimum, graph_op1(g, OP_sqrt, square), whole);
    NodeId rest = graph_op2(g, OP_sub, whole, length);
    crop->offset[axis] =
        graph_op2(g, OP_mul, rand_fraction(e, c, axis == 0 ? "y" : "x"), rest);
    crop->length[axis] = length;
}

Value lower_random_resized_crop(Expansion *e, const Call *c) {
    const Value *x = call_arg(c, P_random_resized_crop_x);
    int64_t size = call_count(c, P_random_resized_crop_size);
    double scale[2] = {0.08, 1}, ratio[2] = {3.0 / 4, 4.0 / 3};
    if (!expect_rank(e, c, x, 4) ||
        !check_fits(e, c, *node_type(e, x->node), size) ||
        !read_range(e, c, P_random_resized_crop_scale, 1, scale) ||
        !read_range(e, c, P_random_resized_crop_ratio, HUGE_VAL, ratio))
        return value_poison();
    Type t = *node_type(e, x->node);
    const int64_t square[] = {size, size};
    if (!e->training)
        return value_tensor(crop_centre(e, c, x->node, square), c->at);
    double pixels = (double)t.dim[1] * (double)t.dim[2];
    NodeId area =
        rand_range(e, c, "area", scale[0] * pixels, scale[1] * pixels);
    NodeId shape =
        graph_op1(e->graph, OP_exp,
                  rand_range(e, c, "ratio", log(ratio[0]), log(ratio[1])));
    Transform crop = {.kind = TRANSFORM_RESAMPLE};
    AxisTaps sample[2];
    for (int i = 0; i < 2; i++) {
        crop_axis(e, c, &crop, i, area, shape, t.dim[1 + i]);
        sample[i] = axis_taps(e, crop.offset[i], crop.length[i], size);
    }
    NodeId y = interpolate_bilinear(e, x->node, sample);
    transform_add(e, c, x->node, y, crop);
    return value_tensor(y, c->at);
}

// ---- flips ----

static Value mirror(Expansion *e, const Call *c, const Value *x,
                    NodeId mirrored) {
    NodeId y = graph_op2(e->graph, OP_flip, x->node, mirrored);
    transform_add(e, c, x->node, y,
                  (Transform){.kind = TRANSFORM_FLIP, .mirrored = mirrored});
    return value_tensor(y, c->at);
}

Value lower_flip_lr(Expansion *e, const Call *c) {
    const Value *x = call_arg(c, P_flip_lr_x);
    if (!expect_rank(e, c, x, 4))
        return value_poison();
    if (!e->training)
        return *x;
    NodeId p = number_node(e, call_number(c, P_flip_lr_p));
    NodeId u = rand_fraction(e, c, "flip");
    return mirror(e, c, x, graph_op2(e->graph, OP_lt, u, p));
}

// A sample is mirrored every other epoch; a random number decides in which.
Value lower_alternating_flip(Expansion *e, const Call *c) {
    const Value *x = call_arg(c, P_alternating_flip_x);
    if (!expect_rank(e, c, x, 4))
        return value_poison();
    if (!e->training)
        return *x;
    Graph *g = e->graph;
    NodeId u = rand_fraction_once(e, c, "flip");
    NodeId first =
        graph_cast(g, graph_op2(g, OP_lt, u, number_node(e, 0.5)), I32);
    NodeId two = int_node(e, 2);
    NodeId turn =
        graph_op2(g, OP_mod, graph_op2(g, OP_add, rand_epoch(e), first), two);
    return mirror(e, c, x, graph_op2(g, OP_eq, turn, int_node(e, 1)));
}
