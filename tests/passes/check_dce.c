// Prune: what is dropped and what stays.
#include "tests/passes/suites.h"
#include "tests/passes/values.h"

START_TEST(only_what_effects_need_stays) {
    Arena *a = arena_new();
    Graph *g = graph_from(
        a, "graph train {\n"
           "%0 = input {name = \"used\"} : f32[2]\n"
           "%1 = input {name = \"unused\"} : f32[2]\n"
           "%2 = param {name = \"idle\"} : f32[2]\n"
           "%3 = state {init = 0.0, kind = \"metric\", name = \"m\"} : f32[2]\n"
           "%4 = exp %0 : f32[2]\n"
           "%5 = log %4 : f32[2]\n"
           "%6 = assign %3, %4 : f32[2]\n"
           "%7 = add %1, %2 : f32[2]\n"
           "}\n");
    Graph *after = run_pass(g, "dce", F32);
    ck_assert_uint_eq(after->count, 4);
    ck_assert(graph_find(after, "used") != NO_NODE);
    ck_assert(graph_find(after, "unused") == NO_NODE);
    ck_assert(graph_find(after, "idle") == NO_NODE);
    check_same_values(g, after, 0);
    arena_free(a);
}
END_TEST

START_TEST(every_effect_stays) {
    Arena *a = arena_new();
    Graph *g = graph_from(a, "graph train {\n"
                             "%0 = param {name = \"w\"} : f32[]\n"
                             "%1 = constant {values = [1.0]} : i32[]\n"
                             "%2 = sgd %0, %0, %0, %0 : f32[]\n"
                             "%3 = adam %0, %0, %0, %0, %0, %1 : f32[]\n"
                             "%4 = gradient %0, %0 : f32[]\n"
                             "%5 = assign %0, %0 : f32[]\n"
                             "%6 = output %0 {name = \"y\"} : f32[]\n"
                             "}\n");
    ck_assert_uint_eq(run_pass(g, "dce", F32)->count, g->count);
    arena_free(a);
}
END_TEST

Suite *dce_suite(void) {
    Suite *s = suite_create("dce");
    TCase *t = tcase_create("dce");
    tcase_add_test(t, only_what_effects_need_stays);
    tcase_add_test(t, every_effect_stays);
    suite_add_tcase(s, t);
    return s;
}
