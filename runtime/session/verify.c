// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Verify: repeats a step from the same states and samples and compares the
// bits.  A difference means a broken device, or a kernel whose result depends
// on the order of its work.  Neither result can be trusted, so the run ends.

#include "runtime/session/session.h"

#include <stdlib.h>
#include <string.h>

bool rt_session_verifies(const RtSession *s) {
    int64_t every = s->run->options->verify_every;
    return every > 0 && (s->at.step + 1) % every == 0;
}

// A repeated step does not count as progress.
static bool take_again(RtSession *s, const char *before, RtError *e) {
    int64_t samples = s->samples;
    double trained = s->budget.trained;
    bool good = rt_session_step_again(s, before, e);
    s->samples = samples;
    s->budget.trained = trained;
    return good;
}

static bool same_bits(const RtSession *s, const char *first, const char *second,
                      RtError *e) {
    size_t at = 0;
    for (int i = 0; i < s->plan->num_states; i++) {
        const RtState *state = &s->plan->state[i];
        size_t bytes = rt_state_bytes(state);
        if (!rt_device_holds(s->device, state->offset))
            continue;
        if (memcmp(first + at, second + at, bytes) != 0)
            return rt_fail(
                e, EXIT_DEVICE,
                "%s: step %lld, repeated from the same states and samples, "
                "gave different bits, first in %s; it is not saved",
                s->device->name, (long long)s->at.step, state->name);
        at += bytes;
    }
    return true;
}

bool rt_session_verify(RtSession *s, RtError *e) {
    bool finite;
    char *before = rt_states_copy(s->plan, s->device, &finite);
    char *first = NULL, *second = NULL;
    bool good = before != NULL && rt_session_step(s, e);
    if (good)
        first = rt_states_copy(s->plan, s->device, &finite);
    if (first != NULL && (good = take_again(s, before, e)))
        second = rt_states_copy(s->plan, s->device, &finite);
    if (second != NULL)
        good = same_bits(s, first, second, e);
    else if (good || before == NULL)
        good = rt_fail(e, EXIT_MEMORY,
                       "out of memory for the states of two steps");
    free(before);
    free(first);
    free(second);
    return good;
}
