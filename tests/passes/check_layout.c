// Layout: padding keeps values and leaves multiples of 8.
#include "tests/passes/networks.h"
#include "tests/passes/suites.h"
#include "tests/passes/values.h"

#include <string.h>

// A contraction of act operands, and its result in f32 as output.
static const struct {
    const char *a, *b, *node, *type;
} cases[] = {
    {"[2,4,4,3]", "[10,3,3,3]", "conv %1, %3 {pad = [1,1,1,1]}", "[2,4,4,10]"},
    {"[2,4,4,8]", "[10,3,3,8]", "conv %1, %3", "[2,2,2,10]"},
    {"[2,5,5,16]", "[8,3,3,16]", "conv %1, %3 {stride = [2,2]}", "[2,2,2,8]"},
    {"[2,4,4,5]", "[5,3,3,3]", "conv_grad_input %1, %3 {pad = [1,1,1,1]}",
     "[2,4,4,3]"},
    {"[2,4,4,5]", "[2,4,4,3]", "conv_grad_weight %1, %3 {pad = [1,1,1,1]}",
     "[5,3,3,3]"},
    {"[4,5]", "[5,10]", "matmul %1, %3", "[4,10]"},
    {"[5,4]", "[5,10]", "matmul %1, %3 {ta = 1}", "[4,10]"},
    {"[4,5]", "[10,5]", "matmul %1, %3 {tb = 1}", "[4,10]"},
    {"[5,4]", "[10,5]", "matmul %1, %3 {ta = 1, tb = 1}", "[4,10]"},
    {"[4,16]", "[16,24]", "matmul %1, %3", "[4,24]"},
    {"[2,3,4,5]", "[2,3,10,5]", "matmul %1, %3 {tb = 1}", "[2,3,4,10]"},
    {"[2,5,4]", "[2,5,10]", "matmul %1, %3 {ta = 1}", "[2,4,10]"},
    {"[3,5,4]", "[3,10,5]", "matmul %1, %3 {ta = 1, tb = 1}", "[3,4,10]"},
};

static Graph *case_graph(Arena *a, int i, const char *dtype) {
    Text t = text_new(a);
    text_add(&t, "graph eval (primitive, typed; act = f16) {\n");
    text_add(&t, "%%0 = input {name = \"a\"} : f32%s\n", cases[i].a);
    text_add(&t, "%%1 = cast %%0 : %s%s\n", dtype, cases[i].a);
    text_add(&t, "%%2 = input {name = \"b\"} : f32%s\n", cases[i].b);
    text_add(&t, "%%3 = cast %%2 : %s%s\n", dtype, cases[i].b);
    text_add(&t, "%%4 = %s : %s%s\n", cases[i].node, dtype, cases[i].type);
    text_add(&t, "%%5 = cast %%4 : f32%s\n", cases[i].type);
    text_add(&t, "%%6 = output %%5 {name = \"y\"} : f32%s\n}\n", cases[i].type);
    return graph_from(a, text_string(&t));
}

static int64_t last_dim(const Graph *g, NodeId n) {
    Type type = *g->node[n].type;
    return type.dim[type.rank - 1];
}

static void check_padded(const Graph *g) {
    for (NodeId n = 0; n < g->count; n++) {
        const Node *node = &g->node[n];
        if (!(op_info[node->op].traits & CONTRACTS))
            continue;
        ck_assert_int_eq(last_dim(g, n) % 8, 0);
        for (int i = 0; i < 2; i++)
            ck_assert_int_eq(last_dim(g, node->arg[i]) % 8, 0);
    }
}

START_TEST(padding_keeps_values) {
    Arena *a = arena_new();
    Graph *before = case_graph(a, _i, "act");
    Graph *after = run_pass(before, "layout", F16);
    check_padded(after);
    check_same_values(before, after, 1e-12);
    arena_free(a);
}
END_TEST

