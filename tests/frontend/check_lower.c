// Graphs: their values, with ir/eval.c as the reference.
#include "tests/frontend/suites.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char head[] = "image |> flatten |> linear(2)";

// ---- evaluating a graph ----

typedef struct {
    const Graph *graph;
    double **leaf, **value;
    Arena *arena;
} Run;

static NodeId named(const Run *r, const char *name) {
    NodeId n = graph_find(r->graph, name);
    ck_assert_msg(n != NO_NODE, "there is no %s", name);
    return n;
}

static void set(Run *r, const char *name, double value) {
    NodeId n = graph_find(r->graph, name);
    if (n != NO_NODE)
        r->leaf[n][0] = value;
}

// Gives each leaf its own numbers: samples have indices, labels alternate, and
// parameters and pixels vary.
static Run run_new(const Loaded *l, const Graph *g) {
    Run r = {.graph = g, .arena = l->arena};
    r.leaf = ARENA_ARRAY(l->arena, g->count, double *);
    for (NodeId n = 0; n < g->count; n++) {
        const Node *node = &g->node[n];
        if (node->op != OP_input && node->op != OP_param &&
            node->op != OP_state)
            continue;
        const char *name = node_text(node, ATTR_name);
        int64_t count = type_count(node->type);
        r.leaf[n] = ARENA_ARRAY(l->arena, (size_t)count, double);
        for (int64_t i = 0; i < count; i++)
            r.leaf[n][i] = node->op == OP_state ? node_float(node, ATTR_init, 0)
                           : node->op == OP_param ? sin(1.0 + (double)i) / 2
                           : strcmp(name, "image") == 0 ? (double)(i * 37 % 251)
                           : strcmp(name, "label") == 0 ? (double)(i % 2)
                                                        : (double)i;
    }
    set(&r, "valid", 4);
    set(&r, "run.steps", 100);
    set(&r, "run.epoch_steps", 50);
    return r;
}

static void run(Run *r) {
    r->value = graph_eval(r->graph, r->arena, r->leaf, false);
}

// The assigned value of the state of that name.
static const double *assigned(const Run *r, const char *name) {
    NodeId state = named(r, name);
    for (NodeId n = 0; n < r->graph->count; n++)
        if (r->graph->node[n].op == OP_assign &&
            r->graph->node[n].arg[0] == state)
            return r->value[r->graph->node[n].arg[1]];
    ck_abort_msg("nothing assigns %s", name);
}

static NodeId find_op(const Graph *g, Op op) {
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == op)
            return n;
    return NO_NODE;
}

// ---- schedules ----

static const struct {
    const char *lr;
    double step[4], value[4]; // for 100 steps, 50 per epoch
} schedules[] = {
    {"0.1", {0, 1, 50, 100}, {0.1, 0.1, 0.1, 0.1}},
    {"piecewise(0: 0, 20%: 0.4, 1: 0)", {0, 10, 20, 60}, {0, 0.2, 0.4, 0.2}},
    {"piecewise(10%: 1, 0.5: 3)", {0, 10, 30, 90}, {1, 1, 2, 3}},
    {"piecewise(0: 0, 1 epoch: 1, 2 epoch: 0)",
     {0, 25, 50, 75},
     {0, 0.5, 1, 0.5}},
    {"piecewise(0: 2, 10 step: 1, 30 step: 0)",
     {0, 5, 20, 99},
     {2, 1.5, 0.5, 0}},
    {"piecewise(0: 0, 10 step: 1, 1 epoch: 1, 100%: 0)",
     {5, 10, 50, 75},
     {0.5, 1, 1, 0.5}},
    {"cosine(0.4)", {0, 25, 50, 100}, {0.4, 0.34142135623730951, 0.2, 0}},
    {"cosine(1, 0.5)", {0, 50, 100, 100}, {1, 0.75, 0.5, 0.5}},
    {"constant(3) * progress", {0, 10, 50, 100}, {0, 0.3, 1.5, 3}},
    {"2 - step / 100 + epoch^2", {0, 10, 50, 100}, {2, 1.94, 2.5, 5}},
    {"-progress * 2", {0, 10, 50, 100}, {0, -0.2, -1, -2}},
};

