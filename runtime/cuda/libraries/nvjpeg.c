// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// nvJPEG: loading threads decode JPEG files on the GPU, for --decode=nvjpeg.
// The library chooses between its hardware decoder and kernels for each file.
//
// A thread takes a slot for an image: a state of the library, a stream, and
// memory for the pixels on both sides, which grows to that of the largest
// image. There are as many slots as threads that decode at the same time.  The
// library allocates memory of its own when it needs it.

#include "runtime/cuda/libraries/libraries.h"
#include "runtime/library.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

enum { MAX_CHANNELS = 4 };

typedef struct {
    CUdeviceptr channel[MAX_CHANNELS];
    size_t pitch[MAX_CHANNELS]; // bytes of a row
} RtNvjpegImage;

enum {
#define CONSTANT(name, value) name = value,
#include "runtime/cuda/libraries/nvjpeg.def"
};

typedef struct {
#define NVJPEG(member, function, arguments) int(*member) arguments;
#include "runtime/cuda/libraries/nvjpeg.def"
} Functions;

typedef struct Slot {
    struct Slot *next;
    void *state;
    CUstream stream;
    CUdeviceptr pixels; // `room` bytes each
    void *pinned;
    size_t room;
} Slot;

struct RtNvjpeg {
    void *library, *handle;
    Functions fn;
    const RtGpu *gpu;
    pthread_mutex_t lock; // guards idle
    Slot *idle;
};

// ---- opening ----

