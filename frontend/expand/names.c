// Names: checks before expansion.  An unread parameter or variable, an unused
// value and a redefinition are errors everywhere.
//
// One traversal keeps the innermost visible declaration of each name; a read
// marks it as used.

#include "frontend/expand/expand.h"

#include <string.h>

typedef struct Declaration {
    Atom name;
    Span at;
    const char *noun; // "the parameter", "the variable"
    bool used;
    const Function *owner;       // NULL: the file
    struct Declaration *outer;   // the shadowed one of the same name
    struct Declaration *sibling; // the previous one of the same function
} Declaration;

typedef struct {
    Arena *arena;
    Diagnostics *diags;
    NameCheck check;
    AtomMap declared;      // the innermost of each name
    const Function *owner; // the current function
    Declaration *latest;   // its latest
} Names;

// ---- declarations ----

static Declaration *declared(Names *n, Atom name) {
    return *atom_value(n->arena, &n->declared, name);
}

static Declaration *declare(Names *n, Atom name, Span at, const char *noun) {
    void **innermost = atom_value(n->arena, &n->declared, name);
    Declaration *d = ARENA_NEW(n->arena, Declaration);
    *d = (Declaration){name, at, noun, false, n->owner, *innermost, n->latest};
    *innermost = d;
    n->latest = d;
    return d;
}

static void read_name(Names *n, Atom name) {
    Declaration *d = declared(n, name);
    if (d != NULL)
        d->used = true;
}

// Leaves a function: removes its declarations and reports unused ones.
static void leave_function(Names *n) {
    for (Declaration *d = n->latest; d != NULL; d = d->sibling) {
        *atom_value(n->arena, &n->declared, d->name) = d->outer;
        if (!d->used && n->check == NAMES_USED)
            report(n->diags, D_unused, d->at, "%s `%s` is never used", d->noun,
                   d->name);
    }
}

// ---- the walk ----

static void walk_expr(Names *n, const Expr *x);

// A comprehension: its names end with it, and need no use.
static void walk_each(Names *n, const Expr *x) {
    walk_expr(n, x->right);
    for (int i = 0; i < x->to.count; i++)
        declare(n, x->to.name[i].name, x->to.name[i].at, "the variable");
    walk_expr(n, x->left);
    for (int i = 0; i < x->count; i++)
        walk_expr(n, x->item[i]);
    for (int i = 0; i < x->to.count; i++, n->latest = n->latest->sibling)
        *atom_value(n->arena, &n->declared, n->latest->name) =
            n->latest->outer;
}

static void walk_expr(Names *n, const Expr *x) {
    if (x == NULL)
        return;
    if (x->kind == EXPR_EACH) {
        walk_each(n, x);
        return;
    }
    if (x->kind == EXPR_NAME)
        read_name(n, x->text);
    for (int i = 0; i < expr_num_parts(x); i++)
        walk_expr(n, expr_part(x, i));
}

static void walk_type(Names *n, const TypeExpr *t) {
    for (int i = 0; t != NULL && i < t->rank; i++)
        walk_expr(n, t->dim[i]);
}

static void walk_function(Names *n, const Function *f);
static void walk_block(Names *n, const Block *b, bool has_value);

// `_` takes an item that is not used.
static void walk_assign(Names *n, const Stmt *s) {
    walk_expr(n, s->value);
    for (int i = 0; i < s->to.count; i++) {
        const Name *to = &s->to.name[i];
        Declaration *known = declared(n, to->name);
        if (known == NULL || known->owner != n->owner)
            known = declare(n, to->name, to->at, "the variable");
        known->used |= strcmp(to->name, "_") == 0;
    }
}

// A call of fail has no value.
static bool is_fail(const Expr *x) {
    return x->kind == EXPR_CALL && x->left->kind == EXPR_NAME &&
           strcmp(x->left->text, "fail") == 0;
}

static void check_value_used(Names *n, const Stmt *s) {
    if (n->check != NAMES_USED || is_fail(s->value))
        return;
    Diagnostic *d = report(n->diags, D_unused, s->at, "this value is not used");
    diag_note(d, "give it a name, or continue the chain with |>");
}

