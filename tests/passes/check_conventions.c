// Conventions: where docs/numerics.md states more than a formula, as what
// happens at a jump, at the end of a range, or where a norm is 0.  Whole models
// are lowered, differentiated and updated; their numbers are compared.
#include "tests/passes/suites.h"
#include "tests/passes/values.h"

#include "frontend/frontend.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// A training step of a model file, and values for some of its leaves; the
// others are what they start from, 0 for inputs.
typedef struct {
    Arena *arena;
    Program *program;
    Graph *graph;
    double **leaf;
} Model;

static Model model_new(const char *text) {
    Arena *a = arena_new();
    Diagnostics d = diag_new(a);
    Program *p =
        frontend_parse(a, "model.net", text, strlen(text), NULL, 0, &d);
    ck_assert_msg(p != NULL, "%s in\n%s",
                  d.count ? d.list[0]->message : "nothing", text);
    Graph *g = run_pass(p->stage[0].train, "canonicalize", F32);
    g = run_pass(run_pass(g, "autodiff", F32), "optimizer", F32);
    return (Model){a, p, g, ARENA_ARRAY(a, g->count, double *)};
}

static double *leaf_of(const Model *m, const char *name) {
    NodeId n = graph_find(m->graph, name);
    ck_assert_msg(n != NO_NODE, "there is no %s", name);
    if (m->leaf[n] == NULL)
        m->leaf[n] = ARENA_ARRAY(
            m->arena, (size_t)type_count(m->graph->node[n].type) + 1, double);
    return m->leaf[n];
}

static void set(const Model *m, const char *name, int count,
                const double *value) {
    memcpy(leaf_of(m, name), value, (size_t)count * sizeof *value);
}

// What the step assigns to that state or parameter; NULL for nothing.
static const double *after(const Model *m, const char *name, bool round) {
    double **value = graph_eval(m->graph, m->arena, m->leaf, round);
    return value_named(m->graph, value, name);
}

// Whether two numbers are equal, or both are none.
static bool same_number(double a, double b, double tolerance) {
    return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= tolerance;
}

static void check_equal(const char *what, int count, const double *got,
                        const double *want, double tolerance) {
    for (int i = 0; i < count; i++)
        ck_assert_msg(same_number(got[i], want[i], tolerance),
                      "%s: number %d is %.17g and not %.17g", what, i, got[i],
                      want[i]);
}

// ---- functions ----

enum { MOST = 4 };

// y = chain(x), and the gradient of y[0] + 2 y[1] + 3 y[2] + 4 y[3].
static const struct {
    const char *chain, *from, *to;
    int count, results;
    double x[MOST], y[MOST], gradient[MOST];
} points[] = {
    {"relu", "4", "4", 4, 4, {-1, 0, NAN, 1}, {0, 0, NAN, 1}, {0, 0, 3, 4}},
    {"abs", "3", "3", 3, 3, {-2, 0, 2}, {2, 0, 2}, {-1, 0, 3}},
    {"leaky_relu(0.1)",
     "3",
     "3",
     3,
     3,
     {-1, 0, NAN},
     {-0.1, 0, NAN},
     {0.1, 0.2, 0.3}},
    {"elu(2)", "2", "2", 2, 2, {0, NAN}, {0, NAN}, {2, NAN}},
    {"celu(0.5)", "2", "2", 2, 2, {0, NAN}, {0, NAN}, {1, NAN}},
    {"clamp(-1, 1)",
     "4",
     "4",
     4,
     4,
     {-1, 1, 2, -2},
     {-1, 1, 1, -1},
     {1, 2, 0, 0}},
    {"relu6", "4", "4", 4, 4, {0, 6, 5, 7}, {0, 6, 5, 6}, {0, 0, 3, 0}},
    {"clamp(-1, 1)", "2", "2", 2, 2, {NAN, -2}, {NAN, -1}, {1, 0}},
    {"relu6", "2", "2", 2, 2, {NAN, 5}, {NAN, 5}, {1, 2}},
    {"abs", "2", "2", 2, 2, {NAN, 0}, {NAN, 0}, {1, 0}},
    {"mish", "2", "2", 2, 2, {21, 90}, {21, 90}, {1, 2}},
    {"max_pool([1, 2])",
     "1, 3, 1",
     "1, 1, 1",
     3,
     1,
     {1, NAN, 5},
     {NAN},
     {0, 1}},
    {"max_pool(2)", "2, 2, 1", "1, 1, 1", 4, 1, {1, 7, 7, 7}, {7}, {0, 1}},
    {"avg_pool(2, pad=1)",
     "1, 1, 1",
     "2, 2, 1",
     1,
     4,
     {4},
     {1, 1, 1, 1},
     {2.5}},
    {"resize([2, 1])",
     "3, 1, 1",
     "2, 1, 1",
     3,
     2,
     {1, 2, 4},
     {1, 2},
     {1, 2, 0}},
    // 3 rows times 1.4 are 4, and so 0.75 rows apart, not 1 / 1.4.
    {"resize(factor=1.4, mode=bilinear)",
     "3, 1, 1",
     "4, 1, 1",
     3,
     4,
     {0, 8, 16},
     {0, 5, 11, 16},
     {1 + 2 * 0.375, 2 * 0.625 + 3 * 0.625, 3 * 0.375 + 4}},
};

