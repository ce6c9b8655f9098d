// Scopes: lookup and assignment of names.

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

// The items of a list, one for each name; NULL after a report.
static const Value *expect_items(Expansion *e, const Targets *to, Value v,
                                 Span at) {
    const char *advice = v.kind == VALUE_TENSOR
                             ? "`split` divides a tensor, as in: a, b = "
                               "split(x, 2)"
                             : NULL;
    if (!advise_kind(e, v, VALUE_LIST, at, "a value of several names", advice))
        return NULL;
    if (v.list.count == to->count)
        return v.list.item;
    Diagnostic *d = report(e->diags, D_wrong_length, at,
                           "%d names cannot take a list of %d item%s",
                           to->count, v.list.count,
                           v.list.count == 1 ? "" : "s");
    diag_secondary(d, span_join(to->name[0].at, to->name[to->count - 1].at),
                   "these are the names");
    return NULL;
}

bool targets_assign(Expansion *e, const Targets *to, Value v, Span at,
                    Bind *bind) {
    const Value *item = to->count == 1 ? &v : expect_items(e, to, v, at);
    for (int i = 0; i < to->count; i++)
        bind(e, to->name[i].name, item != NULL ? item[i] : value_poison());
    return item != NULL;
}

void targets_bind(Expansion *e, const Stmt *s, Bind *bind) {
    targets_assign(e, &s->to, expand(e, s->value), s->value->at, bind);
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
