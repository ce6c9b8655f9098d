// Numbers of the libraries' types: each rounds to itself, and a value between
// two to the nearer, or to the even one.
#include "tests/runtime/cuda/double/check_double.h"

#include "tests/runtime/cuda/double/double.h"

#include <math.h>

// The number that comes after one, both positive, by its definition.
static double half_value(unsigned bits) {
    int exponent = (int)(bits >> 10);
    double digits = (double)(bits & 1023);
    return exponent == 0 ? ldexp(digits, -24)
                         : ldexp(1024 + digits, exponent - 25);
}

START_TEST(halves_are_rounded_to_even) {
    enum { LARGEST = 0x7bff };
    for (unsigned i = 0; i <= LARGEST; i++) {
        uint16_t bits = (uint16_t)i, back;
        double here = half_value(i), next = half_value(i + 1);
        float middle = (float)((here + next) / 2);
        ck_assert((double)number_get(NUMBER_F16, &bits, 0) == here);
        number_put(NUMBER_F16, &back, 0, (float)-here);
        ck_assert_uint_eq(back, i | 0x8000);
        number_put(NUMBER_F16, &back, 0, middle);
        ck_assert_uint_eq(back, i + (i & 1));
        number_put(NUMBER_F16, &back, 0, nextafterf(middle, INFINITY));
        ck_assert_uint_eq(back, i + 1);
    }
}
END_TEST

START_TEST(others_are_cut_and_rounded) {
    ck_assert(number_round(NUMBER_BF16, 1 + 0x1p-8f) == 1);
    ck_assert(number_round(NUMBER_BF16, 1 + 0x3p-8f) == 1 + 0x1p-6f);
    ck_assert(number_round(NUMBER_TF32, 1 + 0x1p-11f) == 1);
    ck_assert(number_round(NUMBER_TF32, 1 + 0x3p-11f) == 1 + 0x1p-9f);
    ck_assert(isinf(number_round(NUMBER_F16, 65520)));
    ck_assert(number_round(NUMBER_F16, 65519) == 65504);
    ck_assert(isnan(number_round(NUMBER_F16, NAN)));
    ck_assert(isnan(number_round(NUMBER_BF16, NAN)));
}
END_TEST

Suite *number_suite(void) {
    Suite *s = suite_create("number");
    TCase *c = tcase_create("number");
    tcase_add_test(c, halves_are_rounded_to_even);
    tcase_add_test(c, others_are_cut_and_rounded);
    suite_add_tcase(s, c);
    return s;
}
