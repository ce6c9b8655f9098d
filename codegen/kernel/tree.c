// Tree: construction and inspection of a kernel's tree.

#include "codegen/kernel/tree.h"

#include <string.h>

Expr *x_new(Arena *a, Expr x) {
    Expr *own = ARENA_NEW(a, Expr);
    *own = x;
    return own;
}

const Expr *x_kind(Arena *a, ExprKind kind, int64_t value) {
    return x_new(a, (Expr){.kind = kind, .node = NO_NODE, .integer = value});
}

const Expr *x_number(Arena *a, int64_t value) {
    return x_kind(a, X_NUMBER, value);
}

const Expr *x_size(Arena *a, int64_t value) {
    return x_kind(a, X_SIZE, value);
}

const Expr *x_constant(Arena *a, double value) {
    return x_new(a, (Expr){.kind = X_CONSTANT, .node = NO_NODE, .real = value});
}

const Expr *x_of_node(Arena *a, const char *stem, NodeId n) {
    return x_new(a, (Expr){.kind = X_NAME, .name = stem, .node = n});
}

const Expr *x_name(Arena *a, const char *name) {
    return x_of_node(a, name, NO_NODE);
}

const Expr *x_element(Arena *a, const Expr *array, const Expr *index) {
    Expr *x = x_list(a, 2);
    x->kind = X_INDEX;
    list_add(x, array);
    list_add(x, index);
    return x;
}

Expr *x_list(Arena *a, int most) {
    return x_new(a,
                 (Expr){.kind = X_LIST,
                        .node = NO_NODE,
                        .arg = ARENA_ARRAY(a, (size_t)most + 1, const Expr *)});
}

void list_add(Expr *list, const Expr *operand) {
    list->arg[list->count++] = operand;
}

const Expr *x_address(Arena *a, const Expr *pointer, const Expr *offset) {
    if (is_number(offset, 0))
        return pointer;
    if (offset->kind == X_OP && strcmp(offset->name, "+") == 0)
        return expr(a, "$ + $", x_address(a, pointer, offset->arg[0]),
                    offset->arg[1]);
    return expr(a, "$ + $", pointer, offset);
}

const char *const number_kind[X_NAME] = {[X_SIZE] = "size",
                                         [X_STREAM] = "stream",
                                         [X_CONSTANT] = "constant",
                                         [X_GPU_ONLY] = "gpu_only",
                                         [X_ENTRY] = "entry"};

static bool same_name(const char *x, const char *y) {
    return x == y || (x != NULL && y != NULL && strcmp(x, y) == 0);
}

bool expr_equal(const Expr *x, const Expr *y) {
    if (x == y)
        return true;
    if (x == NULL || y == NULL || x->kind != y->kind || x->node != y->node ||
        x->again != y->again || x->integer != y->integer ||
        x->real != y->real || x->count != y->count ||
        !same_name(x->name, y->name))
        return false;
    for (int i = 0; i < x->count; i++)
        if (!expr_equal(x->arg[i], y->arg[i]))
            return false;
    return true;
}

bool is_number(const Expr *x, int64_t value) {
    return x->kind == X_NUMBER && x->integer == value;
}

bool is_named(const Expr *x, const char *name) {
    return x != NULL && x->kind == X_NAME && x->node == NO_NODE &&
           strcmp(x->name, name) == 0;
}

void stmts_add(Stmts *b, Stmt *s) {
    if (b->last != NULL)
        b->last->next = s;
    else
        b->first = s;
    b->last = s;
}

void stmts_append(Stmts *b, const Stmts *more) {
    if (more->first == NULL)
        return;
    stmts_add(b, more->first);
    b->last = more->last;
}

void *map_name(StringMap *m, const Expr *name, size_t bytes) {
    void **entry = map_at(m, expr_print(m->a, name, ""));
    if (*entry == NULL)
        *entry = arena_alloc(m->a, bytes);
    return *entry;
}

// ---- visits ----

void expr_visit(const Expr *x, ExprVisit *visit, void *context) {
    if (x == NULL)
        return;
    visit(context, x);
    for (int i = 0; i < x->count; i++)
        expr_visit(x->arg[i], visit, context);
}

static void stmt_visit(const Stmt *s, ExprVisit *visit, void *context) {
    expr_visit(s->name, visit, context);
    for (int i = 0; i < MAX_DIMS; i++)
        expr_visit(s->dim[i], visit, context);
    expr_visit(s->value, visit, context);
    expr_visit(s->test, visit, context);
    expr_visit(s->step, visit, context);
    stmts_visit(&s->body, visit, context);
    stmts_visit(&s->other, visit, context);
}

void stmts_visit(const Stmts *b, ExprVisit *visit, void *context) {
    for (const Stmt *s = b->first; s != NULL; s = s->next)
        stmt_visit(s, visit, context);
}

static void count_name(void *context, const Expr *x) {
    int *names = context;
    *names += x->kind == X_NAME;
}

bool is_operator(const Expr *x, const char *op) {
    return x->kind == X_OP && x->count == 2 && strcmp(x->name, op) == 0;
}

