// Gradcheck: the gradient of every operation against central differences.
//
// The loss is the sum of each sample's result, element by element weighted with
// numbers drawn for it, so that no symmetry hides a mistake.  autodiff's values
// and the differences are both computed in double by ir/eval.c.  An operation
// of ops.def must have a sample or be excused with a reason.
#include "tests/passes/suites.h"
#include "tests/passes/values.h"

#include <check.h>
#include <math.h>
#include <string.h>

static const double step = 1e-6, absolute = 1e-5, relative = 1e-3;

enum { MAX_OPERANDS = 4 };

// Float operands train; others are inputs.  Their values are between low and
// high, 0 standing for -2 and 2.
typedef struct {
    Op op;
    const char *operand[MAX_OPERANDS];
    const char *attributes;
    const char *type;
    double low, high;
} Sample;

// clang-format off
static const Sample samples[] = {
    {OP_neg,     {"f32[3,5]"}, "", "f32[3,5]", 0, 0},
    {OP_abs,     {"f32[3,5]"}, "", "f32[3,5]", 0, 0},
    {OP_exp,     {"f32[3,5]"}, "", "f32[3,5]", 0, 0},
    {OP_log,     {"f32[3,5]"}, "", "f32[3,5]", 0.5, 3},
    {OP_sqrt,    {"f32[3,5]"}, "", "f32[3,5]", 0.5, 3},
    {OP_rsqrt,   {"f32[3,5]"}, "", "f32[3,5]", 0.5, 3},
    {OP_cos,     {"f32[7]"},   "", "f32[7]", 0, 0},
    {OP_sin,     {"f32[7]"},   "", "f32[7]", 0, 0},
    {OP_tanh,    {"f32[7]"},   "", "f32[7]", 0, 0},
    {OP_cdf,     {"f32[7]"},   "", "f32[7]", 0, 0},
    {OP_pdf,     {"f32[7]"},   "", "f32[7]", 0, 0},
    {OP_sigmoid, {"f32[7]"},   "", "f32[7]", 0, 0},
    {OP_relu,    {"f32[3,5]"}, "", "f32[3,5]", 0, 0},
    {OP_relu,    {"f32[]"},    "", "f32[]", 0, 0},
    {OP_cast,    {"f32[3,5]"}, "", "f16[3,5]", 0, 0},
    {OP_broadcast, {"f32[]"},      "", "f32[3,5]", 0, 0},
    {OP_broadcast, {"f32[5]"},     "", "f32[3,5]", 0, 0},
    {OP_broadcast, {"f32[3,1]"},   "", "f32[2,3,5]", 0, 0},
    {OP_broadcast, {"f32[1,3,1]"}, "", "f32[2,3,5]", 0, 0},

    {OP_add, {"f32[3,5]", "f32[3,5]"}, "", "f32[3,5]", 0, 0},
    {OP_add, {"f32[3,5]", "f32[]"},    "", "f32[3,5]", 0, 0},
    {OP_add, {"f32[3,1]", "f32[1,5]"}, "", "f32[3,5]", 0, 0},
    {OP_sub, {"f32[3,5]", "f32[5]"},   "", "f32[3,5]", 0, 0},
    {OP_sub, {"f32[1]", "f32[2,1]"},   "", "f32[2,1]", 0, 0},
    {OP_mul, {"f32[3,5]", "f32[3,5]"}, "", "f32[3,5]", 0, 0},
    {OP_mul, {"f32[2,3,5]", "f32[3,1]"}, "", "f32[2,3,5]", 0, 0},
    {OP_div, {"f32[3,5]", "f32[3,5]"}, "", "f32[3,5]", 0.5, 3},
    {OP_div, {"f32[]", "f32[3,5]"},    "", "f32[3,5]", 0.5, 3},
    {OP_maximum, {"f32[3,5]", "f32[3,5]"}, "", "f32[3,5]", 0, 0},
    {OP_maximum, {"f32[3,5]", "f32[5]"},   "", "f32[3,5]", 0, 0},
    {OP_minimum, {"f32[3,5]", "f32[3,5]"}, "", "f32[3,5]", 0, 0},
    {OP_minimum, {"f32[3,1]", "f32[5]"},   "", "f32[3,5]", 0, 0},
    {OP_select, {"bool[3,5]", "f32[3,5]", "f32[3,5]"}, "", "f32[3,5]", 0, 0},
    {OP_select, {"bool[3,1]", "f32[5]", "f32[]"}, "", "f32[3,5]", 0, 0},

    {OP_sum, {"f32[2,3,5]"}, "axes = [0,1]",   "f32[5]", 0, 0},
    {OP_sum, {"f32[2,3,5]"}, "axes = [1]",     "f32[2,1,5]", 0, 0},
    {OP_sum, {"f32[2,3,5]"}, "axes = [2]",     "f32[2,3,1]", 0, 0},
    {OP_sum, {"f32[2,3,5]"}, "axes = [0,1,2]", "f32[]", 0, 0},
    {OP_sum, {"f32[1,3,1]"}, "axes = [0,2]",   "f32[3,1]", 0, 0},
    {OP_max, {"f32[2,3,5]"}, "axes = [2]",     "f32[2,3,1]", 0, 0},
    {OP_max, {"f32[2,3,5]"}, "axes = [0,1]",   "f32[5]", 0, 0},
    {OP_max, {"f32[3,1]"},   "axes = [0,1]",   "f32[]", 0, 0},
    {OP_var, {"f32[2,3,5]"}, "axes = [0,1]",   "f32[5]", 0, 0},
    {OP_var, {"f32[2,3,5]"}, "axes = [2]",     "f32[2,3,1]", 0, 0},

    {OP_reshape, {"f32[2,3,5]"}, "", "f32[6,5]", 0, 0},
    {OP_reshape, {"f32[1]"},     "", "f32[]", 0, 0},
    {OP_pad,   {"f32[2,3]"}, "high = [1,0], low = [0,2]", "f32[3,5]", 0, 0},
    {OP_slice, {"f32[3,5]"}, "high = [1,0], low = [0,2]", "f32[2,3]", 0, 0},
    {OP_transpose, {"f32[3,5]"},     "order = [1,0]", "f32[5,3]", 0, 0},
    {OP_transpose, {"f32[2,3,4,5]"}, "order = [2,0,3,1]", "f32[4,2,5,3]", 0, 0},
    {OP_transpose, {"f32[1,4]"},     "order = [1,0]", "f32[4,1]", 0, 0},
    {OP_stack, {"f32[3,2]", "f32[2,4]"}, "", "f32[2,3,4]", 0, 0},
    {OP_stack, {"f32[3,2,2]"},           "", "f32[1,3,4]", 0, 0},
    {OP_gather, {"f32[3,5]", "i32[2,4]"}, "", "f32[2,4,5]", 0, 0},
    {OP_gather, {"f32[2,1]", "i32[4]"},   "", "f32[4,1]", 0, 0},
    {OP_gather, {"f32[3]", "i32[4]"},     "", "f32[4]", 0, 0},

    {OP_max_pool, {"f32[2,4,4,3]"}, "stride = [2,2], window = [2,2]",
     "f32[2,2,2,3]", 0, 0},
    {OP_max_pool, {"f32[1,5,7,2]"},
     "pad = [1,1,0,1], stride = [2,3], window = [3,2]", "f32[1,3,3,2]", 0, 0},
    {OP_max_pool, {"f32[1,5,5,1]"}, "stride = [1,1], window = [3,3]",
     "f32[1,3,3,1]", 0, 0},
    {OP_avg_pool, {"f32[2,4,4,3]"}, "stride = [2,2], window = [2,2]",
     "f32[2,2,2,3]", 0, 0},
    {OP_avg_pool, {"f32[1,5,7,2]"},
     "pad = [1,1,0,1], stride = [2,3], window = [3,2]", "f32[1,3,3,2]", 0, 0},

    {OP_resize, {"f32[2,3,4,2]"}, "mode = \"nearest\", size = [6,8]",
     "f32[2,6,8,2]", 0, 0},
    {OP_resize, {"f32[1,5,4,2]"}, "mode = \"nearest\", size = [2,7]",
     "f32[1,2,7,2]", 0, 0},
    {OP_resize, {"f32[2,3,4,2]"}, "mode = \"bilinear\", size = [6,8]",
     "f32[2,6,8,2]", 0, 0},
    {OP_resize, {"f32[1,5,4,2]"}, "mode = \"bilinear\", size = [2,7]",
     "f32[1,2,7,2]", 0, 0},
    {OP_resize, {"f32[1,1,1,3]"}, "mode = \"bilinear\", size = [3,1]",
     "f32[1,3,1,3]", 0, 0},

    {OP_conv, {"f32[2,4,4,3]", "f32[5,3,3,3]"}, "pad = [1,1,1,1]",
     "f32[2,4,4,5]", 0, 0},
    {OP_conv, {"f32[1,5,7,2]", "f32[3,2,3,2]"},
     "pad = [1,0,0,2], stride = [2,3]", "f32[1,3,3,3]", 0, 0},
    {OP_conv, {"f32[1,7,7,1]", "f32[2,3,2,1]"}, "dilation = [2,3]",
     "f32[1,3,4,2]", 0, 0},
    {OP_conv, {"f32[2,3,3,4]", "f32[6,2,2,2]"}, "groups = 2",
     "f32[2,2,2,6]", 0, 0},
    {OP_conv, {"f32[1,1,1,1]", "f32[1,1,1,1]"}, "", "f32[1,1,1,1]", 0, 0},
    {OP_conv, {"f32[2,5,4,4]", "f32[6,1,1,2]"}, "groups = 2, stride = [2,3]",
     "f32[2,3,2,6]", 0, 0},
    {OP_conv, {"f32[1,4,3,2]", "f32[3,1,1,2]"}, "stride = [1,2]",
     "f32[1,4,2,3]", 0, 0},
    {OP_conv_grad_input, {"f32[2,4,4,5]", "f32[5,3,3,3]"}, "pad = [1,1,1,1]",
     "f32[2,4,4,3]", 0, 0},
    {OP_conv_grad_input, {"f32[1,3,3,4]", "f32[4,2,3,1]"},
     "groups = 2, pad = [1,0,0,2], stride = [2,3]", "f32[1,6,8,2]", 0, 0},
    {OP_conv_grad_input, {"f32[1,3,4,2]", "f32[2,3,2,1]"}, "dilation = [2,3]",
     "f32[1,7,7,1]", 0, 0},
    {OP_matmul, {"f32[2,3]", "f32[3,5]"}, "", "f32[2,5]", 0, 0},
    {OP_matmul, {"f32[3,2]", "f32[3,5]"}, "ta = 1", "f32[2,5]", 0, 0},
    {OP_matmul, {"f32[2,3]", "f32[5,3]"}, "tb = 1", "f32[2,5]", 0, 0},
    {OP_matmul, {"f32[3,2]", "f32[5,3]"}, "ta = 1, tb = 1", "f32[2,5]", 0, 0},
    {OP_matmul, {"f32[2,2,3]", "f32[2,3,4]"}, "", "f32[2,2,4]", 0, 0},
    {OP_matmul, {"f32[2,1,3,2]", "f32[2,1,3,4]"}, "ta = 1", "f32[2,1,2,4]",
     0, 0},
    {OP_matmul, {"f32[2,2,3]", "f32[2,4,3]"}, "tb = 1", "f32[2,2,4]", 0, 0},
    {OP_matmul, {"f32[2,3,1]", "f32[2,1,3]"}, "ta = 1, tb = 1", "f32[2,1,1]",
     0, 0},

    {OP_attention, {"f32[2,3,12]"}, "heads = 2", "f32[2,3,4]", 0, 0},
    {OP_attention, {"f32[1,5,6]"}, "causal = 1, heads = 2, scale = 0.3",
     "f32[1,5,2]", 0, 0},
    {OP_attention, {"f32[2,3,16]"}, "causal = 1, heads = 4, kv_heads = 2",
     "f32[2,3,8]", 0, 0},
    {OP_attention, {"f32[2,5,6]", "i32[]", "i32[]"},
     "dropout = 0.3, heads = 2, stream = 7", "f32[2,5,2]", 0, 0},

    {OP_batch_norm, {"f32[5,3]", "f32[3]", "f32[3]"}, "", "f32[5,3]", 0, 0},
    {OP_batch_norm, {"f32[2,3,2,4]", "f32[4]", "f32[4]"}, "eps = 0.1",
     "f32[2,3,2,4]", 0, 0},
    {OP_batch_norm, {"f32[5,3]", "f32[3]", "f32[3]", "f32[2,2,3]"}, "",
     "f32[2,2,3]", 0, 0},
    {OP_cross_entropy, {"f32[4,3]", "i32[4]"}, "", "f32[4,1]", 0, 0},
    {OP_cross_entropy, {"f32[4,5]", "i32[4]"}, "smoothing = 0.2", "f32[4,1]",
     0, 0},
    {OP_cross_entropy, {"f32[4,3]", "f32[4,3]"}, "", "f32[4,1]", 0, 0},
    {OP_cross_entropy, {"f32[4,5]", "f32[4,5]"}, "smoothing = 0.2",
     "f32[4,1]", 0, 0},
    {OP_log_softmax, {"f32[3,5]"}, "", "f32[3,5]", 0, 0},
    {OP_log_softmax, {"f32[2,3,4]"}, "axis = 2", "f32[2,3,4]", 0, 0},
    {OP_softmax, {"f32[3,5]"}, "", "f32[3,5]", 0, 0},
    {OP_softmax, {"f32[2,3,4]"}, "axis = 2", "f32[2,3,4]", 0, 0},
};

