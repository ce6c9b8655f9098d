// batch_norm: in training one composite node and the updates of the running
// statistics; in evaluation, or if frozen, the running statistics.  Each ghost
// batch has its own statistics.

#include "frontend/functions/functions.h"

typedef struct {
    NodeId x, scale, bias, mean, var; // mean and var: running
    Type channels, statistic;
    double eps, momentum;
    int64_t splits;
} Norm;

static bool has_op(const Expansion *e, NodeId n, Op op) {
    return e->graph->node[n].op == op;
}

// A bias before batch_norm: the node that adds it, and the nodes of the
// batch_norm.
struct Biased {
    NodeId sum, first, end;
    Span at, norm_at;
    struct Biased *next;
};

// batch_norm removes the mean, and a bias with it, in training; not if dropout
// is between them.
static bool is_biased(const Expansion *e, NodeId x) {
    const Node *n = &e->graph->node[x];
    if (n->op != OP_add || !e->training)
        return false;
    bool conv = has_op(e, n->arg[0], OP_conv) || has_op(e, n->arg[1], OP_conv);
    bool bias =
        has_op(e, n->arg[0], OP_param) || has_op(e, n->arg[1], OP_param);
    return conv && bias;
}

static void note_biased(Expansion *e, const Call *c, const Value *x,
                        NodeId first) {
    if (!is_biased(e, x->node))
        return;
    struct Biased *b = ARENA_NEW(e->arena, struct Biased);
    *b = (struct Biased){.sum = x->node,
                         .first = first,
                         .end = e->graph->count,
                         .at = x->at,
                         .norm_at = c->at};
    if (e->biased == NULL)
        e->biased = b;
    else
        e->last_biased->next = b;
    e->last_biased = b;
}

// Whether only batch_norm, whose nodes are consecutive, uses the sum; a
// residual may use it too.
static bool is_dead(const Graph *g, const struct Biased *b, uint32_t uses) {
    for (NodeId n = b->first; n < b->end; n++)
        for (int i = 0; i < g->node[n].num_args; i++)
            uses -= g->node[n].arg[i] == b->sum;
    return uses == 0;
}

void batch_norm_warn(Expansion *e) {
    if (e->biased == NULL)
        return;
    const uint32_t *uses = graph_uses(e->graph, e->arena);
    for (const struct Biased *b = e->biased; b != NULL; b = b->next) {
        if (!is_dead(e->graph, b, uses[b->sum]))
            continue;
        Diagnostic *d =
            report(e->diags, D_dead_bias, b->norm_at,
                   "batch_norm removes the bias that comes before it");
        diag_secondary(d, b->at, "the bias is here");
        diag_note(d, "bias=false computes the same and costs less");
    }
}

// A parameter, or its constant initial value if untrained.
static NodeId affine_parameter(Expansion *e, const Call *c, bool trained,
                               const char *name, Type type, double start) {
    if (!trained)
        return graph_constant(e->graph, type, start);
    return parameter_new(e, c, name, type, (Init){INIT_CONSTANT, .low = start});
}

// running = (1 - momentum) * running + momentum * batch
static void update_running(Expansion *e, NodeId running, NodeId batch,
                           double momentum) {
    NodeId old = add_binary(e, OP_mul, running, number_node(e, 1 - momentum));
    NodeId new = add_binary(e, OP_mul, batch, number_node(e, momentum));
    graph_assign(e->graph, running, add_binary(e, OP_add, old, new));
}

// y = (x - mean) / sqrt(var + eps) * scale + bias
static NodeId normalized(Expansion *e, const Norm *n, NodeId x, NodeId mean,
                         NodeId var) {
    NodeId root = add_unary(e, OP_rsqrt,
                            add_binary(e, OP_add, var, number_node(e, n->eps)));
    NodeId centred = add_binary(e, OP_sub, x, mean);
    NodeId scaled =
        add_binary(e, OP_mul, centred, add_binary(e, OP_mul, root, n->scale));
    return add_binary(e, OP_add, scaled, n->bias);
}

