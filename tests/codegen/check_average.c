// When weights are averaged: the graph that averages and the runtime, which
// runs it, each count the steps for themselves.
#include "frontend/frontend.h"
#include "runtime/runtime.h"
#include "tests/codegen/suites.h"

#include <string.h>

static const char *const periods[] = {
    "1 step",     "2 step",     "3 step",     "7 step",
    "60 step",    "1 epoch",    "2 epochs",   "3 epochs",
    "0.5 epochs", "0.1 epochs", "1.5 epochs", "0.3 epochs",
    "10%",        "7%",         "33.3%",      "12.5%",
};
enum { NUM_PERIODS = sizeof periods / sizeof periods[0] };

static const char *const starts[] = {"0",    "1 step",  "13 step",   "40%",
                                     "7.5%", "1 epoch", "1.5 epochs"};
enum { NUM_STARTS = sizeof starts / sizeof starts[0] };

static Program *averaging(Arena *a, const char *every, const char *start) {
    const char *text = arena_format(
        a,
        "model Net(image: u8[N, 28, 28, 1]) -> f32[N, 10] {\n"
        "image |> mean([1, 2]) |> linear(10, bias=false)\n}\n"
        "train Net {\ndata = idx(\"data\")\nbatch = 100\nepochs = 10\n"
        "loss = mean(cross_entropy(output, label))\n"
        "optimizer = sgd(lr=0.1)\n"
        "average = ema(0.5, every=%s, start=%s)\n}\n",
        every, start);
    Diagnostics diags = diag_new(a);
    Program *p =
        frontend_parse(a, "x.net", text, strlen(text), NULL, 0, &diags);
    ck_assert_msg(p != NULL, "every=%s, start=%s: %s", every, start,
                  diags.count ? diags.list[0]->message : "");
    return p;
}

static void set(const Graph *g, double **leaf, const char *name, double *to) {
    NodeId n = graph_find(g, name);
    if (n != NO_NODE)
        leaf[n] = to;
}

// What an average of 0 becomes at the end of a run, where the weights are 1.
static double mixed(const Program *p, Arena *a, const RtProgress *at) {
    const Graph *g = p->average;
    double **leaf = ARENA_ARRAY(a, g->count, double *);
    double one[10], step = (double)at->step, steps = (double)at->steps,
                    epoch_steps = (double)at->epoch_steps;
    for (int i = 0; i < 10; i++)
        one[i] = 1;
    set(g, leaf, "linear_1.weight", one);
    set(g, leaf, "run.step", &step);
    set(g, leaf, "run.steps", &steps);
    set(g, leaf, "run.epoch_steps", &epoch_steps);
    double **value = graph_eval(g, a, leaf, true);
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_assign)
            return value[g->node[n].arg[1]][0];
    return -1;
}

static RtTime runtime_time(Time t) {
    static const int unit[] = {[IN_STEPS] = RT_STEPS,
                               [IN_EPOCHS] = RT_EPOCHS,
                               [IN_SHARES] = RT_SHARES};
    return (RtTime){t.count, unit[t.unit]};
}

// Until the moment the average is the weights; at the end of the run it stays
// as it is where none is due.
static double expected(const Program *p, const RtProgress *at) {
    RtTime from = runtime_time(p->average_from);
    if (at->step <= rt_time_first(from, at))
        return 1;
    return rt_time_due(runtime_time(p->average_every), at) ? 0.5 : 0;
}

START_TEST(graph_and_runtime_average_at_the_same_steps) {
    static const int64_t epochs[] = {1, 7, 10, 97};
    for (int s = 0; s < NUM_STARTS; s++) {
        Arena *a = arena_new();
        Program *p = averaging(a, periods[_i], starts[s]);
        for (int e = 0; e < 4; e++)
            for (int64_t step = 1; step <= 200; step += 1 + step / 24) {
                RtProgress at = {
                    .step = step, .steps = step, .epoch_steps = epochs[e]};
                double found = mixed(p, a, &at), wanted = expected(p, &at);
                ck_assert_msg(found == wanted,
                              "every=%s, start=%s, %d steps an epoch: the "
                              "average after %d is %g, not %g",
                              periods[_i], starts[s], (int)epochs[e], (int)step,
                              found, wanted);
            }
        arena_free(a);
    }
}
END_TEST

Suite *average_suite(void) {
    Suite *s = suite_create("average");
    TCase *c = tcase_create("due");
    tcase_add_loop_test(c, graph_and_runtime_average_at_the_same_steps, 0,
                        NUM_PERIODS);
    suite_add_tcase(s, c);
    return s;
}