static const struct {
    Op op;
    const char *reason;
} excused[] = {
    {OP_input, "a leaf"}, {OP_param, "a leaf"}, {OP_state, "a leaf"},
    {OP_constant, "a leaf"}, {OP_iota, "a leaf"}, {OP_loss_scale, "a leaf"},
    {OP_workspace, "a leaf"},
    {OP_floor, "constant between jumps"},
    {OP_not, "bool"}, {OP_finite, "bool"}, {OP_lt, "bool"}, {OP_le, "bool"},
    {OP_eq, "bool"}, {OP_and, "bool"}, {OP_or, "bool"},
    {OP_mod, "integers"}, {OP_uniform, "its operands are integers"},
    {OP_var_finalize, "put in behind autodiff"},
    {OP_pack, "put in behind fuse"}, {OP_unpack, "put in behind fuse"},
    {OP_argmax, "an integer"}, {OP_all_finite, "constant where it is 1"},
    {OP_total, "of gradients"},
    {OP_shift, "moves data, behind which nothing trains"},
    {OP_flip, "moves data, behind which nothing trains"},
    {OP_take, "moves data, behind which nothing trains"},
    {OP_eigh, "makes starting values"}, {OP_orthogonal, "makes starting values"},
    {OP_sum_over_shards, "of several shards, in check_shards.c"},
    {OP_stop_gradient, "has none"},
    {OP_gather_grad, "made by autodiff"}, {OP_resize_grad, "made by autodiff"},
    {OP_attention_lse, "made by autodiff"},
    {OP_attention_grad, "made by autodiff"},
    {OP_max_pool_index, "integers"},
    {OP_max_pool_grad, "made by autodiff"},
    {OP_avg_pool_grad, "made by autodiff"},
    {OP_conv_grad_weight, "made by autodiff"},
    {OP_gradient, "an effect"}, {OP_clip, "an effect"},
    {OP_accumulate, "an effect"}, {OP_accumulated, "an effect"},
#define OPTIMIZER(name, ...) {OP_##name, "an effect"},
#include "ir/optimizers.def"
    {OP_assign, "an effect"}, {OP_output, "an effect"},
};
// clang-format on

