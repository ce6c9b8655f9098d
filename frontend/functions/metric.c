// Metrics: sums over valid samples, which the runtime reads and clears.
//
// Each is a compensated sum (Kahan, 1965): two states of f32, NAME and the
// rounding error of its last addition, NAME.low.  The runtime adds them in
// double.  No pass reorders the four operations, since none reorders sums or
// folds x - x; nor does a compiler, with the flags in tools/compiler.c and
// runtime/cuda/kernels/nvrtc.def.  docs/numerics.md derives the error.

#include "base/metrics.h"
#include "frontend/functions/functions.h"

#include <string.h>

// ---- names ----

// The state of some sums: metric.SUMS, or metric.OUTPUT.SUMS of a named output.
// Training measures one accuracy, which has the first name: that of the output
// that the list names first for it.
static const char *sums_state(Expansion *e, MetricSums sums, Atom output) {
    static const char *const name[] = {
        [SUMS_LOSS] = "loss",     [SUMS_CORRECT] = "correct",
        [SUMS_TOP5] = "top5",     [SUMS_COUNTS] = "counts",
        [SUMS_ERRORS] = "errors", [SUMS_MOMENTS] = "moments",
        [SUMS_SCORES] = "scores"};
    Atom first = listed_output(e, sums);
    bool trains = sums == SUMS_CORRECT && (first == NULL || first == output);
    return output == NULL || trains
               ? arena_format(e->arena, "metric.%s", name[sums])
               : arena_format(e->arena, "metric.%s.%s", output, name[sums]);
}

static bool has_sums(Expansion *e, MetricSums sums, Atom output) {
    return graph_find(e->graph, sums_state(e, sums, output)) != NO_NODE;
}

static Atom selected_name(const Expansion *e) {
    return e->num_named > 0 ? e->named[e->selected].name : NULL;
}

// A state of the selected output's sums, or of a part of them.
static const char *part_state(Expansion *e, MetricSums sums, const char *part) {
    return arena_format(e->arena, "%s%s", sums_state(e, sums, selected_name(e)),
                        part);
}

// Whether those sums are of the selected output: one that a metric names, or
// the first that has them.  Training measures one output.
static bool measures(Expansion *e, MetricSums sums) {
    Atom first = listed_output(e, sums), own = selected_name(e);
    if (first == NULL)
        return e->sums_output[sums] == NULL;
    bool listed = first == own;
    for (int i = 0; i < e->num_listed && !e->training; i++)
        listed |= metric_info[e->listed[i].id].sums == sums &&
                  e->listed[i].output == own;
    return listed;
}

// The same, in an evaluation whose metrics need them.
static bool evaluates(Expansion *e, MetricSums sums) {
    return metrics_need(e->recipe.metrics, sums) && measures(e, sums);
}

// ---- sums ----

static NodeId metric(Expansion *e, const char *name, Type type) {
    return graph_state(e->graph, name, STATE_METRIC, type, 0);
}

