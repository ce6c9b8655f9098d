// Streams: only work without an order runs in any order.
#include "tests/runtime/cuda/double/check_double.h"

#include <stdio.h>
#include <stdlib.h>

enum { SEEDS = 24 };

// One stream fills memory that another reads.  Returns the byte that it read.
static int filled_then_read(int seed, bool with_event) {
    char text[16];
    unsigned char *pinned;
    CUevent filled;
    snprintf(text, sizeof text, "%d", seed);
    double_open(text);
    CUstream one = double_stream(), other = double_stream();
    CUdeviceptr p = double_memory(1);
    GOOD(cuMemHostAlloc((void **)&pinned, 1, 0));
    GOOD(cuEventCreate(&filled, CU_EVENT_DISABLE_TIMING));
    GOOD(cuMemsetD8Async(p, 7, 1, one));
    GOOD(cuEventRecord(filled, one));
    if (with_event)
        GOOD(cuStreamWaitEvent(other, filled, 0));
    GOOD(cuMemcpyDtoHAsync_v2(pinned, p, 1, other));
    GOOD(cuStreamSynchronize(other));
    return *pinned;
}

START_TEST(an_event_orders_two_streams) {
    ck_assert_int_eq(filled_then_read(_i, true), 7);
}
END_TEST

// Each process has one seed: the seeds at which it is seen are known.
START_TEST(a_missing_event_shows) {
    static const bool right[] = {true, false};
    ck_assert((filled_then_read(_i, false) == 7) == right[_i]);
}
END_TEST

START_TEST(pinned_memory_is_read_when_the_copy_runs) {
    unsigned char *pinned, got = 0, pageable = 3;
    double_open("1");
    CUstream s = double_stream();
    CUdeviceptr p = double_memory(2);
    GOOD(cuMemHostAlloc((void **)&pinned, 1, 0));
    *pinned = 5;
    GOOD(cuMemcpyHtoDAsync_v2(p, pinned, 1, s));
    GOOD(cuMemcpyHtoDAsync_v2(p + 1, &pageable, 1, s));
    *pinned = 6;
    pageable = 4;
    GOOD(cuMemcpyDtoHAsync_v2(&got, p, 1, s));
    ck_assert_int_eq(got, 6);
    GOOD(cuMemcpyDtoHAsync_v2(&got, p + 1, 1, s));
    ck_assert_int_eq(got, 3);
}
END_TEST

START_TEST(an_event_waits_for_its_last_record) {
    float ms;
    CUevent from, to;
    double_open("1");
    CUstream s = double_stream();
    CUdeviceptr p = double_memory(1 << 20);
    GOOD(cuEventCreate(&from, 0));
    GOOD(cuEventCreate(&to, 0));
    GOOD(cuEventQuery(from));
    ck_assert_int_eq(cuEventElapsedTime(&ms, from, to),
                     CUDA_ERROR_INVALID_HANDLE);
    GOOD(cuEventRecord(from, s));
    GOOD(cuMemsetD8Async(p, 0, 1 << 20, s));
    GOOD(cuEventRecord(to, s));
    ck_assert_int_eq(cuEventElapsedTime(&ms, from, to), CUDA_ERROR_NOT_READY);
    GOOD(cuEventSynchronize(to));
    GOOD(cuEventElapsedTime(&ms, from, to));
    ck_assert_float_gt(ms, 0.0f);
}
END_TEST

START_TEST(a_query_makes_a_stream_go_on) {
    int asked = 0;
    double_open("1");
    CUstream s = double_stream();
    CUdeviceptr p = double_memory(1);
    for (int i = 0; i < 50; i++)
        GOOD(cuMemsetD8Async(p, 0, 1, s));
    while (cuStreamQuery(s) == CUDA_ERROR_NOT_READY)
        asked++;
    ck_assert_int_gt(asked, 0);
    ck_assert_int_le(asked, 50);
}
END_TEST

START_TEST(a_thread_needs_a_context) {
    CUdeviceptr p;
    double_open("0");
    GOOD(cuCtxSetCurrent(NULL));
    ck_assert_int_eq(cuMemAlloc_v2(&p, 1), CUDA_ERROR_INVALID_CONTEXT);
}
END_TEST

// The last release of a context frees all that was made in it.
START_TEST(a_context_ends_with_its_last_release) {
    CUdeviceptr p;
    double_open("0");
    GOOD(cuDevicePrimaryCtxRelease_v2(0));
    ck_assert_int_eq(cuMemAlloc_v2(&p, 1), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    ck_assert_int_eq(cuDevicePrimaryCtxRelease_v2(0),
                     CUDA_ERROR_INVALID_CONTEXT);
}
END_TEST

START_TEST(the_driver_is_started_first) {
    CUdevice device;
    char name[8];
    ck_assert_int_eq(cuDeviceGet(&device, 0), CUDA_ERROR_NOT_INITIALIZED);
    ck_assert_int_eq(cuDeviceGetName(name, 8, 0), CUDA_ERROR_NOT_INITIALIZED);
    GOOD(cuInit(0));
    GOOD(cuDeviceGet(&device, 0));
    ck_assert_int_eq(cuDeviceGet(&device, 1), CUDA_ERROR_INVALID_DEVICE);
}
END_TEST

Suite *stream_suite(void) {
    Suite *s = suite_create("stream");
    TCase *c = tcase_create("stream");
    tcase_add_loop_test(c, an_event_orders_two_streams, 0, SEEDS);
    tcase_add_loop_test(c, a_missing_event_shows, 0, 2);
    tcase_add_test(c, pinned_memory_is_read_when_the_copy_runs);
    tcase_add_test(c, an_event_waits_for_its_last_record);
    tcase_add_test(c, a_query_makes_a_stream_go_on);
    tcase_add_test(c, a_thread_needs_a_context);
    tcase_add_test(c, a_context_ends_with_its_last_release);
    tcase_add_test(c, the_driver_is_started_first);
    suite_add_tcase(s, c);
    return s;
}
