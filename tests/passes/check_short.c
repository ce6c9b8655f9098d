// Short last batches: what the samples that count come to must not depend on
// how many others fill the batch up, also where samples interact.  A program
// with a batch of 8 of which 5 count is held against the same program with a
// batch of 5 and drop_last, whose training has no masks: the loss, each
// parameter after a step, and the sums of metrics.
#include "tests/passes/suites.h"
#include "tests/passes/values.h"

#include "frontend/frontend.h"

#include <math.h>
#include <string.h>

enum { LARGE = 8, SMALL = 5, NUM_RANDOM = 400 };

// ---- programs ----

// n is the batch, for what is written out for each sample.
static const char *program_text(Arena *a, const char *input, const char *body,
                                const char *loss, int batch, bool drop_last) {
    return arena_format(
        a,
        "import \"std/vision.net\" { cutmix, mixup }\n"
        "let n = %d\n"
        "fn turned(x) = transpose(x, [1, 0])\n"
        "fn unit(x) = x / sqrt(sum(square(x), channels, keep) + 0.01)\n"
        "fn eye(n) = reshape(tensor(range(n)), [n, 1]) == tensor(range(n))\n"
        "fn same(y) = reshape(y, [-1, 1]) == reshape(y, [1, -1])\n"
        "fn centred(x) = x - mean(x, batch, keep)\n"
        "model M(x: f32[%s]) {\n%s\n}\n"
        "train M { data = npy(\"x\"); batch = %d%s; epochs = 1\n"
        "input = data.train%s\nloss = %s\noptimizer = sgd(lr=1)\n}\n",
        batch, *input ? "N, 2, 2, 1" : "N, 4", body, batch,
        drop_last ? ", drop_last" : "", input, loss);
}

static Program *program_of(Arena *a, const char *text) {
    Diagnostics d = diag_new(a);
    Program *p =
        frontend_parse(a, "short.net", text, strlen(text), NULL, 0, &d);
    ck_assert_msg(p != NULL, "%s in\n%s",
                  d.count ? d.list[0]->message : "nothing", text);
    return p;
}

// A graph, with the values of its nodes when five samples count.  The inputs
// of a batch begin with those of a smaller one.
typedef struct {
    const Graph *graph;
    double **value;
} Valued;

static Valued valued(const Program *p, Arena *a, uint32_t seed, bool training) {
    Graph *g = training ? p->stage[0].train : p->eval;
    if (training) {
        g = run_pass(run_pass(g, "canonicalize", F32), "autodiff", F32);
        g = run_pass(g, "optimizer", F32);
    }
    double **leaf = leaf_values(g, a, seed, -1, 1);
    NodeId valid = graph_find(g, "valid");
    if (valid != NO_NODE)
        *leaf[valid] = SMALL;
    return (Valued){g, graph_eval(g, a, leaf, false)};
}

static const char *effect_of(const Graph *g, NodeId n) {
    const Node *node = &g->node[n];
    if (node->op == OP_assign)
        node = &g->node[node->arg[0]];
    else if (node->op != OP_output)
        return NULL;
    return node_text(node, ATTR_name);
}

// Sums of a few hundred numbers about 1, in double, in another order.
static bool is_close(double a, double b) {
    return fabs(a - b) <= 1e-9 * fmax(1, fmax(fabs(a), fabs(b)));
}

static void check_same(const Valued *large, const Valued *small,
                       const char *text) {
    int compared = 0;
    for (NodeId n = 0; n < small->graph->count; n++) {
        const char *name = effect_of(small->graph, n);
        if (name == NULL)
            continue;
        const double *got = value_named(large->graph, large->value, name);
        ck_assert_msg(got != NULL, "there is no %s in\n%s", name, text);
        int64_t count = type_count(small->graph->node[n].type);
        for (int64_t i = 0; i < count; i++)
            ck_assert_msg(is_close(got[i], small->value[n][i]),
                          "%s[%lld] of %s is %.17g in a batch filled up and "
                          "%.17g alone, in\n%s",
                          name, (long long)i, small->graph->name, got[i],
                          small->value[n][i], text);
        compared++;
    }
    ck_assert_int_ge(compared, 2);
}

