// Mixing: augmentations that replace a part of each sample: cutout by a colour;
// cutmix and mixup by the next sample of the shuffled batch, with labels mixed
// alike.

#include "frontend/functions/schedule.h"

#include <math.h>

// ---- boxes ----

// Whether the index along an axis is in first .. end-1, i32[N,1,1,1]: bool,
// [N,H,1,1] for axis 1 and [N,1,W,1] for axis 2.
static NodeId range_mask(Expansion *e, Type t, int axis, NodeId first,
                         NodeId end) {
    Graph *g = e->graph;
    Type along = type_of(I32, 4, (int64_t[]){1, 1, 1, 1});
    along.dim[axis] = t.dim[axis];
    NodeId index = graph_iota(g, along, axis);
    NodeId behind = graph_op2(g, OP_le, first, index);
    NodeId before = graph_op2(g, OP_lt, index, end);
    return graph_op2(g, OP_and, behind, before);
}

static const char *axis_name(int axis) {
    return axis == 1 ? "y" : "x";
}

// A square at a random position inside the image.
static NodeId square_mask(Expansion *e, const Call *c, Type t, int64_t size) {
    NodeId in[2];
    for (int axis = 1; axis <= 2; axis++) {
        NodeId first =
            rand_index(e, c, axis_name(axis), t.dim[axis] - size + 1);
        first = rand_broadcast(e, first, 4);
        NodeId end = graph_op2(e->graph, OP_add, first, int_node(e, size));
        in[axis - 1] = range_mask(e, t, axis, first, end);
    }
    return graph_op2(e->graph, OP_and, in[0], in[1]);
}

static bool check_square(Expansion *e, const Call *c, Type t, int64_t size) {
    if (size <= t.dim[1] && size <= t.dim[2])
        return true;
    report(e->diags, D_window_too_large, c->at,
           "a square of %lld does not fit an image of %lld x %lld",
           (long long)size, (long long)t.dim[1], (long long)t.dim[2]);
    return false;
}

// ---- cutout ----

NodeId fill_node(Expansion *e, const Call *c, const Value *fill,
                 int64_t channels) {
    if (fill->kind == VALUE_NUMBER)
        return number_node(e, fill->number);
    if (fill->list.count != channels) {
        report(e->diags, D_wrong_length, fill->at.source ? fill->at : c->at,
               "this list has %d numbers and the image %lld channels",
               fill->list.count, (long long)channels);
        return NO_NODE;
    }
    double *number = ARENA_ARRAY(e->arena, (size_t)channels, double);
    for (int i = 0; i < fill->list.count; i++)
        number[i] = fill->list.item[i].number;
    return graph_vector(e->graph, number, fill->list.count);
}

Value lower_cutout(Expansion *e, const Call *c) {
    const Value *x = call_arg(c, P_cutout_x);
    int64_t size = call_count(c, P_cutout_size);
    if (!expect_rank(e, c, x, 4))
        return value_poison();
    Type t = *node_type(e, x->node);
    if (!check_square(e, c, t, size))
        return value_poison();
    if (!e->training)
        return *x;
    NodeId fill = fill_node(e, c, call_arg(c, P_cutout_fill), t.dim[3]);
    if (fill == NO_NODE)
        return value_poison();
    NodeId image = as_float(e, x->node), mask = square_mask(e, c, t, size);
    return value_tensor(graph_op3(e->graph, OP_select, mask, fill, image),
                        c->at);
}

// ---- when, and with which sample ----

// The number of steps until a time, as a node.
static NodeId steps_until(Expansion *e, const Call *c, Value time) {
    return scalar_node(e, schedule_time(e, time, c->at));
}

// Whether samples are mixed, bool[N] or bool[]; NO_NODE: always.
static NodeId is_mixed(Expansion *e, const Call *c, double p, const Value *from,
                       const Value *until) {
    Graph *g = e->graph;
    NodeId mixed = NO_NODE, step = as_float(e, run_node(e, RUN_STEP));
    NodeId all[3] = {NO_NODE, NO_NODE, NO_NODE};
    if (p < 1) {
        NodeId share = number_node(e, p);
        all[0] = graph_op2(g, OP_lt, rand_fraction(e, c, "p"), share);
    }
    if (from->kind == VALUE_NUMBER)
        all[1] = graph_op2(g, OP_le, steps_until(e, c, *from), step);
    if (until->kind == VALUE_NUMBER)
        all[2] = graph_op2(g, OP_lt, step, steps_until(e, c, *until));
    for (int i = 0; i < 3; i++)
        mixed = all[i] == NO_NODE  ? mixed
                : mixed == NO_NODE ? all[i]
                                   : graph_op2(g, OP_and, mixed, all[i]);
    return mixed;
}

