// Layers and functions: the values of a model's graph, against independent
// formulas.
#include "tests/frontend/suites.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// Images are u8[4, 4, 4, 1] with values by index in the batch; models begin
// with x, those values in -2.5 .. 2.5.
static double pixel(int i) {
    return (i * 37 % 251 - 125.0) / 50;
}

typedef struct {
    Loaded l;
    const Graph *graph;
    const double *y; // the requested value
    double **all;
    Type type;
} Result;

static double leaf_value(const Node *n, int64_t i) {
    const char *name = node_text(n, ATTR_name);
    if (n->op == OP_state)
        return node_float(n, ATTR_init, 0);
    if (n->op == OP_param)
        return sin(1.0 + (double)i) / 2;
    if (strcmp(name, "image") == 0)
        return (double)(i * 37 % 251);
    return strcmp(name, "valid") == 0 ? 4 : (double)(i % 2);
}

static double **leaves_of(const Graph *g, Arena *a) {
    double **leaf = ARENA_ARRAY(a, g->count, double *);
    for (NodeId n = 0; n < g->count; n++) {
        const Node *node = &g->node[n];
        if (node->op != OP_input && node->op != OP_param &&
            node->op != OP_state)
            continue;
        int64_t count = type_count(node->type);
        leaf[n] = ARENA_ARRAY(a, (size_t)count, double);
        for (int64_t i = 0; i < count; i++)
            leaf[n][i] = leaf_value(node, i);
    }
    return leaf;
}

// A model whose body is an expression of x, followed by a head.
static Result result_in(const char *expression, bool training) {
    Arena *a = arena_new();
    Result r = {
        .l = load_model(arena_format(a,
                                     "x = (image - 125) / 50\n"
                                     "y = %s\n(y + 0 * mean(x, [0, 1, 2, 3]))"
                                     " |> reshape([N, -1])"
                                     " |> linear(2, bias=false) as last",
                                     expression),
                        "")};
    arena_free(a);
    ck_assert_str_eq(codes_of(&r.l), "");
    r.graph = training ? r.l.program->stage[0].train : r.l.program->eval;
    const char *why = graph_verify(r.graph, r.l.arena);
    ck_assert_msg(why == NULL, "%s", why);
    r.all =
        graph_eval(r.graph, r.l.arena, leaves_of(r.graph, r.l.arena), false);
    for (NodeId n = 0; n < r.graph->count; n++) {
        const Node *node = &r.graph->node[n];
        const char *path = node->from.path;
        if (path == NULL || strcmp(path, "last.add_1") != 0)
            continue;
        r.y = r.all[n];
        r.type = *node->type;
    }
    ck_assert_ptr_nonnull(r.y);
    return r;
}

// ---- pointwise ----

static double as_leaky(double x) {
    return x < 0 ? 0.2 * x : x;
}
static double as_relu6(double x) {
    return fmin(fmax(x, 0), 6);
}
static double as_elu(double x) {
    return x < 0 ? 2 * expm1(x) : x;
}
static double as_celu(double x) {
    return x < 0 ? 0.3 * expm1(x / 0.3) : x;
}
static double as_gelu(double x) {
    return x / 2 * erfc(-x / sqrt(2));
}
static double as_gelu_tanh(double x) {
    return x / 2 * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
}
static double as_mish(double x) {
    return x * tanh(log1p(exp(x)));
}
static double as_hard_swish(double x) {
    return x * fmin(fmax(x + 3, 0), 6) / 6;
}
static double as_square(double x) {
    return x * x;
}
static double as_clamp(double x) {
    return fmin(fmax(x, -0.5), 1.5);
}
static double as_floor(double x) {
    return fmax(x, 0.25);
}
static double as_least(double x) {
    return fmin(x, -x);
}
static double as_where(double x) {
    return x > 0.5 ? 1 / x : 3;
}
static double as_between(double x) {
    return x >= -1 && x < 1;
}
static double as_outside(double x) {
    return !(x >= -1 && x < 1);
}
static double as_equal(double x) {
    return x == 0.5;
}
static double as_differs(double x) {
    return x != 0.5;
}
static double as_itself(double x) {
    return x;
}
static double as_nothing(double x) {
    (void)x;
    return 0;
}
static double as_number(double x) {
    return x * 8;
}