// Holds training and evaluation of a program against those of the small batch.
static void check_program(const char *input, const char *body,
                          const char *loss) {
    Arena *a = arena_new();
    const char *text = program_text(a, input, body, loss, LARGE, false);
    const Program *large = program_of(a, text);
    const Program *small =
        program_of(a, program_text(a, input, body, loss, SMALL, true));
    ck_assert_msg(large->recipe.whole_train == NULL, "%s in\n%s",
                  large->recipe.whole_train, text);
    ck_assert_pstr_eq(large->recipe.whole_eval, NULL);
    for (int training = 0; training < 2; training++) {
        Valued l = valued(large, a, 7, training);
        Valued s = valued(small, a, 7, training);
        check_same(&l, &s, text);
    }
    arena_free(a);
}

// ---- programs that are known ----

static const struct {
    const char *input, *body, *loss;
} known[] = {
    // InfoNCE: each sample against all.
    {"", "x |> linear(3) |> unit",
     "mean(cross_entropy(5 * output @ turned(output), where(eye(n), 1, 0)))"},
    // NT-Xent of two views, without a sample's score for itself.
    {"",
     "z = concat(split(x, 2), axis=batch) |> linear(3) |> unit\n"
     "s = where(eye(2 * n), -1e9, z @ turned(z) * 2)\n"
     "l = split(log_softmax(s), 2, batch)\n"
     "a = split(l[0], 2)\nb = split(l[1], 2)\n"
     "concat([sum(where(eye(n), a[1], 0), channels, keep),\n"
     "sum(where(eye(n), b[0], 0), channels, keep)])",
     "mean(-output)"},
    // Supervised contrastive.
    {"", "x |> linear(3) |> unit",
     "mean(-sum(where(same(label) and not eye(n), log_softmax(where(eye(n), "
     "-1e9, 4 * output @ turned(output))), 0), channels, keep)\n"
     "/ (sum(where(same(label), 1, 0), channels, keep) - 0.5))"},
    // The hardest triplet of a batch.
    {"",
     "z = x |> linear(3)\n"
     "reshape(z, [-1, 1, 3]) - reshape(z, [1, -1, 3]) |> square\n"
     "|> sum(channels)",
     "mean(relu(max(where(same(label), output, -1e9), channels, keep)\n"
     "+ max(where(same(label), -1e9, -output), channels, keep) + 1))"},
    // Barlow Twins.
    {"",
     "z = split(x |> linear(6), 2)\n"
     "a = centred(z[0]) / sqrt(var(z[0], batch, keep) + 0.1)\n"
     "b = centred(z[1]) / sqrt(var(z[1], batch, keep) + 0.1)\n"
     "c = mean(reshape(a, [-1, 3, 1]) * reshape(b, [-1, 1, 3]), batch)\n"
     "full([n, 1], 0) + sum(square(c - where(eye(3), 1, 0)), [0, 1])",
     "mean(output)"},
    // VICReg: variance and covariance of centred features.
    {"",
     "z = x |> linear(3)\n"
     "count = sum(0 * slice(z, channels, 0, 1) + 1, [0, 1])\n"
     "c = turned(centred(z)) @ centred(z) / (count - 1)\n"
     "v = mean(relu(2 - sqrt(var(z, batch) + 0.0001)), 0)\n"
     "full([n, 1], 0) + v + sum(square(where(eye(3), 0, c)), [0, 1])",
     "mean(output)"},
    // Attention of each sample to all.
    {"",
     "q = x |> linear(4)\nk = x |> linear(4)\n"
     "softmax(q @ turned(k)) @ x",
     "mean(square(output))"},
    // Places of a sample that became rows.
    {"",
     "y = reshape(x, [-1, 1]) |> linear(1)\n"
     "reshape(softmax(y, batch) * centred(y), [-1, 4])",
     "sum(output * max(output, batch, keep))"},
    // A head that is scored among all of a batch, and what is measured of it.
    {"", "z = x |> linear(3)\nz @ turned(z)",
     "mean(cross_entropy(output, label))\n"
     "eval at end { metrics = [accuracy, top5, perplexity] }"},
    // Numbers that an evaluation draws, too.
    {"", "x + noise(x, always=true) |> linear(3)", "mean(square(output))"},
    // Images from several views.
    {" |> cutmix(1)", "z = x |> flatten |> linear(3)\nsoftmax(z, batch)",
     "mean(cross_entropy(output, label))\n"
     "eval at end { views = [0.75: identity, 0.25: flip_lr] }"},
    // The next sample that counts.
    {" |> mixup(1)", "x |> flatten |> linear(3)",
     "mean(cross_entropy(output, label))"},
    {" |> cutmix(1)", "x |> flatten |> linear(3)",
     "mean(square(output - label))"},
};
enum { NUM_KNOWN = sizeof known / sizeof known[0] };

