// Untrusted text, as a terminal shows it.
#include "base/terminal.h"
#include "tests/base/suites.h"

#include <string.h>

static const struct {
    const char *text, *shown;
} cases[] = {
    {"plain, \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \xd7\x90",
     "plain, \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \xd7\x90"},
    {"a\nb\tc\r", "a\\x0ab\\x09c\\x0d"},
    {"\x1b[31m\x7f", "\\x1b[31m\\x7f"},
    {"\xc2\x80\xc2\x9b\xc2\x9f\xc2\xa0", "\\u0080\\u009b\\u009f\xc2\xa0"},
    {"\xe2\x80\xaa\xe2\x80\xae\xe2\x81\xa6\xe2\x81\xa9",
     "\\u202a\\u202e\\u2066\\u2069"},
    {"\xd8\x9c\xe2\x80\x8e\xe2\x80\x8f", "\\u061c\\u200e\\u200f"},
    {"\xe2\x80\xa9\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa",
     "\xe2\x80\xa9\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa"},
    // Invalid UTF-8: a lone continuation, a truncated or overlong sequence, a
    // code point past the last.
    {"\x9b\xff", "\\x9b\\xff"},
    {"\xe2\x80", "\\xe2\\x80"},
    {"\xc1\x9b\xe0\x82\x9b", "\\xc1\\x9b\\xe0\\x82\\x9b"},
    {"\xf0\x80\x82\x9b", "\\xf0\\x80\\x82\\x9b"},
    {"\xed\xa0\x80\xf4\x90\x80\x80", "\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80"},
};

START_TEST(nothing_steers_it) {
    char shown[100];
    terminal_text(shown, sizeof shown, cases[_i].text);
    ck_assert_str_eq(shown, cases[_i].shown);
    // Escaped text is unchanged.
    terminal_text(shown, sizeof shown, cases[_i].shown);
    ck_assert_str_eq(shown, cases[_i].shown);
}
END_TEST

// No character is truncated.
START_TEST(there_may_be_no_room) {
    char shown[8];
    terminal_text(shown, 5, "ab\x1b");
    ck_assert_str_eq(shown, "ab");
    terminal_text(shown, 4, "ab\xe2\x82\xac");
    ck_assert_str_eq(shown, "ab");
    terminal_text(shown, 1, "a");
    ck_assert_str_eq(shown, "");
}
END_TEST

START_TEST(bidi_controls_change_the_order) {
    ck_assert(terminal_reorders("\xe2\x80\xae", 3));
    ck_assert(terminal_reorders("\xe2\x81\xa7", 3));
    ck_assert(!terminal_reorders("\xe2\x80\x8f", 3));
    ck_assert(!terminal_reorders("\xd7\x90", 2));
    ck_assert(!terminal_reorders("a", 1));
}
END_TEST

Suite *terminal_suite(void) {
    Suite *s = suite_create("terminal");
    TCase *t = tcase_create("terminal");
    tcase_add_loop_test(t, nothing_steers_it, 0,
                        sizeof cases / sizeof cases[0]);
    tcase_add_test(t, there_may_be_no_room);
    tcase_add_test(t, bidi_controls_change_the_order);
    suite_add_tcase(s, t);
    return s;
}
