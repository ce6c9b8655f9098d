// Decode: derives the step for one position of a text from the prediction for
// whole texts.
//
//   requires   The graph predicts texts i32[N,T].
//   preserves  The step at a position has the scores of the prediction at that
//              position.
//   result     The graph is for one text.  Its inputs are image i32[1,1], the
//              token, and position i32[], counted from 0; its output is the
//              prediction at that position.
//
// A value over positions is computed for one position.  A matrix product that
// reads other positions, such as attention's keys and values, reads a state of
// kind "cache" with all T positions, into which the step writes its own.
//
// At later positions the cache has numbers of an earlier text.  A model can be
// decoded only if they have no effect: before a sum over positions, softmax
// must turn the masked scores into exact zeros.

#include "passes/passes.h"

#include <string.h>

// An axis runs over the same elements in both graphs; over samples or
// positions, of which one is left; or over all positions of a cache.
typedef enum { SAME, SAMPLES, POSITIONS, CACHED } Span;

typedef struct {
    Span span;
    int64_t size;
} Part;

// Parts that an axis consists of, the first changing slowest.
typedef struct {
    int count;
    Part part[MAX_RANK];
} Axis;

// Numbers at cached positions later than the step's.
typedef enum { ANY, LOWERED, ZERO } Later;

// As a score, softmax makes 0 of it.
static const double LOW = -1e9;

typedef struct {
    bool follows; // the input; only then is the rest set
    Axis axis[MAX_RANK];
    Later later;
    NodeId now;    // of one position
    NodeId cached; // of all; NO_NODE: not needed so far
    int cached_axis;
} Value;

typedef struct {
    const Graph *old;
    Graph *g;
    Value *value;
    NodeId *whole; // of values that do not follow the input
    NodeId position;
    int num_caches;
    Arena *scratch;
    const char *why; // it cannot be decoded; NULL: it can
} Decode;

static NodeId refuse(Decode *d, NodeId n, const char *why) {
    Text t = text_new(d->g->arena);
    node_describe(&t, graph_node(d->old, n));
    text_add(&t, " %s", why);
    if (d->why == NULL)
        d->why = text_string(&t);
    return NO_NODE;
}

// ---- axes ----

static Axis axis_same(int64_t size) {
    return (Axis){1, {{SAME, size}}};
}

static bool axis_is(const Axis *a, Span span) {
    return a->count == 1 && a->part[0].span == span;
}

static bool axis_equal(const Axis *a, const Axis *b) {
    bool equal = a->count == b->count;
    for (int i = 0; equal && i < a->count; i++)
        equal = a->part[i].span == b->part[i].span &&
                a->part[i].size == b->part[i].size;
    return equal;
}

// Elements of an axis in the step.
static int64_t axis_size(const Axis *a) {
    int64_t size = 1;
    for (int i = 0; i < a->count; i++)
        if (a->part[i].span == SAME || a->part[i].span == CACHED)
            size *= a->part[i].size;
    return size;
}

static Type cut_type(const Type *t, const Axis *axis) {
    Type cut = *t;
    for (int i = 0; i < t->rank; i++)
        cut.dim[i] = axis_size(&axis[i]);
    return cut;
}

// Node n with other operands and another type.
static NodeId add_like(Decode *d, NodeId n, const NodeId *arg,
                       const Axis *axis) {
    Type type = cut_type(graph_node(d->old, n)->type, axis);
    Node copy = *graph_node(d->old, n);
    copy.arg = arg;
    copy.type = &type;
    copy.group = -1;
    d->g->origin = copy.from;
    return graph_move(d->g, copy);
}

// The axes of an operand of shape `from` that broadcasts to `to`.
static void axes_of_operand(const Type *from, const Type *to, const Axis *axis,
                            Axis *out) {
    int shift = to->rank - from->rank;
    for (int i = 0; i < from->rank; i++)
        out[i] = from->dim[i] == to->dim[i + shift] ? axis[i + shift]
                                                    : axis_same(from->dim[i]);
}

// ---- values that do not follow the input ----

static NodeId whole(Decode *d, NodeId n) {
    if (d->whole[n] != NO_NODE)
        return d->whole[n];
    for (int i = 0; i < graph_node(d->old, n)->num_args; i++)
        whole(d, graph_node(d->old, n)->arg[i]);
    d->g->origin = graph_node(d->old, n)->from;
    return d->whole[n] = graph_copy(d->g, d->old, n, d->whole);
}

