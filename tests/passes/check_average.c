// Average: a step with its averages does what the two do one after the other.
#include "frontend/frontend.h"
#include "passes/plan/group.h"
#include "tests/passes/suites.h"
#include "tests/passes/values.h"

#include <stdio.h>
#include <string.h>

static const char *const kinds[] = {"ema", "lookahead"};
static const DType acts[] = {F32, F16};

// Weights, one of them frozen, and statistics.
static Program *program(Arena *a, const char *average) {
    const char *text = arena_format(
        a,
        "model Net(image: u8[N, 4, 4, 1]) -> f32[N, 2] {\n"
        "image |> conv(2, 1, bias=false) as stem |> batch_norm |> relu\n"
        "|> flatten |> linear(2) as head\n}\n"
        "train Net {\ndata = synthetic()\nbatch = 4\nepochs = 2\n"
        "loss = mean(cross_entropy(output, label))\n"
        "optimizer = sgd(lr=0.1, momentum=0.9)\n"
        "freeze \"stem.weight\"\n"
        "average = %s\n}\n",
        average);
    Diagnostics diags = diag_new(a);
    Program *p =
        frontend_parse(a, "x.net", text, strlen(text), NULL, 0, &diags);
    ck_assert_msg(p != NULL, "%s: %s", average,
                  diags.count ? diags.list[0]->message : "");
    return p;
}

static Graph *typed(Graph *g, DType act) {
    PassOptions o = {
        .device = "cuda", .act = act, .level = 1, .deep_verify = true};
    return passes_run(g, &o, "precision", NULL, NULL);
}

// The leaves of the averages after the step: what it assigns, or else its own.
static double **leaves_after(const Graph *step, double *const *value,
                             const Graph *average, Arena *a) {
    double **leaf = leaf_values(average, a, 0, -2, 2);
    for (NodeId n = 0; n < average->count; n++) {
        const Node *d = &average->node[n];
        if (d->op != OP_param && d->op != OP_state)
            continue;
        const double *now = value_named(step, value, node_text(d, ATTR_name));
        if (now)
            leaf[n] = (double *)now;
    }
    return leaf;
}

static bool same_value(const Graph *g, const double *x, const double *y,
                       NodeId n) {
    size_t count = (size_t)type_count(g->node[n].type);
    return memcmp(x, y, count * sizeof *x) == 0;
}

START_TEST(a_step_with_averages_is_one_after_the_other) {
    Arena *a = arena_new();
    DType act = acts[_i / 2];
    Program *p = program(
        a, arena_format(a, "%s(decay=0.7, start=3 step)", kinds[_i % 2]));
    Graph *step = typed(p->stage[0].train, act);
    Graph *average = typed(p->average, act);
    Graph *both = step_with_average(step, average);
    const char *why = graph_verify(both, a);
    ck_assert_msg(why == NULL, "%s", why);

    double **x = graph_eval(step, a, leaf_values(step, a, 0, -2, 2), true);
    double **y =
        graph_eval(average, a, leaves_after(step, x, average, a), true);
    double **z = graph_eval(both, a, leaf_values(both, a, 0, -2, 2), true);
    int found = 0, averaged = 0;
    for (NodeId n = 0; n < both->count; n++) {
        if (both->node[n].op != OP_assign)
            continue;
        NodeId to = both->node[n].arg[0];
        const char *name = node_text(&both->node[to], ATTR_name);
        const double *late = value_named(average, y, name);
        const double *want = late ? late : value_named(step, x, name);
        ck_assert_msg(want && same_value(both, z[n], want, n), "%s", name);
        found++;
        averaged += late != NULL;
    }
    // The params and statistics of the model: lookahead assigns them too.
    ck_assert_int_eq(averaged, count_ops(average, OP_assign));
    ck_assert_int_eq(averaged, _i % 2 ? 14 : 7);
    int stays = 0;
    for (NodeId n = 0; n < step->count; n++)
        if (step->node[n].op == OP_assign)
            stays += value_named(average, y,
                                 node_text(&step->node[step->node[n].arg[0]],
                                           ATTR_name)) == NULL;
    ck_assert_int_eq(found, averaged + stays);
    arena_free(a);
}
END_TEST

static Graph *planned(Arena *a, const char *average) {
    Program *p = program(a, average);
    PassOptions o = pass_options(&p->recipe, "cuda");
    o.deep_verify = true;
    return plan_graph(program_plan(p, &o), "train");
}

// The group of what is assigned to the param or state of that name, or -1.
static int group_of(const Graph *g, const char *name) {
    NodeId leaf = graph_find(g, name);
    for (NodeId n = 0; n < g->count && leaf != NO_NODE; n++)
        if (g->node[n].op == OP_assign && g->node[n].arg[0] == leaf)
            return g->node[n].group;
    return -1;
}

START_TEST(averages_of_every_step_are_stored_by_the_update) {
    Arena *a = arena_new();
    char each[64], often[64];
    snprintf(each, sizeof each, "%s(decay=0.7)", kinds[_i]);
    snprintf(often, sizeof often, "%s(decay=0.7, every=2 step)", kinds[_i]);
    Graph *with = planned(a, each), *without = planned(a, often);
    static const char *const names[] = {"head.linear_1.weight",
                                        "head.linear_1.bias", "stem.weight"};
    int update = group_of(with, "head.linear_1.weight");
    ck_assert_int_ge(update, 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *average = arena_format(a, "%s.average", names[i]);
        ck_assert_int_eq(group_of(with, average), update);
        ck_assert_int_eq(group_of(without, average), -1);
    }
    ck_assert_int_eq(graph_plan(with, false, a)->num_groups,
                     graph_plan(without, false, a)->num_groups);
    arena_free(a);
}
END_TEST

Suite *average_suite(void) {
    Suite *s = suite_create("average");
    TCase *c = tcase_create("each step");
    tcase_add_loop_test(c, a_step_with_averages_is_one_after_the_other, 0, 4);
    tcase_add_loop_test(c, averages_of_every_step_are_stored_by_the_update, 0,
                        2);
    suite_add_tcase(s, c);
    return s;
}
