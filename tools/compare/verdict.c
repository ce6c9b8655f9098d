// Verdict: compares what two sides keep in memory, tensor by tensor.
//
// Right is what a's graph comes to in double.  What is left in states is right
// if it is what the model's graph means before any pass has rewritten it.
#include "tools/compare/verdict.h"

#include "ir/error.h"
#include "tools/compare/alike.h"
#include "tools/compare/alone.h"
#include "tools/compare/gradient.h"

#include <math.h>
#include <string.h>

typedef struct {
    Arena *a;
    const Side *left, *right;
    const Graph *g, *other;
    double **value;      // of g in double; NULL: not evaluated
    const NodeId *alike; // of each node of g the node of other, or NO_NODE
    Graph *meant;
    double **meaning; // of meant
    Rows rows;
} Compare;

// ---- what is right ----

static bool is_leaf(const Node *d) {
    return d->op == OP_input || d->op == OP_param || d->op == OP_state;
}

// The leaves of another graph over the same inputs and states.
static double **leaves_of(const Compare *c, const Graph *other) {
    const Snapshot *s = &c->left->snapshot;
    double **leaf = ARENA_ARRAY(c->a, (size_t)other->count + 1, double *);
    for (NodeId n = 0; n < other->count; n++) {
        if (!is_leaf(&other->node[n]))
            continue;
        NodeId own = graph_find(c->g, node_text(&other->node[n], ATTR_name));
        leaf[n] = own == NO_NODE ? NULL : s->before[own];
    }
    return leaf;
}

// What is compared: tensors that were found, and states.
static bool *compared_of(const Compare *c, const Graph *g, double **found) {
    bool *compared = ARENA_ARRAY(c->a, (size_t)g->count + 1, bool);
    for (NodeId n = 0; n < g->count; n++)
        compared[n] = (found && found[n]) || g->node[n].op == OP_assign;
    return compared;
}

// Has the leaves of the step be what its derived states are derived from, and
// not what is in memory, where the snapshot has that.
static void leaves_derive(const Compare *c, const Graph *planned,
                          double **leaf) {
    Graph *g = graph_clone(planned);
    g->act = F32;
    double **own_leaf = leaves_of(c, g);
    double **value =
        graph_eval_kept(g, c->a, own_leaf, compared_of(c, g, NULL));
    bool *known = ARENA_ARRAY(c->a, (size_t)g->count + 1, bool);
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        known[n] = !is_leaf(d) || own_leaf[n] != NULL;
        for (int i = d->op == OP_assign; i < d->num_args; i++)
            known[n] &= known[d->arg[i]];
        if (d->op != OP_assign || !known[n])
            continue;
        NodeId own =
            graph_find(c->g, node_text(&g->node[d->arg[0]], ATTR_name));
        if (own != NO_NODE)
            leaf[own] = value[n];
    }
}

// Copies of weights in 16 bits are rounded, which the model knows nothing of.
static double **leaves_meant(const Compare *c) {
    const Plan *plan = c->left->plan;
    double **leaf = leaves_of(c, c->g);
    for (int i = 0; i < plan->num_steps; i++)
        if (plan->step[i].kind == STEP_DERIVE)
            leaves_derive(c, plan->step[i].graph, leaf);
    return leaf;
}

// The step with its gradients and updates, before passes rewrite it.
static void evaluate(Compare *c) {
    const Program *p = c->left->program;
    const Snapshot *s = &c->left->snapshot;
    PassOptions o = pass_options(&p->recipe, "host");
    Graph *own = graph_clone(c->g);
    own->act = F32;
    c->value = graph_eval_kept(own, c->a, leaves_meant(c),
                               compared_of(c, own, s->found));
    o.act = F32;
    c->meant =
        passes_run(graph_clone(p->stage[0].train), &o, "optimizer", NULL, NULL);
    c->meaning = graph_eval_kept(c->meant, c->a, leaves_of(c, c->meant),
                                 compared_of(c, c->meant, NULL));
}

// The assignment to the state of that name.
static NodeId assignment_of(const Graph *g, const char *name) {
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_assign &&
            strcmp(node_text(&g->node[g->node[n].arg[0]], ATTR_name), name) ==
                0)
            return n;
    return NO_NODE;
}

// ---- a row ----

// Where all three are no numbers alike, there is nothing to compare.
static bool is_alike(double x, double y) {
    return (isnan(x) && isnan(y)) || (isinf(x) && x == y);
}

static double *settled(const Compare *c, const double *x, const double *y,
                       int64_t count) {
    double *out = ARENA_ARRAY(c->a, (size_t)count + 1, double);
    for (int64_t i = 0; i < count; i++)
        out[i] = is_alike(x[i], y[i]) ? 0 : x[i];
    return out;
}

static void measure_difference(Row *r, const double *a, const double *b) {
    for (int64_t i = 0; i < type_count(&r->type); i++) {
        double apart = fabs(a[i] - b[i]);
        double size = fmax(fabs(a[i]), fabs(b[i]));
        if (is_alike(a[i], b[i]) || apart == 0)
            continue;
        r->absolute = !(apart <= r->absolute) ? apart : r->absolute;
        double relative = apart / size;
        r->relative = !(relative <= r->relative) ? relative : r->relative;
    }
}

