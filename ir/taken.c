// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a device takes of the rides that there are, and what that saves.

#include "ir/ride.h"

const struct FusionInfo fusion_info[NUM_FUSIONS] = {
#define FUSION(name, sm_80, sm_90, sm_100, sm_120, result)                     \
    {#name, {sm_80, sm_90, sm_100, sm_120}, result},
#include "ir/library.def"
};

Support fusion_support(Fusion f, int sm) {
    int column = sm >= 120 ? 3 : sm >= 100 ? 2 : sm >= 90 ? 1 : 0;
    return sm < 80 ? NO : fusion_info[f].support[column];
}

// Results must be the same each time, so what varies is not taken.
static bool takes(Fusion f, int sm) {
    Support s = fusion_support(f, sm);
    return s == READY || s == COMPILED;
}

bool *rides_taken(const Rides *r, int sm, Arena *a) {
    bool *taken = ARENA_ARRAY(a, (size_t)r->count + 1, bool);
    for (int i = 0; i < r->count; i++) {
        const Ride *ride = &r->ride[i];
        Fusion f = ride->fusion;
        if (f != FUSION_statistics && !taken[r->norm[ride->norm].statistics])
            continue;
        if (f == FUSION_prologue && ride->beside >= 0 && taken[ride->beside])
            f = FUSION_prologue_statistics;
        taken[i] = takes(f, sm);
        if (f == FUSION_prologue_weight)
            taken[i] &= taken[ride->together];
        else if (ride->together >= 0)
            taken[i] &= takes(FUSION_prologue_weight, sm);
    }
    return taken;
}

Saving rides_saving(const Rides *r, int sm) {
    Arena *a = arena_new();
    Saving saving = {0};
    bool *taken = rides_taken(r, sm, a);
    bool *finalized = ARENA_ARRAY(a, (size_t)r->num_norms + 1, bool);
    for (int i = 0; i < r->count; i++) {
        const Ride *ride = &r->ride[i];
        if (!taken[i])
            continue;
        saving.taken++;
        saving.bytes += ride->bytes;
        saving.launches += ride->kernel >= 0;
        if (ride->fusion != FUSION_statistics && !finalized[ride->norm]) {
            finalized[ride->norm] = true;
            saving.launches--;
        }
    }
    arena_free(a);
    return saving;
}
