// Branches, guards and loops, what a text says of its kernels, and parameters.
#include "tests/ptx/check_ptx.h"

#include <string.h>

// clang-format off
static const BitsCase cases[] = {
    {"mov.u32 \t%r4, %r1;\n"
     "\t@%p2 mov.u32 \t%r4, 7;", {5, 1}, 7},
    {"mov.u32 \t%r4, %r1;\n"
     "\t@%p2 mov.u32 \t%r4, 7;", {5, 0}, 5},
    {"mov.u32 \t%r4, %r1;\n"
     "\t@!%p2 mov.u32 \t%r4, 7;", {5, 1}, 5},
    {"mov.u32 \t%r4, %r1;\n"
     "\t@!%p2 mov.u32 \t%r4, 7;", {5, 0}, 7},
    // What a guard keeps from running reads nothing.
    {"mov.u32 \t%r4, %r1;\n"
     "\tmov.u64 \t%rd5, 0;\n"
     "\t@%p2 ld.global.u32 \t%r4, [%rd5];", {5, 0}, 5},
    {"mov.u32 \t%r4, 1;\n"
     "\tbra.uni \t$L__BB0_2;\n"
     "\n"
     "$L__BB0_1:\n"
     "\tmov.u32 \t%r4, 2;\n"
     "\n"
     "$L__BB0_2:\n", {0}, 1},
    // 1 + 2 + .. + 10, in a loop that a pragma is about.
    {"mov.u32 \t%r4, 0;\n"
     "\tmov.u32 \t%r5, %r1;\n"
     "\n"
     "$L__BB0_1:\n"
     "\t.pragma \"nounroll\";\n"
     "\tadd.s32 \t%r4, %r4, %r5;\n"
     "\tadd.s32 \t%r5, %r5, -1;\n"
     "\tsetp.gt.s32 \t%p5, %r5, 0;\n"
     "\t@%p5 bra \t$L__BB0_1;\n", {10}, 55},
    {"mov.u32 \t%r4, 0;\n"
     "\tsetp.eq.s32 \t%p5, %r1, 0;\n"
     "\t@!%p5 bra \t$L__BB0_2;\n"
     "\tmov.u32 \t%r4, 1;\n"
     "\n"
     "$L__BB0_2:\n", {3}, 0},
    {"mov.u32 \t%r4, %ntid.x;", {0}, 1},
    {"mov.u32 \t%r4, %nctaid.x;", {0}, 1},
    {"mov.u32 \t%r4, %ctaid.x;", {0}, 0},
};
// clang-format on

START_TEST(instructions_come_one_after_another) {
    bits_check(&cases[_i]);
}
END_TEST

START_TEST(threads_go_their_own_ways) {
    enum { THREADS = 40 };
    _Alignas(16) uint32_t to[THREADS] = {0};
    program_run(&(Program){.body = "\tmul.wide.u32 \t%rd1, %r0, 4;\n"
                                   "\tadd.s64 \t%rd2, %rd12, %rd1;\n"
                                   "\tmov.u32 \t%r1, 0;\n"
                                   "\tmov.u32 \t%r2, %r0;\n"
                                   "\n"
                                   "$L__BB0_1:\n"
                                   "\tsetp.eq.s32 \t%p1, %r2, 0;\n"
                                   "\t@%p1 bra \t$L__BB0_2;\n"
                                   "\n"
                                   "\tadd.s32 \t%r1, %r1, 3;\n"
                                   "\tadd.s32 \t%r2, %r2, -1;\n"
                                   "\tbra.uni \t$L__BB0_1;\n"
                                   "\n"
                                   "$L__BB0_2:\n"
                                   "\tst.global.u32 \t[%rd2], %r1;\n"
                                   "\tsetp.lt.u32 \t%p2, %r0, 20;\n"
                                   "\t@%p2 ret;\n"
                                   "\tst.global.u32 \t[%rd2], %r0;\n",
                           .grid = 1,
                           .threads = THREADS,
                           .seed = (unsigned)_i},
                NULL, to);
    for (unsigned i = 0; i < THREADS; i++)
        ck_assert_uint_eq(to[i], i < 20 ? 3 * i : i);
}
END_TEST

// Where a block of threads is, which every one of them writes.
START_TEST(every_thread_of_every_block_runs) {
    enum { GRID = 5, THREADS = 33 };
    _Alignas(16) uint32_t to[GRID * THREADS] = {0};
    program_run(&(Program){.body = "\tmov.u32 \t%r1, %ctaid.x;\n"
                                   "\tmov.u32 \t%r2, %ntid.x;\n"
                                   "\tmov.u32 \t%r3, %nctaid.x;\n"
                                   "\tmad.lo.s32 \t%r4, %r1, %r2, %r0;\n"
                                   "\tmul.wide.u32 \t%rd1, %r4, 4;\n"
                                   "\tadd.s64 \t%rd2, %rd12, %rd1;\n"
                                   "\tmad.lo.s32 \t%r5, %r4, %r3, %r1;\n"
                                   "\tst.global.u32 \t[%rd2], %r5;\n",
                           .grid = GRID,
                           .threads = THREADS,
                           .seed = (unsigned)_i},
                NULL, to);
    for (unsigned i = 0; i < GRID * THREADS; i++)
        ck_assert_uint_eq(to[i], i * GRID + i / THREADS);
}
END_TEST

