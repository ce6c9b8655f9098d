// Hoisting: moves computations out of the loops in which they are invariant,
// and merges equal ones.
//
// Emitters compute a value where it is used.  A loop over rows may use a value
// of the columns only, such as a scale, and two sweeps over a row may use the
// same value of the row.  Loops are visited from the innermost out, so a
// computation leaves one after another.  A variable of a lane loop becomes an
// array.
//
// A load may move in front of a loop that makes no iteration, as the indices
// that it reads are in range there.  It leaves a branch only if its address is
// a pointer, and passes a `continue` only if its address does not depend on
// what that tests.

#include "codegen/kernel/tree.h"

#include <string.h>

typedef struct {
    int declared; // number of declarations
    int written;  // assignments, and calls that may write it
    int within;   // the last visited loop that declares or writes it
    int guarded;  // the last visited loop that has a `continue` which tests it
    const Expr *same; // name that it is merged into, or NULL
} Name;

typedef struct {
    Arena *a;
    StringMap names;
    int loop;    // number of the visited loop
    bool merges; // some names are merged
} Hoist;

static Name *name_of(Hoist *h, const Expr *x) {
    return map_name(&h->names, x, sizeof(Name));
}

// ---- names ----

// The name that x is merged into, or x.
static const Expr *merged(void *context, const Expr *x) {
    Hoist *h = context;
    while (x->kind == X_NAME && name_of(h, x)->same != NULL)
        x = name_of(h, x)->same;
    return x;
}

// The array or pointer of an element or address.
static const Expr *base_of(const Expr *x) {
    while (x->kind == X_INDEX || (x->kind == X_OP && x->count > 0))
        x = x->arg[0];
    return x;
}

// A statement's effect on a name: declared, or written.
typedef void Effect(Hoist *h, const Expr *name, bool declares);

// A call writes its first array or pointer; a barrier's may write all arrays.
static void call_effects(Hoist *h, const Expr *x, Effect *effect) {
    IntrinsicKind kind = intrinsic_find(x->name)->kind;
    int most = kind == CONVERGENT || kind == RANGE ? x->count : 1;
    for (int i = 0; i < most; i++) {
        const Expr *base = i == 0 ? base_of(x->arg[i]) : x->arg[i];
        if (base->kind == X_NAME)
            effect(h, base, kind == RANGE);
    }
}

static bool is_lane_loop(const Stmt *s) {
    return s->kind == S_REPEAT && strcmp(s->value->name, "LANES_DO") == 0;
}

static void stmts_effects(Hoist *h, const Stmts *b, Effect *effect) {
    for (const Stmt *s = b->first; s != NULL; s = s->next) {
        if (s->kind == S_DECLARE || s->kind == S_FOR)
            effect(h, s->name, true);
        else if (s->kind == S_SET)
            effect(h, base_of(s->name), false);
        else if (s->kind == S_REPEAT && !is_lane_loop(s) &&
                 s->value->arg[0]->kind == X_NAME)
            effect(h, s->value->arg[0], true);
        if (s->kind == S_CALL || is_call(s->value, CONVERGENT))
            call_effects(h, s->value, effect);
        stmts_effects(h, &s->body, effect);
        stmts_effects(h, &s->other, effect);
    }
}

static void count(Hoist *h, const Expr *x, bool declares) {
    Name *name = name_of(h, x);
    name->declared += declares;
    name->written += !declares;
}

static void mark(Hoist *h, const Expr *x, bool declares) {
    (void)declares;
    name_of(h, merged(h, x))->within = h->loop;
}

// ---- what may move ----

// Whether the kernel writes memory at an address.
static bool is_written(Hoist *h, const Expr *address) {
    return name_of(h, base_of(address))->written > 0;
}

static bool is_guarded(Hoist *h, const Expr *x) {
    bool guarded =
        x->kind == X_NAME && name_of(h, merged(h, x))->guarded == h->loop;
    for (int i = 0; i < x->count && !guarded; i++)
        guarded = is_guarded(h, x->arg[i]);
    return guarded;
}

static void guard(Hoist *h, const Expr *x) {
    if (x->kind == X_NAME)
        name_of(h, merged(h, x))->guarded = h->loop;
    for (int i = 0; i < x->count; i++)
        guard(h, x->arg[i]);
}

// How a statement is reached in an iteration.
typedef enum { ALWAYS, BRANCHED } Reached;

// Whether x has the same value in all iterations of the visited loop.
static bool is_invariant(Hoist *h, const Expr *x, Reached reached) {
    if (x->kind == X_NAME)
        return name_of(h, merged(h, x))->within != h->loop;
    if (is_call(x, LOAD) &&
        (is_written(h, x->arg[0]) || is_guarded(h, x) ||
         (reached == BRANCHED && x->arg[0]->kind != X_NAME)))
        return false;
    if (x->kind == X_CALL && !is_call(x, LOAD) && !is_call(x, PURE))
        return false;
    for (int i = 0; i < x->count; i++)
        if (!is_invariant(h, x->arg[i], reached))
            return false;
    return true;
}

