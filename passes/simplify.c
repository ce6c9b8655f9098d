// Simplify: identities and constants.
//
//   requires   The graph is verified.
//   preserves  Every used node keeps its value, up to the identities that
//              docs/numerics.md lists: the sign of zero, a product of powers of
//              two that overflows or underflows, the order of some sums.
//   result     Identities and constants are rewritten.  Unused nodes are left
//              for dce.
//
// A rule answers with an expression of the same type that exists already or is
// smaller, so applying rules to their results ends.  There is no x * 0 = 0
// and no x - x = 0: they would hide a NaN, and a run that diverges must show
// it.  Division becomes multiplication only by powers of two, where both are
// exact.
#include "passes/passes.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

// Constant vectors longer than this are left alone.
enum { FOLD_LIMIT = 4096 };

typedef struct {
    Graph *g;
    Arena *scratch;
    const PassOptions *options;
} Simplify;

// A simpler node of n's type that equals n, or NO_NODE.  The graph does not
// have n yet.
typedef NodeId Rule(Simplify *s, const Node *n);

static NodeId add_simplified(Simplify *s, Node n);

static bool is_op(const Simplify *s, NodeId n, Op op) {
    return graph_node(s->g, n)->op == op;
}

// The only operand of n when n is op, else NO_NODE.
static NodeId inside(const Simplify *s, NodeId n, Op op) {
    return is_op(s, n, op) ? graph_node(s->g, n)->arg[0] : NO_NODE;
}

// Whether all elements of n are the same known number.
static bool known(const Simplify *s, NodeId n, double *value) {
    return node_number(graph_node(s->g, n), value);
}

static bool is_number(const Simplify *s, NodeId n, double value) {
    double found;
    return known(s, n, &found) && found == value;
}

static NodeId op1(Simplify *s, Op op, NodeId a, const Type *type) {
    return add_simplified(
        s,
        (Node){.op = op, .type = type, .num_args = 1, .arg = &a, .group = -1});
}

static NodeId op2(Simplify *s, Op op, NodeId a, NodeId b) {
    NodeId arg[] = {a, b};
    return add_simplified(
        s, (Node){.op = op, .num_args = 2, .arg = arg, .group = -1});
}

// a where a value of the given type was, to which it broadcasts.
static NodeId fit(Simplify *s, NodeId a, const Type *type) {
    if (graph_node(s->g, a)->type->dtype != type->dtype)
        a = op1(s, OP_cast, a, type);
    return type_is(graph_node(s->g, a)->type, type)
               ? a
               : op1(s, OP_broadcast, a, type);
}

// ---- arithmetic ----

// The operand of a commutative node beside one that is `value`.
static NodeId beside(Simplify *s, const Node *n, double value) {
    for (int i = 0; i < 2; i++)
        if (is_number(s, n->arg[i], value))
            return n->arg[1 - i];
    return NO_NODE;
}

static NodeId add_zero(Simplify *s, const Node *n) {
    NodeId a = beside(s, n, 0);
    return a == NO_NODE ? a : fit(s, a, n->type);
}

static NodeId add_negative(Simplify *s, const Node *n) {
    for (int i = 0; i < 2; i++) {
        NodeId a = inside(s, n->arg[i], OP_neg);
        if (a != NO_NODE)
            return op2(s, OP_sub, n->arg[1 - i], a);
    }
    return NO_NODE;
}

static NodeId sub_zero(Simplify *s, const Node *n) {
    return is_number(s, n->arg[1], 0) ? fit(s, n->arg[0], n->type) : NO_NODE;
}

static NodeId sub_negative(Simplify *s, const Node *n) {
    NodeId a = inside(s, n->arg[1], OP_neg);
    return a == NO_NODE ? a : op2(s, OP_add, n->arg[0], a);
}

static NodeId mul_one(Simplify *s, const Node *n) {
    NodeId a = beside(s, n, 1);
    return a == NO_NODE ? a : fit(s, a, n->type);
}

static bool is_power_of_two(double value) {
    int exponent;
    return fabs(frexp(value, &exponent)) == 0.5 && abs(exponent) <= 100;
}

