// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Data failure: a rank whose loader fails takes part in one more sum, which
// tells all ranks.  They drop that sum and end after the same step, so that
// rank 0 saves it.

#include "runtime/session/session.h"

bool rt_session_tell_failure(const RtSession *s, const RtFeeder *f,
                             const RtError *e) {
    if (s->run->world == NULL || !s->data_failed)
        return false;
    rt_world_fail(s->run->world, e->status,
                  rt_loader_stalled(f->loader) ? rt_signals_pending() : 0);
    return true;
}

bool rt_session_has_data(RtSession *s, RtError *e) {
    int status, rank = rt_world_failed(s->run->world, &status);
    if (rank < 0)
        return true;
    rt_world_agree(s->run->world);
    if (!s->data_failed)
        rt_fail(e, status, "rank %d has no data after step %lld", rank,
                (long long)s->at.step);
    s->data_failed = true;
    return false;
}

bool rt_session_is_interrupted(const RtSession *s, const RtFeeder *f) {
    int ignored;
    return rt_signals_caught() != 0 &&
           (rt_loader_stalled(f->loader) ||
            rt_world_failed(s->run->world, &ignored) >= 0);
}
