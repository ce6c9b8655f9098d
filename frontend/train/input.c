// Input: the parameter of the model that takes the data, and its type.

#include "frontend/train/train.h"

const Param *input_param(Expansion *e, const Function *model) {
    const Param *found = NULL;
    for (int i = 0; i < model->num_params && found == NULL; i++)
        if (model->param[i].type != NULL)
            found = &model->param[i];
    if (found == NULL) {
        Diagnostic *d = report(e->diags, D_data, model->name_at,
                               "the model `%s` has no input", model->name);
        diag_note(d, "an input has a type, as in: image: u8[N, 32, 32, 3]");
    }
    return found;
}

// Binds a parameter as a number of sizes: the argument, or the default if the
// type uses it.
static void bind_param(Expansion *e, const Param *p, Value given) {
    if (given.kind == VALUE_NONE && p->otherwise != NULL) {
        Entry *entry = ARENA_NEW(e->arena, Entry);
        *entry = (Entry){.name = p->name, .at = p->at, .value = p->otherwise};
        given = (Value){.kind = VALUE_LAZY, .lazy = ARENA_NEW(e->arena, Lazy)};
        *given.lazy =
            (Lazy){.entry = entry, .phase = PHASE_CONSTANTS, .scope = e->scope};
    }
    if (given.kind != VALUE_NONE)
        scope_bind(e, p->name, given);
}

// The type of an input after the first; NULL before it is known.
static const Type *more_type(const Expansion *e, const Param *p) {
    for (int i = 0; i < e->num_more_inputs; i++)
        if (e->more_input[i].param == p)
            return &e->more_input[i].type;
    return NULL;
}

// Binds new names of dimensions of the inputs before p.
static bool bind_inputs(Expansion *e, const Function *f, const Param *p) {
    const Param *first = input_param(e, f);
    Type ignored;
    bool good = true;
    for (int i = 0; good && &f->param[i] != p; i++) {
        const Param *before = &f->param[i];
        const Type *known = before == first ? &e->image : more_type(e, before);
        if (before->type != NULL && known != NULL)
            good = type_expand(e, f, before->type, *known, &ignored);
    }
    return good;
}

// The declared type.  New names of dimensions take their sizes from earlier
// inputs, then from `found`; others are names of the model's file and earlier
// parameters.
static bool written_type(Expansion *e, const TrainBlock *t, const Value *given,
                         const Param *p, Type found, Type *out) {
    Value model = train_model(t);
    const Function *f = model.closure.function;
    Binding *scope = e->scope;
    e->scope = model.closure.scope;
    for (int i = 0; &f->param[i] != p; i++)
        bind_param(e, &f->param[i], given[i]);
    bool good = bind_inputs(e, f, p) && type_expand(e, f, p->type, found, out);
    e->scope = scope;
    return good;
}

static bool report_data(Expansion *e, const Param *p, Type known,
                        Type written) {
    Diagnostic *d =
        report(e->diags, D_data, p->type->at, "the samples of %s are %s",
               e->data.format, samples_text(e, known));
    diag_label(d, "and this is %s", samples_text(e, written));
    diag_secondary(d, e->data.at, "these are %s", samples_text(e, known));
    if (written.rank == 4 && known.rank == 4 &&
        written.dim[1] == known.dim[3] && written.dim[3] == known.dim[2])
        diag_note(d, "the order is [N, height, width, channels]");
    return false;
}

// Pixels are converted at their use, so that the type may be either.
static bool dtype_accepts(DType written, DType known) {
    return written == known || (written == F32 && known == U8);
}

static bool expect_dtype(Expansion *e, const Param *p, DType d) {
    if (d == U8 || d == I32 || d == F32)
        return true;
    report(e->diags, D_data, p->type->at,
           "a model's input is u8, i32 or f32, not %s", dtype_name(d));
    return false;
}

static bool check_dtype(Expansion *e, const TrainBlock *block,
                        const Value *given, const Param *p, Type *t) {
    Type written;
    if (e->data.typed) {
        t->dtype = e->data.batch.dtype;
        return dtype_accepts(p->type->dtype, t->dtype) ||
               (written_type(e, block, given, p, *t, &written) &&
                report_data(e, p, *t, written));
    }
    t->dtype = p->type->dtype;
    return expect_dtype(e, p, t->dtype);
}

// A first size other than the batch's is a number, or a name with another
// value.
static bool report_batch(Expansion *e, const Param *p, Type t) {
    const Expr *first = p->type->dim[0];
    Diagnostic *d = report(e->diags, D_data, first->at,
                           "the first size of an input must be the batch size");
    diag_label(d, "this is %lld, but the batch is %lld", (long long)t.dim[0],
               (long long)e->recipe.batch);
    if (first->kind == EXPR_NAME)
        diag_note(
            d,
            "an undefined name stands for the batch size, but `%s` is defined",
            first->text);
    else
        diag_note(d, "as in u8[N, 32, 32, 3], where nothing defines `N`");
    return false;
}

