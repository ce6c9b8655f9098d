// Probe: the value of an expression of a group at a few points.
//
// Two expressions of a few tensors count as the same if they agree at generic
// points.  So a pattern is found in any form that earlier passes give it.

#include "passes/plan/probe.h"

#include "passes/plan/group.h"

#include <math.h>
#include <string.h>

enum { MAX_CONE = 64 }; // nodes of an expression; a longer one is not tried

typedef struct {
    const Graph *g;
    int group;
    const Probe *given;
    int num_given, depth;
    NodeId node[MAX_CONE]; // those that are computed
    double at[MAX_CONE][PROBE_POINTS];
    int count;
} Cone;

static const double *find(const Cone *c, NodeId n) {
    for (int i = 0; i < c->num_given; i++)
        if (c->given[i].node == n)
            return c->given[i].at;
    for (int i = 0; i < c->count; i++)
        if (c->node[i] == n)
            return c->at[i];
    return NULL;
}

static bool eval_constant(const Node *d, double out[PROBE_POINTS]) {
    if (type_count(d->type) != 1)
        return false;
    for (int p = 0; p < PROBE_POINTS; p++)
        out[p] = node_attr(d, ATTR_values)->floats[0];
    return true;
}

static const double *eval(Cone *c, NodeId n);

static bool eval_pointwise(Cone *c, const Node *d, double out[PROBE_POINTS]) {
    static const double none[PROBE_POINTS];
    const double *arg[3] = {none, none, none};
    if (d->group != c->group || !(op_info[d->op].traits & POINTWISE) ||
        d->op == OP_broadcast || d->num_args > 3)
        return false;
    for (int i = 0; i < d->num_args; i++)
        if ((arg[i] = eval(c, d->arg[i])) == NULL)
            return false;
    for (int p = 0; p < PROBE_POINTS; p++)
        out[p] = scalar_eval(d, arg[0][p], arg[1][p], arg[2][p]);
    return true;
}

// Node n and the nodes below it; NULL if they are not pointwise, need a tensor
// that is not given, or are many.
static const double *eval(Cone *c, NodeId n) {
    const Node *d = &c->g->node[n];
    const double *known = find(c, n);
    double value[PROBE_POINTS];
    if (known != NULL)
        return known;
    if (c->depth == MAX_CONE)
        return NULL;
    c->depth++;
    bool done = d->op == OP_constant ? eval_constant(d, value)
                                     : eval_pointwise(c, d, value);
    c->depth--;
    if (!done || c->count == MAX_CONE)
        return NULL;
    c->node[c->count] = n;
    return memcpy(c->at[c->count++], value, sizeof value);
}

bool probe_eval(const Graph *g, int k, NodeId n, const Probe *given, int count,
                double out[PROBE_POINTS]) {
    Cone c;
    c.g = g;
    c.group = k;
    c.given = given;
    c.num_given = count;
    c.depth = c.count = 0;
    const double *value = eval(&c, n);
    if (value == NULL)
        return false;
    memcpy(out, value, PROBE_POINTS * sizeof *out);
    return true;
}

bool probe_equal(const double *a, const double *b) {
    for (int p = 0; p < PROBE_POINTS; p++)
        if (!(fabs(a[p] - b[p]) <= 1e-5 * (fabs(a[p]) + fabs(b[p])) + 1e-12))
            return false;
    return true;
}
