// Memory that is mapped to addresses: the driver's virtual memory management.
//
// Memory counts from its creation on, and can be touched once it is mapped and
// accessible.  It goes with its last user, the handle or the mapping.
#include "tests/runtime/cuda/double/double.h"

#include <string.h>

enum { MOST = 64 };

typedef struct {
    char *at;
    size_t bytes;
} Range;

typedef struct {
    size_t bytes; // 0: free
    bool handle;  // not released
    char *at;     // NULL: not mapped
    bool accessible;
} Piece;

static Range reserved[MOST];
static Piece memories[MOST];

static size_t unit(void) {
    return (size_t)setting_number("SINTER_DOUBLE_UNIT", 2 << 20);
}

static bool is_whole(size_t bytes) {
    return bytes > 0 && bytes % unit() == 0;
}

static bool is_device(const CUmemLocation *l) {
    return l->type == CU_MEM_LOCATION_TYPE_DEVICE && l->id == context_device();
}

static bool is_plain(const CUmemAllocationProp *p) {
    return p->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
           p->requestedHandleTypes == 0 && is_device(&p->location) &&
           p->win32HandleMetaData == NULL;
}

CUresult cuMemGetAllocationGranularity(size_t *bytes,
                                       const CUmemAllocationProp *p,
                                       CUmemAllocationGranularity_flags which) {
    DRIVER_CALL("which=%d", (int)which);
    if (!is_plain(p))
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = unit();
    return CUDA_SUCCESS;
}

// ---- addresses ----

static Range *range_at(const char *at, size_t bytes) {
    for (int i = 0; i < MOST; i++) {
        Range *r = &reserved[i];
        if (r->at != NULL && at >= r->at && bytes <= r->bytes &&
            (size_t)(at - r->at) <= r->bytes - bytes)
            return r;
    }
    return NULL;
}

CUresult cuMemAddressReserve(CUdeviceptr *to, size_t bytes, size_t alignment,
                             CUdeviceptr wanted, unsigned long long flags) {
    DRIVER_CALL("bytes=%zu alignment=%zu wanted=%llu flags=%llu", bytes,
                alignment, wanted, flags);
    if (!is_whole(bytes) || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < MOST; i++)
        if (reserved[i].at == NULL) {
            reserved[i] = (Range){device_addresses(bytes, unit()), bytes};
            *to = (CUdeviceptr)(uintptr_t)reserved[i].at;
            return *to != 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
        }
    complain("more than %d ranges of addresses", MOST);
}

CUresult cuMemAddressFree(CUdeviceptr p, size_t bytes) {
    DRIVER_CALL("%p bytes=%zu", (void *)(uintptr_t)p, bytes);
    Range *r = range_at((char *)(uintptr_t)p, bytes);
    if (r == NULL || r->at != (char *)(uintptr_t)p || r->bytes != bytes)
        return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < MOST; i++)
        if (memories[i].at != NULL && range_at(memories[i].at, 1) == r)
            complain("addresses are freed with memory mapped to them");
    *r = (Range){NULL, 0};
    return CUDA_SUCCESS;
}

// ---- memory ----

static Piece *memory_find(CUmemGenericAllocationHandle handle) {
    Piece *m = handle > 0 && handle <= MOST ? &memories[handle - 1] : NULL;
    return m != NULL && m->handle ? m : NULL;
}

static Piece *memory_at(const char *at, size_t bytes) {
    for (int i = 0; i < MOST; i++)
        if (memories[i].at == at && at != NULL && memories[i].bytes == bytes)
            return &memories[i];
    return NULL;
}

static void drop(Piece *m) {
    if (m->handle || m->at != NULL)
        return;
    device_unuse(m->bytes);
    *m = (Piece){0};
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                     const CUmemAllocationProp *p, unsigned long long flags) {
    DRIVER_CALL("bytes=%zu flags=%llu", bytes, flags);
    if (!is_whole(bytes) || !is_plain(p) || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (bytes > device_bytes_free())
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (unsigned i = 0; i < MOST; i++)
        if (memories[i].bytes == 0) {
            memories[i] = (Piece){.bytes = bytes, .handle = true};
            device_use(bytes);
            *handle = i + 1;
            return CUDA_SUCCESS;
        }
    complain("more than %d memories to be mapped", MOST);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    DRIVER_CALL("%llu", handle);
    Piece *m = memory_find(handle);
    if (m == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    m->handle = false;
    drop(m);
    return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr p, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
    DRIVER_CALL("%p bytes=%zu offset=%zu", (void *)(uintptr_t)p, bytes, offset);
    Piece *m = memory_find(handle);
    char *at = (char *)(uintptr_t)p;
    if (m == NULL || m->at != NULL || m->bytes != bytes || offset != 0 ||
        flags != 0 || (uintptr_t)at % unit() != 0 ||
        range_at(at, bytes) == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < MOST; i++)
        if (memories[i].at != NULL && at < memories[i].at + memories[i].bytes &&
            memories[i].at < at + bytes)
            return CUDA_ERROR_INVALID_VALUE;
    m->at = at;
    return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr p, size_t bytes,
                        const CUmemAccessDesc *access, size_t count) {
    DRIVER_CALL("%p bytes=%zu count=%zu", (void *)(uintptr_t)p, bytes, count);
    Piece *m = memory_at((char *)(uintptr_t)p, bytes);
    if (m == NULL || m->accessible || count != 1 ||
        !is_device(&access->location) ||
        access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        return CUDA_ERROR_INVALID_VALUE;
    device_unuse(bytes); // as a block, it counts again
    m->accessible = device_place(m->at, bytes) != NULL;
    return m->accessible ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemUnmap(CUdeviceptr p, size_t bytes) {
    DRIVER_CALL("%p bytes=%zu", (void *)(uintptr_t)p, bytes);
    Piece *m = memory_at((char *)(uintptr_t)p, bytes);
    if (m == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (m->accessible && device_give(m->at))
        device_use(bytes);
    m->at = NULL;
    m->accessible = false;
    drop(m);
    return CUDA_SUCCESS;
}
