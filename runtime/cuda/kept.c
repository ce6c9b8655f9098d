// Kept: the kernel that gathers is compiled for the length of a row, as the
// others are.

#include "runtime/cuda/kept.h"

#include <stdio.h>

enum { THREADS = 256, WORDS_OF_THREAD = 4 };

static const char text[] =
    "#define SINTER_ACT 32\n"
    "#include \"runtime/prelude/prelude.h\"\n"
    "\n"
    "enum { ROWS = %lld, WORDS = %lld };\n"
    "\n"
    "KERNEL(256) gather(\n"
    "    const int *RESTRICT index,\n"
    "    const unsigned %s *RESTRICT from,\n"
    "    unsigned %s *RESTRICT to)\n"
    "{\n"
    "    OWN_BLOCK;\n"
    "    enum { NT = THREADS(256) };\n"
    "    for (int i = block * NT + threadIdx.x; i < ROWS * WORDS;\n"
    "         i += blocks * NT)\n"
    "        to[i] = from[(long long)index[i / WORDS] * WORDS + i %% WORDS];\n"
    "}\n";

static const RtKernel kernel = {
    .name = "gather", .phases = 1, .threads = THREADS, .args = 3};

static const RtPlan plan = {
    .device = "cuda", .kernel = &kernel, .num_kernels = 1};

// The widest word that a row is a number of.
static const char *word_of(size_t row, size_t *bytes) {
    *bytes = row % 8 == 0 ? 8 : row % 4 == 0 ? 4 : 1;
    return *bytes == 8 ? "long long" : *bytes == 4 ? "int" : "char";
}

static bool copy_rows(RtRowset *r, RtStaging *staging, const RtRows *rows,
                      RtError *e) {
    size_t bytes = rows->bytes * (size_t)rows->count;
    CUresult result = r->cu->memory_take(&r->at, bytes);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        return rt_fail(e, EXIT_MEMORY,
                       "there are no %.0f MiB of memory in one piece for the "
                       "data; --resident=no streams it",
                       (double)bytes / (1 << 20));
    return rt_driver_good(r->cu, result, e, "take %zu bytes of memory",
                          bytes) &&
           rt_staging_write(staging, r->at, rows->from, bytes, e);
}

bool rt_rowset_open(RtRowset *r, const RtGpu *gpu, RtStaging *staging,
                    const RtRows *rows, int64_t taken, RtError *e) {
    char source[sizeof text + 80];
    const bool wanted = true;
    size_t word;
    int words;
    const char *type = word_of(rows->bytes, &word);
    int64_t of_row = (int64_t)(rows->bytes / word);
    *r = (RtRowset){.cu = gpu->cu};
    if (__builtin_mul_overflow(of_row, taken, &words))
        return rt_fail(e, EXIT_MEMORY,
                       "a batch of %lld rows of %zu bytes is too large to be "
                       "gathered; --resident=no streams it",
                       (long long)taken, rows->bytes);
    snprintf(source, sizeof source, text, (long long)taken, (long long)of_row,
             type, type);
    r->grid = (words - 1) / (THREADS * WORDS_OF_THREAD) + 1;
    RtTrainer own = {.kernels = source};
    return rt_kernels_open(&r->gather, gpu, &own, &plan, &wanted,
                           &rt_system_files, e) &&
           copy_rows(r, staging, rows, e);
}

void rt_rowset_close(RtRowset *r) {
    if (r->cu == NULL)
        return;
    if (r->gather.gpu != NULL)
        rt_kernels_close(&r->gather);
    if (r->at != 0)
        r->cu->memory_free(r->at);
    *r = (RtRowset){0};
}

bool rt_rowset_gather(const RtRowset *r, CUdeviceptr index, CUdeviceptr to,
                      CUstream stream, RtError *e) {
    CUdeviceptr from = r->at;
    void *argument[] = {&index, &from, &to};
    return rt_driver_good(r->cu,
                          r->cu->launch(r->gather.entry[0].function,
                                        (unsigned)r->grid, 1, 1, THREADS, 1, 1,
                                        0, stream, argument, NULL),
                          e, "launch kernel gather");
}