static Model point_model(const char *chain, const char *from, const char *to) {
    Arena *a = arena_new();
    const char *text = arena_format(
        a,
        "model C(image: f32[N, 1]) -> f32[N, 1] {\n"
        "  y = parameter([N, %s]) |> %s\n"
        "  image + sum(flatten(y * parameter([N, %s])), axes=channels, keep)\n"
        "}\n"
        "train C { data = synthetic(targets); batch = 1, drop_last; steps = 1\n"
        "  loss = sum(output + 0 * label)\n"
        "  optimizer = sgd(lr=1, momentum=0.5) }\n",
        from, chain, to);
    Model m = model_new(text);
    const double weight[] = {1, 2, 3, 4};
    set(&m, "parameter_2.value", MOST, weight);
    arena_free(a);
    return m;
}

// The velocity of a step that begins with none is the gradient, which of the
// second parameter is y.
START_TEST(functions_at_their_jumps_and_ends) {
    const char *chain = points[_i].chain;
    Model m = point_model(chain, points[_i].from, points[_i].to);
    set(&m, "parameter_1.value", points[_i].count, points[_i].x);
    for (int round = 0; round < 2; round++) {
        check_equal(chain, points[_i].results,
                    after(&m, "parameter_2.value.momentum", round),
                    points[_i].y, round ? 1e-5 : 1e-12);
        check_equal(chain, points[_i].count,
                    after(&m, "parameter_1.value.momentum", round),
                    points[_i].gradient, round ? 1e-6 : 1e-12);
    }
    arena_free(m.arena);
}
END_TEST

// Where a gradient is not PyTorch's, and is on purpose.
static const struct {
    const char *chain;
    double x, gradient;
} departures[] = {
    // What has diverged must show it.
    {"abs", NAN, 1},         {"clamp(-1,1)", NAN, 1},  {"elu(2)", NAN, NAN},
    {"celu(0.5)", NAN, NAN}, {"hard_swish", NAN, NAN}, {"mish", INFINITY, 1},
};

// The departure that a function makes at x; NULL for none.
static const double *departure(const char *chain, double x) {
    for (size_t i = 0; i < sizeof departures / sizeof departures[0]; i++)
        if (strcmp(departures[i].chain, chain) == 0 &&
            same_number(departures[i].x, x, 0))
            return &departures[i].gradient;
    return NULL;
}

// A line of ends.txt: a function, x, and PyTorch's value and gradient.  Returns
// whether ours departs.
static bool check_end(const char *line) {
    char chain[32];
    double x, y, gradient;
    int read = sscanf(line, "%31s %lf %lf %lf", chain, &x, &y, &gradient);
    ck_assert_msg(read == 4, "%s", line);
    Model m = point_model(chain, "1", "1");
    set(&m, "parameter_1.value", 1, &x);
    check_equal(line, 1, after(&m, "parameter_2.value.momentum", false), &y,
                1e-12);
    const double *other = departure(chain, x);
    ck_assert_msg(other == NULL || !same_number(*other, gradient, 1e-12),
                  "%s is no departure", line);
    check_equal(line, 1, after(&m, "parameter_1.value.momentum", false),
                other ? other : &gradient, 1e-12);
    arena_free(m.arena);
    return other != NULL;
}

START_TEST(ends_are_pytorchs) {
    Arena *a = arena_new();
    size_t departed = 0;
    for (char *line = strtok(numbers_read(a, "ends.txt"), "\n"); line != NULL;
         line = strtok(NULL, "\n"))
        if (*line != '#')
            departed += check_end(line);
    ck_assert_uint_eq(departed, sizeof departures / sizeof departures[0]);
    arena_free(a);
}
END_TEST

START_TEST(elu_near_0_is_as_exact_as_at_1) {
    Model m = point_model("elu", "2", "2");
    set(&m, "parameter_1.value", 2, (double[]){-1e-5, -0x1p-12});
    const double *y = after(&m, "parameter_2.value.momentum", true);
    ck_assert_double_eq(y[0],
                        dtype_round(F32, exp(dtype_round(F32, -1e-5))) - 1);
    ck_assert_double_eq_tol(y[1], expm1(-0x1p-12), 0x1p-24);
    arena_free(m.arena);
}
END_TEST

// ---- updates ----

