// Interchange: a thread computes the columns of a row one vector after another.
//
// A kernel over rows and columns loads vectors of its columns, such as the
// filters of a convolution of few products, before its loop over rows.  Many of
// them leave registers for one resident block, and all threads of a row compute
// the row's indices and pixels.  If a row has few vectors, a thread takes them
// all: the loop over columns becomes the inner one, and what does not depend on
// the column stays in front of it.  The vectors of columns are in shared
// memory, from which all threads of a warp read the same place.

#include "codegen/kernel/tree.h"

#include <string.h>

enum {
    LEAST_VECTORS = 9, // fewer stay in registers
    MAX_VECTORS = 4,   // of a row
    LANES = 8,
};

typedef struct {
    Arena *a;
    Stmt *loop, *rows; // over vectors of columns, and in it over rows
    Stmt *tile;        // the constants of the threads' arrangement
    Stmts column;      // the number of the first column
    Stmts fixed;       // what precedes the loop over rows without a column
    int count;         // vectors of columns
    Stmts load, read;  // stores and reads of them, in shared memory
    StringMap depends; // names that depend on the column
} Interchange;

static bool steps_by(const Stmt *s, const char *step) {
    return s != NULL && s->kind == S_FOR && is_named(s->step, step);
}

static Enumerator *enumerator_find(Stmt *s, const char *name) {
    for (int i = 0; s->kind == S_ENUM && i < s->num_enumerators; i++)
        if (strcmp(s->enumerator[i].name, name) == 0)
            return &s->enumerator[i];
    return NULL;
}

// Finds the loops, of a kernel with few vectors in a row.
static bool find_loops(Interchange *x, const Stmts *b) {
    int64_t columns = 0;
    for (Stmt *s = b->first; s != NULL; s = s->next) {
        if (enumerator_find(s, "C") != NULL)
            columns = enumerator_find(s, "C")->value->integer;
        if (enumerator_find(s, "TX") != NULL)
            x->tile = s;
        if (steps_by(s, "TX") && is_named(s->value, "tx"))
            x->loop = s;
    }
    if (x->loop == NULL || x->tile == NULL || columns % LANES != 0 ||
        columns <= LANES || columns > LANES * MAX_VECTORS)
        return false;
    x->rows = x->loop->body.last;
    return steps_by(x->rows, "TY");
}

// Whether s declares a vector that the next statement loads.
static bool is_loaded(const Stmt *s) {
    return s->kind == S_DECLARE && s->dim[0] != NULL && s->word == NULL &&
           strcmp(s->type, "float") == 0 && is_named(s->dim[0], "VW") &&
           s->next != NULL && s->next->kind == S_CALL &&
           is_call(s->next->value, LOAD);
}

static Stmts alone(Interchange *x, const Stmt *first, int count) {
    Stmts b = {NULL, NULL};
    for (const Stmt *s = first; count-- > 0; s = s->next) {
        Stmt *copy = arena_alloc(x->a, sizeof *copy);
        *copy = *s;
        copy->next = NULL;
        stmts_add(&b, copy);
    }
    return b;
}

static bool *depends(Interchange *x, const Expr *name) {
    return map_name(&x->depends, name, sizeof(bool));
}

// Sorts the statements before the loop over rows; false if there are others.
static bool take_vectors(Interchange *x) {
    Stmts *b = &x->loop->body;
    for (Stmt *s = b->first; s != x->rows; s = s->next) {
        if (s->kind != S_DECLARE)
            return false;
        if (is_loaded(s)) {
            Stmts own = alone(x, s, 2);
            const Expr *number = x_number(x->a, x->count++);
            stmts_append(&x->load, &own);
            code(x->a, &x->load, s->node,
                 "LANES_DO(k, VW) column[$ * C + c + k] = $[k];", number,
                 s->name);
            code(x->a, &x->read, s->node,
                 "float $[VW];"
                 "LANES_DO(k, VW) $[k] = column[$ * C + c + k];",
                 s->name, s->name, number);
            *depends(x, s->name) = true;
            s = s->next;
        } else if (is_named(s->name, "c")) {
            x->column = alone(x, s, 1);
            *depends(x, s->name) = true;
        } else {
            return false;
        }
    }
    return x->column.first != NULL && x->count >= LEAST_VECTORS;
}

typedef struct {
    Interchange *x;
    bool found;
} Search;

static void find_dependent(void *context, const Expr *name) {
    Search *s = context;
    s->found |= name->kind == X_NAME && *depends(s->x, name);
}

static void mark_declared(Interchange *x, const Stmts *b) {
    for (const Stmt *s = b->first; s != NULL; s = s->next) {
        if (s->kind == S_DECLARE)
            *depends(x, s->name) = true;
        mark_declared(x, &s->body);
    }
}

// Divides a row's statements: those that depend on the column go to `inner`.
static void divide(Interchange *x, Stmts *outer, Stmts *inner) {
    Stmts all = x->rows->body;
    for (Stmt *s = all.first, *next; s != NULL; s = next) {
        Stmts one = {s, s};
        Search search = {x, false};
        next = s->next;
        s->next = NULL;
        stmts_visit(&one, find_dependent, &search);
        bool array = s->kind == S_DECLARE && s->value == NULL;
        if (search.found || array || s->kind != S_DECLARE) {
            mark_declared(x, &one);
            stmts_add(inner, s);
        } else {
            stmts_add(outer, s);
        }
    }
}

// Replaces s, which is in b.
static void replace(Stmts *b, const Stmt *s, const Stmts *by) {
    Stmts all = {NULL, NULL};
    for (Stmt *t = b->first, *next; t != NULL; t = next) {
        next = t->next;
        t->next = NULL;
        if (t == s)
            stmts_append(&all, by);
        else
            stmts_add(&all, t);
    }
    *b = all;
}

bool stmts_interchange(Arena *a, Stmts *b) {
    Interchange x = {.a = a, .depends = map_new(a, stmts_names(b))};
    if (!find_loops(&x, b) || !take_vectors(&x))
        return false;
    Stmts outer = {NULL, NULL}, inner = outer, all = outer;
    divide(&x, &outer, &inner);
    Stmts again = alone(&x, x.column.first, 1);
    code(a, &outer, NO_NODE, "NO_UNROLL(g, CG) { ~ ~ ~ }", &again, &x.read,
         &inner);
    x.rows->body = outer;
    Stmts rows = {x.rows, x.rows};
    code(a, &all, NO_NODE,
         "SHARED float column[$ * C];"
         "for (int g = threadIdx.x; g < CG; g += NT) { ~ ~ }"
         "BARRIER();"
         "~",
         x_number(a, x.count), &x.column, &x.load, &rows);
    enumerator_find(x.tile, "TX")->value = x_number(a, 1);
    replace(b, x.loop, &all);
    return true;
}
