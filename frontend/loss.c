// Losses: one number for each sample, [N, 1]; how they are reduced; and what
// is counted beside them.
//
// A last batch that is short is filled up with repeated samples, which must
// not count: in training unless drop_last leaves such batches out, in
// evaluation always.

#include "frontend/expand.h"

#include <string.h>

// ---- the samples that count ----

static bool all_count(const Expansion *e) {
    return e->training && e->recipe.drop_last;
}

// 1 for samples that count and 0 for the others: f32[N, 1].
static NodeId sample_mask(Expansion *e) {
    Graph *g = e->graph;
    int64_t n = e->recipe.batch;
    NodeId place = graph_iota(g, type_of(I32, 2, (int64_t[]){n, 1}), 0);
    return as_float(e, graph_op2(g, OP_lt, place, input_node(e, INPUT_VALID)));
}

static NodeId sample_count(Expansion *e) {
    if (all_count(e))
        return number_node(e, (double)e->recipe.batch);
    return as_float(e, input_node(e, INPUT_VALID));
}

// The sum over the samples that count of f32[N, 1].
static NodeId sum_samples(Expansion *e, NodeId x) {
    if (!all_count(e))
        x = graph_op2(e->graph, OP_mul, x, sample_mask(e));
    return graph_reduce(e->graph, OP_sum, x, 2, (int64_t[]){0, 1});
}

// ---- losses ----

static bool is_label(const Expansion *e, const Value *v) {
    return e->label == v->node;
}

static bool expect_label(Expansion *e, const Call *c, const Value *v) {
    if (is_label(e, v))
        return true;
    Diagnostic *d =
        report(e->diags, D_kind, v->at.source ? v->at : c->at,
               "the second argument of %s must be `label`", c->builtin->name);
    if (is_label(e, &c->arg[0]))
        diag_note(d, "the output comes first: %s(output, label)",
                  c->builtin->name);
    return false;
}

static bool expect_classes(Expansion *e, const Call *c, const Value *output) {
    Type t = node_type(e, output->node);
    if (e->data.classes == 0 || t.dim[1] >= e->data.classes)
        return true;
    Diagnostic *d = report(e->diags, D_data, c->at,
                           "the data has %lld classes and the output %lld",
                           (long long)e->data.classes, (long long)t.dim[1]);
    diag_place(d, output->at, "this is %s", type_text(e, t));
    return false;
}

Value lower_cross_entropy(Expansion *e, const Call *c) {
    const Value *output = call_arg(c, P_cross_entropy_output);
    const Value *label = call_arg(c, P_cross_entropy_label);
    if (!expect_label(e, c, label) || !expect_rank(e, c, output, 2) ||
        !expect_classes(e, c, output))
        return value_poison();
    double smoothing = call_number(c, P_cross_entropy_smoothing);
    Attr attr = attr_float(ATTR_smoothing, smoothing);
    NodeId arg[] = {as_float(e, output->node), label->node};
    return value_tensor(graph_add(e->graph, (Node){.op = OP_cross_entropy,
                                                   .num_args = 2,
                                                   .arg = arg,
                                                   .num_attrs = smoothing != 0,
                                                   .attr = &attr,
                                                   .group = -1}),
                        c->at);
}

// (output - label)^2 for outputs of one number each.
Value lower_mse(Expansion *e, const Call *c) {
    const Value *output = call_arg(c, P_mse_output);
    const Value *label = call_arg(c, P_mse_label);
    if (!expect_label(e, c, label) || !expect_rank(e, c, output, 2))
        return value_poison();
    Type t = node_type(e, output->node);
    if (t.dim[1] != 1) {
        Diagnostic *d = report(e->diags, D_shapes, c->at,
                               "mse needs an output of one number, f32[N, 1]");
        diag_place(d, output->at, "this is %s", type_text(e, t));
        diag_note(d, "cross_entropy is the loss for classes");
        return value_poison();
    }
    NodeId target = graph_reshape(e->graph, label->node, 2, t.dim);
    NodeId x = as_float(e, output->node), y = as_float(e, target);
    NodeId error = graph_op2(e->graph, OP_sub, x, y);
    return value_tensor(graph_op2(e->graph, OP_mul, error, error), c->at);
}

// ---- reductions ----

// The mean of x over all but the batch, [N,1].
static NodeId sample_means(Expansion *e, NodeId x) {
    Type t = node_type(e, x);
    int64_t axes[MAX_RANK], column[] = {t.dim[0], 1};
    for (int i = 1; i < t.rank; i++)
        axes[i - 1] = i;
    double count = (double)(type_count(t) / t.dim[0]);
    if (count == 1)
        return graph_reshape(e->graph, x, 2, column);
    NodeId sum = graph_reduce(e->graph, OP_sum, x, t.rank - 1, axes);
    sum = graph_reshape(e->graph, sum, 2, column);
    return graph_op2(e->graph, OP_div, sum, number_node(e, count));
}

Value reduce_loss(Expansion *e, const Call *c, bool mean) {
    const Value *x = &c->arg[0];
    Type t = node_type(e, x->node);
    if (e->phase != PHASE_LOSS) {
        Diagnostic *d = report(e->diags, D_missing, c->at, "%s needs `axes`",
                               c->builtin->name);
        diag_note(d, "as in: %s(x, axes=[height, width])", c->builtin->name);
        return value_poison();
    }
    if (t.rank == 0 || t.dim[0] != e->recipe.batch) {
        Diagnostic *d = report(e->diags, D_rank, c->at,
                               "%s needs numbers for each sample, f32[N, ...]",
                               c->builtin->name);
        diag_place(d, x->at, "this is %s", type_text(e, t));
        return value_poison();
    }
    double each = (double)(type_count(t) / t.dim[0]);
    e->loss.samples = sample_means(e, as_float(e, x->node));
    NodeId total = sum_samples(e, e->loss.samples);
    if (!mean && each != 1)
        total = graph_op2(e->graph, OP_mul, total, number_node(e, each));
    else if (mean && all_count(e))
        total = graph_op2(e->graph, OP_mul, total,
                          number_node(e, 1.0 / (double)e->recipe.batch));
    else if (mean)
        total = graph_op2(e->graph, OP_div, total, sample_count(e));
    e->loss.total = total;
    return value_tensor(total, c->at);
}

// ---- metrics ----

static void accumulate(Expansion *e, const char *name, NodeId value) {
    NodeId state =
        graph_state(e->graph, name, STATE_METRIC, type_scalar(F32), 0);
    graph_assign(e->graph, state, graph_op2(e->graph, OP_add, state, value));
}

// How many samples have their largest output at their label.
static NodeId count_correct(Expansion *e, NodeId output) {
    Graph *g = e->graph;
    Attr last = attr_int(ATTR_axis, 1);
    NodeId best = graph_add(g, (Node){.op = OP_argmax,
                                      .num_args = 1,
                                      .arg = &output,
                                      .num_attrs = 1,
                                      .attr = &last,
                                      .group = -1});
    int64_t column[] = {e->recipe.batch, 1};
    NodeId label = graph_reshape(g, input_node(e, INPUT_LABEL), 2, column);
    return sum_samples(e, as_float(e, graph_op2(g, OP_eq, best, label)));
}

void metrics_add(Expansion *e, NodeId output) {
    accumulate(e, "metric.loss", sum_samples(e, e->loss.samples));
    if (node_type(e, output).rank == 2)
        accumulate(e, "metric.correct", count_correct(e, output));
    accumulate(e, "metric.count", sample_count(e));
}