static bool is_constant(Hoist *h, const Stmt *s) {
    return s->kind == S_DECLARE && s->value != NULL && s->dim[0] == NULL &&
           strncmp(s->type, "const ", 6) == 0 &&
           name_of(h, s->name)->declared == 1;
}

// Whether s is a lane loop around one assignment, to array `name`.
static bool sets_lanes(const Stmt *s, const Expr *name) {
    const Stmt *set = s->body.first;
    return is_lane_loop(s) && set->next == NULL && set->kind == S_SET &&
           strcmp(set->word, "=") == 0 && set->name->kind == X_INDEX &&
           expr_equal(set->name->arg[0], name);
}

// Whether s fills array `name` from memory or by a function.
static bool calls_for(const Stmt *s, const Expr *name) {
    return s->kind == S_CALL && expr_equal(s->value->arg[0], name) &&
           (is_call(s->value, LOAD) || is_call(s->value, PURE));
}

static bool fills(const Stmt *s, const Expr *name) {
    return calls_for(s, name) || sets_lanes(s, name);
}

// Whether s, which fills an array, does so with invariant values.
static bool fills_invariant(Hoist *h, const Stmt *s, Reached reached) {
    if (s->kind == S_REPEAT)
        return is_invariant(h, s->body.first->value, reached);
    const Expr *x = s->value;
    bool all =
        !is_call(x, LOAD) || (reached == ALWAYS && !is_written(h, x->arg[1]) &&
                              !is_guarded(h, x->arg[1]));
    for (int i = 1; i < x->count && all; i++)
        all = is_invariant(h, x->arg[i], reached);
    return all;
}

// Whether s declares an array that the next statement fills, and no other.
static bool is_filled(Hoist *h, const Stmt *s, Reached reached) {
    if (s->kind != S_DECLARE || s->value != NULL || s->dim[0] == NULL ||
        s->word != NULL || s->next == NULL)
        return false;
    const Name *name = name_of(h, s->name);
    return name->declared == 1 && name->written == 1 &&
           is_invariant(h, s->dim[0], reached) && fills(s->next, s->name) &&
           fills_invariant(h, s->next, reached);
}

// ---- move ----

// Appends s to a block of moved statements.
static void move(Hoist *h, Stmts *to, Stmt *s) {
    if (s->kind == S_DECLARE)
        name_of(h, merged(h, s->name))->within = 0;
    s->next = NULL;
    stmts_add(to, s);
}

static const Expr *replaced(void *context, const Expr *x) {
    const Expr *const *pair = context;
    return expr_equal(x, pair[0]) ? pair[1] : x;
}

// Turns a variable of a lane loop into an array, which it fills first.
static void move_lanes(Hoist *h, Stmts *to, const Stmt *loop, Stmt *s) {
    const Expr *const *lane = loop->value->arg;
    const Expr *pair[] = {s->name, x_element(h->a, s->name, lane[0])};
    Stmts rest = {s->next, s->next}, fill = {NULL, NULL};
    code(h->a, &fill, s->node,
         arena_format(h->a, "%s $[$]; LANES_DO($, $) $[$] = $;",
                      s->type + strlen("const ")),
         s->name, lane[1], lane[0], lane[1], s->name, lane[0], s->value);
    Stmt *filler = fill.first->next;
    move(h, to, fill.first);
    move(h, to, filler);
    name_of(h, s->name)->written++;
    rest = stmts_rewrite(h->a, &rest, replaced, pair);
    s->next = rest.first;
}

// Moves invariant variables out of a lane loop's body.
static void take_lanes(Hoist *h, Stmts *to, Stmt *loop, Reached reached) {
    Stmts kept = {NULL, NULL};
    for (Stmt *s = loop->body.first, *next; s != NULL; s = next) {
        bool moves = is_constant(h, s) && is_invariant(h, s->value, reached);
        if (moves)
            move_lanes(h, to, loop, s);
        next = s->next;
        s->next = NULL;
        if (!moves)
            stmts_add(&kept, s);
    }
    loop->body = kept;
}

static bool continues(const Stmt *s) {
    const Stmt *first = s->body.first;
    return s->kind == S_IF && first != NULL && first->kind == S_JUMP &&
           strcmp(first->word, "continue") == 0;
}

