// Optimizer: updates against PyTorch's formulas, written out here.
//
// The loss is sum(x w^2), so the gradient 2 x w changes from step to step.
#include "tests/passes/suites.h"
#include "tests/passes/values.h"

#include <math.h>
#include <string.h>

enum { COUNT = 3, STEPS = 3 };

static const double rate = 0.1, beta2 = 0.99, eps = 1e-8;

typedef struct {
    const char *update; // of %0 with rate %6, momentum %7, decay %8
    bool adam, nesterov, decoupled;
    double momentum, decay; // momentum is adam's beta1
} Recipe3;

static const Recipe3 recipes[] = {
    {"sgd %0, %6, %7, %8", false, false, false, 0, 0},
    {"sgd %0, %6, %7, %8", false, false, false, 0, 0.3},
    {"sgd %0, %6, %7, %8", false, false, false, 0.9, 0},
    {"sgd %0, %6, %7, %8", false, false, false, 0.9, 0.3},
    {"sgd %0, %6, %7, %8 {nesterov = 1}", false, true, false, 0.9, 0.3},
    {"adam %0, %6, %7, %9, %8, %12 {eps = 1e-08}", true, false, false, 0.9, 0},
    {"adam %0, %6, %7, %9, %8, %12 {eps = 1e-08}", true, false, false, 0.9,
     0.3},
    {"adamw %0, %6, %7, %9, %8, %12 {eps = 1e-08}", true, false, true, 0.9,
     0.3},
};

static Graph *recipe_graph(Arena *a, const Recipe3 *r) {
    Text t = text_new(a);
    text_add(&t,
             "graph train {\n"
             "%%0 = param {name = \"w\"} : f32[3]\n"
             "%%1 = input {name = \"x\"} : f32[3]\n"
             "%%2 = mul %%0, %%0 : f32[3]\n"
             "%%3 = mul %%1, %%2 : f32[3]\n"
             "%%4 = sum %%3 {axes = [0]} : f32[]\n"
             "%%5 = output %%4 {name = \"loss\"} : f32[]\n"
             "%%6 = constant {values = [%.17g]} : f32[]\n"
             "%%7 = constant {values = [%.17g]} : f32[]\n"
             "%%8 = constant {values = [%.17g]} : f32[]\n"
             "%%9 = constant {values = [%.17g]} : f32[]\n"
             "%%10 = state {init = 0.0, kind = \"run\", name = \"run.step\"} "
             ": i32[]\n"
             "%%11 = constant {values = [1.0]} : i32[]\n"
             "%%12 = add %%10, %%11 : i32[]\n"
             "%%13 = assign %%10, %%12 : i32[]\n",
             rate, r->momentum, r->decay, beta2);
    text_add(&t, "%%14 = %s : f32[3]\n}\n", r->update);
    return graph_from(a, text_string(&t));
}

// What is kept between steps, in either way of computing them.
typedef struct {
    double w[COUNT], m[COUNT], v[COUNT];
} Moments;

static void step_sgd(const Recipe3 *r, Moments *s, int i, double d, int step) {
    d += r->decay * s->w[i];
    s->m[i] = step == 1 ? d : r->momentum * s->m[i] + d;
    if (r->momentum != 0)
        d = r->nesterov ? d + r->momentum * s->m[i] : s->m[i];
    s->w[i] -= rate * d;
}

static void step_adam(const Recipe3 *r, Moments *s, int i, double d, int step) {
    if (r->decoupled)
        s->w[i] *= 1 - rate * r->decay;
    else
        d += r->decay * s->w[i];
    s->m[i] = r->momentum * s->m[i] + (1 - r->momentum) * d;
    s->v[i] = beta2 * s->v[i] + (1 - beta2) * d * d;
    double root = sqrt(s->v[i]) / sqrt(1 - pow(beta2, step)) + eps;
    s->w[i] -= rate / (1 - pow(r->momentum, step)) * s->m[i] / root;
}

// Gives a state its elements, where the graph has it.
static void set_leaf(const Graph *g, double **leaf, const char *name,
                     double *value) {
    NodeId n = graph_find(g, name);
    if (n != NO_NODE)
        leaf[n] = value;
}

static void read_back(const Graph *g, double *const *value, const char *name,
                      double *to) {
    const double *from = value_named(g, value, name);
    if (from != NULL)
        memcpy(to, from, COUNT * sizeof *to);
}

