// Pipeline: which passes run, and what happens to a faulty one.
#include "tests/passes/networks.h"
#include "tests/passes/suites.h"
#include "tests/passes/values.h"

#include <signal.h>
#include <string.h>

static const PassOptions options = {.device = "host",
                                    .act = F32,
                                    .level = 1,
                                    .reuse = true,
                                    .deep_verify = true};

// Adds the name of a pass to a Text.
static void list_pass(void *context, const Pass *pass, const Graph *g) {
    (void)g;
    text_add(context, "%s ", pass->name);
}

static const char *passes_that_run(Arena *a, Graph *g, const char *last) {
    Text t = text_new(a);
    passes_run(g, &options, last, list_pass, &t);
    return text_string(&t);
}

START_TEST(training_runs_every_pass) {
    Arena *a = arena_new();
    ck_assert_str_eq(
        passes_that_run(a, graph_from(a, residual_network), "dce"),
        "canonicalize fold_batch_norm autodiff stack_sums shards optimizer "
        "expand direct_conv direct_matmul conv_reductions precision "
        "optimizer_shards layout derive prepare simplify dce ");
    arena_free(a);
}
END_TEST

START_TEST(evaluation_runs_those_without_gradients) {
    Arena *a = arena_new();
    ck_assert_str_eq(
        passes_that_run(a, graph_from(a, residual_evaluation), "dce"),
        "canonicalize fold_batch_norm expand direct_conv direct_matmul "
        "conv_reductions precision optimizer_shards layout derive prepare "
        "simplify dce ");
    arena_free(a);
}
END_TEST

START_TEST(what_is_done_is_not_done_again) {
    Arena *a = arena_new();
    Graph *g = graph_from(a, residual_network);
    g = passes_run(g, &options, "precision", NULL, NULL);
    ck_assert_str_eq(passes_that_run(a, g, "dce"),
                     "canonicalize fold_batch_norm direct_conv direct_matmul "
                     "conv_reductions optimizer_shards layout derive prepare "
                     "simplify dce ");
    arena_free(a);
}
END_TEST

START_TEST(facts_are_given) {
    Arena *a = arena_new();
    Graph *g = passes_run(graph_from(a, residual_network), &options, "dce",
                          NULL, NULL);
    ck_assert_uint_eq(g->facts, BACKWARD | UPDATES | PRIMITIVE | TYPED);
    arena_free(a);
}
END_TEST

START_TEST(passes_are_found_by_name) {
    for (const Pass *p = standard_passes; p->name != NULL; p++)
        ck_assert_ptr_eq(pass_find(p->name), p);
    ck_assert_ptr_null(pass_find("folds"));
    ck_assert(pass_find("autodiff") < pass_find("expand"));
}
END_TEST

START_TEST(options_follow_device_and_recipe) {
    Recipe recipe = {.precision = F16};
    ck_assert_int_eq(pass_options(&recipe, "cuda").act, F16);
    ck_assert_int_eq(pass_options(&recipe, "cuda").storage, F16);
    ck_assert_int_eq(pass_options(&recipe, "host").act, F16);
    ck_assert_int_eq(pass_options(&recipe, "host").storage, F32);
}
END_TEST

// Leaves a node whose type is not what its operation gives.
static Graph *break_type(Graph *g, Arena *scratch, const PassOptions *o) {
    (void)scratch, (void)o;
    Type type = *g->node[4].type;
    type.dim[0] = 5;
    g->node[4].type = graph_type(g, &type);
    return g;
}

START_TEST(faulty_pass_ends_the_program) {
    Pass broken = {"broken", break_type, 0, 0, false, "", NULL};
    Arena *a = arena_new();
    pass_run(graph_from(a, residual_network), &options, &broken);
}
END_TEST

START_TEST(missing_facts_end_the_program) {
    Arena *a = arena_new();
    pass_run(graph_from(a, residual_network), &options, pass_find("optimizer"));
}
END_TEST

Suite *pipeline_suite(void) {
    Suite *s = suite_create("pipeline");
    TCase *t = tcase_create("pipeline");
    tcase_add_test(t, training_runs_every_pass);
    tcase_add_test(t, evaluation_runs_those_without_gradients);
    tcase_add_test(t, what_is_done_is_not_done_again);
    tcase_add_test(t, facts_are_given);
    tcase_add_test(t, passes_are_found_by_name);
    tcase_add_test(t, options_follow_device_and_recipe);
    tcase_add_test_raise_signal(t, faulty_pass_ends_the_program, SIGABRT);
    tcase_add_test_raise_signal(t, missing_facts_end_the_program, SIGABRT);
    suite_add_tcase(s, t);
    return s;
}