START_TEST(schedule_values) {
    Setting s = {"lr", schedules[_i].lr};
    Loaded l = load_with(head, "", &s, 1);
    ck_assert_str_eq(codes_of(&l), "");
    Run r = run_new(&l, l.program->stage[0].train);
    for (int i = 0; i < 4; i++) {
        set(&r, "run.step", schedules[_i].step[i]);
        run(&r);
        ck_assert_double_eq_tol(*assigned(&r, "metric.lr"),
                                schedules[_i].value[i], 1e-9);
        ck_assert_double_eq(*assigned(&r, "run.step"),
                            schedules[_i].step[i] + 1);
    }
    arena_free(l.arena);
}
END_TEST

// ---- losses and metrics ----

// The loss of sample i, from the graph's own logits.
static double cross_entropy(const Run *r, int i) {
    NodeId loss = find_op(r->graph, OP_cross_entropy);
    const double *x = r->value[r->graph->node[loss].arg[0]] + 2 * i;
    double largest = fmax(x[0], x[1]);
    double sum = exp(x[0] - largest) + exp(x[1] - largest);
    return largest + log(sum) - x[i % 2];
}

static double loss_of(const Run *r) {
    return *r->value[r->graph->node[named(r, "loss")].arg[0]];
}

START_TEST(mean_counts_valid_samples) {
    Loaded l = load_text(
        "model M(image: u8[N, 2, 2, 1]) -> f32[N, 2] {\n"
        "image |> flatten |> normalize(128, 100) |> linear(2)\n}\n"
        "train M { data = synthetic(); batch = 4; epochs = 1\n"
        "loss = mean(cross_entropy(output, label)); optimizer = sgd(lr=1) }\n");
    ck_assert_str_eq(codes_of(&l), "");
    Run r = run_new(&l, l.program->stage[0].train);
    set(&r, "valid", 3);
    set(&r, "metric.loss", 10);
    set(&r, "metric.count", 20);
    run(&r);
    double sum = 0;
    for (int i = 0; i < 3; i++)
        sum += cross_entropy(&r, i);
    ck_assert_double_eq_tol(loss_of(&r), sum / 3, 1e-12);
    ck_assert_double_eq_tol(*assigned(&r, "metric.loss"), 10 + sum, 1e-12);
    ck_assert_double_eq(*assigned(&r, "metric.count"), 23);
    arena_free(l.arena);
}
END_TEST

// Also along another axis, of the batch's length.
START_TEST(sum_counts_valid_samples_on_any_axis) {
    static const char *const loss[] = {
        "sum(square(output))", "sum(transpose(square(output), [1, 0]))"};
    double total[2];
    for (int i = 0; i < 2; i++) {
        static char text[500];
        snprintf(text, sizeof text,
                 "model M(image: u8[N, 2, 2, 1]) -> f32[N, 4] {\n"
                 "image |> flatten |> normalize(128, 100) |> linear(4)\n}\n"
                 "train M { data = synthetic(); batch = 4; epochs = 1\n"
                 "loss = %s; optimizer = sgd(lr=1) }\n",
                 loss[i]);
        Loaded l = load_text(text);
        ck_assert_str_eq(codes_of(&l), "");
        Run r = run_new(&l, l.program->stage[0].train);
        set(&r, "valid", 3);
        run(&r);
        total[i] = loss_of(&r);
        arena_free(l.arena);
    }
    ck_assert_double_gt(total[0], 0);
    ck_assert_double_eq_tol(total[1], total[0], 1e-12 * total[0]);
}
END_TEST

