// Loads and stores in each space, vectors, and variables with their first
// values.
#include "tests/ptx/check_ptx.h"

#include <string.h>

// %rd11 is where the operands are.
// clang-format off
static const BitsCase cases[] = {
    {"ld.global.u8 \t%rs4, [%rd11+1];", {0x8000}, 0x80},
    {"ld.global.nc.u8 \t%rs4, [%rd11+1];", {0x8000}, 0x80},
    {"ld.global.s8 \t%rs4, [%rd11+1];", {0x8000}, 0xff80},
    {"ld.global.u8 \t%r4, [%rd11+1];", {0x8000}, 0x80},
    {"ld.global.s8 \t%r4, [%rd11+1];", {0x8000}, 0xffffff80},
    {"ld.global.u16 \t%r4, [%rd11];", {0x18000}, 0x8000},
    {"ld.global.s16 \t%r4, [%rd11];", {0x18000}, 0xffff8000},
    {"ld.global.nc.u16 \t%rs4, [%rd11+2];", {0x18000}, 1},
    {"ld.global.u32 \t%rd4, [%rd11];", {0x180000000}, 0x80000000},
    {"ld.global.s32 \t%rd4, [%rd11];", {0x180000000}, 0xffffffff80000000},
    {"ld.global.nc.u64 \t%rd4, [%rd11+8];", {0, 1ull << 63}, 1ull << 63},
    {"ld.volatile.global.u32 \t%r4, [%rd11+4];", {7ull << 32}, 7},
    {"add.s64 \t%rd5, %rd11, 16;\n"
     "\tld.global.u32 \t%r4, [%rd5+-8];", {1, 2, 3}, 2},
    // %rd10 is the same place before it is known to be global.
    {"ld.u32 \t%r4, [%rd10+8];", {1, 2}, 2},
    {"ld.global.nc.v2.u32 \t{%r5, %r4}, [%rd11+8];", {1, 2ull << 32}, 2},
    {"ld.global.v2.u32 \t{%r4, %r5}, [%rd11+8];", {1, 2}, 2},
    {"ld.global.v2.u64 \t{%rd5, %rd4}, [%rd11];", {1, 2}, 2},
    {"ld.global.nc.v4.u32 \t{%r5, %r6, %r7, %r4}, [%rd11];",
     {1, 3ull << 32}, 3},
    {"ld.global.v4.f32 \t{%f5, %f6, %f4, %f7}, [%rd11];",
     {1, 0x40000000}, 0x40000000},
    {"ld.global.v4.u8 \t{%rs5, %rs6, %rs4, %rs7}, [%rd11];", {0x04030201}, 3},
    {"st.global.u32 \t[%rd11], %r1;\n"
     "\tld.global.u32 \t%r4, [%rd11];", {5}, 5},
};
// clang-format on

START_TEST(loads_extend) {
    bits_check(&cases[_i]);
}
END_TEST

static void run_one(const char *declared, const char *body, const void *from,
                    void *to) {
    program_run(&(Program){declared, body, 1, 1, 0, false, false}, from, to);
}

START_TEST(stores_are_as_narrow_as_they_say) {
    _Alignas(16) const uint32_t from[] = {0x11223344};
    _Alignas(16) uint8_t to[16];
    static const uint8_t expected[16] = {0xff, 0x44, 0xff, 0xff, 0x44, 0x33,
                                         0xff, 0xff, 0x44, 0x33, 0x22, 0x11,
                                         0xff, 0xff, 0xff, 0xff};
    memset(to, 0xff, sizeof to);
    run_one(NULL,
            "\tld.global.u32 \t%r1, [%rd11];\n"
            "\tcvt.u16.u32 \t%rs1, %r1;\n"
            "\tst.global.u8 \t[%rd12+1], %rs1;\n"
            "\tst.global.u16 \t[%rd12+4], %rs1;\n"
            "\tst.global.u32 \t[%rd12+8], %r1;",
            from, to);
    ck_assert_mem_eq(to, expected, sizeof to);
}
END_TEST

START_TEST(vectors_keep_their_order) {
    static const uint32_t expected[] = {4, 3, 2, 1, 6, 5};
    _Alignas(16) const uint32_t from[] = {1, 2, 3, 4, 5, 6};
    _Alignas(16) uint32_t to[6] = {0};
    run_one(NULL,
            "\tld.global.nc.v4.f32 \t{%f1, %f2, %f3, %f4}, [%rd11];\n"
            "\tld.global.v2.u32 \t{%r1, %r2}, [%rd11+16];\n"
            "\tst.global.v4.f32 \t[%rd12], {%f4, %f3, %f2, %f1};\n"
            "\tst.global.v2.u32 \t[%rd12+16], {%r2, %r1};",
            from, to);
    ck_assert_mem_eq(to, expected, sizeof to);
}
END_TEST

