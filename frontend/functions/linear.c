// Matrix products: linear and the operator @.

#include "frontend/functions/functions.h"

Value add_bias(Expansion *e, const Call *c, NodeId y, Type weight,
               bool has_bias, const Value *given) {
    if (!has_bias && given->kind != VALUE_NONE) {
        report(e->diags, D_unused, given->at.source ? given->at : c->at,
               "bias_init has no effect with bias=false");
        return value_poison();
    }
    if (y == NO_NODE || !has_bias)
        return value_tensor(y, c->at);
    Type type = type_of(F32, 1, weight.dim);
    Init init = initial_default(weight);
    if (!initial_argument(e, given, type, &init))
        return value_poison();
    NodeId bias = parameter_new(e, c, "bias", type, init);
    return value_tensor(add_binary(e, OP_add, y, bias), c->at);
}

static NodeId as_rows(Expansion *e, NodeId x) {
    Type t = *node_type(e, x);
    if (t.rank == 2)
        return x;
    int64_t in = t.dim[t.rank - 1];
    return graph_reshape(e->graph, x, 2, (int64_t[]){type_count(&t) / in, in});
}

NodeId rows_product(Expansion *e, const Call *c, NodeId x, NodeId weight) {
    if (weight == NO_NODE || !expect_rows(e, c, x))
        return NO_NODE;
    Type t = *node_type(e, x);
    NodeId arg[] = {as_rows(e, x), weight};
    Attr attr = attr_int(ATTR_tb, 1);
    NodeId y = add_checked(e, c,
                           (Node){.op = OP_matmul,
                                  .num_args = 2,
                                  .arg = arg,
                                  .num_attrs = 1,
                                  .attr = &attr});
    t.dim[t.rank - 1] = node_type(e, weight)->dim[0];
    return y == NO_NODE ? y : graph_reshape(e->graph, y, t.rank, t.dim);
}

static bool expect_channels(Expansion *e, const Call *c, const Value *x) {
    Type t = *node_type(e, x->node);
    if (t.rank == 4) {
        Diagnostic *d = report(e->diags, D_wrong_rank, c->at,
                               "linear needs rows, [N, channels]");
        diag_secondary(d, x->at, "this is %s", tensor_text(e, x->node));
        diag_note(d, "flatten makes rows of it: `|> flatten |> linear`; the "
                     "product at each pixel is conv(channels, 1)");
        return false;
    }
    return t.rank >= 2 || expect_rank(e, c, x, 2);
}

Value lower_linear(Expansion *e, const Call *c) {
    const Value *x = call_arg(c, P_linear_x);
    if (!expect_channels(e, c, x))
        return value_poison();
    Type t = *node_type(e, x->node);
    int64_t shape[] = {call_count(c, P_linear_channels), t.dim[t.rank - 1]};
    Type type = type_of(F32, 2, shape);
    Init init = initial_default(type);
    if (!initial_argument(e, call_arg(c, P_linear_init), type, &init))
        return value_poison();
    NodeId weight = parameter_new(e, c, "weight", type, init);
    NodeId y = rows_product(e, c, as_float(e, x->node), weight);
    return add_bias(e, c, y, type, call_flag(c, P_linear_bias),
                    call_arg(c, P_linear_bias_init));
}

// ---- a @ b ----

static Value report_product(Expansion *e, const Expr *x, Value a, Value b,
                            const char *note) {
    Diagnostic *d = report(e->diags, D_incompatible_shapes, x->op_at,
                           "cannot multiply matrices of these shapes");
    diag_secondary(d, a.at, "this is %s", tensor_text(e, a.node));
    diag_label(d, "and this is %s", tensor_text(e, b.node));
    diag_note(d, "%s", note);
    return value_poison();
}

// The reason why a @ b is invalid; NULL if it is valid.
static const char *product_error(Expansion *e, Type a, Type b) {
    if (a.rank < 2 || b.rank < 2)
        return "a matrix has two dimensions or more";
    if (a.dim[a.rank - 1] != b.dim[b.rank - 2])
        return arena_format(e->arena,
                            "the columns of the first, %lld, and the rows of "
                            "the second, %lld, differ",
                            (long long)a.dim[a.rank - 1],
                            (long long)b.dim[b.rank - 2]);
    for (int i = 0; b.rank > 2 && i < a.rank - 2; i++)
        if (a.rank != b.rank || a.dim[i] != b.dim[i])
            return "dimensions before the last two must be equal, or absent "
                   "from the second";
    return b.rank > 2 && a.rank == 2
               ? "dimensions before the last two must be equal, or absent "
                 "from the second"
               : NULL;
}

Value matrix_product(Expansion *e, const Expr *x, Value a, Value b) {
    origin_set(e, x->at, e->path ? path_layer(e, "matmul", false) : NULL);
    Type s = *node_type(e, a.node), t = *node_type(e, b.node);
    const char *flaw = product_error(e, s, t);
    if (flaw != NULL)
        return report_product(e, x, a, b, flaw);
    NodeId arg[] = {as_float(e, a.node), as_float(e, b.node)};
    arg[0] = samples_mask(e, arg[0], arg[0], 1u << (s.rank - 1), 0);
    arg[1] = samples_mask(e, arg[1], arg[1], 1u << (t.rank - 2), 0);
    if (t.rank == 2)
        arg[0] = as_rows(e, arg[0]);
    NodeId y = add_at(e, x->at, "@",
                      (Node){.op = OP_matmul, .num_args = 2, .arg = arg});
    s.dim[s.rank - 1] = t.dim[t.rank - 1];
    if (y != NO_NODE)
        y = graph_reshape(e->graph, y, s.rank, s.dim);
    return value_tensor(y, x->at);
}
