// Bit packing: packing keeps every value, and happens.
#include "tests/graphs/graphs.h"
#include "tests/passes/suites.h"
#include "tests/passes/values.h"

#include "passes/plan/group.h"

static const PassOptions options = {.device = "cuda",
                                    .act = F32,
                                    .storage = F32,
                                    .level = 1,
                                    .deep_verify = true};

static Graph *run(Graph *g, const char *pass) {
    return pass_run(g, &options, pass_find(pass));
}

static Graph *fused(Arena *a, int seed) {
    return run(run(random_graph(a, (uint32_t)seed, 20 + seed % 40), "dce"),
               "fuse");
}

START_TEST(values_are_kept) {
    Arena *a = arena_new();
    Graph *before = fused(a, _i), *after = run(before, "bit_packing");
    check_same_values(before, after, 0);
    arena_free(a);
}
END_TEST

// The second time there is nothing left to pack.
START_TEST(packed_once) {
    Arena *a = arena_new();
    Graph *once = run(fused(a, _i), "bit_packing"),
          *twice = run(once, "bit_packing");
    ck_assert_uint_eq(once->count, twice->count);
    arena_free(a);
}
END_TEST

// A relu between two products, whose gradient asks where it is 0: once, also of
// a kernel that has the relu's operand.
static const char between[] =
    "graph train (primitive, typed) {\n"
    "  %0 = input {name = \"x\"} : f32[64,64]\n"
    "  %1 = input {name = \"dy\"} : f32[64,64]\n"
    "  %2 = param {name = \"w\"} : f32[64,64]\n"
    "  %3 = constant {values = [0.0]} : f32[]\n"
    "  %4 = matmul %0, %2 : f32[64,64]\n"
    "  %5 = relu %4 : f32[64,64]\n"
    "  %6 = matmul %5, %2 : f32[64,64]\n"
    "  %7 = add %6, %1 : f32[64,64]\n"
    "  %8 = matmul %7, %2 : f32[64,64]\n"
    "  %9 = le %5, %3 : bool[64,64]\n"
    "  %10 = select %9, %3, %8 : f32[64,64]\n"
    "  %11 = output %10 {name = \"dx\"} : f32[64,64]\n"
    "}\n";

START_TEST(relu_between_products_is_a_bit) {
    Arena *a = arena_new();
    Graph *before = run(graph_from(a, between), "fuse");
    Graph *after = run(before, "bit_packing");
    int count;
    ck_assert_int_eq(count_ops(after, OP_pack), 1);
    ck_assert_int_eq(count_ops(after, OP_unpack), 1);
    check_same_values(before, after, 0);
    Group *group = graph_groups(after, a, &count);
    ck_assert_int_eq(count, 6);
    ck_assert_int_eq((int)group[1].num_outputs, 2);
    arena_free(a);
}
END_TEST

Suite *bit_packing_suite(void) {
    Suite *s = suite_create("bit_packing");
    TCase *t = tcase_create("bit_packing");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, values_are_kept, 0, NUM_GRAPHS);
    tcase_add_loop_test(t, packed_once, 0, NUM_GRAPHS / 4);
    tcase_add_test(t, relu_between_products_is_a_bit);
    suite_add_tcase(s, t);
    return s;
}