enum {
    NUM_SAMPLES = sizeof samples / sizeof samples[0],
    NUM_EXCUSED = sizeof excused / sizeof excused[0],
};

static bool is_float(const char *type) {
    return type[0] == 'f';
}

// Adds the operands x0, x1, ... and returns how many there are.
static int add_operands(Text *t, const Sample *s) {
    int i = 0;
    for (; i < MAX_OPERANDS && s->operand[i] != NULL; i++)
        text_add(t, "%%%d = %s {name = \"x%d\"} : %s\n", i,
                 is_float(s->operand[i]) ? "param" : "input", i, s->operand[i]);
    return i;
}

// Adds the node, its operands being the first nodes, as number n.
static void add_node(Text *t, const Sample *s, int n) {
    text_add(t, "%%%d = %s", n, op_info[s->op].name);
    for (int i = 0; i < n; i++)
        text_add(t, "%s %%%d", i > 0 ? "," : "", i);
    if (s->attributes[0] != '\0')
        text_add(t, " {%s}", s->attributes);
    text_add(t, " : %s\n", s->type);
}

// A node f32 of the sample's result, and the loss: sum(result * weight).
static int add_loss(Text *t, const Sample *s, int n) {
    const char *dims = strchr(s->type, '[');
    text_add(t, "%%%d = cast %%%d : f32%s\n", n + 1, n, dims);
    text_add(t, "%%%d = input {name = \"weight\"} : f32%s\n", n + 2, dims);
    text_add(t, "%%%d = mul %%%d, %%%d : f32%s\n", n + 3, n + 1, n + 2, dims);
    text_add(t, "%%%d = sum %%%d {axes = [", n + 4, n + 3);
    int rank = dims[1] == ']' ? 0 : 1;
    for (const char *c = dims; *c != '\0'; c++)
        rank += *c == ',';
    for (int i = 0; i < rank; i++)
        text_add(t, "%s%d", i > 0 ? "," : "", i);
    text_add(t, "]} : f32[]\n");
    text_add(t, "%%%d = output %%%d {name = \"loss\"} : f32[]\n", n + 5, n + 4);
    return n + 6;
}

