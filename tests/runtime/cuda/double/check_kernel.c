// Kernels: compiled, loaded and launched with the arguments of CUDA.
#include "tests/runtime/cuda/double/check_double.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char scale_text[] = "KERNEL(256) scale(\n"
                                 "    const float *RESTRICT x,\n"
                                 "    float *RESTRICT y)\n"
                                 "{\n"
                                 "    const int i = blockIdx.x * 256 + "
                                 "threadIdx.x;\n"
                                 "    y[i] = 2 * x[i];\n"
                                 "}\n";

// An argument so many bytes from where 1024 begin, of which a kernel uses none.
static void launch_with(int from_start) {
    static const char text[] = "KERNEL(256) leave(float *x)\n"
                               "{\n"
                               "    (void)x;\n"
                               "}\n";
    double_open("0");
    CUdeviceptr x = double_memory(1024) + (CUdeviceptr)from_start;
    double_launch(double_kernel(text, "leave"), 1, double_stream(),
                  (void *[]){&x});
}

START_TEST(nothing_can_be_at_the_end_of_memory) {
    launch_with(1024);
}
END_TEST

START_TEST(an_argument_is_not_behind_memory) {
    launch_with(1025);
}
END_TEST

// Every block adds to its number, then the sum of all in the second phase.
static const char phases_text[] =
    "PHASED(256) sums(int *part, int *counter)\n"
    "{\n"
    "    PHASE(0) {\n"
    "        if (threadIdx.x == 0)\n"
    "            part[blockIdx.x] = blockIdx.x + 1;\n"
    "    }\n"
    "    GRID_BARRIER(counter);\n"
    "    PHASE(1) {\n"
    "        int sum = 0;\n"
    "        for (int i = 0; i < (int)gridDim.x; i++)\n"
    "            sum += part[i];\n"
    "        if (threadIdx.x == 0)\n"
    "            part[gridDim.x + blockIdx.x] = sum;\n"
    "    }\n"
    "}\n";

static void scale_check(CUfunction f) {
    enum { COUNT = 512 };
    float value[COUNT];
    CUstream s = double_stream();
    CUdeviceptr x = double_memory(sizeof value),
                y = double_memory(sizeof value);
    for (int i = 0; i < COUNT; i++)
        value[i] = (float)i;
    GOOD(cuMemcpyHtoDAsync_v2(x, value, sizeof value, s));
    double_launch(f, 2, s, (void *[]){&x, &y});
    GOOD(cuMemcpyDtoHAsync_v2(value, y, sizeof value, s));
    for (int i = 0; i < COUNT; i++)
        ck_assert_float_eq(value[i], 2 * (float)i);
}

START_TEST(every_thread_runs) {
    double_open("2");
    scale_check(double_kernel(scale_text, "scale"));
}
END_TEST

// ---- PTX ----

static void ask_for_ptx(void) {
    setenv("SINTER_DOUBLE_PTX", "1", 1);
    setenv("SINTER_DOUBLE_NVRTC", getenv("SINTER_NVRTC"), 1);
}

// PTX is executed as machine code and as assembly for a later architecture.
START_TEST(ptx_is_executed) {
    static const char *const architecture[] = {"sm_90", "compute_80"};
    CUmodule module;
    CUfunction f;
    int threads;
    ask_for_ptx();
    double_open(_i == 0 ? "0" : "2");
    char *image = double_image(scale_text, architecture[_i]);
    GOOD(cuModuleLoadDataEx(&module, image, 0, NULL, NULL));
    free(image);
    ck_assert_int_eq(cuModuleGetFunction(&f, module, "skale"),
                     CUDA_ERROR_NOT_FOUND);
    GOOD(cuModuleGetFunction(&f, module, "scale"));
    GOOD(cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
                            f));
    ck_assert_int_eq(threads, 256);
    scale_check(f);
    GOOD(cuModuleUnload(module));
}
END_TEST