// Whether a factor keeps all its digits in f32.
static bool is_normal(double value) {
    return fabs(value) >= FLT_MIN && fabs(value) <= FLT_MAX;
}

// Two factors become one where one of them changes the exponent only, and
// where the product of both is still a number like them.
static NodeId mul_twice(Simplify *s, const Node *n) {
    double outer, inner;
    for (int i = 0; i < 2 && dtype_float(n->type->dtype); i++) {
        const Node *m = graph_node(s->g, n->arg[1 - i]);
        if (!known(s, n->arg[i], &outer) || m->op != OP_mul)
            continue;
        for (int k = 0; k < 2; k++)
            if (known(s, m->arg[k], &inner) && is_normal(outer * inner) &&
                (is_power_of_two(outer) || is_power_of_two(inner))) {
                NodeId x = m->arg[1 - k];
                Type factor =
                    type_scalar(graph_node(s->g, m->arg[k])->type->dtype);
                return fit(s,
                           op2(s, OP_mul, x,
                               graph_constant(s->g, factor, outer * inner)),
                           n->type);
            }
    }
    return NO_NODE;
}

static NodeId div_one(Simplify *s, const Node *n) {
    return is_number(s, n->arg[1], 1) ? fit(s, n->arg[0], n->type) : NO_NODE;
}

static NodeId div_power(Simplify *s, const Node *n) {
    double value;
    if (!dtype_float(n->type->dtype) || !known(s, n->arg[1], &value) ||
        !is_power_of_two(value))
        return NO_NODE;
    Type divisor = *graph_node(s->g, n->arg[1])->type;
    return op2(s, OP_mul, n->arg[0], graph_constant(s->g, divisor, 1 / value));
}

static NodeId twice_neg(Simplify *s, const Node *n) {
    return inside(s, n->arg[0], OP_neg);
}

static NodeId twice_not(Simplify *s, const Node *n) {
    return inside(s, n->arg[0], OP_not);
}

static NodeId twice_relu(Simplify *s, const Node *n) {
    return is_op(s, n->arg[0], OP_relu) ? n->arg[0] : NO_NODE;
}

// A remainder is below its divisor.
static NodeId lt_remainder(Simplify *s, const Node *n) {
    const Node *mod = graph_node(s->g, n->arg[0]);
    double divisor, most;
    if (mod->op != OP_mod || mod->type->dtype != I32 ||
        !known(s, mod->arg[1], &divisor) || !known(s, n->arg[1], &most) ||
        divisor <= 0 || divisor > most)
        return NO_NODE;
    return graph_constant(s->g, *n->type, 1);
}

static NodeId select_known(Simplify *s, const Node *n) {
    double value;
    if (!known(s, n->arg[0], &value))
        return NO_NODE;
    return fit(s, n->arg[value != 0 ? 1 : 2], n->type);
}

static NodeId select_same(Simplify *s, const Node *n) {
    return n->arg[1] == n->arg[2] ? fit(s, n->arg[1], n->type) : NO_NODE;
}

// ---- types and shapes ----

// Every value of type a is one of type b.
static bool holds(DType b, DType a) {
    switch (a) {
    case BOOL:
        return true;
    case U8:
        return b == I32 || b == F32 || b == F16 || b == BF16 || b == ACT;
    case F16:
    case BF16:
    case ACT:
        return b == F32;
    default:
        return a == b;
    }
}

static NodeId same_type(Simplify *s, const Node *n) {
    return type_is(graph_node(s->g, n->arg[0])->type, n->type) ? n->arg[0]
                                                               : NO_NODE;
}

static NodeId cast_cast(Simplify *s, const Node *n) {
    NodeId a = inside(s, n->arg[0], OP_cast);
    if (a == NO_NODE || !holds(graph_node(s->g, n->arg[0])->type->dtype,
                               graph_node(s->g, a)->type->dtype))
        return NO_NODE;
    return op1(s, OP_cast, a, n->type);
}

// reshape of reshape, broadcast of broadcast.
static NodeId twice_shape(Simplify *s, const Node *n) {
    NodeId a = inside(s, n->arg[0], n->op);
    return a == NO_NODE ? a : op1(s, n->op, a, n->type);
}

