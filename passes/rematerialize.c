// Rematerialize: recomputes values of the forward pass in the backward pass
// instead of keeping them.
//
//   requires   Groups are in launch order.
//   preserves  Every value stays the same to the bit: the same kernels run on
//              the same numbers.
//   result     If options request it, copies of forward launches come before
//              the launches of the backward pass that read their results.
//
// The planned arena may be a little larger than the live bytes.  If it is too
// large, the target for live bytes shrinks, at last to the least possible.

#include "passes/rematerialize.h"
#include "passes/live_range.h"
#include "passes/passes.h"

// Bytes of buffers that live only within a step; any number up to `budget` is
// as good.
static int64_t planned_bytes(const Graph *g, int64_t budget, Arena *a) {
    int count;
    LibraryFusions fusions = graph_library_fusions(g, a);
    Buffer *buffer = graph_buffers(g, &fusions, false, a, &count);
    return offsets_assign(buffer, count, budget - fusions.bytes) +
           fusions.bytes;
}

// Bytes of states, of all of the program's graphs where they are known, and of
// inputs.
static int64_t fixed_bytes(const Graph *g) {
    int64_t states = leaves_bytes(g, true);
    return leaves_bytes(g, false) +
           (states > g->arena_bytes ? states : g->arena_bytes);
}

static Graph *rematerialized(const Liveness *l, int64_t budget, bool *fits,
                             Arena *a) {
    return rematerialize_build(l, rematerialize_choose(l, budget, fits, a), a);
}

// The step whose planned bytes are at most `budget`, or as few as possible.
// Where no choice fits, a smaller budget finds no other.
static Graph *make_fit(Graph *g, int64_t budget, Arena *a) {
    enum { TRIES = 8, SLACK = 512 };
    int64_t over = planned_bytes(g, budget, a) - budget, target = budget;
    bool fits = true;
    if (over <= 0)
        return g;
    Liveness l = liveness_of(g, a);
    Graph *best = g;
    for (int i = 0; i < TRIES && over > 0 && fits; i++) {
        bool last = i + 1 == TRIES || target < 1;
        Graph *made = rematerialized(&l, last ? 1 : target, &fits, a);
        int64_t more = planned_bytes(made, budget, a) - budget;
        if (more < over) {
            best = made;
            over = more;
        }
        target -= (more > 0 ? more : 0) + budget / SLACK;
    }
    return best;
}

Graph *pass_rematerialize(Graph *g, Arena *scratch, const PassOptions *o) {
    if (!o->rematerialize)
        return g;
    if (o->memory > 0)
        return make_fit(g, o->memory - fixed_bytes(g), scratch);
    Liveness l = liveness_of(g, scratch);
    bool fits;
    return rematerialized(&l, 0, &fits, scratch);
}
