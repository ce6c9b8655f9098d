// The double of NVIDIA's driver and libraries: it does the same work and finds
// more mistakes.
#include "tests/runtime/cuda/double/check_double.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void double_open(const char *seed) {
    CUcontext context;
    CUdevice device;
    setenv("SINTER_DOUBLE_SEED", seed, 1);
    GOOD(cuInit(0));
    GOOD(cuDeviceGet(&device, 0));
    GOOD(cuDevicePrimaryCtxRetain(&context, device));
    GOOD(cuCtxSetCurrent(context));
}

CUstream double_stream(void) {
    CUstream s;
    GOOD(cuStreamCreateWithPriority(&s, CU_STREAM_NON_BLOCKING, 0));
    return s;
}

CUdeviceptr double_memory(size_t bytes) {
    CUdeviceptr p;
    GOOD(cuMemAlloc_v2(&p, bytes));
    return p;
}

char *double_image(const char *text, const char *architecture) {
    static const char prelude[] = "#include \"runtime/prelude/prelude.h\"\n";
    char all[4096], option[64], folder[4096];
    const char *options[] = {option, "--std=c++17", "--fmad=false", folder};
    size_t bytes;
    nvrtcProgram program;
    snprintf(all, sizeof all, "%s%s", prelude, text);
    snprintf(option, sizeof option, "--gpu-architecture=%s", architecture);
    snprintf(folder, sizeof folder, "--include-path=%s",
             getenv("SINTER_SOURCE"));
    bool assembly = strncmp(architecture, "compute", 7) == 0;
    GOOD(nvrtcCreateProgram(&program, all, "test.cu", 0, NULL, NULL));
    ck_assert_int_eq(nvrtcCompileProgram(program, 4, options), NVRTC_SUCCESS);
    GOOD(assembly ? nvrtcGetPTXSize(program, &bytes)
                  : nvrtcGetCUBINSize(program, &bytes));
    char *image = malloc(bytes);
    GOOD(assembly ? nvrtcGetPTX(program, image)
                  : nvrtcGetCUBIN(program, image));
    GOOD(nvrtcDestroyProgram(&program));
    return image;
}

CUfunction double_kernel(const char *text, const char *name) {
    char *image = double_image(text, "sm_90");
    CUmodule module;
    CUfunction function;
    GOOD(cuModuleLoadDataEx(&module, image, 0, NULL, NULL));
    free(image);
    GOOD(cuModuleGetFunction(&function, module, name));
    return function;
}

void double_launch(CUfunction f, int grid, CUstream s, void **argument) {
    GOOD(cuLaunchKernel(f, (unsigned)grid, 1, 1, 256, 1, 1, 0, s, argument,
                        NULL));
}

int main(void) {
    SRunner *r = srunner_create(memory_suite());
    srunner_add_suite(r, stream_suite());
    srunner_add_suite(r, capture_suite());
    srunner_add_suite(r, kernel_suite());
    srunner_add_suite(r, dnn_suite());
    srunner_add_suite(r, nccl_suite());
    srunner_add_suite(r, number_suite());
    srunner_add_suite(r, product_suite());
    srunner_add_suite(r, fault_suite());
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
