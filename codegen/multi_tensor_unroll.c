// Unrolled turns: a loop over the elements of a chunk loads those of two turns
// before it stores the first; of four, if a turn has one load.
//
// The compiler moves no load in front of a store to memory that might be the
// same, so that a thread would have the loads of one turn in flight.  The lanes
// of unrolled turns are those of all.  A turn after the last element is the
// first one again, which stores the same values.

#include "codegen/multi_tensor.h"

#include <string.h>

enum { MAX_TURNS = 4 };

static bool is_width(const Expr *x) {
    return x != NULL && is_named(x, "VW");
}

static bool mentions_element(const Expr *x) {
    bool found = is_named(x, "i");
    for (int i = 0; i < x->count && !found; i++)
        found = mentions_element(x->arg[i]);
    return found;
}

// The argument of a vector access that is its address p + i; -1: s is none.
static int address_of(const Stmt *s) {
    const Expr *x = s->value;
    int at = s->kind != S_CALL ? -1 : is_call(x, LOAD) ? 1 : 0;
    if (at < 0 || x->count != 3 || !is_width(x->arg[2]) ||
        (at == 0 && !is_call(x, STORE)))
        return -1;
    const Expr *address = x->arg[at];
    return is_operator(address, "+") && is_named(address->arg[1], "i") &&
                   !mentions_element(address->arg[0])
               ? at
               : -1;
}

static bool is_vector(const Stmt *s) {
    return s->kind == S_DECLARE && s->value == NULL && is_width(s->dim[0]);
}

static bool declares_vector(const Stmts *turn, const Expr *name) {
    for (const Stmt *s = turn->first; s != NULL; s = s->next)
        if (is_vector(s) && expr_equal(s->name, name))
            return true;
    return false;
}

// Whether a loop over lanes sets vectors of its turn only.
static bool is_lane_loop(const Stmts *turn, const Stmt *s) {
    if (s->kind != S_REPEAT || strcmp(s->value->name, "LANES_DO") != 0 ||
        !is_width(s->value->arg[1]))
        return false;
    for (const Stmt *lane = s->body.first; lane != NULL; lane = lane->next)
        if (lane->kind != S_DECLARE &&
            (lane->kind != S_SET || lane->name->kind != X_INDEX ||
             !declares_vector(turn, lane->name->arg[0])))
            return false;
    return true;
}

// How many turns can be unrolled: one's stores must not change what another one
// loads, and each may be the first one again.
static int count_turns(Arena *a, const Stmts *turn) {
    const Expr *element = x_name(a, "i");
    bool stores = false;
    int loads = 0;
    for (const Stmt *s = turn->first; s != NULL; s = s->next) {
        Stmt alone = *s;
        alone.next = NULL;
        int at = address_of(s);
        stores |= at == 0;
        loads += at == 1;
        if (at < 0 && !(s->kind == S_DECLARE || is_lane_loop(turn, s)))
            return 1;
        if (at < 0 && stmts_mentions(&(Stmts){&alone, &alone}, element))
            return 1;
        if (at == 1 && stores)
            return 1;
    }
    return !stores ? 1 : loads == 1 ? 4 : 2;
}

// The access of a turn whose first lane is `lane` and first element `element`.
static void access_add(Arena *a, Stmts *b, const Stmt *s, const Expr *lane,
                       const char *element) {
    int at = address_of(s);
    Stmt *copy = arena_alloc(a, sizeof *copy);
    Expr *x = x_new(a, *s->value);
    x->arg = ARENA_ARRAY(a, 3, const Expr *);
    memcpy(x->arg, s->value->arg, 3 * sizeof *x->arg);
    x->arg[at] = x_address(a, x->arg[at]->arg[0], x_name(a, element));
    if (lane != NULL)
        x->arg[1 - at] = expr(a, "$ + $", x->arg[1 - at], lane);
    *copy = *s;
    copy->value = x;
    copy->next = NULL;
    stmts_add(b, copy);
}

const Expr *turn_elements(Arena *a, int turns) {
    return expr(a, turns == 1 ? "NT * VW" : "$ * NT * VW", x_number(a, turns));
}

int unroll_turns(Arena *a, Stmts *turn) {
    int turns = count_turns(a, turn);
    Stmts all = {NULL, NULL};
    const Expr *lanes = expr(a, "$ * VW", x_number(a, turns));
    const char *element[MAX_TURNS] = {"i"};
    const Expr *lane[MAX_TURNS] = {NULL};
    if (turns == 1)
        return 1;
    for (int i = 1; i < turns; i++) {
        const Expr *step = turn_elements(a, i);
        lane[i] = expr(a, i == 1 ? "VW" : "$ * VW", x_number(a, i));
        element[i] = i == 1 ? "next" : arena_format(a, "next%d", i);
        code(a, &all, NO_NODE, "const int $ = i + $ < hi ? i + $ : i;",
             x_name(a, element[i]), step, step);
    }
    for (Stmt *s = turn->first, *after; s != NULL; s = after) {
        after = s->next;
        s->next = NULL;
        if (address_of(s) >= 0) {
            for (int i = 0; i < turns; i++)
                access_add(a, &all, s, lane[i], element[i]);
            continue;
        }
        if (is_vector(s))
            s->dim[0] = lanes;
        if (s->kind == S_REPEAT)
            s->value = expr(a, "LANES_DO(k, $)", lanes);
        stmts_add(&all, s);
    }
    *turn = all;
    return turns;
}
