// Threads together: shuffles, barriers of a block, and blocks that wait for
// all.
#include "tests/ptx/check_ptx.h"

#include <stdio.h>
#include <string.h>

enum { WARP = 32, THREADS = 128, MOST_SEEDS = 6 };

// ---- shuffles ----

// As CUDA's functions use them: how, by how many lanes or from which, and what
// the segments of a width ask for.
static const struct {
    const char *how;
    int by, clamp;
    // The lane that this one reads; one that is not in its segment is not read.
    int width, sign;
} shuffles[] = {
    {"idx", 5, 0x1f, 32, 0},   {"idx", 40, 0x1f, 32, 0},
    {"idx", 3, 0x181f, 8, 0},  {"idx", 11, 0x181f, 8, 0},
    {"bfly", 1, 0x1f, 32, 0},  {"bfly", 16, 0x1f, 32, 0},
    {"bfly", 8, 0x181f, 8, 0}, {"bfly", 3, 0x1c1f, 4, 0},
    {"up", 1, 0, 32, -1},      {"up", 3, 0x1800, 8, -1},
    {"up", 40, 0, 32, -1},     {"down", 1, 0x1f, 32, 1},
    {"down", 3, 0x181f, 8, 1}, {"down", 16, 0x1f, 32, 1},
    {"down", 31, 0x1f, 32, 1},
};

// Lanes above a clamp that is less than the last are not read.
static int lane_read(int of, int lane, bool *inside) {
    int by = shuffles[of].by % WARP, width = shuffles[of].width;
    int start = lane / width * width, from;
    if (strcmp(shuffles[of].how, "idx") == 0)
        from = start + by % width;
    else if (strcmp(shuffles[of].how, "bfly") == 0)
        from = lane ^ by;
    else
        from = lane + shuffles[of].sign * by;
    // A butterfly may reach segments before its own.
    *inside = from < start + width &&
              (from >= start || strcmp(shuffles[of].how, "bfly") == 0);
    return *inside ? from : lane;
}

static const char shuffle_body[] =
    "\tmul.lo.s32 \t%%r1, %%r0, 10;\n"
    "\tmov.u32 \t%%r2, %d;\n"
    "\tmov.u32 \t%%r3, %d;\n"
    "\tmov.u32 \t%%r4, -1;\n"
    "\tshfl.sync.%s.b32 \t%%r5|%%p1, %%r1, %%r2, %%r3, %%r4;\n"
    "\tselp.u32 \t%%r6, 1, 0, %%p1;\n"
    "\tmul.wide.u32 \t%%rd1, %%r0, 8;\n"
    "\tadd.s64 \t%%rd2, %%rd12, %%rd1;\n"
    "\tst.global.v2.u32 \t[%%rd2], {%%r5, %%r6};";

START_TEST(lanes_read_other_lanes) {
    enum { COUNT = 2 * WARP };
    _Alignas(16) uint32_t to[COUNT][2];
    char body[1024];
    int of = _i / 2;
    snprintf(body, sizeof body, shuffle_body, shuffles[of].by,
             shuffles[of].clamp, shuffles[of].how);
    program_run(&(Program){NULL, body, 1, COUNT, (unsigned)_i % 2}, NULL, to);
    for (int i = 0; i < COUNT; i++) {
        bool inside;
        int lane = i % WARP, from = lane_read(of, lane, &inside);
        ck_assert_msg(to[i][0] == 10 * (unsigned)(i - lane + from) &&
                          to[i][1] == inside,
                      "%s by %d, clamp %#x: lane %d has %u, %u; %d is right",
                      shuffles[of].how, shuffles[of].by, shuffles[of].clamp,
                      lane, to[i][0], to[i][1], from);
    }
}
END_TEST

START_TEST(lanes_are_counted_in_each_warp) {
    _Alignas(16) uint32_t to[THREADS];
    program_run(&(Program){.body = "\tmov.u32 \t%r1, %laneid;\n"
                                   "\tmul.wide.u32 \t%rd1, %r0, 4;\n"
                                   "\tadd.s64 \t%rd2, %rd12, %rd1;\n"
                                   "\tst.global.u32 \t[%rd2], %r1;",
                           .grid = 1,
                           .threads = THREADS},
                NULL, to);
    for (unsigned i = 0; i < THREADS; i++)
        ck_assert_uint_eq(to[i], i % WARP);
}
END_TEST

