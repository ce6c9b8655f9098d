// The driver: version, devices, contexts, and memory.
#define _POSIX_C_SOURCE 200809L
#include "tests/runtime/cuda/double/double.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// There is one context for each device; a thread has one, or none.
struct CUctx_st {
    int retained;
};

enum { MAX_DEVICES = 16 };

static struct {
    pid_t process; // that started it; 0: none has
    struct CUctx_st context[MAX_DEVICES];
} driver;
static _Thread_local CUcontext current;

typedef struct {
    Work work;
    void *to;
    const void *from;
    size_t bytes;
    Memory to_is, from_is;  // at the call
    unsigned char value;    // of memset
    unsigned char staged[]; // pageable memory, as it was at the call
} Transfer;

// A process does not inherit a driver that its parent has started, nor may it
// start one then.
static bool is_ready(void) {
    return driver.process != 0 && driver.process == getpid();
}

CUresult driver_refuses(void) {
    if (!is_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (current == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (current->retained == 0)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return (CUresult)device_lost();
}

int context_device(void) {
    return (int)(current - driver.context);
}

static int devices(void) {
    return (int)setting_number("SINTER_DOUBLE_DEVICES", 1);
}

// The error of a call about a device that needs no context.
static CUresult device_refuses(CUdevice d) {
    if (!is_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    bool known = d >= 0 && d < devices() && d < MAX_DEVICES;
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

#define DEVICE_CALL(of, ...)                                                   \
    CALL(CUresult, __VA_ARGS__);                                               \
    const CUresult refused = device_refuses(of);                               \
    if (refused != CUDA_SUCCESS)                                               \
    return refused

CUresult cuInit(unsigned flags) {
    CALL(CUresult, "flags=%u", flags);
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (devices() == 0)
        return CUDA_ERROR_NO_DEVICE;
    if (driver.process == 0)
        driver.process = getpid();
    return is_ready() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

int driver_version(void) {
    return (int)setting_number("SINTER_DOUBLE_DRIVER", 13000);
}

CUresult cuDriverGetVersion(int *to) {
    CALL(CUresult, " ");
    *to = driver_version();
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *to) {
    CALL(CUresult, " ");
    *to = devices();
    return is_ready() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult cuDeviceGet(CUdevice *to, int ordinal) {
    DEVICE_CALL(ordinal, "ordinal=%d", ordinal);
    *to = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *to, int room, CUdevice d) {
    DEVICE_CALL(d, "device=%d", d);
    snprintf(to, (size_t)room, "%s", device_name());
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *to, CUdevice d) {
    DEVICE_CALL(d, "device=%d", d);
    memset(to->bytes, 0x5d, sizeof to->bytes);
    to->bytes[sizeof to->bytes - 1] = (char)d;
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *to, CUdevice d) {
    DEVICE_CALL(d, "device=%d", d);
    *to = device_bytes_total();
    return CUDA_SUCCESS;
}

// NVIDIA's own compiler looks here for private functions of the driver.
CUresult cuGetExportTable(const void **to, const CUuuid *id) {
    (void)id;
    *to = NULL;
    return CUDA_ERROR_NOT_FOUND;
}

// ---- attributes ----

// Attributes with values in the description.
static const struct {
    CUdevice_attribute name;
    const char *key;
} described[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, "maxThreadsPerBlock"},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, "maxBlockSize"},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, "maxGridSize"},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK,
     "maxSharedMemoryPerBlock"},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
     "maxSharedMemoryPerBlockOptin"},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK,
     "reservedSharedMemoryPerBlock"},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, "warpSize"},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, "regsPerBlock"},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, "maxRegistersPerSM"},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, "maxCtasPerSM"},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, "maxThreadsPerSM"},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, "smClockRateKHz"},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, "memClockRateKHz"},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, "multiProcessorCount"},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, "l2CacheSize"},
    {CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, "pciDeviceId"},
    {CU_DEVICE_ATTRIBUTE_TCC_DRIVER, "isTccDriver"},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, "supportCoopLaunch"},
};

