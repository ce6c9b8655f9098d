// Promotion to shared memory: computes the factors of a block's columns once.
// The word is MLIR's.
//
// A kernel over rows and columns computes vectors of its columns before its
// loop over rows, such as the factors of a batch_norm.  All threads of a column
// compute the same ones, and with few rows a thread does little else.  So the
// first threads of the columns leave them in shared memory, where the others
// read them after a barrier.

#include "codegen/kernel/tree.h"

#include <string.h>

enum {
    LEAST_COMPUTED = 3, // fewer vectors are not worth the barrier
    MAX_COLUMNS = 1024, // more leave one or two threads for each of them
    MAX_BYTES = 24 << 10,
};

// The loop over the columns of a kernel.
typedef struct {
    Arena *a;
    Stmt *loop;   // over groups of columns
    Stmt *inside; // in it, the condition that the columns exist, or NULL
    Stmts *stmts; // the vectors, and after them the loop over rows
    Stmt *rows;
    int count; // of promoted vectors
} Columns;

static bool steps_by(const Stmt *s, const char *step) {
    return s->kind == S_FOR && is_named(s->step, step);
}

static Stmt *find_step(const Stmts *b, const char *step) {
    Stmt *s = b->first;
    while (s != NULL && !steps_by(s, step))
        s = s->next;
    return s;
}

static bool find_columns(Columns *c, const Stmts *b) {
    c->loop = find_step(b, "TX");
    if (c->loop == NULL)
        return false;
    c->stmts = &c->loop->body;
    c->rows = find_step(c->stmts, "TY");
    for (Stmt *s = c->loop->body.first; s != NULL && c->rows == NULL;
         s = s->next) {
        if (s->kind != S_IF)
            continue;
        c->inside = s;
        c->stmts = &s->body;
        c->rows = find_step(c->stmts, "TY");
    }
    return c->rows != NULL;
}

// The columns of the iteration space, or 0.
static int64_t space_columns_of(const Stmts *b) {
    for (const Stmt *s = b->first; s != NULL; s = s->next)
        for (int i = 0; s->kind == S_ENUM && i < s->num_enumerators; i++)
            if (strcmp(s->enumerator[i].name, "C") == 0)
                return s->enumerator[i].value->integer;
    return 0;
}

// ---- vectors ----

// The statement that fills the array that s declares, or NULL.
static Stmt *filler_of(const Stmt *s) {
    return s->dim[0] != NULL ? s->next : NULL;
}

static bool is_computed(const Stmt *s) {
    const Stmt *fill = filler_of(s);
    return s->kind == S_DECLARE && fill != NULL && fill->kind == S_REPEAT &&
           strcmp(s->type, "float") == 0 && is_named(s->dim[0], "VW");
}

// Whether only declarations, with what fills them, precede the loop over rows,
// and enough of them are computed.
static bool is_worth(const Columns *c) {
    int computed = 0;
    for (const Stmt *s = c->stmts->first; s != c->rows; s = s->next) {
        if (s->kind != S_DECLARE || s->word != NULL)
            return false;
        computed += is_computed(s);
        if (filler_of(s) != NULL)
            s = filler_of(s);
    }
    return computed >= LEAST_COMPUTED;
}

static void mark_name(void *context, const Expr *x) {
    if (x->kind == X_NAME)
        *(bool *)map_name(context, x, sizeof(bool)) = true;
}

static bool is_marked(StringMap *needed, const Expr *name) {
    return *(bool *)map_name(needed, name, sizeof(bool));
}

static StringMap marks_new(const Columns *c) {
    return map_new(c->a, stmts_names(&c->loop->body));
}

// Marks what the loop over rows and the statements after it mention.
static StringMap used_by_rows(const Columns *c) {
    StringMap used = marks_new(c);
    Stmts rest = {c->rows, c->stmts->last};
    stmts_visit(&rest, mark_name, &used);
    return used;
}

static const Expr *itself(void *context, const Expr *x) {
    (void)context;
    return x;
}

// A copy of a declaration, with what fills it.
static Stmts copy_of(const Columns *c, const Stmt *s) {
    Stmt one = *s, fill;
    Stmts own = {&one, &one};
    one.next = NULL;
    if (filler_of(s) != NULL) {
        fill = *filler_of(s);
        fill.next = NULL;
        one.next = own.last = &fill;
    }
    return stmts_rewrite(c->a, &own, itself, NULL);
}

// The number of a promoted vector, from 1 on; 0: s is not promoted.
static int *number_of(StringMap *number, const Stmt *s) {
    return map_name(number, s->name, sizeof(int));
}

