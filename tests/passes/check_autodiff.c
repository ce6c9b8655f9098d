// Autodiff: what gets a gradient, and derivatives where they jump.
#include "tests/passes/networks.h"
#include "tests/passes/suites.h"
#include "tests/passes/values.h"

#include <math.h>
#include <string.h>

static NodeId gradient_node(const Graph *g, const char *param) {
    NodeId p = graph_find(g, param);
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_gradient && g->node[n].arg[0] == p)
            return n;
    return NO_NODE;
}

START_TEST(frozen_param_has_no_gradient) {
    Arena *a = arena_new();
    Graph *g = run_pass(graph_from(a, residual_network), "autodiff", F32);
    ck_assert(gradient_node(g, "conv_1.weight") != NO_NODE);
    ck_assert(gradient_node(g, "conv_2.weight") == NO_NODE);
    ck_assert_int_eq(count_ops(g, OP_gradient), 4);
    arena_free(a);
}
END_TEST

START_TEST(nothing_is_computed_before_the_first_trained_layer) {
    Arena *a = arena_new();
    Graph *g = run_pass(graph_from(a, residual_network), "autodiff", F32);
    // One to conv_2's input, none to the image; one to conv_1's weight, none
    // to the frozen one.
    ck_assert_int_eq(count_ops(g, OP_conv_grad_input), 1);
    ck_assert_int_eq(count_ops(g, OP_conv_grad_weight), 1);
    arena_free(a);
}
END_TEST

START_TEST(gradients_carry_the_layer_and_are_marked) {
    Arena *a = arena_new();
    Graph *g = run_pass(graph_from(a, residual_network), "autodiff", F32);
    for (NodeId n = 0; n < g->count; n++) {
        const Node *node = &g->node[n];
        if (node->op == OP_conv_grad_weight) {
            ck_assert_str_eq(node->from.path, "conv_1");
            ck_assert_int_eq(node->from.line, 1);
            ck_assert(node->from.backward);
        }
        if (node->op == OP_conv)
            ck_assert(!node->from.backward);
    }
    arena_free(a);
}
END_TEST

START_TEST(loss_without_trained_params_adds_nothing) {
    Arena *a = arena_new();
    Graph *before = graph_from(a, "graph train {\n"
                                  "%0 = param {name = \"w\"} : f32[2]\n"
                                  "%1 = param {name = \"v\"} : f32[2]\n"
                                  "%2 = sum %0 {axes = [0]} : f32[]\n"
                                  "%3 = output %2 {name = \"loss\"} : f32[]\n"
                                  "%4 = constant {values = [0.0]} : f32[]\n"
                                  "%5 = sgd %1, %4, %4, %4 : f32[2]\n"
                                  "}\n");
    Graph *after = run_pass(before, "autodiff", F32);
    ck_assert_uint_eq(after->count, before->count);
    arena_free(a);
}
END_TEST

// ---- derivatives where they jump ----

static const int64_t four[] = {4};

// A graph with a param x, f32[4].
static Graph *graph_of_x(Arena *a) {
    Graph *g = graph_new(a, "train");
    graph_leaf(g, OP_param, "x", type_of(F32, 1, four));
    return g;
}

// The gradient of y[0] + 2 y[1] + 3 y[2] + 4 y[3] with respect to x.
static const double *gradient_at(Graph *g, NodeId y, double *x) {
    NodeId weight = graph_vector(g, (double[]){1, 2, 3, 4}, 4);
    NodeId zero = graph_constant(g, type_scalar(F32), 0);
    NodeId part = graph_op2(g, OP_mul, y, weight);
    NodeId loss = graph_reduce(g, OP_sum, part, 1, (int64_t[]){0});
    Attr name = attr_text(ATTR_name, "loss");
    graph_add(g, (Node){.op = OP_output,
                        .num_args = 1,
                        .num_attrs = 1,
                        .arg = &loss,
                        .attr = &name,
                        .group = -1});
    graph_add(g, (Node){.op = OP_sgd,
                        .num_args = 4,
                        .arg = (NodeId[]){0, zero, zero, zero},
                        .group = -1});
    g = run_pass(g, "autodiff", F32);
    double **leaf = ARENA_ARRAY(g->arena, g->count, double *);
    leaf[0] = x;
    return graph_eval(g, g->arena, leaf, false)[gradient_node(g, "x")];
}

static void check_four(const double *got, const double *want) {
    for (int i = 0; i < 4; i++)
        ck_assert_double_eq(got[i], want[i]);
}

