// Cost: instructions, live registers and loads in flight of a kernel.
//
// The walk visits each statement once, in order.  It evaluates constants, and
// estimates other integers for thread 0 of an average block, which gives the
// trip counts of loops.  An instruction belongs to the innermost loop in which
// its operands change, as the compiler hoists it there, and equal integer
// expressions count once.  Live ranges are intervals of the walk's statements.

#include "codegen/kernel/cost.h"

#include <math.h>
#include <string.h>

static const double LIVE_SHARE = 0.95;
enum { BASE_CODE = 30, BASE_REGISTERS = 14 };

static void stmts_walk(Walk *w, const Stmts *b);

// ---- statements ----

// Enters a loop of so many trips of a warp.
static void loop_enter(Walk *w, double trips) {
    Loop *outer = &w->loop[w->depth++];
    w->loop[w->depth] = (Loop){.trips = outer->trips * trips,
                               .last = outer->last * fmax(trips, 1),
                               .from = w->now};
}

// The bytes in flight are those of the loop over rows, or of a loop that loads
// more than the others, in it or without one.
static void loop_compare(Walk *w, const Loop *loop, int copies) {
    double all = loop->trips * loop->in_flight;
    if (all <= w->most_loaded)
        return;
    w->most_loaded = loop->rows > 0 ? (double)INFINITY : all;
    w->cost.loaded = loop->rows > 0 ? loop->in_flight : 0;
    w->cost.functions = loop->rows > 0 && loop->functions;
    w->cost.in_flight = loop->rows > 1 ? loaded_at_once(&w->cost, copies)
                                       : loop->in_flight * copies;
}

// Leaves it.  The compiler writes out `copies` of its code; if these are all
// trips, their loads are those of the loop around it.  No load moves in front
// of a store that may alias it.
static void loop_leave(Walk *w, double copies, bool unrolled) {
    Loop *own = &w->loop[w->depth--], *outer = &w->loop[w->depth];
    int together = own->stores ? 1 : (int)copies;
    int most = own->rows > 2 ? own->rows : 2;
    outer->code += own->code * copies;
    outer->stores |= own->stores;
    outer->functions |= own->functions;
    for (int i = 0; i < w->num_ranges; i++)
        if (w->range[i].level <= w->depth && w->range[i].to >= own->from)
            w->range[i].to = w->now;
    // From here on these change only in the loops around it.
    for (int i = 0; i < w->num_variables; i++)
        if (w->variable[i].estimate.level > w->depth)
            w->variable[i].estimate.level = w->depth;
    if (unrolled)
        outer->in_flight += own->in_flight * together;
    else
        loop_compare(w, own, together > most ? most : 1);
}

static void body_walk(Walk *w, const Stmts *b) {
    int variables = w->num_variables, known = w->num_known;
    stmts_walk(w, b);
    w->num_variables = variables;
    w->num_known = known;
}

// Trips of `for (i = from; i < end; i += step)` of an average warp.  Its
// threads have `near` neighbouring values.
static double trips_of(Estimate from, Estimate end, Estimate step) {
    double count = end.value - from.value;
    if (from.constancy >= THREADS)
        return ceil(count / step.value);
    double periods = fmax(from.period / from.constancy, 1);
    double near = fmax(1, fmin(periods, WARP / from.constancy));
    double unit = step.value / periods * near;
    return ceil(count / unit) * unit / step.value;
}

// Copies of a loop's body that the compiler writes: it unrolls small bodies
// four times or twice, and has one more for the rest of the iterations.
static double copies_of(const Walk *w, const Stmt *s, bool whole,
                        double trips) {
    enum { WHOLE = 400, PARTS = 150 };
    double code = w->loop[w->depth].code;
    if (whole)
        return code * trips <= WHOLE ? trips : 1;
    if (s->word != NULL)
        return unrolling_of(s) + 1;
    return code * 4 <= PARTS ? 5 : code * 2 <= PARTS ? 3 : 1;
}

static void for_walk(Walk *w, const Stmt *s) {
    int variables = w->num_variables;
    Estimate from = estimate_of(w, s->value), step = estimate_of(w, s->step);
    const Expr *limit = s->test->arg[1];
    Estimate end = estimate_of(w, limit);
    bool whole = from.constant && end.constant && step.constant;
    double trips = fmax(trips_of(from, end, step), 1.0 / WARPS);
    loop_enter(w, trips);
    Estimate own = from;
    own.level = w->depth;
    own.constant = whole;
    own.thread = false;
    variable_declare(w, s->name, own, whole ? 0 : 1);
    if (!whole) {
        spend(w, ISSUE_INTEGER, 2, w->depth);
        spend(w, ISSUE_CONTROL, 1, w->depth);
    }
    body_walk(w, &s->body);
    if (is_row_loop(s)) {
        Loop *loop = &w->loop[w->depth];
        loop->rows = unrolling_of(s);
        KernelCost row = {.loaded = loop->in_flight,
                          .functions = loop->functions};
        int more = row_registers(&row, loop->rows);
        w->row_registers = more > w->row_registers ? more : w->row_registers;
    }
    double copies = copies_of(w, s, whole, trips);
    loop_leave(w, copies, whole && copies == trips);
    w->num_variables = variables;
}

