// Schedule: another order of the same launches, which needs less memory.
#include "tests/graphs/graphs.h"
#include "tests/passes/networks.h"
#include "tests/passes/suites.h"
#include "tests/passes/values.h"

#include "passes/plan/group.h"

#include <stdlib.h>
#include <string.h>

static const PassOptions options = {.device = "cuda",
                                    .act = F32,
                                    .storage = F32,
                                    .level = 1,
                                    .reuse = true,
                                    .deep_verify = true};

static Graph *run(Graph *g, const char *pass) {
    return pass_run(g, &options, pass_find(pass));
}

static Graph *fused(Arena *a, int i) {
    if (i == NUM_GRAPHS)
        return passes_run(graph_from(a, residual_network), &options, "fuse",
                          NULL, NULL);
    return run(run(random_graph(a, (uint32_t)i, 5 + i % 40), "dce"), "fuse");
}

// A group as text that does not depend on where it stands: its operations and
// their types, in order.
static const char *group_text(Arena *a, const Graph *g, const Group *group) {
    Text t = text_new(a);
    for (NodeId n = group->first; n <= group->last; n++) {
        text_add(&t, "%s ", op_info[g->node[n].op].name);
        type_print(&t, g->node[n].type);
    }
    return text_string(&t);
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static const char **group_texts(Arena *a, const Graph *g, int *count) {
    Group *group = graph_groups(g, a, count);
    const char **text = ARENA_ARRAY(a, (size_t)*count + 1, const char *);
    for (int i = 0; i < *count; i++)
        text[i] = group_text(a, g, &group[i]);
    qsort(text, (size_t)*count, sizeof *text, by_text);
    return text;
}

START_TEST(groups_stay_what_they_are) {
    Arena *a = arena_new();
    Graph *before = fused(a, _i), *after = run(before, "schedule");
    int m, n;
    const char **x = group_texts(a, before, &m),
               **y = group_texts(a, after, &n);
    ck_assert_uint_eq(before->count, after->count);
    ck_assert_int_eq(m, n);
    for (int i = 0; i < m; i++)
        ck_assert_str_eq(x[i], y[i]);
    check_same_values(before, after, 0);
    arena_free(a);
}
END_TEST

// The number of a group is its turn.
START_TEST(groups_are_numbered_in_turn) {
    Arena *a = arena_new();
    Graph *g = run(fused(a, _i), "schedule");
    int count;
    Group *group = graph_groups(g, a, &count);
    for (int i = 0; i < count; i++)
        ck_assert_int_eq(group[i].group, i);
    arena_free(a);
}
END_TEST

// An update writes over what others read.
START_TEST(updates_come_last) {
    Arena *a = arena_new();
    Graph *g = run(fused(a, _i), "schedule");
    int count;
    Group *group = graph_groups(g, a, &count);
    for (int i = 0; i + 1 < count; i++)
        ck_assert_int_ne(group[i].kind, GROUP_UPDATE);
    arena_free(a);
}
END_TEST

// The largest sum of what is alive at once, leaves aside.
START_TEST(memory_does_not_grow) {
    Arena *a = arena_new();
    Graph *before = fused(a, _i);
    Graph *after = run(before, "schedule");
    ck_assert_int_le(graph_bound(after), graph_bound(before));
    arena_free(a);
}
END_TEST

#define LARGE "f32[1024,64]"

// Two gradients of one layer are ready: the weight's frees the activation, the
// input's needs a new buffer.
START_TEST(what_frees_goes_first) {
    static const char text[] =
        "graph train (primitive, typed, grouped; act = f32) {\n"
        "%0 = input {name = \"dy\"} : " LARGE "\n"
        "%1 = param {name = \"w\"} : f32[64,64]\n"
        "%2 = relu %0 : " LARGE " !g0\n"
        "%3 = neg %0 : " LARGE " !g1\n"
        "%4 = matmul %2, %1 : " LARGE " !g2\n"
        "%5 = matmul %3, %2 {ta = 1} : f32[64,64] !g3\n"
        "%6 = sum %4 {axes = [1]} : f32[1024,1] !g4\n"
        "%7 = output %5 {name = \"dw\"} : f32[64,64]\n"
        "%8 = output %6 {name = \"s\"} : f32[1024,1]\n"
        "}\n";
    Arena *a = arena_new();
    Graph *g = run(graph_from(a, text), "schedule");
    NodeId weight = NO_NODE, input = NO_NODE;
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_matmul)
            *(g->node[n].type->dim[0] == 64 ? &weight : &input) = n;
    ck_assert_uint_lt(weight, input);
    arena_free(a);
}
END_TEST

Suite *schedule_suite(void) {
    Suite *s = suite_create("schedule");
    TCase *t = tcase_create("schedule");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, groups_stay_what_they_are, 0, NUM_GRAPHS + 1);
    tcase_add_loop_test(t, groups_are_numbered_in_turn, 0, NUM_GRAPHS + 1);
    tcase_add_loop_test(t, updates_come_last, 0, NUM_GRAPHS + 1);
    tcase_add_loop_test(t, memory_does_not_grow, NUM_GRAPHS, NUM_GRAPHS + 1);
    tcase_add_test(t, what_frees_goes_first);
    suite_add_tcase(s, t);
    return s;
}
