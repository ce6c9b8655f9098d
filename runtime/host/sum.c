// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sum: adds ranges of the arena element by element, in a fixed order.

#include "runtime/host/host.h"

#include <string.h>

enum { PIECE = 2048 }; // elements that stay in the first cache

typedef struct {
    char *arena;
    size_t to;
    const size_t *from;
    int terms;
    size_t count;
} Sum;

static void add_piece(const Sum *s, size_t at, size_t count) {
    float sum[PIECE];
    size_t bytes = count * sizeof *sum, offset = at * sizeof *sum;
    memcpy(sum, s->arena + s->from[0] + offset, bytes);
    for (int i = 1; i < s->terms; i++) {
        const float *term = (const float *)(s->arena + s->from[i] + offset);
        for (size_t k = 0; k < count; k++)
            sum[k] += term[k];
    }
    memcpy(s->arena + s->to + offset, sum, bytes);
}

static void add_share(void *arg, int me, int members) {
    const Sum *s = arg;
    size_t first, last;
    rt_team_share(s->count, me, members, &first, &last);
    for (size_t at = first; at < last; at += PIECE)
        add_piece(s, at, last - at < PIECE ? last - at : PIECE);
}

void rt_sum(char *arena, size_t to, const size_t *from, int terms, size_t count,
            int threads) {
    Sum s = {arena, to, from, terms, count};
    if (terms == 0)
        memset(arena + to, 0, count * sizeof(float));
    else
        rt_team_run(threads, add_share, &s);
}
