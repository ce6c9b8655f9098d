// The faithful mode computes correct results for correct kernels in every
// schedule, and finds each planted bug at its line.
#include "tests/simt/kernels.h"
#include "tests/simt/simt.h"

#include <check.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

// Buffers with gaps, so that an access past the end is in no region.
typedef struct {
    float in[COUNT], gap1[16], out[COUNT], gap2[16];
    int counter;
} Buffers;

static const size_t arg[] = {
    offsetof(Buffers, in),
    offsetof(Buffers, out),
    offsetof(Buffers, counter),
};

static Buffers *arena;

static void kernel_run(TestKernel *kernel) {
    arena = arena ? arena : calloc(1, sizeof *arena);
    simt_faults_clear();
    simt_regions_clear();
    simt_region(arena->in, sizeof arena->in, "in", true);
    simt_region(arena->out, sizeof arena->out, "out", false);
    simt_region(&arena->counter, sizeof arena->counter, "counter", true);
    for (int i = 0; i < COUNT; i++) {
        arena->in[i] = (float)(i % 7);
        arena->out[i] = -1;
    }
    arena->counter = 0;
    simt_run(kernel, (char *)arena, arg, 0, GRID, GRID, BLOCK);
}

static float sum_of(int first, int count) {
    float sum = 0;
    for (int i = first; i < first + count; i++)
        sum += (float)(i % 7);
    return sum;
}

static void expect_no_fault(void) {
    ck_assert_msg(simt_faults() == 0, "%s", simt_fault(0));
}

START_TEST(block_sums) {
    simt_schedule((SimtSchedule)_i, 1);
    kernel_run(block_sum);
    expect_no_fault();
    for (int b = 0; b < GRID; b++)
        ck_assert(arena->out[b] == sum_of(b * BLOCK, BLOCK));
}
END_TEST

START_TEST(rotates) {
    simt_schedule((SimtSchedule)_i, 2);
    kernel_run(rotate_twice);
    expect_no_fault();
    for (int i = 0; i < COUNT; i++)
        ck_assert(arena->out[i] ==
                  arena->in[i / BLOCK * BLOCK + (i + 2) % BLOCK]);
}
END_TEST

START_TEST(warp_sums) {
    simt_schedule((SimtSchedule)_i, 3);
    kernel_run(warp_sum);
    expect_no_fault();
    for (int i = 0; i < COUNT; i++)
        ck_assert(arena->out[i] ==
                  sum_of(i / SIMT_WARP * SIMT_WARP, SIMT_WARP));
}
END_TEST

START_TEST(last_block_sums) {
    simt_schedule((SimtSchedule)_i, 4);
    kernel_run(ticket_sum);
    expect_no_fault();
    ck_assert(arena->out[0] == sum_of(0, COUNT));
}
END_TEST

// Each phase reads all blocks' results of the one before.
START_TEST(phases_are_ordered) {
    simt_schedule((SimtSchedule)_i, 6);
    kernel_run(block_sum);
    simt_run(partials_added, (char *)arena, arg, 0, GRID, GRID, BLOCK);
    expect_no_fault();
    for (int b = 0; b < GRID; b++)
        ck_assert(arena->out[GRID + b] == sum_of(0, COUNT));
}
END_TEST

// Without its barrier the kernel computes a wrong result if a waiting thread
// reads unwritten memory.
START_TEST(schedule_shows_missing_barrier) {
    simt_schedule(SIMT_ASCENDING, 0);
    simt_faults_keep(true);
    kernel_run(block_sum_no_barrier);
    ck_assert(!(arena->out[0] == sum_of(0, BLOCK)));
}
END_TEST

// A thread of the host device runs a part of a launch's blocks.
START_TEST(part_of_grid) {
    kernel_run(block_sum);
    memset(arena->out, 0, sizeof arena->out);
    simt_run(block_sum, (char *)arena, arg, 1, 2, GRID, BLOCK);
    ck_assert(arena->out[0] == 0 && arena->out[2] == 0);
    ck_assert(arena->out[1] == sum_of(BLOCK, BLOCK));
}
END_TEST

// clang-format off
static const struct {
    const char *name;
    TestKernel *kernel;
    const char *fault; // the kind of fault, and where
} bug[] = {
    {"block_sum_no_barrier",    block_sum_no_barrier,    "without order"},
    {"rotate_twice_no_barrier", rotate_twice_no_barrier, "without order"},
    {"neighbour_in_warp",       neighbour_in_warp,       "without order"},
    {"warp_partial",            warp_partial,            "not every lane reaches"},
    {"warp_from_outside",       warp_from_outside,       "a lane that is not there"},
    {"barrier_divergent",       barrier_divergent,       "not every thread reaches"},
    {"barrier_two_lines",       barrier_two_lines,       "different barriers"},
    {"write_past_end",          write_past_end,          "a write outside every buffer"},
    {"read_past_end",           read_past_end,           "a read outside every buffer"},
    {"read_unwritten",          read_unwritten,          "nothing has written in out"},
    {"shared_unwritten",        shared_unwritten,        "nothing has written in shared memory"},
    {"every_block_writes",      every_block_writes,      "two writes without order in out"},
    {"ticket_sum_no_barrier",   ticket_sum_no_barrier,   "a read without order after a write in out"},
    {"partials_no_ticket",      partials_no_ticket,      "in out"},
    {"partials_in_one_phase",   partials_in_one_phase,   "in out"},
};
// clang-format on

enum { NUM_BUGS = sizeof bug / sizeof bug[0], NUM_SCHEDULES = 3 };

START_TEST(bug_found) {
    int i = _i / NUM_SCHEDULES;
    simt_schedule((SimtSchedule)(_i % NUM_SCHEDULES), 5);
    simt_faults_keep(true);
    kernel_run(bug[i].kernel);
    ck_assert_msg(simt_faults() > 0, "%s: nothing found", bug[i].name);
    bool found = false;
    for (int f = 0; f < simt_faults(); f++)
        found |= strstr(simt_fault(f), bug[i].fault) != NULL &&
                 strstr(simt_fault(f), "simt/kernels.c:") != NULL;
    ck_assert_msg(found, "%s: found only: %s", bug[i].name, simt_fault(0));
}
END_TEST

START_TEST(fault_aborts) {
    kernel_run(barrier_divergent);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("simt");
    TCase *right = tcase_create("right"), *wrong = tcase_create("wrong");
    tcase_add_loop_test(right, block_sums, 0, NUM_SCHEDULES);
    tcase_add_loop_test(right, rotates, 0, NUM_SCHEDULES);
    tcase_add_loop_test(right, warp_sums, 0, NUM_SCHEDULES);
    tcase_add_loop_test(right, last_block_sums, 0, NUM_SCHEDULES);
    tcase_add_loop_test(right, phases_are_ordered, 0, NUM_SCHEDULES);
    tcase_add_test(right, part_of_grid);
    tcase_add_test(wrong, schedule_shows_missing_barrier);
    tcase_add_loop_test(wrong, bug_found, 0, NUM_BUGS * NUM_SCHEDULES);
    tcase_add_test_raise_signal(wrong, fault_aborts, 6);
    suite_add_tcase(suite, right);
    suite_add_tcase(suite, wrong);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
