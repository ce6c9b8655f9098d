// Verdict: compares the stored tensors of two variants.
//
// The reference is that of reference.c.  Errors carried into a state from
// elsewhere must be explained by roundings.
#include "tools/compare/verdict.h"

#include "ir/tolerance.h"
#include "tools/compare/gradient.h"
#include "tools/compare/isolated.h"
#include "tools/compare/reference.h"
#include "tools/compare/skip.h"
#include "tools/compare/value_numbering.h"

#include <math.h>
#include <string.h>

// The stored values of both variants.
typedef struct {
    const void *mine, *theirs;
    NodeId other; // node of b with the value, or its assignment
} Pair;

typedef struct {
    Arena *a;
    const Variant *left, *right;
    const Graph *g, *other;
    const NodeId
        *equal; // for each node of g an equal node of other, or NO_NODE
    IsolatedReplay *isolated;
    Rows rows;
    Pair *pair; // of each row
} Compare;

// ---- a row ----

// Equal numbers, or both NaN or the same infinity.
static bool is_same(double x, double y) {
    return (isnan(x) && isnan(y)) || (isinf(x) && x == y);
}

static double *settled(Arena *a, const double *x, const double *y,
                       int64_t count) {
    double *out = ARENA_UNINIT(a, (size_t)count + 1, double);
    for (int64_t i = 0; i < count; i++)
        out[i] = is_same(x[i], y[i]) ? 0 : x[i];
    return out;
}

static void measure_difference(Row *r, const double *a, const double *b) {
    for (int64_t i = 0; i < type_count(&r->type); i++) {
        double apart = fabs(a[i] - b[i]);
        double size = fmax(fabs(a[i]), fabs(b[i]));
        if (is_same(a[i], b[i]) || apart == 0)
            continue;
        r->absolute = !(apart <= r->absolute) ? apart : r->absolute;
        double relative = apart / size;
        r->relative = !(relative <= r->relative) ? relative : r->relative;
    }
}

static void measure_errors(const Compare *c, Row *r, Arena *scratch,
                           const double *a, const double *b,
                           const double *right) {
    int64_t count = type_count(&r->type);
    const double *mine = settled(scratch, a, right, count);
    const double *theirs = settled(scratch, b, right, count);
    double *clean = settled(scratch, right, right, count);
    r->size = error_size(clean, count);
    r->error_a = error_rms(mine, clean, count);
    r->error_b = error_rms(theirs, clean, count);
    r->overflows =
        !numbers_finite(mine, count) || !numbers_finite(theirs, count);
    // An overflow in b gives no bound of rounding.
    r->roundings = isfinite(r->error_b) ? r->error_b : 0;
    r->allowed = error_allowed(r->type, c->g->act, r->error_b, clean);
    // Without a reference, both may have an error.
    if (!c->rows.judged && dtype_float(r->type.dtype))
        r->allowed = 2 * error_alone(c->g->act) * r->size;
}

// right: NULL without a reference; then b takes its place.
static void row_measure(Compare *c, int i, const double *right) {
    Row *r = &c->rows.row[i];
    const Pair *p = &c->pair[i];
    const Snapshot *left = &c->left->snapshot, *beside = &c->right->snapshot;
    Arena *a = arena_new();
    const double *mine = snapshot_numbers(a, left, r->node, p->mine);
    const double *theirs =
        p->other == NO_NODE ? node_meant(a, left, r->node)
                            : snapshot_numbers(a, beside, p->other, p->theirs);
    measure_difference(r, mine, theirs);
    measure_errors(c, r, a, mine, theirs, right ? right : theirs);
    arena_free(a);
}

// The distance of x from y, without pairs that are not finite alike.
static double apart(const double *x, const double *y, int64_t count) {
    Arena *a = arena_new();
    double size =
        error_rms(settled(a, x, y, count), settled(a, y, y, count), count);
    arena_free(a);
    return size;
}

