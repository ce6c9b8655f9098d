// Inplace: a library call adds its result to a tensor in memory.
//
//   requires   Nodes have groups.
//   preserves  Every value stays the same, up to one rounding: the sum is
//              computed in f32 and rounded once, where the call's own term was
//              rounded before.
//   result     The data gradient of a convolution adds to the other term of a
//              sum and replaces it in memory, if nothing reads that term
//              afterwards.
//
// So the call reads the gradient of a residual once, instead of each kernel
// that would add to it.

#include "passes/passes.h"
#include "passes/plan/group.h"

#include <string.h>

enum { NONE = -1 };

typedef struct {
    const Graph *old;
    Graph *g;
    Arena *scratch;
    Group *group;
    int count;
    const int *owner; // of each node: index of its group, or NONE
    Users users;
    NodeId *into;   // of a call: the tensor that it adds to
    NodeId *sum_of; // of a sum: the call
    bool *added_to; // a call adds to the tensor
    int *seen;      // of each group: the last search that met it
    int searches;
    NodeId *now;
} Inplace;

static void find_groups(Inplace *p) {
    p->group = graph_groups(p->old, p->scratch, &p->count);
    p->owner = group_owners(p->old, p->group, p->count, p->scratch);
    p->seen = ARENA_ARRAY(p->scratch, (size_t)p->count + 1, int);
}

// Whether group k depends on group `before`, also by way of other groups.
// Groups are in an order in which none reads from a later one.
static bool follows(Inplace *p, int k, int before) {
    if (k == before || p->seen[k] == p->searches || k < before)
        return k == before;
    p->seen[k] = p->searches;
    for (int i = 0; i < p->group[k].num_inputs; i++) {
        int from = p->owner[p->group[k].input[i]];
        if (from >= before && follows(p, from, before))
            return true;
    }
    return false;
}

// Casts between floats do nothing within a kernel.
static bool is_cast(const Inplace *p, NodeId n) {
    const Node *d = graph_node(p->old, n);
    return d->op == OP_cast && p->owner[n] != NONE &&
           dtype_float(d->type->dtype) &&
           dtype_float(graph_node(p->old, d->arg[0])->type->dtype);
}

// Operand i of a sum, through such casts of its kernel.
static NodeId addend_of(const Inplace *p, NodeId sum, int i) {
    NodeId n = graph_node(p->old, sum)->arg[i];
    while (is_cast(p, n) && p->owner[n] == p->owner[sum])
        n = graph_node(p->old, n)->arg[0];
    return n;
}

// The other addend of a kernel's sum of n, or NO_NODE.
static NodeId other_addend(const Inplace *p, NodeId sum, NodeId n) {
    if (graph_node(p->old, sum)->op != OP_add || p->owner[sum] == NONE)
        return NO_NODE;
    NodeId addend[2] = {addend_of(p, sum, 0), addend_of(p, sum, 1)};
    if (addend[0] == addend[1] || (addend[0] != n && addend[1] != n))
        return NO_NODE;
    NodeId other = addend[addend[0] == n];
    bool alike =
        type_is(graph_node(p->old, other)->type, graph_node(p->old, n)->type) &&
        type_has_shape(graph_node(p->old, sum)->type,
                       graph_node(p->old, n)->type);
    return alike ? other : NO_NODE;
}

// The tensor that every user of the call, also through its cast n, adds to it;
// NO_NODE if they do not all add the same.
static NodeId common_addend(const Inplace *p, NodeId n, NodeId call) {
    NodeId addend = NO_NODE;
    for (int e = p->users.first[n]; e != NONE; e = p->users.next[e]) {
        NodeId user = p->users.user[e];
        NodeId other = is_cast(p, user) ? common_addend(p, user, call)
                                        : other_addend(p, user, call);
        if (other == NO_NODE || (addend != NO_NODE && other != addend))
            return NO_NODE;
        addend = other;
    }
    return addend;
}

