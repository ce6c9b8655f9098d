// Diagnostics: their layout is documented; errors come before warnings;
// repetitions and the twenty-first are not shown.
#include "base/diag.h"
#include "tests/base/suites.h"

#include <string.h>

static const char model[] = "fn f(x) {\n"
                            "  a = x |> conv(128, stride=2)\n"
                            "\n"
                            "  a + x\n"
                            "}\n";

// The span of the first `word` in the model.
static Span span_of(const Source *s, const char *word) {
    uint32_t start = (uint32_t)(strstr(s->text, word) - s->text);
    return (Span){s, start, start + (uint32_t)strlen(word)};
}

START_TEST(shows_both_spans) {
    Arena *a = arena_new();
    Source *s = source_new(a, "m.net", model, strlen(model));
    Diagnostics d = diag_new(a);
    Diagnostic *e = diag_add(&d, DIAG_ERROR, "E0312", span_of(s, "x\n}"),
                             "cannot add tensors of %s shapes", "different");
    e->label[0].at.end = e->label[0].at.start + 1;
    diag_label(e, "and this is f32[N, 32, 32, 128]");
    diag_secondary(e, span_of(s, "conv(128, stride=2)"),
                   "this is f32[N, 16, %d]", 16);
    diag_note(e, "the heights differ: 16 and 32");
    Text t = text_new(a);
    diag_print(&t, &d);
    ck_assert_str_eq(text_string(&t),
                     "error[E0312]: cannot add tensors of different shapes\n"
                     " --> m.net:4:7\n"
                     "  |\n"
                     "2 |   a = x |> conv(128, stride=2)\n"
                     "  |            ------------------- this is f32[N, 16, "
                     "16]\n"
                     "  |\n"
                     "4 |   a + x\n"
                     "  |       ^ and this is f32[N, 32, 32, 128]\n"
                     "  |\n"
                     "  = the heights differ: 16 and 32\n"
                     "\n"
                     "1 error\n");
    arena_free(a);
}
END_TEST

// Without colours it equals a file's text.
START_TEST(colours_change_no_text) {
    Arena *a = arena_new();
    Source *s = source_new(a, "m.net", model, strlen(model));
    Diagnostics d = diag_new(a);
    Diagnostic *e = diag_add(&d, DIAG_ERROR, "E0312", span_of(s, "+"), "no");
    diag_secondary(e, span_of(s, "conv"), "here");
    Text plain = text_new(a), color = text_new(a), bare = text_new(a);
    diag_print(&plain, &d);
    d.color = true;
    diag_print(&color, &d);
    for (const char *c = text_string(&color); *c != '\0'; c++)
        if (*c == '\033')
            c += strcspn(c, "m");
        else
            text_bytes(&bare, c, 1);
    ck_assert_str_eq(text_string(&bare), text_string(&plain));
    ck_assert_uint_gt(color.length, plain.length);
    arena_free(a);
}
END_TEST

START_TEST(repetition_is_dropped) {
    Arena *a = arena_new();
    Source *s = source_new(a, "m.net", model, strlen(model));
    Diagnostics d = diag_new(a);
    for (int i = 0; i < 3; i++)
        diag_add(&d, DIAG_ERROR, "E0001", span_of(s, "conv"), "no");
    ck_assert_int_eq(d.count, 1);
    ck_assert_int_eq(d.errors, 1);
    diag_add(&d, DIAG_WARNING, "W0001", span_of(s, "conv"), "hm");
    ck_assert_int_eq(d.count, 2);
    ck_assert_int_eq(d.warnings, 1);
    arena_free(a);
}
END_TEST

// Adds `errors` and `warnings`, alternating while both remain.
static Diagnostics mixed(Arena *a, const Source *s, int errors, int warnings) {
    Diagnostics d = diag_new(a);
    for (int i = 0; i < errors || i < warnings; i++) {
        Span at = {s, (uint32_t)i, (uint32_t)i + 1};
        if (i < warnings)
            diag_add(&d, DIAG_WARNING, "W0001", at, "warning %d", i);
        if (i < errors)
            diag_add(&d, DIAG_ERROR, "E0001", at, "error %d", i);
    }
    return d;
}

static int occurrences(const char *text, const char *word) {
    int count = 0;
    for (; (text = strstr(text, word)) != NULL; text++)
        count++;
    return count;
}

START_TEST(errors_come_before_warnings) {
    Arena *a = arena_new();
    Source *s = source_new(a, "m.net", model, strlen(model));
    Diagnostics d = mixed(a, s, 2, 3);
    Text people = text_new(a), programs = text_new(a);
    diag_print(&people, &d);
    diag_json(&programs, &d);
    ck_assert(strstr(text_string(&people), "error 1") <
              strstr(text_string(&people), "warning 0"));
    ck_assert(strstr(text_string(&programs), "error 1") <
              strstr(text_string(&programs), "warning 0"));
    ck_assert_int_eq(occurrences(text_string(&programs), "\n"), 5);
    arena_free(a);
}
END_TEST

