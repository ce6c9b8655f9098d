// Offset assignment in the order of time, for more buffers than can be compared
// with one another.
//
// Launch by launch, it frees the buffers that end and then places those that
// begin, the largest first: in the smallest gap that fits, else at the
// end. Buffers that end in the reverse order of their beginning, as activations
// do, leave few gaps.

#include "passes/live_range.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_GAPS = 4096 }; // that are kept; the bytes of a further one are lost

typedef struct {
    int64_t begin, end;
} Gap;

typedef struct {
    Gap *gap; // in order; the last is above all buffers
    int count;
} Space;

// The first gap that ends at or above an address.
static int gap_find(const Space *s, int64_t address) {
    int low = 0, high = s->count - 1;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (s->gap[middle].end < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void gaps_move(Space *s, int from, int by) {
    memmove(&s->gap[from + by], &s->gap[from],
            (size_t)(s->count - from) * sizeof *s->gap);
    s->count += by;
}

static int64_t take(Space *s, int64_t bytes) {
    int best = s->count - 1;
    int64_t least = INT64_MAX;
    for (int i = 0; i < s->count - 1; i++) {
        int64_t size = s->gap[i].end - s->gap[i].begin;
        if (size >= bytes && size < least) {
            best = i;
            least = size;
        }
    }
    int64_t at = s->gap[best].begin;
    s->gap[best].begin += bytes;
    if (s->gap[best].begin == s->gap[best].end)
        gaps_move(s, best + 1, -1);
    return at;
}

static void give_back(Space *s, int64_t begin, int64_t end) {
    int i = gap_find(s, begin);
    bool below = s->gap[i].end == begin, above;
    if (below)
        s->gap[i].end = end;
    above = s->gap[i + below].begin == end;
    if (below && above) {
        s->gap[i].end = s->gap[i + 1].end;
        gaps_move(s, i + 2, -1);
    } else if (above) {
        s->gap[i].begin = begin;
    } else if (!below && s->count < MAX_GAPS) {
        gaps_move(s, i, 1);
        s->gap[i] = (Gap){begin, end};
    }
}

static int by_begin(const void *a, const void *b) {
    const Buffer *x = *(Buffer *const *)a, *y = *(Buffer *const *)b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

static int by_end(const void *a, const void *b) {
    const Buffer *x = *(Buffer *const *)a, *y = *(Buffer *const *)b;
    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

static Buffer **sorted(Buffer *buffer, int count, Arena *a,
                       int (*order)(const void *, const void *)) {
    Buffer **list = ARENA_ARRAY(a, (size_t)count, Buffer *);
    for (int i = 0; i < count; i++)
        list[i] = &buffer[i];
    qsort(list, (size_t)count, sizeof *list, order);
    return list;
}

int64_t offsets_assign_walk(Buffer *buffer, int count) {
    Arena *a = arena_new();
    Buffer **begin = sorted(buffer, count, a, by_begin);
    Buffer **end = sorted(buffer, count, a, by_end);
    Space space = {ARENA_ARRAY(a, MAX_GAPS + 1, Gap), 1};
    int64_t most = 0;
    space.gap[0] = (Gap){0, INT64_MAX};
    for (int i = 0, done = 0; i < count; i++) {
        for (; end[done]->to < begin[i]->from; done++)
            give_back(&space, end[done]->offset,
                      end[done]->offset + end[done]->bytes);
        int64_t at = begin[i]->offset = take(&space, begin[i]->bytes);
        most = at + begin[i]->bytes > most ? at + begin[i]->bytes : most;
    }
    arena_free(a);
    return most;
}
