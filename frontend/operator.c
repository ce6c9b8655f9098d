// Operators: numbers are computed here, tensors and schedules become nodes.

#include "frontend/expand.h"

#include <math.h>

static const char *op_text(TokenKind op) {
    return token_name(op);
}

static Value bad_operands(Expansion *e, const Expr *x, Value a, Value b) {
    Diagnostic *d = report(e->diags, D_operator, x->op_at,
                           "%s does not apply to %s and %s", op_text(x->op),
                           value_kind_name(a.kind), value_kind_name(b.kind));
    diag_place(d, x->left->at, "this is %s", value_kind_name(a.kind));
    diag_place(d, x->right->at, "this is %s", value_kind_name(b.kind));
    return value_poison();
}

// ---- numbers ----

static Value truth(bool is, Span at) {
    return (Value){.kind = VALUE_TRUTH, .truth = is, .at = at};
}

// The number of a op b; *known is false for what is no arithmetic.
static double arithmetic(TokenKind op, double a, double b, bool *known) {
    *known = true;
    switch (op) {
    case TOKEN_PLUS:
        return a + b;
    case TOKEN_MINUS:
        return a - b;
    case TOKEN_TIMES:
        return a * b;
    case TOKEN_DIVIDE:
        return a / b;
    case TOKEN_POWER:
        return pow(a, b);
    default:
        *known = false;
        return 0;
    }
}

static bool compare(TokenKind op, double a, double b, bool *known) {
    *known = true;
    switch (op) {
    case TOKEN_EQUAL:
        return a == b;
    case TOKEN_DIFFERS:
        return a != b;
    case TOKEN_LESS:
        return a < b;
    case TOKEN_MORE:
        return a > b;
    case TOKEN_AT_MOST:
        return a <= b;
    case TOKEN_AT_LEAST:
        return a >= b;
    default:
        *known = false;
        return false;
    }
}

// Epochs and steps stay what they are when scaled; otherwise both sides must
// carry the same unit.
static bool join_units(TokenKind op, Value a, Value b, Unit *unit) {
    bool plain_a = a.unit == UNIT_NONE, plain_b = b.unit == UNIT_NONE;
    *unit = plain_a ? b.unit : a.unit;
    if (plain_a && plain_b)
        return true;
    if (op == TOKEN_TIMES)
        return plain_a || plain_b;
    if (op == TOKEN_DIVIDE)
        return plain_b;
    return a.unit == b.unit && op != TOKEN_POWER;
}

static Value operate_numbers(Expansion *e, TokenKind op, Value a, Value b,
                             Span at, Span op_at) {
    bool known;
    Value v = value_number(arithmetic(op, a.number, b.number, &known), at);
    if (!join_units(op, a, b, &v.unit)) {
        report(e->diags, D_operator, op_at,
               "the units of these two do not go together");
        return value_poison();
    }
    if (!known) {
        bool is = compare(op, a.number, b.number, &known);
        v = truth(is, at);
    }
    if (!known) {
        report(e->diags, D_operator, op_at, "%s does not apply to numbers",
               op_text(op));
        return value_poison();
    }
    if (v.kind == VALUE_NUMBER && !isfinite(v.number)) {
        report(e->diags, D_range, at, "the result is not a finite number");
        return value_poison();
    }
    return v;
}

// ---- scalars of the run ----

static bool op_of(TokenKind k, Op *op) {
    *op = OP_add;
    switch (k) {
    case TOKEN_PLUS:
        return true;
    case TOKEN_MINUS:
        *op = OP_sub;
        return true;
    case TOKEN_TIMES:
        *op = OP_mul;
        return true;
    case TOKEN_DIVIDE:
        *op = OP_div;
        return true;
    default:
        return false;
    }
}

Value scalar_operate(Expansion *e, TokenKind op, Value a, Value b, Span at) {
    Op node;
    if (a.kind == VALUE_NUMBER && b.kind == VALUE_NUMBER)
        return operate_numbers(e, op, a, b, at, at);
    op_of(op, &node);
    NodeId left = scalar_node(e, a), right = scalar_node(e, b);
    return value_tensor(graph_op2(e->graph, node, left, right), at);
}

// ---- tensors ----

static const char *axis_name(int axis) {
    static const char *const name[] = {"batch sizes", "heights", "widths",
                                       "channels"};
    return name[axis];
}

// " ; stride=2 on line 12 halved one of them", where that explains it.
static const char *stride_note(Expansion *e, Value v, int64_t small,
                               int64_t large) {
    const Expr *by = v.by;
    for (int i = 0; by != NULL && by->kind == EXPR_CALL && i < by->count; i++) {
        const Argument *arg = &by->argument[i];
        if (arg->name == NULL || arg->value->kind != EXPR_NUMBER ||
            *arg->name != 's' || arg->value->number < 2 ||
            small != (int64_t)ceil((double)large / arg->value->number))
            continue;
        int line = source_place(arg->name_at.source, arg->name_at.start).line;
        return arena_format(e->arena, "; %s=%g on line %d %s one of them",
                            arg->name, arg->value->number, line,
                            arg->value->number == 2 ? "halved" : "divided");
    }
    return "";
}

