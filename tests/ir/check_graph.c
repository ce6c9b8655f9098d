// Graph: equal nodes are one, order is kept, attributes are sorted.

#include "base/exits.h"
#include "tests/ir/suites.h"

#include <signal.h>
#include <string.h>

static Arena *arena;
static Graph *g;

static void setup(void) {
    arena = arena_new();
    g = graph_new(arena, "test");
}

static void teardown(void) {
    arena_free(arena);
}

static Type matrix(DType dtype, int64_t rows, int64_t columns) {
    return type_of(dtype, 2, (int64_t[]){rows, columns});
}

static NodeId input(const char *name) {
    return graph_leaf(g, OP_input, name, matrix(F32, 2, 3));
}

START_TEST(equal_nodes_are_one) {
    NodeId x = input("x"), y = input("y");
    NodeId sum = graph_op2(g, OP_add, x, y);
    ck_assert_int_eq(graph_op2(g, OP_add, x, y), sum);
    ck_assert_int_eq(graph_op2(g, OP_add, y, x), sum);
    ck_assert_int_ne(graph_op2(g, OP_sub, x, y), graph_op2(g, OP_sub, y, x));
    ck_assert_int_ne(graph_op1(g, OP_exp, x), graph_op1(g, OP_exp, y));
    NodeId two = graph_constant(g, type_scalar(F32), 2);
    ck_assert_int_eq(graph_constant(g, type_scalar(F32), 2), two);
    ck_assert_int_ne(graph_constant(g, type_scalar(F32), 3), two);
    ck_assert_int_ne(graph_constant(g, type_scalar(I32), 2), two);
    ck_assert_int_ne(graph_constant(g, type_scalar(F32), -0.0),
                     graph_constant(g, type_scalar(F32), 0.0));
}
END_TEST

START_TEST(attributes_tell_nodes_apart) {
    NodeId x = input("x");
    int64_t rows = 0, columns = 1;
    NodeId sum = graph_reduce(g, OP_sum, x, 1, &rows);
    ck_assert_int_eq(graph_reduce(g, OP_sum, x, 1, &rows), sum);
    ck_assert_int_ne(graph_reduce(g, OP_sum, x, 1, &columns), sum);
    ck_assert_int_ne(graph_reduce(g, OP_max, x, 1, &rows), sum);
}
END_TEST

START_TEST(types_tell_nodes_apart) {
    NodeId x = input("x");
    NodeId half = graph_cast(g, x, F16);
    ck_assert_int_ne(graph_cast(g, x, ACT), half);
    ck_assert_int_eq(graph_cast(g, x, F16), half);
    ck_assert_int_eq(graph_cast(g, x, F32), x);
    NodeId row = graph_reshape(g, x, 1, (int64_t[]){6});
    ck_assert_int_ne(graph_reshape(g, x, 2, (int64_t[]){3, 2}), row);
    ck_assert_int_eq(graph_reshape(g, x, 2, (int64_t[]){2, 3}), x);
}
END_TEST

START_TEST(groups_tell_nodes_apart) {
    NodeId x = input("x");
    Node n = {.op = OP_exp, .num_args = 1, .arg = &x, .group = 1};
    NodeId first = graph_add(g, n);
    ck_assert_int_eq(graph_add(g, n), first);
    n.group = 2;
    ck_assert_int_ne(graph_add(g, n), first);
}
END_TEST

START_TEST(leaves_and_effects_are_themselves) {
    ck_assert_int_ne(input("x"), input("x"));
    Type t = type_scalar(F32);
    NodeId p = graph_leaf(g, OP_param, "p", t);
    NodeId state = graph_state(g, "s", STATE_RUN, t, 0);
    ck_assert_int_ne(graph_assign(g, p, state), graph_assign(g, p, state));
    Node room = {.op = OP_workspace, .type = &t, .group = -1};
    ck_assert_int_ne(graph_add(g, room), graph_add(g, room));
}
END_TEST

START_TEST(many_nodes_are_found_again) {
    enum { MANY = 1000 };
    NodeId id[MANY];
    for (int i = 0; i < MANY; i++)
        id[i] = graph_constant(g, type_scalar(F32), i);
    for (int i = 0; i < MANY; i++)
        ck_assert_int_eq(graph_constant(g, type_scalar(F32), i), id[i]);
    ck_assert_int_eq(g->count, MANY);
}
END_TEST

