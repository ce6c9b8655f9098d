// Lowering: builds the graphs of a program.  It expands the model once for
// training and once for evaluation; init follows from the parameters.

#include "frontend/train/train.h"

#include <string.h>

// ---- one graph ----

void graph_begin(Expansion *e, TrainBlock *t, const char *name, bool training) {
    e->graph = graph_new(e->arena, name);
    e->training = training;
    e->averaged = false;
    e->path = NULL;
    e->transform = NULL;
    e->label = e->unblended_label = e->valid = NO_NODE;
    e->label_extent = LABEL_PER_SAMPLE;
    e->num_samples = 0;
    e->batch_size_use = NULL;
    for (int i = 0; i < NUM_INPUTS; i++)
        e->input[i] = NO_NODE;
    for (int i = 0; i < NUM_RUN; i++)
        e->run[i] = NO_NODE;
    train_begin(e, t);
}

// A model and its arguments.
typedef struct {
    TrainBlock *block;
    const Value *given;
    const Param *input;
} Model;

static Value outputs_as_float(Expansion *e, Value v) {
    Value *item = ARENA_ARRAY(e->arena, (size_t)v.list.count, Value);
    for (int i = 0; i < v.list.count; i++) {
        item[i] = v.list.item[i];
        item[i].node = as_float(e, item[i].node);
    }
    v.list.item = item;
    return v;
}

static Value expand_model(Expansion *e, void *context, Value image) {
    const Model *m = context;
    Value model = train_model(m->block);
    const Function *f = model.closure.function;
    Value *arg = ARENA_ARRAY(e->arena, (size_t)f->num_params + 1, Value);
    for (int i = 0; i < f->num_params; i++)
        arg[i] = &f->param[i] == m->input ? image : m->given[i];
    for (int i = 0; i < e->num_more_inputs; i++) {
        const MoreInput *in = &e->more_input[i];
        arg[in->param - f->param] = value_tensor(
            array_node(e, arena_format(e->arena, "input.%s", in->param->name),
                       in->type),
            in->param->at);
    }
    e->phase = PHASE_MODEL;
    Path *outer = path_begin(e, "");
    Value v = expand_function(e, model, arg, f->name_at);
    e->path = outer;
    if (v.kind == VALUE_POISON)
        return v;
    if (f->num_outputs > 0)
        return outputs_as_float(e, v);
    if (!expect_kind(e, v, VALUE_TENSOR, f->name_at, "the output of a model"))
        return value_poison();
    v.node = as_float(e, v.node);
    return v;
}

// The model's output: in an evaluation with views the weighted mean over them.
static Value expand_output(Expansion *e, Model *m, Value image) {
    if (e->training || e->num_views == 0)
        return expand_model(e, m, image);
    Value mean = views_mean(e, expand_model, m, image);
    if (mean.kind == VALUE_TENSOR)
        mean.at = m->input->at;
    return mean;
}

// The model's input; poison after a report.
static Value expand_input(Expansion *e, TrainBlock *t, const Value *given,
                          const Param *input) {
    e->phase = PHASE_INPUT;
    origin_set(e, input->at, NULL);
    input_node(e, INPUT_IMAGE);
    Value image = train_input(e, t);
    if (image.kind == VALUE_POISON)
        return image;
    if (image.at.source == NULL)
        image.at = input->at;
    e->model_input = image.node;
    e->model_input_at = image.at;
    return input_check(e, t, given, input, image) ? image : value_poison();
}

// Expands input, model and loss; returns the loss, poison after a report.
static Value forward(Expansion *e, TrainBlock *t, const Value *given,
                     const Param *input) {
    Value image = expand_input(e, t, given, input);
    Value output = image.kind == VALUE_POISON
                       ? image
                       : expand_output(e, &(Model){t, given, input}, image);
    if (e->training)
        conv_warn(e);
    e->phase = PHASE_LOSS;
    if (output.kind == VALUE_POISON) {
        train_loss(e, t, output);
        return output;
    }
    if (output.kind == VALUE_TENSOR)
        e->recipe.classes = (int)label_classes(e, *node_type(e, output.node));
    Value loss = train_loss(e, t, output);
    if (loss.kind != VALUE_POISON)
        metrics_add(e);
    return loss;
}

