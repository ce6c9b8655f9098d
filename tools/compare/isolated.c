// Isolated: evaluates a kernel in double on its recorded inputs.
//
// An error of the inputs, such as a rounding that changes the branch of a ReLU,
// is therefore not an error of this kernel.
//
// A launch is evaluated once for all its results: the update has the norm of
// all gradients before each parameter.  An error above that of rounding each
// operation to nearest is compared with random roundings, since a few numbers
// may all be right by luck.
#include "tools/compare/isolated.h"

#include "ir/noise.h"
#include "ir/tolerance.h"
#include "passes/plan/group.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct IsolatedReplay {
    const Snapshot *s;
    Isolated *of; // of each node
    bool *judged; // of each group: its launch was evaluated
};

typedef struct {
    Arena *a;
    const Snapshot *s;
    const Graph *g;
    Graph *cut;
    int group;         // of the kernel
    NodeId *now, *was; // node of cut for each node of g, and the reverse
    double **leaf;     // of cut
    bool *unknown;     // of cut: depends on a tensor that is not recorded
    bool infinite;     // an input of the kernel is not finite
    DType act;         // that roundings of activations within the kernel have
} Cut;

static bool is_leaf(const Node *d) {
    return op_info[d->op].traits & LEAF;
}

// The recorded value that another kernel, or an earlier step, has stored.
static double *seen_of(const Cut *c, NodeId n) {
    bool leaf = is_leaf(&c->g->node[n]);
    return snapshot_numbers(c->a, c->s, n,
                            leaf ? c->s->before[n] : c->s->found[n]);
}

// A tile kernel also computes nodes of other groups, which it does not store.
static bool is_input(const Cut *c, NodeId n) {
    const Node *d = &c->g->node[n];
    if (is_leaf(d))
        return !node_immediate(d);
    return d->group >= 0 && d->group != c->group &&
           (c->s->found[n] != NULL ||
            !tile_replaces(&c->s->step->plan->tiles, d->group));
}

static NodeId input_add(Cut *c, NodeId n) {
    const Node *d = &c->g->node[n];
    char name[24];
    snprintf(name, sizeof name, "stored %u", n);
    NodeId at = is_leaf(d) ? graph_copy(c->cut, c->g, n, c->now)
                           : graph_leaf(c->cut, OP_input, name, *d->type);
    c->leaf[at] = seen_of(c, n);
    c->unknown[at] = d->op != OP_workspace && c->leaf[at] == NULL;
    if (c->leaf[at] != NULL)
        c->infinite |= !numbers_finite(c->leaf[at], type_count(d->type));
    return at;
}

// Adds a node; constants and views are recomputed.
static NodeId node_add(Cut *c, NodeId n) {
    const Node *d = &c->g->node[n];
    bool unknown = false;
    for (int i = 0; i < d->num_args; i++)
        unknown |= c->unknown[c->now[d->arg[i]]];
    NodeId at = graph_copy(c->cut, c->g, n, c->now);
    c->unknown[at] |= unknown;
    return at;
}

static NodeId cut_node(Cut *c, NodeId n) {
    const Node *d = &c->g->node[n];
    if (c->now[n] != NO_NODE)
        return c->now[n];
    bool input = is_input(c, n);
    for (int i = 0; i < d->num_args && !input; i++)
        cut_node(c, d->arg[i]);
    c->now[n] = input ? input_add(c, n) : node_add(c, n);
    c->was[c->now[n]] = n;
    return c->now[n];
}

// An empty cut for the nodes of a group.  A tile kernel rounds the operands of
// products.
static Cut cut_new(Arena *a, const Snapshot *s, int group) {
    const Graph *g = s->step->graph;
    size_t count = (size_t)g->count + 1;
    Cut c = {.a = a,
             .s = s,
             .g = g,
             .cut = graph_new(a, g->name),
             .group = group,
             .act = tile_replaces(&s->step->plan->tiles, group) ? g->act : F32,
             .now = ARENA_ARRAY(a, count, NodeId),
             .was = ARENA_ARRAY(a, count, NodeId),
             .leaf = ARENA_ARRAY(a, count, double *),
             .unknown = ARENA_ARRAY(a, count, bool)};
    for (NodeId i = 0; i < g->count; i++)
        c.now[i] = NO_NODE;
    c.cut->act = g->act;
    return c;
}

