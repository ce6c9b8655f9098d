// Batches on the stand-in for the driver: they arrive whole and in order however
// late its streams run, and a staging buffer is written again as soon as it may
// be.
#define _XOPEN_SOURCE 700

#include "tests/runtime/cuda/suites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 40, MAX_BUFFERS = 2 };

static RtDevice *open_device(int seed) {
    char text[8];
    RtError e;
    snprintf(text, sizeof text, "%d", seed);
    setenv("SINTER_DOUBLE_SEED", text, 1);
    RtDevice *d = rt_cuda_open(&counter, counter.plan, 0, NULL, NULL, &e);
    ck_assert_msg(d != NULL, "%s", e.text);
    d->reserve(d);
    return d;
}

static void submit_all(RtDevice *d, float *buffer[], int buffers) {
    for (int i = 0; i < RUNS; i++) {
        float *input = buffer[i % buffers];
        ck_assert_int_ge(d->completed_batches(d, i + 1 - buffers),
                         i + 1 - buffers);
        *input = (float)(i + 1);
        RtPiece piece = {INPUT_AT, input, sizeof *input, 0};
        ck_assert_int_eq(d->submit_batch(d, &piece, 1), i + 1);
        d->run(d, counter.plan->step);
    }
}

START_TEST(each_step_has_its_own_batch) {
    int buffers = 1 + _i % MAX_BUFFERS;
    float *buffer[MAX_BUFFERS], value[COUNTERS];
    RtDevice *d = open_device(_i / MAX_BUFFERS);
    for (int i = 0; i < buffers; i++)
        ck_assert_ptr_nonnull(buffer[i] =
                                  d->acquire_staging(d, sizeof **buffer));
    submit_all(d, buffer, buffers);
    d->read(d, value, 0, sizeof value);
    for (int i = 0; i < COUNTERS; i++)
        ck_assert_float_eq(value[i], RUNS * (RUNS + 1) / 2);
    ck_assert_int_eq(d->completed_batches(d, 0), RUNS);
    for (int i = 0; i < buffers; i++)
        d->release_staging(d, buffer[i]);
    d->close(d);
}
END_TEST

START_TEST(pinned_memory_may_run_out) {
    setenv("SINTER_DOUBLE_FAIL", "cuMemHostAlloc:8:2", 1); // 6 are its own
    RtDevice *d = open_device(2);
    ck_assert_ptr_nonnull(d->acquire_staging(d, 64));
    ck_assert_ptr_null(d->acquire_staging(d, 64));
    d->close(d);
}
END_TEST

START_TEST(a_copy_that_fails_ends_it) {
    float *buffer;
    setenv("SINTER_DOUBLE_FAIL", "cuMemcpyHtoDAsync_v2:20:700", 1);
    RtDevice *d = open_device(2);
    ck_assert_ptr_nonnull(buffer = d->acquire_staging(d, sizeof *buffer));
    submit_all(d, &buffer, 1);
}
END_TEST

// Rows of words of each width, by their numbers.
START_TEST(resident_rows_are_gathered) {
    enum { ROWS = 9, TAKEN = 4, MOST = 24 };
    static const size_t lengths[] = {24, 12, 7};
    const int numbers[TAKEN] = {8, 0, 3, 3};
    const size_t bytes = lengths[_i];
    unsigned char row[ROWS * MOST], got[TAKEN * MOST];
    RtError e;
    RtDevice *d = open_device(2);
    for (size_t i = 0; i < ROWS * bytes; i++)
        row[i] = (unsigned char)(i * 7 + 1);
    const RtRows rows = {row, bytes, ROWS};
    ck_assert_msg(d->make_resident(d, &rows, TAKEN, &e), "%s", e.text);
    int *staging = d->acquire_staging(d, sizeof numbers);
    ck_assert_ptr_nonnull(staging);
    memcpy(staging, numbers, sizeof numbers);
    const RtPiece piece = {INPUT_AT, staging, sizeof numbers, 1};
    ck_assert_int_eq(d->submit_batch(d, &piece, 1), 1);
    d->read(d, got, INPUT_AT, TAKEN * bytes);
    for (size_t i = 0; i < TAKEN * bytes; i++)
        ck_assert_uint_eq(got[i],
                          row[(size_t)numbers[i / bytes] * bytes + i % bytes]);
    d->release_staging(d, staging);
    d->close(d);
}
END_TEST

// A batch of 1.1 times 2^30 words, of rows that are few.
START_TEST(a_batch_of_too_many_words_is_not_gathered) {
    enum { BYTES = 8 << 20 };
    RtError e = {0};
    char *from = calloc(BYTES, 1);
    const RtRows rows = {from, BYTES, 1};
    ck_assert_ptr_nonnull(from);
    RtDevice *d = open_device(2);
    ck_assert(!d->make_resident(d, &rows, 1126, &e));
    ck_assert_int_eq(e.status, EXIT_MEMORY);
    ck_assert_msg(strstr(e.text, "too large for the gather kernel") != NULL,
                  "%s", e.text);
    d->close(d);
    free(from);
}
END_TEST

Suite *batches_suite(void) {
    Suite *s = suite_create("batches");
    TCase *c = tcase_create("batches");
    tcase_add_unchecked_fixture(c, cache_begin, cache_end);
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, each_step_has_its_own_batch, 0, 6 * MAX_BUFFERS);
    tcase_add_loop_test(c, resident_rows_are_gathered, 0, 3);
    tcase_add_test(c, a_batch_of_too_many_words_is_not_gathered);
    tcase_add_test(c, pinned_memory_may_run_out);
    tcase_add_exit_test(c, a_copy_that_fails_ends_it, EXIT_DEVICE);
    suite_add_tcase(s, c);
    return s;
}