// A constant's numbers are in row-major order, in any shape.
static NodeId reshape_known(Simplify *s, const Node *n) {
    Node constant = *graph_node(s->g, n->arg[0]);
    double value;
    if (known(s, n->arg[0], &value))
        return graph_constant(s->g, *n->type, value);
    if (constant.op != OP_constant)
        return NO_NODE;
    constant.type = n->type;
    return graph_add(s->g, constant);
}

// slice drops the padding of pad.
static NodeId slice_pad(Simplify *s, const Node *n) {
    NodeId a = inside(s, n->arg[0], OP_pad);
    if (a == NO_NODE || !type_is(graph_node(s->g, a)->type, n->type))
        return NO_NODE;
    for (int i = 0; i < n->type->rank; i++)
        if (node_ints(n, ATTR_low, i, 0) !=
            node_ints(graph_node(s->g, n->arg[0]), ATTR_low, i, 0))
            return NO_NODE;
    return a;
}

// op of a with one attribute.
static NodeId op1_with(Simplify *s, Op op, NodeId a, Attr attr) {
    return add_simplified(s, (Node){.op = op,
                                    .num_args = 1,
                                    .arg = &a,
                                    .num_attrs = 1,
                                    .attr = &attr,
                                    .group = -1});
}

static NodeId twice_transpose(Simplify *s, const Node *n) {
    NodeId a = inside(s, n->arg[0], OP_transpose);
    int64_t order[MAX_RANK];
    for (int i = 0; a != NO_NODE && i < n->type->rank; i++)
        order[i] = node_ints(graph_node(s->g, n->arg[0]), ATTR_order,
                             (int)node_ints(n, ATTR_order, i, 0), 0);
    return a == NO_NODE ? a
                        : op1_with(s, OP_transpose, a,
                                   attr_ints(ATTR_order, n->type->rank, order));
}

// Whether axes above size 1 of type t, which n transposes, keep their order.
static bool keeps_order(const Node *n, Type t) {
    int64_t last = -1;
    for (int i = 0; i < t.rank; i++) {
        int64_t axis = node_ints(n, ATTR_order, i, 0);
        if (t.dim[i] != 1 && axis < last)
            return false;
        last = t.dim[i] != 1 ? axis : last;
    }
    return true;
}

// Where only axes of size 1 are exchanged, the bytes stay where they are.
static NodeId transpose_none(Simplify *s, const Node *n) {
    return keeps_order(n, *n->type) ? op1(s, OP_reshape, n->arg[0], n->type)
                                    : NO_NODE;
}

// A slice of a transposed tensor, if its elements are in the tensor's order and
// its rows are rows there.
static NodeId slice_transposed(Simplify *s, const Node *n) {
    const Node *turned = graph_node(s->g, n->arg[0]);
    NodeId a = inside(s, n->arg[0], OP_transpose);
    int64_t low[MAX_RANK], high[MAX_RANK];
    int last = n->type->rank - 1;
    if (a == NO_NODE || !keeps_order(turned, *n->type) ||
        node_ints(turned, ATTR_order, last, 0) != last)
        return NO_NODE;
    for (int i = 0; i < n->type->rank; i++) {
        int64_t axis = node_ints(turned, ATTR_order, i, 0);
        low[axis] = node_ints(n, ATTR_low, i, 0);
        high[axis] = node_ints(n, ATTR_high, i, 0);
    }
    Attr attr[] = {attr_ints(ATTR_high, n->type->rank, high),
                   attr_ints(ATTR_low, n->type->rank, low)};
    NodeId part = add_simplified(s, (Node){.op = OP_slice,
                                           .num_args = 1,
                                           .num_attrs = 2,
                                           .arg = &a,
                                           .attr = attr,
                                           .group = -1});
    return op1(s, OP_reshape, part, n->type);
}

// The sum, or the largest, of one element is the element.
static NodeId reduce_one(Simplify *s, const Node *n) {
    Type from = *graph_node(s->g, n->arg[0])->type;
    if (type_count(&from) != type_count(n->type) || type_count(n->type) == 0)
        return NO_NODE;
    NodeId a = n->arg[0];
    if (from.dtype != n->type->dtype)
        a = op1(s, OP_cast, a, n->type);
    return op1(s, OP_reshape, a, n->type);
}