const double *node_meant(Arena *a, const Snapshot *s, NodeId n) {
    Cut c = cut_new(a, s, s->step->graph->node[n].group);
    NodeId at = cut_node(&c, n);
    bool *kept = ARENA_ARRAY(a, (size_t)c.cut->count + 1, bool);
    kept[at] = true;
    return c.unknown[at] ? NULL : graph_eval_kept(c.cut, a, c.leaf, kept)[at];
}

// ---- a launch ----

typedef struct {
    Cut cut;
    IsolatedReplay *all;
    double **right; // of cut
    double *terms;
} Launch;

static const void *left_of(const Snapshot *s, NodeId n) {
    const Node *d = &s->step->graph->node[n];
    return d->op == OP_assign ? s->after[d->arg[0]] : s->found[n];
}

// The products of a sum in a contraction; 1 for other nodes.
static double products_of(const Graph *g, NodeId n) {
    const Node *d = &g->node[n];
    if (!(op_info[d->op].traits & CONTRACTS) || type_count(d->type) == 0)
        return 1;
    const Type *a = g->node[d->arg[0]].type, *b = g->node[d->arg[1]].type;
    switch (d->op) {
    case OP_conv: // weights [K,R,S,C]: of an output
        return (double)type_count(b) / (double)b->dim[0];
    case OP_conv_grad_input:
        return (double)type_count(b) / (double)b->dim[3];
    case OP_conv_grad_weight: // gradients [N,OH,OW,K]: of a channel
        return (double)type_count(a) / (double)a->dim[3];
    default:
        return (double)a->dim[a->rank - (node_int(d, ATTR_ta, 0) ? 2 : 1)];
    }
}

// The error of a library's sum, relative to the sizes of its terms: that of
// some hundred terms or, of n, sqrt(n) roundings (Higham and Mary, "A New
// Approach to Probabilistic Rounding Error Analysis", 2019).
static double sum_error(const Graph *g, NodeId n) {
    return fmax(1e-6, 0x1p-24 * sqrt(products_of(g, n)));
}

static void right_keep(void *whose, NodeId at, double *const *value) {
    Launch *l = whose;
    const Graph *cut = l->cut.cut;
    size_t count = (size_t)type_count(cut->node[at].type);
    l->right[at] = ARENA_UNINIT(l->cut.a, count + 1, double);
    memcpy(l->right[at], value[at], count * sizeof *value[at]);
    l->terms[at] = sum_error(cut, at) * error_terms(cut, at, value);
}

static int64_t count_others(const double *x, const double *y, int64_t count) {
    int64_t others = 0;
    for (int64_t i = 0; i < count; i++)
        others += x[i] != y[i];
    return others;
}

static int64_t count_all(const Graph *g) {
    int64_t count = 0;
    for (NodeId n = 0; n < g->count; n++)
        count += type_count(g->node[n].type);
    return count;
}

// The largest error of node n with random f32 roundings of its operands; among
// many numbers, some are unlucky in any case.
static double roundings_at_random(const Snapshot *s, NodeId n) {
    enum { SAMPLES = 4, MAX_NUMBERS = 1 << 22 };
    Arena *a = arena_new();
    const Node *d = &s->step->graph->node[n];
    Cut c = cut_new(a, s, d->group);
    NodeId at = cut_node(&c, n);
    bool few = count_all(c.cut) <= MAX_NUMBERS;
    c.cut->act = c.act;
    double most = 0;
    double **right = few ? graph_eval(c.cut, a, c.leaf, false) : NULL;
    for (uint32_t k = 0; few && k < SAMPLES; k++) {
        double **off = noise_eval(c.cut, a, c.leaf, right, false, k);
        int64_t count = type_count(d->type);
        double error =
            error_norms(F32, count, right[at], off[at], off[at]).rounding;
        if (isfinite(error) && error > most)
            most = error;
    }
    arena_free(a);
    return most;
}

