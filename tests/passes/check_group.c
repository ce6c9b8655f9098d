// Groups: what is read off the nodes of a kernel.
#include "tests/passes/suites.h"
#include "tests/passes/values.h"

#include "passes/plan/plan.h"

#include <string.h>

// ---- reductions ----

static const struct {
    const char *shape, *axes, *result;
    ReductionKind reduction;
} reductions[] = {
    {"[4,6,6,8]", "[0,1,2,3]", "[]", FULL_REDUCTION},
    {"[4,6,6,8]", "[0,1,2]", "[8]", COLUMN_REDUCTION},
    {"[4,6,6,8]", "[3]", "[4,6,6,1]", ROW_REDUCTION},
    {"[4,6,6,8]", "[1,2]", "[4,1,1,8]", OTHER_REDUCTION},
    {"[4,6,6,8]", "[0]", "[6,6,8]", OTHER_REDUCTION},
    {"[4,6,6,8]", "[0,3]", "[6,6,1]", OTHER_REDUCTION},
    {"[4,8]", "[0]", "[8]", COLUMN_REDUCTION},
    {"[4,8]", "[1]", "[4,1]", ROW_REDUCTION},
    {"[8]", "[0]", "[]", FULL_REDUCTION},
    // Axes of size 1 are reduced or not as it suits.
    {"[1,6,6,8]", "[1,2]", "[1,1,1,8]", COLUMN_REDUCTION},
    {"[4,1,1,8]", "[0]", "[1,1,8]", COLUMN_REDUCTION},
    {"[1,6,6,8]", "[1,2,3]", "[1,1,1,1]", FULL_REDUCTION},
    {"[4,1,8]", "[1,2]", "[4,1,1]", ROW_REDUCTION},
    {"[4,6,6,1]", "[0,1,2]", "[1]", COLUMN_REDUCTION},
    {"[1,8]", "[1]", "[1,1]", ROW_REDUCTION},
    {"[1,1]", "[0]", "[1]", COLUMN_REDUCTION},
    {"[4,6,1]", "[1]", "[4,1,1]", OTHER_REDUCTION},
};

START_TEST(kind_of_reduction_follows_axes) {
    Arena *a = arena_new();
    Graph *g = graph_from(
        a, arena_format(a,
                        "graph g {\n%%0 = input {name = \"x\"} : f32%s\n"
                        "%%1 = sum %%0 {axes = %s} : f32%s\n}\n",
                        reductions[_i].shape, reductions[_i].axes,
                        reductions[_i].result));
    ck_assert_int_eq(reduction_kind(g, 1), reductions[_i].reduction);
    arena_free(a);
}
END_TEST

START_TEST(argmax_is_a_row_reduction_and_var_has_two_slots) {
    Arena *a = arena_new();
    Graph *g = graph_from(a, "graph g {\n%0 = input {name = \"x\"} : f32[4,8]\n"
                             "%1 = argmax %0 : i32[4,1]\n"
                             "%2 = var %0 {axes = [0]} : f32[8]\n"
                             "%3 = sum %0 {axes = [0]} : f32[8]\n}\n");
    ck_assert_int_eq(reduction_kind(g, 1), ROW_REDUCTION);
    ck_assert_int_eq(reduce_slots(g, 2), 2);
    ck_assert_int_eq(reduce_slots(g, 3), 1);
    arena_free(a);
}
END_TEST

// ---- a step with a group of each kind ----

static const char step[] =
    "graph train (primitive, typed, grouped; act = f16) {\n"
    "%0 = input {name = \"x\"} : f32[64,8]  # n.net:1 in\n"
    "%1 = param {name = \"w\"} : f32[8,8]\n"
    "%2 = state {init = 0.0, kind = \"run\", name = \"run.step\"} : i32[]\n"
    "%3 = constant {values = [1.0]} : i32[]\n"
    "%4 = state {init = 0.0, kind = \"derived\", name = "
    "\"run.counters.train\"} "
    ": i32[4]\n"
    "%5 = workspace : f32[64,24] !g0\n"
    "%6 = neg %0 : f32[64,8] !g0\n"
    "%7 = sum %6 {axes = [0]} : f32[8] !g0\n"
    "%8 = var %6 {axes = [0]} : f32[8] !g0\n"
    "%9 = matmul %0, %1 : f32[64,8] !g1\n"
    "%10 = reshape %9 : f32[512]\n"
    "%11 = reshape %10 : f32[32,16]\n"
    "%12 = max %11 {axes = [1]} : f32[32,1] !g2\n"
    "%13 = sub %11, %12 : f32[32,16] !g2\n"
    "%14 = workspace : f32[528] !g3\n"
    "%15 = all_finite %9 : f32[] !g3\n"
    "%16 = add %2, %3 : i32[] !g4\n"
    "%17 = assign %2, %16 : i32[] !g4\n"
    "%18 = mul %1, %15 : f32[8,8] !g4\n"
    "%19 = assign %1, %18 : f32[8,8] !g4\n"
    "%20 = output %13 {name = \"y\"} : f32[32,16]\n"
    "%21 = mul %7, %8 : f32[8] !g5\n"
    "%22 = output %21 {name = \"z\"} : f32[8]\n"
    "}\n";

