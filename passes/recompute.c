// Recompute: values of the forward pass that are made again instead of kept.
//
//   needs   groups in launch order
//   keeps   every value: the same kernels run on the same numbers, so results
//           are the same to the bit
//   leaves  copies of launches before those of the backward pass that read
//           what they make; only where options ask for it
//
// The arena that memory will plan may be a little larger than what lives at
// once.  When that is too much, less may live, and at last as little as can be.

#include "passes/recompute.h"
#include "passes/lifetime.h"
#include "passes/passes.h"

static int64_t packed(const Graph *g, Arena *a) {
    int count;
    int64_t beside;
    Buffer *buffer = graph_buffers(g, a, &count, &beside);
    return buffers_pack(buffer, count) + beside;
}

// Bytes of states, of all of the program's graphs where they are known, and of
// inputs.
static int64_t fixed_bytes(const Graph *g) {
    int64_t inputs = leaves_bytes(g, false);
    int64_t states = leaves_bytes(g, true) - inputs;
    return inputs + (states > g->arena_bytes ? states : g->arena_bytes);
}

static Graph *recompute(const Graph *g, int64_t room, Arena *a) {
    Tape t = tape_of(g, a);
    return recompute_place(&t, recompute_choose(&t, room, a), a);
}

Graph *pass_recompute(Graph *g, Arena *scratch, const PassOptions *o) {
    enum { TRIES = 8, SLACK = 512 };
    if (!o->recompute)
        return g;
    if (o->memory == 0)
        return recompute(g, 0, scratch);
    int64_t room = o->memory - fixed_bytes(g), target = room;
    int64_t over = packed(g, scratch) - room;
    Graph *best = g;
    for (int i = 0; i < TRIES && over > 0; i++) {
        bool last = i + 1 == TRIES || target < 1;
        Graph *made = recompute(g, last ? 1 : target, scratch);
        int64_t more = packed(made, scratch) - room;
        if (more < over) {
            best = made;
            over = more;
        }
        target -= (more > 0 ? more : 0) + room / SLACK;
    }
    return best;
}