static void add_output(Expansion *e, const char *name, NodeId value) {
    Attr attr = attr_text(ATTR_name, name);
    graph_add(e->graph, (Node){.op = OP_output,
                               .num_args = 1,
                               .arg = &value,
                               .num_attrs = 1,
                               .attr = &attr,
                               .group = -1});
}

// ---- training ----

// Whether a node passes a gradient to an operand: integers, such as indices,
// get none.
static bool passes_gradient(const Graph *g, const Node *n, int i) {
    return n->op != OP_stop_gradient &&
           dtype_float(g->node[n->arg[i]].type->dtype);
}

// Reports trainable parameters without a gradient.
static void check_trained(Expansion *e, const TrainBlock *t, const Graph *g,
                          NodeId loss) {
    bool *needed = ARENA_ARRAY(e->arena, g->count, bool);
    needed[loss] = true;
    for (NodeId n = loss + 1; n-- > 0;)
        for (int i = 0; needed[n] && i < g->node[n].num_args; i++)
            needed[g->node[n].arg[i]] |= passes_gradient(g, &g->node[n], i);
    for (int i = 0; i < e->num_parameters; i++) {
        const Parameter *p = &e->parameter[i];
        if (!needed[p->node] && !is_frozen(e, t, p, 0))
            report(e->diags, D_no_gradient, p->at,
                   "no gradient reaches `%s`: the loss does not depend on it",
                   p->name);
    }
}

// Builds the stages and the average; false after a report.
static bool train_graphs(Expansion *e, TrainBlock *t, const Value *given,
                         const Param *input, Program *p) {
    graph_begin(e, t, "train", true);
    Value loss = forward(e, t, given, input);
    if (loss.kind == VALUE_POISON) {
        train_optimizer(e, t);
        return false;
    }
    batch_norm_warn(e);
    if (e->num_parameters == 0)
        report(e->diags, D_no_gradient, train_model(t).at,
               "this model has no parameters, so there is nothing to train");
    add_output(e, "loss", loss.node);
    if (!e->recipe.drop_last)
        e->recipe.whole_train = samples_mixed(e, effects_needed(e, e->graph));
    Graph *model = e->graph;
    bool good = e->num_parameters > 0 && stages_build(e, t, p);
    e->graph = model;
    if (good && average_build(e, t, p))
        train_check_used(e, t);
    e->graph = model;
    // Unused keys come last: an earlier error may explain them.
    if (e->diags->errors == 0)
        files_check(e, NAMES_USED);
    if (e->diags->errors == 0)
        check_trained(e, t, model, loss.node);
    return e->diags->errors == 0;
}

static Graph *eval_graph(Expansion *e, TrainBlock *t, const Value *given,
                         const Param *input) {
    graph_begin(e, t, "eval", false);
    e->averaged = e->eval_averages;
    if (forward(e, t, given, input).kind == VALUE_POISON)
        return e->graph;
    metrics_check(e);
    e->recipe.whole_eval = samples_mixed(e, effects_needed(e, e->graph));
    return e->graph;
}

// Adds the outputs: prediction, or prediction.NAME of each named one.
static void add_predictions(Expansion *e, const Graph *g, const NodeId *now) {
    for (int i = 0; i < e->num_named; i++) {
        const NamedOutput *own = &e->named[i];
        e->graph->origin = g->node[own->output.node].from;
        add_output(e, arena_format(e->arena, "prediction.%s", own->name),
                   now[own->output.node]);
    }
    if (e->num_named > 0)
        return;
    e->graph->origin = g->node[e->output.node].from;
    add_output(e, "prediction", now[e->output.node]);
}

// The part of the evaluation that computes the model's outputs.
static Graph *predict_graph(Expansion *e) {
    const Graph *g = e->graph;
    bool *needed = ARENA_ARRAY(e->arena, g->count, bool);
    NodeId *now = ARENA_ARRAY(e->arena, g->count, NodeId);
    Graph *out = graph_like(g);
    NodeId last = e->output.node;
    needed[last] = true;
    for (int i = 0; i < e->num_named; i++) {
        NodeId own = e->named[i].output.node;
        needed[own] = true;
        last = own > last ? own : last;
    }
    for (NodeId n = last + 1; n-- > 0;)
        for (int i = 0; needed[n] && i < g->node[n].num_args; i++)
            needed[g->node[n].arg[i]] = true;
    for (NodeId n = 0; n <= last; n++)
        now[n] = needed[n] ? graph_copy(out, g, n, now) : NO_NODE;
    out->name = "predict";
    e->graph = out;
    add_predictions(e, g, now);
    return out;
}

