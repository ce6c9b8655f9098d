// Chooses the values of the forward pass to recompute in the backward pass.
//
// A value that a kernel computes from kept values costs one launch to
// recompute, and no library call.  If that saves too little, the forward pass
// is cut into segments at places where few bytes cross: only those are kept,
// and a segment is recomputed as a whole before its backward pass (Chen et al.,
// "Training Deep Nets with Sublinear Memory Cost", 2016).  Both are done for a
// part of the step, from its beginning, since the first values wait longest.
//
// A simulation of the step judges every choice.  The cheapest that fits is
// taken, and values that it drops in vain are kept after all.

#include "passes/rematerialize.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_SEGMENTS = 96,
    WORK = 1 << 24 // values looked at when choices are improved
};

typedef struct {
    const Liveness *liveness;
    int64_t budget;
    int64_t *crossing; // bytes that launches from k+1 to the split read and
                       // those up to k made
    bool *best;
    int64_t peak, cost; // of the best
    int segments;       // of the choices that are looked at; 0: one for kernels
} Search;

// ---- choices ----

// Drops values of kernels up to launch `end`, except where inputs would have to
// be kept for them alone.
static void drop_cheap(const Liveness *l, int end, bool *dropped, Arena *a) {
    bool *kept = ARENA_ARRAY(a, (size_t)l->num_values + 1, bool);
    for (int v = 0; v < l->num_values; v++)
        kept[v] = l->value[v].used_after_split;
    for (int v = 0; v < l->num_values; v++) {
        const Value *value = &l->value[v];
        int64_t more = 0;
        if (value->def >= end || !value->recomputable || value->calls ||
            !value->used_after_split)
            continue;
        for (int i = 0; i < value->num_operands; i++)
            if (!kept[value->operand[i]])
                more += l->value[value->operand[i]].bytes;
        if (more >= value->bytes)
            continue;
        dropped[v] = true;
        for (int i = 0; i < value->num_operands; i++)
            kept[value->operand[i]] = true;
    }
}

static int64_t *find_crossing(const Liveness *l, Arena *a) {
    int64_t *bytes = ARENA_ARRAY(a, (size_t)l->count + 1, int64_t);
    for (int v = 0; v < l->num_values; v++) {
        const Value *value = &l->value[v];
        if (value->def >= l->split || value->last_forward_use < 0)
            continue;
        bytes[value->def] += value->bytes;
        bytes[value->last_forward_use] -= value->bytes;
    }
    for (int k = 1; k < l->split; k++)
        bytes[k] += bytes[k - 1];
    return bytes;
}

// Where the segment ends that is at least so large at launch k: where least
// crosses until it is half as large again.
static int find_cut(const Search *s, int k, int end, const int64_t *made,
                    int64_t size) {
    int cut = k;
    int64_t more = 0;
    for (int i = k + 1; i < end && more <= size / 2; i++) {
        more += made[i];
        if (s->crossing[i] < s->crossing[cut])
            cut = i;
    }
    return cut;
}

// Keeps values that launches up to the cut write and later ones read.
static void keep_crossing(const Liveness *l, int cut, bool *dropped) {
    for (int v = 0; v < l->num_values && l->value[v].def <= cut; v++)
        if (l->value[v].last_forward_use > cut)
            dropped[v] = false;
}

// All values up to launch `end` but those that cross from one segment of so
// many bytes to the next.
static void drop_segments(const Search *s, int end, int64_t size, bool *dropped,
                          Arena *a) {
    const Liveness *l = s->liveness;
    int64_t *made = ARENA_ARRAY(a, (size_t)l->count + 1, int64_t), sum = 0;
    for (int v = 0; v < l->num_values; v++) {
        const Value *value = &l->value[v];
        if (value->def >= end || !value->recomputable)
            continue;
        dropped[v] = true;
        if (value->used_after_split)
            made[value->def] += value->bytes;
    }
    for (int k = 0; k < end; k++) {
        sum += made[k];
        if (sum < size)
            continue;
        k = find_cut(s, k, end, made, size);
        keep_crossing(l, k, dropped);
        sum = 0;
    }
}

