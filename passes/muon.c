// Muon (Jordan et al., "Muon: An optimizer for hidden layers in neural
// networks", 2024): the momentum of a matrix is replaced by the nearest
// orthogonal one.
//
// Newton-Schulz iterations find it with products only: X := a X + (b A + c A A)
// X with A = X X', which leaves the singular vectors and moves the singular
// values towards 1.  As the products are contractions, they are done in the
// recipe's type.  Filters [K, R, S, C] are matrices of K rows.

#include "passes/update.h"

#include <math.h>

static NodeId product(Update *u, NodeId x, NodeId y, int ta, int tb) {
    Attr attr[] = {attr_int(ATTR_ta, ta), attr_int(ATTR_tb, tb)};
    return graph_add(u->g, (Node){.op = OP_matmul,
                                  .num_args = 2,
                                  .arg = (NodeId[]){x, y},
                                  .num_attrs = 2,
                                  .attr = attr,
                                  .group = -1});
}

// a x + b y for numbers a and b.
static NodeId combine(Update *u, double a, NodeId x, double b, NodeId y) {
    NodeId ax = update_op2(u, OP_mul, update_number(u, a), x);
    NodeId by = update_op2(u, OP_mul, update_number(u, b), y);
    return update_op2(u, OP_add, ax, by);
}

// One iteration.  A tall matrix uses X' X, which is smaller, from the right.
static NodeId iterate(Update *u, NodeId x, const double *c) {
    Type t = u->g->node[x].type;
    bool tall = t.dim[0] > t.dim[1];
    NodeId A = product(u, x, x, tall, !tall);
    NodeId B = combine(u, c[1], A, c[2], product(u, A, A, 0, 0));
    NodeId y = tall ? product(u, x, B, 0, 0) : product(u, B, x, 0, 0);
    return combine(u, c[0], x, 1, y);
}

static NodeId orthogonalize(Update *u, NodeId d) {
    Type t = u->g->node[d].type;
    int64_t rows = t.dim[0], matrix[] = {rows, type_count(t) / rows};
    double eps = node_float(&u->from, ATTR_eps, 1e-7);
    NodeId size = update_norm(u, d);
    size = update_op2(u, OP_add, size, update_number(u, eps));
    NodeId x = update_op2(u, OP_div, d, size);
    x = graph_reshape(u->g, x, 2, matrix);
    const double *c = node_attr(&u->from, ATTR_coefficients)->floats;
    for (int64_t i = 0; i < node_int(&u->from, ATTR_iterations, 5); i++)
        x = iterate(u, x, c);
    return graph_reshape(u->g, x, t.rank, t.dim);
}

// The parameter, or scaled so that its rows have norm 1 on average.
static NodeId renormalized(Update *u) {
    double rows = (double)u->g->node[u->param].type.dim[0];
    if (!node_int(&u->from, ATTR_renormalize, 0))
        return u->param;
    NodeId want = update_number(u, sqrt(rows));
    NodeId size = update_norm(u, u->param);
    NodeId ratio = update_op2(u, OP_div, want, size);
    ratio = update_unless_zero(u, size, want, ratio);
    return update_op2(u, OP_mul, u->param, ratio);
}

void update_muon(Update *u) {
    NodeId from = update_shrink(u, renormalized(u), u->from.arg[3]);
    update_descend(u, from, u->rate,
                   orthogonalize(u, update_accelerate(u, u->gradient)));
}
