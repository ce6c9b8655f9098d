// Vector width: the width that all vector accesses of a kernel allow.
//
// A vector of VW lanes is read and written at a multiple of VW elements.  An
// address is a sum and product of indices, most of which may have any value; a
// column index is a multiple of VW.  The greatest common divisor of the terms
// bounds VW.  HOST_GPU(h, d) counts as h: a GPU's tile of columns is whole
// vectors.

#include "codegen/kernel/tree.h"

#include <string.h>

// A divisor of all values of an expression; 0 divides every vector.
typedef struct {
    Arena *a;
    StringMap names; // to the divisors of declared names
    int64_t width;
} Widths;

int64_t gcd(int64_t a, int64_t b) {
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a < 0 ? -a : a;
}

static void declare(Widths *w, const Expr *name, int64_t divisor) {
    *(int64_t *)map_name(&w->names, name, sizeof divisor) = divisor;
}

static int64_t divisor_of_name(Widths *w, const Expr *x) {
    if (is_named(x, "VW"))
        return 0;
    int64_t *known = *map_at(&w->names, expr_print(w->a, x, ""));
    return known != NULL ? *known : 1;
}

static int64_t divisor_of(Widths *w, const Expr *x);

// clamp_index(x, n) is x, 0 or n - 1.
static int64_t divisor_of_clamp(Widths *w, const Expr *x) {
    const Expr *n = x->arg[1];
    int64_t last =
        n->kind == X_NUMBER || n->kind == X_SIZE ? n->integer - 1 : 1;
    if (is_operator(n, "+") && is_number(n->arg[1], 1))
        last = divisor_of(w, n->arg[0]);
    return gcd(divisor_of(w, x->arg[0]), last);
}

static int64_t divisor_of_op(Widths *w, const Expr *x) {
    int64_t a = divisor_of(w, x->arg[0]);
    if (x->count == 1)
        return strcmp(x->name, "-") == 0 ? a : 1;
    int64_t b = divisor_of(w, x->arg[1]);
    if (is_operator(x, "*"))
        return a * b;
    if (is_operator(x, "+") || is_operator(x, "-") || is_operator(x, "%"))
        return gcd(a, b);
    if (is_operator(x, "/"))
        return b != 0 && a % b == 0 && a != 0 ? a / b : 1;
    return x->count == 3 ? gcd(b, divisor_of(w, x->arg[2])) : 1;
}

static int64_t divisor_of(Widths *w, const Expr *x) {
    switch (x->kind) {
    case X_NUMBER:
    case X_SIZE:
        return x->integer;
    case X_NAME:
        return divisor_of_name(w, x);
    case X_CAST:
        return divisor_of(w, x->arg[0]);
    case X_OP:
        return divisor_of_op(w, x);
    case X_CALL:
        return strcmp(x->name, "clamp_index") == 0 ? divisor_of_clamp(w, x)
               : strcmp(x->name, "HOST_GPU") == 0 ||
                       strcmp(x->name, "nonnegative") == 0
                   ? divisor_of(w, x->arg[0])
                   : 1;
    default:
        return 1;
    }
}

// The offset of an address; its leftmost term is the pointer.
static int64_t divisor_of_address(Widths *w, const Expr *x) {
    return is_operator(x, "+")
               ? gcd(divisor_of_address(w, x->arg[0]), divisor_of(w, x->arg[1]))
               : 0;
}

// Bounds the width by an access to VW lanes.
static void access_bound(Widths *w, const Expr *x) {
    static const struct {
        const char *call;
        int lanes, index; // arguments
        bool address;     // with a pointer
    } access[] = {{"load_bits", 3, 2, false},  {"store_bits", 3, 1, false},
                  {"draw_lanes", 1, 5, false}, {"load_", 2, 1, true},
                  {"store_", 2, 0, true},      {"place_", 2, 0, true}};
    for (size_t i = 0; i < sizeof access / sizeof *access; i++) {
        if (strncmp(x->name, access[i].call, strlen(access[i].call)) != 0)
            continue;
        const Expr *index = x->arg[access[i].index];
        if (is_named(x->arg[access[i].lanes], "VW"))
            w->width =
                gcd(w->width, access[i].address ? divisor_of_address(w, index)
                                                : divisor_of(w, index));
        return;
    }
}

static void stmts_bound(Widths *w, const Stmts *b) {
    for (const Stmt *s = b->first; s != NULL; s = s->next) {
        if (s->kind == S_DECLARE && s->value != NULL && s->dim[0] == NULL)
            declare(w, s->name, divisor_of(w, s->value));
        else if (s->kind == S_FOR)
            declare(w, s->name,
                    gcd(divisor_of(w, s->value), divisor_of(w, s->step)));
        else if (s->kind == S_CALL)
            access_bound(w, s->value);
        for (int i = 0; i < s->num_enumerators; i++)
            declare(w, x_name(w->a, s->enumerator[i].name),
                    divisor_of(w, s->enumerator[i].value));
        stmts_bound(w, &s->body);
        stmts_bound(w, &s->other);
    }
}

int64_t stmts_width(Arena *a, const Stmts *b, int64_t columns) {
    Widths w = {a, map_new(a, stmts_names(b)), columns};
    stmts_bound(&w, b);
    return w.width;
}
