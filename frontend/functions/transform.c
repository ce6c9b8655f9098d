// Transforms: records the geometric steps of the chain of `input`, and replays
// them on labels with a class or a target for each pixel.
//
// Image and label share the random numbers.  A label may have several elements
// per pixel, as targets of super-resolution, or one for several pixels.
// Classes are sampled by the nearest pixel, targets as the image is.  Pixels
// from outside the image are invalid: see TransformedLabel.

#include "frontend/functions/functions.h"

#include <string.h>

// ---- the list ----

// The call in the user's file: one of a module of std/ is that of its caller.
static void find_user_call(const Expansion *e, const Call *c, Transform *t) {
    t->function = c->builtin->name;
    t->at = c->at;
    for (const struct CallFrame *f = e->call_stack;
         f != NULL && std_text(t->at.source->path) != NULL; f = f->outer) {
        t->function = f->function->name;
        t->at = f->at;
    }
}

void transform_add(Expansion *e, const Call *c, NodeId from, NodeId to,
                   Transform t) {
    if (from == to)
        return;
    Transform *added = ARENA_NEW(e->arena, Transform);
    *added = t;
    find_user_call(e, c, added);
    added->from = from;
    added->to = to;
    added->before = e->transform;
    added->number = e->transform == NULL ? 1 : e->transform->number + 1;
    e->transform = added;
}

static bool moves_pixels(const Transform *t) {
    return t->kind != TRANSFORM_BLEND;
}

// The last one that moves pixels, or NULL.
static const Transform *last_move(const Expansion *e) {
    const Transform *t = e->transform;
    while (t != NULL && !moves_pixels(t))
        t = t->before;
    return t;
}

bool transforms_mix(const Expansion *e, bool spatial) {
    for (const Transform *t = e->transform; t != NULL; t = t->before)
        if (t->kind == TRANSFORM_BLEND ||
            (!spatial && t->kind == TRANSFORM_PASTE))
            return true;
    return false;
}

// ---- whether only the list moves pixels ----

enum { NO_PIXELS = -1, OTHER_PIXELS = -2 };

static bool is_spatial(Type t) {
    return t.rank == 4 && (t.dim[1] > 1 || t.dim[2] > 1);
}

static bool touches_axis(const Node *n, int axis) {
    return node_ints(n, ATTR_low, axis, 0) || node_ints(n, ATTR_high, axis, 0);
}

// Whether each pixel of a node is computed from the same pixel of its operands.
static bool keeps_pixels(const Graph *g, const Node *n) {
    const Type *t = n->type, *x = g->node[n->arg[0]].type;
    if (n->op == OP_slice || n->op == OP_pad)
        return !touches_axis(n, 1) && !touches_axis(n, 2);
    if (op_info[n->op].traits & REDUCES)
        return t->rank == x->rank && t->dim[1] == x->dim[1] &&
               t->dim[2] == x->dim[2];
    return op_info[n->op].traits & POINTWISE;
}

// The number of transforms applied to the pixels of node n, if it is equal for
// all operands.
static int transforms_applied(const Graph *g, const Node *n, const int *at) {
    int found = NO_PIXELS;
    for (int i = 0; i < n->num_args; i++) {
        int of = at[n->arg[i]];
        if (of == NO_PIXELS || !is_spatial(*g->node[n->arg[i]].type))
            continue;
        if (!keeps_pixels(g, n) || of == OTHER_PIXELS ||
            (found != NO_PIXELS && found != of))
            return is_spatial(*n->type) ? OTHER_PIXELS : NO_PIXELS;
        found = of;
    }
    return found;
}

// Whether all transforms of the list apply to the image, in order, and nothing
// else moves pixels.
static bool is_complete(Expansion *e) {
    int *at = ARENA_ARRAY(e->arena, (size_t)e->model_input + 1, int);
    for (NodeId n = 0; n <= e->model_input; n++) {
        const Transform *t = e->transform;
        while (t != NULL && t->to != n)
            t = t->before;
        if (n == e->input[INPUT_IMAGE])
            at[n] = 0;
        else if (t != NULL)
            at[n] = at[t->from] == t->number - 1 ? t->number : OTHER_PIXELS;
        else
            at[n] = transforms_applied(e->graph, &e->graph->node[n], at);
    }
    e->work += e->model_input;
    return at[e->model_input] == e->transform->number;
}

// ---- sizes ----

