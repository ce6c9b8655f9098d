// Scopes: name lookup.

#include "frontend/expand/interpreter.h"

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

bool name_exists(Expansion *e, Atom name) {
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
    return x->kind == EXPR_NAME && !name_exists(e, x->text);
}

Value expand_name(Expansion *e, const Expr *x) {
    Binding *b = scope_find(e, x->text, NULL);
    if (b != NULL)
        return b->value.kind == VALUE_LAZY ? lazy_force(e, b->value.lazy, x->at)
                                           : b->value;
    const Builtin *builtin = builtin_find(x->text);
    if (builtin != NULL && builtin->module == NULL)
        return (Value){.kind = VALUE_BUILTIN, .builtin = builtin, .at = x->at};
    return unknown_name(e, x);
}
