// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Fusions: chooses the library fusions that a device takes.

#include "runtime/cuda/libraries/libraries.h"

static bool is_kind(const RtPlan *p, int fusion, RtFusionKind kind) {
    return p->fusion[fusion].kind == kind;
}

static bool is_allowed(const bool *allowed, int fusion) {
    return allowed == NULL || allowed[fusion];
}

// Kernels of all steps share one flag for a variance, so its statistics are
// fused in all steps that have it or in none.  A norm of no channels is a
// variance whose statistics no call can compute.
static void take_statistics(const RtPlan *p, const bool *allowed,
                            RtCanFuse *can_fuse, void *arg, bool *taken) {
    for (int i = 0; i < p->num_fusions; i++)
        taken[i] = is_kind(p, i, RT_FUSED_STATISTICS) &&
                   is_allowed(allowed, i) &&
                   can_fuse(arg, p->fusion[i].call, 1u << RT_FUSED_STATISTICS);
    for (int i = 0; i < p->num_fusions; i++)
        for (int n = 0; taken[i] && n < p->num_norms; n++)
            if (p->norm[n].number == p->norm[p->fusion[i].norm].number &&
                p->norm[n].channels == 0)
                taken[i] = false;
    for (int i = 0; i < p->num_fusions; i++)
        for (int j = 0; j < p->num_fusions; j++)
            if (is_kind(p, i, RT_FUSED_STATISTICS) && !taken[i] &&
                is_kind(p, j, RT_FUSED_STATISTICS) &&
                p->norm[p->fusion[i].norm].number ==
                    p->norm[p->fusion[j].norm].number)
                taken[j] = false;
}

static bool takes_statistics_of(const RtPlan *p, const bool *taken, int norm) {
    for (int i = 0; i < p->num_fusions; i++)
        if (is_kind(p, i, RT_FUSED_STATISTICS) && p->fusion[i].norm == norm)
            return taken[i];
    return false;
}

static bool takes_statistics_on(const RtPlan *p, const bool *taken, int call) {
    for (int i = 0; i < p->num_fusions; i++)
        if (is_kind(p, i, RT_FUSED_STATISTICS) && p->fusion[i].call == call)
            return taken[i];
    return false;
}

void rt_fusions_choose(const RtPlan *p, const bool *allowed,
                       RtCanFuse *can_fuse, RtCanFinalize *can_finalize,
                       void *arg, bool *taken) {
    take_statistics(p, allowed, can_fuse, arg, taken);
    for (int i = 0; i < p->num_fusions; i++) {
        const RtFusion *f = &p->fusion[i];
        unsigned with = 1u << f->kind;
        if (f->kind == RT_FUSED_STATISTICS ||
            f->kind == RT_FUSED_PROLOGUE_WEIGHT || !is_allowed(allowed, i) ||
            !takes_statistics_of(p, taken, f->norm) ||
            !can_finalize(arg, f->norm))
            continue;
        if (takes_statistics_on(p, taken, f->call))
            with |= 1u << RT_FUSED_STATISTICS;
        taken[i] = can_fuse(arg, f->call, with) &&
                   (f->paired < 0 || can_fuse(arg, p->fusion[f->paired].call,
                                              1u << RT_FUSED_PROLOGUE_WEIGHT));
        if (f->paired >= 0)
            taken[f->paired] = taken[i];
    }
}
