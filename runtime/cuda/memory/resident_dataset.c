// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Resident data set: rows, and the gather kernel for their length.

#include "runtime/cuda/memory/memory.h"

#include "runtime/cuda/kernels/kernels.h"

#include <limits.h>

enum { WORDS_OF_THREAD = 4 };

static size_t word_bytes(RtBuiltin gather) {
    return gather == RT_GATHER_8 ? 8 : gather == RT_GATHER_4 ? 4 : 1;
}

RtBuiltin rt_gather_of(size_t row) {
    return row % 8 == 0   ? RT_GATHER_8
           : row % 4 == 0 ? RT_GATHER_4
                          : RT_GATHER_1;
}

static bool copy_rows(RtResident *r, RtStaging *staging, const RtRows *rows,
                      RtError *e) {
    size_t bytes = rows->bytes * (size_t)rows->count;
    CUresult result = r->cu->memory_alloc(&r->at, bytes);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        return rt_fail(e, EXIT_MEMORY,
                       "cannot allocate %.0f MiB in one piece for the data; "
                       "--resident=no streams it",
                       (double)bytes / (1 << 20));
    return rt_driver_good(r->cu, result, e, "allocate %zu bytes of memory",
                          bytes) &&
           rt_staging_write(staging, r->at, rows->from, bytes, e);
}

bool rt_resident_open(RtResident *r, RtBuiltins *b, RtStaging *staging,
                      const RtRows *rows, int64_t taken, RtError *e) {
    RtBuiltin gather = rt_gather_of(rows->bytes);
    size_t word = word_bytes(gather);
    int all;
    *r = (RtResident){.cu = b->gpu->cu};
    // A thread's index runs past the last word by up to a quarter of all, and
    // must still be an int.
    if (__builtin_mul_overflow(rows->bytes / word, taken, &all) ||
        all > INT_MAX / 2)
        return rt_fail(e, EXIT_MEMORY,
                       "a batch of %lld rows of %zu bytes is too large for the "
                       "gather kernel; --resident=no streams it",
                       (long long)taken, rows->bytes);
    r->taken = (int)taken;
    r->words = (int)(rows->bytes / word);
    r->grid = (all - 1) / (RT_BUILTIN_THREADS * WORDS_OF_THREAD) + 1;
    const RtFunction *f = rt_builtin_load(b, gather, e);
    if (f == NULL)
        return false;
    r->gather = f->function;
    return copy_rows(r, staging, rows, e);
}

void rt_resident_close(RtResident *r) {
    if (r->cu == NULL)
        return;
    if (r->at != 0)
        r->cu->memory_free(r->at);
    *r = (RtResident){0};
}

bool rt_resident_gather(const RtResident *r, CUdeviceptr index, CUdeviceptr to,
                        CUstream stream, RtError *e) {
    CUdeviceptr from = r->at;
    int taken = r->taken, words = r->words;
    void *argument[] = {&index, &from, &to, &taken, &words};
    return rt_driver_good(r->cu,
                          r->cu->launch(r->gather, (unsigned)r->grid, 1, 1,
                                        RT_BUILTIN_THREADS, 1, 1, 0, stream,
                                        argument, NULL),
                          e, "launch kernel gather");
}
