// Colour: augmentations that change all values of an image by a random number
// per sample and epoch.

#include "frontend/functions/functions.h"

static NodeId rand_around(Expansion *e, const Call *c, const Value *x,
                          double centre, double most) {
    NodeId u = rand_range(e, c, "amount", centre - most, centre + most);
    return rand_broadcast(e, u, node_type(e, x->node)->rank);
}

Value lower_brightness(Expansion *e, const Call *c) {
    const Value *x = call_arg(c, P_brightness_x);
    if (!e->training)
        return *x;
    NodeId by = rand_around(e, c, x, 0, call_number(c, P_brightness_most));
    return value_tensor(graph_op2(e->graph, OP_add, as_float(e, x->node), by),
                        c->at);
}

Value lower_contrast(Expansion *e, const Call *c) {
    const Value *x = call_arg(c, P_contrast_x);
    if (!e->training)
        return *x;
    NodeId by = rand_around(e, c, x, 1, call_number(c, P_contrast_most));
    return value_tensor(graph_op2(e->graph, OP_mul, as_float(e, x->node), by),
                        c->at);
}
