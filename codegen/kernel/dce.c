// Dead code elimination: unused indices and products.
//
// Emission computes an index expression before the value at it, and some values
// do not depend on their index.  Fused multiply-adds leave products without
// uses.

#include "codegen/kernel/keys.h"
#include "codegen/kernel/tree.h"

#include <string.h>

typedef struct {
    Arena *a;
    Keys count; // mentions of a name, without its declaration
    int by;     // added by a visit
} Uses;

static int *count_of(Uses *u, const Expr *x) {
    void **count = keys_at(&u->count, expr_print(u->a, x, ""));
    if (*count == NULL)
        *count = ARENA_NEW(u->a, int);
    return *count;
}

static void count_name(void *context, const Expr *x) {
    Uses *u = context;
    if (x->kind == X_NAME)
        *count_of(u, x) += u->by;
}

static bool is_pure(const Expr *x) {
    const Intrinsic *f = x->kind == X_CALL ? intrinsic_find(x->name) : NULL;
    if (x->kind == X_CALL && (f == NULL || f->kind != PURE))
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

static bool remove_dead(Uses *u, Block *b) {
    bool removed = false;
    Block kept = {NULL, NULL};
    for (Stmt *s = b->first, *next; s != NULL; s = next) {
        next = s->next;
        s->next = NULL;
        removed |= remove_dead(u, &s->body);
        removed |= remove_dead(u, &s->other);
        if (is_dead(u, s)) {
            removed = true;
            Block dead = {s, s};
            u->by = -1;
            block_visit(&dead, count_name, u);
        } else {
            block_add(&kept, s);
        }
    }
    *b = kept;
    return removed;
}

// The cases of a multi-tensor kernel use the same names, each its own.
static void cases_dce(Arena *a, Block *b) {
    for (Stmt *s = b->first; s != NULL; s = s->next) {
        if (s->kind == S_CASE)
            block_dce(a, &s->body);
        cases_dce(a, &s->body);
    }
}

void block_dce(Arena *a, Block *b) {
    Uses u = {a, keys_new(a, block_names(b)), 1};
    block_visit(b, count_name, &u);
    while (remove_dead(&u, b))
        ;
    cases_dce(a, b);
}
