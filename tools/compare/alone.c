// Alone: a kernel judged by what it really read.
//
// The part of the graph that it computes is evaluated in double from the
// tensors that were in memory.  So a difference that came in with its operands,
// as where a rounding decides which side of a relu a number falls on, is not
// taken for a mistake of this kernel.
#include "tools/compare/alone.h"

#include "ir/error.h"
#include "ir/group.h"

#include <math.h>
#include <stdio.h>

typedef struct {
    const Snapshot *s;
    const Graph *g;
    Graph *cut;
    int group;     // of the kernel
    NodeId *now;   // where nodes of g are in cut
    double **leaf; // of cut
    bool missing;  // something that was not seen
} Cut;

static bool is_leaf(const Node *d) {
    return op_info[d->op].facts & LEAF;
}

// What another kernel, or nobody in this step, has left there.
static const double *seen_of(const Cut *c, NodeId n) {
    const Node *d = &c->g->node[n];
    return is_leaf(d) ? c->s->before[n] : c->s->found[n];
}

static bool is_input(const Cut *c, NodeId n) {
    const Node *d = &c->g->node[n];
    return is_leaf(d) ? !node_immediate(d)
                      : d->group >= 0 && d->group != c->group;
}

// A constant and a view are computed again.
static NodeId cut_node(Cut *c, NodeId n) {
    const Node *d = &c->g->node[n];
    if (c->now[n] != NO_NODE)
        return c->now[n];
    bool input = is_input(c, n);
    for (int i = 0; i < d->num_args && !input; i++)
        cut_node(c, d->arg[i]);
    if (input && !is_leaf(d)) {
        char name[24];
        snprintf(name, sizeof name, "stored %u", n);
        c->now[n] = graph_leaf(c->cut, OP_input, name, *d->type);
    } else {
        c->now[n] = graph_copy(c->cut, c->g, n, c->now);
    }
    if (input) {
        c->leaf[c->now[n]] = (double *)seen_of(c, n);
        c->missing |= d->op != OP_scratch && seen_of(c, n) == NULL;
    }
    return c->now[n];
}

// The agreement test of kernels has the same bound.
static bool is_near(const Graph *g, NodeId n, const double *right,
                    const double *rough, const double *found, double terms) {
    Type t = *g->node[n].type;
    int64_t count = type_count(&t);
    DType d = t.dtype == ACT ? g->act : F32;
    double root = sqrt((double)count);
    double error = error_rms(found, right, count) * root;
    if (!dtype_float(t.dtype))
        return error == 0;
    return error <= (error_alone(d) * error_size(right, count) +
                     3 * error_rms(rough, right, count)) *
                            root +
                        1e-6 * terms + 1e-30;
}

// The part of the graph that makes n; *at is where n is in it.
static Cut cut_new(Arena *a, const Snapshot *s, NodeId n, NodeId *at) {
    const Graph *g = s->step->graph;
    Cut c = {.s = s,
             .g = g,
             .cut = graph_new(a, g->name),
             .group = g->node[n].group,
             .now = ARENA_ARRAY(a, (size_t)g->count + 1, NodeId),
             .leaf = ARENA_ARRAY(a, (size_t)g->count + 1, double *)};
    for (NodeId i = 0; i < g->count; i++)
        c.now[i] = NO_NODE;
    c.cut->act = g->act;
    *at = cut_node(&c, n);
    return c;
}

const double *node_meant(Arena *a, const Snapshot *s, NodeId n) {
    NodeId at;
    Cut c = cut_new(a, s, n, &at);
    bool *kept = ARENA_ARRAY(a, (size_t)c.cut->count + 1, bool);
    kept[at] = true;
    return c.missing ? NULL : graph_eval_kept(c.cut, a, c.leaf, kept)[at];
}

Alone node_alone(const Snapshot *s, NodeId n) {
    const Graph *g = s->step->graph;
    const Node *d = &g->node[n];
    const double *found =
        d->op == OP_assign ? s->after[d->arg[0]] : s->found[n];
    NodeId at;
    Alone alone = ALONE_UNKNOWN;
    Arena *a = arena_new();
    Cut c = cut_new(a, s, n, &at);
    if (!c.missing && found != NULL) {
        double **right = graph_eval(c.cut, a, c.leaf, false);
        c.cut->act = F32;
        double **rough = graph_eval(c.cut, a, c.leaf, true);
        c.cut->act = g->act;
        alone = is_near(c.cut, at, right[at], rough[at], found,
                        error_terms(c.cut, at, right))
                    ? ALONE_RIGHT
                    : ALONE_WRONG;
    }
    arena_free(a);
    return alone;
}