// The rows of the step's position, which axis `k` of n runs over.
static NodeId rows_of_position(Decode *d, NodeId n, int k) {
    Graph *g = d->g;
    int rank = graph_node(d->old, n)->type->rank;
    int64_t there[MAX_RANK], back[MAX_RANK];
    for (int i = 0; i < rank; i++) {
        there[i] = i == 0 ? k : i <= k ? i - 1 : i;
        back[there[i]] = i;
    }
    NodeId table = graph_transpose(g, whole(d, n), there);
    NodeId row = graph_reshape(g, d->position, 1, (int64_t[]){1});
    return graph_transpose(g, graph_op2(g, OP_gather, table, row), back);
}

static NodeId fixed_cut(Decode *d, NodeId n, const Axis *axis);

static NodeId fixed_pointwise(Decode *d, NodeId n, const Axis *axis) {
    const Node *node = graph_node(d->old, n);
    NodeId arg[3];
    for (int i = 0; i < node->num_args; i++) {
        Axis own[MAX_RANK];
        axes_of_operand(graph_node(d->old, node->arg[i])->type, node->type,
                        axis, own);
        arg[i] = fixed_cut(d, node->arg[i], own);
        if (arg[i] == NO_NODE)
            return NO_NODE;
    }
    return add_like(d, n, arg, axis);
}

// A value with these axes that does not follow the input.
static NodeId fixed_cut(Decode *d, NodeId n, const Axis *axis) {
    const Node *node = graph_node(d->old, n);
    int position = -1;
    bool same = true;
    double number;
    for (int i = 0; i < node->type->rank; i++) {
        bool whole_axis = axis_size(&axis[i]) == node->type->dim[i];
        same &= whole_axis;
        if (whole_axis)
            continue;
        if (!axis_is(&axis[i], POSITIONS) || position >= 0)
            return refuse(d, n, "differs between samples");
        position = i;
    }
    if (same)
        return whole(d, n);
    d->g->origin = node->from;
    Type type = cut_type(node->type, axis);
    if (node_number(node, &number))
        return graph_constant(d->g, type, number);
    if (node->op == OP_iota && node_int(node, ATTR_axis, 0) == position &&
        node_int(node, ATTR_from, 0) == 0)
        return graph_broadcast(d->g, d->position, &type);
    if (node->op == OP_iota && node_int(node, ATTR_axis, 0) != position)
        return add_like(d, n, NULL, axis);
    if (op_info[node->op].traits & POINTWISE)
        return fixed_pointwise(d, n, axis);
    return rows_of_position(d, n, position);
}

// ---- masks ----

// The number at an index, if it follows from constants alone.
static bool literal_at(const Decode *d, NodeId n, const int64_t *index,
                       double *number) {
    const Node *node = graph_node(d->old, n);
    double arg[3] = {0};
    if (node_number(node, number))
        return true;
    if (node->op == OP_constant) {
        int64_t flat = 0;
        for (int i = 0; i < node->type->rank; i++)
            flat = flat * node->type->dim[i] + index[i];
        *number = node_attr(node, ATTR_values)->floats[flat];
        return true;
    }
    if (node->op == OP_reshape) {
        int64_t flat = 0, inner[MAX_RANK];
        const Type *own = graph_node(d->old, node->arg[0])->type;
        for (int i = 0; i < node->type->rank; i++)
            flat = flat * node->type->dim[i] + index[i];
        for (int i = own->rank; i-- > 0; flat /= own->dim[i])
            inner[i] = flat % own->dim[i];
        return literal_at(d, node->arg[0], inner, number);
    }
    if (node->op == OP_iota) {
        *number = (double)(index[node_int(node, ATTR_axis, 0)] +
                           node_int(node, ATTR_from, 0));
        return true;
    }
    if (!(op_info[node->op].traits & POINTWISE) || node->op == OP_uniform ||
        node->op == OP_var_finalize)
        return false;
    for (int i = 0; i < node->num_args; i++) {
        const Type *own = graph_node(d->old, node->arg[i])->type;
        int64_t inner[MAX_RANK];
        for (int k = 0; k < own->rank; k++)
            inner[k] =
                own->dim[k] == 1 ? 0 : index[k + node->type->rank - own->rank];
        if (!literal_at(d, node->arg[i], inner, &arg[i]))
            return false;
    }
    *number = scalar_eval(node, arg[0], arg[1], arg[2]);
    return true;
}