// Lanes may read from different ones, and the result may be the operand.
START_TEST(a_warp_is_summed) {
    _Alignas(16) uint32_t to[THREADS];
    program_run(
        &(Program){.body = "\tmov.u32 \t%r1, %r0;\n"
                           "\tmov.u32 \t%r2, 16;\n"
                           "\n"
                           "$L__BB0_1:\n"
                           "\txor.b32 \t%r3, %r0, %r2;\n"
                           "\tshfl.sync.idx.b32 \t%r3|%p1, %r1, %r3, 31, -1;\n"
                           "\tadd.s32 \t%r1, %r1, %r3;\n"
                           "\tshr.u32 \t%r2, %r2, 1;\n"
                           "\tsetp.ne.s32 \t%p2, %r2, 0;\n"
                           "\t@%p2 bra \t$L__BB0_1;\n"
                           "\n"
                           "\tmul.wide.u32 \t%rd1, %r0, 4;\n"
                           "\tadd.s64 \t%rd2, %rd12, %rd1;\n"
                           "\tst.global.u32 \t[%rd2], %r1;",
                   .grid = 1,
                   .threads = THREADS,
                   .seed = (unsigned)_i},
        NULL, to);
    for (unsigned i = 0; i < THREADS; i++)
        ck_assert_uint_eq(to[i],
                          i / WARP * WARP * WARP + WARP * (WARP - 1) / 2);
}
END_TEST

// ---- barriers of a block ----

// Each thread sums what the one at the other end of the block writes in three
// turns, so that two barriers keep a turn from the next one.
static const char reverse_body[] = "\t.shared .align 4 .b8 shared[512];\n"
                                   "\tmov.u32 \t%%r1, shared;\n"
                                   "\tshl.b32 \t%%r2, %%r0, 2;\n"
                                   "\tadd.s32 \t%%r3, %%r1, %%r2;\n"
                                   "\tsub.s32 \t%%r4, %%r1, %%r2;\n"
                                   "\tmov.u32 \t%%r5, 0;\n"
                                   "\tmov.u32 \t%%r8, 0;\n"
                                   "\n"
                                   "$L__BB0_1:\n"
                                   "\tadd.s32 \t%%r6, %%r0, %%r5;\n"
                                   "\tst.shared.u32 \t[%%r3], %%r6;\n"
                                   "\t%s\n"
                                   "\tld.shared.u32 \t%%r7, [%%r4+508];\n"
                                   "\tadd.s32 \t%%r8, %%r8, %%r7;\n"
                                   "\t%s\n"
                                   "\tadd.s32 \t%%r5, %%r5, 1;\n"
                                   "\tsetp.lt.s32 \t%%p1, %%r5, 3;\n"
                                   "\t@%%p1 bra \t$L__BB0_1;\n"
                                   "\n"
                                   "\tmul.wide.u32 \t%%rd1, %%r0, 4;\n"
                                   "\tadd.s64 \t%%rd2, %%rd12, %%rd1;\n"
                                   "\tst.global.u32 \t[%%rd2], %%r8;";

static const char barrier[] = "bar.sync \t0;";

// How many threads have read what is right.
static int reversed(const char *first, const char *second, unsigned seed) {
    _Alignas(16) uint32_t to[THREADS];
    char body[2048];
    int right = 0;
    snprintf(body, sizeof body, reverse_body, first, second);
    program_run(&(Program){NULL, body, 1, THREADS, seed}, NULL, to);
    for (unsigned i = 0; i < THREADS; i++)
        right += to[i] == 3 * (THREADS - 1 - i) + 3;
    return right;
}

START_TEST(a_barrier_is_for_all_warps) {
    ck_assert_int_eq(reversed(barrier, barrier, (unsigned)_i), THREADS);
}
END_TEST

// A thread goes as far as it can, so that it reads what is not there yet, and
// others see what it overwrites.
START_TEST(a_barrier_that_lacks_is_seen) {
    ck_assert_int_lt(reversed("", barrier, (unsigned)_i), THREADS);
    ck_assert_int_lt(reversed(barrier, "", (unsigned)_i), THREADS);
}
END_TEST

// The last block of a launch, as it comes, sums what all have left.
START_TEST(the_last_block_sums) {
    enum { GRID = 7 };
    _Alignas(16) uint32_t to[2 + GRID] = {0};
    program_run(&(Program){.declared = ".shared .align 4 .u32 last;\n",
                           .body =
                               "\tmov.u32 \t%r1, %ctaid.x;\n"
                               "\tsetp.ne.s32 \t%p1, %r0, 0;\n"
                               "\t@%p1 bra \t$L__BB0_2;\n"
                               "\n"
                               "\tmul.wide.u32 \t%rd1, %r1, 4;\n"
                               "\tadd.s64 \t%rd2, %rd12, %rd1;\n"
                               "\tst.global.u32 \t[%rd2+8], %r1;\n"
                               "\tmembar.gl;\n"
                               "\tatom.global.add.u32 \t%r2, [%rd12], 1;\n"
                               "\tst.shared.u32 \t[last], %r2;\n"
                               "\n"
                               "$L__BB0_2:\n"
                               "\tbar.sync \t0;\n"
                               "\tld.shared.u32 \t%r3, [last];\n"
                               "\tsetp.ne.s32 \t%p2, %r3, 6;\n"
                               "\t@%p2 bra \t$L__BB0_3;\n"
                               "\n"
                               "\tsetp.gt.u32 \t%p3, %r0, 6;\n"
                               "\t@%p3 bra \t$L__BB0_3;\n"
                               "\n"
                               "\tmul.wide.u32 \t%rd3, %r0, 4;\n"
                               "\tadd.s64 \t%rd4, %rd12, %rd3;\n"
                               "\tld.global.u32 \t%r4, [%rd4+8];\n"
                               "\tatom.global.add.u32 \t%r5, [%rd12+4], %r4;\n"
                               "\n"
                               "$L__BB0_3:\n",
                           .grid = GRID,
                           .threads = 64,
                           .seed = (unsigned)_i},
                NULL, to);
    ck_assert_uint_eq(to[0], GRID);
    ck_assert_uint_eq(to[1], GRID * (GRID - 1) / 2);
}
END_TEST

