// MergedLaunches: which kernels may be one launch, and what a device takes of
// them.
#include "tests/passes/suites.h"

#include "passes/plan/plan.h"

// A run of three kernels of which the first is fused into a call, and one of
// two.
static const MergedLaunch both[] = {{1, 3}, {2, 2}, {5, 2}};
static const MergedLaunches merges = {(MergedLaunch *)both, 3};
static const LibraryFusion statistics = {.kind = FUSION_statistics,
                                         .kernel = 1,
                                         .statistics_of_call = -1,
                                         .paired = -1};

START_TEST(a_whole_run_is_taken_where_nothing_is_fused) {
    Arena *a = arena_new();
    const bool fused[] = {false};
    LibraryFusions r = {
        .fusion = (LibraryFusion *)&statistics, .count = 1, .num_groups = 7};
    bool *taken = merged_taken(&merges, &r, fused, NULL, a);
    ck_assert(taken[0] && !taken[1] && taken[2]);
    ck_assert_int_eq(merged_saving(&merges, &r, 0, NULL), 3);
    arena_free(a);
}
END_TEST

START_TEST(its_rest_is_taken_where_a_kernel_is_fused) {
    Arena *a = arena_new();
    const bool fused[] = {true};
    Norm norm = {.statistics = 0};
    LibraryFusions r = {.fusion = (LibraryFusion *)&statistics,
                        .count = 1,
                        .num_groups = 7,
                        .norm = &norm,
                        .num_norms = 1};
    bool *taken = merged_taken(&merges, &r, fused, NULL, a);
    ck_assert(!taken[0] && taken[1] && taken[2]);
    ck_assert_int_eq(merged_saving(&merges, &r, 90, NULL), 2);
    arena_free(a);
}
END_TEST

START_TEST(none_is_taken_whose_kernel_a_tile_kernel_replaces) {
    Arena *a = arena_new();
    const bool fused[] = {false};
    const bool replaced[7] = {[1] = true, [6] = true};
    LibraryFusions r = {
        .fusion = (LibraryFusion *)&statistics, .count = 1, .num_groups = 7};
    bool *taken = merged_taken(&merges, &r, fused, replaced, a);
    ck_assert(!taken[0] && taken[1] && !taken[2]);
    ck_assert_int_eq(merged_saving(&merges, &r, 0, replaced), 1);
    arena_free(a);
}
END_TEST

// Kernels one after the other, and the state with the counters of launches.
static Graph *kernels(Arena *a, int count, int counters) {
    Graph *g = graph_new(a, "train");
    int64_t dim[] = {4, 8}, room = counters;
    graph_state(g, COUNTERS "train", STATE_DERIVED, type_of(I32, 1, &room), 0);
    NodeId n = graph_leaf(g, OP_input, "x", type_of(F32, 2, dim));
    for (int k = 0; k < count; k++)
        n = graph_add(
            g, (Node){.op = OP_abs, .num_args = 1, .arg = &n, .group = k});
    graph_op1(g, OP_output, n);
    return g;
}

START_TEST(a_merged_launch_has_a_counter_of_its_own) {
    Arena *a = arena_new();
    Graph *g = kernels(a, 2, 3);
    LibraryFusions fusions = graph_library_fusions(g, a);
    MergedLaunches found = graph_merged_launches(g, &fusions, a);
    ck_assert_int_eq(found.count, 1);
    ck_assert_int_eq(found.launch[0].first, 0);
    ck_assert_int_eq(found.launch[0].count, 2);
    ck_assert_int_eq(merged_barrier_counter(g), 2);
    g = kernels(a, 2, 0);
    fusions = graph_library_fusions(g, a);
    ck_assert_int_eq(graph_merged_launches(g, &fusions, a).count, 0);
    arena_free(a);
}
END_TEST

START_TEST(a_long_run_is_cut) {
    Arena *a = arena_new();
    Graph *g = kernels(a, MAX_MERGED + 2, 1);
    LibraryFusions fusions = graph_library_fusions(g, a);
    MergedLaunches found = graph_merged_launches(g, &fusions, a);
    ck_assert_int_eq(found.count, 2);
    ck_assert_int_eq(found.launch[0].count, MAX_MERGED);
    ck_assert_int_eq(found.launch[1].first, MAX_MERGED);
    ck_assert_int_eq(found.launch[1].count, 2);
    arena_free(a);
}
END_TEST

