// Offset assignment: intervals of time with sizes become offsets.
//
// Buffers are placed one after another, each at the lowest gap that nothing
// live at the same time takes.  All hangs on the order: some order gives the
// best packing there is, but finding it is hard.  The largest first is nearly
// right, or those that are large for long.  Where both are worse than the
// bound, a buffer that did not fit moves to an earlier position in the order,
// again and again; the best order seen is taken.  If one order alone would take
// all the time there is, buffers are placed in the order of time instead.
// Random numbers are the same in each run, and so are the plans.

#include "passes/live_range.h"

#include <stdlib.h>
#include <string.h>

enum {
    NEAR = 1000,      // parts of the bound; one part more is good enough
    LOOKS = 16 << 20, // at placed buffers, from one order on
    CHANGE_TRIES =
        256, // of one choice of the buffer to move, then of the other
};

typedef struct {
    Buffer *buffer;
    int count;
    int *order;  // in which buffers are placed
    int *rank;   // of each buffer in the order
    int *placed; // those placed, by offset
    int64_t *at; // their offsets; those in buffer are the best seen
    int64_t enough, end;
    int64_t room;  // an end within it is good enough too
    int tight;     // position in the order of the first that ends above enough
    int highest;   // ... of the one that ends last
    int64_t looks; // so far
    int64_t least; // the end of the best
} Assignment;

static bool live_together(const Buffer *a, const Buffer *b) {
    return a->from <= b->to && b->from <= a->to;
}

// Places the i-th of the order among those before it.
static void place(Assignment *p, int i) {
    const Buffer *b = &p->buffer[p->order[i]];
    int64_t offset = 0;
    int j = 0;
    for (; j < i; j++) {
        const Buffer *other = &p->buffer[p->placed[j]];
        int64_t begin = p->at[p->placed[j]], end = begin + other->bytes;
        if (!live_together(b, other))
            continue;
        if (begin - offset >= b->bytes)
            break;
        offset = end > offset ? end : offset;
    }
    p->looks += j + 1;
    p->at[p->order[i]] = offset;
    for (j = i; j > 0 && p->at[p->placed[j - 1]] > offset; j--)
        p->placed[j] = p->placed[j - 1];
    p->placed[j] = p->order[i];
}

static void remember(Assignment *p) {
    p->least = p->end;
    for (int i = 0; i < p->count; i++)
        p->buffer[i].offset = p->at[i];
}

// Places those from the k-th on; those before are placed.
static void place_from(Assignment *p, int k) {
    int kept = 0;
    for (int i = 0; i < p->count && k > 0; i++)
        if (p->rank[p->placed[i]] < k)
            p->placed[kept++] = p->placed[i];
    p->end = 0;
    p->tight = -1;
    for (int i = 0; i < p->count; i++) {
        int b = p->order[i];
        if (i >= k)
            place(p, i);
        p->rank[b] = i;
        int64_t end = p->at[b] + p->buffer[b].bytes;
        if (end > p->enough && p->tight < 0)
            p->tight = i;
        if (end > p->end) {
            p->end = end;
            p->highest = i;
        }
    }
    if (p->end < p->least)
        remember(p);
}

// A number below `below` that stands for chance.
static int draw(uint32_t *state, int below) {
    *state = *state * 1664525u + 1013904223u;
    return (int)((uint64_t)*state * (uint64_t)below >> 32);
}

static void move_forward(int *order, int from, int to) {
    int moved = order[from];
    memmove(&order[to + 1], &order[to], (size_t)(from - to) * sizeof *order);
    order[to] = moved;
}

static bool is_good(const Assignment *p) {
    return p->least <= p->enough || p->least <= p->room;
}

static void search(Assignment *p) {
    uint32_t chance = 1;
    p->looks = 0;
    place_from(p, 0);
    for (int i = 0; p->looks < LOOKS && !is_good(p); i++) {
        int from = i & CHANGE_TRIES ? p->highest : p->tight;
        int to = from > 0 ? draw(&chance, from) : 0;
        move_forward(p->order, from, to);
        place_from(p, to);
    }
}

static int by_bytes(const void *a, const void *b) {
    const Buffer *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

static double area(const Buffer *b) {
    return (double)b->bytes * (b->to - b->from + 1);
}

static int by_area(const void *a, const void *b) {
    double x = area(a), y = area(b);
    return x != y ? (x > y ? -1 : 1) : by_bytes(a, b);
}

int64_t offsets_assign(Buffer *buffer, int count, int64_t room) {
    if ((int64_t)count * count > 2 * (int64_t)LOOKS)
        return offsets_assign_walk(buffer, count);
    int (*const start[])(const void *, const void *) = {by_bytes, by_area};
    Arena *a = arena_new();
    size_t size = (size_t)count + 1;
    int64_t bound = buffers_bound(buffer, count);
    Assignment p = {.buffer = buffer,
                    .count = count,
                    .order = ARENA_ARRAY(a, size, int),
                    .rank = ARENA_ARRAY(a, size, int),
                    .placed = ARENA_ARRAY(a, size, int),
                    .at = ARENA_ARRAY(a, size, int64_t),
                    .enough = bound + bound / NEAR,
                    .room = room,
                    .least = INT64_MAX};
    for (int i = 0; i < 2 && !is_good(&p); i++) {
        qsort(buffer, (size_t)count, sizeof *buffer, start[i]);
        for (int j = 0; j < count; j++)
            p.order[j] = j;
        search(&p);
    }
    arena_free(a);
    return p.least;
}
