// Fuse: what every kernel must keep, on graphs that nobody thought of.
#include "tests/graphs/graphs.h"
#include "tests/passes/networks.h"
#include "tests/passes/suites.h"
#include "tests/passes/values.h"

#include "passes/plan/plan.h"

static Graph *fused(Graph *g, int level) {
    PassOptions o = {.device = "cuda",
                     .act = F32,
                     .storage = F32,
                     .level = level,
                     .deep_verify = true};
    return pass_run(g, &o, pass_find("fuse"));
}

// With so many of the rewrites that fuse would make.
static Graph *fused_up_to(Graph *g, int64_t limit) {
    limit += g->rewrites;
    PassOptions o = {.device = "cuda",
                     .act = F32,
                     .storage = F32,
                     .level = 1,
                     .deep_verify = true,
                     .rewrite_limit = &limit};
    return pass_run(g, &o, pass_find("fuse"));
}

// Of each seed a graph fused not at all, as far as can be, and to some limit.
enum { WAYS = 3, NUM_CASES = WAYS * NUM_GRAPHS };

static Graph *random_case(Arena *a, int i, Graph **before) {
    *before = pass_run(random_graph(a, (uint32_t)(i / WAYS), 5 + i % 40),
                       &(PassOptions){0}, pass_find("dce"));
    if (i % WAYS == 2)
        return fused_up_to(*before, i % 37);
    return fused(*before, i % WAYS);
}

START_TEST(values_are_kept) {
    Arena *a = arena_new();
    Graph *before, *after = random_case(a, _i, &before);
    check_same_values(before, after, 1e-12);
    arena_free(a);
}
END_TEST

// Groups are numbered as they are launched: what one reads from another must
// have been made before.
START_TEST(groups_read_what_was_made_before) {
    Arena *a = arena_new();
    Graph *before, *g = random_case(a, _i, &before);
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        for (int i = 0; i < d->num_args && d->group >= 0; i++) {
            NodeId base = node_base(g, d->arg[i]);
            ck_assert_msg(base < n && g->node[base].group <= d->group,
                          "%%%u of group %d reads %%%u of group %d", n,
                          d->group, base, g->node[base].group);
        }
    }
    arena_free(a);
}
END_TEST

// A copy that nothing in its group uses would be computed in vain.
START_TEST(groups_hold_what_they_need) {
    Arena *a = arena_new();
    Graph *before, *g = random_case(a, _i, &before);
    bool *stored = graph_stored(g, a);
    bool *needed = ARENA_ARRAY(a, g->count, bool);
    for (NodeId n = 0; n < g->count; n++)
        for (int i = 0; i < g->node[n].num_args; i++)
            needed[g->node[n].arg[i]] |=
                g->node[g->node[n].arg[i]].group == g->node[n].group;
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        bool effect = op_info[d->op].traits & EFFECT;
        ck_assert_msg(d->group < 0 || needed[n] || stored[n] || effect ||
                          d->op == OP_workspace,
                      "%%%u of group %d is of no use", n, d->group);
    }
    arena_free(a);
}
END_TEST

static bool is_root(const Graph *g, const bool *stored, NodeId n) {
    return stored[n] && g->node[n].op != OP_workspace;
}

// What a grid or row kernel stores has the size of what it walks over, of a row
// of that, of a column, or is one number; or it is the image of the pool whose
// windows the kernel walks over.
START_TEST(groups_have_one_space) {
    Arena *a = arena_new();
    Graph *before, *g = random_case(a, _i, &before);
    bool *stored = graph_stored(g, a);
    int count;
    Group *group = graph_groups(g, a, &count);
    for (int k = 0; k < count; k++)
        for (NodeId n = group[k].first; n <= group[k].last; n++) {
            GroupKind kind = group[k].kind;
            if ((kind != GROUP_GRID && kind != GROUP_ROWS) ||
                !is_root(g, stored, n))
                continue;
            int64_t size = type_count(g->node[n].type);
            Type space = *group[k].iteration_space;
            bool fits = size == type_count(&space) || size == 1 ||
                        size == space_columns(&space) ||
                        size == space_rows(&space) ||
                        disjoint_pool_grad(g, n) != NO_NODE;
            ck_assert_msg(fits, "%%%u does not fit group %d", n, k);
        }
    arena_free(a);
}
END_TEST

START_TEST(library_calls_are_alone) {
    Arena *a = arena_new();
    Graph *before, *g = random_case(a, _i, &before);
    int count;
    Group *group = graph_groups(g, a, &count);
    for (int k = 0; k < count; k++)
        if (group[k].kind == GROUP_CALL)
            ck_assert_uint_eq(group[k].first, group[k].last);
    arena_free(a);
}
END_TEST

