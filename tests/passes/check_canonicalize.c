// Canonicalization: layers keep their values, and gradients that are zero are
// not computed.
#include "tests/passes/suites.h"
#include "tests/passes/values.h"

static const char biased[] =
    "graph train {\n"
    "%0 = input {name = \"x\"} : f32[4,6,6,3]\n"
    "%1 = param {name = \"w\"} : f32[8,3,3,3]\n"
    "%2 = param {name = \"b\"} : f32[8]\n"
    "%3 = param {name = \"scale\"} : f32[8]\n"
    "%4 = conv %0, %1 {dilation = [1,1], groups = 1, pad = [1,1,1,1], "
    "stride = [1,1]} : f32[4,6,6,8]\n"
    "%5 = add %2, %4 : f32[4,6,6,8]\n"
    "%6 = batch_norm %5, %3, %3 {eps = 1e-05} : f32[4,6,6,8]\n"
    "%7 = sum %5 {axes = [0,1,2]} : f32[8]\n"
    "%8 = var %5 {axes = [0,1,2]} : f32[8]\n"
    "%9 = output %7 {name = \"sum\"} : f32[8]\n"
    "%10 = output %8 {name = \"var\"} : f32[8]\n"
    "%11 = exp %6 : f32[4,6,6,8]\n"
    "%12 = sum %11 {axes = [0,1,2,3]} : f32[]\n"
    "%13 = output %12 {name = \"loss\"} : f32[]\n"
    "%14 = sgd %1, %12, %12, %12 : f32[8,3,3,3]\n"
    "%15 = sgd %2, %12, %12, %12 : f32[8]\n"
    "}\n";

static const char pooled[] =
    "graph train {\n"
    "%0 = input {name = \"x\"} : f32[2,7,7,3]\n"
    "%1 = param {name = \"b\"} : f32[3]\n"
    "%2 = add %0, %1 : f32[2,7,7,3]\n"
    "%3 = relu %2 : f32[2,7,7,3]\n"
    "%4 = max_pool %3 {stride = [2,2], window = [3,3]} : f32[2,3,3,3]\n"
    "%5 = output %4 {name = \"y\"} : f32[2,3,3,3]\n"
    "%6 = exp %4 : f32[2,3,3,3]\n"
    "%7 = sum %6 {axes = [0,1,2,3]} : f32[]\n"
    "%8 = output %7 {name = \"loss\"} : f32[]\n"
    "%9 = sgd %1, %7, %7, %7 : f32[3]\n"
    "}\n";

// Scales are positive and negative.
static const char normalized[] =
    "graph train {\n"
    "%0 = input {name = \"x\"} : f32[2,7,7,5]\n"
    "%1 = param {name = \"b\"} : f32[7,7,5]\n"
    "%2 = param {name = \"scale\"} : f32[5]\n"
    "%3 = param {name = \"bias\"} : f32[5]\n"
    "%4 = add %0, %1 : f32[2,7,7,5]\n"
    "%5 = batch_norm %4, %2, %3 {eps = 1e-05} : f32[2,7,7,5]\n"
    "%6 = relu %5 : f32[2,7,7,5]\n"
    "%7 = max_pool %6 {pad = [1,1,1,1], stride = [2,2], window = [3,3]} : "
    "f32[2,4,4,5]\n"
    "%8 = output %7 {name = \"y\"} : f32[2,4,4,5]\n"
    "%9 = exp %7 : f32[2,4,4,5]\n"
    "%10 = sum %9 {axes = [0,1,2,3]} : f32[]\n"
    "%11 = output %10 {name = \"loss\"} : f32[]\n"
    "%12 = sgd %1, %10, %10, %10 : f32[7,7,5]\n"
    "%13 = sgd %2, %10, %10, %10 : f32[5]\n"
    "%14 = sgd %3, %10, %10, %10 : f32[5]\n"
    "}\n";

static const char cropped[] =
    "graph train {\n"
    "%0 = input {name = \"x\"} : f32[2,7,9,3]\n"
    "%1 = param {name = \"w\"} : f32[4,3,5,3]\n"
    "%2 = conv %0, %1 {dilation = [1,1], groups = 1, pad = [1,1,2,2], "
    "stride = [1,1]} : f32[2,7,9,4]\n"
    "%3 = max_pool %2 {stride = [2,3], window = [2,2]} : f32[2,3,3,4]\n"
    "%4 = output %3 {name = \"y\"} : f32[2,3,3,4]\n"
    "%5 = exp %3 : f32[2,3,3,4]\n"
    "%6 = sum %5 {axes = [0,1,2,3]} : f32[]\n"
    "%7 = output %6 {name = \"loss\"} : f32[]\n"
    "%8 = sgd %1, %6, %6, %6 : f32[4,3,5,3]\n"
    "}\n";

static const char *const networks[] = {biased, pooled, normalized,
                                       cropped};
enum { NETWORKS = sizeof networks / sizeof *networks };

START_TEST(values_are_kept) {
    Arena *a = arena_new();
    Graph *g = graph_from(a, networks[_i]);
    Graph *after = run_pass(g, "canonicalize", F32);
    ck_assert_uint_ne(after->count, g->count);
    check_same_values(g, after, 1e-9);
    arena_free(a);
}
END_TEST

// The outputs of a graph with the gradients that follow from it.
static Graph *with_gradients(Graph *g) {
    g = run_pass(g, "autodiff", F32);
    for (NodeId n = 0, count = g->count; n < count; n++)
        if (g->node[n].op == OP_gradient) {
            Attr name = attr_text(
                ATTR_name, arena_format(g->arena, "d%s",
                                        node_text(&g->node[g->node[n].arg[0]],
                                                  ATTR_name)));
            graph_add(g, (Node){.op = OP_output,
                                .num_args = 1,
                                .arg = &g->node[n].arg[1],
                                .num_attrs = 1,
                                .attr = &name,
                                .group = -1});
        }
    return g;
}

// Where the largest of a window is below zero, no gradient passes either way.
START_TEST(gradients_are_kept) {
    Arena *a = arena_new();
    Graph *g = graph_from(a, networks[_i]);
    check_same_values(with_gradients(g),
                      with_gradients(run_pass(g, "canonicalize", F32)), 1e-9);
    arena_free(a);
}
END_TEST

START_TEST(dead_bias_has_no_gradient) {
    Arena *a = arena_new();
    Graph *g = graph_from(a, biased);
    Graph *before = run_pass(g, "autodiff", F32);
    Graph *after = run_pass(run_pass(g, "canonicalize", F32), "autodiff", F32);
    ck_assert_int_eq(count_ops(before, OP_gradient), 2);
    ck_assert_int_eq(count_ops(after, OP_gradient), 1);
    arena_free(a);
}
END_TEST

Suite *canonicalize_suite(void) {
    Suite *s = suite_create("canonicalize");
    TCase *t = tcase_create("canonicalize");
    tcase_add_loop_test(t, values_are_kept, 0, NETWORKS);
    tcase_add_loop_test(t, gradients_are_kept, 1, NETWORKS);
    tcase_add_test(t, dead_bias_has_no_gradient);
    suite_add_tcase(s, t);
    return s;
}