START_TEST(drop_last_counts_all) {
    Loaded l = load_model("image |> flatten |> normalize(128, 100)\n"
                          "|> linear(2)",
                          "");
    Run r = run_new(&l, l.program->stage[0].train);
    run(&r);
    double sum = 0;
    for (int i = 0; i < 4; i++)
        sum += cross_entropy(&r, i);
    ck_assert_double_eq_tol(loss_of(&r), sum, 1e-12);
    ck_assert_double_eq(*assigned(&r, "metric.count"), 4);
    ck_assert_int_eq(graph_find(l.program->stage[0].train, "valid"), NO_NODE);
    ck_assert_int_ne(graph_find(l.program->eval, "valid"), NO_NODE);
    arena_free(l.arena);
}
END_TEST

START_TEST(correct_samples_are_counted) {
    Loaded l = load_model(head, "");
    Run r = run_new(&l, l.program->eval);
    set(&r, "valid", 3);
    run(&r);
    NodeId best = find_op(r.graph, OP_argmax);
    int correct = 0;
    for (int i = 0; i < 3; i++)
        correct += r.value[best][i] == i % 2;
    ck_assert_double_eq(*assigned(&r, "metric.correct"), correct);
    arena_free(l.arena);
}
END_TEST

START_TEST(mse_is_a_loss) {
    Loaded l = load_text(
        "model M(image: u8[N, 2, 2, 1]) -> f32[N, 1] {\n"
        "image |> flatten |> linear(1)\n}\n"
        "train M { data = synthetic(); batch = 4, drop_last; epochs = 1\n"
        "loss = mean(mse(output, label)); optimizer = adam }\n");
    ck_assert_str_eq(codes_of(&l), "E0405");
    arena_free(l.arena);
    l = load_text(
        "model M(image: u8[N, 2, 2, 1]) -> f32[N, 1] {\n"
        "image |> flatten |> linear(1)\n}\n"
        "train M { data = synthetic(); batch = 4, drop_last; epochs = 1\n"
        "loss = mean(mse(output, label)); optimizer = adam() }\n");
    ck_assert_str_eq(codes_of(&l), "");
    Run r = run_new(&l, l.program->stage[0].train);
    run(&r);
    // One column is not a class.
    ck_assert_int_eq(graph_find(r.graph, "metric.correct"), NO_NODE);
    const double *y = r.value[r.graph->node[find_op(r.graph, OP_sub)].arg[0]];
    double sum = 0;
    for (int i = 0; i < 4; i++)
        sum += (y[i] - i % 2) * (y[i] - i % 2);
    ck_assert_double_eq_tol(loss_of(&r), sum / 4, 1e-9);
    arena_free(l.arena);
}
END_TEST

// ---- batch_norm ----

START_TEST(batch_norm_follows_statistics) {
    Loaded l = load_model("image |> batch_norm(momentum=0.2) |> flatten\n"
                          "|> linear(2)",
                          "");
    Run r = run_new(&l, l.program->stage[0].train);
    set(&r, "batch_norm_1.running_mean", 5);
    set(&r, "batch_norm_1.running_var", 7);
    run(&r);
    const double *x = r.leaf[named(&r, "image")];
    double mean = 0, square = 0;
    for (int i = 0; i < 64; i++)
        mean += x[i] / 64;
    for (int i = 0; i < 64; i++)
        square += (x[i] - mean) * (x[i] - mean);
    ck_assert_double_eq_tol(*assigned(&r, "batch_norm_1.running_mean"),
                            0.8 * 5 + 0.2 * mean, 1e-9);
    ck_assert_double_eq_tol(*assigned(&r, "batch_norm_1.running_var"),
                            0.8 * 7 + 0.2 * square / 63, 1e-9);
    arena_free(l.arena);
}
END_TEST

static bool assigns(const Graph *g, NodeId state) {
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_assign && g->node[n].arg[0] == state)
            return true;
    return false;
}