// Each value that goes through memory does so for a reason.
START_TEST(edges_have_a_reason) {
    Arena *a = arena_new();
    Graph *before, *g = random_case(a, _i, &before);
    int count, num_edges;
    Group *group = graph_groups(g, a, &count);
    Edge *edge = graph_edges(g, a, group, count, &num_edges);
    for (int i = 0; i < num_edges; i++)
        ck_assert_msg(edge[i].why != REASON_none,
                      "group %d reads %%%u of group %d without a reason",
                      edge[i].to, edge[i].node, edge[i].from);
    arena_free(a);
}
END_TEST

// Level 0 stores every value: a group computes one, or all updates.
START_TEST(unfused_groups_have_one_node) {
    Arena *a = arena_new();
    Graph *before, *g = random_case(a, WAYS * _i, &before);
    int count;
    Group *group = graph_groups(g, a, &count);
    for (int k = 0; k < count; k++) {
        int nodes = 0;
        for (NodeId n = group[k].first; n <= group[k].last; n++)
            nodes += g->node[n].op != OP_workspace;
        ck_assert_msg(nodes == 1 || group[k].kind == GROUP_UPDATE,
                      "group %d has %d nodes", k, nodes);
    }
    arena_free(a);
}
END_TEST

static int groups_of(Graph *g, int level) {
    Arena *a = arena_new();
    int count;
    graph_groups(fused(g, level), a, &count);
    arena_free(a);
    return count;
}

START_TEST(fusing_never_launches_more) {
    Arena *a = arena_new();
    Graph *before;
    random_case(a, WAYS * _i, &before);
    ck_assert_int_le(groups_of(before, 1), groups_of(before, 0));
    arena_free(a);
}
END_TEST

static Graph *pruned(Arena *a, const char *network) {
    PassOptions o = {.device = "cuda", .act = F32, .level = 1};
    return passes_run(graph_from(a, network), &o, "dce", NULL, NULL);
}

START_TEST(networks_keep_their_values) {
    Arena *a = arena_new();
    Graph *g = pruned(a, _i % 2 ? residual_evaluation : residual_network);
    check_same_values(g, fused(g, _i / 2), 1e-12);
    arena_free(a);
}
END_TEST

static int groups_up_to(Graph *g, int64_t limit) {
    Arena *a = arena_new();
    int count;
    graph_groups(fused_up_to(g, limit), a, &count);
    arena_free(a);
    return count;
}

// From all to nothing, whatever is cut off.
START_TEST(limits_keep_their_values) {
    Arena *a = arena_new();
    Graph *g = pruned(a, residual_network);
    check_same_values(g, fused_up_to(g, 7 * _i), 1e-12);
    arena_free(a);
}
END_TEST

START_TEST(limits_go_from_unfused_to_fused) {
    Arena *a = arena_new();
    Graph *g = pruned(a, residual_network);
    ck_assert_int_eq(groups_up_to(g, 0), groups_of(g, 0));
    ck_assert_int_eq(groups_up_to(g, 1000), groups_of(g, 1));
    ck_assert_int_lt(groups_up_to(g, 60), groups_up_to(g, 30));
    arena_free(a);
}
END_TEST

// One more kernel is slower, one fewer should be explained.
START_TEST(network_has_few_kernels) {
    Arena *a = arena_new();
    Graph *g = pruned(a, residual_network);
    ck_assert_int_eq(groups_of(g, 1), 17);
    ck_assert_int_gt(groups_of(g, 0), 60);
    arena_free(a);
}
END_TEST

static void output(Graph *g, const char *name, NodeId value) {
    Attr attr = attr_text(ATTR_name, name);
    graph_add(g, (Node){.op = OP_output,
                        .num_args = 1,
                        .arg = &value,
                        .num_attrs = 1,
                        .attr = &attr,
                        .group = -1});
}

// 1,200 operations, of which a kernel takes 500.
START_TEST(long_expressions_are_cut) {
    Arena *a = arena_new();
    Graph *g = graph_new(a, "eval");
    NodeId n = graph_leaf(g, OP_input, "x", type_of(F32, 1, (int64_t[]){64}));
    for (int i = 0; i < 1200; i++)
        n = graph_op1(g, OP_sin, n);
    output(g, "y", n);
    g->facts = PRIMITIVE | TYPED;
    g = fused(g, 1);
    int groups, deep = 0;
    graph_groups(g, a, &groups);
    for (NodeId m = 0; m < g->count; m++)
        deep += g->node[m].why == REASON_deep;
    ck_assert_int_eq(groups, 3);
    ck_assert_int_eq(deep, 2);
    arena_free(a);
}
END_TEST

