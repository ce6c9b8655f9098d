// Numbers: those that a trial's program starts from, and what its graphs mean
// for them.
#include "tests/random/numbers.h"
#include "tests/codegen/tensors.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool is_leaf(const Node *d) {
    return d->op == OP_input || d->op == OP_param || d->op == OP_state;
}

double *number_leaf(const Graph *g, Arena *a, NodeId n, uint32_t seed) {
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

double **number_leaves(const Graph *g, Arena *a, uint32_t seed) {
    double **leaf = ARENA_ARRAY(a, g->count + 1, double *);
    for (NodeId n = 0; n < g->count; n++)
        if (is_leaf(&g->node[n]))
            leaf[n] = number_leaf(g, a, n, seed);
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

Values *number_steps(const Plan *p, Arena *a, uint32_t seed, bool round) {
    Values *numbers = ARENA_ARRAY(a, (size_t)p->num_steps, Values);
    for (int i = 0; i < p->num_steps; i++) {
        const Graph *g = p->step[i].graph;
        double **leaf = number_leaves(g, a, seed);
        for (int j = 0; j < i; j++)
            if (p->step[j].kind == STEP_DERIVE)
                follow(g, leaf, p->step[j].graph, numbers[j].value);
        numbers[i] = (Values){leaf, graph_eval(g, a, leaf, round)};
    }
    return numbers;
}

bool number_finite(const Graph *g, double *const *value) {
    for (NodeId n = 0; n < g->count; n++)
        for (int64_t i = 0; i < type_count(g->node[n].type); i++)
            if (!isfinite(value[n][i]))
                return false;
    return true;
}
