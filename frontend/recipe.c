// The train block: its keys, and what they say about the run.
//
// A key is computed when something uses it, so keys may use one another in any
// order.  What must be known before the graphs are built (batch, epochs) is
// read first; schedules, the loss and the optimizer become nodes later.

#include "frontend/expand.h"

#include <math.h>
#include <string.h>

typedef enum { UNTOUCHED, IN_PROGRESS, DONE } Progress;

// A name of the train block: one of its keys, or a variable of the run.
struct Lazy {
    const Entry *entry;   // NULL: a variable
    const char *variable; // step, epoch, progress, output, label
    Phase phase;
    Binding *scope;
    Progress progress;
    bool used;
    Value value;
};

struct TrainBlock {
    const File *file;
    Span at;
    Value model;
    Entry *entry;
    int num_entries;
    Lazy *lazy;     // of each entry, for the current graph
    Binding *scope; // of the file
};

enum { MOST_KEYS = 1000 };

// The keys that the language has; others are the user's own.
static const struct {
    const char *name;
    Phase phase;
    const char *flags; // words that may follow the value
    bool built;
} known_key[] = {
    {"data", PHASE_KEYS, "", true},
    {"input", PHASE_INPUT, "", true},
    {"batch", PHASE_KEYS, "drop_last", true},
    {"epochs", PHASE_KEYS, "", true},
    {"precision", PHASE_KEYS, "", true},
    {"loss", PHASE_LOSS, "", true},
    {"optimizer", PHASE_KEYS, "", true},
    {"seed", PHASE_KEYS, "", true},
    {"eval", PHASE_KEYS, "", true},
    {"checkpoint", PHASE_KEYS, "", true},
    {"average", PHASE_KEYS, "", false},
    {"accumulate", PHASE_KEYS, "", false},
    {"clip", PHASE_KEYS, "", false},
    {"recompute", PHASE_KEYS, "", false},
    {"steps", PHASE_KEYS, "", false},
};
enum { NUM_KNOWN = sizeof known_key / sizeof known_key[0] };

static int known_find(const char *name) {
    for (int i = 0; i < NUM_KNOWN; i++)
        if (strcmp(known_key[i].name, name) == 0)
            return i;
    return -1;
}

static int entry_find(const TrainBlock *t, const char *name) {
    for (int i = 0; i < t->num_entries; i++)
        if (t->entry[i].name != NULL && strcmp(t->entry[i].name, name) == 0)
            return i;
    return -1;
}

// ---- which block ----

static Value model_named(Expansion *e, const File *f, const Train *t) {
    Nearest near = nearest_to(t->model);
    for (const Binding *b = e->scope; b != NULL; b = b->next) {
        if (b->name == t->model && b->value.kind == VALUE_FUNCTION)
            for (int i = 0; i < f->count; i++)
                if (f->item[i].kind == ITEM_MODEL &&
                    f->item[i].function == b->value.closure.function)
                    return b->value;
        if (b->name != t->model)
            nearest_offer(&near, b->name);
    }
    Diagnostic *d = report(e->diags, D_unknown_name, t->model_at,
                           "there is no model `%s` in this file", t->model);
    nearest_note(&near, d);
    return value_poison();
}

static void report_no_train(Expansion *e, const File *f) {
    Span at = {0};
    const char *model = NULL;
    for (int i = 0; i < f->count; i++)
        if (f->item[i].kind == ITEM_MODEL) {
            at = f->item[i].function->name_at;
            model = f->item[i].function->name;
        }
    Diagnostic *d =
        report(e->diags, D_no_train, at, "this file does not say how to train");
    diag_note(d, "add a block: train %s { data = ... }",
              model ? model : "NAME");
}

static const Train *train_find(Expansion *e, const File *f) {
    const Train *found = NULL;
    for (int i = 0; i < f->count; i++) {
        const Train *t = &f->item[i].train;
        if (f->item[i].kind != ITEM_TRAIN)
            continue;
        if (found != NULL) {
            Diagnostic *d = report(e->diags, D_defined_twice, t->model_at,
                                   "a file has one train block");
            diag_place(d, found->model_at, "this is the first");
            return NULL;
        }
        found = t;
    }
    if (found == NULL)
        report_no_train(e, f);
    return found;
}

