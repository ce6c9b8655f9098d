// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Staging: copies through pinned slots that are filled in turn.

#include "runtime/cuda/memory/memory.h"

#include "base/round_up.h"

#include <string.h>

enum { SLOT_BYTES = 8 << 20, ALIGNMENT = 64 };

static bool pinned_alloc(const RtStaging *s, char **at, RtError *e) {
    void *taken = NULL;
    bool good =
        rt_driver_good(s->cu, s->cu->pinned_alloc(&taken, SLOT_BYTES, 0), e,
                       "allocate %d MiB of pinned memory", SLOT_BYTES >> 20);
    *at = taken;
    return good;
}

bool rt_staging_open(RtStaging *s, const RtDriver *cu, CUstream stream,
                     RtError *e) {
    *s = (RtStaging){.cu = cu, .stream = stream};
    bool good = pinned_alloc(s, &s->back, e);
    for (int i = 0; good && i < RT_STAGING_SLOTS; i++)
        good = pinned_alloc(s, &s->slot[i].at, e) &&
               rt_event_create(cu, &s->slot[i].arrived, CU_EVENT_DISABLE_TIMING,
                               e);
    if (!good)
        rt_staging_close(s);
    return good;
}

void rt_staging_close(RtStaging *s) {
    if (s->cu == NULL)
        return;
    if (s->back != NULL)
        s->cu->pinned_free(s->back);
    for (int i = 0; i < RT_STAGING_SLOTS; i++) {
        rt_event_destroy(s->cu, s->slot[i].arrived);
        if (s->slot[i].at != NULL)
            s->cu->pinned_free(s->slot[i].at);
    }
    *s = (RtStaging){0};
}

// Moves on to the next slot, and waits until its copies have arrived.
static bool slot_advance(RtStaging *s, RtError *e) {
    const RtDriver *cu = s->cu;
    RtStagingSlot *full = &s->slot[s->now];
    if (!rt_driver_good(cu, cu->event_record(full->arrived, s->stream), e,
                        "record the end of a copy"))
        return false;
    full->recorded = true;
    s->now = (s->now + 1) % RT_STAGING_SLOTS;
    RtStagingSlot *next = &s->slot[s->now];
    if (next->recorded && !rt_driver_good(cu, cu->event_sync(next->arrived), e,
                                          "wait for a copy to the GPU"))
        return false;
    next->recorded = false;
    next->used = 0;
    return true;
}

bool rt_staging_write(RtStaging *s, CUdeviceptr to, const void *from,
                      size_t bytes, RtError *e) {
    const char *p = from;
    while (bytes > 0) {
        if (s->slot[s->now].used >= SLOT_BYTES && !slot_advance(s, e))
            return false;
        RtStagingSlot *slot = &s->slot[s->now];
        size_t room = SLOT_BYTES - slot->used;
        size_t some = bytes < room ? bytes : room;
        memcpy(slot->at + slot->used, p, some);
        if (!rt_driver_good(s->cu,
                            s->cu->copy_to_device(to, slot->at + slot->used,
                                                  some, s->stream),
                            e, "copy %zu bytes to the GPU", some))
            return false;
        slot->used += align_up(some, ALIGNMENT);
        p += some;
        to += some;
        bytes -= some;
    }
    return true;
}

bool rt_staging_read(RtStaging *s, void *to, CUdeviceptr from, size_t bytes,
                     RtError *e) {
    const RtDriver *cu = s->cu;
    char *p = to;
    while (bytes > 0) {
        size_t some = bytes < SLOT_BYTES ? bytes : SLOT_BYTES;
        if (!rt_driver_good(cu,
                            cu->copy_to_host(s->back, from, some, s->stream), e,
                            "copy %zu bytes from the GPU", some) ||
            !rt_driver_good(cu, cu->stream_sync(s->stream), e,
                            "wait for the GPU"))
            return false;
        memcpy(p, s->back, some);
        p += some;
        from += some;
        bytes -= some;
    }
    return true;
}
