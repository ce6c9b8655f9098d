// Merged launches: kernels of a step that become one launch.
#include "tests/runtime/suites.h"

#include "runtime/cuda/launch/launch.h"

static const RtKernel kernels[] = {
    {.name = "one", .args = 1},
    {.name = "two", .args = 2},
    {.name = "merged", .args = 4, .phases = 2},
};
// Two overlap; one is of another step.
static const RtMergedLaunch merges[] = {
    {.step = 1,
     .launch = 1,
     .count = 2,
     .kernel = 2,
     .blocks = 7,
     .barrier = 9},
    {.step = 1, .launch = 2, .count = 2, .kernel = 2},
    {.step = 0, .launch = 1, .count = 2, .kernel = 2},
};
static const RtFusion fusions[] = {{.step = 1, .launch = 1}};
static const RtPlan plan = {.kernel = kernels,
                            .num_kernels = 3,
                            .merged = merges,
                            .num_merged = 3,
                            .fusion = fusions,
                            .num_fusions = 1};

START_TEST(none_is_taken_twice) {
    bool fused = false, taken[3];
    rt_merges_choose(&plan, NULL, &fused, NULL, taken);
    ck_assert(taken[0] && !taken[1] && taken[2]);
}
END_TEST

START_TEST(none_with_a_fused_kernel_is_taken) {
    bool fused = true, taken[3];
    rt_merges_choose(&plan, NULL, &fused, NULL, taken);
    ck_assert(!taken[0] && taken[1] && taken[2]);
}
END_TEST

// A trainer without code for the GPU has its configuration -1: the merged
// kernel runs there.
START_TEST(none_is_taken_whose_kernel_a_tile_kernel_replaces) {
    static const RtTile tile = {.call = 0, .step = 1, .launch = 1};
    int config = -1;
    RtTiles tiles = {.tile = &tile, .count = 1, .config = &config};
    bool fused = false, taken[3];
    rt_merges_choose(&plan, &tiles, &fused, NULL, taken);
    ck_assert(taken[0] && !taken[1] && taken[2]);
    config = 0;
    rt_merges_choose(&plan, &tiles, &fused, NULL, taken);
    ck_assert(!taken[0] && taken[1] && taken[2]);
}
END_TEST

START_TEST(arguments_are_collected) {
    const bool taken[] = {true, false, false};
    const size_t first[] = {11}, second[] = {21, 22}, *arg = first;
    int kernel = 0, grid = 3;
    RtMerging m;
    rt_merging_begin(&m, &plan, taken, 1);
    rt_merging_skip(&m); // a call
    ck_assert(!rt_merging_add(&m, &kernel, &grid, &arg));
    kernel = 1;
    arg = second;
    ck_assert(rt_merging_add(&m, &kernel, &grid, &arg));
    ck_assert_int_eq(kernel, 2);
    ck_assert_int_eq(grid, 7);
    const size_t expected[] = {11, 21, 22, 9};
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(arg[i], expected[i]);
}
END_TEST

START_TEST(other_launches_pass) {
    const bool taken[] = {true, false, true};
    const size_t own[] = {11}, *arg = own;
    int kernel = 0, grid = 3;
    RtMerging m;
    rt_merging_begin(&m, &plan, taken, 1);
    ck_assert(rt_merging_add(&m, &kernel, &grid, &arg));
    ck_assert(kernel == 0 && grid == 3 && arg == own);
}
END_TEST

Suite *merged_launch_suite(void) {
    Suite *s = suite_create("merged_launch");
    TCase *t = tcase_create("merged_launch");
    tcase_add_test(t, none_is_taken_twice);
    tcase_add_test(t, none_with_a_fused_kernel_is_taken);
    tcase_add_test(t, none_is_taken_whose_kernel_a_tile_kernel_replaces);
    tcase_add_test(t, arguments_are_collected);
    tcase_add_test(t, other_launches_pass);
    suite_add_tcase(s, t);
    return s;
}
