// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Workspaces: small ones lie side by side, large ones share memory.

#include "runtime/cuda/libraries/libraries.h"

RtWorkspaceSlot rt_workspace_add(RtWorkspaceSize *w, int64_t bytes) {
    enum { SMALL = 64 << 10, ALIGNMENT = 256 };
    if (bytes > SMALL) {
        w->shared = (size_t)bytes > w->shared ? (size_t)bytes : w->shared;
        return (RtWorkspaceSlot){0};
    }
    size_t room = ((size_t)bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    RtWorkspaceSlot slot = {w->own, room};
    w->own += room;
    return slot;
}

uint64_t rt_workspace_at(const RtWorkspace *w, RtWorkspaceSlot slot,
                         size_t bytes) {
    return bytes <= slot.bytes ? w->own + slot.at : w->shared;
}

size_t rt_workspace_room(const RtWorkspace *w, RtWorkspaceSlot slot) {
    return slot.bytes > w->size.shared ? slot.bytes : w->size.shared;
}
