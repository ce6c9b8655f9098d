// Losses: numbers for each sample or position, from an output and its label.

#include "frontend/functions/functions.h"

#include <string.h>

// ---- outputs and labels ----

static bool is_label(const Expansion *e, const Value *v) {
    return e->label == v->node;
}

// The first two arguments of every loss are an output and its label.
static bool expect_order(Expansion *e, const Call *c) {
    output_select_of(e, c);
    if (!is_label(e, &c->arg[0]))
        return true;
    Diagnostic *d =
        report(e->diags, D_wrong_kind, c->at,
               "the second argument of %s must be `label`", c->builtin->name);
    diag_note(d, "the output comes first: %s(output, label)", c->builtin->name);
    return false;
}

static Value report_pair(Expansion *e, const Call *c, const char *subject,
                         const char *note) {
    Diagnostic *d =
        report(e->diags, D_incompatible_shapes, c->at, "%s", subject);
    for (int i = 0; i < 2; i++)
        diag_secondary(d, c->arg[i].at, "%s %s", i ? "and this is" : "this is",
                       tensor_text(e, c->arg[i].node));
    if (note != NULL)
        diag_note(d, "%s", note);
    return value_poison();
}

static Type without_last(Type t) {
    t.rank--;
    return t;
}

// ---- cross_entropy ----

// Whether the output has all classes of the data set.  Labels must fit each
// cross_entropy, also of a slice of the output.
static bool expect_classes(Expansion *e, const Call *c, const Value *output) {
    Type t = *node_type(e, output->node);
    int64_t classes = t.dim[t.rank - 1];
    bool of_data = is_label(e, &c->arg[1]) &&
                   node_type(e, e->unblended_label)->dtype == I32;
    if (of_data && classes < e->recipe.classes)
        e->recipe.classes = (int)classes;
    if (!of_data || classes >= e->data.classes)
        return true;
    Diagnostic *d = report(e->diags, D_data, c->at,
                           "the data has %lld classes and the output %lld",
                           (long long)e->data.classes, (long long)classes);
    diag_secondary(d, output->at, "this is %s", tensor_text(e, output->node));
    diag_secondary(d, e->data.at, "the classes are those of %s",
                   e->data.format);
    return false;
}

// Labels outside the image are -1 and invalid, so any class is right.
static NodeId valid_class(Expansion *e, NodeId label) {
    label = graph_cast(e->graph, label, I32);
    return e->valid == NO_NODE
               ? label
               : graph_op2(e->graph, OP_maximum, label, int_node(e, 0));
}

// Labels as the operation takes them: i32[M], or probabilities of classes
// f32[M,K].  Unmixed labels keep the data set's form; `raw` ones their number
// where they are invalid, too.
static NodeId class_labels(Expansion *e, Type output, NodeId label, bool raw) {
    if (label == e->label &&
        !transforms_mix(e, e->label_extent == LABEL_SPATIAL))
        label = e->unblended_label;
    Type t = *node_type(e, label);
    int64_t classes = output.dim[output.rank - 1];
    int64_t shape[] = {type_count(&output) / classes, classes};
    bool whole = t.dtype == I32 || t.dtype == U8;
    if (whole && type_has_shape(&t, (Type[]){without_last(output)}))
        return graph_reshape(e->graph,
                             raw ? graph_cast(e->graph, label, I32)
                                 : valid_class(e, label),
                             1, shape);
    if (!whole && type_has_shape(&t, &output))
        return graph_reshape(e->graph, as_float(e, label), 2, shape);
    return NO_NODE;
}

// Warns of an output with the loss's own function already applied.
static void warn_repeated(Expansion *e, const Call *c, DiagId id,
                          const Value *output, const char *subject,
                          const char *why) {
    Diagnostic *d =
        report(e->diags, id, c->at, "%s takes logits, not the result of %s",
               c->builtin->name, subject);
    diag_secondary(d, output->at, "the %s is here", subject);
    diag_note(d, "leave the %s out%s", subject, why);
}

static void warn_softmax(Expansion *e, const Call *c, const Value *output) {
    Op op = e->graph->node[output->node].op;
    if (op == OP_softmax || op == OP_log_softmax)
        warn_repeated(e, c, D_redundant_softmax, output, "softmax",
                      "; accuracy is the same without it");
}