// The index of the next valid sample of the batch: i32[N].
static NodeId next_sample(Expansion *e) {
    Graph *g = e->graph;
    NodeId i = graph_iota(g, type_of(I32, 1, &e->recipe.batch), 0);
    NodeId next = graph_op2(g, OP_add, i, int_node(e, 1));
    return graph_op2(g, OP_mod, next,
                     all_valid(e) ? int_node(e, e->recipe.batch)
                                  : input_node(e, INPUT_VALID));
}

// ---- the weight of the sample itself ----

enum { TABLE = 1024, GRID = 8192 };

// Entry k is the quantile (k + 0.5) / TABLE of the distribution Beta(alpha,
// alpha).  Its density is symmetric, (x (1 - x))^(alpha - 1) up to a factor.
// For alpha below 1 it is infinite at 0, so the lower half is integrated in
// steps of x^alpha.
static void beta_table(double alpha, double value[TABLE]) {
    double below[GRID + 1], x[GRID + 1], power = alpha < 1 ? 1 / alpha : 1;
    for (int i = 0; i <= GRID; i++) {
        x[i] = 0.5 * pow((double)i / GRID, power);
        double middle = 0.5 * pow(fmax(i - 0.5, 0) / GRID, power);
        double density = alpha < 1 ? pow(1 - middle, alpha - 1)
                                   : pow(4 * middle * (1 - middle), alpha - 1);
        below[i] = i == 0 ? 0 : below[i - 1] + density;
    }
    for (int k = 0, i = 1; k < TABLE / 2; k++) {
        double target = below[GRID] * (k + 0.5) / (TABLE / 2.0);
        while (i < GRID && below[i] <= target)
            i++;
        double part = (target - below[i - 1]) / (below[i] - below[i - 1]);
        value[k] = x[i - 1] + part * (x[i] - x[i - 1]);
        value[TABLE - 1 - k] = 1 - value[k];
    }
}

// Random weights from Beta(alpha, alpha), f32[N]: interpolates the table, and
// takes the last entry beyond its ends, where gather clamps.
static NodeId rand_beta(Expansion *e, const Call *c, double alpha) {
    Graph *g = e->graph;
    NodeId u = rand_fraction(e, c, "share");
    if (alpha == 1)
        return u;
    double value[TABLE];
    beta_table(alpha, value);
    NodeId table = graph_vector(g, value, TABLE);
    NodeId half = number_node(e, 0.5);
    NodeId at = graph_op2(g, OP_mul, u, number_node(e, TABLE));
    at = graph_op2(g, OP_sub, at, half);
    NodeId entry = graph_op1(g, OP_floor, at);
    NodeId index = graph_cast(g, entry, I32);
    NodeId next = graph_op2(g, OP_add, index, int_node(e, 1));
    NodeId low = graph_op2(g, OP_gather, table, index);
    NodeId high = graph_op2(g, OP_gather, table, next);
    NodeId part = graph_op2(g, OP_sub, at, entry);
    NodeId rise = graph_op2(g, OP_sub, high, low);
    return graph_op2(g, OP_add, low, graph_op2(g, OP_mul, part, rise));
}

static bool check_alpha(Expansion *e, const Call *c, ParamId p) {
    enum { LARGEST = 1000 };
    const Value *alpha = call_arg(c, p);
    if (alpha->kind != VALUE_NUMBER ||
        (alpha->number >= 0.01 && alpha->number <= LARGEST))
        return true;
    report(e->diags, D_out_of_range, alpha->at,
           "`alpha` of %s must be from 0.01 to %d", c->builtin->name, LARGEST);
    return false;
}

// ---- mixup ----

static NodeId one_minus(Expansion *e, NodeId weight) {
    return graph_op2(e->graph, OP_sub, number_node(e, 1), weight);
}

// The weight if a sample is mixed, else 1.
static NodeId weight_if(Expansion *e, NodeId mixed, NodeId weight) {
    if (mixed == NO_NODE)
        return weight;
    return graph_op3(e->graph, OP_select, mixed, weight, number_node(e, 1));
}

Value lower_mixup(Expansion *e, const Call *c) {
    const Value *x = call_arg(c, P_mixup_x);
    if (!check_alpha(e, c, P_mixup_alpha))
        return value_poison();
    if (!e->training)
        return *x;
    Graph *g = e->graph;
    NodeId mixed =
        is_mixed(e, c, call_number(c, P_mixup_p), call_arg(c, P_mixup_from),
                 call_arg(c, P_mixup_until));
    NodeId weight =
        weight_if(e, mixed, rand_beta(e, c, call_number(c, P_mixup_alpha)));
    NodeId partner = next_sample(e), own = as_float(e, x->node);
    NodeId other = as_float(e, graph_op2(g, OP_gather, x->node, partner));
    NodeId part = rand_broadcast(e, weight, node_type(e, own)->rank);
    NodeId y = graph_op2(g, OP_mul, one_minus(e, part), other);
    y = graph_op2(g, OP_add, graph_op2(g, OP_mul, part, own), y);
    transform_add(e, c, x->node, y,
                  (Transform){.kind = TRANSFORM_BLEND,
                              .partner = partner,
                              .weight = weight});
    return value_tensor(y, c->at);
}