START_TEST(kinds_follow_operations) {
    static const GroupKind kinds[] = {GROUP_GRID,   GROUP_CALL,
                                      GROUP_ROWS,   GROUP_MULTI_REDUCE,
                                      GROUP_UPDATE, GROUP_GRID};
    Arena *a = arena_new();
    int count;
    Group *group = graph_groups(graph_from(a, step), a, &count);
    ck_assert_int_eq(count, 6);
    for (int i = 0; i < count; i++) {
        ck_assert_int_eq(group[i].group, i);
        ck_assert_msg(group[i].kind == kinds[i], "group %d is a %d", i,
                      group[i].kind);
    }
    arena_free(a);
}
END_TEST

static void check_nodes(const NodeId *found, int count, const char *want) {
    Arena *a = arena_new();
    Text t = text_new(a);
    for (int i = 0; i < count; i++)
        text_add(&t, "%u ", found[i]);
    ck_assert_str_eq(count ? text_string(&t) : "", want);
    arena_free(a);
}

// Constants are read from no memory; a view is read where its base is.
START_TEST(inputs_and_outputs_are_stored_nodes) {
    static const char *const in[] = {"0 ", "0 1 ",    "9 ",
                                     "9 ", "2 1 15 ", "7 8 "};
    static const char *const out[] = {"7 8 ", "9 ", "13 ", "15 ", "", "21 "};
    Arena *a = arena_new();
    int count;
    Group *group = graph_groups(graph_from(a, step), a, &count);
    for (int i = 0; i < count; i++) {
        check_nodes(group[i].input, group[i].num_inputs, in[i]);
        check_nodes(group[i].output, group[i].num_outputs, out[i]);
    }
    arena_free(a);
}
END_TEST

START_TEST(owners_and_readers_are_groups) {
    static const int reads_9[] = {2, 3, -1};
    Arena *a = arena_new();
    Graph *g = graph_from(a, step);
    int count;
    Group *group = graph_groups(g, a, &count);
    const int *owner = group_owners(g, group, count, a);
    Readers r = group_readers(g, group, count, a);
    ck_assert_int_eq(owner[0], -1);
    ck_assert_int_eq(owner[9], 1);
    ck_assert_int_eq(owner[group[5].last], 5);
    for (int i = 0, e = r.first[9]; i < 3; i++) {
        ck_assert_int_eq(e < 0 ? -1 : r.group[e], reads_9[i]);
        e = e < 0 ? e : r.next[e];
    }
    ck_assert_int_eq(r.first[21], -1);
    arena_free(a);
}
END_TEST

// A row reduction fixes the space, any other its operand's; sums need a
// workspace and a counter, and so do assignments of single numbers.
START_TEST(spaces_workspaces_and_counters) {
    Arena *a = arena_new();
    int count;
    Group *group = graph_groups(graph_from(a, step), a, &count);
    Type sums = type_of(F32, 2, (int64_t[]){64, 8});
    Type rows = type_of(F32, 2, (int64_t[]){32, 16});
    ck_assert(type_is(group[0].iteration_space, &sums));
    ck_assert(type_is(group[2].iteration_space, &rows));
    ck_assert(type_is(group[5].iteration_space,
                      (Type[]){type_of(F32, 1, (int64_t[]){8})}));
    static const NodeId workspace[] = {5,  NO_NODE, NO_NODE,
                                       14, NO_NODE, NO_NODE};
    static const int counter[] = {0, -1, -1, 1, 2, -1};
    for (int i = 0; i < count; i++) {
        ck_assert_uint_eq(group[i].workspace, workspace[i]);
        ck_assert_int_eq(group[i].counter, counter[i]);
    }
    arena_free(a);
}
END_TEST