static bool is_synced(const Expansion *e) {
    return e->recipe.sync_batch_norm && e->recipe.shards > 0;
}

// n / (n - 1) for a number of values.
static NodeId correction(Expansion *e, NodeId count) {
    return add_binary(e, OP_div, count,
                      add_binary(e, OP_sub, count, number_node(e, 1)));
}

// Statistics of a batch, of `count` numbers each; synchronized, those of all
// shards.
static BatchMoments moments(Expansion *e, NodeId sum, NodeId var,
                            double count) {
    if (is_synced(e))
        return graph_sync_moments(e->graph, sum, var, count);
    // As expand writes it, so that CSE merges the two.
    NodeId mean = add_binary(e, OP_div, sum, number_node(e, count));
    return (BatchMoments){mean, var, NO_NODE};
}

// Updates the running statistics by those of a batch, of `count` numbers each.
static void update_statistics(Expansion *e, const Norm *n,
                              const BatchMoments *m, double count) {
    NodeId factor = m->count == NO_NODE ? number_node(e, count / (count - 1))
                                        : correction(e, m->count);
    NodeId unbiased = add_binary(e, OP_mul, m->var, factor);
    Type t = n->statistic;
    NodeId mean = graph_reshape(e->graph, m->mean, t.rank, t.dim);
    unbiased = graph_reshape(e->graph, unbiased, t.rank, t.dim);
    update_running(e, n->mean, mean, n->momentum);
    update_running(e, n->var, unbiased, n->momentum);
}

static NodeId norm_train(Expansion *e, const Norm *n) {
    Graph *g = e->graph;
    Type t = *node_type(e, n->x);
    double count = (double)(type_count(&t) / n->channels.dim[0]);
    int64_t axes[MAX_RANK];
    for (int i = 0; i < t.rank - 1; i++)
        axes[i] = i;
    Attr attr[] = {attr_float(ATTR_eps, n->eps), attr_int(ATTR_sync, 1)};
    NodeId y = graph_add(g, (Node){.op = OP_batch_norm,
                                   .num_args = 3,
                                   .arg = (NodeId[]){n->x, n->scale, n->bias},
                                   .num_attrs = is_synced(e) ? 2 : 1,
                                   .attr = attr,
                                   .group = -1});
    NodeId sum = graph_reduce(g, OP_sum, n->x, t.rank - 1, axes);
    NodeId var = graph_reduce(g, OP_var, n->x, t.rank - 1, axes);
    BatchMoments m = moments(e, sum, var, count);
    update_statistics(e, n, &m, count);
    return y;
}

// Sample i belongs to split i mod splits: x as [N/splits, splits, M, C].
static NodeId ghost_train(Expansion *e, const Norm *n) {
    Graph *g = e->graph;
    Type t = *node_type(e, n->x);
    int64_t channels = n->channels.dim[0], batch = t.dim[0] / n->splits;
    int64_t view[] = {batch, n->splits, type_count(&t) / t.dim[0] / channels,
                      channels};
    double count = (double)view[0] * (double)view[2];
    NodeId x = graph_reshape(g, n->x, 4, view);
    NodeId sum = graph_reduce(g, OP_sum, x, 2, (int64_t[]){0, 2});
    NodeId var = graph_reduce(g, OP_var, x, 2, (int64_t[]){0, 2});
    BatchMoments m = moments(e, sum, var, count);
    update_statistics(e, n, &m, count);
    return graph_reshape(g, normalized(e, n, x, m.mean, m.var), t.rank, t.dim);
}

static NodeId mean_over_splits(Expansion *e, const Norm *n, NodeId statistic) {
    NodeId sum = graph_reduce(e->graph, OP_sum, statistic, 1, (int64_t[]){0});
    return add_binary(e, OP_div, sum, number_node(e, (double)n->splits));
}