// Room for the operands and attributes is the caller's and may go.
START_TEST(operands_and_attributes_are_copied) {
    NodeId x = input("x");
    NodeId arg[1] = {x};
    int64_t axis[1] = {1};
    char name[] = "out";
    Attr attr = attr_ints(ATTR_axes, 1, axis);
    NodeId sum = graph_add(g, (Node){.op = OP_sum,
                                     .num_args = 1,
                                     .num_attrs = 1,
                                     .arg = arg,
                                     .attr = &attr,
                                     .group = -1});
    NodeId leaf = graph_leaf(g, OP_input, name, type_scalar(F32));
    arg[0] = 77;
    axis[0] = 77;
    name[0] = 'X';
    ck_assert_int_eq(g->node[sum].arg[0], x);
    ck_assert_int_eq(node_ints(&g->node[sum], ATTR_axes, 0, -1), 1);
    ck_assert_str_eq(node_text(&g->node[leaf], ATTR_name), "out");
}
END_TEST

START_TEST(attributes_are_sorted) {
    NodeId arg[] = {
        graph_leaf(g, OP_input, "x", type_of(F32, 4, (int64_t[]){1, 4, 4, 1})),
        graph_leaf(g, OP_input, "w", type_of(F32, 4, (int64_t[]){1, 2, 2, 1}))};
    Attr attr[] = {attr_ints(ATTR_stride, 2, (int64_t[]){2, 2}),
                   attr_int(ATTR_groups, 1),
                   attr_ints(ATTR_pad, 4, (int64_t[]){1, 1, 1, 1})};
    NodeId id = graph_add(g, (Node){.op = OP_conv,
                                    .num_args = 2,
                                    .num_attrs = 3,
                                    .arg = arg,
                                    .attr = attr,
                                    .group = -1});
    const Node *n = &g->node[id];
    ck_assert_int_eq(n->attr[0].key, ATTR_groups);
    ck_assert_int_eq(n->attr[1].key, ATTR_pad);
    ck_assert_int_eq(n->attr[2].key, ATTR_stride);
    ck_assert_int_eq(n->type->dim[1], 3);
    ck_assert_int_eq(n->offset, -1);
    ck_assert_int_eq(node_ints(n, ATTR_stride, 1, 9), 2);
    ck_assert_int_eq(node_ints(n, ATTR_stride, 2, 9), 9);
    ck_assert_int_eq(node_ints(n, ATTR_window, 0, 9), 9);
    ck_assert_int_eq(node_int(n, ATTR_accumulate, 5), 5);
    ck_assert_double_eq(node_float(n, ATTR_eps, 0.5), 0.5);
    ck_assert_ptr_null(node_text(n, ATTR_name));
}
END_TEST

START_TEST(what_is_full_stays_apart) {
    NodeId x = input("x");
    NodeId one = graph_constant(g, type_scalar(F32), 1);
    NodeId y = graph_op1(g, OP_exp, x);
    g->origin.full_precision = true;
    NodeId z = graph_op1(g, OP_exp, x);
    ck_assert_uint_ne(y, z);
    ck_assert_uint_eq(z, graph_op1(g, OP_exp, x));
    ck_assert_uint_eq(one, graph_constant(g, type_scalar(F32), 1));
}
END_TEST

START_TEST(origins_follow_copies) {
    g->origin = (Origin){.file = "m.net", .line = 3, .path = "fc"};
    NodeId x = input("x");
    g->origin.line = 4;
    NodeId y = graph_op1(g, OP_exp, x);
    g->facts = BACKWARD;
    g->act = BF16;
    Graph *copy = graph_like(g);
    NodeId now[2];
    for (NodeId id = 0; id < 2; id++)
        now[id] = graph_copy(copy, g, id, now);
    ck_assert_int_eq(copy->facts, BACKWARD);
    ck_assert_int_eq(copy->act, BF16);
    ck_assert_int_eq(copy->node[now[y]].from.line, 4);
    ck_assert_str_eq(copy->node[now[y]].from.path, "fc");
    ck_assert_ptr_null(copy->origin.file);
    ck_assert(type_is(copy->node[now[x]].type, (Type[]){matrix(F32, 2, 3)}));
}
END_TEST

START_TEST(nodes_are_found_by_name) {
    NodeId x = input("x"), y = input("y");
    ck_assert_int_eq(graph_find(g, "y"), y);
    ck_assert_int_eq(graph_find(g, "x"), x);
    ck_assert_uint_eq(graph_find(g, "z"), NO_NODE);
}
END_TEST

START_TEST(uses_are_counted) {
    NodeId x = input("x");
    NodeId square = graph_op2(g, OP_mul, x, x);
    graph_op2(g, OP_add, square, x);
    uint32_t *uses = graph_uses(g, arena);
    ck_assert_uint_eq(uses[x], 3);
    ck_assert_uint_eq(uses[square], 1);
    ck_assert_uint_eq(uses[2], 0);
}
END_TEST

