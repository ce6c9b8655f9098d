// The train block: updates of parameters, and views of an evaluation.
#include "base/metrics.h"
#include "tests/frontend/suites.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char body[] =
    "image |> conv(2, 1) |> batch_norm as stem |> flatten |> linear(2) as head";

// ---- parameters ----

static bool is_update(const Node *n) {
    return is_optimizer(n->op);
}

static const char *param_of(const Graph *g, const Node *update) {
    return node_text(&g->node[update->arg[0]], ATTR_name);
}

// The names of the parameters that a graph updates, in order.
static const char *updated(Loaded *l, const Graph *g) {
    Text t = text_new(l->arena);
    for (NodeId n = 0; n < g->count; n++)
        if (is_update(&g->node[n]))
            text_add(&t, "%s%s", t.length ? " " : "", param_of(g, &g->node[n]));
    return text_string(&t);
}

static const struct {
    const char *keys, *updated;
} freezes[] = {
    {"", "stem.conv_1.weight stem.conv_1.bias stem.batch_norm_1.scale "
         "stem.batch_norm_1.bias head.weight head.bias"},
    {"freeze \"*.bias\"",
     "stem.conv_1.weight stem.batch_norm_1.scale head.weight"},
    {"freeze \"*.batch_norm_?.*\"\nfreeze \"Tiny.head.*\"",
     "stem.conv_1.weight stem.conv_1.bias"},
    {"freeze \"stem*\"; freeze \"head.weight\"", "head.bias"},
    {"freeze \"*m*1.*b*s\"",
     "stem.conv_1.weight stem.batch_norm_1.scale head.weight head.bias"},
};

// No parameter would train, so the loss may ignore them.
START_TEST(frozen_parameters_may_be_of_no_use) {
    const char *unused = "y = image |> flatten |> linear(4)\n"
                         "if 1 < 2 { image |> flatten |> linear(2) }"
                         " else { y }";
    Loaded l = load_model(unused, "");
    ck_assert_str_eq(codes_of(&l), "E0408");
    arena_free(l.arena);
    l = load_model(unused, "freeze \"linear_1.*\"");
    ck_assert_str_eq(codes_of(&l), "");
    arena_free(l.arena);
}
END_TEST

START_TEST(frozen_parameters_have_no_optimizer) {
    Loaded l = load_model(body, freezes[_i].keys);
    ck_assert_str_eq(codes_of(&l), "W0601");
    const Stage *stage = l.program->stage;
    ck_assert_str_eq(updated(&l, stage->train), freezes[_i].updated);
    arena_free(l.arena);
}
END_TEST

static const struct {
    const char *keys;
    Time from[3];           // of the stages after the first
    const char *updated[4]; // in each stage
} moments[] = {
    {"freeze \"stem.*\" after 1 epoch\nfreeze \"head.bias\"",
     {{1, IN_EPOCHS}},
     {"stem.conv_1.weight stem.conv_1.bias stem.batch_norm_1.scale "
      "stem.batch_norm_1.bias head.weight",
      "head.weight"}},
    {"freeze \"*.weight\" after 30 step\nfreeze \"stem.c*\" after 2 * 5 step\n"
     "freeze \"*scale\" after 30 step",
     {{10, IN_STEPS}, {30, IN_STEPS}},
     {"stem.conv_1.weight stem.conv_1.bias stem.batch_norm_1.scale "
      "stem.batch_norm_1.bias head.weight head.bias",
      "stem.batch_norm_1.scale stem.batch_norm_1.bias head.weight head.bias",
      "stem.batch_norm_1.bias head.bias"}},
    {"freeze \"stem*\" after 25%",
     {{0.25, IN_SHARES}},
     {"stem.conv_1.weight stem.conv_1.bias stem.batch_norm_1.scale "
      "stem.batch_norm_1.bias head.weight head.bias",
      "head.weight head.bias"}},
};

START_TEST(freeze_times_begin_stages) {
    Loaded l = load_model(body, moments[_i].keys);
    ck_assert_str_eq(codes_of(&l), "W0601");
    const Program *p = l.program;
    for (int i = 0; i < p->num_stages; i++) {
        ck_assert_str_eq(updated(&l, p->stage[i].train),
                         moments[_i].updated[i]);
        if (i == 0)
            continue;
        ck_assert_double_eq(p->stage[i].from.count,
                            moments[_i].from[i - 1].count);
        ck_assert_int_eq(p->stage[i].from.unit, moments[_i].from[i - 1].unit);
    }
    ck_assert_ptr_null(moments[_i].updated[p->num_stages]);
    arena_free(l.arena);
}
END_TEST