static void walk_stmt(Names *n, const Stmt *s, bool last) {
    switch (s->kind) {
    case STMT_ASSIGN:
        walk_assign(n, s);
        return;
    case STMT_FUNCTION:
        walk_function(n, s->function);
        declare(n, s->function->name, s->function->name_at, "the function");
        return;
    case STMT_FOR:
        walk_expr(n, s->value);
        for (int i = 0; i < s->to.count; i++)
            declare(n, s->to.name[i].name, s->to.name[i].at, "the variable")
                ->used = true;
        walk_block(n, &s->body, false);
        return;
    case STMT_IF:
    case STMT_WITH:
        walk_expr(n, s->value);
        walk_block(n, &s->body, last);
        walk_block(n, &s->otherwise, last);
        return;
    case STMT_VALUE:
        walk_expr(n, s->value);
        if (!last)
            check_value_used(n, s);
        return;
    }
}

// has_value: the block's last statement is its value.
static void walk_block(Names *n, const Block *b, bool has_value) {
    for (int i = 0; i < b->count; i++)
        walk_stmt(n, &b->stmt[i], has_value && i == b->count - 1);
}

static void check_params(Names *n, const Function *f) {
    for (int i = 0; i < f->num_params; i++) {
        const Param *p = &f->param[i];
        walk_type(n, p->type);
        walk_expr(n, p->otherwise);
        Declaration *known = declared(n, p->name);
        if (n->check == NAMES_ONCE && known != NULL &&
            known->owner == n->owner) {
            Diagnostic *d = report(n->diags, D_redefinition, p->at,
                                   "two parameters are called `%s`", p->name);
            diag_secondary(d, known->at, "this is the first");
        }
        declare(n, p->name, p->at, "the parameter");
    }
}

// Outputs are names of their own, in the loss.
static void check_outputs(Names *n, const Function *f) {
    for (int i = 0; i < f->num_outputs; i++) {
        const Param *p = &f->output[i];
        walk_type(n, p->type);
        for (int k = 0; k < i && n->check == NAMES_ONCE; k++)
            if (f->output[k].name == p->name) {
                Diagnostic *d = report(n->diags, D_redefinition, p->at,
                                       "two outputs are called `%s`", p->name);
                diag_secondary(d, f->output[k].at, "this is the first");
            }
    }
}

static void walk_function(Names *n, const Function *f) {
    Declaration *latest = n->latest;
    const Function *owner = n->owner;
    n->latest = NULL;
    n->owner = f;
    check_params(n, f);
    walk_type(n, f->result);
    check_outputs(n, f);
    walk_block(n, &f->body, true);
    leave_function(n);
    n->latest = latest;
    n->owner = owner;
}

// ---- the file ----

static void define(Names *n, Atom name, Span at) {
    Declaration *known = declared(n, name);
    if (known != NULL && n->check == NAMES_ONCE) {
        Diagnostic *d =
            report(n->diags, D_redefinition, at, "`%s` is defined twice", name);
        diag_secondary(d, known->at, "this is the first");
    }
    declare(n, name, at, "the name");
}

void names_check(Arena *a, const File *f, NameCheck check, Diagnostics *d) {
    Names n = {.arena = a, .diags = d, .check = check};
    for (int i = 0; i < f->count && !d->truncated; i++) {
        const Item *item = &f->item[i];
        for (int k = 0; k < item->import.num_names; k++)
            define(&n, item->import.name[k].name, item->import.name[k].at);
        if (item->kind == ITEM_LET) {
            walk_expr(&n, item->let.value);
            for (int k = 0; k < item->let.to.count; k++)
                define(&n, item->let.to.name[k].name, item->let.to.name[k].at);
        }
        if (item->function != NULL) {
            if (!function_is_native(item->function))
                walk_function(&n, item->function);
            define(&n, item->function->name, item->function->name_at);
        }
    }
}