static void run_step(const Graph *g, Moments *s, double *x, double step) {
    Arena *a = arena_new();
    double **leaf = ARENA_ARRAY(a, g->count, double *);
    set_leaf(g, leaf, "w", s->w);
    set_leaf(g, leaf, "x", x);
    set_leaf(g, leaf, "run.step", &step);
    set_leaf(g, leaf, "w.momentum", s->m);
    set_leaf(g, leaf, "w.adam_m", s->m);
    set_leaf(g, leaf, "w.adam_v", s->v);
    double **value = graph_eval(g, a, leaf, false);
    read_back(g, value, "w", s->w);
    read_back(g, value, "w.momentum", s->m);
    read_back(g, value, "w.adam_m", s->m);
    read_back(g, value, "w.adam_v", s->v);
    arena_free(a);
}

START_TEST(three_steps_follow_pytorch) {
    const Recipe3 *r = &recipes[_i];
    Arena *a = arena_new();
    Graph *g = run_pass(recipe_graph(a, r), "autodiff", F32);
    g = run_pass(g, "optimizer", F32);
    Moments got = {.w = {1, -0.5, 0.25}}, want = got;
    double x[COUNT] = {0.3, -0.7, 1.1};
    for (int step = 1; step <= STEPS; step++) {
        for (int i = 0; i < COUNT; i++)
            (r->adam ? step_adam : step_sgd)(r, &want, i, 2 * x[i] * want.w[i],
                                             step);
        run_step(g, &got, x, step - 1);
        for (int i = 0; i < COUNT; i++)
            ck_assert_double_eq_tol(got.w[i], want.w[i], 1e-12);
    }
    arena_free(a);
}
END_TEST

// The first step is what ir/eval.c says that sgd and adam mean.
START_TEST(first_step_is_the_definition) {
    Arena *a = arena_new();
    Graph *before = run_pass(recipe_graph(a, &recipes[_i]), "autodiff", F32);
    Graph *after = run_pass(before, "optimizer", F32);
    double w[] = {1, -0.5, 0.25}, x[] = {0.3, -0.7, 1.1};
    double **leaf = ARENA_ARRAY(a, before->count, double *);
    set_leaf(before, leaf, "w", w);
    set_leaf(before, leaf, "x", x);
    double **value = graph_eval(before, a, leaf, false);
    Moments got = {.w = {1, -0.5, 0.25}};
    run_step(after, &got, x, 0);
    NodeId n = 0;
    while (!is_optimizer(before->node[n].op))
        n++;
    for (int i = 0; i < COUNT; i++)
        ck_assert_double_eq_tol(got.w[i], value[n][i], 1e-12);
    arena_free(a);
}
END_TEST

// Every rule and attribute, on a wide matrix and a tall one.
static const char *const updates[] = {
    "sgd %0, %6, %7, %8 {decoupled = 1}",
    "sgd %0, %6, %7, %8 {nesterov = 1, rate_in_velocity = 1}",
    "adam %0, %6, %7, %9, %8, %12 {eps = 1e-06}",
    "adamw %0, %6, %7, %9, %8, %12 {eps = 1e-06}",
    "lamb %0, %6, %7, %9, %8, %12 {eps = 1e-06}",
    "lars %0, %6, %7, %8 {eps = 0.01, trust = 0.02}",
    "rmsprop %0, %6, %7, %8, %9 {centered = 1, eps = 0.01}",
    "rmsprop %0, %6, %7, %8, %9 {eps = 0.01}",
    ("adagrad %0, %6, %8, %12 {eps = 0.01, initial_accumulator_value = 0.3, "
     "lr_decay = 0.2}"),
    "lion %0, %6, %7, %9, %8",
    "nadam %0, %6, %9, %8, %12 {beta1 = 0.8, eps = 0.01, momentum_decay = 0.4}",
    "radam %0, %6, %7, %9, %8, %12 {eps = 0.01}",
    "radam %0, %6, %7, %9, %8, %13 {eps = 0.01}",
    "adan %0, %6, %7, %10, %9, %8, %12 {eps = 0.01}",
    "adan %0, %6, %7, %10, %9, %8, %13 {eps = 0.01}",
    "muon %0, %6, %7, %8 {coefficients = [3.4445,-4.775,2.0315]}",
    ("muon %0, %6, %7, %8 {coefficients = [1.5,-0.5,0.0], iterations = 3, "
     "nesterov = 1, renormalize = 1}"),
};

enum { NUM_UPDATES = sizeof updates / sizeof updates[0] };

