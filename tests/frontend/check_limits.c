// Limits: each at its value and one past it, and inputs that exceed resources.
// The test framework stops a test after a few seconds.
#define _XOPEN_SOURCE 700 // mkdtemp

#include "tests/frontend/suites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// Quadratic work would take hours for these files; linear work takes well under
// a second, several with sanitizers and other programs.
enum { MAX_SECONDS = 15 };

static void repeat(Text *t, const char *s, int count) {
    for (int i = 0; i < count; i++)
        text_bytes(t, s, strlen(s));
}

// Loads `before`, count times `open`, `middle`, count times `close`.
static Loaded load_nested(const char *before, const char *open,
                          const char *middle, const char *close, int count) {
    Arena *a = arena_new();
    Text t = text_new(a);
    text_add(&t, "%s", before);
    repeat(&t, open, count);
    text_add(&t, "%s", middle);
    repeat(&t, close, count);
    Loaded l = load_text(text_string(&t));
    arena_free(a);
    return l;
}

static void expect_codes(Loaded l, const char *codes) {
    ck_assert_str_eq(codes_of(&l), codes);
    arena_free(l.arena);
}

START_TEST(brackets) {
    expect_codes(load_nested("let a = ", "(", "1", ")", 200), "E0401");
    expect_codes(load_nested("let a = ", "(", "1", ")", 201), "E0111");
    expect_codes(load_nested("let a = ", "[", "1", "]", 201), "E0111");
    expect_codes(load_nested("let a = ", "- ", "1", "", 201), "E0111");
    expect_codes(load_nested("let a = ", "2 ^ ", "1", "", 201), "E0111");
}
END_TEST

START_TEST(blocks) {
    // The function's own block counts as one.
    const char *then = "} else if true { x ";
    expect_codes(load_nested("fn f(x) {", "if true {", "x", "}", 199), "E0110");
    expect_codes(load_nested("fn f(x) {", "if true {", "x", "}", 200),
                 "E0111 E0110");
    expect_codes(load_nested("fn f(x) { if true {", then, "} }", "", 198),
                 "E0401");
    expect_codes(load_nested("fn f(x) { if true {", then, "} }", "", 199),
                 "E0111");
}
END_TEST

START_TEST(branches) {
    const char *let = "let a = if true { 1 ", *open = "if true { ";
    const char *then = "} else if true { 1 ", *close = "} else { 2 }";
    expect_codes(load_nested("let a = ", open, "1", close, 200), "E0401");
    expect_codes(load_nested("let a = ", open, "1", close, 201), "E0111");
    expect_codes(load_nested(let, then, close, "", 199), "E0401");
    expect_codes(load_nested(let, then, close, "", 200), "E0111");
}
END_TEST

// A list of 2^40 items.
START_TEST(doubled_lists_are_stopped) {
    expect_codes(load_nested("let a0 = [1]\nfn f(x) {\n", "x = x + x\n",
                             "len(x)\n}\nlet b = f(a0)\n", "", 40),
                 "E0318");
}
END_TEST

START_TEST(operations) {
    expect_codes(load_nested("let a = 1", " + 1", "\n", "", 999), "E0401");
    expect_codes(load_nested("let a = 1", " + 1", "\n", "", 1000), "E0111");
    expect_codes(load_nested("let a = f", "()", "\n", "", 1000), "E0111");
}
END_TEST

START_TEST(file_size) {
    enum { MOST = 1 << 20 };
    char *text = malloc(MOST + 2);
    ck_assert_ptr_nonnull(text);
    memset(text, ' ', MOST + 1);
    text[MOST + 1] = '\0';
    expect_codes(load_text(text), "E0105");
    text[MOST] = '\0';
    expect_codes(load_text(text), "E0401");
    free(text);
}
END_TEST

// f60 calls f59 twice, and so on: 2^60 calls.
START_TEST(doubling_is_stopped) {
    Arena *a = arena_new();
    Text t = text_new(a);
    text_add(&t, "fn f0(x) = x\n");
    for (int i = 1; i <= 60; i++)
        text_add(&t, "fn f%d(x) = f%d(f%d(x))\n", i, i - 1, i - 1);
    text_add(&t, "let a = f60(1)\n");
    Loaded l = load_text(text_string(&t));
    expect_codes(l, "E0318");
    arena_free(a);
}
END_TEST