int stmts_names(const Stmts *b) {
    int names = 0;
    stmts_visit(b, count_name, &names);
    return names;
}

typedef struct {
    const Expr *name;
    bool found;
} Search;

static void search(void *context, const Expr *x) {
    Search *s = context;
    s->found |= x->kind == X_NAME && expr_equal(x, s->name);
}

bool stmts_mentions(const Stmts *b, const Expr *name) {
    Search s = {name, false};
    stmts_visit(b, search, &s);
    return s.found;
}

// ---- compare ----

static bool stmt_equal(const Stmt *s, const Stmt *t) {
    if (s->kind != t->kind || !same_name(s->word, t->word) ||
        !same_name(s->type, t->type) || !expr_equal(s->name, t->name) ||
        !expr_equal(s->value, t->value) || !expr_equal(s->test, t->test) ||
        !expr_equal(s->step, t->step))
        return false;
    for (int i = 0; i < MAX_DIMS; i++)
        if (!expr_equal(s->dim[i], t->dim[i]))
            return false;
    return stmts_equal(&s->body, &t->body) && stmts_equal(&s->other, &t->other);
}

bool stmts_equal(const Stmts *b, const Stmts *c) {
    const Stmt *s = b->first, *t = c->first;
    while (s != NULL && t != NULL && stmt_equal(s, t)) {
        s = s->next;
        t = t->next;
    }
    return s == NULL && t == NULL;
}

// ---- copy ----

typedef struct {
    Arena *a;
    ExprMap *map;
    void *context;
} Rewrite;

static const Expr *expr_rewrite(const Rewrite *r, const Expr *x) {
    if (x == NULL)
        return NULL;
    if (x->count == 0)
        return r->map(r->context, x);
    Expr *own = x_new(r->a, *x);
    own->arg = ARENA_ARRAY(r->a, (size_t)x->count, const Expr *);
    for (int i = 0; i < x->count; i++)
        own->arg[i] = expr_rewrite(r, x->arg[i]);
    return own;
}

static Stmt *stmt_rewrite(const Rewrite *r, const Stmt *s) {
    Stmt *own = ARENA_NEW(r->a, Stmt);
    *own = *s;
    own->next = NULL;
    own->name = expr_rewrite(r, s->name);
    for (int i = 0; i < MAX_DIMS; i++)
        own->dim[i] = expr_rewrite(r, s->dim[i]);
    own->value = expr_rewrite(r, s->value);
    own->test = expr_rewrite(r, s->test);
    own->step = expr_rewrite(r, s->step);
    own->body = stmts_rewrite(r->a, &s->body, r->map, r->context);
    own->other = stmts_rewrite(r->a, &s->other, r->map, r->context);
    return own;
}

Stmts stmts_rewrite(Arena *a, const Stmts *b, ExprMap *map, void *context) {
    Rewrite r = {a, map, context};
    Stmts own = {NULL, NULL};
    for (const Stmt *s = b->first; s != NULL; s = s->next)
        stmts_add(&own, stmt_rewrite(&r, s));
    return own;
}

bool is_row_loop(const Stmt *s) {
    return s->kind == S_FOR && is_named(s->step, "TY") &&
           s->value->kind == X_OP;
}

const char *const unroll_word[] = {[2] = "UNROLL_2", [3] = "UNROLL_3"};

int unrolling_of(const Stmt *s) {
    int rows = MAX_UNROLLING;
    while (rows > 1 &&
           (s->word == NULL || strcmp(s->word, unroll_word[rows]) != 0))
        rows--;
    return rows;
}

// ---- intrinsics ----

static const Intrinsic intrinsics[] = {
#define FLOATS(n) .issue[ISSUE_FLOAT] = n,
#define SPECIALS(n) .issue[ISSUE_SPECIAL] = n,
#define INTEGERS(n) .issue[ISSUE_INTEGER] = n,
#define CONVERTS(n) .issue[ISSUE_CONVERT] = n,
#define GLOBALS(n) .issue[ISSUE_GLOBAL] = n,
#define SHAREDS(n) .issue[ISSUE_SHARED] = n,
#define CONTROLS(n) .issue[ISSUE_CONTROL] = n,
#define LANES_OF(argument) .lanes = argument,
#define FUNCTION .function = true,
#define RARE(n) .rare = n,
#define TEMPORARIES(n) .temporaries = n,
#define WAITS(n) .waits = n,
#define NOTHING
#define INTRINSIC(label, number, class, cost)                                  \
    {.name = #label, .arguments = number, .kind = class, cost},
#include "codegen/kernel/intrinsics.def"
};

const Intrinsic *intrinsic_find(const char *name) {
    for (size_t i = 0; i < sizeof intrinsics / sizeof *intrinsics; i++)
        if (*intrinsics[i].name == *name &&
            strcmp(intrinsics[i].name, name) == 0)
            return &intrinsics[i];
    return NULL;
}

bool is_call(const Expr *x, IntrinsicKind kind) {
    const Intrinsic *f =
        x != NULL && x->kind == X_CALL ? intrinsic_find(x->name) : NULL;
    return f != NULL && f->kind == kind;
}
