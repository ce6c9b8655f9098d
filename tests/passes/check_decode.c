// Decode: position by position, the numbers of a prediction for whole texts.
#include "frontend/frontend.h"
#include "tests/passes/suites.h"
#include "tests/passes/values.h"

#include <math.h>
#include <string.h>

enum { SAMPLES = 2, POSITIONS = 6, WORDS = 11 };

#define RECIPE                                                                 \
    "\ntrain Net {\n"                                                          \
    "  data = synthetic(vocabulary=11, shape=[6])\n"                           \
    "  batch = 2\n  epochs = 1\n  optimizer = sgd(lr=0.1)\n"                   \
    "  loss = mean(cross_entropy(output, label))\n}\n"

// The prediction of a model whose body begins with h: f32[N, 6, 8].
static Graph *prediction(Arena *a, const char *body) {
    Diagnostics diags = diag_new(a);
    const char *text =
        arena_format(a,
                     "model Net(text: i32[N, T]) -> f32[N, T, 11] {\n"
                     "  h = text |> embedding(11, 8)\n"
                     "  %s |> linear(11)\n}\n" RECIPE,
                     body);
    Program *p =
        frontend_parse(a, "net.net", text, strlen(text), NULL, 0, &diags);
    ck_assert_msg(p != NULL, "%s", text);
    return p->predict;
}

// The leaves of the step: weights as in the prediction, a sample's token, its
// place, and the caches, which begin with `stale` numbers.
static double **step_leaves(const Graph *step, const Graph *whole, Arena *a,
                            double *const *leaf, int sample, int position,
                            double *const *cache) {
    double **own = ARENA_ARRAY(a, step->count, double *);
    for (NodeId n = 0; n < step->count; n++) {
        const Node *d = &step->node[n];
        if (d->op != OP_input && d->op != OP_param && d->op != OP_state)
            continue;
        const char *name = node_text(d, ATTR_name);
        NodeId other = graph_find(whole, name);
        own[n] = ARENA_ARRAY(a, (size_t)type_count(d->type), double);
        if (state_is(d, STATE_CACHE))
            own[n] = cache[n];
        else if (strcmp(name, "position") == 0)
            own[n][0] = position;
        else if (strcmp(name, "image") == 0)
            own[n][0] = leaf[other][sample * POSITIONS + position];
        else
            own[n] = leaf[other];
    }
    return own;
}

static double **caches_new(const Graph *step, Arena *a, double stale) {
    double **cache = ARENA_ARRAY(a, step->count, double *);
    for (NodeId n = 0; n < step->count; n++) {
        if (!state_is(&step->node[n], STATE_CACHE))
            continue;
        int64_t count = type_count(step->node[n].type);
        cache[n] = ARENA_ARRAY(a, (size_t)count, double);
        for (int64_t i = 0; i < count; i++)
            cache[n][i] = stale * (double)(i % 7 - 3);
    }
    return cache;
}

// Numbers of an earlier text in the caches change nothing.
static void check_sample(const Graph *whole, const Graph *step, int sample,
                         double stale) {
    Arena *a = arena_new();
    double **leaf = leaf_values(whole, a, 1, -1, 1);
    NodeId image = graph_find(whole, "image");
    for (int i = 0; i < SAMPLES * POSITIONS; i++)
        leaf[image][i] = (i * 5 + i / 4) % WORDS;
    const double *want =
        value_named(whole, graph_eval(whole, a, leaf, false), "prediction");
    double **cache = caches_new(step, a, stale);
    for (int t = 0; t < POSITIONS; t++) {
        double **value = graph_eval(
            step, a, step_leaves(step, whole, a, leaf, sample, t, cache),
            false);
        const double *got = value_named(step, value, "prediction");
        for (int i = 0; i < WORDS; i++) {
            double is = want[(sample * POSITIONS + t) * WORDS + i];
            ck_assert_msg(fabs(got[i] - is) <= 1e-12 * (1 + fabs(is)),
                          "position %d: %g, not %g", t, got[i], is);
        }
        for (NodeId n = 0; n < step->count; n++)
            if (cache[n] != NULL)
                cache[n] = (double *)value_named(
                    step, value, node_text(&step->node[n], ATTR_name));
    }
    arena_free(a);
}

