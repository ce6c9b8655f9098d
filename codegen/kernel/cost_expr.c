// Cost of expressions: their values, and their instructions on a GPU.

#include "codegen/kernel/cost.h"

#include <math.h>
#include <string.h>

// ---- instructions ----

void spend(Walk *w, Issue kind, double count, int level) {
    w->cost.issue[kind] += count * w->loop[level].turns;
    w->loop[level].code += count;
}

Fact fact_constant(double value) {
    return (Fact){.value = value,
                  .run = THREADS,
                  .period = THREADS,
                  .share = value != 0,
                  .constant = true};
}

static Fact unknown(int level) {
    return (Fact){.run = 1, .period = THREADS, .share = -1, .level = level};
}

// A value that depends on both.
static Fact both(Fact a, Fact b) {
    return (Fact){.run = fmin(a.run, b.run),
                  .period = a.constant   ? b.period
                            : b.constant ? a.period
                                         : fmax(a.period, b.period),
                  .share = -1,
                  .level = a.level > b.level ? a.level : b.level,
                  .constant = a.constant && b.constant,
                  .real = a.real || b.real,
                  .wide = a.wide || b.wide};
}

static bool is_power(double x) {
    return x >= 1 && exp2(round(log2(x))) == x;
}

// ---- names ----

Variable *variable_find(const Walk *w, const Expr *name) {
    for (int i = w->num_variables; i-- > 0;)
        if (expr_equal(w->variable[i].name, name))
            return &w->variable[i];
    return NULL;
}

void variable_declare(Walk *w, const Expr *name, Fact fact, double registers) {
    int range = -1;
    if (registers > 0) {
        range = w->num_ranges;
        ARENA_APPEND(w->a, w->range, w->num_ranges,
                     ((Range){registers, w->now, w->now, w->depth}));
    }
    ARENA_APPEND(w->a, w->variable, w->num_variables,
                 ((Variable){name, fact, range}));
}

static Fact name_fact(Walk *w, const Expr *x) {
    static const struct {
        const char *name;
        int value;
    } constants[] = {
        {"PART_LANES", 4}, {"AT_ONCE", 4}, {"INF", 1}, {"INT_LEAST", 1}};
    Variable *v = variable_find(w, x);
    if (v != NULL && v->range >= 0)
        w->range[v->range].to = w->now;
    if (v != NULL)
        return v->fact;
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (is_named(x, constants[i].name))
            return fact_constant(constants[i].value);
    Fact fact = fact_constant(is_named(x, "blocks") ? w->blocks : 0);
    fact.constant = false;
    fact.share = -1;
    return fact;
}

// ---- operators ----

static double compute(const char *op, double a, double b) {
    switch (*op) {
    case '+':
        return a + b;
    case '-':
        return a - b;
    case '*':
        return a * b;
    case '/':
        return b != 0 ? a / b : 0;
    case '%':
        return b != 0 ? fmod(a, b) : 0;
    case '<':
        return op[1] == '=' ? a <= b : a < b;
    case '>':
        return op[1] == '=' ? a >= b : a > b;
    case '=':
        return a == b;
    case '!':
        return a != b;
    case '&':
        return op[1] == '&' ? a && b : (double)((int64_t)a & (int64_t)b);
    case '|':
        return op[1] == '|' ? a || b : (double)((int64_t)a | (int64_t)b);
    default:
        return 0;
    }
}

static bool compares(const char *op) {
    return strchr("<>=!", *op) != NULL || strcmp(op, "&&") == 0 ||
           strcmp(op, "||") == 0;
}

// Threads of which a condition on the number of a thread selects one in
// `period / run`.
static double share_of(const char *op, Fact a, Fact b) {
    if (strcmp(op, "&&") == 0)
        return a.share < 0   ? b.share
               : b.share < 0 ? a.share
                             : a.share * b.share;
    if (strcmp(op, "==") != 0 || !b.constant || a.run >= THREADS)
        return -1;
    return fmax(a.run, WARP) / fmax(a.period, WARP);
}

// Integer instructions of an operator.
static double integer_count(const char *op, const Expr *x, Fact a, Fact b) {
    double wide = a.wide || b.wide ? 2 : 1;
    const Expr *left = x->arg[0]; // a product is part of the addition
    bool fused = left->kind == X_OP && *left->name == '*' && !a.constant;
    switch (*op) {
    case '+':
        return fused ? wide - 1 : wide;
    case '*':
        return wide;
    case '/':
    case '%':
        if (!b.constant)
            return 22;
        return is_power(b.value) ? 2 : *op == '/' ? 3 : 1;
    case '&':
    case '|':
        return 0.5;
    default:
        return 1;
    }
}

