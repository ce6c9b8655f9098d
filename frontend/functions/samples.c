// Types as people read them: N is the axis of the samples.

#include "frontend/functions/functions.h"

bool has_samples(Expansion *e, NodeId n) {
    e->work += n;
    return graph_samples(e->graph, n + 1, e->arena)[n] == 0;
}

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

const char *joint_text(Expansion *e, Value v) {
    return v.kind == VALUE_TENSOR ? tensor_text(e, v.node)
                                  : type_text(e, type_scalar(F32));
}
