// What is converted, and what moves as it is.
#include "tests/ptx/check_ptx.h"

#include <math.h>

// clang-format off
static const NumberCase numbers[] = {
    {"cvt.rzi.s32.f32 \t%r4, %f1;", {1.9}, 1},
    {"cvt.rzi.s32.f32 \t%r4, %f1;", {-1.9}, -1},
    {"cvt.rzi.s32.f32 \t%r4, %f1;", {3e9}, 0x7fffffff},
    {"cvt.rzi.s32.f32 \t%r4, %f1;", {-3e9}, -0x80000000ll},
    {"cvt.rzi.s32.f32 \t%r4, %f1;", {INFINITY}, 0x7fffffff},
    {"cvt.rzi.s32.f32 \t%r4, %f1;", {NAN}, 0},
    // 0, but where a type of 64 bits is one of the two.
    {"cvt.rzi.s64.f32 \t%rd4, %f1;", {NAN}, -0x1p63},
    {"cvt.rzi.u64.f32 \t%rd4, %f1;", {NAN}, 0x1p63},
    {"cvt.rzi.s32.f64 \t%r4, %fd1;", {NAN}, -0x1p31},
    {"cvt.rzi.u32.f64 \t%r4, %fd1;", {NAN}, 0x1p31},
    {"cvt.rzi.u32.f32 \t%r4, %f1;", {3e9}, 3e9},
    {"cvt.rzi.u32.f32 \t%r4, %f1;", {5e9}, 0xffffffff},
    {"cvt.rzi.u32.f32 \t%r4, %f1;", {-1}, 0},
    {"cvt.rzi.s64.f32 \t%rd4, %f1;", {-0x1p40}, -0x1p40},
    {"cvt.rni.s32.f32 \t%r4, %f1;", {2.5}, 2},
    {"cvt.rni.s32.f32 \t%r4, %f1;", {3.5}, 4},
    {"cvt.rni.s32.f32 \t%r4, %f1;", {-2.5}, -2},
    {"cvt.rmi.s32.f32 \t%r4, %f1;", {-1.5}, -2},
    {"cvt.rmi.f32.f32 \t%f4, %f1;", {1.5}, 1},
    {"cvt.rmi.f32.f32 \t%f4, %f1;", {-0.5}, -1},
    {"cvt.rmi.f32.f32 \t%f4, %f1;", {-0.0}, -0.0},
    {"cvt.rni.f32.f32 \t%f4, %f1;", {0.5}, 0},
    {"cvt.rni.f32.f32 \t%f4, %f1;", {1.5}, 2},
    {"cvt.rzi.f32.f32 \t%f4, %f1;", {-1.9}, -1},
    {"cvt.rpi.f32.f32 \t%f4, %f1;", {1.1}, 2},
    {"cvt.sat.f32.f32 \t%f4, %f1;", {1.5}, 1},
    {"cvt.sat.f32.f32 \t%f4, %f1;", {-0.5}, 0},
    {"cvt.sat.f32.f32 \t%f4, %f1;", {0.25}, 0.25},
    {"cvt.sat.f32.f32 \t%f4, %f1;", {NAN}, 0},

    {"cvt.rn.f32.s32 \t%f4, %r1;", {16777217}, 16777216},
    {"cvt.rn.f32.s32 \t%f4, %r1;", {16777219}, 16777220},
    {"cvt.rn.f32.s32 \t%f4, %r1;", {-5}, -5},
    {"cvt.rn.f32.u32 \t%f4, %r1;", {0xffffffff}, 0x1p32},
    {"cvt.rn.f32.u16 \t%f4, %rs1;", {65535}, 65535},
    {"cvt.rn.f32.s16 \t%f4, %rs1;", {-3}, -3},
    {"cvt.rn.f32.u8 \t%f4, %rs1;", {0x1ff}, 255},
    {"cvt.rn.f32.s64 \t%f4, %rd1;", {-0x1p40 - 0x1p10}, -0x1p40},
    {"cvt.rn.f64.s64 \t%fd4, %rd1;", {-0x1p53 - 2}, -0x1p53 - 2},
    {"cvt.rn.f64.s32 \t%fd4, %r1;", {-7}, -7},
    {"cvt.rn.f32.f64 \t%f4, %fd1;", {1 + 0x1p-24}, 1},
    {"cvt.rn.f32.f64 \t%f4, %fd1;", {1 + 0x1p-24 + 0x1p-50}, 1 + 0x1p-23},
    {"cvt.rn.f32.f64 \t%f4, %fd1;", {0x1p200}, INFINITY},
    {"cvt.f64.f32 \t%fd4, %f1;", {0x1p-149}, 0x1p-149},
};

