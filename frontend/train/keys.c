// Keys of the train block.
//
// A key is computed at its first use, so keys may use one another in any order;
// and again for each graph, as schedules become nodes of it.

#include "frontend/foreign.h"
#include "frontend/train/train.h"

#include <math.h>
#include <string.h>

enum { MAX_KEYS = 1000 };

// The entries of the language; other keys are the user's own.
static const struct {
    const char *name;
    Phase phase;
    const char *flags;  // flags that may follow the value
    const char *clause; // an example; NULL for a key
} known_key[] = {
    {"data", PHASE_KEYS, "", NULL},
    {"input", PHASE_INPUT, "", NULL},
    {"batch", PHASE_KEYS, "drop_last", NULL},
    {"epochs", PHASE_KEYS, "", NULL},
    {"precision", PHASE_KEYS, "", NULL},
    {"loss", PHASE_LOSS, "", NULL},
    {"optimizer", PHASE_KEYS, "", NULL},
    {"seed", PHASE_KEYS, "", NULL},
    {"average", PHASE_KEYS, "", NULL},
    {"accumulate", PHASE_KEYS, "", NULL},
    {"shards", PHASE_KEYS, "", NULL},
    {"optimizer_shards", PHASE_KEYS, "", NULL},
    {"sync_batch_norm", PHASE_KEYS, "", NULL},
    {"clip", PHASE_KEYS, "", NULL},
    {"recompute", PHASE_KEYS, "", NULL},
    {"steps", PHASE_KEYS, "", NULL},
    {"eval", PHASE_KEYS, "", "eval every 1 epoch"},
    {"checkpoint", PHASE_KEYS, "", "checkpoint every 1 epoch"},
    {"params", PHASE_KEYS, "", "params \"*.bias\" { weight_decay = 0 }"},
    {"freeze", PHASE_KEYS, "", "freeze \"*.bias\""},
    {"stop", PHASE_KEYS, "", "stop when accuracy >= 94%"},
};
enum { NUM_KNOWN = sizeof known_key / sizeof known_key[0] };

// Names that keys can read and that need no definition.
static const char *const variables[] = {"step", "epoch", "progress", "output",
                                        "label"};
enum { NUM_VARIABLES = sizeof variables / sizeof variables[0] };

int key_find(const char *name) {
    for (int i = 0; i < NUM_KNOWN; i++)
        if (strcmp(known_key[i].name, name) == 0)
            return i;
    return -1;
}

const char *key_name(int known) {
    return known < NUM_KNOWN ? known_key[known].name : NULL;
}

const char *key_flags(int known) {
    return known_key[known].flags;
}

int entry_find(const TrainBlock *t, const char *name) {
    for (int i = 0; i < t->num_entries; i++)
        if (t->entry[i].name != NULL && strcmp(t->entry[i].name, name) == 0)
            return i;
    return -1;
}

// ---- which block ----

static Value model_named(Expansion *e, const Train *t) {
    Nearest near = nearest_to(t->model);
    for (const Binding *b = e->scope; b != NULL; b = b->next) {
        if (b->name == t->model && b->value.kind == VALUE_FUNCTION &&
            b->value.closure.function->is_model)
            return b->value;
        if (b->name != t->model)
            nearest_offer(&near, b->name);
    }
    Diagnostic *d = report(e->diags, D_unknown_name, t->model_at,
                           "there is no model `%s`", t->model);
    nearest_note(&near, d);
    return value_poison();
}

// An empty block for the last model, whose mistakes are shown, too; NULL: there
// is no model.
static const Train *report_no_train(Expansion *e, const File *f) {
    const Function *model = NULL;
    for (int i = 0; i < f->count; i++)
        if (f->item[i].kind == ITEM_MODEL)
            model = f->item[i].function;
    Diagnostic *d =
        report(e->diags, D_no_train, model ? model->name_at : (Span){0},
               "this file has no train block");
    diag_note(d, "add a block: train %s { data = ... }",
              model ? model->name : "NAME");
    if (model == NULL)
        return NULL;
    Train *empty = ARENA_NEW(e->arena, Train);
    *empty = (Train){.model = model->name, .model_at = model->name_at};
    return empty;
}

