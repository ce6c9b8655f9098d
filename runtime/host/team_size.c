// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Team size: whether a launch runs on one thread or on the whole team.
//
// The team costs a launch two barriers, a few microseconds on idle cores and
// milliseconds on busy ones.  Between two sizes other than one, libgomp ends
// and creates threads, so there are no sizes between.
#include "runtime/host/host.h"

// ---- library calls ----

// Some 50 us of one core.
static const double TEAM_FLOPS = 2e6;

static double flops_of(const RtCall *c) {
    double products = (double)c->n * c->k * c->c;
    if (c->kind == RT_MATMUL)
        return 2 * products * (double)c->batch;
    return 2 * products * c->oh * c->ow * c->r * c->s / c->groups;
}

int rt_call_threads(const RtCall *c, int threads) {
    bool other = c->kind > RT_MATMUL;
    return other || flops_of(c) < TEAM_FLOPS ? 1 : threads;
}

// ---- kernels ----

enum {
    COLD = 2,   // first runs, on one thread: caches and pages are cold
    TRIALS = 5, // runs before the choice: two of the last three by the team
};

// A launch this short is not tried with the team.
static const float SHORT_SECONDS = 20e-6F;

// Trials are repeated, as the load changes, when later runs have taken this
// multiple of their time.
static const float TRIAL_SHARE = 200;

static bool is_short(const RtTeamSize *t) {
    return t->alone > 0 && t->alone <= SHORT_SECONDS;
}

int rt_team_size(const RtTeamSize *t, int threads) {
    bool alone = t->runs < COLD     ? true
                 : t->runs < TRIALS ? t->runs % 2 == 1
                                    : t->alone <= t->team;
    return alone || is_short(t) ? 1 : threads;
}

void rt_team_measure(RtTeamSize *t, int threads, double seconds) {
    float *fastest = threads == 1 ? &t->alone : &t->team;
    if (*fastest == 0 || seconds < *fastest)
        *fastest = (float)seconds;
    if (t->runs < TRIALS)
        t->runs++;
    else
        t->spent += seconds;
    if (t->spent > TRIAL_SHARE * (3 * t->alone + 2 * t->team))
        *t = (RtTeamSize){0};
}
