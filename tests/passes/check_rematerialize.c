// Recompute: the same values from fewer bytes.
#include "tests/graphs/graphs.h"
#include "tests/passes/networks.h"
#include "tests/passes/suites.h"
#include "tests/passes/values.h"

#include "passes/live_range.h"
#include "passes/rematerialize.h"

#include <string.h>

static PassOptions options(int64_t memory) {
    return (PassOptions){.device = "cuda",
                         .act = F32,
                         .storage = F32,
                         .level = 1,
                         .rematerialize = true,
                         .memory = memory,
                         .reuse = true,
                         .deep_verify = true};
}

static Graph *run(Graph *g, const char *pass, int64_t memory) {
    PassOptions o = options(memory);
    return pass_run(g, &o, pass_find(pass));
}

static Graph *scheduled(Arena *a) {
    PassOptions o = options(0);
    return passes_run(graph_from(a, residual_network), &o, "schedule", NULL,
                      NULL);
}

// Random graphs have no backward pass: their later half is called one.
static Graph *random_halves(Arena *a, uint32_t seed) {
    Graph *g = random_graph(a, seed, 10 + (int)(seed % 30));
    g = run(run(run(g, "dce", 0), "fuse", 0), "schedule", 0);
    for (NodeId n = g->count / 2; n < g->count; n++)
        g->node[n].from.backward = true;
    return g;
}

static int64_t arena_of(Graph *g) {
    Graph *planned = run(graph_clone(g), "memory", 0);
    Arena *a = arena_new();
    const char *why = memory_verify(planned, a);
    ck_assert_msg(why == NULL, "%s", why);
    arena_free(a);
    return planned->arena_bytes;
}

START_TEST(values_stay_as_they_are) {
    Arena *a = arena_new();
    Graph *g = random_halves(a, (uint32_t)_i);
    int64_t whole = arena_of(g);
    for (int i = 0; i <= 4; i++) {
        int64_t limit = whole * (4 - i) / 4 + 1;
        Graph *less = run(g, "rematerialize", limit);
        check_same_values(g, less, 0);
        ck_assert_int_le(arena_of(less), whole);
    }
    arena_free(a);
}
END_TEST

static bool *nothing(const Liveness *t, Arena *a) {
    return ARENA_ARRAY(a, (size_t)t->num_values + 1, bool);
}

// Bytes that the launches of a graph need without their workspace, as another
// part of the passes counts them.
static int64_t bound_of(const Graph *g, Arena *a) {
    int count, left = 0;
    LibraryFusions fusions = graph_library_fusions(g, a);
    Buffer *buffer = graph_buffers(g, &fusions, false, a, &count);
    for (int i = 0; i < count; i++)
        if (g->node[buffer[i].node].op != OP_workspace)
            buffer[left++] = buffer[i];
    return buffers_bound(buffer, left);
}

START_TEST(replays_foresee_the_graph) {
    Arena *a = arena_new();
    Graph *g = _i == NUM_GRAPHS ? scheduled(a) : random_halves(a, (uint32_t)_i);
    Liveness t = liveness_of(g, a);
    uint32_t chance = (uint32_t)_i + 1;
    for (int i = 0; i < 8; i++) {
        bool *dropped = nothing(&t, a);
        for (int v = 0; v < t.num_values && i > 0; v++) {
            chance = chance * 1664525u + 1013904223u;
            dropped[v] = t.value[v].recomputable && t.value[v].def < t.split &&
                         chance >> 29 < (uint32_t)i;
        }
        Simulation r = liveness_simulate(&t, dropped, a);
        Graph *placed = rematerialize_build(&t, dropped, a);
        ck_assert_ptr_null(graph_verify(placed, a));
        ck_assert_int_eq(r.peak, bound_of(placed, a));
        int count;
        Group *group = graph_groups(placed, a, &count);
        ck_assert_int_eq(count, r.num_entries);
        for (int k = 0; k < count; k++)
            ck_assert_int_eq(group[k].group, k);
        check_same_values(g, placed, 0);
    }
    arena_free(a);
}
END_TEST

// The least cost of all choices with which no more than `budget` is live; -1
// where none fits.
static int64_t least_cost(const Liveness *t, int64_t budget, Arena *a) {
    int at[16], count = 0;
    int64_t least = -1;
    for (int v = 0; v < t->num_values; v++)
        if (t->value[v].recomputable && t->value[v].def < t->split &&
            count < 16)
            at[count++] = v;
    for (int set = 0; set < 1 << count; set++) {
        bool *dropped = nothing(t, a);
        for (int i = 0; i < count; i++)
            dropped[at[i]] = set >> i & 1;
        Simulation r = liveness_simulate(t, dropped, a);
        if (r.peak <= budget && (least < 0 || r.cost < least))
            least = r.cost;
    }
    return least;
}

// A choice costs no more than half as much again as the best of all; where
// that is nothing, neither does it.
START_TEST(choices_are_near_the_best) {
    Arena *a = arena_new();
    Graph *g = scheduled(a);
    Liveness t = liveness_of(g, a);
    int64_t whole = liveness_simulate(&t, nothing(&t, a), a).peak;
    int fitting = 0;
    for (int share = 100; share >= 50; share -= 5) {
        int64_t budget = whole / 100 * share;
        int64_t least = least_cost(&t, budget, a);
        if (least < 0)
            continue;
        bool fits, *dropped = rematerialize_choose(&t, budget, &fits, a);
        Simulation r = liveness_simulate(&t, dropped, a);
        ck_assert_int_le(r.peak, budget);
        ck_assert_int_le(r.cost, least + least / 2);
        fitting += share < 100;
    }
    ck_assert_int_gt(fitting, 0);
    arena_free(a);
}
END_TEST

START_TEST(what_is_not_asked_for_is_not_done) {
    Arena *a = arena_new();
    Graph *g = scheduled(a);
    PassOptions never = options(1);
    never.rematerialize = false;
    ck_assert_ptr_eq(pass_run(g, &never, pass_find("rematerialize")), g);
    ck_assert_ptr_eq(run(g, "rematerialize", arena_of(g)), g);
    ck_assert_ptr_ne(run(g, "rematerialize", arena_of(g) - 256), g);
    arena_free(a);
}
END_TEST

Suite *rematerialize_suite(void) {
    Suite *s = suite_create("rematerialize");
    TCase *t = tcase_create("rematerialize");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, values_stay_as_they_are, 0, NUM_GRAPHS / 2);
    tcase_add_loop_test(t, replays_foresee_the_graph, NUM_GRAPHS / 2,
                        NUM_GRAPHS + 1);
    tcase_add_test(t, choices_are_near_the_best);
    tcase_add_test(t, what_is_not_asked_for_is_not_done);
    suite_add_tcase(s, t);
    return s;
}
