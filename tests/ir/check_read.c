// Print and read: what is printed reads back to the same bytes, what is not a
// graph is refused where it goes wrong.

#include "tests/ir/suites.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static Arena *arena;

static void setup(void) {
    arena = arena_new();
}

static void teardown(void) {
    arena_free(arena);
}

static const char *printed(const Graph *g) {
    Text t = text_new(arena);
    graph_print(&t, g);
    return text_string(&t);
}

// The graph of text, which must be right.
static Graph *graph_from(const char *text) {
    const char *error;
    Graph *g = graph_read(arena, text, strlen(text), &error);
    ck_assert_msg(g != NULL, "%s in\n%s", error, text);
    return g;
}

// Texts as they are printed.
static const char *const exact[] = {
    "graph train {\n}\n",
    "graph train (backward) {\n}\n",
    "graph eval (act = f16) {\n}\n",
    "graph train (backward, updates, primitive, typed, grouped, planned;"
    " act = bf16; arena = 1024) {\n}\n",
    "graph train (multiprocessors = 40) {\n}\n",
    "graph train (planned; act = f16; multiprocessors = 148; arena = 256) {\n"
    "}\n",
    "graph \"a b\\\"\\\\\\nc\" {\n}\n",
    "graph \"\" {\n}\n",
    "graph \"backward\" {\n}\n",
    "graph train (backward, updates; act = f16) {\n"
    "  %0 = input {name = \"image\"} : u8[512,32,32,3]  # resnet9.net:8\n"
    "  %1 = param {name = \"w\"} : f32[64,3,3,3]  # resnet9.net:8 a.conv_1\n"
    "  %2 = cast %0 : act[512,32,32,3] !g3 @65536\n"
    "  %3 = cast %1 : act[64,3,3,3] !g0\n"
    "  %4 = conv %2, %3 {pad = [1,1,1,1], stride = [1,1]}"
    " : act[512,32,32,64] @256  # resnet9.net:8 a.conv_1\n"
    "  %5 = sum %4 {axes = [0,1,2]} : f32[64]  # resnet9.net:8 backward\n"
    "  %6 = neg %5 : f32[64]  # backward\n"
    "  %7 = neg %6 : f32[64]  # a.conv_1\n"
    "  %8 = neg %7 : f32[64]  # \"my net\":-7 \"backward\" backward\n"
    "  %9 = neg %8 : f32[64]  # m.net:3 \"full\" full backward\n"
    "  %10 = neg %9 : f32[64]  # full\n"
    "}\n",
    "graph g {\n"
    "  %0 = constant {values = [0.1,-0.0,1e-320,1.0,1e+300,inf,-inf,nan]}"
    " : f32[8]\n"
    "  %1 = state {init = 65536.0, kind = \"run\", name = \"q\\\"\\\\\\n\"}"
    " : i32[]\n"
    "  %2 = sum %0 {axes = []} : f32[8]\n"
    "  %3 = iota {axis = 0, from = -9223372036854775808} : i32[3]\n"
    "  %4 = neg %99 : f32[1]\n"
    "  %5 = neg %99 : f32[1]\n"
    "  %6 = workspace : bool[1,2,3,4,5,6,7,8]\n"
    "  %7 = input {name = \"\"} : f32[0,2147483647,2147483647]\n"
    "}\n",
};

START_TEST(printed_text_reads_back) {
    ck_assert_str_eq(printed(graph_from(exact[_i])), exact[_i]);
}
END_TEST

