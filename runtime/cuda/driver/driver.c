// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Driver: libcuda's functions and their errors, with remedies.

#include "runtime/cuda/driver/driver.h"

#include "runtime/library.h"

#include <stdarg.h>
#include <stdio.h>

static const char *const files[] = {"libcuda.so.1", NULL};

static const RtSymbol symbols[] = {
#define CU(member, function, arguments) {#function, offsetof(RtDriver, member)},
#include "runtime/cuda/driver/driver.def"
};

static const RtLibrary library = {
    .needed = "a CUDA device needs",
    .files = files,
    .remedy = "install NVIDIA's driver, version 580 or later for CUDA 13, 525 "
              "or later for CUDA 12",
    .status = EXIT_DEVICE,
    .symbol = symbols,
    .num_symbols = sizeof symbols / sizeof symbols[0],
};

// The remedy for an error; NULL: unknown.
static const char *remedy_of(CUresult result) {
    switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
        return "nvidia-smi lists other users of the GPU's memory";
    case CUDA_ERROR_STUB_LIBRARY:
        return "this libcuda.so.1 is the stub of the CUDA toolkit: remove its "
               "folder from LD_LIBRARY_PATH";
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
        return "another program uses the GPU exclusively; nvidia-smi names it";
    case CUDA_ERROR_NO_DEVICE:
        return "nvidia-smi lists the GPUs, and CUDA_VISIBLE_DEVICES selects "
               "the visible ones";
    case CUDA_ERROR_ECC_UNCORRECTABLE:
        return "the GPU's memory is faulty: see nvidia-smi -q -d ECC";
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
        return "the NVRTC that made them is newer than the driver: update the "
               "driver";
    case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
        return "libnvidia-ptxjitcompiler.so.1 of the driver must be installed";
    case CUDA_ERROR_JIT_COMPILATION_DISABLED:
        return "CUDA_DISABLE_JIT forbids the driver to compile them";
    case CUDA_ERROR_SYSTEM_NOT_READY:
        return "the GPU's fabric manager must run";
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
        return "libcuda.so.1 and the kernel driver have different versions: "
               "restart the machine, or remove a toolkit's folder compat from "
               "LD_LIBRARY_PATH";
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
        return "this libcuda.so.1 is the toolkit's for other GPUs: remove its "
               "folder compat from LD_LIBRARY_PATH";
    case CUDA_ERROR_MPS_CONNECTION_FAILED:
    case CUDA_ERROR_MPS_RPC_FAILURE:
    case CUDA_ERROR_MPS_SERVER_NOT_READY:
    case CUDA_ERROR_MPS_MAX_CLIENTS_REACHED:
    case CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED:
    case CUDA_ERROR_MPS_CLIENT_TERMINATED:
        return "MPS (nvidia-cuda-mps-control) manages the GPU: see its logs in "
               "CUDA_MPS_LOG_DIRECTORY";
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
        return "see the line with Xid in the kernel log (dmesg): it shows "
               "whether a program or the GPU failed";
    case CUDA_ERROR_OPERATING_SYSTEM:
    case CUDA_ERROR_UNKNOWN:
        return "see the kernel log (dmesg); /dev/nvidia-uvm must exist, also "
               "in a container";
    default:
        return NULL;
    }
}

bool rt_driver_good(const RtDriver *cu, CUresult result, RtError *e,
                    const char *format, ...) {
    if (result == CUDA_SUCCESS)
        return true;
    const char *name = NULL, *text = NULL, *remedy = remedy_of(result);
    char what[200];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    cu->error_name(result, &name);
    cu->error_string(result, &text);
    int status = result == CUDA_ERROR_OUT_OF_MEMORY ? EXIT_MEMORY : EXIT_DEVICE;
    return rt_fail(e, status, "cannot %s: the driver reports %s (%s)%s%s", what,
                   name != NULL ? name : "an unknown error",
                   text != NULL ? text : "no text", remedy != NULL ? "; " : "",
                   remedy != NULL ? remedy : "");
}

bool rt_event_create(const RtDriver *cu, CUevent *event, unsigned flags,
                     RtError *e) {
    return rt_driver_good(cu, cu->event_create(event, flags), e,
                          "create an event");
}

void rt_event_destroy(const RtDriver *cu, CUevent event) {
    if (event != NULL)
        cu->event_free(event);
}

bool rt_driver_open(RtDriver *cu, RtError *e) {
    *cu = (RtDriver){0};
    cu->library = rt_library_open(&library, cu, e);
    if (cu->library == NULL)
        return false;
    return rt_driver_good(cu, cu->init(0), e, "start NVIDIA's driver");
}

int rt_driver_gpus(void) {
    RtDriver cu;
    RtError ignored;
    int count = 0;
    void *opened = rt_library_open(&library, &cu, &ignored);
    if (opened == NULL)
        return 0;
    CUresult result = cu.init(0);
    if (result == CUDA_SUCCESS)
        result = cu.device_count(&count);
    return result == CUDA_SUCCESS ? count : result != CUDA_ERROR_NO_DEVICE;
}
