// Losses, their reductions and the metrics: values of whole graphs, against
// independent formulas.  Three samples of a batch of four are valid.
#include "tests/frontend/suites.h"

#include <math.h>
#include <string.h>

enum { BATCH = 4, VALID = 3, NUMBERS = 12 };

// Output i of all, and label i: a class below 3, or a target.
static double output(int i) {
    return (i * 37 % 101 - 50.0) / 20;
}
static int class_of(int i) {
    return i * 7 % 3;
}
static double target(int i) {
    return i * 5 % 11 / 10.0;
}

static double leaf_value(const Node *n, int64_t i) {
    const char *name = node_text(n, ATTR_name);
    if (n->op != OP_input)
        return 0;
    if (strcmp(name, "image") == 0)
        return output((int)i);
    if (strcmp(name, "valid") == 0)
        return VALID;
    return n->type->dtype == I32 ? class_of((int)i) : target((int)i);
}

typedef struct {
    Loaded l;
    const Graph *graph;
    double **value;
} Sums;

// The model's output is its input and a parameter of zeros, [4, SHAPE].
static Sums sums_of(const char *shape, const char *targets, const char *loss,
                    const char *keys, bool training) {
    Arena *a = arena_new();
    Sums s = {
        .l = load_text(arena_format(
            a,
            "import \"std/vision.net\" { mixup }\n"
            "model M(x: f32[N, 12]) {\n"
            "reshape(x, [N, %s]) + parameter([1])\n}\n"
            "train M { data = synthetic(shape=[12]%s); batch = 4; epochs = 1\n"
            "loss = %s; optimizer = sgd(lr=1)\n%s }\n",
            shape, targets, loss, keys))};
    arena_free(a);
    ck_assert_str_eq(codes_of(&s.l), "");
    s.graph = training ? s.l.program->stage[0].train : s.l.program->eval;
    double **leaf = ARENA_ARRAY(s.l.arena, s.graph->count, double *);
    for (NodeId n = 0; n < s.graph->count; n++) {
        const Node *node = &s.graph->node[n];
        if (node->op != OP_input && node->op != OP_param &&
            node->op != OP_state)
            continue;
        int64_t count = type_count(node->type);
        leaf[n] = ARENA_ARRAY(s.l.arena, (size_t)count, double);
        for (int64_t i = 0; i < count; i++)
            leaf[n][i] = leaf_value(node, i);
    }
    s.value = graph_eval(s.graph, s.l.arena, leaf, false);
    return s;
}

static double sum_named(const Sums *s, const char *name) {
    NodeId state = graph_find(s->graph, name);
    ck_assert_msg(state != NO_NODE, "there is no %s", name);
    for (NodeId n = 0; n < s->graph->count; n++)
        if (s->graph->node[n].op == OP_assign &&
            s->graph->node[n].arg[0] == state)
            return *s->value[s->graph->node[n].arg[1]];
    ck_abort_msg("nothing assigns %s", name);
}

static double loss_of(const Sums *s) {
    NodeId loss = graph_find(s->graph, "loss");
    return *s->value[s->graph->node[loss].arg[0]];
}

// ---- losses ----

// For row i, in rows of 3 classes.
static double entropy(int i, double smoothing) {
    double sum = 0, loss = 0;
    for (int k = 0; k < 3; k++)
        sum += exp(output(3 * i + k));
    for (int k = 0; k < 3; k++) {
        double share = (k == class_of(i) ? 1 - smoothing : 0) + smoothing / 3;
        loss -= share * (output(3 * i + k) - log(sum));
    }
    return loss;
}
static double plain(int i) {
    return entropy(i, 0);
}
static double smooth(int i) {
    return entropy(i, 0.2);
}
static double soft(int i) {
    double sum = 0, loss = 0;
    for (int k = 0; k < 3; k++)
        sum += exp(output(3 * i + k));
    for (int k = 0; k < 3; k++)
        loss -= target(3 * i + k) * (output(3 * i + k) - log(sum));
    return loss;
}
static double squared(int i) {
    return pow(output(i) - target(i), 2);
}
static double absolute(int i) {
    return fabs(output(i) - target(i));
}
static double logistic(int i) {
    double p = 1 / (1 + exp(-output(i)));
    return -target(i) * log(p) - (1 - target(i)) * log(1 - p);
}
static double to_class(int i) { // mse against one_hot
    return pow(output(i) - (class_of(i / 3) == i % 3), 2);
}
static double to_label(int i) { // mse of one number each
    return pow(output(i) - class_of(i), 2);
}