// A division is a function's fast path.
static void spend_division(Walk *w, int level) {
    enum { CALL = 6 }; // instructions of the slow path
    spend(w, ISSUE_FLOAT, 7, level);
    spend(w, ISSUE_SPECIAL, 1, level);
    spend(w, ISSUE_CONTROL, 3, level);
    w->loop[level].code += CALL;
}

static void operator_walk(Walk *w, const Expr *x, Fact a, Fact b, Fact own) {
    bool exact = b.constant && is_power(b.value);
    if (own.real && *x->name == '/' && !exact)
        spend_division(w, own.level);
    else if (own.real)
        spend(w, ISSUE_FLOAT, 1, own.level);
    else
        spend(w, ISSUE_INTEGER, integer_count(x->name, x, a, b), own.level);
}

static Fact binary_fact(Walk *w, const Expr *x) {
    Fact a = fact_of(w, x->arg[0]), b = fact_of(w, x->arg[1]);
    Fact fact = both(a, b);
    fact.value = compute(x->name, a.value, b.value);
    if (fact.constant && *x->name == '/' && !fact.real)
        fact.value = trunc(fact.value);
    fact.share = fact.constant ? fact.value != 0 : share_of(x->name, a, b);
    if (!fact.constant)
        operator_walk(w, x, a, b, fact);
    if (compares(x->name))
        fact.real = fact.wide = false;
    if (*x->name == '/' && b.constant)
        fact.run *= fmax(b.value, 1);
    if (*x->name == '%' && b.constant)
        fact.period = fmin(fact.period, b.value * a.run);
    return fact;
}

static Fact choice_fact(Walk *w, const Expr *x) {
    Fact test = fact_of(w, x->arg[0]);
    if (test.constant)
        return fact_of(w, x->arg[test.value != 0 ? 1 : 2]);
    Fact a = fact_of(w, x->arg[1]), b = fact_of(w, x->arg[2]);
    Fact fact = both(test, both(a, b));
    fact.constant = false;
    fact.real = a.real || b.real;
    fact.value = test.value != 0 ? a.value : b.value;
    spend(w, fact.real ? ISSUE_FLOAT : ISSUE_INTEGER, 1, fact.level);
    return fact;
}

// An integer expression costs nothing if an earlier one is equal.
static Fact operator_fact(Walk *w, const Expr *x) {
    if (x->count == 1) {
        Fact fact = fact_of(w, x->arg[0]);
        fact.value = *x->name == '-' ? -fact.value : fact.value == 0;
        fact.share = fact.share < 0 ? -1 : 1 - fact.share;
        return fact;
    }
    for (int i = w->num_known; i-- > 0;)
        if (expr_equal(w->known[i].x, x))
            return w->known[i].fact;
    Fact fact = x->count == 3 ? choice_fact(w, x) : binary_fact(w, x);
    if (!fact.constant && !fact.real)
        ARENA_APPEND(w->a, w->known, w->num_known, ((Known){x, fact}));
    return fact;
}

// ---- memory ----

// An address: the operands of the sum, and an addition in 64 bits.
static int address_walk(Walk *w, const Expr *x, bool last) {
    if (x->kind == X_OP && *x->name == '+' && x->count == 2) {
        int a = address_walk(w, x->arg[0], false);
        Fact b = fact_of(w, x->arg[1]);
        int level = a > b.level ? a : b.level;
        if (!b.constant && !(last && is_named(x->arg[1], "k")))
            spend(w, ISSUE_INTEGER, b.wide ? 2 : 1, level);
        return level;
    }
    return fact_of(w, x).level;
}

static int element_bytes(const Walk *w, const char *name) {
    return strstr(name, "act") ? w->act_bytes : strstr(name, "u8") ? 1 : 4;
}

// Accesses of memory for n elements: see runtime/prelude/cuda.h.
static double accesses_of(const Walk *w, const char *name, double n) {
    int bytes = element_bytes(w, name);
    if (strstr(name, "bits") != NULL)
        return 1;
    if (bytes == 1)
        return n == 8 ? 1 : n;
    for (int wide = 16; wide > bytes; wide /= 2)
        if (fmod(n * bytes, wide) == 0 && (bytes == 2 || wide == 16))
            return n * bytes / wide;
    return n;
}

