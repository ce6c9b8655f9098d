// Threads together: shuffles, barriers of a block, and blocks that wait for
// all.
#include "tests/ptx/check_ptx.h"

#include <stdio.h>
#include <string.h>

enum { WARP = 32, THREADS = 128, MAX_SEEDS = 6 };

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
    program_run(
        &(Program){NULL, body, 1, COUNT, (unsigned)_i % 2, false, false}, NULL,
        to);
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
    program_run(&(Program){NULL, body, 1, THREADS, seed, false, false}, NULL,
                to);
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

// ---- order of accesses of several blocks ----

// The last block of a launch, as it comes, sums what all have left: thread 1 of
// each, behind a barrier that thread 0 has before it counts the block.
static const char last_body[] = "\tmov.u32 \t%%r1, %%ctaid.x;\n"
                                "\tsetp.ne.s32 \t%%p1, %%r0, 1;\n"
                                "\t@%%p1 bra \t$L__BB0_1;\n"
                                "\n"
                                "\tmul.wide.u32 \t%%rd1, %%r1, 4;\n"
                                "\tadd.s64 \t%%rd2, %%rd12, %%rd1;\n"
                                "\tst.global.u32 \t[%%rd2+8], %%r1;\n"
                                "\n"
                                "$L__BB0_1:\n"
                                "\t%s\n"
                                "\tsetp.ne.s32 \t%%p1, %%r0, 0;\n"
                                "\t@%%p1 bra \t$L__BB0_2;\n"
                                "\n"
                                "\t%s\n"
                                "\tst.shared.u32 \t[last], %%r2;\n"
                                "\n"
                                "$L__BB0_2:\n"
                                "\tbar.sync \t0;\n"
                                "\tld.shared.u32 \t%%r3, [last];\n"
                                "\tsetp.ne.s32 \t%%p2, %%r3, 6;\n"
                                "\t@%%p2 bra \t$L__BB0_3;\n"
                                "\n"
                                "\tsetp.gt.u32 \t%%p3, %%r0, 6;\n"
                                "\t@%%p3 bra \t$L__BB0_3;\n"
                                "\n"
                                "\tmul.wide.u32 \t%%rd3, %%r0, 4;\n"
                                "\tadd.s64 \t%%rd4, %%rd12, %%rd3;\n"
                                "\tld.global.u32 \t%%r4, [%%rd4+8];\n"
                                "\tatom.global.add.u32 \t%%r5, [%%rd12+4], "
                                "%%r4;\n"
                                "\n"
                                "$L__BB0_3:\n";

static const char add[] = "atom.global.add.u32 \t%r2, [%rd12], 1;";
static const char add_releases[] =
    "atom.release.gpu.global.add.u32 \t%r2, [%rd12], 1;";
static const char add_acquires[] =
    "atom.acquire.gpu.global.add.u32 \t%r2, [%rd12], 1;";
static const char add_orders[] =
    "atom.acq_rel.gpu.global.add.u32 \t%r2, [%rd12], 1;";
static const char add_orders_block[] =
    "atom.acq_rel.cta.global.add.u32 \t%r2, [%rd12], 1;";
static const char fence_add_fence[] =
    "membar.gl;\n\tatom.global.add.u32 \t%r2, [%rd12], 1;\n\tmembar.gl;";
// Whether the last block sums all numbers.
static bool is_summed(const char *meets, const char *counts, unsigned seed,
                      bool delays) {
    enum { GRID = 7 };
    _Alignas(16) uint32_t to[2 + GRID] = {0};
    char body[2048];
    snprintf(body, sizeof body, last_body, meets, counts);
    program_run(&(Program){".shared .align 4 .u32 last;\n", body, GRID, 64,
                           seed, delays, false},
                NULL, to);
    ck_assert_uint_eq(to[0], GRID);
    return to[1] == GRID * (GRID - 1) / 2;
}

START_TEST(the_last_block_sums) {
    ck_assert(is_summed(barrier, add, (unsigned)_i, false));
    ck_assert(is_summed(barrier, add_orders, (unsigned)_i, true));
    ck_assert(is_summed(barrier, fence_add_fence, (unsigned)_i, true));
}
END_TEST