static void add_training(Text *t, const Sample *s, int n) {
    text_add(t, "%%%d = constant {values = [0.0]} : f32[]\n", n);
    int rate = n++;
    for (int i = 0; i < MAX_OPERANDS && s->operand[i] != NULL; i++)
        if (is_float(s->operand[i]))
            text_add(t, "%%%d = sgd %%%d, %%%d, %%%d, %%%d : %s\n", n++, i,
                     rate, rate, rate, s->operand[i]);
}

static Graph *sample_graph(Arena *a, const Sample *s) {
    Text t = text_new(a);
    text_add(&t, "graph train {\n");
    int n = add_operands(&t, s);
    add_node(&t, s, n);
    add_training(&t, s, add_loss(&t, s, n));
    text_add(&t, "}\n");
    return run_pass(graph_from(a, text_string(&t)), "autodiff", F32);
}

static double loss_at(const Graph *g, double **leaf) {
    Arena *a = arena_new();
    double loss = *value_named(g, graph_eval(g, a, leaf, false), "loss");
    arena_free(a);
    return loss;
}

static double difference(const Graph *g, double **leaf, double *x) {
    double at = *x;
    *x = at + step;
    double right = loss_at(g, leaf);
    *x = at - step;
    double left = loss_at(g, leaf);
    *x = at;
    return (right - left) / (2 * step);
}