static const BitsCase bits[] = {
    {"cvt.u32.u64 \t%r4, %rd1;", {0x123456789a}, 0x3456789a},
    {"cvt.u64.u32 \t%rd4, %r1;", {0xffffffff}, 0xffffffff},
    {"cvt.s64.s32 \t%rd4, %r1;", {0xffffffff}, UINT64_MAX},
    {"cvt.u32.u16 \t%r4, %rs1;", {0xffff}, 0xffff},
    {"cvt.s32.s16 \t%r4, %rs1;", {0xffff}, 0xffffffff},
    {"cvt.u16.u32 \t%rs4, %r1;", {0x12345}, 0x2345},
    {"cvt.u64.u16 \t%rd4, %rs1;", {0xffff}, 0xffff},
    {"cvt.u32.u8 \t%r4, %rs1;", {0x1ff}, 0xff},
    {"cvt.s32.s8 \t%r4, %r1;", {0x180}, 0xffffff80},
    {"cvt.s16.s8 \t%rs4, %rs1;", {0x80}, 0xff80},
    {"cvt.u16.u8 \t%rs4, %rs1;", {0x1234}, 0x34},

    // The greatest half is 65504; from 65520 on they are infinite.
    {"cvt.rn.f16.f32 \t%rs4, %f1;", {0x3f800000}, 0x3c00},
    {"cvt.rn.f16.f32 \t%rs4, %f1;", {0x477fe000}, 0x7bff},
    {"cvt.rn.f16.f32 \t%rs4, %f1;", {0x477fefff}, 0x7bff},
    {"cvt.rn.f16.f32 \t%rs4, %f1;", {0x477ff000}, 0x7c00},
    {"cvt.rn.f16.f32 \t%rs4, %f1;", {0xff800000}, 0xfc00},
    {"cvt.rn.f16.f32 \t%rs4, %f1;", {0x7f800001}, 0x7fff},
    // 1 + 2^-11 and 1 + 3 * 2^-11 are halfway; 2^-24 is the least, 2^-25 half.
    {"cvt.rn.f16.f32 \t%rs4, %f1;", {0x3f801000}, 0x3c00},
    {"cvt.rn.f16.f32 \t%rs4, %f1;", {0x3f801001}, 0x3c01},
    {"cvt.rn.f16.f32 \t%rs4, %f1;", {0x3f803000}, 0x3c02},
    {"cvt.rn.f16.f32 \t%rs4, %f1;", {0x33800000}, 0x0001},
    {"cvt.rn.f16.f32 \t%rs4, %f1;", {0x33000000}, 0x0000},
    {"cvt.rn.f16.f32 \t%rs4, %f1;", {0x33000001}, 0x0001},
    {"cvt.rn.f16.f32 \t%rs4, %f1;", {0x387fe000}, 0x0400},
    {"cvt.rn.f16.f32 \t%rs4, %f1;", {0x80000001}, 0x8000},
    {"cvt.f32.f16 \t%f4, %rs1;", {0x3c00}, 0x3f800000},
    {"cvt.f32.f16 \t%f4, %rs1;", {0x0001}, 0x33800000},
    {"cvt.f32.f16 \t%f4, %rs1;", {0x83ff}, 0xb87fc000},
    {"cvt.f32.f16 \t%f4, %rs1;", {0x7bff}, 0x477fe000},
    {"cvt.f32.f16 \t%f4, %rs1;", {0xfc00}, 0xff800000},
    {"cvt.f32.f16 \t%f4, %rs1;", {0x8000}, 0x80000000},
    // The first operand is the upper half.
    {"cvt.rn.f16x2.f32 \t%r4, %f1, %f2;", {0x3f800000, 0xc0000000}, 0x3c00c000},

    {"mov.b32 \t%r4, %f1;", {0x80000000}, 0x80000000},
    {"mov.b32 \t%f4, %r1;", {0x7f800001}, 0x7f800001},
    {"mov.u32 \t%r4, -2;", {0}, 0xfffffffe},
    {"mov.u64 \t%rd4, -2;", {0}, (uint64_t)-2},
    {"mov.u16 \t%rs4, -2;", {0}, 0xfffe},
    {"mov.f32 \t%f4, 0fFF800000;", {0}, 0xff800000},
    {"mov.f64 \t%fd4, 0d7FF0000000000000;", {0}, 0x7ff0000000000000},
    {"mov.b32 \t%r4, {%rs1, %rs2};", {0x1111, 0x2222}, 0x22221111},
    {"mov.b32 \t{%rs4, %rs5}, %r1;", {0x22221111}, 0x1111},
    {"mov.b32 \t{%rs5, %rs4}, %r1;", {0x22221111}, 0x2222},
    {"mov.b64 \t%rd4, {%r1, %r2};", {0x11111111, 0x22222222},
     0x2222222211111111},
    {"mov.b64 \t{%r4, %r5}, %rd1;", {0x2222222211111111}, 0x11111111},
    {"mov.b64 \t{%r5, %r4}, %rd1;", {0x2222222211111111}, 0x22222222},

    // A block has registers of its own, under names that others have too.
    {"// begin inline asm\n"
     "\t{.reg .b16 l, h; mov.b32 {l, h}, %r1; cvt.f32.f16 %f4, l;}\n"
     "\t// end inline asm", {0x40003c00}, 0x3f800000},
    {"// begin inline asm\n"
     "\t{.reg .b16 l, h; mov.b32 {l, h}, %r1; cvt.f32.f16 %f4, h;}\n"
     "\t// end inline asm", {0x40003c00}, 0x40000000},
    {"// begin inline asm\n"
     "\t{.reg .b16 l, h; cvt.rn.f16.f32 l, %f1; cvt.rn.f16.f32 h, %f2;"
     " mov.b32 %r4, {l, h};}\n"
     "\t// end inline asm", {0x3f800000, 0xc0000000}, 0xc0003c00},
    {"{.reg .b32 l; mov.b32 l, %r1;\n"
     "\t{.reg .b32 l; mov.b32 l, %r2;}\n"
     "\tmov.b32 %r4, l;}", {1, 2}, 1},
    {"{.reg .b32 a; mov.b32 a, %r1; {.reg .b32 b; add.s32 b, a, 1;\n"
     "\tmov.b32 %r4, b;}}", {1}, 2},
};
// clang-format on