static const struct {
    const char *expression;
    double (*value)(double);
} elements[] = {
    {"leaky_relu(x, 0.2)", as_leaky},
    {"relu6(x)", as_relu6},
    {"elu(x, alpha=2)", as_elu},
    {"celu(x, alpha=0.3)", as_celu},
    {"gelu(x)", as_gelu},
    {"gelu(x, approximate=none)", as_gelu},
    {"gelu(x, tanh)", as_gelu_tanh},
    {"mish(x)", as_mish},
    {"hard_swish(x)", as_hard_swish},
    {"square(x)", as_square},
    {"sin(x)", sin},
    {"cos(x)", cos},
    {"clamp(x, -0.5, 1.5)", as_clamp},
    {"clamp(x, low=0.25)", as_floor},
    {"maximum(x, 0.25)", as_floor},
    {"minimum(x, -x)", as_least},
    {"where(x > 0.5, 1 / x, 3)", as_where},
    {"where(0.5 < x, 1 / x, 3 + 0 * x)", as_where},
    {"1 * (x >= -1 and x < 1)", as_between},
    {"1 * not (x >= -1 and x < 1)", as_outside},
    {"1 * (x < -1 or x >= 1)", as_outside},
    {"1 * (x == 0.5)", as_equal},
    {"1 * (x != 0.5)", as_differs},
    {"stop_gradient(x)", as_itself},
    {"x * square(maximum(2, sqrt(8)))", as_number},
    {"dropout(x, 0.9)", as_itself},
    {"noise(x)", as_nothing},
};

START_TEST(elements_follow_formulas) {
    Result r = result_in(elements[_i].expression, false);
    ck_assert_int_eq(type_count(&r.type), 64);
    for (int i = 0; i < 64; i++)
        ck_assert_double_eq_tol(r.y[i], elements[_i].value(pixel(i)), 1e-9);
    arena_free(r.l.arena);
}
END_TEST

// ---- shapes and reductions ----