static bool ratio_is(Type a, Type b, int64_t up, int64_t down) {
    return a.dim[1] * down == b.dim[1] * up && a.dim[2] * down == b.dim[2] * up;
}

bool sizes_match(Type label, Type image, int64_t *up, int64_t *down) {
    *up = label.dim[1] / image.dim[1];
    *down = image.dim[1] / label.dim[1];
    *up = *up > 0 ? *up : 1;
    *down = *down > 0 ? *down : 1;
    return ratio_is(label, image, *up, *down);
}

// Maps sizes of a label after transform t to those before: false if these are
// not integers.
static bool size_before(const Expansion *e, const Transform *t, Type *label) {
    Type from = *node_type(e, t->from), to = *node_type(e, t->to);
    for (int i = 1; i <= 2; i++) {
        int64_t size = label->dim[i] * from.dim[i];
        if (size % to.dim[i] != 0)
            return false;
        label->dim[i] = size / to.dim[i];
    }
    return true;
}

// Maps sizes of the label to those in the files; resized: resize applies to it,
// too.
static bool size_in_files(const Expansion *e, bool resized, Type *label) {
    for (const Transform *t = e->transform; t != NULL; t = t->before)
        if ((resized || t->kind != TRANSFORM_RESIZE) &&
            !size_before(e, t, label))
            return false;
    return true;
}

// A model that undoes a resize of its input, as for super-resolution, has
// targets of the size of the files.
static bool is_resized(const Expansion *e, Type label) {
    Type seen = *node_type(e, e->model_input), files = label;
    return ratio_is(label, seen, 1, 1) || !size_in_files(e, false, &files) ||
           !ratio_is(files, e->image, 1, 1);
}

bool transforms_undo(const Expansion *e, Type *label) {
    return size_in_files(e, is_resized(e, *label), label);
}

// ---- which labels are spatial ----

static Diagnostic *report_left(Expansion *e, const Transform *t,
                               const char *why) {
    Diagnostic *d =
        report(e->diags, D_label_not_moved, t->at,
               "the labels cannot follow the change that %s makes to the image",
               t->function);
    diag_note(d, "%s", why);
    return d;
}

// Whether an image splits into so many equal squares, a whole number along each
// axis.
static bool splits_into_squares(int64_t count, Type image) {
    for (int64_t k = 1; k <= image.dim[1] && k <= image.dim[2]; k++)
        if (image.dim[1] % k == 0 && image.dim[2] % k == 0 && count > 1 &&
            image.dim[1] / k * (image.dim[2] / k) == count)
            return true;
    return false;
}

// Whether an output has no axes of the image: the last contraction before it
// has one row for each sample.
static bool is_per_sample(const Expansion *e) {
    const Graph *g = e->graph;
    for (NodeId n = e->output.node; g->node[n].num_args > 0;) {
        const Node *d = &g->node[n];
        const Type *left = g->node[d->arg[0]].type;
        if (op_info[d->op].traits & CONTRACTS)
            return d->op == OP_matmul && left->rank == 2 &&
                   left->dim[0] == e->recipe.batch;
        n = d->arg[0];
        for (int i = 1; i < d->num_args; i++)
            if (type_count(g->node[d->arg[i]].type) >
                type_count(g->node[n].type))
                n = d->arg[i];
    }
    return false;
}

// Classifies labels by their axes.  Numbers that may be those of pixels or
// patches, without the axes of an image, are lost.
static LabelExtent classify_label(const Expansion *e, Type label, Type image) {
    int64_t up, down, pixels = image.dim[1] * image.dim[2];
    bool classes = label.dtype == I32;
    int axes = classes ? label.rank - 1 : label.rank - 2;
    int64_t first = label.rank > 1 ? label.dim[1] : 1;
    bool match = label.rank > 2 && sizes_match(label, image, &up, &down);
    switch (axes) {
    case 2:
        return first == 1 && label.dim[2] == 1 ? LABEL_PER_SAMPLE
               : match                         ? LABEL_SPATIAL
                                               : LABEL_LOST;
    case 1:
        return (splits_into_squares(first, image) && !is_per_sample(e)) ||
                       (!classes && match)
                   ? LABEL_LOST
                   : LABEL_PER_SAMPLE;
    case 0:
        return !classes && pixels > 1 &&
                       (first == pixels || first == pixels * image.dim[3])
                   ? LABEL_LOST
                   : LABEL_PER_SAMPLE;
    default:
        return axes > 2 ? LABEL_LOST : LABEL_PER_SAMPLE;
    }
}