static NodeId norm_running(Expansion *e, const Norm *n) {
    if (n->splits <= 1)
        return normalized(e, n, n->x, n->mean, n->var);
    NodeId var = mean_over_splits(e, n, n->var);
    return normalized(e, n, n->x, mean_over_splits(e, n, n->mean), var);
}

// Padding samples of a short batch are part of its statistics.
static void note_statistics(Expansion *e, NodeId first, NodeId y, NodeId x) {
    unsigned channels = 1u << (node_type(e, x)->rank - 1);
    if (all_valid(e) || samples_need_mask(e, x, channels))
        return;
    samples_allow_mixing(e, first, y, x);
    const Origin *from = &e->graph->origin;
    if (e->recipe.statistics == NULL)
        e->recipe.statistics = arena_format(e->arena, "%s, %s:%d", from->path,
                                            from->file, from->line);
}

static bool expect_splits(Expansion *e, const Call *c, const Value *x,
                          int64_t splits) {
    Type t = *node_type(e, x->node);
    if (t.dim[0] % splits == 0)
        return true;
    Diagnostic *d = report(e->diags, D_indivisible_groups, c->at,
                           "a batch of %lld does not divide into %lld splits",
                           (long long)t.dim[0], (long long)splits);
    diag_secondary(d, x->at, "this is %s", tensor_text(e, x->node));
    return false;
}

static bool expect_statistics(Expansion *e, const Call *c, const Value *x,
                              int64_t splits) {
    Type t = *node_type(e, x->node);
    bool frozen = call_flag(c, P_batch_norm_frozen);
    if (t.rank >= 2 && frozen)
        return true;
    if (t.rank >= 2 && !expect_splits(e, c, x, splits))
        return false;
    if (t.rank >= 2 && type_count(&t) / t.dim[t.rank - 1] / splits > 1)
        return true;
    Diagnostic *d =
        report(e->diags, t.rank < 2 ? D_wrong_rank : D_out_of_range, c->at,
               "batch_norm needs more than one value for each channel");
    diag_secondary(d, x->at, "this is %s", tensor_text(e, x->node));
    return false;
}

// An eps of 1 or more is likely a number of channels.
static bool expect_small(Expansion *e, const Call *c, ParamId eps) {
    const Value *v = call_arg(c, eps);
    if (v->number < 1)
        return true;
    Diagnostic *d = report(e->diags, D_out_of_range, v->at,
                           "`eps` of %s must be below 1", c->builtin->name);
    diag_note(d, "the channels of the input are known; leave them out");
    return false;
}

Value lower_batch_norm(Expansion *e, const Call *c) {
    const Value *x = call_arg(c, P_batch_norm_x);
    int64_t splits = call_count(c, P_batch_norm_ghost);
    if (!expect_small(e, c, P_batch_norm_eps) ||
        !expect_statistics(e, c, x, splits))
        return value_poison();
    NodeId first = e->graph->count;
    Type t = *node_type(e, x->node);
    Norm n = {.x = as_float(e, x->node),
              .channels = type_of(F32, 1, &t.dim[t.rank - 1]),
              .eps = call_number(c, P_batch_norm_eps),
              .momentum = call_number(c, P_batch_norm_momentum),
              .splits = splits};
    n.statistic = n.channels;
    if (splits > 1)
        n.statistic = type_of(F32, 2, (int64_t[]){splits, t.dim[t.rank - 1]});
    n.scale = affine_parameter(e, c, call_flag(c, P_batch_norm_scale), "scale",
                               n.channels, 1);
    n.bias = affine_parameter(e, c, call_flag(c, P_batch_norm_bias), "bias",
                              n.channels, 0);
    n.mean = statistic_new(e, c, "running_mean", n.statistic, 0);
    n.var = statistic_new(e, c, "running_var", n.statistic, 1);
    if (n.scale == NO_NODE || n.bias == NO_NODE || n.mean == NO_NODE ||
        n.var == NO_NODE)
        return value_poison();
    if (!e->training || call_flag(c, P_batch_norm_frozen))
        return value_tensor(norm_running(e, &n), c->at);
    NodeId y = splits > 1 ? ghost_train(e, &n) : norm_train(e, &n);
    note_biased(e, c, x, first);
    note_statistics(e, first, y, n.x);
    return value_tensor(y, c->at);
}

