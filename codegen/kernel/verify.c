// Verify: invariants of a kernel's tree.
//
//   - every name is declared in a block around its use, and once in a block;
//   - every call names an intrinsic, with its number of arguments;
//   - barriers are uniform: no branch and no loop around one has a test that
//     differs between the threads of a block.

#include "codegen/kernel/tree.h"

#include <setjmp.h>
#include <string.h>

typedef struct {
    const Expr *name;
    bool varies; // between the threads of a block
} Declared;

typedef struct {
    Arena *a;
    Declared *declared;
    int count, block; // all names, and the number outside the innermost block
    bool varies;      // some threads may skip the statement
    const char *why;
    jmp_buf failed;
} Verifier;

_Noreturn static void fail(Verifier *v, const char *format, const char *name) {
    v->why = arena_format(v->a, format, name);
    longjmp(v->failed, 1);
}

// ---- names ----

// Names that the prelude defines, and whether they vary.
static const struct {
    const char *name;
    bool varies;
} known[] = {{"threadIdx", true}, {"INF", false},        {"INT_LEAST", false},
             {"block", false},    {"blocks", false},     {"PART_LANES", false},
             {"AT_ONCE", false}};

static const Declared *find(const Verifier *v, const Expr *name) {
    for (int i = v->count; i-- > 0;)
        if (expr_equal(v->declared[i].name, name))
            return &v->declared[i];
    return NULL;
}

static void declare(Verifier *v, const Expr *name, bool varies) {
    for (int i = v->block; i < v->count; i++)
        if (expr_equal(v->declared[i].name, name))
            fail(v, "%s is declared twice", expr_print(v->a, name, ""));
    ARENA_APPEND(v->a, v->declared, v->count, ((Declared){name, varies}));
}

static bool name_varies(Verifier *v, const Expr *x) {
    const Declared *d = find(v, x);
    if (d != NULL)
        return d->varies;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (is_named(x, known[i].name))
            return known[i].varies;
    fail(v, "%s is not declared", expr_print(v->a, x, ""));
}

// ---- expressions ----

// Whether the value of x differs between the threads of a block.  A reduction
// is uniform across its block or row.
static bool expr_varies(Verifier *v, const Expr *x) {
    bool varies = x->kind == X_NAME && name_varies(v, x);
    for (int i = 0; i < x->count; i++)
        varies |= expr_varies(v, x->arg[i]);
    if (x->kind != X_CALL)
        return varies;
    const Intrinsic *f = intrinsic_find(x->name);
    if (f == NULL)
        fail(v, "%s is no intrinsic", x->name);
    if (f->arguments != x->count)
        fail(v, "%s has the wrong number of arguments", x->name);
    if (f->kind == GROUP && v->varies)
        fail(v, "%s is not reached by all threads", x->name);
    return varies && !(f->kind == GROUP && strncmp(x->name, "row_", 4) != 0);
}

// ---- statements ----

static void block_verify(Verifier *v, const Block *b, bool varies);

// A name varies from an assignment of a varying value on.
static void set_verify(Verifier *v, const Stmt *s) {
    bool varies = expr_varies(v, s->value) || v->varies;
    const Expr *name = s->name;
    while (name->kind == X_INDEX) {
        varies |= expr_varies(v, name->arg[1]);
        name = name->arg[0];
    }
    if (find(v, name) == NULL)
        fail(v, "%s is not declared", expr_print(v->a, name, ""));
    for (int i = v->count; i-- > 0;)
        if (expr_equal(v->declared[i].name, name)) {
            v->declared[i].varies |= varies;
            return;
        }
}

// A loop of the prelude: UNROLLED(i, n) body.
static void repeat_verify(Verifier *v, const Stmt *s) {
    int before = v->count, block = v->block;
    const Expr *x = s->value;
    const Intrinsic *f = intrinsic_find(x->name);
    if (f == NULL || f->kind != LOOP || f->arguments != x->count)
        fail(v, "%s is no loop", x->name);
    v->block = v->count;
    if (x->arg[0]->kind == X_NAME)
        declare(v, x->arg[0], false);
    for (int i = 1; i < x->count; i++)
        expr_varies(v, x->arg[i]);
    block_verify(v, &s->body, v->varies);
    v->count = before;
    v->block = block;
}

static void for_verify(Verifier *v, const Stmt *s) {
    int before = v->count, block = v->block;
    v->block = v->count;
    bool varies = expr_varies(v, s->value);
    declare(v, s->name, varies);
    varies |= expr_varies(v, s->test);
    varies |= expr_varies(v, s->step);
    block_verify(v, &s->body, v->varies || varies);
    v->count = before;
    v->block = block;
}

// CHUNK(lo, hi, rows) declares the rows of a block.
static void call_verify(Verifier *v, const Stmt *s) {
    const Expr *x = s->value;
    if (x->kind != X_CALL)
        fail(v, "%s is no call", expr_print(v->a, x, ""));
    if (!is_call(x, SPLIT)) {
        expr_varies(v, x);
        return;
    }
    if (intrinsic_find(x->name)->arguments != x->count)
        fail(v, "%s has the wrong number of arguments", x->name);
    declare(v, x->arg[x->count - 3], false);
    declare(v, x->arg[x->count - 2], false);
    expr_varies(v, x->arg[x->count - 1]);
}

static void declare_verify(Verifier *v, const Stmt *s) {
    bool varies = s->value != NULL && expr_varies(v, s->value);
    for (int i = 0; i < MOST_DIMS && s->dim[i] != NULL; i++)
        expr_varies(v, s->dim[i]);
    declare(v, s->name, varies);
}

static void stmt_verify(Verifier *v, const Stmt *s) {
    switch (s->kind) {
    case S_DECLARE:
        declare_verify(v, s);
        break;
    case S_SET:
        set_verify(v, s);
        break;
    case S_CALL:
        call_verify(v, s);
        break;
    case S_FOR:
        for_verify(v, s);
        break;
    case S_REPEAT:
        repeat_verify(v, s);
        break;
    case S_IF: {
        bool varies = expr_varies(v, s->value) || v->varies;
        block_verify(v, &s->body, varies);
        block_verify(v, &s->other, varies);
        break;
    }
    case S_SWITCH:
        block_verify(v, &s->body, expr_varies(v, s->value) || v->varies);
        break;
    case S_BLOCK:
    case S_CASE:
        block_verify(v, &s->body, v->varies);
        break;
    case S_ENUM:
        for (int i = 0; i < s->num_constants; i++) {
            expr_varies(v, s->constant[i].value);
            declare(v, x_name(v->a, s->constant[i].name), false);
        }
        break;
    case S_STRUCT:
    case S_TABLE:
        declare(v, s->name, false);
        break;
    case S_JUMP:
        break;
    }
}

static void block_verify(Verifier *v, const Block *b, bool varies) {
    int before = v->count, block = v->block;
    bool outer = v->varies;
    v->varies = varies;
    v->block = v->count;
    for (const Stmt *s = b->first; s != NULL; s = s->next)
        stmt_verify(v, s);
    v->varies = outer;
    v->block = block;
    v->count = before;
}

const char *tree_verify(Arena *a, const Tree *tree) {
    Verifier v = {.a = a};
    if (setjmp(v.failed) != 0)
        return v.why;
    for (int i = 0; i < tree->num_params; i++)
        declare(&v, tree->param[i], false);
    for (const Stmt *s = tree->tables.first; s != NULL; s = s->next)
        stmt_verify(&v, s);
    block_verify(&v, &tree->body, false);
    return NULL;
}
