// Direct products: a matrix product that is written as products and sums keeps
// its values, whichever of its operands is transposed.
#include "tests/passes/suites.h"
#include "tests/passes/values.h"

static const char products[] =
    "graph train (backward, primitive) {\n"
    "%0 = input {name = \"x\"} : f32[5,14]\n"
    "%1 = param {name = \"w\"} : f32[7,14]\n"
    "%2 = input {name = \"dy\"} : f32[5,7]\n"
    "%3 = matmul %0, %1 {tb = 1} : f32[5,7]\n"
    "%4 = output %3 {name = \"y\"} : f32[5,7]\n"
    "%5 = matmul %2, %0 {ta = 1} : f32[7,14]\n"
    "%6 = output %5 {name = \"dw\"} : f32[7,14]\n"
    "%7 = matmul %2, %1 : f32[5,14]\n"
    "%8 = output %7 {name = \"dx\"} : f32[5,14]\n"
    "%9 = matmul %1, %2 {ta = 1, tb = 1} : f32[14,5]\n"
    "%10 = output %9 {name = \"dx'\"} : f32[14,5]\n"
    "}\n";

START_TEST(sums_are_the_products) {
    Arena *a = arena_new();
    Graph *g = graph_from(a, products);
    PassOptions o = {
        .act = F32, .level = 1, .multiprocessors = 132, .deep_verify = true};
    Graph *after = pass_run(g, &o, pass_find("direct_matmul"));
    ck_assert_int_eq(count_ops(after, OP_matmul), 0);
    ck_assert_int_eq(count_ops(after, OP_sum), 1); // of 14 terms
    ck_assert_int_eq(after->rewrites, 4);
    check_same_values(g, after, 1e-9);
    arena_free(a);
}
END_TEST

Suite *direct_matmul_suite(void) {
    Suite *s = suite_create("direct_matmul");
    TCase *t = tcase_create("direct_matmul");
    tcase_add_test(t, sums_are_the_products);
    suite_add_tcase(s, t);
    return s;
}
