// The graph in groups: cluster by cluster, each with its own copies of the
// nodes between its inputs and its roots.

#include "passes/fuse.h"

typedef struct {
    const FuseAnalysis *f;
    const Stored *s;
    const Clusters *c;
    Arena *a;
    const Members *members; // of each cluster
    const Workspace *workspace; // of each cluster
    bool *added;                // it is in the new graph
    Graph *g;               // the new one
    NodeId *shared; // leaves, views of memory, roots: any group may use them
    NodeId *own;    // copies in the group being built
    int *owner;     // the cluster own[n] belongs to
    int group;
} Rebuild;

static const Workspace *find_workspaces(const Rebuild *r) {
    Workspace *workspace =
        ARENA_ARRAY(r->a, (size_t)r->c->count + 1, Workspace);
    for (int k = 0; k < r->c->count; k++) {
        const Cluster *c = &r->c->cluster[k];
        const Type *space = at(r->f, c->space)->type;
        workspace[k] = workspace_new(r->g, c->kind, space);
        for (int i = 0; i < r->members[k].count; i++) {
            NodeId n = r->members[k].node[i];
            workspace_add(&workspace[k], r->f->old, n, r->c->of[n] == k);
        }
    }
    return workspace;
}

// Casts a node of the new graph as one of the group.
static NodeId add_cast(Rebuild *r, NodeId a, DType to, Reason why) {
    Type type = *r->g->node[a].type;
    type.dtype = to;
    return graph_add(r->g, (Node){.op = OP_cast,
                                  .type = &type,
                                  .num_args = 1,
                                  .arg = &a,
                                  .group = r->group,
                                  .why = why});
}

// The node that cluster k reads for old node n.
static NodeId find_operand(Rebuild *r, NodeId n, int k) {
    if (k != NONE && r->owner[n] == k)
        return r->own[n];
    if (k != NONE && r->s->stored_as_act[memory_base(r->f, r->s, n)])
        return add_cast(r, r->shared[n], F32, REASON_none);
    return r->shared[n];
}

// Adds old node n to the group of cluster k, or to none.
static NodeId add_node(Rebuild *r, NodeId n, int k) {
    const FuseAnalysis *f = r->f;
    Node d = *at(f, n);
    NodeId *arg = ARENA_ARRAY(r->a, (size_t)d.num_args + 1, NodeId);
    r->g->origin = d.from;
    for (int i = 0; i < d.num_args; i++)
        arg[i] = find_operand(r, d.arg[i], k);
    d.arg = arg;
    d.group = k == NONE ? -1 : r->group;
    d.why = r->c->of[n] == k && !r->s->stored_as_act[n] ? r->s->why[n]
                                                        : REASON_none;
    return graph_move(r->g, d);
}

// The views of a root follow its group, so that later groups find them.
static void add_views(Rebuild *r, NodeId n) {
    const Users *users = &r->f->users;
    for (int i = users->first[n]; i != NONE; i = users->next[i]) {
        NodeId v = users->user[i];
        if (!(traits(r->f, v) & VIEW) || !in_memory(r->f, r->s, v))
            continue;
        r->shared[v] = add_node(r, v, NONE);
        add_views(r, v);
    }
}

static void add_cluster(Rebuild *r, int k) {
    const Cluster *c = &r->c->cluster[k];
    if (r->workspace[k].any) {
        r->g->origin = at(r->f, c->root[0])->from;
        graph_add(r->g,
                  (Node){.op = OP_workspace,
                         .type = (Type[]){workspace_type(&r->workspace[k])},
                         .group = r->group,
                         .offset = -1});
    }
    for (int i = 0; i < r->members[k].count; i++) {
        NodeId n = r->members[k].node[i];
        r->own[n] = add_node(r, n, k);
        r->owner[n] = k;
        if (r->c->of[n] == k)
            r->shared[n] = r->s->stored_as_act[n]
                               ? add_cast(r, r->own[n], ACT, r->s->why[n])
                               : r->own[n];
    }
    for (int i = 0; i < c->num_roots; i++)
        add_views(r, c->root[i]);
    r->added[k] = true;
    r->c->group[k] = r->group++;
}

