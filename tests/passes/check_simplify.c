// Simplify: rules one by one, and random graphs.
#include "tests/passes/suites.h"
#include "tests/passes/values.h"

#include <math.h>
#include <string.h>

// %0 is x f32[2,3], %1 is y f32[3], %2 is i i32[2,3]; the body's last node is
// the result.  left is how many nodes remain after dce beside leaves.
typedef struct {
    const char *body;
    int left;
} Rule;

#define NUMBER(n, value) "%" #n " = constant {values = [" value "]} : f32[]\n"

static const Rule rules[] = {
    {NUMBER(3, "0.0") "%4 = add %0, %3 : f32[2,3]\n", 0},
    {NUMBER(3, "0.0") "%4 = sub %0, %3 : f32[2,3]\n", 0},
    {NUMBER(3, "0.0") "%4 = sub %3, %0 : f32[2,3]\n", 1},
    {NUMBER(3, "1.0") "%4 = mul %0, %3 : f32[2,3]\n", 0},
    {NUMBER(3, "1.0") "%4 = div %0, %3 : f32[2,3]\n", 0},
    {NUMBER(3, "0.5") "%4 = mul %0, %3 : f32[2,3]\n" NUMBER(
         5, "3.0") "%6 = mul %5, %4 : f32[2,3]\n",
     1},
    {NUMBER(3, "0.3") "%4 = mul %0, %3 : f32[2,3]\n" NUMBER(
         5, "3.0") "%6 = mul %5, %4 : f32[2,3]\n",
     2},
    {NUMBER(3, "0.0") "%4 = mul %0, %3 : f32[2,3]\n", 1},
    {"%3 = sub %0, %0 : f32[2,3]\n", 1},
    {"%3 = constant {values = [0.0]} : f32[2,3]\n%4 = add %1, %3 : f32[2,3]\n",
     1}, // a broadcast
    {"%3 = neg %0 : f32[2,3]\n%4 = neg %3 : f32[2,3]\n", 0},
    {"%3 = neg %1 : f32[3]\n%4 = add %0, %3 : f32[2,3]\n", 1},
    {"%3 = neg %1 : f32[3]\n%4 = sub %0, %3 : f32[2,3]\n", 1},
    {"%3 = relu %0 : f32[2,3]\n%4 = relu %3 : f32[2,3]\n", 1},
    {"%3 = lt %0, %1 : bool[2,3]\n%4 = not %3 : bool[2,3]\n"
     "%5 = not %4 : bool[2,3]\n%6 = select %5, %0, %1 : f32[2,3]\n",
     2},
    {NUMBER(3, "8.0") "%4 = div %0, %3 : f32[2,3]\n", 1},
    {"%3 = lt %0, %1 : bool[2,3]\n%4 = select %3, %0, %0 : f32[2,3]\n", 0},
    {"%3 = constant {values = [1.0]} : bool[]\n"
     "%4 = select %3, %0, %1 : f32[2,3]\n",
     0},
    {"%3 = constant {values = [0.0]} : bool[]\n"
     "%4 = select %3, %0, %1 : f32[2,3]\n",
     1}, // y, broadcast
    {"%3 = cast %0 : f32[2,3]\n", 0},
    {"%3 = lt %0, %1 : bool[2,3]\n%4 = cast %3 : i32[2,3]\n"
     "%5 = cast %4 : f32[2,3]\n",
     2},
    {"%3 = cast %0 : i32[2,3]\n%4 = cast %3 : f32[2,3]\n", 2},
    {"%3 = cast %2 : u8[2,3]\n%4 = cast %3 : i32[2,3]\n", 2},
    {"%3 = reshape %0 : f32[6]\n%4 = reshape %3 : f32[2,3]\n", 0},
    {"%3 = reshape %0 : f32[6]\n%4 = reshape %3 : f32[3,2]\n", 1},
    {"%3 = broadcast %1 : f32[1,3]\n%4 = broadcast %3 : f32[2,3]\n", 1},
    {"%3 = transpose %0 {order = [1,0]} : f32[3,2]\n"
     "%4 = transpose %3 {order = [1,0]} : f32[2,3]\n",
     0},
    {"%3 = reshape %0 : f32[2,1,3]\n"
     "%4 = sum %3 {axes = [0,1]} : f32[3]\n",
     1},
    {"%3 = reshape %0 : f32[6]\n%4 = sum %3 {axes = []} : f32[6]\n", 1},
    {"%3 = reshape %0 : f32[6]\n%4 = var %3 {axes = [0]} : f32[]\n", 1},
    {"%3 = reshape %0 : f32[3,2]\n%4 = max %3 {axes = [0]} : f32[2]\n", 2},
    {"%3 = reshape %0 : f32[1,2,3]\n%4 = max %3 {axes = [1]} : f32[1,1,3]\n",
     2},
    {"%3 = transpose %0 {order = [0,1]} : f32[2,3]\n", 0},
    {"%3 = transpose %0 {order = [1,0]} : f32[3,2]\n", 1},
    {"%3 = reshape %0 : f32[2,1,3]\n"
     "%4 = transpose %3 {order = [2,0,1]} : f32[3,2,1]\n"
     "%5 = transpose %4 {order = [1,0,2]} : f32[2,3,1]\n"
     "%6 = reshape %5 : f32[2,3]\n",
     0},
    {"%3 = broadcast %0 : f32[2,3]\n", 0},
    {"%3 = broadcast %1 : f32[2,3]\n%4 = mul %0, %3 : f32[2,3]\n", 1},
    {"%3 = broadcast %1 : f32[2,3]\n%4 = mul %1, %3 : f32[2,3]\n", 2},
    {"%3 = broadcast %1 : f32[2,3]\n%4 = sum %1 {axes = [0]} : f32[]\n"
     "%5 = broadcast %4 : f32[3]\n%6 = mul %3, %5 : f32[2,3]\n",
     3},
    {"%3 = pad %0 {high = [0,0], low = [0,0]} : f32[2,3]\n", 0},
    {"%3 = slice %0 {high = [0,0], low = [0,0]} : f32[2,3]\n", 0},
    {"%3 = pad %0 {high = [1,0], low = [0,2]} : f32[3,5]\n"
     "%4 = slice %3 {high = [1,0], low = [0,2]} : f32[2,3]\n",
     0},
    {"%3 = pad %0 {high = [1,0], low = [0,2]} : f32[3,5]\n"
     "%4 = slice %3 {high = [0,1], low = [1,1]} : f32[2,3]\n",
     2},
    {"%3 = reshape %1 : f32[1,3]\n%4 = sum %3 {axes = [0]} : f32[3]\n"
     "%5 = add %0, %4 : f32[2,3]\n",
     1},
    {"%3 = reshape %1 : f32[3,1]\n%4 = max %3 {axes = [1]} : f32[3,1]\n", 1},
    {NUMBER(3, "2.0") NUMBER(4, "3.0") "%5 = add %3, %4 : f32[]\n"
                                       "%6 = exp %5 : f32[]\n"
                                       "%7 = add %0, %6 : f32[2,3]\n",
     1},
    {"%3 = constant {values = [1.0,2.0,3.0]} : f32[3]\n" NUMBER(
         4, "2.0") "%5 = div %4, %3 : f32[3]\n%6 = mul %0, %5 : f32[2,3]\n",
     1},
    {NUMBER(3, "1.0") "%4 = broadcast %3 : f32[2,3]\n"
                      "%5 = mul %0, %4 : f32[2,3]\n",
     0},
    {NUMBER(3,
            "1.0") "%4 = reshape %3 : f32[1,1]\n%5 = mul %0, %4 : f32[2,3]\n",
     0},
};