static void access_walk(Walk *w, const Expr *x, const Intrinsic *f, double n,
                        int level) {
    spend(w, ISSUE_GLOBAL, accesses_of(w, x->name, n), level);
    if (f->kind == LOAD && strstr(x->name, "bits") == NULL)
        w->loop[level].in_flight += (int)n * element_bytes(w, x->name);
}

static bool is_access(const char *name) {
    static const char *const stems[] = {"get_", "put_", "load_", "store_",
                                        "place_"};
    for (size_t i = 0; i < sizeof stems / sizeof *stems; i++)
        if (strncmp(name, stems[i], strlen(stems[i])) == 0)
            return true;
    return false;
}

// ---- calls ----

static Fact tile(double cg, double nt) {
    double n = nt;
    while (n > 1 && cg <= n / 2)
        n /= 2;
    return fact_constant(n);
}

static Fact lanes(double c) {
    int64_t n = (int64_t)c;
    return fact_constant(n % 8 == 0   ? 8
                         : n % 4 == 0 ? 4
                         : n % 2 == 0 ? 2
                         : n <= 16    ? (double)n
                                      : 1);
}

// Constants that the prelude's macros compute.  Whether x is one.
static bool macro_fact(Walk *w, const Expr *x, Fact *out) {
    double v[3] = {0};
    if (x->count > 3 ||
        strspn(x->name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") != strlen(x->name))
        return false;
    for (int i = 0; i < x->count; i++)
        v[i] = fact_of(w, x->arg[i]).value;
    if (strcmp(x->name, "LANES") == 0)
        *out = lanes(v[0]);
    else if (strcmp(x->name, "TILE") == 0)
        *out = tile(v[0], v[1]);
    else if (strcmp(x->name, "ROW_THREADS_OF") == 0)
        *out = v[0] > 1024 ? fact_constant(v[2])
                           : tile(trunc(v[0] / v[1]), fmin(v[2], WARP));
    else if (strcmp(x->name, "TEAM_OF") == 0)
        *out = fact_constant(v[1] > v[0] ? v[0] : 1);
    else
        *out = fact_constant(v[x->count - 1]);
    return true;
}

// A reduction over so many threads: two instructions for each halving, and
// through shared memory for a whole block.
static void row_walk(Walk *w, double threads, double times, int level) {
    bool all = threads > WARP;
    double steps = times * (all ? 10 : log2(fmax(threads, 1)));
    spend(w, ISSUE_SHARED, steps + (all ? 2 * times : 0), level);
    spend(w, ISSUE_FLOAT, steps, level);
    spend(w, ISSUE_CONTROL, all ? 4 * times : 0, level);
    spend(w, ISSUE_INTEGER, all ? 6 * times : 0, level);
}

// columns_join in runtime/prelude/block.h.
static void columns_walk(Walk *w, const Expr *x) {
    double n = fact_of(w, x->arg[2]).value, tx = fact_of(w, x->arg[5]).value;
    double rounds = ceil(n / 4), rows = THREADS / fmax(tx, WARP);
    double halvings = tx < WARP ? log2(WARP / tx) : 0;
    double turns = ceil(4 * tx / THREADS);
    int level = w->depth;
    spend(w, ISSUE_SHARED, rounds * (4 * halvings + 4 + turns * rows), level);
    spend(w, ISSUE_FLOAT, rounds * (4 * halvings + turns * (rows - 1)), level);
    spend(w, ISSUE_INTEGER, 12 + rounds * turns * 6, level);
    spend(w, ISSUE_GLOBAL, rounds * turns, level);
    spend(w, ISSUE_CONTROL, rounds * (2 + 4 * turns), level);
}

// A loaded array stays packed until it is used, of random numbers only
// comparisons are live, and instructions read constant memory directly.
static void fill_array(Walk *w, const Expr *x) {
    Variable *v = x->count > 2 ? variable_find(w, x->arg[0]) : NULL;
    if (v == NULL || v->range < 0)
        return;
    if (x->arg[1]->kind == X_NAME && strncmp(x->arg[1]->name, "OWN_", 4) == 0)
        w->range[v->range].registers = 0;
    else if (strcmp(x->name, "draw_lanes") == 0 ||
             strcmp(x->name, "load_u8") == 0 ||
             strcmp(x->name, "load_bits") == 0)
        w->range[v->range].registers /= 4;
    else if (strcmp(x->name, "load_act") == 0 && w->converts)
        w->range[v->range].registers /= 2;
}

// The operands of a call.  An access adds them to an address.
static Fact arguments_fact(Walk *w, const Expr *x, const Intrinsic *f) {
    Fact fact = fact_constant(0);
    int address = f->kind == LOAD && x->count > 2;
    bool adds = is_access(x->name) && strstr(x->name, "bits") == NULL;
    for (int i = 0; i < x->count; i++)
        fact = both(fact, adds && i == address
                              ? unknown(address_walk(w, x->arg[i], true))
                              : fact_of(w, x->arg[i]));
    return fact;
}

static void intrinsic_walk(Walk *w, const Expr *x, const Intrinsic *f,
                           int level) {
    double n = f->lanes > 0 ? fact_of(w, x->arg[f->lanes]).value : 1;
    bool converts = strstr(x->name, "act") == NULL || w->converts;
    fill_array(w, x);
    for (int i = 0; i < NUM_ISSUES; i++)
        if (converts || i != ISSUE_CONVERT)
            spend(w, (Issue)i, n * f->issue[i], level);
    w->loop[level].code += n * f->rare;
    w->temporaries = fmax(w->temporaries, f->temporaries);
    if (is_access(x->name))
        access_walk(w, x, f, n, level);
    else if (strncmp(x->name, "columns_", 8) == 0)
        columns_walk(w, x);
    else if (strncmp(x->name, "row_", 4) == 0)
        row_walk(w, fact_of(w, x->arg[x->count - 2]).value,
                  strcmp(x->name, "row_argmax") == 0 ? 2 : 1, level);
    else if (strncmp(x->name, "total_", 6) == 0)
        row_walk(w, THREADS, 1, level);
}

static Fact call_fact(Walk *w, const Expr *x) {
    const Intrinsic *f = intrinsic_find(x->name);
    Fact fact;
    if (macro_fact(w, x, &fact))
        return fact;
    fact = arguments_fact(w, x, f);
    if (f->kind == PURE && fact.constant && f->lanes == 0)
        return fact_constant(1);
    int level = f->kind == GROUP || f->kind == STORE ? w->depth : fact.level;
    intrinsic_walk(w, x, f, level);
    fact = unknown(level);
    fact.real = strstr(x->name, "i32") == NULL && strstr(x->name, "u8") == NULL;
    if (strcmp(x->name, "last_block") == 0)
        fact.share = 1.0 / TEAM;
    return fact;
}

// ---- expressions ----

static Fact index_fact(Walk *w, const Expr *x) {
    const Expr *array = x->arg[0];
    while (array->kind == X_INDEX)
        array = array->arg[0];
    Fact fact = both(fact_of(w, array), fact_of(w, x->arg[1]));
    if (x->arg[0]->kind == X_INDEX)
        fact = both(fact, fact_of(w, x->arg[0]->arg[1]));
    fact.constant = false;
    return fact;
}

static Fact cast_fact(Walk *w, const Expr *x) {
    Fact fact = fact_of(w, x->arg[0]);
    bool real = strcmp(x->name, "float") == 0;
    if (strcmp(x->name, "size_t") == 0) {
        fact.wide = true;
        return fact;
    }
    if (real && !fact.real && !fact.constant)
        spend(w, ISSUE_CONVERT, 1, fact.level);
    fact.real = real;
    return fact;
}

// A field of an entry's row is loaded once.
static Fact field_fact(Walk *w, const Expr *x) {
    if (is_named(x->arg[0], "threadIdx"))
        return (Fact){.run = 1, .period = THREADS, .share = -1};
    Fact fact = fact_of(w, x->arg[0]);
    fact.constant = false;
    fact.real = strcmp(x->name, "f") == 0;
    fact.value = strcmp(x->name, "parts") == 0 ? TEAM : 0;
    return fact;
}

Fact fact_of(Walk *w, const Expr *x) {
    switch (x->kind) {
    case X_NAME:
        return name_fact(w, x);
    case X_OP:
        return operator_fact(w, x);
    case X_CALL:
        return call_fact(w, x);
    case X_CAST:
        return cast_fact(w, x);
    case X_INDEX:
        return index_fact(w, x);
    case X_FIELD:
        return field_fact(w, x);
    case X_LIST:
        return fact_constant(0);
    default: {
        bool real = x->kind == X_REAL || x->kind == X_SCALE;
        Fact fact = fact_constant(real ? x->real : (double)x->whole);
        fact.real = real;
        return fact;
    }
    }
}