// gradient is a node gradient(param, value).
static void check_gradient(const Graph *g, double **leaf, double *const *value,
                           NodeId gradient) {
    NodeId param = g->node[gradient].arg[0];
    for (int64_t i = 0; i < type_count(g->node[param].type); i++) {
        double want = difference(g, leaf, &leaf[param][i]);
        double got = value[gradient][i];
        ck_assert_msg(fabs(got - want) <= absolute + relative * fabs(want),
                      "gradient of %s[%lld] is %.9g, differences give %.9g",
                      node_text(&g->node[param], ATTR_name), (long long)i, got,
                      want);
    }
}

static int check_gradients(const Graph *g, double low, double high) {
    Arena *a = arena_new();
    double **leaf = leaf_values(g, a, 1, low, high);
    double **value = graph_eval(g, a, leaf, false);
    int count = 0;
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_gradient) {
            check_gradient(g, leaf, value, n);
            count++;
        }
    arena_free(a);
    return count;
}

static int count_floats(const Sample *s) {
    int count = 0;
    for (int i = 0; i < MAX_OPERANDS && s->operand[i] != NULL; i++)
        count += is_float(s->operand[i]);
    return count;
}

START_TEST(gradient_agrees_with_differences) {
    const Sample *s = &samples[_i];
    Arena *a = arena_new();
    Graph *g = sample_graph(a, s);
    bool wide = s->low == 0 && s->high == 0;
    int checked = check_gradients(g, wide ? -2 : s->low, wide ? 2 : s->high);
    ck_assert_int_eq(checked, count_floats(s));
    arena_free(a);
}
END_TEST