// Moves invariant statements of b, a part of the loop's body.
static void take(Hoist *h, Stmts *to, Stmts *b, Reached reached) {
    Stmts kept = {NULL, NULL};
    for (Stmt *s = b->first, *next; s != NULL; s = next) {
        bool filled = is_filled(h, s, reached);
        if (continues(s))
            guard(h, s->value);
        else if (s->kind == S_DECLARE && s->value != NULL &&
                 is_guarded(h, s->value))
            guard(h, s->name);
        next = filled ? s->next->next : s->next;
        if (filled ||
            (is_constant(h, s) && is_invariant(h, s->value, reached))) {
            Stmt *filler = s->next;
            move(h, to, s);
            if (filled)
                move(h, to, filler);
            continue;
        }
        if (is_lane_loop(s)) {
            take_lanes(h, to, s, reached);
        } else if (s->kind == S_BLOCK) {
            take(h, to, &s->body, reached);
        } else if (s->kind == S_IF) {
            take(h, to, &s->body, BRANCHED);
            take(h, to, &s->other, BRANCHED);
        }
        s->next = NULL;
        if (!is_lane_loop(s) || s->body.first != NULL)
            stmts_add(&kept, s);
    }
    *b = kept;
}

// ---- merge ----

// Whether x and y are equal once all names are merged.
static bool agree(Hoist *h, const Expr *x, const Expr *y) {
    if (x == NULL || y == NULL)
        return x == y;
    x = merged(h, x);
    y = merged(h, y);
    if (x->count == 0 || x->count != y->count)
        return expr_equal(x, y);
    bool same = x->kind == y->kind &&
                (x->name == NULL || strcmp(x->name, y->name) == 0);
    for (int i = 0; i < x->count && same; i++)
        same = agree(h, x->arg[i], y->arg[i]);
    return same;
}

// Whether x and y fill two arrays with the same values.
static bool fill_equally(Hoist *h, const Stmt *x, const Stmt *y) {
    if (x->kind == S_REPEAT)
        return agree(h, x->value, y->value) &&
               agree(h, x->body.first->value, y->body.first->value);
    bool same = strcmp(x->value->name, y->value->name) == 0;
    for (int i = 1; i < x->value->count && same; i++)
        same = agree(h, x->value->arg[i], y->value->arg[i]);
    return same;
}

// Whether s, which moves, and t declare the same value.
static bool same_value(Hoist *h, const Stmt *s, const Stmt *t) {
    if (t->kind != S_DECLARE || strcmp(s->type, t->type) != 0 ||
        t->word != NULL || !agree(h, s->dim[0], t->dim[0]) ||
        name_of(h, t->name)->declared != 1)
        return false;
    if (s->dim[0] == NULL)
        return agree(h, s->value, t->value);
    return t->next != NULL && t->next->kind == s->next->kind &&
           name_of(h, t->name)->written == 1 && fills(t->next, t->name) &&
           fill_equally(h, s->next, t->next);
}

// Merges the values that s and t declare under the lower number.
static void merge(Hoist *h, const Stmt *s, const Stmt *t) {
    const Expr *x = s->name, *y = merged(h, t->name);
    bool lower = x->again < y->again;
    name_of(h, lower ? y : x)->same = lower ? x : y;
    h->merges = true;
}

// Appends moved statements to b, without those that b has.
static void insert(Hoist *h, Stmts *b, const Stmts *moved) {
    for (Stmt *s = moved->first, *next; s != NULL; s = next) {
        Stmt *filler = s->dim[0] != NULL ? s->next : NULL;
        const Stmt *t = b->first;
        next = filler != NULL ? filler->next : s->next;
        while (t != NULL && !same_value(h, s, t))
            t = t->next;
        if (t != NULL) {
            merge(h, s, t);
            continue;
        }
        s->next = NULL;
        stmts_add(b, s);
        if (filler != NULL) {
            filler->next = NULL;
            stmts_add(b, filler);
        }
    }
}

// ---- loops ----

static void visit(Hoist *h, Stmts *b) {
    Stmts all = {NULL, NULL};
    for (Stmt *s = b->first, *next; s != NULL; s = next) {
        next = s->next;
        s->next = NULL;
        visit(h, &s->body);
        visit(h, &s->other);
        if (s->kind == S_FOR ||
            (s->kind == S_REPEAT && strcmp(s->value->name, "UNROLLED") == 0)) {
            Stmts one = {s, s}, moved = {NULL, NULL};
            h->loop++;
            stmts_effects(h, &one, mark);
            take(h, &moved, &s->body, ALWAYS);
            insert(h, &all, &moved);
        }
        stmts_add(&all, s);
    }
    *b = all;
}

void stmts_hoist(Arena *a, Stmts *b) {
    Hoist h = {.a = a, .names = map_new(a, stmts_names(b))};
    stmts_effects(&h, b, count);
    visit(&h, b);
    if (h.merges)
        *b = stmts_rewrite(a, b, merged, &h);
}