static const char *const causal[] = {
    "h",
    "h |> attention(2, causal)",
    "(h + parameter([T, 8])) |> layer_norm |> attention(4, causal) |> gelu",
    "(h + h |> attention(2, causal)) |> attention(1, causal) |> softmax",
    "h * (text |> embedding(11, 8)) |> dropout(0.5) |> attention(2, causal)",
    "(h |> reshape([N, T, 2, 4]) |> transpose([0, 2, 1, 3])"
    " |> transpose([0, 2, 1, 3]) |> reshape([N, T, 8]))"
    " + parameter([T, 8], init=normal) * parameter([T, 1], init=normal)",
    "(h + one_hot(text, 11) @ parameter([11, 8], init=normal))",
    // attention with a mask that is multiplied, and one that is added
    "(softmax(where(tensor(range(T)) <= reshape(tensor(range(T)), [T, 1]),"
    " (h @ transpose(h, [0, 2, 1])), -1e30)) @ h)",
    "(softmax((h @ transpose(h, [0, 2, 1])) - "
    " where(reshape(tensor(range(T)), [T, 1]) < tensor(range(T)), 1e12, 0)) @ "
    "h)",
    // sums of earlier positions
    "(where(tensor(range(T)) <= reshape(tensor(range(T)), [T, 1]),"
    " (h @ transpose(h, [0, 2, 1])), 0) @ h)",
};

START_TEST(each_position_has_the_same_numbers) {
    Arena *a = arena_new();
    const char *why;
    Graph *whole = prediction(a, causal[_i]);
    Graph *step = decode_graph(whole, &why);
    ck_assert_msg(step != NULL, "%s", why);
    ck_assert_ptr_null(graph_verify(step, a));
    for (int i = 0; i < SAMPLES; i++) {
        check_sample(whole, step, i, 0);
        check_sample(whole, step, i, 1e3);
    }
    arena_free(a);
}
END_TEST

static const struct {
    const char *body, *why;
} refused[] = {
    {"h |> attention(2)", "softmax of attention_1, net.net:3 reads later"},
    {"(h + mean(h, positions, keep))", "reads later positions"},
    {"h |> reshape([N, 8, T]) |> reshape([N, T, 8])", "mixes positions"},
    {"h |> transpose([1, 0, 2]) |> reshape([N, T, 8])", "mixes positions"},
    {"(h |> transpose([0, 2, 1]) |> linear(T) |> transpose([0, 2, 1]))",
     "adds up samples or positions"},
    {"(h + reshape(sum(transpose(reshape(h, [N, 48]), [1, 0]) @"
     " reshape(h, [N, 48]), channels), [1, T, 8]))",
     "the model depends on the number of valid samples"},
    {"(softmax(where(tensor(range(T)) < reshape(tensor(range(T)), [T, 1]) + 2,"
     " (h @ transpose(h, [0, 2, 1])), -1e30)) @ h)",
     "reads later positions"},
    {"h + parameter([N, 1, 8])", "differs between samples"},
};

START_TEST(others_are_refused) {
    Arena *a = arena_new();
    const char *why;
    ck_assert_ptr_null(decode_graph(prediction(a, refused[_i].body), &why));
    ck_assert_ptr_nonnull(why);
    ck_assert_msg(strstr(why, refused[_i].why) != NULL, "%s", why);
    arena_free(a);
}
END_TEST

Suite *decode_suite(void) {
    Suite *s = suite_create("decode");
    TCase *c = tcase_create("decode");
    tcase_add_loop_test(c, each_position_has_the_same_numbers, 0,
                        sizeof causal / sizeof *causal);
    tcase_add_loop_test(c, others_are_refused, 0,
                        sizeof refused / sizeof *refused);
    suite_add_tcase(s, c);
    return s;
}
