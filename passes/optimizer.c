// Optimizer: sgd and adam become assignments.
//
//   needs   gradient(param, value) nodes whose values carry the loss scale
//   keeps   every other node and its value
//   leaves  assign nodes at the end, in the order of the optimizer nodes, and
//           states of kind "optimizer" named for their parameter; no sgd, adam
//           or gradient
//
// The formulas are PyTorch's.  A decay or momentum that is the constant 0
// costs nothing.  A parameter without a gradient keeps its value.
#include "passes/passes.h"

// The update of one parameter, in the graph that is being built.
typedef struct {
    Graph *g;
    Node from; // the optimizer node, operands mapped
    NodeId param, rate;
    NodeId gradient; // of the loss itself
} Update;

static NodeId number(Update *u, double value) {
    return graph_constant(u->g, type_scalar(F32), value);
}

static NodeId op2(Update *u, Op op, NodeId a, NodeId b) {
    return graph_op2(u->g, op, a, b);
}

static bool is_zero(const Graph *g, NodeId n) {
    const Attr *values = node_attr(&g->node[n], ATTR_values);
    return g->node[n].op == OP_constant && values->count == 1 &&
           values->floats[0] == 0;
}

// A state of the parameter's shape that starts with 0.
static NodeId slot(Update *u, const char *what) {
    const char *param = node_text(&u->g->node[u->param], ATTR_name);
    const char *name = arena_format(u->g->arena, "%s.%s", param, what);
    return graph_state(u->g, name, STATE_OPTIMIZER, u->g->node[u->param].type,
                       0);
}

// a x + (1 - a) y
static NodeId average(Update *u, NodeId a, NodeId x, NodeId y) {
    NodeId rest = op2(u, OP_sub, number(u, 1), a);
    return op2(u, OP_add, op2(u, OP_mul, a, x), op2(u, OP_mul, rest, y));
}

static void descend(Update *u, NodeId from, NodeId direction) {
    NodeId step = op2(u, OP_mul, u->rate, direction);
    graph_assign(u->g, u->param, op2(u, OP_sub, from, step));
}

// torch.optim.SGD.  Its first step sets the momentum buffer to d, which is what
// a buffer of zeros gives.
static void update_sgd(Update *u) {
    NodeId momentum = u->from.arg[2], decay = u->from.arg[3];
    NodeId d = u->gradient;
    if (!is_zero(u->g, decay))
        d = op2(u, OP_add, d, op2(u, OP_mul, decay, u->param));
    if (!is_zero(u->g, momentum)) {
        NodeId old = slot(u, "momentum");
        NodeId kept = op2(u, OP_add, op2(u, OP_mul, momentum, old), d);
        graph_assign(u->g, old, kept);
        bool nesterov = node_int(&u->from, ATTR_nesterov, 0);
        d = nesterov ? op2(u, OP_add, d, op2(u, OP_mul, momentum, kept)) : kept;
    }
    descend(u, u->param, d);
}

// 1 - beta^t, written as -2 h / (1 - h) with h = tanh(t log(beta) / 2): the
// direct form loses four digits in f32 when beta is 0.999 and t is 1.
static NodeId correction(Update *u, NodeId beta, NodeId t) {
    NodeId log_beta = graph_op1(u->g, OP_log, beta);
    NodeId half = op2(u, OP_mul, t, op2(u, OP_mul, log_beta, number(u, 0.5)));
    NodeId h = graph_op1(u->g, OP_tanh, half);
    NodeId rest = op2(u, OP_sub, number(u, 1), h);
    return op2(u, OP_div, op2(u, OP_mul, number(u, -2), h), rest);
}

