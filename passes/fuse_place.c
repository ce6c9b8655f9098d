// The graph in groups: cluster by cluster, each with its own copies of the
// nodes between its inputs and its roots.

#include "passes/fuse.h"

#include <stdlib.h>
#include <string.h>

static int by_number(const void *a, const void *b) {
    NodeId x = *(const NodeId *)a, y = *(const NodeId *)b;
    return (x > y) - (x < y);
}

// Whether cluster k finds a value in memory.  A view of what it computes itself
// is computed too: the update may read, as a scalar, the one element of a
// vector that it leaves there.
static bool is_read(const Fuse *f, NodeId n, int k) {
    bool own = (facts(f, n) & VIEW) && f->cluster[memory_base(f, n)] == k;
    return in_memory(f, n) && f->again[n] != k && !own;
}

// Lists the nodes that cluster k computes, in the order of the old graph.
// mark[n] is the last list that n is in, and `list` the number of this one.
static void list_members(Fuse *f, int k, int list, int *mark, NodeId *stack) {
    Cluster *c = &f->clusters[k];
    int height = 0, done = 0;
    for (int i = 0; i < c->num_roots; i++) {
        mark[c->root[i]] = list;
        stack[height++] = c->root[i];
    }
    while (done < height) {
        const Node *d = at(f, stack[done++]);
        for (int i = 0; i < d->num_args; i++) {
            NodeId arg = d->arg[i];
            if (mark[arg] != list && !is_leaf(f, arg) && !is_read(f, arg, k)) {
                mark[arg] = list;
                stack[height++] = arg;
            }
        }
    }
    qsort(stack, (size_t)height, sizeof *stack, by_number);
    c->member = ARENA_ARRAY(f->scratch, (size_t)height, NodeId);
    memcpy(c->member, stack, (size_t)height * sizeof *stack);
    c->num_members = height;
}

static void find_members(Fuse *f) {
    NodeId count = f->old->count;
    int *mark = ARENA_ARRAY(f->scratch, count, int);
    int *reader = ARENA_ARRAY(f->scratch, count, int);
    NodeId *stack = ARENA_ARRAY(f->scratch, (size_t)count + 1, NodeId);
    for (NodeId n = 0; n < count; n++)
        mark[n] = reader[n] = f->again[n] = NONE;
    for (int k = 0; k < f->count; k++) {
        list_members(f, k, 2 * k, mark, stack);
        if (find_again(f, k, reader))
            list_members(f, k, 2 * k + 1, mark, stack);
    }
}

// What each cluster leaves for itself.
static const Room *find_rooms(const Fuse *f) {
    Room *room = ARENA_ARRAY(f->scratch, (size_t)f->count + 1, Room);
    for (int k = 0; k < f->count; k++) {
        const Cluster *c = &f->clusters[k];
        room[k].kind = c->kind;
        room[k].space = at(f, c->space)->type;
        for (int i = 0; i < c->num_members; i++)
            scratch_add(&room[k], f->old, c->member[i],
                        f->cluster[c->member[i]] == k);
    }
    return room;
}

typedef struct {
    Graph *g;
    NodeId *shared;   // leaves, views of memory, roots: what any group may use
    NodeId *own;      // copies in the group being built
    int *owner;       // the cluster own[n] belongs to
    const Room *room; // of each cluster
    int group;
} Rebuild;

// Casts a node of the new graph as one of the group.
static NodeId place_cast(Rebuild *r, NodeId a, DType to, int group,
                         Reason why) {
    Type type = *r->g->node[a].type;
    type.dtype = to;
    return graph_add(r->g, (Node){.op = OP_cast,
                                  .type = &type,
                                  .num_args = 1,
                                  .arg = &a,
                                  .group = group,
                                  .why = why});
}

// What cluster k reads for old node n.
static NodeId find_operand(const Fuse *f, Rebuild *r, NodeId n, int k,
                           int group) {
    if (group >= 0 && r->owner[n] == k)
        return r->own[n];
    if (group >= 0 && f->narrow[memory_base(f, n)])
        return place_cast(r, r->shared[n], F32, group, REASON_none);
    return r->shared[n];
}

// Adds old node n to the group; -1 is no group.
static NodeId place_node(const Fuse *f, Rebuild *r, NodeId n, int k,
                         int group) {
    Node d = *at(f, n);
    NodeId *arg = ARENA_ARRAY(f->scratch, (size_t)d.num_args + 1, NodeId);
    r->g->at = d.from;
    for (int i = 0; i < d.num_args; i++)
        arg[i] = find_operand(f, r, d.arg[i], k, group);
    d.arg = arg;
    d.group = group;
    d.why = f->cluster[n] == k && !f->narrow[n] ? f->why[n] : REASON_none;
    return graph_move(r->g, d);
}

typedef struct {
    NodeId *first, *next; // views of a node in memory, as lists
} Views;

static Views find_views(const Fuse *f) {
    Views v = {graph_none(f->old, f->scratch), graph_none(f->old, f->scratch)};
    for (NodeId n = f->old->count; n-- > 0;)
        if ((facts(f, n) & VIEW) && in_memory(f, n)) {
            NodeId base = brief(f, n)->arg[0];
            v.next[n] = v.first[base];
            v.first[base] = n;
        }
    return v;
}