static const struct {
    const char *keys, *param;
    int arg;
    double value;
} groups[] = {
    {"", "head.weight", 1, 0.1},
    {"params \"head.*\" { lr = 64 * lr }", "head.weight", 1, 6.4},
    {"params \"head.*\" { lr = 64 * lr }", "stem.conv_1.bias", 1, 0.1},
    {"params \"head.*\" { lr = 2 * lr }\nparams \"*.bias\" { lr = 3 * lr }",
     "head.weight", 1, 0.2},
    {"params \"head.*\" { lr = 2 * lr }\nparams \"*.bias\" { lr = 3 * lr }",
     "head.bias", 1, 0.3},
    {"params \"*.bias\" { lr = 3 * lr }\nparams \"head.*\" { lr = 2 * lr }",
     "head.bias", 1, 0.2},
    {"params \"head.*\" { lr = 2 * lr }\nparams \"*.bias\" { momentum = 0.5 }",
     "head.bias", 1, 0.2},
    {"params \"head.*\" { lr = 2 * lr }\nparams \"*.bias\" { momentum = 0.5 }",
     "head.bias", 2, 0.5},
    {"params \"head.*\" { optimizer = adam(lr=lr / 10); beta1 = 2 * momentum }",
     "head.bias", 1, 0.01},
    {"params \"head.*\" { optimizer = adam(lr=0.1); beta1 = momentum + 0.25 }",
     "head.bias", 2, 0.25},
    {"ramp = 1 - progress\nparams \"head.*\" { lr = 5 * ramp }", "head.bias", 1,
     4},
};

START_TEST(groups_change_arguments) {
    Loaded l = load_model(body, groups[_i].keys);
    ck_assert_str_eq(codes_of(&l), "W0601");
    const Graph *g = l.program->stage->train;
    double **leaf = ARENA_ARRAY(l.arena, g->count, double *);
    double step = 20, all = 100;
    leaf[graph_find(g, "run.step")] = &step;
    NodeId steps = graph_find(g, "run.steps");
    if (steps != NO_NODE)
        leaf[steps] = &all;
    double **value = graph_eval(g, l.arena, leaf, false);
    int found = 0;
    for (NodeId n = 0; n < g->count; n++) {
        const Node *node = &g->node[n];
        if (!is_update(node) ||
            strcmp(param_of(g, node), groups[_i].param) != 0)
            continue;
        ck_assert_double_eq_tol(*value[node->arg[groups[_i].arg]],
                                groups[_i].value, 1e-12);
        found++;
    }
    ck_assert_int_eq(found, 1);
    arena_free(l.arena);
}
END_TEST

// ---- facts before a graph is built ----

// clang-format off
static const struct {
    const char *keys;
    Time eval_every, checkpoint_every;
    int keep, accumulate;
    const char *measured; // beside loss and accuracy, and their data
    Stop stop;
    const char *best;
    int best_keep;
} recipes[] = {
    {"",
     {1, IN_EPOCHS}, {0, IN_EPOCHS}, 1, 1, "",
     {NULL, false, 0, {0, IN_EPOCHS}}, NULL, 1},
    {"eval at end; checkpoint every 50 step keep 3",
     {0, IN_EPOCHS}, {50, IN_STEPS}, 3, 1, "",
     {NULL, false, 0, {0, IN_EPOCHS}}, NULL, 1},
    {"eval every 10% on data.train { metrics = [top5, loss, perplexity] }",
     {0.1, IN_SHARES}, {0, IN_EPOCHS}, 1, 1, "top5 perplexity train",
     {NULL, false, 0, {0, IN_EPOCHS}}, NULL, 1},
    {"stop when accuracy >= 94%; accumulate = 2 * 2; recompute = none",
     {1, IN_EPOCHS}, {0, IN_EPOCHS}, 1, 4, "",
     {"accuracy", true, 0.94, {0, IN_EPOCHS}}, NULL, 1},
    {"eval every 7 step { metrics = [perplexity] }\nlimit = 3\n"
     "stop when perplexity <= limit",
     {7, IN_STEPS}, {0, IN_EPOCHS}, 1, 1, "perplexity",
     {"perplexity", false, 3, {0, IN_EPOCHS}}, NULL, 1},
    {"checkpoint every 2 epoch\ncheckpoint best accuracy keep 2 + 1\n"
     "stop when no improvement of loss for 20 step",
     {1, IN_EPOCHS}, {2, IN_EPOCHS}, 1, 1, "",
     {"loss", false, 0, {20, IN_STEPS}}, "accuracy", 3},
};
// clang-format on