// The agreement test of kernels has the same bound, with rounding to nearest.
static bool is_within(DType stored, int64_t count, const ErrorNorms *norm,
                      double terms) {
    double least = error_underflow(stored) * sqrt((double)count);
    return norm->error <= error_alone(stored) * norm->size +
                              3 * norm->rounding + terms + least + 1e-30;
}

// A zero of the padding times an infinity is NaN, so only finite results of a
// kernel are compared.
static void infinite_settle(double *found, const double *right, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(found[i]))
            found[i] = right[i];
}

static bool is_near(const Launch *l, NodeId at, const double *rough,
                    const double *found) {
    const Cut *c = &l->cut;
    const Type *t = c->cut->node[at].type;
    const double *right = l->right[at];
    DType stored = t->dtype == ACT ? c->g->act : F32;
    int64_t count = type_count(t);
    if (!dtype_float(t->dtype))
        return count_others(found, right, count) <=
               error_indices(count, c->g->act);
    ErrorNorms norm = error_norms(stored, count, right, rough, found);
    if (is_within(stored, count, &norm, l->terms[at]))
        return true;
    norm.rounding = fmax(norm.rounding, roundings_at_random(c->s, c->was[at]));
    return is_within(stored, count, &norm, l->terms[at]);
}

static void node_judge(void *whose, NodeId at, double *const *rough) {
    Launch *l = whose;
    const Cut *c = &l->cut;
    NodeId n = c->was[at];
    Arena *a = arena_new();
    double *found = snapshot_numbers(a, c->s, n, left_of(c->s, n));
    if (c->infinite)
        infinite_settle(found, l->right[at], type_count(c->cut->node[at].type));
    bool near = is_near(l, at, rough[at], found);
    l->all->of[n] = near ? ISOLATED_RIGHT : ISOLATED_WRONG;
    arena_free(a);
}

// Evaluates the launch twice: in double, and with each operation rounded.
static void launch_judge(IsolatedReplay *all, int group) {
    Arena *a = arena_new();
    Launch l = {.cut = cut_new(a, all->s, group), .all = all};
    Cut *c = &l.cut;
    bool *wanted = ARENA_ARRAY(a, (size_t)c->g->count + 1, bool);
    for (NodeId n = 0; n < c->g->count; n++)
        if (c->g->node[n].group == group && left_of(c->s, n) != NULL) {
            NodeId at = cut_node(c, n);
            wanted[at] = !c->unknown[at];
        }
    l.right = ARENA_ARRAY(a, (size_t)c->cut->count + 1, double *);
    l.terms = ARENA_ARRAY(a, (size_t)c->cut->count + 1, double);
    graph_eval_visit(c->cut, c->leaf, false, wanted, right_keep, &l);
    c->cut->act = c->act;
    graph_eval_visit(c->cut, c->leaf, true, wanted, node_judge, &l);
    arena_free(a);
}

Isolated isolated_replay(IsolatedReplay *all, NodeId n) {
    int group = all->s->step->graph->node[n].group;
    if (!all->judged[group])
        launch_judge(all, group);
    all->judged[group] = true;
    return all->of[n];
}

IsolatedReplay *isolated_replay_new(Arena *a, const Snapshot *s) {
    size_t count = (size_t)s->step->graph->count + 1;
    IsolatedReplay *all = ARENA_NEW(a, IsolatedReplay);
    *all = (IsolatedReplay){.s = s,
                            .of = ARENA_ARRAY(a, count, Isolated),
                            .judged = ARENA_ARRAY(a, count, bool)};
    return all;
}
