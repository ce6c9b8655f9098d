// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sparse: the arena of a GPU that holds a part of the states.  All of it has
// addresses, so that kernels are the same for any number of ranks.

#include "runtime/cuda/memory/memory.h"

static CUmemAllocationProp properties_of(const RtGpu *g) {
    return (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {CU_MEM_LOCATION_TYPE_DEVICE, g->device}};
}

bool rt_sparse_unit(const RtGpu *g, size_t *bytes, RtError *e) {
    CUmemAllocationProp p = properties_of(g);
    return rt_driver_good(
        g->cu,
        g->cu->memory_granularity(bytes, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
        e, "find the unit of memory");
}

// The mapping keeps memory whose handle is released.
static bool map(RtSparse *s, const RtGpu *g, RtRange part, CUstream stream,
                bool *left, RtError *e) {
    const RtDriver *cu = g->cu;
    CUmemAllocationProp p = properties_of(g);
    CUmemAccessDesc access = {p.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle memory;
    CUdeviceptr at = s->at + part.begin;
    size_t bytes = part.end - part.begin;
    if (bytes == 0)
        return true;
    CUresult result = cu->memory_create(&memory, bytes, &p, 0);
    *left = result != CUDA_ERROR_OUT_OF_MEMORY;
    if (!*left ||
        !rt_driver_good(cu, result, e, "allocate %zu bytes of memory", bytes))
        return false;
    bool good = rt_driver_good(cu, cu->memory_map(at, bytes, 0, memory, 0), e,
                               "map memory");
    if (good)
        s->mapped[s->count++] = part;
    good = rt_driver_good(cu, cu->memory_release(memory), e,
                          "release a handle of memory") &&
           good;
    return good &&
           rt_driver_good(cu, cu->memory_access(at, bytes, &access, 1), e,
                          "make memory accessible") &&
           rt_driver_good(cu, cu->fill(at, 0, bytes, stream), e,
                          "clear the memory");
}

bool rt_sparse_open(RtSparse *s, const RtGpu *g, size_t bytes,
                    const RtRange absent[2], CUstream stream, bool *left,
                    RtError *e) {
    *s = (RtSparse){.cu = g->cu, .bytes = bytes};
    *left = true;
    if (!rt_driver_good(s->cu, s->cu->address_reserve(&s->at, bytes, 0, 0, 0),
                        e, "reserve %zu bytes of addresses", bytes))
        return false;
    size_t at = 0;
    for (int i = 0; i < 2; i++) {
        if (absent[i].begin == absent[i].end)
            continue;
        if (!map(s, g, (RtRange){at, absent[i].begin}, stream, left, e))
            return false;
        at = absent[i].end;
    }
    return map(s, g, (RtRange){at, bytes}, stream, left, e);
}

// Ignores errors, as the device does when it closes.
void rt_sparse_close(RtSparse *s) {
    if (s->at == 0)
        return;
    for (int i = 0; i < s->count; i++)
        s->cu->memory_unmap(s->at + s->mapped[i].begin,
                            s->mapped[i].end - s->mapped[i].begin);
    s->cu->address_free(s->at, s->bytes);
    *s = (RtSparse){0};
}
