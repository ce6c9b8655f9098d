// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Embedded code: iterates over the headers.

#include "runtime/cuda/kernels/kernels.h"

#include "base/round_up.h"
#include "runtime/cuda/driver/driver.h"

#include <stdio.h>
#include <string.h>

enum { ALIGNMENT = 16, CUBIN_RANK = 10000 };

// The code at *at, and advances *at past it; NULL at the end.
static const char *next(const RtTrainer *t, const char **at,
                        RtEmbeddedCode *h) {
    if (*at == NULL || (size_t)(t->code_end - *at) < sizeof *h)
        return NULL;
    memcpy(h, *at, sizeof *h);
    const char *code = *at + sizeof *h;
    *at = code + align_up(h->length, ALIGNMENT);
    return code;
}

static bool runs_on(const RtEmbeddedCode *h, int gpu) {
    return h->form == RT_PTX ? h->capability <= gpu
                             : rt_capability_runs(h->capability, gpu);
}

// Cubins before PTX, newer before older.
static int preference_of(const RtEmbeddedCode *h) {
    return (h->form == RT_CUBIN ? CUBIN_RANK : 0) + h->capability;
}

int rt_embedded_code_capability(int rank) {
    return rank % CUBIN_RANK;
}

const char *rt_embedded_code_next(const RtTrainer *t, int gpu, int *rank) {
    const char *at = t->code, *best = NULL, *code;
    int highest = 0;
    RtEmbeddedCode h;
    while ((code = next(t, &at, &h)) != NULL)
        if (h.form < RT_TILE_CUBIN && runs_on(&h, gpu) &&
            preference_of(&h) > highest && preference_of(&h) < *rank) {
            best = code;
            highest = preference_of(&h);
        }
    *rank = highest;
    return best;
}

const char *rt_embedded_tile(const RtTrainer *t, int gpu, int first, int count,
                             int *number) {
    const char *at = t->code, *best = NULL, *code;
    int highest = 0;
    RtEmbeddedCode h;
    while ((code = next(t, &at, &h)) != NULL)
        if (h.form >= RT_TILE_CUBIN + first &&
            h.form < RT_TILE_CUBIN + first + count && runs_on(&h, gpu) &&
            h.capability > highest) {
            best = code;
            highest = h.capability;
            *number = h.form - RT_TILE_CUBIN;
        }
    return best;
}

void rt_embedded_code_names(const RtTrainer *t, char *to, size_t room) {
    const char *at = t->code;
    size_t length = 0;
    RtEmbeddedCode h;
    *to = '\0';
    while (next(t, &at, &h) != NULL && length < room)
        if (h.form == RT_CUBIN)
            length += (size_t)snprintf(
                to + length, room - length, "%s%d.%d", length > 0 ? ", " : "",
                (int)h.capability / 10, (int)h.capability % 10);
}
