// Pointwise functions.

#include "frontend/functions/functions.h"

#include <math.h>
#include <string.h>

static NodeId mul_number(Expansion *e, NodeId x, double factor) {
    return add_binary(e, OP_mul, x, number_node(e, factor));
}

static NodeId add_number(Expansion *e, NodeId x, double term) {
    return add_binary(e, OP_add, x, number_node(e, term));
}

// The first argument, named x in all of these functions.
static NodeId argument(Expansion *e, const Call *c) {
    return operand_node(e, &c->arg[0]);
}

static Value result(const Call *c, NodeId y) {
    return value_tensor(y, c->at);
}

// Functions with an operation of the same name.
Value lower_pointwise(Expansion *e, const Call *c) {
    Op op = OP_relu;
    op_find(c->builtin->name, strlen(c->builtin->name), &op);
    return result(c, add_unary(e, op, argument(e, c)));
}

// ---- made of relu and similar ----

// max(x, low); at equality the gradient passes.
static NodeId clamp_min(Expansion *e, NodeId x, double low) {
    NodeId bound = number_node(e, low);
    NodeId below = add_binary(e, OP_lt, x, bound);
    return graph_op3(e->graph, OP_select, below, bound, x);
}

static NodeId clamp_max(Expansion *e, NodeId x, double high) {
    NodeId bound = number_node(e, high);
    NodeId above = add_binary(e, OP_lt, bound, x);
    return graph_op3(e->graph, OP_select, above, bound, x);
}

// No gradient passes at its ends.
Value lower_relu6(Expansion *e, const Call *c) {
    NodeId y = add_unary(e, OP_relu, argument(e, c)), most = number_node(e, 6);
    NodeId above = add_binary(e, OP_le, most, y);
    return result(c, graph_op3(e->graph, OP_select, above, most, y));
}

static NodeId select_positive(Expansion *e, NodeId x, NodeId below) {
    NodeId positive = add_binary(e, OP_lt, number_node(e, 0), x);
    return graph_op3(e->graph, OP_select, positive, x, below);
}

Value lower_leaky_relu(Expansion *e, const Call *c) {
    NodeId x = argument(e, c);
    return result(
        c, select_positive(
               e, x, mul_number(e, x, call_number(c, P_leaky_relu_slope))));
}

// x above 0, else factor (exp(x / width) - 1).  Above 0 the exponential takes
// 0, because its gradient could overflow to NaN.
static NodeId scaled_elu(Expansion *e, NodeId x, double factor, double width) {
    NodeId below = mul_number(e, clamp_max(e, x, 0), 1 / width);
    NodeId curve = add_number(e, add_unary(e, OP_exp, below), -1);
    return select_positive(e, x, mul_number(e, curve, factor));
}

Value lower_elu(Expansion *e, const Call *c) {
    double alpha = call_number(c, P_elu_alpha);
    return result(c, scaled_elu(e, argument(e, c), alpha, 1));
}

Value lower_celu(Expansion *e, const Call *c) {
    double alpha = call_number(c, P_celu_alpha);
    return result(c, scaled_elu(e, argument(e, c), alpha, alpha));
}

// x gate / 6, with the gate x + 3 clamped to 0 .. 6.
Value lower_hard_swish(Expansion *e, const Call *c) {
    NodeId x = argument(e, c);
    NodeId gate = clamp_max(e, clamp_min(e, add_number(e, x, 3), 0), 6);
    return result(c, mul_number(e, add_binary(e, OP_mul, x, gate), 1.0 / 6));
}

// ---- smooth ones ----

static NodeId gelu_exact(Expansion *e, NodeId x) {
    return add_binary(e, OP_mul, x, add_unary(e, OP_cdf, x));
}

// x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), in which (1 + tanh(t)) / 2 is
// sigmoid(2t): less to compute, and accurate where 1 + tanh cancels.
static NodeId gelu_tanh(Expansion *e, NodeId x) {
    double factor = 2 * sqrt(2 / acos(-1));
    NodeId square = add_binary(e, OP_mul, x, x);
    NodeId inner =
        add_number(e, mul_number(e, square, 0.044715 * factor), factor);
    NodeId share = add_unary(e, OP_sigmoid, add_binary(e, OP_mul, x, inner));
    return add_binary(e, OP_mul, x, share);
}

