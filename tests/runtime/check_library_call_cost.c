// Library calls: element counts, and calls without elements.

#include "runtime/runtime.h"
#include "tests/runtime/suites.h"

static RtCall convolution_of(RtCallKind kind, int n, int size, int c, int k) {
    return (RtCall){.kind = kind,
                    .n = n,
                    .h = size,
                    .w = size,
                    .c = c,
                    .k = k,
                    .r = 3,
                    .s = 3,
                    .oh = size,
                    .ow = size,
                    .groups = 1};
}

START_TEST(a_convolution_has_an_image_filters_and_a_result) {
    RtCall c = convolution_of(RT_CONV, 2, 5, 3, 7);
    size_t x = (size_t)2 * 5 * 5 * 3, y = (size_t)2 * 5 * 5 * 7;
    size_t weight = (size_t)7 * 3 * 3 * 3, count[3];
    rt_call_count(&c, count);
    ck_assert(count[0] == x && count[1] == weight && count[2] == y);
    c.kind = RT_CONV_GRAD_INPUT;
    rt_call_count(&c, count);
    ck_assert(count[0] == y && count[1] == weight && count[2] == x);
    c.kind = RT_CONV_GRAD_WEIGHT;
    rt_call_count(&c, count);
    ck_assert(count[0] == y && count[1] == x && count[2] == weight);
}
END_TEST

START_TEST(a_multiply_add_is_two_operations) {
    RtCall c = convolution_of(RT_CONV, 2, 5, 12, 8);
    RtCall m = {.kind = RT_MATMUL, .batch = 3, .n = 5, .c = 7, .k = 11};
    RtCall factor = {.kind = RT_EIGH, .n = 9, .k = 9};
    c.oh = 4, c.ow = 3, c.groups = 4;
    for (int kind = RT_CONV; kind <= RT_CONV_GRAD_WEIGHT; kind++) {
        c.kind = (RtCallKind)kind;
        ck_assert(rt_call_flops(&c) == 2 * (2 * 4 * 3 * 8) * (3 * 3 * 3));
    }
    ck_assert(rt_call_flops(&m) == 2 * 3 * 5 * 7 * 11);
    ck_assert(rt_call_flops(&factor) == 0);
}
END_TEST

START_TEST(a_call_without_values_is_of_nothing) {
    RtCall images = convolution_of(RT_CONV, 0, 4, 8, 8);
    RtCall filters = convolution_of(RT_CONV_GRAD_WEIGHT, 4, 4, 8, 0);
    RtCall sums = {.kind = RT_MATMUL, .batch = 1, .n = 2, .c = 0, .k = 2};
    ck_assert(rt_call_of_nothing(&images));
    ck_assert(rt_call_of_nothing(&filters));
    ck_assert(rt_call_of_nothing(&sums));
}
END_TEST

// The product of the three counts is a multiple of 2^64.
START_TEST(a_call_of_powers_of_two_is_of_something) {
    RtCall c = convolution_of(RT_CONV, 512, 32, 64, 128);
    RtCall m = {.kind = RT_MATMUL,
                .batch = 1,
                .n = 1 << 11,
                .c = 1 << 11,
                .k = 1 << 11};
    ck_assert(!rt_call_of_nothing(&c));
    ck_assert(!rt_call_of_nothing(&m));
}
END_TEST

Suite *library_call_cost_suite(void) {
    Suite *suite = suite_create("library_call_cost");
    TCase *cases = tcase_create("call");
    tcase_add_test(cases, a_convolution_has_an_image_filters_and_a_result);
    tcase_add_test(cases, a_multiply_add_is_two_operations);
    tcase_add_test(cases, a_call_without_values_is_of_nothing);
    tcase_add_test(cases, a_call_of_powers_of_two_is_of_something);
    suite_add_tcase(suite, cases);
    return suite;
}