static bool check_size(Expansion *e, const Param *p, Type t) {
    if (t.rank >= 2 && t.dim[0] != e->recipe.batch)
        return report_batch(e, p, t);
    if (t.rank >= 2 && fits_as_numbers(t))
        return true;
    Diagnostic *d = t.rank < 2
                        ? report(e->diags, D_wrong_rank, p->type->at,
                                 "an input is a batch of samples, as "
                                 "u8[N, 32, 32, 3]")
                        : report(e->diags, D_tensor_too_large, p->type->at,
                                 "a batch of inputs is below 64 TiB as f32");
    diag_label(d, "this is %s", samples_text(e, t));
    return false;
}

// A square of pixels after 1 or 3: likely channels, height and width.
static void warn_order(Expansion *e, const Param *p, Type t) {
    if (t.rank != 4 || (t.dim[1] != 1 && t.dim[1] != 3) ||
        t.dim[2] != t.dim[3] || t.dim[3] <= 4)
        return;
    Diagnostic *d =
        report(e->diags, D_channels_first, p->type->at,
               "these are images of %lld x %lld pixels with %lld "
               "channels",
               (long long)t.dim[1], (long long)t.dim[2], (long long)t.dim[3]);
    diag_note(d, "the order is [N, height, width, channels]");
}

// Adds an input after the first, whose sizes the model declares.
static bool more_add(Expansion *e, const TrainBlock *block, const Value *given,
                     const Param *p) {
    Type t = {.rank = p->type->rank, .dim = {e->recipe.batch}};
    MoreInput *more =
        ARENA_ARRAY(e->arena, (size_t)e->num_more_inputs + 1, MoreInput);
    if (!e->data.named) {
        Diagnostic *d = report(e->diags, D_data, p->at,
                               "%s has no array for a second input",
                               e->data.format);
        diag_note(d, "npy, image_table and synthetic have arrays by "
                     "name");
        return false;
    }
    if (!written_type(e, block, given, p, t, &t) ||
        !expect_dtype(e, p, t.dtype) || !check_size(e, p, t))
        return false;
    for (int i = 0; i < e->num_more_inputs; i++)
        more[i] = e->more_input[i];
    more[e->num_more_inputs++] = (MoreInput){p, t};
    e->more_input = more;
    return true;
}

// Adds the inputs after the first.
static bool more_inputs(Expansion *e, const TrainBlock *block,
                        const Value *given, const Param *first) {
    const Function *f = train_model(block).closure.function;
    bool good = true;
    e->num_more_inputs = 0;
    for (int i = 0; good && i < f->num_params; i++)
        if (f->param[i].type != NULL && &f->param[i] != first)
            good = more_add(e, block, given, &f->param[i]);
    e->recipe.input_name = first->name;
    e->recipe.image_name = e->num_more_inputs > 0 ? first->name : NULL;
    if (!good || e->num_more_inputs + f->num_outputs <= MAX_ARRAYS)
        return good;
    report(e->diags, D_out_of_range, f->name_at,
           "`%s` has %d inputs and %d named outputs, and may have %d together",
           f->name, e->num_more_inputs + 1, f->num_outputs, MAX_ARRAYS + 1);
    return false;
}

bool input_type(Expansion *e, const TrainBlock *block, const Value *given,
                const Param *p) {
    Type t = e->data.batch;
    t.dim[0] = e->recipe.batch;
    if (t.rank == 0) {
        t.rank = p->type->rank;
        if (!written_type(e, block, given, p, t, &t))
            return false;
    }
    e->image = t;
    if (!check_dtype(e, block, given, p, &e->image) ||
        !check_size(e, p, e->image))
        return false;
    warn_order(e, p, e->image);
    return more_inputs(e, block, given, p);
}

// A chain may change the size of images, so that the model takes another size
// than the data has.
bool input_check(Expansion *e, const TrainBlock *block, const Value *given,
                 const Param *p, Value input) {
    Type found = *node_type(e, input.node), written;
    if (!written_type(e, block, given, p, found, &written))
        return false;
    if (type_has_shape(&found, &written))
        return true;
    if (input.node == e->input[INPUT_IMAGE])
        return report_data(e, p, found, written);
    Diagnostic *d =
        report(e->diags, D_data, p->type->at,
               "the input of the model does not match that of the train block");
    diag_label(d, "this is %s", samples_text(e, written));
    diag_secondary(d, input.at, "and this is %s", samples_text(e, found));
    return false;
}
