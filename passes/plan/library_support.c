// The library fusions that a device takes, and the work that they save.

#include "passes/plan/library_fusion.h"

const struct FusionInfo fusion_info[NUM_FUSIONS] = {
#define FUSION(name, sm_80, sm_90, sm_100, sm_120, result)                     \
    {#name, {sm_80, sm_90, sm_100, sm_120}, result},
#include "passes/plan/library.def"
};

Support fusion_support(FusionKind f, int sm) {
    int column = sm >= 120 ? 3 : sm >= 100 ? 2 : sm >= 90 ? 1 : 0;
    return sm < 80 ? NO : fusion_info[f].support[column];
}

// Results must be the same each time, so fusions that vary are not taken.
static bool takes(FusionKind f, int sm) {
    Support s = fusion_support(f, sm);
    return s == READY || s == COMPILED;
}

bool *fusions_taken(const LibraryFusions *fusions, int sm, Arena *a) {
    bool *taken = ARENA_ARRAY(a, (size_t)fusions->count + 1, bool);
    for (int i = 0; i < fusions->count; i++) {
        const LibraryFusion *fusion = &fusions->fusion[i];
        FusionKind f = fusion->kind;
        if (f != FUSION_statistics &&
            !taken[fusions->norm[fusion->norm].statistics])
            continue;
        if (f == FUSION_prologue && fusion->statistics_of_call >= 0 &&
            taken[fusion->statistics_of_call])
            f = FUSION_prologue_statistics;
        taken[i] = takes(f, sm);
        if (f == FUSION_prologue_weight)
            taken[i] &= taken[fusion->paired];
        else if (fusion->paired >= 0)
            taken[i] &= takes(FUSION_prologue_weight, sm);
    }
    return taken;
}

Saving fusions_saving(const LibraryFusions *fusions, int sm) {
    Arena *a = arena_new();
    Saving saving = {0};
    bool *taken = fusions_taken(fusions, sm, a);
    bool *finalized = ARENA_ARRAY(a, (size_t)fusions->num_norms + 1, bool);
    for (int i = 0; i < fusions->count; i++) {
        const LibraryFusion *fusion = &fusions->fusion[i];
        if (!taken[i])
            continue;
        saving.taken++;
        saving.bytes += fusion->bytes;
        saving.launches += fusion->kernel >= 0;
        if (fusion->kind != FUSION_statistics && !finalized[fusion->norm]) {
            finalized[fusion->norm] = true;
            saving.launches--;
        }
    }
    arena_free(a);
    return saving;
}