// A module's variable is device memory while the module is there.
START_TEST(ptx_has_variables) {
    static const char text[] = "__device__ int table[3] = {5, 6};\n"
                               "KERNEL(256) read_table(int *y)\n"
                               "{\n"
                               "    if (threadIdx.x < 3)\n"
                               "        y[threadIdx.x] = table[threadIdx.x];\n"
                               "}\n";
    int value[3] = {1, 2, 3};
    CUmodule module;
    CUfunction f;
    CUdeviceptr table;
    size_t bytes;
    ask_for_ptx();
    double_open("2");
    CUstream s = double_stream();
    CUdeviceptr y = double_memory(sizeof value);
    char *image = double_image(text, "sm_90");
    GOOD(cuModuleLoadDataEx(&module, image, 0, NULL, NULL));
    free(image);
    GOOD(cuModuleGetFunction(&f, module, "read_table"));
    ck_assert_int_eq(cuModuleGetGlobal_v2(&table, &bytes, module, "chair"),
                     CUDA_ERROR_NOT_FOUND);
    GOOD(cuModuleGetGlobal_v2(&table, &bytes, module, "table"));
    ck_assert_uint_eq(bytes, sizeof value);
    GOOD(cuMemcpyHtoDAsync_v2(table, value, sizeof *value, s));
    double_launch(f, 1, s, (void *[]){&y});
    GOOD(cuMemcpyDtoHAsync_v2(value, y, sizeof value, s));
    ck_assert_int_eq(value[0], 1);
    ck_assert_int_eq(value[1], 6);
    ck_assert_int_eq(value[2], 0);
}
END_TEST

// Among numbers that are all the same, in a warp and in a block.
static const char first_text[] =
    "KERNEL(256) first(const int *at, int *place)\n"
    "{\n"
    "    SHARED float shared[256];\n"
    "    const int i = at[threadIdx.x];\n"
    "    place[threadIdx.x] = row_argmax(1.0f, i, 32, shared);\n"
    "    const int all = row_argmax(1.0f, i, 256, shared);\n"
    "    place[256 + threadIdx.x] = all;\n"
    "}\n";

// The smallest place is found to the bit.
static const int least_place[] = {0,          16777217,        33554435,
                                  1073741823, 1 << 30,         1073741825,
                                  2139095041, 2147483647 - 255};
enum { NUM_LEAST = sizeof least_place / sizeof least_place[0] };

START_TEST(places_are_exact_in_all_columns) {
    enum { THREADS = 256 };
    int place[2 * THREADS];
    if (_i % 2 == 1)
        ask_for_ptx();
    double_open("2");
    CUstream s = double_stream();
    CUdeviceptr at = double_memory(sizeof place / 2),
                found = double_memory(sizeof place);
    for (int i = 0; i < THREADS; i++)
        place[i] = least_place[_i / 2] + (i * 37 + 11) % THREADS;
    GOOD(cuMemcpyHtoDAsync_v2(at, place, sizeof place / 2, s));
    double_launch(double_kernel(first_text, "first"), 1, s,
                  (void *[]){&at, &found});
    int warp[THREADS / 32];
    for (int i = 0; i < THREADS; i++)
        if (i % 32 == 0 || place[i] < warp[i / 32])
            warp[i / 32] = place[i];
    GOOD(cuMemcpyDtoHAsync_v2(place, found, sizeof place, s));
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(place[i], warp[i / 32]);
        ck_assert_int_eq(place[THREADS + i], least_place[_i / 2]);
    }
}
END_TEST