// The range of a literal's numbers where the cached position is later than the
// step's; false if it is no literal, or is the same for all positions.
static bool literal_range(const Decode *d, NodeId n, const Axis *axis,
                          double range[2]) {
    const Type *t = graph_node(d->old, n)->type;
    int64_t index[MAX_RANK] = {0};
    int row = -1, key = -1;
    double number;
    bool first = true;
    for (int i = 0; i < t->rank; i++) {
        row = axis_is(&axis[i], POSITIONS) ? i : row;
        key = axis_is(&axis[i], CACHED) ? i : key;
        if (i != row && i != key && t->dim[i] != 1)
            return false;
    }
    if (row < 0 || key < 0)
        return node_number(graph_node(d->old, n), &range[0]) &&
               node_number(graph_node(d->old, n), &range[1]);
    for (index[row] = 0; index[row] < t->dim[row]; index[row]++)
        for (index[key] = index[row] + 1; index[key] < t->dim[key];
             index[key]++, first = false) {
            if (!literal_at(d, n, index, &number))
                return false;
            range[0] = first || number < range[0] ? number : range[0];
            range[1] = first || number > range[1] ? number : range[1];
        }
    return !first;
}

static Later later_of(Decode *d, NodeId n, const Node *user, const Axis *axis) {
    Axis own[MAX_RANK];
    double range[2];
    if (d->value[n].follows)
        return d->value[n].later;
    axes_of_operand(graph_node(d->old, n)->type, user->type, axis, own);
    if (!literal_range(d, n, own, range))
        return ANY;
    return range[0] == 0 && range[1] == 0 ? ZERO
           : range[1] <= LOW              ? LOWERED
                                          : ANY;
}

static Later pointwise_later(Decode *d, const Node *node, const Axis *axis) {
    Later arg[3];
    Axis own[MAX_RANK];
    double range[2];
    for (int i = 0; i < node->num_args; i++)
        arg[i] = later_of(d, node->arg[i], node, axis);
    switch (node->op) {
    case OP_cast:
    case OP_broadcast:
    case OP_stop_gradient:
        return arg[0];
    case OP_add:
        return arg[0] == LOWERED || arg[1] == LOWERED ? LOWERED : ANY;
    case OP_sub:
        axes_of_operand(graph_node(d->old, node->arg[1])->type, node->type,
                        axis, own);
        return arg[0] == LOWERED ||
                       (!d->value[node->arg[1]].follows &&
                        literal_range(d, node->arg[1], own, range) &&
                        range[0] >= -LOW)
                   ? LOWERED
                   : ANY;
    case OP_mul:
        return arg[0] == ZERO || arg[1] == ZERO ? ZERO : ANY;
    case OP_div:
        return arg[0] == ZERO ? ZERO : ANY;
    case OP_select:
        if (d->value[node->arg[0]].follows)
            return arg[1] == arg[2] ? arg[1] : ANY;
        axes_of_operand(graph_node(d->old, node->arg[0])->type, node->type,
                        axis, own);
        if (!literal_range(d, node->arg[0], own, range) || range[0] != range[1])
            return ANY;
        return range[0] != 0 ? arg[1] : arg[2];
    default:
        return ANY;
    }
}

// ---- values that follow the input ----

static const Axis *axes(const Decode *d, NodeId n) {
    return d->value[n].axis;
}

static bool pointwise_axes(Decode *d, NodeId n, Axis *axis) {
    const Node *node = graph_node(d->old, n);
    for (int i = 0; i < node->type->rank; i++) {
        const Axis *found = NULL;
        axis[i] = axis_same(node->type->dim[i]);
        for (int k = 0; k < node->num_args; k++) {
            const Type *t = graph_node(d->old, node->arg[k])->type;
            int own = i - node->type->rank + t->rank;
            if (!d->value[node->arg[k]].follows || own < 0 ||
                t->dim[own] != node->type->dim[i])
                continue;
            const Axis *other = &axes(d, node->arg[k])[own];
            if (found != NULL && !axis_equal(found, other))
                return refuse(d, n, "combines different positions"), false;
            axis[i] = *(found = other);
        }
    }
    return true;
}

