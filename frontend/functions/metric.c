// Metrics: sums over valid samples, which the runtime reads and clears.
//
// Each is a compensated sum (Kahan, 1965): two states of f32, NAME and the
// rounding error of its last addition, NAME.low.  The runtime adds them in
// double.  No pass reorders the four operations, since none reorders sums or
// folds x - x; nor does a compiler, with the flags in tools/compiler.c and
// runtime/cuda/kernels/nvrtc.def.  docs/numerics.md derives the error.

#include "frontend/functions/functions.h"

#include <string.h>

static const struct {
    const char *name;
    bool is_share;
} info[] = {
    {"accuracy", true},
    {"top5", true},
    {"loss", false},
    {"perplexity", false},
};
enum { NUM_METRICS = sizeof info / sizeof info[0] };

const char *metric_name(int i) {
    return i < NUM_METRICS ? info[i].name : NULL;
}

const char *metric_named(const Expr *x) {
    for (int i = 0; x->kind == EXPR_NAME && i < NUM_METRICS; i++)
        if (strcmp(x->text, info[i].name) == 0)
            return info[i].name;
    return NULL;
}

bool metric_is_share(const char *metric) {
    for (int i = 0; i < NUM_METRICS; i++)
        if (strcmp(info[i].name, metric) == 0)
            return info[i].is_share;
    return false;
}

bool metric_expect(Expansion *e, const char *metric, Span at) {
    const Recipe *r = &e->recipe;
    if ((strcmp(metric, "top5") != 0 || r->top5) &&
        (strcmp(metric, "perplexity") != 0 || r->perplexity))
        return true;
    Diagnostic *d = report(e->diags, D_metric_not_measured, at,
                           "`%s` is not among the metrics of eval", metric);
    diag_note(d, "as in: eval every 1 epoch { metrics = [accuracy, %s] }",
              metric);
    return false;
}

static NodeId metric(Expansion *e, const char *name) {
    return graph_state(e->graph, name, STATE_METRIC, type_scalar(F32), 0);
}

static void accumulate(Expansion *e, const char *name, NodeId value,
                       bool overflows) {
    Graph *g = e->graph;
    NodeId high = metric(e, name);
    NodeId low = metric(e, arena_format(e->arena, "%s.low", name));
    NodeId more = graph_op2(g, OP_add, value, low);
    NodeId sum = graph_op2(g, OP_add, high, more);
    NodeId added = graph_op2(g, OP_sub, sum, high);
    NodeId lost = graph_op2(g, OP_sub, more, added);
    // infinity - infinity would make an infinite sum NaN in the next step.
    if (overflows)
        lost = graph_op3(g, OP_select, graph_op1(g, OP_finite, sum), lost,
                         number_node(e, 0));
    graph_assign(g, high, sum);
    graph_assign(g, low, lost);
}

// Whether labels are classes, one for each row of an output with a column for
// each class.
static bool has_classes(Type label, Type output) {
    output.rank--;
    return label.dtype == I32 && output.rank >= 1 &&
           output.dim[output.rank] > 1 && type_has_shape(&label, &output);
}

// The labels with a last axis of size 1, to compare with the output's classes.
static NodeId label_column(Expansion *e, Type output) {
    output.dim[output.rank - 1] = 1;
    return graph_reshape(e->graph, e->unblended_label, output.rank, output.dim);
}

// The number of samples whose largest output is at their label; of a sample
// with several rows, their fraction.
static NodeId count_correct(Expansion *e, NodeId output) {
    Graph *g = e->graph;
    Type t = *node_type(e, output);
    int64_t classes = t.dim[t.rank - 1];
    Attr last = attr_int(ATTR_axis, 1);
    // Classes may be samples.
    output = samples_mask(e, output, output, 1u << (t.rank - 1), LOWEST);
    // Row by row, as in the loss.
    NodeId rows = graph_reshape(g, output, 2,
                                (int64_t[]){type_count(&t) / classes, classes});
    NodeId best = graph_add(g, (Node){.op = OP_argmax,
                                      .num_args = 1,
                                      .arg = &rows,
                                      .num_attrs = 1,
                                      .attr = &last,
                                      .group = -1});
    t.dim[t.rank - 1] = 1;
    best = graph_reshape(g, best, t.rank, t.dim);
    NodeId hit = graph_op2(g, OP_eq, best, label_column(e, t));
    return sum_samples(e, sample_means(e, as_float(e, hit)));
}

// The number of samples whose output is above 0 exactly if their label is above
// 1/2; of a sample with several labels, their fraction.  A NaN output is wrong.
static NodeId count_binary(Expansion *e, NodeId output) {
    Graph *g = e->graph;
    Type t = *node_type(e, output);
    NodeId zero = number_node(e, 0);
    NodeId label =
        graph_reshape(g, as_float(e, e->unblended_label), t.rank, t.dim);
    NodeId above = as_float(e, graph_op2(g, OP_lt, zero, output));
    NodeId below = as_float(e, graph_op2(g, OP_le, output, zero));
    NodeId positive = graph_op2(g, OP_lt, number_node(e, 0.5), label);
    NodeId hit = graph_op3(g, OP_select, positive, above, below);
    return sum_samples(e, sample_means(e, hit));
}

// Sums over the last axis, with valid classes only.
static NodeId sum_classes(Expansion *e, NodeId x) {
    int64_t last = node_type(e, x)->rank - 1;
    x = samples_mask(e, x, x, 1u << last, 0);
    return graph_reduce(e->graph, OP_sum, x, 1, &last);
}

// The number of samples with fewer than five outputs above the label's.  A NaN
// output counts as above.
static NodeId count_top5(Expansion *e, NodeId output) {
    enum { PLACES = 5 };
    Graph *g = e->graph;
    Type t = *node_type(e, output);
    Type along = type_of(I32, 1, &t.dim[t.rank - 1]);
    NodeId own =
        graph_op2(g, OP_eq, label_column(e, t), graph_iota(g, along, 0));
    NodeId score =
        sum_classes(e, graph_op3(g, OP_select, own, output, number_node(e, 0)));
    NodeId above = graph_op1(g, OP_not, graph_op2(g, OP_le, output, score));
    NodeId rank = sum_classes(e, as_float(e, above));
    NodeId hit = graph_op2(g, OP_lt, rank, number_node(e, PLACES));
    return sum_samples(e, sample_means(e, as_float(e, hit)));
}

// The loss decides about the accuracy: by class, else by sign.
static void count_accuracy(Expansion *e, NodeId output) {
    Type t = *node_type(e, output);
    Type label = *node_type(e, e->unblended_label);
    bool classes = has_classes(label, t);
    bool logits = e->loss.is_binary && labels_each(label, t);
    e->recipe.output = classes  ? OUTPUT_CLASSES
                       : logits ? OUTPUT_LABELS
                                : OUTPUT_VALUES;
    if (classes)
        accumulate(e, "metric.correct", count_correct(e, output), false);
    else if (logits)
        accumulate(e, "metric.correct", count_binary(e, output), false);
    if (classes && e->recipe.top5 && !e->training)
        accumulate(e, "metric.top5", count_top5(e, output), false);
}

void metrics_add(Expansion *e, NodeId output) {
    accumulate(e, "metric.loss", sum_samples(e, e->loss.samples), true);
    if (e->label != NO_NODE)
        count_accuracy(e, output);
    accumulate(e, "metric.count", sample_count(e), false);
}