static const Train *train_find(Expansion *e, const File *f) {
    const Train *found = NULL;
    for (int i = 0; i < f->count; i++) {
        const Train *t = &f->item[i].train;
        if (f->item[i].kind != ITEM_TRAIN)
            continue;
        if (found != NULL) {
            Diagnostic *d = report(e->diags, D_redefinition, t->model_at,
                                   "a file has one train block");
            diag_secondary(d, found->model_at, "this is the first");
            return NULL;
        }
        found = t;
    }
    return found != NULL ? found : report_no_train(e, f);
}

static bool is_variable(const char *name) {
    for (int i = 0; i < NUM_VARIABLES; i++)
        if (strcmp(name, variables[i]) == 0)
            return true;
    return false;
}

// The known key nearest to a name; NULL for none.
static const char *known_near(const char *name) {
    const char *ours = foreign_name(FOREIGN_KEY, name);
    if (ours != NULL)
        return ours;
    Nearest near = nearest_to(name);
    for (int k = 0; k < NUM_KNOWN; k++)
        nearest_offer(&near, known_key[k].name);
    return near.best;
}

bool key_resembles(const char *key, const char *name) {
    const char *right = known_near(key);
    return key_find(key) < 0 && right != NULL && strcmp(right, name) == 0;
}

// A user's key must not shadow a variable.
static bool key_is_free(Expansion *e, const Entry *key) {
    if (key->value == NULL || !is_variable(key->name))
        return true;
    const char *right = known_near(key->name);
    if (right != NULL) {
        Diagnostic *d = report(e->diags, D_unknown_key, key->at,
                               "there is no key `%s`", key->name);
        diag_note(d, "did you mean `%s`?", right);
        return false;
    }
    Diagnostic *d = report(e->diags, D_redefinition, key->at,
                           "`%s` is the name of a value of the run", key->name);
    diag_note(
        d, "rename the key; step, epoch, progress, output and label are taken");
    return false;
}

bool keys_check(Expansion *e, Span at, const Entry *entry, int count) {
    if (count > MAX_KEYS) {
        report(e->diags, D_model_too_large, at, "a block has at most %d keys",
               MAX_KEYS);
        return false;
    }
    bool good = true;
    for (int i = 0; i < count; i++) {
        good &= key_is_free(e, &entry[i]);
        for (int k = 0; k < i; k++) {
            if (entry[i].name != entry[k].name || entry[i].glob != NULL ||
                (entry[i].best == NULL) != (entry[k].best == NULL))
                continue;
            Diagnostic *d = report(e->diags, D_duplicate_key, entry[i].at,
                                   "`%s` is given twice", entry[i].name);
            diag_secondary(d, entry[k].at, "this is the first");
            good = false;
            break;
        }
    }
    return good;
}

bool keys_check_bare(Expansion *e, const Entry *key, int count) {
    bool good = true;
    for (int i = 0; i < count; i++) {
        if (key[i].num_flags == 0)
            continue;
        Diagnostic *d = report(e->diags, D_unknown_key, key[i].flag_at[0],
                               "`%s` has no `%s`", key[i].name, key[i].flag[0]);
        diag_note(d,
                  "another key has a value of its own, and a line or a `;` "
                  "before it: %s = ...",
                  key[i].flag[0]);
        good = false;
    }
    return good;
}

// A name is either a clause or a key.
static bool check_forms(Expansion *e, const Train *t) {
    bool good = true;
    for (int i = 0; i < t->num_entries; i++) {
        const Entry *entry = &t->entry[i];
        int k = key_find(entry->name);
        if (k < 0 || known_key[k].clause == NULL || entry->value == NULL)
            continue;
        Diagnostic *d = report(e->diags, D_key_value, entry->at,
                               "`%s` takes no value", entry->name);
        diag_note(d, "as in: %s", known_key[k].clause);
        good = false;
    }
    return good;
}

