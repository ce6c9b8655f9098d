// Fold batch_norm: folds it into the convolution before it, for evaluation.
//
//   requires   Nothing. Only graphs for evaluation or prediction change, before
//              their composite operations are expanded.
//   preserves  Every output stays the same, up to the rounding of moved
//              factors.
//   result     A convolution's batch_norm becomes a bias, and its factor is
//              multiplied into the weights.
//
// The front end writes batch_norm with running statistics, for each channel, as
// (x - mean) * factor + shift; the pass looks for that after a convolution.

#include "passes/batch_invariant.h"
#include "passes/passes.h"

typedef struct {
    const Graph *old;
    Graph *g;
    uint32_t *uses;
    bool *invariant;
} Fold;

// (conv(x, w) + before - mean) * factor + shift, as nodes of the old graph;
// before may be NO_NODE.
typedef struct {
    NodeId conv, before, mean, factor, shift;
} Scaled;

// Whether n is an invariant number for each channel.
static bool is_channels(const Fold *f, NodeId n, int64_t channels) {
    Type t = *graph_node(f->old, n)->type;
    return f->invariant[n] && t.rank == 1 && t.dim[0] == channels;
}

// The operand of n = a op b that has n's shape, if the other one is a number
// for each channel; NO_NODE if n is another operation, or the operand has other
// users.
static NodeId beside_channels(const Fold *f, NodeId n, Op op,
                              NodeId *channels) {
    const Node *d = graph_node(f->old, n);
    if (d->op != op || d->type->rank != 4)
        return NO_NODE;
    for (int i = op == OP_sub; i < 2; i++)
        if (is_channels(f, d->arg[i], d->type->dim[3]) &&
            !f->invariant[d->arg[1 - i]] && f->uses[d->arg[1 - i]] == 1 &&
            type_has_shape(graph_node(f->old, d->arg[1 - i])->type, d->type)) {
            *channels = d->arg[i];
            return d->arg[1 - i];
        }
    return NO_NODE;
}

static bool find_scaled(const Fold *f, NodeId n, Scaled *s) {
    NodeId product = beside_channels(f, n, OP_add, &s->shift);
    NodeId centred = product == NO_NODE
                         ? NO_NODE
                         : beside_channels(f, product, OP_mul, &s->factor);
    NodeId conv = centred == NO_NODE
                      ? NO_NODE
                      : beside_channels(f, centred, OP_sub, &s->mean);
    if (conv == NO_NODE)
        return false;
    NodeId biased = beside_channels(f, conv, OP_add, &s->before);
    if (biased == NO_NODE)
        s->before = NO_NODE;
    s->conv = biased == NO_NODE ? conv : biased;
    return graph_node(f->old, s->conv)->op == OP_conv &&
           f->invariant[graph_node(f->old, s->conv)->arg[1]];
}

static NodeId fold_one(const Fold *f, const Scaled *s, const NodeId *now) {
    Graph *g = f->g;
    const Node *conv = graph_node(f->old, s->conv);
    NodeId factor = now[s->factor], mean = now[s->mean];
    Origin here = g->origin;
    int64_t filters[] = {conv->type->dim[3], 1, 1, 1};
    g->origin = conv->from;
    NodeId weight = graph_op2(g, OP_mul, now[conv->arg[1]],
                              graph_reshape(g, factor, 4, filters));
    Node folded = *conv;
    folded.arg = (NodeId[]){now[conv->arg[0]], weight};
    NodeId moved, product = graph_add(g, folded);
    g->origin = here;
    if (s->before != NO_NODE)
        mean = graph_op2(g, OP_sub, mean, now[s->before]);
    moved = graph_op2(g, OP_mul, mean, factor);
    return graph_op2(g, OP_add, product,
                     graph_op2(g, OP_sub, now[s->shift], moved));
}

Graph *pass_fold_batch_norm(Graph *g, Arena *scratch, const PassOptions *o) {
    if (!is_evaluation(g) || (g->facts & PRIMITIVE))
        return g;
    Fold f = {.old = g,
              .g = graph_like(g),
              .uses = graph_uses(g, scratch),
              .invariant = find_invariant(g, scratch)};
    NodeId *now = ARENA_ARRAY(scratch, g->count, NodeId);
    for (NodeId n = 0; n < g->count; n++) {
        Scaled s;
        f.g->origin = g->node[n].from;
        now[n] = find_scaled(&f, n, &s) && rewrite_allowed(f.g, o)
                     ? fold_one(&f, &s, now)
                     : graph_copy(f.g, g, n, now);
    }
    return f.g;
}