static NodeId pointwise(Decode *d, NodeId n, Value *v) {
    const Node *node = graph_node(d->old, n);
    NodeId arg[3];
    if (!pointwise_axes(d, n, v->axis))
        return NO_NODE;
    for (int i = 0; i < node->num_args; i++) {
        Axis own[MAX_RANK];
        axes_of_operand(graph_node(d->old, node->arg[i])->type, node->type,
                        v->axis, own);
        arg[i] = d->value[node->arg[i]].follows
                     ? d->value[node->arg[i]].now
                     : fixed_cut(d, node->arg[i], own);
        if (arg[i] == NO_NODE)
            return NO_NODE;
    }
    v->later = pointwise_later(d, node, v->axis);
    return add_like(d, n, arg, v->axis);
}

// Takes parts from the front of a list until they make `size` elements.
static bool parts_take(Part *part, int count, int *next, int64_t size,
                       Axis *axis) {
    *axis = (Axis){0};
    for (int64_t left = size; left > 1;) {
        while (*next < count && part[*next].size == 1)
            (*next)++;
        if (*next == count || axis->count == MAX_RANK)
            return false;
        Part *own = &part[*next], taken = *own;
        if (left % own->size == 0) {
            (*next)++;
        } else if (own->span == SAME && own->size % left == 0) {
            taken.size = left;
            own->size /= left;
        } else {
            return false;
        }
        left /= taken.size;
        Part *last = axis->count > 0 ? &axis->part[axis->count - 1] : NULL;
        if (last != NULL && last->span == SAME && taken.span == SAME)
            last->size *= taken.size;
        else
            axis->part[axis->count++] = taken;
    }
    if (axis->count == 0)
        *axis = axis_same(1);
    return true;
}

static NodeId reshape(Decode *d, NodeId n, Value *v) {
    const Node *node = graph_node(d->old, n);
    Part part[MAX_RANK * MAX_RANK];
    int count = 0, next = 0;
    for (int i = 0; i < graph_node(d->old, node->arg[0])->type->rank; i++) {
        const Axis *own = &axes(d, node->arg[0])[i];
        for (int k = 0; k < own->count; k++)
            part[count++] = own->part[k];
    }
    for (int i = 0; i < node->type->rank; i++)
        if (!parts_take(part, count, &next, node->type->dim[i], &v->axis[i]))
            return refuse(d, n, "mixes positions");
    v->later = d->value[node->arg[0]].later;
    return add_like(d, n, &d->value[node->arg[0]].now, v->axis);
}

static NodeId transpose(Decode *d, NodeId n, Value *v) {
    const Node *node = graph_node(d->old, n);
    for (int i = 0; i < node->type->rank; i++)
        v->axis[i] = axes(d, node->arg[0])[node_ints(node, ATTR_order, i, i)];
    v->later = d->value[node->arg[0]].later;
    return add_like(d, n, &d->value[node->arg[0]].now, v->axis);
}

// pad and slice, of axes that stay as they are.
static NodeId pad_or_slice(Decode *d, NodeId n, Value *v) {
    const Node *node = graph_node(d->old, n);
    for (int i = 0; i < node->type->rank; i++) {
        bool changes = node_ints(node, ATTR_low, i, 0) != 0 ||
                       node_ints(node, ATTR_high, i, 0) != 0;
        v->axis[i] = axes(d, node->arg[0])[i];
        if (changes && !axis_is(&v->axis[i], SAME))
            return refuse(d, n, "moves positions");
        if (changes)
            v->axis[i] = axis_same(node->type->dim[i]);
    }
    return add_like(d, n, &d->value[node->arg[0]].now, v->axis);
}

// Sums and their kin, and softmax and its kin, over axes that stay as they are
// or over cached positions whose later ones do not count.
static NodeId reduce(Decode *d, NodeId n, Value *v, bool softmax) {
    const Node *node = graph_node(d->old, n);
    const Value *from = &d->value[node->arg[0]];
    const Attr *list = node_attr(node, ATTR_axes);
    int rank = graph_node(d->old, node->arg[0])->type->rank;
    unsigned reduced = list == NULL ? 1u << (rank - 1) : 0;
    for (int i = 0; list != NULL && i < list->count; i++)
        reduced |= 1u << list->ints[i];
    if (node->op == OP_sum || node->op == OP_max)
        v->later = from->later;
    for (int i = 0; i < rank; i++) {
        int to = i - rank + node->type->rank;
        if (to >= 0)
            v->axis[to] =
                softmax || !(reduced >> i & 1) ? from->axis[i] : axis_same(1);
        if (!(reduced >> i & 1) || axis_is(&from->axis[i], SAME))
            continue;
        bool passes = node->op == OP_softmax
                          ? from->later == LOWERED
                          : node->op == OP_sum && from->later == ZERO;
        if (!axis_is(&from->axis[i], CACHED) || !passes)
            return refuse(d, n, "reads later positions");
        v->later = softmax ? ZERO : ANY;
    }
    return add_like(d, n, &from->now, v->axis);
}

