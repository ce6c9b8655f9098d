// Expansion: arithmetic, units, calls, paths of layers.
#include "tests/frontend/suites.h"

#include <string.h>

// ---- constants ----

static const struct {
    const char *text;
    double value;
} constants[] = {
    {"1 + 2 * 3", 7},    {"2 ^ 3 ^ 2", 512},         {"-2 ^ 2", -4},
    {"94%", 0.94},       {"512 MiB", 536870912},     {"2 KiB / 4", 512},
    {"f(3)", 12},        {"f(3, times=2)", 6},       {"twice(f, 1)", 16},
    {"g([1, 2, 3])", 6}, {"h(true) + h(false)", 11}, {"0.95^5", 0.7737809375},
    {"floor(-1.5)", -2},
    {"ceil(-1.5)", -1},
    {"floor(16777217.5)", 16777217},
    {"round(2.5)", 2},
    {"round(-3.5)", -4},
    {"round(0.49999999)", 0},
    {"max(0.5, -1)", 0.5},
    {"min(0.5, 3)", 0.5},
    {"max([1, 7, 3])", 7},
    {"min([4, 2, 3])", 2},
    {"maximum(1/3, 0)", 1.0 / 3},
    {"sum([1, 2, 4])", 7},
    {"len([1, 2] + [[3], 4])", 4},
    {"len([])", 0},
    {"([1, 2] + [3])[-1]", 3},
    {"if 2 > 1 { 3 } else { 4 }", 3},
    {"2 * if false { 3 } else if 1 > 2 { 4 } else { 5 } + 1", 11},
    {"if \"a\" == \"a\" { 1 } else { 2 }", 1},
    {"if \"a\" == \"b\" { 1 } else { 2 }", 2},
    {"if \"a\" != \"b\" { 1 } else { 2 }", 1},
    {"(if true { f } else { twice })(3)", 12},
    {"sum([2 * i + 1 for i in range(4) if i != 2])", 11},
    {"sum([a * b for a, b in [[1, 2], [3, 4]]])", 14},
    {"sum([sum([i * j for j in range(i)]) for i in range(4)])", 11},
    {"len([i for i in range(9) if i > 9])", 0},
    {"parts(5)[0]", 2},
    {"second(5)", 3},
    {"divisible(33.6)", 32},
    {"divisible(4)", 8},
    {"divisible(10.5)", 16},
};

// The value is the channel count of the first convolution, scaled.
START_TEST(constant_values) {
    Arena *a = arena_new();
    const char *text = arena_format(
        a,
        "fn f(x, times=4) = x * times\n"
        "fn twice(f, x) = f(f(x))\n"
        "fn g(list) {\n  sum = 0\n  for v in list { sum = sum + v }\n  sum\n}\n"
        "fn h(big) {\n  if big { 10 } else { 1 }\n}\n"
        "fn parts(x) {\n  [floor(x / 2), ceil(x / 2)]\n}\n"
        "fn second(x) {\n  _, b = parts(x)\n  b\n}\n"
        "fn divisible(v, d=8) {\n  n = max(d, floor((v + d/2) / d) * d)\n"
        "  if n < 0.9 * v { n + d } else { n }\n}\n"
        "let value = %s\n"
        "model M(image: u8[N, 4, 4, 1]) -> f32[N, 2] {\n"
        "  image |> scale(value + 0 * (f(1) + twice(f, 1) + g([1]) + h(true)))"
        " |> flatten |> linear(2)\n}\n"
        "train M { data = synthetic(); batch = 1; epochs = 1\n"
        "loss = sum(cross_entropy(output, label)); optimizer = sgd(lr=1) }\n",
        constants[_i].text);
    Loaded l = load_text(text);
    ck_assert_str_eq(codes_of(&l), "");
    const Graph *g = l.program->stage[0].train;
    NodeId n = 0;
    while (g->node[n].op != OP_mul)
        n++;
    const Node *factor = &g->node[g->node[n].arg[0]];
    if (factor->op != OP_constant)
        factor = &g->node[g->node[n].arg[1]];
    ck_assert_double_eq_tol(node_attr(factor, ATTR_values)->floats[0],
                            constants[_i].value, 1e-12);
    arena_free(l.arena);
    arena_free(a);
}
END_TEST

// ---- names ----

// The names of the parameters, in order.
static const char *parameters_of(Loaded *l) {
    Text t = text_new(l->arena);
    const Graph *g = l->program->stage[0].train;
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_param)
            text_add(&t, "%s%s", t.length ? " " : "",
                     node_text(&g->node[n], ATTR_name));
    return text_string(&t);
}