// Machine code first, then PTX.
START_TEST(a_grid_can_wait_for_itself) {
    enum { BLOCKS = 8 };
    int value[2 * BLOCKS];
    if (_i == 1)
        ask_for_ptx();
    double_open("2");
    CUstream s = double_stream();
    CUdeviceptr p = double_memory(sizeof value), counter = double_memory(4);
    CUfunction f = double_kernel(phases_text, "sums");
    void *argument[] = {&p, &counter};
    int resident;
    GOOD(cuMemsetD8Async(counter, 0, 4, s));
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

// A description of a device that cannot, in a file that goes at once.
START_TEST(some_devices_launch_no_grid_that_waits) {
    const char *tmp = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    char path[4096], command[16384];
    snprintf(path, sizeof path, "%s/sinter-double-device-XXXXXX", tmp);
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    close(file);
    snprintf(command, sizeof command,
             "sed 's/\"supportCoopLaunch\": 1/\"supportCoopLaunch\": 0/' "
             "'%s/tools/devices/h200.json' >'%s'",
             getenv("SINTER_SOURCE"), path);
    ck_assert_int_eq(system(command), 0);
    setenv("SINTER_DOUBLE_DEVICE", path, 1);
    double_open("2");
    CUdeviceptr p = double_memory(64), counter = double_memory(4);
    CUfunction f = double_kernel(phases_text, "sums");
    void *argument[] = {&p, &counter};
    int launches;
    GOOD(cuDeviceGetAttribute(&launches, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH,
                              0));
    remove(path);
    ck_assert_int_eq(launches, 0);
    ck_assert_int_eq(cuLaunchCooperativeKernel(f, 2, 1, 1, 256, 1, 1, 0,
                                               double_stream(), argument),
                     CUDA_ERROR_NOT_SUPPORTED);
}
END_TEST

START_TEST(a_grid_of_ptx_is_launched_as_one) {
    ask_for_ptx();
    double_open("0");
    CUdeviceptr p = double_memory(64), counter = double_memory(4);
    CUfunction f = double_kernel(phases_text, "sums");
    double_launch(f, 2, double_stream(), (void *[]){&p, &counter});
}
END_TEST

START_TEST(ptx_needs_the_real_compiler) {
    ask_for_ptx();
    unsetenv("SINTER_DOUBLE_NVRTC");
    double_image(scale_text, "sm_90");
}
END_TEST

// The image is older than the setting for PTX.
START_TEST(machine_code_is_not_taken_for_ptx) {
    CUmodule module;
    double_open("0");
    char *image = double_image(scale_text, "sm_90");
    ask_for_ptx();
    cuModuleLoadDataEx(&module, image, 0, NULL, NULL);
}
END_TEST

// ---- modules ----

static CUmodule scale_module(CUfunction *f) {
    CUmodule m;
    char *image = double_image(scale_text, "sm_90");
    GOOD(cuModuleLoadDataEx(&m, image, 0, NULL, NULL));
    free(image);
    GOOD(cuModuleGetFunction(f, m, "scale"));
    return m;
}

// Neither a stream nor a graph keeps the code of its kernels, nor is it the
// same when it is loaded once more.
START_TEST(code_stays_while_it_may_run) {
    CUfunction f, again;
    CUgraph graph;
    CUgraphExec exec;
    double_open("1");
    CUstream s = double_stream();
    CUdeviceptr x = double_memory(1024), y = double_memory(1024);
    CUmodule m = scale_module(&f);
    if (_i > 0)
        GOOD(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    double_launch(f, 1, s, (void *[]){&x, &y});
    if (_i > 0) {
        GOOD(cuStreamEndCapture(s, &graph));
        GOOD(cuGraphInstantiateWithFlags(&exec, graph, 0));
    }
    GOOD(cuModuleUnload(m));
    if (_i > 1)
        scale_module(&again);
    if (_i > 0)
        GOOD(cuGraphLaunch(exec, s));
    cuStreamSynchronize(s);
}
END_TEST

START_TEST(code_is_not_unloaded_in_a_capture) {
    CUfunction f;
    CUgraph graph;
    double_open("0");
    CUstream s = double_stream();
    CUmodule m = scale_module(&f);
    GOOD(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    ck_assert_int_eq(cuModuleUnload(m), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    ck_assert_int_eq(cuStreamEndCapture(s, &graph),
                     CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    GOOD(cuModuleUnload(m));
}
END_TEST

// Registers would allow 64 blocks of 16 threads.
START_TEST(a_multiprocessor_has_only_so_many_blocks) {
    CUfunction f;
    int blocks;
    double_open("0");
    scale_module(&f);
    GOOD(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 256, 0));
    ck_assert_int_eq(blocks, 4);
    GOOD(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 16, 0));
    ck_assert_int_eq(blocks, 32);
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

START_TEST(a_damaged_image_is_refused) {
    CUmodule module;
    char image[256] = "DOUBLE3";
    double_open("0");
    ck_assert_int_eq(cuModuleLoadDataEx(&module, image, 0, NULL, NULL),
                     CUDA_ERROR_INVALID_IMAGE);
}
END_TEST

static void describe_device(const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/tools/devices/%s.json",
             getenv("SINTER_SOURCE"), name);
    setenv("SINTER_DOUBLE_DEVICE", path, 1);
}

static const struct {
    const char *device, *architecture;
    CUresult result;
} loads[] = {{"h200", "sm_90", CUDA_SUCCESS},
             {"h200", "sm_80", CUDA_ERROR_NO_BINARY_FOR_GPU},
             {"h200", "compute_80", CUDA_SUCCESS},
             {"h200", "compute_100", CUDA_ERROR_NO_BINARY_FOR_GPU},
             {"rtx4090", "sm_86", CUDA_SUCCESS},
             {"rtx4090", "sm_87", CUDA_ERROR_NO_BINARY_FOR_GPU},
             {"rtx4090", "sm_88", CUDA_ERROR_NO_BINARY_FOR_GPU},
             {"rtx4090", "compute_87", CUDA_SUCCESS}};
enum { NUM_LOADS = sizeof loads / sizeof loads[0] };

START_TEST(code_runs_on_its_own_major_capability) {
    CUmodule module;
    describe_device(loads[_i].device);
    double_open("0");
    char *image = double_image(scale_text, loads[_i].architecture);
    ck_assert_int_eq(cuModuleLoadDataEx(&module, image, 0, NULL, NULL),
                     loads[_i].result);
    free(image);
}
END_TEST

START_TEST(code_of_a_later_cuda_is_refused) {
    CUmodule module;
    setenv("SINTER_DOUBLE_DRIVER", "12080", 1);
    double_open("0");
    char *image = double_image(scale_text, _i == 0 ? "sm_90" : "compute_90");
    ck_assert_int_eq(cuModuleLoadDataEx(&module, image, 0, NULL, NULL),
                     _i == 0 ? CUDA_ERROR_INVALID_IMAGE
                             : CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
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

// As a GPU would have other bits than the host then.
START_TEST(products_and_sums_may_not_be_merged) {
    nvrtcProgram p;
    const char *option[] = {"--gpu-architecture=sm_90", "--std=c++17"};
    GOOD(nvrtcCreateProgram(&p, "", "x.cu", 0, NULL, NULL));
    nvrtcCompileProgram(p, 2, option);
}
END_TEST

START_TEST(a_text_that_is_wrong_has_a_log) {
    char log[4096];
    size_t size;
    nvrtcProgram p;
    const char *option[] = {"--gpu-architecture=sm_90", "--fmad=false"};
    GOOD(nvrtcCreateProgram(&p, "int f(void) { return nothing; }\n", "x.cu", 0,
                            NULL, NULL));
    ck_assert_int_eq(nvrtcCompileProgram(p, 2, option),
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
    tcase_add_loop_test(c, places_are_exact_in_all_columns, 0, 2 * NUM_LEAST);
    tcase_add_test_raise_signal(c, a_kernel_that_goes_astray_is_stopped,
                                SIGSEGV);
    tcase_add_test_raise_signal(c, host_memory_is_no_argument, SIGABRT);
    tcase_add_test(c, nothing_can_be_at_the_end_of_memory);
    tcase_add_test_raise_signal(c, an_argument_is_not_behind_memory, SIGABRT);
    tcase_add_test(c, a_damaged_image_is_refused);
    tcase_add_loop_test(c, code_runs_on_its_own_major_capability, 0, NUM_LOADS);
    tcase_add_loop_test(c, code_of_a_later_cuda_is_refused, 0, 2);
    tcase_add_test(c, some_devices_launch_no_grid_that_waits);
    tcase_add_loop_test(c, options_are_checked, 0, 2);
    tcase_add_test_raise_signal(c, products_and_sums_may_not_be_merged,
                                SIGABRT);
    tcase_add_test(c, a_text_that_is_wrong_has_a_log);
    tcase_add_loop_test(c, ptx_is_executed, 0, 2);
    tcase_add_test(c, ptx_has_variables);
    tcase_add_loop_test(c, a_grid_can_wait_for_itself, 0, 2);
    tcase_add_test_raise_signal(c, a_grid_of_ptx_is_launched_as_one, SIGABRT);
    tcase_add_test_raise_signal(c, ptx_needs_the_real_compiler, SIGABRT);
    tcase_add_test_raise_signal(c, machine_code_is_not_taken_for_ptx, SIGABRT);
    tcase_add_loop_test_raise_signal(c, code_stays_while_it_may_run, SIGABRT, 0,
                                     3);
    tcase_add_test(c, code_is_not_unloaded_in_a_capture);
    tcase_add_test(c, a_multiprocessor_has_only_so_many_blocks);
    suite_add_tcase(s, c);
    return s;
}