// Stores are delayed for as long as they may be.  As one block runs after
// another, an acquire before the add, which is too early, is not seen.
START_TEST(an_order_that_lacks_is_seen) {
    ck_assert(!is_summed(barrier, add, (unsigned)_i, true));
    ck_assert(!is_summed(barrier, add_releases, (unsigned)_i, true));
    ck_assert(!is_summed(barrier, add_acquires, (unsigned)_i, true));
    ck_assert(!is_summed(barrier, add_orders_block, (unsigned)_i, true));
    ck_assert(!is_summed("", add_orders, (unsigned)_i, true));
}
END_TEST

// ---- blocks that wait ----

// The barrier of a grid in the prelude, as NVRTC writes it: three phases, in
// each of which a block reads what the next one wrote in the phase before.
// Two lines vary: the add, and what comes behind the loop.
static const char grid_barrier[] =
    "\tbar.sync \t0;\n"
    "\tsetp.ne.s32 \t%%p1, %%r0, 0;\n"
    "\t@%%p1 bra \t$L__BB0_%d;\n"
    "\n"
    "\tsetp.eq.s32 \t%%p2, %%r1, 0;\n"
    "\tmov.u32 \t%%r3, -2147483647;\n"
    "\tsub.s32 \t%%r4, %%r3, %%r2;\n"
    "\tselp.b32 \t%%r5, %%r4, 1, %%p2;\n"
    "\tatom%s.global.add.u32 \t%%r6, [%%rd12+4], %%r5;\n"
    "\n"
    "$L__BB0_%d:\n"
    "\tld.volatile.global.u32 \t%%r7, [%%rd12+4];\n"
    "\txor.b32 \t%%r8, %%r7, %%r6;\n"
    "\tsetp.gt.s32 \t%%p3, %%r8, -1;\n"
    "\t@%%p3 bra \t$L__BB0_%d;\n"
    "\n"
    "\t%s\n"
    "\n"
    "$L__BB0_%d:\n"
    "\tbar.sync \t0;\n";

static void grid_body(const char *order, const char *behind, char *to,
                      size_t room) {
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
        at += (size_t)snprintf(to + at, room - at, grid_barrier, done, order,
                               again, again, behind, done);
        at += (size_t)snprintf(to + at, room - at,
                               "\tld.global.u32 \t%%r11, [%%rd4+%d];\n"
                               "\tst.global.u32 \t[%%rd2+%d], %%r11;\n",
                               8 + 64 * phase, 8 + 64 * (phase + 1));
    }
}

// How many blocks read what is right.
static int read_right(const char *order, const char *behind, unsigned seed) {
    enum { GRID = 11 };
    _Alignas(16) uint32_t to[2 + 4 * 16] = {0};
    char body[4096];
    int right = 0;
    grid_body(order, behind, body, sizeof body);
    program_run(&(Program){NULL, body, GRID, 64, seed, true, false}, NULL, to);
    for (unsigned i = 0; i < GRID; i++)
        right += to[2 + 3 * 16 + i] == (i + 3) % GRID;
    return right;
}

START_TEST(a_grid_waits_for_all_its_blocks) {
    ck_assert_int_eq(
        read_right(".release.gpu", "fence.acq_rel.gpu;", (unsigned)_i), 11);
    ck_assert_int_lt(read_right(".release.gpu", "", (unsigned)_i), 11);
    ck_assert_int_lt(read_right("", "fence.acq_rel.gpu;", (unsigned)_i), 11);
}
END_TEST

// ---- launches that depend on one another ----

// Each thread adds 1 to what thread number + 7 left in the launch before.
static const char dependent_body[] = "\tmov.u32 \t%%r1, %%ctaid.x;\n"
                                     "\tmov.u32 \t%%r2, %%nctaid.x;\n"
                                     "\tshl.b32 \t%%r3, %%r1, 5;\n"
                                     "\tadd.s32 \t%%r3, %%r3, %%r0;\n"
                                     "\tshl.b32 \t%%r4, %%r2, 5;\n"
                                     "\tadd.s32 \t%%r5, %%r3, 7;\n"
                                     "\trem.s32 \t%%r6, %%r5, %%r4;\n"
                                     "\tmul.wide.u32 \t%%rd1, %%r6, 4;\n"
                                     "\tadd.s64 \t%%rd2, %%rd11, %%rd1;\n"
                                     "\tmul.wide.u32 \t%%rd3, %%r3, 4;\n"
                                     "\tadd.s64 \t%%rd4, %%rd12, %%rd3;\n"
                                     "%s"
                                     "\tadd.s32 \t%%r7, %%r7, 1;\n"
                                     "\tst.global.u32 \t[%%rd4], %%r7;";