static int64_t kept_bytes(const Liveness *l) {
    int64_t bytes = 0;
    for (int v = 0; v < l->num_values; v++)
        if (l->value[v].recomputable && l->value[v].used_after_split)
            bytes += l->value[v].bytes;
    return bytes;
}

// The choice for the launches up to `end`.
static bool *choice(const Search *s, int end, Arena *a) {
    const Liveness *l = s->liveness;
    bool *dropped = ARENA_ARRAY(a, (size_t)l->num_values + 1, bool);
    drop_cheap(l, s->segments ? l->split : end, dropped, a);
    if (s->segments)
        drop_segments(s, end, kept_bytes(l) / s->segments, dropped, a);
    return dropped;
}

// ---- the best ----

static bool is_better(const Search *s, const Simulation *simulation) {
    if (s->peak <= s->budget)
        return simulation->peak <= s->budget && simulation->cost < s->cost;
    return simulation->peak < s->peak ||
           (simulation->peak == s->peak && simulation->cost < s->cost);
}

// Whether the step fits with these values dropped; remembers the best choice.
static bool consider(Search *s, const bool *dropped) {
    Arena *a = arena_new();
    Simulation simulation = liveness_simulate(s->liveness, dropped, a);
    if (is_better(s, &simulation)) {
        s->peak = simulation.peak;
        s->cost = simulation.cost;
        memcpy(s->best, dropped,
               (size_t)s->liveness->num_values * sizeof *dropped);
    }
    arena_free(a);
    return simulation.peak <= s->budget;
}

static bool fits_up_to(Search *s, int end) {
    Arena *a = arena_new();
    bool fits = consider(s, choice(s, end, a));
    arena_free(a);
    return fits;
}

// The shortest part of the step that has to be done so.
static void find_part(Search *s) {
    int low = 0, high = s->liveness->split;
    if (!fits_up_to(s, high))
        return;
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (fits_up_to(s, middle))
            high = middle;
        else
            low = middle;
    }
}

typedef struct {
    int64_t cost;
    int value;
} Dropped;

static int by_cost(const void *a, const void *b) {
    const Dropped *x = a, *y = b;
    if (x->cost != y->cost)
        return x->cost > y->cost ? -1 : 1;
    return (x->value > y->value) - (x->value < y->value);
}

// Keeps values that need not be dropped, the costliest first.
static void keep_more(Search *s, Arena *a) {
    const Liveness *l = s->liveness;
    Dropped *list = ARENA_ARRAY(a, (size_t)l->num_values + 1, Dropped);
    bool *dropped = ARENA_ARRAY(a, (size_t)l->num_values + 1, bool);
    int count = 0;
    for (int v = 0; v < l->num_values; v++)
        if (s->best[v])
            list[count++] = (Dropped){l->value[v].cost, v};
    qsort(list, (size_t)count, sizeof *list, by_cost);
    int tries = WORK / (l->num_values + 1);
    for (int i = 0; i < count && i < tries; i++) {
        memcpy(dropped, s->best, (size_t)l->num_values * sizeof *dropped);
        dropped[list[i].value] = false;
        consider(s, dropped);
    }
}

bool *rematerialize_choose(const Liveness *l, int64_t budget, bool *fits,
                           Arena *a) {
    Search s = {.liveness = l,
                .budget = budget,
                .crossing = find_crossing(l, a),
                .best = ARENA_ARRAY(a, (size_t)l->num_values + 1, bool),
                .peak = INT64_MAX};
    *fits = consider(&s, s.best);
    if (!*fits || budget == 0)
        find_part(&s);
    for (s.segments = 1; !*fits && budget > 0 && s.segments < MAX_SEGMENTS;
         s.segments += 1 + s.segments / 4)
        find_part(&s);
    if (budget == 0)
        s.budget = s.peak;
    keep_more(&s, a);
    *fits = s.peak <= s.budget;
    return s.best;
}
