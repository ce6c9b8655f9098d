// What warps do, counted by hand.
#include "tests/ptx/check_ptx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARP = 32, MAX_STRIDE = 128, ROOM = (WARP + 1) * MAX_STRIDE };

// What is counted of the instruction whose line begins so, of which there is
// one, as a block of so many threads executes a body.  It reads and writes a
// place at the start of a sector.
static PtxCount counted(const char *body, int threads, const char *begins) {
    static _Alignas(256) char place[ROOM];
    char text[MAX_TEXT];
    void *at = place;
    program_text(&(Program){NULL, body, 1, threads, 0, false, false}, text);
    PtxModule *m = ptx_read(text);
    const PtxKernel *k = ptx_kernel(m, 0);
    PtxCount *count = calloc((size_t)k->instructions, sizeof *count), is = {0};
    int found = 0, length;
    ck_assert_ptr_nonnull(count);
    ptx_run_counted(k, (void *[]){&at, &at}, 1, threads, count);
    for (int i = 0; i < k->instructions; i++)
        if (strncmp(ptx_line(m, k, i, &length), begins, strlen(begins)) == 0) {
            is = count[i];
            found++;
        }
    ck_assert_int_eq(found, 1);
    free(count);
    ptx_free(m);
    return is;
}

// Each thread accesses memory so many bytes behind the one before it.
typedef struct {
    const char *access;
    int stride, offset;
    uint64_t is, least;
} AccessCase;

static PtxCount access_counted(const AccessCase *c, const char *space,
                               const char *base) {
    char body[MAX_TEXT / 2], access[128], begins[16];
    snprintf(begins, sizeof begins, "%.3s%.6s", c->access, space);
    snprintf(access, sizeof access, c->access, space, c->offset);
    snprintf(body, sizeof body,
             "\t.shared .align 16 .b8 shared[%d];\n"
             "\tmov.u64 \t%%rd3, shared;\n"
             "\tmul.wide.u32 \t%%rd1, %%r0, %d;\n"
             "\tadd.s64 \t%%rd2, %s, %%rd1;\n"
             "\t%s",
             ROOM, c->stride, base, access);
    return counted(body, WARP, begins);
}

static void two_check(const AccessCase *c, uint64_t is, uint64_t least) {
    ck_assert_msg(is == c->is && least == c->least,
                  "%s, stride %d, offset %d: %d of %d, not %d of %d", c->access,
                  c->stride, c->offset, (int)is, (int)least, (int)c->is,
                  (int)c->least);
}

// ---- global memory ----

// clang-format off
static const AccessCase global_cases[] = {
    {"ld.%s.u32 \t%%r1, [%%rd2+%d];",                          4, 0,  4,  4},
    {"st.%s.u32 \t[%%rd2+%d], %%r1;",                          4, 0,  4,  4},
    {"ld.%s.nc.u32 \t%%r1, [%%rd2+%d];",                       4, 0,  4,  4},
    {"ld.%s.u32 \t%%r1, [%%rd2+%d];",                          8, 0,  8,  4},
    {"st.%s.u32 \t[%%rd2+%d], %%r1;",                          8, 0,  8,  4},
    {"ld.%s.u32 \t%%r1, [%%rd2+%d];",                        128, 0, 32,  4},
    {"ld.%s.u32 \t%%r1, [%%rd2+%d];",                          0, 0,  1,  1},
    {"ld.%s.u32 \t%%r1, [%%rd2+%d];",                          4, 4,  5,  4},
    {"ld.%s.u8 \t%%r1, [%%rd2+%d];",                           1, 0,  1,  1},
    {"ld.%s.u16 \t%%r1, [%%rd2+%d];",                          2, 30, 3,  2},
    {"ld.%s.u16 \t%%r1, [%%rd2+%d];",                         32, 0, 32,  2},
    {"ld.%s.v4.f32 \t{%%f1, %%f2, %%f3, %%f4}, [%%rd2+%d];",  16, 0, 16, 16},
    // Every second half of a sector.
    {"ld.%s.v4.f32 \t{%%f1, %%f2, %%f3, %%f4}, [%%rd2+%d];",  32, 16, 32, 16},
    {"st.%s.v4.f32 \t[%%rd2+%d], {%%f1, %%f2, %%f3, %%f4};",  32, 0, 32, 16},
};