static void row_see(void *whose, int i, const double *right,
                    const double *meant) {
    Compare *c = whose;
    Row *r = &c->rows.row[i];
    row_measure(c, i, right);
    r->of_model = meant != NULL;
    if (r->of_model)
        r->meant = apart(right, meant, type_count(&r->type));
}

// The bound for reordering by passes: digits of the tensor or, if its operands
// cancel, as in the mean of a convolution of numbers with mean 0, of these
// operands.  Their size follows from the error of f32, which rounds 2^29 times
// as coarsely as double; a pass may choose another order at some roundings.
bool row_is_meant(const Row *r) {
    static const double left = 1e-9, cancelled = 16 * 0x1p-29;
    return r->meant <=
           left * r->size + cancelled * r->roundings + 2 * r->decided + 1e-30;
}

static void roundings_see(void *whose, int i, const double *rounded,
                          const double *right) {
    Compare *c = whose;
    Row *r = &c->rows.row[i];
    double apart = error_rms(rounded, right, type_count(&r->type));
    r->roundings = isfinite(apart) ? fmax(r->roundings, apart) : r->roundings;
}

static void decided_see(void *whose, int i, const double *shaken,
                        const double *right) {
    Compare *c = whose;
    Row *r = &c->rows.row[i];
    double away = apart(shaken, right, type_count(&r->type));
    r->decided = isfinite(away) ? fmax(r->decided, away) : r->decided;
}

// Finds rows whose plan seems to differ from the model.
static bool find_unmeant(const Compare *c, bool *unmeant) {
    bool some = false;
    for (int i = 0; i < c->rows.count; i++)
        some |= unmeant[i] = !row_is_meant(&c->rows.row[i]);
    return some;
}

// If b has skipped the step, its values give no bound of rounding, so each
// operation is rounded to find one.  Among nearly equal numbers, a rounding of
// double decides which is largest, and the plan rounds other sums than the
// model: docs/compare.md derives how often a tie stays unnoticed.
static void evaluate(Compare *c, int first) {
    enum { SAMPLES = 16 };
    rows_reference(c->left, &c->rows, first, row_see, c);
    if (first > 0)
        return;
    bool *unmeant = ARENA_ARRAY(c->a, (size_t)c->rows.count + 1, bool);
    bool some = find_unmeant(c, unmeant);
    if (some && c->rows.skips_b)
        rows_rounded(c->left, &c->rows, unmeant, roundings_see, c);
    some = find_unmeant(c, unmeant);
    for (uint32_t k = 0; k < SAMPLES && some; k++) {
        rows_decided(c->left, &c->rows, unmeant, k, decided_see, c);
        some = find_unmeant(c, unmeant);
    }
}

// ---- verdicts ----

// Whether a skipped step explains the difference: states keep their value, and
// overflows are not finite.
static bool is_skipped(const Compare *c, const Row *r) {
    return (c->rows.skips_a && skip_decides(r->name, r->kind)) ||
           ((c->rows.skips_a || c->rows.skips_b) && r->overflows);
}

// Both variants may have the same error, so being as near as b is not enough
// beyond the bound of one kernel.
static Verdict row_verdict(const Compare *c, const Row *r) {
    bool near = r->error_a <= r->allowed;
    if (!row_is_meant(r))
        return VERDICT_WRONG;
    if (near && r->error_a <= error_alone(c->g->act) * r->size)
        return r->absolute == 0 ? VERDICT_SAME : VERDICT_GOOD;
    Isolated alone = isolated_replay(c->isolated, r->node);
    if (alone == ISOLATED_WRONG || (alone == ISOLATED_UNKNOWN && !near))
        return VERDICT_WRONG;
    if (near)
        return VERDICT_GOOD;
    return is_skipped(c, r) ? VERDICT_SKIPPED : VERDICT_CARRIED;
}

