// Labels: the value of `label` in the loss.
//
// Labels are classes, one for each sample or for each position of the output
// that has classes; or targets, of the output's shape.  Labels of pixels follow
// the image through augmentation.  If samples are mixed, class labels become
// probabilities of classes, or numbers for a single output, and targets are
// mixed alike; evaluation uses probabilities too, so that one loss serves.

#include "frontend/functions/functions.h"

int64_t label_classes(const Expansion *e, Type output) {
    enum { BYTES = 256 };
    int64_t columns = output.rank ? output.dim[output.rank - 1] : 1;
    int64_t open = columns > 1 ? columns : BYTES, of_data = e->data.classes;
    return of_data == 0 || columns > of_data ? open : of_data;
}

// From the data set if known, else from the output.
Type label_type(const Expansion *e) {
    Type t = e->data.label;
    bool output = e->output.kind == VALUE_TENSOR;
    if (t.rank == 0 && output) {
        t = *node_type(e, e->output.node);
        t.dtype = label_has_numbers(e) ? F32 : I32;
        t.rank -= t.dtype == I32 && t.rank > 1;
    }
    t.rank = t.rank > 0 ? t.rank : 1;
    t.dim[0] = e->recipe.batch;
    return t;
}

Type label_type_in_files(const Expansion *e) {
    Type t = label_type(e);
    if (e->label_extent == LABEL_SPATIAL)
        transforms_undo(e, &t);
    return t;
}

NodeId label_probabilities(Expansion *e, NodeId label) {
    Type t = *node_type(e, label), output = *node_type(e, e->output.node);
    if (labels_each(t, output))
        return as_float(e, label);
    int64_t classes = output.dim[output.rank - 1];
    t.dim[t.rank++] = 1;
    label = graph_reshape(e->graph, label, t.rank, t.dim);
    Type along = {.dtype = I32, .rank = 1, .dim = {classes}};
    NodeId class = graph_iota(e->graph, along, 0);
    return as_float(e, graph_op2(e->graph, OP_eq, label, class));
}

NodeId label_blend(Expansion *e, const Transform *t, NodeId label) {
    Graph *g = e->graph;
    NodeId other = graph_op2(g, OP_gather, label, t->partner);
    NodeId weight = rand_broadcast(e, t->weight, node_type(e, label)->rank);
    NodeId rest = graph_op2(g, OP_sub, number_node(e, 1), weight);
    other = graph_op2(g, OP_mul, rest, other);
    return graph_op2(g, OP_add, graph_op2(g, OP_mul, weight, label), other);
}

// Mixes labels in the order of the transforms.
static NodeId mixed(Expansion *e, const Transform *t, NodeId label) {
    if (t == NULL)
        return label;
    label = mixed(e, t->before, label);
    bool mixes_labels =
        t->kind == TRANSFORM_PASTE || t->kind == TRANSFORM_BLEND;
    return mixes_labels ? label_blend(e, t, label) : label;
}

static NodeId sample_label(Expansion *e, NodeId label) {
    e->unblended_label = label;
    e->mixes_labels |= transforms_mix(e, false);
    if (!e->mixes_labels)
        return label;
    if (node_type(e, label)->dtype == I32)
        label = label_probabilities(e, label);
    return mixed(e, e->transform, label);
}

static NodeId pixel_label(Expansion *e, NodeId label) {
    TransformedLabel own, all;
    if (!label_transform(e, label, false, &own))
        return NO_NODE;
    e->unblended_label = own.label;
    e->valid = own.valid;
    e->mixes_labels |= transforms_mix(e, true);
    if (!e->mixes_labels || !label_transform(e, label, true, &all))
        return own.label;
    e->valid = all.valid;
    return node_type(e, all.label)->dtype == I32
               ? label_probabilities(e, all.label)
               : all.label;
}

NodeId label_node(Expansion *e) {
    if (e->output.kind == VALUE_TENSOR)
        e->label_extent = label_extent(e, label_type(e));
    if (e->label_extent == LABEL_LOST)
        return NO_NODE;
    NodeId label = input_node(e, INPUT_LABEL);
    e->unblended_label = label;
    if (e->output.kind != VALUE_TENSOR)
        return e->label = label;
    return e->label = e->label_extent == LABEL_SPATIAL ? pixel_label(e, label)
                                                       : sample_label(e, label);
}