// A load may overwrite the register of its address.
START_TEST(an_address_may_be_overwritten) {
    const uint64_t from[] = {5};
    uint64_t to = 0;
    run_one(NULL,
            "\tld.global.u64 \t%rd11, [%rd11];\n"
            "\tst.global.u64 \t[%rd12], %rd11;",
            from, &to);
    ck_assert_uint_eq(to, 5);
}
END_TEST

static const char shared_module[] =
    ".shared .align 4 .u32 _ZZN41_INTERNAL_00000000_10_kernels_cu_k4last;\n"
    ".shared .align 16 .b8 buffer[64];\n";

START_TEST(shared_variables_have_places_of_their_own) {
    _Alignas(16) const uint32_t from[] = {7, 8};
    _Alignas(16) uint32_t to[4] = {0};
    run_one(shared_module,
            "\t// demoted variable\n"
            "\t.shared .align 4 .b8 _ZZ1kE6shared[64];\n"
            "\tld.global.v2.u32 \t{%r1, %r2}, [%rd11];\n"
            "\tmov.u32 \t%r3, _ZZ1kE6shared;\n"
            "\tmov.u32 \t%r4, buffer;\n"
            "\tst.shared.u32 \t[%r3+60], %r1;\n"
            "\tst.shared.u32 \t[%r4], %r2;\n"
            "\tst.shared.u32 "
            "\t[_ZZN41_INTERNAL_00000000_10_kernels_cu_k4last], %r0;\n"
            "\tst.shared.v2.u32 \t[buffer+8], {%r1, %r2};\n"
            "\tld.shared.u32 \t%r5, [_ZZ1kE6shared+60];\n"
            "\tld.shared.v4.u32 \t{%r6, %r7, %r8, %r9}, [%r4];\n"
            "\tld.shared.u32 "
            "\t%r10, [_ZZN41_INTERNAL_00000000_10_kernels_cu_k4last];\n"
            "\tst.global.v4.u32 \t[%rd12], {%r5, %r6, %r9, %r10};",
            from, to);
    ck_assert_uint_eq(to[0], 7);
    ck_assert_uint_eq(to[1], 8);
    ck_assert_uint_eq(to[2], 8);
    ck_assert_uint_eq(to[3], 0);
}
END_TEST

// Each thread writes what it finds out of the number of another, so that one
// place for all would be seen.
START_TEST(local_memory_is_of_a_thread) {
    enum { THREADS = 64 };
    uint32_t to[THREADS] = {0};
    program_run(&(Program){.body =
                               "\t.local .align 16 .b8 \t__local_depot0[32];\n"
                               "\t.reg .b64 \t%SP;\n"
                               "\t.reg .b64 \t%SPL;\n"
                               "\tmov.u64 \t%SPL, __local_depot0;\n"
                               "\tadd.u64 \t%rd1, %SPL, 8;\n"
                               "\tst.local.u32 \t[%rd1+12], %r0;\n"
                               "\tst.local.u32 \t[%rd1+-4], %r0;\n"
                               "\tbar.sync \t0;\n"
                               "\tld.local.u32 \t%r1, [%rd1+12];\n"
                               "\tld.local.u32 \t%r2, [%SPL+4];\n"
                               "\tadd.s32 \t%r3, %r1, %r2;\n"
                               "\tmul.wide.u32 \t%rd2, %r0, 4;\n"
                               "\tadd.s64 \t%rd3, %rd12, %rd2;\n"
                               "\tst.global.u32 \t[%rd3], %r3;",
                           .grid = 1,
                           .threads = THREADS},
                NULL, to);
    for (unsigned i = 0; i < THREADS; i++)
        ck_assert_uint_eq(to[i], 2 * i);
}
END_TEST

static const char tables[] =
    ".const .align 4 .b8 table[12] = {0, 0, 128, 63, 255};\n"
    ".global .align 8 .b8 members[16] = {1, 0, 0, 0, 0, 0, 0, 0, 2};\n"
    ".global .align 4 .u32 words[3] = {7, 8};\n"
    ".visible .const .align 1 .b8 squares[100];\n";

START_TEST(what_a_table_leaves_out_is_zero) {
    _Alignas(16) const uint32_t from[] = {4};
    _Alignas(16) uint32_t to[8];
    memset(to, 0xff, sizeof to);
    run_one(tables,
            "\tld.const.f32 \t%f1, [table];\n"
            "\tmov.u64 \t%rd1, table;\n"
            "\tld.const.u8 \t%rs1, [%rd1+4];\n"
            "\tld.const.u32 \t%r1, [%rd1+8];\n"
            "\tcvt.u32.u16 \t%r2, %rs1;\n"
            "\tst.global.f32 \t[%rd12], %f1;\n"
            "\tst.global.v2.u32 \t[%rd12+8], {%r2, %r1};\n"
            "\tmov.u64 \t%rd2, members;\n"
            "\tld.global.nc.u64 \t%rd3, [%rd2+8];\n"
            "\tst.global.u64 \t[%rd12+16], %rd3;\n"
            "\tld.global.u32 \t%r3, [words+4];\n"
            "\tld.global.u32 \t%r4, [words+8];\n"
            "\tst.global.v2.u32 \t[%rd12+24], {%r3, %r4};",
            from, to);
    static const uint32_t expected[] = {0x3f800000, 0xffffffff, 255, 0,
                                        2,          0,          8,   0};
    ck_assert_mem_eq(to, expected, sizeof to);
}
END_TEST

