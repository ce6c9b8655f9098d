// Lowering: the graphs of a program.  The model is expanded once for training
// and once for evaluation; init follows from the parameters.

#include "frontend/expand.h"

#include <string.h>

enum { MAX_IMAGE_RANK = 4 };

// ---- the model's input ----

// The parameter that takes the data: the only one with a type.
static const Param *input_param(Expansion *e, const Function *model) {
    const Param *found = NULL;
    for (int i = 0; i < model->num_params; i++) {
        const Param *p = &model->param[i];
        if (p->type == NULL)
            continue;
        if (found != NULL) {
            report(e->diags, D_not_built, p->at,
                   "a model with several inputs is not supported yet");
            return NULL;
        }
        found = p;
    }
    if (found == NULL) {
        Diagnostic *d = report(e->diags, D_data, model->name_at,
                               "the model `%s` has no input", model->name);
        diag_note(d, "an input has a type, as in: image: u8[N, 32, 32, 3]");
    }
    return found;
}

// The type of a batch of the data, as far as it is known before the model is
// seen: a dimension that is not is 0.
static Type data_type(const Expansion *e, const TypeExpr *declared) {
    Type t = {.dtype = U8, .rank = declared->rank, .dim = {e->recipe.batch}};
    if (!e->data.known)
        return t;
    t.rank = 4;
    memcpy(&t.dim[1], e->data.image, sizeof e->data.image);
    return t;
}

static void report_image(Expansion *e, const Param *p, Type known,
                         Type written) {
    Diagnostic *d =
        report(e->diags, D_data, p->type->at, "the images of %s are %s",
               e->data.format, type_text(e, known));
    diag_label(d, "and this is %s", type_text(e, written));
    if (written.rank == 4 && written.dim[1] == known.dim[3] &&
        written.dim[3] == known.dim[2])
        diag_note(d, "the order is [N, height, width, channels]");
}

// For data whose shape only the files tell, the model's type is believed.
static bool image_type(Expansion *e, const Param *p) {
    Type known = data_type(e, p->type), written;
    if (p->type->dtype != U8 && p->type->dtype != F32) {
        report(e->diags, D_data, p->type->at,
               "a model's input is u8 or f32, not %s",
               dtype_name(p->type->dtype));
        return false;
    }
    Binding *scope = e->scope;
    bool good = type_expand(e, p->type, known, &written);
    e->scope = scope;
    if (!good)
        return false;
    if (e->data.known && !type_same_shape(known, written)) {
        report_image(e, p, known, written);
        return false;
    }
    if (written.rank > MAX_IMAGE_RANK) {
        report(e->diags, D_rank, p->type->at,
               "an input has %d dimensions at most, as u8[N, 32, 32, 3]",
               MAX_IMAGE_RANK);
        return false;
    }
    e->image = written;
    e->image.dtype = U8;
    if (e->image.rank >= 2 && e->image.dim[0] == e->recipe.batch &&
        type_valid(e->image))
        return true;
    report(e->diags, e->image.rank < 2 ? D_rank : D_size, p->type->at,
           "an input is a batch of samples, as u8[N, 32, 32, 3], below 64 TiB");
    return false;
}

// ---- one graph ----

static void graph_begin(Expansion *e, TrainBlock *t, const char *name,
                        bool training) {
    e->graph = graph_new(e->arena, name);
    e->training = training;
    e->path = NULL;
    for (int i = 0; i < NUM_INPUTS; i++)
        e->input[i] = NO_NODE;
    for (int i = 0; i < NUM_RUN; i++)
        e->run[i] = NO_NODE;
    train_begin(e, t);
}

static Value expand_model(Expansion *e, TrainBlock *t, const Value *given,
                          const Param *input, Value image) {
    Value model = train_model(t);
    const Function *f = model.closure.function;
    Value *arg = ARENA_ARRAY(e->arena, (size_t)f->num_params + 1, Value);
    for (int i = 0; i < f->num_params; i++)
        arg[i] = &f->param[i] == input ? image : given[i];
    e->phase = PHASE_MODEL;
    Path *outer = path_begin(e, "");
    Value v = expand_function(e, model, arg, f->name_at);
    e->path = outer;
    if (v.kind == VALUE_POISON)
        return v;
    if (!expect_kind(e, v, VALUE_TENSOR, f->name_at, "what a model gives"))
        return value_poison();
    v.node = as_float(e, v.node);
    return v;
}