START_TEST(functions_that_call_themselves_are_stopped) {
    expect_codes(load_text("fn f(g) = g(g)\nlet a = f(f)\n"), "E0203");
}
END_TEST

START_TEST(assignments_are_linear) {
    Arena *a = arena_new();
    Text t = text_new(a);
    text_add(&t, "fn f(x) {\n");
    for (int i = 0; i < 80000; i++)
        text_add(&t, "a%d=x\n", i);
    text_add(&t, "x\n}\nlet b = f(1)\n");
    expect_codes(load_text(text_string(&t)), "E0318");
    arena_free(a);
}
END_TEST

START_TEST(a_hundred_are_counted) {
    Arena *a = arena_new();
    Text t = text_new(a);
    for (int i = 0; i < 1000; i++)
        text_add(&t, "let a%d = unknown%d\n", i, i);
    Loaded l = load_text(text_string(&t));
    ck_assert_int_eq(l.diags.count, MAX_COUNTED);
    ck_assert(l.diags.truncated);
    arena_free(l.arena);
    arena_free(a);
}
END_TEST

START_TEST(warnings_do_not_hide_mistakes) {
    Arena *a = arena_new();
    Text t = text_new(a);
    text_add(&t, "h = image\n");
    for (int i = 0; i < 30; i++)
        text_add(&t, "h = h |> conv(4, 1)\n");
    text_add(&t, "h |> flatten |> linear(2)");
    Loaded l = load_model(text_string(&t), "precision = bf16");
    ck_assert_int_eq(l.diags.warnings, 30);
    ck_assert_ptr_nonnull(l.program);
    arena_free(l.arena);
    text_add(&t, " |> missing");
    l = load_model(text_string(&t), "precision = bf16");
    ck_assert_int_eq(l.diags.errors, 1);
    arena_free(l.arena);
    arena_free(a);
}
END_TEST

// Sizes past a tensor's limit: an error that names the layer.
static const struct {
    const char *body, *code;
} sizes[] = {
    {"image |> conv(2147483647, 1) |> flatten |> linear(2)", "E0315"},
    {"image |> conv(2147483648, 1) |> flatten |> linear(2)", "E0306"},
    {"image |> conv(2, [2147483647, 2147483647]) |> flatten |> linear(2)",
     "E0315"},
    {"image |> conv(2, 5, dilation=2147483647) |> flatten |> linear(2)",
     "E0315"},
    {"image |> max_pool(2, pad=[2, 2]) |> flatten |> linear(2)", "E0315"},
    {"image |> conv(2, 3, stride=0) |> flatten |> linear(2)", "E0306"},
    {"image |> conv(-1, 3) |> flatten |> linear(2)", "E0306"},
    {"image |> flatten |> linear(1e30)", "E0306"},
    {"image |> conv(2, 9, pad=0) |> flatten |> linear(2)", "E0313"},
};

START_TEST(sizes_are_checked) {
    expect_codes(load_model(sizes[_i].body, ""), sizes[_i].code);
}
END_TEST

// The largest range in which offsets are uniform.
START_TEST(pads_of_crops) {
    static const char text[] =
        "import \"std/vision.net\" { random_crop, random_translate }\n"
        "model T(image: u8[N, 4, 4, 1]) -> f32[N, 2] {\n"
        "image |> flatten |> linear(2)\n}\n"
        "train T {\n data = synthetic()\n batch = 4\n epochs = 1\n"
        " input = data.train |> random_crop(4, pad=%d)"
        " |> random_translate(%d)\n"
        " loss = sum(cross_entropy(output, label))\n"
        " optimizer = sgd(lr=0.1)\n}\n";
    Arena *a = arena_new();
    expect_codes(load_text(arena_format(a, text, 65536, 65536)), "");
    expect_codes(load_text(arena_format(a, text, 65537, 65536)), "E0306");
    expect_codes(load_text(arena_format(a, text, 65536, 65537)), "E0306");
    arena_free(a);
}
END_TEST