// Contractions one after another: inputs %0 to %2 are cast to %3 to %5; the
// last node is the output.  So many nodes are padded, and so many transposed.
static const struct {
    const char *input[3], *nodes, *type;
    int pads, transposes;
} chains[] = {
    {{"[2,4,4,3]", "[10,3,3,3]", "[5,1,1,10]"},
     "%6 = conv %3, %4 {pad = [1,1,1,1]} : act[2,4,4,10]\n"
     "%7 = conv %6, %5 : act[2,4,4,5]\n",
     "[2,4,4,5]",
     3,
     0},
    {{"[4,5]", "[5,10]", "[10,3]"},
     "%6 = matmul %3, %4 : act[4,10]\n"
     "%7 = matmul %6, %5 : act[4,3]\n",
     "[4,3]",
     3,
     0},
    // Rows are padded, too; the second operand needs them, or only its columns.
    {{"[5,4]", "[5,10]", "[3,4]"},
     "%6 = matmul %3, %4 {ta = 1} : act[4,10]\n"
     "%7 = matmul %6, %5 {ta = 1, tb = 1} : act[10,3]\n",
     "[10,3]",
     3,
     0},
    {{"[5,4]", "[5,10]", "[4,3]"},
     "%6 = matmul %3, %4 {ta = 1} : act[4,10]\n"
     "%7 = matmul %6, %5 {ta = 1} : act[10,3]\n",
     "[10,3]",
     4,
     0},
    {{"[4,5]", "[5,10]", "[1]"},
     "%6 = matmul %3, %4 : act[4,10]\n"
     "%7 = matmul %6, %6 {tb = 1} : act[4,4]\n",
     "[4,4]",
     3,
     0},
    // The weight of a convolution is the gradient of another one's.
    {{"[2,4,4,5]", "[2,4,4,3]", "[1,4,4,3]"},
     "%6 = conv_grad_weight %3, %4 {pad = [1,1,1,1]} : act[5,3,3,3]\n"
     "%7 = conv %5, %6 {pad = [1,1,1,1]} : act[1,4,4,5]\n",
     "[1,4,4,5]",
     3,
     0},
    {{"[2,4,4,5]", "[5,3,3,3]", "[7,1,1,3]"},
     "%6 = conv_grad_input %3, %4 {pad = [1,1,1,1]} : act[2,4,4,3]\n"
     "%7 = conv %6, %5 : act[2,4,4,7]\n",
     "[2,4,4,7]",
     3,
     0},
    {{"[2,3,4,5]", "[2,3,10,5]", "[2,3,10,7]"},
     "%6 = matmul %3, %4 {tb = 1} : act[2,3,4,10]\n"
     "%7 = matmul %6, %5 : act[2,3,4,7]\n",
     "[2,3,4,7]",
     3,
     0},
    {{"[6,5]", "[5,10]", "[10,3]"},
     "%6 = matmul %3, %4 : act[6,10]\n"
     "%7 = reshape %6 : act[2,3,10]\n"
     "%8 = reshape %7 : act[3,2,10]\n"
     "%9 = reshape %8 : act[6,10]\n"
     "%10 = matmul %9, %5 : act[6,3]\n",
     "[6,3]",
     3,
     0},
    // A transposed product for a kernel, for another product, and of two users.
    {{"[5,8]", "[5,10]", "[1]"},
     "%6 = matmul %3, %4 {ta = 1} : act[8,10]\n"
     "%7 = transpose %6 {order = [1,0]} : act[10,8]\n",
     "[10,8]",
     1,
     0},
    {{"[2,4,5]", "[2,10,5]", "[2,4,3]"},
     "%6 = matmul %3, %4 {tb = 1} : act[2,4,10]\n"
     "%7 = transpose %6 {order = [0,2,1]} : act[2,10,4]\n"
     "%8 = matmul %7, %5 : act[2,10,3]\n",
     "[2,10,3]",
     3,
     1},
    {{"[8,5]", "[8,5]", "[1]"},
     "%6 = matmul %3, %4 {tb = 1} : act[8,8]\n"
     "%7 = transpose %6 {order = [1,0]} : act[8,8]\n"
     "%8 = add %6, %7 : act[8,8]\n",
     "[8,8]",
     2,
     1},
    // A slice of channels that are not zero, and a reshape that mixes axes.
    {{"[4,8]", "[8,16]", "[11,3]"},
     "%6 = matmul %3, %4 : act[4,16]\n"
     "%7 = slice %6 {high = [0,5], low = [0,0]} : act[4,11]\n"
     "%8 = matmul %7, %5 : act[4,3]\n",
     "[4,3]",
     2,
     0},
    {{"[4,8]", "[8,10]", "[20,3]"},
     "%6 = matmul %3, %4 : act[4,10]\n"
     "%7 = reshape %6 : act[2,20]\n"
     "%8 = matmul %7, %5 : act[2,3]\n",
     "[2,3]",
     3,
     0},
};