TrainBlock *train_new(Expansion *e, const File *f) {
    const Train *t = train_find(e, f);
    if (t == NULL ||
        (!keys_check(e, t->model_at, t->entry, t->num_entries) &&
         t->num_entries > MAX_KEYS) ||
        !check_forms(e, t))
        return NULL;
    TrainBlock *block = ARENA_NEW(e->arena, TrainBlock);
    *block = (TrainBlock){.file = f,
                          .at = t->model_at,
                          .model = model_named(e, t),
                          .absent = t->at.source == NULL,
                          .num_entries = t->num_entries,
                          .scope = e->scope};
    // Room for a setting of every key that the block omits.
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

bool train_is_clause(const char *name) {
    int known = key_find(name);
    return known >= 0 && known_key[known].clause != NULL;
}

void train_offer_keys(const TrainBlock *t, Nearest *n) {
    for (int i = 0; i < NUM_KNOWN; i++)
        if (known_key[i].clause == NULL)
            nearest_offer(n, known_key[i].name);
    for (int i = 0; i < t->num_entries; i++)
        if (t->entry[i].value != NULL)
            nearest_offer(n, t->entry[i].name);
}

// ---- names ----

static void bind_lazy(Expansion *e, Atom name, Lazy *lazy) {
    scope_bind(e, name, (Value){.kind = VALUE_LAZY, .lazy = lazy});
}

static void bind_variable(Expansion *e, const char *variable) {
    Atom name = atom_of(e->atoms, variable, strlen(variable));
    Lazy *lazy = ARENA_NEW(e->arena, Lazy);
    *lazy = (Lazy){.variable = variable,
                   .phase = PHASE_KEYS,
                   .shadowed = name_defined(e, name)};
    bind_lazy(e, name, lazy);
}

// `input` is a variable if it is not a key: either way it is the model's input.
static void bind_variables(Expansion *e, const TrainBlock *t) {
    for (int i = 0; i < NUM_VARIABLES; i++)
        bind_variable(e, variables[i]);
    if (entry_find(t, "input") < 0)
        bind_variable(e, "input");
}

// Whether the value of a key is unreliable, because t->invalid.
static bool is_unreliable(const TrainBlock *t, const Lazy *lazy) {
    bool read = lazy->phase == PHASE_KEYS && key_find(lazy->entry->name) >= 0;
    return is_variable(lazy->entry->name) ||
           (t->invalid && read && strcmp(lazy->entry->name, "data") != 0);
}

// Poisons the names of missing keys.
static void bind_missing(Expansion *e, const TrainBlock *t) {
    for (int k = 0; k < NUM_KNOWN; k++)
        if (t->invalid && entry_find(t, known_key[k].name) < 0)
            scope_bind(
                e,
                atom_of(e->atoms, known_key[k].name, strlen(known_key[k].name)),
                value_poison());
}

void train_begin(Expansion *e, TrainBlock *t) {
    e->scope = t->scope;
    e->frame = t->scope;
    bind_variables(e, t);
    bind_missing(e, t);
    // Uses persist: keys are read before a graph exists.
    const Lazy *before = t->lazy;
    t->lazy = ARENA_ARRAY(e->arena, (size_t)t->num_entries + 1, Lazy);
    t->regrouped = NULL;
    for (int i = 0; i < t->num_entries; i++) {
        const Entry *entry = &t->entry[i];
        int known = key_find(entry->name);
        Phase phase = known < 0 ? PHASE_KEYS : known_key[known].phase;
        t->lazy[i] = (Lazy){.entry = entry,
                            .phase = phase,
                            .used = before != NULL && before[i].used};
        if (entry->value != NULL && is_unreliable(t, &t->lazy[i]))
            scope_bind(e, entry->name, value_poison());
        else if (entry->value != NULL)
            bind_lazy(e, entry->name, &t->lazy[i]);
    }
    for (int i = 0; i < t->num_entries; i++)
        t->lazy[i].scope = e->scope;
}

// The value of a key; NONE if it is absent.
Value key_value(Expansion *e, TrainBlock *t, const char *name) {
    int i = entry_find(t, name);
    if (i < 0 || t->entry[i].value == NULL)
        return (Value){.kind = VALUE_NONE};
    return lazy_force(e, &t->lazy[i], t->entry[i].at);
}

// "data, input, batch, ..."
static const char *known_keys(Arena *a) {
    Text t = text_new(a);
    for (int i = 0; i < NUM_KNOWN; i++)
        text_add(&t, "%s%s", i ? ", " : "", known_key[i].name);
    return text_string(&t);
}

static void report_key(Expansion *e, const Entry *entry, const char *right) {
    Diagnostic *d =
        report(e->diags, D_unknown_key, entry->at,
               "there is no key `%s`, and no other key uses it", entry->name);
    const Builtin *b = builtin_find_loose(entry->name);
    if (foreign_note(FOREIGN_KEY, entry->name, d))
        return;
    if (b != NULL && (b->class == AUGMENT || b->class == IMAGE))
        diag_note(d, "it is part of the input: input = data.train |> %s(...)",
                  b->name);
    else if (right != NULL)
        diag_note(d, "did you mean `%s`?", right);
    else
        diag_note(d, "keys are %s; a trainer's --help lists its options",
                  known_keys(e->arena));
}

// Reports a missing key that is there but misspelt.
static bool is_misspelt(Expansion *e, const TrainBlock *t, const char *name) {
    for (int i = 0; i < t->num_entries; i++) {
        if (!key_resembles(t->entry[i].name, name))
            continue;
        report_key(e, &t->entry[i], name);
        return true;
    }
    return false;
}

Value key_required(Expansion *e, TrainBlock *t, const char *name,
                   const char *example) {
    Value v = key_value(e, t, name);
    if (v.kind != VALUE_NONE)
        return v;
    bool length = strcmp(name, "epochs") == 0; // `steps` may replace it
    if (is_misspelt(e, t, name) || (length && is_misspelt(e, t, "steps")))
        return value_poison();
    Diagnostic *d =
        report(e->diags, D_missing_key, t->at, "`%s` is missing", name);
    diag_note(d, "as in: %s", example);
    return value_poison();
}

// The span of the value of a key.
Span key_at(const TrainBlock *t, const char *name) {
    int i = entry_find(t, name);
    return i >= 0 && t->entry[i].value ? t->entry[i].value->at : t->at;
}

Diagnostic *key_report(Expansion *e, Span at, const char *subject,
                       const char *expected) {
    return report(e->diags, D_key_value, at, "%s must be %s", subject,
                  expected);
}

// A name alone is not a call, even if no argument is missing.
bool key_call(Expansion *e, Value v, Span at, Class class, const char *subject,
              const char *expected) {
    if (v.kind == VALUE_CALL && v.call->builtin->class == class)
        return true;
    if (v.kind == VALUE_POISON)
        return false;
    Diagnostic *d = key_report(e, at, subject, expected);
    const Builtin *b = v.kind == VALUE_BUILTIN  ? v.builtin
                       : v.kind == VALUE_STRING ? builtin_find_loose(v.text)
                                                : NULL;
    if (b != NULL && b->class == class)
        diag_note(d, "it is written as a call: %s(...)", b->name);
    return false;
}

// Reads an integer from least to INT32_MAX into *out.
bool key_integer(Expansion *e, Value v, Span at, const char *subject,
                 int64_t least, int64_t *out) {
    if (v.kind == VALUE_POISON)
        return false;
    if (v.kind == VALUE_NUMBER && v.unit == UNIT_NONE &&
        v.number >= (double)least && v.number <= INT32_MAX &&
        v.number == floor(v.number)) {
        *out = (int64_t)v.number;
        return true;
    }
    bool large = v.kind == VALUE_NUMBER && v.number > INT32_MAX;
    const char *most = large ? " to 2147483647" : "";
    key_report(e, at, subject,
               arena_format(e->arena, "a whole number from %lld%s",
                            (long long)least, most));
    return false;
}

// An unused key of the user's own may be a known one misspelt.
void train_check_used(Expansion *e, const TrainBlock *t) {
    for (int i = 0; i < t->num_entries; i++) {
        const Entry *entry = &t->entry[i];
        if (!t->lazy[i].used && !entry->maybe_unused &&
            key_find(entry->name) < 0)
            report_key(e, entry, known_near(entry->name));
    }
}
