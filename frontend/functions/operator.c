// Operators: evaluates numbers; tensors and schedules become nodes.

#include "frontend/functions/functions.h"

#include <math.h>
#include <string.h>

static const char *op_text(TokenKind op) {
    return token_name(op);
}

static Value bad_operands(Expansion *e, const Expr *x, Value a, Value b) {
    Diagnostic *d =
        report(e->diags, D_operator, x->op_at, "%s does not apply to %s and %s",
               op_text(x->op), value_described(a), value_described(b));
    diag_secondary(d, x->left->at, "this is %s", value_described(a));
    diag_secondary(d, x->right->at, "this is %s", value_described(b));
    note_initialiser(a, d);
    note_initialiser(b, d);
    if (x->op == TOKEN_PRODUCT &&
        (a.kind == VALUE_NUMBER || b.kind == VALUE_NUMBER))
        diag_note(d, "@ multiplies matrices; use * for a number, and "
                     "parameter([1, C]) for a trained row");
    if (x->op == TOKEN_POWER && a.kind == VALUE_NUMBER)
        diag_note(d, "write exp(x * log(%.9g))", a.number);
    if (a.kind == VALUE_LIST && x->op == TOKEN_PLUS)
        diag_note(d, "a list is joined with a list, as in: list + [x]");
    if (a.kind == VALUE_LIST || b.kind == VALUE_LIST)
        diag_note(d, "tensor(list) makes a tensor; parameter([C]) is a trained "
                     "value for C channels");
    return value_poison();
}

// ---- numbers ----

static Value boolean(bool is, Span at) {
    return (Value){.kind = VALUE_BOOL, .boolean = is, .at = at};
}

// The value of a op b; *known is false if op is not arithmetic.
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

// Scaling keeps epochs and steps; otherwise both operands need the same unit.
static bool combine_units(TokenKind op, Value a, Value b, Unit *unit) {
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
    v.follows_batch = a.follows_batch || b.follows_batch;
    if (!combine_units(op, a, b, &v.unit)) {
        report(e->diags, D_operator, op_at,
               "these two units cannot be combined");
        return value_poison();
    }
    if (!known) {
        bool is = compare(op, a.number, b.number, &known);
        v = boolean(is, at);
    }
    if (!known) {
        report(e->diags, D_operator, op_at, "%s does not apply to numbers",
               op_text(op));
        return value_poison();
    }
    bool fits = v.kind != VALUE_NUMBER || number_fits(v.number);
    return fits ? v : number_checked(e, v.number, at);
}

// ---- scalars of a schedule ----

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

static const char *verb_of(TokenKind op) {
    switch (op) {
    case TOKEN_PLUS:
        return "add";
    case TOKEN_MINUS:
        return "subtract";
    case TOKEN_TIMES:
        return "multiply";
    case TOKEN_DIVIDE:
        return "divide";
    default:
        return "compare";
    }
}

// Comparisons as lt, le and eq: with exchanged operands, or negated.
typedef struct {
    Op op;
    bool exchanged, opposite;
} Comparison;

static bool comparison_of(TokenKind k, Comparison *c) {
    switch (k) {
    case TOKEN_LESS:
        *c = (Comparison){.op = OP_lt};
        return true;
    case TOKEN_MORE:
        *c = (Comparison){.op = OP_lt, .exchanged = true};
        return true;
    case TOKEN_AT_MOST:
        *c = (Comparison){.op = OP_le};
        return true;
    case TOKEN_AT_LEAST:
        *c = (Comparison){.op = OP_le, .exchanged = true};
        return true;
    case TOKEN_EQUAL:
    case TOKEN_DIFFERS:
        *c = (Comparison){.op = OP_eq, .opposite = k == TOKEN_DIFFERS};
        return true;
    default:
        return false;
    }
}

static NodeId apply(Expansion *e, Op op, NodeId a, NodeId b, Span at) {
    NodeId arg[] = {a, b};
    return add_at(e, at, op_info[op].name,
                  (Node){.op = op, .num_args = 2, .arg = arg});
}

// Integers are compared as integers.
static NodeId comparison_operand(Expansion *e, Value v, Value other) {
    bool whole = v.kind == VALUE_TENSOR && other.kind == VALUE_TENSOR &&
                 node_type(e, v.node)->dtype == I32 &&
                 node_type(e, other.node)->dtype == I32;
    return whole ? v.node : operand_node(e, &v);
}

static Value compare_tensors(Expansion *e, const Expr *x, Comparison c, Value a,
                             Value b) {
    NodeId left = comparison_operand(e, a, b),
           right = comparison_operand(e, b, a);
    NodeId is = c.exchanged ? apply(e, c.op, right, left, x->at)
                            : apply(e, c.op, left, right, x->at);
    return value_tensor(c.opposite ? add_unary(e, OP_not, is) : is, x->at);
}

static Value operate_tensors(Expansion *e, const Expr *x, Value a, Value b) {
    Comparison c = {0};
    Op op;
    bool comparison = comparison_of(x->op, &c);
    if (!comparison && !op_of(x->op, &op))
        return bad_operands(e, x, a, b);
    const char *name = comparison ? "compare" : op_info[op].name;
    origin_set(e, x->at, e->path ? path_layer(e, name, false) : NULL);
    if (!expect_broadcast(e, x->op_at, verb_of(x->op), a, b))
        return value_poison();
    if (comparison)
        return compare_tensors(e, x, c, a, b);
    NodeId right = operand_node(e, &b), left = operand_node(e, &a);
    return value_tensor(apply(e, op, left, right, x->at), x->at);
}

