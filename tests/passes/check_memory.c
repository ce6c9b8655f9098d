// Memory: plans that the verifier accepts, and faults that it names.
#include "tests/graphs/graphs.h"
#include "tests/passes/networks.h"
#include "tests/passes/suites.h"
#include "tests/passes/values.h"

#include "passes/plan/group.h"

#include <string.h>

enum { SLOT = 256 };

static Graph *planned(Graph *g, bool reuse) {
    PassOptions o = {.device = "cuda",
                     .act = F32,
                     .storage = F32,
                     .level = 1,
                     .reuse = reuse,
                     .deep_verify = true};
    return passes_run(g, &o, "memory", NULL, NULL);
}

static Graph *random_plan(Arena *a, int i, bool reuse) {
    return planned(random_graph(a, (uint32_t)i, 5 + i % 40), reuse);
}

// ---- plans ----

START_TEST(plans_are_sound) {
    Arena *a = arena_new();
    Graph *g = random_plan(a, _i / 2, _i % 2);
    const char *why = memory_verify(g, a);
    ck_assert_msg(why == NULL, "%s", why);
    ck_assert_uint_eq(g->facts & PLANNED, PLANNED);
    arena_free(a);
}
END_TEST

START_TEST(what_is_stored_has_a_place) {
    Arena *a = arena_new();
    Graph *g = random_plan(a, _i, true);
    bool *stored = graph_stored(g, a);
    for (NodeId n = 0; n < g->count; n++) {
        NodeId base = node_base(g, n);
        if (stored[n])
            ck_assert_int_ge(g->node[n].offset, 0);
        if (base != n)
            ck_assert_int_eq(g->node[n].offset, g->node[base].offset);
    }
    arena_free(a);
}
END_TEST

static int64_t slots(const Graph *g, NodeId n) {
    return (graph_bytes(g, g->node[n].type) + SLOT - 1) / SLOT * SLOT;
}

START_TEST(without_reuse_nothing_is_shared) {
    Arena *a = arena_new();
    Graph *g = random_plan(a, _i, false);
    bool *stored = graph_stored(g, a);
    int64_t sum = 0;
    for (NodeId n = 0; n < g->count; n++) {
        if (!stored[n])
            continue;
        sum += slots(g, n);
        for (NodeId m = 0; m < n; m++)
            ck_assert(!stored[m] ||
                      g->node[m].offset >= g->node[n].offset + slots(g, n) ||
                      g->node[n].offset >= g->node[m].offset + slots(g, m));
    }
    ck_assert_int_eq(g->arena_bytes, sum);
    arena_free(a);
}
END_TEST

// No plan can be smaller than the bound; a greedy one is not much larger.
START_TEST(plans_are_near_the_bound) {
    Arena *a = arena_new();
    Graph *g = _i < NUM_GRAPHS ? random_plan(a, _i, true)
                               : planned(graph_from(a, residual_network), true);
    int64_t bound = graph_bound(g);
    ck_assert_int_le(bound, g->arena_bytes);
    ck_assert_int_le(g->arena_bytes, bound + bound / 4);
    arena_free(a);
}
END_TEST

#define K "f32[1024]"

// Each value dies as the next is made, so two buffers do for all.
static const char chain[] =
    "graph eval (primitive, typed, grouped; act = f32) {\n"
    "%0 = input {name = \"x\"} : " K "\n"
    "%1 = neg %0 : " K " !g0\n"
    "%2 = abs %1 : " K " !g1\n"
    "%3 = relu %2 : " K " !g2\n"
    "%4 = neg %3 : " K " !g3\n"
    "%5 = output %4 {name = \"y\"} : " K "\n"
    "}\n";

START_TEST(chain_needs_two_buffers) {
    Arena *a = arena_new();
    Graph *g = planned(graph_from(a, chain), true);
    ck_assert_int_eq(g->arena_bytes, 3 * 4096);
    ck_assert_int_eq(g->node[1].offset, g->node[3].offset);
    ck_assert_int_eq(g->node[2].offset, g->node[4].offset);
    arena_free(a);
}
END_TEST

