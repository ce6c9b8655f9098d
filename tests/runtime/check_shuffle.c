// The shuffle: a permutation, uniform, and different in every epoch.
#include "runtime/data/data.h"
#include "tests/runtime/suites.h"

#include <stdlib.h>

static const int64_t counts[] = {1,    2,    3,    5,    7,    8,
                                 31,   32,   33,   100,  127,  1000,
                                 1023, 1024, 1025, 4097, 9999, 50000};

START_TEST(is_a_permutation) {
    int64_t n = counts[_i];
    char *seen = calloc((size_t)n, 1);
    for (int64_t i = 0; i < n; i++) {
        int64_t sample = rt_shuffled(7, 3, i, n);
        ck_assert(sample >= 0 && sample < n);
        ck_assert_msg(!seen[sample], "%lld twice", (long long)sample);
        seen[sample] = 1;
    }
    free(seen);
}
END_TEST

// Positions where two orders agree: about one in a random pair.
static int agreements(uint64_t seed_a, int64_t epoch_a, uint64_t seed_b,
                      int64_t epoch_b, int64_t n) {
    int same = 0;
    for (int64_t i = 0; i < n; i++)
        same += rt_shuffled(seed_a, epoch_a, i, n) ==
                rt_shuffled(seed_b, epoch_b, i, n);
    return same;
}

START_TEST(differs_by_seed_and_epoch) {
    ck_assert_int_eq(agreements(1, 2, 1, 2, 1000), 1000);
    ck_assert_int_lt(agreements(1, 0, 2, 0, 1000), 10);
    ck_assert_int_lt(agreements(1, 0, 1, 1, 1000), 10);
    ck_assert_int_lt(agreements(0, 1, 1, 0, 1000), 10);
}
END_TEST

// Over many epochs each sample comes first about equally often, and follows any
// other about equally often.
START_TEST(is_even) {
    enum { N = 10, EPOCHS = 20000 };
    int first[N] = {0}, after[N] = {0};
    for (int64_t epoch = 0; epoch < EPOCHS; epoch++) {
        int64_t a = rt_shuffled(5, epoch, 0, N),
                b = rt_shuffled(5, epoch, 1, N);
        first[a]++;
        after[(b - a + N) % N]++;
    }
    ck_assert_int_eq(after[0], 0);
    for (int i = 0; i < N; i++) // six deviations
        ck_assert_int_lt(abs(first[i] - EPOCHS / N), 255);
    for (int i = 1; i < N; i++)
        ck_assert_int_lt(abs(after[i] - EPOCHS / (N - 1)), 270);
}
END_TEST

START_TEST(holds_for_large_sets) {
    int64_t n = ((int64_t)1 << 40) + 12345;
    for (int64_t i = n - 100; i < n; i++) {
        int64_t sample = rt_shuffled(1, 1, i, n);
        ck_assert(sample >= 0 && sample < n);
    }
}
END_TEST

Suite *shuffle_suite(void) {
    Suite *s = suite_create("shuffle");
    TCase *t = tcase_create("order");
    tcase_add_loop_test(t, is_a_permutation, 0,
                        sizeof counts / sizeof counts[0]);
    tcase_add_test(t, differs_by_seed_and_epoch);
    tcase_add_test(t, is_even);
    tcase_add_test(t, holds_for_large_sets);
    suite_add_tcase(s, t);
    return s;
}