static void report_label(Expansion *e, const Transform *t, Type label) {
    Diagnostic *d = report_left(
        e, t,
        "labels follow as [N, height, width], or as targets [N, height, width, "
        "channels]; height and width are those of the image, times or divided "
        "by one whole number");
    diag_secondary(d, e->output.at, "with this output labels are %s",
                   samples_text(e, label));
    diag_secondary(d, e->model_input_at, "and the images are %s",
                   samples_text(e, *node_type(e, t->to)));
}

LabelExtent label_extent(Expansion *e, Type label) {
    const Transform *t = last_move(e);
    if (t == NULL || e->data.label.rank > 0)
        return LABEL_PER_SAMPLE;
    Type files = label;
    LabelExtent p = classify_label(e, label, *node_type(e, t->to));
    if (p == LABEL_SPATIAL && !is_complete(e)) {
        report_left(e, t,
                    "another function in `input` moves pixels, too; labels can "
                    "follow resize and the augmentations of std/vision.net, "
                    "one after the other");
        return LABEL_LOST;
    }
    if (p == LABEL_SPATIAL && !transforms_undo(e, &files))
        p = LABEL_LOST;
    if (p == LABEL_LOST)
        report_label(e, t, label);
    return p;
}

// ---- replaying the list ----

typedef struct {
    Expansion *e;
    bool classes; // the label has classes
    bool blend;   // samples are blended, too
    bool resized; // the label is resized with the image
    NodeId label; // [N,H,W,C]
    NodeId valid; // bool[N,H,W,1]; NO_NODE: all
    bool lost;
} Replay;

static bool report_lost(Replay *r, const Transform *t, const char *why) {
    report_left(r->e, t, why);
    r->lost = true;
    return false;
}

// The number of label elements per pixel, and of pixels per label element; one
// is 1.  False after a report: an earlier step has led to sizes without an
// integer ratio.
static bool read_scale(Replay *r, const Transform *t, int64_t *up,
                       int64_t *down) {
    Type label = *node_type(r->e, r->label), image = *node_type(r->e, t->from);
    if (sizes_match(label, image, up, down))
        return true;
    return report_lost(
        r, t,
        arena_format(r->e->arena,
                     "the label is %lld x %lld there and the image "
                     "%lld x %lld, not a multiple or a part of it",
                     (long long)label.dim[1], (long long)label.dim[2],
                     (long long)image.dim[1], (long long)image.dim[2]));
}

// The same, if several pixels per label element are not supported.
static bool read_multiple(Replay *r, const Transform *t, int64_t *up) {
    int64_t down;
    if (!read_scale(r, t, up, &down))
        return false;
    return down == 1 ||
           report_lost(r, t,
                       "one element of the label covers several pixels, "
                       "and a move by single pixels may split it");
}

static NodeId all_valid_pixels(Replay *r) {
    Type t = *node_type(r->e, r->label);
    t.dtype = BOOL;
    t.dim[3] = 1;
    return graph_constant(r->e->graph, t, 1);
}

// A number of pixels, i32[N], as label elements.
static NodeId scaled(Replay *r, NodeId pixels, int64_t up) {
    return up == 1 ? pixels
                   : graph_op2(r->e->graph, OP_mul, pixels, int_node(r->e, up));
}

static NodeId shifted(Replay *r, NodeId x, const NodeId offset[2],
                      const char *mode, const int64_t size[2]) {
    static const int64_t start[2] = {0, 0};
    Attr attr = attr_text(ATTR_mode, mode);
    NodeId moved = graph_add(r->e->graph,
                             (Node){.op = OP_shift,
                                    .num_args = 3,
                                    .arg = (NodeId[]){x, offset[0], offset[1]},
                                    .num_attrs = 1,
                                    .attr = &attr,
                                    .group = -1});
    return image_crop(r->e, moved, size, start);
}

// `edge` and `reflect` repeat pixels; a label of another resolution cannot
// repeat, so its pixels outside are invalid.
static void replay_shift(Replay *r, const Transform *t, const int64_t size[2]) {
    int64_t up;
    if (!read_multiple(r, t, &up))
        return;
    NodeId offset[] = {scaled(r, t->offset[0], up),
                       scaled(r, t->offset[1], up)};
    bool leaves = up > 1 || strcmp(t->mode, "zero") == 0;
    if (leaves && r->valid == NO_NODE)
        r->valid = all_valid_pixels(r);
    if (r->valid != NO_NODE)
        r->valid =
            shifted(r, r->valid, offset, leaves ? "zero" : t->mode, size);
    r->label = shifted(r, r->label, offset, leaves ? "edge" : t->mode, size);
}