static void accumulate(Expansion *e, const char *name, NodeId value,
                       bool overflows) {
    Graph *g = e->graph;
    Type type = *node_type(e, value);
    NodeId high = metric(e, name, type);
    NodeId low = metric(e, arena_format(e->arena, "%s.low", name), type);
    NodeId more = graph_op2(g, OP_add, value, low);
    NodeId sum = graph_op2(g, OP_add, high, more);
    NodeId added = graph_op2(g, OP_sub, sum, high);
    NodeId lost = graph_op2(g, OP_sub, more, added);
    // infinity - infinity would make an infinite sum NaN in the next step.
    if (overflows) {
        NodeId zero = number_node(e, 0), finite = graph_op1(g, OP_finite, sum);
        lost = graph_op3(g, OP_select, finite, lost, zero);
    }
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

// The index of the largest output, with a last axis of size 1.
static NodeId best_class(Expansion *e, NodeId output) {
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
    return graph_reshape(g, best, t.rank, t.dim);
}

// The number of samples whose largest output is at their label; of a sample
// with several rows, their fraction.
static NodeId count_correct(Expansion *e, NodeId output, NodeId best) {
    NodeId hit = graph_op2(e->graph, OP_eq, best,
                           label_column(e, *node_type(e, output)));
    return sum_samples(e, sample_shares(e, hit));
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
    NodeId own = graph_iota(g, along, 0);
    own = graph_op2(g, OP_eq, label_column(e, t), own);
    NodeId score =
        sum_classes(e, graph_op3(g, OP_select, own, output, number_node(e, 0)));
    NodeId above = graph_op1(g, OP_not, graph_op2(g, OP_le, output, score));
    NodeId rank = sum_classes(e, as_float(e, above));
    NodeId hit = graph_op2(g, OP_lt, rank, number_node(e, PLACES));
    return sum_samples(e, sample_shares(e, hit));
}

// ---- counts ----

// x as a matrix: a row for each sample or pixel, zeros in invalid samples.
static NodeId valid_rows(Expansion *e, NodeId x, int64_t columns) {
    x = samples_mask(e, x, x, 1u, 0);
    int64_t rows = type_count(node_type(e, x)) / columns;
    return graph_reshape(e->graph, x, 2, (int64_t[]){rows, columns});
}

// 1 at the class of each row, f32[..., K].  A label of -1 has none.
static NodeId class_columns(Expansion *e, NodeId column, int64_t classes) {
    NodeId each = graph_iota(e->graph, type_of(I32, 1, &classes), 0);
    return as_float(e, graph_op2(e->graph, OP_eq, column, each));
}

// The same of the labels, without those that the loss ignores.
static NodeId label_columns(Expansion *e, Type output, int64_t classes) {
    NodeId label = label_column(e, output), counted = e->loss.counted;
    NodeId columns = class_columns(e, label, classes);
    Type rows = *node_type(e, label);
    if (counted == NO_NODE ||
        type_count(node_type(e, counted)) != type_count(&rows))
        return columns;
    counted = graph_reshape(e->graph, counted, rows.rank, rows.dim);
    return graph_op2(e->graph, OP_mul, columns, as_float(e, counted));
}

// The confusion matrix, f32[K, K]: rows are labels, columns the predicted
// classes.
static NodeId count_classes(Expansion *e, NodeId output, NodeId best) {
    Type t = *node_type(e, output);
    int64_t classes = t.dim[t.rank - 1];
    NodeId arg[] = {
        valid_rows(e, label_columns(e, t, classes), classes),
        valid_rows(e, class_columns(e, best, classes), classes)};
    Attr transpose = attr_int(ATTR_ta, 1);
    return graph_add(e->graph, (Node){.op = OP_matmul,
                                      .num_args = 2,
                                      .arg = arg,
                                      .num_attrs = 1,
                                      .attr = &transpose,
                                      .group = -1});
}

// Adds the sum of each column, f32[K].
static void accumulate_columns(Expansion *e, const char *name, NodeId x) {
    Type t = *node_type(e, x);
    int64_t first = 0;
    NodeId rows = valid_rows(e, x, t.dim[t.rank - 1]);
    accumulate(e, name, graph_reduce(e->graph, OP_sum, rows, 1, &first), false);
}

// Whether each label is positive: bool[..., K].
static NodeId positive_labels(Expansion *e, Type output) {
    NodeId label = graph_reshape(e->graph, as_float(e, e->unblended_label),
                                 output.rank, output.dim);
    return graph_op2(e->graph, OP_lt, number_node(e, 0.5), label);
}

// Adds the true positives, the positive labels and the positive outputs of each
// label.
static void count_labels(Expansion *e, NodeId output) {
    Graph *g = e->graph;
    NodeId is = positive_labels(e, *node_type(e, output));
    NodeId found = graph_op2(g, OP_lt, number_node(e, 0), output);
    NodeId both = graph_op2(g, OP_and, is, found);
    accumulate_columns(e, part_state(e, SUMS_COUNTS, ""), as_float(e, both));
    accumulate_columns(e, part_state(e, SUMS_COUNTS, ".label"),
                       as_float(e, is));
    accumulate_columns(e, part_state(e, SUMS_COUNTS, ".output"),
                       as_float(e, found));
}

// ---- ranks ----

// The label of each row as a class, f32[..., 1]; -1: it does not count.
static NodeId class_or_none(Expansion *e, Type output) {
    NodeId label = label_column(e, output), counted = e->loss.counted;
    Type rows = *node_type(e, label);
    label = as_float(e, label);
    if (counted == NO_NODE ||
        type_count(node_type(e, counted)) != type_count(&rows))
        return label;
    counted = graph_reshape(e->graph, counted, rows.rank, rows.dim);
    return graph_op3(e->graph, OP_select, counted, label, number_node(e, -1));
}

static void store_rows(Expansion *e, const char *name, NodeId x) {
    Type t = *node_type(e, x);
    int64_t columns = t.dim[t.rank - 1];
    NodeId rows = graph_reshape(
        e->graph, x, 2, (int64_t[]){type_count(&t) / columns, columns});
    NodeId to = graph_state(e->graph, name, STATE_SCORES,
                            *node_type(e, rows), 0);
    // Rows that do not count are marked.
    samples_allow_mixing(e, graph_assign(e->graph, to, rows), NO_NODE,
                         NO_NODE);
}

// Stores the outputs of a batch, f32[M, K], and the labels of its rows, f32[M,
// 1] for classes or f32[M, K]; -1 for a row that does not count.  The runtime
// ranks those of all batches (runtime/session/scores.c).
static void store_scores(Expansion *e, NodeId output, OutputKind kind) {
    Type t = *node_type(e, output);
    NodeId label = kind == OUTPUT_CLASSES
                       ? class_or_none(e, t)
                       : as_float(e, positive_labels(e, t));
    label = samples_mask(e, label, label, 1u, -1);
    // Classes may be samples.
    if (kind == OUTPUT_CLASSES)
        output = samples_mask(e, output, output, 1u << (t.rank - 1), LOWEST);
    store_rows(e, part_state(e, SUMS_SCORES, ""), output);
    store_rows(e, part_state(e, SUMS_SCORES, ".label"), label);
}

// ---- values ----

static NodeId square(Expansion *e, NodeId x) {
    return graph_op2(e->graph, OP_mul, x, x);
}

// The sums over samples of the mean absolute and the mean squared error.
static void add_errors(Expansion *e, NodeId error) {
    NodeId absolute =
        sample_means(e, graph_op1(e->graph, OP_abs, error));
    accumulate(e, part_state(e, SUMS_ERRORS, ""), sum_samples(e, absolute),
               false);
    accumulate(e, part_state(e, SUMS_ERRORS, ".square"),
               sum_samples(e, sample_means(e, square(e, error))), false);
}

// The first row of x, which always counts, with axes of size 1 before the last.
static NodeId first_row(Expansion *e, NodeId x) {
    Graph *g = e->graph;
    Type t = *node_type(e, x);
    int64_t columns = t.dim[t.rank - 1], rows = type_count(&t) / columns;
    NodeId all = graph_reshape(g, x, 2, (int64_t[]){rows, columns});
    NodeId first = graph_slice(g, all, (int64_t[]){0, 0},
                               (int64_t[]){rows - 1, 0});
    samples_allow_mixing(e, all, NO_NODE, NO_NODE);
    for (int i = 0; i < t.rank - 1; i++)
        t.dim[i] = 1;
    return graph_reshape(g, first, t.rank, t.dim);
}

// Adds the squared deviations of each column from its mean over all samples so
// far (Chan, Golub and LeVeque, 1979): a sum of squares would lose them where
// the mean is large.  The mean of a batch is that of differences to its first
// row, so equal numbers have it exactly, and no deviation.  The states are the
// number of rows, the mean and the sum.
static void add_deviations(Expansion *e, NodeId x) {
    Graph *g = e->graph;
    Type t = *node_type(e, x);
    int64_t columns = t.dim[t.rank - 1], first = 0;
    double rows_each = (double)(type_count(&t) / (t.dim[0] * columns));
    NodeId rows = number_node(e, rows_each);
    rows = graph_op2(g, OP_mul, sample_count(e), rows);
    NodeId shift = first_row(e, x);
    x = graph_op2(g, OP_sub, x, shift);
    NodeId sum =
        graph_reduce(g, OP_sum, valid_rows(e, x, columns), 1, &first);
    NodeId mean = graph_op2(g, OP_div, sum, rows);
    NodeId own = valid_rows(e, square(e, graph_op2(g, OP_sub, x, mean)),
                            columns);
    shift = graph_reshape(g, shift, 1, &columns);
    mean = graph_op2(g, OP_add, shift, mean);
    NodeId before =
        metric(e, part_state(e, SUMS_MOMENTS, ".rows"), type_scalar(F32));
    NodeId all = graph_op2(g, OP_add, before, rows);
    NodeId mean_before =
        metric(e, part_state(e, SUMS_MOMENTS, ".mean"), *node_type(e, mean));
    NodeId moved = graph_op2(g, OP_sub, mean, mean_before);
    NodeId share = graph_op2(g, OP_div, rows, all);
    NodeId between = graph_op2(g, OP_mul, before, share);
    between = graph_op2(g, OP_mul, square(e, moved), between);
    NodeId within = graph_reduce(g, OP_sum, own, 1, &first);
    accumulate(e, part_state(e, SUMS_MOMENTS, ""),
               graph_op2(g, OP_add, within, between), false);
    graph_assign(g, before, all);
    graph_assign(g, mean_before,
                 graph_op2(g, OP_add, mean_before,
                           graph_op2(g, OP_mul, moved, share)));
}

static void measure_values(Expansion *e, NodeId output) {
    Type t = *node_type(e, output);
    NodeId label = graph_reshape(e->graph, as_float(e, e->unblended_label),
                                 t.rank, t.dim);
    NodeId error = graph_op2(e->graph, OP_sub, output, label);
    if (evaluates(e, SUMS_ERRORS))
        add_errors(e, error);
    if (!evaluates(e, SUMS_MOMENTS))
        return;
    add_deviations(e, label);
    accumulate_columns(e, part_state(e, SUMS_MOMENTS, ".error"),
                       square(e, error));
}

// ---- all ----

// The loss decides: classes, else logits of labels, else values.
static OutputKind output_kind(const Expansion *e, Type output) {
    Type label = *node_type(e, e->unblended_label);
    return has_classes(label, output) ? OUTPUT_CLASSES
           : e->loss.is_binary && labels_each(label, output) ? OUTPUT_LABELS
                                                             : OUTPUT_VALUES;
}

// Counts need f32, whatever the precision of the model.
static void measure_evaluation(Expansion *e, NodeId output, NodeId best) {
    OutputKind kind = e->recipe.output;
    bool counts = evaluates(e, SUMS_COUNTS), full = e->full_precision;
    e->full_precision = e->graph->origin.full_precision = true;
    if (best != NO_NODE && evaluates(e, SUMS_TOP5))
        accumulate(e, part_state(e, SUMS_TOP5, ""), count_top5(e, output),
                   false);
    if (best != NO_NODE && counts)
        accumulate(e, part_state(e, SUMS_COUNTS, ""),
                   count_classes(e, output, best), false);
    else if (kind == OUTPUT_LABELS && counts)
        count_labels(e, output);
    if (kind != OUTPUT_VALUES && evaluates(e, SUMS_SCORES))
        store_scores(e, output, kind);
    if (kind == OUTPUT_VALUES &&
        labels_each(*node_type(e, e->unblended_label), *node_type(e, output)))
        measure_values(e, output);
    e->full_precision = e->graph->origin.full_precision = full;
}

static void measure(Expansion *e, NodeId output) {
    NodeId best = NO_NODE;
    bool correct = measures(e, SUMS_CORRECT);
    e->recipe.output = output_kind(e, *node_type(e, output));
    if (e->recipe.output == OUTPUT_CLASSES) {
        best = best_class(e, output);
        if (correct)
            accumulate(e, part_state(e, SUMS_CORRECT, ""),
                       count_correct(e, output, best), false);
    } else if (e->recipe.output == OUTPUT_LABELS && correct) {
        accumulate(e, part_state(e, SUMS_CORRECT, ""), count_binary(e, output),
                   false);
    }
    if (!e->training)
        measure_evaluation(e, output, best);
}

// at: the metric in the list; NULL: it is not there.
static void report_output(Expansion *e, MetricId id, const Span *at) {
    const MetricInfo *m = &metric_info[id];
    bool values = m->sums == SUMS_ERRORS || m->sums == SUMS_MOMENTS;
    const char *output = tensor_text(e, e->output.node);
    Diagnostic *d =
        report(e->diags, D_metric_not_measured, at != NULL ? *at : e->output.at,
               "`%s` needs an output of %s and labels", m->name,
               values ? "values" : "classes");
    if (at != NULL)
        diag_secondary(d, e->output.at, "this is %s", output);
    else
        diag_label(d, "this is %s", output);
    if (!values && m->unit != METRIC_TABLE && id != METRIC_top5)
        diag_note(d, "or logits, as in: loss = mean(bce_with_logits(output, "
                     "label))");
}

// Whether the evaluation has the sums of a metric of an output, which is then
// the selected one; NULL: the first that the list names for the sums, or else
// the first that has them.
static bool is_measured(Expansion *e, MetricId id, Atom output) {
    MetricSums sums = metric_info[id].sums;
    output = output != NULL                   ? output
             : listed_output(e, sums) != NULL ? listed_output(e, sums)
                                              : e->sums_output[sums];
    for (int i = 0; i < e->num_named && output != NULL; i++)
        if (e->named[i].name == output)
            output_select(e, i);
    return has_sums(e, sums, output) && (metric_info[id].unit != METRIC_TABLE ||
                                         e->recipe.output == OUTPUT_CLASSES);
}

// The metrics of named outputs, once each.
static void measure_add(Expansion *e, MetricId id, Atom output) {
    Recipe *r = &e->recipe;
    OutputMetric *all =
        ARENA_ARRAY(e->arena, (size_t)r->num_output_metrics + 1, OutputMetric);
    OutputMetric m = {metric_name_of(e, id, output), (int)id, selected_name(e)};
    for (int i = 0; i < r->num_output_metrics; i++) {
        all[i] = r->output_metric[i];
        if (strcmp(m.name, all[i].name) == 0)
            return;
    }
    all[r->num_output_metrics++] = m;
    r->output_metric = all;
}

// Whether a clause reads the accuracy, which the list need not have.
static bool reads_accuracy(const Recipe *r) {
    const char *name = metric_info[METRIC_accuracy].name;
    bool reads =
        (r->stop.metric != NULL && strcmp(r->stop.metric, name) == 0) ||
        (r->best != NULL && strcmp(r->best, name) == 0);
    for (int i = 0; i < r->num_plateaus; i++)
        reads |= strcmp(r->plateau[i].metric, name) == 0;
    return reads;
}

// Without a list, a model without accuracy is no mistake.
bool metrics_check(Expansion *e) {
    int selected = e->selected;
    bool good =
        !reads_accuracy(&e->recipe) || is_measured(e, METRIC_accuracy, NULL);
    if (!good)
        report_output(e, METRIC_accuracy, NULL);
    for (int i = 0; good && i < e->num_listed; i++) {
        ListedMetric m = e->listed[i];
        good = is_measured(e, m.id, m.output);
        if (!good)
            report_output(e, m.id, &m.at);
        if (good && e->num_named > 0 && metric_info[m.id].sums != SUMS_LOSS)
            measure_add(e, m.id, m.output);
    }
    if (e->num_named > 0 && is_measured(e, METRIC_accuracy, NULL))
        measure_add(e, METRIC_accuracy, NULL);
    output_select(e, selected);
    return good;
}

// Measures each named output.
static void measure_named(Expansion *e) {
    memset(e->sums_output, 0, sizeof e->sums_output);
    for (int i = 0; i < e->num_named; i++) {
        output_select(e, i);
        e->loss.counted_sum = NO_NODE;
        if (e->label != NO_NODE)
            measure(e, e->output.node);
        if (e->loss.counted_sum != NO_NODE)
            accumulate(
                e,
                arena_format(e->arena, "metric.%s.counted", e->named[i].name),
                e->loss.counted_sum, false);
        for (int k = 0; k < NUM_SUMS; k++)
            if (e->sums_output[k] == NULL &&
                has_sums(e, (MetricSums)k, e->named[i].name))
                e->sums_output[k] = e->named[i].name;
    }
    output_select(e, 0);
}

static void accumulate_loss(Expansion *e, const char *suffix, NodeId samples,
                            NodeId weight_sum) {
    accumulate(e, arena_format(e->arena, "metric.loss%s", suffix),
               sum_samples(e, samples), true);
    if (weight_sum != NO_NODE)
        accumulate(e, arena_format(e->arena, "metric.weights%s", suffix),
                   weight_sum, false);
}

// Whether a term before this one divides by the same sum of weights.
static bool is_repeated(const Expansion *e, int term) {
    for (int i = 0; i < term; i++)
        if (e->loss.term[i].weight_sum == e->loss.term[term].weight_sum)
            return true;
    return false;
}

// The sums of the loss: metric.loss of the terms that divide by the samples, or
// else by the first sum of weights, metric.weights; of others metric.loss_1,
// metric.weights_1 and so on.  The evaluation adds up their quotients.
static void add_loss(Expansion *e) {
    NodeId samples;
    int count = 0;
    loss_samples(e, e->loss.total, NO_NODE, &samples);
    if (samples != NO_NODE) {
        accumulate_loss(e, "", samples, NO_NODE);
        count = 1;
    }
    for (int i = 0; i < e->loss.num_terms; i++) {
        NodeId weight_sum = e->loss.term[i].weight_sum;
        if (weight_sum == NO_NODE || is_repeated(e, i))
            continue;
        loss_samples(e, e->loss.total, weight_sum, &samples);
        if (samples == NO_NODE)
            continue;
        accumulate_loss(e,
                        count == 0 ? "" : arena_format(e->arena, "_%d", count),
                        samples, weight_sum);
        count++;
    }
}

// A shard counts its samples even if it always has the same number.
static NodeId counted_samples(Expansion *e) {
    if (e->training && e->recipe.shards > 0)
        return as_float(e, input_node(e, INPUT_VALID));
    return sample_count(e);
}

void metrics_add(Expansion *e) {
    add_loss(e);
    if (e->num_named > 0)
        measure_named(e);
    else if (e->label != NO_NODE)
        measure(e, e->output.node);
    accumulate(e, "metric.count", counted_samples(e), false);
    if (e->num_named == 0 && e->loss.counted_sum != NO_NODE)
        accumulate(e, "metric.counted", e->loss.counted_sum, false);
}