START_TEST(every_operation_is_checked_or_excused) {
    for (int op = 0; op < NUM_OPS; op++) {
        int times = 0;
        for (int i = 0; i < NUM_SAMPLES && times == 0; i++)
            times += samples[i].op == (Op)op;
        for (int i = 0; i < NUM_EXCUSED; i++)
            times += excused[i].op == (Op)op;
        ck_assert_msg(times == 1, "%s has no sample, or one and an excuse",
                      op_info[op].name);
    }
}
END_TEST

// ---- graphs of many operations ----

static uint32_t draw(uint32_t *state, uint32_t below) {
    *state = *state * UINT32_C(1664525) + UINT32_C(1013904223);
    return (*state >> 16) % below;
}

// One smooth operation on nodes that are there already.
static NodeId grow(Graph *g, uint32_t *state) {
    static const Op unary[] = {OP_neg, OP_tanh, OP_sigmoid, OP_sin, OP_cdf};
    static const Op binary[] = {OP_add, OP_sub, OP_mul};
    NodeId a = draw(state, g->count), b = draw(state, g->count);
    Type both = *g->node[a].type;
    switch (draw(state, 4)) {
    case 0:
        return graph_op1(g, unary[draw(state, 5)], a);
    case 1:
        if (g->node[a].type->rank == 0)
            return a;
        return graph_reduce(g, OP_sum, a, 1,
                            (int64_t[]){draw(state, (uint32_t)both.rank)});
    default:
        if (!type_broadcast(&both, g->node[b].type, &both))
            return a;
        return graph_op2(g, binary[draw(state, 3)], a, b);
    }
}

// sgd nodes and the loss, the sum of tanh of all nodes, which keeps it small.
static void finish(Graph *g, int num_params) {
    NodeId count = g->count;
    NodeId loss = graph_constant(g, type_scalar(F32), 0), rate = loss;
    for (NodeId n = 0; n < count; n++) {
        static const int64_t axes[] = {0, 1, 2, 3, 4, 5, 6, 7};
        NodeId part = graph_op1(g, OP_tanh, n);
        part = graph_reduce(g, OP_sum, part, g->node[n].type->rank, axes);
        loss = graph_op2(g, OP_add, loss, part);
    }
    Attr name = attr_text(ATTR_name, "loss");
    graph_add(g, (Node){.op = OP_output,
                        .num_args = 1,
                        .num_attrs = 1,
                        .arg = &loss,
                        .attr = &name,
                        .group = -1});
    for (int n = 0; n < num_params; n++)
        graph_add(g, (Node){.op = OP_sgd,
                            .num_args = 4,
                            .arg = (NodeId[]){(NodeId)n, rate, rate, rate},
                            .group = -1});
}

START_TEST(gradient_of_random_graphs_agrees) {
    static const int64_t dims[][2] = {{2, 3}, {1, 3}, {2, 1}};
    Arena *a = arena_new();
    Graph *g = graph_new(a, "train");
    uint32_t state = (uint32_t)_i;
    for (int i = 0; i < 3; i++)
        graph_leaf(g, OP_param, arena_format(a, "p%d", i),
                   type_of(F32, 2, dims[i]));
    for (int i = 0; i < 12; i++)
        grow(g, &state);
    finish(g, 3);
    ck_assert_int_eq(check_gradients(run_pass(g, "autodiff", F32), -1, 1), 3);
    arena_free(a);
}
END_TEST

Suite *gradcheck_suite(void) {
    Suite *s = suite_create("gradcheck");
    TCase *t = tcase_create("gradcheck");
    tcase_add_loop_test(t, gradient_agrees_with_differences, 0, NUM_SAMPLES);
    tcase_add_test(t, every_operation_is_checked_or_excused);
    tcase_add_loop_test(t, gradient_of_random_graphs_agrees, 0, 50);
    suite_add_tcase(s, t);
    return s;
}
