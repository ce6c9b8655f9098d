// Text: appending, and numbers that read back exactly.
#include "base/text.h"
#include "tests/base/suites.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

START_TEST(adds_in_order) {
    Arena *a = arena_new();
    Text t = text_new(a);
    ck_assert_str_eq(text_string(&t), "");
    text_add(&t, "%d,", 1);
    text_bytes(&t, "two, three", 4);
    text_add(&t, "%s", "");
    text_add(&t, " %s", "3");
    ck_assert_str_eq(text_string(&t), "1,two, 3");
    ck_assert_uint_eq(t.length, 8);
    arena_free(a);
}
END_TEST

START_TEST(grows) {
    enum { TIMES = 5000 };
    Arena *a = arena_new();
    Text t = text_new(a);
    for (int i = 0; i < TIMES; i++)
        text_add(&t, "%05d", i);
    ck_assert_uint_eq(strlen(text_string(&t)), 5 * TIMES);
    for (int i = 0; i < TIMES; i++) {
        char number[6] = {0};
        memcpy(number, text_string(&t) + 5 * i, 5);
        ck_assert_int_eq(atoi(number), i);
    }
    arena_free(a);
}
END_TEST

// clang-format off
static const struct {
    double value;
    const char *text;
} numbers[] = {
    {0, "0.0"}, {-0.0, "-0.0"}, {1, "1.0"}, {0.1, "0.1"}, {-2.5, "-2.5"},
    {1e-7, "1e-07"}, {0.001, "0.001"}, {2000, "2000.0"}, {1e300, "1e+300"}, {0.1 + 0.2, "0.30000000000000004"},
    {INFINITY, "inf"}, {-INFINITY, "-inf"},
};
// clang-format on

START_TEST(doubles_are_short) {
    Arena *a = arena_new();
    Text t = text_new(a);
    text_double(&t, numbers[_i].value);
    ck_assert_str_eq(text_string(&t), numbers[_i].text);
    arena_free(a);
}
END_TEST

START_TEST(doubles_read_back) {
    static const double hard[] = {DBL_MIN,     DBL_MAX,    DBL_TRUE_MIN,
                                  1.0 / 3,     123456789., 5e-324,
                                  2.0 / 3e200, 1 << 20,    0x1.fffffffffffffp0};
    Arena *a = arena_new();
    for (size_t i = 0; i < sizeof hard / sizeof hard[0]; i++) {
        Text t = text_new(a);
        text_double(&t, hard[i]);
        ck_assert(strtod(text_string(&t), NULL) == hard[i]);
        ck_assert_ptr_nonnull(strpbrk(text_string(&t), ".e"));
    }
    arena_free(a);
}
END_TEST

Suite *text_suite(void) {
    Suite *s = suite_create("text");
    TCase *t = tcase_create("text");
    tcase_add_test(t, adds_in_order);
    tcase_add_test(t, grows);
    tcase_add_loop_test(t, doubles_are_short, 0,
                        sizeof numbers / sizeof numbers[0]);
    tcase_add_test(t, doubles_read_back);
    suite_add_tcase(s, t);
    return s;
}
