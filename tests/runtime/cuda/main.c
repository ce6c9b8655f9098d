// The CUDA device's tests.  They run on the stand-in for NVIDIA's driver.
#define _XOPEN_SOURCE 700

#include "tests/runtime/cuda/suites.h"

#include <stdlib.h>

int main(void) {
    SRunner *runner = srunner_create(batches_suite());
    srunner_add_suite(runner, preload_suite());
    srunner_add_suite(runner, cache_suite());
    srunner_add_suite(runner, compile_suite());
    srunner_add_suite(runner, device_suite());
    srunner_add_suite(runner, embedded_suite());
    srunner_add_suite(runner, nccl_suite());
    srunner_add_suite(runner, nvrtc_suite());
    srunner_add_suite(runner, peak_suite());
    srunner_add_suite(runner, sum_suite());
    srunner_add_suite(runner, tune_suite());
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
