// Settings: KEY=VALUE of the command line overrides a parameter's default or a
// key of the train block; KEY.ARGUMENT=VALUE overrides an argument of the key's
// call.
//
// Such an argument is appended to the call as an override, so that it is
// matched, checked and reported as any other.

#include "frontend/train/train.h"

#include <string.h>

// ---- keys that an overridden value used ----

// A worklist of entries.
typedef struct {
    TrainBlock *block;
    int *entry, count;
} Worklist;

static void mark_name(Worklist *r, Atom name) {
    int i = entry_find(r->block, name);
    if (i < 0 || r->block->entry[i].maybe_unused)
        return;
    r->block->entry[i].maybe_unused = true;
    r->entry[r->count++] = i;
}

static void mark_expr(Worklist *r, const Expr *x) {
    if (x == NULL)
        return;
    if (x->kind == EXPR_NAME)
        mark_name(r, x->text);
    for (int i = 0; i < expr_num_parts(x); i++)
        mark_expr(r, expr_part(x, i));
}

// Marks the keys that a value reads, directly or not: if an override leaves
// them unused, they are not misspelt.
static void mark_unused_keys(Expansion *e, TrainBlock *t, const Expr *value) {
    Worklist r = {t, ARENA_ARRAY(e->arena, (size_t)t->num_entries + 1, int), 0};
    mark_expr(&r, value);
    while (r.count > 0)
        mark_expr(&r, t->entry[r.entry[--r.count]].value);
}

// ---- keys ----

// The entry that a setting overrides, -1 for none; epochs and steps override
// each other.
static int overridden_entry(const TrainBlock *t, const char *name) {
    int i = entry_find(t, name);
    if (i < 0 && strcmp(name, "steps") == 0)
        return entry_find(t, "epochs");
    if (i < 0 && strcmp(name, "epochs") == 0)
        return entry_find(t, "steps");
    return i;
}

// False if the block cannot have such a key.
static bool set_key(Expansion *e, TrainBlock *t, const Entry *setting) {
    int i = overridden_entry(t, setting->name);
    if (i < 0 && key_find(setting->name) < 0)
        return false;
    if (i < 0) {
        t->entry[t->num_entries++] = *setting;
        return true;
    }
    Entry old = t->entry[i];
    mark_unused_keys(e, t, old.value);
    t->entry[i] = *setting;
    t->entry[i].maybe_unused = old.maybe_unused;
    if (setting->num_flags == 0) {
        t->entry[i].flag = old.flag;
        t->entry[i].flag_at = old.flag_at;
        t->entry[i].num_flags = old.num_flags;
    }
    return true;
}

// ---- arguments ----

static void report_no_key(Expansion *e, const TrainBlock *t,
                          const Entry *setting) {
    Diagnostic *d = report(e->diags, D_setting, setting->at,
                           "the train block has no key `%s`", setting->name);
    Nearest near = nearest_to(setting->name);
    for (int i = 0; i < t->num_entries; i++)
        if (t->entry[i].value != NULL && t->entry[i].value->kind == EXPR_CALL)
            nearest_offer(&near, t->entry[i].name);
    nearest_note(&near, d);
}

static void report_no_call(Expansion *e, const TrainBlock *t,
                           const Entry *setting, const Expr *value) {
    Diagnostic *d =
        report(e->diags, D_setting, setting->at,
               "`%s` is not a call and has no arguments", setting->name);
    diag_secondary(d, value->at, "this is its value");
    if (value->kind == EXPR_NAME && entry_find(t, value->text) >= 0)
        diag_note(d, "it is another key: %s.%s=...", value->text,
                  setting->argument);
}

static void set_argument(Expansion *e, TrainBlock *t, const Entry *setting) {
    int i = entry_find(t, setting->name);
    if (i < 0) {
        report_no_key(e, t, setting);
        return;
    }
    Entry *key = &t->entry[i];
    if (key->value->kind != EXPR_CALL) {
        report_no_call(e, t, setting, key->value);
        return;
    }
    mark_unused_keys(e, t, key->value);
    Expr *call = ARENA_NEW(e->arena, Expr);
    *call = *key->value;
    call->argument = ARENA_ARRAY(e->arena, (size_t)call->count + 1, Argument);
    if (call->count > 0)
        memcpy(call->argument, key->value->argument,
               (size_t)call->count * sizeof *call->argument);
    call->argument[call->count++] = (Argument){
        setting->argument, setting->argument_at, setting->value, true};
    key->value = call;
}

// ---- parameters of the model ----

static const Param *param_named(const Function *model, Atom name) {
    for (int i = 0; i < model->num_params; i++)
        if (model->param[i].name == name)
            return &model->param[i];
    return NULL;
}

