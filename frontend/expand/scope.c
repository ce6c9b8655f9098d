// Names: what they stand for at a place, and what is said of one that stands
// for nothing.

#include "frontend/expand/walk.h"
#include "frontend/foreign.h"

#include <string.h>

void scope_bind(Expansion *e, Atom name, Value v) {
    Binding *b = ARENA_NEW(e->arena, Binding);
    *b = (Binding){name, v, e->scope};
    e->scope = b;
}

Binding *scope_find(Expansion *e, Atom name, const Binding *end) {
    for (Binding *b = e->scope; b != end; b = b->next, e->work++)
        if (b->name == name)
            return b;
    return NULL;
}

bool name_defined(Expansion *e, Atom name) {
    return scope_find(e, name, NULL) != NULL;
}

bool name_known(Expansion *e, Atom name) {
    return name_defined(e, name) || builtin_find(name) != NULL;
}

void scope_assign(Expansion *e, Atom name, Value v) {
    Binding *b = scope_find(e, name, e->frame);
    if (b != NULL)
        b->value = v;
    else
        scope_bind(e, name, v);
}

bool name_unknown(Expansion *e, const Expr *x) {
    return x->kind == EXPR_NAME && !name_known(e, x->text);
}

// ---- names that nothing defines ----

// Where the file defines a name at its top level; no source where it does not.
static Span defined_later(const Expansion *e, Atom name) {
    for (int i = 0; e->file != NULL && i < e->file->count; i++) {
        const Item *item = &e->file->item[i];
        if (item->kind == ITEM_LET && item->let.name == name)
            return item->let.name_at;
        if (item->function != NULL && item->function->name == name)
            return item->function->name_at;
    }
    return (Span){0};
}

// Whether `as` has given the name to layers with parameters.
static bool names_layers(const Expansion *e, const char *name) {
    size_t length = strlen(name);
    for (int i = 0; i < e->num_parameters; i++)
        if (strncmp(e->parameter[i].name, name, length) == 0 &&
            e->parameter[i].name[length] == '.')
            return true;
    return false;
}

void name_note(Expansion *e, Atom name, Diagnostic *d) {
    if (names_layers(e, name)) {
        diag_note(d, "it names layers; a value is named by %s = ...", name);
        return;
    }
    bool trains = e->phase == PHASE_LOSS || e->phase == PHASE_KEYS;
    if ((trains && foreign_note(FOREIGN_LOSS, name, d)) ||
        foreign_note(FOREIGN_FUNCTION, name, d))
        return;
    Nearest near = nearest_to(name);
    for (const Binding *n = e->scope; n != NULL; n = n->next)
        nearest_offer(&near, n->name);
    for (int i = 0; i < NUM_BUILTINS; i++)
        nearest_offer(&near, builtin_info[i].name);
    nearest_note(&near, d);
}

static Value report_name(Expansion *e, const Expr *x) {
    Span later = defined_later(e, x->text);
    const char *module = std_module_of(x->text);
    if (call_is_active(e, x->text)) {
        report(e->diags, D_recursion, x->at,
               "`%s` cannot call itself: every model expands to a finite graph",
               x->text);
    } else if (later.source != NULL) {
        Diagnostic *d = report(e->diags, D_too_early, x->at,
                               "`%s` is used before its definition", x->text);
        diag_place(d, later, "it is defined here");
    } else if (module != NULL) {
        Diagnostic *d = report(e->diags, D_not_imported, x->at,
                               "`%s` is not imported", x->text);
        diag_note(d, "begin the file with: import \"%s\" { %s }", module,
                  x->text);
    } else {
        Diagnostic *d = report(e->diags, D_unknown_name, x->at,
                               "nothing here is called `%s`", x->text);
        name_note(e, x->text, d);
    }
    return value_poison();
}

Value expand_name(Expansion *e, const Expr *x) {
    Binding *b = scope_find(e, x->text, NULL);
    if (b != NULL)
        return b->value.kind == VALUE_LAZY ? lazy_force(e, b->value.lazy, x->at)
                                           : b->value;
    const Builtin *builtin = builtin_find(x->text);
    if (builtin != NULL && builtin->module == NULL)
        return (Value){.kind = VALUE_BUILTIN, .builtin = builtin, .at = x->at};
    return report_name(e, x);
}
