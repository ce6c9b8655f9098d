// Unknown names: reports a name without a definition, alone or as a path like
// torch.optim.SGD, and suggests the intended one.

#include "frontend/expand/interpreter.h"
#include "frontend/foreign.h"

#include <string.h>

// ---- suggestions ----

// "x |> conv(channels, size, stride=..., ...)": the form of a call.
static const char *call_form(Arena *a, const Builtin *b) {
    const ParamInfo *p = &param_info[b->first];
    int count = builtin_num_params(b);
    int first = count > 0 && strcmp(p[0].name, "x") == 0;
    Text t = text_new(a);
    if (first && count == 1)
        return arena_format(a, "x |> %s, or %s(x)", b->name, b->name);
    text_add(&t, "%s%s(", first ? "x |> " : "", b->name);
    for (int i = first; i < count; i++)
        text_add(&t, "%s%s%s", i > first ? ", " : "", p[i].name,
                 p[i].otherwise != NULL ? "=..." : "");
    text_add(&t, ")");
    return text_string(&t);
}

static void note_import(const char *module, const char *name, Diagnostic *d) {
    diag_note(d, "begin the file with: import \"%s\" { %s }", module, name);
}

// Notes the name of another system's function here.
static bool note_equivalent(Expansion *e, const char *word, Diagnostic *d) {
    const char *ours = foreign_name(FOREIGN_FUNCTION, word);
    const Builtin *b = ours ? builtin_find(ours) : builtin_find_loose(word);
    if (b == NULL)
        return false;
    diag_note(d, "it is called `%s` here: %s", b->name, call_form(e->arena, b));
    Atom name = atom_of(e->atoms, b->name, strlen(b->name));
    if (b->module != NULL && !name_defined(e, name))
        note_import(b->module, b->name, d);
    foreign_note(FOREIGN_SURPLUS, b->name, d);
    return true;
}

// Notes a word of other systems: advice, a builtin, or a literal such as
// `true`.
static bool note_word(Expansion *e, const char *word, Diagnostic *d) {
    bool advice = foreign_name(FOREIGN_FUNCTION, word) == NULL &&
                  foreign_note(FOREIGN_FUNCTION, word, d);
    return advice || note_equivalent(e, word, d) ||
           foreign_note(FOREIGN_FUNCTION, word, d);
}

// "an optimizer is one of: sgd, adam, ..."
static void note_class(Expansion *e, Class class, Diagnostic *d) {
    Text t = text_new(e->arena);
    for (int i = 0; i < NUM_BUILTINS; i++)
        if (builtin_info[i].class == class ||
            (class == LAYER && builtin_info[i].class == NORM))
            text_add(&t, "%s%s", t.length ? ", " : "", builtin_info[i].name);
    diag_note(d, "%s is one of: %s", class_name(class),
              class == AUGMENT ? std_functions(e->arena, "std/vision.net")
                               : text_string(&t));
}

// A module of another system has functions of one class, or advice.
static bool note_module(Expansion *e, const char *word, Diagnostic *d) {
    const char *one = foreign_name(FOREIGN_MODULE, word);
    if (one == NULL)
        return foreign_note(FOREIGN_MODULE, word, d);
    note_class(e, builtin_find(one)->class, d);
    return true;
}

static void note_nearest(Expansion *e, Atom name, Diagnostic *d) {
    Nearest near = nearest_to(name);
    for (const Binding *n = e->scope; n != NULL; n = n->next)
        nearest_offer(&near, n->name);
    for (int i = 0; i < NUM_BUILTINS; i++)
        nearest_offer(&near, builtin_info[i].name);
    nearest_note(&near, d);
    if (near.best == NULL && e->phase == PHASE_INPUT)
        note_class(e, AUGMENT, d);
    if (near.best == NULL && e->phase == PHASE_LOSS)
        note_class(e, LOSS, d);
}

