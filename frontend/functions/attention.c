// attention: multi-head self-attention (Vaswani et al., "Attention Is All You
// Need", NeurIPS 2017), with its input and output projections.

#include "frontend/functions/functions.h"

#include <math.h>

typedef struct {
    const Call *call;
    int64_t batch, positions, channels, heads;
} Attention;

static bool expect_heads(Expansion *e, const Call *c, const Value *x) {
    Type t = *node_type(e, x->node);
    int64_t heads = call_count(c, P_attention_heads);
    if (t.rank == 3 && t.dim[2] % heads == 0)
        return true;
    Diagnostic *d =
        t.rank == 3
            ? report(e->diags, D_indivisible_groups, c->at,
                     "%lld channels do not divide into %lld heads",
                     (long long)t.dim[2], (long long)heads)
            : report(e->diags, D_wrong_rank, c->at,
                     "attention needs sequences, [N, positions, channels]");
    diag_place(d, x->at, "this is %s", tensor_text(e, x->node));
    if (t.rank == 4)
        diag_note(d, "reshape([N, %lld, %lld]) makes a sequence of it",
                  (long long)(t.dim[1] * t.dim[2]), (long long)t.dim[3]);
    return false;
}

// x weight' + bias with parameters NAME.weight [rows, channels] and NAME.bias.
static NodeId project(Expansion *e, const Attention *a, NodeId x,
                      const char *name, int64_t rows, Init init) {
    const Call *c = a->call;
    Type type = type_of(F32, 2, (int64_t[]){rows, a->channels});
    if (!initial_argument(e, call_arg(c, P_attention_init), type, &init))
        return NO_NODE;
    const char *weight = arena_format(e->arena, "%s.weight", name);
    NodeId y = rows_product(e, c, x, parameter_new(e, c, weight, type, init));
    if (y == NO_NODE || !call_flag(c, P_attention_bias))
        return y;
    const char *bias = arena_format(e->arena, "%s.bias", name);
    Init zeros = {INIT_CONSTANT, .low = 0};
    return add_binary(
        e, OP_add, y,
        parameter_new(e, c, bias, type_of(F32, 1, type.dim), zeros));
}

// Part i of three of [N, positions, 3 channels], as [N, heads, positions,
// size].
static NodeId split_heads(Expansion *e, const Attention *a, NodeId qkv, int i) {
    int64_t low[] = {0, 0, i * a->channels};
    int64_t high[] = {0, 0, (2 - i) * a->channels};
    NodeId part = graph_slice(e->graph, qkv, low, high);
    int64_t view[] = {a->batch, a->positions, a->heads, a->channels / a->heads};
    return graph_transpose(e->graph, graph_reshape(e->graph, part, 4, view),
                           (int64_t[]){0, 2, 1, 3});
}

static NodeId causal_mask(Expansion *e, const Attention *a, NodeId scores) {
    int64_t shape[] = {a->positions, a->positions};
    NodeId row = graph_iota(e->graph, type_of(I32, 2, shape), 0);
    NodeId column = graph_iota(e->graph, type_of(I32, 2, shape), 1);
    NodeId seen = graph_op2(e->graph, OP_le, column, row);
    return graph_op3(e->graph, OP_select, seen, scores, number_node(e, MASKED));
}

// softmax(q k' / sqrt(size)) v
static NodeId attend(Expansion *e, const Attention *a, NodeId qkv) {
    const Call *c = a->call;
    double size = (double)(a->channels / a->heads);
    NodeId q = split_heads(e, a, qkv, 0), k = split_heads(e, a, qkv, 1);
    Attr transpose = attr_int(ATTR_tb, 1);
    NodeId scores = add_checked(e, c,
                                (Node){.op = OP_matmul,
                                       .num_args = 2,
                                       .arg = (NodeId[]){q, k},
                                       .num_attrs = 1,
                                       .attr = &transpose});
    if (scores == NO_NODE)
        return NO_NODE;
    scores = add_binary(e, OP_mul, scores, number_node(e, 1 / sqrt(size)));
    if (call_flag(c, P_attention_causal))
        scores = causal_mask(e, a, scores);
    NodeId weights =
        dropout_node(e, c, ".share", add_unary(e, OP_softmax, scores),
                     call_number(c, P_attention_dropout));
    return add_binary(e, OP_matmul, weights, split_heads(e, a, qkv, 2));
}

Value lower_attention(Expansion *e, const Call *c) {
    const Value *x = call_arg(c, P_attention_x);
    if (!expect_heads(e, c, x) ||
        !expect_dropout(e, c, call_number(c, P_attention_dropout)))
        return value_poison();
    Type t = *node_type(e, x->node);
    Attention a = {c, t.dim[0], t.dim[1], t.dim[2],
                   call_count(c, P_attention_heads)};
    Type weights = type_of(F32, 2, (int64_t[]){3 * a.channels, a.channels});
    NodeId qkv = project(e, &a, as_float(e, x->node), "qkv", 3 * a.channels,
                         initial_xavier(weights));
    NodeId y = qkv == NO_NODE ? NO_NODE : attend(e, &a, qkv);
    if (y == NO_NODE)
        return value_poison();
    y = graph_transpose(e->graph, y, (int64_t[]){0, 2, 1, 3});
    y = graph_reshape(e->graph, y, 3, t.dim);
    Type square = type_of(F32, 2, (int64_t[]){a.channels, a.channels});
    return value_tensor(
        project(e, &a, y, "out", a.channels, initial_default(square)), c->at);
}