// Appends those declarations of s and its successors that are needed, and
// marks what they need.  Vectors with a number are read from shared memory
// instead, if `number` is not NULL.
static void take_needed(Columns *c, Stmts *to, const Stmt *s, StringMap *needed,
                        StringMap *number) {
    if (s == c->rows)
        return;
    const Stmt *fill = filler_of(s);
    Stmts later = {NULL, NULL};
    take_needed(c, &later, fill != NULL ? fill->next : s->next, needed, number);
    if (is_marked(needed, s->name)) {
        Stmts own = {NULL, NULL};
        if (number != NULL && *number_of(number, s) > 0) {
            code(c->a, &own, s->node,
                 "float $[VW];"
                 "LANES_DO(k, VW)"
                 "    $[k] = factor[factor_offset($, k, tx, TX, VW)];",
                 s->name, s->name, x_number(c->a, *number_of(number, s) - 1));
        } else {
            own = copy_of(c, s);
            stmts_visit(&own, mark_name, needed);
        }
        stmts_append(to, &own);
    }
    stmts_append(to, &later);
}

// ---- the pass ----

// Numbers the vectors to promote, and stores them.
static Stmts store_promoted(Columns *c, StringMap *used, StringMap *needed,
                            StringMap *number) {
    Stmts stores = {NULL, NULL};
    for (const Stmt *s = c->stmts->first; s != c->rows; s = s->next) {
        if (is_computed(s) && is_marked(used, s->name)) {
            *(bool *)map_name(needed, s->name, sizeof(bool)) = true;
            code(c->a, &stores, s->node,
                 "LANES_DO(k, VW)"
                 "    factor[factor_offset($, k, tx, TX, VW)] = $[k];",
                 x_number(c->a, c->count++), s->name);
            *number_of(number, s) = c->count;
        }
        if (filler_of(s) != NULL)
            s = filler_of(s);
    }
    return stores;
}

// Puts statements in front of s, which is in b.
static void insert(Stmts *b, Stmt *s, const Stmts *more) {
    Stmts all = {NULL, NULL};
    for (Stmt *t = b->first, *next; t != NULL; t = next) {
        next = t->next;
        t->next = NULL;
        if (t == s)
            stmts_append(&all, more);
        stmts_add(&all, t);
    }
    *b = all;
}

// The statements of the columns, for the first threads of each.
static Stmts first_of(Columns *c, const Stmts *computed) {
    Stmts b = {NULL, NULL};
    code(c->a, &b, NO_NODE, "if (ty == 0 && g < CG) { ~ } BARRIER();",
         computed);
    return b;
}

// Makes a loop over a thread's columns one that all threads of a block go
// through.  It takes one turn, or each column has one thread, so that no
// barrier is needed after it.
static void open_loop(Columns *c, Stmt *column, const Stmts *first,
                      const Stmts *rest) {
    Stmts own = {NULL, NULL}, outside = {column, column};
    Stmt *next = c->loop->next;
    code(c->a, &own, NO_NODE,
         arena_format(c->a,
                      "for (%s g0 = 0; g0 < CG; g0 += TX) {"
                      "    const %s g = g0 + tx; ~ ~ if (g < CG) { ~ }"
                      "}",
                      c->loop->type, c->loop->type),
         column != NULL ? &outside : &(Stmts){NULL, NULL}, first, rest);
    *c->loop = *own.first;
    c->loop->next = next;
}

// The declaration of the first column, in front of the vectors, or NULL.
static Stmt *take_column(Columns *c) {
    Stmt *s = c->stmts->first;
    if (c->inside != NULL || !is_named(s->name, "c"))
        return NULL;
    c->stmts->first = s->next;
    s->next = NULL;
    return s;
}

void stmts_promote(Arena *a, Stmts *b) {
    Columns c = {.a = a};
    int64_t columns = space_columns_of(b);
    if (columns % 8 != 0 || columns > MAX_COLUMNS || !find_columns(&c, b) ||
        !is_worth(&c))
        return;
    StringMap used = used_by_rows(&c), needed = marks_new(&c),
              number = marks_new(&c);
    Stmts stores = store_promoted(&c, &used, &needed, &number);
    if (c.count == 0 || c.count * columns * (int64_t)sizeof(float) > MAX_BYTES)
        return;
    Stmt *column = take_column(&c);
    Stmts first = {NULL, NULL}, rest = first, shared = first;
    take_needed(&c, &first, c.stmts->first, &needed, NULL);
    stmts_append(&first, &stores);
    take_needed(&c, &rest, c.stmts->first, &used, &number);
    stmts_append(&rest, &(Stmts){c.rows, c.stmts->last});
    first = first_of(&c, &first);
    code(a, &shared, NO_NODE, "SHARED float factor[$ * TX * VW];",
         x_number(a, c.count));
    if (c.inside != NULL) {
        c.inside->body = rest;
        insert(&c.loop->body, c.inside, &first);
    } else {
        open_loop(&c, column, &first, &rest);
    }
    insert(b, c.loop, &shared);
}