static const struct {
    const char *shape, *targets, *loss;
    int rows; // of a sample
    double (*value)(int);
} losses[] = {
    {"4, 3", "", "cross_entropy(output, label)", 4, plain},
    {"2, 2, 3", "", "cross_entropy(output, label)", 4, plain},
    {"2, 2, 3", "", "cross_entropy(output, label, smoothing=0.2)", 4, smooth},
    {"4, 3", ", targets", "cross_entropy(output, label)", 4, soft},
    {"12", ", targets", "mse(output, label)", 12, squared},
    {"2, 6, 1", ", targets", "mse(output, label)", 12, squared},
    {"12", ", targets", "l1(output, label)", 12, absolute},
    {"12", ", targets", "bce_with_logits(output, label)", 12, logistic},
    {"12", ", targets", "square(output - label)", 12, squared},
    {"4, 3", "", "mse(output, one_hot(label, 3))", 12, to_class},
    {"12, 1", "", "mse(output, label)", 12, to_label},
};

START_TEST(losses_follow_formulas) {
    const char *reductions[] = {"mean", "sum"};
    int rows = losses[_i].rows;
    double sum = 0;
    for (int i = 0; i < VALID * rows; i++)
        sum += losses[_i].value(i);
    for (int k = 0; k < 2; k++) {
        Arena *a = arena_new();
        Sums s =
            sums_of(losses[_i].shape, losses[_i].targets,
                    arena_format(a, "%s(%s)", reductions[k], losses[_i].loss),
                    "", true);
        arena_free(a);
        ck_assert_double_eq_tol(loss_of(&s), k ? sum : sum / VALID / rows,
                                1e-9);
        ck_assert_double_eq_tol(sum_named(&s, "metric.loss"), sum / rows, 1e-9);
        ck_assert_double_eq(sum_named(&s, "metric.count"), VALID);
        arena_free(s.l.arena);
    }
}
END_TEST

// A loss of numbers for each class takes the mixed labels of training and the
// unmixed ones of an evaluation.
START_TEST(mixed_labels_are_probabilities_in_evaluations) {
    const char *loss[] = {"mean(square(output - label))",
                          "mean(mse(output, label))",
                          "mean(cross_entropy(output, label))"};
    double sum[3] = {0};
    for (int i = 0; i < VALID * NUMBERS; i++)
        sum[0] += to_class(i) / NUMBERS;
    for (int i = 0; i < VALID * 4; i++)
        sum[2] += plain(i) / 4;
    sum[1] = sum[0];
    for (int k = 0; k < 3; k++) {
        Sums s = sums_of("4, 3", "", loss[k], "input = data.train |> mixup(1)",
                         false);
        ck_assert_double_eq_tol(sum_named(&s, "metric.loss"), sum[k], 1e-9);
        arena_free(s.l.arena);
    }
}
END_TEST

// A label beyond a slice of the output would have no loss there.
START_TEST(labels_fit_the_least_of_the_classes) {
    const struct {
        const char *loss;
        int classes;
    } c[] = {
        {"mean(cross_entropy(output, label))", 12},
        {"mean(cross_entropy(slice(output, channels, to=5), label))", 5},
        {"mean(cross_entropy(slice(output, channels, to=7), label)"
         " + cross_entropy(slice(output, channels, 7), label))",
         5},
    };
    for (size_t i = 0; i < sizeof c / sizeof c[0]; i++) {
        Sums s = sums_of("12", "", c[i].loss, "", true);
        ck_assert_int_eq(s.l.program->recipe.classes, c[i].classes);
        arena_free(s.l.arena);
    }
}
END_TEST

// Reductions over axes may come before the one over samples.
START_TEST(losses_may_be_reduced_by_axes) {
    Sums s =
        sums_of("12", ", targets",
                "mean(sum(square(output - label), axes=channels))", "", true);
    double sum = 0;
    for (int i = 0; i < VALID * NUMBERS; i++)
        sum += squared(i);
    ck_assert_double_eq_tol(loss_of(&s), sum / VALID, 1e-9);
    arena_free(s.l.arena);
}
END_TEST

