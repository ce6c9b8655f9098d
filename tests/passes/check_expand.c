// Expand: composite operations against what stands for them.
#include "tests/passes/networks.h"
#include "tests/passes/suites.h"
#include "tests/passes/values.h"

static int count_composite(const Graph *g) {
    int count = 0;
    for (NodeId n = 0; n < g->count; n++)
        count += (op_info[g->node[n].op].traits & COMPOSITE) != 0;
    return count;
}

// A graph with one composite node and an output, from the node's operands.
static const char *const bodies[] = {
    "%0 = input {name = \"x\"} : f32[5,3]\n"
    "%1 = input {name = \"scale\"} : f32[3]\n"
    "%2 = input {name = \"bias\"} : f32[3]\n"
    "%3 = batch_norm %0, %1, %2 {eps = 0.01} : f32[5,3]\n"
    "%4 = output %3 {name = \"y\"} : f32[5,3]\n",
    "%0 = input {name = \"x\"} : f32[2,3,4,5]\n"
    "%1 = input {name = \"scale\"} : f32[5]\n"
    "%2 = input {name = \"bias\"} : f32[5]\n"
    "%3 = batch_norm %0, %1, %2 : f32[2,3,4,5]\n"
    "%4 = output %3 {name = \"y\"} : f32[2,3,4,5]\n",
    "%0 = input {name = \"x\"} : f32[4,3]\n"
    "%1 = input {name = \"label\"} : i32[4]\n"
    "%2 = cross_entropy %0, %1 : f32[4,1]\n"
    "%3 = output %2 {name = \"y\"} : f32[4,1]\n",
    "%0 = input {name = \"x\"} : f32[4,7]\n"
    "%1 = input {name = \"label\"} : i32[4]\n"
    "%2 = cross_entropy %0, %1 {smoothing = 0.2} : f32[4,1]\n"
    "%3 = output %2 {name = \"y\"} : f32[4,1]\n",
    "%0 = input {name = \"x\"} : f32[2,3,4]\n"
    "%1 = softmax %0 : f32[2,3,4]\n"
    "%2 = output %1 {name = \"y\"} : f32[2,3,4]\n",
    "%0 = input {name = \"x\"} : f32[2,3,4]\n"
    "%1 = log_softmax %0 : f32[2,3,4]\n"
    "%2 = output %1 {name = \"y\"} : f32[2,3,4]\n",
    "%0 = input {name = \"x\"} : f32[2,3,4]\n"
    "%1 = stop_gradient %0 : f32[2,3,4]\n"
    "%2 = output %1 {name = \"y\"} : f32[2,3,4]\n",
    "%0 = input {name = \"x\"} : f32[4,7]\n"
    "%1 = input {name = \"share\"} : f32[4,7]\n"
    "%2 = cross_entropy %0, %1 : f32[4,1]\n"
    "%3 = output %2 {name = \"y\"} : f32[4,1]\n",
    "%0 = input {name = \"x\"} : f32[4,7]\n"
    "%1 = input {name = \"share\"} : f32[4,7]\n"
    "%2 = cross_entropy %0, %1 {smoothing = 0.2} : f32[4,1]\n"
    "%3 = output %2 {name = \"y\"} : f32[4,1]\n",
    "%0 = input {name = \"x\"} : f32[2,3,4,5]\n"
    "%1 = resize %0 {mode = \"nearest\", size = [7,2]} : f32[2,7,2,5]\n"
    "%2 = output %1 {name = \"y\"} : f32[2,7,2,5]\n",
    "%0 = input {name = \"x\"} : f32[2,3,4,5]\n"
    "%1 = resize %0 {mode = \"bilinear\", size = [7,2]} : f32[2,7,2,5]\n"
    "%2 = output %1 {name = \"y\"} : f32[2,7,2,5]\n",
    "%0 = input {name = \"x\"} : f32[1,1,5,1]\n"
    "%1 = resize %0 {mode = \"bilinear\", size = [1,6]} : f32[1,1,6,1]\n"
    "%2 = output %1 {name = \"y\"} : f32[1,1,6,1]\n",
};

START_TEST(values_are_kept) {
    Arena *a = arena_new();
    const char *text = arena_format(a, "graph eval {\n%s}\n", bodies[_i]);
    Graph *before = graph_from(a, text);
    Graph *after = run_pass(before, "expand", F32);
    ck_assert_int_eq(count_composite(before), 1);
    ck_assert_int_eq(count_composite(after), 0);
    check_same_values(before, after, 1e-12);
    arena_free(a);
}
END_TEST

START_TEST(large_logits_do_not_overflow) {
    Arena *a = arena_new();
    const char *text = arena_format(a, "graph eval {\n%s}\n", bodies[2]);
    Graph *g = run_pass(graph_from(a, text), "expand", F32);
    double **leaf = leaf_values(g, a, 0, 1e4, 2e4);
    const double *loss = value_named(g, graph_eval(g, a, leaf, true), "y");
    for (int i = 0; i < 4; i++)
        ck_assert(loss[i] >= 0 && loss[i] < 2e4);
    arena_free(a);
}
END_TEST

START_TEST(every_composite_operation_is_tested) {
    Arena *a = arena_new();
    bool tested[NUM_OPS] = {0};
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        const char *text = arena_format(a, "graph eval {\n%s}\n", bodies[i]);
        Graph *g = graph_from(a, text);
        for (NodeId n = 0; n < g->count; n++)
            tested[g->node[n].op] = true;
    }
    for (int op = 0; op < NUM_OPS; op++)
        ck_assert_msg(tested[op] || !(op_info[op].traits & COMPOSITE),
                      "%s is not tested", op_info[op].name);
    arena_free(a);
}
END_TEST

START_TEST(backward_shares_the_forward_nodes) {
    Arena *a = arena_new();
    Graph *g = run_pass(graph_from(a, residual_network), "autodiff", F32);
    g = run_pass(g, "expand", F32);
    ck_assert_int_eq(count_ops(g, OP_rsqrt), 1);
    ck_assert_int_eq(count_ops(g, OP_var), 1);
    ck_assert_int_eq(count_ops(g, OP_exp), 1);
    arena_free(a);
}
END_TEST

Suite *expand_suite(void) {
    Suite *s = suite_create("expand");
    TCase *t = tcase_create("expand");
    tcase_add_loop_test(t, values_are_kept, 0,
                        sizeof bodies / sizeof bodies[0]);
    tcase_add_test(t, large_logits_do_not_overflow);
    tcase_add_test(t, every_composite_operation_is_tested);
    tcase_add_test(t, backward_shares_the_forward_nodes);
    suite_add_tcase(s, t);
    return s;
}
