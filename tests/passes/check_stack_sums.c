// Stack sums: the gradients of a loop keep their values.
#include "tests/passes/suites.h"
#include "tests/passes/values.h"

#include "passes/plan/group.h"

enum { TERMS = 9 };

static void sum_add(Text *t, int first, const char *type) {
    int node = first + TERMS;
    for (int i = 1; i < TERMS; i++, node++)
        text_add(t, "%%%d = add %%%d, %%%d : %s\n", node,
                 i == 1 ? first : node - 1, first + i, type);
    text_add(t, "%%%d = output %%%d {name = \"y%d\"} : %s\n", node, node - 1,
             first, type);
}

// The sums of a_i' b_i, of the rows of b_i, and of the pads of a_i.  A single
// row is no sum.
static const char *sums(Arena *a, int rows) {
    const char *padded = arena_format(a, "f32[%d,3]", rows * TERMS);
    Text t = text_new(a);
    text_add(&t, "graph train (backward) {\n");
    for (int i = 0; i < 2 * TERMS; i++)
        text_add(&t, "%%%d = input {name = \"x%d\"} : f32[%d,%d]\n", i, i,
                 rows, i < TERMS ? 3 : 5);
    int n = 2 * TERMS;
    for (int i = 0; i < TERMS; i++)
        text_add(&t, "%%%d = matmul %%%d, %%%d {ta = 1} : f32[3,5]\n", n + i, i,
                 TERMS + i);
    sum_add(&t, n, "f32[3,5]");
    n += 2 * TERMS;
    for (int i = 0; i < TERMS; i++)
        text_add(&t, "%%%d = %s %%%d %s : f32[5]\n", n + i,
                 rows == 1 ? "reshape" : "sum", TERMS + i,
                 rows == 1 ? "" : "{axes = [0]}");
    sum_add(&t, n, "f32[5]");
    n += 2 * TERMS;
    for (int i = 0; i < TERMS; i++)
        text_add(&t, "%%%d = pad %%%d {high = [%d,0], low = [%d,0]} : %s\n",
                 n + i, i, rows * (TERMS - 1 - i), rows * i, padded);
    sum_add(&t, n, padded);
    text_add(&t, "}\n");
    return text_string(&t);
}

START_TEST(stacked_sums_keep_their_values) {
    Arena *a = arena_new();
    Graph *g = graph_from(a, sums(a, _i));
    Graph *after = run_pass(g, "stack_sums", F32);
    ck_assert_int_eq(after->rewrites, 3);
    ck_assert_int_eq(count_ops(after, OP_matmul), 1);
    ck_assert_int_eq(count_ops(after, OP_sum), 1);
    ck_assert_int_eq(count_ops(after, OP_pad), 0);
    ck_assert_int_eq(count_ops(after, OP_add), 0);
    check_same_values(g, after, 1e-12);
    arena_free(a);
}
END_TEST

// Kernels read stacked tensors from memory.
START_TEST(stacked_tensors_are_stored_for_a_reason) {
    Arena *a = arena_new();
    Graph *g = run_pass(graph_from(a, sums(a, 3)), "stack_sums", F32);
    g->facts |= UPDATES | PRIMITIVE | TYPED;
    g = run_pass(g, "fuse", F32);
    int count, num_edges, stacked = 0;
    Group *group = graph_groups(g, a, &count);
    Edge *edge = graph_edges(g, a, group, count, &num_edges);
    for (int i = 0; i < num_edges; i++) {
        ck_assert_int_ne(edge[i].why, REASON_none);
        stacked += edge[i].why == REASON_stacked;
    }
    ck_assert_int_gt(stacked, 0);
    arena_free(a);
}
END_TEST

Suite *stack_sums_suite(void) {
    Suite *s = suite_create("stack_sums");
    TCase *t = tcase_create("stack_sums");
    tcase_add_loop_test(t, stacked_sums_keep_their_values, 1, 3);
    tcase_add_test(t, stacked_tensors_are_stored_for_a_reason);
    suite_add_tcase(s, t);
    return s;
}
