// Holdout: two parts of the training samples that are all of them; the held-out
// part is spread evenly, or at the end.
#include "runtime/data/data.h"

#include "tests/runtime/suites.h"

#include <stdio.h>

static RtSplit part(RtPart taken, bool at_end, int64_t all, int64_t held) {
    return (RtSplit){.count = taken == RT_PART_VALIDATION ? held : all - held,
                     .holdout = {taken, at_end, all, held}};
}

static const struct {
    int64_t all, held;
} counts[] = {{2, 1},     {7, 1},     {7, 3},       {7, 6},
              {10, 5},    {192, 24},  {1000, 13},   {1000, 987},
              {1013, 97}, {50000, 1}, {50000, 5000}};

START_TEST(parts_are_the_whole) {
    int64_t all = counts[_i / 2].all, held = counts[_i / 2].held;
    RtSplit rest = part(RT_PART_TRAIN, _i % 2, all, held);
    RtSplit out = part(RT_PART_VALIDATION, _i % 2, all, held);
    for (int64_t i = 0, r = 0, h = 0; i < all; i++) {
        bool is_out = h < held && rt_split_sample(&out, h) == i;
        ck_assert(is_out || rt_split_sample(&rest, r) == i);
        ck_assert(rt_split_has(&out, i) == is_out);
        ck_assert(rt_split_has(&rest, i) != is_out);
        h += is_out;
        r += !is_out;
        if (_i % 2 == 0) // as many as their share of those before, rounded down
            ck_assert_int_eq(h, (i + 1) * held / all);
    }
    ck_assert_int_eq(rt_split_all(&rest), all);
    ck_assert_int_eq(rt_split_all(&out), all);
}
END_TEST

START_TEST(the_end_of_a_text_is_held_out) {
    RtSplit out = part(RT_PART_VALIDATION, true, 100, 10);
    for (int64_t i = 0; i < 10; i++)
        ck_assert_int_eq(rt_split_sample(&out, i), 90 + i);
}
END_TEST

// The largest number of samples.
START_TEST(large_sets_do_not_overflow) {
    int64_t all = INT32_MAX, held = INT32_MAX / 2;
    RtSplit rest = part(RT_PART_TRAIN, false, all, held);
    RtSplit out = part(RT_PART_VALIDATION, false, all, held);
    ck_assert_int_eq(rt_split_sample(&out, held - 1), all - 1);
    ck_assert_int_eq(rt_split_sample(&rest, 0), 0);
    for (int64_t i = rest.count - 1000; i < rest.count; i++) {
        int64_t sample = rt_split_sample(&rest, i);
        ck_assert(sample >= 0 && sample < all);
        ck_assert(rt_split_has(&rest, sample));
        ck_assert(!rt_split_has(&out, sample));
    }
}
END_TEST

// 4.1 % of 50,000 are 2,050, in spite of the binary 4.1.
START_TEST(a_share_is_rounded_down_once) {
    for (int tenths = 1; tenths < 1000; tenths++)
        for (int64_t all = 10000; all <= 60000; all += 10000) {
            RtData d = {.train = {.count = all}};
            RtOptions o;
            RtError e;
            char text[32];
            snprintf(text, sizeof text, "--validation=%d.%d%%", tenths / 10,
                     tenths % 10);
            ck_assert(rt_options_parse(&o, 2, (char *[]){NULL, text}, NULL, &e));
            ck_assert(rt_data_hold_out(&d, &o.validation, &e));
            ck_assert_int_eq(d.test.count, tenths * all / 1000);
            ck_assert_int_eq(d.train.count, all - d.test.count);
        }
}
END_TEST

START_TEST(without_a_holdout_all_samples_train) {
    RtSplit s = {.count = 5};
    for (int64_t i = 0; i < 5; i++) {
        ck_assert_int_eq(rt_split_sample(&s, i), i);
        ck_assert(rt_split_has(&s, i));
    }
    ck_assert_int_eq(rt_split_all(&s), 5);
}
END_TEST

Suite *holdout_suite(void) {
    Suite *s = suite_create("holdout");
    TCase *t = tcase_create("held");
    tcase_add_loop_test(t, parts_are_the_whole, 0,
                        2 * sizeof counts / sizeof counts[0]);
    tcase_add_test(t, the_end_of_a_text_is_held_out);
    tcase_add_test(t, large_sets_do_not_overflow);
    tcase_add_test(t, a_share_is_rounded_down_once);
    tcase_add_test(t, without_a_holdout_all_samples_train);
    suite_add_tcase(s, t);
    return s;
}
