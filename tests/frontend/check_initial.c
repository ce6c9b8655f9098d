// Initialisation: the numbers of the init graph.
#include "tests/frontend/suites.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The graph's values with a seed, and with other leaves as passed.
static double **values_of(const Graph *g, Arena *a, double *const *leaf) {
    double **all = ARENA_ARRAY(a, g->count, double *), *seed;
    for (NodeId n = 0; leaf != NULL && n < g->count; n++)
        all[n] = leaf[n];
    NodeId state = graph_find(g, "run.seed");
    seed = ARENA_ARRAY(a, 1, double);
    *seed = 7;
    if (state != NO_NODE)
        all[state] = seed;
    return graph_eval(g, a, all, false);
}

// The assigned value of the leaf of that name.
static const double *assigned(const Graph *g, double *const *value,
                              const char *name, int64_t *count) {
    NodeId leaf = graph_find(g, name);
    ck_assert_msg(leaf != NO_NODE, "there is no %s", name);
    *count = type_count(g->node[leaf].type);
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_assign && g->node[n].arg[0] == leaf)
            return value[g->node[n].arg[1]];
    ck_abort_msg("nothing assigns %s", name);
}

typedef struct {
    Loaded l;
    const double *number;
    int64_t count;
} Started;

static Started started(const char *layers, const char *name) {
    Arena *a = arena_new();
    Started s = {.l = load_model(arena_format(a,
                                              "h = image |> %s\nh |> flatten"
                                              " |> linear(2)",
                                              layers),
                                 "")};
    arena_free(a);
    ck_assert_str_eq(codes_of(&s.l), "");
    const Graph *g = s.l.program->init;
    const char *why = graph_verify(g, s.l.arena);
    ck_assert_msg(why == NULL, "%s", why);
    s.number = assigned(g, values_of(g, s.l.arena, NULL), name, &s.count);
    return s;
}

static double mean_of(const Started *s) {
    double sum = 0;
    for (int64_t i = 0; i < s->count; i++)
        sum += s->number[i];
    return sum / (double)s->count;
}

static double std_of(const Started *s) {
    double mean = mean_of(s), sum = 0;
    for (int64_t i = 0; i < s->count; i++)
        sum += pow(s->number[i] - mean, 2);
    return sqrt(sum / (double)s->count);
}

// ---- distributions ----

// Four standard errors of `count` numbers, and of PyTorch's million behind the
// stored moments.
static double four_errors(double std, double count) {
    return 4 * std * (1 / sqrt(count) + 1 / 1024.0) + 1e-6;
}

// A case is two lines: `PARAMETER of LAYERS`, and mean, standard deviation and
// maximum, or 0.
static void check_moments(const char *text, const char *numbers) {
    double mean, std, most, found = 0;
    char name[64];
    int at = 0;
    ck_assert_int_eq(sscanf(text, "%63s of %n", name, &at), 1);
    ck_assert_int_eq(sscanf(numbers, "%lf %lf %lf", &mean, &std, &most), 3);
    Started s = started(text + at, name);
    double count = (double)s.count;
    for (int64_t i = 0; i < s.count; i++)
        found = fmax(found, fabs(s.number[i]));
    ck_assert_msg(fabs(mean_of(&s) - mean) <= four_errors(std, count) &&
                      fabs(std_of(&s) - std) <= four_errors(std, 2 * count),
                  "%s: mean %g and deviation %g, PyTorch has %g and %g", text,
                  mean_of(&s), std_of(&s), mean, std);
    // The maximum of uniform numbers is further from the end once in e^10
    // times.
    ck_assert_msg(most == 0 || (found <= most * (1 + 1e-4) &&
                                found >= most * (1 - 10 / count)),
                  "%s: the largest is %g, PyTorch has %g", text, found, most);
    arena_free(s.l.arena);
}