START_TEST(samples_that_interact_are_those_that_count) {
    check_program(known[_i].input, known[_i].body, known[_i].loss);
}
END_TEST

// ---- programs that are drawn ----

// Kinds of values, by shape: of the features [N, 3], of each sample with
// each [N, N], of samples [N, 1] and turned [1, N], of features [1, 3] and of
// each with each [3, 3].
typedef enum { FEATURES, PAIRS, COLUMN, ROW, CHANNELS, SQUARE, NUM_KINDS } Kind;

static const char kinds[] = "fpcrds";

typedef struct {
    Arena *arena;
    Text text;
    uint32_t seed, draws;
    int count[NUM_KINDS]; // of values of each kind: f0, f1, p0 ...
} Draw;

static uint32_t draw(Draw *d, uint32_t below) {
    return (uint32_t)(random_uniform(d->seed, 1, 0, d->draws++) * below);
}

// The name of some value of a kind, each time another one, that there is.
static const char *any(Draw *d, Kind k) {
    return arena_format(d->arena, "%c%u", kinds[k],
                        draw(d, (uint32_t)d->count[k]));
}

// Operations, with the kinds of their operands: $ stands for one of each.  All
// results are at most about 1, so that sums stay exact.
static const struct {
    Kind gives, takes[2];
    int operands;
    const char *text;
} grown[] = {
    {FEATURES, {FEATURES}, 1, "tanh($ |> linear(3))"},
    {FEATURES, {FEATURES}, 1, "tanh($ - mean($, batch, keep))"},
    {FEATURES, {FEATURES}, 1, "$ / sqrt(var($, batch, keep) + 1)"},
    {FEATURES, {FEATURES}, 1, "$ / sqrt(var($, 0, keep, unbiased=false) + 1)"},
    {FEATURES, {FEATURES}, 1, "3 * softmax($, batch)"},
    {FEATURES, {FEATURES}, 1, "softmax($)"},
    {FEATURES, {FEATURES}, 1, "log_softmax($, batch) / 4"},
    {FEATURES, {FEATURES}, 1, "$ - max($, batch, keep)"},
    {FEATURES, {FEATURES}, 1, "$ / sqrt(sum(square($), batch, keep) + 1)"},
    {FEATURES, {FEATURES, COLUMN}, 2, "$ * $"},
    {FEATURES, {FEATURES, CHANNELS}, 2, "tanh($ + $)"},
    {FEATURES, {PAIRS, FEATURES}, 2, "tanh($ @ $)"},
    {FEATURES, {FEATURES, SQUARE}, 2, "tanh($ @ $)"},
    {FEATURES,
     {FEATURES, FEATURES},
     2,
     "split(softmax(concat([$, $], batch), batch), 2, batch)[1]"},
    {FEATURES,
     {FEATURES},
     1,
     "reshape(softmax(reshape($, [-1, 1]), batch), [-1, 3])"},
    {FEATURES, {FEATURES}, 1, "turned(softmax(turned($), 1))"},
    {PAIRS, {FEATURES, FEATURES}, 2, "tanh($ @ turned($))"},
    {PAIRS, {COLUMN, ROW}, 2, "tanh($ - $)"},
    {PAIRS, {PAIRS}, 1, "softmax($)"},
    {PAIRS, {PAIRS}, 1, "softmax($, batch)"},
    {PAIRS, {PAIRS}, 1, "turned($)"},
    {PAIRS, {PAIRS}, 1, "where(eye(n), -1, $)"},
    {PAIRS, {PAIRS}, 1, "$ - mean($, [0, 1], keep)"},
    {PAIRS, {PAIRS, PAIRS}, 2, "tanh($ @ $)"},
    {COLUMN, {PAIRS}, 1, "mean($, channels, keep)"},
    {COLUMN, {PAIRS}, 1, "max($, channels, keep)"},
    {COLUMN, {PAIRS}, 1, "var($, 1, keep)"},
    {COLUMN, {FEATURES}, 1, "sum($, channels, keep)"},
    {COLUMN, {ROW}, 1, "reshape($, [-1, 1])"},
    {ROW, {PAIRS}, 1, "mean($, batch, keep)"},
    {ROW, {COLUMN}, 1, "turned($)"},
    {CHANNELS, {FEATURES}, 1, "mean($, batch, keep)"},
    {CHANNELS, {FEATURES}, 1, "max($, batch, keep)"},
    {CHANNELS, {FEATURES}, 1, "var($, batch, keep)"},
    {SQUARE, {FEATURES, FEATURES}, 2, "tanh(turned($) @ $)"},
};
enum { NUM_GROWN = sizeof grown / sizeof grown[0] };

