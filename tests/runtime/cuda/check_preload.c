// Preload: it opens the libraries that the calls of a plan need on this GPU,
// and no others.
#include "runtime/cuda/libraries/libraries.h"
#include "tests/runtime/cuda/suites.h"

#include <dlfcn.h>

static const RtCall convolution = {.kind = RT_CONV,
                                   .type = RT_F16,
                                   .layer = "conv",
                                   .n = 1,
                                   .h = 8,
                                   .w = 8,
                                   .c = 8,
                                   .k = 8,
                                   .r = 1,
                                   .s = 1,
                                   .oh = 8,
                                   .ow = 8,
                                   .stride = {1, 1},
                                   .dilation = {1, 1},
                                   .groups = 1};
static const RtCall products = {.kind = RT_MATMUL,
                                .type = RT_F16,
                                .layer = "attention",
                                .n = 8,
                                .c = 8,
                                .k = 8,
                                .batch = 4};

static bool is_open(const char *library) {
    void *there = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
    if (there != NULL)
        dlclose(there);
    return there != NULL;
}

static void open_for(const RtCall *call, int driver) {
    const RtGpu gpu = {.major = 9, .driver = driver};
    const RtPlan plan = {.call = call, .num_calls = call != NULL};
    RtPreload preload;
    rt_preload_start(&preload, &gpu, &plan);
    rt_preload_wait(&preload);
}

START_TEST(nothing_is_open_before) {
    ck_assert(!is_open("libcudnn.so.9"));
    ck_assert(!is_open("libcublasLt.so.13"));
    open_for(NULL, 13000);
    ck_assert(!is_open("libcudnn.so.9"));
    ck_assert(!is_open("libcublasLt.so.13"));
}
END_TEST

START_TEST(convolutions_are_cudnns) {
    open_for(&convolution, 13000);
    ck_assert(is_open("libcudnn.so.9"));
    ck_assert(!is_open("libcublasLt.so.13"));
}
END_TEST

START_TEST(products_of_many_are_cublaslts) {
    open_for(&products, 13000);
    ck_assert(!is_open("libcudnn.so.9"));
    ck_assert(is_open("libcublasLt.so.13"));
}
END_TEST

// With a driver for CUDA 12, libraries of CUDA 13 stay closed.
START_TEST(a_driver_has_libraries_of_its_own) {
    open_for(&products, 12080);
    ck_assert(!is_open("libcublasLt.so.13"));
}
END_TEST

Suite *preload_suite(void) {
    Suite *s = suite_create("preload");
    TCase *c = tcase_create("preload");
    tcase_add_test(c, nothing_is_open_before);
    tcase_add_test(c, convolutions_are_cudnns);
    tcase_add_test(c, products_of_many_are_cublaslts);
    tcase_add_test(c, a_driver_has_libraries_of_its_own);
    suite_add_tcase(s, c);
    return s;
}
