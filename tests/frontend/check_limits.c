// Limits: each at its value and one past it, and inputs that ask for too much.
// The test framework stops a test that takes longer than a few seconds.
#include "tests/frontend/suites.h"

#include <stdlib.h>
#include <string.h>

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
    expect_codes(load_nested("let a = ", "(", "1", ")", 199), "E0401");
    expect_codes(load_nested("let a = ", "(", "1", ")", 200), "E0111");
    expect_codes(load_nested("let a = ", "[", "1", "]", 200), "E0111");
    expect_codes(load_nested("let a = ", "- ", "1", "", 200), "E0111");
    expect_codes(load_nested("let a = ", "2 ^ ", "1", "", 200), "E0111");
}
END_TEST

START_TEST(blocks) {
    expect_codes(load_nested("fn f(x) {", "if true {", "x", "}", 99), "E0110");
    expect_codes(load_nested("fn f(x) {", "if true {", "x", "}", 201),
                 "E0111 E0110");
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

START_TEST(twenty_are_shown) {
    Arena *a = arena_new();
    Text t = text_new(a);
    for (int i = 0; i < 1000; i++)
        text_add(&t, "let a%d = unknown%d\n", i, i);
    Loaded l = load_text(text_string(&t));
    ck_assert_int_eq(l.diags.count, MAX_DIAGNOSTICS);
    ck_assert(l.diags.more);
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
    ck_assert_int_eq(l.diags.warnings, MAX_DIAGNOSTICS);
    ck_assert_ptr_nonnull(l.program);
    arena_free(l.arena);
    text_add(&t, " |> missing");
    l = load_model(text_string(&t), "precision = bf16");
    ck_assert_int_eq(l.diags.errors, 1);
    arena_free(l.arena);
    arena_free(a);
}
END_TEST

// Sizes past what a tensor may have: an error that names the layer.
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
    {"image |> flatten |> linear(1e300)", "E0306"},
    {"image |> conv(2, 9, pad=0) |> flatten |> linear(2)", "E0313"},
};

START_TEST(sizes_are_checked) {
    expect_codes(load_model(sizes[_i].body, ""), sizes[_i].code);
}
END_TEST

// Bytes at random, from a fixed sequence: no crash, and a report or a program.
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
    tcase_add_test(t, operations);
    tcase_add_test(t, file_size);
    tcase_add_test(t, doubling_is_stopped);
    tcase_add_test(t, functions_that_call_themselves_are_stopped);
    tcase_add_test(t, assignments_are_linear);
    tcase_add_test(t, twenty_are_shown);
    tcase_add_test(t, warnings_do_not_hide_mistakes);
    tcase_add_loop_test(t, sizes_are_checked, 0,
                        sizeof sizes / sizeof sizes[0]);
    tcase_add_test(t, any_bytes);
    suite_add_tcase(s, t);
    return s;
}