// A line that gives one more value.  The same value stands for each $ of a
// single operand.
static void grow(Draw *d) {
    uint32_t i = draw(d, NUM_GROWN);
    const char *of[2] = {NULL, NULL};
    for (int k = 0; k < grown[i].operands; k++) {
        if (d->count[grown[i].takes[k]] == 0)
            return;
        of[k] = any(d, grown[i].takes[k]);
    }
    Kind gives = grown[i].gives;
    text_add(&d->text, "%c%d = ", kinds[gives], d->count[gives]++);
    int next = 0;
    for (const char *c = grown[i].text; *c != '\0'; c++)
        if (*c == '$')
            text_add(&d->text, "%s", of[grown[i].operands == 2 ? next++ : 0]);
        else
            text_add(&d->text, "%c", *c);
    text_add(&d->text, "\n");
}

// All values as one column, so that each goes somewhere.
static void gather(Draw *d) {
    static const char *const as_column[NUM_KINDS] = {
        "mean(%c%d, channels, keep)",
        "mean(%c%d, channels, keep)",
        "%c%d",
        "reshape(%c%d, [-1, 1])",
        "mean(%c%d, channels, keep)",
        "mean(%c%d, [0, 1], keep)"};
    const char *plus = "";
    for (int k = 0; k < NUM_KINDS; k++)
        for (int i = 0; i < d->count[k]; i++) {
            text_add(&d->text, "%s", plus);
            text_add(&d->text, as_column[k], kinds[k], i);
            plus = " + ";
        }
}

static const char *const drawn_loss[] = {
    "mean(square(output - reshape(label, [-1, 1])))",
    "mean(cross_entropy(output @ turned(output), where(eye(n), 1, 0)))",
    "mean(tanh(output @ turned(output)))",
    "sum(softmax(output, batch) * reshape(label, [-1, 1]))",
    ("mean(cross_entropy(concat([output, 1 - output]), where(reshape(label, "
     "[-1, 1]) > 0, tensor([1, 0]), tensor([0, 1]))))"),
};
enum { NUM_LOSSES = sizeof drawn_loss / sizeof drawn_loss[0] };

START_TEST(drawn_programs_do_not_see_what_fills_them_up) {
    Arena *a = arena_new();
    Draw d = {.arena = a, .text = text_new(a), .seed = (uint32_t)_i};
    text_add(&d.text, "f0 = x |> linear(3)\n");
    d.count[FEATURES] = 1;
    for (int i = 0; i < 8; i++)
        grow(&d);
    gather(&d);
    check_program("", text_string(&d.text), drawn_loss[draw(&d, NUM_LOSSES)]);
    arena_free(a);
}
END_TEST

// ---- programs that need whole batches ----

