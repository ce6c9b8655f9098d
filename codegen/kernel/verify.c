// Verify: invariants of a kernel's tree.
//
//   - every name is declared in a block around its use, and once in a block;
//   - every call names an intrinsic, with its number of arguments;
//   - barriers are uniform: no branch and no loop around one has a test that
//     differs between the threads of a block, and none around a reduction over
//     a row one that differs between threads that are in step.

#include "codegen/kernel/tree.h"

#include <setjmp.h>
#include <string.h>

// Between which threads of a block a value differs.
enum { UNIFORM, BY_STEP, VARIES = BY_STEP | 2 };
typedef unsigned Varies;

typedef struct {
    const Expr *name;
    Varies varies;
} Declared;

typedef struct {
    Arena *a;
    Declared *declared;
    int count, block; // all names, and the number outside the innermost block
    Varies varies;    // UNIFORM: no thread skips the statement
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
    Varies varies;
} known[] = {{"threadIdx", VARIES},    {"INF", UNIFORM},
             {"INT_LEAST", UNIFORM},   {"block", UNIFORM},
             {"blocks", UNIFORM},      {"MULTI_TENSOR_LANES", UNIFORM},
             {"REDUCE_LANES", UNIFORM}};

static const Declared *find(const Verifier *v, const Expr *name) {
    for (int i = v->count; i-- > 0;)
        if (expr_equal(v->declared[i].name, name))
            return &v->declared[i];
    return NULL;
}

static void declare(Verifier *v, const Expr *name, Varies varies) {
    for (int i = v->block; i < v->count; i++)
        if (expr_equal(v->declared[i].name, name))
            fail(v, "%s is declared twice", expr_print(v->a, name, ""));
    ARENA_APPEND(v->a, v->declared, v->count, ((Declared){name, varies}));
}

static Varies name_varies(Verifier *v, const Expr *x) {
    const Declared *d = find(v, x);
    if (d != NULL)
        return d->varies;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (is_named(x, known[i].name))
            return known[i].varies;
    fail(v, "%s is not declared", expr_print(v->a, x, ""));
}

// ---- expressions ----

// Between which threads the value of x differs.  A reduction is uniform across
// its block or row.
static Varies expr_varies(Verifier *v, const Expr *x) {
    Varies varies = x->kind == X_NAME ? name_varies(v, x) : UNIFORM;
    for (int i = 0; i < x->count; i++)
        varies |= expr_varies(v, x->arg[i]);
    if (x->kind != X_CALL)
        return varies;
    const Intrinsic *f = intrinsic_find(x->name);
    if (f == NULL)
        fail(v, "%s is no intrinsic", x->name);
    if (f->arguments != x->count)
        fail(v, "%s has the wrong number of arguments", x->name);
    bool row = strncmp(x->name, "row_", 4) == 0;
    if (f->kind == CONVERGENT && v->varies > (row ? BY_STEP : UNIFORM))
        fail(v, "%s is not reached by all threads", x->name);
    if (strcmp(x->name, "SYNC_ROW") == 0)
        return varies | BY_STEP;
    return f->kind == CONVERGENT && !row ? UNIFORM : varies;
}

// ---- statements ----

static void stmts_verify(Verifier *v, const Stmts *b, Varies varies);

// A name varies from an assignment of a varying value on.
static void set_verify(Verifier *v, const Stmt *s) {
    Varies varies = expr_varies(v, s->value) | v->varies;
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
        declare(v, x->arg[0], UNIFORM);
    for (int i = 1; i < x->count; i++)
        expr_varies(v, x->arg[i]);
    stmts_verify(v, &s->body, v->varies);
    v->count = before;
    v->block = block;
}

static void for_verify(Verifier *v, const Stmt *s) {
    int before = v->count, block = v->block;
    v->block = v->count;
    Varies varies = expr_varies(v, s->value);
    declare(v, s->name, varies);
    varies |= expr_varies(v, s->test);
    varies |= expr_varies(v, s->step);
    stmts_verify(v, &s->body, v->varies | varies);
    v->count = before;
    v->block = block;
}

// BLOCK_RANGE(lo, hi, rows) declares the rows of a block.
static void call_verify(Verifier *v, const Stmt *s) {
    const Expr *x = s->value;
    if (x->kind != X_CALL)
        fail(v, "%s is no call", expr_print(v->a, x, ""));
    if (!is_call(x, RANGE)) {
        expr_varies(v, x);
        return;
    }
    if (intrinsic_find(x->name)->arguments != x->count)
        fail(v, "%s has the wrong number of arguments", x->name);
    declare(v, x->arg[x->count - 3], UNIFORM);
    declare(v, x->arg[x->count - 2], UNIFORM);
    expr_varies(v, x->arg[x->count - 1]);
}

static void declare_verify(Verifier *v, const Stmt *s) {
    Varies varies = s->value != NULL ? expr_varies(v, s->value) : UNIFORM;
    for (int i = 0; i < MAX_DIMS && s->dim[i] != NULL; i++)
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
        Varies varies = expr_varies(v, s->value) | v->varies;
        stmts_verify(v, &s->body, varies);
        stmts_verify(v, &s->other, varies);
        break;
    }
    case S_SWITCH:
        stmts_verify(v, &s->body, expr_varies(v, s->value) | v->varies);
        break;
    case S_BLOCK:
    case S_CASE:
        stmts_verify(v, &s->body, v->varies);
        break;
    case S_ENUM:
        for (int i = 0; i < s->num_enumerators; i++) {
            expr_varies(v, s->enumerator[i].value);
            declare(v, x_name(v->a, s->enumerator[i].name), UNIFORM);
        }
        break;
    case S_STRUCT:
    case S_TABLE:
        declare(v, s->name, UNIFORM);
        break;
    case S_JUMP:
        break;
    }
}

static void stmts_verify(Verifier *v, const Stmts *b, Varies varies) {
    int before = v->count, block = v->block;
    Varies outer = v->varies;
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
        declare(&v, tree->param[i], UNIFORM);
    for (const Stmt *s = tree->tables.first; s != NULL; s = s->next)
        stmt_verify(&v, s);
    stmts_verify(&v, &tree->body, UNIFORM);
    return NULL;
}
