// Verify: every rule, broken once.  What text can say is in golden/verify;
// here are those files and what only a program can break.

#define _POSIX_C_SOURCE 200809L

#include "tests/ir/suites.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *file_text(Arena *a, const char *path, size_t *length) {
    enum { MOST = 1 << 16 };
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "cannot open %s", path);
    char *text = arena_alloc(a, MOST + 1);
    *length = fread(text, 1, MOST, file);
    fclose(file);
    return text;
}

// The first line is "# error: " and the start of the message.  Rule 11 has more
// cases, which passes/plan/verify.c finds.
static void check_golden(Arena *a, const char *path) {
    static const char mark[] = "# error: ";
    size_t length;
    const char *error;
    char *text = file_text(a, path, &length);
    ck_assert_msg(strncmp(text, mark, strlen(mark)) == 0, "%s", path);
    const char *want = text + strlen(mark);
    size_t start = strcspn(want, "\n");
    ck_assert_uint_gt(start, strlen("rule 1:"));
    Graph *g = graph_read(a, text, length, &error);
    ck_assert_msg(g != NULL, "%s: %s", path, error);
    const char *why = graph_verify(g, a);
    if (why == NULL && strncmp(want, "rule 11:", 8) == 0)
        return;
    ck_assert_msg(why != NULL, "%s verifies", path);
    ck_assert_msg(strncmp(why, want, start) == 0, "%s: %s", path, why);
}

START_TEST(broken_graphs_are_blamed) {
    Arena *a = arena_new();
    const char *source = getenv("SINTER_SOURCE");
    char *pattern =
        arena_format(a, "%s/tests/golden/verify/*.ir", source ? source : ".");
    glob_t files;
    ck_assert_int_eq(glob(pattern, 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++)
        check_golden(a, files.gl_pathv[i]);
    globfree(&files);
    arena_free(a);
}
END_TEST

static Arena *arena;
static Graph *g; // x, y = -x

static void setup(void) {
    arena = arena_new();
    g = graph_of(arena, INPUT(0, "f32[2]") "%1 = neg %0 : f32[2]\n");
    ck_assert_ptr_null(graph_verify(g, arena));
}

static void teardown(void) {
    arena_free(arena);
}

static void give(const Attr *attr, int count) {
    g->node[1].attr = attr;
    g->node[1].num_attrs = count;
}

START_TEST(attributes_out_of_order) {
    Attr attr[] = {attr_int(ATTR_ta, 1), attr_int(ATTR_axis, 1)};
    give(attr, 2);
    ck_assert_str_eq(graph_verify(g, arena),
                     "rule 3: %1: attribute axis is out of order");
    attr[0].key = ATTR_axis;
    ck_assert_str_eq(graph_verify(g, arena),
                     "rule 3: %1: attribute axis is out of order");
    attr[0].key = ATTR_accumulate;
    ck_assert_ptr_null(graph_verify(g, arena));
}
END_TEST

START_TEST(attributes_unknown_or_empty) {
    Attr attr = {.key = NUM_ATTRS};
    give(&attr, 1);
    ck_assert_str_eq(graph_verify(g, arena),
                     "rule 3: %1: its attribute 0 is unknown");
    attr = (Attr){.key = ATTR_name};
    ck_assert_str_eq(graph_verify(g, arena),
                     "rule 3: %1: attribute name has no value");
    attr = (Attr){.key = ATTR_name, .count = 3, .s = "ab"};
    ck_assert_str_eq(graph_verify(g, arena),
                     "rule 3: %1: attribute name has no value");
    attr = (Attr){.key = ATTR_axes, .count = 1};
    ck_assert_str_eq(graph_verify(g, arena),
                     "rule 3: %1: attribute axes has no value");
}
END_TEST

START_TEST(impossible_group) {
    g->node[1].group = -2;
    ck_assert_str_eq(graph_verify(g, arena),
                     "rule 9: %1: there cannot be a group -2");
}
END_TEST

START_TEST(impossible_type) {
    Type type = *g->node[1].type;
    type.rank = MAX_RANK + 1;
    g->node[1].type = &type;
    ck_assert_str_eq(graph_verify(g, arena),
                     "rule 2: %1: its type is not valid");
}
END_TEST

// Leaves, views and effects may stay outside groups; the rest is in runs.
START_TEST(a_planned_graph_verifies) {
    static const char text[] = "graph g (grouped, planned; arena = 512) {\n"
                               "  %0 = param {name = \"p\"} : f32[2] @0\n"
                               "  %1 = neg %0 : f32[2] !g0\n"
                               "  %2 = exp %1 : f32[2] !g0 @256\n"
                               "  %3 = reshape %2 : f32[1,2] @256\n"
                               "  %4 = neg %2 : f32[2] !g1 @256\n"
                               "  %5 = assign %0, %4 : f32[2] !g1\n"
                               "  %6 = output %4 {name = \"p\"} : f32[2]\n"
                               "}\n";
    const char *error;
    Graph *planned = graph_read(arena, text, strlen(text), &error);
    ck_assert_msg(planned != NULL, "%s", error);
    ck_assert_ptr_null(graph_verify(planned, arena));
    planned->node[2].offset = INT64_MAX - 255;
    ck_assert_str_eq(graph_verify(planned, arena),
                     "rule 10: %2: it does not end inside the arena");
    planned->node[2].offset = -256;
    ck_assert_ptr_nonnull(graph_verify(planned, arena));
}
END_TEST

Suite *verify_suite(void) {
    Suite *s = suite_create("verify");
    TCase *golden = tcase_create("golden"), *c = tcase_create("program");
    tcase_add_test(golden, broken_graphs_are_blamed);
    suite_add_tcase(s, golden);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, attributes_out_of_order);
    tcase_add_test(c, attributes_unknown_or_empty);
    tcase_add_test(c, impossible_group);
    tcase_add_test(c, impossible_type);
    tcase_add_test(c, a_planned_graph_verifies);
    suite_add_tcase(s, c);
    return s;
}