// The gradient of w is x.
static Model update_model(const char *optimizer, const char *keys) {
    Arena *a = arena_new();
    Model m = model_new(arena_format(
        a,
        "model U(image: f32[N, 2]) -> f32[N, 1] { image |> linear(1, "
        "bias=false) }\n"
        "train U { data = synthetic(targets); batch = 1, drop_last; steps = 1\n"
        "  loss = sum(output + 0 * label); optimizer = %s\n%s }\n",
        optimizer, keys));
    arena_free(a);
    return m;
}

static const struct {
    const char *optimizer, *keys;
    double w[2], x[2], updated[2];
} updates[] = {
    // A ratio of norms is 1 where one of them is 0.
    {"lars(lr=0.5, trust=0.3, weight_decay=0.2)",
     "",
     {0, 0},
     {3, 4},
     {-1.5, -2}},
    {"lars(lr=0.5, trust=0.3, weight_decay=0.2)",
     "",
     {3, 4},
     {0, 0},
     {2.7, 3.6}},
    {"lamb(lr=0.5, weight_decay=0.2)", "", {0, 0}, {3, -4}, {-0.5, 0.5}},
    {"lamb(lr=0.5, weight_decay=0)", "", {3, 4}, {0, 0}, {3, 4}},
    // eps is added to the corrected root: 3 / (3 + 1), 1 / (1 + 1).
    {"adam(lr=1, eps=1)", "", {0, 0}, {3, 1}, {-0.75, -0.5}},
    // And to the root, where the first sum or change is of one gradient.
    {"adagrad(lr=1, eps=1)", "", {0, 0}, {3, 1}, {-0.75, -0.5}},
    {"adan(lr=1, eps=1)", "", {0, 0}, {3, 1}, {-0.75, -0.5}},
    // One gradient rectifies nothing.
    {"radam(lr=0.5)", "", {0, 0}, {3, -4}, {-1.5, 2}},
    {"lion(lr=0.5)", "", {1, 1}, {1e-30, -5}, {0.5, 1.5}},
    {"lion(lr=0.5)", "", {3, 4}, {0, NAN}, {3, NAN}},
    // Gradients whose norm is not a number of f32.
    {"sgd(lr=0.5)", "clip = norm(1)", {3, 4}, {1e30, -1e30}, {3, 4}},
    {"sgd(lr=0.5)", "clip = value(1)", {3, 4}, {NAN, 1e30}, {NAN, 3.5}},
};

START_TEST(updates_at_their_ends) {
    Model m = update_model(updates[_i].optimizer, updates[_i].keys);
    set(&m, "linear_1.weight", 2, updates[_i].w);
    set(&m, "image", 2, updates[_i].x);
    check_equal(updates[_i].optimizer, 2, after(&m, "linear_1.weight", true),
                updates[_i].updated, 1e-6);
    arena_free(m.arena);
}
END_TEST

// ---- batch_norm ----

static Model normed_model(const char *batch, const char *optimizer) {
    Arena *a = arena_new();
    Model m = model_new(arena_format(
        a,
        "model B(image: f32[N, 1, 2, 1]) -> f32[N, 2] {\n"
        "  image |> conv(3, 1) |> batch_norm(momentum=1) |> flatten |> "
        "linear(2)\n"
        "}\n"
        "train B { data = synthetic(); batch = 4%s; steps = 1\n"
        "  loss = mean(cross_entropy(output, label)); optimizer = %s }\n",
        batch, optimizer));
    arena_free(a);
    for (int i = 0; i < 8; i++)
        leaf_of(&m, "image")[i] = (double)(i * i % 7);
    for (int i = 0; i < 3; i++) {
        leaf_of(&m, "conv_1.weight")[i] = 1 + i;
        leaf_of(&m, "conv_1.bias")[i] = 2 - i;
        leaf_of(&m, "batch_norm_1.scale")[i] = 0.5 * i;
        leaf_of(&m, "batch_norm_1.bias")[i] = i - 0.5;
    }
    for (int i = 0; i < 12; i++)
        leaf_of(&m, "linear_1.weight")[i] = sin(i);
    return m;
}

// What batch_norm takes away again: no rounding noise and no decay moves it.
START_TEST(a_bias_before_batch_norm_stays) {
    static const char *const optimizers[] = {
        "adam(lr=0.1, weight_decay=0.2)",
        "adamw(lr=0.1, weight_decay=0.2)",
        "sgd(lr=0.1, momentum=0.9, weight_decay=0.2)",
    };
    for (int i = 0; i < 3; i++) {
        Model m = normed_model(", drop_last", optimizers[i]);
        const double *bias = after(&m, "conv_1.bias", true);
        if (bias != NULL)
            check_equal(optimizers[i], 3, bias, leaf_of(&m, "conv_1.bias"), 0);
        ck_assert_ptr_nonnull(after(&m, "conv_1.weight", true));
        arena_free(m.arena);
    }
}
END_TEST