// In an evaluation, and if frozen in training.
START_TEST(batch_norm_evaluates_by_statistics) {
    bool training = _i == 1;
    Loaded l = load_model(training ? "image |> batch_norm(eps=0.5, frozen)\n"
                                     "|> flatten |> linear(2)"
                                   : "image |> batch_norm(eps=0.5) |> flatten\n"
                                     "|> linear(2)",
                          "");
    Run r = run_new(&l, training ? l.program->stage[0].train : l.program->eval);
    set(&r, "batch_norm_1.running_mean", 5);
    set(&r, "batch_norm_1.running_var", 7);
    set(&r, "batch_norm_1.scale", 3);
    set(&r, "batch_norm_1.bias", 2);
    run(&r);
    ck_assert_int_eq(find_op(r.graph, OP_batch_norm), NO_NODE);
    const double *y =
        r.value[r.graph->node[find_op(r.graph, OP_reshape)].arg[0]];
    for (int i = 0; i < 64; i++)
        ck_assert_double_eq_tol(y[i], (i * 37 % 251 - 5) / sqrt(7.5) * 3 + 2,
                                1e-9);
    ck_assert(!assigns(r.graph, named(&r, "batch_norm_1.running_mean")));
    ck_assert(!assigns(r.graph, named(&r, "batch_norm_1.running_var")));
    arena_free(l.arena);
}
END_TEST

// ---- augmentation ----

// The offsets of shift: each of -2 .. 2 within a few epochs.
START_TEST(crops_cover_their_range) {
    Loaded l = load_model(head, "input = data.train |> random_crop(4, pad=2)");
    Run r = run_new(&l, l.program->stage[0].train);
    NodeId shift = find_op(r.graph, OP_shift);
    bool seen[2][5] = {{0}};
    for (int epoch = 0; epoch < 20; epoch++) {
        set(&r, "run.step", 50 * epoch);
        run(&r);
        for (int axis = 0; axis < 2; axis++)
            for (int i = 0; i < 4; i++) {
                double by = r.value[r.graph->node[shift].arg[1 + axis]][i];
                ck_assert(by >= -2 && by <= 2 && by == floor(by));
                seen[axis][(int)by + 2] = true;
            }
    }
    for (int i = 0; i < 5; i++)
        ck_assert(seen[0][i] && seen[1][i]);
    arena_free(l.arena);
}
END_TEST

START_TEST(cutout_fills_a_square) {
    Loaded l = load_model(head, "input = data.train |> cutout(3, fill=-1)");
    Run r = run_new(&l, l.program->stage[0].train);
    run(&r);
    const double *y = r.value[find_op(r.graph, OP_select)];
    for (int n = 0; n < 4; n++) {
        int filled = 0;
        for (int i = 16 * n; i < 16 * n + 16; i++) {
            filled += y[i] == -1;
            ck_assert(y[i] == -1 || y[i] == i * 37 % 251);
        }
        ck_assert_int_eq(filled, 9);
    }
    arena_free(l.arena);
}
END_TEST

START_TEST(uses_have_different_numbers) {
    Loaded l = load_model(head, "input = data.train |> flip_lr |> flip_lr\n");
    const Graph *g = l.program->stage[0].train;
    NodeId first = find_op(g, OP_uniform), second = first + 1;
    while (g->node[second].op != OP_uniform)
        second++;
    ck_assert_int_ne(node_int(&g->node[first], ATTR_stream, 0),
                     node_int(&g->node[second], ATTR_stream, 0));
    ck_assert_int_eq(find_op(l.program->eval, OP_uniform), NO_NODE);
    ck_assert_int_eq(find_op(l.program->eval, OP_flip), NO_NODE);
    arena_free(l.arena);
}
END_TEST

// Operations without random numbers run in evaluation, too.
START_TEST(normalize_in_the_input_is_evaluated) {
    Loaded l =
        load_model(head, "input = data.train |> flip_lr |> normalize(100, 50)");
    ck_assert_str_eq(codes_of(&l), "");
    ck_assert_int_ne(find_op(l.program->eval, OP_sub), NO_NODE);
    arena_free(l.arena);
}
END_TEST

// ---- init ----

