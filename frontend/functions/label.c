// Labels: what `label` stands for in the loss.
//
// Labels are whole numbers, one for each sample or for each place of the
// output that has classes, or targets, numbers of the output's own shape.
// Where an augmentation mixes samples, they become shares of classes, or the
// same mix of targets; and shares in evaluation too, so that one loss serves.

#include "frontend/functions/functions.h"

struct Mixing {
    NodeId partner; // i32[N]: places in the batch
    NodeId share;   // f32[N] or f32[]: of the sample itself
    const Mixing *before;
};

// Of the data set where it has them, else they follow from the output.
Type label_type(const Expansion *e) {
    Type t = e->data.label;
    bool output = e->output.kind == VALUE_TENSOR;
    if (t.rank == 0 && output) {
        t = *node_type(e, e->output.node);
        t.dtype = e->data.label.dtype;
        t.rank -= t.dtype == I32 && t.rank > 1;
    }
    t.rank = t.rank > 0 ? t.rank : 1;
    t.dim[0] = e->recipe.batch;
    return t;
}

void labels_mix(Expansion *e, NodeId partner, NodeId share) {
    Mixing *m = ARENA_NEW(e->arena, Mixing);
    *m = (Mixing){partner, share, e->mixing};
    e->mixing = m;
    e->mixes = true;
}

// Whole labels as shares of the output's classes: 1 for the label's.
static NodeId one_hot(Expansion *e, NodeId label) {
    Type t = *node_type(e, label), output = *node_type(e, e->output.node);
    int64_t classes = output.dim[output.rank - 1];
    t.dim[t.rank++] = 1;
    label = graph_reshape(e->graph, label, t.rank, t.dim);
    Type along = {.dtype = I32, .rank = 1, .dim = {classes}};
    NodeId class = graph_iota(e->graph, along, 0);
    return as_float(e, graph_op2(e->graph, OP_eq, label, class));
}

// The mixes in the order in which they were made.
static NodeId mix(Expansion *e, const Mixing *m, NodeId label) {
    if (m == NULL)
        return label;
    label = mix(e, m->before, label);
    Graph *g = e->graph;
    NodeId other = graph_op2(g, OP_gather, label, m->partner);
    NodeId share = draw_along(e, m->share, node_type(e, label)->rank);
    NodeId rest = graph_op2(g, OP_sub, number_node(e, 1), share);
    return graph_op2(g, OP_add, graph_op2(g, OP_mul, share, label),
                     graph_op2(g, OP_mul, rest, other));
}

NodeId label_node(Expansion *e) {
    NodeId label = input_node(e, INPUT_LABEL);
    if (!e->mixes || e->output.kind != VALUE_TENSOR)
        return e->label = label;
    if (node_type(e, label)->dtype == I32)
        label = one_hot(e, label);
    return e->label = mix(e, e->mixing, label);
}
