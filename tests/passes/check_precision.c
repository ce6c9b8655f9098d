// Precision: which values become activations, and the loss scale.
#include "tests/passes/networks.h"
#include "tests/passes/suites.h"
#include "tests/passes/values.h"

#include <math.h>
#include <string.h>

static Graph *updated_network(Arena *a) {
    Graph *g = run_pass(graph_from(a, residual_network), "autodiff", F32);
    return run_pass(run_pass(g, "optimizer", F32), "expand", F32);
}

// Unrounded, casts change nothing, and what the loss is scaled by is divided
// out again.
START_TEST(values_are_kept_up_to_rounding) {
    static const DType acts[] = {F32, F16, BF16};
    Arena *a = arena_new();
    Graph *before = updated_network(a);
    Graph *after = run_pass(before, "precision", acts[_i]);
    ck_assert_int_eq(after->act, acts[_i]);
    ck_assert_int_eq(count_ops(after, OP_loss_scale), 0);
    check_same_values(before, after, 1e-9);
    arena_free(a);
}
END_TEST

START_TEST(f32_changes_nothing_else) {
    Arena *a = arena_new();
    Graph *before = updated_network(a);
    Graph *after = run_pass(before, "precision", F32);
    // The loss scale is the 1 that is divided by it.
    ck_assert_uint_eq(after->count, before->count - 1);
    for (NodeId n = 0; n < after->count; n++)
        ck_assert_int_ne(after->node[n].type->dtype, ACT);
    arena_free(a);
}
END_TEST

START_TEST(contractions_are_act_and_the_rest_that_matters_is_f32) {
    Arena *a = arena_new();
    Graph *g = run_pass(updated_network(a), "precision", F16);
    for (NodeId n = 0; n < g->count; n++) {
        const Node *node = &g->node[n];
        unsigned traits = op_info[node->op].traits;
        if (traits & CONTRACTS)
            ck_assert_int_eq(node->type->dtype, ACT);
        else if ((traits & REDUCES) || node->op == OP_param ||
                 node->op == OP_exp || node->op == OP_output)
            ck_assert_int_eq(node->type->dtype, F32);
    }
    arena_free(a);
}
END_TEST

// relu's result feeds a convolution and an addition: both read the cast.
START_TEST(bulk_values_have_one_type_for_all_users) {
    Arena *a = arena_new();
    Graph *g = run_pass(updated_network(a), "precision", F16);
    uint32_t *uses = graph_uses(g, a);
    int relus = 0;
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_relu) {
            ck_assert_uint_eq(uses[n], 1);
            relus++;
        }
    ck_assert_int_eq(relus, 1);
    arena_free(a);
}
END_TEST

START_TEST(bf16_needs_no_scale) {
    Arena *a = arena_new();
    Graph *g = run_pass(updated_network(a), "precision", BF16);
    ck_assert(graph_find(g, "run.loss_scale") == NO_NODE);
    ck_assert_int_eq(count_ops(g, OP_all_finite), 0);
    arena_free(a);
}
END_TEST

START_TEST(evaluation_has_no_scale) {
    Arena *a = arena_new();
    Graph *g = run_pass(graph_from(a, residual_evaluation), "expand", F32);
    g = run_pass(g, "precision", F16);
    ck_assert(graph_find(g, "run.loss_scale") == NO_NODE);
    arena_free(a);
}
END_TEST

// Others see f32 although the product is act.
START_TEST(effects_keep_their_types) {
    Arena *a = arena_new();
    Graph *before = graph_from(
        a,
        "graph eval (primitive) {\n"
        "%0 = input {name = \"x\"} : f32[2,3]\n"
        "%1 = param {name = \"w\"} : f32[3,4]\n"
        "%2 = matmul %0, %1 : f32[2,4]\n"
        "%3 = state {init = 0.0, kind = \"metric\", name = \"m\"} : f32[2,4]\n"
        "%4 = assign %3, %2 : f32[2,4]\n"
        "%5 = output %2 {name = \"y\"} : f32[2,4]\n"
        "}\n");
    Graph *after = run_pass(before, "precision", BF16);
    ck_assert_int_eq(after->act, BF16);
    check_same_values(before, after, 1e-12);
    arena_free(a);
}
END_TEST

// ---- the loss scale, over a loss of one parameter ----

static const char one_param[] =
    "graph train {\n"
    "%0 = param {name = \"w\"} : f32[1]\n"
    "%1 = input {name = \"x\"} : f32[1]\n"
    "%2 = state {init = 5.0, kind = \"statistic\", name = \"mean\"} : f32[1]\n"
    "%3 = assign %2, %1 : f32[1]\n"
    "%4 = mul %0, %1 : f32[1]\n"
    "%5 = sum %4 {axes = [0]} : f32[]\n"
    "%6 = output %5 {name = \"loss\"} : f32[]\n"
    "%7 = state {init = 7.0, kind = \"run\", name = \"run.step\"} : i32[]\n"
    "%8 = constant {values = [1.0]} : i32[]\n"
    "%9 = add %7, %8 : i32[]\n"
    "%10 = assign %7, %9 : i32[]\n"
    "%11 = constant {values = [0.5]} : f32[]\n"
    "%12 = constant {values = [0.0]} : f32[]\n"
    "%13 = sgd %0, %11, %11, %12 : f32[1]\n"
    "%14 = state {init = 4.0, kind = \"optimizer\", name = \"run.updates\"} "
    ": i32[]\n"
    "%15 = add %8, %14 : i32[]\n"
    "%16 = assign %14, %15 : i32[]\n"
    "%17 = state {init = 0.0, kind = \"metric\", name = \"metric.count\"} "
    ": f32[]\n"
    "%18 = constant {values = [4.0]} : f32[]\n"
    "%19 = add %17, %18 : f32[]\n"
    "%20 = assign %17, %19 : f32[]\n"
    "}\n";

