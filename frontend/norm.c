// batch_norm: in training one composite node and the running statistics'
// updates, in evaluation the running statistics themselves.

#include "frontend/expand.h"

typedef struct {
    NodeId x, scale, bias, mean, var; // mean and var: the running ones
    Type channels;
    double eps, momentum;
} Norm;

static bool is_op(const Expansion *e, NodeId n, Op op) {
    return e->graph->node[n].op == op;
}

// batch_norm takes the mean away, and a bias before it with it.
static void warn_bias(Expansion *e, const Call *c, const Value *x) {
    const Node *n = &e->graph->node[x->node];
    if (n->op != OP_add)
        return;
    bool conv = is_op(e, n->arg[0], OP_conv) || is_op(e, n->arg[1], OP_conv);
    bool bias = is_op(e, n->arg[0], OP_param) || is_op(e, n->arg[1], OP_param);
    if (!conv || !bias)
        return;
    Diagnostic *d = report(e->diags, D_dead_bias, c->at,
                           "batch_norm removes the bias that comes before it");
    diag_place(d, x->at, "the bias is here");
    diag_note(d, "bias=false computes the same and costs less");
}

// A parameter, or the constant that it would start with and stay at.
static NodeId affine(Expansion *e, const Call *c, bool trained,
                     const char *name, Type type, double start) {
    if (!trained)
        return graph_constant(e->graph, type, start);
    return parameter_new(e, c, name, type, (Init){INIT_CONSTANT, start});
}

// running = (1 - momentum) * running + momentum * batch
static void track(Expansion *e, NodeId running, NodeId batch, double momentum) {
    NodeId old = add_binary(e, OP_mul, running, number_node(e, 1 - momentum));
    NodeId new = add_binary(e, OP_mul, batch, number_node(e, momentum));
    graph_assign(e->graph, running, add_binary(e, OP_add, old, new));
}

static NodeId norm_train(Expansion *e, const Norm *n) {
    Graph *g = e->graph;
    Type t = node_type(e, n->x);
    double count = (double)(type_count(t) / n->channels.dim[0]);
    int64_t axes[MAX_RANK];
    for (int i = 0; i < t.rank - 1; i++)
        axes[i] = i;
    Attr eps = attr_float(ATTR_eps, n->eps);
    NodeId y = graph_add(g, (Node){.op = OP_batch_norm,
                                   .num_args = 3,
                                   .arg = (NodeId[]){n->x, n->scale, n->bias},
                                   .num_attrs = 1,
                                   .attr = &eps,
                                   .group = -1});
    NodeId sum = graph_reduce(g, OP_sum, n->x, t.rank - 1, axes);
    NodeId var = graph_reduce(g, OP_var, n->x, t.rank - 1, axes);
    NodeId unbiased =
        add_binary(e, OP_mul, var, number_node(e, count / (count - 1)));
    // As expand writes it, so that the two are one node.
    NodeId mean = add_binary(e, OP_div, sum, number_node(e, count));
    track(e, n->mean, mean, n->momentum);
    track(e, n->var, unbiased, n->momentum);
    return y;
}

static NodeId norm_eval(Expansion *e, const Norm *n) {
    NodeId root = add_unary(
        e, OP_rsqrt, add_binary(e, OP_add, n->var, number_node(e, n->eps)));
    NodeId centred = add_binary(e, OP_sub, n->x, n->mean);
    NodeId scaled =
        add_binary(e, OP_mul, centred, add_binary(e, OP_mul, root, n->scale));
    return add_binary(e, OP_add, scaled, n->bias);
}

static bool expect_statistics(Expansion *e, const Call *c, const Value *x) {
    Type t = node_type(e, x->node);
    if (t.rank >= 2 && type_count(t) / t.dim[t.rank - 1] > 1)
        return true;
    Diagnostic *d =
        report(e->diags, t.rank < 2 ? D_rank : D_range, c->at,
               "batch_norm needs more than one value for each channel");
    diag_place(d, x->at, "this is %s", type_text(e, t));
    return false;
}

Value lower_batch_norm(Expansion *e, const Call *c) {
    const Value *x = call_arg(c, P_batch_norm_x);
    if (!expect_statistics(e, c, x))
        return value_poison();
    warn_bias(e, c, x);
    Type t = node_type(e, x->node);
    Norm n = {.x = as_float(e, x->node),
              .channels = type_of(F32, 1, &t.dim[t.rank - 1]),
              .eps = call_number(c, P_batch_norm_eps),
              .momentum = call_number(c, P_batch_norm_momentum)};
    n.scale =
        affine(e, c, call_flag(c, P_batch_norm_scale), "scale", n.channels, 1);
    n.bias =
        affine(e, c, call_flag(c, P_batch_norm_bias), "bias", n.channels, 0);
    n.mean = statistic_new(e, c, "running_mean", n.channels, 0);
    n.var = statistic_new(e, c, "running_var", n.channels, 1);
    if (n.scale == NO_NODE || n.bias == NO_NODE || n.mean == NO_NODE ||
        n.var == NO_NODE)
        return value_poison();
    return value_tensor(e->training ? norm_train(e, &n) : norm_eval(e, &n),
                        c->at);
}