static void warn_sigmoid(Expansion *e, const Call *c, const Value *output) {
    if (e->graph->node[output->node].op == OP_sigmoid)
        warn_repeated(e, c, D_redundant_sigmoid, output, "sigmoid", "");
}

// Masks classes that are invalid samples, as in contrastive losses, with
// probability 0.  Smoothing would give them some, and is left unmasked.
static void mask_classes(Expansion *e, NodeId *logits, NodeId *label) {
    const unsigned classes = 1u << 1;
    if (!samples_need_mask(e, *logits, classes))
        return;
    if (node_type(e, *label)->rank == 2)
        *label = samples_mask(e, *label, *logits, classes, 0);
    *logits = samples_mask(e, *logits, *logits, classes, MASKED);
}

// ---- rows that count more or less ----

// Whether a label's rows are numbers of classes; reports `name` if not.
static bool expect_numbers(Expansion *e, const Call *c, NodeId label,
                           const char *name) {
    if (node_type(e, label)->rank == 1)
        return true;
    Diagnostic *d = report(e->diags, D_wrong_kind, c->at,
                           "`%s` of cross_entropy needs labels that are "
                           "numbers of classes",
                           name);
    diag_secondary(d, c->arg[1].at, "these are shares of classes");
    return false;
}

// 1 where a label is not ignored: bool[M].
static NodeId counted_rows(Expansion *e, NodeId label, int ignored) {
    NodeId is = graph_op2(e->graph, OP_eq, label, int_node(e, ignored));
    return graph_op1(e->graph, OP_not, is);
}

// No weight is below 0, and one is above it.
static bool expect_counting(Expansion *e, Span at, const Literal *weights,
                            int64_t classes) {
    double sum = 0;
    bool good = true;
    for (int64_t k = 0; k < classes; k++) {
        good &= weights->number[k] >= 0;
        sum += weights->number[k];
    }
    if (good && sum > 0)
        return true;
    report(e->diags, D_out_of_range, at,
           "`weights` of cross_entropy must be from 0, and not all 0");
    return false;
}

static bool expect_weights(Expansion *e, const Call *c, int64_t classes,
                           Literal *weights) {
    const Value *list = call_arg(c, P_cross_entropy_weights);
    if (!expect_literal(e, list->at, list, weights))
        return false;
    if (type_is(&weights->type, (Type[]){type_of(F32, 1, &classes)}))
        return expect_counting(e, list->at, weights, classes);
    Diagnostic *d = report(e->diags, D_wrong_length, list->at,
                           "`weights` of cross_entropy are %lld numbers, one "
                           "for each class",
                           (long long)classes);
    diag_label(d, "these are %s", type_text(e, weights->type));
    return false;
}

// Whether a class is that of a row: bool[M,K].
static NodeId own_class(Expansion *e, NodeId label, const Literal *weights) {
    Graph *g = e->graph;
    Type rows = *node_type(e, label);
    Type along = {.dtype = I32, .rank = 2, .dim = {1, weights->type.dim[0]}};
    label = graph_reshape(g, label, 2, (int64_t[]){rows.dim[0], 1});
    return graph_op2(g, OP_eq, label, graph_iota(g, along, 1));
}

// The weight of the class of each row: f32[M].
static NodeId class_weights(Expansion *e, const Literal *weights,
                            NodeId label) {
    Graph *g = e->graph;
    Type rows = *node_type(e, label);
    int64_t last = 1;
    NodeId own = own_class(e, label, weights);
    NodeId table = graph_values(g, weights->type, weights->number);
    NodeId of = graph_op3(g, OP_select, own, table, number_node(e, 0));
    return graph_reshape(g, graph_reduce(g, OP_sum, of, 1, &last), 1, rows.dim);
}