// Every attribute, with values of its kind at the ends of their range.
START_TEST(every_attribute_reads_back) {
    Graph *g = graph_new(arena, "g");
    Attr attr[NUM_ATTRS];
    int64_t ints[] = {INT64_MIN, 0, INT64_MAX};
    double floats[] = {-INFINITY, 1.0 / 3, 5e-324, 1.7976931348623157e308};
    for (int key = 0; key < NUM_ATTRS; key++)
        switch (attr_info[key].kind) {
        case INT:
            attr[key] = attr_int((AttrKey)key, INT64_MIN);
            break;
        case FLOAT:
            attr[key] = attr_float((AttrKey)key, 1.0 / 3);
            break;
        case TEXT:
            attr[key] = attr_text((AttrKey)key, "\t\"\\\n\x7f\xff #}");
            break;
        case INTS:
            attr[key] = attr_ints((AttrKey)key, 3, ints);
            break;
        case FLOATS:
            attr[key] = attr_floats((AttrKey)key, 4, floats);
            break;
        }
    graph_add(g, (Node){.op = OP_input,
                        .num_attrs = NUM_ATTRS,
                        .attr = attr,
                        .group = -1});
    Graph *again = graph_from(printed(g));
    ck_assert_str_eq(printed(again), printed(g));
    const Node *n = &again->node[0];
    ck_assert_int_eq(n->num_attrs, NUM_ATTRS);
    ck_assert_str_eq(node_text(n, ATTR_name), "\t\"\\\n\x7f\xff #}");
    ck_assert_int_eq(node_int(n, ATTR_axis, 0), INT64_MIN);
    ck_assert_int_eq(node_ints(n, ATTR_axes, 2, 0), INT64_MAX);
    ck_assert_double_eq(node_float(n, ATTR_eps, 0), 1.0 / 3);
    ck_assert_double_eq(node_attr(n, ATTR_values)->floats[2], 5e-324);
}
END_TEST

START_TEST(loose_text_is_read) {
    const char *loose = "# a comment\n"
                        "\n"
                        "  graph\ttrain(updates,backward;act=f16){\r\n"
                        " # another\n"
                        "\n"
                        "%0=input{name=\"x\"}:f32 [ 2 , 3 ]\r\n"
                        "%1 =conv %0 , %0{ stride=[ 1 ,1],pad = [0,0,0,0] ,"
                        " groups=1 } : f32[2,3]!g2@0#m.net : 4 fc\n"
                        "  # %2 = not a node\n"
                        "} \n# the end";
    ck_assert_str_eq(
        printed(graph_from(loose)),
        "graph train (backward, updates; act = f16) {\n"
        "  %0 = input {name = \"x\"} : f32[2,3]\n"
        "  %1 = conv %0, %0 {groups = 1, pad = [0,0,0,0], stride = [1,1]}"
        " : f32[2,3] !g2 @0  # m.net:4 fc\n"
        "}\n");
}
END_TEST

// Reading a graph and adding to it finds the nodes that it has.
START_TEST(read_nodes_are_found_again) {
    Graph *g = graph_of(arena, INPUT(0, "f32[2]") "%1 = exp %0 : f32[2]\n");
    ck_assert_int_eq(graph_op1(g, OP_exp, 0), 1);
    ck_assert_int_eq(graph_op1(g, OP_log, 0), 2);
}
END_TEST

