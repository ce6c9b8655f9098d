// The host device: memory, launches and times.
#define _POSIX_C_SOURCE 200809L

#include "runtime/host/host.h"
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

// Each block marks itself, and checks all marks in a second phase.
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

START_TEST(memory_is_zero_before_the_first_write) {
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

// Runs a launch with these times, alone and with a team of 4; returns how many
// of the runs the team made.
static int team_runs(RtTeamSize *t, int runs, double alone, double team) {
    int by_team = 0;
    for (int i = 0; i < runs; i++) {
        int threads = rt_team_size(t, 4);
        ck_assert(threads == 1 || threads == 4);
        by_team += threads == 4;
        rt_team_measure(t, threads, threads == 1 ? alone : team);
    }
    return by_team;
}

START_TEST(a_short_launch_never_has_the_team) {
    RtTeamSize t = {0};
    ck_assert_int_eq(team_runs(&t, 5000, 10e-6, 5e-6), 0);
}
END_TEST

START_TEST(the_team_is_chosen_where_it_is_faster) {
    RtTeamSize faster = {0}, slower = {0};
    ck_assert_int_eq(team_runs(&faster, 5, 1e-3, 0.3e-3), 2);
    ck_assert_int_eq(team_runs(&faster, 1000, 1e-3, 0.3e-3), 1000);
    ck_assert_int_eq(team_runs(&slower, 5, 1e-3, 10e-3), 2);
    ck_assert_int_eq(team_runs(&slower, 1000, 1e-3, 10e-3), 0);
}
END_TEST

// Load during the trials does not decide for ever, and the slower choice takes
// at most a hundredth of the time.
START_TEST(the_choice_follows_the_machine) {
    RtTeamSize t = {0};
    team_runs(&t, 5, 2e-3, 10e-3);
    ck_assert_int_gt(team_runs(&t, 20000, 1e-3, 0.1e-3), 10000);
    int by_team = team_runs(&t, 1000000, 0.05e-3, 10e-3);
    ck_assert_int_lt(by_team, 1000000 / 100);
    ck_assert(by_team * 10e-3 < 0.01 * (1000000 * 0.05e-3 + 10e-3 * 4000));
}
END_TEST

START_TEST(small_calls_run_on_one_thread) {
    RtCall product = {.kind = RT_MATMUL, .n = 64, .k = 32, .c = 16, .batch = 1};
    ck_assert_int_eq(rt_call_threads(&product, 4), 1);
    product.batch = 100; // 6.5 Mflop
    ck_assert_int_eq(rt_call_threads(&product, 4), 4);
    RtCall conv = {.kind = RT_CONV,
                   .n = 16,
                   .oh = 8,
                   .ow = 8,
                   .k = 16,
                   .c = 16,
                   .r = 3,
                   .s = 3,
                   .groups = 1}; // 4.7 Mflop
    ck_assert_int_eq(rt_call_threads(&conv, 4), 4);
    conv.groups = 16;
    ck_assert_int_eq(rt_call_threads(&conv, 4), 1);
}
END_TEST

Suite *host_suite(void) {
    Suite *s = suite_create("host");
    TCase *t = tcase_create("host");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, a_launch_runs_each_block_once, 1, 5);
    tcase_add_loop_test(
        t, a_phase_begins_when_all_blocks_have_ended_the_one_before, 1, 5);
    tcase_add_test(t, memory_is_zero_before_the_first_write);
    tcase_add_test(t, needed_and_available);
    tcase_add_test(t, phases_have_their_times);
    tcase_add_test(t, a_short_launch_never_has_the_team);
    tcase_add_test(t, the_team_is_chosen_where_it_is_faster);
    tcase_add_test(t, the_choice_follows_the_machine);
    tcase_add_test(t, small_calls_run_on_one_thread);
    suite_add_tcase(s, t);
    return s;
}