// An evaluation uses training's current step.
START_TEST(losses_may_follow_the_run) {
    Sums s = sums_of("12", ", targets", "mean(mse(output, label) * (1 + step))",
                     "", false);
    double sum = 0;
    for (int i = 0; i < VALID * NUMBERS; i++)
        sum += squared(i);
    ck_assert_double_eq_tol(sum_named(&s, "metric.loss"), sum / NUMBERS, 1e-9);
    ck_assert_int_ne(graph_find(s.graph, "run.step"), NO_NODE);
    arena_free(s.l.arena);
}
END_TEST

static bool is_correct(int row) {
    int best = 0;
    for (int k = 1; k < 3; k++)
        if (output(3 * row + k) > output(3 * row + best))
            best = k;
    return best == class_of(row);
}

// A mean divides by the weights of the valid rows, or by those that count; an
// evaluation sums up both.
static const struct {
    const char *arguments;
    double weight[3];
    int ignored;
} weighted[] = {
    {"weights=[1, 2, 0.5]", {1, 2, 0.5}, -1},
    {"ignore=-100", {1, 1, 1}, -1},
    {"ignore=1", {1, 0, 1}, 1},
    {"weights=[1, 2, 0.5], ignore=2", {1, 2, 0}, 2},
    {"weights=[0, 0, 1], ignore=2", {0, 0, 0}, 2},
};

START_TEST(rows_have_weights) {
    Arena *a = arena_new();
    const char *loss = arena_format(a, "cross_entropy(output, label, %s)",
                                    weighted[_i].arguments);
    double sum = 0, weights = 0, rows = 0, correct = 0;
    for (int i = 0; i < VALID * 4; i++) {
        double weight = weighted[_i].weight[class_of(i)];
        sum += weight * plain(i);
        weights += weight;
        rows += class_of(i) != weighted[_i].ignored;
        correct += class_of(i) != weighted[_i].ignored && is_correct(i);
    }
    double mean = sum / (weights > 0 ? weights : 1);
    Sums s = sums_of("4, 3", "", arena_format(a, "mean(%s)", loss), "", false);
    ck_assert_double_eq_tol(sum_named(&s, "metric.loss"), sum, 1e-9);
    ck_assert_double_eq_tol(sum_named(&s, "metric.weights"), weights, 1e-9);
    bool ignores = strstr(weighted[_i].arguments, "ignore") != NULL;
    ck_assert_double_eq_tol(sum_named(&s, "metric.correct"),
                            ignores ? correct : correct / 4, 1e-9);
    if (ignores)
        ck_assert_double_eq_tol(sum_named(&s, "metric.counted"), rows, 1e-9);
    arena_free(s.l.arena);
    s = sums_of("4, 3", "", arena_format(a, "mean(%s)", loss), "", true);
    ck_assert_double_eq_tol(loss_of(&s), mean, 1e-9);
    arena_free(s.l.arena);
    s = sums_of("4, 3", "", arena_format(a, "sum(%s)", loss), "", true);
    ck_assert_double_eq_tol(loss_of(&s), sum, 1e-9);
    arena_free(s.l.arena);
    arena_free(a);
}
END_TEST

// ---- metrics ----

START_TEST(correct_rows_are_averaged_per_sample) {
    Sums s =
        sums_of("4, 3", "", "mean(cross_entropy(output, label))", "", false);
    double correct = 0;
    for (int i = 0; i < VALID * 4; i++)
        correct += is_correct(i) ? 0.25 : 0;
    ck_assert_double_gt(correct, 0);
    ck_assert_double_eq_tol(sum_named(&s, "metric.correct"), correct, 1e-9);
    arena_free(s.l.arena);
}
END_TEST

// Targets for each output, or one integer; as numbers of a sample, or before an
// axis of size 1.
static const struct {
    const char *shape, *targets, *loss;
    bool whole;
} sides[] = {
    {"12", ", targets", "bce_with_logits(output, label)", false},
    {"12", ", targets", "3 * bce_with_logits(output, 0.9 * label)", false},
    {"2, 6, 1", ", targets", "bce_with_logits(output, label)", false},
    {"12, 1", "", "bce_with_logits(reshape(output, [-1, 12]), label)", true},
};

