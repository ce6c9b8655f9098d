// Samples: the batch axes after each kind of operation, and the nodes that mix
// valid samples with padding.
#include "tests/ir/suites.h"

#include <string.h>

// A node of [4, ...] samples: the stride of each axis, 0 if it is no batch
// axis; and whether the node mixes samples.
static const struct {
    const char *node;
    int stride[3];
    bool depends_on_batch;
} cases[] = {
    {"%18 = relu %0 : f32[4,6]", {1, 0}, false},
    {"%18 = add %0, %1 : f32[4,6]", {1, 0}, false},
    {"%18 = add %0, %2 : f32[4,6]", {1, 0}, true},
    {"%18 = add %0, %3 : f32[4,6]", {1, 0}, false},
    {"%18 = add %5, %6 : f32[4,4]", {1, 1}, false},
    {"%18 = transpose %0 {order = [1,0]} : f32[6,4]", {0, 1}, false},
    // Elements of a sample side by side, and back.
    {"%18 = reshape %0 : f32[24]", {6}, false},
    {"%18 = reshape %0 : f32[12,2]", {3, 0}, false},
    {"%18 = reshape %0 : f32[4,3,2]", {1, 0, 0}, false},
    {"%18 = reshape %7 : f32[4,6]", {1, 0}, false},
    {"%18 = reshape %0 : f32[2,12]", {0, 0}, true},
    // Two batches in one.
    {"%18 = pad %0 {high = [4,0], low = [0,0]} : f32[8,6]", {1, 0}, false},
    {"%18 = pad %0 {high = [1,0], low = [0,0]} : f32[5,6]", {0, 0}, true},
    {"%18 = slice %8 {high = [0,0], low = [4,0]} : f32[4,6]", {1, 0}, false},
    {"%18 = slice %8 {high = [0,0], low = [2,0]} : f32[6,6]", {0, 0}, true},
    {"%18 = slice %0 {high = [0,2], low = [0,1]} : f32[4,3]", {1, 0}, false},
    // Reductions, with and without masks.
    {"%18 = sum %0 {axes = [1]} : f32[4,1]", {1, 0}, false},
    {"%18 = sum %0 {axes = [0]} : f32[6]", {0}, true},
    {"%18 = sum %12 {axes = [0]} : f32[6]", {0}, false},
    {"%18 = max %14 {axes = [0]} : f32[6]", {0}, false},
    {"%18 = softmax %0 : f32[4,6]", {1, 0}, false},
    {"%18 = softmax %4 : f32[6,4]", {0, 1}, true},
    // Products.
    {"%18 = matmul %0, %4 : f32[4,4]", {1, 1}, false},
    {"%18 = matmul %4, %0 : f32[6,6]", {0, 0}, true},
    {"%18 = matmul %12, %0 {ta = 1} : f32[6,6]", {0, 0}, true},
    {"%18 = matmul %12, %12 {ta = 1} : f32[6,6]", {0, 0}, false},
    {"%18 = matmul %12, %1 {ta = 1} : f32[6,6]", {0, 0}, false},
    {"%18 = matmul %12, %2 {ta = 1} : f32[6,6]", {0, 0}, true},
    // The next sample, and the next valid one.
    {"%18 = gather %0, %15 : f32[4,6]", {1, 0}, true},
    {"%18 = gather %0, %17 : f32[4,6]", {1, 0}, false},
};

static const char before[] =
    "%0 = input {name = \"image\"} : f32[4,6]\n"
    "%1 = constant {values = [1.0]} : f32[4,6]\n"
    "%2 = param {name = \"w\"} : f32[4,6]\n"
    "%3 = param {name = \"v\"} : f32[6]\n"
    "%4 = transpose %0 {order = [1,0]} : f32[6,4]\n"
    "%5 = sum %0 {axes = [1]} : f32[4,1]\n"
    "%6 = transpose %5 {order = [1,0]} : f32[1,4]\n"
    "%7 = reshape %0 : f32[12,2]\n"
    "%8 = pad %0 {high = [4,0], low = [0,0]} : f32[8,6]\n"
    "%9 = iota {axis = 0} : i32[4,1]\n"
    "%10 = input {name = \"valid\"} : i32[]\n"
    "%11 = lt %9, %10 : bool[4,1]\n"
    "%12 = select %11, %0, %1 : f32[4,6]\n"
    "%13 = cast %11 : f32[4,1]\n"
    "%14 = mul %0, %13 : f32[4,6]\n"
    "%15 = input {name = \"index\"} : i32[4]\n"
    "%16 = iota {axis = 0} : i32[4]\n"
    "%17 = mod %16, %10 : i32[4]\n";

START_TEST(samples_are_followed) {
    Arena *a = arena_new();
    Graph *g = graph_of(a, arena_format(a, "%s%s\n", before, cases[_i].node));
    NodeId n = g->count - 1;
    const Samples *s = &graph_samples(g, g->count, a)[n];
    for (int i = 0; i < g->node[n].type->rank; i++)
        ck_assert_msg(s->stride[i] == cases[_i].stride[i],
                      "%s: axis %d has stride %d, not %d", cases[_i].node, i,
                      s->stride[i], cases[_i].stride[i]);
    ck_assert_msg(s->depends_on_batch == cases[_i].depends_on_batch,
                  "%s: depends on the batch: %d", cases[_i].node,
                  s->depends_on_batch);
    arena_free(a);
}
END_TEST

// Ghost batches: [N/splits, splits, ...] has no axis of samples, and back in
// its shape it has.
START_TEST(parted_samples_come_together_again) {
    Arena *a = arena_new();
    Graph *g = graph_of(a, INPUT(0, "f32[4,6]") "%1 = reshape %0 : f32[2,2,6]\n"
                                                "%2 = relu %1 : f32[2,2,6]\n"
                                                "%3 = reshape %2 : f32[4,6]\n");
    const Samples *s = graph_samples(g, g->count, a);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(s[2].stride[i], 0);
    ck_assert_int_eq(s[3].stride[0], 1);
    arena_free(a);
}
END_TEST

Suite *samples_suite(void) {
    Suite *s = suite_create("samples");
    TCase *t = tcase_create("samples");
    tcase_add_loop_test(t, samples_are_followed, 0,
                        sizeof cases / sizeof cases[0]);
    tcase_add_test(t, parted_samples_come_together_again);
    suite_add_tcase(s, t);
    return s;
}