static const char waits[] = "\tgriddepcontrol.wait;\n"
                            "\tgriddepcontrol.launch_dependents;\n"
                            "\tld.global.u32 \t%r7, [%rd2];\n";
// Reads what the launch before writes, and writes what it reads, too early.
static const char reads_early[] = "\tld.global.u32 \t%r7, [%rd2];\n"
                                  "\tgriddepcontrol.wait;\n"
                                  "\tgriddepcontrol.launch_dependents;\n";
static const char writes_early[] = "\tst.global.u32 \t[%rd4], 0;\n"
                                   "\tgriddepcontrol.wait;\n"
                                   "\tgriddepcontrol.launch_dependents;\n"
                                   "\tld.global.u32 \t%r7, [%rd2];\n";

// How many numbers are right after so many launches in turn, between two
// arrays.
static int chained(const char *dependence, int launches, unsigned seed,
                   bool delays) {
    enum { GRID = 5, LANES = 32, COUNT = GRID * LANES };
    _Alignas(16) uint32_t array[2][COUNT];
    char body[2048], text[MAX_TEXT];
    snprintf(body, sizeof body, dependent_body, dependence);
    program_text(&(Program){.body = body, .threads = LANES}, text);
    PtxModule *m = ptx_read(text);
    PtxLaunch *launch = NULL, *next;
    for (unsigned i = 0; i < COUNT; i++)
        array[0][i] = i;
    for (int i = 0; i <= launches; i++, launch = next) {
        void *from = array[i % 2], *to = array[(i + 1) % 2];
        PtxOrder order = {(unsigned)i + seed * 64, delays, i > 0, false};
        next = i == launches
                   ? NULL
                   : ptx_launch_new(ptx_kernel(m, 0), (void *[]){&from, &to},
                                    GRID, LANES, order);
        if (launch != NULL)
            ptx_launch_run(launch, next);
    }
    ptx_free(m);
    int right = 0;
    for (unsigned i = 0; i < COUNT; i++)
        right += array[launches % 2][i] ==
                 (i + 7 * (unsigned)launches) % COUNT + (unsigned)launches;
    return COUNT - right;
}

enum { SCHEDULES = 500 };

START_TEST(a_launch_waits_for_the_one_before) {
    for (unsigned seed = 1; seed <= SCHEDULES; seed++)
        ck_assert_int_eq(chained(waits, 6, seed, seed % 2 == 0), 0);
}
END_TEST

START_TEST(an_access_before_the_wait_is_seen) {
    int reads = 0, writes = 0;
    for (unsigned seed = 1; seed <= SCHEDULES; seed++) {
        reads += chained(reads_early, 6, seed, false) != 0;
        writes += chained(writes_early, 6, seed, false) != 0;
    }
    ck_assert_int_gt(reads, SCHEDULES / 4);
    ck_assert_int_gt(writes, SCHEDULES / 4);
}
END_TEST

Suite *threads_suite(void) {
    Suite *s = suite_create("threads");
    TCase *c = tcase_create("threads");
    tcase_add_loop_test(c, lanes_read_other_lanes, 0,
                        2 * sizeof shuffles / sizeof shuffles[0]);
    tcase_add_test(c, lanes_are_counted_in_each_warp);
    tcase_add_loop_test(c, a_warp_is_summed, 0, MAX_SEEDS);
    tcase_add_loop_test(c, a_barrier_is_for_all_warps, 0, MAX_SEEDS);
    tcase_add_loop_test(c, a_barrier_that_lacks_is_seen, 0, MAX_SEEDS);
    tcase_add_loop_test(c, the_last_block_sums, 0, MAX_SEEDS);
    tcase_add_loop_test(c, an_order_that_lacks_is_seen, 0, MAX_SEEDS);
    tcase_add_loop_test(c, a_grid_waits_for_all_its_blocks, 0, MAX_SEEDS);
    suite_add_tcase(s, c);
    TCase *dependent = tcase_create("dependent");
    tcase_set_tags(dependent, "numbers");
    tcase_add_test(dependent, a_launch_waits_for_the_one_before);
    tcase_add_test(dependent, an_access_before_the_wait_is_seen);
    suite_add_tcase(s, dependent);
    return s;
}
