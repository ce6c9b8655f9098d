// The recipe: keys that are read before a graph is built, and values of a
// graph.

#include "frontend/foreign.h"
#include "frontend/train/train.h"

#include <string.h>

static bool read_batch(Expansion *e, TrainBlock *t) {
    Value v = key_required(e, t, "batch", "batch = 128");
    return key_integer(e, v, key_at(t, "batch"), "`batch`", 1,
                       &e->recipe.batch);
}

static bool read_epochs(Expansion *e, TrainBlock *t) {
    Value v = key_required(e, t, "epochs", "epochs = 10");
    if (v.kind == VALUE_POISON)
        return false;
    if (v.kind != VALUE_NUMBER || !(v.number > 0) || v.number > 9e15 ||
        v.unit == UNIT_STEP) {
        bool large = v.kind == VALUE_NUMBER && v.number > 9e15;
        Diagnostic *d = key_report(e, key_at(t, "epochs"), "`epochs`",
                                   large ? "at most 9e15" : "a number above 0");
        if (v.kind == VALUE_NUMBER && v.unit == UNIT_STEP)
            diag_note(d, "the length in steps is `steps = %g`", v.number);
        return false;
    }
    e->recipe.length = (Time){v.number, IN_EPOCHS};
    return true;
}

static bool read_steps(Expansion *e, TrainBlock *t) {
    Value v = key_value(e, t, "steps");
    int64_t steps;
    if (v.kind == VALUE_NUMBER && v.unit == UNIT_STEP)
        v.unit = UNIT_NONE;
    if (v.kind == VALUE_NUMBER && v.unit == UNIT_EPOCH) {
        Diagnostic *d =
            key_report(e, key_at(t, "steps"), "`steps`", "a count of steps");
        diag_note(d, "the length in epochs is `epochs = %g`", v.number);
        return false;
    }
    if (!key_integer(e, v, key_at(t, "steps"), "`steps`", 1, &steps))
        return false;
    e->recipe.length = (Time){(double)steps, IN_STEPS};
    return true;
}

// Exactly one of epochs and steps.
static bool read_length(Expansion *e, TrainBlock *t) {
    int epochs = entry_find(t, "epochs"), steps = entry_find(t, "steps");
    if (steps < 0)
        return read_epochs(e, t);
    if (epochs < 0)
        return read_steps(e, t);
    bool later = steps > epochs;
    Diagnostic *d =
        report(e->diags, D_duplicate_key, t->entry[later ? steps : epochs].at,
               "the length of the run is given twice");
    diag_secondary(d, t->entry[later ? epochs : steps].at, "this is the first");
    diag_note(d, "`epochs` or `steps`, not both");
    return false;
}

static bool read_accumulate(Expansion *e, TrainBlock *t) {
    Value v = key_value(e, t, "accumulate");
    int64_t count = 1;
    if (v.kind != VALUE_NONE &&
        !key_integer(e, v, key_at(t, "accumulate"), "`accumulate`", 1, &count))
        return false;
    e->recipe.accumulate = (int)count;
    return true;
}

// The value of a key that counts shards; 0: there is none.
static bool read_shard_count(Expansion *e, TrainBlock *t, const char *key,
                             int64_t *count) {
    enum { MOST = 1024 };
    Value v = key_value(e, t, key);
    const char *name = arena_format(e->arena, "`%s`", key);
    *count = 0;
    if (v.kind == VALUE_NONE)
        return true;
    if (!key_integer(e, v, key_at(t, key), name, 1, count))
        return false;
    if (*count > MOST)
        key_report(e, key_at(t, key), name, "at most 1024");
    return *count <= MOST;
}

// The batch becomes that of a shard.
static bool read_shards(Expansion *e, TrainBlock *t) {
    int64_t count;
    if (!read_shard_count(e, t, "shards", &count))
        return false;
    if (count == 0)
        return true;
    if (e->recipe.batch % count != 0) {
        Diagnostic *d = report(e->diags, D_key_value, key_at(t, "shards"),
                               "%lld shards do not divide a batch of %lld",
                               (long long)count, (long long)e->recipe.batch);
        diag_secondary(d, key_at(t, "batch"), "this is the batch");
        return false;
    }
    e->recipe.shards = (int)count;
    e->recipe.batch /= count;
    return true;
}