static Graph *rule_graph(Arena *a, const char *body) {
    Text t = text_new(a);
    text_add(&t, "graph eval {\n"
                 "%%0 = input {name = \"x\"} : f32[2,3]\n"
                 "%%1 = input {name = \"y\"} : f32[3]\n"
                 "%%2 = input {name = \"i\"} : i32[2,3]\n");
    int n = 3;
    const char *type = NULL;
    for (const char *line = body; *line != '\0'; n++) {
        size_t length = strcspn(line, "\n");
        text_bytes(&t, line, length + 1);
        type = line;
        line += length + 1;
    }
    type = strrchr(type, ':');
    text_add(&t, "%%%d = output %%%d {name = \"z\"} %s}\n", n, n - 1, type);
    return graph_from(a, text_string(&t));
}

static int count_work(const Graph *g) {
    int count = 0;
    for (NodeId n = 0; n < g->count; n++)
        count += !(op_info[g->node[n].op].traits & (LEAF | EFFECT));
    return count;
}

START_TEST(rule_leaves_what_it_should) {
    Arena *a = arena_new();
    Graph *before = rule_graph(a, rules[_i].body);
    Graph *after = run_pass(before, "simplify", F32);
    check_same_values(before, after, 1e-12);
    after = run_pass(after, "dce", F32);
    ck_assert_msg(count_work(after) == rules[_i].left,
                  "%d nodes remain, not %d, of\n%s", count_work(after),
                  rules[_i].left, rules[_i].body);
    arena_free(a);
}
END_TEST