// The statistics from which parameters start, of samples without augmentation;
// NULL if no parameter needs them.
static Graph *collect_graph(Expansion *e, TrainBlock *t, const Value *given,
                            const Param *input) {
    if (!collect_needed(e))
        return NULL;
    graph_begin(e, t, "collect", false);
    e->collecting = true;
    Value image = expand_input(e, t, given, input);
    if (image.kind != VALUE_POISON)
        expand_model(e, &(Model){t, given, input}, image);
    e->collecting = false;
    return e->diags->errors == 0 ? collect_finish(e) : NULL;
}

// Replaces invalid keys: a batch that most numbers of ghost batches divide, and
// a run without end.
static void fill_invalid(Recipe *r) {
    if (r->batch == 0)
        r->batch = 960;
    if (r->length.count == 0)
        r->length = (Time){9e15, IN_EPOCHS};
}

// Whether the model declares its input completely.
static bool input_is_declared(const TrainBlock *t, const Param *input) {
    bool written = entry_find(t, "input") < 0;
    for (int i = 1; i < input->type->rank; i++)
        written &= input->type->dim[i]->kind == EXPR_NUMBER;
    return written;
}

void lower_invalid(Expansion *e, TrainBlock *t, const Value *given) {
    Value model = train_model(t);
    bool data = e->data.format != NULL;
    fill_invalid(&e->recipe);
    t->invalid = true;
    graph_begin(e, t, "train", true);
    const Param *input = input_param(e, model.closure.function);
    bool known = input != NULL && (data || input_is_declared(t, input)) &&
                 input_type(e, t, given, input);
    if (known && data) {
        forward(e, t, given, input);
    } else {
        if (known)
            expand_model(e, &(Model){t, given, input},
                         expand_input(e, t, given, input));
        if (t->absent)
            return;
        e->phase = PHASE_LOSS;
        train_loss(e, t, value_poison());
    }
    train_optimizer(e, t);
}

Program *lower(Expansion *e, TrainBlock *t, const Value *given) {
    Value model = train_model(t);
    const Param *input = input_param(e, model.closure.function);
    if (input == NULL || !input_type(e, t, given, input) || !targets_check(e))
        return NULL;
    Program *p = ARENA_NEW(e->arena, Program);
    *p = (Program){.name = model.closure.function->name,
                   .file = t->at.source->name,
                   .recipe = e->recipe};
    p->imported = files_imported(e, &p->num_imported);
    if (!train_graphs(e, t, given, input, p))
        return NULL;
    p->init = init_graph(e);
    monitor_states(e, p->init);
    p->collect = collect_graph(e, t, given, input);
    p->eval = eval_graph(e, t, given, input);
    if (e->diags->errors == 0)
        p->predict = predict_graph(e);
    names_record(e, p->stage[0].train, p->eval);
    p->recipe.input_name = e->recipe.input_name;
    p->recipe.image_name = e->recipe.image_name;
    p->recipe.array = e->recipe.array;
    p->recipe.num_arrays = e->recipe.num_arrays;
    p->recipe.output_name = e->recipe.output_name;
    p->recipe.num_output_names = e->recipe.num_output_names;
    p->site = call_sites_list(e, &p->num_sites);
    p->recipe.collect_samples = e->recipe.collect_samples;
    p->recipe.classes = e->recipe.classes;
    p->recipe.ignored = e->recipe.ignored;
    p->recipe.output = e->recipe.output;
    p->recipe.output_metric = e->recipe.output_metric;
    p->recipe.num_output_metrics = e->recipe.num_output_metrics;
    p->recipe.rate = e->recipe.rate;
    p->recipe.plateau = e->recipe.plateau;
    p->recipe.num_plateaus = e->recipe.num_plateaus;
    p->recipe.whole_train = e->recipe.whole_train;
    p->recipe.whole_eval = e->recipe.whole_eval;
    p->recipe.whole_collect = e->recipe.whole_collect;
    p->recipe.statistics = e->recipe.statistics;
    freezes_count_random(e, t, &p->recipe);
    program_divide_optimizer(p, e->arena);
    return e->diags->errors ? NULL : p;
}