// Rows of a table by an index of each position.
static NodeId gather(Decode *d, NodeId n, Value *v) {
    const Node *node = graph_node(d->old, n);
    int rank = graph_node(d->old, node->arg[1])->type->rank;
    if (d->value[node->arg[0]].follows)
        return refuse(d, n, "reads other positions");
    for (int i = 0; i < node->type->rank; i++)
        v->axis[i] =
            i < rank ? axes(d, node->arg[1])[i] : axis_same(node->type->dim[i]);
    return add_like(
        d, n, (NodeId[]){whole(d, node->arg[0]), d->value[node->arg[1]].now},
        v->axis);
}

// The value of all positions, which axis `k` runs over, from a cache that gets
// those of this one.
static NodeId cached(Decode *d, NodeId n, int k) {
    Value *v = &d->value[n];
    Graph *g = d->g;
    if (v->cached != NO_NODE)
        return v->cached_axis == k ? v->cached
                                   : refuse(d, n, "is cached twice");
    Type type = cut_type(graph_node(d->old, n)->type, v->axis), along = type;
    type.dim[k] = along.dim[k] = v->axis[k].part[0].size;
    along.dtype = I32;
    for (int i = 0; i < along.rank; i++)
        along.dim[i] = i == k ? along.dim[i] : 1;
    const char *name =
        arena_format(g->arena, "decode.cache_%d", ++d->num_caches);
    g->origin = graph_node(d->old, n)->from;
    NodeId state = graph_state(g, name, STATE_CACHE, type, 0);
    NodeId here = graph_op2(g, OP_eq, graph_iota(g, along, k), d->position);
    v->cached = graph_op3(g, OP_select, here, v->now, state);
    v->cached_axis = k;
    graph_assign(g, state, v->cached);
    return v->cached;
}

// One operand of a product: its node, and its axes.
static NodeId factor(Decode *d, NodeId n, NodeId arg, bool all, int k,
                     Axis *axis) {
    const Type *t = graph_node(d->old, arg)->type;
    if (!d->value[arg].follows) {
        for (int i = 0; i < t->rank; i++)
            axis[i] = axis_same(t->dim[i]);
        return whole(d, arg);
    }
    memcpy(axis, axes(d, arg), sizeof d->value[arg].axis);
    if (!all || !axis_is(&axis[k], POSITIONS))
        return d->value[arg].now;
    for (int i = 0; i < t->rank; i++)
        if (axis_is(&axis[i], CACHED) || (i != k && axis[i].count > 1))
            return refuse(d, n, "reads other positions");
    axis[k].part[0].span = CACHED;
    return cached(d, arg, k);
}

static NodeId matmul(Decode *d, NodeId n, Value *v) {
    const Node *node = graph_node(d->old, n);
    int rank = node->type->rank, last = rank - 1, rows = rank - 2;
    bool ta = node_int(node, ATTR_ta, 0) != 0;
    bool tb = node_int(node, ATTR_tb, 0) != 0;
    const Value *a = &d->value[node->arg[0]], *b = &d->value[node->arg[1]];
    int ka = ta ? rows : last, kb = tb ? last : rows, nb = tb ? rows : last;
    bool sums_positions = b->follows && axis_is(&b->axis[kb], POSITIONS);
    Axis of[2][MAX_RANK];
    NodeId arg[] = {factor(d, n, node->arg[0], false, 0, of[0]), NO_NODE};
    arg[1] = arg[0] == NO_NODE ? NO_NODE
                               : factor(d, n, node->arg[1], true,
                                        sums_positions ? kb : nb, of[1]);
    if (arg[1] == NO_NODE)
        return NO_NODE;
    bool later = axis_is(&of[0][ka], CACHED) || axis_is(&of[1][kb], CACHED);
    if (later && a->later != ZERO)
        return refuse(d, n, "reads later positions");
    bool adds = axis_is(&of[0][ka], SAME) || axis_is(&of[0][ka], CACHED);
    if (!adds || !axis_equal(&of[0][ka], &of[1][kb]))
        return refuse(d, n, "adds up samples or positions");
    for (int i = 0; i < rows; i++) {
        v->axis[i] = of[0][i];
        if (!axis_equal(&of[0][i], &of[1][i]))
            return refuse(d, n, "combines different positions");
    }
    v->axis[rows] = of[0][ta ? last : rows];
    v->axis[last] = of[1][nb];
    return add_like(d, n, arg, v->axis);
}