static bool check_repeated(Expansion *e, const Train *t) {
    if (t->num_entries > MOST_KEYS) {
        report(e->diags, D_too_much, t->model_at,
               "a train block has at most %d keys", MOST_KEYS);
        return false;
    }
    bool good = true;
    for (int i = 0; i < t->num_entries; i++)
        for (int k = 0; k < i; k++) {
            if (t->entry[i].name != t->entry[k].name)
                continue;
            Diagnostic *d = report(e->diags, D_key_twice, t->entry[i].at,
                                   "`%s` is given twice", t->entry[i].name);
            diag_place(d, t->entry[k].at, "this is the first");
            good = false;
            break;
        }
    return good;
}

static bool check_built(Expansion *e, const Train *t) {
    bool good = true;
    for (int i = 0; i < t->num_entries; i++) {
        int k = known_find(t->entry[i].name);
        if (k < 0 || known_key[k].built)
            continue;
        report(e->diags, D_not_built, t->entry[i].at,
               "`%s` is not supported yet", t->entry[i].name);
        good = false;
    }
    return good;
}

TrainBlock *train_new(Expansion *e, const File *f) {
    const Train *t = train_find(e, f);
    if (t == NULL || !check_repeated(e, t) || !check_built(e, t))
        return NULL;
    TrainBlock *block = ARENA_NEW(e->arena, TrainBlock);
    *block = (TrainBlock){.file = f,
                          .at = t->model_at,
                          .model = model_named(e, f, t),
                          .num_entries = t->num_entries,
                          .scope = e->scope};
    // Room for a setting of every known key that the block leaves out.
    size_t room = (size_t)t->num_entries + NUM_KNOWN;
    block->entry = ARENA_ARRAY(e->arena, room, Entry);
    if (t->num_entries)
        memcpy(block->entry, t->entry,
               (size_t)t->num_entries * sizeof *t->entry);
    return block->model.kind == VALUE_POISON ? NULL : block;
}

Value train_model(const TrainBlock *t) {
    return t->model;
}

bool train_set(Expansion *e, TrainBlock *t, const Entry *setting) {
    (void)e;
    int i = entry_find(t, setting->name), known = known_find(setting->name);
    if (i < 0 && (known < 0 || !known_key[known].built))
        return false;
    if (i < 0) {
        t->entry[t->num_entries++] = *setting;
        return true;
    }
    if (t->entry[i].value == NULL)
        return false;
    Entry old = t->entry[i];
    t->entry[i] = *setting;
    if (setting->num_flags == 0) {
        t->entry[i].flag = old.flag;
        t->entry[i].flag_at = old.flag_at;
        t->entry[i].num_flags = old.num_flags;
    }
    return true;
}

void train_offer_keys(const TrainBlock *t, Nearest *n) {
    for (int i = 0; i < NUM_KNOWN; i++)
        if (known_key[i].built)
            nearest_offer(n, known_key[i].name);
    for (int i = 0; i < t->num_entries; i++)
        nearest_offer(n, t->entry[i].name);
}

// ---- names ----

static void bind_lazy(Expansion *e, Atom name, Lazy *lazy) {
    scope_bind(e, name, (Value){.kind = VALUE_LAZY, .lazy = lazy});
}

static void bind_variables(Expansion *e) {
    static const char *const name[] = {"step", "epoch", "progress", "output",
                                       "label"};
    for (size_t i = 0; i < sizeof name / sizeof name[0]; i++) {
        Lazy *lazy = ARENA_NEW(e->arena, Lazy);
        *lazy = (Lazy){.variable = name[i], .phase = PHASE_KEYS};
        bind_lazy(e, atom_of(e->atoms, name[i], strlen(name[i])), lazy);
    }
}

