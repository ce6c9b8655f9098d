// Memory: fresh bytes, owners and guarded pages.
#include "tests/runtime/cuda/double/check_double.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

START_TEST(fresh_memory_is_no_number) {
    float value[3] = {1, 2, 3};
    double_open("0");
    CUdeviceptr p = double_memory(sizeof value);
    GOOD(cuMemcpyDtoHAsync_v2(value, p, sizeof value, double_stream()));
    for (int i = 0; i < 3; i++)
        ck_assert(isnan(value[i]));
}
END_TEST

START_TEST(the_program_may_not_touch_it) {
    double_open("0");
    *(volatile char *)(uintptr_t)double_memory(64) = 1;
}
END_TEST

START_TEST(there_is_only_so_much) {
    CUdeviceptr p;
    size_t left, total;
    setenv("SINTER_DOUBLE_MEMORY", "1048576", 1);
    double_open("0");
    double_memory(1 << 19);
    ck_assert_int_eq(cuMemAlloc_v2(&p, (1 << 19) + 1),
                     CUDA_ERROR_OUT_OF_MEMORY);
    GOOD(cuMemGetInfo_v2(&left, &total));
    ck_assert_uint_eq(left, 1 << 19);
    ck_assert_uint_eq(total, 1 << 20);
}
END_TEST

START_TEST(copies_stay_in_one_allocation) {
    char host[300] = {0};
    double_open("0");
    CUstream s = double_stream();
    CUdeviceptr p = double_memory(200);
    CUdeviceptr wild = (CUdeviceptr)(uintptr_t)host;
    GOOD(cuMemcpyHtoDAsync_v2(p + 100, host, 100, s));
    ck_assert_int_eq(cuMemcpyHtoDAsync_v2(p + 101, host, 100, s),
                     CUDA_ERROR_INVALID_VALUE);
    ck_assert_int_eq(cuMemcpyHtoDAsync_v2(wild, host, 1, s),
                     CUDA_ERROR_INVALID_VALUE);
    ck_assert_int_eq(cuMemsetD8Async(p, 0, 201, s), CUDA_ERROR_INVALID_VALUE);
    GOOD(cuMemFree_v2(p));
    ck_assert_int_eq(cuMemcpyDtoHAsync_v2(host, p, 1, s),
                     CUDA_ERROR_INVALID_VALUE);
    ck_assert_int_eq(cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

// A GPU may be at work when memory is freed, and then goes astray.
START_TEST(memory_in_use_is_not_freed) {
    void *host;
    double_open("1");
    CUstream s = double_stream();
    CUdeviceptr p = double_memory(1);
    GOOD(cuMemHostAlloc(&host, 1, 0));
    GOOD(cuMemcpyHtoDAsync_v2(p, host, 1, s));
    GOOD(_i == 0 ? cuMemFree_v2(p) : cuMemFreeHost(host));
    cuStreamSynchronize(s);
}
END_TEST

START_TEST(copies_do_not_overlap) {
    double_open("0");
    CUstream s = double_stream();
    CUdeviceptr p = double_memory(20);
    GOOD(cuMemcpyDtoDAsync_v2(p + 10, p, 10, s));
    GOOD(cuMemcpyDtoDAsync_v2(p, p + 10, 10, s));
    cuMemcpyDtoDAsync_v2(p + 9, p, 10, s);
}
END_TEST

START_TEST(what_is_written_behind_is_found) {
    void *p;
    double_open("0");
    GOOD(cuMemHostAlloc(&p, 100, 0));
    memset(p, 0, 101);
    cuMemFreeHost(p);
}
END_TEST

START_TEST(what_is_written_before_is_found) {
    void *p;
    double_open("0");
    GOOD(cuMemHostAlloc(&p, 100, 0));
    memset((char *)p - 1, 0, 1);
    cuMemFreeHost(p);
}
END_TEST

static const CUmemAllocationProp plain = {
    .type = CU_MEM_ALLOCATION_TYPE_PINNED,
    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
static const CUmemAccessDesc readable = {
    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

// Addresses have memory once it is mapped and accessible.
START_TEST(memory_is_mapped_to_addresses) {
    CUdeviceptr p;
    CUmemGenericAllocationHandle memory;
    size_t unit, left, all;
    double_open("0");
    CUstream s = double_stream();
    GOOD(cuMemGetAllocationGranularity(&unit, &plain,
                                       CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    GOOD(cuMemGetInfo_v2(&all, &left));
    ck_assert_int_eq(cuMemAddressReserve(&p, unit + 1, 0, 0, 0),
                     CUDA_ERROR_INVALID_VALUE);
    GOOD(cuMemAddressReserve(&p, 3 * unit, 0, 0, 0));
    GOOD(cuMemCreate(&memory, unit, &plain, 0));
    ck_assert_int_eq(cuMemMap(p + 1, unit, 0, memory, 0),
                     CUDA_ERROR_INVALID_VALUE);
    ck_assert_int_eq(cuMemMap(p + 3 * unit, unit, 0, memory, 0),
                     CUDA_ERROR_INVALID_VALUE);
    GOOD(cuMemMap(p + unit, unit, 0, memory, 0));
    ck_assert_int_eq(cuMemsetD8Async(p + unit, 0, unit, s),
                     CUDA_ERROR_INVALID_VALUE);
    GOOD(cuMemRelease(memory));
    GOOD(cuMemSetAccess(p + unit, unit, &readable, 1));
    GOOD(cuMemsetD8Async(p + unit, 0, unit, s));
    ck_assert_int_eq(cuMemsetD8Async(p, 0, unit, s), CUDA_ERROR_INVALID_VALUE);
    GOOD(cuMemGetInfo_v2(&left, &unit));
    ck_assert_uint_eq(all - left, 2 << 20);
    GOOD(cuMemUnmap(p + (2 << 20), 2 << 20));
    GOOD(cuMemGetInfo_v2(&left, &unit));
    ck_assert_uint_eq(all, left);
    GOOD(cuMemAddressFree(p, 3 * (2 << 20)));
}
END_TEST

START_TEST(mapped_addresses_are_not_freed) {
    enum { UNIT = 2 << 20 };
    CUdeviceptr p;
    CUmemGenericAllocationHandle memory;
    double_open("0");
    GOOD(cuMemAddressReserve(&p, UNIT, 0, 0, 0));
    GOOD(cuMemCreate(&memory, UNIT, &plain, 0));
    GOOD(cuMemMap(p, UNIT, 0, memory, 0));
    cuMemAddressFree(p, UNIT);
}
END_TEST

Suite *memory_suite(void) {
    Suite *s = suite_create("memory");
    TCase *c = tcase_create("memory");
    tcase_add_test(c, fresh_memory_is_no_number);
    tcase_add_test_raise_signal(c, the_program_may_not_touch_it, SIGSEGV);
    tcase_add_test(c, there_is_only_so_much);
    tcase_add_test(c, copies_stay_in_one_allocation);
    tcase_add_loop_test_raise_signal(c, memory_in_use_is_not_freed, SIGABRT, 0,
                                     2);
    tcase_add_test_raise_signal(c, copies_do_not_overlap, SIGABRT);
    tcase_add_test_raise_signal(c, what_is_written_behind_is_found, SIGABRT);
    tcase_add_test_raise_signal(c, what_is_written_before_is_found, SIGABRT);
    tcase_add_test(c, memory_is_mapped_to_addresses);
    tcase_add_test_raise_signal(c, mapped_addresses_are_not_freed, SIGABRT);
    suite_add_tcase(s, c);
    return s;
}