static void repeat_walk(Walk *w, const Stmt *s) {
    int variables = w->num_variables;
    const Expr *x = s->value;
    if (strcmp(x->name, "PHASE") == 0) {
        body_walk(w, &s->body);
        return;
    }
    bool shared = strcmp(x->name, "SHARES_DO") == 0;
    double trips = estimate_of(w, x->arg[1]).value;
    if (shared)
        trips = ceil(trips / fmax(w->last_blocks, 1));
    loop_enter(w, trips);
    Estimate own = estimate_constant(0);
    own.level = w->depth;
    own.constant = !shared;
    variable_declare(w, x->arg[0], own, 0);
    body_walk(w, &s->body);
    loop_leave(w, trips, !shared);
    w->num_variables = variables;
}

static bool jumps(const Stmt *s) {
    return s->body.first != NULL && s->body.first->kind == S_JUMP;
}

static void if_walk(Walk *w, const Stmt *s) {
    Loop *loop = &w->loop[w->depth];
    double before = loop->last;
    if (is_last(s->value))
        loop->last = fmax(before, 1);
    Estimate test = estimate_of(w, s->value);
    double share = test.fraction;
    double *trips = &loop->trips, all = *trips;
    if (test.constant && test.value == 0) {
        body_walk(w, &s->other);
        return;
    }
    spend(w, ISSUE_CONTROL, 1, w->depth);
    if (jumps(s)) {
        *trips = all * (share < 0 ? 1 : 1 - share);
        return;
    }
    if (share < 0) // of two branches, each thread takes one
        share = s->other.first != NULL ? 0.5 : 1;
    *trips = all * share;
    body_walk(w, &s->body);
    *trips = s->other.first != NULL ? all * (1 - share) : all;
    loop->last = before;
    body_walk(w, &s->other);
    *trips = all;
}

// The chunks of the phase's entries of a kind, and their elements.
static void case_weigh(const Walk *w, double kind, double *chunks,
                       double *elements) {
    enum { CHUNK = 4096 };
    for (const Stmt *t = w->tree->tables.first; t != NULL; t = t->next)
        for (int i = 0; t->kind == S_TABLE && i < t->num_rows; i++) {
            const Expr *row = t->row[i].value;
            if (w->entries == NULL || !expr_equal(t->name, w->entries) ||
                row->kind != X_LIST || row->count < 2 ||
                (kind >= 0 && (double)row->arg[0]->integer != kind))
                continue;
            *chunks += ceil((double)row->arg[1]->integer / CHUNK);
            *elements += (double)row->arg[1]->integer;
        }
}

static void case_walk(Walk *w, const Stmt *s) {
    double all = 0, every = 0, own = 0, elements = 0;
    double *trips = &w->loop[w->depth].trips, before = *trips;
    case_weigh(w, -1, &all, &every);
    case_weigh(w, (double)s->value->integer, &own, &elements);
    *trips *= all > 0 ? own / all : 1;
    Variable *end = variable_find(w, x_name(w->a, "hi"));
    if (end != NULL && own > 0)
        end->estimate.value = elements / own;
    spend(w, ISSUE_CONTROL, 2, w->depth);
    body_walk(w, &s->body);
    *trips = before;
}

// Registers of a declared variable.  Loaded activations stay in halves.
static double registers_of(Walk *w, const Stmt *s, Estimate e) {
    double count = 1;
    if (e.constant || (s->word != NULL && strcmp(s->word, "SHARED") == 0))
        return 0;
    for (int i = 0; i < MAX_DIMS && s->dim[i] != NULL; i++)
        count *= estimate_of(w, s->dim[i]).value;
    if (e.level == 0 && e.constancy >= THREADS && s->dim[0] == NULL)
        return 0; // uniform: not in a thread's registers
    return strchr(s->type, '*') || e.wide ? 2 * count : count;
}

static void declare_walk(Walk *w, const Stmt *s) {
    Estimate e = estimate_constant(0);
    bool array = s->dim[0] != NULL;
    if (s->word != NULL && strcmp(s->word, "SHARED") == 0) {
        w->cost.shared += 4 * (int)estimate_of(w, s->dim[0]).value;
    } else if (s->value != NULL) {
        if (is_named(s->name, "entry") && s->value->kind == X_INDEX)
            w->entries = s->value->arg[0];
        e = estimate_of(w, s->value);
        e.real = strstr(s->type, "float") != NULL;
    }
    if (array || s->value == NULL) {
        e.constant = false;
        e.real = strstr(s->type, "float") != NULL;
        e.constancy = 1;
        e.fraction = -1;
    }
    if (array)
        e.level = w->depth;
    variable_declare(w, s->name, e, registers_of(w, s, e));
}

