// The host device: memory, launches and times.
#define _POSIX_C_SOURCE 200809L

#include "runtime/runtime.h"
#include "tests/runtime/suites.h"

#include <stdlib.h>
#include <string.h>

enum { GRID = 37 };

// Adds one to the byte of each block.
static void mark(char *arena, const size_t *arg, int first, int last, int grid,
                 int phase) {
    ck_assert_int_eq(grid, GRID);
    ck_assert_int_eq(phase, 0);
    for (int i = first; i < last; i++)
        arena[arg[0] + (size_t)i]++;
}

// Each block marks itself, and in a second phase looks at all of them.
static void mark_and_count(char *arena, const size_t *arg, int first, int last,
                           int grid, int phase) {
    for (int i = first; i < last; i++) {
        char *own = arena + arg[phase] + i;
        if (phase == 0)
            *own = 1;
        for (int j = 0; j < grid && phase == 1; j++)
            *own = (char)(*own + arena[arg[0] + (size_t)j]);
    }
}

static const RtKernel kernels[] = {
    {.name = "mark", .host = mark, .phases = 1},
    {.name = "mark_and_count", .host = mark_and_count, .phases = 2}};
static const RtPlan plan = {
    .device = "host", .arena_bytes = 4096, .kernel = kernels, .num_kernels = 2};

START_TEST(a_phase_begins_when_all_blocks_have_ended_the_one_before) {
    for (int round = 0; round < 100; round++) {
        char bytes[GRID];
        RtDevice *d = host_open(&plan, _i);
        d->reserve(d);
        LAUNCH(d, 1, GRID, 64, 1024);
        d->read(d, bytes, 1024, sizeof bytes);
        for (int i = 0; i < GRID; i++)
            ck_assert_int_eq(bytes[i], GRID);
        d->close(d);
    }
}
END_TEST

START_TEST(a_launch_runs_each_block_once) {
    char bytes[GRID + 1] = {0};
    RtDevice *d = host_open(&plan, _i);
    d->reserve(d);
    for (int round = 1; round <= 100; round++) {
        LAUNCH(d, 0, GRID, 64);
        d->read(d, bytes, 64, sizeof bytes);
        for (int i = 0; i < GRID; i++)
            ck_assert_int_eq(bytes[i], round);
        ck_assert_int_eq(bytes[GRID], 0);
    }
    d->close(d);
}
END_TEST

START_TEST(memory_is_zero_then_what_was_written) {
    char in[4096], out[4096];
    RtDevice *d = host_open(&plan, 1);
    d->reserve(d);
    d->read(d, out, 0, sizeof out);
    for (size_t i = 0; i < sizeof out; i++) {
        ck_assert_int_eq(out[i], 0);
        in[i] = (char)i;
    }
    d->write(d, 0, in, sizeof in);
    d->read(d, out, 0, sizeof out);
    ck_assert_int_eq(memcmp(in, out, sizeof in), 0);
    d->close(d);
}
END_TEST

START_TEST(needed_and_available) {
    RtPlan large = plan;
    RtDevice *d = host_open(&plan, 1);
    ck_assert_uint_ge(d->needed(d), 4096);
    ck_assert_uint_gt(d->available(d), 0);
    ck_assert_uint_lt(d->available(d), SIZE_MAX);
    ck_assert_ptr_nonnull(strstr(d->describe(d), "1 thread"));
    d->close(d);
    large.arena_bytes = SIZE_MAX - 5;
    d = host_open(&large, 1);
    ck_assert_uint_eq(d->needed(d), SIZE_MAX);
    d->close(d);
}
END_TEST

static void pass_time(double seconds) {
    for (double until = rt_seconds() + seconds; rt_seconds() < until;)
        continue;
}

START_TEST(phases_have_their_times) {
    RtTimes spent;
    RtDevice *d = host_open(&plan, 1);
    d->reserve(d);
    d->times(d, &spent);
    d->phase(d, RT_FORWARD);
    pass_time(0.02);
    d->phase(d, RT_UPDATE);
    pass_time(0.01);
    d->phase(d, RT_OTHER);
    d->times(d, &spent);
    ck_assert(spent.phase[RT_FORWARD] >= 0.02);
    ck_assert(spent.phase[RT_UPDATE] >= 0.01);
    ck_assert(spent.phase[RT_BACKWARD] == 0);
    d->times(d, &spent);
    ck_assert(spent.phase[RT_FORWARD] == 0);
    d->close(d);
}
END_TEST

Suite *host_suite(void) {
    Suite *s = suite_create("host");
    TCase *t = tcase_create("host");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, a_launch_runs_each_block_once, 1, 5);
    tcase_add_loop_test(
        t, a_phase_begins_when_all_blocks_have_ended_the_one_before, 1, 5);
    tcase_add_test(t, memory_is_zero_then_what_was_written);
    tcase_add_test(t, needed_and_available);
    tcase_add_test(t, phases_have_their_times);
    suite_add_tcase(s, t);
    return s;
}