// Division by a power of two is exact; by others it stays a division.
START_TEST(division_becomes_multiplication_where_exact) {
    Arena *a = arena_new();
    const char *body = NUMBER(3, "8.0") "%4 = div %0, %3 : f32[2,3]\n";
    Graph *g = run_pass(rule_graph(a, body), "simplify", F32);
    ck_assert_int_eq(count_ops(g, OP_mul), 1);
    body = NUMBER(3, "3.0") "%4 = div %0, %3 : f32[2,3]\n";
    g = run_pass(rule_graph(a, body), "simplify", F32);
    ck_assert_int_eq(count_ops(g, OP_mul), 0);
    arena_free(a);
}
END_TEST

START_TEST(nan_is_not_hidden) {
    Arena *a = arena_new();
    const char *body = NUMBER(3, "0.0") "%4 = mul %0, %3 : f32[2,3]\n"
                                        "%5 = sub %4, %4 : f32[2,3]\n";
    Graph *g = run_pass(rule_graph(a, body), "simplify", F32);
    double nan[6] = {NAN, NAN, NAN, NAN, NAN, NAN};
    double **leaf = ARENA_ARRAY(a, g->count, double *);
    leaf[0] = nan;
    ck_assert(isnan(value_named(g, graph_eval(g, a, leaf, true), "z")[0]));
    arena_free(a);
}
END_TEST

// ---- random graphs ----

static uint32_t draw(uint32_t *state, uint32_t below) {
    *state = *state * UINT32_C(1664525) + UINT32_C(1013904223);
    return (*state >> 16) % below;
}

static NodeId any_float(const Graph *g, uint32_t *state) {
    NodeId n = draw(state, g->count);
    while (!dtype_float(g->node[n].type->dtype))
        n = (n + 1) % g->count;
    return n;
}

static NodeId declared(Graph *g, Op op, NodeId a, Type type) {
    return graph_add(
        g,
        (Node){.op = op, .type = &type, .num_args = 1, .arg = &a, .group = -1});
}

static NodeId resized(Graph *g, Op op, NodeId a, uint32_t *state) {
    Type type = *g->node[a].type;
    int64_t low[MAX_RANK], high[MAX_RANK];
    for (int i = 0; i < type.rank; i++) {
        low[i] = draw(state, 2);
        high[i] = draw(state, 2);
        if (op == OP_slice && low[i] + high[i] >= type.dim[i])
            low[i] = high[i] = 0;
    }
    Attr attr[] = {attr_ints(ATTR_low, type.rank, low),
                   attr_ints(ATTR_high, type.rank, high)};
    return graph_add(g, (Node){.op = op,
                               .num_args = 1,
                               .num_attrs = 2,
                               .arg = &a,
                               .attr = attr,
                               .group = -1});
}

static NodeId joined(Graph *g, NodeId a, NodeId b, uint32_t *state) {
    static const Op ops[] = {OP_add, OP_sub, OP_mul, OP_div, OP_maximum};
    Type both = *g->node[a].type;
    if (!type_broadcast(&both, g->node[b].type, &both))
        return a;
    if (draw(state, 4) == 0)
        return graph_op3(g, OP_select, graph_op2(g, OP_lt, a, b), a, b);
    return graph_op2(g, ops[draw(state, 5)], a, b);
}