// op(x), or op(x, other).
static const struct {
    Op op;
    double x[4], other[4], gradient[4];
} jumps[] = {
    {OP_relu, {-1, 0, 1, -0.0}, {0}, {0, 0, 3, 0}},
    {OP_abs, {-1, 0, 1, -0.0}, {0}, {-1, 0, 3, 0}},
    {OP_maximum, {0, 1, 1, 2}, {1, 1, 0, 2}, {0, 1, 3, 2}},
    {OP_minimum, {0, 1, 1, 2}, {1, 1, 0, 2}, {1, 1, 0, 2}},
    // No comparison with NaN holds, so each passes the gradient on.
    {OP_relu, {NAN, 0, 1, NAN}, {0}, {1, 0, 3, 4}},
    {OP_maximum, {NAN, 1, NAN, 2}, {1, NAN, NAN, 2}, {1, 2, 3, 2}},
    {OP_minimum, {NAN, 1, NAN, 2}, {1, NAN, NAN, 2}, {1, 2, 3, 2}},
};

START_TEST(jumps_follow_pytorch) {
    Arena *a = arena_new();
    Graph *g = graph_of_x(a);
    double x[4];
    memcpy(x, jumps[_i].x, sizeof x);
    NodeId y = op_info[jumps[_i].op].arity == 1
                   ? graph_op1(g, jumps[_i].op, 0)
                   : graph_op2(g, jumps[_i].op, 0,
                               graph_vector(g, jumps[_i].other, 4));
    check_four(gradient_at(g, y, x), jumps[_i].gradient);
    arena_free(a);
}
END_TEST

static NodeId broadcast_to_four(Graph *g, NodeId y) {
    return graph_add(g, (Node){.op = OP_broadcast,
                               .type = (Type[]){type_of(F32, 1, four)},
                               .num_args = 1,
                               .arg = &y,
                               .group = -1});
}

// PyTorch's is 0 there, as its sign of NaN is: it would hide what has diverged.
START_TEST(abs_of_nan_passes_its_gradient) {
    Arena *a = arena_new();
    Graph *g = graph_of_x(a);
    double x[] = {NAN, -1, 0, NAN};
    NodeId y = graph_op1(g, OP_abs, 0);
    check_four(gradient_at(g, y, x), (double[]){1, -2, 0, 4});
    arena_free(a);
}
END_TEST

START_TEST(max_shares_a_tie) {
    Arena *a = arena_new();
    Graph *g = graph_of_x(a);
    NodeId y = graph_reduce(g, OP_max, 0, 1, (int64_t[]){0});
    double x[] = {1, 2, 0, 2};
    check_four(gradient_at(g, broadcast_to_four(g, y), x),
               (double[]){0, 5, 0, 5});
    arena_free(a);
}
END_TEST

START_TEST(max_pool_gives_a_tie_to_the_first) {
    Arena *a = arena_new();
    Graph *g = graph_of_x(a);
    static const int64_t two[] = {2, 2}, image[] = {1, 2, 2, 1};
    Attr attr[] = {attr_ints(ATTR_stride, 2, two),
                   attr_ints(ATTR_window, 2, two)};
    NodeId y = graph_reshape(g, 0, 4, image);
    y = graph_add(g, (Node){.op = OP_max_pool,
                            .num_args = 1,
                            .num_attrs = 2,
                            .arg = &y,
                            .attr = attr,
                            .group = -1});
    y = graph_reshape(g, y, 0, NULL);
    double x[] = {1, 2, 0, 2};
    check_four(gradient_at(g, broadcast_to_four(g, y), x),
               (double[]){0, 10, 0, 0});
    arena_free(a);
}
END_TEST

Suite *autodiff_suite(void) {
    Suite *s = suite_create("autodiff");
    TCase *t = tcase_create("autodiff");
    tcase_add_test(t, frozen_param_has_no_gradient);
    tcase_add_test(t, nothing_is_computed_before_the_first_trained_layer);
    tcase_add_test(t, gradients_carry_the_layer_and_are_marked);
    tcase_add_test(t, loss_without_trained_params_adds_nothing);
    tcase_add_test(t, abs_of_nan_passes_its_gradient);
    tcase_add_loop_test(t, jumps_follow_pytorch, 0,
                        sizeof jumps / sizeof jumps[0]);
    tcase_add_test(t, max_shares_a_tie);
    tcase_add_test(t, max_pool_gives_a_tie_to_the_first);
    suite_add_tcase(s, t);
    return s;
}