START_TEST(parameters_start_within_their_bound) {
    Loaded l = load_model("image |> conv(32, 3) |> flatten |> linear(2)", "");
    Run r = run_new(&l, l.program->init);
    set(&r, "run.seed", 1);
    run(&r);
    const double *w = assigned(&r, "conv_1.weight");
    double sum = 0, largest = 0;
    for (int i = 0; i < 288; i++) {
        sum += w[i];
        largest = fmax(largest, fabs(w[i]));
    }
    ck_assert_double_lt(largest, 1.0 / 3);
    ck_assert_double_gt(largest, 0.3);
    ck_assert_double_lt(fabs(sum / 288), 0.05);
    const double *other = assigned(&r, "conv_1.bias");
    ck_assert_double_ne(other[0], w[0]);
    arena_free(l.arena);
}
END_TEST

START_TEST(batch_norm_starts_at_one) {
    Loaded l = load_model("image |> batch_norm |> flatten |> linear(2)", "");
    Run r = run_new(&l, l.program->init);
    run(&r);
    ck_assert_double_eq(*assigned(&r, "batch_norm_1.scale"), 1);
    ck_assert_double_eq(*assigned(&r, "batch_norm_1.bias"), 0);
    arena_free(l.arena);
}
END_TEST

// ---- the recipe ----

START_TEST(recipe_of_resnet9) {
    Loaded l =
        load_model(head, "precision = mixed(f16)\nseed = 7\n"
                         "eval every 2 epoch on data.test { metrics = "
                         "[accuracy, loss] }\ncheckpoint every 8 epoch keep "
                         "3\n");
    ck_assert_str_eq(codes_of(&l), "");
    const Recipe *p = &l.program->recipe;
    ck_assert_str_eq(l.program->name, "Tiny");
    ck_assert_str_eq(l.program->file, "tiny.net");
    ck_assert_str_eq(p->data_format, "synthetic");
    ck_assert_int_eq(p->batch, 4);
    ck_assert(p->drop_last);
    ck_assert_double_eq(p->length.count, 2);
    ck_assert_int_eq(p->seed, 7);
    ck_assert_int_eq(p->precision, F16);
    ck_assert_double_eq(p->eval_every.count, 2);
    ck_assert_double_eq(p->checkpoint_every.count, 8);
    ck_assert_int_eq(p->checkpoint_keep, 3);
    arena_free(l.arena);
}
END_TEST

START_TEST(recipe_defaults) {
    Loaded l = load_model(head, "");
    const Recipe *p = &l.program->recipe;
    ck_assert_int_eq(p->seed, 0);
    ck_assert_int_eq(p->precision, F32);
    ck_assert_double_eq(p->eval_every.count, 1);
    ck_assert_double_eq(p->checkpoint_every.count, 0);
    arena_free(l.arena);
    l = load_model(head, "eval at end");
    ck_assert_double_eq(l.program->recipe.eval_every.count, 0);
    arena_free(l.arena);
}
END_TEST

START_TEST(settings_override_keys_and_parameters) {
    Setting s[] = {{"batch", "8"},  {"epochs", "0.5"},
                   {"seed", "3"},   {"precision", "mixed(bf16)"},
                   {"width", "16"}, {"batch", "2"}};
    Loaded l =
        load_with("image |> flatten |> linear(width) |> linear(2)", "", s, 6);
    ck_assert_str_eq(codes_of(&l), "");
    const Recipe *p = &l.program->recipe;
    ck_assert_int_eq(p->batch, 2);
    ck_assert(p->drop_last);
    ck_assert_double_eq(p->length.count, 0.5);
    ck_assert_int_eq(p->seed, 3);
    ck_assert_int_eq(p->precision, BF16);
    NodeId w = graph_find(l.program->stage[0].train, "linear_1.weight");
    ck_assert_int_eq(l.program->stage[0].train->node[w].type->dim[0], 16);
    arena_free(l.arena);
}
END_TEST

static double shown_rate(const Loaded *l, int stage) {
    const Graph *g = l->program->stage[stage].train;
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_assign &&
            strcmp(node_text(&g->node[g->node[n].arg[0]], ATTR_name),
                   "metric.lr") == 0)
            return node_attr(&g->node[g->node[n].arg[1]], ATTR_values)
                ->floats[0];
    return 0;
}

