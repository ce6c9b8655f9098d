// Inplace: values are kept, and what a call adds to is needed no more.
#include "tests/graphs/graphs.h"
#include "tests/passes/suites.h"
#include "tests/passes/values.h"

#include "passes/plan/group.h"

#include <string.h>

static const PassOptions options = {.device = "cuda",
                                    .act = F32,
                                    .storage = F32,
                                    .level = 1,
                                    .reuse = true,
                                    .deep_verify = true};

static Graph *run(Graph *g, const char *pass) {
    return pass_run(g, &options, pass_find(pass));
}

START_TEST(values_are_kept) {
    Arena *a = arena_new();
    Graph *g = run(random_graph(a, (uint32_t)_i, 20 + _i % 40), "dce");
    g = run(g, "fuse");
    check_same_values(g, run(g, "inplace"), 1e-12);
    arena_free(a);
}
END_TEST

#define IMAGE " : f32[2,4,4,8]\n"

// The gradients of two residuals.  That of the second is read by calls, one of
// them the one that would add to it.
static const char residuals[] =
    "graph train (primitive, typed) {\n"
    "  %0 = input {name = \"dy\"}" IMAGE "  %1 = input {name = \"x\"}" IMAGE
    "  %2 = param {name = \"w\"} : f32[8,3,3,8]\n"
    "  %3 = conv_grad_input %0, %2 {pad = [1,1,1,1]}" IMAGE
    "  %4 = mul %1, %3" IMAGE
    "  %5 = conv_grad_input %4, %2 {pad = [1,1,1,1]}" IMAGE
    "  %6 = add %3, %5" IMAGE "  %7 = mul %1, %6" IMAGE
    "  %8 = conv_grad_input %7, %2 {pad = [1,1,1,1]}" IMAGE
    "  %9 = add %7, %8" IMAGE
    "  %10 = conv_grad_weight %7, %1 {pad = [1,1,1,1]} : f32[8,3,3,8]\n"
    "  %11 = output %9 {name = \"dx\"}" IMAGE
    "  %12 = output %10 {name = \"dw\"} : f32[8,3,3,8]\n"
    "}\n";

static int count_sums(const Graph *g) {
    int sums = 0;
    for (NodeId n = 0; n < g->count; n++)
        sums += call_adds_to(&g->node[n]) != NO_NODE;
    return sums;
}

START_TEST(only_what_is_done_with_is_added_to) {
    Arena *a = arena_new();
    Graph *before = run(graph_from(a, residuals), "fuse");
    Graph *after = run(before, "inplace");
    ck_assert_int_eq(count_sums(after), 1);
    check_same_values(before, after, 1e-12);
    Graph *g = run(run(after, "schedule"), "memory");
    for (NodeId n = 0; n < g->count; n++) {
        NodeId into = call_adds_to(&g->node[n]);
        if (into != NO_NODE)
            ck_assert_int_eq(g->node[n].offset, g->node[into].offset);
    }
    ck_assert_ptr_null(memory_verify(g, a));
    arena_free(a);
}
END_TEST

START_TEST(sums_elsewhere_are_seen) {
    Arena *a = arena_new();
    Graph *g = run(run(graph_from(a, residuals), "fuse"), "inplace");
    g = run(run(g, "schedule"), "memory");
    NodeId n = 0;
    while (call_adds_to(&g->node[n]) == NO_NODE)
        n++;
    g->node[n].offset = g->arena_bytes;
    g->arena_bytes += graph_bytes(g, g->node[n].type);
    const char *why = memory_verify(g, a);
    ck_assert_msg(why != NULL && strstr(why, "does not add in the place of"),
                  "says: %s", why);
    arena_free(a);
}
END_TEST

Suite *inplace_suite(void) {
    Suite *s = suite_create("inplace");
    TCase *t = tcase_create("inplace");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, values_are_kept, 0, NUM_GRAPHS);
    tcase_add_test(t, only_what_is_done_with_is_added_to);
    tcase_add_test(t, sums_elsewhere_are_seen);
    suite_add_tcase(s, t);
    return s;
}