static void rows_judge(Compare *c, int first) {
    Rows *rows = &c->rows;
    if (rows->judged)
        evaluate(c, first);
    else
        for (int i = first; i < rows->count; i++)
            row_measure(c, i, NULL);
    for (int i = first; i < rows->count; i++) {
        rows->row[i].verdict = row_verdict(c, &rows->row[i]);
        rows->wrong += rows->row[i].verdict == VERDICT_WRONG;
    }
}

// ---- the rows ----

static void row_add(Compare *c, Row r, Pair p) {
    r.type = *c->g->node[r.node].type;
    c->pair[c->rows.count] = p;
    c->rows.row[c->rows.count++] = r;
}

static const char *name_of(Arena *a, const Node *d) {
    if (d->from.path == NULL)
        return op_info[d->op].name;
    return arena_format(a, "%s of %s%s", op_info[d->op].name, d->from.path,
                        d->from.backward ? ", backward" : "");
}

static const char *kind_of(const Node *state) {
    const char *kind = node_text(state, ATTR_kind);
    return state->op == OP_param ? "param" : kind ? kind : "state";
}

// Adds a stored tensor; a gradient has the name of its parameter.
static void stored_add(Compare *c, NodeId n, const char *param) {
    NodeId other = c->equal[n];
    Row r = {.name = param ? param : name_of(c->a, &c->g->node[n]),
             .kind = param ? "gradient" : "",
             .node = n};
    row_add(c, r,
            (Pair){c->left->snapshot.found[n], c->right->snapshot.found[other],
                   other});
}

static const char **params_of(const Compare *c) {
    const char **param =
        ARENA_ARRAY(c->a, (size_t)c->g->count + 1, const char *);
    int count;
    const Gradient *gradient = gradients_of(c->a, c->g, &count);
    for (int i = 0; i < count; i++)
        param[gradient[i].node] = gradient[i].param;
    return param;
}

static void compare_stored(Compare *c) {
    void **mine = c->left->snapshot.found, **theirs = c->right->snapshot.found;
    bool *wanted = ARENA_ARRAY(c->a, (size_t)c->other->count + 1, bool);
    bool *met = ARENA_ARRAY(c->a, (size_t)c->other->count + 1, bool);
    const char **param = params_of(c);
    for (NodeId n = 0; n < c->other->count; n++)
        wanted[n] = theirs[n] != NULL;
    c->equal = equal_nodes(c->a, c->g, c->other, wanted);
    for (NodeId n = 0; n < c->g->count; n++) {
        if (mine[n] == NULL)
            continue;
        if (c->equal[n] == NO_NODE) {
            c->rows.only_a++;
            continue;
        }
        met[c->equal[n]] = true;
        stored_add(c, n, param[n]);
    }
    c->rows.only_b = c->right->snapshot.passed_over;
    for (NodeId n = 0; n < c->other->count; n++)
        c->rows.only_b += wanted[n] && !met[n];
}

static void compare_states(Compare *c) {
    for (NodeId n = 0; n < c->g->count; n++) {
        const Node *d = &c->g->node[n];
        if (d->op != OP_assign)
            continue;
        const Node *state = &c->g->node[d->arg[0]];
        const char *name = node_text(state, ATTR_name);
        NodeId other = assignment_of(c->other, name);
        if (other == NO_NODE)
            continue;
        other = c->other->node[other].arg[0];
        Pair p = {c->left->snapshot.after[d->arg[0]],
                  c->right->snapshot.after[other], other};
        if (p.mine != NULL && p.theirs != NULL)
            row_add(c, (Row){.name = name, .kind = kind_of(state), .node = n},
                    p);
    }
}

static bool any_carried(const Rows *rows) {
    for (int i = 0; i < rows->count; i++)
        if (rows->row[i].verdict == VERDICT_CARRIED ||
            rows->row[i].verdict == VERDICT_SKIPPED)
            return true;
    return false;
}