static NodeId depends_on_valid(Decode *d) {
    if (d->why == NULL)
        d->why = "the model depends on the number of valid samples, which a "
                 "single position does not have";
    return NO_NODE;
}

static NodeId input(Decode *d, Value *v, NodeId n) {
    const Type *t = graph_node(d->old, n)->type;
    if (strcmp(node_text(graph_node(d->old, n), ATTR_name), "image") != 0)
        return depends_on_valid(d);
    v->axis[0] = (Axis){1, {{SAMPLES, t->dim[0]}}};
    v->axis[1] = (Axis){1, {{POSITIONS, t->dim[1]}}};
    return add_like(d, n, NULL, v->axis);
}

// Scores [N,T,V] of each position.
static NodeId output(Decode *d, NodeId n, Value *v) {
    NodeId arg = graph_node(d->old, n)->arg[0];
    memcpy(v->axis, axes(d, arg), sizeof v->axis);
    return axis_is(&v->axis[0], SAMPLES) && axis_is(&v->axis[1], POSITIONS) &&
                   axis_is(&v->axis[2], SAME)
               ? add_like(d, n, &d->value[arg].now, v->axis)
               : refuse(d, n, "is not of each position");
}

static NodeId follow(Decode *d, NodeId n, Value *v) {
    const Node *node = graph_node(d->old, n);
    switch (node->op) {
    case OP_input:
        return input(d, v, n);
    case OP_reshape:
        return reshape(d, n, v);
    case OP_transpose:
        return transpose(d, n, v);
    case OP_pad:
    case OP_slice:
        return pad_or_slice(d, n, v);
    case OP_sum:
    case OP_max:
    case OP_var:
    case OP_argmax:
        return reduce(d, n, v, false);
    case OP_softmax:
    case OP_log_softmax:
        return reduce(d, n, v, true);
    case OP_gather:
        return gather(d, n, v);
    case OP_matmul:
        return matmul(d, n, v);
    case OP_output:
        return output(d, n, v);
    default:
        return op_info[node->op].traits & POINTWISE ||
                       node->op == OP_stop_gradient
                   ? pointwise(d, n, v)
                   : refuse(d, n, "may read other positions");
    }
}

// ---- the graph ----

static bool has_more_inputs(const Graph *g) {
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_input &&
            strncmp(node_text(&g->node[n], ATTR_name), "input.", 6) == 0)
            return true;
    return false;
}

// The input, if the graph predicts scores of tokens for each token of texts.
static NodeId texts_of(const Graph *g) {
    NodeId image = graph_find(g, "image"), out = graph_find(g, "prediction");
    if (image == NO_NODE || out == NO_NODE || has_more_inputs(g))
        return NO_NODE;
    const Type *from = g->node[image].type, *to = g->node[out].type;
    bool texts = from->dtype == I32 && from->rank == 2 && to->rank == 3 &&
                 to->dim[0] == from->dim[0] && to->dim[1] == from->dim[1];
    return texts ? image : NO_NODE;
}

Graph *decode_graph(const Graph *predict, const char **why) {
    *why = NULL;
    if (texts_of(predict) == NO_NODE)
        return NULL;
    Arena *scratch = arena_new();
    predict = graph_expand_attention(predict, scratch);
    Decode d = {.old = predict,
                .g = graph_like(predict),
                .value = ARENA_ARRAY(scratch, predict->count, Value),
                .whole = graph_map_new(predict, scratch),
                .scratch = scratch};
    d.g->name = "decode";
    d.position = graph_leaf(d.g, OP_input, "position", type_scalar(I32));
    for (NodeId n = 0; n < predict->count && d.why == NULL; n++) {
        const Node *node = &predict->node[n];
        Value *v = &d.value[n];
        *v = (Value){.follows = node->op == OP_input, .cached = NO_NODE};
        for (int i = 0; i < node->num_args; i++)
            v->follows |= d.value[node->arg[i]].follows;
        if (v->follows)
            v->now = follow(&d, n, v);
    }
    *why = d.why;
    arena_free(scratch);
    return d.why == NULL ? d.g : NULL;
}
