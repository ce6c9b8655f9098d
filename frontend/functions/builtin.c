// Builtins: the tables that builtins.def expands to.

#include "frontend/foreign.h"
#include "frontend/functions/functions.h"

#include <string.h>

const Builtin builtin_info[NUM_BUILTINS] = {
#define BUILTIN(name, class, lowering, module)                                 \
    [B_##name] = {#name, class, lower_##lowering, module, FIRST_##name},
#include "frontend/functions/builtins.def"
};

const ParamInfo param_info[NUM_PARAMS] = {
#define PARAM(function, name, kind, otherwise, words)                          \
    [P_##function##_##name] = {#name, kind, otherwise, words},
#include "frontend/functions/builtins.def"
};

const Builtin *builtin_find(const char *name) {
    for (int i = 0; i < NUM_BUILTINS; i++)
        if (strcmp(builtin_info[i].name, name) == 0)
            return &builtin_info[i];
    return NULL;
}

const Builtin *builtin_find_loose(const char *word) {
    for (int i = 0; i < NUM_BUILTINS; i++)
        if (foreign_equal(builtin_info[i].name, word))
            return &builtin_info[i];
    return NULL;
}

BuiltinId builtin_id(const Builtin *b) {
    return (BuiltinId)(b - builtin_info);
}

int builtin_num_params(const Builtin *b) {
    BuiltinId id = builtin_id(b);
    int end = id + 1 < NUM_BUILTINS ? (int)builtin_info[id + 1].first
                                    : (int)NUM_PARAMS;
    return end - (int)b->first;
}

bool builtin_trains(const Builtin *b) {
    switch (builtin_id(b)) {
    case B_conv:
    case B_conv_transpose:
    case B_linear:
    case B_batch_norm:
    case B_layer_norm:
    case B_group_norm:
    case B_embedding:
    case B_attention:
    case B_parameter:
        return true;
    default:
        return false;
    }
}

const char *class_name(Class c) {
    static const char *const name[] = {
        [ANYWHERE] = "a function",
        [LAYER] = "a layer",
        [NORM] = "a layer",
        [FUNCTION] = "a function",
        [ACTIVATION] = "a function",
        [IMAGE] = "a layer",
        [INITIAL] = "an initializer",
        [AUGMENT] = "an augmentation",
        [LOSS] = "a part of a loss",
        [OPTIMIZER] = "an optimizer",
        [CLIP] = "a gradient clipping rule",
        [AVERAGE] = "a weight average",
        [EVAL_VIEW] = "a view of an image",
        [SCHEDULE] = "a schedule",
        [DATA] = "a data set",
    };
    return name[c];
}

const char *class_context(Class c) {
    static const char *const context[] = {
        [ANYWHERE] = "anywhere",
        [LAYER] = "a model",
        [NORM] = "a model",
        [FUNCTION] = "anywhere",
        [ACTIVATION] = "anywhere",
        [INITIAL] = "a layer's init",
        [IMAGE] = "a model or the input of a train block",
        [AUGMENT] = "the input of a train block",
        [LOSS] = "the loss of a train block",
        [OPTIMIZER] = "a train block",
        [CLIP] = "the key `clip` of a train block",
        [AVERAGE] = "the key `average` of a train block",
        [EVAL_VIEW] = "the views of an evaluation",
        [SCHEDULE] = "a train block",
        [DATA] = "a train block",
    };
    return context[c];
}

const Value *call_arg(const Call *c, ParamId p) {
    return &c->arg[(int)p - (int)c->builtin->first];
}

double call_number(const Call *c, ParamId p) {
    return call_arg(c, p)->number;
}

int64_t call_count(const Call *c, ParamId p) {
    return (int64_t)call_arg(c, p)->number;
}

bool call_flag(const Call *c, ParamId p) {
    return call_arg(c, p)->boolean;
}

NodeId call_node(const Call *c, ParamId p) {
    return call_arg(c, p)->node;
}

void call_pair(const Call *c, ParamId p, int64_t pair[2]) {
    const Value *v = call_arg(c, p);
    bool list = v->kind == VALUE_LIST;
    for (int i = 0; i < 2; i++)
        pair[i] = (int64_t)(list ? v->list.item[i].number : v->number);
}

// ---- values that are calls ----

// Data, optimizers and averages are their calls until a graph exists.
Value lower_call(Expansion *e, const Call *c) {
    (void)e;
    return (Value){.kind = VALUE_CALL, .call = c};
}

// The initialiser that a value is, called or by its name alone; NULL: none.
static const Builtin *initialiser(Value v) {
    const Builtin *b = v.kind == VALUE_CALL      ? v.call->builtin
                       : v.kind == VALUE_BUILTIN ? v.builtin
                                                 : NULL;
    return b != NULL && b->class == INITIAL ? b : NULL;
}

const char *value_described(Value v) {
    if (initialiser(v) != NULL)
        return class_name(INITIAL);
    return v.kind == VALUE_CALL ? class_name(v.call->builtin->class)
                                : value_kind_name(v.kind);
}

void note_initialiser(Value v, Diagnostic *d) {
    const Builtin *b = initialiser(v);
    if (b != NULL && !foreign_note(FOREIGN_SURPLUS, b->name, d))
        diag_note(d,
                  "an initializer sets a parameter's start value, as in: "
                  "parameter([1, 8], init=%s); noise(x) draws new numbers in "
                  "each step",
                  b->name);
}

const char *norm_or_activation(int i) {
    for (int b = 0; b < NUM_BUILTINS; b++) {
        Class class = builtin_info[b].class;
        if ((class == NORM || class == ACTIVATION) && i-- == 0)
            return builtin_info[b].name;
    }
    return NULL;
}