static void replay_cut(Replay *r, const Transform *t, const int64_t size[2]) {
    int64_t up, down, first[2];
    if (!read_scale(r, t, &up, &down))
        return;
    for (int i = 0; i < 2; i++)
        first[i] = t->first[i] * up / down;
    if (t->first[0] * up % down || t->first[1] * up % down) {
        report_lost(
            r, t,
            "one element of the label covers several pixels, and a cut of "
            "single pixels splits it");
        return;
    }
    r->label = image_crop(r->e, r->label, size, first);
    if (r->valid != NO_NODE)
        r->valid = image_crop(r->e, r->valid, size, first);
}

// Whether an interpolated mask is exactly 1, so that all sources are inside: (1
// - s) 1 + s 1 is computed as 1 + s (1 - 1).
static NodeId fully_inside(Expansion *e, NodeId mask) {
    return graph_op2(e->graph, OP_le, number_node(e, 1), mask);
}

static void replay_resample(Replay *r, const Transform *t,
                            const int64_t size[2]) {
    Expansion *e = r->e;
    int64_t up, down;
    if (!read_scale(r, t, &up, &down))
        return;
    NodeId scale = number_node(e, (double)up / (double)down);
    AxisTaps sample[2];
    for (int i = 0; i < 2; i++) {
        NodeId length = graph_op2(e->graph, OP_mul, t->length[i], scale);
        NodeId first = graph_op2(e->graph, OP_mul, t->offset[i], scale);
        sample[i] = axis_taps(e, first, length, size[i]);
    }
    r->label = r->classes ? interpolate_nearest(e, r->label, sample)
                          : interpolate_bilinear(e, r->label, sample);
    if (r->valid == NO_NODE)
        return;
    r->valid = r->classes
                   ? interpolate_nearest(e, r->valid, sample)
                   : fully_inside(e, interpolate_bilinear(e, r->valid, sample));
}

static NodeId resized(Replay *r, NodeId x, const char *mode,
                      const int64_t size[2]) {
    NodeId in = as_float(r->e, x);
    Attr attr[] = {attr_text(ATTR_mode, mode), attr_ints(ATTR_size, 2, size)};
    return graph_add(r->e->graph, (Node){.op = OP_resize,
                                         .num_args = 1,
                                         .arg = &in,
                                         .num_attrs = 2,
                                         .attr = attr,
                                         .group = -1});
}

static void replay_resize(Replay *r, const Transform *t,
                          const int64_t size[2]) {
    if (!r->resized)
        return;
    const char *mode = r->classes ? "nearest" : t->mode;
    DType type = node_type(r->e, r->label)->dtype;
    r->label = graph_cast(r->e->graph, resized(r, r->label, mode, size), type);
    if (r->valid != NO_NODE)
        r->valid = fully_inside(r->e, resized(r, r->valid, mode, size));
}

// A label covers the same area with other pixels, so only the distance of the
// map is another number of them.
static void replay_warp(Replay *r, const Transform *t, const int64_t size[2]) {
    Expansion *e = r->e;
    Graph *g = e->graph;
    int64_t up, down;
    if (!read_scale(r, t, &up, &down))
        return;
    NodeId scale = number_node(e, (double)up / (double)down), matrix[6];
    for (int i = 0; i < 6; i++)
        matrix[i] = i % 3 == 2 && up != down
                        ? graph_op2(g, OP_mul, t->matrix[i], scale)
                        : t->matrix[i];
    PixelTaps at = affine_taps(e, matrix, size);
    NodeId valid = r->valid == NO_NODE ? all_valid_pixels(r) : r->valid;
    if (r->classes || *t->mode == 'n') {
        NodeId outside = graph_constant(g, type_scalar(BOOL), 0);
        r->label = warp_nearest(e, r->label, &at, NO_NODE);
        r->valid = warp_nearest(e, valid, &at, outside);
        return;
    }
    r->label = warp_bilinear(e, r->label, &at, NO_NODE);
    r->valid = fully_inside(e, warp_bilinear(e, valid, &at, number_node(e, 0)));
}