// Element i of the result, with x as [4, 2, 4, 2] under the name z.
static double flipped_order(int i) { // transpose(z, [0, 3, 2, 1])
    int n = i / 16, c = i / 8 % 2, w = i / 2 % 4, h = i % 2;
    return pixel(((n * 2 + h) * 4 + w) * 2 + c);
}
static double last_columns(int i) { // z[:, :, 1:3, :]
    int n = i / 8, h = i / 4 % 2, w = i / 2 % 2, c = i % 2;
    return pixel(((n * 2 + h) * 4 + w + 1) * 2 + c);
}
static double doubled(int i) { // z beside -z, in the channels
    int c = i % 4;
    return c < 2 ? pixel(i / 4 * 2 + c) : -pixel(i / 4 * 2 + c - 2);
}
static double exchanged(int i) { // columns 3, 0 1 2
    int w = i / 2 % 4;
    return pixel(w == 0 ? i + 6 : i - 2);
}
static double mirrored(int i) { // a column left, two right, reflected
    int row = i / 14, w = i / 2 % 7 - 1, c = i % 2;
    w = w < 0 ? -w : w > 3 ? 6 - w : w;
    return pixel((row * 4 + w) * 2 + c);
}
static double continued(int i) { // a row above and below
    int n = i / 32, h = i / 8 % 4 - 1;
    h = h < 0 ? 0 : h > 1 ? 1 : h;
    return pixel((n * 2 + h) * 8 + i % 8);
}
static double framed(int i) { // zeros around
    int n = i / 48, h = i / 12 % 4 - 1, w = i / 2 % 6 - 1;
    bool out = h < 0 || h > 1 || w < 0 || w > 3;
    return out ? 0 : pixel(((n * 2 + h) * 4 + w) * 2 + i % 2);
}
static double of_image(int i, int channel, double (*step)(double, double)) {
    double all = NAN;
    for (int k = 0; k < 8; k++) {
        double x = pixel((i * 8 + k) * 2 + channel);
        all = k ? step(all, x) : x;
    }
    return all;
}
static double add(double a, double b) {
    return a + b;
}
static double sums(int i) {
    return of_image(i / 2, i % 2, add);
}
static double means(int i) {
    return sums(i) / 8;
}
static double maxima(int i) {
    return of_image(i / 2, i % 2, fmax);
}
static double variances(int i) { // unbiased
    double mean = means(i), sum = 0;
    for (int k = 0; k < 8; k++) {
        double x = pixel((i / 2 * 8 + k) * 2 + i % 2) - mean;
        sum += x * x;
    }
    return sum / 7;
}
static double largest_column(int i) {
    int best = 0, row = i / 2 * 8 + i % 2;
    for (int w = 1; w < 4; w++)
        if (pixel(row + 2 * w) > pixel(row + 2 * best))
            best = w;
    return best;
}
static double column_shares(int i) {
    int row = i / 8 * 8 + i % 2;
    double sum = 0;
    for (int w = 0; w < 4; w++)
        sum += exp(pixel(row + 2 * w));
    return exp(pixel(i)) / sum;
}
static double log_shares(int i) {
    double other = pixel(i ^ 1);
    return -log1p(exp(other - pixel(i)));
}
static double products(int i) { // of [4,4,4] with itself transposed
    int n = i / 16, r = i / 4 % 4, c = i % 4;
    double sum = 0;
    for (int k = 0; k < 4; k++)
        sum += pixel(n * 16 + r * 4 + k) * pixel(n * 16 + c * 4 + k);
    return sum;
}
static double nearest(int i) { // twice as large
    int n = i / 64, h = i / 16 % 4 / 2, w = i / 2 % 8 / 2;
    return pixel(((n * 2 + h) * 4 + w) * 2 + i % 2);
}
static double hot(int i) { // one_hot of 3 * (n * 16 + position) mod 5
    int x = i / 5 * 37 % 251;
    return x == i % 5;
}
static double norms(int i) { // layer_norm of [4,4,4,1] as [4,16]
    double mean = 0, var = 0;
    for (int k = 0; k < 16; k++)
        mean += pixel(i / 16 * 16 + k) / 16;
    for (int k = 0; k < 16; k++)
        var += pow(pixel(i / 16 * 16 + k) - mean, 2) / 16;
    return (pixel(i) - mean) / sqrt(var + 0.1);
}
static double group_norms(int i) { // z as 2 groups of 1 channel
    double mean = means(i / 16 * 2 + i % 2);
    double var = variances(i / 16 * 2 + i % 2) * 7 / 8;
    return (pixel(i) - mean) / sqrt(var + 1e-5);
}

static const struct {
    const char *expression;
    int rank, dim[5];
    double (*value)(int);
} shapes[] = {
    {"z |> transpose([0, 3, 2, 1])", 4, {4, 2, 4, 2}, flipped_order},
    {"z |> transpose([batch, channels, width, height])",
     4,
     {4, 2, 4, 2},
     flipped_order},
    {"z |> slice(width, 1, 3)", 4, {4, 2, 2, 2}, last_columns},
    {"slice(z, axis=-2, from=1, to=3)", 4, {4, 2, 2, 2}, last_columns},
    {"concat([z, -z])", 4, {4, 2, 4, 4}, doubled},
    {"concat([slice(z, 2, 3), slice(z, 2, to=3)], axis=width)",
     4,
     {4, 2, 4, 2},
     exchanged},
    {"pad(z, [0, 0, 1, 2], mode=reflect)", 4, {4, 2, 7, 2}, mirrored},
    {"pad(z, [1, 0], mode=edge)", 4, {4, 4, 4, 2}, continued},
    {"pad(z, 1)", 4, {4, 4, 6, 2}, framed},
    {"sum(z, axes=[height, width])", 2, {4, 2}, sums},
    {"sum(z, axes=[1, -2], keep)", 4, {4, 1, 1, 2}, sums},
    {"mean(z, [width, height])", 2, {4, 2}, means},
    {"max(z, axes=[height, width])", 2, {4, 2}, maxima},
    {"var(z, axes=[height, width])", 2, {4, 2}, variances},
    {"var(z, axes=[height, width], unbiased=false) * 8 / 7",
     2,
     {4, 2},
     variances},
    {"argmax(z, axis=width)", 3, {4, 2, 2}, largest_column},
    {"softmax(z, axis=width)", 4, {4, 2, 4, 2}, column_shares},
    {"log_softmax(z)", 4, {4, 2, 4, 2}, log_shares},
    {"m @ transpose(m, [0, 2, 1])", 3, {4, 4, 4}, products},
    {"resize(z, factor=2)", 4, {4, 4, 8, 2}, nearest},
    {"resize(z, [4, 8], mode=nearest)", 4, {4, 4, 8, 2}, nearest},
    {"one_hot(image, 5)", 5, {4, 4, 4, 1, 5}, hot},
    {"x |> flatten |> layer_norm(eps=0.1, scale=false, bias=false)",
     2,
     {4, 16},
     norms},
    {"z |> group_norm(2, scale=false, bias=false)",
     4,
     {4, 2, 4, 2},
     group_norms},
};