static Graph *update_graph(Arena *a, const char *rule, const char *shape) {
    Text t = text_new(a);
    text_add(&t, "graph train {\n%%0 = param {name = \"w\"} : f32[%s]\n",
             shape);
    text_add(&t, "%%1 = input {name = \"x\"} : f32[%s]\n", shape);
    text_add(&t,
             "%%2 = mul %%0, %%0 : f32[%s]\n%%3 = mul %%1, %%2 : f32[%s]\n"
             "%%4 = sum %%3 {axes = [0,1]} : f32[]\n"
             "%%5 = output %%4 {name = \"loss\"} : f32[]\n",
             shape, shape);
    const double number[] = {rate, 0.9, 0.3, beta2};
    for (int i = 0; i < 4; i++)
        text_add(&t, "%%%d = constant {values = [%.17g]} : f32[]\n", 6 + i,
                 number[i]);
    text_add(&t,
             "%%10 = constant {values = [0.7]} : f32[]\n"
             "%%11 = clip %%10 {mode = \"norm\"} : f32[]\n"
             "%%12 = constant {values = [1.0]} : i32[]\n"
             "%%13 = constant {values = [9.0]} : i32[]\n"
             "%%14 = %s : f32[%s]\n}\n",
             rule, shape);
    return graph_from(a, text_string(&t));
}

START_TEST(every_first_update_is_the_definition) {
    Arena *a = arena_new();
    const char *shape = _i % 2 ? "4,2" : "3,5";
    Graph *before = update_graph(a, updates[_i / 2], shape);
    before = run_pass(before, "autodiff", F32);
    Graph *after = run_pass(before, "optimizer", F32);
    double w[15], x[15], **leaf = ARENA_ARRAY(a, before->count, double *);
    for (int i = 0; i < 15; i++) {
        w[i] = sin(1 + i);
        x[i] = cos(2 * i);
    }
    set_leaf(before, leaf, "w", w);
    set_leaf(before, leaf, "x", x);
    const double *want = NULL;
    double **value = graph_eval(before, a, leaf, false);
    for (NodeId n = 0; n < before->count; n++)
        if (is_optimizer(before->node[n].op))
            want = value[n];
    leaf = ARENA_ARRAY(a, after->count, double *);
    set_leaf(after, leaf, "w", w);
    set_leaf(after, leaf, "x", x);
    const double *got =
        value_named(after, graph_eval(after, a, leaf, false), "w");
    for (int i = 0; i < (_i % 2 ? 8 : 15); i++)
        ck_assert_double_eq_tol(got[i], want[i], 1e-12);
    arena_free(a);
}
END_TEST

// A step whose gradient is no number leaves every parameter and state.
START_TEST(a_skipped_step_leaves_all_states) {
    Arena *a = arena_new();
    Graph *g = update_graph(a, updates[_i], "3,5");
    g = run_pass(run_pass(g, "autodiff", F32), "optimizer", F32);
    g = run_pass(run_pass(g, "expand", F32), "precision", F16);
    double **leaf = leaf_values(g, a, 1, 0.1, 0.9);
    leaf[graph_find(g, "x")][7] = NAN;
    double **value = graph_eval(g, a, leaf, false);
    int states = 0;
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        NodeId to = d->op == OP_assign ? d->arg[0] : NO_NODE;
        if (to == NO_NODE || !(g->node[to].op == OP_param ||
                               state_is(&g->node[to], STATE_OPTIMIZER)))
            continue;
        states++;
        for (int64_t i = 0; i < type_count(d->type); i++)
            ck_assert_double_eq(value[n][i], leaf[to][i]);
    }
    ck_assert_int_gt(states, 0);
    arena_free(a);
}
END_TEST

// How far RAdam's update t moves a parameter whose gradient is 1.
static double radam_step(double beta, double t, bool round) {
    static const char rest[] =
        "%2 = output %0 {name = \"loss\"} : f32[]\n"
        "%3 = constant {values = [0.1]} : f32[]\n"
        "%4 = constant {values = [0.9]} : f32[]\n"
        "%5 = constant {values = [0.0]} : f32[]\n"
        "%6 = input {name = \"t\"} : i32[]\n"
        "%7 = radam %0, %3, %4, %1, %5, %6 {eps = 1e-08} : f32[]\n}\n";
    Arena *a = arena_new();
    Text text = text_new(a);
    text_add(&text, "graph train {\n%%0 = param {name = \"w\"} : f32[]\n");
    text_add(&text, "%%1 = constant {values = [%.17g]} : f32[]\n%s", beta,
             rest);
    Graph *g = run_pass(graph_from(a, text_string(&text)), "autodiff", F32);
    g = run_pass(run_pass(g, "optimizer", F32), "simplify", F32);
    double **leaf = ARENA_ARRAY(a, g->count, double *);
    set_leaf(g, leaf, "t", &t);
    double step = *value_named(g, graph_eval(g, a, leaf, round), "w");
    arena_free(a);
    return step;
}