static void measure_errors(const Compare *c, Row *r, const double *a,
                           const double *b, const double *right) {
    int64_t count = type_count(&r->type);
    const double *mine = settled(c, a, right, count);
    const double *theirs = settled(c, b, right, count);
    double *clean = settled(c, right, right, count);
    r->size = error_size(clean, count);
    r->error_a = error_rms(mine, clean, count);
    r->error_b = error_rms(theirs, clean, count);
    r->allowed = error_allowed(r->type, c->g->act, r->error_b, clean);
    // With nothing but b to go by, both may be off.
    if (!c->rows.judged && dtype_float(r->type.dtype))
        r->allowed = 2 * error_alone(c->g->act) * r->size;
}

static bool is_meant(const Row *r) {
    static const double left = 1e-9; // of digits that a pass may reorder
    return r->meant <= left * r->size + 1e-30;
}

// Two sides may be wrong alike, so that being as near as b is not enough where
// that is further than one kernel may be.
static Verdict row_verdict(const Compare *c, const Row *r) {
    bool near = r->error_a <= r->allowed;
    if (!is_meant(r))
        return VERDICT_WRONG;
    if (near && r->error_a <= error_alone(c->g->act) * r->size)
        return r->absolute == 0 ? VERDICT_SAME : VERDICT_GOOD;
    Alone alone = node_alone(&c->left->snapshot, r->node);
    if (alone == ALONE_WRONG || (alone == ALONE_UNKNOWN && !near))
        return VERDICT_WRONG;
    return near ? VERDICT_GOOD : VERDICT_CARRIED;
}

static void row_add(Compare *c, Row r, const double *a, const double *b) {
    const double *right = c->value ? c->value[r.node] : b;
    r.type = *c->g->node[r.node].type;
    measure_difference(&r, a, b);
    measure_errors(c, &r, a, b, right);
    NodeId meant = c->meant && c->g->node[r.node].op == OP_assign
                       ? assignment_of(c->meant, r.name)
                       : NO_NODE;
    if (meant != NO_NODE)
        r.meant = error_rms(right, c->meaning[meant], type_count(&r.type));
    r.verdict = row_verdict(c, &r);
    c->rows.wrong += r.verdict == VERDICT_WRONG;
    c->rows.row[c->rows.count++] = r;
}

// ---- all of them ----

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

// Its gradients are called as their parameters.
static void stored_add(Compare *c, NodeId n, const char *param,
                       const double *theirs) {
    const Snapshot *s = &c->left->snapshot;
    Row r = {.name = param ? param : name_of(c->a, &c->g->node[n]),
             .kind = param ? "gradient" : "",
             .node = n};
    row_add(c, r, s->found[n], theirs);
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
    double **mine = c->left->snapshot.found,
           **theirs = c->right->snapshot.found;
    bool *wanted = ARENA_ARRAY(c->a, (size_t)c->other->count + 1, bool);
    bool *met = ARENA_ARRAY(c->a, (size_t)c->other->count + 1, bool);
    const char **param = params_of(c);
    for (NodeId n = 0; n < c->other->count; n++)
        wanted[n] = theirs[n] != NULL;
    c->alike = nodes_alike(c->a, c->g, c->other, wanted);
    for (NodeId n = 0; n < c->g->count; n++) {
        if (mine[n] == NULL)
            continue;
        if (c->alike[n] == NO_NODE) {
            c->rows.only_a++;
            continue;
        }
        met[c->alike[n]] = true;
        stored_add(c, n, param[n], theirs[c->alike[n]]);
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
        const double *mine = c->left->snapshot.after[d->arg[0]];
        const double *theirs =
            other == NO_NODE
                ? NULL
                : c->right->snapshot.after[c->other->node[other].arg[0]];
        if (mine != NULL && theirs != NULL)
            row_add(c, (Row){.name = name, .kind = kind_of(state), .node = n},
                    mine, theirs);
    }
}

static bool any_carried(const Rows *rows) {
    for (int i = 0; i < rows->count; i++)
        if (rows->row[i].verdict == VERDICT_CARRIED)
            return true;
    return false;
}

// What came in with what kernels read may have been made where b keeps nothing:
// then that is what is wrong.
static void find_source(Compare *c) {
    const Snapshot *s = &c->left->snapshot;
    for (NodeId n = 0; n < c->g->count; n++) {
        bool alone = s->found[n] != NULL && c->alike[n] == NO_NODE;
        if (!alone || node_alone(s, n) != ALONE_WRONG)
            continue;
        const char *name = name_of(c->a, &c->g->node[n]);
        row_add(c,
                (Row){.name = arena_format(c->a, "%s (only in a)", name),
                      .kind = "",
                      .node = n},
                s->found[n], node_meant(c->a, s, n));
    }
}

Rows rows_compare(Arena *a, const Side *left, const Side *right, bool judged) {
    Compare c = {.a = a,
                 .left = left,
                 .right = right,
                 .g = left->snapshot.step->graph,
                 .other = right->snapshot.step->graph,
                 .rows = {.judged = judged}};
    c.rows.row = ARENA_ARRAY(a, (size_t)c.g->count + 1, Row);
    if (judged)
        evaluate(&c);
    compare_stored(&c);
    compare_states(&c);
    if (c.rows.wrong == 0 && any_carried(&c.rows))
        find_source(&c);
    return c.rows;
}
