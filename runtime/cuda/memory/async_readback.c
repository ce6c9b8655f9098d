// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Async readback: rows of pinned memory that are filled in turn.

#include "runtime/cuda/memory/memory.h"

#include <string.h>

bool rt_async_readback_open(RtAsyncReadback *r, const RtDriver *cu,
                            CUstream stream, RtError *e) {
    void *taken = NULL;
    *r = (RtAsyncReadback){.cu = cu, .stream = stream};
    bool good = rt_driver_good(
        cu, cu->pinned_alloc(&taken, RT_MAX_READBACKS * sizeof *r->value, 0), e,
        "allocate pinned memory for metrics");
    r->value = taken;
    for (int i = 0; good && i < RT_MAX_READBACKS; i++)
        good = rt_event_create(cu, &r->arrived[i], CU_EVENT_DISABLE_TIMING, e);
    if (!good)
        rt_async_readback_close(r);
    return good;
}

void rt_async_readback_close(RtAsyncReadback *r) {
    if (r->cu == NULL)
        return;
    for (int i = 0; i < RT_MAX_READBACKS; i++)
        rt_event_destroy(r->cu, r->arrived[i]);
    if (r->value != NULL)
        r->cu->pinned_free(r->value);
    *r = (RtAsyncReadback){0};
}

bool rt_async_readback_request(RtAsyncReadback *r, CUdeviceptr arena,
                               const size_t *from, int count, RtError *e) {
    const RtDriver *cu = r->cu;
    int slot = (int)(r->requested % RT_MAX_READBACKS);
    for (int i = 0; i < count; i++)
        if (!rt_driver_good(cu,
                            cu->copy_to_host(&r->value[slot][i],
                                             arena + from[i], sizeof(float),
                                             r->stream),
                            e, "copy a metric from the GPU"))
            return false;
    r->count[slot] = count;
    r->requested++;
    return rt_driver_good(cu, cu->event_record(r->arrived[slot], r->stream), e,
                          "record the end of a copy");
}

bool rt_async_readback_poll(RtAsyncReadback *r, float *to, bool wait,
                            bool *arrived, RtError *e) {
    const RtDriver *cu = r->cu;
    int slot = (int)(r->polled % RT_MAX_READBACKS);
    CUevent event = r->arrived[slot];
    CUresult state = wait ? cu->event_sync(event) : cu->event_query(event);
    *arrived = state != CUDA_ERROR_NOT_READY;
    if (!*arrived)
        return true;
    if (!rt_driver_good(cu, state, e, "run a step"))
        return false;
    memcpy(to, r->value[slot], (size_t)r->count[slot] * sizeof *to);
    r->polled++;
    return true;
}
