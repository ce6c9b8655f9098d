// Compile: the graphs of a program in one arena.
#include "tests/passes/networks.h"
#include "tests/passes/suites.h"
#include "tests/passes/values.h"

#include "base/exits.h"
#include "passes/plan/group.h"

#include <string.h>

static const char start[] =
    "graph init {\n"
    "%0 = param {name = \"conv_1.weight\"} : f32[8,3,3,3]\n"
    "%1 = state {init = 0.0, kind = \"run\", name = \"run.seed\"} : i32[]\n"
    "%2 = constant {values = [0.0]} : i32[]\n"
    "%3 = iota : i32[216]\n"
    "%4 = reshape %3 : i32[8,3,3,3]\n"
    "%5 = uniform %1, %2, %4 {stream = 9} : f32[8,3,3,3]\n"
    "%6 = assign %0, %5 : f32[8,3,3,3]\n"
    "}\n";

static Plan *plan(Arena *a, DType act, const char *device) {
    Program *p = ARENA_NEW(a, Program);
    p->recipe.precision = act;
    Stage *stage = ARENA_NEW(a, Stage);
    stage->train = graph_from(a, residual_network);
    p->stage = stage;
    p->num_stages = 1;
    p->eval = graph_from(a, residual_evaluation);
    p->init = graph_from(a, start);
    PassOptions o = pass_options(&p->recipe, device);
    o.deep_verify = true;
    return program_plan(p, &o);
}

enum { MAX_GRAPHS = 4 };

typedef struct {
    const Graph *graph[MAX_GRAPHS];
    int count;
} Graphs;

static Graphs graphs_of(const Plan *p) {
    Graphs all = {.count = p->num_steps};
    ck_assert_int_le(p->num_steps, MAX_GRAPHS);
    for (int i = 0; i < p->num_steps; i++)
        all.graph[i] = p->step[i].graph;
    return all;
}

static bool is_state(const Node *n) {
    return n->op == OP_param || n->op == OP_state;
}

static const struct {
    DType act;
    const char *device;
} targets[] = {
    {F32, "host"}, {F32, "cuda"}, {F16, "host"}, {F16, "cuda"}, {BF16, "cuda"}};
enum { NUM_TARGETS = sizeof targets / sizeof *targets };

START_TEST(states_have_one_place) {
    Arena *a = arena_new();
    Plan *p = plan(a, targets[_i].act, targets[_i].device);
    Graphs all = graphs_of(p);
    int shared = 0;
    for (int i = 0; i < all.count; i++)
        for (NodeId n = 0; n < all.graph[i]->count; n++) {
            const Node *d = &all.graph[i]->node[n];
            if (!is_state(d))
                continue;
            ck_assert_int_lt(d->offset, p->state_bytes);
            for (int j = 0; j < i; j++) {
                const Graph *g = all.graph[j];
                NodeId m = graph_find(g, node_text(d, ATTR_name));
                if (m == NO_NODE || !is_state(&g->node[m]))
                    continue;
                ck_assert_int_eq(g->node[m].offset, d->offset);
                ck_assert(type_is(g->node[m].type, d->type));
                shared++;
            }
        }
    ck_assert_int_gt(shared, 4);
    arena_free(a);
}
END_TEST

// Different states never overlap, whichever graphs they are in.
START_TEST(states_are_apart) {
    Arena *a = arena_new();
    Plan *p = plan(a, targets[_i].act, targets[_i].device);
    Graphs all = graphs_of(p);
    const char **owner =
        ARENA_ARRAY(a, (size_t)p->state_bytes / 256 + 1, const char *);
    for (int i = 0; i < all.count; i++)
        for (NodeId n = 0; n < all.graph[i]->count; n++) {
            const Node *d = &all.graph[i]->node[n];
            const char *name = node_text(d, ATTR_name);
            int64_t bytes = graph_bytes(all.graph[i], d->type);
            for (int64_t at = 0; is_state(d) && at < bytes; at += 256) {
                const char **slot = &owner[(d->offset + at) / 256];
                ck_assert_msg(*slot == NULL || strcmp(*slot, name) == 0,
                              "%s and %s share memory", name, *slot);
                *slot = name;
            }
        }
    arena_free(a);
}
END_TEST

// What lives for a step stays clear of the states of every graph, and the
// arena holds the largest of them.
START_TEST(steps_stay_clear_of_states) {
    Arena *a = arena_new();
    Plan *p = plan(a, targets[_i].act, targets[_i].device);
    Graphs all = graphs_of(p);
    int64_t most = 0;
    for (int i = 0; i < all.count; i++) {
        const Graph *g = all.graph[i];
        const char *why = memory_verify(g, a);
        ck_assert_msg(why == NULL, "%s: %s", g->name, why);
        ck_assert_int_eq(g->act, p->act);
        most = g->arena_bytes > most ? g->arena_bytes : most;
        for (NodeId n = 0; n < g->count; n++)
            if (!is_state(&g->node[node_base(g, n)]) && g->node[n].offset >= 0)
                ck_assert_int_ge(g->node[n].offset, p->state_bytes);
    }
    ck_assert_int_eq(p->arena_bytes, most);
    arena_free(a);
}
END_TEST