static bool read_optimizer_shards(Expansion *e, TrainBlock *t) {
    static const char key[] = "optimizer_shards";
    int64_t count;
    if (!read_shard_count(e, t, key, &count))
        return false;
    e->recipe.optimizer_shards = (int)count;
    if (count > 1 && entry_find(t, "shards") < 0) {
        diag_note(report(e->diags, D_key_value, key_at(t, key),
                         "`%s` needs `shards`", key),
                  "ranks that train together own the optimizer's states, and "
                  "a trainer without `shards` is one process");
        return false;
    }
    return true;
}

static bool read_sync(Expansion *e, TrainBlock *t) {
    static const char name[] = "sync_batch_norm";
    Value v = key_value(e, t, name);
    if (v.kind == VALUE_NONE || v.kind == VALUE_POISON)
        return v.kind == VALUE_NONE;
    if (v.kind != VALUE_BOOL) {
        key_report(e, key_at(t, name), "`sync_batch_norm`", "true or false");
        return false;
    }
    e->recipe.sync_batch_norm = v.boolean;
    return true;
}

static bool read_seed(Expansion *e, TrainBlock *t) {
    Value v = key_value(e, t, "seed");
    return v.kind == VALUE_NONE ||
           key_integer(e, v, key_at(t, "seed"), "`seed`", 0, &e->recipe.seed);
}

static bool has_flag(const char *flags, const char *flag) {
    return *flags != '\0' && strcmp(flags, flag) == 0;
}

static bool read_flags(Expansion *e, const TrainBlock *t) {
    bool good = true;
    for (int i = 0; i < t->num_entries; i++) {
        const Entry *entry = &t->entry[i];
        int k = key_find(entry->name);
        const char *allowed = k < 0 ? "" : key_flags(k);
        // A misspelt batch is reported, and its flag is right.
        if (entry_find(t, "batch") < 0 && key_resembles(entry->name, "batch"))
            continue;
        for (int f = 0; f < entry->num_flags; f++) {
            if (has_flag(allowed, entry->flag[f])) {
                e->recipe.drop_last = true;
                continue;
            }
            Diagnostic *d =
                report(e->diags, D_unknown_key, entry->flag_at[f],
                       "`%s` has no `%s`", entry->name, entry->flag[f]);
            Nearest near = nearest_to(entry->flag[f]);
            nearest_offer(&near, allowed);
            nearest_note(&near, d);
            good = false;
        }
    }
    return good;
}

// ---- precision ----

// f32, f16, bf16, mixed(f16), mixed(bf16): keywords, not names.
static bool read_precision(Expansion *e, TrainBlock *t) {
    int i = entry_find(t, "precision");
    if (i < 0)
        return true;
    const Expr *x = t->entry[i].value, *word = x;
    bool mixed = x->kind == EXPR_CALL && x->left->kind == EXPR_NAME &&
                 strcmp(x->left->text, "mixed") == 0 && x->count == 1;
    if (mixed)
        word = x->argument[0].value;
    DType d;
    if (word->kind == EXPR_NAME &&
        dtype_find(word->text, strlen(word->text), &d) &&
        (d == F16 || d == BF16 || (d == F32 && !mixed))) {
        e->recipe.precision = d;
        return true;
    }
    Diagnostic *bad = key_report(e, x->at, "`precision`",
                                 "f32, f16, bf16, mixed(f16) or "
                                 "mixed(bf16)");
    if (word->kind == EXPR_STRING)
        diag_note(bad, "a word stands without quotes");
    if (word->kind == EXPR_NAME && foreign_note(FOREIGN_WORD, word->text, bad))
        return false;
    Nearest near = nearest_to(word->kind == EXPR_NAME ? word->text : "");
    nearest_offer(&near, "f32");
    nearest_offer(&near, "f16");
    nearest_offer(&near, "bf16");
    nearest_note(&near, bad);
    return false;
}