static void grow(Graph *g, uint32_t *state) {
    static const double numbers[] = {0, 1, -1, 2, 0.5, 3};
    static const Op unary[] = {OP_neg, OP_relu, OP_abs};
    NodeId a = any_float(g, state), b = any_float(g, state);
    Type type = *g->node[a].type;
    switch (draw(state, 9)) {
    case 0:
        graph_op1(g, unary[draw(state, 3)], a);
        return;
    case 1:
        graph_constant(g, type_scalar(F32), numbers[draw(state, 6)]);
        return;
    case 2:
        graph_reshape(g, a, 1, (int64_t[]){type_count(&type)});
        return;
    case 3:
        resized(g, draw(state, 2) == 0 ? OP_pad : OP_slice, a, state);
        return;
    case 4:
        if (type_broadcast(&type, g->node[b].type, &type))
            declared(g, OP_broadcast, a, type);
        return;
    case 5:
        if (type.rank > 0)
            graph_reduce(g, OP_sum, a, 1,
                         (int64_t[]){draw(state, (uint32_t)type.rank)});
        return;
    case 6:
        graph_constant(g, type, numbers[draw(state, 6)]);
        return;
    default:
        joined(g, a, b, state);
    }
}

static void add_outputs(Graph *g, NodeId from) {
    NodeId count = g->count;
    for (NodeId n = from; n < count; n++) {
        Attr name = attr_text(ATTR_name,
                              arena_format(g->arena, "n%lu", (unsigned long)n));
        graph_add(g, (Node){.op = OP_output,
                            .num_args = 1,
                            .num_attrs = 1,
                            .arg = &n,
                            .attr = &name,
                            .group = -1});
    }
}

START_TEST(random_graphs_keep_their_values) {
    static const int64_t dims[][2] = {{2, 3}, {1, 3}, {2, 1}};
    Arena *a = arena_new();
    Graph *g = graph_new(a, "eval");
    uint32_t state = (uint32_t)_i;
    for (int i = 0; i < 3; i++)
        graph_leaf(g, OP_input, arena_format(a, "x%d", i),
                   type_of(F32, 2, dims[i]));
    for (int i = 0; i < 30; i++)
        grow(g, &state);
    add_outputs(g, 3);
    Graph *after = run_pass(g, "simplify", F32);
    check_same_values(g, after, 1e-9);
    int work = count_work(run_pass(after, "dce", F32));
    ck_assert_int_le(work, count_work(run_pass(g, "dce", F32)));
    arena_free(a);
}
END_TEST

// A sum over the places that a pool's gradient goes to.
START_TEST(sum_of_an_unpooled_gradient_is_that_of_the_numbers) {
    Arena *a = arena_new();
    Graph *g = graph_from(
        a, "graph eval {\n"
           "%0 = input {name = \"x\"} : f32[2,5,5,3]\n"
           "%1 = input {name = \"dy\"} : f32[2,2,2,3]\n"
           "%2 = max_pool_index %0 {stride = [2,2], window = [3,3]}"
           " : u8[2,2,2,3]\n"
           "%3 = max_pool_grad %2, %1 {stride = [2,2], window = [3,3]}"
           " : f32[2,5,5,3]\n"
           "%4 = sum %3 {axes = [0,1,2]} : f32[3]\n"
           "%5 = output %4 {name = \"y\"} : f32[3]\n"
           "}\n");
    Graph *after = run_pass(g, "simplify", F32);
    check_same_values(g, after, 1e-12);
    ck_assert_int_eq(count_ops(run_pass(after, "dce", F32), OP_max_pool_grad),
                     0);
    arena_free(a);
}
END_TEST

Suite *simplify_suite(void) {
    Suite *s = suite_create("simplify");
    TCase *t = tcase_create("simplify");
    tcase_add_loop_test(t, rule_leaves_what_it_should, 0,
                        sizeof rules / sizeof rules[0]);
    tcase_add_test(t, division_becomes_multiplication_where_exact);
    tcase_add_test(t, nan_is_not_hidden);
    tcase_add_test(t, sum_of_an_unpooled_gradient_is_that_of_the_numbers);
    tcase_add_loop_test(t, random_graphs_keep_their_values, 0, 200);
    suite_add_tcase(s, t);
    return s;
}
