// Hoist: derived states follow their parameters.
#include "tests/passes/networks.h"
#include "tests/passes/suites.h"
#include "tests/passes/values.h"

#include <string.h>

static Graph *laid_out(Arena *a, const char *network, DType act) {
    Graph *g = graph_from(a, network);
    if (network == residual_network)
        g = run_pass(run_pass(g, "autodiff", F32), "optimizer", F32);
    g = run_pass(run_pass(g, "expand", F32), "precision", act);
    return run_pass(g, "layout", act);
}

static bool is_derived(const Node *n) {
    const char *kind = node_text(n, ATTR_kind);
    return kind != NULL && strcmp(kind, STATE_DERIVED) == 0;
}

static Graph *derived(const Graph *g) {
    Graph *only[] = {(Graph *)g};
    return derive_graph(only, 1);
}

// Gives each derived state of g what its parameter stands for.
static void derive_states(const Graph *g, Arena *a, double **leaf) {
    Graph *derive = derived(g);
    double **value =
        graph_eval(derive, a, leaf_values(derive, a, 0, -2, 2), false);
    for (NodeId n = 0; n < g->count; n++)
        if (is_derived(&g->node[n])) {
            const char *name = node_text(&g->node[n], ATTR_name);
            leaf[n] = (double *)value_named(derive, value, name);
        }
}

static void check_outputs(const Graph *before, const Graph *after, Arena *a) {
    double **x = graph_eval(before, a, leaf_values(before, a, 0, -2, 2), false);
    double **leaf = leaf_values(after, a, 0, -2, 2);
    derive_states(after, a, leaf);
    double **y = graph_eval(after, a, leaf, false);
    static const char *const names[] = {"loss", "conv_1.weight", "fc.weight",
                                        "bn.scale"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const double *want = value_named(before, x, names[i]);
        const double *got = value_named(after, y, names[i]);
        if (want != NULL)
            ck_assert_double_eq(got[0], want[0]);
    }
}

START_TEST(values_are_kept) {
    Arena *a = arena_new();
    const char *network = _i == 0 ? residual_network : residual_evaluation;
    Graph *before = laid_out(a, network, F16);
    Graph *after = run_pass(before, "derive", F16);
    check_outputs(before, after, a);
    check_outputs(before, run_pass(after, "dce", F16), a);
    arena_free(a);
}
END_TEST

START_TEST(no_cast_of_a_param_remains) {
    Arena *a = arena_new();
    Graph *g = laid_out(a, residual_network, F16);
    g = run_pass(run_pass(g, "derive", F16), "dce", F16);
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_cast)
            ck_assert_int_ne(g->node[g->node[n].arg[0]].op, OP_param);
    arena_free(a);
}
END_TEST

// After a step a derived state holds what it would be derived to.
START_TEST(states_follow_their_params) {
    Arena *a = arena_new();
    Graph *g = run_pass(laid_out(a, residual_network, F16), "derive", F16);
    double **leaf = leaf_values(g, a, 0, -2, 2);
    derive_states(g, a, leaf);
    double **value = graph_eval(g, a, leaf, true);

    Graph *derive = derived(g);
    double **start = ARENA_ARRAY(a, derive->count, double *);
    static const char *const names[] = {"conv_1.weight", "fc.weight"};
    static const char *const derived[] = {"conv_1.weight.act.8x3x3x8",
                                          "fc.weight.act.16x32"};
    for (int i = 0; i < 2; i++)
        start[graph_find(derive, names[i])] =
            (double *)value_named(g, value, names[i]);
    double **again = graph_eval(derive, a, start, true);
    for (int i = 0; i < 2; i++) {
        const double *got = value_named(g, value, derived[i]);
        const double *want = value_named(derive, again, derived[i]);
        NodeId state = graph_find(g, derived[i]);
        for (int64_t k = 0; k < type_count(g->node[state].type); k++)
            ck_assert_double_eq(got[k], want[k]);
    }
    arena_free(a);
}
END_TEST

