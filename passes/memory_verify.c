// Memory verifier: replays a plan and watches what each byte holds.
//
// It shares nothing with the planner.  Launch by launch, what a group reads
// must still be where it was written, and nothing may be written over a
// state, an input, or a tensor of the same launch.

#include "ir/group.h"
#include "passes/passes.h"

#include <stdlib.h>

typedef struct {
    int64_t begin, end;
    NodeId node;
    bool fixed; // states and inputs, which no launch may overwrite
} Held;

typedef struct {
    const Graph *g;
    Arena *arena;
    Held *held; // what memory holds, in no order; ranges do not overlap
    int count;
} Replay;

static Held range_of(const Graph *g, NodeId n) {
    const Node *d = &g->node[n];
    return (Held){d->offset, d->offset + graph_bytes(g, d->type), n,
                  d->op == OP_input || d->op == OP_param || d->op == OP_state};
}

static bool overlap(Held a, Held b) {
    return a.begin < b.end && b.begin < a.end;
}

static const char *fault(const Replay *r, const char *what, NodeId n,
                         NodeId other) {
    return arena_format(r->arena, "%%%u at %lld %s %%%u at %lld", n,
                        (long long)r->g->node[n].offset, what, other,
                        (long long)r->g->node[other].offset);
}

static const char *check_range(const Replay *r, NodeId n) {
    Held h = range_of(r->g, n);
    if (h.begin < 0 || h.end > r->g->arena_bytes)
        return arena_format(r->arena, "%%%u is outside the arena", n);
    if (h.begin % 256 != 0)
        return arena_format(r->arena, "%%%u is not aligned to 256 bytes", n);
    return NULL;
}

// Writes node n: whatever it covers is gone.
static const char *hold(Replay *r, NodeId n) {
    Held h = range_of(r->g, n);
    const char *why = check_range(r, n);
    if (why != NULL)
        return why;
    for (int i = 0; i < r->count;) {
        if (!overlap(h, r->held[i])) {
            i++;
            continue;
        }
        if (r->held[i].fixed)
            return fault(r, "overwrites", n, r->held[i].node);
        r->held[i] = r->held[--r->count];
    }
    r->held[r->count++] = h;
    return NULL;
}

static bool holds(const Replay *r, NodeId n) {
    for (int i = 0; i < r->count; i++)
        if (r->held[i].node == n)
            return true;
    return false;
}

static const char *replay_group(Replay *r, const Group *group) {
    const char *why = NULL;
    for (int i = 0; i < group->num_inputs; i++)
        if (!holds(r, group->input[i]))
            return arena_format(r->arena,
                                "group %d reads %%%u after it was "
                                "overwritten",
                                group->group, group->input[i]);
    for (int i = -1; i < group->num_outputs && why == NULL; i++) {
        NodeId n = i < 0 ? group->scratch : group->output[i];
        if (n != NO_NODE)
            why = hold(r, n);
    }
    if (why != NULL)
        return why;
    for (int i = 0; i < group->num_inputs; i++)
        if (!holds(r, group->input[i]))
            return fault(r, "is overwritten by the group that reads",
                         group->input[i], group->first);
    for (int i = 0; i < group->num_outputs; i++)
        if (!holds(r, group->output[i]))
            return fault(r, "shares memory within the group of",
                         group->output[i], group->first);
    return NULL;
}

const char *memory_verify(const Graph *g, Arena *a) {
    Replay r = {g, a, ARENA_ARRAY(a, (size_t)g->count + 1, Held), 0};
    int count;
    Group *group = graph_groups(g, a, &count);
    const char *why = NULL;
    for (NodeId n = 0; n < g->count && why == NULL; n++)
        if (range_of(g, n).fixed)
            why = hold(&r, n);
    for (int k = 0; k < count && why == NULL; k++)
        why = replay_group(&r, &group[k]);
    for (NodeId n = 0; n < g->count && why == NULL; n++) {
        if (g->node[n].op != OP_output)
            continue;
        NodeId base = node_base(g, g->node[n].arg[0]);
        if (!node_immediate(&g->node[base]) && !holds(&r, base))
            why = arena_format(a, "output %%%u was overwritten", n);
    }
    return why;
}
