// Ahead: libraries are in memory once they were opened ahead, those that the
// calls of a plan need and no others, for this GPU.
#include "runtime/cuda/libraries/libraries.h"
#include "tests/cuda/suites.h"

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
    RtPreload ahead;
    rt_preload_start(&ahead, &gpu, &plan);
    rt_preload_wait(&ahead);
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

// Where a driver knows CUDA 12 only, what is of 13 stays closed.
START_TEST(a_driver_has_libraries_of_its_own) {
    open_for(&products, 12080);
    ck_assert(!is_open("libcublasLt.so.13"));
}
END_TEST

Suite *ahead_suite(void) {
    Suite *s = suite_create("ahead");
    TCase *c = tcase_create("ahead");
    tcase_add_test(c, nothing_is_open_before);
    tcase_add_test(c, convolutions_are_cudnns);
    tcase_add_test(c, products_of_many_are_cublaslts);
    tcase_add_test(c, a_driver_has_libraries_of_its_own);
    suite_add_tcase(s, c);
    return s;
}
