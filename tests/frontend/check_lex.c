// Tokens: kinds, values and spans, and invalid characters.
#include "frontend/text/lex.h"
#include "tests/frontend/suites.h"

#include <string.h>

typedef struct {
    Arena *arena;
    Diagnostics diags;
    const Token *token;
    int count;
} Tokens;

static Tokens tokens_of(const char *text) {
    Tokens t = {.arena = arena_new()};
    t.diags = diag_new(t.arena);
    const Source *s = source_new(t.arena, "t.net", text, strlen(text));
    t.token = lex(t.arena, atoms_new(t.arena), s, &t.diags, &t.count);
    return t;
}

static void expect_kinds(const char *text, const TokenKind *kind, int count) {
    Tokens t = tokens_of(text);
    ck_assert_int_eq(t.count, count + 1);
    for (int i = 0; i < count; i++)
        ck_assert_msg(t.token[i].kind == kind[i], "token %d of %s", i, text);
    ck_assert_int_eq(t.token[count].kind, TOKEN_END);
    arena_free(t.arena);
}

START_TEST(longest_punctuation_wins) {
    const TokenKind kind[] = {TOKEN_NAME,  TOKEN_PIPE,     TOKEN_NAME,
                              TOKEN_LESS,  TOKEN_AT_MOST,  TOKEN_ASSIGN,
                              TOKEN_EQUAL, TOKEN_ARROW,    TOKEN_MINUS,
                              TOKEN_MORE,  TOKEN_AT_LEAST, TOKEN_DIFFERS};
    expect_kinds("a|>b < <= = == -> - > >= !=", kind, 12);
}
END_TEST

START_TEST(keywords_are_whole_words) {
    const TokenKind kind[] = {TOKEN_FN,   TOKEN_NAME, TOKEN_FOR,
                              TOKEN_NAME, TOKEN_TRUE, TOKEN_AS};
    expect_kinds("fn fns for _for true as", kind, 6);
}
END_TEST

START_TEST(numbers) {
    Tokens t = tokens_of("12 0.5 1e-3 2.5E2 5epoch 94%");
    const double value[] = {12, 0.5, 1e-3, 250};
    for (int i = 0; i < 4; i++)
        ck_assert_double_eq(t.token[i].number, value[i]);
    ck_assert_double_eq(t.token[4].number, 5);
    ck_assert_str_eq(t.token[5].text, "epoch");
    ck_assert_int_eq(t.token[7].kind, TOKEN_PERCENT);
    ck_assert_int_eq(t.diags.errors, 0);
    arena_free(t.arena);
}
END_TEST

START_TEST(strings_resolve_two_escapes) {
    Tokens t = tokens_of("\"a \\\"b\\\" \\\\ # c\"");
    ck_assert_int_eq(t.count, 2);
    ck_assert_str_eq(t.token[0].text, "a \"b\" \\ # c");
    arena_free(t.arena);
}
END_TEST

START_TEST(equal_names_are_one_pointer) {
    Tokens t = tokens_of("alpha beta alpha");
    ck_assert_ptr_eq(t.token[0].text, t.token[2].text);
    ck_assert_ptr_ne(t.token[0].text, t.token[1].text);
    arena_free(t.arena);
}
END_TEST

START_TEST(lines_and_places) {
    Tokens t = tokens_of("a b # c\n\n  d");
    ck_assert(t.token[0].first && !t.token[1].first && t.token[2].first);
    LineColumn p =
        source_line_column(t.token[2].at.source, t.token[2].at.start);
    ck_assert_int_eq(p.line, 3);
    ck_assert_int_eq(p.column, 3);
    arena_free(t.arena);
}
END_TEST

START_TEST(columns_count_characters) {
    Tokens t = tokens_of("\"\xc3\xa4\xc3\xb6\" x");
    LineColumn p =
        source_line_column(t.token[1].at.source, t.token[1].at.start);
    ck_assert_int_eq(p.column, 6);
    arena_free(t.arena);
}
END_TEST

static const struct {
    const char *text, *code;
} mistakes[] = {
    {"a $ b", "E0101"},    {"\x01", "E0101"},     {"\xff\xfe", "E0101"},
    {"a // b", "E0101"},   {"'x'", "E0101"},      {"\"abc", "E0102"},
    {"\"a\\n\"", "E0102"}, {"\"a\tb\"", "E0102"}, {"1e999", "E0103"},
};

START_TEST(mistakes_have_codes) {
    Tokens t = tokens_of(mistakes[_i].text);
    ck_assert_int_ge(t.diags.errors, 1);
    ck_assert_str_eq(t.diags.list[0]->code, mistakes[_i].code);
    arena_free(t.arena);
}
END_TEST

START_TEST(names_have_255_bytes_at_most) {
    char text[258];
    memset(text, 'n', sizeof text);
    text[255] = '\0';
    Tokens t = tokens_of(text);
    ck_assert_int_eq(t.diags.errors, 0);
    arena_free(t.arena);
    text[255] = 'n';
    text[256] = '\0';
    t = tokens_of(text);
    ck_assert_int_eq(t.diags.errors, 1);
    ck_assert_str_eq(t.diags.list[0]->code, "E0104");
    arena_free(t.arena);
}
END_TEST

// A C string would lose the rest of the text.
START_TEST(no_zero_byte_is_in_a_file) {
    static const char *const text[] = {"a # one\0two\nb", "a \0 b",
                                       "\"one\0two\""};
    static const size_t length[] = {13, 5, 9};
    Arena *a = arena_new();
    Diagnostics d = diag_new(a);
    int count;
    lex(a, atoms_new(a), source_new(a, "t.net", text[_i], length[_i]), &d,
        &count);
    ck_assert_int_eq(d.errors, 1);
    ck_assert_str_eq(d.list[0]->code, _i == 2 ? "E0102" : "E0101");
    arena_free(a);
}
END_TEST

Suite *lex_suite(void) {
    Suite *s = suite_create("lex");
    TCase *t = tcase_create("lex");
    tcase_add_test(t, longest_punctuation_wins);
    tcase_add_test(t, keywords_are_whole_words);
    tcase_add_test(t, numbers);
    tcase_add_test(t, strings_resolve_two_escapes);
    tcase_add_test(t, equal_names_are_one_pointer);
    tcase_add_test(t, lines_and_places);
    tcase_add_test(t, columns_count_characters);
    tcase_add_loop_test(t, mistakes_have_codes, 0,
                        sizeof mistakes / sizeof mistakes[0]);
    tcase_add_test(t, names_have_255_bytes_at_most);
    tcase_add_loop_test(t, no_zero_byte_is_in_a_file, 0, 3);
    suite_add_tcase(s, t);
    return s;
}