// ---- cutmix ----

// Half the side of a box with a fraction of the image's area, along an axis.
static NodeId half_side(Expansion *e, NodeId area, int64_t size) {
    Graph *g = e->graph;
    NodeId half = number_node(e, 0.5 * (double)size);
    half = graph_op2(g, OP_mul, graph_op1(g, OP_sqrt, area), half);
    return graph_cast(g, graph_op1(g, OP_floor, half), I32);
}

// A box with a random fraction of the image's area around a random pixel,
// clipped to the image; *share is the fraction outside.
static NodeId box_mask(Expansion *e, const Call *c, Type t, NodeId *weight) {
    Graph *g = e->graph;
    NodeId area = one_minus(e, rand_broadcast(e, *weight, 4)), in[2], length[2];
    for (int axis = 1; axis <= 2; axis++) {
        int64_t size = t.dim[axis];
        NodeId centre =
            rand_broadcast(e, rand_index(e, c, axis_name(axis), size), 4);
        NodeId half = half_side(e, area, size);
        NodeId low = int_node(e, 0);
        NodeId first = graph_op2(g, OP_sub, centre, half);
        first = graph_op2(g, OP_maximum, first, low);
        NodeId high = int_node(e, size);
        NodeId end = graph_op2(g, OP_add, centre, half);
        end = graph_op2(g, OP_minimum, end, high);
        in[axis - 1] = range_mask(e, t, axis, first, end);
        length[axis - 1] = as_float(e, graph_op2(g, OP_sub, end, first));
    }
    double pixel = 1 / ((double)t.dim[1] * (double)t.dim[2]);
    NodeId pixels = graph_op2(g, OP_mul, length[0], length[1]);
    NodeId part = graph_op2(g, OP_mul, pixels, number_node(e, pixel));
    *weight = graph_reshape(g, one_minus(e, part), 1, t.dim);
    return graph_op2(g, OP_and, in[0], in[1]);
}

// Exactly one of size and alpha sets the size of the box.
static bool check_cutmix(Expansion *e, const Call *c, Type t) {
    const Value *size = call_arg(c, P_cutmix_size);
    bool batch_size_use = size->kind == VALUE_NUMBER;
    if (batch_size_use == (call_arg(c, P_cutmix_alpha)->kind == VALUE_NUMBER)) {
        Diagnostic *d = report(e->diags, D_missing_argument, c->at,
                               "cutmix needs either `size` or `alpha`");
        diag_note(d, "size is the side of a square in pixels; alpha makes the "
                     "share of the image random");
        return false;
    }
    return check_alpha(e, c, P_cutmix_alpha) &&
           (!batch_size_use ||
            check_square(e, c, t, call_count(c, P_cutmix_size)));
}

static NodeId pasted(Expansion *e, const Call *c, Type t, NodeId *weight) {
    if (call_arg(c, P_cutmix_size)->kind == VALUE_NONE) {
        *weight = rand_beta(e, c, call_number(c, P_cutmix_alpha));
        return box_mask(e, c, t, weight);
    }
    double size = call_number(c, P_cutmix_size);
    double area = size * size / ((double)t.dim[1] * (double)t.dim[2]);
    *weight = number_node(e, 1 - area);
    return square_mask(e, c, t, (int64_t)size);
}

Value lower_cutmix(Expansion *e, const Call *c) {
    const Value *x = call_arg(c, P_cutmix_x);
    if (!expect_rank(e, c, x, 4))
        return value_poison();
    Type t = *node_type(e, x->node);
    if (!check_cutmix(e, c, t))
        return value_poison();
    if (!e->training)
        return *x;
    Graph *g = e->graph;
    NodeId weight, inside = pasted(e, c, t, &weight);
    NodeId mixed =
        is_mixed(e, c, call_number(c, P_cutmix_p), call_arg(c, P_cutmix_from),
                 call_arg(c, P_cutmix_until));
    if (mixed != NO_NODE)
        inside = graph_op2(g, OP_and, inside, rand_broadcast(e, mixed, 4));
    NodeId partner = next_sample(e);
    NodeId other = graph_op2(g, OP_gather, x->node, partner);
    weight = weight_if(e, mixed, weight);
    NodeId y = graph_op3(g, OP_select, inside, other, x->node);
    transform_add(e, c, x->node, y,
                  (Transform){.kind = TRANSFORM_PASTE,
                              .pasted = inside,
                              .partner = partner,
                              .weight = weight});
    return value_tensor(y, c->at);
}
