// Random numbers, one for each element of a tensor, or in augmentations one for
// each sample.  They are functions of the seed, an epoch and the number of the
// element or sample, with a stream for each use, so they depend neither on
// order nor on threads.

#include "frontend/functions/functions.h"

#include <math.h>

static NodeId uniform(Graph *g, const char *name, RandomSource d,
                      NodeId counter) {
    Attr attr[] = {attr_int(ATTR_stream, stream_of(name)),
                   attr_int(ATTR_words, d.words)};
    return graph_add(g, (Node){.op = OP_uniform,
                               .num_args = 3,
                               .arg = (NodeId[]){d.seed, d.epoch, counter},
                               .num_attrs = d.words == 1 ? 1 : 2,
                               .attr = attr,
                               .group = -1});
}

NodeId rand_uniform(Graph *g, const char *name, RandomSource d, Type t) {
    int64_t count = type_count(&t);
    NodeId counter = graph_iota(g, type_of(I32, 1, &count), 0);
    NodeId u = uniform(g, name, d, counter);
    return graph_reshape(g, u, t.rank, t.dim);
}

// Box-Muller: sqrt(-2 log u) cos(2 pi v), u above 0.
NodeId rand_normal(Graph *g, const char *name, RandomSource d, Type t) {
    NodeId u = rand_uniform(g, name, d, t);
    u = graph_op2(g, OP_sub, graph_number(g, 1), u);
    NodeId factor = graph_number(g, -2);
    NodeId square = graph_op2(g, OP_mul, factor, graph_op1(g, OP_log, u));
    NodeId radius = graph_op1(g, OP_sqrt, square);
    NodeId full_turn = graph_number(g, 2 * acos(-1));
    name = arena_format(g->arena, "%s/angle", name);
    NodeId v = rand_uniform(g, name, d, t);
    NodeId angle = graph_op2(g, OP_mul, full_turn, v);
    return graph_op2(g, OP_mul, radius, graph_op1(g, OP_cos, angle));
}

static NodeId sample_uniform(Expansion *e, const Call *c, const char *use,
                             NodeId epoch) {
    const char *name = arena_format(e->arena, "%s.%s", c->path, use);
    RandomSource d = {run_node(e, RUN_SEED), epoch, 1};
    return uniform(e->graph, name, d, input_node(e, INPUT_INDEX));
}

NodeId rand_epoch(Expansion *e) {
    NodeId step = run_node(e, RUN_STEP);
    return graph_op2(e->graph, OP_div, step, run_node(e, RUN_EPOCH_STEPS));
}

NodeId rand_fraction(Expansion *e, const Call *c, const char *use) {
    return sample_uniform(e, c, use, rand_epoch(e));
}

NodeId rand_fraction_once(Expansion *e, const Call *c, const char *use) {
    return sample_uniform(e, c, use, int_node(e, 0));
}

NodeId rand_index(Expansion *e, const Call *c, const char *use, int64_t count) {
    NodeId u = rand_fraction(e, c, use);
    NodeId counter = graph_op1(
        e->graph, OP_floor,
        graph_op2(e->graph, OP_mul, u, number_node(e, (double)count)));
    return graph_cast(e->graph, counter, I32);
}

NodeId rand_range(Expansion *e, const Call *c, const char *use, double least,
                  double most) {
    NodeId width = number_node(e, most - least);
    NodeId above = graph_op2(e->graph, OP_mul, rand_fraction(e, c, use), width);
    return graph_op2(e->graph, OP_add, above, number_node(e, least));
}

NodeId rand_broadcast(Expansion *e, NodeId x, int rank) {
    if (node_type(e, x)->rank == 0)
        return x;
    Type t = {.rank = rank, .dim = {e->recipe.batch}};
    for (int i = 1; i < rank; i++)
        t.dim[i] = 1;
    return graph_reshape(e->graph, x, rank, t.dim);
}
