// Structural key: a text that is equal for two kernels only if they compute the
// same.

#include "codegen/structural_key.h"

#include <string.h>

enum { LEAST_SIZE = 64 }; // smaller ones may bound unrolled loops

typedef struct {
    Arena *a;
    Text *t;
    Numbers *numbers;
    Sizes *sizes;
} Key;

static void key_block(const Key *k, const Block *b);

// ---- sizes ----

// The size that a constant's name stands for, or NULL.
static const Constant *size_named(const Sizes *z, const Expr *x) {
    for (int i = 0; i < z->names && x->kind == X_NAME; i++)
        if (is_named(x, z->name[i]->name))
            return z->name[i];
    return NULL;
}

bool is_size(const Sizes *z, const Expr *x) {
    return x->kind == X_SIZE || x->kind == X_STREAM || x->kind == X_SCALE ||
           size_named(z, x) != NULL;
}

// Whether the size may differ within a family: an int above unrolled loops.
static bool may_differ(const Size *s) {
    return s->kind == X_SCALE || s->of != NULL ||
           (s->whole >= LEAST_SIZE && s->whole <= INT32_MAX);
}

// The number of a constant, or of the constant that it begins with.
static int64_t constant_number(const Sizes *z, const Constant *c) {
    const Expr *value = c->value;
    if (value->kind == X_OP)
        value = size_named(z, value->arg[0])->value;
    return value->whole;
}

static void size_take(const Key *k, const Expr *x) {
    const Constant *c = size_named(k->sizes, x);
    Size s = {x->kind == X_NAME ? X_SIZE : x->kind, x->whole, x->real, NULL};
    if (c != NULL) {
        s.of = c->value;
        s.whole = constant_number(k->sizes, c);
    }
    text_add(k->t, "%c%d ", c && c->value->kind == X_OP ? 'g' : 's', s.kind);
    if (!may_differ(&s))
        text_add(k->t, "%lld ", (long long)s.whole);
    ARENA_APPEND(k->a, k->sizes->size, k->sizes->count, s);
}

// A constant is a size if its number or its base constant is one.
static bool constant_is_size(const Sizes *z, const Constant *c) {
    if (!c->sized)
        return false;
    if (c->value->kind == X_OP)
        return size_named(z, c->value->arg[0]) != NULL;
    return c->value->whole <= INT32_MAX;
}

// ---- trees ----

static int place_of(Arena *a, Numbers *n, long number) {
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
    if (k->sizes != NULL && is_size(k->sizes, x)) {
        size_take(k, x);
        return;
    }
    if (k->sizes != NULL && x->kind == X_GPU)
        return;
    text_add(k->t, "%c", 'A' + (int)x->kind);
    if (x->name != NULL)
        text_add(k->t, "%s", x->name);
    if (x->node != NO_NODE)
        text_add(k->t, "@%d", place_of(k->a, k->numbers, x->node));
    if (x->again > 0)
        text_add(k->t, "_%d", x->again);
    if (x->kind == X_REAL || x->kind == X_SCALE)
        text_add(k->t, "%a", x->real);
    else if (x->whole != 0)
        text_add(k->t, "%lld", (long long)x->whole);
    text_add(k->t, " ");
    for (int i = 0; i < x->count; i++)
        key_expr(k, x->arg[i]);
    if (x->count > 0)
        text_add(k->t, ")");
}

static void key_constants(const Key *k, const Stmt *s) {
    for (int i = 0; i < s->num_constants; i++) {
        const Constant *c = &s->constant[i];
        text_add(k->t, "%s ", c->name);
        if (k->sizes == NULL || !constant_is_size(k->sizes, c)) {
            Key plain = {k->a, k->t, k->numbers, NULL};
            key_expr(&plain, c->value);
        } else {
            k->sizes->name[k->sizes->names++] = c;
        }
    }
}

static void key_stmt(const Key *k, const Stmt *s) {
    text_add(k->t, "%c%s %s ", 'a' + (int)s->kind, s->word ? s->word : "",
             s->type ? s->type : "");
    key_expr(k, s->name);
    for (int i = 0; i < MOST_DIMS && s->dim[i] != NULL; i++)
        key_expr(k, s->dim[i]);
    key_expr(k, s->value);
    if (s->kind == S_FOR) {
        key_expr(k, s->test);
        key_expr(k, s->step);
    }
    key_constants(k, s);
    for (int i = 0; i < s->num_rows; i++)
        key_expr(k, s->row[i].value);
    key_block(k, &s->body);
    key_block(k, &s->other);
}

static void key_block(const Key *k, const Block *b) {
    text_add(k->t, "{");
    for (const Stmt *s = b->first; s != NULL; s = s->next)
        key_stmt(k, s);
    text_add(k->t, "}");
}

void kernel_key(Arena *a, Text *t, const Kernel *k, Numbers *n, Sizes *z) {
    const Tree *tree = k->tree;
    Key key = {a, t, n, z};
    if (z == NULL)
        for (int i = 0; i < NUM_PLANS; i++)
            text_add(t, "%d ", k->grid[i]);
    text_add(t, "%d %d ", tree->phased, tree->min_blocks);
    key_block(&key, &tree->tables);
    for (int i = 0; i < k->num_args; i++) {
        text_add(t, "%s ", k->arg[i].type);
        key_expr(&key, tree->param[i]);
    }
    key_block(&key, &tree->body);
}