// Whether `as` has given the name to layers with parameters.
static bool is_layer_name(const Expansion *e, const char *name) {
    size_t length = strlen(name);
    for (int i = 0; i < e->num_parameters; i++)
        if (strncmp(e->parameter[i].name, name, length) == 0 &&
            e->parameter[i].name[length] == '.')
            return true;
    return false;
}

static void note_name(Expansion *e, Atom name, Diagnostic *d) {
    bool trains = e->phase == PHASE_LOSS || e->phase == PHASE_KEYS;
    if (is_layer_name(e, name))
        diag_note(d, "it names layers; a value is named by %s = ...", name);
    else if (!(trains && foreign_note(FOREIGN_LOSS, name, d)) &&
             !note_word(e, name, d) && !note_module(e, name, d))
        note_nearest(e, name, d);
}

// ---- a name ----

// The later definition of a name at the top level; no source if none.
static Span defined_later(const Expansion *e, Atom name) {
    for (int i = 0; e->file != NULL && i < e->file->count; i++) {
        const Item *item = &e->file->item[i];
        for (int k = 0; k < item->let.to.count; k++)
            if (item->let.to.name[k].name == name)
                return item->let.to.name[k].at;
        if (item->function != NULL && item->function->name == name)
            return item->function->name_at;
    }
    return (Span){0};
}

Value unknown_name(Expansion *e, const Expr *x) {
    Span later = defined_later(e, x->text);
    const char *module = std_module_of(x->text);
    if (call_is_active(e, x->text)) {
        report(e->diags, D_recursion, x->at,
               "`%s` cannot call itself: every model expands to a finite graph",
               x->text);
    } else if (later.source != NULL) {
        Diagnostic *d = report(e->diags, D_used_before_definition, x->at,
                               "`%s` is used before its definition", x->text);
        diag_secondary(d, later, "it is defined here");
    } else if (module != NULL) {
        Diagnostic *d = report(e->diags, D_not_imported, x->at,
                               "`%s` is not imported", x->text);
        note_import(module, x->text, d);
    } else {
        Diagnostic *d = report(e->diags, D_unknown_name, x->at,
                               "`%s` is not defined", x->text);
        note_name(e, x->text, d);
    }
    return value_poison();
}

// ---- paths ----

const Expr *path_root(const Expr *x) {
    while (x->kind == EXPR_MEMBER)
        x = x->left;
    return x;
}

static void path_add(Text *t, const Expr *x) {
    if (x->kind == EXPR_MEMBER) {
        path_add(t, x->left);
        text_add(t, ".");
    }
    text_add(t, "%s", x->text);
}

// The note comes from the innermost known module of a path.
static void note_path(Expansion *e, const Expr *x, Diagnostic *d) {
    if (note_word(e, x->text, d))
        return;
    const Expr *part = x;
    do {
        part = part->left;
        if (note_module(e, part->text, d))
            return;
    } while (part->kind == EXPR_MEMBER);
    note_nearest(e, x->text, d);
}

// Notes a function that another system has as a method of tensors.
static void note_method(Expansion *e, const char *word, Diagnostic *d) {
    const Builtin *b = builtin_find(word);
    if (foreign_note(FOREIGN_METHOD, word, d))
        return;
    if (b != NULL) {
        diag_note(d, "a function is applied by |>, as in: %s",
                  call_form(e->arena, b));
        foreign_note(FOREIGN_SURPLUS, word, d);
    } else if (!note_word(e, word, d)) {
        note_nearest(e, word, d);
    }
}

Value unknown_member(Expansion *e, const Expr *x, Value left) {
    if (left.kind != VALUE_NONE) {
        Diagnostic *d = report(e->diags, D_unknown_name, x->at,
                               "`.%s` has no meaning here", x->text);
        note_method(e, x->text, d);
        return value_poison();
    }
    Text path = text_new(e->arena);
    path_add(&path, x);
    Diagnostic *d = report(e->diags, D_unknown_name, x->at,
                           "`%s` is not defined", text_string(&path));
    note_path(e, x, d);
    return value_poison();
}
