// Expand: composite operations become primitive ones.
//
//   needs   gradients already appended, where there will be any
//   keeps   the value of every node
//   leaves  no composite operation
//
// What each stands for is one function, named in ops.def.  Reductions keep
// their axes as 1, so that results broadcast back.
#include "passes/composite.h"
#include "passes/passes.h"

// A graph that is being rebuilt, and the node at hand.
typedef struct {
    Graph *g;
    const Graph *old;
    NodeId id;
    const NodeId *now;
} Expansion;

typedef NodeId ExpandRule(const Expansion *e);

#define EXPAND(rule) static ExpandRule expand_##rule;
#include "ir/ops.def"

static NodeId number(Graph *g, double value) {
    return graph_constant(g, type_scalar(F32), value);
}

Normalized composite_normalize(Graph *g, NodeId x, double eps) {
    Type type = g->node[x].type;
    int64_t axes[MAX_RANK];
    int count = type.rank - 1;
    for (int i = 0; i < count; i++)
        axes[i] = i;
    double n = (double)type_count(type) / (double)type.dim[count];
    NodeId sum = graph_reduce(g, OP_sum, x, count, axes);
    NodeId mean = graph_op2(g, OP_div, sum, number(g, n));
    NodeId var = graph_reduce(g, OP_var, x, count, axes);
    NodeId safe = graph_op2(g, OP_add, var, number(g, eps));
    NodeId istd = graph_op1(g, OP_rsqrt, safe);
    NodeId centred = graph_op2(g, OP_sub, x, mean);
    return (Normalized){istd, graph_op2(g, OP_mul, centred, istd), n};
}

Exponents composite_exponents(Graph *g, NodeId x, int axis) {
    int64_t axes[] = {axis};
    NodeId largest = graph_reduce(g, OP_max, x, 1, axes);
    NodeId shifted = graph_op2(g, OP_sub, x, largest);
    NodeId exponent = graph_op1(g, OP_exp, shifted);
    NodeId sum = graph_reduce(g, OP_sum, exponent, 1, axes);
    return (Exponents){shifted, exponent, sum};
}

NodeId composite_chosen(Graph *g, NodeId logits, NodeId label) {
    Type type = g->node[logits].type;
    type.dtype = I32;
    int64_t column[] = {type.dim[0], 1};
    NodeId rows = graph_reshape(g, label, 2, column);
    NodeId columns = graph_iota(g, type_of(I32, 2, type.dim), 1);
    return graph_op2(g, OP_eq, columns, rows);
}

static const Node *node(const Expansion *e) {
    return &e->old->node[e->id];
}

static NodeId operand(const Expansion *e, int i) {
    return e->now[node(e)->arg[i]];
}

// Not composite: stays as it is.
static NodeId expand_none(const Expansion *e) {
    return graph_copy(e->g, e->old, e->id, e->now);
}

static NodeId expand_batch_norm(const Expansion *e) {
    double eps = node_float(node(e), ATTR_eps, 1e-5);
    Normalized p = composite_normalize(e->g, operand(e, 0), eps);
    NodeId scaled = graph_op2(e->g, OP_mul, p.normal, operand(e, 1));
    return graph_op2(e->g, OP_add, scaled, operand(e, 2));
}

// loss = log(sum) - (1 - a) shifted[label] - a / K sum(shifted).
static NodeId expand_cross_entropy(const Expansion *e) {
    Graph *g = e->g;
    double a = node_float(node(e), ATTR_smoothing, 0);
    NodeId logits = operand(e, 0);
    int64_t classes = g->node[logits].type.dim[1];
    int64_t axes[] = {1};
    Exponents p = composite_exponents(g, logits, 1);
    NodeId chosen = composite_chosen(g, logits, operand(e, 1));
    NodeId kept = graph_op3(g, OP_select, chosen, p.shifted, number(g, 0));
    NodeId target = graph_reduce(g, OP_sum, kept, 1, axes);
    NodeId loss = graph_op1(g, OP_log, p.sum);
    if (a == 0)
        return graph_op2(g, OP_sub, loss, target);
    target = graph_op2(g, OP_mul, target, number(g, 1 - a));
    NodeId all = graph_reduce(g, OP_sum, p.shifted, 1, axes);
    all = graph_op2(g, OP_mul, all, number(g, a / (double)classes));
    return graph_op2(g, OP_sub, graph_op2(g, OP_sub, loss, target), all);
}

static NodeId expand_softmax(const Expansion *e) {
    int last = e->g->node[operand(e, 0)].type.rank - 1;
    int axis = (int)node_int(node(e), ATTR_axis, last);
    Exponents p = composite_exponents(e->g, operand(e, 0), axis);
    return graph_op2(e->g, OP_div, p.exp, p.sum);
}

static ExpandRule *const expand_rule[NUM_OPS] = {
#define OP(name, ...) [OP_##name] =
#define EXPAND(rule) expand_##rule,
#include "ir/ops.def"
};

Graph *pass_expand(Graph *g, Arena *scratch, const PassOptions *o) {
    (void)o;
    Graph *out = graph_like(g);
    NodeId *now = ARENA_ARRAY(scratch, g->count, NodeId);
    for (NodeId n = 0; n < g->count; n++) {
        out->at = g->node[n].from;
        Expansion e = {out, g, n, now};
        now[n] = expand_rule[g->node[n].op](&e);
    }
    return out;
}
