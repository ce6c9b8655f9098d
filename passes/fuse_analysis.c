// Analysis: properties of the old graph that the stages of fuse read, found
// once.

#include "passes/fuse.h"

#include <assert.h>

// Shapes by their numbers: a hash of nodes that are the first of theirs.
typedef struct {
    const Graph *g;
    NodeInfo *info;
    NodeId *slot; // from 1; 0 is free
    uint32_t mask;
    int count;
} Shapes;

static Shapes shapes_new(const Graph *g, NodeInfo *info, Arena *scratch) {
    uint32_t size = 64;
    while (size < 2 * g->count)
        size *= 2;
    return (Shapes){g, info, ARENA_ARRAY(scratch, size, NodeId), size - 1, 0};
}

// The number of n's shape, which is that of an earlier node or a new one.
static int shape_number(Shapes *s, NodeId n) {
    const Type *t = s->g->node[n].type;
    uint64_t hash = (uint64_t)t->rank;
    for (int i = 0; i < t->rank; i++)
        hash = (hash ^ (uint64_t)t->dim[i]) * UINT64_C(0x9E3779B97F4A7C15);
    uint32_t at = (uint32_t)(hash >> 32) & s->mask;
    for (; s->slot[at] != 0; at = (at + 1) & s->mask)
        if (type_has_shape(s->g->node[s->slot[at] - 1].type, t))
            return s->info[s->slot[at] - 1].shape;
    s->slot[at] = n + 1;
    return s->count++;
}

static ReductionKind kind_of_reduction(const Graph *g, NodeId n) {
    unsigned traits = op_info[g->node[n].op].traits;
    if (!(traits & REDUCES) || (traits & REDUCES_ALL))
        return OTHER_REDUCTION;
    ReductionKind reduction = reduction_kind(g, n);
    assert(reduction != OTHER_REDUCTION); // graph_legalize leaves none
    return reduction;
}

// A value of the batch has rows where the batch is 1 too: the kernels of a loop
// over positions may read nothing larger, so that it costs what others cost.
static bool has_rows(const Type *t, bool batched) {
    if (t->rank == 0 || type_count(t) == t->dim[t->rank - 1])
        return batched && t->rank > 1;
    return true;
}

static const NodeInfo *find_info(const Graph *g, const bool *batched,
                                 Arena *scratch) {
    NodeInfo *info = ARENA_ARRAY(scratch, g->count, NodeInfo);
    Shapes shapes = shapes_new(g, info, scratch);
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        info[n] = (NodeInfo){.arg = d->arg,
                             .count = type_count(d->type),
                             .num_args = d->num_args,
                             .op = d->op,
                             .traits = op_info[d->op].traits,
                             .shape = shape_number(&shapes, n),
                             .pool = disjoint_pool_grad(g, n),
                             .immediate = node_immediate(d),
                             .small = !has_rows(d->type, batched[n]),
                             .reduction = (uint8_t)kind_of_reduction(g, n)};
    }
    return info;
}

// Operands of row reductions, as of layer_norm or softmax: never stored as ACT.
static bool *find_in_rows(const FuseAnalysis *f, Arena *a) {
    bool *in_rows = ARENA_ARRAY(a, f->old->count, bool);
    for (NodeId n = f->old->count; n-- > 0;) {
        bool same = (traits(f, n) & (POINTWISE | VIEW | INDEXES)) && in_rows[n];
        for (int i = 0; i < info(f, n)->num_args; i++)
            in_rows[info(f, n)->arg[i]] |= same || reduces_rows(f, n);
    }
    return in_rows;
}

// A slice of a library's result is read where it lies.
static bool is_piece(const FuseAnalysis *f, NodeId n) {
    if (info(f, n)->op != OP_slice)
        return false;
    return (traits(f, base_of(f, info(f, n)->arg[0])) & CALLS) &&
           count_of(f, n) > 1;
}

static bool is_in_place(const FuseAnalysis *f, NodeId n) {
    if (is_piece(f, n))
        return true;
    if (!(traits(f, n) & (POINTWISE | VIEW)))
        return false;
    for (int i = 0; i < info(f, n)->num_args; i++) {
        int64_t count = count_of(f, info(f, n)->arg[i]);
        if (count != count_of(f, n) && count != 1)
            return false;
    }
    return true;
}

static bool *find_elementwise(const FuseAnalysis *f, Arena *a) {
    bool *elementwise = ARENA_ARRAY(a, f->old->count, bool);
    for (NodeId n = 0; n < f->old->count; n++)
        elementwise[n] = is_in_place(f, n);
    return elementwise;
}

// Whether n assigns a derived state.  Nothing in the update reads one, and the
// elements that a pad leaves out stay 0.
static bool assigns_derived(const FuseAnalysis *f, NodeId n) {
    return info(f, n)->op == OP_assign &&
           state_is(at(f, info(f, n)->arg[0]), STATE_DERIVED);
}

static bool *find_padded_stores(const FuseAnalysis *f, Arena *a) {
    bool *otherwise = ARENA_ARRAY(a, f->old->count, bool);
    for (NodeId n = 0; n < f->old->count; n++)
        for (int i = 0; i < info(f, n)->num_args; i++)
            otherwise[info(f, n)->arg[i]] |= !assigns_derived(f, n);
    for (NodeId n = 0; n < f->old->count; n++)
        otherwise[n] = info(f, n)->op == OP_pad && !otherwise[n];
    return otherwise;
}

FuseAnalysis fuse_analyze(const Graph *g, Arena *a, const PassOptions *o) {
    const bool *batched = graph_batched(g, a);
    FuseAnalysis f = {.old = g,
                      .options = o,
                      .info = find_info(g, batched, a),
                      .users = graph_users(g, a),
                      .batched = batched,
                      .fusible = ARENA_ARRAY(a, g->count, Fusible)};
    f.in_rows = find_in_rows(&f, a);
    f.elementwise = find_elementwise(&f, a);
    f.padded_store = find_padded_stores(&f, a);
    return f;
}