// As rounding can leave them: a mean whose square is above the mean square.
START_TEST(a_variance_is_not_below_0) {
    Model m = update_model("rmsprop(lr=0.5, alpha=0.5, eps=1, centered)", "");
    double w[] = {3, 4}, x[] = {0, 6}, mean[] = {10, 10};
    set(&m, "linear_1.weight", 2, w);
    set(&m, "image", 2, x);
    set(&m, "linear_1.weight.rmsprop_mean", 2, mean);
    check_equal("rmsprop", 2, after(&m, "linear_1.weight", false),
                (double[]){3, 1}, 1e-12);
    arena_free(m.arena);
}
END_TEST

START_TEST(every_parameter_decays) {
    static const char *const names[] = {"conv_1.weight", "batch_norm_1.scale",
                                        "batch_norm_1.bias", "linear_1.weight",
                                        "linear_1.bias"};
    Model without = normed_model(", drop_last", "sgd(lr=0.5)");
    Model with = normed_model(", drop_last", "sgd(lr=0.5, weight_decay=0.2)");
    for (int i = 0; i < 5; i++) {
        const double *w = leaf_of(&with, names[i]);
        memcpy(leaf_of(&without, names[i]), w, 2 * sizeof *w);
        const double *plain = after(&without, names[i], false);
        const double *less = after(&with, names[i], false);
        for (int k = 0; k < 2; k++)
            ck_assert_double_eq_tol(plain[k] - less[k], 0.5 * 0.2 * w[k],
                                    1e-12);
    }
    arena_free(without.arena);
    arena_free(with.arena);
}
END_TEST

// Three samples count, and the fourth is one of them again.
START_TEST(statistics_see_repeated_samples) {
    Model m = normed_model("", "sgd(lr=0.1)");
    *leaf_of(&m, "valid") = 3;
    const double *x = leaf_of(&m, "image");
    double mean = 0, square = 0;
    for (int i = 0; i < 8; i++)
        mean += x[i] / 8;
    for (int i = 0; i < 8; i++)
        square += (x[i] - mean) * (x[i] - mean);
    double want_mean[3], want_var[3];
    for (int k = 0; k < 3; k++) {
        want_mean[k] = (1 + k) * mean + 2 - k;
        want_var[k] = (1 + k) * (1 + k) * square / 7;
    }
    check_equal("mean", 3, after(&m, "batch_norm_1.running_mean", false),
                want_mean, 1e-9);
    check_equal("var", 3, after(&m, "batch_norm_1.running_var", false),
                want_var, 1e-9);
    arena_free(m.arena);
}
END_TEST

static const char *const sums[] = {"metric.loss", "metric.correct",
                                   "metric.count"};

// The sums of an evaluation of which three samples count.
static void evaluate(const Graph *g, Arena *a, double fourth, double *to) {
    double **leaf = leaf_values(g, a, 1, -1, 1), valid = 3;
    leaf[graph_find(g, "valid")] = &valid;
    for (int i = 6; i < 8; i++)
        leaf[graph_find(g, "image")][i] = fourth;
    double **value = graph_eval(g, a, leaf, false);
    for (int i = 0; i < 3; i++) {
        const char *low = arena_format(a, "%s.low", sums[i]);
        to[i] = *value_named(g, value, sums[i]) + *value_named(g, value, low) -
                *leaf[graph_find(g, sums[i])] - *leaf[graph_find(g, low)];
    }
}

START_TEST(repeated_samples_change_no_evaluation) {
    Model m = normed_model("", "sgd(lr=0.1)");
    double once[3], again[3];
    evaluate(m.program->eval, m.arena, 0.25, once);
    evaluate(m.program->eval, m.arena, 30, again);
    check_equal("sums", 3, again, once, 1e-12);
    ck_assert_double_eq_tol(once[2], 3, 1e-12);
    arena_free(m.arena);
}
END_TEST

Suite *conventions_suite(void) {
    Suite *s = suite_create("conventions");
    TCase *t = tcase_create("conventions");
    tcase_add_loop_test(t, functions_at_their_jumps_and_ends, 0,
                        sizeof points / sizeof points[0]);
    tcase_add_test(t, ends_are_pytorchs);
    tcase_add_test(t, elu_near_0_is_as_exact_as_at_1);
    tcase_add_loop_test(t, updates_at_their_ends, 0,
                        sizeof updates / sizeof updates[0]);
    tcase_add_test(t, a_bias_before_batch_norm_stays);
    tcase_add_test(t, a_variance_is_not_below_0);
    tcase_add_test(t, every_parameter_decays);
    tcase_add_test(t, statistics_see_repeated_samples);
    tcase_add_test(t, repeated_samples_change_no_evaluation);
    suite_add_tcase(s, t);
    return s;
}