// The weight of the sample of each of M rows: f32[M].  NO_NODE after a report.
static NodeId sample_weights(Expansion *e, const Call *c, const Value *given,
                             int64_t rows) {
    int64_t batch = e->recipe.batch;
    Type each = type_of(F32, 1, &batch);
    const Node *input = &e->graph->node[given->node];
    if (!type_has_shape(input->type, &each) || rows % batch != 0) {
        Diagnostic *d = report(
            e->diags, D_incompatible_shapes, c->at,
            "`weights` of %s are a number for %seach sample", c->builtin->name,
            builtin_id(c->builtin) == B_cross_entropy ? "each class or " : "");
        diag_secondary(d, given->at, "this is %s", tensor_text(e, given->node));
        return NO_NODE;
    }
    if (input->op == OP_input)
        ARENA_APPEND(e->arena, e->loss.sample_weights,
                     e->loss.num_sample_weights, node_text(input, ATTR_name));
    NodeId own = graph_reshape(e->graph, as_float(e, given->node), 2,
                               (int64_t[]){batch, 1});
    Type all = type_of(F32, 2, (int64_t[]){batch, rows / batch});
    return graph_reshape(e->graph, graph_broadcast(e->graph, own, &all), 1,
                         &rows);
}

// Smoothed labels with each class's share times its weight, as PyTorch weighs
// them: f32[M,K].
static NodeId weighted_shares(Expansion *e, const Literal *weights,
                              NodeId label, double smoothing) {
    Graph *g = e->graph;
    double rest = smoothing / (double)weights->type.dim[0];
    NodeId other = number_node(e, rest);
    NodeId own = number_node(e, 1 - smoothing + rest);
    NodeId share =
        graph_op3(g, OP_select, own_class(e, label, weights), own, other);
    NodeId table = graph_values(g, weights->type, weights->number);
    return graph_op2(g, OP_mul, share, table);
}

// The rows of a loss: `weights`, which a mean divides by, and the factor of
// each; NO_NODE: all are 1.
typedef struct {
    NodeId weights, factor;
} Rows;

// Fills *rows, and takes ignored numbers from *label, or makes weighted shares
// of it, which leave nothing to smooth.  False after a report.
static bool weigh_labels(Expansion *e, const Call *c, int64_t classes,
                         NodeId *label, double *smoothing, Rows *rows) {
    const Value *ignore = call_arg(c, P_cross_entropy_ignore);
    ValueKind given = call_arg(c, P_cross_entropy_weights)->kind;
    bool of_samples = given == VALUE_TENSOR;
    bool weighs = given == VALUE_LIST || of_samples;
    NodeId counted = NO_NODE;
    Literal of_class;
    *rows = (Rows){NO_NODE, NO_NODE};
    if (ignore->kind == VALUE_NUMBER) {
        if (!expect_numbers(e, c, *label, "ignore"))
            return false;
        e->recipe.ignored = (int)ignore->number;
        counted = counted_rows(e, *label, e->recipe.ignored);
        NodeId zero = int_node(e, 0), valid = valid_class(e, *label);
        *label = graph_op3(e->graph, OP_select, counted, valid, zero);
        rows->weights = rows->factor = as_float(e, counted);
        if (is_label(e, &c->arg[1]))
            e->loss.counted = counted;
    }
    if (!weighs)
        return true;
    if (!of_samples && (!expect_numbers(e, c, *label, "weights") ||
                        !expect_weights(e, c, classes, &of_class)))
        return false;
    NodeId of = of_samples
                    ? sample_weights(e, c, call_arg(c, P_cross_entropy_weights),
                                     node_type(e, *label)->dim[0])
                    : class_weights(e, &of_class, *label);
    if (of == NO_NODE)
        return false;
    rows->weights =
        counted == NO_NODE
            ? of
            : graph_op3(e->graph, OP_select, counted, of, number_node(e, 0));
    if (of_samples || *smoothing == 0) {
        rows->factor = rows->weights;
        return true;
    }
    *label = weighted_shares(e, &of_class, *label, *smoothing);
    *smoothing = 0;
    return true;
}

// Multiplies a loss by the factors of its rows, and notes the weights.
static NodeId weigh_rows(Expansion *e, NodeId loss, Rows rows) {
    if (rows.weights == NO_NODE)
        return loss;
    Type t = *node_type(e, loss);
    WeightedLoss w = {loss,
                      graph_reshape(e->graph, rows.weights, t.rank, t.dim)};
    if (rows.factor != NO_NODE)
        w.loss = graph_op2(e->graph, OP_mul, loss,
                           graph_reshape(e->graph, rows.factor, t.rank, t.dim));
    WeightedLoss *all =
        ARENA_ARRAY(e->arena, (size_t)e->loss.num_weighted + 1, WeightedLoss);
    for (int i = 0; i < e->loss.num_weighted; i++)
        all[i] = e->loss.weighted[i];
    all[e->loss.num_weighted++] = w;
    e->loss.weighted = all;
    return w.loss;
}