// ---- layer_norm and group_norm ----

// (x - mean) / sqrt(var + eps) over axes with `count` numbers.
static NodeId standardized(Expansion *e, NodeId x, int count_axes,
                           const int64_t *axes, double count, double eps) {
    Graph *g = e->graph;
    NodeId sum = graph_reduce(g, OP_sum, x, count_axes, axes);
    NodeId var = graph_reduce(g, OP_var, x, count_axes, axes);
    NodeId mean = add_binary(e, OP_div, sum, number_node(e, count));
    NodeId root =
        add_unary(e, OP_rsqrt, add_binary(e, OP_add, var, number_node(e, eps)));
    return add_binary(e, OP_mul, add_binary(e, OP_sub, x, mean), root);
}

// x scale + bias for each channel, each if requested.
static Value rescaled(Expansion *e, const Call *c, NodeId x, bool scale,
                      bool bias) {
    Type t = *node_type(e, x);
    Type channels = type_of(F32, 1, &t.dim[t.rank - 1]);
    if (scale)
        x = add_binary(e, OP_mul, x,
                       affine_parameter(e, c, true, "scale", channels, 1));
    if (bias)
        x = add_binary(e, OP_add, x,
                       affine_parameter(e, c, true, "bias", channels, 0));
    return value_tensor(x, c->at);
}

// Over the channels of each position.
Value lower_layer_norm(Expansion *e, const Call *c) {
    const Value *x = call_arg(c, P_layer_norm_x);
    Type t = *node_type(e, x->node);
    if (t.rank < 2) {
        Diagnostic *d =
            report(e->diags, D_wrong_rank, c->at, "layer_norm needs channels");
        diag_secondary(d, x->at, "this is %s", tensor_text(e, x->node));
        return value_poison();
    }
    if (!expect_small(e, c, P_layer_norm_eps))
        return value_poison();
    int64_t last = t.rank - 1;
    NodeId y =
        standardized(e, as_float(e, x->node), 1, &last, (double)t.dim[last],
                     call_number(c, P_layer_norm_eps));
    return rescaled(e, c, y, call_flag(c, P_layer_norm_scale),
                    call_flag(c, P_layer_norm_bias));
}

// Over the positions and a group of channels of each sample: x as [N, M,
// groups, C/groups].
Value lower_group_norm(Expansion *e, const Call *c) {
    const Value *x = call_arg(c, P_group_norm_x);
    Type t = *node_type(e, x->node);
    int64_t groups = call_count(c, P_group_norm_groups);
    int64_t channels = t.rank ? t.dim[t.rank - 1] : 0;
    if (t.rank < 2 || channels % groups != 0) {
        Diagnostic *d =
            report(e->diags, t.rank < 2 ? D_wrong_rank : D_indivisible_groups,
                   c->at, "%lld channels do not divide into %lld groups",
                   (long long)channels, (long long)groups);
        diag_secondary(d, x->at, "this is %s", tensor_text(e, x->node));
        return value_poison();
    }
    if (!expect_small(e, c, P_group_norm_eps))
        return value_poison();
    int64_t view[] = {t.dim[0], type_count(&t) / t.dim[0] / channels, groups,
                      channels / groups};
    NodeId y = graph_reshape(e->graph, as_float(e, x->node), 4, view);
    y = standardized(e, y, 2, (int64_t[]){1, 3},
                     (double)view[1] * (double)view[3],
                     call_number(c, P_group_norm_eps));
    y = graph_reshape(e->graph, y, t.rank, t.dim);
    return rescaled(e, c, y, call_flag(c, P_group_norm_scale),
                    call_flag(c, P_group_norm_bias));
}