// Upsamples a mask of pixels to the label, by `up` along each axis.
static NodeId upsample_mask(Replay *r, NodeId mask, int64_t up) {
    Type t = *node_type(r->e, mask);
    const int64_t size[] = {t.dim[1] * up, t.dim[2] * up};
    return up == 1 ? mask
                   : fully_inside(r->e, resized(r, mask, "nearest", size));
}

static NodeId take_partner(Replay *r, const Transform *t, NodeId x) {
    return graph_op2(r->e->graph, OP_gather, x, t->partner);
}

static void replay_paste(Replay *r, const Transform *t) {
    int64_t up;
    if (!read_multiple(r, t, &up))
        return;
    Graph *g = r->e->graph;
    NodeId pasted = upsample_mask(r, t->pasted, up);
    r->label =
        graph_op3(g, OP_select, pasted, take_partner(r, t, r->label), r->label);
    if (r->valid != NO_NODE)
        r->valid = graph_op3(g, OP_select, pasted, take_partner(r, t, r->valid),
                             r->valid);
}

// A pixel that is invalid in one of two blended samples is invalid.
static void replay_blend(Replay *r, const Transform *t) {
    Expansion *e = r->e;
    Graph *g = e->graph;
    if (!r->blend)
        return;
    Type label = *node_type(e, r->label);
    if (label.dtype == I32)
        r->label =
            label_probabilities(e, graph_reshape(g, r->label, 3, label.dim));
    if (node_type(e, r->label)->rank == 3) // numbers, not probabilities
        r->label = graph_reshape(g, r->label, 4, label.dim);
    r->label = label_blend(e, t, r->label);
    if (r->valid == NO_NODE)
        return;
    NodeId alone = graph_op2(g, OP_le, number_node(e, 1), t->weight);
    NodeId other = rand_broadcast(e, alone, 4);
    other = graph_op2(g, OP_or, take_partner(r, t, r->valid), other);
    r->valid = graph_op2(g, OP_and, r->valid, other);
}

static void replay(Replay *r, const Transform *t) {
    if (t == NULL)
        return;
    replay(r, t->before);
    if (r->lost)
        return;
    Expansion *e = r->e;
    Type from = *node_type(e, t->from), to = *node_type(e, t->to);
    Type label = *node_type(e, r->label);
    int64_t size[2];
    for (int i = 0; i < 2; i++)
        size[i] = label.dim[1 + i] * to.dim[1 + i] / from.dim[1 + i];
    switch (t->kind) {
    case TRANSFORM_FLIP:
        r->label = graph_op2(e->graph, OP_flip, r->label, t->mirrored);
        if (r->valid != NO_NODE)
            r->valid = graph_op2(e->graph, OP_flip, r->valid, t->mirrored);
        break;
    case TRANSFORM_RANDOM_CROP:
        replay_shift(r, t, size);
        break;
    case TRANSFORM_CROP:
        replay_cut(r, t, size);
        break;
    case TRANSFORM_RESAMPLE:
        replay_resample(r, t, size);
        break;
    case TRANSFORM_RESIZE:
        replay_resize(r, t, size);
        break;
    case TRANSFORM_WARP:
        replay_warp(r, t, size);
        break;
    case TRANSFORM_PASTE:
        replay_paste(r, t);
        break;
    case TRANSFORM_BLEND:
        replay_blend(r, t);
        break;
    }
}

bool label_transform(Expansion *e, NodeId label, bool blend,
                     TransformedLabel *f) {
    Type t = *node_type(e, label), seen = label_type(e);
    Replay r = {.e = e,
                .classes = t.dtype == I32,
                .blend = blend,
                .resized = is_resized(e, seen),
                .valid = NO_NODE};
    int64_t column[] = {t.dim[0], t.dim[1], t.dim[2], 1};
    r.label = r.classes ? graph_reshape(e->graph, label, 4, column) : label;
    replay(&r, e->transform);
    if (r.lost)
        return false;
    bool whole = node_type(e, r.label)->dtype == I32;
    if (whole && r.valid != NO_NODE)
        r.label =
            graph_op3(e->graph, OP_select, r.valid, r.label, int_node(e, -1));
    if (whole)
        r.label = graph_reshape(e->graph, r.label, 3, seen.dim);
    *f = (TransformedLabel){r.label, r.valid};
    return true;
}