static const AccessCase shared_cases[] = {
    {"ld.%s.u32 \t%%r1, [%%rd2+%d];",                          4, 0,  1, 1},
    {"st.%s.u32 \t[%%rd2+%d], %%r1;",                          4, 4,  1, 1},
    {"ld.%s.u32 \t%%r1, [%%rd2+%d];",                          8, 0,  2, 1},
    {"st.%s.u32 \t[%%rd2+%d], %%r1;",                         16, 0,  4, 1},
    {"ld.%s.u32 \t%%r1, [%%rd2+%d];",                        128, 0, 32, 1},
    {"ld.%s.u32 \t%%r1, [%%rd2+%d];",                        124, 0,  1, 1},
    {"ld.%s.u32 \t%%r1, [%%rd2+%d];",                          0, 0,  1, 1},
    {"ld.%s.u16 \t%%r1, [%%rd2+%d];",                          2, 0,  1, 1},
    {"ld.%s.v2.f32 \t{%%f1, %%f2}, [%%rd2+%d];",               8, 0,  2, 2},
    {"ld.%s.v2.f32 \t{%%f1, %%f2}, [%%rd2+%d];",              16, 0,  4, 2},
    {"ld.%s.v4.f32 \t{%%f1, %%f2, %%f3, %%f4}, [%%rd2+%d];",  16, 0,  4, 4},
    {"st.%s.v4.f32 \t[%%rd2+%d], {%%f1, %%f2, %%f3, %%f4};",  32, 0,  8, 4},
    {"ld.%s.v4.f32 \t{%%f1, %%f2, %%f3, %%f4}, [%%rd2+%d];", 128, 0, 32, 4},
};
// clang-format on

START_TEST(sectors_of_global_memory) {
    const AccessCase *c = &global_cases[_i];
    PtxCount is = access_counted(c, "global", "%rd11");
    ck_assert_uint_eq(is.turns, 0);
    two_check(c, is.sectors, is.least_sectors);
}
END_TEST

START_TEST(turns_of_shared_memory) {
    const AccessCase *c = &shared_cases[_i];
    PtxCount is = access_counted(c, "shared", "%rd3");
    ck_assert_uint_eq(is.sectors, 0);
    two_check(c, is.turns, is.least_turns);
}
END_TEST

// The load overwrites them.
START_TEST(addresses_are_those_before_the_access) {
    PtxCount is = counted("\tmul.wide.u32 \t%rd1, %r0, 8;\n"
                          "\tadd.s64 \t%rd2, %rd11, %rd1;\n"
                          "\tld.global.u64 \t%rd2, [%rd2];",
                          WARP, "ld.global");
    ck_assert_uint_eq(is.sectors, 8);
    ck_assert_uint_eq(is.least_sectors, 8);
}
END_TEST

// ---- threads ----

static void lanes_check(PtxCount is, uint64_t warps, uint64_t lanes) {
    ck_assert_uint_eq(is.warps, warps);
    ck_assert_uint_eq(is.lanes, lanes);
}

// Eight threads take one branch, the others the other one, and all meet.
static const char branches[] = "\tsetp.gt.u32 \t%p1, %r0, 7;\n"
                               "\tmul.wide.u32 \t%rd1, %r0, 4;\n"
                               "\tadd.s64 \t%rd2, %rd11, %rd1;\n"
                               "\t@%p1 bra \t$L__BB0_2;\n"
                               "\n"
                               "\tadd.s32 \t%r1, %r0, 1;\n"
                               "\tbra.uni \t$L__BB0_3;\n"
                               "\n"
                               "$L__BB0_2:\n"
                               "\tsub.s32 \t%r1, %r0, 1;\n"
                               "\n"
                               "$L__BB0_3:\n"
                               "\tst.global.u32 \t[%rd2], %r1;";

START_TEST(branches_meet_again) {
    lanes_check(counted(branches, WARP, "setp"), 1, WARP);
    lanes_check(counted(branches, WARP, "add.s32"), 1, 8);
    lanes_check(counted(branches, WARP, "sub.s32"), 1, 24);
    lanes_check(counted(branches, WARP, "st.global"), 1, WARP);
}
END_TEST

// A thread goes round once, twice, three or four times.
static const char loop[] = "\tand.b32 \t%r1, %r0, 3;\n"
                           "\n"
                           "$L__BB0_1:\n"
                           "\tadd.s32 \t%r1, %r1, -1;\n"
                           "\tsetp.ge.s32 \t%p1, %r1, 0;\n"
                           "\t@%p1 bra \t$L__BB0_1;\n"
                           "\n"
                           "\tst.global.u32 \t[%rd12], %r1;";

