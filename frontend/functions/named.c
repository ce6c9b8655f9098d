// Named: inputs, outputs and labels by name, of models with several.
//
// A data set has an array for each input after the first and for each label.
// Functions of losses, labels and metrics work on one output and its label,
// whose facts are fields of the expansion: those of the selected output.

#include "frontend/functions/functions.h"

#include <string.h>

// ---- arrays of the data set ----

NodeId array_node(Expansion *e, const char *input, Type type) {
    NodeId n = graph_find(e->graph, input);
    return n != NO_NODE ? n : graph_leaf(e->graph, OP_input, input, type);
}

static bool expect_named(Expansion *e, const char *variable, Atom name,
                         Span at) {
    if (e->data.named)
        return true;
    Diagnostic *d = report(e->diags, D_data, at, "%s has no array for `%s.%s`",
                           e->data.format, variable, name);
    diag_note(d, "npy, image_table and synthetic have arrays by name");
    return false;
}

// ---- outputs ----

static int output_find(const Expansion *e, Atom name) {
    for (int i = 0; i < e->num_named; i++)
        if (e->named[i].name == name)
            return i;
    return -1;
}

bool label_has_numbers(const Expansion *e) {
    if (e->num_named == 0 || e->data.label.dtype == F32)
        return e->data.label.dtype == F32;
    for (int i = 0; i < e->data.num_targets; i++)
        if (strcmp(e->data.target[i].text, e->named[e->selected].name) == 0)
            return true;
    return false;
}

bool targets_check(Expansion *e) {
    for (int i = 0; i < e->data.num_targets; i++) {
        const Value *target = &e->data.target[i];
        const Function *f = e->model;
        int k = 0;
        while (k < f->num_outputs &&
               strcmp(f->output[k].name, target->text) != 0)
            k++;
        if (k < f->num_outputs)
            continue;
        Diagnostic *d = report(e->diags, D_data, target->at,
                               "`targets` has `%s`, which is no output of `%s`",
                               target->text, f->name);
        Nearest near = nearest_to(target->text);
        for (k = 0; k < f->num_outputs; k++)
            nearest_offer(&near, f->output[k].name);
        nearest_note(&near, d);
        return false;
    }
    return true;
}

static void selected_save(Expansion *e) {
    NamedOutput *to = &e->named[e->selected];
    *to = (NamedOutput){
        to->name,          e->output,          e->input[INPUT_LABEL],
        e->label,          e->unblended_label, e->valid,
        e->label_extent,   e->loss.counted,    e->recipe.classes,
        e->recipe.ignored, e->recipe.output,   e->loss.is_binary};
}

static void selected_load(Expansion *e) {
    const NamedOutput *from = &e->named[e->selected];
    e->output = from->output;
    e->input[INPUT_LABEL] = from->label_input;
    e->label = from->label;
    e->unblended_label = from->unblended_label;
    e->valid = from->valid;
    e->label_extent = from->label_extent;
    e->loss.counted = from->counted;
    e->recipe.classes = from->classes;
    e->recipe.ignored = from->ignored;
    e->recipe.output = from->kind;
    e->loss.is_binary = from->is_binary;
}

void output_select(Expansion *e, int i) {
    if (i == e->selected)
        return;
    selected_save(e);
    e->selected = i;
    selected_load(e);
}

void output_select_of(Expansion *e, const Call *c) {
    for (int i = 0; i < e->num_named; i++)
        for (int k = 0; k < 2; k++) {
            NodeId label = i == e->selected ? e->label : e->named[i].label;
            if (label != NO_NODE && c->arg[k].node == label) {
                output_select(e, i);
                return;
            }
        }
}

void output_select_for(Expansion *e, const bool *needed) {
    int best = -1;
    if (e->num_named == 0)
        return;
    selected_save(e);
    for (int i = 0; i < e->num_named; i++) {
        const NamedOutput *own = &e->named[i];
        bool reads = own->label_input != NO_NODE && needed[own->label_input];
        if (reads && (best < 0 || own->valid != NO_NODE))
            best = i;
    }
    for (int i = 0; best < 0 && i < e->num_named; i++)
        if (e->named[i].valid == NO_NODE)
            best = i;
    if (best >= 0)
        output_select(e, best);
}

void outputs_set(Expansion *e, Value output) {
    e->num_named = e->selected = 0;
    e->output = output;
    if (output.kind != VALUE_LIST)
        return;
    e->num_named = output.list.count;
    e->named = ARENA_ARRAY(e->arena, (size_t)e->num_named, NamedOutput);
    for (int i = 0; i < e->num_named; i++) {
        Value own = output.list.item[i];
        e->named[i] = (NamedOutput){
            .name = e->model->output[i].name,
            .output = own,
            .label_input = NO_NODE,
            .label = NO_NODE,
            .unblended_label = NO_NODE,
            .valid = NO_NODE,
            .label_extent = LABEL_PER_SAMPLE,
            .counted = NO_NODE,
            .classes = (int)label_classes(e, *node_type(e, own.node))};
    }
    selected_load(e);
}

// ---- members ----

static Value report_member(Expansion *e, const char *variable, Atom name,
                           Span at, Nearest *near) {
    Diagnostic *d = report(e->diags, D_unknown_name, at,
                           "the model has no %s `%s`", variable, name);
    nearest_note(near, d);
    return value_poison();
}