START_TEST(numbers_are_converted) {
    numbers_check(&numbers[_i]);
}
END_TEST

START_TEST(bits_are_moved) {
    bits_check(&bits[_i]);
}
END_TEST

// All 65536: back where they came from, but for those that are no number.
START_TEST(a_half_stays_what_it_is) {
    enum { COUNT = 65536, THREADS = 256, NO_NUMBER = 0x7fff };
    static uint16_t from[COUNT], to[COUNT];
    for (int i = 0; i < COUNT; i++)
        from[i] = (uint16_t)i;
    program_run(&(Program){.body = "\tmov.u32 \t%r1, %ctaid.x;\n"
                                   "\tshl.b32 \t%r2, %r1, 8;\n"
                                   "\tadd.s32 \t%r3, %r2, %r0;\n"
                                   "\tmul.wide.u32 \t%rd1, %r3, 2;\n"
                                   "\tadd.s64 \t%rd2, %rd11, %rd1;\n"
                                   "\tadd.s64 \t%rd3, %rd12, %rd1;\n"
                                   "\tld.global.u16 \t%rs1, [%rd2];\n"
                                   "\tcvt.f32.f16 \t%f1, %rs1;\n"
                                   "\tcvt.rn.f16.f32 \t%rs2, %f1;\n"
                                   "\tst.global.u16 \t[%rd3], %rs2;",
                           .grid = COUNT / THREADS,
                           .threads = THREADS},
                from, to);
    for (int i = 0; i < COUNT; i++)
        ck_assert_int_eq(to[i], (i & 0x7fff) > 0x7c00 ? NO_NUMBER : i);
}
END_TEST

Suite *convert_suite(void) {
    Suite *s = suite_create("convert");
    TCase *c = tcase_create("convert");
    tcase_add_loop_test(c, numbers_are_converted, 0,
                        sizeof numbers / sizeof numbers[0]);
    tcase_add_loop_test(c, bits_are_moved, 0, sizeof bits / sizeof bits[0]);
    tcase_add_test(c, a_half_stays_what_it_is);
    suite_add_tcase(s, c);
    return s;
}