START_TEST(recipes_are_read) {
    Loaded l = load_model(body, recipes[_i].keys);
    ck_assert_str_eq(codes_of(&l), "W0601");
    const Recipe *r = &l.program->recipe;
    ck_assert_double_eq(r->eval_every.count, recipes[_i].eval_every.count);
    ck_assert_double_eq(r->checkpoint_every.count,
                        recipes[_i].checkpoint_every.count);
    if (r->eval_every.count > 0)
        ck_assert_int_eq(r->eval_every.unit, recipes[_i].eval_every.unit);
    if (r->checkpoint_every.count > 0)
        ck_assert_int_eq(r->checkpoint_every.unit,
                         recipes[_i].checkpoint_every.unit);
    ck_assert_int_eq(r->checkpoint_keep, recipes[_i].keep);
    ck_assert_int_eq(r->accumulate, recipes[_i].accumulate);
    const char *measured = recipes[_i].measured;
    ck_assert(r->eval_train == (strstr(measured, "train") != NULL));
    for (int i = METRIC_top5; i < NUM_METRICS; i++)
        ck_assert((r->metrics >> i & 1) ==
                  (strstr(measured, metric_info[i].name) != NULL));
    ck_assert_pstr_eq(r->stop.metric, recipes[_i].stop.metric);
    ck_assert(r->stop.above == recipes[_i].stop.above);
    ck_assert_double_eq(r->stop.value, recipes[_i].stop.value);
    ck_assert_double_eq(r->stop.patience.count,
                        recipes[_i].stop.patience.count);
    ck_assert_int_eq(r->stop.patience.unit, recipes[_i].stop.patience.unit);
    ck_assert_pstr_eq(r->best, recipes[_i].best);
    ck_assert_int_eq(r->best_keep, recipes[_i].best_keep);
    arena_free(l.arena);
}
END_TEST

// The words of plateau repeat the table of metrics.
START_TEST(plateaus_follow_every_number) {
    for (int i = 0; i < NUM_METRICS; i++) {
        Arena *a = arena_new();
        const char *keys = arena_format(
            a,
            "eval every 1 epoch { metrics = [%s] }\n"
            "params \"*\" { lr = plateau(0.1, metric=%s) }",
            metric_info[i].name, metric_info[i].name);
        Loaded l = load_model(body, keys);
        bool unknown = strstr(codes_of(&l), "E0301") != NULL;
        ck_assert_msg(unknown == (metric_info[i].unit == METRIC_TABLE),
                      "%s: %s", metric_info[i].name, codes_of(&l));
        arena_free(l.arena);
        arena_free(a);
    }
}
END_TEST

START_TEST(a_setting_overrides_the_other_length) {
    Setting steps = {"steps", "9"};
    Loaded l = load_with(body, "", &steps, 1);
    ck_assert_str_eq(codes_of(&l), "W0601");
    ck_assert_double_eq(l.program->recipe.length.count, 9);
    ck_assert_int_eq(l.program->recipe.length.unit, IN_STEPS);
    arena_free(l.arena);
}
END_TEST

// ---- views ----

enum { SIDE = 4, PIXELS = SIDE * SIDE, BATCH = 4 };

static double pixel(int sample, int y, int x) {
    return (sample * 53 + y * 17 + x * 7) % 100;
}

static int mirrored(int i) {
    return i < 0 ? -i : i >= SIDE ? 2 * (SIDE - 1) - i : i;
}

static int clamped(int i) {
    return i < 0 ? 0 : i >= SIDE ? SIDE - 1 : i;
}

// The pixel of a view at a position.
typedef double Seen(int sample, int y, int x);

