// Slope: see slope.h.
//
// All is computed in double.  A param is moved a little along a random
// direction, forwards and backwards.  Where the loss is smooth the slope of
// both is that of the gradient but for what they differ by themselves; where it
// has an edge, as at the 0 of a relu, any slope between them is one.
#include "tests/random/slope.h"
#include "passes/passes.h"
#include "tests/random/numbers.h"

#include <math.h>
#include <string.h>

// The loss alone, with what stop_gradient passes held fast, and what is equal:
// no gradient goes through that, and any step makes something else of it.
typedef struct {
    Graph *g;
    NodeId loss;
    NodeId *now;   // what nodes of the whole graph are here
    double **leaf; // of g
} Frozen;

static NodeId find_loss(const Graph *g) {
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_output &&
            strcmp(node_text(&g->node[n], ATTR_name), "loss") == 0)
            return n;
    return NO_NODE;
}

// Leaves that have no number twice.  Where two that are drawn for their own are
// equal, a maximum of both and a minimum may each give half of a gradient that
// the whole has not.
static double **draw_leaves(const Graph *g, Arena *a, uint32_t seed) {
    double **leaf = number_leaves(g, a, &(Start){.seed = seed});
    for (NodeId n = 0; n < g->count; n++) {
        if (leaf[n] == NULL || !dtype_float(g->node[n].type->dtype))
            continue;
        uint32_t stream =
            (uint32_t)stream_of(node_text(&g->node[n], ATTR_name));
        for (int64_t i = 0; i < type_count(g->node[n].type); i++)
            leaf[n][i] +=
                0x1p-12 * random_uniform(seed, stream, 2, (uint32_t)i);
    }
    return leaf;
}

static Frozen freeze(const Graph *g, Arena *a, NodeId loss, double **leaf,
                     double *const *value) {
    Frozen f = {graph_new(a, g->name), NO_NODE,
                ARENA_ARRAY(a, g->count + 1, NodeId),
                ARENA_ARRAY(a, g->count + 1, double *)};
    f.g->act = g->act;
    for (NodeId n = 0; n <= loss; n++) {
        const Node *d = &g->node[n];
        bool held = d->op == OP_stop_gradient || d->op == OP_eq;
        if (!held && n != loss && (op_info[d->op].traits & EFFECT))
            continue;
        f.now[n] = held ? graph_leaf(f.g, OP_input,
                                     arena_format(a, "held %u", n), *d->type)
                        : graph_copy(f.g, g, n, f.now);
        f.leaf[f.now[n]] = held ? value[n] : leaf[n];
    }
    f.loss = f.now[loss];
    return f;
}

// How much the loss has in roundings of what is added up for it: of terms that
// cancel it keeps nothing else.
static double rounding_of(const Frozen *f, double *const *value) {
    double most = 0x1p-44 * fabs(value[f->loss][0]);
    for (NodeId n = 0; n < f->loss; n++) {
        const Node *d = &f->g->node[n];
        double terms = 0;
        if (d->op != OP_sum || type_count(d->type) != 1)
            continue;
        int64_t count = type_count(f->g->node[d->arg[0]].type);
        for (int64_t i = 0; i < count; i++)
            terms += fabs(value[d->arg[0]][i]);
        most = fmax(most, 0x1p-50 * terms);
    }
    return most;
}

// The loss where a param is moved by so many steps of its direction.
static double loss_at(const Frozen *f, NodeId param, const double *direction,
                      double steps) {
    Arena *a = arena_new();
    int64_t count = type_count(f->g->node[param].type);
    double *here = f->leaf[param];
    double *moved = ARENA_ARRAY(a, (size_t)count + 1, double);
    for (int64_t i = 0; i < count; i++)
        moved[i] = here[i] + steps * direction[i];
    f->leaf[param] = moved;
    double loss = graph_eval(f->g, a, f->leaf, false)[f->loss][0];
    f->leaf[param] = here;
    arena_free(a);
    return loss;
}

typedef struct {
    double slope, size; // of the gradient, and of its terms without signs
    double ahead, behind, rounding;
} Slopes;

static Slopes find_slopes(const Frozen *f, Arena *a, NodeId param,
                          const double *gradient, double rounding,
                          uint32_t seed) {
    static const double step = 0x1p-20;
    int64_t count = type_count(f->g->node[param].type);
    double *direction = ARENA_ARRAY(a, (size_t)count + 1, double);
    Slopes s = {0};
    for (int64_t i = 0; i < count; i++) {
        direction[i] = 2 * random_uniform(seed, param, 1, (uint32_t)i) - 1;
        s.slope += gradient[i] * direction[i];
        s.size += fabs(gradient[i] * direction[i]);
    }
    double here = loss_at(f, param, direction, 0);
    s.ahead = (loss_at(f, param, direction, step) - here) / step;
    s.behind = (here - loss_at(f, param, direction, -step)) / step;
    s.rounding = rounding / step;
    return s;
}

// Not if one of them is no number.
static bool is_slope(const Slopes *s) {
    static const double little = 1e-6;
    double mean = (s->ahead + s->behind) / 2;
    return fabs(s->slope - mean) <= fabs(s->ahead - s->behind) +
                                        little * (s->size + fabs(mean)) +
                                        s->rounding;
}

// The gradient of the param of that name, or zeros where it has none.
static const double *gradient_of(const Graph *g, double *const *value, Arena *a,
                                 const char *name) {
    NodeId param = graph_find(g, name);
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_gradient && g->node[n].arg[0] == param)
            return value[g->node[n].arg[1]];
    return ARENA_ARRAY(a, (size_t)type_count(g->node[param].type) + 1, double);
}

// The graph with gradients, of nothing but autodiff.
static Graph *differentiate(const Graph *g) {
    PassOptions o = pass_options(&(Recipe){.precision = F32}, "host");
    return pass_run(graph_clone(g), &o, pass_find("autodiff"));
}

void slope_judge(const Graph *g, uint32_t seed, Text *report) {
    NodeId loss = find_loss(g);
    if (loss == NO_NODE)
        return;
    Arena *a = arena_new();
    double **leaf = draw_leaves(g, a, seed);
    double **value = graph_eval(g, a, leaf, false);
    Graph *with = differentiate(g);
    double **backward = graph_eval(with, a, draw_leaves(with, a, seed), false);
    Frozen f = freeze(g, a, loss, leaf, value);
    double rounding = rounding_of(&f, graph_eval(f.g, a, f.leaf, false));
    for (NodeId n = 0; n < g->count; n++) {
        NodeId param = g->node[n].num_args ? g->node[n].arg[0] : NO_NODE;
        if (!(op_info[g->node[n].op].traits & OPTIMIZES) || param > loss)
            continue;
        const char *name = node_text(&g->node[param], ATTR_name);
        Slopes s =
            find_slopes(&f, a, f.now[param],
                        gradient_of(with, backward, a, name), rounding, seed);
        if (!is_slope(&s))
            text_add(report,
                     "the gradient of %s has a slope of %.9g, but the loss one "
                     "of %.9g ahead and %.9g behind\n",
                     name, s.slope, s.ahead, s.behind);
    }
    graph_free(with);
    arena_free(a);
}
