// Numbers with a point: rounding, what is no number, signs of zero.
#include "tests/ptx/check_ptx.h"

#include <math.h>

// clang-format off
static const NumberCase cases[] = {
    {"add.f32 \t%f4, %f1, %f2;", {1, 0x1p-24}, 1},
    {"add.f32 \t%f4, %f1, %f2;", {1 + 0x1p-23, 0x1p-24}, 1 + 0x1p-22},
    {"add.f32 \t%f4, %f1, %f2;", {0x1p-149, 0x1p-149}, 0x1p-148},
    {"add.f32 \t%f4, %f1, %f2;", {INFINITY, -INFINITY}, NAN},
    {"add.f32 \t%f4, %f1, %f2;", {-0.0, 0}, 0},
    {"add.f32 \t%f4, %f1, 0f00000000;", {-3}, -3},
    {"add.f32 \t%f4, %f1, 0fBF800000;", {3}, 2},
    {"sub.f32 \t%f4, %f1, %f2;", {1, 3}, -2},
    {"sub.f32 \t%f4, %f1, %f2;", {1, 1}, 0},
    {"mul.f32 \t%f4, %f1, %f2;", {0x1p-100, 0x1p-40}, 0x1p-140},
    {"mul.f32 \t%f4, %f1, %f2;", {INFINITY, 0}, NAN},
    {"mul.f32 \t%f4, %f1, %f2;", {0x1p100, 0x1p28}, INFINITY},
    {"mul.rn.f32 \t%f4, %f1, %f2;", {1 + 0x1p-12, 1 + 0x1p-12}, 1 + 0x1p-11},
    {"mul.f64 \t%fd4, %fd1, %fd2;", {1 + 0x1p-27, 1 + 0x1p-27}, 1 + 0x1p-26},
    {"mul.f64 \t%fd4, %fd1, 0d3BF921FB54442D19;", {1}, 0x1.921fb54442d19p-64},
    {"add.f64 \t%fd4, %fd1, %fd2;", {1, 0x1p-52}, 1 + 0x1p-52},

    // One rounding; a product that is rounded first would leave 0.
    {"fma.rn.f32 \t%f4, %f1, %f2, %f3;",
     {1 + 0x1p-12, 1 + 0x1p-12, -(1 + 0x1p-11)}, 0x1p-24},
    {"fma.rn.f32 \t%f4, %f1, %f2, %f3;", {1, 1, -0x1p-30}, 1},
    {"fma.rn.f32 \t%f4, %f1, %f2, %f3;", {1, 1, -1}, 0},
    {"fma.rm.f32 \t%f4, %f1, %f2, %f3;", {1, 1, -0x1p-30}, 1 - 0x1p-24},
    {"fma.rm.f32 \t%f4, %f1, %f2, %f3;", {1, 1, 0x1p-24}, 1},
    {"fma.rm.f32 \t%f4, %f1, %f2, %f3;", {-1, 1, -0x1p-30}, -1 - 0x1p-23},
    {"fma.rm.f32 \t%f4, %f1, %f2, %f3;", {1, 1, -1}, -0.0},
    {"fma.rm.f32 \t%f4, %f1, %f2, %f3;", {0.999, 252, 12583039}, 12583290},
    {"fma.rm.f32 \t%f4, %f1, %f2, %f3;", {0x1p-80, 0x1p-80, 0}, 0},
    {"fma.rm.f32 \t%f4, %f1, %f2, %f3;", {-0x1p-80, 0x1p-80, 0}, -0x1p-149},
    {"fma.rm.f32 \t%f4, %f1, %f2, %f3;", {0x1p100, 0x1p100, 0},
     0x1.fffffep127},

    {"div.rn.f32 \t%f4, %f1, %f2;", {1, 3}, 0x1.555556p-2},
    {"div.rn.f32 \t%f4, %f1, %f2;", {-1, 0}, -INFINITY},
    {"div.rn.f32 \t%f4, %f1, %f2;", {0, 0}, NAN},
    {"div.rn.f32 \t%f4, %f1, %f2;", {0x1p-126, 2}, 0x1p-127},
    {"sqrt.rn.f32 \t%f4, %f1;", {2}, 0x1.6a09e6p0},
    {"sqrt.rn.f32 \t%f4, %f1;", {-0.0}, -0.0},
    {"sqrt.rn.f32 \t%f4, %f1;", {-1}, NAN},
    {"sqrt.rn.f32 \t%f4, %f1;", {0x1p-140}, 0x1p-70},
    {"rcp.rn.f32 \t%f4, %f1;", {3}, 0x1.555556p-2},
    {"rcp.rn.f32 \t%f4, %f1;", {-0.0}, -INFINITY},

    {"min.f32 \t%f4, %f1, %f2;", {-1, 2}, -1},
    {"min.f32 \t%f4, %f1, %f2;", {NAN, 2}, 2},
    {"min.f32 \t%f4, %f1, %f2;", {2, NAN}, 2},
    {"min.f32 \t%f4, %f1, %f2;", {0, -0.0}, -0.0},
    {"min.f32 \t%f4, %f1, %f2;", {-0.0, 0}, -0.0},
    {"min.f32 \t%f4, %f1, %f2;", {NAN, NAN}, NAN},
    {"max.f32 \t%f4, %f1, %f2;", {-1, 2}, 2},
    {"max.f32 \t%f4, %f1, %f2;", {NAN, -2}, -2},
    {"max.f32 \t%f4, %f1, %f2;", {-2, NAN}, -2},
    {"max.f32 \t%f4, %f1, %f2;", {0, -0.0}, 0},
    {"max.f32 \t%f4, %f1, %f2;", {-0.0, 0}, 0},
    {"max.f32 \t%f4, %f1, %f2;", {NAN, NAN}, NAN},
    {"max.NaN.f32 \t%f4, %f1, %f2;", {-1, 2}, 2},
    {"max.NaN.f32 \t%f4, %f1, %f2;", {NAN, -2}, NAN},
    {"max.NaN.f32 \t%f4, %f1, %f2;", {-2, NAN}, NAN},
    {"max.NaN.f32 \t%f4, %f1, %f2;", {-0.0, 0}, 0},
    // The sign is of the first.
    {"copysign.f32 \t%f4, %f1, %f2;", {-1, 3}, -3},
    {"copysign.f32 \t%f4, %f1, %f2;", {0, -3}, 3},
    {"copysign.f32 \t%f4, %f1, %f2;", {-0.0, 0}, -0.0},
    {"copysign.f32 \t%f4, %f1, %f2;", {NAN, 3}, 3},
    {"copysign.f32 \t%f4, %f1, %f2;", {1, NAN}, NAN},
    {"abs.f32 \t%f4, %f1;", {-1.5}, 1.5},
    {"abs.f32 \t%f4, %f1;", {NAN}, NAN},
    {"abs.f32 \t%f4, %f1;", {-0.0}, 0},
    {"neg.f32 \t%f4, %f1;", {0}, -0.0},
    {"neg.f32 \t%f4, %f1;", {-2}, 2},

    // Those that are approximations are right where the result is exact.
    {"ex2.approx.ftz.f32 \t%f4, %f1;", {3}, 8},
    {"ex2.approx.ftz.f32 \t%f4, %f1;", {-INFINITY}, 0},
    {"ex2.approx.ftz.f32 \t%f4, %f1;", {-140}, 0},
    {"ex2.approx.f32 \t%f4, %f1;", {-140}, 0x1p-140},
    {"lg2.approx.f32 \t%f4, %f1;", {8}, 3},
    {"lg2.approx.f32 \t%f4, %f1;", {0}, -INFINITY},
    {"rsqrt.approx.f32 \t%f4, %f1;", {4}, 0.5},
    {"rsqrt.approx.f32 \t%f4, %f1;", {0}, INFINITY},
    {"rsqrt.approx.f32 \t%f4, %f1;", {-0.0}, -INFINITY},
    {"rsqrt.approx.f32 \t%f4, %f1;", {-1}, NAN},
    {"rcp.approx.ftz.f32 \t%f4, %f1;", {4}, 0.25},
    {"rcp.approx.ftz.f32 \t%f4, %f1;", {0x1p-130}, INFINITY},
    {"rcp.approx.ftz.f32 \t%f4, %f1;", {0x1p127}, 0},

    // Comparisons are false where something is no number, unless they say so.
    {"setp.eq.f32 \t%p4, %f1, %f2;", {0, -0.0}, 1},
    {"setp.eq.f32 \t%p4, %f1, %f2;", {NAN, NAN}, 0},
    {"setp.ne.f32 \t%p4, %f1, %f2;", {NAN, 1}, 0},
    {"setp.ne.f32 \t%p4, %f1, %f2;", {2, 1}, 1},
    {"setp.lt.f32 \t%p4, %f1, %f2;", {1, 2}, 1},
    {"setp.lt.f32 \t%p4, %f1, %f2;", {0, 0x1p-149}, 1},
    {"setp.lt.f32 \t%p4, %f1, %f2;", {NAN, 2}, 0},
    {"setp.le.f32 \t%p4, %f1, %f2;", {2, 2}, 1},
    {"setp.le.f32 \t%p4, %f1, %f2;", {2, NAN}, 0},
    {"setp.gt.f32 \t%p4, %f1, %f2;", {1, 2}, 0},
    {"setp.gt.f32 \t%p4, %f1, %f2;", {NAN, 2}, 0},
    {"setp.ge.f32 \t%p4, %f1, %f2;", {2, 2}, 1},
    {"setp.ge.f32 \t%p4, %f1, %f2;", {NAN, 2}, 0},
    {"setp.equ.f32 \t%p4, %f1, %f2;", {1, 2}, 0},
    {"setp.equ.f32 \t%p4, %f1, %f2;", {NAN, 2}, 1},
    {"setp.neu.f32 \t%p4, %f1, %f2;", {2, 2}, 0},
    {"setp.neu.f32 \t%p4, %f1, %f2;", {NAN, NAN}, 1},
    {"setp.ltu.f32 \t%p4, %f1, %f2;", {2, 1}, 0},
    {"setp.ltu.f32 \t%p4, %f1, %f2;", {NAN, 1}, 1},
    {"setp.leu.f32 \t%p4, %f1, %f2;", {2, 1}, 0},
    {"setp.leu.f32 \t%p4, %f1, %f2;", {1, NAN}, 1},
    {"setp.gtu.f32 \t%p4, %f1, %f2;", {1, 2}, 0},
    {"setp.gtu.f32 \t%p4, %f1, %f2;", {NAN, 2}, 1},
    {"setp.geu.f32 \t%p4, %f1, %f2;", {1, 2}, 0},
    {"setp.geu.f32 \t%p4, %f1, %f2;", {1, NAN}, 1},
    {"setp.num.f32 \t%p4, %f1, %f2;", {1, 2}, 1},
    {"setp.num.f32 \t%p4, %f1, %f2;", {1, NAN}, 0},
    {"setp.nan.f32 \t%p4, %f1, %f2;", {1, 2}, 0},
    {"setp.nan.f32 \t%p4, %f1, %f1;", {NAN}, 1},
    {"setp.lt.f64 \t%p4, %fd1, %fd2;", {1, 1 + 0x1p-52}, 1},

    {"selp.f32 \t%f4, %f1, %f2, %p3;", {1, 2, 1}, 1},
    {"selp.f32 \t%f4, %f1, 0fFF800000, %p3;", {1, 0, 0}, -INFINITY},
};
// clang-format on

START_TEST(the_number_is_right) {
    numbers_check(&cases[_i]);
}
END_TEST

// No number has bits of its own where the ISA says which.
START_TEST(what_is_no_number_is_always_the_same) {
    static const uint64_t from[NUM_FROM] = {0x7f800001, 0xffc00000};
    static const char *const text[] = {"min.f32 \t%f4, %f1, %f2;",
                                       "max.f32 \t%f4, %f1, %f2;",
                                       "max.NaN.f32 \t%f4, %f1, %f2;"};
    ck_assert_uint_eq(instructions_run(text[_i], from), 0x7fffffff);
}
END_TEST

Suite *float_suite(void) {
    Suite *s = suite_create("float");
    TCase *c = tcase_create("float");
    tcase_add_loop_test(c, the_number_is_right, 0,
                        sizeof cases / sizeof cases[0]);
    tcase_add_loop_test(c, what_is_no_number_is_always_the_same, 0, 3);
    suite_add_tcase(s, c);
    return s;
}