START_TEST(bytes_follow_act) {
    Type t = matrix(ACT, 2, 3);
    ck_assert_int_eq(graph_bytes(g, &t), 24);
    g->act = F16;
    ck_assert_int_eq(graph_bytes(g, &t), 12);
    ck_assert_int_eq(graph_bytes(g, (Type[]){matrix(U8, 2, 3)}), 6);
    ck_assert_int_eq(graph_bytes(g, (Type[]){matrix(I32, 2, 3)}), 24);
}
END_TEST

START_TEST(a_wrong_shape_aborts) {
    graph_op2(g, OP_matmul, input("x"), input("y"));
}
END_TEST

START_TEST(users_are_listed_in_order) {
    NodeId x = input("x"), y = input("y");
    NodeId sum = graph_op2(g, OP_add, x, y);
    NodeId square = graph_op2(g, OP_mul, x, x);
    Users u = graph_users(g, arena);
    const NodeId expected[] = {sum, square, square};
    int e = u.first[x];
    for (int i = 0; i < 3; i++, e = u.next[e]) {
        ck_assert_int_ge(e, 0);
        ck_assert_int_eq(u.user[e], expected[i]);
    }
    ck_assert_int_eq(e, -1);
    ck_assert_int_eq(u.first[square], -1);
}
END_TEST

START_TEST(what_changes_nothing_is_the_operand) {
    const int64_t none[] = {0, 0}, one[] = {0, 1}, same[] = {0, 1},
                  turned[] = {1, 0};
    NodeId x = input("x");
    ck_assert_int_eq(graph_pad(g, x, none, none), x);
    ck_assert_int_eq(graph_slice(g, x, none, none), x);
    ck_assert_int_eq(graph_transpose(g, x, same), x);
    NodeId wide = graph_pad(g, x, one, none);
    NodeId narrow = graph_slice(g, x, none, one);
    NodeId tall = graph_transpose(g, x, turned);
    ck_assert(type_is(g->node[wide].type, (Type[]){matrix(F32, 2, 4)}));
    ck_assert(type_is(g->node[narrow].type, (Type[]){matrix(F32, 2, 2)}));
    ck_assert(type_is(g->node[tall].type, (Type[]){matrix(F32, 3, 2)}));
    ck_assert_int_eq(node_ints(&g->node[wide], ATTR_low, 1, -1), 1);
    ck_assert_int_eq(node_ints(&g->node[narrow], ATTR_low, 1, -1), 0);
}
END_TEST

START_TEST(a_number_is_one_constant) {
    double value = 0;
    NodeId one = graph_number(g, 2.5), x = input("x");
    NodeId two = graph_vector(g, (const double[]){1, 2}, 2);
    ck_assert(node_number(&g->node[one], &value));
    ck_assert(value == 2.5);
    ck_assert(!node_number(&g->node[two], &value));
    ck_assert(!node_number(&g->node[x], &value));
}
END_TEST

START_TEST(an_attribute_given_twice_aborts) {
    Attr attr[] = {attr_text(ATTR_name, "a"), attr_text(ATTR_name, "b")};
    graph_add(
        g, (Node){.op = OP_input, .num_attrs = 2, .attr = attr, .group = -1});
}
END_TEST

START_TEST(too_many_nodes_are_the_models_fault) {
    Node n = {.op = OP_workspace, .group = -1};
    for (NodeId i = 0; i <= MAX_NODES + NODES_MARGIN; i++)
        graph_add(g, n);
}
END_TEST

Suite *graph_suite(void) {
    Suite *s = suite_create("graph");
    TCase *c = tcase_create("graph");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, equal_nodes_are_one);
    tcase_add_test(c, attributes_tell_nodes_apart);
    tcase_add_test(c, types_tell_nodes_apart);
    tcase_add_test(c, groups_tell_nodes_apart);
    tcase_add_test(c, leaves_and_effects_are_themselves);
    tcase_add_test(c, many_nodes_are_found_again);
    tcase_add_test(c, operands_and_attributes_are_copied);
    tcase_add_test(c, attributes_are_sorted);
    tcase_add_test(c, origins_follow_copies);
    tcase_add_test(c, what_is_full_stays_apart);
    tcase_add_test(c, nodes_are_found_by_name);
    tcase_add_test(c, uses_are_counted);
    tcase_add_test(c, users_are_listed_in_order);
    tcase_add_test(c, what_changes_nothing_is_the_operand);
    tcase_add_test(c, a_number_is_one_constant);
    tcase_add_test(c, bytes_follow_act);
    tcase_add_test_raise_signal(c, a_wrong_shape_aborts, SIGABRT);
    tcase_add_test_raise_signal(c, an_attribute_given_twice_aborts, SIGABRT);
    tcase_add_exit_test(c, too_many_nodes_are_the_models_fault, EXIT_MODEL);
    tcase_set_timeout(c, 60);
    suite_add_tcase(s, c);
    return s;
}