static const struct {
    const char *body, *names;
} paths[] = {
    {"image |> conv(2, 1) |> flatten |> linear(2, bias=false)",
     "conv_1.weight conv_1.bias linear_1.weight"},
    {"image |> conv(2, 1, bias=false) as stem |> conv(2, 1, bias=false)\n"
     "|> flatten |> linear(2, bias=false) as head",
     "stem.weight head.conv_1.weight head.linear_1.weight"},
    {"fn block(x) = x |> conv(2, 1, bias=false) as inner\n"
     "image |> block as a |> block |> block as b |> flatten\n"
     "|> linear(2, bias=false)",
     "a.inner.weight b.inner.weight b.inner_2.weight linear_1.weight"},
    {"h = image |> conv(1, 1, bias=false) as b_2\n"
     "h = h |> conv(1, 1, bias=false) as b\n"
     "h = h |> conv(1, 1, bias=false) as b\n"
     "h |> flatten |> linear(2, bias=false)",
     "b_2.weight b.weight b_3.weight linear_1.weight"},
    {"image |> conv(2, 1, bias=false) |> relu as stem |> flatten\n"
     "|> linear(2, bias=false) as linear_1 |> linear(2, bias=false)",
     "stem.weight linear_1.weight linear_2.weight"},
    {"h = image |> flatten |> linear(2, bias=false)\n"
     "h |> linear(2, bias=false) as linear_1",
     "linear_1.weight linear_1_2.weight"},
    {"fn f(x) = x |> linear(2, bias=false)\n"
     "image |> flatten |> f as head",
     "head.linear_1.weight"},
    {"fn f(x, layer) = x |> layer(2, bias=false) as inner\n"
     "image |> flatten |> f(linear)",
     "inner.weight"},
    {"image |> conv(2, 1, bias=false) |> batch_norm |> flatten\n"
     "|> linear(2, bias=false)",
     "conv_1.weight batch_norm_1.scale batch_norm_1.bias linear_1.weight"},
    {"h = [image |> conv(2, 1, bias=false) for i in range(2)] |> concat as a\n"
     "h |> flatten |> linear(2, bias=false)",
     "a.conv_1.weight a.conv_2.weight linear_1.weight"},
    {"image |> conv(2, 1, bias=false) |> batch_norm(scale=false) |> flatten\n"
     "|> linear(2, bias=false)",
     "conv_1.weight batch_norm_1.bias linear_1.weight"},
};

START_TEST(parameter_names) {
    Loaded l = load_model(paths[_i].body, "");
    ck_assert_str_eq(codes_of(&l), "");
    ck_assert_str_eq(parameters_of(&l), paths[_i].names);
    arena_free(l.arena);
}
END_TEST

// ---- shapes ----

static Type type_of_op(const Loaded *l, Op op) {
    const Graph *g = l->program->stage[0].train;
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == op)
            return *g->node[n].type;
    return (Type){.rank = -1};
}

static const struct {
    const char *layer;
    Op op;
    int64_t height, width, channels;
} shapes[] = {
    {"conv(3, 3)", OP_conv, 4, 4, 3},
    {"conv(3, 2)", OP_conv, 4, 4, 3},
    {"conv(3, 3, pad=0)", OP_conv, 2, 2, 3},
    {"conv(3, 3, pad=valid)", OP_conv, 2, 2, 3},
    {"conv(3, 3, stride=2)", OP_conv, 2, 2, 3},
    {"conv(3, [1, 3], pad=0)", OP_conv, 4, 2, 3},
    {"conv(3, 3, pad=[2, 1])", OP_conv, 6, 4, 3},
    {"conv(3, 1, pad=[1, 2, 3, 4])", OP_conv, 7, 11, 3},
    {"conv(3, 2, dilation=3)", OP_conv, 4, 4, 3},
    {"max_pool(2)", OP_max_pool, 2, 2, 1},
    {"max_pool(3, stride=1, pad=1)", OP_max_pool, 4, 4, 1},
    {"avg_pool([2, 4])", OP_avg_pool, 2, 1, 1},
    {"max_pool(3)", OP_max_pool, 1, 1, 1},
};

START_TEST(window_shapes) {
    Arena *a = arena_new();
    Loaded l = load_model(arena_format(a, "image |> %s |> flatten |> linear(2)",
                                       shapes[_i].layer),
                          "");
    ck_assert_str_eq(codes_of(&l), "");
    Type t = type_of_op(&l, shapes[_i].op);
    ck_assert_int_eq(t.dim[1], shapes[_i].height);
    ck_assert_int_eq(t.dim[2], shapes[_i].width);
    ck_assert_int_eq(t.dim[3], shapes[_i].channels);
    arena_free(l.arena);
    arena_free(a);
}
END_TEST

// ---- errors without a golden case ----