// For a column or full reduction it does not matter how rows are counted.
static NodeId reduce_view(Simplify *s, const Node *n) {
    static const int64_t axes[] = {0, 1, 2, 3, 4, 5, 6, 7};
    NodeId a = inside(s, n->arg[0], OP_reshape);
    int reduced = node_attr(n, ATTR_axes)->count;
    if (a == NO_NODE || reduced == 0)
        return NO_NODE;
    Type view = *graph_node(s->g, n->arg[0])->type,
         from = *graph_node(s->g, a)->type;
    int kept = view.rank - reduced;
    bool rows =
        kept == 1 && node_ints(n, ATTR_axes, reduced - 1, -1) == view.rank - 2;
    if (from.rank <= kept ||
        (kept != 0 &&
         (!rows || from.dim[from.rank - 1] != view.dim[view.rank - 1])))
        return NO_NODE;
    return op1_with(s, n->op, a, attr_ints(ATTR_axes, from.rank - kept, axes));
}

// The gradient of a max_pool puts each number into one pixel of its channel, so
// the sum over the pixels is that of the numbers.
static NodeId sum_unpooled(Simplify *s, const Node *n) {
    NodeId cast = inside(s, n->arg[0], OP_cast);
    const Node *pool = graph_node(s->g, cast == NO_NODE ? n->arg[0] : cast);
    int reduced = node_attr(n, ATTR_axes)->count;
    if (pool->op != OP_max_pool_grad || reduced < 3 ||
        node_ints(n, ATTR_axes, 2, -1) != 2)
        return NO_NODE;
    NodeId dy = pool->arg[1];
    if (cast != NO_NODE) {
        Type t = *graph_node(s->g, dy)->type;
        t.dtype = graph_node(s->g, n->arg[0])->type->dtype;
        dy = op1(s, OP_cast, dy, &t);
    }
    Node sum = *n;
    sum.arg = &dy;
    return add_simplified(s, sum);
}

// ---- any pointwise operation ----

// An operand need not be broadcast where the others have the shape.
static NodeId drop_broadcast(Simplify *s, const Node *n) {
    NodeId arg[3];
    for (int i = 0; i < n->num_args; i++)
        arg[i] = n->arg[i];
    Node m = *n;
    m.arg = arg;
    for (int i = 0; i < n->num_args && n->num_args > 1; i++) {
        NodeId a = inside(s, n->arg[i], OP_broadcast);
        if (a == NO_NODE)
            continue;
        arg[i] = a;
        Type found;
        if (type_infer(s->g, &m, &found) == NULL && type_is(&found, n->type))
            return add_simplified(s, m);
        arg[i] = n->arg[i];
    }
    return NO_NODE;
}

// A constant operand for evaluation: one number broadcasts as well as many.
static NodeId add_constant(Simplify *s, Graph *small, NodeId n) {
    double value;
    if (known(s, n, &value))
        return graph_constant(
            small, type_scalar(graph_node(s->g, n)->type->dtype), value);
    return graph_add(small, *graph_node(s->g, n));
}

static bool can_fold(const Simplify *s, const Node *n) {
    DType dtype = n->type->dtype;
    bool small = (dtype == F32 || dtype == I32 || dtype == BOOL) &&
                 !(op_info[n->op].traits & COLLECTIVE);
    for (int i = 0; i < n->num_args; i++) {
        const Node *a = graph_node(s->g, n->arg[i]);
        small &= a->op == OP_constant &&
                 node_attr(a, ATTR_values)->count <= FOLD_LIMIT;
    }
    return small && type_count(n->type) > 0;
}

static NodeId number_all(Simplify *s, const Type *type, int64_t count,
                         const double *value) {
    int64_t same = 1;
    while (same < count && value[same] == value[0])
        same++;
    if (same == count)
        return graph_constant(s->g, *type, value[0]);
    if (count != type_count(type))
        return NO_NODE;
    Attr attr = attr_floats(ATTR_values, (int)count, value);
    return graph_add(s->g, (Node){.op = OP_constant,
                                  .type = type,
                                  .num_attrs = 1,
                                  .attr = &attr,
                                  .group = -1});
}

