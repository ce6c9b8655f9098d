// Cost: flops, bytes and launches, counted by hand.
#include "tests/passes/networks.h"
#include "tests/passes/suites.h"
#include "tests/passes/values.h"

// ---- flops ----

// A contraction, and the multiply-adds that it takes.
static const struct {
    const char *a, *b, *node;
    int64_t products;
} products[] = {
    // Each of 2*4*4*10 results: a window of 3*3*3.
    {"[2,4,4,3]", "[10,3,3,3]", "conv %0, %1 {pad = [1,1,1,1]} : f32[2,4,4,10]",
     2 * 4 * 4 * 10 * 27},
    {"[1,5,5,4]", "[6,3,3,2]",
     "conv %0, %1 {groups = 2, stride = [2,2]} : f32[1,2,2,6]",
     2 * 2 * 6 * 3 * 3 * 2},
    // Each element of dy reaches a window of the input.
    {"[2,4,4,10]", "[10,3,3,3]",
     "conv_grad_input %0, %1 {pad = [1,1,1,1]} : f32[2,4,4,3]",
     2 * 4 * 4 * 10 * 27},
    {"[2,4,4,10]", "[2,4,4,3]",
     "conv_grad_weight %0, %1 {pad = [1,1,1,1]} : f32[10,3,3,3]",
     2 * 4 * 4 * 10 * 27},
    {"[4,5]", "[5,7]", "matmul %0, %1 : f32[4,7]", 4 * 5 * 7},
    {"[5,4]", "[5,7]", "matmul %0, %1 {ta = 1} : f32[4,7]", 4 * 5 * 7},
    {"[4,5]", "[7,5]", "matmul %0, %1 {tb = 1} : f32[4,7]", 4 * 5 * 7},
};

START_TEST(contractions_count_products) {
    Arena *a = arena_new();
    const char *text =
        arena_format(a,
                     "graph eval {\n%%0 = input {name = \"a\"} : f32%s\n"
                     "%%1 = input {name = \"b\"} : f32%s\n%%2 = %s\n}\n",
                     products[_i].a, products[_i].b, products[_i].node);
    Graph *g = graph_from(a, text);
    ck_assert_int_eq(node_flops(g, 2), 2 * products[_i].products);
    ck_assert_int_eq(node_flops(g, 0), 0);
    arena_free(a);
}
END_TEST

// ---- a step ----

// Two kernels, a product and an update.  The batch is 16.
static const char step[] =
    "graph train (primitive, typed, grouped; act = f16) {\n"
    "%0 = input {name = \"x\"} : f32[16,100]\n"
    "%1 = param {name = \"w\"} : f32[10,100]\n"
    "%2 = state {init = 0.0, kind = \"derived\", name = \"w.act\"} : "
    "act[10,100]\n"
    "%3 = constant {values = [0.5]} : f32[]\n"
    "%4 = state {init = 0.0, kind = \"derived\", name = "
    "\"run.counters.train\"} : i32[1]\n"
    "%5 = cast %0 : act[16,100] !g0\n"
    "%6 = matmul %5, %2 {tb = 1} : act[16,10] !g1\n"
    "%7 = cast %6 : f32[16,10] !g2\n"
    "%8 = workspace : f32[16,1] !g2\n"
    "%9 = sum %7 {axes = [0,1]} : f32[] !g2\n"
    "%10 = mul %1, %9 : f32[10,100] !g3\n"
    "%11 = assign %1, %10 : f32[10,100] !g3\n"
    "%12 = output %9 {name = \"loss\"} : f32[]\n"
    "}\n";

START_TEST(bytes_are_what_groups_read_and_write) {
    Arena *a = arena_new();
    Cost c = graph_cost(graph_plan(graph_from(a, step), false, a));
    ck_assert_int_eq(c.launches, 4);
    ck_assert_int_eq(c.flops, 2 * 16 * 10 * 100);
    int64_t cast = 4 * 1600 + 2 * 1600;
    int64_t product = 2 * 1600 + 2 * 1000 + 2 * 160;
    int64_t sum = 2 * 160 + 4;
    int64_t update = 4 * 1000 + 4 + 4 * 1000;
    ck_assert_int_eq(c.bytes, cast + product + sum + update);
    ck_assert_int_eq(c.batch_bytes, cast + product - 2 * 1000 + 2 * 160);
    arena_free(a);
}
END_TEST

// Leaves are there all the time; %5 and %6 are the most beside them.
START_TEST(bound_is_what_lives_at_once) {
    Arena *a = arena_new();
    int64_t bound = graph_bound(graph_from(a, step));
    int64_t leaves = 6400 + 4096 + 2048 + 256; // in slots of 256 bytes
    int64_t live = 3328 + 512;
    ck_assert_int_eq(bound, leaves + live);
    arena_free(a);
}
END_TEST

// What has the batch dimension when there is one sample is decided by where it
// comes from, not by its size.
START_TEST(sums_over_the_batch_are_not_batched) {
    Arena *a = arena_new();
    Graph *g =
        graph_from(a, "graph train (primitive, typed, grouped; act = f32) {\n"
                      "%0 = input {name = \"x\"} : f32[1,6,6,8]\n"
                      "%1 = param {name = \"w\"} : f32[8]\n"
                      "%2 = state {init = 0.0, kind = \"derived\", name = "
                      "\"run.counters.train\"} : i32[3]\n"
                      "%3 = workspace : f32[36,8] !g0\n"
                      "%4 = sum %0 {axes = [0,1,2]} : f32[8] !g0\n"
                      "%5 = mul %4, %1 : f32[8] !g1\n"
                      "%6 = output %5 {name = \"y\"} : f32[8]\n"
                      "}\n");
    ck_assert_int_eq(graph_cost(graph_plan(g, false, a)).batch_bytes,
                     4 * 6 * 6 * 8);
    arena_free(a);
}
END_TEST