// Where a line of a graph is wrong, and what is said.
static const struct {
    const char *text, *error;
} wrong[] = {
    // clang-format off
    {"", "1: expected 'graph'"},
    {"digraph g {\n}\n", "1: expected 'graph'"},
    {"graph {\n}\n", "1: expected a name"},
    {"graph g\n", "1: expected '{'"},
    {"graph g {", "1: expected '}'"},
    {"graph g {\n", "2: expected '}'"},
    {"graph g {\n}\nmore\n", "3: expected the end of the text"},
    {"graph g {} \n", "1: expected the end of the line"},
    {"graph g (sorted) {\n}\n", "1: unknown fact 'sorted'"},
    {"graph g (backward {\n}\n", "1: expected ')'"},
    {"graph g (act = i32) {\n}\n", "1: act must be f32, f16 or bf16"},
    {"graph g (act = act) {\n}\n", "1: act must be f32, f16 or bf16"},
    {"graph g (arena = -1) {\n}\n", "1: the integer is not in 0 .."},
    {"graph g {\n%1 = loss_scale : f32[]\n}\n", "2: expected %0"},
    {"graph g {\n%0 = loss_scale : f32[]\n%0 = loss_scale : f32[]\n}\n",
     "3: expected %1"},
    {"graph g {\n%-1 = loss_scale : f32[]\n}\n",
     "2: the integer is not in 0 .. 999999"},
    {"graph g {\n%0 = twist : f32[]\n}\n", "2: unknown operation 'twist'"},
    {"graph g {\n%0 = neg %1000000 : f32[]\n}\n", "2: the integer is not in"},
    {"graph g {\n%0 = neg %0 %0 : f32[]\n}\n", "2: expected ':'"},
    {"graph g {\n%0 = neg %0, : f32[]\n}\n", "2: expected '%'"},
    {"graph g {\n%0 = neg {depth = 1} : f32[]\n}\n",
     "2: unknown attribute 'depth'"},
    {"graph g {\n%0 = neg {axis = 1, axis = 1} : f32[]\n}\n",
     "2: attribute 'axis' is given twice"},
    {"graph g {\n%0 = neg {axis 1} : f32[]\n}\n", "2: expected '='"},
    {"graph g {\n%0 = neg {axis = \"1\"} : f32[]\n}\n",
     "2: expected an integer"},
    {"graph g {\n%0 = neg {axis = 9223372036854775808} : f32[]\n}\n",
     "2: the integer is too large"},
    {"graph g {\n%0 = neg {axis = -9223372036854775809} : f32[]\n}\n",
     "2: the integer is too large"},
    {"graph g {\n%0 = neg {axes = 1} : f32[]\n}\n", "2: expected '['"},
    {"graph g {\n%0 = neg {axes = [1} : f32[]\n}\n", "2: expected ']'"},
    {"graph g {\n%0 = neg {axes = [1,\n2]} : f32[]\n}\n",
     "2: expected an integer"},
    {"graph g {\n%0 = neg {eps = } : f32[]\n}\n", "2: expected a number"},
    {"graph g {\n%0 = neg {eps = 1.2.3} : f32[]\n}\n", "2: expected a number"},
    {"graph g {\n%0 = neg {name = x} : f32[]\n}\n", "2: expected '\"'"},
    {"graph g {\n%0 = neg {name = \"x} : f32[]\n}\n",
     "2: the string does not end"},
    {"graph g {\n%0 = neg {name = \"x\\", "2: the string does not end"},
    {"graph g {\n%0 = neg {name = \"\\t\"} : f32[]\n}\n",
     "2: unknown escape in a string"},
    {"graph g {\n%0 = neg {name = \"\\x1\"} : f32[]\n}\n",
     "2: unknown escape in a string"},
    {"graph g {\n%0 = neg {name = \"\\x00\"} : f32[]\n}\n",
     "2: unknown escape in a string"},
    {"graph g {\n%0 = neg {axis = 1 : f32[]\n}\n", "2: expected '}'"},
    {"graph g {\n%0 = neg\n}\n", "2: expected ':'"},
    {"graph g {\n%0 = neg : f64[]\n}\n", "2: unknown element type 'f64'"},
    {"graph g {\n%0 = neg : f32\n}\n", "2: expected '['"},
    {"graph g {\n%0 = neg : f32[2,]\n}\n", "2: expected an integer"},
    {"graph g {\n%0 = neg : f32[-2]\n}\n", "2: the integer is not in"},
    {"graph g {\n%0 = neg : f32[2147483648]\n}\n", "2: the integer is not in"},
    {"graph g {\n%0 = neg : f32[1,1,1,1,1,1,1,1,1]\n}\n",
     "2: there are more than 8 dimensions"},
    {"graph g {\n%0 = neg : f32[] !3\n}\n", "2: expected 'g'"},
    {"graph g {\n%0 = neg : f32[] !g-1\n}\n", "2: the integer is not in"},
    {"graph g {\n%0 = neg : f32[] @-1\n}\n", "2: the integer is not in"},
    {"graph g {\n%0 = neg : f32[] @1 !g1\n}\n",
     "2: expected the end of the line"},
    {"graph g {\n%0 = neg : f32[] # a.net:x\n}\n", "2: expected an integer"},
    {"graph g {\n%0 = neg : f32[] # a.net:1 b c\n}\n",
     "2: expected the end of the line"},
    {"graph g {\n%0 = neg : f32[] # backward b\n}\n",
     "2: expected the end of the line"},
    {"graph g {\n%0 = neg : f32[] # (\n}\n", "2: expected file:line or a path"},
    // clang-format on
};

START_TEST(mistakes_are_named) {
    const char *error = NULL;
    Graph *g =
        graph_read(arena, wrong[_i].text, strlen(wrong[_i].text), &error);
    ck_assert_msg(g == NULL, "accepted\n%s", wrong[_i].text);
    ck_assert_ptr_nonnull(error);
    ck_assert_msg(strncmp(error, wrong[_i].error, strlen(wrong[_i].error)) == 0,
                  "%s for\n%s", error, wrong[_i].text);
}
END_TEST

static const char *const whole =
    "graph train (backward, updates; act = f16) {\n"
    "  %0 = input {name = \"im\\\"age\\x1b\"} : u8[5,3]  # \"a b\":8 x.y "
    "backward\n"
    "  %1 = constant {values = [1.5,2e3]} : f32[2] !g3 @65536\n"
    "  %2 = add %0, %1 {axes = [1,-2], eps = nan} : f32[5,3]\n"
    "}\n";

