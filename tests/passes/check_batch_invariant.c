// Batch-invariant values: fold_batch_norm and prepare keep the outputs of an
// evaluation.
#include "tests/passes/suites.h"
#include "tests/passes/values.h"

#include <string.h>

// Two convolutions with batch_norm, the second without a bias of its own.
static const char layers[] =
    "graph eval {\n"
    "%0 = input {name = \"x\"} : f32[4,6,6,3]\n"
    "%1 = param {name = \"w\"} : f32[8,3,3,3]\n"
    "%2 = param {name = \"b\"} : f32[8]\n"
    "%3 = state {init = 0.0, kind = \"statistic\", name = \"mean\"} : f32[8]\n"
    "%4 = state {init = 1.0, kind = \"statistic\", name = \"var\"} : f32[8]\n"
    "%5 = param {name = \"scale\"} : f32[8]\n"
    "%6 = param {name = \"bias\"} : f32[8]\n"
    "%7 = conv %0, %1 {dilation = [1,1], groups = 1, pad = [1,1,1,1], "
    "stride = [1,1]} : f32[4,6,6,8]\n"
    "%8 = add %7, %2 : f32[4,6,6,8]\n"
    "%9 = sub %8, %3 : f32[4,6,6,8]\n"
    "%10 = exp %4 : f32[8]\n"
    "%11 = rsqrt %10 : f32[8]\n"
    "%12 = mul %5, %11 : f32[8]\n"
    "%13 = mul %9, %12 : f32[4,6,6,8]\n"
    "%14 = add %13, %6 : f32[4,6,6,8]\n"
    "%15 = relu %14 : f32[4,6,6,8]\n"
    "%16 = param {name = \"w2\"} : f32[8,3,3,8]\n"
    "%17 = conv %15, %16 {dilation = [1,1], groups = 1, pad = [1,1,1,1], "
    "stride = [2,2]} : f32[4,3,3,8]\n"
    "%18 = sub %17, %3 : f32[4,3,3,8]\n"
    "%19 = mul %12, %18 : f32[4,3,3,8]\n"
    "%20 = add %6, %19 : f32[4,3,3,8]\n"
    "%21 = output %20 {name = \"y\"} : f32[4,3,3,8]\n"
    "}\n";

static Graph *folded(Arena *a, DType act) {
    Graph *g = run_pass(graph_from(a, layers), "fold_batch_norm", act);
    return run_pass(g, "dce", act);
}

START_TEST(values_are_kept) {
    Arena *a = arena_new();
    Graph *after = folded(a, F32);
    ck_assert_int_eq(count_ops(after, OP_sub), 3); // for channels, not pixels
    check_same_values(graph_from(a, layers), after, 1e-9);
    arena_free(a);
}
END_TEST

static Graph *typed(Arena *a, DType act) {
    PassOptions o = {.device = "cuda", .act = act, .level = 1};
    return passes_run(folded(a, act), &o, "derive", NULL, NULL);
}

// The elements of the leaves of g, the prepared ones from the graph that
// computes them.
static double **leaves_of(Arena *a, const Graph *g, const Graph *prepare) {
    double **made = graph_eval(prepare, a, leaf_values(prepare, a, 7, -1, 1),
                               prepare->act != F32);
    double **leaf = leaf_values(g, a, 7, -1, 1);
    for (NodeId n = 0; n < g->count; n++) {
        const char *name = node_text(&g->node[n], ATTR_name);
        if (g->node[n].op != OP_state ||
            strncmp(name, "eval.prepared", 13) != 0)
            continue;
        const double *value = value_named(prepare, made, name);
        ck_assert_ptr_nonnull(value);
        memcpy(leaf[n], value,
               (size_t)type_count(g->node[n].type) * sizeof *value);
    }
    return leaf;
}

// In f16 too, to the bit.
START_TEST(prepared_weights_are_what_they_replace) {
    Arena *a = arena_new();
    DType act = _i ? F16 : F32;
    Graph *g = typed(a, act), *prepare = prepare_graph(g);
    ck_assert_ptr_nonnull(prepare);
    ck_assert_int_eq(count_ops(prepare, OP_assign), 2);
    Graph *after = run_pass(run_pass(g, "prepare", act), "dce", act);
    ck_assert_int_eq(count_ops(after, OP_state), 4);
    double **want = graph_eval(g, a, leaf_values(g, a, 7, -1, 1), _i);
    double **got = graph_eval(after, a, leaves_of(a, after, prepare), _i);
    const double *y = value_named(g, want, "y");
    const double *z = value_named(after, got, "y");
    for (int i = 0; i < 4 * 3 * 3 * 8; i++)
        ck_assert_double_eq(y[i], z[i]);
    arena_free(a);
}
END_TEST

// The first layer alone, with `op` where it has rsqrt.
static Graph *first_layer(Arena *a, const char *op) {
    const char *from = strchr(layers, '\n'), *to = strstr(layers, "%16");
    const char *root = strstr(layers, "rsqrt");
    Graph *g = graph_from(
        a, arena_format(a,
                        "graph predict {%.*s%s%.*s%%16 = output %%15 {name = "
                        "\"y\"} : f32[4,6,6,8]\n}\n",
                        (int)(root - from), from, op,
                        (int)(to - root - strlen("rsqrt")),
                        root + strlen("rsqrt")));
    PassOptions o = {.device = "cuda", .act = F16, .level = 1};
    g = run_pass(run_pass(g, "fold_batch_norm", F16), "dce", F16);
    return passes_run(g, &o,
                      "derive", NULL, NULL);
}

START_TEST(a_part_prepares_the_same) {
    Arena *a = arena_new();
    Graph *g = typed(a, F16), *part = first_layer(a, "rsqrt");
    ck_assert_int_eq(count_ops(prepare_graph(part), OP_assign), 1);
    ck_assert(prepares_first(g, part));
    ck_assert(!prepares_first(part, g));
    ck_assert(!prepares_first(g, first_layer(a, "sqrt")));
    arena_free(a);
}
END_TEST

START_TEST(nothing_is_prepared_for_training) {
    Arena *a = arena_new();
    Graph *g = typed(a, F32);
    g->name = "train";
    ck_assert_ptr_eq(run_pass(g, "prepare", F32), g);
    arena_free(a);
}
END_TEST

Suite *batch_invariant_suite(void) {
    Suite *s = suite_create("batch_invariant");
    TCase *t = tcase_create("batch_invariant");
    tcase_add_test(t, values_are_kept);
    tcase_add_loop_test(t, prepared_weights_are_what_they_replace, 0, 2);
    tcase_add_test(t, a_part_prepares_the_same);
    tcase_add_test(t, nothing_is_prepared_for_training);
    suite_add_tcase(s, t);
    return s;
}