static const struct {
    const char *body, *keys, *codes;
} mistakes[] = {
    {"a = image\na", "", "E0310"},
    {"for c in 3 { image |> relu }\nimage", "", "E0301 E0310"},
    {"if 1 { image } else { image }", "", "E0301"},
    {"h = [image, image]\nh", "", "E0301"},
    {"a, b = [image, image, image]\na |> linear(b)", "", "E0319"},
    {"for i, j in [[1, 2], 3, 4] { k = i + j }\nimage", "", "E0301 E0310"},
    {"h = [gone for i in range(3)]\nconcat(h + h)", "", "E0201"},
    {"h = [image for i in gone if i > 1]\nconcat(h)", "", "E0201"},
    {"h = [image for i in range(3) if gone]\nconcat(h)", "", "E0201"},
    {"h = if gone { image } else { image }\nh |> relu", "", "E0201"},
    {"image + \"a\"", "", "E0316"},
    {"image |> flatten |> linear(2) |> relu |> missing |> gone", "",
     "E0201 E0201"},
    {"with precision(f16) { image }", "", "E0405"},
    {"image @ image", "", "E0312"},
    {"image |> flatten |> linear(2, bias=1)", "", "E0301"},
    {"image |> flatten |> linear(\"2\")", "", "E0301"},
    {"image |> flatten |> linear(2)", "spare = 1", "E0402"},
    {"image |> flatten |> linear(2)", "steps = 100", "E0403"},
    {"image |> flatten |> linear(2)", "seed = -1", "E0405"},
    {"image |> flatten |> linear(2)", "precision = f8", "E0405"},
    {"image |> flatten |> linear(2)", "eval = 1", "E0405"},
    {"image |> flatten |> linear(2)", "eval every 0.5 step", "E0405"},
    {"image |> flatten |> linear(2)", "checkpoint every 1 epoch keep 0",
     "E0405"},
    {"image |> flatten |> linear(2)", "input = data.test", "E0201"},
    {"image |> flatten |> linear(2)", "input = 3", "E0301"},
    {"image |> flatten |> linear(2)",
     "input = data.train |> random_crop(8, pad=2)", "E0313"},
    {"image |> flatten |> linear(2)", "input = data.train |> cutout(5)",
     "E0313"},
    {"image |> flatten |> linear(2)",
     "input = data.train |> random_crop(4, pad=4, mode=reflect)", "E0306"},
};

START_TEST(mistakes_have_codes) {
    Loaded l = load_model(mistakes[_i].body, mistakes[_i].keys);
    ck_assert_ptr_null(l.program);
    ck_assert_str_eq(codes_of(&l), mistakes[_i].codes);
    arena_free(l.arena);
}
END_TEST

START_TEST(warnings_do_not_stop) {
    Loaded l = load_model("image |> conv(4, 1) |> batch_norm |> flatten\n"
                          "|> linear(2)",
                          "precision = mixed(bf16)");
    ck_assert_str_eq(codes_of(&l), "W0602 W0601");
    ck_assert_ptr_nonnull(l.program);
    ck_assert_int_eq(l.diags.warnings, 2);
    arena_free(l.arena);
    l = load_model(
        "image |> conv(4, 1) |> dropout(0.1) |> batch_norm |> flatten\n"
        "|> linear(2)",
        "");
    ck_assert_str_eq(codes_of(&l), "");
    ck_assert_int_eq(l.diags.errors, 0);
    arena_free(l.arena);
}
END_TEST

// No warning about the output's channels, nor about a single one.
static const struct {
    const char *body, *codes;
} padded[] = {
    {"image |> conv(6, 1) |> conv(2, 1) |> global_avg_pool", "W0602"},
    {"image |> conv(8, 1) |> conv(2, 1, bias=false) |> resize(4)\n"
     "|> global_avg_pool",
     ""},
    {"h = image |> conv(8, 1)\n"
     "h * sigmoid(conv(h, 1, 1)) |> conv(2, 1) |> global_avg_pool",
     ""},
    {"h = image |> conv(8, 1)\n"
     "conv(h, 2, 1) + conv(h, 2, 3) |> global_max_pool",
     ""},
    {"h = image |> conv(2, 1)\n"
     "h * h |> conv(8, 1) |> conv(2, 1) |> global_avg_pool",
     "W0602"},
};

START_TEST(heads_have_their_channels) {
    Loaded l = load_model(padded[_i].body, "precision = f16");
    ck_assert_str_eq(codes_of(&l), padded[_i].codes);
    ck_assert_ptr_nonnull(l.program);
    arena_free(l.arena);
}
END_TEST

Suite *expand_suite(void) {
    Suite *s = suite_create("expand");
    TCase *t = tcase_create("expand");
    tcase_add_loop_test(t, constant_values, 0,
                        sizeof constants / sizeof constants[0]);
    tcase_add_loop_test(t, parameter_names, 0, sizeof paths / sizeof paths[0]);
    tcase_add_loop_test(t, window_shapes, 0, sizeof shapes / sizeof shapes[0]);
    tcase_add_loop_test(t, mistakes_have_codes, 0,
                        sizeof mistakes / sizeof mistakes[0]);
    tcase_add_test(t, warnings_do_not_stop);
    tcase_add_loop_test(t, heads_have_their_channels, 0,
                        sizeof padded / sizeof padded[0]);
    suite_add_tcase(s, t);
    return s;
}