static double flipped(int sample, int y, int x) {
    return pixel(sample, y, SIDE - 1 - x);
}

static double moved(int sample, int y, int x) {
    return pixel(sample, mirrored(y - 1), mirrored(x - 1));
}

static double moved_back(int sample, int y, int x) {
    return pixel(sample, mirrored(y + 1), mirrored(x + 1));
}

static double flipped_then_moved(int sample, int y, int x) {
    return flipped(sample, clamped(y - 1), clamped(x + 2));
}

static double moved_into_nothing(int sample, int y, int x) {
    return y < 2 ? 0 : pixel(sample, y - 2, x);
}

static const struct {
    const char *views;
    struct {
        double weight;
        Seen *seen;
    } part[3];
} views[] = {
    {"identity", {{1, pixel}}},
    {"flip_lr", {{1, flipped}}},
    {"identity, flip_lr", {{0.5, pixel}, {0.5, flipped}}},
    {"0.5: identity, 0.25: shift(1), 0.25: shift(-1)",
     {{0.5, pixel}, {0.25, moved}, {0.25, moved_back}}},
    {"0.9: flip_lr |> shift(1, -2, mode=edge), 10%: shift(2, 0, mode=zero)",
     {{0.9, flipped_then_moved}, {0.1, moved_into_nothing}}},
};

// A model that is linear in the image: its mean output is the output of the
// mean image.
static double expected_output(int i, int sample, const double *weight) {
    double sum = 0;
    for (int k = 0; k < 3 && views[i].part[k].seen != NULL; k++)
        for (int p = 0; p < PIXELS; p++)
            sum += views[i].part[k].weight * weight[p] *
                   views[i].part[k].seen(sample, p / SIDE, p % SIDE);
    return sum;
}

START_TEST(views_are_averaged) {
    char keys[200];
    snprintf(keys, sizeof keys, "eval at end { views = [%s] }",
             views[_i].views);
    Loaded l =
        load_model("image |> flatten |> linear(2, bias=false) as head", keys);
    ck_assert_str_eq(codes_of(&l), "");
    const Graph *g = l.program->eval;
    double image[BATCH * PIXELS], weight[2 * PIXELS];
    for (int i = 0; i < BATCH * PIXELS; i++)
        image[i] = pixel(i / PIXELS, i % PIXELS / SIDE, i % SIDE);
    for (int i = 0; i < 2 * PIXELS; i++)
        weight[i] = sin(i);
    double **leaf = ARENA_ARRAY(l.arena, g->count, double *);
    leaf[graph_find(g, "image")] = image;
    leaf[graph_find(g, "head.weight")] = weight;
    double **value = graph_eval(g, l.arena, leaf, false);
    NodeId loss = 0;
    while (g->node[loss].op != OP_cross_entropy)
        loss++;
    const double *output = value[g->node[loss].arg[0]];
    for (int i = 0; i < BATCH * 2; i++)
        ck_assert_double_eq_tol(
            output[i], expected_output(_i, i / 2, weight + i % 2 * PIXELS),
            1e-9);
    arena_free(l.arena);
}
END_TEST

Suite *recipe_suite(void) {
    Suite *s = suite_create("recipe");
    TCase *c = tcase_create("parameters");
    tcase_add_test(c, frozen_parameters_may_be_of_no_use);
    tcase_add_loop_test(c, frozen_parameters_have_no_optimizer, 0,
                        sizeof freezes / sizeof freezes[0]);
    tcase_add_loop_test(c, groups_change_arguments, 0,
                        sizeof groups / sizeof groups[0]);
    tcase_add_loop_test(c, freeze_times_begin_stages, 0,
                        sizeof moments / sizeof moments[0]);
    suite_add_tcase(s, c);
    c = tcase_create("run");
    tcase_add_test(c, plateaus_follow_every_number);
    tcase_add_loop_test(c, recipes_are_read, 0,
                        sizeof recipes / sizeof recipes[0]);
    tcase_add_test(c, a_setting_overrides_the_other_length);
    suite_add_tcase(s, c);
    c = tcase_create("views");
    tcase_add_loop_test(c, views_are_averaged, 0,
                        sizeof views / sizeof views[0]);
    suite_add_tcase(s, c);
    return s;
}