Value lower_gelu(Expansion *e, const Call *c) {
    bool tanh = strcmp(call_arg(c, P_gelu_approximate)->text, "tanh") == 0;
    NodeId x = argument(e, c);
    return result(c, tanh ? gelu_tanh(e, x) : gelu_exact(e, x));
}

Value lower_silu(Expansion *e, const Call *c) {
    NodeId x = argument(e, c);
    return result(c, add_binary(e, OP_mul, x, add_unary(e, OP_sigmoid, x)));
}

// x tanh(log(1 + exp x)) = x n / (n + 2) with n = exp(x) (exp(x) + 2); from 20
// on, that is x in f32.
Value lower_mish(Expansion *e, const Call *c) {
    NodeId x = argument(e, c);
    NodeId most = add_binary(e, OP_minimum, x, number_node(e, 20));
    NodeId exp = add_unary(e, OP_exp, most);
    NodeId n = add_binary(e, OP_mul, exp, add_number(e, exp, 2));
    NodeId ratio = add_binary(e, OP_div, n, add_number(e, n, 2));
    return result(c, add_binary(e, OP_mul, x, ratio));
}

// ---- arithmetic ----

// -floor(-x)
Value lower_ceil(Expansion *e, const Call *c) {
    NodeId y = add_unary(e, OP_floor, add_unary(e, OP_neg, argument(e, c)));
    return result(c, add_unary(e, OP_neg, y));
}

Value lower_square(Expansion *e, const Call *c) {
    NodeId x = argument(e, c);
    return result(c, add_binary(e, OP_mul, x, x));
}

Value lower_scale(Expansion *e, const Call *c) {
    note_batch_size(e, call_arg(c, P_scale_factor));
    return result(
        c, mul_number(e, argument(e, c), call_number(c, P_scale_factor)));
}

Value lower_clamp(Expansion *e, const Call *c) {
    const Value *low = call_arg(c, P_clamp_low);
    const Value *high = call_arg(c, P_clamp_high);
    NodeId x = argument(e, c);
    if (low->kind == VALUE_NUMBER && high->kind == VALUE_NUMBER &&
        low->number > high->number) {
        report(e->diags, D_out_of_range, c->at,
               "the lower bound of clamp must not be above its upper bound");
        return value_poison();
    }
    if (low->kind == VALUE_NUMBER)
        x = clamp_min(e, x, low->number);
    if (high->kind == VALUE_NUMBER)
        x = clamp_max(e, x, high->number);
    return result(c, x);
}

// ---- of several tensors ----

// maximum and minimum.
Value lower_extremum(Expansion *e, const Call *c) {
    Op op = builtin_id(c->builtin) == B_maximum ? OP_maximum : OP_minimum;
    return result(c, add_broadcast(e, c, op, c->arg[0], c->arg[1]));
}

Value lower_where(Expansion *e, const Call *c) {
    const Value *condition = call_arg(c, P_where_condition);
    Type t = *node_type(e, condition->node);
    if (t.dtype != BOOL) {
        Diagnostic *d = report(e->diags, D_wrong_kind, c->at,
                               "the condition of where is a comparison");
        diag_secondary(d, condition->at, "this is %s",
                       tensor_text(e, condition->node));
        diag_note(d, "as in: where(x > 0, x, 0.1 * x)");
        return value_poison();
    }
    Value a = *call_arg(c, P_where_a), b = *call_arg(c, P_where_b);
    if (!expect_broadcast_call(e, c, *condition, a) ||
        !expect_broadcast_call(e, c, *condition, b) ||
        !expect_broadcast_call(e, c, a, b))
        return value_poison();
    NodeId arg[] = {condition->node, operand_node(e, &a), operand_node(e, &b)};
    return result(
        c,
        add_checked(e, c, (Node){.op = OP_select, .num_args = 3, .arg = arg}));
}
