// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Workspaces: small ones lie side by side, large ones share memory.

#include "runtime/cuda/libraries/libraries.h"

#include "base/round_up.h"

static size_t aligned(int64_t bytes) {
    enum { ALIGNMENT = 256 };
    return align_up((size_t)bytes, ALIGNMENT);
}

RtWorkspaceSlot rt_workspace_add(RtWorkspaceSize *w, int64_t bytes,
                                 RtStream stream) {
    enum { SMALL = 64 << 10 };
    RtWorkspaceSlot slot = {.at = w->own, .stream = stream};
    size_t room = aligned(bytes);
    if (bytes > SMALL) {
        if (room > w->shared[stream])
            w->shared[stream] = room;
        return slot;
    }
    slot.bytes = room;
    w->own += room;
    return slot;
}

uint64_t rt_workspace_at(const RtWorkspace *w, RtWorkspaceSlot slot,
                         size_t bytes) {
    return bytes <= slot.bytes ? w->own + slot.at : w->shared[slot.stream];
}

size_t rt_workspace_room(const RtWorkspace *w, RtWorkspaceSlot slot) {
    size_t shared = w->size.shared[slot.stream];
    return slot.bytes > shared ? slot.bytes : shared;
}