// How many values labels have: those of the data set where it is known, else
// one for each column of the output; a single column has a loss for which a
// label is any byte.
static int64_t label_classes(const Expansion *e, Type output) {
    enum { BYTES = 256 };
    int64_t columns = output.rank ? output.dim[output.rank - 1] : 1;
    if (e->data.known && e->data.classes > 0)
        return e->data.classes;
    return columns > 1 ? columns : BYTES;
}

// Input, model and loss.  The loss; poison after a report.
static Value forward(Expansion *e, TrainBlock *t, const Value *given,
                     const Param *input) {
    e->phase = PHASE_INPUT;
    origin_set(e, input->at, NULL);
    input_node(e, INPUT_IMAGE);
    Value image = train_input(e, t);
    if (image.kind == VALUE_POISON)
        return image;
    if (image.at.source == NULL)
        image.at = input->at;
    Value output = expand_model(e, t, given, input, image);
    if (output.kind == VALUE_POISON)
        return output;
    e->phase = PHASE_LOSS;
    e->recipe.classes = (int)label_classes(e, node_type(e, output.node));
    Value loss = train_loss(e, t, output);
    if (loss.kind != VALUE_POISON)
        metrics_add(e, output.node);
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

// Reports parameters that the loss does not depend on.
static void check_trained(Expansion *e, NodeId loss) {
    const Graph *g = e->graph;
    bool *needed = ARENA_ARRAY(e->arena, g->count, bool);
    needed[loss] = true;
    for (NodeId n = loss + 1; n-- > 0;)
        for (int i = 0; needed[n] && i < g->node[n].num_args; i++)
            needed[g->node[n].arg[i]] = true;
    for (int i = 0; i < e->num_parameters; i++) {
        const Parameter *p = &e->parameter[i];
        if (!needed[p->node])
            report(e->diags, D_untrained, p->at,
                   "the loss does not depend on `%s`, so nothing trains it",
                   p->name);
    }
}

static Graph *train_graph(Expansion *e, TrainBlock *t, const Value *given,
                          const Param *input) {
    graph_begin(e, t, "train", true);
    Value loss = forward(e, t, given, input);
    if (loss.kind == VALUE_POISON)
        return e->graph;
    if (e->num_parameters == 0)
        report(e->diags, D_untrained, train_model(t).at,
               "this model has no parameters, so there is nothing to train");
    add_output(e, "loss", loss.node);
    if (update_add(e, t))
        train_check_used(e, t);
    // What is never used is told last: a misspelt use makes it so.
    if (e->diags->errors == 0)
        files_check(e, NAMES_USED);
    if (e->diags->errors == 0)
        check_trained(e, loss.node);
    return e->graph;
}

static Graph *eval_graph(Expansion *e, TrainBlock *t, const Value *given,
                         const Param *input) {
    graph_begin(e, t, "eval", false);
    forward(e, t, given, input);
    return e->graph;
}

Program *lower(Expansion *e, TrainBlock *t, const Value *given) {
    const Function *model = train_model(t).closure.function;
    const Param *input = input_param(e, model);
    if (input == NULL || !image_type(e, input))
        return NULL;
    Program *p = ARENA_NEW(e->arena, Program);
    *p = (Program){.name = model->name,
                   .file = model->name_at.source->name,
                   .recipe = e->recipe};
    p->recipe.accumulate = 1;
    Stage *stage = ARENA_NEW(e->arena, Stage);
    stage->train = train_graph(e, t, given, input);
    p->stage = stage;
    p->num_stages = 1;
    if (e->diags->errors)
        return NULL;
    p->init = init_graph(e);
    p->eval = eval_graph(e, t, given, input);
    p->recipe.classes = e->recipe.classes;
    return e->diags->errors ? NULL : p;
}