START_TEST(binary_labels_are_averaged_per_sample) {
    for (int training = 0; training < 2; training++) {
        Arena *a = arena_new();
        Sums s = sums_of(sides[_i].shape, sides[_i].targets,
                         arena_format(a, "mean(%s)", sides[_i].loss),
                         "stop when accuracy >= 99%", training);
        arena_free(a);
        double right = 0;
        for (int i = 0; i < VALID * NUMBERS; i++) {
            double label = sides[_i].whole ? class_of(i) : target(i);
            right += (output(i) > 0) == (label > 0.5);
        }
        ck_assert_double_gt(right, 0);
        ck_assert_double_lt(right, VALID * NUMBERS);
        ck_assert_double_eq_tol(sum_named(&s, "metric.correct"),
                                right / NUMBERS, 1e-9);
        arena_free(s.l.arena);
    }
}
END_TEST

// Probabilities of classes are still classes; other values are not the output.
START_TEST(binary_accuracy_is_of_the_output) {
    Sums s =
        sums_of("4, 3", "", "mean(bce_with_logits(output, one_hot(label, 3)))",
                "", false);
    Sums t =
        sums_of("4, 3", "", "mean(cross_entropy(output, label))", "", false);
    ck_assert_double_eq(sum_named(&s, "metric.correct"),
                        sum_named(&t, "metric.correct"));
    arena_free(s.l.arena);
    arena_free(t.l.arena);
    s = sums_of("12", ", targets", "mean(bce_with_logits(output - 1, label))",
                "", false);
    ck_assert_int_eq(graph_find(s.graph, "metric.correct"), NO_NODE);
    arena_free(s.l.arena);
}
END_TEST

START_TEST(nan_outputs_are_wrong) {
    Sums s =
        sums_of("12]) * (0 / parameter([1])) + reshape(x, [N, 12", ", targets",
                "mean(bce_with_logits(output, label))", "", false);
    ck_assert(isnan(sum_named(&s, "metric.loss")));
    ck_assert_double_eq(sum_named(&s, "metric.correct"), 0);
    arena_free(s.l.arena);
}
END_TEST

START_TEST(top5_has_five) {
    Sums s = sums_of("12", "", "mean(cross_entropy(output, label))",
                     "eval at end { metrics = [top5] }", false);
    int hits = 0;
    for (int i = 0; i < VALID; i++) {
        int above = 0;
        for (int k = 0; k < 12; k++)
            above += output(12 * i + k) > output(12 * i + class_of(i));
        hits += above < 5;
    }
    ck_assert_int_gt(hits, 0);
    ck_assert_int_lt(hits, VALID);
    ck_assert_double_eq(sum_named(&s, "metric.top5"), hits);
    ck_assert_int_eq(graph_find(s.l.program->stage[0].train, "metric.top5"),
                     NO_NODE);
    arena_free(s.l.arena);
}
END_TEST

START_TEST(targets_have_no_accuracy) {
    Sums s = sums_of("12", ", targets", "mean(mse(output, label))", "", false);
    ck_assert_int_eq(graph_find(s.graph, "metric.correct"), NO_NODE);
    arena_free(s.l.arena);
}
END_TEST

// A loss without labels needs no labels in the data.
START_TEST(losses_without_labels_need_none) {
    for (int training = 0; training < 2; training++) {
        Sums s = sums_of("12", "", "mean(square(output))", "", training);
        ck_assert_int_eq(graph_find(s.graph, "label"), NO_NODE);
        ck_assert_int_eq(graph_find(s.graph, "metric.correct"), NO_NODE);
        arena_free(s.l.arena);
    }
}
END_TEST

Suite *loss_suite(void) {
    Suite *s = suite_create("loss");
    TCase *t = tcase_create("loss");
    tcase_add_loop_test(t, losses_follow_formulas, 0,
                        sizeof losses / sizeof losses[0]);
    tcase_add_test(t, mixed_labels_are_probabilities_in_evaluations);
    tcase_add_test(t, labels_fit_the_least_of_the_classes);
    tcase_add_test(t, losses_may_be_reduced_by_axes);
    tcase_add_test(t, losses_may_follow_the_run);
    tcase_add_test(t, losses_without_labels_need_none);
    tcase_add_loop_test(t, rows_have_weights, 0,
                        sizeof weighted / sizeof weighted[0]);
    tcase_add_test(t, correct_rows_are_averaged_per_sample);
    tcase_add_loop_test(t, binary_labels_are_averaged_per_sample, 0,
                        sizeof sides / sizeof sides[0]);
    tcase_add_test(t, binary_accuracy_is_of_the_output);
    tcase_add_test(t, nan_outputs_are_wrong);
    tcase_add_test(t, top5_has_five);
    tcase_add_test(t, targets_have_no_accuracy);
    suite_add_tcase(s, t);
    return s;
}
