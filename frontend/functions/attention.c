// attention: multi-head self-attention (Vaswani et al., "Attention Is All You
// Need", NeurIPS 2017), with its input and output projections.

#include "frontend/functions/functions.h"

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
    diag_secondary(d, x->at, "this is %s", tensor_text(e, x->node));
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

typedef struct {
    int64_t heads, kv_heads;
    bool causal;
    double dropout;
} Heads;

// softmax(q k' / sqrt(size)) v in each head
static NodeId attend(Expansion *e, const Call *c, NodeId qkv, Heads h) {
    double p = e->training ? h.dropout : 0;
    const char *name = arena_format(e->arena, "%s.share", c->path);
    Attr attr[5];
    int count = 0;
    if (h.causal)
        attr[count++] = attr_int(ATTR_causal, 1);
    if (p > 0)
        attr[count++] = attr_float(ATTR_dropout, p);
    attr[count++] = attr_int(ATTR_heads, h.heads);
    if (h.kv_heads != h.heads)
        attr[count++] = attr_int(ATTR_kv_heads, h.kv_heads);
    if (p > 0)
        attr[count++] = attr_int(ATTR_stream, stream_of(name));
    NodeId arg[3] = {qkv};
    if (p > 0) {
        arg[1] = run_node(e, RUN_SEED);
        arg[2] = batch_node(e);
    }
    return add_checked(e, c,
                       (Node){.op = OP_attention,
                              .num_args = p > 0 ? 3 : 1,
                              .arg = arg,
                              .num_attrs = count,
                              .attr = attr});
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
    Heads h = {a.heads, a.heads, call_flag(c, P_attention_causal),
               call_number(c, P_attention_dropout)};
    NodeId y = qkv == NO_NODE ? NO_NODE : attend(e, c, qkv, h);
    if (y == NO_NODE)
        return value_poison();
    Type square = type_of(F32, 2, (int64_t[]){a.channels, a.channels});
    return value_tensor(
        project(e, &a, y, "out", a.channels, initial_default(square)), c->at);
}

Value lower_dot_product_attention(Expansion *e, const Call *c) {
    int64_t heads = call_count(c, P_dot_product_attention_heads);
    Heads h = {heads,
               call_arg(c, P_dot_product_attention_kv_heads)->kind != VALUE_NONE
                   ? call_count(c, P_dot_product_attention_kv_heads)
                   : heads,
               call_flag(c, P_dot_product_attention_causal),
               call_number(c, P_dot_product_attention_dropout)};
    if (!expect_dropout(e, c, h.dropout))
        return value_poison();
    NodeId qkv = as_float(e, call_node(c, P_dot_product_attention_x));
    NodeId y = attend(e, c, qkv, h);
    return y == NO_NODE ? value_poison() : value_tensor(y, c->at);
}
