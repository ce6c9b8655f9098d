// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: rows of pinned memory that are filled in turn.

#include "runtime/cuda/memory/async_readback.h"

#include <string.h>

bool rt_async_readback_open(RtAsyncReadback *n, const RtDriver *cu,
                            CUstream stream, RtError *e) {
    void *taken = NULL;
    *n = (RtAsyncReadback){.cu = cu, .stream = stream};
    bool good = rt_driver_good(
        cu, cu->pinned_alloc(&taken, RT_MAX_READBACKS * sizeof *n->value, 0), e,
        "allocate pinned memory for metrics");
    n->value = taken;
    for (int i = 0; good && i < RT_MAX_READBACKS; i++)
        good = rt_driver_good(
            cu, cu->event_create(&n->there[i], CU_EVENT_DISABLE_TIMING), e,
            "create an event");
    if (!good)
        rt_async_readback_close(n);
    return good;
}

void rt_async_readback_close(RtAsyncReadback *n) {
    if (n->cu == NULL)
        return;
    for (int i = 0; i < RT_MAX_READBACKS; i++)
        if (n->there[i] != NULL)
            n->cu->event_free(n->there[i]);
    if (n->value != NULL)
        n->cu->pinned_free(n->value);
    *n = (RtAsyncReadback){0};
}

bool rt_async_readback_request(RtAsyncReadback *n, CUdeviceptr arena,
                               const size_t *from, int count, RtError *e) {
    const RtDriver *cu = n->cu;
    int slot = (int)(n->asked % RT_MAX_READBACKS);
    for (int i = 0; i < count; i++)
        if (!rt_driver_good(cu,
                            cu->copy_to_host(&n->value[slot][i],
                                             arena + from[i], sizeof(float),
                                             n->stream),
                            e, "copy a metric from the GPU"))
            return false;
    n->count[slot] = count;
    n->asked++;
    return rt_driver_good(cu, cu->event_record(n->there[slot], n->stream), e,
                          "record the end of a copy");
}

bool rt_async_readback_poll(RtAsyncReadback *n, float *to, bool wait,
                            bool *there, RtError *e) {
    const RtDriver *cu = n->cu;
    int slot = (int)(n->told % RT_MAX_READBACKS);
    CUevent event = n->there[slot];
    CUresult state = wait ? cu->event_sync(event) : cu->event_query(event);
    *there = state != CUDA_ERROR_NOT_READY;
    if (!*there)
        return true;
    if (!rt_driver_good(cu, state, e, "run a step"))
        return false;
    memcpy(to, n->value[slot], (size_t)n->count[slot] * sizeof *to);
    n->told++;
    return true;
}
