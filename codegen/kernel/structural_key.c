// Structural key: a text that is equal for two kernels only if they compute the
// same.

#include "codegen/kernel/parametrize.h"

#include <string.h>

typedef struct {
    Arena *a;
    Text *t;
    Numbers *numbers;
    const SpecConstants *specs;
} Key;

static void key_block(const Key *k, const Stmts *b);

static int number_of(Arena *a, Numbers *n, long number) {
    int i = 0;
    while (i < n->count && n->number[i] != number)
        i++;
    if (i == n->count)
        ARENA_APPEND(a, n->number, n->count, number);
    return i;
}

static void key_expr(const Key *k, const Expr *x) {
    if (x == NULL) {
        text_add(k->t, "- ");
        return;
    }
    text_add(k->t, "%c", 'A' + (int)x->kind);
    if (x->name != NULL)
        text_add(k->t, "%s", x->name);
    if (x->node != NO_NODE)
        text_add(k->t, "@%d", number_of(k->a, k->numbers, x->node));
    if (x->again > 0)
        text_add(k->t, "_%d", x->again);
    if (x->kind == X_REAL || x->kind == X_CONSTANT)
        text_add(k->t, "%a", x->real);
    else if (x->integer != 0)
        text_add(k->t, "%lld", (long long)x->integer);
    text_add(k->t, " ");
    for (int i = 0; i < x->count; i++)
        key_expr(k, x->arg[i]);
    if (x->count > 0)
        text_add(k->t, ")");
}

static bool is_left_out(const SpecConstants *z, const Enumerator *c) {
    for (int i = 0; z != NULL && i < z->names; i++)
        if (strcmp(z->name[i]->name, c->name) == 0)
            return true;
    return false;
}

static void key_stmt(const Key *k, const Stmt *s) {
    text_add(k->t, "%c%s %s ", 'a' + (int)s->kind, s->word ? s->word : "",
             s->type ? s->type : "");
    key_expr(k, s->name);
    for (int i = 0; i < MAX_DIMS && s->dim[i] != NULL; i++)
        key_expr(k, s->dim[i]);
    key_expr(k, s->value);
    if (s->kind == S_FOR) {
        key_expr(k, s->test);
        key_expr(k, s->step);
    }
    for (int i = 0; i < s->num_enumerators; i++) {
        text_add(k->t, "%s ", s->enumerator[i].name);
        if (!is_left_out(k->specs, &s->enumerator[i]))
            key_expr(k, s->enumerator[i].value);
    }
    for (int i = 0; i < s->num_rows; i++)
        key_expr(k, s->row[i].value);
    key_block(k, &s->body);
    key_block(k, &s->other);
}

static void key_block(const Key *k, const Stmts *b) {
    text_add(k->t, "{");
    for (const Stmt *s = b->first; s != NULL; s = s->next)
        key_stmt(k, s);
    text_add(k->t, "}");
}

void tree_key(Arena *a, Text *t, const Tree *tree, Numbers *n,
              const SpecConstants *z) {
    Key key = {a, t, n, z};
    text_add(t, "%d %d ", tree->phased, tree->min_blocks);
    key_block(&key, &tree->tables);
    for (int i = 0; i < tree->num_params; i++) {
        text_add(t, "%s ", tree->type[i]);
        key_expr(&key, tree->param[i]);
    }
    key_block(&key, &tree->body);
}