START_TEST(moments_are_pytorchs) {
    const char *source = getenv("SINTER_SOURCE");
    char path[4096], text[256], numbers[256];
    snprintf(path, sizeof path, "%s/tests/golden/numbers/initial.txt",
             source ? source : ".");
    FILE *f = fopen(path, "r");
    ck_assert_msg(f != NULL, "cannot read %s", path);
    ck_assert_ptr_nonnull(fgets(text, sizeof text, f));
    ck_assert_int_eq(text[0], '#');
    int cases = 0;
    for (; fgets(text, sizeof text, f) != NULL; cases++) {
        text[strcspn(text, "\n")] = '\0';
        ck_assert_ptr_nonnull(fgets(numbers, sizeof numbers, f));
        check_moments(text, numbers);
    }
    ck_assert_int_ge(cases, 30);
    fclose(f);
}
END_TEST

START_TEST(biases_have_their_own) {
    Started s = started("conv(4, 1, bias_init=ones)", "conv_1.bias");
    ck_assert_double_eq(mean_of(&s), 1);
    arena_free(s.l.arena);
    s = started("flatten |> linear(8, bias_init=0.5)", "linear_1.bias");
    ck_assert_double_eq(mean_of(&s), 0.5);
    arena_free(s.l.arena);
}
END_TEST

// Half of the numbers of a normal distribution are within 0.6745 standard
// deviations, 0.27 percent beyond 3.
START_TEST(normal_numbers_are_normal) {
    Started s =
        started("conv(16, 1) |> conv(64, 3, init=normal)", "conv_2.weight");
    int inner = 0, outer = 0;
    for (int64_t i = 0; i < s.count; i++) {
        inner += fabs(s.number[i]) < 0.6744898;
        outer += fabs(s.number[i]) > 3;
    }
    ck_assert_double_eq_tol(inner / 9216.0, 0.5, 0.02);
    ck_assert_double_eq_tol(outer / 9216.0, 0.0027, 0.002);
    arena_free(s.l.arena);
}
END_TEST

// ---- matrices ----

// Products of the rows of a weight [rows, columns], or of the columns if there
// are fewer.
START_TEST(orthogonal_weights_are_orthonormal) {
    static const struct {
        const char *layers;
        int rows, columns;
    } cases[] = {
        {"flatten |> linear(8, init=orthogonal(gain=3)) as it", 8, 16},
        {"flatten |> linear(24, init=orthogonal(gain=3)) as it", 24, 16},
        {"conv(4, 2, init=orthogonal(gain=3)) as it", 4, 4},
    };
    int rows = cases[_i].rows, columns = cases[_i].columns;
    Started s = started(cases[_i].layers, "it.weight");
    bool wide = rows <= columns;
    int count = wide ? rows : columns, length = wide ? columns : rows;
    int along = wide ? 1 : columns, across = wide ? columns : 1;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < count; k++) {
            double product = 0;
            for (int j = 0; j < length; j++)
                product += s.number[i * across + j * along] *
                           s.number[k * across + j * along];
            ck_assert_double_eq_tol(product, i == k ? 9 : 0, 1e-9);
        }
    arena_free(s.l.arena);
}
END_TEST

// Filter k of [K,3,3,4] that is the identity of channel k.
static bool is_identity(const double *filter, int k) {
    for (int i = 0; i < 36; i++)
        if (filter[i] != (i == 4 * 4 + k))
            return false;
    return true;
}

START_TEST(dirac_filters_come_first) {
    Started s =
        started("conv(4, 1) |> conv(6, 3, init=dirac)", "conv_2.weight");
    for (int k = 0; k < 4; k++)
        ck_assert(is_identity(s.number + 36 * k, k));
    for (int i = 4 * 36; i < 6 * 36; i++) {
        ck_assert_double_le(fabs(s.number[i]), 1.0 / 6);
        ck_assert_double_ne(s.number[i], 0);
    }
    arena_free(s.l.arena);
    s = started("conv(8, 1) |> conv(8, 3, groups=2, init=dirac)",
                "conv_2.weight");
    for (int k = 0; k < 8; k++)
        ck_assert(is_identity(s.number + 36 * k, k % 4));
    arena_free(s.l.arena);
}
END_TEST

