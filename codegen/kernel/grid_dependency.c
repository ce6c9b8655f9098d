// Grid dependency: where a kernel waits for the kernel before it.
//
// With programmatic dependent launch (sm_90 and later) a kernel's blocks start
// while the kernel before it on the stream still runs.  GRID_DEPENDENCY_WAIT
// returns when that one has ended and its writes are visible, and
// LAUNCH_DEPENDENTS lets the blocks of the next one start.
//
// A kernel waits before its first access of global memory, whatever it is: it
// may read results of the kernel before, and overwrite operands of that kernel,
// as buffers share memory.  It waits on every path, so it ends after the kernel
// before it, and a wait for the last kernel is one for all.  It lets the next
// one start after its own wait, so no more than two kernels run at once.
//
// Tables and the statistics' flags are constants of a step and need no wait.

#include "codegen/kernel/tree.h"

#include <string.h>

static const char wait[] = "GRID_DEPENDENCY_WAIT",
                  trigger[] = "LAUNCH_DEPENDENTS";

static bool is_call_of(const Stmt *s, const char *name) {
    return s->kind == S_CALL && s->value->kind == X_CALL &&
           strcmp(s->value->name, name) == 0;
}

// ---- accesses ----

typedef struct {
    StringMap arrays; // of the kernel: in registers, shared memory or a table
    bool accesses;
} Accesses;

static bool *array_of(Accesses *f, const Expr *name) {
    return map_name(&f->arrays, name, sizeof(bool));
}

static void find_arrays(Accesses *f, const Stmts *b) {
    for (const Stmt *s = b->first; s != NULL; s = s->next) {
        if (s->kind == S_TABLE || (s->kind == S_DECLARE && s->dim[0] != NULL))
            *array_of(f, s->name) = true;
        find_arrays(f, &s->body);
        find_arrays(f, &s->other);
    }
}

// The pointer or array that is indexed; fields of tables are arrays, too.
static const Expr *base_of(const Expr *x) {
    while (x->kind == X_INDEX || x->kind == X_FIELD)
        x = x->arg[0];
    return x;
}

// All that may be an access of global memory: calls that load or store, calls
// of several threads but barriers, and elements of anything but an array.
static void find_access(void *context, const Expr *x) {
    Accesses *f = context;
    if (x->kind == X_CALL)
        f->accesses |=
            is_call(x, LOAD) || is_call(x, STORE) ||
            (is_call(x, CONVERGENT) && strcmp(x->name, "BARRIER") != 0);
    if (x->kind == X_INDEX) {
        const Expr *base = base_of(x);
        f->accesses |= base->kind != X_NAME || !*array_of(f, base);
    }
}

// Whether an expression of s, but not of its blocks, accesses global memory.
static bool accesses(Accesses *f, const Stmt *s) {
    if (is_call_of(s, wait) || is_call_of(s, trigger) || s->kind == S_TABLE)
        return false;
    f->accesses = false;
    expr_visit(s->name, find_access, f);
    expr_visit(s->value, find_access, f);
    expr_visit(s->test, find_access, f);
    expr_visit(s->step, find_access, f);
    return f->accesses;
}

static bool any_accesses(Accesses *f, const Stmt *s) {
    bool any = accesses(f, s);
    for (const Stmt *t = s->body.first; !any && t != NULL; t = t->next)
        any = any_accesses(f, t);
    for (const Stmt *t = s->other.first; !any && t != NULL; t = t->next)
        any = any_accesses(f, t);
    return any;
}

static Accesses accesses_of(Arena *a, const Tree *tree) {
    int names = stmts_names(&tree->body) + stmts_names(&tree->tables);
    Accesses f = {.arrays = map_new(a, names + 1)};
    find_arrays(&f, &tree->tables);
    find_arrays(&f, &tree->body);
    return f;
}

// ---- the pass ----

void tree_insert_wait(Arena *a, Tree *tree) {
    Accesses f = accesses_of(a, tree);
    Stmts all = {NULL, NULL};
    bool has_waited = false;
    for (Stmt *s = tree->body.first, *next; s != NULL; s = next) {
        next = s->next;
        s->next = NULL;
        if (!has_waited && (any_accesses(&f, s) || next == NULL)) {
            code(a, &all, NO_NODE,
                 "GRID_DEPENDENCY_WAIT(); LAUNCH_DEPENDENTS();");
            has_waited = true;
        }
        stmts_add(&all, s);
    }
    tree->body = all;
}

// ---- the verifier ----

typedef struct {
    Accesses accesses;
    const char *why;
} Paths;

// Returns whether all paths through b have waited, if those before it have.
static bool stmts_paths(Paths *p, const Stmts *b, bool has_waited) {
    for (const Stmt *s = b->first; s != NULL && p->why == NULL; s = s->next) {
        if (is_call_of(s, trigger) && !has_waited)
            p->why = "a kernel lets the next one start before its own wait";
        if (accesses(&p->accesses, s) && !has_waited)
            p->why = "global memory is accessed before the wait for the kernel "
                     "before";
        bool body = stmts_paths(p, &s->body, has_waited || is_call_of(s, wait));
        bool other = stmts_paths(p, &s->other, has_waited);
        // A loop may have no iteration, a switch no case.
        has_waited |= is_call_of(s, wait) || (s->kind == S_BLOCK && body) ||
                      (s->kind == S_IF && body && other);
    }
    return has_waited;
}

const char *tree_verify_wait(Arena *a, const Tree *tree) {
    Paths p = {.accesses = accesses_of(a, tree)};
    bool has_waited = stmts_paths(&p, &tree->body, false);
    return p.why != NULL ? p.why
           : has_waited  ? NULL
                         : "a path has no wait for the kernel before";
}