// One number, if all operands are.
static NodeId fold_known(Simplify *s, const Node *n) {
    double value[3] = {0};
    for (int i = 0; i < n->num_args; i++)
        if (!known(s, n->arg[i], &value[i]))
            return NO_NODE;
    return graph_constant(s->g, *n->type,
                          scalar_eval(n, value[0], value[1], value[2]));
}

// Constants keep the digits of a double until they are printed.
static NodeId fold(Simplify *s, const Node *n) {
    if (!can_fold(s, n))
        return NO_NODE;
    NodeId one = fold_known(s, n);
    if (one != NO_NODE)
        return one;
    Graph *small = graph_new(s->scratch, "fold");
    small->act = s->g->act;
    NodeId arg[3];
    for (int i = 0; i < n->num_args; i++)
        arg[i] = add_constant(s, small, n->arg[i]);
    Node m = *n;
    m.arg = arg;
    if (n->op == OP_broadcast)
        m.type = small->node[arg[0]].type;
    NodeId result = graph_add(small, m);
    double **leaf = ARENA_ARRAY(s->scratch, small->count, double *);
    double **value = graph_eval(small, s->scratch, leaf, false);
    int64_t count = type_count(small->node[result].type);
    return count > FOLD_LIMIT ? NO_NODE
                              : number_all(s, n->type, count, value[result]);
}

// ---- the table ----

// clang-format off
static const struct {
    Op op;
    Rule *rule;
} rules[] = {
    {OP_add,       add_zero},     {OP_add,       add_negative},
    {OP_sub,       sub_zero},     {OP_sub,       sub_negative},
    {OP_mul,       mul_one},      {OP_mul,       mul_twice},
    {OP_div,       div_one},      {OP_div,       div_power},
    {OP_neg,       twice_neg},    {OP_not,       twice_not},
    {OP_relu,      twice_relu},   {OP_lt,        lt_remainder},
    {OP_select,    select_known}, {OP_select,    select_same},
    {OP_cast,      same_type},    {OP_cast,      cast_cast},
    {OP_broadcast, same_type},    {OP_broadcast, twice_shape},
    {OP_reshape,   same_type},    {OP_reshape,   twice_shape},
    {OP_reshape,   reshape_known},
    {OP_pad,       same_type},    {OP_slice,     same_type},
    {OP_slice,     slice_pad},    {OP_slice,     slice_transposed},
    {OP_transpose, twice_transpose}, {OP_transpose, transpose_none},
    {OP_sum,       reduce_one},   {OP_max,       reduce_one},
    {OP_sum,       reduce_view},  {OP_max,       reduce_view},
    {OP_var,       reduce_view},
    {OP_sum,       sum_unpooled},
};
// clang-format on

static NodeId apply(Simplify *s, const Node *n) {
    NodeId found = NO_NODE;
    if (op_info[n->op].traits & POINTWISE) {
        found = fold(s, n);
        if (found == NO_NODE)
            found = drop_broadcast(s, n);
    }
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (found == NO_NODE && rules[i].op == n->op)
            found = rules[i].rule(s, n);
    return found;
}

// A simpler node than n, or NO_NODE.
static NodeId simpler(Simplify *s, Node n) {
    Type type = {.dtype = F32};
    type_infer(s->g, &n, &type);
    n.type = &type;
    NodeId found = apply(s, &n);
    if (found == NO_NODE || !rewrite_allowed(s->g, s->options))
        return NO_NODE;
    return found;
}

// Adds n, or a simpler node.
static NodeId add_simplified(Simplify *s, Node n) {
    NodeId found = simpler(s, n);
    return found != NO_NODE ? found : graph_add(s->g, n);
}

Graph *pass_simplify(Graph *g, Arena *scratch, const PassOptions *o) {
    Simplify s = {graph_like(g), scratch, o};
    NodeId *now = ARENA_ARRAY(scratch, g->count, NodeId);
    for (NodeId n = 0; n < g->count; n++) {
        s.g->origin = g->node[n].from;
        Node copy = node_mapped(&g->node[n], now, scratch);
        NodeId found = simpler(&s, copy);
        now[n] = found != NO_NODE ? found : graph_move(s.g, copy);
    }
    return s.g;
}
