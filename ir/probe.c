// Probe: what an expression of a group comes to, at a few points.
//
// Two expressions of a few tensors are taken to be the same when they agree at
// points that nothing singles out.  So a pattern is found however earlier
// passes have written it.

#include "ir/probe.h"

#include "ir/group.h"

#include <math.h>
#include <string.h>

enum { MAX_CONE = 64 }; // nodes of an expression; a longer one is not tried

typedef struct {
    const Graph *g;
    int group;
    const Probe *given;
    int num_given;
    Graph *cone; // the expression, with a row of points for each tensor
    NodeId from[MAX_CONE], to[MAX_CONE];
    double *leaf[MAX_CONE]; // of the cone's nodes
    int count;
} Cone;

static NodeId find(const Cone *c, NodeId n) {
    for (int i = 0; i < c->count; i++)
        if (c->from[i] == n)
            return c->to[i];
    return NO_NODE;
}

static NodeId add_given(Cone *c, NodeId n) {
    int64_t dim[1] = {PROBE_POINTS};
    Type type = type_of(c->g->node[n].type.dtype, 1, dim);
    Arena *a = c->cone->arena;
    for (int i = 0; i < c->num_given; i++) {
        if (c->given[i].node != n)
            continue;
        NodeId leaf =
            graph_leaf(c->cone, OP_input, arena_format(a, "%u", n), type);
        c->leaf[leaf] = ARENA_ARRAY(a, PROBE_POINTS, double);
        memcpy(c->leaf[leaf], c->given[i].at, sizeof c->given[i].at);
        return leaf;
    }
    return NO_NODE;
}

static NodeId add_constant(Cone *c, const Node *d) {
    if (type_count(d->type) != 1)
        return NO_NODE;
    return graph_constant(c->cone, type_scalar(d->type.dtype),
                          node_attr(d, ATTR_values)->floats[0]);
}

static NodeId add(Cone *c, NodeId n);

static NodeId add_pointwise(Cone *c, const Node *d) {
    NodeId arg[4];
    if (d->group != c->group || !(op_info[d->op].facts & POINTWISE) ||
        d->op == OP_broadcast || d->num_args > 4)
        return NO_NODE;
    for (int i = 0; i < d->num_args; i++)
        if ((arg[i] = add(c, d->arg[i])) == NO_NODE)
            return NO_NODE;
    Node copy = *d;
    copy.arg = arg;
    copy.group = -1;
    return graph_add(c->cone, copy);
}

// Adds node n and what it is computed from; NO_NODE when that is not pointwise
// or needs a tensor that is not given.
static NodeId add(Cone *c, NodeId n) {
    const Node *d = &c->g->node[n];
    NodeId to = find(c, n);
    if (to != NO_NODE || c->cone->count == MAX_CONE)
        return to;
    to = add_given(c, n);
    if (to == NO_NODE)
        to = d->op == OP_constant ? add_constant(c, d) : add_pointwise(c, d);
    if (to != NO_NODE && c->count < MAX_CONE) {
        c->from[c->count] = n;
        c->to[c->count++] = to;
    }
    return to;
}

bool probe_eval(const Graph *g, int k, NodeId n, const Probe *given, int count,
                double out[PROBE_POINTS]) {
    Arena *a = arena_new();
    Cone c = {g, k, given, count, graph_new(a, "probe"), {0}, {0}, {0}, 0};
    NodeId to = add(&c, n);
    if (to != NO_NODE) {
        double **value = graph_eval(c.cone, a, c.leaf, false);
        bool one = type_count(c.cone->node[to].type) == 1;
        for (int p = 0; p < PROBE_POINTS; p++)
            out[p] = value[to][one ? 0 : p];
    }
    arena_free(a);
    return to != NO_NODE;
}

bool probe_equal(const double *a, const double *b) {
    for (int p = 0; p < PROBE_POINTS; p++)
        if (!(fabs(a[p] - b[p]) <= 1e-5 * (fabs(a[p]) + fabs(b[p])) + 1e-12))
            return false;
    return true;
}
