// Skip: a step with a gradient that is not finite leaves the parameters as they
// were (docs/numerics.md, "The loss scale").
//
// The trainer counts the steps that it skips.  The model's own rule is
// evaluated in double before any pass: gradients overflow where those
// accumulated from other batches do.
#include "tools/compare/skip.h"

#include <math.h>
#include <string.h>

static const char counter[] = "metric.skipped";

static double number_of(const Snapshot *s, void *const *bytes) {
    NodeId n = graph_find(s->step->graph, counter);
    Arena *a = arena_new();
    const double *x = n == NO_NODE ? NULL : snapshot_numbers(a, s, n, bytes[n]);
    double number = x == NULL ? (double)NAN : x[0];
    arena_free(a);
    return number;
}

bool step_skipped(const Snapshot *start, const Snapshot *s) {
    return number_of(s, s->after) > number_of(start, start->before);
}

static bool is_kind(const char *kind, const char *const *of, int count) {
    for (int i = 0; i < count; i++)
        if (strcmp(kind, of[i]) == 0)
            return true;
    return false;
}

// Averages and 16-bit copies follow from other states.
bool skip_decides(const char *name, const char *kind) {
    static const char *const kept[] = {"param",         STATE_OPTIMIZER,
                                       STATE_STATISTIC, STATE_AVERAGE,
                                       STATE_DERIVED,   STATE_RUN};
    return is_kind(kind, kept, sizeof kept / sizeof *kept) ||
           strcmp(name, counter) == 0;
}

// ---- the model's rule ----

typedef struct {
    const Graph *g;
    bool overflows;
} Gradients;

static void gradient_see(void *whose, NodeId n, double *const *value) {
    Gradients *all = whose;
    all->overflows |=
        !numbers_finite(value[n], type_count(all->g->node[n].type));
}

static bool is_inverse_scale(const Graph *g, NodeId n) {
    const Node *d = &g->node[n];
    return d->op == OP_div && g->node[d->arg[1]].op == OP_loss_scale;
}

// A gradient is multiplied by the inverse of the scale of the loss.
static bool is_gradient(const Graph *g, NodeId n) {
    const Node *d = &g->node[n];
    return d->op == OP_mul && is_inverse_scale(g, d->arg[1]);
}

static bool overflows(const Graph *g, double *const *leaf) {
    Arena *a = arena_new();
    bool *wanted = ARENA_ARRAY(a, (size_t)g->count + 1, bool);
    Gradients all = {g, false};
    for (NodeId n = 0; n < g->count; n++)
        wanted[n] = is_gradient(g, n);
    graph_eval_visit(g, leaf, false, wanted, gradient_see, &all);
    arena_free(a);
    return all.overflows;
}

// Whether the step itself assigns it; averages and copies follow from others.
static bool is_guarded(const Node *state) {
    return state->op == OP_param || state_is(state, STATE_OPTIMIZER) ||
           state_is(state, STATE_STATISTIC);
}

const Graph *step_deciding(const Graph *g, double *const *leaf) {
    if (!overflows(g, leaf))
        return g;
    Graph *out = graph_like(g);
    NodeId *now = ARENA_ARRAY(out->arena, (size_t)g->count + 1, NodeId);
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        bool kept = d->op == OP_assign && is_guarded(&g->node[d->arg[0]]);
        now[n] = kept ? graph_assign(out, now[d->arg[0]], now[d->arg[0]])
                      : graph_copy(out, g, n, now);
    }
    return out;
}
