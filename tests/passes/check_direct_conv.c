// Direct: a convolution that is written as products keeps its values, the
// gradients of what follows it among them.
#include "tests/passes/suites.h"
#include "tests/passes/values.h"

static const char whitened[] =
    "graph train (backward, primitive) {\n"
    "%0 = input {name = \"x\"} : f32[2,5,6,2]\n"
    "%1 = param {name = \"w\"} : f32[8,2,3,2]\n"
    "%2 = param {name = \"b\"} : f32[8]\n"
    "%3 = conv %0, %1 {dilation = [2,1], groups = 1, pad = [0,0,0,0], "
    "stride = [1,1]} : f32[2,3,4,8]\n"
    "%4 = add %2, %3 : f32[2,3,4,8]\n"
    "%5 = exp %4 : f32[2,3,4,8]\n"
    "%6 = output %5 {name = \"y\"} : f32[2,3,4,8]\n"
    "%7 = mul %4, %5 : f32[2,3,4,8]\n"
    "%8 = sum %7 {axes = [0,1,2]} : f32[8]\n"
    "%9 = output %8 {name = \"db\"} : f32[8]\n"
    "}\n";

START_TEST(products_are_the_convolution) {
    Arena *a = arena_new();
    Graph *g = graph_from(a, whitened);
    Graph *after = run_pass(g, "direct_conv", F32);
    ck_assert_int_eq(count_ops(after, OP_conv), 0);
    ck_assert_int_eq(after->rewrites, 1);
    check_same_values(g, after, 1e-9);
    arena_free(a);
}
END_TEST

Suite *direct_conv_suite(void) {
    Suite *s = suite_create("direct_conv");
    TCase *t = tcase_create("direct_conv");
    tcase_add_test(t, products_are_the_convolution);
    suite_add_tcase(s, t);
    return s;
}