// none or auto: keywords, not names.
static bool read_recompute(Expansion *e, TrainBlock *t) {
    int i = entry_find(t, "recompute");
    if (i < 0)
        return true;
    const Expr *x = t->entry[i].value;
    const char *word = x->kind == EXPR_NAME ? x->text : "";
    if (strcmp(word, "none") == 0)
        e->recipe.recompute = RECOMPUTE_NONE;
    else if (strcmp(word, "auto") == 0)
        e->recipe.recompute = RECOMPUTE_AUTO;
    else
        key_report(e, x->at, "`recompute`", "none or auto");
    return e->recipe.recompute != RECOMPUTE_FOR_LIMIT;
}

// ---- data ----

static bool read_data(Expansion *e, TrainBlock *t) {
    Value v = key_required(e, t, "data", "data = cifar10(\"data/cifar10\")");
    if (!key_call(e, v, key_at(t, "data"), DATA, "`data`",
                  "a data set, as cifar10(\"data/cifar10\")"))
        return false;
    if (!data_set(e, v.call, &e->data)) {
        e->data = (DataSet){0};
        return false;
    }
    e->recipe.data_format = e->data.format;
    e->recipe.data_path = e->data.path;
    e->recipe.data_setting = e->data.setting;
    e->recipe.num_data_settings = e->data.num_settings;
    return true;
}

bool train_constants(Expansion *e, TrainBlock *t) {
    train_begin(e, t);
    e->phase = PHASE_KEYS;
    e->model = train_model(t).closure.function;
    // Reads all even after an error, to report all errors.
    bool good = read_data(e, t);
    good &= read_batch(e, t);
    good &= read_length(e, t);
    good &= read_accumulate(e, t);
    good &= read_shards(e, t);
    good &= read_optimizer_shards(e, t);
    good &= read_sync(e, t);
    good &= read_recompute(e, t);
    good &= read_seed(e, t);
    good &= read_precision(e, t);
    good &= read_flags(e, t);
    good &= clauses_read(e, t);
    good &= freezes_read(e, t);
    e->recipe.eval_samples =
        e->recipe.eval_train ? e->data.samples : e->data.tests;
    for (int i = 0; i < e->model->num_params; i++)
        e->recipe.sets_classes |=
            e->model->param[i].otherwise != NULL &&
            strcmp(e->model->param[i].name, "classes") == 0;
    return good;
}

// The trainer knows the number of samples, and refuses to drop them all.
static void warn_large_batch(Expansion *e, const TrainBlock *t) {
    Diagnostic *d =
        report(e->diags, D_short_batch, key_at(t, "batch"),
               "a batch of %lld is more than the %lld images",
               (long long)e->recipe.batch, (long long)e->data.samples);
    diag_note(d, e->recipe.drop_last
                     ? "`drop_last` leaves all of them out"
                     : "each step costs as much as one with a full batch");
}

// Training needs full batches only if evaluation does, and may drop others.
bool train_check_batch(Expansion *e, const TrainBlock *t) {
    const Recipe *r = &e->recipe;
    int64_t samples = r->eval_samples;
    if (r->whole_eval == NULL || samples % r->batch == 0)
        return true;
    Diagnostic *d = report(e->diags, D_short_last_batch, key_at(t, "batch"),
                           "a batch of %lld does not divide the %lld %s images",
                           (long long)r->batch, (long long)samples,
                           r->eval_train ? "training" : "test");
    diag_note(d,
              "%s, needs whole batches, and the last one has %lld: take a "
              "batch that divides %lld",
              r->whole_eval, (long long)(samples % r->batch),
              (long long)samples);
    return false;
}

void train_warn_batch(Expansion *e, const TrainBlock *t) {
    int64_t samples = e->data.samples, batch = e->recipe.batch;
    if (samples > 0 && batch > samples) {
        warn_large_batch(e, t);
        return;
    }
    if (samples == 0 || e->recipe.drop_last || samples % batch == 0)
        return;
    Diagnostic *d = report(e->diags, D_short_batch, key_at(t, "batch"),
                           "a batch of %lld does not divide the %lld images",
                           (long long)batch, (long long)samples);
    diag_note(d,
              "the last batch of an epoch holds %lld and costs as much as the "
              "others; `drop_last` leaves it out",
              (long long)(samples % batch));
    if (e->recipe.statistics != NULL)
        diag_note(d, "the statistics of %s, include the %lld that fill it up",
                  e->recipe.statistics, (long long)(batch - samples % batch));
}

// ---- values of a graph ----