// The optimizer's rate was the only reader of the key `lr`.
START_TEST(settings_override_arguments) {
    Setting s[] = {{"optimizer.lr", "0.5"},
                   {"optimizer.momentum", "half"},
                   {"optimizer.lr", "0.25"},
                   {"data.samples", "7"}};
    Loaded l = load_with("image |> flatten |> linear(2)", "half = 0.5", s, 4);
    ck_assert_str_eq(codes_of(&l), "");
    ck_assert_str_eq(l.program->recipe.rate, "optimizer.lr");
    ck_assert_double_eq(shown_rate(&l, 0), 0.25);
    arena_free(l.arena);
    l = load_with("image |> flatten |> linear(2)", "hlf = 0.5", s, 1);
    ck_assert_str_eq(codes_of(&l), "E0402");
    arena_free(l.arena);
}
END_TEST

static const struct {
    const char *keys;
    double first, later; // in the first stage and the last
} shown[] = {
    {"", 0.02, 0.02},
    {"params \"head.*\" { lr = 0.1 }", 0.02, 0.02},
    {"params \"body.*\" { lr = 0.1 }", 0.02, 0.02},
    {"params \"*\" { lr = 0.1 }", 0.1, 0.1},
    {"params \"head.*\" { lr = 0.1 }; freeze \"body.*\"", 0.1, 0.1},
    {"params \"head.*\" { lr = 0.1 }; freeze \"body.*\" after 1 epoch", 0.02,
     0.1},
    {"params \"head.weight\" { lr = 0.1 }\nparams \"head.*\" { weight_decay = "
     "1 }"
     "\nfreeze \"body.*\"",
     0.02, 0.02},
};

// The common rate is logged while some parameter trains with it.
START_TEST(common_rate_is_logged_while_it_trains) {
    Arena *a = arena_new();
    Loaded l = load_text(arena_format(
        a,
        "model M(x: f32[N, 4]) -> f32[N, 2] {\n"
        "x |> linear(3) as body |> linear(2) as head\n}\n"
        "train M { data = synthetic(shape=[4]); batch = 4; epochs = 2\n"
        "loss = mean(cross_entropy(output, label)); optimizer = sgd(lr=0.02)\n"
        "%s }\n",
        shown[_i].keys));
    arena_free(a);
    ck_assert_str_eq(codes_of(&l), "");
    int last = l.program->num_stages - 1;
    ck_assert_double_eq_tol(shown_rate(&l, 0), shown[_i].first, 1e-6);
    ck_assert_double_eq_tol(shown_rate(&l, last), shown[_i].later, 1e-6);
    arena_free(l.arena);
}
END_TEST

START_TEST(an_overridden_key_reads_nothing) {
    Setting s[] = {{"optimizer", "adam(lr=0.5)"}, {"lr", "0.25"}};
    Loaded l = load_with("image |> flatten |> linear(2)", "", s, 1);
    ck_assert_str_eq(codes_of(&l), "");
    ck_assert_double_eq(shown_rate(&l, 0), 0.5);
    arena_free(l.arena);
    l = load_with("image |> flatten |> linear(2)", "", s + 1, 1);
    ck_assert_str_eq(l.program->recipe.rate, "lr");
    ck_assert_double_eq(shown_rate(&l, 0), 0.25);
    arena_free(l.arena);
}
END_TEST