// A parameter's default, as in the model: evaluated after earlier parameters,
// without an image.
static Value default_value(Expansion *e, Value model, const Param *p,
                           const Value *arg) {
    Binding *scope = e->scope, *frame = e->frame;
    const Param *first = model.closure.function->param;
    e->scope = e->frame = model.closure.scope;
    for (const Param *q = first; q < p; q++) {
        Value v = arg[q - first];
        if (v.kind == VALUE_NONE)
            v = q->otherwise ? expand(e, q->otherwise) : value_poison();
        scope_bind(e, q->name, v);
    }
    Value usual = expand(e, p->otherwise);
    e->scope = scope;
    e->frame = frame;
    return usual;
}

// A string needs no quotes if it is one word.
static Value setting_value(Expansion *e, const Expr *x, Value usual) {
    if (usual.kind == VALUE_STRING && x->kind == EXPR_NAME)
        return (Value){.kind = VALUE_STRING, .text = x->text, .at = x->at};
    return expand(e, x);
}

// A setting has the kind of the parameter's default, if that is known without
// an image.
static void set_param(Expansion *e, Value model, const Param *p,
                      const Entry *setting, Value *arg) {
    Value usual = default_value(e, model, p, arg);
    Value v = setting_value(e, setting->value, usual);
    const char *subject = arena_format(e->arena, "`%s`", p->name);
    if (usual.kind == VALUE_POISON ||
        expect_kind(e, v, usual.kind, setting->value->at, subject))
        arg[p - model.closure.function->param] = v;
}

// ---- one setting ----

static void report_clause(Expansion *e, const Entry *setting) {
    report(e->diags, D_setting, setting->at,
           "`%s` is a clause, and only keys can be set", setting->name);
}

// Whether a call may have such an argument, or has it.
static bool call_takes(const Expr *call, Atom name) {
    const Builtin *b =
        call->left->kind == EXPR_NAME ? builtin_find(call->left->text) : NULL;
    for (int i = 0; b != NULL && i < builtin_num_params(b); i++)
        if (strcmp(param_info[(int)b->first + i].name, name) == 0)
            return true;
    for (int i = 0; i < call->count; i++)
        if (call->argument[i].name == name)
            return true;
    return false;
}

// The rate is often an argument, and looked for as a key.
static bool note_argument(Diagnostic *d, const TrainBlock *t, Atom name) {
    for (int i = 0; i < t->num_entries; i++) {
        const Entry *key = &t->entry[i];
        if (key->value != NULL && key->value->kind == EXPR_CALL &&
            call_takes(key->value, name)) {
            diag_note(d, "it is an argument: %s.%s=...", key->name, name);
            return true;
        }
    }
    return false;
}

static void note_params(Expansion *e, const Function *model, Diagnostic *d) {
    Text names = text_new(e->arena);
    for (int i = 0; i < model->num_params; i++)
        if (model->param[i].otherwise != NULL)
            text_add(&names, "%s%s", names.length > 0 ? ", " : "",
                     model->param[i].name);
    if (names.length > 0)
        diag_note(d, "the model has these: %s", text_string(&names));
}

static void report_setting(Expansion *e, const TrainBlock *t,
                           const Entry *setting) {
    const Function *model = train_model(t).closure.function;
    Diagnostic *d = report(e->diags, D_setting, setting->at,
                           "`%s` is neither a parameter of the model with a "
                           "default nor a key",
                           setting->name);
    Nearest near = nearest_to(setting->name);
    for (int i = 0; i < model->num_params; i++)
        if (model->param[i].otherwise != NULL)
            nearest_offer(&near, model->param[i].name);
    train_offer_keys(t, &near);
    nearest_note(&near, d);
    if (!note_argument(d, t, setting->name) && near.best == NULL)
        note_params(e, model, d);
}

static void apply_setting(Expansion *e, TrainBlock *t, const Entry *setting,
                          Value *arg) {
    Value model = train_model(t);
    const Param *p = param_named(model.closure.function, setting->name);
    bool sets_argument = setting->argument != NULL;
    if (p != NULL && p->otherwise != NULL && !sets_argument)
        set_param(e, model, p, setting, arg);
    else if (train_is_clause(setting->name))
        report_clause(e, setting);
    else if (sets_argument)
        set_argument(e, t, setting);
    else if (!set_key(e, t, setting))
        report_setting(e, t, setting);
}

void settings_apply(Expansion *e, TrainBlock *t, const Setting *setting,
                    int num_settings, Value *arg) {
    for (int i = 0; i < num_settings; i++) {
        const char *text =
            arena_format(e->arena, "%s=%s", setting[i].key, setting[i].value);
        const Source *s = source_new(e->arena, "--set", text, strlen(text));
        int errors = e->diags->errors;
        Entry entry = parse_setting(e->arena, e->atoms, s, e->diags);
        if (e->diags->errors == errors)
            apply_setting(e, t, &entry, arg);
    }
}