void train_begin(Expansion *e, TrainBlock *t) {
    e->scope = t->scope;
    e->frame = t->scope;
    bind_variables(e);
    // What was used stays used: the keys are read before there is a graph.
    const Lazy *before = t->lazy;
    t->lazy = ARENA_ARRAY(e->arena, (size_t)t->num_entries + 1, Lazy);
    for (int i = 0; i < t->num_entries; i++) {
        const Entry *entry = &t->entry[i];
        int known = known_find(entry->name);
        Phase phase = known < 0 ? PHASE_KEYS : known_key[known].phase;
        t->lazy[i] = (Lazy){.entry = entry,
                            .phase = phase,
                            .used = before != NULL && before[i].used};
        if (entry->value != NULL)
            bind_lazy(e, entry->name, &t->lazy[i]);
    }
    for (int i = 0; i < t->num_entries; i++)
        t->lazy[i].scope = e->scope;
}

static Value variable(Expansion *e, const Lazy *lazy, Span at) {
    bool output = strcmp(lazy->variable, "output") == 0;
    if (output || strcmp(lazy->variable, "label") == 0) {
        if (e->phase == PHASE_LOSS) {
            origin_set(e, at, NULL);
            return output ? e->output
                          : value_tensor(input_node(e, INPUT_LABEL), at);
        }
        report(e->diags, D_wrong_place, at, "`%s` is there in the loss only",
               lazy->variable);
        return value_poison();
    }
    if (e->graph == NULL || !e->training) {
        report(e->diags, D_wrong_place, at,
               "`%s` changes during the run and cannot be used here",
               lazy->variable);
        return value_poison();
    }
    return schedule_variable(e, lazy->variable);
}

static Value force_entry(Expansion *e, Lazy *lazy) {
    Binding *scope = e->scope, *frame = e->frame;
    Phase phase = e->phase;
    Path *path = e->path;
    e->scope = e->frame = lazy->scope;
    e->phase = lazy->phase;
    e->path = NULL;
    if (lazy->phase == PHASE_INPUT)
        path_begin(e, "input.");
    lazy->progress = IN_PROGRESS;
    lazy->value = expand(e, lazy->entry->value);
    lazy->progress = DONE;
    e->scope = scope;
    e->frame = frame;
    e->phase = phase;
    e->path = path;
    return lazy->value;
}

Value lazy_force(Expansion *e, Lazy *lazy, Span at) {
    lazy->used = true;
    if (lazy->entry == NULL)
        return variable(e, lazy, at);
    if (lazy->progress == IN_PROGRESS) {
        Diagnostic *d = report(e->diags, D_key_cycle, at,
                               "`%s` depends on itself", lazy->entry->name);
        diag_place(d, lazy->entry->at, "it is given here");
        return value_poison();
    }
    if (lazy->progress == DONE)
        return lazy->value;
    return force_entry(e, lazy);
}

// The value of a key; NOTHING where it is not given.
static Value key_value(Expansion *e, TrainBlock *t, const char *name) {
    int i = entry_find(t, name);
    if (i < 0 || t->entry[i].value == NULL)
        return (Value){.kind = VALUE_NOTHING};
    return lazy_force(e, &t->lazy[i], t->entry[i].at);
}

static void report_key(Expansion *e, const Entry *entry, const char *right) {
    Diagnostic *d =
        report(e->diags, D_unknown_key, entry->at,
               "there is no key `%s`, and no other key uses it", entry->name);
    if (right != NULL)
        diag_note(d, "did you mean `%s`?", right);
}

// The known key nearest to a name; NULL for none.
static const char *known_near(const char *name) {
    Nearest near = nearest_to(name);
    for (int k = 0; k < NUM_KNOWN; k++)
        nearest_offer(&near, known_key[k].name);
    return near.best;
}

// Whether a key that is missing is there but misspelt; reported if so.
static bool is_misspelt(Expansion *e, const TrainBlock *t, const char *name) {
    for (int i = 0; i < t->num_entries; i++) {
        const char *right = known_near(t->entry[i].name);
        if (known_find(t->entry[i].name) >= 0 || right == NULL ||
            strcmp(right, name) != 0)
            continue;
        report_key(e, &t->entry[i], right);
        return true;
    }
    return false;
}