static const struct {
    const char *body, *loss, *whole;
} whole[] = {
    // The order of the samples moves.
    {"concat([slice(x, batch, 4), slice(x, batch, 0, 4)], batch) |> linear(3)",
     "mean(square(output))", "slice of slice_1, short.net:9"},
    {"reshape(x, [-1, 8]) |> linear(8) |> reshape([-1, 4])",
     "mean(square(output))", "reshape of reshape_1, short.net:9"},
    // Weights with a place for each sample.
    {"x + parameter([8, 4])", "mean(square(output))",
     "add of add_1, short.net:9"},
    {"turned(turned(x) |> linear(8))", "mean(square(output))",
     "matmul of linear_1, short.net:9"},
    {"turned(turned(x) |> layer_norm)", "mean(square(output))",
     "sum of layer_norm_1, short.net:9"},
    // Samples as positions, and as places of an image.
    {"reshape(x, [1, 8, 4]) |> attention(1) |> reshape([-1, 4])",
     "mean(square(output))", "attention of attention_1, short.net:9"},
    {"reshape(x, [1, 8, 4, 1]) |> conv(1, 3) |> reshape([-1, 4])",
     "mean(square(output))", "conv of conv_1, short.net:9"},
    // Pairs as rows.
    {"z = x |> linear(2)\nreshape(z, [-1, 1, 2]) - reshape(z, [1, -1, 2])\n"
     "|> linear(1) |> mean([1, 2])",
     "mean(output)", "reshape of linear_2, short.net:11"},
    // A size that a smaller batch would have smaller, which may be a shape's.
    {"z = x |> linear(3) |> reshape([N, 3])\nz / channels_of(z @ turned(z))",
     "mean(square(output))", "the batch's size as a number, short.net:10"},
    {"x |> linear(3) |> scale(1 / N)", "mean(square(output))",
     "the batch's size as a number, short.net:9"},
    {"z = x |> linear(3)\nz - sum(z, batch, keep) / (N - 1)",
     "mean(square(output))", "the batch's size as a number, short.net:10"},
    // Smoothing gives all classes a share.
    {"x |> linear(3)",
     "mean(cross_entropy(output @ turned(output), where(eye(n), 1, 0), "
     "smoothing=0.1))",
     "cross_entropy, short.net:13"},
};
enum { NUM_WHOLE = sizeof whole / sizeof whole[0] };

START_TEST(what_needs_whole_batches_is_named) {
    Arena *a = arena_new();
    Program *p = program_of(
        a, program_text(a, "", whole[_i].body, whole[_i].loss, LARGE, false));
    ck_assert_pstr_eq(p->recipe.whole_train, whole[_i].whole);
    ck_assert_pstr_eq(p->recipe.whole_eval, whole[_i].whole);
    p = program_of(
        a, program_text(a, "", whole[_i].body, whole[_i].loss, LARGE, true));
    ck_assert_ptr_null(p->recipe.whole_train);
    ck_assert_pstr_eq(p->recipe.whole_eval, whole[_i].whole);
    arena_free(a);
}
END_TEST

START_TEST(batch_norm_is_named) {
    Arena *a = arena_new();
    const char *body = "x |> linear(3) |> batch_norm |> batch_norm(ghost=2)";
    for (int drop_last = 0; drop_last < 2; drop_last++) {
        Program *p =
            program_of(a, program_text(a, "", body, "mean(square(output))",
                                       LARGE, drop_last));
        ck_assert_ptr_null(p->recipe.whole_train);
        ck_assert_ptr_null(p->recipe.whole_eval);
        ck_assert_pstr_eq(p->recipe.statistics,
                          drop_last ? NULL : "batch_norm_1, short.net:9");
    }
    arena_free(a);
}
END_TEST

Suite *short_suite(void) {
    Suite *s = suite_create("short");
    TCase *t = tcase_create("short");
    tcase_add_loop_test(t, samples_that_interact_are_those_that_count, 0,
                        NUM_KNOWN);
    tcase_add_loop_test(t, drawn_programs_do_not_see_what_fills_them_up, 0,
                        NUM_RANDOM);
    tcase_add_loop_test(t, what_needs_whole_batches_is_named, 0, NUM_WHOLE);
    tcase_add_test(t, batch_norm_is_named);
    suite_add_tcase(s, t);
    return s;
}
