// The front end's entry: read, parse, check, expand, lower.

#include "frontend/frontend.h"

#include "frontend/expand.h"

#include <string.h>

// ---- settings ----

static const Param *param_named(const Function *model, Atom name) {
    for (int i = 0; i < model->num_params; i++)
        if (model->param[i].name == name)
            return &model->param[i];
    return NULL;
}

static void report_setting(Expansion *e, const TrainBlock *t,
                           const Entry *setting) {
    const Function *model = train_model(t).closure.function;
    if (train_is_clause(setting->name)) {
        report(e->diags, D_setting, setting->at,
               "`%s` is a clause, and only keys can be set", setting->name);
        return;
    }
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
}

// A parameter's setting is of the same kind as its default.
static void set_param(Expansion *e, const Param *p, const Entry *setting,
                      Value *arg) {
    Value usual = expand(e, p->otherwise);
    Value v = expand(e, setting->value);
    const char *what = arena_format(e->arena, "`%s`", p->name);
    if (usual.kind == VALUE_POISON ||
        !expect_kind(e, v, usual.kind, setting->value->at, what))
        return;
    *arg = v;
}

static void apply_setting(Expansion *e, TrainBlock *t, const Entry *setting,
                          Value *arg) {
    const Function *model = train_model(t).closure.function;
    const Param *p = param_named(model, setting->name);
    if (p != NULL && p->otherwise != NULL)
        set_param(e, p, setting, &arg[p - model->param]);
    else if (!train_set(e, t, setting))
        report_setting(e, t, setting);
}

static void apply_settings(Expansion *e, TrainBlock *t, const Setting *setting,
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

// ---- the program ----

static Value *default_arguments(Expansion *e, const TrainBlock *t) {
    const Function *model = train_model(t).closure.function;
    size_t count = (size_t)model->num_params + 1;
    Value *arg = ARENA_ARRAY(e->arena, count, Value);
    for (size_t i = 0; i < count; i++)
        arg[i].kind = VALUE_NOTHING;
    return arg;
}

static Program *load(Arena *a, const Source *s, const Setting *setting,
                     int num_settings, Diagnostics *diags) {
    Expansion e = {.arena = a,
                   .atoms = atoms_new(a),
                   .diags = diags,
                   .phase = PHASE_CONSTANTS};
    int errors = diags->errors;
    const File *f = file_expand(&e, s);
    if (diags->errors > errors)
        return NULL;
    TrainBlock *t = train_new(&e, f);
    if (t == NULL)
        return NULL;
    Value *arg = default_arguments(&e, t);
    int before = diags->errors;
    apply_settings(&e, t, setting, num_settings, arg);
    if (diags->errors > before)
        return NULL;
    if (!train_constants(&e, t) || diags->errors > errors) {
        lower_doubtful(&e, t, arg);
        return NULL;
    }
    Program *p = lower(&e, t, arg);
    train_warn_batch(&e, t);
    return p;
}

Program *frontend_parse(Arena *a, const char *path, const char *text,
                        size_t length, const Setting *setting, int num_settings,
                        Diagnostics *diags) {
    if (length > MAX_FILE) {
        report(diags, D_file, (Span){0},
               "cannot read %s: it is longer than %d "
               "bytes",
               path, MAX_FILE);
        return NULL;
    }
    const Source *s = source_new(a, path, text, length);
    return load(a, s, setting, num_settings, diags);
}

Program *frontend_load(Arena *a, const char *path, const Setting *setting,
                       int num_settings, Diagnostics *diags) {
    const char *why;
    const Source *s = source_read(a, path, MAX_FILE, &why);
    if (s == NULL) {
        report(diags, D_file, (Span){0}, "cannot read %s: %s", path, why);
        return NULL;
    }
    return load(a, s, setting, num_settings, diags);
}
