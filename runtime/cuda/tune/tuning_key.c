// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tuning: its memory, and what it is named after.

#include "runtime/cuda/tune/tuning.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

// There are as many plans as calls with each set of fusions at most.
size_t rt_chosen_room(const RtPlan *plan) {
    return (size_t)plan->num_calls * RT_FUSION_SETS + 1;
}

bool rt_chosen_new(RtChosen *t, const RtPlan *plan, RtError *e) {
    *t = (RtChosen){0};
    t->tuned = calloc(rt_chosen_room(plan), sizeof *t->tuned);
    t->product = calloc((size_t)plan->num_calls + 1, sizeof *t->product);
    t->wanted = calloc((size_t)plan->num_fusions + 1, sizeof *t->wanted);
    t->apart = calloc((size_t)plan->num_joins + 1, sizeof *t->apart);
    if (t->tuned != NULL && t->product != NULL && t->wanted != NULL &&
        t->apart != NULL)
        return true;
    rt_chosen_free(t);
    return rt_fail(e, EXIT_MEMORY, "out of memory for tuning");
}

void rt_chosen_free(RtChosen *t) {
    free(t->tuned);
    free(t->product);
    free(t->wanted);
    free(t->apart);
    *t = (RtChosen){0};
}

// ---- names ----

static void add_text(XXH3_state_t *state, const char *text) {
    XXH3_128bits_update(state, text, strlen(text) + 1);
}

// Numbers as text: structs may have bytes that mean nothing.
static void add_call(XXH3_state_t *state, const RtCall *c) {
    char text[400];
    snprintf(text, sizeof text,
             "%d %d %d %d %d %d %d %d %d %d %d %d %d,%d %d,%d %d,%d,%d,%d %d "
             "%d %d %" PRId64,
             (int)c->kind, (int)c->type, c->accumulate, c->n, c->h, c->w, c->c,
             c->k, c->r, c->s, c->oh, c->ow, c->stride[0], c->stride[1],
             c->dilation[0], c->dilation[1], c->pad[0], c->pad[1], c->pad[2],
             c->pad[3], c->groups, c->ta, c->tb, c->batch);
    add_text(state, text);
}

static void add_fusion(XXH3_state_t *state, const RtFusion *f) {
    char text[120];
    snprintf(text, sizeof text, "%d %d %d %d %d %d", (int)f->kind, f->step,
             f->call, f->launch, f->norm, f->together);
    add_text(state, text);
}

static void add_join(XXH3_state_t *state, const RtJoin *join) {
    char text[80];
    snprintf(text, sizeof text, "%d %d %d %d", join->step, join->launch,
             join->count, join->blocks);
    add_text(state, text);
}

static void write_digest(const XXH3_state_t *state, char *to) {
    XXH128_hash_t hash = XXH3_128bits_digest(state);
    snprintf(to, RT_TUNING_DIGITS + 1, "%016" PRIx64 "%016" PRIx64, hash.high64,
             hash.low64);
}

void rt_tuning_digest(const RtPlan *plan, char to[RT_TUNING_DIGITS + 1]) {
    XXH3_state_t state;
    XXH3_128bits_reset(&state);
    for (int i = 0; i < plan->num_calls; i++)
        add_call(&state, &plan->call[i]);
    for (int i = 0; i < plan->num_fusions; i++)
        add_fusion(&state, &plan->fusion[i]);
    for (int i = 0; i < plan->num_joins; i++)
        add_join(&state, &plan->join[i]);
    write_digest(&state, to);
}

char *rt_tuning_path(const char *folder, const RtTuningKey *key) {
    XXH3_state_t state;
    char text[120], digest[RT_TUNING_DIGITS + 1];
    snprintf(text, sizeof text, "%d %d %d %d %zu %zu", RT_TUNING_FORMAT,
             key->capability, key->processors, key->driver, key->cudnn,
             key->cublaslt);
    rt_tuning_digest(key->plan, digest);
    XXH3_128bits_reset(&state);
    add_text(&state, text);
    add_text(&state, key->gpu);
    add_text(&state, digest);
    write_digest(&state, digest);
    return rt_path("%s/%s.tuning", folder, digest);
}