Value train_input(Expansion *e, TrainBlock *t) {
    Value v = key_value(e, t, "input");
    if (v.kind == VALUE_NONE)
        return value_tensor(input_node(e, INPUT_IMAGE), (Span){0});
    if (!expect_kind(e, v, VALUE_TENSOR, key_at(t, "input"), "`input`"))
        return value_poison();
    return v;
}

static Value report_not_reduced(Expansion *e, TrainBlock *t) {
    bool reduced = e->loss.num_terms > 0;
    Diagnostic *d = report(e->diags, D_not_reduced, key_at(t, "loss"),
                           reduced ? "a loss must be a weighted sum of its "
                                     "reductions"
                                   : "a loss needs a reduction, mean or sum");
    diag_note(d, reduced ? "as in: mean(a) + 0.1 * mean(b)"
                         : "as in: loss = mean(cross_entropy(output, label)), "
                           "or sum(...)");
    return value_poison();
}

static Value report_terms(Expansion *e, TrainBlock *t, const char *what) {
    report(e->diags, D_not_reduced, key_at(t, "loss"),
           "a loss of several reductions cannot have %s", what);
    return value_poison();
}

// Whether `v` is a weighted sum of reductions, whose parts an evaluation adds
// up by what they divide by (metric.c).
static Value check_terms(Expansion *e, TrainBlock *t, Value v) {
    NodeId samples;
    if (e->loss.mixes_reductions)
        return report_terms(e, t, "both `mean` and `sum`");
    if (!loss_samples(e, v.node, NO_NODE, &samples))
        return report_not_reduced(e, t);
    return v;
}

Value train_loss(Expansion *e, TrainBlock *t, Value output) {
    outputs_set(e, output);
    e->loss.total = e->loss.counted = e->loss.counted_sum = NO_NODE;
    e->loss.is_binary = e->loss.mixes_reductions = false;
    e->loss.num_terms = e->loss.num_weighted = 0;
    Value v =
        key_required(e, t, "loss", "loss = mean(cross_entropy(output, label))");
    if (v.kind == VALUE_POISON)
        return v;
    if (v.kind != VALUE_TENSOR) {
        Diagnostic *d = report(e->diags, D_wrong_kind, key_at(t, "loss"),
                               "`loss` must be a tensor, and this is %s",
                               value_kind_name(v.kind));
        diag_note(d, "as in: loss = mean(cross_entropy(output, label))");
        return value_poison();
    }
    if (e->loss.num_terms == 0)
        return report_not_reduced(e, t);
    e->loss.total = v.node;
    return check_terms(e, t, v);
}

Value train_optimizer(Expansion *e, TrainBlock *t) {
    Value v = key_value(e, t, "optimizer");
    if (v.kind == VALUE_NONE && groups_have_optimizer(t))
        return v;
    if (v.kind == VALUE_NONE)
        v = key_required(e, t, "optimizer",
                         "optimizer = sgd(lr=0.1, momentum=0.9)");
    bool called = key_call(e, v, key_at(t, "optimizer"), OPTIMIZER,
                           "`optimizer`", "an optimizer, as adamw(lr=1e-3)");
    return called ? v : value_poison();
}

// Whether the command line sets the optimizer's own rate.
static bool rate_is_set(const TrainBlock *t) {
    int i = entry_find(t, "optimizer");
    const Expr *x = i >= 0 ? t->entry[i].value : NULL;
    for (int k = 0; x != NULL && x->kind == EXPR_CALL && k < x->count; k++)
        if (x->argument[k].overrides && strcmp(x->argument[k].name, "lr") == 0)
            return true;
    return false;
}

// The logged learning rate: the key `lr` if used, or the optimizer's.
Value train_rate(Expansion *e, TrainBlock *t, const Call *optimizer) {
    int i = entry_find(t, "lr");
    Value v = {.kind = VALUE_NONE};
    if (i >= 0 && t->lazy[i].used && !rate_is_set(t))
        v = key_value(e, t, "lr");
    bool scalar = v.kind == VALUE_NUMBER ||
                  (v.kind == VALUE_TENSOR && node_type(e, v.node)->rank == 0);
    e->recipe.rate = scalar ? "lr" : "optimizer.lr";
    return scalar ? v : optimizer_rate(optimizer);
}