// A cluster that k reads from and that is not added yet, or NONE.
static int cluster_before(const Rebuild *r, int k) {
    const FuseAnalysis *f = r->f;
    for (int i = 0; i < r->members[k].count; i++) {
        const NodeInfo *d = info(f, r->members[k].node[i]);
        for (int j = 0; j < d->num_args; j++) {
            int from = r->c->of[memory_base(f, r->s, d->arg[j])];
            if (from != NONE && from != k && !r->added[from])
                return from;
        }
    }
    return NONE;
}

// After those that it reads from, which are stacked.
static void add_after(Rebuild *r, int k, int *stack) {
    int height = 0;
    stack[height++] = k;
    while (height > 0) {
        int top = stack[height - 1], before;
        if (r->added[top])
            height--;
        else if ((before = cluster_before(r, top)) != NONE)
            stack[height++] = before;
        else
            add_cluster(r, top);
    }
}

// In the order of their last roots; those without one come last.
static void add_clusters(Rebuild *r) {
    const Clusters *c = r->c;
    int *stack = ARENA_ARRAY(r->a, (size_t)c->count + 1, int);
    for (NodeId n = 0; n < r->f->old->count; n++)
        if (c->of[n] != NONE && c->cluster[c->of[n]].priority == n)
            add_after(r, c->of[n], stack);
    for (int k = 0; k < c->count; k++)
        add_after(r, k, stack);
}

static void add_leaves(Rebuild *r) {
    const FuseAnalysis *f = r->f;
    for (NodeId n = 0; n < f->old->count; n++)
        if (is_leaf(f, n))
            r->shared[n] = add_node(r, n, NONE);
    for (NodeId n = 0; n < f->old->count; n++)
        if (is_leaf(f, n))
            add_views(r, n);
}

// Whether launches may be merged: their barrier has the last counter.
static bool any_merged(const Rebuild *r) {
    int count = 0;
    for (int k = 0; k < r->c->count; k++)
        count += r->c->cluster[k].kind != GROUP_CALL &&
                 !group_is_multi_tensor(r->c->cluster[k].kind);
    return count > 1 && r->f->options->level > 0;
}

static void add_counters(Rebuild *r) {
    int64_t counters = any_merged(r);
    for (int k = 0; k < r->c->count; k++)
        counters += workspace_counters(&r->workspace[k]);
    if (counters == 0)
        return;
    r->g->origin = (Origin){0};
    graph_state(r->g, arena_format(r->g->arena, COUNTERS "%s", r->g->name),
                STATE_DERIVED, type_of(I32, 1, &counters), 0);
}

Graph *build_groups(const FuseAnalysis *f, const Stored *s, const Clusters *c,
                    const Members *members, Arena *a) {
    NodeId count = f->old->count;
    Rebuild r = {.f = f,
                 .s = s,
                 .c = c,
                 .a = a,
                 .members = members,
                 .added = ARENA_ARRAY(a, (size_t)c->count + 1, bool),
                 .g = graph_like(f->old),
                 .shared = graph_map_new(f->old, a),
                 .own = ARENA_ARRAY(a, count, NodeId),
                 .owner = ARENA_ARRAY(a, count, int)};
    if (f->options->multiprocessors > 0)
        r.g->multiprocessors = f->options->multiprocessors;
    for (NodeId n = 0; n < count; n++)
        r.owner[n] = NONE;
    r.workspace = find_workspaces(&r);
    add_leaves(&r);
    add_counters(&r);
    add_clusters(&r);
    for (NodeId n = 0; n < count; n++)
        if (info(f, n)->op == OP_output)
            add_node(&r, n, NONE);
    r.g->facts |= GROUPED;
    return r.g;
}