// The sum of 300 tensors, each as it is and squared, of which a kernel reads
// 128.
START_TEST(wide_expressions_are_cut) {
    enum { TENSORS = 300 };
    Arena *a = arena_new();
    Graph *g = graph_new(a, "eval");
    NodeId sum = NO_NODE;
    for (int i = 0; i < TENSORS; i++) {
        NodeId x = graph_leaf(g, OP_input, arena_format(a, "x%d", i),
                              type_of(F32, 1, (int64_t[]){64}));
        NodeId square = graph_op2(g, OP_mul, x, x);
        NodeId both = graph_op2(g, OP_add, square, graph_op1(g, OP_sin, x));
        sum = i == 0 ? both : graph_op2(g, OP_add, sum, both);
    }
    output(g, "y", sum);
    g->facts = PRIMITIVE | TYPED;
    g = fused(g, 1);
    int groups, wide = 0;
    Group *group = graph_groups(g, a, &groups);
    for (NodeId m = 0; m < g->count; m++)
        wide += g->node[m].why == REASON_wide;
    ck_assert_int_eq(groups, 3);
    ck_assert_int_eq(wide, 2);
    for (int k = 0; k < groups; k++)
        ck_assert_int_le(group[k].num_inputs, 128);
    arena_free(a);
}
END_TEST

// A device on which a kernel that stores a tensor and sums it has one resident
// block, and any other kernel has four.
static const KernelTime *few_registers(const TimeModel *time_model,
                                       const GraphPlan *p, Arena *a) {
    KernelTime *price = ARENA_ARRAY(a, (size_t)p->num_groups, KernelTime);
    for (int i = 0; i < p->num_groups; i++)
        price[i] = (KernelTime){.least = 1,
                                .latency = *(const double *)time_model->device,
                                .resident = p->group[i].num_outputs > 1 ? 1 : 4,
                                .blocks = 4};
    return price;
}

// abs(x), which is in memory, and its column reduction.
static Graph *stored_and_summed(Arena *a) {
    Graph *g = graph_new(a, "f");
    int64_t dim[] = {64, 32};
    NodeId x = graph_leaf(g, OP_input, "x", type_of(F32, 2, dim));
    NodeId y = graph_op1(g, OP_abs, x);
    NodeId sum = graph_reduce(g, OP_sum, y, 1, (int64_t[]){0});
    output(g, "sum", sum);
    output(g, "y", y);
    g->facts = PRIMITIVE | TYPED;
    return g;
}

// The one kernel takes 8 and a launch, the two take 2 each and two launches.
START_TEST(a_kernel_with_few_resident_blocks_is_divided) {
    const double latency = 8, launch[] = {3, 5};
    const int kernels[] = {2, 1};
    for (int i = 0; i < 2; i++) {
        Arena *a = arena_new();
        PassOptions o = {.device = "cuda",
                         .act = F32,
                         .storage = F32,
                         .level = 1,
                         .deep_verify = true,
                         .time_model = {.times = few_registers,
                                        .device = &latency,
                                        .launch = launch[i]}};
        Graph *g = pass_run(stored_and_summed(a), &o, pass_find("fuse"));
        GraphPlan *p = graph_plan(g, false, a);
        ck_assert_int_eq(p->num_groups, kernels[i]);
        ck_assert_int_eq(p->num_edges, kernels[i] - 1);
        for (int e = 0; e < p->num_edges; e++)
            ck_assert_int_eq(p->edge[e].why, REASON_occupancy);
        arena_free(a);
    }
}
END_TEST

Suite *fuse_suite(void) {
    Suite *s = suite_create("fuse");
    TCase *t = tcase_create("fuse");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, values_are_kept, 0, NUM_CASES);
    tcase_add_loop_test(t, groups_read_what_was_made_before, 0, NUM_CASES);
    tcase_add_loop_test(t, groups_hold_what_they_need, 0, NUM_CASES);
    tcase_add_loop_test(t, groups_have_one_space, 0, NUM_CASES);
    tcase_add_loop_test(t, library_calls_are_alone, 0, NUM_CASES);
    tcase_add_loop_test(t, edges_have_a_reason, 0, NUM_CASES);
    tcase_add_loop_test(t, unfused_groups_have_one_node, 0, NUM_GRAPHS);
    tcase_add_loop_test(t, fusing_never_launches_more, 0, NUM_GRAPHS);
    tcase_add_loop_test(t, networks_keep_their_values, 0, 4);
    tcase_add_loop_test(t, limits_keep_their_values, 0, 20);
    tcase_add_test(t, limits_go_from_unfused_to_fused);
    tcase_add_test(t, network_has_few_kernels);
    tcase_add_test(t, a_kernel_with_few_resident_blocks_is_divided);
    tcase_add_test(t, long_expressions_are_cut);
    tcase_add_test(t, wide_expressions_are_cut);
    suite_add_tcase(s, t);
    return s;
}