// ---- networks ----

static Cost network_cost(Arena *a, int level) {
    PassOptions o = {.device = "cuda",
                     .act = F32,
                     .storage = F32,
                     .level = level,
                     .reuse = true};
    Graph *g =
        passes_run(graph_from(a, residual_network), &o, "memory", NULL, NULL);
    return graph_cost(graph_plan(g, false, a));
}

START_TEST(fusing_moves_less) {
    Arena *a = arena_new();
    Cost fused = network_cost(a, 1), plain = network_cost(a, 0);
    ck_assert_int_eq(fused.flops, plain.flops);
    ck_assert_int_lt(2 * fused.bytes, plain.bytes);
    ck_assert_int_lt(2 * fused.launches, plain.launches);
    arena_free(a);
}
END_TEST

// A step takes three times the flops of going forward, less the gradients of
// the image and of the frozen layer's weight.
START_TEST(flops_of_a_step) {
    Arena *a = arena_new();
    int64_t first = 4 * 6 * 6 * 8 * 27, second = 4 * 6 * 6 * 8 * 72;
    int64_t last = 4 * 32 * 10;
    ck_assert_int_eq(network_cost(a, 1).flops,
                     2 * (2 * first + 2 * second + 3 * last));
    arena_free(a);
}
END_TEST

// ---- an update ----

// Its only batch, or the last; the others gather what is no update.
static Program program_of(Graph *train, Graph *gather, int accumulate,
                          Stage *stage) {
    *stage = (Stage){.train = train, .accumulate = gather};
    return (Program){
        .recipe.accumulate = accumulate, .stage = stage, .num_stages = 1};
}

START_TEST(an_update_is_all_of_its_batches) {
    static const char gathering[] =
        "graph accumulate (primitive, typed, grouped; act = f16) {\n"
        "%0 = input {name = \"a\"} : f32[4,5]\n"
        "%1 = input {name = \"b\"} : f32[5,7]\n"
        "%2 = matmul %0, %1 : f32[4,7] !g0\n}\n";
    Arena *a = arena_new();
    Graph *train = graph_from(a, step), *gather = graph_from(a, gathering);
    Step steps[] = {
        {.kind = STEP_TRAIN, .plan = graph_plan(train, false, a)},
        {.kind = STEP_ACCUMULATE, .plan = graph_plan(gather, false, a)}};
    Plan plan = {.step = steps, .num_steps = 2};
    Cost last = graph_cost(steps[0].plan), each = graph_cost(steps[1].plan);
    Cost all;
    Stage stage;
    Program p = program_of(train, NULL, 1, &stage);
    ck_assert(update_cost(&p, &plan, &all));
    ck_assert_int_eq(all.launches, last.launches);
    p = program_of(train, gather, 5, &stage);
    ck_assert(update_cost(&p, &plan, &all));
    ck_assert_int_eq(all.launches, last.launches + 4);
    ck_assert_int_eq(all.flops, last.flops + 4 * 2 * 4 * 5 * 7);
    ck_assert_int_eq(all.bytes, last.bytes + 4 * each.bytes);
    ck_assert_int_eq(all.batch_bytes, last.batch_bytes + 4 * each.batch_bytes);
    arena_free(a);
}
END_TEST

START_TEST(what_cannot_be_counted_is_said) {
    static const char huge[] =
        "graph accumulate (primitive, typed, grouped; act = f16) {\n"
        "%0 = input {name = \"a\"} : f32[200000,200000]\n"
        "%1 = input {name = \"b\"} : f32[200000,200000]\n"
        "%2 = matmul %0, %1 : f32[200000,200000] !g0\n}\n";
    Arena *a = arena_new();
    Graph *train = graph_from(a, step), *gather = graph_from(a, huge);
    Step steps[] = {
        {.kind = STEP_TRAIN, .plan = graph_plan(train, false, a)},
        {.kind = STEP_ACCUMULATE, .plan = graph_plan(gather, false, a)}};
    Plan plan = {.step = steps, .num_steps = 2};
    Stage stage;
    Cost cost;
    Program p = program_of(train, gather, 500, &stage);
    ck_assert(update_cost(&p, &plan, &cost)); // 8e18
    p.recipe.accumulate = 600;
    ck_assert(!update_cost(&p, &plan, &cost)); // 9.6e18
    arena_free(a);
}
END_TEST

Suite *cost_suite(void) {
    Suite *s = suite_create("cost");
    TCase *t = tcase_create("cost");
    tcase_add_loop_test(t, contractions_count_products, 0,
                        (int)(sizeof products / sizeof *products));
    tcase_add_test(t, bytes_are_what_groups_read_and_write);
    tcase_add_test(t, bound_is_what_lives_at_once);
    tcase_add_test(t, sums_over_the_batch_are_not_batched);
    tcase_add_test(t, fusing_moves_less);
    tcase_add_test(t, flops_of_a_step);
    tcase_add_test(t, an_update_is_all_of_its_batches);
    tcase_add_test(t, what_cannot_be_counted_is_said);
    suite_add_tcase(s, t);
    return s;
}