static Graph *chain_graph(Arena *a, int i) {
    Text t = text_new(a);
    int count = 5;
    text_add(&t, "graph eval (primitive, typed; act = f16) {\n");
    for (int k = 0; k < 3; k++)
        text_add(&t, "%%%d = input {name = \"%c\"} : f32%s\n", k, 'a' + k,
                 chains[i].input[k]);
    for (int k = 0; k < 3; k++)
        text_add(&t, "%%%d = cast %%%d : act%s\n", k + 3, k,
                 chains[i].input[k]);
    text_add(&t, "%s", chains[i].nodes);
    for (const char *s = chains[i].nodes; *s != '\0'; s++)
        count += *s == '\n';
    text_add(&t, "%%%d = cast %%%d : f32%s\n", count + 1, count,
             chains[i].type);
    text_add(&t, "%%%d = output %%%d {name = \"y\"} : f32%s\n}\n", count + 2,
             count + 1, chains[i].type);
    return graph_from(a, text_string(&t));
}

START_TEST(chains_keep_values) {
    Arena *a = arena_new();
    Graph *before = chain_graph(a, _i);
    Graph *after = run_pass(before, "layout", F16);
    check_padded(after);
    check_same_values(before, after, 1e-12);
    ck_assert_int_eq(count_ops(after, OP_pad), chains[_i].pads);
    ck_assert_int_eq(count_ops(after, OP_transpose), chains[_i].transposes);
    arena_free(a);
}
END_TEST

START_TEST(what_fits_is_left_alone) {
    Arena *a = arena_new();
    Graph *g = run_pass(case_graph(a, 2, "act"), "layout", F16);
    ck_assert_int_eq(count_ops(g, OP_pad) + count_ops(g, OP_slice), 0);
    arena_free(a);
}
END_TEST

START_TEST(f32_is_left_alone) {
    Arena *a = arena_new();
    Graph *g = run_pass(case_graph(a, 0, "f32"), "layout", F16);
    ck_assert_int_eq(count_ops(g, OP_pad) + count_ops(g, OP_slice), 0);
    arena_free(a);
}
END_TEST

START_TEST(groups_are_left_alone) {
    Arena *a = arena_new();
    Graph *g = graph_from(a, "graph eval (primitive, typed; act = f16) {\n"
                             "%0 = input {name = \"x\"} : act[1,4,4,6]\n"
                             "%1 = input {name = \"w\"} : act[6,3,3,3]\n"
                             "%2 = conv %0, %1 {groups = 2} : act[1,2,2,6]\n"
                             "%3 = output %2 {name = \"y\"} : act[1,2,2,6]\n"
                             "}\n");
    ck_assert_uint_eq(run_pass(g, "layout", F16)->count, g->count);
    arena_free(a);
}
END_TEST

START_TEST(training_step_keeps_its_values) {
    Arena *a = arena_new();
    Graph *g = run_pass(graph_from(a, residual_network), "autodiff", F32);
    g = run_pass(run_pass(g, "optimizer", F32), "expand", F32);
    g = run_pass(g, "precision", F16);
    Graph *after = run_pass(g, "layout", F16);
    check_padded(after);
    check_same_values(g, after, 1e-9);
    arena_free(a);
}
END_TEST

Suite *layout_suite(void) {
    Suite *s = suite_create("layout");
    TCase *t = tcase_create("layout");
    tcase_add_loop_test(t, padding_keeps_values, 0,
                        sizeof cases / sizeof cases[0]);
    tcase_add_loop_test(t, chains_keep_values, 0,
                        sizeof chains / sizeof chains[0]);
    tcase_add_test(t, what_fits_is_left_alone);
    tcase_add_test(t, f32_is_left_alone);
    tcase_add_test(t, groups_are_left_alone);
    tcase_add_test(t, training_step_keeps_its_values);
    suite_add_tcase(s, t);
    return s;
}
