// Cost of expressions: their values, and their instructions on a GPU.

#include "codegen/kernel/cost.h"

#include <math.h>
#include <string.h>

// ---- instructions ----

void spend(Walk *w, Issue kind, double count, int level) {
    w->cost.issue[kind] += count * w->loop[level].trips;
    w->loop[level].code += count;
}

Estimate estimate_constant(double value) {
    return (Estimate){.value = value,
                      .constancy = THREADS,
                      .period = THREADS,
                      .fraction = value != 0,
                      .constant = true};
}

static Estimate unknown(int level) {
    return (Estimate){
        .constancy = 1, .period = THREADS, .fraction = -1, .level = level};
}

// A value that depends on both.
static Estimate both(Estimate a, Estimate b) {
    return (Estimate){.constancy = fmin(a.constancy, b.constancy),
                      .period = a.constant   ? b.period
                                : b.constant ? a.period
                                             : fmax(a.period, b.period),
                      .fraction = -1,
                      .level = a.level > b.level ? a.level : b.level,
                      .constant = a.constant && b.constant,
                      .real = a.real || b.real,
                      .wide = a.wide || b.wide,
                      .thread =
                          (a.thread || a.constant) && (b.thread || b.constant)};
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

void variable_declare(Walk *w, const Expr *name, Estimate e, double registers) {
    int range = -1;
    if (registers > 0) {
        range = w->num_ranges;
        ARENA_APPEND(w->a, w->range, w->num_ranges,
                     ((Range){registers, w->now, w->now, w->depth}));
    }
    ARENA_APPEND(w->a, w->variable, w->num_variables,
                 ((Variable){name, e, range}));
}

static Estimate name_estimate(Walk *w, const Expr *x) {
    static const struct {
        const char *name;
        int value;
    } constants[] = {{"MULTI_TENSOR_LANES", 4},
                     {"REDUCE_LANES", 4},
                     {"INF", 1},
                     {"INT_LEAST", 1}};
    Variable *v = variable_find(w, x);
    if (v != NULL && v->range >= 0)
        w->range[v->range].to = w->now;
    if (v != NULL)
        return v->estimate;
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (is_named(x, constants[i].name))
            return estimate_constant(constants[i].value);
    Estimate e = estimate_constant(is_named(x, "blocks") ? w->blocks : 0);
    e.constant = false;
    e.fraction = -1;
    return e;
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

// The fraction of warps that a condition on the number of a thread selects:
// with
// `==` one in `period / constancy`, with `<` the first of a period.
static double fraction_of(const char *op, Estimate a, Estimate b) {
    if (strcmp(op, "&&") == 0)
        return a.fraction < 0   ? b.fraction
               : b.fraction < 0 ? a.fraction
                                : a.fraction * b.fraction;
    if (!b.constant || a.constancy >= THREADS)
        return -1;
    if (strcmp(op, "<") == 0 && a.thread && a.constancy == 1)
        return fmin(ceil(fmax(b.value, 0) / WARP) * WARP / a.period, 1);
    if (strcmp(op, "==") != 0)
        return -1;
    return fmax(a.constancy, WARP) / fmax(a.period, WARP);
}

// Integer instructions of an operator.
static double integer_count(const char *op, const Expr *x, Estimate a,
                            Estimate b) {
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

static void operator_walk(Walk *w, const Expr *x, Estimate a, Estimate b,
                          Estimate own) {
    bool exact = b.constant && is_power(b.value);
    if (own.real && *x->name == '/' && !exact)
        spend_division(w, own.level);
    else if (own.real)
        spend(w, ISSUE_FLOAT, 1, own.level);
    else
        spend(w, ISSUE_INTEGER, integer_count(x->name, x, a, b), own.level);
}

static Estimate binary_estimate(Walk *w, const Expr *x) {
    Estimate a = estimate_of(w, x->arg[0]), b = estimate_of(w, x->arg[1]);
    Estimate e = both(a, b);
    e.value = compute(x->name, a.value, b.value);
    if (e.constant && *x->name == '/' && !e.real)
        e.value = trunc(e.value);
    e.fraction = e.constant ? e.value != 0 : fraction_of(x->name, a, b);
    if (!e.constant)
        operator_walk(w, x, a, b, e);
    if (compares(x->name))
        e.real = e.wide = false;
    e.thread &= *x->name != '*';
    if (*x->name == '/' && b.constant)
        e.constancy *= fmax(b.value, 1);
    if (*x->name == '%' && b.constant)
        e.period = fmin(e.period, b.value * a.constancy);
    return e;
}

static Estimate choice_estimate(Walk *w, const Expr *x) {
    Estimate test = estimate_of(w, x->arg[0]);
    if (test.constant)
        return estimate_of(w, x->arg[test.value != 0 ? 1 : 2]);
    Estimate a = estimate_of(w, x->arg[1]), b = estimate_of(w, x->arg[2]);
    Estimate e = both(test, both(a, b));
    e.constant = e.thread = false;
    e.real = a.real || b.real;
    e.value = test.value != 0 ? a.value : b.value;
    spend(w, e.real ? ISSUE_FLOAT : ISSUE_INTEGER, 1, e.level);
    return e;
}

// An integer expression costs nothing if an earlier one is equal.
static Estimate operator_estimate(Walk *w, const Expr *x) {
    if (x->count == 1) {
        Estimate e = estimate_of(w, x->arg[0]);
        e.value = *x->name == '-' ? -e.value : e.value == 0;
        e.thread = false;
        e.fraction = e.fraction < 0 ? -1 : 1 - e.fraction;
        return e;
    }
    for (int i = w->num_known; i-- > 0;)
        if (expr_equal(w->known[i].x, x))
            return w->known[i].estimate;
    Estimate e = x->count == 3 ? choice_estimate(w, x) : binary_estimate(w, x);
    if (!e.constant && !e.real)
        ARENA_APPEND(w->a, w->known, w->num_known, ((Known){x, e}));
    return e;
}

// ---- memory ----

// An address: the operands of the sum, and an addition in 64 bits.
static int address_walk(Walk *w, const Expr *x, bool last) {
    if (x->kind == X_OP && *x->name == '+' && x->count == 2) {
        int a = address_walk(w, x->arg[0], false);
        Estimate b = estimate_of(w, x->arg[1]);
        int level = a > b.level ? a : b.level;
        if (!b.constant && !(last && is_named(x->arg[1], "k")))
            spend(w, ISSUE_INTEGER, b.wide ? 2 : 1, level);
        return level;
    }
    return estimate_of(w, x).level;
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

// Whether the kernel computes the pointer of an address.
static bool is_local(const Walk *w, const Expr *address) {
    while (address->kind == X_OP)
        address = address->arg[0];
    return variable_find(w, address) != NULL;
}

static void access_walk(Walk *w, const Expr *x, const Intrinsic *f, double n,
                        int level) {
    spend(w, ISSUE_GLOBAL, accesses_of(w, x->name, n), level);
    if (f->kind == STORE && is_local(w, x->arg[0]))
        w->loop[w->depth].stores = true;
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

static Estimate tile(double cg, double nt) {
    double n = nt;
    while (n > 1 && cg <= n / 2)
        n /= 2;
    return estimate_constant(n);
}

static Estimate lanes(double c) {
    int64_t n = (int64_t)c;
    return estimate_constant(n % 8 == 0   ? 8
                             : n % 4 == 0 ? 4
                             : n % 2 == 0 ? 2
                             : n <= 16    ? (double)n
                                          : 1);
}

// Constants that the prelude's macros compute.  Whether x is one.
static bool macro_estimate(Walk *w, const Expr *x, Estimate *out) {
    double v[4] = {0};
    if (x->count == 0 || x->count > 4 ||
        strspn(x->name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") != strlen(x->name))
        return false;
    for (int i = 0; i < x->count; i++)
        v[i] = estimate_of(w, x->arg[i]).value;
    if (strcmp(x->name, "LANES") == 0)
        *out = lanes(v[0]);
    else if (strcmp(x->name, "THREADS_ALONG") == 0)
        *out = tile(v[0], v[1]);
    else if (strcmp(x->name, "THREADS_ALONG_ROW") == 0)
        *out = v[0] <= v[1] / 2 &&
                       trunc(v[1] / v[0]) * tile(v[0], v[1]).value > v[1]
                   ? estimate_constant(v[0])
                   : tile(v[0], v[1]);
    else if (strcmp(x->name, "ROW_THREADS_OF") == 0)
        *out = v[0] > 1024
                   ? estimate_constant(v[2])
                   : tile(ceil(trunc(v[0] / v[1]) / v[3]), fmin(v[2], WARP));
    else if (strcmp(x->name, "SYNC_THREADS_OF") == 0)
        *out = estimate_constant(v[1] > WARP ? v[0] : WARP);
    else if (strcmp(x->name, "SYNC_ROW") == 0)
        *out = (Estimate){.constancy = v[0], .period = THREADS, .fraction = -1};
    else
        *out = estimate_constant(v[x->count - 1]);
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

// columns_halving in runtime/prelude/block.h.
static void halves_walk(Walk *w, double n, double tx) {
    double own = n, sent = 0, halvings = log2(WARP / tx);
    for (int i = 0; i < halvings; i++) {
        own = fmax(own / 2, 1);
        sent += own;
    }
    spend(w, ISSUE_SHARED, sent + own + fmin(n * tx / THREADS, 1) * WARPS,
          w->depth);
    spend(w, ISSUE_FLOAT, sent * 3 + fmin(n * tx / THREADS, 1) * (WARPS - 1),
          w->depth);
    spend(w, ISSUE_INTEGER, 14, w->depth);
    spend(w, ISSUE_GLOBAL, 1, w->depth);
    spend(w, ISSUE_CONTROL, 4, w->depth);
}

// columns_reduce in runtime/prelude/block.h.
static void columns_walk(Walk *w, const Expr *x) {
    double n = estimate_of(w, x->arg[2]).value;
    double tx = fmax(estimate_of(w, x->arg[5]).value, 1);
    double rounds = ceil(n / 4), rows = THREADS / fmax(tx, WARP);
    double halvings = tx < WARP ? log2(WARP / tx) : 0;
    double trips = ceil(4 * tx / THREADS);
    int level = w->depth;
    if (tx < WARP && fmod(n, 4) == 0 && n * tx <= 4 * WARP) {
        halves_walk(w, n, tx);
        return;
    }
    spend(w, ISSUE_SHARED, rounds * (4 * halvings + 4 + trips * rows), level);
    spend(w, ISSUE_FLOAT, rounds * (4 * halvings + trips * (rows - 1)), level);
    spend(w, ISSUE_INTEGER, 12 + rounds * trips * 6, level);
    spend(w, ISSUE_GLOBAL, rounds * trips, level);
    spend(w, ISSUE_CONTROL, rounds * (2 + 4 * trips), level);
}

// Waits for a batch of loads from the L2 cache, of so many floats a thread: a
// multiprocessor gets 64 bytes in a cycle, so that 56 floats take as long as a
// wait, and the first ones 0.4 of that.
static double batch_waits(double floats) {
    return fmax(1, 0.4 + floats / 56);
}

// The part of grid_reduce's threads that have a column: of n beside each other
// at a time, or of one of n sums.
static double columns_share(double n, double end, double next, double tx) {
    double columns = next == tx ? end : end - (n - 1) * next;
    double along = next == tx ? n * tx : tx;
    return columns / (ceil(columns / along) * along);
}

// grid_reduce in runtime/prelude/block.h.
static void grid_walk(Walk *w, const Expr *x) {
    double n = estimate_of(w, x->arg[1]).value;
    double rows = estimate_of(w, x->arg[2]).value;
    double end = estimate_of(w, x->arg[4]).value;
    double next = estimate_of(w, x->arg[5]).value;
    double parts = estimate_of(w, x->arg[8]).value;
    double tx = fmax(estimate_of(w, x->arg[9]).value, 1);
    double trips = fmax(ceil(parts / (fmax(rows, 1) * THREADS / tx)), 1);
    double halvings = tx < WARP ? log2(WARP / tx) : 0;
    double warps = tx < THREADS ? THREADS / fmax(tx, WARP) : 0;
    double floats = n * parts * tx / THREADS * columns_share(n, end, next, tx);
    Loop *own = &w->loop[w->depth];
    double all = own->trips;
    w->cost.waits += trips * batch_waits(floats / trips) * own->last;
    w->temporaries = fmax(w->temporaries, n * rows + 2);
    own->trips *= trips;
    spend(w, ISSUE_GLOBAL, rows * n, w->depth);
    spend(w, ISSUE_INTEGER, rows * (2 + n) + 4, w->depth);
    spend(w, ISSUE_FLOAT, rows * n, w->depth);
    spend(w, ISSUE_CONTROL, 1, w->depth);
    own->trips = all;
    spend(w, ISSUE_SHARED, n * (halvings + warps), w->depth);
    spend(w, ISSUE_FLOAT, n * (halvings + warps), w->depth);
    spend(w, ISSUE_INTEGER, 10, w->depth);
    spend(w, ISSUE_CONTROL, warps > 0 ? 2 * n : 0, w->depth);
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
static Estimate arguments_estimate(Walk *w, const Expr *x, const Intrinsic *f) {
    Estimate e = estimate_constant(0);
    int address = f->kind == LOAD && x->count > 2;
    bool adds = is_access(x->name) && strstr(x->name, "bits") == NULL;
    for (int i = 0; i < x->count; i++)
        e = both(e, adds && i == address
                        ? unknown(address_walk(w, x->arg[i], true))
                        : estimate_of(w, x->arg[i]));
    return e;
}

static void intrinsic_walk(Walk *w, const Expr *x, const Intrinsic *f,
                           int level) {
    double n = f->lanes > 0 ? estimate_of(w, x->arg[f->lanes]).value : 1;
    bool converts = strstr(x->name, "act") == NULL || w->converts;
    fill_array(w, x);
    for (int i = 0; i < NUM_ISSUES; i++)
        if (converts || i != ISSUE_CONVERT)
            spend(w, (Issue)i, n * f->issue[i], level);
    w->loop[level].code += n * f->rare;
    w->loop[level].functions |= f->function;
    w->temporaries = fmax(w->temporaries, f->temporaries);
    w->cost.waits += f->waits * w->loop[w->depth].last;
    if (is_access(x->name))
        access_walk(w, x, f, n, level);
    else if (strncmp(x->name, "columns_", 8) == 0)
        columns_walk(w, x);
    else if (strncmp(x->name, "grid_", 5) == 0)
        grid_walk(w, x);
    else if (strncmp(x->name, "row_", 4) == 0)
        row_walk(w, estimate_of(w, x->arg[x->count - 2]).value,
                 strcmp(x->name, "row_argmax") == 0 ? 2 : 1, level);
    else if (strncmp(x->name, "total_", 6) == 0)
        row_walk(w, THREADS, 1, level);
}

bool is_last(const Expr *x) {
    return x->kind == X_CALL && (strcmp(x->name, "last_block") == 0 ||
                                 strcmp(x->name, "last_blocks") == 0);
}

static Estimate call_estimate(Walk *w, const Expr *x) {
    const Intrinsic *f = intrinsic_find(x->name);
    Estimate e;
    if (macro_estimate(w, x, &e))
        return e;
    double parts = is_last(x) ? estimate_of(w, x->arg[1]).value : 0;
    if (parts > 0)
        w->last_blocks = x->count > 2 ? estimate_of(w, x->arg[2]).value : 1;
    e = arguments_estimate(w, x, f);
    if (f->kind == PURE && e.constant && f->lanes == 0)
        return estimate_constant(1);
    int level = f->kind == CONVERGENT || f->kind == STORE ? w->depth : e.level;
    intrinsic_walk(w, x, f, level);
    e = unknown(level);
    e.real = strstr(x->name, "i32") == NULL && strstr(x->name, "u8") == NULL;
    if (is_last(x))
        e.fraction = w->last_blocks / fmax(parts, 1);
    return e;
}

// ---- expressions ----

// An index, whose last constant terms are part of the access.
static Estimate place_estimate(Walk *w, const Expr *x) {
    while (x->kind == X_OP && *x->name == '+' && x->count == 2 &&
           estimate_of(w, x->arg[1]).constant)
        x = x->arg[0];
    return estimate_of(w, x);
}

static Estimate index_estimate(Walk *w, const Expr *x) {
    const Expr *array = x->arg[0];
    while (array->kind == X_INDEX)
        array = array->arg[0];
    Estimate e = both(estimate_of(w, array), place_estimate(w, x->arg[1]));
    if (x->arg[0]->kind == X_INDEX)
        e = both(e, estimate_of(w, x->arg[0]->arg[1]));
    e.constant = false;
    return e;
}

static Estimate cast_estimate(Walk *w, const Expr *x) {
    Estimate e = estimate_of(w, x->arg[0]);
    bool real = strcmp(x->name, "float") == 0;
    if (strcmp(x->name, "size_t") == 0) {
        e.wide = true;
        return e;
    }
    if (real && !e.real && !e.constant)
        spend(w, ISSUE_CONVERT, 1, e.level);
    e.real = real;
    return e;
}

// A field of an entry's row is loaded once.
static Estimate field_estimate(Walk *w, const Expr *x) {
    if (is_named(x->arg[0], "threadIdx"))
        return (Estimate){
            .constancy = 1, .period = THREADS, .fraction = -1, .thread = true};
    Estimate e = estimate_of(w, x->arg[0]);
    e.constant = false;
    e.real = strcmp(x->name, "f") == 0;
    e.value = strcmp(x->name, "parts") == 0 ? ceil(sqrt(w->blocks)) : 0;
    return e;
}

Estimate estimate_of(Walk *w, const Expr *x) {
    switch (x->kind) {
    case X_NAME:
        return name_estimate(w, x);
    case X_OP:
        return operator_estimate(w, x);
    case X_CALL:
        return call_estimate(w, x);
    case X_CAST:
        return cast_estimate(w, x);
    case X_INDEX:
        return index_estimate(w, x);
    case X_FIELD:
        return field_estimate(w, x);
    case X_LIST:
        return estimate_constant(0);
    default: {
        bool real = x->kind == X_REAL || x->kind == X_CONSTANT;
        Estimate e = estimate_constant(real ? x->real : (double)x->integer);
        e.real = real;
        return e;
    }
    }
}