static void *library_open(int capability, int driver, Functions *to,
                          RtError *e) {
    static const char *const files[] = {"libnvjpeg.so.13", "libnvjpeg.so.12",
                                        NULL};
    static const RtSymbol symbols[] = {
#define NVJPEG(member, function, arguments)                                    \
    {#function, offsetof(Functions, member)},
#include "runtime/cuda/libraries/nvjpeg.def"
    };
    bool newest = rt_capability_cuda(capability, driver) == 13;
    const RtLibrary library = {.needed = "--decode=nvjpeg needs",
                               .files = newest ? files : files + 1,
                               .remedy = newest
                                             ? "install nvJPEG of CUDA 13 or 12"
                                             : "install nvJPEG of CUDA 12",
                               .status = EXIT_DEVICE,
                               .symbol = symbols,
                               .num_symbols = sizeof symbols / sizeof *symbols};
    return rt_library_open(&library, to, e);
}

bool rt_nvjpeg_find(int capability, int driver, char path[RT_MESSAGE_BYTES],
                    RtError *e) {
    Functions f;
    void *library = library_open(capability, driver, &f, e);
    if (library == NULL)
        return false;
    snprintf(path, RT_MESSAGE_BYTES, "%s", rt_library_path(&f.open));
    rt_library_close(library);
    return true;
}

// Errors of the library that are not about the file.
static bool library_good(int status, RtError *e) {
    return status == NVJPEG_STATUS_SUCCESS ||
           rt_fail(e,
                   status == NVJPEG_STATUS_ALLOCATOR_FAILURE ? EXIT_MEMORY
                                                             : EXIT_DEVICE,
                   "nvJPEG cannot decode on this GPU (status %d)%s", status,
                   status == NVJPEG_STATUS_ALLOCATOR_FAILURE
                       ? ": no memory is left for it"
                       : "");
}

RtNvjpeg *rt_nvjpeg_open(const RtGpu *gpu, RtError *e) {
    RtNvjpeg *n = calloc(1, sizeof *n);
    if (n == NULL) {
        rt_fail(e, EXIT_MEMORY, "out of memory");
        return NULL;
    }
    n->gpu = gpu;
    pthread_mutex_init(&n->lock, NULL);
    n->library = library_open(rt_gpu_capability(gpu), gpu->driver, &n->fn, e);
    if (n->library != NULL && library_good(n->fn.open(&n->handle), e))
        return n;
    rt_nvjpeg_close(n);
    return NULL;
}

static void slot_free(RtNvjpeg *n, Slot *s) {
    const RtDriver *cu = n->gpu->cu;
    if (s->state != NULL)
        n->fn.state_free(s->state);
    if (s->stream != NULL)
        cu->stream_free(s->stream);
    if (s->pixels != 0)
        cu->memory_free(s->pixels);
    if (s->pinned != NULL)
        cu->pinned_free(s->pinned);
    free(s);
}

void rt_nvjpeg_close(RtNvjpeg *n) {
    if (n == NULL)
        return;
    for (Slot *s = n->idle, *next; s != NULL; s = next) {
        next = s->next;
        slot_free(n, s);
    }
    if (n->handle != NULL)
        n->fn.close(n->handle);
    rt_library_close(n->library);
    pthread_mutex_destroy(&n->lock);
    free(n);
}

// ---- slots ----

static void slot_give(RtNvjpeg *n, Slot *s) {
    pthread_mutex_lock(&n->lock);
    s->next = n->idle;
    n->idle = s;
    pthread_mutex_unlock(&n->lock);
}

static Slot *slot_take(RtNvjpeg *n, RtError *e) {
    const RtDriver *cu = n->gpu->cu;
    pthread_mutex_lock(&n->lock);
    Slot *s = n->idle;
    n->idle = s != NULL ? s->next : NULL;
    pthread_mutex_unlock(&n->lock);
    if (s != NULL)
        return s;
    s = calloc(1, sizeof *s);
    if (s == NULL) {
        rt_fail(e, EXIT_MEMORY, "out of memory");
        return NULL;
    }
    if (library_good(n->fn.state_create(n->handle, &s->state), e) &&
        rt_driver_good(cu,
                       cu->stream_create(&s->stream, CU_STREAM_NON_BLOCKING, 0),
                       e, "create a stream"))
        return s;
    slot_free(n, s);
    return NULL;
}

static bool slot_grow(RtNvjpeg *n, Slot *s, size_t bytes, RtError *e) {
    const RtDriver *cu = n->gpu->cu;
    if (bytes <= s->room)
        return true;
    if (s->pixels != 0)
        cu->memory_free(s->pixels);
    if (s->pinned != NULL)
        cu->pinned_free(s->pinned);
    s->pixels = 0;
    s->pinned = NULL;
    s->room = 0;
    if (!rt_driver_good(cu, cu->memory_alloc(&s->pixels, bytes), e,
                        "allocate %zu bytes for an image", bytes) ||
        !rt_driver_good(cu, cu->pinned_alloc(&s->pinned, bytes, 0), e,
                        "allocate %zu bytes of pinned memory", bytes))
        return false;
    s->room = bytes;
    return true;
}

// ---- one image ----

// Whether the library leaves a file to another decoder.
static bool declines(int status) {
    return status == NVJPEG_STATUS_BAD_JPEG ||
           status == NVJPEG_STATUS_JPEG_NOT_SUPPORTED ||
           status == NVJPEG_STATUS_IMPLEMENTATION_NOT_SUPPORTED ||
           status == NVJPEG_STATUS_INCOMPLETE_BITSTREAM;
}

// The memory is that of libjpeg's size, which a damaged file may have twice.
static bool has_size(const RtNvjpeg *n, const RtJpegFile *f, bool *declined,
                     RtError *e) {
    int components, subsampling;
    int width[MAX_CHANNELS] = {0}, height[MAX_CHANNELS] = {0};
    int status = n->fn.info(n->handle, f->bytes, f->count, &components,
                            &subsampling, width, height);
    *declined = declines(status) || (status == NVJPEG_STATUS_SUCCESS &&
                                     (width[0] != f->w || height[0] != f->h));
    return *declined || library_good(status, e);
}

// Waits also after an error, as work may still read the file.
static bool decode(RtNvjpeg *n, Slot *s, const RtJpegFile *f, bool *declined,
                   RtError *e) {
    const RtDriver *cu = n->gpu->cu;
    size_t row = 3 * (size_t)f->w, bytes = row * (size_t)f->h;
    RtNvjpegImage to = {.channel = {s->pixels}, .pitch = {row}};
    int status = n->fn.decode(n->handle, s->state, f->bytes, f->count,
                              NVJPEG_OUTPUT_RGBI, &to, s->stream);
    *declined = declines(status);
    bool good = *declined || library_good(status, e);
    if (good && !*declined)
        good = rt_driver_good(
            cu, cu->copy_to_host(s->pinned, s->pixels, bytes, s->stream), e,
            "copy %zu bytes from the GPU", bytes);
    CUresult done = cu->stream_sync(s->stream);
    return good && rt_driver_good(cu, done, e, "finish decoding an image");
}

bool rt_nvjpeg_decode(RtNvjpeg *n, const RtJpegFile *f, bool *declined,
                      RtError *e) {
    const RtDriver *cu = n->gpu->cu;
    size_t row = 3 * (size_t)f->w;
    if (!rt_driver_good(cu, cu->context_set(n->gpu->context), e,
                        "use the GPU in a thread that loads data"))
        return false;
    if (!has_size(n, f, declined, e))
        return false;
    if (*declined)
        return true;
    Slot *s = slot_take(n, e);
    if (s == NULL)
        return false;
    bool good =
        slot_grow(n, s, row * (size_t)f->h, e) && decode(n, s, f, declined, e);
    for (int y = 0; good && !*declined && y < f->h; y++)
        f->row(f->context, (const uint8_t *)s->pinned + (size_t)y * row);
    slot_give(n, s);
    return good;
}