// The numbers outside the identity have the same moments.
START_TEST(add_dirac_keeps_the_moments) {
    Started with =
        started("conv(4, 1) |> conv(6, 3, init=dirac(add))", "conv_2.weight");
    Started bare = started("conv(4, 1) |> conv(6, 3)", "conv_2.weight");
    ck_assert_double_eq_tol(mean_of(&with), mean_of(&bare), 1e-9);
    ck_assert_double_eq_tol(std_of(&with), std_of(&bare), 1e-9);
    double centre = with.number[4 * 4], other = with.number[4 * 4 + 1];
    ck_assert_double_gt(centre, other + 0.3);
    arena_free(with.l.arena);
    arena_free(bare.l.arena);
}
END_TEST

// ---- whitening ----

static double pixel(int64_t i) {
    return (double)(i * i * 37 % 251);
}

// The collect graph's sums over a batch of four, of which three are valid:
// first because of `images`, then because of `valid`.
static double **collected(const Graph *g, Arena *a, int valid) {
    double **leaf = ARENA_ARRAY(a, g->count, double *);
    for (NodeId n = 0; n < g->count; n++) {
        const Node *node = &g->node[n];
        if (node->op != OP_input)
            continue;
        const char *name = node_text(node, ATTR_name);
        int64_t count = type_count(node->type);
        leaf[n] = ARENA_ARRAY(a, (size_t)count, double);
        for (int64_t i = 0; i < count; i++)
            leaf[n][i] = strcmp(name, "image") == 0   ? pixel(i)
                         : strcmp(name, "index") == 0 ? (double)i
                                                      : valid;
    }
    return values_of(g, a, leaf);
}

// x'y over the patches of 2 x 2 of three images of 4 x 4, of numbers p and q.
static double covariance(int p, int q) {
    double sum = 0;
    for (int n = 0; n < 3; n++)
        for (int i = 0; i < 9; i++) {
            int corner = n * 16 + i / 3 * 4 + i % 3;
            double x = pixel(corner + p / 2 * 4 + p % 2) - 128;
            double y = pixel(corner + q / 2 * 4 + q % 2) - 128;
            sum += x / 60 * (y / 60);
        }
    return sum / 27;
}

// Whitening filters: f_i' C f_k is 1 for i = k and else 0.
START_TEST(whitened_patches_are_uncorrelated) {
    Loaded l = load_model(
        "image |> normalize(128, 60)\n"
        "|> conv(8, 2, bias=false, init=whitening(images=3, eps=1e-12))\n"
        "|> flatten |> linear(2)",
        "");
    ck_assert_str_eq(codes_of(&l), "");
    ck_assert_int_eq(l.program->recipe.collect_samples, 3);
    const Graph *collect = l.program->collect, *init = l.program->init;
    ck_assert(graph_verify(collect, l.arena) == NULL);
    int64_t count;
    double **sums = collected(collect, l.arena, _i == 0 ? 4 : 3);
    double **leaf = ARENA_ARRAY(l.arena, init->count, double *);
    static const char *const state[] = {"conv_1.weight.products",
                                        "conv_1.weight.patches"};
    for (int i = 0; i < 2; i++)
        leaf[graph_find(init, state[i])] =
            (double *)assigned(collect, sums, state[i], &count);
    const double *f =
        assigned(init, values_of(init, l.arena, leaf), "conv_1.weight", &count);
    double last = 0;
    for (int i = 0; i < 4; i++) {
        double size = 0;
        for (int k = 0; k < 4; k++) {
            double product = 0;
            for (int p = 0; p < 4; p++)
                for (int q = 0; q < 4; q++)
                    product += f[4 * i + p] * covariance(p, q) * f[4 * k + q];
            ck_assert_double_eq_tol(product, i == k, 1e-6);
            ck_assert_double_eq(f[16 + 4 * i + k], -f[4 * i + k]);
            size += f[4 * i + k] * f[4 * i + k];
        }
        // Eigenvalues descend, so filters grow.
        ck_assert_double_ge(size, last);
        last = size;
    }
    arena_free(l.arena);
}
END_TEST