// One number for each row of the output; [N, 1] if there is one for each
// sample.
Value lower_cross_entropy(Expansion *e, const Call *c) {
    const Value *output = call_arg(c, P_cross_entropy_output);
    Type t = *node_type(e, output->node);
    if (!expect_order(e, c) || (t.rank < 2 && !expect_rank(e, c, output, 2)) ||
        !expect_classes(e, c, output) || !expect_rows(e, c, output->node))
        return value_poison();
    warn_softmax(e, c, output);
    bool ignores = call_arg(c, P_cross_entropy_ignore)->kind == VALUE_NUMBER;
    NodeId label =
        class_labels(e, t, call_node(c, P_cross_entropy_label), ignores);
    if (label == NO_NODE)
        return report_pair(e, c, "the labels do not fit the output",
                           "labels are whole numbers, one for each row of the "
                           "output, or shares of its classes");
    Rows weighed;
    double smoothing = call_number(c, P_cross_entropy_smoothing);
    if (!weigh_labels(e, c, t.dim[t.rank - 1], &label, &smoothing, &weighed))
        return value_poison();
    Attr attr = attr_float(ATTR_smoothing, smoothing);
    int64_t rows[] = {type_count(&t) / t.dim[t.rank - 1], t.dim[t.rank - 1]};
    NodeId logits = graph_reshape(e->graph, as_float(e, output->node), 2, rows);
    if (smoothing == 0)
        mask_classes(e, &logits, &label);
    NodeId loss = graph_add(e->graph, (Node){.op = OP_cross_entropy,
                                             .num_args = 2,
                                             .arg = (NodeId[]){logits, label},
                                             .num_attrs = smoothing != 0,
                                             .attr = &attr,
                                             .group = -1});
    if (t.rank > 2)
        loss = graph_reshape(e->graph, loss, t.rank - 1, t.dim);
    return value_tensor(weigh_rows(e, loss, weighed), c->at);
}

// ---- elementwise losses ----

// A note for data sets that allow classes and targets.
static const char *target_note(Expansion *e) {
    if (e->num_named > 0)
        return arena_format(e->arena,
                            "labels are classes unless the data set names them "
                            "in `targets`: %s(..., targets=[\"%s\"])",
                            e->data.format, e->named[e->selected].name);
    return arena_format(e->arena,
                        "labels are classes unless the data set says "
                        "`targets`: %s(..., targets)",
                        e->data.format);
}

static Type without_unit_axes(Type t) {
    while (t.rank > 1 && t.dim[t.rank - 1] == 1)
        t.rank--;
    return t;
}

bool labels_each(Type label, Type output) {
    label = without_unit_axes(label);
    output = without_unit_axes(output);
    return type_has_shape(&label, &output);
}

// The label as numbers of the output's shape, which may have trailing axes of
// size 1; NO_NODE after a report.
static NodeId target_node(Expansion *e, const Call *c) {
    Type t = *node_type(e, c->arg[0].node), l = *node_type(e, c->arg[1].node);
    if (!expect_order(e, c))
        return NO_NODE;
    if (labels_each(l, t))
        return as_float(e,
                        graph_reshape(e->graph, c->arg[1].node, t.rank, t.dim));
    const char *note = NULL;
    bool classes = is_label(e, &c->arg[1]) && l.dtype == I32;
    if (classes && e->data.label.rank == 0)
        note = target_note(e);
    else if (classes)
        note = arena_format(e->arena,
                            "cross_entropy is the loss for classes; "
                            "one_hot(label, %lld) makes numbers of them",
                            (long long)(t.rank ? t.dim[t.rank - 1] : 1));
    report_pair(e, c,
                arena_format(e->arena,
                             "%s needs a label for each number of the output",
                             c->builtin->name),
                note);
    return NO_NODE;
}