// A device whose kernels wait for loads where there are few resident blocks.
static const KernelTime *small_device(const TimeModel *time_model,
                                      const GraphPlan *p, Arena *a) {
    KernelTime *price = ARENA_ARRAY(a, (size_t)p->num_groups, KernelTime);
    for (int i = 0; i < p->num_groups; i++)
        price[i] = (KernelTime){.least = 1,
                                .latency = *(const double *)time_model->device,
                                .resident = i == 1 ? 2 : 4,
                                .blocks = 4};
    return price;
}

// The middle one of three kernels has two resident blocks, the others four.
// With two, loads of a latency of 2 take as long as the rest of a kernel.
START_TEST(a_merge_that_costs_loads_in_flight_is_left_out) {
    const double latency[] = {2, 2.1, 40};
    const int kept[] = {1, 0, 0};
    Arena *a = arena_new();
    Graph *g = kernels(a, 3, 1);
    TimeModel time_model = {.times = small_device, .max_merged_seconds = 100};
    for (int i = 0; i < 3; i++) {
        GraphPlan *p = graph_plan(g, true, a);
        time_model.device = &latency[i];
        plan_merges_by_time(p, &time_model, a);
        ck_assert_int_eq(p->merged.count, kept[i]);
        ck_assert_int_eq(p->refusal[1].kernel, kept[i] ? NO_LAUNCH : 0);
        ck_assert_int_eq(p->refusal[2].kernel, kept[i] ? NO_LAUNCH : 2);
    }
    arena_free(a);
}
END_TEST

// A kernel that takes 3 is launched alone, those before and behind are merged.
static const KernelTime *long_kernel(const TimeModel *time_model,
                                     const GraphPlan *p, Arena *a) {
    (void)time_model;
    KernelTime *price = ARENA_ARRAY(a, (size_t)p->num_groups, KernelTime);
    for (int i = 0; i < p->num_groups; i++)
        price[i] =
            (KernelTime){.least = i == 2 ? 3 : 1, .resident = 4, .blocks = 4};
    return price;
}

START_TEST(a_merged_launch_is_cut_at_a_long_kernel) {
    Arena *a = arena_new();
    GraphPlan *p = graph_plan(kernels(a, 5, 1), true, a);
    TimeModel time_model = {.times = long_kernel, .max_merged_seconds = 2};
    ck_assert_int_eq(p->merged.count, 1);
    plan_merges_by_time(p, &time_model, a);
    ck_assert_int_eq(p->merged.count, 2);
    ck_assert_int_eq(p->merged.launch[0].first, 0);
    ck_assert_int_eq(p->merged.launch[0].count, 2);
    ck_assert_int_eq(p->merged.launch[1].first, 3);
    ck_assert_int_eq(p->merged.launch[1].count, 2);
    ck_assert_int_eq(p->refusal[2].kernel, 2);
    ck_assert_int_eq(p->refusal[3].kernel, 2);
    arena_free(a);
}
END_TEST

START_TEST(steps_that_run_once_are_not_joined) {
    ck_assert(step_merges(STEP_TRAIN) && step_merges(STEP_ACCUMULATE));
    ck_assert(step_merges(STEP_EVAL));
    ck_assert(!step_merges(STEP_INIT) && !step_merges(STEP_PREPARE));
}
END_TEST

Suite *merged_launch_suite(void) {
    Suite *s = suite_create("merged_launch");
    TCase *t = tcase_create("merged_launch");
    tcase_add_test(t, a_whole_run_is_taken_where_nothing_is_fused);
    tcase_add_test(t, its_rest_is_taken_where_a_kernel_is_fused);
    tcase_add_test(t, none_is_taken_whose_kernel_a_tile_kernel_replaces);
    tcase_add_test(t, a_merged_launch_has_a_counter_of_its_own);
    tcase_add_test(t, a_long_run_is_cut);
    tcase_add_test(t, a_merge_that_costs_loads_in_flight_is_left_out);
    tcase_add_test(t, a_merged_launch_is_cut_at_a_long_kernel);
    tcase_add_test(t, steps_that_run_once_are_not_joined);
    suite_add_tcase(s, t);
    return s;
}
