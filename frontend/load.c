// The front end's entry: read, parse, check, expand, lower.

#include "frontend/frontend.h"

#include "frontend/train/train.h"

#include <string.h>

// ---- the program ----

static Value *default_arguments(Expansion *e, const TrainBlock *t) {
    const Function *model = train_model(t).closure.function;
    size_t count = (size_t)model->num_params + 1;
    Value *arg = ARENA_ARRAY(e->arena, count, Value);
    for (size_t i = 0; i < count; i++)
        arg[i].kind = VALUE_NONE;
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
    if (t->absent) {
        lower_invalid(&e, t, arg);
        return NULL;
    }
    int before = diags->errors;
    settings_apply(&e, t, setting, num_settings, arg);
    if (diags->errors > before)
        return NULL;
    if (!train_constants(&e, t) || diags->errors > errors) {
        lower_invalid(&e, t, arg);
        return NULL;
    }
    Program *p = lower(&e, t, arg);
    train_warn_batch(&e, t);
    return p != NULL && train_check_batch(&e, t) ? p : NULL;
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