static void note_difference(Expansion *e, Diagnostic *d, Value a, Value b,
                            Type s, Type t) {
    if (s.rank != t.rank) {
        diag_note(d, "one has %d dimensions, the other %d", s.rank, t.rank);
        return;
    }
    for (int i = 0; i < s.rank; i++) {
        if (s.dim[i] == t.dim[i])
            continue;
        int64_t small = s.dim[i] < t.dim[i] ? s.dim[i] : t.dim[i];
        int64_t large = s.dim[i] < t.dim[i] ? t.dim[i] : s.dim[i];
        const char *name = s.rank == 4       ? axis_name(i)
                           : i == s.rank - 1 ? "channels"
                                             : "sizes";
        diag_note(d, "the %s differ: %lld and %lld%s", name,
                  (long long)s.dim[i], (long long)t.dim[i],
                  stride_note(e, s.dim[i] < t.dim[i] ? a : b, small, large));
        return;
    }
}

static const char *verb_of(TokenKind op) {
    switch (op) {
    case TOKEN_PLUS:
        return "add";
    case TOKEN_MINUS:
        return "subtract";
    case TOKEN_TIMES:
        return "multiply";
    default:
        return "divide";
    }
}

static Value report_shapes(Expansion *e, const Expr *x, Value a, Value b) {
    Type s = node_type(e, a.node), t = node_type(e, b.node);
    Diagnostic *d =
        report(e->diags, D_shapes, x->op_at,
               "cannot %s tensors of different shapes", verb_of(x->op));
    diag_place(d, a.at, "this is %s", type_text(e, s));
    diag_label(d, "and this is %s", type_text(e, t));
    note_difference(e, d, a, b, s, t);
    return value_poison();
}

static Value operate_tensors(Expansion *e, const Expr *x, Value a, Value b) {
    Op op;
    if (!op_of(x->op, &op))
        return bad_operands(e, x, a, b);
    origin_set(e, x->at, e->path ? path_layer(e, op_info[op].name, false) : NULL);
    NodeId left =
        a.kind == VALUE_NUMBER ? number_node(e, a.number) : as_float(e, a.node);
    NodeId right =
        b.kind == VALUE_NUMBER ? number_node(e, b.number) : as_float(e, b.node);
    Type joined = type_scalar(F32);
    if (!type_broadcast(node_type(e, left), node_type(e, right), &joined))
        return report_shapes(e, x, a, b);
    if (!type_valid(joined)) {
        report(e->diags, D_size, x->at, "the result is too large");
        return value_poison();
    }
    return value_tensor(graph_op2(e->graph, op, left, right), x->at);
}

// a ^ n for a whole n, by squaring.
static Value power(Expansion *e, const Expr *x, Value a, Value b) {
    if (b.kind != VALUE_NUMBER || b.number != floor(b.number) || b.number < 1 ||
        b.number > 64) {
        report(e->diags, D_operator, x->op_at,
               "a tensor or schedule can be raised to whole powers from 1 to "
               "64 only");
        return value_poison();
    }
    NodeId square = as_float(e, a.node), result = NO_NODE;
    for (int n = (int)b.number; n > 0; n /= 2) {
        if (n % 2)
            result = result == NO_NODE
                         ? square
                         : graph_op2(e->graph, OP_mul, result, square);
        if (n > 1)
            square = graph_op2(e->graph, OP_mul, square, square);
    }
    return value_tensor(result, x->at);
}

static bool is_numeric(Value v) {
    return (v.kind == VALUE_NUMBER && v.unit == UNIT_NONE) ||
           v.kind == VALUE_TENSOR;
}

static Value logic(Expansion *e, const Expr *x, Value a, Value b) {
    if (a.kind != VALUE_TRUTH || b.kind != VALUE_TRUTH)
        return bad_operands(e, x, a, b);
    switch (x->op) {
    case TOKEN_AND:
        return truth(a.truth && b.truth, x->at);
    case TOKEN_OR:
        return truth(a.truth || b.truth, x->at);
    case TOKEN_EQUAL:
        return truth(a.truth == b.truth, x->at);
    case TOKEN_DIFFERS:
        return truth(a.truth != b.truth, x->at);
    default:
        return bad_operands(e, x, a, b);
    }
}

Value expand_binary(Expansion *e, const Expr *x, Value a, Value b) {
    if (a.kind == VALUE_POISON || b.kind == VALUE_POISON)
        return value_poison();
    if (x->op == TOKEN_PRODUCT) {
        report(e->diags, D_not_built, x->op_at, "`@` is not supported yet");
        return value_poison();
    }
    if (a.kind == VALUE_NUMBER && b.kind == VALUE_NUMBER)
        return operate_numbers(e, x->op, a, b, x->at, x->op_at);
    if (!is_numeric(a) || !is_numeric(b))
        return logic(e, x, a, b);
    if (x->op == TOKEN_POWER && a.kind == VALUE_TENSOR)
        return power(e, x, a, b);
    return operate_tensors(e, x, a, b);
}

Value expand_unary(Expansion *e, const Expr *x, Value v) {
    if (v.kind == VALUE_POISON)
        return v;
    if (x->op == TOKEN_NOT && v.kind == VALUE_TRUTH)
        return truth(!v.truth, x->at);
    if (x->op == TOKEN_MINUS && v.kind == VALUE_NUMBER) {
        v.number = -v.number;
        v.at = x->at;
        return v;
    }
    if (x->op == TOKEN_MINUS && v.kind == VALUE_TENSOR)
        return value_tensor(graph_op1(e->graph, OP_neg, as_float(e, v.node)),
                            x->at);
    report(e->diags, D_operator, x->at, "%s does not apply to %s",
           op_text(x->op), value_kind_name(v.kind));
    return value_poison();
}