// ---- states ----

static const char writer[] =
    "graph train (primitive, typed, grouped; act = f16) {\n"
    "%0 = param {name = \"w\"} : f32[100]\n"
    "%1 = state {init = 0.0, kind = \"derived\", name = \"w.act\"} : act[100]\n"
    "%2 = state {init = 0.0, kind = \"optimizer\", name = \"m\"} : f32[100]\n"
    "%3 = neg %0 : f32[100] !g0\n"
    "%4 = assign %0, %3 : f32[100] !g0\n"
    "}\n";

static const char reader[] =
    "graph eval (primitive, typed, grouped; act = f16) {\n"
    "%0 = state {init = 0.0, kind = \"statistic\", name = \"mean\"} : f32[7]\n"
    "%1 = state {init = 0.0, kind = \"derived\", name = \"w.act\"} : act[100]\n"
    "%2 = param {name = \"w\"} : f32[100]\n"
    "%3 = output %2 {name = \"y\"} : f32[100]\n"
    "}\n";

START_TEST(states_agree_between_graphs) {
    Arena *a = arena_new();
    Graph *g[] = {graph_from(a, writer), graph_from(a, reader)};
    int64_t partial, end = memory_states(g, 2, &partial);
    ck_assert_int_eq(g[0]->node[0].offset, g[1]->node[2].offset);
    ck_assert_int_eq(g[0]->node[1].offset, g[1]->node[1].offset);
    // w 512, its copy in halves 256, m 512, mean 256.
    ck_assert_int_eq(end, 1536);
    ck_assert_int_eq(g[1]->node[0].offset, 1280);
    arena_free(a);
}
END_TEST

// ---- faults ----

// A value kept over another's life: %1 is read by the last group, and %2 lives
// between.
static const char overlap[] =
    "graph train (primitive, typed, grouped; act = f32) {\n"
    "%0 = input {name = \"x\"} : " K "\n"
    "%1 = param {name = \"w\"} : " K "\n"
    "%2 = neg %0 : " K " !g0\n"
    "%3 = abs %2 : " K " !g1\n"
    "%4 = relu %0 : " K " !g1\n"
    "%5 = mul %2, %3 : " K " !g2\n"
    "%6 = add %5, %4 : " K " !g2\n"
    "%7 = output %6 {name = \"y\"} : " K "\n"
    "%8 = output %3 {name = \"z\"} : " K "\n"
    "}\n";

// Moves a node of the plan to where another is, plus some bytes.
static const struct {
    NodeId node, to;
    int64_t plus;
    const char *says;
} faults[] = {
    {3, 2, 0, "%2 at 8192 is overwritten by the group that reads"},
    {3, 2, 256, "%2 at 8192 is overwritten by the group that reads"},
    {4, 3, 0, "%3 at 12288 shares memory within the group of"},
    {4, 3, 256, "%3 at 12288 shares memory within the group of"},
    {6, 3, 0, "%3 at 12288 is overwritten by the group that reads"},
    {2, 0, 0, "%2 at 4096 overwrites %0 at 4096"},
    {2, 1, 0, "%2 at 0 overwrites %1 at 0"},
    {2, 1, 4, "%2 is not aligned to 256 bytes"},
    {2, 1, -256, "%2 is outside the arena"},
    {6, 1, 1 << 20, "%6 is outside the arena"},
    {0, 1, 0, "%1 at 0 overwrites %0 at 0"},
};

START_TEST(faults_are_named) {
    Arena *a = arena_new();
    Graph *g = planned(graph_from(a, overlap), true);
    ck_assert_ptr_null(memory_verify(g, a));
    g->node[faults[_i].node].offset =
        g->node[faults[_i].to].offset + faults[_i].plus;
    const char *why = memory_verify(g, a);
    ck_assert_msg(why != NULL, "%s is not seen", faults[_i].says);
    ck_assert_msg(strncmp(why, faults[_i].says, strlen(faults[_i].says)) == 0,
                  "says: %s\nnot:  %s", why, faults[_i].says);
    arena_free(a);
}
END_TEST