// Patches of two numbers with X'X / count = diag(4, -1), which only rounding
// can produce: 1 / sqrt(4 + eps) and 1 / sqrt(0 + eps).
START_TEST(eigenvalues_below_0_count_as_0) {
    Loaded l =
        load_model("image |> normalize(128, 60)\n"
                   "|> conv(4, [1, 2], bias=false, init=whitening(eps=0.01))\n"
                   "|> flatten |> linear(2)",
                   "");
    ck_assert_str_eq(codes_of(&l), "");
    const Graph *init = l.program->init;
    double products[] = {12, 0, 0, -3}, count = 3;
    double **leaf = ARENA_ARRAY(l.arena, init->count, double *);
    leaf[graph_find(init, "conv_1.weight.products")] = products;
    leaf[graph_find(init, "conv_1.weight.patches")] = &count;
    int64_t numbers;
    const double *f = assigned(init, values_of(init, l.arena, leaf),
                               "conv_1.weight", &numbers);
    ck_assert_int_eq(numbers, 8);
    ck_assert_double_eq_tol(fabs(f[0]), 1 / sqrt(4 + 1e-2), 1e-6);
    ck_assert_double_eq_tol(fabs(f[3]), 1 / sqrt(1e-2), 1e-5);
    arena_free(l.arena);
}
END_TEST

// A list has the weight's shape, [K, rows, columns, channels], or broadcasts to
// it.
START_TEST(written_numbers_are_the_start) {
    static const struct {
        const char *layers, *name;
        double number[8];
    } cases[] = {
        {"conv(2, 2, init=[[[[1], [2]], [[3], [4]]], [[[5], [6]], [[7], "
         "[8]]]])",
         "conv_1.weight",
         {1, 2, 3, 4, 5, 6, 7, 8}},
        {"conv(2, 2, init=[[[1], [2]], [[3], [4]]])",
         "conv_1.weight",
         {1, 2, 3, 4, 1, 2, 3, 4}},
        {"conv(8, 1, bias_init=[1, 2, 3, 4, 5, 6, 7, 8])",
         "conv_1.bias",
         {1, 2, 3, 4, 5, 6, 7, 8}},
        {"flatten |> linear(8) |> linear(1, init=[[1, 2, 3, 4, 5, 6, 7, 8]])",
         "linear_2.weight",
         {1, 2, 3, 4, 5, 6, 7, 8}},
    };
    Started s = started(cases[_i].layers, cases[_i].name);
    ck_assert_int_eq(s.count, 8);
    for (int i = 0; i < 8; i++)
        ck_assert_double_eq(s.number[i], cases[_i].number[i]);
    arena_free(s.l.arena);
}
END_TEST

START_TEST(nothing_is_collected_without_need) {
    Loaded l = load_model("image |> conv(4, 3) |> flatten |> linear(2)", "");
    ck_assert_ptr_null(l.program->collect);
    ck_assert_int_eq(l.program->recipe.collect_samples, 0);
    arena_free(l.arena);
}
END_TEST

Suite *initial_suite(void) {
    Suite *s = suite_create("initial");
    TCase *t = tcase_create("initial");
    tcase_set_tags(t, "numbers");
    tcase_add_test(t, moments_are_pytorchs);
    tcase_add_test(t, biases_have_their_own);
    tcase_add_test(t, normal_numbers_are_normal);
    tcase_add_loop_test(t, orthogonal_weights_are_orthonormal, 0, 3);
    tcase_add_test(t, dirac_filters_come_first);
    tcase_add_test(t, add_dirac_keeps_the_moments);
    tcase_add_loop_test(t, whitened_patches_are_uncorrelated, 0, 2);
    tcase_add_test(t, eigenvalues_below_0_count_as_0);
    tcase_add_loop_test(t, written_numbers_are_the_start, 0, 4);
    tcase_add_test(t, nothing_is_collected_without_need);
    suite_add_tcase(s, t);
    return s;
}