typedef struct {
    double w, momentum, mean, scale, counted, skipped;
    int good_steps, step, updates;
} After;

static After step_once(double x, double scale, double good_steps) {
    Arena *a = arena_new();
    Graph *g = run_pass(graph_from(a, one_param), "autodiff", F32);
    g = run_pass(run_pass(g, "optimizer", F32), "expand", F32);
    g = run_pass(g, "precision", F16);
    double **leaf = ARENA_ARRAY(a, g->count, double *);
    double w = 3, mean = 5, momentum = 2, skipped = 6;
    leaf[graph_find(g, "w")] = &w;
    leaf[graph_find(g, "x")] = &x;
    leaf[graph_find(g, "mean")] = &mean;
    leaf[graph_find(g, "w.momentum")] = &momentum;
    leaf[graph_find(g, "run.loss_scale")] = &scale;
    leaf[graph_find(g, "run.good_steps")] = &good_steps;
    leaf[graph_find(g, "metric.skipped")] = &skipped;
    double **value = graph_eval(g, a, leaf, true);
    After after = {
        .w = *value_named(g, value, "w"),
        .momentum = *value_named(g, value, "w.momentum"),
        .mean = *value_named(g, value, "mean"),
        .scale = *value_named(g, value, "run.loss_scale"),
        .counted = *value_named(g, value, "metric.count"),
        .skipped = *value_named(g, value, "metric.skipped"),
        .good_steps = (int)*value_named(g, value, "run.good_steps"),
        .step = (int)*value_named(g, value, "run.step"),
        .updates = (int)*value_named(g, value, "run.updates"),
    };
    arena_free(a);
    return after;
}

START_TEST(good_step_updates) {
    After after = step_once(1, 65536, 10);
    ck_assert_double_eq(after.momentum, 0.5 * 2 + 1);
    ck_assert_double_eq(after.w, 3 - 0.5 * 2);
    ck_assert_double_eq(after.mean, 1);
    ck_assert_double_eq(after.scale, 65536);
    ck_assert_int_eq(after.good_steps, 11);
    ck_assert_double_eq(after.skipped, 6);
    ck_assert_int_eq(after.step, 8);
    ck_assert_int_eq(after.updates, 5);
}
END_TEST

START_TEST(overflow_skips_the_step_and_halves_the_scale) {
    static const double bad[] = {INFINITY, -INFINITY, NAN, 1e38};
    After after = step_once(bad[_i], 65536, 10);
    ck_assert_double_eq(after.w, 3);
    ck_assert_double_eq(after.momentum, 2);
    ck_assert_double_eq(after.mean, 5);
    ck_assert_double_eq(after.scale, 32768);
    ck_assert_double_eq(after.counted, 4);
    ck_assert_double_eq(after.skipped, 7);
    ck_assert_int_eq(after.good_steps, 0);
    ck_assert_int_eq(after.step, 8);
    ck_assert_int_eq(after.updates, 4);
}
END_TEST

START_TEST(scale_grows_after_many_good_steps) {
    ck_assert_double_eq(step_once(1, 1024, 1998).scale, 1024);
    After after = step_once(1, 1024, 1999);
    ck_assert_double_eq(after.scale, 2048);
    ck_assert_int_eq(after.good_steps, 0);
}
END_TEST

START_TEST(scale_stays_in_bounds) {
    ck_assert_double_eq(step_once(1, 0x1p24, 1999).scale, 0x1p24);
    After after = step_once(NAN, 1, 0);
    ck_assert_double_eq(after.scale, 0.5);
    ck_assert_double_eq(after.skipped, 7);
    ck_assert_double_eq(step_once(NAN, 0.5, 0).scale, 0.5);
}
END_TEST

Suite *precision_suite(void) {
    Suite *s = suite_create("precision");
    TCase *t = tcase_create("precision");
    tcase_add_loop_test(t, values_are_kept_up_to_rounding, 0, 3);
    tcase_add_test(t, f32_changes_nothing_else);
    tcase_add_test(t, contractions_are_act_and_the_rest_that_matters_is_f32);
    tcase_add_test(t, bulk_values_have_one_type_for_all_users);
    tcase_add_test(t, bf16_needs_no_scale);
    tcase_add_test(t, evaluation_has_no_scale);
    tcase_add_test(t, effects_keep_their_types);
    tcase_add_test(t, good_step_updates);
    tcase_add_loop_test(t, overflow_skips_the_step_and_halves_the_scale, 0, 4);
    tcase_add_test(t, scale_grows_after_many_good_steps);
    tcase_add_test(t, scale_stays_in_bounds);
    suite_add_tcase(s, t);
    return s;
}