// The number that is compared with 5 is right however near 1 beta2 is.
START_TEST(rectification_is_accurate_in_f32) {
    static const double beta[] = {0.9, 0.99, 0.999, 0.9999, 0.99999};
    for (int t = 1; t < 40; t++) {
        double exact = radam_step(beta[_i], t, false);
        double rounded = radam_step(beta[_i], t, true);
        ck_assert_double_eq_tol(rounded, exact, 1e-6 * fabs(exact));
    }
}
END_TEST

// Each row of the table has its cases.
START_TEST(every_optimizer_has_a_first_update) {
    bool seen[NUM_OPS] = {false};
    for (int i = 0; i < NUM_UPDATES; i++) {
        Op op;
        ck_assert(op_find(updates[i], strcspn(updates[i], " "), &op));
        seen[op] = true;
    }
    for (int op = 0; op < NUM_OPS; op++)
        ck_assert_msg(seen[op] == is_optimizer((Op)op), "%s is not in updates",
                      op_info[op].name);
}
END_TEST

START_TEST(the_first_scalar_is_the_rate) {
    for (int op = 0; op < NUM_OPS; op++)
        if (is_optimizer((Op)op))
            ck_assert_str_eq(optimizer_scalar((Op)op, 1), "lr");
}
END_TEST

static int count_states(const Graph *g) {
    int count = 0;
    for (NodeId n = 0; n < g->count; n++) {
        const char *kind = node_text(&g->node[n], ATTR_kind);
        count += kind != NULL && strcmp(kind, STATE_OPTIMIZER) == 0;
    }
    return count;
}

START_TEST(zero_momentum_and_decay_cost_nothing) {
    Arena *a = arena_new();
    Graph *g = run_pass(recipe_graph(a, &recipes[0]), "autodiff", F32);
    NodeId before = g->count;
    g = run_pass(g, "optimizer", F32);
    ck_assert_int_eq(count_states(g), 0);
    // Without gradient and sgd: 1, 1 / scale, g * that, rate * that, w - that,
    // assign.
    ck_assert_uint_eq(g->count, before - 2 + 6);
    arena_free(a);
}
END_TEST

START_TEST(correction_is_accurate_in_f32) {
    Arena *a = arena_new();
    Graph *g = run_pass(recipe_graph(a, &recipes[5]), "autodiff", F32);
    g = run_pass(run_pass(g, "optimizer", F32), "simplify", F32);
    double w[] = {1, -0.5, 0.25}, x[] = {0.3, -0.7, 1.1};
    double **leaf = ARENA_ARRAY(a, g->count, double *);
    set_leaf(g, leaf, "w", w);
    set_leaf(g, leaf, "x", x);
    const double *exact = value_named(g, graph_eval(g, a, leaf, false), "w");
    const double *rounded = value_named(g, graph_eval(g, a, leaf, true), "w");
    for (int i = 0; i < COUNT; i++) {
        double step = exact[i] - w[i];
        ck_assert_double_le(fabs(rounded[i] - exact[i]), 1e-6 * fabs(step));
    }
    arena_free(a);
}
END_TEST

Suite *optimizer_suite(void) {
    Suite *s = suite_create("optimizer");
    TCase *t = tcase_create("optimizer");
    int count = sizeof recipes / sizeof recipes[0];
    tcase_add_loop_test(t, three_steps_follow_pytorch, 0, count);
    tcase_add_loop_test(t, first_step_is_the_definition, 0, count);
    tcase_add_loop_test(t, every_first_update_is_the_definition, 0,
                        2 * NUM_UPDATES);
    tcase_add_loop_test(t, a_skipped_step_leaves_all_states, 0, NUM_UPDATES);
    tcase_add_loop_test(t, rectification_is_accurate_in_f32, 0, 5);
    tcase_add_test(t, every_optimizer_has_a_first_update);
    tcase_add_test(t, the_first_scalar_is_the_rate);
    tcase_add_test(t, zero_momentum_and_decay_cost_nothing);
    tcase_add_test(t, correction_is_accurate_in_f32);
    suite_add_tcase(s, t);
    return s;
}
