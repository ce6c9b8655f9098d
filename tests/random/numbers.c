// Numbers: those that a trial's program starts from, and what its graphs mean
// for them.
#include "tests/random/numbers.h"
#include "tests/codegen/tensors.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static bool is_leaf(const Node *d) {
    return d->op == OP_input || d->op == OP_param || d->op == OP_state;
}

static double *draw_leaf(const Graph *g, Arena *a, NodeId n, uint32_t seed) {
    enum { CLASSES = 5 };
    double *value = tensor_leaf(g, a, n, seed, CLASSES);
    const char *name = node_text(&g->node[n], ATTR_name);
    int classes;
    if (strcmp(name, "run.loss_scale") == 0)
        value[0] = LOSS_SCALE;
    if (g->node[n].type->dtype == I32 && sscanf(name, "label%d", &classes) == 1)
        for (int64_t i = 0; i < type_count(g->node[n].type); i++)
            value[i] =
                floor(classes * random_uniform(seed, (uint32_t)stream_of(name),
                                               0, (uint32_t)i));
    return value;
}

double *number_leaf(const Graph *g, Arena *a, NodeId n, const Start *s) {
    double *value = draw_leaf(g, a, n, s->seed);
    for (int i = 0; i < s->num_given; i++) {
        const Given *given = &s->given[i];
        if (strcmp(given->name, node_text(&g->node[n], ATTR_name)) != 0)
            continue;
        assert(given->count == type_count(g->node[n].type));
        memcpy(value, given->value, (size_t)given->count * sizeof *value);
    }
    return value;
}

double **number_leaves(const Graph *g, Arena *a, const Start *s) {
    double **leaf = ARENA_ARRAY(a, g->count + 1, double *);
    for (NodeId n = 0; n < g->count; n++)
        if (is_leaf(&g->node[n]))
            leaf[n] = number_leaf(g, a, n, s);
    return leaf;
}

// Gives the derived states of g the values that another step assigns.
static void follow(const Graph *g, double **leaf, const Graph *other,
                   double *const *value) {
    for (NodeId n = 0; n < other->count; n++) {
        if (other->node[n].op != OP_assign)
            continue;
        const Node *to = &other->node[other->node[n].arg[0]];
        NodeId own = graph_find(g, node_text(to, ATTR_name));
        if (own != NO_NODE && is_leaf(&g->node[own]))
            leaf[own] = value[n];
    }
}

bool number_derives(StepKind kind, StepKind before) {
    return (kind == STEP_DERIVE && before != STEP_DERIVE) ||
           (kind == STEP_PREPARE && before == STEP_EVAL);
}

Values number_step(const Plan *p, int step, Arena *a, const Start *s,
                   bool round) {
    const Graph *g = p->step[step].graph;
    double **leaf = number_leaves(g, a, s);
    for (int i = 0; i < step; i++)
        if (number_derives(p->step[i].kind, p->step[step].kind))
            follow(g, leaf, p->step[i].graph,
                   number_step(p, i, a, s, round).value);
    return (Values){leaf, graph_eval(g, a, leaf, round)};
}

bool number_finite(const Graph *g, double *const *value) {
    for (NodeId n = 0; n < g->count; n++)
        for (int64_t i = 0; i < type_count(g->node[n].type); i++)
            if (!isfinite(value[n][i]))
                return false;
    return true;
}