// ---- blocks that wait ----

// The barrier of a grid in the prelude, as NVRTC writes it: three phases, in
// each of which a block reads what the next one wrote in the phase before.
static const char grid_barrier[] =
    "\tbar.sync \t0;\n"
    "\tsetp.ne.s32 \t%%p1, %%r0, 0;\n"
    "\t@%%p1 bra \t$L__BB0_%d;\n"
    "\n"
    "\tmembar.gl;\n"
    "\tsetp.eq.s32 \t%%p2, %%r1, 0;\n"
    "\tmov.u32 \t%%r3, -2147483647;\n"
    "\tsub.s32 \t%%r4, %%r3, %%r2;\n"
    "\tselp.b32 \t%%r5, %%r4, 1, %%p2;\n"
    "\tatom.global.add.u32 \t%%r6, [%%rd12+4], %%r5;\n"
    "\n"
    "$L__BB0_%d:\n"
    "\tld.volatile.global.u32 \t%%r7, [%%rd12+4];\n"
    "\txor.b32 \t%%r8, %%r7, %%r6;\n"
    "\tsetp.gt.s32 \t%%p3, %%r8, -1;\n"
    "\t@%%p3 bra \t$L__BB0_%d;\n"
    "\n"
    "\tmembar.gl;\n"
    "\n"
    "$L__BB0_%d:\n"
    "\tbar.sync \t0;\n";

static void grid_body(char *to, size_t room) {
    size_t at = (size_t)snprintf(to, room,
                                 "\tmov.u32 \t%%r1, %%ctaid.x;\n"
                                 "\tmov.u32 \t%%r2, %%nctaid.x;\n"
                                 "\tmul.wide.u32 \t%%rd1, %%r1, 4;\n"
                                 "\tadd.s64 \t%%rd2, %%rd12, %%rd1;\n"
                                 "\tadd.s32 \t%%r9, %%r1, 1;\n"
                                 "\trem.s32 \t%%r10, %%r9, %%r2;\n"
                                 "\tmul.wide.u32 \t%%rd3, %%r10, 4;\n"
                                 "\tadd.s64 \t%%rd4, %%rd12, %%rd3;\n"
                                 "\tst.global.u32 \t[%%rd2+8], %%r1;\n");
    for (int phase = 0; phase < 3; phase++) {
        int done = 2 * phase, again = 2 * phase + 1;
        at += (size_t)snprintf(to + at, room - at, grid_barrier, done, again,
                               again, done);
        at += (size_t)snprintf(to + at, room - at,
                               "\tld.global.u32 \t%%r11, [%%rd4+%d];\n"
                               "\tst.global.u32 \t[%%rd2+%d], %%r11;\n",
                               8 + 64 * phase, 8 + 64 * (phase + 1));
    }
}

START_TEST(a_grid_waits_for_all_its_blocks) {
    enum { GRID = 11 };
    _Alignas(16) uint32_t to[2 + 4 * 16] = {0};
    char body[4096];
    grid_body(body, sizeof body);
    program_run(&(Program){NULL, body, GRID, 64, (unsigned)_i}, NULL, to);
    for (unsigned i = 0; i < GRID; i++)
        ck_assert_uint_eq(to[2 + 3 * 16 + i], (i + 3) % GRID);
}
END_TEST

Suite *threads_suite(void) {
    Suite *s = suite_create("threads");
    TCase *c = tcase_create("threads");
    tcase_add_loop_test(c, lanes_read_other_lanes, 0,
                        2 * sizeof shuffles / sizeof shuffles[0]);
    tcase_add_test(c, lanes_are_counted_in_each_warp);
    tcase_add_loop_test(c, a_warp_is_summed, 0, MOST_SEEDS);
    tcase_add_loop_test(c, a_barrier_is_for_all_warps, 0, MOST_SEEDS);
    tcase_add_loop_test(c, a_barrier_that_lacks_is_seen, 0, MOST_SEEDS);
    tcase_add_loop_test(c, the_last_block_sums, 0, MOST_SEEDS);
    tcase_add_loop_test(c, a_grid_waits_for_all_its_blocks, 0, MOST_SEEDS);
    suite_add_tcase(s, c);
    return s;
}