START_TEST(shapes_follow_formulas) {
    Arena *a = arena_new();
    Result r = result_in(arena_format(a,
                                      "x\nz = x |> reshape([N, 2, 4, 2])\n"
                                      "m = x |> reshape([-1, 4, 4])\n"
                                      "z = z + 0 * mean(m, [0, 1, 2])\n"
                                      "y = %s",
                                      shapes[_i].expression),
                         false);
    arena_free(a);
    ck_assert_int_eq(r.type.rank, shapes[_i].rank);
    for (int i = 0; i < r.type.rank; i++)
        ck_assert_int_eq(r.type.dim[i], shapes[_i].dim[i]);
    for (int i = 0; i < (int)type_count(&r.type); i++)
        ck_assert_double_eq_tol(r.y[i], shapes[_i].value(i), 1e-9);
    arena_free(r.l.arena);
}
END_TEST

// A `for` iterates over a list, and concat restores it.
START_TEST(parts_join_to_the_whole) {
    Result r = result_in("x\nh = x |> reshape([N, 16])\n"
                         "y = concat(split(h, [1, 5, 10]), axis=1)",
                         false);
    for (int i = 0; i < 64; i++)
        ck_assert_double_eq_tol(r.y[i], pixel(i), 1e-12);
    arena_free(r.l.arena);
}
END_TEST

START_TEST(parts_have_indices) {
    Result r = result_in("x\nh = split(x |> reshape([N, 16]), 2)\n"
                         "y = concat([h[1], h[-2]])",
                         false);
    for (int i = 0; i < 64; i++)
        ck_assert_double_eq_tol(r.y[i], pixel(i ^ 8), 1e-12);
    arena_free(r.l.arena);
}
END_TEST

// ---- layers ----

START_TEST(linear_keeps_leading_axes) {
    Result r =
        result_in("x |> reshape([N, 4, 4]) |> linear(3, bias=false)", false);
    ck_assert_int_eq(r.type.rank, 3);
    ck_assert_int_eq(r.type.dim[2], 3);
    for (int i = 0; i < 48; i++) {
        double sum = 0;
        for (int k = 0; k < 4; k++)
            sum += pixel(i / 3 * 4 + k) * sin(1.0 + i % 3 * 4 + k) / 2;
        ck_assert_double_eq_tol(r.y[i], sum, 1e-9);
    }
    arena_free(r.l.arena);
}
END_TEST

START_TEST(embedding_takes_rows) {
    Result r = result_in("image |> flatten |> embedding(251, 3)", false);
    ck_assert_int_eq(r.type.rank, 3);
    for (int i = 0; i < 192; i++)
        ck_assert_double_eq_tol(
            r.y[i], sin(1.0 + i / 3 * 37 % 251 * 3 + i % 3) / 2, 1e-12);
    arena_free(r.l.arena);
}
END_TEST

