// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sum: adds ranges of the arena on the steps' stream, with a built-in kernel.

#include "runtime/cuda/launch/launch.h"

enum { MAX_TERMS = 4, FLOATS_OF_THREAD = 4 };

static int blocks_for(const RtCuda *c, size_t count) {
    size_t blocks = (count - 1) / (RT_BUILTIN_THREADS * FLOATS_OF_THREAD) + 1;
    return blocks < (size_t)c->sum->resident ? (int)blocks : c->sum->resident;
}

// At most MAX_TERMS.
static bool add(const RtCuda *c, CUdeviceptr to, const CUdeviceptr *term,
                int terms, size_t count, RtError *e) {
    CUdeviceptr at[MAX_TERMS], end = to + count * sizeof(float);
    for (int i = 0; i < MAX_TERMS; i++)
        at[i] = term[i < terms ? i : 0];
    void *argument[] = {&to, &end, &at[0], &at[1], &at[2], &at[3], &terms};
    return rt_driver_good(
        &c->cu,
        c->cu.launch(c->sum->function, (unsigned)blocks_for(c, count), 1, 1,
                     RT_BUILTIN_THREADS, 1, 1, 0, c->stream, argument, NULL),
        e, "launch kernel sum_ranges");
}

// More terms are added to the sum of the first.
static bool add_all(const RtCuda *c, size_t to, const size_t *from, int terms,
                    size_t count, RtError *e) {
    CUdeviceptr term[MAX_TERMS], sum = c->arena + to;
    int held = 0;
    for (int i = 0; i < terms; i++) {
        term[held++] = c->arena + from[i];
        if (held < MAX_TERMS && i + 1 < terms)
            continue;
        if (!add(c, sum, term, held, count, e))
            return false;
        term[0] = sum;
        held = 1;
    }
    return true;
}

void rt_cuda_sum(RtDevice *d, size_t to, const size_t *from, int terms,
                 size_t count) {
    RtCuda *c = rt_cuda_of(d);
    RtSpan span = {
        .track = RT_TRACK_KERNELS, .name = "sum of shards", .number = -1};
    if (count == 0)
        return;
    if (c->is_refused)
        return;
    c->after_kernel = false;
    bool good = rt_trace_spans_begin(&c->spans, &span, c->stream, &c->error);
    if (good && terms == 0)
        good = rt_driver_good(
            &c->cu,
            c->cu.fill(c->arena + to, 0, count * sizeof(float), c->stream),
            &c->error, "clear the terms of a shard");
    else if (good)
        good = add_all(c, to, from, terms, count, &c->error);
    rt_cuda_check_launch(
        c, good && rt_trace_spans_end(&c->spans, c->stream, &c->error));
}