START_TEST(loops_end_for_all) {
    lanes_check(counted(loop, WARP, "add.s32"), 4, 8 * (1 + 2 + 3 + 4));
    lanes_check(counted(loop, WARP, "st.global"), 1, WARP);
}
END_TEST

START_TEST(a_block_has_warps) {
    lanes_check(counted(branches, 3 * WARP, "sub.s32"), 3, 3 * WARP - 8);
    lanes_check(counted(branches, WARP + 8, "st.global"), 2, WARP + 8);
    PtxCount is = counted(branches, WARP + 8, "st.global");
    ck_assert_uint_eq(is.sectors, 5);
}
END_TEST

// Those that it keeps from a load take part in the instruction alone.
START_TEST(a_guard_keeps_threads_from_an_access) {
    PtxCount is = counted("\tsetp.gt.u32 \t%p1, %r0, 7;\n"
                          "\tmul.wide.u32 \t%rd1, %r0, 4;\n"
                          "\tadd.s64 \t%rd2, %rd11, %rd1;\n"
                          "\t@!%p1 ld.global.u32 \t%r1, [%rd2];",
                          WARP, "@!%p1 ld");
    lanes_check(is, 1, WARP);
    ck_assert_uint_eq(is.sectors, 1);
    ck_assert_uint_eq(is.least_sectors, 1);
}
END_TEST

static const struct {
    const char *instruction;
    PtxKind kind;
} kind_cases[] = {
    {"fma.rn.f32 \t%f4, %f1, %f2, %f3;", PTX_FLOAT},
    {"add.s32 \t%r4, %r1, %r2;", PTX_INTEGER},
    {"lop3.b32 \t%r4, %r1, %r2, %r3, 0x96;", PTX_INTEGER},
    {"div.rn.f32 \t%f4, %f1, %f2;", PTX_SPECIAL},
    {"div.s32 \t%r4, %r1, %r2;", PTX_INTEGER},
    {"ex2.approx.ftz.f32 \t%f4, %f1;", PTX_SPECIAL},
    {"setp.gt.f32 \t%p1, %f1, %f2;", PTX_SELECT},
    {"or.pred \t%p1, %p2, %p3;", PTX_SELECT},
    {"selp.f32 \t%f4, %f1, %f2, %p1;", PTX_SELECT},
    {"max.f32 \t%f4, %f1, %f2;", PTX_SELECT},
    {"cvt.rn.f32.s32 \t%f4, %r1;", PTX_CONVERT},
    {"ld.global.u32 \t%r1, [%rd11];", PTX_MEMORY},
    {"bar.sync \t0;", PTX_EXCHANGE},
    {"mov.u32 \t%r1, 7;", PTX_MOVE},
};

START_TEST(instructions_have_a_kind) {
    char text[MAX_TEXT];
    int length, found = 0;
    const char *instruction = kind_cases[_i].instruction;
    program_text(&(Program){.body = instruction, .grid = 1, .threads = WARP},
                 text);
    PtxModule *m = ptx_read(text);
    const PtxKernel *k = ptx_kernel(m, 0);
    for (int i = 0; i < k->instructions; i++)
        if (strncmp(ptx_line(m, k, i, &length), instruction,
                    strlen(instruction)) == 0) {
            ck_assert_int_eq(ptx_kind(k, i), kind_cases[_i].kind);
            found++;
        }
    ck_assert_int_eq(found, 1);
    ptx_free(m);
}
END_TEST

Suite *warp_suite(void) {
    Suite *s = suite_create("warp");
    TCase *c = tcase_create("warp");
    tcase_add_loop_test(c, sectors_of_global_memory, 0,
                        sizeof global_cases / sizeof *global_cases);
    tcase_add_loop_test(c, turns_of_shared_memory, 0,
                        sizeof shared_cases / sizeof *shared_cases);
    tcase_add_test(c, addresses_are_those_before_the_access);
    tcase_add_test(c, branches_meet_again);
    tcase_add_test(c, loops_end_for_all);
    tcase_add_test(c, a_block_has_warps);
    tcase_add_test(c, a_guard_keeps_threads_from_an_access);
    tcase_add_loop_test(c, instructions_have_a_kind, 0,
                        sizeof kind_cases / sizeof *kind_cases);
    suite_add_tcase(s, c);
    return s;
}