static const struct {
    Setting setting;
    const char *codes;
} bad_settings[] = {
    {{"widht", "16"}, "E0409"},
    {{"image", "3"}, "E0409"},
    {{"eval", "3"}, "E0409"},
    {{"width", "\"a\""}, "E0301"},
    {{"width", "2 +"}, "E0110"},
    {{"width", "16 17"}, "E0110"},
    {{"epochs", "0"}, "E0405"},
    {{"seed", "1e10"}, "E0405"},
    {{"batch", "0"}, "E0405"},
    {{"batch", "1e10"}, "E0405"},
    {{"epochs", "nan"}, "E0201"},
    {{"steps", "0.5"}, "E0405"},
    {{"two words", "5"}, "E0110"},
    {{"precision", "int8"}, "E0405"},
    {{"optimizer.lrr", "1"}, "E0303"},
    {{"lr.from", "1"}, "E0409"},
    {{"eval.on", "1"}, "E0409"},
    {{"clip.max", "1"}, "E0409"},
    {{"width.x", "1"}, "E0409"},
    {{"optimizer.lr", "-1"}, "E0306"},
    {{"optimizer.lr", "true"}, "E0301"},
    {{"optimizer.lr", "rate"}, "E0201"},
    {{"optimizer.lr.x", "1"}, "E0110"},
    {{"optimizer.", "1"}, "E0110"},
};

START_TEST(settings_are_checked) {
    Loaded l = load_with("image |> flatten |> linear(width) |> linear(2)", "",
                         &bad_settings[_i].setting, 1);
    ck_assert_str_eq(codes_of(&l), bad_settings[_i].codes);
    ck_assert_ptr_null(l.program);
    arena_free(l.arena);
}
END_TEST

START_TEST(graphs_are_sound) {
    Loaded l = load_model(
        "h = image |> normalize(128, 64) |> conv(8, 3, bias=false)\n"
        "  |> batch_norm |> gelu as a\n"
        "h + (h |> conv(8, 3, groups=4) |> silu |> avg_pool(3, stride=1,"
        " pad=1))\n"
        "  |> global_max_pool |> softmax |> sigmoid |> tanh |> exp |> log"
        " |> abs |> sqrt |> linear(2)",
        "input = data.train |> random_crop(4, pad=1) |> flip_lr |> cutout(2)");
    ck_assert_str_eq(codes_of(&l), "");
    const Graph *g[] = {l.program->init, l.program->stage[0].train,
                        l.program->eval};
    for (int i = 0; i < 3; i++) {
        const char *why = graph_verify(g[i], l.arena);
        ck_assert_msg(why == NULL, "%s: %s", g[i]->name, why);
    }
    arena_free(l.arena);
}
END_TEST

Suite *lower_suite(void) {
    Suite *s = suite_create("lower");
    TCase *t = tcase_create("lower");
    tcase_add_loop_test(t, schedule_values, 0,
                        sizeof schedules / sizeof schedules[0]);
    tcase_add_test(t, mean_counts_valid_samples);
    tcase_add_test(t, sum_counts_valid_samples_on_any_axis);
    tcase_add_test(t, drop_last_counts_all);
    tcase_add_test(t, correct_samples_are_counted);
    tcase_add_test(t, mse_is_a_loss);
    tcase_add_test(t, batch_norm_follows_statistics);
    tcase_add_loop_test(t, batch_norm_evaluates_by_statistics, 0, 2);
    tcase_add_test(t, crops_cover_their_range);
    tcase_add_test(t, cutout_fills_a_square);
    tcase_add_test(t, uses_have_different_numbers);
    tcase_add_test(t, normalize_in_the_input_is_evaluated);
    tcase_add_test(t, parameters_start_within_their_bound);
    tcase_add_test(t, batch_norm_starts_at_one);
    tcase_add_test(t, recipe_of_resnet9);
    tcase_add_test(t, recipe_defaults);
    tcase_add_test(t, settings_override_keys_and_parameters);
    tcase_add_test(t, settings_override_arguments);
    tcase_add_loop_test(t, common_rate_is_logged_while_it_trains, 0,
                        sizeof shown / sizeof shown[0]);
    tcase_add_test(t, an_overridden_key_reads_nothing);
    tcase_add_loop_test(t, settings_are_checked, 0,
                        sizeof bad_settings / sizeof bad_settings[0]);
    tcase_add_test(t, graphs_are_sound);
    suite_add_tcase(s, t);
    return s;
}