START_TEST(frozen_param_is_derived_once) {
    Arena *a = arena_new();
    Graph *g = run_pass(laid_out(a, residual_network, F16), "derive", F16);
    NodeId state = graph_find(g, "conv_2.weight.act");
    ck_assert(state != NO_NODE);
    for (NodeId n = 0; n < g->count; n++)
        ck_assert(g->node[n].op != OP_assign || g->node[n].arg[0] != state);
    Graph *derive = derived(g);
    ck_assert(graph_find(derive, "conv_2.weight") != NO_NODE);
    arena_free(a);
}
END_TEST

// Which states there are depends on the layers, not on what else is computed.
START_TEST(training_and_evaluation_agree) {
    Arena *a = arena_new();
    Graph *train = run_pass(laid_out(a, residual_network, F16), "derive", F16);
    Graph *eval = run_pass(laid_out(a, residual_evaluation, F16), "derive", F16);
    int count = 0;
    for (NodeId n = 0; n < eval->count; n++) {
        const Node *node = &eval->node[n];
        if (!is_derived(node))
            continue;
        NodeId same = graph_find(train, node_text(node, ATTR_name));
        ck_assert(same != NO_NODE);
        ck_assert(type_is(train->node[same].type, node->type));
        count++;
    }
    ck_assert_int_eq(count, 3);
    arena_free(a);
}
END_TEST

START_TEST(equal_chains_share_a_state) {
    Arena *a = arena_new();
    Graph *g =
        graph_from(a, "graph eval (primitive, typed; act = f16) {\n"
                      "%0 = param {name = \"w\"} : f32[8,3]\n"
                      "%1 = cast %0 : act[8,3]\n"
                      "%2 = pad %1 {high = [0,5], low = [0,0]} : act[8,8]\n"
                      "%3 = pad %0 {high = [0,5], low = [0,0]} : f32[8,8]\n"
                      "%4 = cast %3 : act[8,8]\n"
                      "%5 = matmul %2, %4 : act[8,8]\n"
                      "%6 = output %5 {name = \"y\"} : act[8,8]\n"
                      "}\n");
    g = run_pass(run_pass(g, "derive", F16), "dce", F16);
    ck_assert_int_eq(count_ops(g, OP_state), 1);
    ck_assert_int_eq(count_ops(g, OP_param), 0);
    arena_free(a);
}
END_TEST

START_TEST(f32_has_no_derived_state) {
    Arena *a = arena_new();
    Graph *g = laid_out(a, residual_network, F32);
    ck_assert_uint_eq(run_pass(g, "derive", F32)->count, g->count);
    ck_assert_ptr_null(derived(g));
    arena_free(a);
}
END_TEST

START_TEST(deriving_is_not_hoisted_again) {
    Arena *a = arena_new();
    Graph *g = run_pass(laid_out(a, residual_network, F16), "derive", F16);
    Graph *derive = derived(g);
    ck_assert_uint_eq(run_pass(derive, "derive", F16)->count, derive->count);
    ck_assert_uint_eq(run_pass(g, "derive", F16)->count, g->count);
    arena_free(a);
}
END_TEST

Suite *derive_suite(void) {
    Suite *s = suite_create("derive");
    TCase *t = tcase_create("derive");
    tcase_add_loop_test(t, values_are_kept, 0, 2);
    tcase_add_test(t, no_cast_of_a_param_remains);
    tcase_add_test(t, states_follow_their_params);
    tcase_add_test(t, frozen_param_is_derived_once);
    tcase_add_test(t, training_and_evaluation_agree);
    tcase_add_test(t, equal_chains_share_a_state);
    tcase_add_test(t, f32_has_no_derived_state);
    tcase_add_test(t, deriving_is_not_hoisted_again);
    suite_add_tcase(s, t);
    return s;
}
