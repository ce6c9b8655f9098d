// Parameters: what is trained, how it starts, and the graph that starts it.

#include "frontend/expand.h"

#include <string.h>

static void remember(Expansion *e, Parameter p) {
    int count = e->num_parameters;
    if ((count & (count - 1)) == 0) {
        Parameter *list =
            ARENA_ARRAY(e->arena, count ? 2 * (size_t)count : 1, Parameter);
        if (count)
            memcpy(list, e->parameter, (size_t)count * sizeof *list);
        e->parameter = list;
    }
    e->parameter[e->num_parameters++] = p;
}

static bool expect_size(Expansion *e, const Call *c, const char *name,
                        Type type) {
    if (type_valid(type) && type_count(type) <= INT32_MAX)
        return true;
    Diagnostic *d = report(e->diags, D_size, c->at, "the %s of %s is too large",
                           name, c->path);
    diag_label(d, "this is %s", type_text(e, type));
    return false;
}

NodeId parameter_new(Expansion *e, const Call *c, const char *name, Type type,
                     Init init) {
    if (!expect_size(e, c, name, type))
        return NO_NODE;
    const char *full = arena_format(e->arena, "%s.%s", c->path, name);
    NodeId node = graph_leaf(e->graph, OP_param, full, type);
    if (e->training)
        remember(e, (Parameter){full, type, init, c->at, node});
    return node;
}

NodeId statistic_new(Expansion *e, const Call *c, const char *name, Type type,
                     double init) {
    if (!expect_size(e, c, name, type))
        return NO_NODE;
    const char *full = arena_format(e->arena, "%s.%s", c->path, name);
    return graph_state(e->graph, full, STATE_STATISTIC, type, init);
}

// Numbers from -bound to bound, a function of the seed, the parameter's name
// and the element's place.
static NodeId uniform_values(Graph *g, NodeId seed, NodeId epoch,
                             const Parameter *p) {
    int64_t count = type_count(p->type);
    NodeId place = graph_iota(g, type_of(I32, 1, &count), 0);
    const char *name = arena_format(g->arena, "init/%s", p->name);
    Attr stream = attr_int(ATTR_stream, stream_of(name));
    NodeId u = graph_add(g, (Node){.op = OP_uniform,
                                   .num_args = 3,
                                   .arg = (NodeId[]){seed, epoch, place},
                                   .num_attrs = 1,
                                   .attr = &stream,
                                   .group = -1});
    u = graph_reshape(g, u, p->type.rank, p->type.dim);
    NodeId width = graph_constant(g, type_scalar(F32), 2 * p->init.value);
    NodeId bound = graph_constant(g, type_scalar(F32), p->init.value);
    return graph_op2(g, OP_sub, graph_op2(g, OP_mul, u, width), bound);
}

static NodeId initial_values(Graph *g, NodeId seed, NodeId epoch,
                             const Parameter *p) {
    if (p->init.kind == INIT_CONSTANT)
        return graph_constant(g, p->type, p->init.value);
    return uniform_values(g, seed, epoch, p);
}

Graph *init_graph(Expansion *e) {
    Graph *g = graph_new(e->arena, "init");
    NodeId seed = graph_state(g, "run.seed", STATE_RUN, type_scalar(I32),
                              (double)e->recipe.seed);
    NodeId epoch = graph_constant(g, type_scalar(I32), 0);
    for (int i = 0; i < e->num_parameters; i++) {
        const Parameter *p = &e->parameter[i];
        g->at = e->graph->node[p->node].from;
        NodeId leaf = graph_leaf(g, OP_param, p->name, p->type);
        graph_assign(g, leaf, initial_values(g, seed, epoch, p));
    }
    return g;
}