// Binary labels are 0 and 1; other classes would make the loss unbounded below.
static bool expect_binary_labels(Expansion *e, const Call *c) {
    Type label = *node_type(e, e->input[INPUT_LABEL]);
    bool classes = is_label(e, &c->arg[1]) && label.dtype == I32 &&
                   labels_each(label, *node_type(e, c->arg[0].node));
    if (classes)
        e->recipe.classes = 2; // the trainer checks its files
    if (!classes || e->data.classes <= 2)
        return true;
    Diagnostic *d = report(
        e->diags, D_data, c->at,
        "%s takes labels from 0 to 1, and those of %s are classes from "
        "0 to %lld",
        c->builtin->name, e->data.format, (long long)e->data.classes - 1);
    diag_secondary(d, e->data.at, "the labels are from here");
    diag_note(d,
              "cross_entropy is the loss for classes; one_hot(label, %lld) "
              "makes numbers of them",
              (long long)e->data.classes);
    return false;
}

// A loss of numbers with the weights of samples; poison after a report.
static Value weigh_numbers(Expansion *e, const Call *c, NodeId loss,
                           ParamId weights) {
    const Value *given = call_arg(c, weights);
    if (given->kind != VALUE_TENSOR)
        return value_tensor(loss, c->at);
    NodeId of = sample_weights(e, c, given, type_count(node_type(e, loss)));
    return of != NO_NODE
               ? value_tensor(weigh_rows(e, loss, (Rows){of, of}), c->at)
               : value_poison();
}

// mse and l1: the square or the absolute value of the difference.
Value lower_distance(Expansion *e, const Call *c) {
    NodeId y = target_node(e, c);
    if (y == NO_NODE)
        return value_poison();
    NodeId error = graph_op2(e->graph, OP_sub, as_float(e, c->arg[0].node), y);
    bool square = builtin_id(c->builtin) == B_mse;
    NodeId loss = square ? graph_op2(e->graph, OP_mul, error, error)
                         : graph_op1(e->graph, OP_abs, error);
    return weigh_numbers(e, c, loss, square ? P_mse_weights : P_l1_weights);
}

static NodeId without_shape(const Expansion *e, NodeId n) {
    while (e->graph->node[n].op == OP_reshape)
        n = e->graph->node[n].arg[0];
    return n;
}

// max(x, 0) - x y + log(1 + exp(-|x|)), which is -y log p - (1 - y) log(1 - p)
// for p = sigmoid(x).  At x = 0, the start of a head of zeros, only maximum
// makes the gradient sigmoid(x) - y: it passes half at a tie, relu nothing.
// With the weight w of positive labels (1 - y) x + (1 + (w - 1) y) (max(-x, 0)
// + log(1 + exp(-|x|))), which is -w y log p - (1 - y) log(1 - p).
Value lower_bce_with_logits(Expansion *e, const Call *c) {
    NodeId y = target_node(e, c);
    if (y == NO_NODE || !expect_binary_labels(e, c))
        return value_poison();
    warn_sigmoid(e, c, &c->arg[0]);
    e->loss.is_binary |=
        without_shape(e, c->arg[0].node) == without_shape(e, e->output.node);
    Graph *g = e->graph;
    NodeId x = as_float(e, c->arg[0].node);
    NodeId above = graph_op2(g, OP_maximum, x, number_node(e, 0));
    NodeId linear = graph_op2(g, OP_sub, above, graph_op2(g, OP_mul, x, y));
    NodeId small =
        graph_op1(g, OP_exp, graph_op1(g, OP_neg, graph_op1(g, OP_abs, x)));
    NodeId curve =
        graph_op1(g, OP_log, graph_op2(g, OP_add, small, number_node(e, 1)));
    double weight = call_number(c, P_bce_with_logits_pos_weight);
    if (weight == 1)
        return weigh_numbers(e, c, graph_op2(g, OP_add, linear, curve),
                             P_bce_with_logits_weights);
    NodeId below = graph_op2(g, OP_sub, above, x);
    NodeId factor = graph_op2(g, OP_mul, y, number_node(e, weight - 1));
    factor = graph_op2(g, OP_add, factor, number_node(e, 1));
    NodeId positive =
        graph_op2(g, OP_mul, factor, graph_op2(g, OP_add, below, curve));
    NodeId negative = graph_op2(g, OP_sub, x, graph_op2(g, OP_mul, x, y));
    return weigh_numbers(e, c, graph_op2(g, OP_add, negative, positive),
                         P_bce_with_logits_weights);
}