static const struct {
    int errors, warnings;
    const char *last; // line
} counts[] = {
    {1, 0, "\n1 error\n"},
    {2, 1, "\n2 errors, 1 warning\n"},
    {0, 3, "\n3 warnings\n"},
    {MAX_SHOWN, 0, "\n20 errors\n"},
    {MAX_SHOWN + 5, 1, "\n25 errors (20 shown), 1 warning\n"},
    {MAX_COUNTED + 5, MAX_SHOWN + 1,
     "\nat least 100 errors (20 shown), 21 warnings (20 shown)\n"},
};

START_TEST(last_line_counts) {
    Arena *a = arena_new();
    static const char text[2 * MAX_COUNTED] = "";
    Source *s = source_new(a, "m.net", text, sizeof text);
    Diagnostics d = mixed(a, s, counts[_i].errors, counts[_i].warnings);
    Text t = text_new(a);
    diag_print(&t, &d);
    const char *last = counts[_i].last, *all = text_string(&t);
    ck_assert_str_eq(all + t.length - strlen(last), last);
    int errors = counts[_i].errors;
    ck_assert_int_eq(occurrences(all, "error[E0001]"),
                     errors < MAX_SHOWN ? errors : MAX_SHOWN);
    ck_assert_int_eq(d.truncated, errors > MAX_COUNTED);
    arena_free(a);
}
END_TEST

START_TEST(nothing_counts_nothing) {
    Arena *a = arena_new();
    Diagnostics d = diag_new(a);
    Text t = text_new(a);
    diag_print(&t, &d);
    ck_assert_uint_eq(t.length, 0);
    arena_free(a);
}
END_TEST

START_TEST(json_is_one_line_each) {
    Arena *a = arena_new();
    Source *s = source_new(a, "m.net", model, strlen(model));
    Diagnostics d = diag_new(a);
    diag_add(&d, DIAG_ERROR, "E0001", span_of(s, "conv"), "a \"word\"\n");
    diag_add(&d, DIAG_ERROR, "E0002", (Span){0}, "nowhere");
    Text t = text_new(a);
    diag_json(&t, &d);
    const char *text = text_string(&t), *second = strchr(text, '\n');
    ck_assert_ptr_nonnull(strstr(text, "a \\\"word\\\"\\u000a"));
    ck_assert_ptr_nonnull(strstr(text, "\"E0001\""));
    ck_assert_ptr_nonnull(second);
    ck_assert(second[1] == '{');
    ck_assert(text[t.length - 1] == '\n');
    ck_assert(strchr(second + 1, '\n') == text + t.length - 1);
    arena_free(a);
}
END_TEST

// Underlines stay aligned, with any bytes in a file and its name.
START_TEST(nothing_steers_the_terminal) {
    static const char odd[] = "a\xc2\x9b\x1b = \xe2\x80\xae\xff here";
    Arena *a = arena_new();
    Source *s = source_new(a, "m\x1b.net", odd, strlen(odd));
    Diagnostics d = diag_new(a);
    uint32_t at = (uint32_t)(strstr(odd, "here") - odd);
    Diagnostic *e =
        diag_add(&d, DIAG_ERROR, "E0001", (Span){s, at, at + 4}, "no \xc2\x9b");
    diag_secondary(e, (Span){s, at - 5, at - 2}, "\x07");
    diag_note(e, "a\nb");
    Text t = text_new(a), json = text_new(a);
    diag_print(&t, &d);
    ck_assert_str_eq(text_string(&t), "error[E0001]: no \\u009b\n"
                                      " --> m\\x1b.net:1:10\n"
                                      "  |\n"
                                      "1 | a\\u009b\\x1b = \\u202e\\xff here\n"
                                      "  |                          ^^^^\n"
                                      "  |               ------ \\x07\n"
                                      "  |\n"
                                      "  = a\\x0ab\n"
                                      "\n"
                                      "1 error\n");
    diag_json(&json, &d);
    ck_assert_ptr_nonnull(strstr(text_string(&json), "\"no \\u009b\""));
    ck_assert_ptr_nonnull(strstr(text_string(&json), "\"m\\u001b.net\""));
    ck_assert_ptr_nonnull(strstr(text_string(&json), "\"a\\u000ab\""));
    arena_free(a);
}
END_TEST

Suite *diag_suite(void) {
    Suite *s = suite_create("diag");
    TCase *t = tcase_create("diag");
    tcase_add_test(t, shows_both_spans);
    tcase_add_test(t, colours_change_no_text);
    tcase_add_test(t, repetition_is_dropped);
    tcase_add_test(t, errors_come_before_warnings);
    tcase_add_loop_test(t, last_line_counts, 0,
                        sizeof counts / sizeof counts[0]);
    tcase_add_test(t, nothing_counts_nothing);
    tcase_add_test(t, json_is_one_line_each);
    tcase_add_test(t, nothing_steers_the_terminal);
    suite_add_tcase(s, t);
    return s;
}