static const char late[] =
    "graph eval (primitive, typed, grouped; act = f32) {\n"
    "%0 = input {name = \"x\"} : " K "\n"
    "%1 = neg %0 : " K " !g0\n"
    "%2 = abs %1 : " K " !g1\n"
    "%3 = relu %2 : " K " !g2\n"
    "%4 = mul %1, %3 : " K " !g3\n"
    "%5 = output %4 {name = \"y\"} : " K "\n"
    "}\n";

// Read two groups later, so that nothing looks wrong when it is overwritten.
START_TEST(late_reads_are_seen) {
    Arena *a = arena_new();
    Graph *g = planned(graph_from(a, late), true);
    g->node[3].offset = g->node[1].offset;
    ck_assert_str_eq(memory_verify(g, a),
                     "group 3 reads %1 after it was overwritten");
    arena_free(a);
}
END_TEST

static const char read_late[] =
    "graph train (primitive, typed, grouped) {\n"
    "%0 = input {name = \"x\"} : " K "\n"
    "%1 = state {bucket = 0, init = 0.0, kind = \"partial\", "
    "name = \"w.shard\"} : " K "\n"
    "%2 = neg %0 : " K " !g0\n"
    "%3 = assign %1, %2 : " K " !g0\n"
    "%4 = mul %1, %0 : " K " !g1\n"
    "%5 = output %4 {name = \"y\"} : " K "\n"
    "}\n";

START_TEST(states_read_after_their_assignment_are_seen) {
    Arena *a = arena_new();
    Graph *g = planned(graph_from(a, read_late), true);
    ck_assert_str_eq(memory_verify(g, a),
                     "group 1 reads %1 after it was assigned");
    arena_free(a);
}
END_TEST

START_TEST(lost_outputs_are_seen) {
    Arena *a = arena_new();
    Graph *g = planned(graph_from(a, overlap), false);
    g->node[6].offset = g->node[3].offset;
    g->node[6].arg = (NodeId[]){4, 4};
    g->node[5].arg = (NodeId[]){2, 2};
    ck_assert_str_eq(memory_verify(g, a), "output %8 was overwritten");
    arena_free(a);
}
END_TEST

// In a sound plan no buffer may go to the place of another that the next
// launches still read.
START_TEST(random_faults_are_seen) {
    Arena *a = arena_new();
    Graph *g = random_plan(a, _i, false);
    int count;
    Group *group = graph_groups(g, a, &count);
    for (int k = 0; k < count; k++) {
        if (group[k].num_outputs == 0 || group[k].num_inputs == 0)
            continue;
        Node *d = &g->node[group[k].output[0]];
        int64_t offset = d->offset;
        d->offset = g->node[group[k].input[0]].offset;
        ck_assert_msg(memory_verify(g, a) != NULL, "group %d of graph %d", k,
                      _i);
        d->offset = offset;
    }
    ck_assert_ptr_null(memory_verify(g, a));
    arena_free(a);
}
END_TEST

Suite *memory_suite(void) {
    Suite *s = suite_create("memory");
    TCase *t = tcase_create("memory");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, plans_are_sound, 0, 2 * NUM_GRAPHS);
    tcase_add_loop_test(t, what_is_stored_has_a_place, 0, NUM_GRAPHS);
    tcase_add_loop_test(t, without_reuse_nothing_is_shared, 0, NUM_GRAPHS);
    tcase_add_loop_test(t, plans_are_near_the_bound, 0, NUM_GRAPHS + 1);
    tcase_add_test(t, chain_needs_two_buffers);
    tcase_add_test(t, states_agree_between_graphs);
    tcase_add_loop_test(t, faults_are_named, 0,
                        (int)(sizeof faults / sizeof *faults));
    tcase_add_test(t, late_reads_are_seen);
    tcase_add_test(t, lost_outputs_are_seen);
    tcase_add_test(t, states_read_after_their_assignment_are_seen);
    tcase_add_loop_test(t, random_faults_are_seen, 0, NUM_GRAPHS);
    suite_add_tcase(s, t);
    return s;
}