// A space with so many sums of each column has tiles of columns, chunks of rows
// in each, last blocks, and counters; the host has at most 64 chunks.
START_TEST(reductions_divide_their_space) {
    static const struct {
        GroupKind kind;
        bool mixed;
        int64_t rows, columns, sums;
        Division division;
        int counters;
        int64_t partials; // rows of the workspace
    } at[] = {
        {GROUP_GRID, false, 0, 8, 1, {1, 1, 1}, 1, 1},
        {GROUP_GRID, false, 999, 8, 1, {1, 4, 1}, 1, 64},
        // One tile: 528 rows of 16 floats are 2 loads.
        {GROUP_GRID, false, 1 << 20, 16, 1, {1, 528, 1}, 1, 528},
        // Fewer floats in each tile, and only whole vectors.
        {GROUP_GRID, false, 100, 8192, 1, {8, 25, 1}, 8, 64},
        {GROUP_GRID, false, 64, 6144, 1, {6, 22, 1}, 6, 64},
        {GROUP_GRID, false, 1 << 17, 128, 2, {4, 132, 1}, 4, 132},
        {GROUP_GRID, false, 1 << 20, 100, 1, {1, 528, 7}, 2, 528},
        // Vectors of a tile: 384 / 8 / 3, a power of two.
        {GROUP_GRID, false, 1 << 17, 384, 1, {3, 176, 1}, 3, 176},
        // One row: no block adds to another's columns.
        {GROUP_GRID, false, 1, 1 << 20, 1, {256, 1, 1}, 256, 1},
        // Sums of rows, or of more than columns, are in one tile.
        {GROUP_GRID, true, 1 << 17, 128, 2, {1, 528, 16}, 2, 528},
        {GROUP_ROWS, false, 1 << 17, 32, 1, {1, 512, 1}, 1, 512},
        {GROUP_ROWS, false, 1 << 17, 192, 3, {1, 264, 18}, 2, 264},
    };
    Arena *a = arena_new();
    const Graph *g = graph_new(a, "g");
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        Type space = type_of(F32, 2, (int64_t[]){at[i].rows, at[i].columns});
        Workspace s = workspace_new(g, at[i].kind, &space);
        s.slots = at[i].sums * at[i].columns;
        s.mixed = at[i].mixed;
        ck_assert_int_eq(workspace_counters(&s), 0);
        s.any = true;
        Division d = space_division(g, &s);
        ck_assert_int_eq(d.tiles, at[i].division.tiles);
        ck_assert_int_eq(d.chunks, at[i].division.chunks);
        ck_assert_int_eq(d.last_blocks, at[i].division.last_blocks);
        ck_assert_int_eq(workspace_counters(&s), at[i].counters);
        Type want = type_of(F32, 2, (int64_t[]){at[i].partials, s.slots});
        ck_assert(type_is((Type[]){workspace_type(&s)}, &want));
    }
    arena_free(a);
}
END_TEST

// Over parts: one at the end, and one at a barrier.
START_TEST(updates_have_counters) {
    static const struct {
        GroupKind kind;
        bool any, scalar;
        int counters;
    } at[] = {
        {GROUP_UPDATE, false, false, 0},    {GROUP_UPDATE, false, true, 1},
        {GROUP_UPDATE, true, true, 2},      {GROUP_UPDATE, true, false, 2},
        {GROUP_STACK, false, false, 0},     {GROUP_STACK, true, false, 2},
        {GROUP_MULTI_REDUCE, true, true, 1}};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        Workspace s = {.kind = at[i].kind,
                       .slots = 5,
                       .any = at[i].any,
                       .scalar = at[i].scalar};
        ck_assert_int_eq(workspace_counters(&s), at[i].counters);
        Type want = type_of(F32, 1, (int64_t[]){5});
        ck_assert(type_is((Type[]){workspace_type(&s)}, &want));
    }
}
END_TEST

START_TEST(views_have_a_base) {
    Arena *a = arena_new();
    Graph *g = graph_from(a, step);
    ck_assert_uint_eq(node_base(g, 11), 9);
    ck_assert_uint_eq(node_base(g, 13), 13);
    arena_free(a);
}
END_TEST

START_TEST(stored_is_what_others_use) {
    static const NodeId stored[] = {0, 1, 2, 4, 5, 7, 8, 9, 13, 14, 15, 21};
    Arena *a = arena_new();
    Graph *g = graph_from(a, step);
    const bool *is = graph_stored(g, a);
    size_t next = 0;
    for (NodeId n = 0; n < g->count; n++) {
        bool want = next < sizeof stored / sizeof *stored && stored[next] == n;
        next += want;
        ck_assert_msg(is[n] == want, "%%%u", n);
    }
    arena_free(a);
}
END_TEST

START_TEST(bytes_are_read_and_written) {
    Arena *a = arena_new();
    Graph *g = graph_from(a, step);
    const Group *group = graph_plan(g, false, a)->group;
    ck_assert_int_eq(group[0].bytes, 4 * (64 * 8 + 8 + 8));
    ck_assert_int_eq(group[1].bytes, 4 * (64 * 8 + 64 + 64 * 8));
    // The step and w are read and written, and one number is read.
    ck_assert_int_eq(group[4].bytes, 4 * (2 * (1 + 64) + 1));
    arena_free(a);
}
END_TEST