// torch.optim.Adam, and AdamW with decoupled: the decay then shrinks the
// parameter and does not enter the moments.
static void update_adam(Update *u) {
    NodeId beta1 = u->from.arg[2], beta2 = u->from.arg[3];
    NodeId decay = u->from.arg[4];
    NodeId t = graph_cast(u->g, u->from.arg[5], F32);
    NodeId from = u->param, d = u->gradient;
    if (!is_zero(u->g, decay) && node_int(&u->from, ATTR_decoupled, 0)) {
        NodeId loss = op2(u, OP_mul, u->rate, decay);
        from = op2(u, OP_mul, from, op2(u, OP_sub, number(u, 1), loss));
    } else if (!is_zero(u->g, decay)) {
        d = op2(u, OP_add, d, op2(u, OP_mul, decay, u->param));
    }
    NodeId old_m = slot(u, "adam_m"), old_v = slot(u, "adam_v");
    NodeId m = average(u, beta1, old_m, d);
    NodeId v = average(u, beta2, old_v, op2(u, OP_mul, d, d));
    graph_assign(u->g, old_m, m);
    graph_assign(u->g, old_v, v);
    NodeId root = graph_op1(u->g, OP_sqrt, correction(u, beta2, t));
    root = op2(u, OP_div, graph_op1(u->g, OP_sqrt, v), root);
    double eps = node_float(&u->from, ATTR_eps, 1e-8);
    root = op2(u, OP_add, root, number(u, eps));
    u->rate = op2(u, OP_div, u->rate, correction(u, beta1, t));
    descend(u, from, op2(u, OP_div, m, root));
}

static bool is_optimizer(Op op) {
    return op == OP_sgd || op == OP_adam;
}

// Copies all but optimizers and gradients.
static void copy_rest(Graph *out, const Graph *g, NodeId *now) {
    for (NodeId n = 0; n < g->count; n++) {
        Op op = g->node[n].op;
        if (!is_optimizer(op) && op != OP_gradient)
            now[n] = graph_copy(out, g, n, now);
    }
}

// The gradient of each param of g, in the new graph, or NO_NODE.
static NodeId *find_gradients(const Graph *g, const NodeId *now,
                              Arena *scratch) {
    NodeId *gradient = ARENA_ARRAY(scratch, g->count, NodeId);
    for (NodeId n = 0; n < g->count; n++)
        gradient[n] = NO_NODE;
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_gradient)
            gradient[g->node[n].arg[0]] = now[g->node[n].arg[1]];
    return gradient;
}

static NodeId find_loss_scale(const Graph *g) {
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_loss_scale)
            return n;
    return NO_NODE;
}

static Node mapped(const Node *n, const NodeId *now, Arena *scratch) {
    NodeId *arg = ARENA_ARRAY(scratch, n->num_args, NodeId);
    for (int i = 0; i < n->num_args; i++)
        arg[i] = now[n->arg[i]];
    Node copy = *n;
    copy.arg = arg;
    return copy;
}

static void update(Graph *g, Node n, NodeId gradient, NodeId loss_scale) {
    g->at = n.from;
    if (loss_scale != NO_NODE)
        gradient = graph_op2(g, OP_div, gradient, loss_scale);
    Update u = {.g = g,
                .from = n,
                .param = n.arg[0],
                .rate = n.arg[1],
                .gradient = gradient};
    if (n.op == OP_sgd)
        update_sgd(&u);
    else
        update_adam(&u);
}

Graph *pass_optimizer(Graph *g, Arena *scratch, const PassOptions *o) {
    (void)o;
    Graph *out = graph_like(g);
    NodeId *now = ARENA_ARRAY(scratch, g->count, NodeId);
    copy_rest(out, g, now);
    NodeId *gradient = find_gradients(g, now, scratch);
    NodeId loss_scale = find_loss_scale(out);
    for (NodeId n = 0; n < g->count; n++)
        if (is_optimizer(g->node[n].op) &&
            gradient[g->node[n].arg[0]] != NO_NODE)
            update(out, mapped(&g->node[n], now, scratch),
                   gradient[g->node[n].arg[0]], loss_scale);
    return out;
}
