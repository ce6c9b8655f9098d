// Samples: types as text, with N for the axis of samples, and masks of the
// valid samples of a short last batch.
//
// Operations across samples mask the others, by the input `valid`: unless
// drop_last skips such batches in training, and in evaluation always.

#include "frontend/functions/functions.h"

// ---- which axes run over samples ----

static const Samples *samples_of(Expansion *e, NodeId n) {
    if (n >= e->samples_room) {
        NodeId room = 2 * (n + 1);
        Samples *more = ARENA_UNINIT(e->arena, room, Samples);
        for (NodeId i = 0; i < e->num_samples; i++)
            more[i] = e->samples[i];
        e->samples = more;
        e->samples_room = room;
    }
    if (n >= e->num_samples) {
        samples_extend(e->graph, e->samples, e->num_samples, n + 1);
        e->num_samples = n + 1;
    }
    return &e->samples[n];
}

bool has_samples(Expansion *e, NodeId n) {
    return samples_of(e, n)->stride[0] != 0;
}

// ---- valid samples ----

bool all_valid(const Expansion *e) {
    return e->training && e->recipe.drop_last;
}

NodeId valid_mask(Expansion *e, Type t, int axis, int64_t stride) {
    Graph *g = e->graph;
    int64_t batch = e->recipe.batch * stride;
    Type along = {.dtype = I32, .rank = t.rank};
    for (int i = 0; i < t.rank; i++)
        along.dim[i] = i == axis ? t.dim[i] : 1;
    NodeId index = graph_iota(g, along, axis);
    if (t.dim[axis] > batch)
        index = graph_op2(g, OP_mod, index, int_node(e, batch));
    NodeId end = input_node(e, INPUT_VALID);
    if (stride > 1)
        end = graph_op2(g, OP_mul, end, int_node(e, stride));
    return graph_op2(g, OP_lt, index, end);
}

static bool needs_mask(Expansion *e, NodeId x, int axis) {
    return !all_valid(e) && samples_of(e, x)->stride[axis] != 0;
}

bool samples_need_mask(Expansion *e, NodeId x, unsigned axes) {
    for (int i = 0; i < node_type(e, x)->rank; i++)
        if ((axes >> i & 1) && needs_mask(e, x, i))
            return true;
    return false;
}

NodeId samples_mask(Expansion *e, NodeId x, NodeId like, unsigned axes,
                    double otherwise) {
    Type t = *node_type(e, like);
    const Samples s = *samples_of(e, like);
    for (int i = 0; i < t.rank; i++)
        if ((axes >> i & 1) && needs_mask(e, like, i)) {
            NodeId other = number_node(e, otherwise);
            NodeId valid = valid_mask(e, t, i, s.stride[i]);
            x = graph_op3(e->graph, OP_select, valid, x, other);
        }
    return x;
}

NodeId samples_count(Expansion *e, NodeId x, unsigned axes) {
    Type t = *node_type(e, x);
    NodeId valid = NO_NODE;
    double all = 1;
    for (int i = 0; i < t.rank; i++) {
        if (!(axes >> i & 1))
            continue;
        bool open = needs_mask(e, x, i);
        all *= (double)(open ? t.dim[i] / e->recipe.batch : t.dim[i]);
        if (open)
            valid = valid == NO_NODE
                        ? sample_count(e)
                        : graph_op2(e->graph, OP_mul, valid, sample_count(e));
    }
    if (valid == NO_NODE || all == 1)
        return valid == NO_NODE ? number_node(e, all) : valid;
    return graph_op2(e->graph, OP_mul, valid, number_node(e, all));
}

// ---- nodes that need whole batches ----

static const char *node_location(Expansion *e, NodeId n) {
    Text t = text_new(e->arena);
    node_describe(&t, &e->graph->node[n]);
    return text_string(&t);
}

void samples_allow_mixing(Expansion *e, NodeId first, NodeId y, NodeId x) {
    samples_of(e, e->graph->count - 1);
    for (NodeId n = first; n < e->graph->count; n++)
        e->samples[n].depends_on_batch = false;
    for (int i = 0; y != NO_NODE && i < node_type(e, y)->rank; i++)
        e->samples[y].stride[i] = e->samples[x].stride[i];
}

const char *samples_mixed(Expansion *e, const bool *needed) {
    samples_of(e, e->graph->count - 1);
    for (NodeId n = 0; n < e->graph->count; n++)
        if (needed[n] && e->samples[n].depends_on_batch)
            return node_location(e, n);
    return e->batch_size_use;
}

void note_batch_size(Expansion *e, const Value *v) {
    const Origin *at = &e->graph->origin;
    if (v->follows_batch && e->batch_size_use == NULL && !all_valid(e))
        e->batch_size_use =
            arena_format(e->arena, "the batch's size as a number, %s:%d",
                         at->file, at->line);
}

// ---- types ----

static const char *shape_text(Expansion *e, Type t, bool samples) {
    Text text = text_new(e->arena);
    text_add(&text, "%s[", dtype_name(t.dtype));
    for (int i = 0; i < t.rank; i++) {
        if (i == 0 && samples && t.dim[0] == e->recipe.batch)
            text_add(&text, "N");
        else
            text_add(&text, "%s%lld", i ? ", " : "", (long long)t.dim[i]);
    }
    text_add(&text, "]");
    return text_string(&text);
}

const char *type_text(Expansion *e, Type t) {
    return shape_text(e, t, false);
}

const char *samples_text(Expansion *e, Type t) {
    return shape_text(e, t, true);
}

const char *tensor_text(Expansion *e, NodeId n) {
    return shape_text(e, *node_type(e, n), has_samples(e, n));
}

const char *count_text(Expansion *e, NodeId n) {
    const Type *t = node_type(e, n);
    long long count = (long long)type_count(t), batch = e->recipe.batch;
    if (!has_samples(e, n) || t->dim[0] != batch)
        return arena_format(e->arena, "%lld", count);
    return arena_format(e->arena, "%lld x %lld", batch, count / batch);
}

const char *operand_text(Expansion *e, Value v) {
    return v.kind == VALUE_TENSOR ? tensor_text(e, v.node)
                                  : type_text(e, type_scalar(F32));
}