START_TEST(backward_when_all_it_stores_is) {
    Arena *a = arena_new();
    Graph *g = graph_from(a, step);
    int count;
    Group *group = graph_groups(g, a, &count);
    g->node[7].from.backward = true;
    ck_assert(!group_backward(g, &group[0]));
    g->node[8].from.backward = true;
    ck_assert(group_backward(g, &group[0]));
    ck_assert(!group_backward(g, &group[4])); // stores nothing
    arena_free(a);
}
END_TEST

// ---- spaces and grids ----

static Type space(int rank, int64_t x, int64_t y) {
    return type_of(F32, rank, (int64_t[]){x, y});
}

START_TEST(rows_and_columns) {
    Type image = type_of(F32, 4, (int64_t[]){4, 6, 5, 8});
    ck_assert_int_eq(space_rows(&image), 120);
    ck_assert_int_eq(space_columns(&image), 8);
    ck_assert_int_eq(space_rows((Type[]){space(1, 8, 0)}), 1);
    ck_assert_int_eq(space_columns((Type[]){space(1, 8, 0)}), 8);
    ck_assert_int_eq(space_rows((Type[]){type_scalar(F32)}), 1);
    ck_assert_int_eq(space_columns((Type[]){type_scalar(F32)}), 1);
}
END_TEST

// Never more blocks than rows; on the host 64 at most, elsewhere as many as 256
// threads with 8 elements each fill.
START_TEST(grids_fit_their_space) {
    Arena *a = arena_new();
    Graph *g = graph_new(a, "g");
    ck_assert_int_eq(space_grid(g, (Type[]){space(2, 3, 1000)}, true), 3);
    ck_assert_int_eq(space_grid(g, (Type[]){space(2, 1000, 8)}, true), 64);
    ck_assert_int_eq(space_grid(g, (Type[]){space(2, 4096, 8)}, false), 16);
    ck_assert_int_eq(space_grid(g, (Type[]){space(2, 3, 1 << 20)}, false), 3);
    ck_assert_int_eq(space_grid(g, (Type[]){space(2, 1 << 20, 64)}, false),
                     528);
    // Blocks of two vectors: few more than twice 132 are left out.
    ck_assert_int_eq(space_grid(g, (Type[]){space(2, 256 * 2 * 264, 8)}, false),
                     264);
    ck_assert_int_eq(space_grid(g, (Type[]){space(2, 256 * 2 * 329, 8)}, false),
                     264);
    ck_assert_int_eq(space_grid(g, (Type[]){space(2, 256 * 2 * 330, 8)}, false),
                     330);
    ck_assert_int_eq(space_grid(g, (Type[]){space(2, 256 * 2 * 400, 8)}, false),
                     396);
    ck_assert_int_eq(space_grid(g, (Type[]){type_scalar(F32)}, true), 1);
    ck_assert_int_eq(space_grid(g, (Type[]){type_scalar(F32)}, false), 1);
    g->multiprocessors = 40;
    ck_assert_int_eq(space_grid(g, (Type[]){space(2, 1 << 20, 64)}, false),
                     4 * 40);
    ck_assert_int_eq(space_grid(g, (Type[]){space(2, 1000, 8)}, true), 64);
    arena_free(a);
}
END_TEST

START_TEST(parts_are_cut_at_their_size) {
    ck_assert_int_eq(chunk_count(0), 1);
    ck_assert_int_eq(chunk_count(CHUNK_ELEMENTS), 1);
    ck_assert_int_eq(chunk_count(CHUNK_ELEMENTS + 1), 2);
}
END_TEST

Suite *group_suite(void) {
    Suite *s = suite_create("group");
    TCase *t = tcase_create("group");
    tcase_add_loop_test(t, kind_of_reduction_follows_axes, 0,
                        (int)(sizeof reductions / sizeof *reductions));
    tcase_add_test(t, argmax_is_a_row_reduction_and_var_has_two_slots);
    tcase_add_test(t, kinds_follow_operations);
    tcase_add_test(t, inputs_and_outputs_are_stored_nodes);
    tcase_add_test(t, owners_and_readers_are_groups);
    tcase_add_test(t, spaces_workspaces_and_counters);
    tcase_add_test(t, reductions_divide_their_space);
    tcase_add_test(t, updates_have_counters);
    tcase_add_test(t, views_have_a_base);
    tcase_add_test(t, stored_is_what_others_use);
    tcase_add_test(t, bytes_are_read_and_written);
    tcase_add_test(t, backward_when_all_it_stores_is);
    tcase_add_test(t, rows_and_columns);
    tcase_add_test(t, grids_fit_their_space);
    tcase_add_test(t, parts_are_cut_at_their_size);
    suite_add_tcase(s, t);
    return s;
}