// What is cut off anywhere is refused or, at the very end, still whole.
START_TEST(every_prefix_is_survived) {
    for (size_t length = 0; length < strlen(whole); length++) {
        const char *error = NULL;
        char *part = malloc(length + 1);
        memcpy(part, whole, length);
        Graph *g = graph_read(arena, part, length, &error);
        ck_assert((g == NULL) == (error != NULL));
        ck_assert(g == NULL || length == strlen(whole) - 1);
        free(part);
    }
}
END_TEST

// Any byte in place of any other: read or refused, and what is read prints as
// something that reads back the same.
START_TEST(every_changed_byte_is_survived) {
    char *text = arena_string(arena, whole, strlen(whole));
    for (size_t at = 0; at < strlen(whole); at++) {
        for (int byte = 0; byte < 256; byte += 3) {
            const char *error = NULL;
            text[at] = (char)byte;
            Graph *g = graph_read(arena, text, strlen(whole), &error);
            ck_assert((g == NULL) == (error != NULL));
            if (g)
                ck_assert_str_eq(printed(graph_from(printed(g))), printed(g));
        }
        text[at] = whole[at];
    }
}
END_TEST

static const char *repeated(const char *before, const char *part, int count,
                            const char *after) {
    Text t = text_new(arena);
    text_add(&t, "%s", before);
    for (int i = 0; i < count; i++)
        text_bytes(&t, part, strlen(part));
    text_add(&t, "%s", after);
    return text_string(&t);
}

static void refused(const char *text, const char *why) {
    const char *error = NULL;
    ck_assert_ptr_null(graph_read(arena, text, strlen(text), &error));
    ck_assert_str_eq(error, why);
}

START_TEST(lists_and_strings_are_limited) {
    const int most = 1 << 20;
    const char *end = "0.0]} : f32[]\n}\n";
    const char *list = "graph g {\n%0 = constant {values = [";
    Graph *g = graph_from(repeated(list, "0.0,", most - 1, end));
    ck_assert_int_eq(node_attr(&g->node[0], ATTR_values)->count, most);
    refused(repeated(list, "0.0,", most, end),
            "2: the list has more than 1048576 numbers");
    const char *string = "graph g {\n%0 = input {name = \"";
    g = graph_from(repeated(string, "x", most - 1, "\"} : f32[]\n}\n"));
    ck_assert_uint_eq(strlen(node_text(&g->node[0], ATTR_name)), most - 1);
    refused(repeated(string, "x", most, "\"} : f32[]\n}\n"),
            "2: the string is longer than 1048576 bytes");
}
END_TEST

// A graph of as many nodes as stated.
static const char *workspaces(int count) {
    Text t = text_new(arena);
    text_add(&t, "graph g {\n");
    for (int i = 0; i < count; i++)
        text_add(&t, "%%%d=workspace:u8[]\n", i);
    text_add(&t, "}\n");
    return text_string(&t);
}

// At the limit, and one past it.
START_TEST(nodes_are_limited) {
    ck_assert_uint_eq(graph_from(workspaces(MAX_NODES))->count, MAX_NODES);
    refused(workspaces(MAX_NODES + 1),
            "1000002: the integer is not in 0 .. 999999");
}
END_TEST

Suite *read_suite(void) {
    Suite *s = suite_create("read");
    TCase *c = tcase_create("read");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_loop_test(c, printed_text_reads_back, 0,
                        sizeof exact / sizeof exact[0]);
    tcase_add_test(c, every_attribute_reads_back);
    tcase_add_test(c, loose_text_is_read);
    tcase_add_test(c, read_nodes_are_found_again);
    tcase_add_loop_test(c, mistakes_are_named, 0,
                        sizeof wrong / sizeof wrong[0]);
    tcase_add_test(c, every_prefix_is_survived);
    tcase_add_test(c, every_changed_byte_is_survived);
    tcase_add_test(c, lists_and_strings_are_limited);
    tcase_set_timeout(c, 60);
    suite_add_tcase(s, c);
    TCase *large = tcase_create("large");
    tcase_set_tags(large, "times");
    tcase_set_timeout(large, 60);
    tcase_add_checked_fixture(large, setup, teardown);
    tcase_add_test(large, nodes_are_limited);
    suite_add_tcase(s, large);
    return s;
}