// On the host activations are f32, and weights in halves f32 too; the graphs
// differ in nothing else.
START_TEST(devices_share_graphs) {
    Arena *a = arena_new();
    Graphs host = graphs_of(plan(a, F16, "host"));
    Graphs cuda = graphs_of(plan(a, F16, "cuda"));
    ck_assert_int_eq(host.count, 4);
    ck_assert_int_eq(cuda.count, 4);
    for (int i = 0; i < host.count; i++) {
        const Graph *x = host.graph[i], *y = cuda.graph[i];
        ck_assert_int_eq(x->act, F32);
        ck_assert_int_eq(y->act, F16);
        ck_assert_uint_eq(x->count, y->count);
        for (NodeId n = 0; n < x->count; n++) {
            ck_assert_int_eq(x->node[n].op, y->node[n].op);
            ck_assert_int_eq(x->node[n].group, y->node[n].group);
            ck_assert(type_is(x->node[n].type, y->node[n].type));
        }
    }
    arena_free(a);
}
END_TEST

START_TEST(f32_derives_nothing) {
    Arena *a = arena_new();
    ck_assert_ptr_null(plan_graph(plan(a, F32, "cuda"), "derive"));
    arena_free(a);
}
END_TEST

static const char *printed(Arena *a, const Plan *p) {
    Graphs all = graphs_of(p);
    Text t = text_new(a);
    for (int i = 0; i < all.count; i++)
        graph_print(&t, all.graph[i]);
    return text_string(&t);
}

START_TEST(equal_programs_have_equal_plans) {
    Arena *a = arena_new();
    const char *once = printed(a, plan(a, F16, "cuda"));
    ck_assert_str_eq(once, printed(a, plan(a, F16, "cuda")));
    arena_free(a);
}
END_TEST

START_TEST(a_plan_made_elsewhere_is_that_devices_own) {
    Arena *a = arena_new();
    Recipe recipe = {.precision = F16};
    PassOptions host = pass_options(&recipe, "host");
    const Plan *cuda = plan(a, F16, "cuda");
    const char *before = printed(a, cuda);
    const Plan *made = plan_elsewhere(cuda, &host);
    ck_assert_str_eq(printed(a, made), printed(a, plan(a, F16, "host")));
    ck_assert_int_eq(made->arena_bytes, plan(a, F16, "host")->arena_bytes);
    ck_assert_str_eq(printed(a, cuda), before);
    arena_free(a);
}
END_TEST

// A chain of so many operations, forwards only; the operations of all steps.
static int64_t chain_planned(int64_t length) {
    Arena *a = arena_new();
    Program *p = ARENA_NEW(a, Program);
    p->eval = graph_new(a, "eval");
    NodeId n = graph_leaf(p->eval, OP_input, "image", type_scalar(F32));
    Attr name = attr_text(ATTR_name, "y");
    for (int64_t i = 0; i < length; i++)
        n = graph_op1(p->eval, OP_exp, n);
    graph_add(p->eval, (Node){.op = OP_output,
                              .num_args = 1,
                              .arg = &n,
                              .num_attrs = 1,
                              .attr = &name,
                              .group = -1});
    PassOptions o = pass_options(&p->recipe, "host");
    int64_t nodes = program_plan(p, &o)->step[0].graph->count;
    arena_free(a);
    return nodes;
}

START_TEST(programs_reach_the_limit) {
    int64_t beside = chain_planned(1000) - 1000; // in several kernels
    ck_assert_int_eq(chain_planned(MAX_PROGRAM_NODES - beside),
                     MAX_PROGRAM_NODES);
}
END_TEST

START_TEST(programs_past_the_limit_are_the_models_fault) {
    chain_planned(MAX_PROGRAM_NODES + 1001 - chain_planned(1000));
}
END_TEST

Suite *compile_suite(void) {
    Suite *s = suite_create("compile");
    TCase *t = tcase_create("compile");
    tcase_set_timeout(t, 60); // the largest program on a busy machine
    tcase_add_loop_test(t, states_have_one_place, 0, NUM_TARGETS);
    tcase_add_loop_test(t, states_are_apart, 0, NUM_TARGETS);
    tcase_add_loop_test(t, steps_stay_clear_of_states, 0, NUM_TARGETS);
    tcase_add_test(t, devices_share_graphs);
    tcase_add_test(t, f32_derives_nothing);
    tcase_add_test(t, equal_programs_have_equal_plans);
    tcase_add_test(t, a_plan_made_elsewhere_is_that_devices_own);
    tcase_add_test(t, programs_reach_the_limit);
    tcase_add_exit_test(t, programs_past_the_limit_are_the_models_fault,
                        EXIT_MODEL);
    suite_add_tcase(s, t);
    return s;
}