START_TEST(parameters_stand_alone) {
    Result r = result_in("x + parameter([4, 1], init=ones)", false);
    for (int i = 0; i < 64; i++)
        ck_assert_double_eq_tol(r.y[i], pixel(i) + sin(1.0 + i % 4) / 2, 1e-12);
    arena_free(r.l.arena);
}
END_TEST

// 4 positions of 4 channels, in heads of 2: the formula, from the projections
// on.
static double attended(const double *qkv, int n, int t, int c, bool causal) {
    double sum = 0, value = 0;
    for (int s = 0; s < (causal ? t + 1 : 4); s++) {
        double score = 0;
        for (int k = c / 2 * 2; k < c / 2 * 2 + 2; k++)
            score += qkv[(n * 4 + t) * 12 + k] * qkv[(n * 4 + s) * 12 + 4 + k];
        double share = exp(score / sqrt(2));
        sum += share;
        value += share * qkv[(n * 4 + s) * 12 + 8 + c];
    }
    return value / sum;
}

static double weight(int row, int column, int columns) {
    return sin(1.0 + row * columns + column) / 2;
}

START_TEST(attention_follows_its_formula) {
    bool causal = _i == 1;
    Result r = result_in(causal ? "x |> reshape([N, 4, 4])"
                                  " |> attention(2, causal)"
                                : "x |> reshape([N, 4, 4]) |> attention(2)",
                         false);
    double qkv[4 * 4 * 12];
    for (int i = 0; i < 4 * 4 * 12; i++) {
        qkv[i] = sin(1.0 + i % 12) / 2;
        for (int k = 0; k < 4; k++)
            qkv[i] += pixel(i / 12 * 4 + k) * weight(i % 12, k, 4);
    }
    for (int i = 0; i < 64; i++) {
        double y = sin(1.0 + i % 4) / 2;
        for (int k = 0; k < 4; k++)
            y += attended(qkv, i / 16, i / 4 % 4, k, causal) *
                 weight(i % 4, k, 4);
        ck_assert_double_eq_tol(r.y[i], y, 1e-9);
    }
    arena_free(r.l.arena);
}
END_TEST

// The training graph drops about a fraction p of the numbers, others in each
// step, and scales the rest.
START_TEST(dropout_scales_what_stays) {
    Result r = result_in("dropout(x, 0.25)", true);
    int out = 0;
    for (int i = 0; i < 64; i++) {
        bool zero = r.y[i] == 0;
        out += zero;
        if (!zero)
            ck_assert_double_eq_tol(r.y[i], pixel(i) / 0.75, 1e-9);
    }
    ck_assert_int_gt(out, 4);
    ck_assert_int_lt(out, 32);
    double **leaf = leaves_of(r.graph, r.l.arena);
    *leaf[graph_find(r.graph, "run.step")] = 1;
    double **later = graph_eval(r.graph, r.l.arena, leaf, false);
    int same = 0;
    for (NodeId n = 0; n < r.graph->count; n++)
        if (r.all[n] == r.y)
            for (int i = 0; i < 64; i++)
                same += (later[n][i] == 0) == (r.y[i] == 0);
    ck_assert_int_lt(same, 60);
    arena_free(r.l.arena);
}
END_TEST

// The definition of noise, with `epoch` as the batch's counter.
static double normal_number(const char *stream, uint32_t epoch, uint32_t i) {
    char angle[64];
    snprintf(angle, sizeof angle, "%s/angle", stream);
    double u = random_shared(3, (uint32_t)stream_of(stream), epoch, i);
    double v = random_shared(3, (uint32_t)stream_of(angle), epoch, i);
    return sqrt(-2 * log(1 - u)) * cos(2 * acos(-1) * v);
}