static void set_walk(Walk *w, const Stmt *s) {
    Estimate e = estimate_of(w, s->value);
    const Expr *name = s->name;
    if (strcmp(s->word, "=") != 0)
        spend(w, e.real ? ISSUE_FLOAT : ISSUE_INTEGER, 1, w->depth);
    else if (e.constant)
        spend(w, ISSUE_INTEGER, 0.5, w->depth);
    while (name->kind == X_INDEX)
        name = name->arg[0];
    Variable *v = variable_find(w, name);
    if (v == NULL)
        return;
    v->estimate.thread = false;
    if (v->estimate.level < w->depth)
        v->estimate.level = w->depth;
    if (v->range >= 0)
        w->range[v->range].to = w->now;
}

static void call_walk(Walk *w, const Stmt *s) {
    const Expr *x = s->value;
    if (intrinsic_find(x->name)->kind != RANGE) {
        estimate_of(w, x);
        return;
    }
    Estimate rows = estimate_of(w, x->arg[x->count - 1]);
    Estimate lo = estimate_constant(0), hi = lo;
    const Variable *chunks = variable_find(w, x_name(w->a, "chunks"));
    lo.constant = hi.constant = false;
    hi.value =
        rows.value / (chunks != NULL ? chunks->estimate.value : w->blocks);
    spend(w, ISSUE_INTEGER, x->count == 3 ? 28 : 80, 0);
    variable_declare(w, x->arg[x->count - 3], lo, 0);
    variable_declare(w, x->arg[x->count - 2], hi, 0);
}

static void enum_walk(Walk *w, const Stmt *s) {
    for (int i = 0; i < s->num_enumerators; i++)
        variable_declare(w, x_name(w->a, s->enumerator[i].name),
                         estimate_of(w, s->enumerator[i].value), 0);
}

static void stmt_walk(Walk *w, const Stmt *s) {
    w->now++;
    w->temporaries = 0;
    switch (s->kind) {
    case S_DECLARE:
        declare_walk(w, s);
        break;
    case S_SET:
        set_walk(w, s);
        break;
    case S_CALL:
        call_walk(w, s);
        break;
    case S_FOR:
        for_walk(w, s);
        break;
    case S_REPEAT:
        repeat_walk(w, s);
        break;
    case S_IF:
        if_walk(w, s);
        break;
    case S_ENUM:
        enum_walk(w, s);
        break;
    case S_CASE:
        case_walk(w, s);
        break;
    case S_SWITCH:
        estimate_of(w, s->value);
        body_walk(w, &s->body);
        break;
    case S_BLOCK:
        body_walk(w, &s->body);
        break;
    case S_STRUCT:
    case S_TABLE:
    case S_JUMP:
        break;
    }
    if (w->temporaries > 0)
        ARENA_APPEND(w->a, w->range, w->num_ranges,
                     ((Range){w->temporaries, w->now, w->now, MAX_LOOPS}));
    w->temporaries = 0;
}

static void stmts_walk(Walk *w, const Stmts *b) {
    for (const Stmt *s = b->first; s != NULL; s = s->next)
        stmt_walk(w, s);
}

// The most registers that are live in a statement.
static double widest(Walk *w) {
    double *change = ARENA_ARRAY(w->a, (size_t)w->now + 2, double);
    double live = 0, most = 0;
    for (int i = 0; i < w->num_ranges; i++) {
        change[w->range[i].from] += w->range[i].registers;
        change[w->range[i].to + 1] -= w->range[i].registers;
    }
    for (int i = 0; i <= w->now; i++) {
        live += change[i];
        most = fmax(most, live);
    }
    return most;
}

int registers_within(int blocks) {
    enum { UNIT = 8, MOST = 255 };
    int most = REGISTERS / (blocks > 1 ? blocks * THREADS : THREADS);
    return most < MOST ? most / UNIT * UNIT : MOST;
}

// Whether the compiler places loads of further rows after functions of the
// first.
static bool are_late(const KernelCost *k) {
    return k->functions && k->loaded > VECTOR_BYTES;
}

int loaded_at_once(const KernelCost *k, int rows) {
    return are_late(k) ? k->loaded * (rows + 1) / 2 : k->loaded * rows;
}

int row_registers(const KernelCost *k, int rows) {
    enum { ADDRESSES = 2, FUNCTIONS = 17 }; // as machine code has them
    int loads = k->loaded / (int)sizeof(float);
    return (rows - 1) * (loads + ADDRESSES + (are_late(k) ? FUNCTIONS : 0));
}

KernelCost tree_cost(const Tree *tree, int blocks, DType act) {
    Walk w = {.a = arena_new(),
              .tree = tree,
              .blocks = blocks,
              .act_bytes = act == F32 ? 4 : 2,
              .converts = act != F32};
    w.loop[0].trips = 1;
    stmts_walk(&w, &tree->tables);
    stmts_walk(&w, &tree->body);
    loop_compare(&w, &w.loop[0], 1);
    w.cost.code = w.loop[0].code + BASE_CODE;
    w.cost.registers =
        (int)fmin(BASE_REGISTERS + LIVE_SHARE * widest(&w) + w.row_registers,
                  registers_within(tree->phased ? 2 : tree->min_blocks));
    arena_free(w.a);
    return w.cost;
}