static Value needed_value(Expansion *e, TrainBlock *t, const char *name,
                          const char *example) {
    Value v = key_value(e, t, name);
    if (v.kind != VALUE_NOTHING)
        return v;
    if (is_misspelt(e, t, name))
        return value_poison();
    Diagnostic *d =
        report(e->diags, D_missing_key, t->at, "`%s` is missing", name);
    diag_note(d, "as in: %s", example);
    return value_poison();
}

// Where the value of a key stands.
static Span value_at(const TrainBlock *t, const char *name) {
    int i = entry_find(t, name);
    return i >= 0 && t->entry[i].value ? t->entry[i].value->at : t->at;
}

// ---- numbers ----

static void report_value(Expansion *e, Span at, const char *what,
                         const char *wanted) {
    report(e->diags, D_key_value, at, "%s must be %s", what, wanted);
}

// A whole number from least to INT32_MAX in *out.
static bool whole_key(Expansion *e, Value v, Span at, const char *what,
                      int64_t least, int64_t *out) {
    if (v.kind == VALUE_POISON)
        return false;
    if (v.kind == VALUE_NUMBER && v.unit == UNIT_NONE &&
        v.number >= (double)least && v.number <= INT32_MAX &&
        v.number == floor(v.number)) {
        *out = (int64_t)v.number;
        return true;
    }
    report_value(
        e, at, what,
        arena_format(e->arena, "a whole number from %lld", (long long)least));
    return false;
}

static bool read_batch(Expansion *e, TrainBlock *t) {
    Value v = needed_value(e, t, "batch", "batch = 128");
    return whole_key(e, v, value_at(t, "batch"), "`batch`", 1,
                     &e->recipe.batch);
}

static bool read_epochs(Expansion *e, TrainBlock *t) {
    Value v = needed_value(e, t, "epochs", "epochs = 10");
    if (v.kind == VALUE_POISON)
        return false;
    if (v.kind != VALUE_NUMBER || !(v.number > 0) || v.number > 9e15 ||
        v.unit == UNIT_STEP) {
        report_value(e, value_at(t, "epochs"), "`epochs`", "a number above 0");
        return false;
    }
    e->recipe.epochs = v.number;
    return true;
}

static bool read_seed(Expansion *e, TrainBlock *t) {
    Value v = key_value(e, t, "seed");
    return v.kind == VALUE_NOTHING ||
           whole_key(e, v, value_at(t, "seed"), "`seed`", 0, &e->recipe.seed);
}

static bool has_flag(const char *flags, const char *flag) {
    return *flags != '\0' && strcmp(flags, flag) == 0;
}