// ---- kernels ----

static const char two_kernels[] =
    ".version 9.0\n"
    ".target sm_90\n"
    ".address_size 64\n"
    "\n"
    "\t// .globl\tk00_first\n"
    "\n"
    ".visible .entry k00_first(\n"
    "\t.param .u64 k00_first_param_0,\n"
    "\t.param .u32 k00_first_param_1,\n"
    "\t.param .f32 k00_first_param_2,\n"
    "\t.param .u64 k00_first_param_3\n"
    ")\n"
    ".maxntid 256, 1, 1\n"
    ".minnctapersm 1\n"
    "{\n"
    "\t.reg .f32 \t%f<2>;\n"
    "\t.reg .b32 \t%r<2>;\n"
    "\t.reg .b64 \t%rd<5>;\n"
    "\n"
    "\tld.param.u64 \t%rd1, [k00_first_param_0];\n"
    "\tld.param.u32 \t%r1, [k00_first_param_1];\n"
    "\tld.param.f32 \t%f1, [k00_first_param_2];\n"
    "\tld.param.u64 \t%rd3, [k00_first_param_3];\n"
    "\tcvta.to.global.u64 \t%rd2, %rd1;\n"
    "\tcvta.to.global.u64 \t%rd4, %rd3;\n"
    "\tbra.uni \t$L__BB_1;\n"
    "\n"
    "$L__BB_1:\n"
    "\tst.global.u32 \t[%rd2], %r1;\n"
    "\tst.global.f32 \t[%rd4], %f1;\n"
    "\tret;\n"
    "\n"
    "}\n"
    "\t// .globl\tk01_second\n"
    ".visible .entry k01_second(\n"
    "\t.param .u64 k01_second_param_0\n"
    ")\n"
    ".maxntid 128, 1, 1\n"
    ".minnctapersm 2\n"
    "{\n"
    "\t.reg .pred \t%p<2>;\n"
    "\t.reg .b32 \t%r<3>;\n"
    "\t.reg .b64 \t%rd<3>;\n"
    "\n"
    "\tld.param.u64 \t%rd1, [k01_second_param_0];\n"
    "\tcvta.to.global.u64 \t%rd2, %rd1;\n"
    "\n"
    "$L__BB_1:\n"
    "\tld.volatile.global.u32 \t%r1, [%rd2];\n"
    "\tsetp.eq.s32 \t%p1, %r1, 0;\n"
    "\t@%p1 bra \t$L__BB_1;\n"
    "\n"
    "\tmov.u32 \t%r2, 9;\n"
    "\tst.global.u32 \t[%rd2], %r2;\n"
    "\tret;\n"
    "\n"
    "}\n"
    "\n";

START_TEST(a_text_says_what_its_kernels_are) {
    PtxModule *m = ptx_read(two_kernels);
    const PtxKernel *first = ptx_kernel(m, 0), *second = ptx_kernel(m, 1);
    static const int bytes[] = {8, 4, 4, 8};
    ck_assert_str_eq(first->name, "k00_first");
    ck_assert_int_eq(first->threads, 256);
    ck_assert_int_eq(first->num_parameters, 4);
    ck_assert_mem_eq(first->bytes, bytes, sizeof bytes);
    ck_assert(!first->waits);
    ck_assert_str_eq(second->name, "k01_second");
    ck_assert_int_eq(second->threads, 128);
    ck_assert_int_eq(second->num_parameters, 1);
    ck_assert(second->waits);
    ck_assert_ptr_null(ptx_kernel(m, 2));
    ptx_free(m);
}
END_TEST

// The text is not needed once it is read, nor is an argument moved.
START_TEST(arguments_reach_their_kernel) {
    char text[sizeof two_kernels];
    uint32_t number = 77;
    float value = 1.5f, at_value = 0;
    uint32_t at_number = 0;
    void *to[2] = {&at_number, &at_value};
    strcpy(text, two_kernels);
    PtxModule *m = ptx_read(text);
    memset(text, 0, sizeof text);
    ptx_run(ptx_kernel(m, 0), (void *[]){&to[0], &number, &value, &to[1]}, 1, 1,
            0);
    ck_assert_uint_eq(at_number, 77);
    ck_assert_float_eq(at_value, 1.5f);
    ptx_run(ptx_kernel(m, 1), (void *[]){&to[0]}, 1, 128, 3);
    ck_assert_uint_eq(at_number, 9);
    ptx_free(m);
}
END_TEST

Suite *flow_suite(void) {
    Suite *s = suite_create("flow");
    TCase *c = tcase_create("flow");
    tcase_add_loop_test(c, instructions_come_one_after_another, 0,
                        sizeof cases / sizeof cases[0]);
    tcase_add_loop_test(c, threads_go_their_own_ways, 0, 3);
    tcase_add_loop_test(c, every_thread_of_every_block_runs, 0, 3);
    tcase_add_test(c, a_text_says_what_its_kernels_are);
    tcase_add_test(c, arguments_reach_their_kernel);
    suite_add_tcase(s, c);
    return s;
}