// The views of a root follow its group, so that later groups find them.
static void place_views(const Fuse *f, Rebuild *r, const Views *views,
                        NodeId n) {
    for (NodeId v = views->first[n]; v != NO_NODE; v = views->next[v]) {
        r->shared[v] = place_node(f, r, v, NONE, -1);
        place_views(f, r, views, v);
    }
}

static void place_cluster(Fuse *f, Rebuild *r, const Views *views, int k) {
    Cluster *c = &f->clusters[k];
    if (r->room[k].any) {
        r->g->at = at(f, c->root[0])->from;
        graph_add(r->g, (Node){.op = OP_scratch,
                               .type = (Type[]){scratch_type(&r->room[k])},
                               .group = r->group,
                               .offset = -1});
    }
    for (int i = 0; i < c->num_members; i++) {
        NodeId n = c->member[i];
        r->own[n] = place_node(f, r, n, k, r->group);
        r->owner[n] = k;
        if (f->cluster[n] == k)
            r->shared[n] = f->narrow[n] ? place_cast(r, r->own[n], ACT,
                                                     r->group, f->why[n])
                                        : r->own[n];
    }
    for (int i = 0; i < c->num_roots; i++)
        place_views(f, r, views, c->root[i]);
    c->placed = true;
    r->group++;
}

// A cluster that c reads from and that is not placed yet, or NONE.
static int cluster_before(const Fuse *f, const Cluster *c) {
    for (int i = 0; i < c->num_members; i++) {
        const Node *d = at(f, c->member[i]);
        for (int j = 0; j < d->num_args; j++) {
            int k = f->cluster[memory_base(f, d->arg[j])];
            if (k != NONE && &f->clusters[k] != c && !f->clusters[k].placed)
                return k;
        }
    }
    return NONE;
}

typedef struct {
    NodeId priority;
    int cluster;
} Turn;

static int by_priority(const void *a, const void *b) {
    const Turn *x = a, *y = b;
    if (x->priority != y->priority)
        return x->priority < y->priority ? -1 : 1;
    return (x->cluster > y->cluster) - (x->cluster < y->cluster);
}

// In the order of their last roots, each after those it reads from.
static void place_clusters(Fuse *f, Rebuild *r, const Views *views) {
    Turn *turn = ARENA_ARRAY(f->scratch, (size_t)f->count + 1, Turn);
    int *stack = ARENA_ARRAY(f->scratch, (size_t)f->count + 1, int);
    for (int k = 0; k < f->count; k++)
        turn[k] = (Turn){f->clusters[k].priority, k};
    qsort(turn, (size_t)f->count, sizeof *turn, by_priority);
    for (int i = 0; i < f->count; i++) {
        int height = 0;
        stack[height++] = turn[i].cluster;
        while (height > 0) {
            int k = stack[height - 1];
            int before = f->clusters[k].placed
                             ? NONE
                             : cluster_before(f, &f->clusters[k]);
            if (before != NONE) {
                stack[height++] = before;
                continue;
            }
            if (!f->clusters[k].placed)
                place_cluster(f, r, views, k);
            height--;
        }
    }
}

// Whether launches may be joined, which have the last ticket: see ir/join.h.
static bool any_joins(const Fuse *f) {
    int count = 0;
    for (int k = 0; k < f->count; k++)
        count += f->clusters[k].kind != GROUP_CALL &&
                 !group_has_parts(f->clusters[k].kind);
    return count > 1 && f->options->level > 0;
}

static void place_leaves(const Fuse *f, Rebuild *r, const Views *views) {
    int tickets = 0;
    for (NodeId n = 0; n < f->old->count; n++)
        if (is_leaf(f, n))
            r->shared[n] = place_node(f, r, n, NONE, -1);
    for (NodeId n = 0; n < f->old->count; n++)
        if (is_leaf(f, n))
            place_views(f, r, views, n);
    for (int k = 0; k < f->count; k++)
        tickets += scratch_tickets(&r->room[k]);
    tickets += any_joins(f);
    if (tickets > 0) {
        r->g->at = (Origin){0};
        graph_state(r->g, arena_format(r->g->arena, TICKETS "%s", r->g->name),
                    STATE_DERIVED, type_of(I32, 1, (int64_t[]){tickets}), 0);
    }
}

Graph *place_groups(Fuse *f) {
    const Graph *old = f->old;
    Rebuild r = {.g = graph_like(old),
                 .shared = graph_none(old, f->scratch),
                 .own = ARENA_ARRAY(f->scratch, old->count, NodeId),
                 .owner = ARENA_ARRAY(f->scratch, old->count, int)};
    for (NodeId n = 0; n < old->count; n++)
        r.owner[n] = NONE;
    find_members(f);
    r.room = find_rooms(f);
    Views views = find_views(f);
    place_leaves(f, &r, &views);
    place_clusters(f, &r, &views);
    for (NodeId n = 0; n < old->count; n++)
        if (brief(f, n)->op == OP_output)
            place_node(f, &r, n, NONE, -1);
    r.g->facts |= GROUPED;
    return r.g;
}