static bool read_flags(Expansion *e, const TrainBlock *t) {
    bool good = true;
    for (int i = 0; i < t->num_entries; i++) {
        const Entry *entry = &t->entry[i];
        int k = known_find(entry->name);
        const char *allowed = k < 0 ? "" : known_key[k].flags;
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

// f32, f16, bf16, mixed(f16), mixed(bf16): words, not names.
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
    report_value(e, x->at, "`precision`",
                 "f32, f16, bf16, mixed(f16) or mixed(bf16)");
    return false;
}

// ---- data ----

static bool read_data(Expansion *e, TrainBlock *t) {
    Value v = needed_value(e, t, "data", "data = cifar10(\"data/cifar10\")");
    if (v.kind == VALUE_POISON)
        return false;
    if (v.kind != VALUE_CALL || v.call->builtin->class != DATA) {
        report_value(e, value_at(t, "data"), "`data`",
                     "a data set, as cifar10(\"data/cifar10\")");
        return false;
    }
    e->data = data_set(v.call);
    e->recipe.data_format = e->data.format;
    e->recipe.data_path = e->data.path;
    return true;
}

static void warn_short_batch(Expansion *e, const TrainBlock *t) {
    int64_t samples = e->data.samples, batch = e->recipe.batch;
    if (!e->data.known || e->recipe.drop_last || samples % batch == 0)
        return;
    Diagnostic *d = report(e->diags, D_short_batch, value_at(t, "batch"),
                           "a batch of %lld does not divide the %lld images",
                           (long long)batch, (long long)samples);
    diag_note(d,
              "the last batch of an epoch holds %lld and costs as much as the "
              "others; `drop_last` leaves it out",
              (long long)(samples % batch));
}

// ---- clauses ----

// How many epochs lie between two times.
static bool read_every(Expansion *e, TrainBlock *t, const Expr *x,
                       const char *what, double *out) {
    e->scope = t->lazy[0].scope;
    e->phase = PHASE_KEYS;
    Value v = expand(e, x);
    if (v.kind == VALUE_POISON)
        return false;
    if (v.kind == VALUE_NUMBER && v.unit == UNIT_EPOCH && v.number > 0 &&
        v.number < 9e15) {
        *out = v.number;
        return true;
    }
    if (v.kind == VALUE_NUMBER && v.unit == UNIT_STEP) {
        report(e->diags, D_not_built, x->at,
               "%s counted in steps is not supported yet", what);
        return false;
    }
    Diagnostic *d = report(e->diags, D_key_value, x->at,
                           "%s needs a time with its unit", what);
    diag_note(d, "as in: every 1 epoch");
    return false;
}

static bool check_metrics(Expansion *e, const Entry *k) {
    bool list = k->value->kind == EXPR_LIST, good = list;
    if (!list)
        report_value(e, k->value->at, "`metrics`",
                     "a list, as [accuracy, loss]");
    for (int i = 0; list && i < k->value->count; i++) {
        const Expr *x = k->value->item[i];
        bool word = x->kind == EXPR_NAME;
        if (word &&
            (strcmp(x->text, "accuracy") == 0 || strcmp(x->text, "loss") == 0))
            continue;
        good = false;
        Diagnostic *d = report(e->diags, D_key_value, x->at,
                               "a metric must be accuracy or loss");
        Nearest near = nearest_to(word ? x->text : "");
        nearest_offer(&near, "accuracy");
        nearest_note(&near, d);
    }
    return good;
}

static bool check_eval_keys(Expansion *e, const Entry *eval) {
    bool good = true;
    for (int i = 0; i < eval->num_keys; i++) {
        const Entry *k = &eval->key[i];
        if (strcmp(k->name, "metrics") == 0) {
            good &= check_metrics(e, k);
            continue;
        }
        good = false;
        if (strcmp(k->name, "views") == 0 || strcmp(k->name, "weights") == 0) {
            report(e->diags, D_not_built, k->at, "`%s` is not supported yet",
                   k->name);
            continue;
        }
        Diagnostic *d = report(e->diags, D_unknown_key, k->at,
                               "eval has no key `%s`", k->name);
        Nearest near = nearest_to(k->name);
        nearest_offer(&near, "metrics");
        nearest_note(&near, d);
    }
    return good;
}

static bool check_on(Expansion *e, const Expr *on) {
    if (on == NULL ||
        (on->kind == EXPR_MEMBER && on->left->kind == EXPR_NAME &&
         strcmp(on->left->text, "data") == 0 && strcmp(on->text, "test") == 0))
        return true;
    report_value(e, on->at, "what eval is on", "data.test");
    return false;
}

static bool read_eval(Expansion *e, TrainBlock *t) {
    int i = entry_find(t, "eval");
    e->recipe.eval_epochs = 1;
    if (i < 0)
        return true;
    const Entry *eval = &t->entry[i];
    bool good = check_on(e, eval->on);
    good &= check_eval_keys(e, eval);
    if (eval->every == NULL) {
        e->recipe.eval_epochs = 0;
        return good;
    }
    return read_every(e, t, eval->every, "eval", &e->recipe.eval_epochs) &&
           good;
}

static bool read_checkpoint(Expansion *e, TrainBlock *t) {
    int i = entry_find(t, "checkpoint");
    int64_t keep = 1;
    e->recipe.checkpoint_keep = 1;
    if (i < 0)
        return true;
    const Entry *c = &t->entry[i];
    if (!read_every(e, t, c->every, "checkpoint", &e->recipe.checkpoint_epochs))
        return false;
    if (c->keep != NULL &&
        !whole_key(e, expand(e, c->keep), c->keep->at, "keep", 1, &keep))
        return false;
    e->recipe.checkpoint_keep = (int)keep;
    return true;
}

// Only `eval` and `checkpoint` are clauses, and they are never keys.
static bool check_forms(Expansion *e, const TrainBlock *t) {
    bool good = true;
    for (int i = 0; i < t->num_entries; i++) {
        const Entry *entry = &t->entry[i];
        bool clause = strcmp(entry->name, "eval") == 0 ||
                      strcmp(entry->name, "checkpoint") == 0;
        if (!clause || entry->value == NULL)
            continue;
        Diagnostic *d = report(e->diags, D_key_value, entry->at,
                               "`%s` takes no value", entry->name);
        diag_note(d, "as in: %s every 1 epoch", entry->name);
        good = false;
    }
    return good;
}

bool train_constants(Expansion *e, TrainBlock *t) {
    train_begin(e, t);
    e->phase = PHASE_KEYS;
    // All of them are read even when one is wrong, so that all are reported.
    bool good = check_forms(e, t);
    if (!good)
        return false;
    good = read_flags(e, t);
    good &= read_data(e, t);
    good &= read_batch(e, t);
    good &= read_epochs(e, t);
    good &= read_seed(e, t);
    good &= read_precision(e, t);
    good &= read_eval(e, t);
    good &= read_checkpoint(e, t);
    if (good)
        warn_short_batch(e, t);
    return good;
}

// ---- values of a graph ----

Value train_input(Expansion *e, TrainBlock *t) {
    Value v = key_value(e, t, "input");
    if (v.kind == VALUE_NOTHING)
        return value_tensor(input_node(e, INPUT_IMAGE), (Span){0});
    if (!expect_kind(e, v, VALUE_TENSOR, value_at(t, "input"), "`input`"))
        return value_poison();
    return v;
}

static Value report_not_reduced(Expansion *e, TrainBlock *t) {
    Diagnostic *d = report(e->diags, D_not_reduced, value_at(t, "loss"),
                           "a loss says how it is reduced");
    diag_note(d,
              "as in: loss = mean(cross_entropy(output, label)), or sum(...)");
    return value_poison();
}

Value train_loss(Expansion *e, TrainBlock *t, Value output) {
    e->output = output;
    e->loss.total = NO_NODE;
    Value v =
        needed_value(e, t, "loss", "loss = mean(cross_entropy(output, label))");
    if (v.kind == VALUE_POISON)
        return v;
    if (!expect_kind(e, v, VALUE_TENSOR, value_at(t, "loss"), "`loss`"))
        return value_poison();
    return v.node == e->loss.total ? v : report_not_reduced(e, t);
}

Value train_optimizer(Expansion *e, TrainBlock *t) {
    Value v = needed_value(e, t, "optimizer",
                           "optimizer = sgd(lr=0.1, momentum=0.9)");
    if (v.kind == VALUE_POISON ||
        (v.kind == VALUE_CALL && v.call->builtin->class == OPTIMIZER))
        return v;
    report_value(e, value_at(t, "optimizer"), "`optimizer`",
                 "sgd(...), adam(...) or adamw(...)");
    return value_poison();
}

// What is shown as the learning rate: the key `lr`, or the optimizer's.  To be
// shown is not to be used.
Value train_rate(Expansion *e, TrainBlock *t, const Call *optimizer) {
    int i = entry_find(t, "lr");
    bool used = i >= 0 && t->lazy[i].used;
    Value v = key_value(e, t, "lr");
    if (i >= 0)
        t->lazy[i].used = used;
    bool scalar = v.kind == VALUE_NUMBER ||
                  (v.kind == VALUE_TENSOR && node_type(e, v.node).rank == 0);
    return scalar ? v : optimizer_rate(optimizer);
}

// A key of the user's own that no other key used is a known one misspelt.
void train_check_used(Expansion *e, const TrainBlock *t) {
    for (int i = 0; i < t->num_entries; i++) {
        const Entry *entry = &t->entry[i];
        if (!t->lazy[i].used && known_find(entry->name) < 0)
            report_key(e, entry, known_near(entry->name));
    }
}