// In step 7, or in an evaluation of a batch that begins with sample 7.
static void noise_is(const char *expression, bool training,
                     const char *stream) {
    Result r = result_in(expression, training);
    double **leaf = leaves_of(r.graph, r.l.arena);
    *leaf[graph_find(r.graph, "run.seed")] = 3;
    *leaf[graph_find(r.graph, training ? "run.step" : "index")] = 7;
    double **all = graph_eval(r.graph, r.l.arena, leaf, false);
    for (NodeId n = 0; n < r.graph->count; n++)
        for (uint32_t i = 0; r.all[n] == r.y && i < 64; i++)
            ck_assert_double_eq_tol(all[n][i], normal_number(stream, 7, i),
                                    1e-9);
    arena_free(r.l.arena);
}

START_TEST(noise_follows_its_definition) {
    noise_is("noise(x)", true, "noise_1");
    noise_is("noise(x, always)", true, "noise_1");
    noise_is("noise(x, always)", false, "noise_1/evaluation");
    noise_is("noise(image)", true, "noise_1");
}
END_TEST

// Split i mod 2 of the batch has its own statistics.
START_TEST(ghosts_have_their_own_statistics) {
    Result r =
        result_in("batch_norm(x, ghost=2, scale=false, bias=false)", true);
    for (int s = 0; s < 2; s++) {
        double mean = 0, var = 0;
        for (int i = 0; i < 64; i++)
            mean += i / 16 % 2 == s ? pixel(i) / 32 : 0;
        for (int i = 0; i < 64; i++)
            var += i / 16 % 2 == s ? pow(pixel(i) - mean, 2) / 32 : 0;
        for (int i = 0; i < 64; i++)
            if (i / 16 % 2 == s)
                ck_assert_double_eq_tol(
                    r.y[i], (pixel(i) - mean) / sqrt(var + 1e-5), 1e-9);
        for (NodeId n = 0; n < r.graph->count; n++) {
            const Node *node = &r.graph->node[n];
            if (node->op == OP_assign &&
                node->arg[0] == graph_find(r.graph, "batch_norm_1.running_var"))
                ck_assert_double_eq_tol(r.all[node->arg[1]][s],
                                        0.9 + 0.1 * var * 32 / 31, 1e-9);
        }
    }
    arena_free(r.l.arena);
}
END_TEST

START_TEST(ghosts_are_averaged_in_evaluation) {
    Result r = result_in("batch_norm(x, ghost=2)", false);
    double **leaf = leaves_of(r.graph, r.l.arena);
    NodeId mean = graph_find(r.graph, "batch_norm_1.running_mean");
    NodeId var = graph_find(r.graph, "batch_norm_1.running_var");
    leaf[mean][0] = 1;
    leaf[mean][1] = 2;
    leaf[var][1] = 5;
    double **all = graph_eval(r.graph, r.l.arena, leaf, false);
    for (NodeId n = 0; n < r.graph->count; n++)
        for (int i = 0; r.all[n] == r.y && i < 64; i++)
            ck_assert_double_eq_tol(
                all[n][i],
                (pixel(i) - 1.5) / sqrt(3 + 1e-5) * (sin(1) / 2) + sin(1) / 2,
                1e-9);
    arena_free(r.l.arena);
}
END_TEST

Suite *layers_suite(void) {
    Suite *s = suite_create("layers");
    TCase *t = tcase_create("layers");
    tcase_add_loop_test(t, elements_follow_formulas, 0,
                        sizeof elements / sizeof elements[0]);
    tcase_add_loop_test(t, shapes_follow_formulas, 0,
                        sizeof shapes / sizeof shapes[0]);
    tcase_add_test(t, parts_join_to_the_whole);
    tcase_add_test(t, parts_have_indices);
    tcase_add_test(t, linear_keeps_leading_axes);
    tcase_add_test(t, embedding_takes_rows);
    tcase_add_test(t, parameters_stand_alone);
    tcase_add_loop_test(t, attention_follows_its_formula, 0, 2);
    tcase_add_test(t, dropout_scales_what_stays);
    tcase_add_test(t, noise_follows_its_definition);
    tcase_add_test(t, ghosts_have_their_own_statistics);
    tcase_add_test(t, ghosts_are_averaged_in_evaluation);
    suite_add_tcase(s, t);
    return s;
}