// Whether all that uses `addend`, also through the cast n of it, is a sum with
// the call, or done when the call begins.
static bool dies_there(Inplace *p, NodeId n, NodeId addend, NodeId call) {
    for (int e = p->users.first[n]; e != NONE; e = p->users.next[e]) {
        NodeId user = p->users.user[e];
        int k = p->owner[user];
        if (other_addend(p, user, addend) == call ||
            (is_cast(p, user) && dies_there(p, user, addend, call)))
            continue;
        p->searches++;
        if (k == NONE || k == p->owner[call] || !follows(p, p->owner[call], k))
            return false;
    }
    return true;
}

static void note_sums(Inplace *p, NodeId n, NodeId call) {
    for (int e = p->users.first[n]; e != NONE; e = p->users.next[e])
        if (is_cast(p, p->users.user[e]))
            note_sums(p, p->users.user[e], call);
        else
            p->sum_of[p->users.user[e]] = call;
}

static void find_sums(Inplace *p, NodeId call, const PassOptions *o) {
    NodeId addend = common_addend(p, call, call);
    if (addend == NO_NODE || addend > call || p->owner[addend] == NONE ||
        p->owner[addend] == p->owner[call] ||
        !dies_there(p, addend, addend, call) || !rewrite_allowed(p->g, o))
        return;
    p->into[call] = addend;
    p->added_to[addend] = true;
    note_sums(p, call, call);
}

static NodeId rewrite_call(Inplace *p, NodeId n) {
    Node d = *graph_node(p->old, n);
    Attr *attr = ARENA_ARRAY(p->scratch, (size_t)d.num_attrs + 1, Attr);
    NodeId arg[3] = {p->now[d.arg[0]], p->now[d.arg[1]], p->now[p->into[n]]};
    attr[0] = attr_int(ATTR_accumulate, 1);
    memcpy(attr + 1, d.attr, (size_t)d.num_attrs * sizeof *attr);
    d.attr = attr;
    d.num_attrs++;
    d.arg = arg;
    d.num_args = 3;
    p->g->origin = d.from;
    return graph_add(p->g, d);
}

// A sum becomes the result of the call.
static NodeId rewrite_sum(Inplace *p, NodeId n) {
    const Node *d = graph_node(p->old, n);
    NodeId left = p->now[p->sum_of[n]];
    if (type_is(d->type, p->g->node[left].type))
        return left;
    p->g->origin = d->from;
    return graph_add(p->g, (Node){.op = OP_cast,
                                  .type = d->type,
                                  .num_args = 1,
                                  .arg = &left,
                                  .group = d->group,
                                  .why = d->why});
}

// Whether n is a cast whose only users are sums that calls compute, and none
// adds to it.
static bool is_dead_cast(const Inplace *p, NodeId n) {
    bool dead = is_cast(p, n) && p->users.first[n] != NONE && !p->added_to[n];
    for (int e = p->users.first[n]; e != NONE && dead; e = p->users.next[e])
        dead = p->sum_of[p->users.user[e]] != NO_NODE ||
               is_dead_cast(p, p->users.user[e]);
    return dead;
}

static NodeId rewrite(Inplace *p, NodeId n) {
    if (p->sum_of[n] != NO_NODE)
        return rewrite_sum(p, n);
    if (p->into[n] != NO_NODE)
        return rewrite_call(p, n);
    return is_dead_cast(p, n) ? NO_NODE : graph_copy(p->g, p->old, n, p->now);
}

Graph *pass_inplace(Graph *g, Arena *scratch, const PassOptions *o) {
    if (o->level == 0)
        return g;
    Inplace p = {.old = g,
                 .g = graph_like(g),
                 .scratch = scratch,
                 .users = graph_users(g, scratch),
                 .into = graph_map_new(g, scratch),
                 .sum_of = graph_map_new(g, scratch),
                 .added_to = ARENA_ARRAY(scratch, g->count, bool),
                 .now = ARENA_ARRAY(scratch, g->count, NodeId)};
    find_groups(&p);
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_conv_grad_input && g->node[n].num_args == 2)
            find_sums(&p, n, o);
    for (NodeId n = 0; n < g->count; n++)
        p.now[n] = rewrite(&p, n);
    return p.g;
}
