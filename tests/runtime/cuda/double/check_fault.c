// Planned faults, and the log of calls.
#include "tests/runtime/cuda/double/check_double.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

START_TEST(the_second_call_fails) {
    CUdeviceptr p;
    setenv("SINTER_DOUBLE_FAIL", "cuMemAlloc_v2:2:2,cuStreamQuery:1:999", 1);
    double_open("0");
    GOOD(cuMemAlloc_v2(&p, 1));
    ck_assert_int_eq(cuMemAlloc_v2(&p, 1), CUDA_ERROR_OUT_OF_MEMORY);
    GOOD(cuMemAlloc_v2(&p, 1));
    ck_assert_int_eq(cuStreamQuery(double_stream()), CUDA_ERROR_UNKNOWN);
}
END_TEST

START_TEST(any_call_can_fail) {
    setenv("SINTER_DOUBLE_FAIL", "*:5:1", 1);
    double_open("0");
    CUstream s;
    ck_assert_int_eq(cuStreamCreateWithPriority(&s, 1, 0),
                     CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(some_errors_stay) {
    CUdeviceptr p;
    double_open("1");
    CUstream s = double_stream();
    p = double_memory(1);
    GOOD(cuMemsetD8Async(p, 0, 1, s));
    ck_assert_int_eq(cuStreamSynchronize(s), CUDA_ERROR_ILLEGAL_ADDRESS);
    ck_assert_int_eq(cuMemFree_v2(p), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

START_TEST(a_busy_or_missing_device) {
    CUcontext context;
    setenv("SINTER_DOUBLE_BUSY", "1", 1);
    GOOD(cuInit(0));
    ck_assert_int_eq(cuDevicePrimaryCtxRetain(&context, 0),
                     CUDA_ERROR_DEVICE_UNAVAILABLE);
    setenv("SINTER_DOUBLE_DEVICES", "0", 1);
    ck_assert_int_eq(cuInit(0), CUDA_ERROR_NO_DEVICE);
}
END_TEST

// Whether a child process can start the driver.
static bool child_starts(void) {
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(cuInit(0) == CUDA_SUCCESS ? EXIT_SUCCESS : EXIT_FAILURE);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
}

START_TEST(a_driver_is_not_inherited) {
    ck_assert(child_starts());
    GOOD(cuInit(0));
    ck_assert(!child_starts());
    GOOD(cuInit(0));
}
END_TEST

START_TEST(calls_are_written_down) {
    char name[] = "/tmp/sinter-double-log-XXXXXX", text[4096];
    int file = mkstemp(name);
    ck_assert_int_ge(file, 0);
    setenv("SINTER_DOUBLE_LOG", name, 1);
    double_open("0");
    double_memory(123);
    FILE *f = fdopen(file, "r");
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    remove(name);
    ck_assert_ptr_nonnull(strstr(text, " cuInit flags=0\n"));
    ck_assert_ptr_nonnull(strstr(text, " cuMemAlloc_v2 bytes=123\n"));
}
END_TEST

static void fail_first_run(void) {
    setenv("SINTER_DOUBLE_FAIL", "run:1:700", 1);
}

Suite *fault_suite(void) {
    Suite *s = suite_create("fault");
    TCase *c = tcase_create("fault"), *lost = tcase_create("lost");
    tcase_add_test(c, the_second_call_fails);
    tcase_add_test(c, any_call_can_fail);
    tcase_add_test(c, a_busy_or_missing_device);
    tcase_add_test(c, a_driver_is_not_inherited);
    tcase_add_test(c, calls_are_written_down);
    suite_add_tcase(s, c);
    tcase_add_checked_fixture(lost, fail_first_run, NULL);
    tcase_add_test(lost, some_errors_stay);
    suite_add_tcase(s, lost);
    return s;
}
