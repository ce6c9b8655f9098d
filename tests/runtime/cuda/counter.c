// Counter: a trainer of two kernels, and the folder that they are cached in.
#define _XOPEN_SOURCE 700

#include "tests/runtime/cuda/suites.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

enum { PARTS_AT = 24576, TICKET_AT = 32768, ARENA = 40960, BLOCKS = 5 };
enum { ADD, SUM, NUM_KERNELS };

static const char text[] =
    "#define SINTER_ACT 32\n"
    "#include \"runtime/prelude/prelude.h\"\n"
    "\n"
    "#if IS_NEEDED(0)\n"
    "KERNEL(256) add(\n"
    "    const float *RESTRICT input,\n"
    "    float *RESTRICT counter)\n"
    "{\n"
    "    DECLARE_BLOCK;\n"
    "    BLOCK_RANGE(lo, hi, 3000);\n"
    "    GRID_DEPENDENCY_WAIT();\n"
    "    LAUNCH_DEPENDENTS();\n"
    "    for (int i = lo + threadIdx.x; i < hi; i += THREADS(256))\n"
    "        counter[i] += *input;\n"
    "}\n"
    "#endif\n"
    "#if IS_NEEDED(1)\n"
    "PHASED(256) sum(\n"
    "    const float *RESTRICT counter,\n"
    "    float *RESTRICT total,\n"
    "    float *RESTRICT partials,\n"
    "    int *RESTRICT barrier)\n"
    "{\n"
    "    DECLARE_BLOCK;\n"
    "    enum { NT = THREADS(256) };\n"
    "    SHARED float shared[NT];\n"
    "    BLOCK_RANGE(lo, hi, 3000);\n"
    "    GRID_DEPENDENCY_WAIT();\n"
    "    LAUNCH_DEPENDENTS();\n"
    "    PHASE(0) {\n"
    "        float own = 0.0f;\n"
    "        for (int i = lo + threadIdx.x; i < hi; i += NT)\n"
    "            own += counter[i];\n"
    "        own = block_sum(own, shared, NT);\n"
    "        if (threadIdx.x == 0)\n"
    "            partials[block] = own;\n"
    "    }\n"
    "    GRID_BARRIER(barrier);\n"
    "    PHASE(1) {\n"
    "        const float all = partials_sum(partials, blocks, shared, NT);\n"
    "        for (int i = block * NT + threadIdx.x; i < 500;\n"
    "             i += blocks * NT)\n"
    "            total[i] = all;\n"
    "    }\n"
    "}\n"
    "#endif\n";

static void run_train(RtDevice *d) {
    rt_phase(d, RT_FORWARD);
    LAUNCH(d, ADD, BLOCKS, INPUT_AT, 0);
    rt_phase(d, RT_UPDATE);
    LAUNCH(d, SUM, BLOCKS, 0, TOTALS_AT, PARTS_AT, TICKET_AT);
    rt_phase(d, RT_OTHER);
}

static const RtKernel kernels[] = {
    [ADD] = {.name = "add", .phases = 1, .threads = 256, .args = 2},
    [SUM] = {.name = "sum", .phases = 2, .threads = 256, .args = 4},
};

static const RtInput inputs[] = {
    {.name = "valid", .type = RT_F32, .offset = INPUT_AT}};

// The totals, which the second launch stores.
static const RtBucket buckets[] = {{.offset = TOTALS_AT, .ready = 1}};

static const RtStep steps[] = {{.kind = RT_TRAIN,
                                .run = run_train,
                                .input = inputs,
                                .num_inputs = 1,
                                .bucket = buckets,
                                .num_buckets = 1}};

static const RtPlan plan = {
    .device = "cuda",
    .arena_bytes = ARENA,
    .kernel = kernels,
    .num_kernels = NUM_KERNELS,
    .step = steps,
    .num_steps = 1,
};

const RtTrainer counter = {
    .model = "Counter",
    .plan = &plan,
    .num_plans = 1,
    .kernels = text,
    .kernels_end = text + sizeof text - 1,
};

// ---- the cache ----

void cache_begin(void) {
    const char *tmp = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    char path[4096];
    snprintf(path, sizeof path, "%s/sinter-cache-XXXXXX", tmp);
    ck_assert_ptr_nonnull(mkdtemp(path));
    setenv("XDG_CACHE_HOME", path, 1);
}

static int remove_one(const char *path, const struct stat *s, int kind,
                      struct FTW *at) {
    (void)s, (void)kind, (void)at;
    return remove(path);
}

void cache_end(void) {
    nftw(getenv("XDG_CACHE_HOME"), remove_one, 8, FTW_DEPTH | FTW_PHYS);
}