// An error in the inputs of kernels may come from a tensor that b does not
// store: then that one is wrong.
static void find_source(Compare *c) {
    const Snapshot *s = &c->left->snapshot;
    int first = c->rows.count;
    for (NodeId n = 0; n < c->g->count; n++) {
        bool alone = s->found[n] != NULL && c->equal[n] == NO_NODE;
        if (!alone || isolated_replay(c->isolated, n) != ISOLATED_WRONG)
            continue;
        const char *name = name_of(c->a, &c->g->node[n]);
        row_add(c,
                (Row){.name = arena_format(c->a, "%s (only in a)", name),
                      .kind = "",
                      .node = n},
                (Pair){s->found[n], NULL, NO_NODE});
    }
    if (c->rows.count > first)
        rows_judge(c, first);
}

// ---- errors carried into states ----

// The bound for a state: that of one kernel, and the known effect of roundings.
static double carried_error(const Compare *c, const Row *r) {
    return error_alone(c->g->act) * r->size + 2 * r->explained;
}

// Whether a state of the model exceeds this bound, or its error is NaN.
static bool is_open(const Compare *c, const Row *r) {
    return r->verdict != VERDICT_WRONG && dtype_float(r->type.dtype) &&
           r->of_model && !(r->error_a <= carried_error(c, r));
}

typedef struct {
    Compare *c;
    bool *open; // rows without an explanation yet
} Carried;

static bool find_open(Carried *all) {
    bool some = false;
    for (int i = 0; i < all->c->rows.count; i++) {
        all->open[i] = is_open(all->c, &all->c->rows.row[i]);
        some |= all->open[i];
    }
    return some;
}

static void carried_see(void *whose, int i, const double *disturbed,
                        const double *meant) {
    const Carried *all = whose;
    Row *r = &all->c->rows.row[i];
    double away = error_rms(disturbed, meant, type_count(&r->type));
    r->explained = isfinite(away) ? fmax(r->explained, away) : r->explained;
}

// A rounding may decide where the gradient of a maximum goes, and a kernel that
// reads a maximum beside rounded numbers may find it nowhere.  Each kernel is
// right about its inputs, with a as with b.  So a state must be within the
// effect of roundings on the model, in which all readers of a value see the
// same.
static void carried_judge(Compare *c) {
    enum { SAMPLES = 16 }; // docs/compare.md derives the number
    // Errors accumulate, and libraries add more in f32.
    double units = c->left->plan->act == F32 ? 32 : 4;
    Carried all = {c, ARENA_ARRAY(c->a, (size_t)c->rows.count + 1, bool)};
    bool some = find_open(&all);
    for (uint32_t k = 0; k < SAMPLES && some; k++) {
        rows_disturbed(c->left, &c->rows, all.open, units, k, carried_see,
                       &all);
        some = find_open(&all);
    }
    for (int i = 0; i < c->rows.count && some; i++) {
        Row *r = &c->rows.row[i];
        if (!all.open[i])
            continue;
        r->allowed = carried_error(c, r);
        r->verdict = VERDICT_WRONG;
        c->rows.wrong++;
    }
}

Rows rows_compare(Arena *a, const Variant *left, const Variant *right,
                  bool judged) {
    Compare c = {.a = a,
                 .left = left,
                 .right = right,
                 .g = left->snapshot.step->graph,
                 .other = right->snapshot.step->graph,
                 .isolated = isolated_replay_new(a, &left->snapshot),
                 .rows = {.judged = judged}};
    c.rows.skips_a = step_skipped(&left->snapshot, &left->snapshot);
    c.rows.skips_b = step_skipped(&left->snapshot, &right->snapshot);
    c.rows.row = ARENA_ARRAY(a, (size_t)c.g->count + 1, Row);
    c.pair = ARENA_ARRAY(a, (size_t)c.g->count + 1, Pair);
    compare_stored(&c);
    compare_states(&c);
    rows_judge(&c, 0);
    if (c.rows.wrong == 0 && any_carried(&c.rows))
        find_source(&c);
    if (c.rows.wrong == 0 && judged && !c.rows.skips_a && !c.rows.skips_b)
        carried_judge(&c);
    return c.rows;
}
