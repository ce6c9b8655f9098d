// noise: standard normal numbers of a tensor's shape, new in each batch of
// training.  Evaluation has none, or on request the same for a sample each
// time.

#include "frontend/functions/functions.h"

// The counter of a batch; in an evaluation the index of its first sample.
static NodeId batch_counter(Expansion *e) {
    if (e->training)
        return batch_node(e);
    NodeId index = input_node(e, INPUT_INDEX), from = e->graph->count;
    NodeId first = axis_slice(e, index, 0, 0, 1);
    NodeId counter = graph_reshape(e->graph, first, 0, NULL);
    // A short batch has its first sample, so it has the same counter.
    samples_allow_mixing(e, from, NO_NODE, NO_NODE);
    e->samples[counter].fixed = true;
    return counter;
}

static NodeId normal_numbers(Expansion *e, const Call *c, Type t) {
    const char *name = arena_format(e->arena, "%s%s", c->path,
                                    e->training ? "" : "/evaluation");
    RandomSource d = {run_node(e, RUN_SEED), batch_counter(e), 4};
    return rand_normal(e->graph, name, d, t);
}

// Gives the numbers the shape and samples of x: the comparison has no effect,
// and simplify removes it.
static NodeId shaped_as(Expansion *e, NodeId x, NodeId numbers) {
    NodeId held = graph_op1(e->graph, OP_stop_gradient, x);
    NodeId chosen = graph_op2(e->graph, OP_lt, held, held);
    return graph_op3(e->graph, OP_select, chosen, numbers, numbers);
}

Value lower_noise(Expansion *e, const Call *c) {
    NodeId x = call_node(c, P_noise_x);
    Type t = *node_type(e, x);
    bool drawn = e->training || call_flag(c, P_noise_always);
    if (drawn && type_count(&t) > INT32_MAX) {
        report(e->diags, D_tensor_too_large, c->at,
               "noise is limited to 2^31 - 1 numbers");
        return value_poison();
    }
    NodeId z = drawn ? normal_numbers(e, c, t) : number_node(e, 0);
    return value_tensor(shaped_as(e, x, z), c->at);
}
