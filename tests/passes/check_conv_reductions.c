// Sums: a sum that comes with the gradient of the filters has its value, as
// has that gradient.
#include "tests/passes/suites.h"
#include "tests/passes/values.h"

// Windows that are far apart and reach over the edges of an odd image.
#define WINDOWS                                                                \
    "{dilation = [1,2], groups = 1, pad = [2,1,0,1], stride = [2,1]}"

static const char head[] =
    "graph train (backward, primitive) {\n"
    "%0 = input {name = \"x\"} : f32[2,9,7,8]\n"
    "%1 = param {name = \"w\"} : f32[56,3,3,8]\n"
    "%2 = param {name = \"b\"} : f32[8]\n"
    "%3 = add %0, %2 : f32[2,9,7,8]\n"
    "%4 = exp %3 : f32[2,9,7,8]\n"
    "%5 = conv %4, %1 " WINDOWS " : f32[2,5,4,56]\n"
    "%6 = sin %5 : f32[2,5,4,56]\n"
    "%7 = conv_grad_input %6, %1 " WINDOWS " : f32[2,9,7,8]\n"
    "%8 = conv_grad_weight %6, %4 " WINDOWS " : f32[56,3,3,8]\n";

// The last output, but for its number.
#define FILTERS " = output %8 {name = \"dw\"} : f32[56,3,3,8]\n}\n"

// What depends on dx, and ends in a sum for each channel.
static const char *const tails[] = {
    // dx exp(x)
    "%9 = mul %4, %7 : f32[2,9,7,8]\n"
    "%10 = sum %9 {axes = [0,1,2]} : f32[8]\n"
    "%11 = output %10 {name = \"db\"} : f32[8]\n"
    "%12" FILTERS,
    // dx
    "%9 = sum %7 {axes = [0,1,2]} : f32[8]\n"
    "%10 = output %9 {name = \"db\"} : f32[8]\n"
    "%11" FILTERS,
    // a factor of each channel, in more than one way
    "%9 = mul %2, %7 : f32[2,9,7,8]\n"
    "%10 = mul %7, %3 : f32[2,9,7,8]\n"
    "%11 = constant {values = [0.0]} : f32[]\n"
    "%12 = lt %11, %3 : bool[2,9,7,8]\n"
    "%13 = select %12, %10, %11 : f32[2,9,7,8]\n"
    "%14 = sub %9, %13 : f32[2,9,7,8]\n"
    "%15 = neg %14 : f32[2,9,7,8]\n"
    "%16 = sum %15 {axes = [0,1,2]} : f32[8]\n"
    "%17 = output %16 {name = \"db\"} : f32[8]\n"
    "%18" FILTERS,
};

START_TEST(sums_are_those_of_products) {
    Arena *a = arena_new();
    Graph *g = graph_from(a, arena_format(a, "%s%s", head, tails[_i]));
    Graph *after = run_pass(g, "conv_reductions", F32);
    ck_assert_int_eq(after->rewrites, 1);
    ck_assert_int_eq(count_ops(run_pass(after, "dce", F32), OP_conv_grad_input),
                     0);
    check_same_values(g, after, 1e-9);
    arena_free(a);
}
END_TEST

Suite *conv_reductions_suite(void) {
    Suite *s = suite_create("conv_reductions");
    TCase *t = tcase_create("conv_reductions");
    tcase_add_loop_test(t, sums_are_those_of_products, 0,
                        sizeof tails / sizeof tails[0]);
    suite_add_tcase(s, t);
    return s;
}