// As the driver gives a variable of a module to a program, which writes it.
START_TEST(variables_can_be_written_from_outside) {
    char text[MAX_TEXT];
    uint32_t to = 0;
    void *out = &to;
    size_t bytes = 0;
    program_text(&(Program){tables,
                            "\tmov.u64 \t%rd1, squares;\n"
                            "\tld.const.u8 \t%rs1, [%rd1+99];\n"
                            "\tcvt.u32.u16 \t%r1, %rs1;\n"
                            "\tst.global.u32 \t[%rd12], %r1;",
                            1, 1, 0, false, false},
                 text);
    PtxModule *m = ptx_read(text);
    uint8_t *squares = ptx_variable(m, "squares", &bytes);
    ck_assert_ptr_nonnull(squares);
    ck_assert_uint_eq(bytes, 100);
    ck_assert_int_eq(squares[99], 0);
    squares[99] = 81;
    ptx_run(ptx_kernel(m, 0), (void *[]){&out, &out}, 1, 1, 0);
    ck_assert_uint_eq(to, 81);
    ck_assert_ptr_nonnull(ptx_variable(m, "words", &bytes));
    ck_assert_uint_eq(bytes, 12);
    ck_assert_ptr_null(ptx_variable(m, "cubes", &bytes));
    ptx_free(m);
}
END_TEST

// Every thread gets another number, and all are counted.
START_TEST(atomics_add_one_after_another) {
    enum { GRID = 3, THREADS = 96 };
    uint32_t to[1 + GRID * THREADS] = {0};
    bool seen[GRID * THREADS] = {false};
    program_run(&(Program){.body = "\tatom.global.add.u32 \t%r1, [%rd12], 1;\n"
                                   "\tmul.wide.u32 \t%rd1, %r1, 4;\n"
                                   "\tadd.s64 \t%rd2, %rd12, %rd1;\n"
                                   "\tst.global.u32 \t[%rd2+4], %r1;",
                           .grid = GRID,
                           .threads = THREADS,
                           .seed = (unsigned)_i},
                NULL, to);
    ck_assert_uint_eq(to[0], GRID * THREADS);
    for (int i = 0; i < GRID * THREADS; i++) {
        ck_assert_uint_lt(to[1 + i], GRID * THREADS);
        seen[to[1 + i]] = true;
    }
    for (int i = 0; i < GRID * THREADS; i++)
        ck_assert(seen[i]);
}
END_TEST

// Each thread copies a constant to beside it.
START_TEST(constants_may_lie_beside_what_is_written) {
    enum { GRID = 64, THREADS = 96, COUNT = GRID * THREADS };
    static _Alignas(32) uint32_t to[COUNT][2];
    for (uint32_t i = 0; i < COUNT; i++)
        to[i][0] = i;
    program_run(&(Program){.body = "\tmov.u32 \t%r1, %ctaid.x;\n"
                                   "\tmad.lo.s32 \t%r2, %r1, 96, %r0;\n"
                                   "\tmul.wide.u32 \t%rd1, %r2, 8;\n"
                                   "\tadd.s64 \t%rd2, %rd12, %rd1;\n"
                                   "\tld.global.nc.u32 \t%r3, [%rd2];\n"
                                   "\tst.global.u32 \t[%rd2+4], %r3;",
                           .grid = GRID,
                           .threads = THREADS,
                           .seed = (unsigned)_i},
                NULL, to);
    for (uint32_t i = 0; i < COUNT; i++)
        ck_assert_uint_eq(to[i][1], i);
}
END_TEST

Suite *memory_suite(void) {
    Suite *s = suite_create("memory");
    TCase *c = tcase_create("memory");
    tcase_add_loop_test(c, loads_extend, 0, sizeof cases / sizeof cases[0]);
    tcase_add_test(c, stores_are_as_narrow_as_they_say);
    tcase_add_test(c, vectors_keep_their_order);
    tcase_add_test(c, an_address_may_be_overwritten);
    tcase_add_test(c, shared_variables_have_places_of_their_own);
    tcase_add_test(c, local_memory_is_of_a_thread);
    tcase_add_test(c, what_a_table_leaves_out_is_zero);
    tcase_add_test(c, variables_can_be_written_from_outside);
    tcase_add_loop_test(c, atomics_add_one_after_another, 0, 4);
    tcase_add_loop_test(c, constants_may_lie_beside_what_is_written, 0, 2);
    suite_add_tcase(s, c);
    return s;
}
