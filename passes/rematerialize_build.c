// Places recomputed values: right before the launch that needs them, as
// launches of their own with copies of the nodes.

#include "passes/rematerialize.h"

typedef struct {
    const Liveness *liveness;
    Arena *arena;
    Graph *g;
    NodeId *now;        // of each old node
    NodeId *recomputed; // ... recomputed, or NO_NODE
    NodeId *seen;       // ... for the launch that is being added
    NodeId next;        // the first old node that is not added
    int group;
} Rebuild;

static NodeId copy(Rebuild *r, NodeId n, const NodeId *arg, int group,
                   bool again) {
    Node d = r->liveness->g->node[n];
    d.arg = arg;
    d.group = group;
    r->g->origin = d.from;
    r->g->origin.backward |= again;
    return graph_move(r->g, d);
}

// The node for old node n, which is in memory, in a launch after the split.
// Views of recomputed values are recomputed too.
static NodeId seen_late(Rebuild *r, NodeId n) {
    const Graph *old = r->liveness->g;
    if (r->recomputed[node_base(old, n)] == NO_NODE)
        return r->now[n];
    if (r->recomputed[n] == NO_NODE) {
        NodeId arg = seen_late(r, old->node[n].arg[0]);
        r->recomputed[n] = copy(r, n, &arg, -1, true);
    }
    return r->recomputed[n];
}

// Places the wanted nodes of a group; NULL: all of them.  own[] receives the
// new nodes.  Operands come first, so that a group stays a run.
static void add_nodes(Rebuild *r, const Group *group, const bool *wanted,
                      bool late, NodeId last, NodeId *own) {
    const Graph *old = r->liveness->g;
    for (NodeId n = group->first; n <= last; n++)
        for (int i = 0; i < old->node[n].num_args; i++) {
            NodeId arg = old->node[n].arg[i];
            bool used = !wanted || wanted[n - group->first];
            if (used && arg < group->first)
                r->seen[arg] = late ? seen_late(r, arg) : r->now[arg];
        }
    for (NodeId n = group->first; n <= last; n++) {
        const Node *d = &old->node[n];
        NodeId *arg = ARENA_ARRAY(r->arena, (size_t)d->num_args + 1, NodeId);
        if (wanted && !wanted[n - group->first])
            continue;
        for (int i = 0; i < d->num_args; i++)
            arg[i] = d->arg[i] < group->first ? r->seen[d->arg[i]]
                                              : own[d->arg[i] - group->first];
        own[n - group->first] = copy(r, n, arg, r->group, wanted != NULL);
    }
    r->group++;
}

static void add_recomputed(Rebuild *r, int v) {
    NodeId node = r->liveness->value[v].node;
    const Group *group = &r->liveness->group[r->liveness->value[v].def];
    const bool *wanted = group_own(r->liveness->g, group, node, r->arena);
    NodeId *own = ARENA_ARRAY(r->arena, node - group->first + 1, NodeId);
    add_nodes(r, group, wanted, true, node, own);
    r->recomputed[node] = own[node - group->first];
}

// Leaves, views and outputs up to old node `end`.
static void add_others(Rebuild *r, NodeId end) {
    for (; r->next < end; r->next++) {
        const Node *d = &r->liveness->g->node[r->next];
        NodeId *arg = ARENA_ARRAY(r->arena, (size_t)d->num_args + 1, NodeId);
        for (int i = 0; i < d->num_args; i++)
            arg[i] = r->now[d->arg[i]];
        r->now[r->next] = copy(r, r->next, arg, -1, false);
    }
}

static void add_group(Rebuild *r, int k) {
    const Group *group = &r->liveness->group[k];
    add_nodes(r, group, NULL, k >= r->liveness->split, group->last,
              &r->now[group->first]);
    r->next = group->last + 1;
}

Graph *rematerialize_build(const Liveness *l, const bool *dropped, Arena *a) {
    Rebuild r = {.liveness = l,
                 .arena = a,
                 .g = graph_like(l->g),
                 .now = ARENA_ARRAY(a, l->g->count, NodeId),
                 .recomputed = graph_map_new(l->g, a),
                 .seen = ARENA_ARRAY(a, l->g->count, NodeId)};
    Simulation simulation = liveness_simulate(l, dropped, a);
    int k = 0; // the launch of the step that comes next
    for (int i = 0; i < simulation.num_entries; i++) {
        if (k < l->count)
            add_others(&r, l->group[k].first);
        if (simulation.entry[i].group < 0) {
            add_recomputed(&r, simulation.entry[i].value);
            continue;
        }
        add_group(&r, k++);
    }
    add_others(&r, l->g->count);
    return r.g;
}
