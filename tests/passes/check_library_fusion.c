// LibraryFusions: what a library call may take over, and plans that allow for
// it.
#include "tests/passes/suites.h"

#include "frontend/frontend.h"
#include "passes/passes.h"
#include "passes/plan/library_fusion.h"

#include <stdlib.h>
#include <string.h>

// The planned train graph of a case of tests/golden/launches.
static Graph *train_of(Arena *a, const char *name, const char *device) {
    const char *source = getenv("SINTER_SOURCE");
    ck_assert_ptr_nonnull(source);
    Diagnostics diags = diag_new(a);
    Program *p = frontend_load(
        a, arena_format(a, "%s/tests/golden/launches/%s.net", source, name),
        NULL, 0, &diags);
    ck_assert_ptr_nonnull(p);
    PassOptions o = pass_options(&p->recipe, device);
    return plan_graph(program_plan(p, &o), "train");
}

static const LibraryFusion *fusion_of(const LibraryFusions *r, FusionKind f) {
    for (int i = 0; i < r->count; i++)
        if (r->fusion[i].kind == f)
            return &r->fusion[i];
    return NULL;
}

START_TEST(support_follows_the_architecture) {
    ck_assert_int_eq(fusion_support(FUSION_statistics, 75), NO);
    ck_assert_int_eq(fusion_support(FUSION_statistics, 80), READY);
    ck_assert_int_eq(fusion_support(FUSION_prologue, 89), READY);
    ck_assert_int_eq(fusion_support(FUSION_prologue, 90), COMPILED);
    ck_assert_int_eq(fusion_support(FUSION_statistics, 100), VARIES);
    ck_assert_int_eq(fusion_support(FUSION_prologue_statistics, 103), NO);
    ck_assert_int_eq(fusion_support(FUSION_statistics, 120), NO);
    ck_assert_int_eq(fusion_support(FUSION_backward, 121), READY);
}
END_TEST

START_TEST(batch_norm_is_recognised) {
    Arena *a = arena_new();
    Graph *g = train_of(a, "chain", "cuda");
    LibraryFusions r = graph_library_fusions(g, a);
    ck_assert_int_eq(r.num_norms, 2);
    ck_assert_int_eq(r.count, 5);
    const Norm *norm = &r.norm[fusion_of(&r, FUSION_prologue)->norm];
    ck_assert_double_eq_tol(norm->epsilon, 1e-5, 1e-12);
    ck_assert_str_eq(node_text(&g->node[norm->scale], ATTR_name),
                     "batch_norm_1.scale");
    ck_assert_str_eq(node_text(&g->node[norm->bias], ATTR_name),
                     "batch_norm_1.bias");
    ck_assert_int_eq(norm->number, 0);
    ck_assert_int_eq(r.bytes, NUM_BN_PARAMS * bn_param_bytes(16));
    arena_free(a);
}
END_TEST

START_TEST(sums_of_the_gradient_are_told_apart) {
    Arena *a = arena_new();
    Graph *g = train_of(a, "chain", "cuda");
    LibraryFusions r = graph_library_fusions(g, a);
    const LibraryFusion *fusion = fusion_of(&r, FUSION_backward);
    ck_assert_ptr_nonnull(fusion);
    // That of the bias is over what relu passes, that of the scale over a
    // product.
    ck_assert_int_eq(g->node[g->node[fusion->d_scale].arg[0]].op, OP_mul);
    ck_assert_int_ne(g->node[g->node[fusion->d_bias].arg[0]].op, OP_mul);
    arena_free(a);
}
END_TEST

START_TEST(host_has_none) {
    Arena *a = arena_new();
    Graph *g = train_of(a, "chain", "host");
    ck_assert_int_eq(graph_library_fusions(g, a).count, 0);
    arena_free(a);
}
END_TEST

START_TEST(what_varies_is_not_taken) {
    Arena *a = arena_new();
    Graph *g = train_of(a, "chain", "cuda");
    LibraryFusions r = graph_library_fusions(g, a);
    ck_assert_int_eq(fusions_saving(&r, 90).taken, 5);
    // Statistics, prologue and sums of the gradient save a launch each; their
    // parameters need one.
    ck_assert_int_eq(fusions_saving(&r, 90).launches, 3);
    ck_assert_int_eq(fusions_saving(&r, 100).taken, 0);
    ck_assert_int_eq(fusions_saving(&r, 75).taken, 0);
    arena_free(a);
}
END_TEST

// ---- both ways fit one plan ----

static void expect_fault(const Graph *g, Arena *a, const char *text) {
    const char *why = memory_verify(g, a);
    ck_assert_ptr_nonnull(why);
    ck_assert_msg(strstr(why, text) != NULL, "%s", why);
}

START_TEST(sums_live_from_the_call_on) {
    Arena *a = arena_new();
    Graph *g = train_of(a, "chain", "cuda");
    ck_assert_ptr_null(memory_verify(g, a));
    LibraryFusions r = graph_library_fusions(g, a);
    const LibraryFusion *fusion = fusion_of(&r, FUSION_backward);
    int count;
    const Group *call = &graph_groups(g, a, &count)[fusion->call];
    // A kernel after the call could write where the call's operand was.
    g->node[fusion->d_scale].offset =
        g->node[node_base(g, g->node[call->last].arg[0])].offset;
    expect_fault(g, a, "library fusion");
    arena_free(a);
}
END_TEST

START_TEST(forms_have_room_of_their_own) {
    Arena *a = arena_new();
    Graph *g = train_of(a, "chain", "cuda");
    LibraryFusions r = graph_library_fusions(g, a);
    g->node[r.norm[0].sum].offset = g->arena_bytes - r.bytes;
    expect_fault(g, a, "outside the arena");
    arena_free(a);
}
END_TEST

Suite *library_fusion_suite(void) {
    Suite *s = suite_create("library_fusion");
    TCase *t = tcase_create("library_fusion");
    tcase_add_test(t, support_follows_the_architecture);
    tcase_add_test(t, batch_norm_is_recognised);
    tcase_add_test(t, sums_of_the_gradient_are_told_apart);
    tcase_add_test(t, host_has_none);
    tcase_add_test(t, what_varies_is_not_taken);
    tcase_add_test(t, sums_live_from_the_call_on);
    tcase_add_test(t, forms_have_room_of_their_own);
    suite_add_tcase(s, t);
    return s;
}