static bool is_condition(const Expansion *e, Value v) {
    return v.kind == VALUE_TENSOR && node_type(e, v.node)->dtype == BOOL;
}

// `and` and `or` of the results of comparisons.
static Value combine_conditions(Expansion *e, const Expr *x, Value a, Value b) {
    if (!expect_broadcast(e, x->op_at, "combine", a, b))
        return value_poison();
    Op op = x->op == TOKEN_AND ? OP_and : OP_or;
    return value_tensor(apply(e, op, a.node, b.node, x->at), x->at);
}

static Value bad_power(Expansion *e, const Expr *x, Value b) {
    bool number = b.kind == VALUE_NUMBER;
    Diagnostic *d = report(
        e->diags, D_operator, x->op_at,
        "the power of a tensor or schedule is a whole number from 1 to 64, and "
        "this is %s",
        number ? arena_format(e->arena, "%.9g", b.number) : value_described(b));
    if (number && fabs(b.number) == 0.5)
        diag_note(d, "write %s(x)", b.number > 0 ? "sqrt" : "rsqrt");
    else if (number && b.number < 0 && b.number == floor(b.number))
        diag_note(d, "write 1 / x ^ %.9g", -b.number);
    else
        diag_note(d, "write exp(p * log(x)) for the power p of x above 0");
    return value_poison();
}

// a ^ n for a whole n, by squaring.
static Value power(Expansion *e, const Expr *x, Value a, Value b) {
    if (b.kind != VALUE_NUMBER || b.number != floor(b.number) || b.number < 1 ||
        b.number > 64)
        return bad_power(e, x, b);
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

// The items of one list, then those of another.
static Value join_lists(Expansion *e, const Expr *x, Value a, Value b) {
    enum { WORK_PER_ITEM = 16 };
    int count = a.list.count + b.list.count;
    e->work += WORK_PER_ITEM * (int64_t)count;
    if (!within_limits(e, x->at))
        return value_poison();
    Value *item = ARENA_ARRAY(e->arena, (size_t)count + 1, Value);
    for (int i = 0; i < count; i++)
        item[i] = i < a.list.count ? a.list.item[i]
                                   : b.list.item[i - a.list.count];
    return (Value){.kind = VALUE_LIST, .at = x->at, .list = {item, count}};
}

static Value compare_strings(Expansion *e, const Expr *x, Value a, Value b) {
    if (x->op != TOKEN_EQUAL && x->op != TOKEN_DIFFERS)
        return bad_operands(e, x, a, b);
    bool equal = strcmp(a.text, b.text) == 0;
    return boolean(equal == (x->op == TOKEN_EQUAL), x->at);
}

static Value logic(Expansion *e, const Expr *x, Value a, Value b) {
    if (a.kind == VALUE_STRING && b.kind == VALUE_STRING)
        return compare_strings(e, x, a, b);
    if (a.kind == VALUE_LIST && b.kind == VALUE_LIST && x->op == TOKEN_PLUS)
        return join_lists(e, x, a, b);
    if (a.kind != VALUE_BOOL || b.kind != VALUE_BOOL)
        return bad_operands(e, x, a, b);
    switch (x->op) {
    case TOKEN_AND:
        return boolean(a.boolean && b.boolean, x->at);
    case TOKEN_OR:
        return boolean(a.boolean || b.boolean, x->at);
    case TOKEN_EQUAL:
        return boolean(a.boolean == b.boolean, x->at);
    case TOKEN_DIFFERS:
        return boolean(a.boolean != b.boolean, x->at);
    default:
        return bad_operands(e, x, a, b);
    }
}

Value expand_binary(Expansion *e, const Expr *x, Value a, Value b) {
    if (a.kind == VALUE_POISON || b.kind == VALUE_POISON)
        return value_poison();
    if (x->op == TOKEN_PRODUCT && a.kind == VALUE_TENSOR &&
        b.kind == VALUE_TENSOR)
        return matrix_product(e, x, a, b);
    if ((x->op == TOKEN_AND || x->op == TOKEN_OR) && is_condition(e, a) &&
        is_condition(e, b))
        return combine_conditions(e, x, a, b);
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
    if (x->op == TOKEN_NOT && v.kind == VALUE_BOOL)
        return boolean(!v.boolean, x->at);
    if (x->op == TOKEN_NOT && is_condition(e, v))
        return value_tensor(graph_op1(e->graph, OP_not, v.node), x->at);
    if (x->op == TOKEN_MINUS && v.kind == VALUE_NUMBER) {
        v.number = -v.number;
        v.at = x->at;
        return v;
    }
    if (x->op == TOKEN_MINUS && v.kind == VALUE_TENSOR)
        return value_tensor(graph_op1(e->graph, OP_neg, as_float(e, v.node)),
                            x->at);
    report(e->diags, D_operator, x->at, "%s does not apply to %s",
           op_text(x->op), value_described(v));
    return value_poison();
}
