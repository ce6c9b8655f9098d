// Random numbers: Philox makes blocks of four.  Lanes that are
// neighbours are drawn as a vector, at a multiple of its length.

#include "codegen/emit.h"

#include <math.h>
#include <string.h>

static const Expr *operand(Emit *e, Scope *s, NodeId n, int i, Index p) {
    NodeId arg = e->g->node[n].arg[i];
    return value_at(e, s, arg, index_broadcast(p, *e->g->node[arg].type));
}

static const Expr *stream_number(Emit *e, NodeId n) {
    int64_t stream = node_int(&e->g->node[n], ATTR_stream, 0);
    return e->local != NULL ? integer_of(e, stream)
                            : x_kind(e->a, X_STREAM, stream);
}

static bool share_blocks(const Node *d) {
    return node_int(d, ATTR_words, 1) == 4;
}

// Whether the lanes at p are consecutive elements from an aligned start.
static bool are_neighbours(const Emit *e, NodeId n, Index p) {
    const Node *index = &e->g->node[e->g->node[n].arg[2]];
    return p.lanes != NULL && index->op == OP_iota && index->type->rank == 1 &&
           node_int(index, ATTR_from, 0) == 0;
}

const Expr *draw_value(Emit *e, Scope *s, NodeId n, Index p) {
    const Node *d = &e->g->node[n];
    const Expr *seed = operand(e, s, n, 0, p), *epoch = operand(e, s, n, 1, p);
    const Expr *stream = stream_number(e, n);
    if (!share_blocks(d) || !are_neighbours(e, n, p))
        return value_set(e, s, n, p,
                         EXPR(e,
                              share_blocks(d) ? "draw_one($, $, $, $)"
                                              : "uniform($, $, $, $)",
                              seed, stream, epoch, operand(e, s, n, 2, p)));
    const Expr *name = value_name(e, "u", n);
    CODE(e, &s->before, n, "int $[$]; draw_lanes($, $, $, $, $, $);", name,
         p.lanes, name, p.lanes, seed, stream, epoch, p.index[0]);
    const Expr *x = EXPR(e, "fraction($)", lane_of(e, name));
    value_define(e, s, n, p, HELD_ONCE, x);
    return x;
}

// The integers are compared: a fraction is its integer times 2^-24.
const Expr *draw_below(Emit *e, const Expr *x, const Expr *share) {
    bool drawn = x->kind == X_CALL && strcmp(x->name, "fraction") == 0;
    if (!drawn || (share->kind != X_CONSTANT && share->kind != X_REAL))
        return NULL;
    double least = ceil((double)(float)share->real * 0x1p24);
    least = least > 0 ? fmin(least, 0x1p24) : 0;
    return EXPR(e, "$ < $", x->arg[0], x_size(e->a, (int64_t)least));
}
