// Parameters, and the graph that initialises them.

#include "frontend/functions/functions.h"

#include <string.h>

static void append_parameter(Expansion *e, Parameter **list, int *count,
                             Parameter p) {
    ARENA_APPEND(e->arena, *list, *count, p);
}

// The update kernel counts elements in an int, and its last chunk may overshoot
// by less than two chunks.
static bool expect_size(Expansion *e, const Call *c, const char *name,
                        Type type) {
    const int64_t most = (INT64_C(1) << 31) - (1 << 13);
    if (type_valid(&type) && type_count(&type) <= most)
        return true;
    Diagnostic *d = report(e->diags, D_tensor_too_large, c->at,
                           "the %s of %s is too large", name, c->path);
    diag_label(d, "this is %s", type_text(e, type));
    return false;
}

static const char *average_name(Expansion *e, const char *name) {
    return arena_format(e->arena, "%s.average", name);
}

NodeId average_node(Expansion *e, const char *name, Type type, double init) {
    return graph_state(e->graph, average_name(e, name), STATE_AVERAGE, type,
                       init);
}

// The leaf of that name from another view of the same image.
static NodeId find_leaf(Expansion *e, const char *name) {
    if (e->num_views == 0 || e->training)
        return NO_NODE;
    return graph_find(e->graph, e->averaged ? average_name(e, name) : name);
}

NodeId parameter_new(Expansion *e, const Call *c, const char *name, Type type,
                     Init init) {
    if (!expect_size(e, c, name, type))
        return NO_NODE;
    const char *full = arena_format(e->arena, "%s.%s", c->path, name);
    NodeId node = find_leaf(e, full);
    if (node == NO_NODE)
        node = e->averaged ? average_node(e, full, type, 0)
                           : graph_leaf(e->graph, OP_param, full, type);
    if (e->training)
        append_parameter(e, &e->parameter, &e->num_parameters,
                         (Parameter){full, type, init, c->at, node});
    return node;
}

NodeId statistic_new(Expansion *e, const Call *c, const char *name, Type type,
                     double init) {
    if (!expect_size(e, c, name, type))
        return NO_NODE;
    const char *full = arena_format(e->arena, "%s.%s", c->path, name);
    NodeId node = find_leaf(e, full);
    if (node == NO_NODE)
        node = e->averaged
                   ? average_node(e, full, type, init)
                   : graph_state(e->graph, full, STATE_STATISTIC, type, init);
    if (e->training)
        append_parameter(e, &e->statistic, &e->num_statistics,
                         (Parameter){.name = full,
                                     .type = type,
                                     .init = {.low = init},
                                     .at = c->at,
                                     .node = node});
    return node;
}

// A bare parameter, such as learned positions.
Value lower_parameter(Expansion *e, const Call *c) {
    Type t;
    Init init = {INIT_CONSTANT, .low = 0};
    if (!expect_sizes(e, c, call_arg(c, P_parameter_shape), "parameter", &t) ||
        !expect_size(e, c, "value", t) ||
        !initial_argument(e, call_arg(c, P_parameter_init), t, &init))
        return value_poison();
    return value_tensor(parameter_new(e, c, "value", t, init), c->at);
}

Graph *init_graph(Expansion *e) {
    Graph *g = graph_new(e->arena, "init");
    NodeId seed = graph_state(g, "run.seed", STATE_RUN, type_scalar(I32),
                              (double)e->recipe.seed);
    NodeId epoch = graph_constant(g, type_scalar(I32), 0);
    for (int i = 0; i < e->num_parameters; i++) {
        const Parameter *p = &e->parameter[i];
        g->origin = e->graph->node[p->node].from;
        NodeId leaf = graph_leaf(g, OP_param, p->name, p->type);
        graph_assign(g, leaf, initial_values(g, seed, epoch, p));
    }
    return g;
}
