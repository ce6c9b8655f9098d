// Kernels: compiled, loaded and launched with the arguments of CUDA.
#include "tests/double/check_double.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

static const char scale_text[] = "KERNEL(256) scale(\n"
                                 "    const float *RESTRICT x,\n"
                                 "    float *RESTRICT y)\n"
                                 "{\n"
                                 "    const int i = blockIdx.x * 256 + "
                                 "threadIdx.x;\n"
                                 "    y[i] = 2 * x[i];\n"
                                 "}\n";

// Every block adds to its number, then the sum of all in the second phase.
static const char phases_text[] =
    "PHASED(256) sums(int *part, int *ticket)\n"
    "{\n"
    "    PHASE(0) {\n"
    "        if (threadIdx.x == 0)\n"
    "            part[blockIdx.x] = blockIdx.x + 1;\n"
    "    }\n"
    "    GRID_BARRIER(ticket);\n"
    "    PHASE(1) {\n"
    "        int sum = 0;\n"
    "        for (int i = 0; i < (int)gridDim.x; i++)\n"
    "            sum += part[i];\n"
    "        if (threadIdx.x == 0)\n"
    "            part[gridDim.x + blockIdx.x] = sum;\n"
    "    }\n"
    "}\n";

START_TEST(every_thread_runs) {
    enum { COUNT = 512 };
    float value[COUNT];
    double_open("2");
    CUstream s = double_stream();
    CUdeviceptr x = double_memory(sizeof value),
                y = double_memory(sizeof value);
    CUfunction f = double_kernel(scale_text, "scale");
    for (int i = 0; i < COUNT; i++)
        value[i] = (float)i;
    GOOD(cuMemcpyHtoDAsync_v2(x, value, sizeof value, s));
    double_launch(f, 2, s, (void *[]){&x, &y});
    GOOD(cuMemcpyDtoHAsync_v2(value, y, sizeof value, s));
    for (int i = 0; i < COUNT; i++)
        ck_assert_float_eq(value[i], 2 * (float)i);
}
END_TEST

START_TEST(a_kernel_that_goes_astray_is_stopped) {
    double_open("0");
    CUdeviceptr x = double_memory(1024), y = double_memory(1024);
    CUfunction f = double_kernel(scale_text, "scale");
    double_launch(f, 2, double_stream(), (void *[]){&x, &y});
}
END_TEST

START_TEST(host_memory_is_no_argument) {
    float host[256];
    double_open("1");
    CUdeviceptr x = double_memory(1024), y = (CUdeviceptr)(uintptr_t)host;
    CUfunction f = double_kernel(scale_text, "scale");
    double_launch(f, 1, double_stream(), (void *[]){&x, &y});
}
END_TEST

START_TEST(a_grid_can_wait_for_itself) {
    enum { BLOCKS = 8 };
    int value[2 * BLOCKS];
    double_open("2");
    CUstream s = double_stream();
    CUdeviceptr p = double_memory(sizeof value), ticket = double_memory(4);
    CUfunction f = double_kernel(phases_text, "sums");
    void *argument[] = {&p, &ticket};
    int resident;
    GOOD(cuOccupancyMaxActiveBlocksPerMultiprocessor(&resident, f, 256, 0));
    GOOD(cuLaunchCooperativeKernel(f, BLOCKS, 1, 1, 256, 1, 1, 0, s, argument));
    ck_assert_int_eq(cuLaunchCooperativeKernel(f, 132 * (unsigned)resident + 1,
                                               1, 1, 256, 1, 1, 0, s, argument),
                     CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    GOOD(cuMemcpyDtoHAsync_v2(value, p, sizeof value, s));
    for (int i = 0; i < BLOCKS; i++)
        ck_assert_int_eq(value[BLOCKS + i], BLOCKS * (BLOCKS + 1) / 2);
}
END_TEST

START_TEST(a_damaged_image_is_refused) {
    CUmodule module;
    char image[256] = "DOUBLE1";
    double_open("0");
    ck_assert_int_eq(cuModuleLoadDataEx(&module, image, 0, NULL, NULL),
                     CUDA_ERROR_INVALID_IMAGE);
}
END_TEST

// The device is of generation 90.
START_TEST(code_runs_on_its_own_generation) {
    static const struct {
        const char *architecture;
        CUresult result;
    } known[] = {{"sm_80", CUDA_ERROR_NO_BINARY_FOR_GPU},
                 {"compute_80", CUDA_SUCCESS},
                 {"compute_100", CUDA_ERROR_NO_BINARY_FOR_GPU}};
    CUmodule module;
    double_open("0");
    char *image = double_image(scale_text, known[_i].architecture);
    ck_assert_int_eq(cuModuleLoadDataEx(&module, image, 0, NULL, NULL),
                     known[_i].result);
    free(image);
}
END_TEST

START_TEST(options_are_checked) {
    nvrtcProgram p;
    const char *option[] = {_i == 0 ? "--gpu-architecture=sm_70" : "--fast"};
    GOOD(nvrtcCreateProgram(&p, "", "x.cu", 0, NULL, NULL));
    ck_assert_int_eq(nvrtcCompileProgram(p, 1, option),
                     NVRTC_ERROR_INVALID_OPTION);
    GOOD(nvrtcDestroyProgram(&p));
}
END_TEST

START_TEST(a_text_that_is_wrong_has_a_log) {
    char log[4096];
    size_t size;
    nvrtcProgram p;
    const char *option[] = {"--gpu-architecture=sm_90"};
    GOOD(nvrtcCreateProgram(&p, "int f(void) { return nothing; }\n", "x.cu", 0,
                            NULL, NULL));
    ck_assert_int_eq(nvrtcCompileProgram(p, 1, option),
                     NVRTC_ERROR_COMPILATION);
    GOOD(nvrtcGetProgramLogSize(p, &size));
    ck_assert_uint_lt(size, sizeof log);
    GOOD(nvrtcGetProgramLog(p, log));
    ck_assert_ptr_nonnull(strstr(log, "nothing"));
    GOOD(nvrtcDestroyProgram(&p));
}
END_TEST

Suite *kernel_suite(void) {
    Suite *s = suite_create("kernel");
    TCase *c = tcase_create("kernel");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, every_thread_runs);
    tcase_add_test_raise_signal(c, a_kernel_that_goes_astray_is_stopped,
                                SIGSEGV);
    tcase_add_test_raise_signal(c, host_memory_is_no_argument, SIGABRT);
    tcase_add_test(c, a_grid_can_wait_for_itself);
    tcase_add_test(c, a_damaged_image_is_refused);
    tcase_add_loop_test(c, code_runs_on_its_own_generation, 0, 3);
    tcase_add_loop_test(c, options_are_checked, 0, 2);
    tcase_add_test(c, a_text_that_is_wrong_has_a_log);
    suite_add_tcase(s, c);
    return s;
}