START_TEST(names) {
    expect_codes(load_nested("let ", "a", " = 1\n", "", 255), "E0401");
    expect_codes(load_nested("let ", "a", " = 1\n", "", 256), "E0104");
}
END_TEST

START_TEST(ranks) {
    expect_codes(load_nested("fn f(x: f32[1", ", 1", "]) = x\n", "", 7),
                 "E0401");
    expect_codes(load_nested("fn f(x: f32[1", ", 1", "]) = x\n", "", 8),
                 "E0110");
}
END_TEST

// ---- imports ----

static void write_file(const char *path, const char *text) {
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    ck_assert_int_eq(fclose(f), 0);
}

// Writes `count` files into a new folder, loads one that imports them, or the
// first of a chain of imports, and removes them.
static void expect_imports(int count, bool nested, const char *codes) {
    Arena *a = arena_new();
    char *folder = arena_format(a, "/tmp/sinter-limits-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    Text t = text_new(a);
    for (int i = 0; i < count; i++) {
        const char *import = "";
        if (nested && i + 1 < count)
            import =
                arena_format(a, "import \"m%d.net\" { a%d }\n", i + 1, i + 1);
        write_file(arena_format(a, "%s/m%d.net", folder, i),
                   arena_format(a, "%slet a%d = 1\n", import, i));
        if (!nested || i == 0)
            text_add(&t, "import \"m%d.net\" { a%d }\n", i, i);
    }
    Loaded l = {.arena = arena_new()};
    l.diags = diag_new(l.arena);
    frontend_parse(l.arena, arena_format(a, "%s/main.net", folder),
                   text_string(&t), t.length, NULL, 0, &l.diags);
    for (int i = 0; i < count; i++)
        unlink(arena_format(a, "%s/m%d.net", folder, i));
    rmdir(folder);
    expect_codes(l, codes);
    arena_free(a);
}

START_TEST(imports) {
    expect_imports(256, false, "E0401");
    expect_imports(257, false, "E0206");
    expect_imports(32, true, "E0401");
    expect_imports(33, true, "E0206");
}
END_TEST

// ---- sizes of a graph ----

// A model whose graph grows by a constant for each of `rounds`, and by one node
// for each of `more`.
static Loaded load_grown(int64_t rounds, int64_t more) {
    Arena *a = arena_new();
    Text t = text_new(a);
    text_add(&t, "h = image |> flatten |> linear(1024)\nfor i in [");
    repeat(&t, "1, ", (int)rounds);
    text_add(&t, "] { h = concat(split(h, 1024, axis=1), axis=1) }\n"
                 "for i in [");
    repeat(&t, "1, ", (int)more);
    text_add(&t, "] { h = exp(h) }\nh |> linear(2)");
    Loaded l = load_model(text_string(&t), "");
    arena_free(a);
    return l;
}

static int64_t grown_count(int64_t rounds, int64_t more) {
    Loaded l = load_grown(rounds, more);
    ck_assert_msg(l.program != NULL, "%lld and %lld: %s", (long long)rounds,
                  (long long)more,
                  l.diags.count ? l.diags.list[0]->message : "");
    int64_t count = l.program->stage[0].train->count;
    arena_free(l.arena);
    return count;
}

// At the limit, and one node past it.
START_TEST(nodes) {
    enum { SINGLE = 20000 };
    int64_t least = grown_count(1, 0), each = grown_count(2, 0) - least;
    int64_t rounds = 1 + (MAX_PROGRAM_NODES - SINGLE - least) / each;
    int64_t more = MAX_PROGRAM_NODES - least - (rounds - 1) * each;
    ck_assert_int_eq(grown_count(rounds, more), MAX_PROGRAM_NODES);
    Loaded l = load_grown(rounds, more + 1);
    ck_assert_str_eq(codes_of(&l), "E0318");
    ck_assert_ptr_nonnull(l.diags.list[0]->label[0].at.source);
    arena_free(l.arena);
}
END_TEST

// Batch, height and width make 2^20 * 2^4 numbers of 4 bytes for a channel.
// Parts at their limit and one past it, filters with many elements, functions
// of many numbers.
static const struct {
    const char *body, *codes;
} greedy[] = {
    {"h = image |> pad([0, 4092, 0, 0])\n"
     "h = concat(split(h, 4096, axis=1), axis=2)\n"
     "h |> max_pool([1, 4096]) |> flatten |> linear(2)",
     ""},
    {"h = image |> pad([0, 4093, 0, 0])\n"
     "h = concat(split(h, 4097, axis=1), axis=2)\n"
     "h |> max_pool([1, 4096]) |> flatten |> linear(2)",
     "E0306"},
    {"image |> pad(3, mode=edge) |> pad(256, mode=edge) |> max_pool(100)"
     " |> flatten |> linear(2)",
     ""},
    {"image |> pad(257, mode=edge) |> flatten |> linear(2)", "E0306"},
    {"image |> pad(1000) |> conv(1, 900, pad=0, bias=false, init=whitening)\n"
     "|> flatten |> linear(2)",
     "E0318"},
    {"a = 1\nfor i in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] {\n"
     "for k in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] {\n"
     "for l in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] {\n"
     "for m in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] { a = sqrt(a + i * k * l * m)"
     " } } } }\nimage |> scale(a) |> flatten |> linear(2)",
     "E0318"},
};

START_TEST(large_models_are_stopped) {
    expect_codes(load_model(greedy[_i].body, ""), greedy[_i].codes);
}
END_TEST

START_TEST(bytes) {
    const char *body = "image |> conv(%d, 1) |> flatten |> linear(2)";
    Arena *a = arena_new();
    const Setting batch = {"batch", "1048576"};
    Loaded l = load_with(arena_format(a, body, 1048575), "", &batch, 1);
    ck_assert_ptr_nonnull(l.program);
    arena_free(l.arena);
    expect_codes(load_with(arena_format(a, body, 1048576), "", &batch, 1),
                 "E0315");
    arena_free(a);
}
END_TEST

// The limit holds for u8 and bool as the f32 that they become.
START_TEST(bytes_as_numbers) {
    static const char text[] =
        "model T(x: %s) -> f32[N, 2] {\n%s |> flatten |> linear(2)\n}\n"
        "train T {\n data = synthetic()\n batch = 10000\n epochs = 1\n"
        " loss = sum(cross_entropy(output, label))\n"
        " optimizer = sgd(lr=0.1)\n}\n";
    Arena *a = arena_new();
    expect_codes(load_text(arena_format(a, text, "u8[N, 30000, 30000, 3]",
                                        "x |> max_pool(30000)")),
                 "E0315");
    expect_codes(
        load_text(arena_format(a, text, "i32[N, 2]",
                               "one_hot(x, 2147483647) |> max(axes=1)")),
        "E0315");
    arena_free(a);
}
END_TEST

START_TEST(dimensions) {
    const char *body = "image |> conv(%s, 1, bias=false) |> global_avg_pool "
                       "|> slice(channels, 0, 2)";
    Arena *a = arena_new();
    Loaded l = load_model(arena_format(a, body, "2147475456"), "");
    ck_assert_ptr_nonnull(l.program);
    arena_free(l.arena);
    expect_codes(load_model(arena_format(a, body, "2147475457"), ""), "E0315");
    expect_codes(load_model(arena_format(a, body, "2147483648"), ""), "E0306");
    arena_free(a);
}
END_TEST

static Loaded load_knots(Arena *a, int count) {
    Text t = text_new(a);
    text_add(&t, "params \"*.weight\" { weight_decay = piecewise(0 step: 0");
    for (int i = 1; i < count; i++)
        text_add(&t, ", %d step: 0.1", i);
    text_add(&t, ") }");
    return load_model("image |> flatten |> linear(2)", text_string(&t));
}

START_TEST(knots) {
    Arena *a = arena_new();
    expect_codes(load_knots(a, 1000), "");
    expect_codes(load_knots(a, 1001), "E0319");
    arena_free(a);
}
END_TEST

// ---- large work ----

// Each takes a few hundred MiB.
static const struct {
    const char *before, *repeated, *after;
    int count;
} worst[] = {
    {"let a = ", "(", "", 500000},
    {"let a = [", "1,", "]\n", 500000},
    {"let a = ", "9", "\n", 1000000},
    {"let a = \"", "x", "\"\n", 1000000},
    {"", "\n", "", 1000000},
    {"", ";", "", 1000000},
    {"let a = 1", " |> f", "\n", 200000},
    {"fn f(x) = x\nlet b = f(", "1,", ")\n", 400000},
    {"fn f(x: f32[", "N,", "]) = x\n", 300000},
    {"import \"std/vision.net\" {", "flip_lr,", "}\n", 100000},
    {"let l = [", "1,",
     "]\nfn f(x) { for a in l { for b in l { } } \n x }\nlet q = f(1)\n",
     60000},
    {"model T(image: u8[N, 4, 4, 1]) -> f32[N, 2] {\nh = image",
     " |> relu as a",
     "\nh |> flatten |> linear(2)\n}\n"
     "train T {\n data = synthetic()\n batch = 4\n epochs = 1\n"
     " loss = sum(cross_entropy(output, label))\n"
     " optimizer = sgd(lr=0.1)\n}\n",
     60000},
};

START_TEST(long_files_end_soon) {
    Arena *a = arena_new(), *b = arena_new();
    Text t = text_new(a), layout = text_new(b);
    Diagnostics diags = diag_new(b);
    text_add(&t, "%s", worst[_i].before);
    repeat(&t, worst[_i].repeated, worst[_i].count);
    text_add(&t, "%s", worst[_i].after);
    clock_t start = clock();
    Loaded l = load_text(text_string(&t));
    frontend_format(b, "t.net", text_string(&t), t.length, &layout, &diags);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    ck_assert_msg(seconds < MAX_SECONDS, "%g seconds", seconds);
    ck_assert_uint_lt(arena_used(l.arena), 512u << 20);
    ck_assert_uint_lt(arena_used(b), 512u << 20);
    arena_free(l.arena);
    arena_free(b);
    arena_free(a);
}
END_TEST

// Random bytes, from a fixed sequence: no crash, and a report or a program.
START_TEST(any_bytes) {
    char text[200];
    uint32_t state = 12345;
    for (int round = 0; round < 2000; round++) {
        for (size_t i = 0; i < sizeof text - 1; i++) {
            state = state * 1664525u + 1013904223u;
            text[i] = (char)(state >> 24);
        }
        text[sizeof text - 1] = '\0';
        Loaded l = load_text(text);
        ck_assert(l.program == NULL && l.diags.errors > 0);
        arena_free(l.arena);
    }
}
END_TEST

Suite *limits_suite(void) {
    Suite *s = suite_create("limits");
    TCase *t = tcase_create("limits");
    tcase_set_timeout(t, 20);
    tcase_add_test(t, brackets);
    tcase_add_test(t, blocks);
    tcase_add_test(t, branches);
    tcase_add_test(t, doubled_lists_are_stopped);
    tcase_add_test(t, operations);
    tcase_add_test(t, file_size);
    tcase_add_test(t, doubling_is_stopped);
    tcase_add_test(t, functions_that_call_themselves_are_stopped);
    tcase_add_test(t, assignments_are_linear);
    tcase_add_test(t, a_hundred_are_counted);
    tcase_add_test(t, warnings_do_not_hide_mistakes);
    tcase_add_loop_test(t, sizes_are_checked, 0,
                        sizeof sizes / sizeof sizes[0]);
    tcase_add_test(t, pads_of_crops);
    tcase_add_test(t, names);
    tcase_add_test(t, ranks);
    tcase_add_test(t, imports);
    tcase_add_loop_test(t, large_models_are_stopped, 0,
                        sizeof greedy / sizeof greedy[0]);
    tcase_add_test(t, bytes);
    tcase_add_test(t, bytes_as_numbers);
    tcase_add_test(t, dimensions);
    tcase_add_test(t, knots);
    tcase_add_test(t, any_bytes);
    suite_add_tcase(s, t);
    TCase *large = tcase_create("large");
    tcase_set_tags(large, "times");
    tcase_set_timeout(large, 120);
    tcase_add_loop_test(large, long_files_end_soon, 0,
                        sizeof worst / sizeof worst[0]);
    tcase_add_test(large, nodes);
    suite_add_tcase(s, large);
    return s;
}
