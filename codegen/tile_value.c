// Tile values: the operations of a kernel as expressions over tiles, each
// declared once before its first use.

#include "codegen/tile.h"

#include <assert.h>

const Expr *tile_name(const TileValues *v, const char *stem, int number) {
    return x_name(v->a, arena_format(v->a, "%s%d", stem, number));
}

const Expr *tile_call(const TileValues *v, const char *name, int count,
                      const Expr *const *arg) {
    Expr *x = x_list(v->a, count);
    x->kind = X_CALL;
    x->name = name;
    for (int i = 0; i < count; i++)
        list_add(x, arg[i]);
    return x;
}

const Expr *tile_call_with(const TileValues *v, const char *name,
                           const Expr *x) {
    return tile_call(v, name, 1, &x);
}

void tile_statement(TileValues *v, Stmt added) {
    Stmt *s = ARENA_NEW(v->a, Stmt);
    *s = added;
    stmts_add(v->to, s);
}

const Expr *tile_declare_as(TileValues *v, NodeId n, const char *name,
                            const Expr *x) {
    const Expr *own = x_name(v->a, name);
    tile_statement(v, (Stmt){.kind = S_DECLARE,
                             .node = n,
                             .word = "const",
                             .type = "auto",
                             .name = own,
                             .value = x});
    return own;
}

const Expr *tile_declare(TileValues *v, NodeId n, const Expr *x) {
    return tile_declare_as(
        v, n, arena_format(v->a, "%s%d", v->stem, ++*v->declared), x);
}

const Expr *tile_declare_loaded(TileValues *v, NodeId n, const Expr *x) {
    if (v->g->node[n].type->dtype == ACT)
        x = tile_call_with(v, "to_float", x);
    return tile_declare(v, n, x);
}

const char *tile_text(const TileValues *v, const bool whole[2]) {
    return arena_format(v->a, "%s, %s", whole[0] ? v->extent[0] : "1",
                        whole[1] ? v->extent[1] : "1");
}

const Expr *tile_parameter(TileValues *v, NodeId n) {
    const Kernel *k = v->kernel;
    NodeId base = node_base(v->g, n);
    int i = 0;
    while (i < k->num_args && k->arg[i].node != base)
        i++;
    assert(i < k->num_args); // the kernel reads it, too
    if (v->fused != NULL)
        v->fused->used[i] = true;
    return tile_name(v, v->parameter, i);
}

const Expr *tile_bits(TileValues *v, NodeId n, const Expr *offset,
                      const Expr *mask) {
    const Node *d = &v->g->node[n];
    const Expr *x = tile_call(
        v,
        arena_format(v->a, "load_bits<%lld>",
                     (long long)node_int(d, ATTR_bits, 0)),
        3, (const Expr *[]){tile_parameter(v, d->arg[0]), offset, mask});
    if (d->type->dtype == BOOL)
        x = expr_of(v->a, "$0 != 0", &x);
    return tile_declare(v, n, x);
}

void tile_extents_in(const TileValues *v, const TileSpace *s, NodeId n,
                     bool whole[2]) {
    TileExtents e;
    tile_extents(s, *v->g->node[n].type, &e);
    whole[0] = e.whole[1];
    whole[1] = e.whole[2];
}

static bool is_constant(const TileValues *v, NodeId n) {
    return v->g->node[n].op == OP_constant;
}

// Operand m of node n, with the extents of n.
static const Expr *operand_of(TileValues *v, NodeId n, NodeId m) {
    bool own[2], whole[2];
    const Expr *x = tile_value(v, m);
    v->extents(v, n, own);
    v->extents(v, m, whole);
    const char *name =
        arena_format(v->a, "broadcast_to<%s>", tile_text(v, own));
    if (is_constant(v, m) || (own[0] == whole[0] && own[1] == whole[1]))
        return x;
    return tile_call_with(v, name, x);
}

// A choice between two numbers needs one of them as a tile.
static const Expr *full(TileValues *v, NodeId n, const Expr *x) {
    bool whole[2];
    v->extents(v, n, whole);
    return tile_call_with(
        v, arena_format(v->a, "full<%s>", tile_text(v, whole)), x);
}

// A tile does not cast from one type of floats to another: values are f32 until
// they are stored.
static bool rounds(const Graph *g, const Node *d) {
    return d->op == OP_cast && dtype_float(d->type->dtype) &&
           dtype_float(g->node[d->arg[0]].type->dtype);
}

static const Expr *compute(TileValues *v, NodeId n) {
    const Node *d = &v->g->node[n];
    const Expr *operand[4] = {NULL};
    const Expr *other = v->compute != NULL ? v->compute(v, n) : NULL;
    if (other != NULL)
        return other;
    // No library computed the variance.
    if (d->op == OP_reshape || d->op == OP_var_finalize || rounds(v->g, d))
        return tile_value(v, d->arg[0]);
    for (int i = 0; i < d->num_args; i++)
        operand[i] = operand_of(v, n, d->arg[i]);
    if (d->op == OP_select && is_constant(v, d->arg[1]) &&
        is_constant(v, d->arg[2]))
        operand[1] = full(v, n, operand[1]);
    return tile_declare(v, n, pointwise_expr(&v->emit, n, operand));
}

const Expr *tile_value(TileValues *v, NodeId n) {
    double number;
    if (is_constant(v, n) && node_number(&v->g->node[n], &number))
        return literal(v->a, v->g->node[n].type->dtype, number);
    if (v->call != NO_NODE && node_base(v->g, n) == v->call)
        n = v->call;
    if (v->value[n] == NULL)
        v->value[n] =
            group_has(v->kernel->group, n) ? compute(v, n) : v->load(v, n);
    return v->value[n];
}

TileValues tile_values(TileSchedule *s, const Launches *l, const Kernel *k,
                       const Group *group, Arena *a) {
    const Graph *g = l->plan->graph;
    TileValues v = {.a = a,
                    .g = g,
                    .s = s,
                    .kernel = k,
                    .stem = "v",
                    .declared = s != NULL ? &s->values : ARENA_NEW(a, int),
                    .call = NO_NODE,
                    .value = ARENA_ARRAY(a, g->count, const Expr *)};
    emit_init(&v.emit, g, g, a, group, l->plan->stored,
              ARENA_ARRAY(a, g->count, int));
    return v;
}