static Value input_member(Expansion *e, Atom name, Span at) {
    Nearest near = nearest_to(name);
    for (int i = 0; i < e->num_more_inputs; i++) {
        const MoreInput *in = &e->more_input[i];
        nearest_offer(&near, in->param->name);
        if (in->param->name == name)
            return value_tensor(
                array_node(e, arena_format(e->arena, "input.%s", name),
                           in->type),
                at);
    }
    if (e->num_more_inputs > 0 && strcmp(e->recipe.image_name, name) == 0)
        return value_tensor(input_node(e, INPUT_IMAGE), at);
    return report_member(e, "input", name, at, &near);
}

static Value output_member(Expansion *e, Atom name, Span at) {
    Nearest near = nearest_to(name);
    int i = output_find(e, name);
    for (int k = 0; k < e->num_named; k++)
        nearest_offer(&near, e->named[k].name);
    if (i < 0)
        return report_member(e, "output", name, at, &near);
    Value v = e->named[i].output;
    v.at = at;
    return v;
}

// False, with a report, for the name of an output misspelt: one whose label no
// loss has taken before.
static bool expect_free_name(Expansion *e, Atom name, Span at) {
    Nearest near = nearest_to(name);
    for (int i = 0; i < e->num_named; i++) {
        NodeId label = i == e->selected ? e->label : e->named[i].label;
        if (label == NO_NODE)
            nearest_offer(&near, e->named[i].name);
    }
    if (near.best == NULL)
        return true;
    report_member(e, "label", name, at, &near);
    return false;
}

// The label of an output, or a number for each sample.
static Value label_member(Expansion *e, Atom name, Span at) {
    int i = output_find(e, name);
    if (!expect_named(e, "label", name, at))
        return value_poison();
    if (i < 0)
        return expect_free_name(e, name, at)
                   ? value_tensor(
                         array_node(e, arena_format(e->arena, "label.%s", name),
                                    type_of(F32, 1, &e->recipe.batch)),
                         at)
                   : value_poison();
    output_select(e, i);
    NodeId label = e->label != NO_NODE ? e->label : label_node(e);
    return label != NO_NODE ? value_tensor(label, at) : value_poison();
}

Value named_value(Expansion *e, const char *variable, Atom name, Span at) {
    origin_set(e, at, NULL);
    if (e->output.kind == VALUE_POISON)
        return value_poison();
    return strcmp(variable, "input") == 0    ? input_member(e, name, at)
           : strcmp(variable, "output") == 0 ? output_member(e, name, at)
                                             : label_member(e, name, at);
}

void report_unnamed(Expansion *e, const char *variable, Span at) {
    Diagnostic *d = report(e->diags, D_wrong_kind, at,
                           "`%s` needs the name of one of %d outputs", variable,
                           e->num_named);
    diag_note(d, "as in: %s.%s", variable, e->named[0].name);
}

// ---- the recipe ----

// The array of a label: its classes, or 0 if it has numbers.
static DataArray label_array(const Expansion *e, const Node *input,
                             const char *name) {
    DataArray a = {.name = name, .input = node_text(input, ATTR_name)};
    for (int i = 0; i < e->loss.num_sample_weights; i++)
        a.weighs |= strcmp(e->loss.sample_weights[i], a.input) == 0;
    for (int i = 0; i < e->num_named; i++)
        if (strcmp(e->named[i].name, name) == 0 && input->type->dtype == I32) {
            a.classes = e->named[i].classes;
            a.ignored = e->named[i].ignored;
        }
    return a;
}

typedef struct {
    DataArray *array;
    int count;
} Arrays;

static bool has_array(const Arrays *a, const char *input) {
    for (int i = 0; i < a->count; i++)
        if (strcmp(a->array[i].input, input) == 0)
            return true;
    return false;
}

static void arrays_add(Expansion *e, Arrays *a, const Graph *g) {
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        const char *input = d->op == OP_input ? node_text(d, ATTR_name) : "";
        const char *dot = strchr(input, '.');
        if (dot == NULL || has_array(a, input) || a->count > MAX_ARRAYS)
            continue;
        bool label = strncmp(input, "label", strlen("label")) == 0;
        DataArray own = label ? label_array(e, d, dot + 1)
                              : (DataArray){.name = dot + 1, .input = input};
        ARENA_APPEND(e->arena, a->array, a->count, own);
    }
}

void names_record(Expansion *e, const Graph *train, const Graph *eval) {
    Recipe *r = &e->recipe;
    Arrays all = {0};
    OutputName *name =
        ARENA_ARRAY(e->arena, (size_t)e->num_named + 1, OutputName);
    if (e->num_named > 0)
        selected_save(e);
    arrays_add(e, &all, train);
    arrays_add(e, &all, eval);
    if (all.count > MAX_ARRAYS)
        report(e->diags, D_out_of_range, e->model->name_at,
               "`%s` has more than %d arrays beside its first input",
               e->model->name, MAX_ARRAYS);
    for (int i = 0; i < e->num_named; i++)
        name[i] = (OutputName){e->named[i].name, e->named[i].kind};
    r->array = all.array;
    r->num_arrays = all.count;
    r->output_name = name;
    r->num_output_names = e->num_named;
    for (int i = 0; i < r->num_arrays; i++)
        if (r->array[i].classes > r->classes)
            r->classes = r->array[i].classes;
}
