// Dead code elimination: unused indices, products and arrays.
//
// Emission computes an index expression before the value at it, and some values
// do not depend on their index.  Fused multiply-adds leave products without
// uses, and hoisting leaves arrays.

#include "codegen/kernel/tree.h"

#include <string.h>

typedef struct {
    StringMap count; // mentions of a name, without its declaration
    int by;          // added by a visit
} Uses;

static int *count_of(Uses *u, const Expr *x) {
    return map_name(&u->count, x, sizeof(int));
}

static void count_name(void *context, const Expr *x) {
    Uses *u = context;
    if (x->kind == X_NAME)
        *count_of(u, x) += u->by;
}

static bool is_pure(const Expr *x) {
    if (x->kind == X_CALL && !is_call(x, PURE))
        return false;
    for (int i = 0; i < x->count; i++)
        if (!is_pure(x->arg[i]))
            return false;
    return true;
}

static bool is_dead(Uses *u, const Stmt *s) {
    return s->kind == S_DECLARE && s->value != NULL && s->dim[0] == NULL &&
           strncmp(s->type, "const ", 6) == 0 && is_pure(s->value) &&
           *count_of(u, s->name) == 1;
}

// Whether s declares an array that only the next statement mentions, and fills
// without another effect.
static bool is_unread(Uses *u, const Stmt *s) {
    if (s->kind != S_DECLARE || s->value != NULL || s->dim[0] == NULL ||
        s->word != NULL || s->next == NULL || *count_of(u, s->name) != 2)
        return false;
    const Stmt *fill = s->next, *set = fill->body.first;
    if (fill->kind == S_CALL)
        return expr_equal(fill->value->arg[0], s->name);
    return fill->kind == S_REPEAT && set != NULL && set->next == NULL &&
           set->kind == S_SET && is_pure(set->value) &&
           set->name->kind == X_INDEX && expr_equal(set->name->arg[0], s->name);
}

static bool remove_dead(Uses *u, Stmts *b) {
    bool removed = false;
    Stmts kept = {NULL, NULL};
    for (Stmt *s = b->first, *next; s != NULL; s = next) {
        bool unread = is_unread(u, s);
        Stmt *last = unread ? s->next : s;
        next = last->next;
        last->next = NULL;
        removed |= remove_dead(u, &s->body);
        removed |= remove_dead(u, &s->other);
        if (unread || is_dead(u, s)) {
            removed = true;
            Stmts dead = {s, last};
            u->by = -1;
            stmts_visit(&dead, count_name, u);
        } else {
            stmts_add(&kept, s);
        }
    }
    *b = kept;
    return removed;
}

// The cases and the phases of a multi-tensor kernel use the same names, each
// its own.
static bool repeats_names(const Stmt *s) {
    return s->kind == S_CASE ||
           (s->kind == S_REPEAT && s->value->kind == X_CALL &&
            strcmp(s->value->name, "PHASE") == 0);
}

static void scopes_dce(Arena *a, Stmts *b) {
    for (Stmt *s = b->first; s != NULL; s = s->next) {
        if (repeats_names(s))
            stmts_dce(a, &s->body);
        else
            scopes_dce(a, &s->body);
    }
}

void stmts_dce(Arena *a, Stmts *b) {
    Uses u = {map_new(a, stmts_names(b)), 1};
    stmts_visit(b, count_name, &u);
    while (remove_dead(&u, b))
        ;
    scopes_dce(a, b);
}
