// Draws: random numbers of augmentations, one for each sample.  They are
// functions of the seed, the epoch and the sample's index, and other ones for
// every use in a model, so they depend neither on order nor on threads.

#include "frontend/functions/functions.h"

static NodeId uniform(Expansion *e, const Call *c, const char *what,
                      NodeId epoch) {
    const char *name = arena_format(e->arena, "%s.%s", c->path, what);
    NodeId arg[] = {run_node(e, RUN_SEED), epoch, input_node(e, INPUT_INDEX)};
    Attr stream = attr_int(ATTR_stream, stream_of(name));
    return graph_add(e->graph, (Node){.op = OP_uniform,
                                      .num_args = 3,
                                      .arg = arg,
                                      .num_attrs = 1,
                                      .attr = &stream,
                                      .group = -1});
}

NodeId draw_epoch(Expansion *e) {
    NodeId step = run_node(e, RUN_STEP);
    return graph_op2(e->graph, OP_div, step, run_node(e, RUN_EPOCH_STEPS));
}

NodeId draw_share(Expansion *e, const Call *c, const char *what) {
    return uniform(e, c, what, draw_epoch(e));
}

NodeId draw_once(Expansion *e, const Call *c, const char *what) {
    return uniform(e, c, what, whole_node(e, 0));
}

NodeId draw_place(Expansion *e, const Call *c, const char *what,
                  int64_t count) {
    NodeId u = draw_share(e, c, what);
    NodeId place = graph_op1(
        e->graph, OP_floor,
        graph_op2(e->graph, OP_mul, u, number_node(e, (double)count)));
    return graph_cast(e->graph, place, I32);
}

NodeId draw_range(Expansion *e, const Call *c, const char *what, double least,
                  double most) {
    NodeId width = number_node(e, most - least);
    NodeId above = graph_op2(e->graph, OP_mul, draw_share(e, c, what), width);
    return graph_op2(e->graph, OP_add, above, number_node(e, least));
}

NodeId draw_along(Expansion *e, NodeId x, int rank) {
    if (node_type(e, x)->rank == 0)
        return x;
    Type t = {.rank = rank, .dim = {e->recipe.batch}};
    for (int i = 1; i < rank; i++)
        t.dim[i] = 1;
    return graph_reshape(e->graph, x, rank, t.dim);
}
