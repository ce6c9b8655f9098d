// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: rows of pinned memory that are filled in turn.

#include "runtime/cuda/memory/async_readback.h"

#include <string.h>

bool rt_notes_open(RtNotes *n, const RtDriver *cu, CUstream stream,
                   RtError *e) {
    void *taken = NULL;
    *n = (RtNotes){.cu = cu, .stream = stream};
    bool good = rt_driver_good(
        cu, cu->pinned_take(&taken, RT_MOST_ASKED * sizeof *n->value, 0), e,
        "allocate pinned memory for metrics");
    n->value = taken;
    for (int i = 0; good && i < RT_MOST_ASKED; i++)
        good = rt_driver_good(
            cu, cu->event_new(&n->there[i], CU_EVENT_DISABLE_TIMING), e,
            "create an event");
    if (!good)
        rt_notes_close(n);
    return good;
}

void rt_notes_close(RtNotes *n) {
    if (n->cu == NULL)
        return;
    for (int i = 0; i < RT_MOST_ASKED; i++)
        if (n->there[i] != NULL)
            n->cu->event_free(n->there[i]);
    if (n->value != NULL)
        n->cu->pinned_free(n->value);
    *n = (RtNotes){0};
}

bool rt_notes_ask(RtNotes *n, CUdeviceptr arena, const size_t *from, int count,
                  RtError *e) {
    const RtDriver *cu = n->cu;
    int slot = (int)(n->asked % RT_MOST_ASKED);
    for (int i = 0; i < count; i++)
        if (!rt_driver_good(cu,
                            cu->copy_out(&n->value[slot][i], arena + from[i],
                                         sizeof(float), n->stream),
                            e, "copy a metric from the GPU"))
            return false;
    n->count[slot] = count;
    n->asked++;
    return rt_driver_good(cu, cu->event_record(n->there[slot], n->stream), e,
                          "record the end of a copy");
}

bool rt_notes_tell(RtNotes *n, float *to, bool wait, bool *there, RtError *e) {
    const RtDriver *cu = n->cu;
    int slot = (int)(n->told % RT_MOST_ASKED);
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
