// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Packed weights: see host.h.
//
// A convolution of oneDNN reorders its weights into the layout of its
// primitive, which takes as long as a small batch.  Weights are states, which
// no prediction changes, so predictions share what one has reordered.

#include "runtime/host/host.h"

#include "base/round_up.h"

#include <stdlib.h>

enum { ALIGN = 64 };

typedef struct {
    int call;
    size_t b;  // offset into the arena
    size_t at; // in the memory of all
} Packed;

struct RtPackedWeights {
    RtDevice device; // lists calls
    const RtPlan *plan;
    RtContractions *contractions;
    size_t state_bytes; // of the arena's start
    Packed *packed;
    int count;
    size_t bytes;
    char *memory;
    bool is_current; // states have not changed since
    bool is_used;    // by the step that runs
};

// ---- the list ----

static void list_launch(RtDevice *d, int kernel, int grid, const size_t *arg) {
    (void)d, (void)kernel, (void)grid, (void)arg;
}

static void list_phase(RtDevice *d, RtPhase phase) {
    (void)d, (void)phase;
}

static const Packed *find(const RtPackedWeights *w, int call, size_t b) {
    for (int i = 0; i < w->count; i++)
        if (w->packed[i].call == call && w->packed[i].b == b)
            return &w->packed[i];
    return NULL;
}

static void list_call(RtDevice *d, int call, size_t a, size_t b, size_t out) {
    RtPackedWeights *w = (RtPackedWeights *)(void *)d; // its first field
    size_t bytes = rt_contractions_packed_bytes(w->contractions, call);
    (void)a, (void)out;
    if (bytes == 0 || b >= w->state_bytes || find(w, call, b) != NULL)
        return;
    w->packed[w->count++] = (Packed){call, b, w->bytes};
    w->bytes += align_up(bytes, ALIGN);
}

static bool predicts(const RtStep *step) {
    return step->kind == RT_PREDICT || step->kind == RT_DECODE;
}

static size_t states_end(const RtPlan *plan) {
    size_t end = 0;
    for (int i = 0; i < plan->num_states; i++) {
        size_t own = plan->state[i].offset + rt_state_bytes(&plan->state[i]);
        end = own > end ? own : end;
    }
    return end;
}

RtPackedWeights *rt_packed_weights_new(const RtPlan *plan,
                                       RtContractions *contractions) {
    RtPackedWeights *w = calloc(1, sizeof *w);
    int calls = 0;
    for (int i = 0; i < plan->num_steps; i++)
        calls += predicts(&plan->step[i]) ? plan->step[i].num_launches : 0;
    Packed *packed = calloc((size_t)calls + 1, sizeof *packed);
    if (w == NULL || packed == NULL)
        rt_end(EXIT_MEMORY, "out of memory");
    *w = (RtPackedWeights){.device = {.launch = list_launch,
                                      .library_call = list_call,
                                      .phase = list_phase},
                           .plan = plan,
                           .contractions = contractions,
                           .state_bytes = states_end(plan),
                           .packed = packed};
    for (int i = 0; i < plan->num_steps; i++)
        if (predicts(&plan->step[i]))
            plan->step[i].run(&w->device);
    return w;
}

size_t rt_packed_weights_bytes(const RtPackedWeights *w) {
    return w == NULL ? 0 : w->bytes;
}

void rt_packed_weights_reserve(RtPackedWeights *w) {
    if (w == NULL || w->bytes == 0)
        return;
    w->memory = aligned_alloc(ALIGN, w->bytes);
    if (w->memory == NULL)
        rt_end(EXIT_MEMORY, "cannot allocate %zu bytes of memory", w->bytes);
}

void rt_packed_weights_free(RtPackedWeights *w) {
    if (w == NULL)
        return;
    free(w->packed);
    free(w->memory);
    free(w);
}

// ---- use ----

void rt_packed_weights_begin(RtPackedWeights *w, const RtStep *step,
                             char *arena) {
    if (w == NULL)
        return;
    w->is_used = predicts(step);
    for (int i = 0; w->is_used && !w->is_current && i < w->count; i++)
        rt_contractions_pack(w->contractions, w->packed[i].call,
                             arena + w->packed[i].b,
                             w->memory + w->packed[i].at);
    w->is_current = w->is_used;
}

void rt_packed_weights_written(RtPackedWeights *w, size_t to) {
    if (w != NULL && to < w->state_bytes)
        w->is_current = false;
}

char *rt_packed_weights_find(const RtPackedWeights *w, int call, size_t b) {
    const Packed *p = w != NULL && w->is_used ? find(w, call, b) : NULL;
    return p == NULL ? NULL : w->memory + p->at;
}