static CUresult attribute(int *to, CUdevice_attribute name) {
    const int architecture = device_architecture();
    for (size_t i = 0; i < sizeof described / sizeof described[0]; i++)
        if (described[i].name == name) {
            *to = (int)device_number(described[i].key);
            return CUDA_SUCCESS;
        }
    switch (name) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *to = architecture / 10;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *to = architecture % 10;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: // bits, at both edges
        *to = (int)(8 * device_number("bandwidthBytesPerSecond") /
                    (2e3 * device_number("memClockRateKHz")));
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_MODE:
    case CU_DEVICE_ATTRIBUTE_INTEGRATED:
    case CU_DEVICE_ATTRIBUTE_ECC_ENABLED:
    case CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT:
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
    case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
        *to = 0;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
        *to = 1;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
        *to = 3;
        return CUDA_SUCCESS;
    default:
        complain("attribute %d of a device is not known to the stand-in",
                 (int)name);
    }
}

CUresult cuDeviceGetAttribute(int *to, CUdevice_attribute name, CUdevice d) {
    DEVICE_CALL(d, "%d device=%d", (int)name, d);
    return attribute(to, name);
}

// ---- contexts ----

CUresult cuDevicePrimaryCtxRetain(CUcontext *to, CUdevice d) {
    DEVICE_CALL(d, "device=%d", d);
    if (setting_number("SINTER_DOUBLE_BUSY", 0) != 0)
        return CUDA_ERROR_DEVICE_UNAVAILABLE;
    driver.context[d].retained++;
    *to = &driver.context[d];
    return (CUresult)device_lost();
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice d) {
    DEVICE_CALL(d, "device=%d", d);
    if (driver.context[d].retained == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    streams_finish();
    driver.context[d].retained--;
    return (CUresult)device_lost();
}

static int count_threads(void) {
    int count = 0;
    DIR *d = opendir("/proc/self/task");
    for (const struct dirent *f; d != NULL && (f = readdir(d)) != NULL;)
        count += f->d_name[0] != '.';
    if (d != NULL)
        closedir(d);
    return count;
}

// At the program's end, but for _Exit, the driver frees its memory; no other
// thread may be using it.
__attribute__((destructor)) static void driver_end(void) {
    for (int d = 0; is_ready() && d < MAX_DEVICES; d++)
        if (driver.context[d].retained > 0 && count_threads() > 1)
            complain("the program ends while threads may use pinned memory");
}

CUresult cuCtxSetCurrent(CUcontext c) {
    CALL(CUresult, "%p", (void *)c);
    if (!is_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (c != NULL && c->retained == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    current = c;
    return (CUresult)device_lost();
}

CUresult cuCtxSynchronize(void) {
    DRIVER_CALL(" ");
    CUresult r = capture_forbids();
    if (r != CUDA_SUCCESS)
        return r;
    streams_finish();
    return (CUresult)device_lost();
}

// ---- memory ----

CUresult cuMemGetInfo_v2(size_t *left, size_t *total) {
    DRIVER_CALL(" ");
    *left = device_bytes_free();
    *total = device_bytes_total();
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *to, size_t bytes) {
    DRIVER_CALL("bytes=%zu", bytes);
    CUresult r = capture_forbids();
    if (r != CUDA_SUCCESS)
        return r;
    if (bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    *to = (CUdeviceptr)(uintptr_t)device_take(bytes);
    return *to != 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

// It may wait for the work of streams, or not.
CUresult cuMemFree_v2(CUdeviceptr p) {
    DRIVER_CALL("%p", (void *)(uintptr_t)p);
    CUresult r = capture_forbids();
    if (r != CUDA_SUCCESS)
        return r;
    return device_give((void *)(uintptr_t)p) ? CUDA_SUCCESS
                                             : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemHostAlloc(void **to, size_t bytes, unsigned flags) {
    DRIVER_CALL("bytes=%zu flags=%u", bytes, flags);
    CUresult r = capture_forbids();
    if (r != CUDA_SUCCESS)
        return r;
    if (bytes == 0 || (flags & ~7u) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    *to = pinned_take(bytes);
    return *to != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemFreeHost(void *p) {
    DRIVER_CALL("%p", p);
    CUresult r = capture_forbids();
    if (r != CUDA_SUCCESS)
        return r;
    return pinned_give(p) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// ---- transfers ----

static void transfer_run(Work *w) {
    Transfer *t = (Transfer *)(void *)w;
    memmove(t->to, t->from, t->bytes);
}

static void fill_run(Work *w) {
    Transfer *t = (Transfer *)(void *)w;
    device_must_hold(w->what, t->to, t->bytes);
    memset(t->to, t->value, t->bytes);
}

// Memory of both sides must still be allocated when a copy runs.
static void copy_run(Work *w) {
    Transfer *t = (Transfer *)(void *)w;
    if (memory_of(t->to, t->bytes) != t->to_is ||
        (t->from != t->staged && memory_of(t->from, t->bytes) != t->from_is))
        complain("%s: memory was freed before the copy ran", w->what);
    transfer_run(w);
}

static Transfer *transfer_new(const char *what, void *to, const void *from,
                              size_t bytes, size_t staged) {
    Transfer *t = take(sizeof *t + staged);
    *t = (Transfer){{.users = 1,
                     .what = what,
                     .run = copy_run,
                     .seconds = 1e-6 + (double)bytes / 20e9},
                    to,
                    from,
                    bytes,
                    memory_of(to, bytes),
                    memory_of(from, bytes),
                    0};
    if (staged > 0) {
        memcpy(t->staged, from, staged);
        t->from = t->staged;
    }
    return t;
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes,
                         CUstream s) {
    void *p = (void *)(uintptr_t)to;
    DRIVER_CALL("%p value=%d bytes=%zu stream=%p", p, value, bytes, (void *)s);
    if (!stream_known(s))
        return CUDA_ERROR_INVALID_HANDLE;
    if (memory_of(p, bytes) != MEMORY_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    Transfer *t = transfer_new("memset", p, NULL, bytes, 0);
    t->work.run = fill_run;
    t->value = value;
    return stream_add(s, &t->work);
}

// A call reads memory that is not pinned at once, so that the program may
// change it.
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes,
                              CUstream s) {
    void *p = (void *)(uintptr_t)to;
    DRIVER_CALL("%p from=%p bytes=%zu stream=%p", p, from, bytes, (void *)s);
    if (!stream_known(s))
        return CUDA_ERROR_INVALID_HANDLE;
    Memory m = memory_of(from, bytes);
    if (memory_of(p, bytes) != MEMORY_DEVICE ||
        (m != MEMORY_HOST && m != MEMORY_PINNED))
        return CUDA_ERROR_INVALID_VALUE;
    if (m == MEMORY_HOST && s->captured.capture != NULL)
        return capture_refuse(&s->captured);
    size_t staged = m == MEMORY_HOST ? bytes : 0;
    return stream_add(
        s, &transfer_new("copy to the device", p, from, bytes, staged)->work);
}

// A copy to memory that is not pinned has ended when the call returns.
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes,
                              CUstream s) {
    void *p = (void *)(uintptr_t)from;
    DRIVER_CALL("%p from=%p bytes=%zu stream=%p", to, p, bytes, (void *)s);
    if (!stream_known(s))
        return CUDA_ERROR_INVALID_HANDLE;
    Memory m = memory_of(to, bytes);
    if (memory_of(p, bytes) != MEMORY_DEVICE ||
        (m != MEMORY_HOST && m != MEMORY_PINNED))
        return CUDA_ERROR_INVALID_VALUE;
    if (m == MEMORY_HOST && s->captured.capture != NULL)
        return capture_refuse(&s->captured);
    CUresult r = stream_add(
        s, &transfer_new("copy from the device", to, p, bytes, 0)->work);
    if (m == MEMORY_HOST)
        stream_finish(s);
    return r != CUDA_SUCCESS ? r : (CUresult)device_lost();
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                              CUstream s) {
    void *p = (void *)(uintptr_t)to, *q = (void *)(uintptr_t)from;
    DRIVER_CALL("%p from=%p bytes=%zu stream=%p", p, q, bytes, (void *)s);
    if (!stream_known(s))
        return CUDA_ERROR_INVALID_HANDLE;
    if (memory_of(p, bytes) != MEMORY_DEVICE ||
        memory_of(q, bytes) != MEMORY_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    if (to < from + bytes && from < to + bytes)
        complain("a copy on the device overlaps itself");
    return stream_add(
        s, &transfer_new("copy on the device", p, q, bytes, 0)->work);
}

// ---- errors ----

// clang-format off
static const struct {
    CUresult code;
    const char *name, *text;
} errors[] = {
#define ERROR(name, text) {CUDA_##name, "CUDA_" #name, text}
    ERROR(SUCCESS, "no error"),
    ERROR(ERROR_INVALID_VALUE, "invalid argument"),
    ERROR(ERROR_OUT_OF_MEMORY, "out of memory"),
    ERROR(ERROR_NOT_INITIALIZED, "initialization error"),
    ERROR(ERROR_DEVICE_UNAVAILABLE, "device is busy or unavailable"),
    ERROR(ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    ERROR(ERROR_INVALID_DEVICE, "invalid device ordinal"),
    ERROR(ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    ERROR(ERROR_INVALID_CONTEXT, "invalid device context"),
    ERROR(ERROR_NO_BINARY_FOR_GPU, "no kernel image for this device"),
    ERROR(ERROR_INVALID_PTX, "a PTX JIT compilation failed"),
    ERROR(ERROR_JIT_COMPILER_NOT_FOUND, "PTX JIT compiler library not found"),
    ERROR(ERROR_UNSUPPORTED_PTX_VERSION, "unsupported PTX toolchain"),
    ERROR(ERROR_JIT_COMPILATION_DISABLED, "PTX JIT compilation was disabled"),
    ERROR(ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, "no compatibility mode here"),
    ERROR(ERROR_ECC_UNCORRECTABLE, "uncorrectable ECC error encountered"),
    ERROR(ERROR_INVALID_HANDLE, "invalid resource handle"),
    ERROR(ERROR_NOT_FOUND, "named symbol not found"),
    ERROR(ERROR_NOT_READY, "device not ready"),
    ERROR(ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    ERROR(ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested"),
    ERROR(ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"),
    ERROR(ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
    ERROR(ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    ERROR(ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "too many blocks"),
    ERROR(ERROR_NOT_SUPPORTED, "operation not supported"),
    ERROR(ERROR_STREAM_CAPTURE_UNSUPPORTED, "not permitted when capturing"),
    ERROR(ERROR_STREAM_CAPTURE_INVALIDATED, "capture was invalidated"),
    ERROR(ERROR_STREAM_CAPTURE_UNJOINED, "capture has unjoined work"),
    ERROR(ERROR_STREAM_CAPTURE_ISOLATION, "dependency on uncaptured work"),
    ERROR(ERROR_CAPTURED_EVENT, "not permitted on a captured event"),
    ERROR(ERROR_SYSTEM_NOT_READY, "system not yet initialized"),
    ERROR(ERROR_SYSTEM_DRIVER_MISMATCH, "driver and library do not match"),
    ERROR(ERROR_MPS_CONNECTION_FAILED, "no connection to the MPS server"),
    ERROR(ERROR_UNKNOWN, "unknown error"),
#undef ERROR
};
// clang-format on

CUresult cuGetErrorName(CUresult code, const char **to) {
    *to = NULL;
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].code == code)
            *to = errors[i].name;
    return *to != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult code, const char **to) {
    *to = NULL;
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].code == code)
            *to = errors[i].text;
    return *to != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
