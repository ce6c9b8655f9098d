// Options: how words become options, values and operands.
#include "base/options.h"
#include "tests/base/suites.h"

#include <string.h>

typedef struct {
    bool fast;
    const char *out, *path, *level;
} Given;

#define AT(field) offsetof(Given, field)

static const Option table[] = {
    {"fast", NULL, &option_flag, AT(fast), 0, 0, 0, "a b", ""},
    {"out", "PATH", &option_text, AT(out), 0, 0, 'o', "a", ""},
    {"path", "[=PATH]", &option_text, AT(path), 0, 0, 0, NULL, ""},
    {"level", "0|1", &option_text, AT(level), 0, 1, 'O', NULL, ""},
    {.name = NULL},
};

// Words, the steps that take them, and the last value.
static const struct {
    const char *word[4];
    OptionStep step[4];
    const char *value;
} line[] = {
    {{"--fast", "x"}, {OPTION_TAKEN, OPTION_OPERAND}, "x"},
    {{"--fast=yes"}, {OPTION_TAKES_NONE}, "yes"},
    {{"--out", "--fast"}, {OPTION_TAKEN}, "--fast"},
    {{"--out=", "x"}, {OPTION_TAKEN, OPTION_OPERAND}, "x"},
    {{"--out"}, {OPTION_NEEDS_VALUE}, NULL},
    {{"-o", "x"}, {OPTION_TAKEN}, "x"},
    {{"-ox"}, {OPTION_OPERAND}, "-ox"},
    {{"-O1"}, {OPTION_TAKEN}, "1"},
    {{"-O"}, {OPTION_OPERAND}, "-O"},
    {{"--path", "x"}, {OPTION_TAKEN, OPTION_OPERAND}, "x"},
    {{"--path=x"}, {OPTION_TAKEN}, "x"},
    {{"--pat=x"}, {OPTION_UNKNOWN}, NULL},
    {{"--paths"}, {OPTION_UNKNOWN}, NULL},
    {{"--", "-"}, {OPTION_OPERAND, OPTION_OPERAND}, "-"},
};

START_TEST(words_become_steps) {
    OptionReader r = {.table = table, .word = (char **)line[_i].word};
    while (r.count < 4 && line[_i].word[r.count] != NULL)
        r.count++;
    for (int i = 0; i < 4 && line[_i].step[i] != OPTION_END; i++)
        ck_assert_int_eq(option_step(&r), line[_i].step[i]);
    if (line[_i].value != NULL)
        ck_assert_str_eq(r.value, line[_i].value);
    ck_assert_int_eq(r.count, line[_i].step[0] == OPTION_UNKNOWN);
}
END_TEST

START_TEST(a_command_has_its_own_options) {
    char *word[] = {"--out=x"};
    OptionReader r = {.table = table, .command = "b", .word = word, .count = 1};
    ck_assert_int_eq(option_step(&r), OPTION_UNKNOWN);
    r.command = "a";
    ck_assert_int_eq(option_step(&r), OPTION_TAKEN);
    ck_assert(!option_suits(&table[0], "ab"));
    Nearest near = nearest_to("oot");
    options_offer(table, "b", &near);
    ck_assert_ptr_null(near.best);
    options_offer(table, "a", &near);
    ck_assert_str_eq(near.best, "out");
}
END_TEST

START_TEST(numbers_have_a_range) {
    const OptionKind steps = {"a number of steps", NULL};
    Option o = {.kind = &steps, .least = 1, .most = 9};
    int64_t value;
    char expected[OPTION_ROOM];
    ck_assert(option_whole(&o, "9", &value) && value == 9);
    ck_assert(!option_whole(&o, "0", &value));
    ck_assert(!option_whole(&o, "10", &value));
    ck_assert(!option_whole(&o, " 9", &value));
    ck_assert(!option_whole(&o, "9x", &value));
    ck_assert(!option_whole(&o, "", &value));
    option_expected(&o, expected);
    ck_assert_str_eq(expected, "a number of steps from 1 to 9");
    o.most = 0;
    ck_assert(option_whole(&o, "9223372036854775807", &value));
    ck_assert(!option_whole(&o, "9223372036854775808", &value));
    option_expected(&o, expected);
    ck_assert_str_eq(expected, "a number of steps from 1");
}
END_TEST

START_TEST(options_have_a_form) {
    char to[OPTION_ROOM];
    option_form(&table[0], '=', to);
    ck_assert_str_eq(to, "--fast");
    option_form(&table[1], '=', to);
    ck_assert_str_eq(to, "--out=PATH");
    option_form(&table[2], '=', to);
    ck_assert_str_eq(to, "--path[=PATH]");
    option_name("--out=x", to);
    ck_assert_str_eq(to, "out");
}
END_TEST

Suite *options_suite(void) {
    Suite *s = suite_create("options");
    TCase *t = tcase_create("options");
    tcase_add_loop_test(t, words_become_steps, 0, sizeof line / sizeof *line);
    tcase_add_test(t, a_command_has_its_own_options);
    tcase_add_test(t, numbers_have_a_range);
    tcase_add_test(t, options_have_a_form);
    suite_add_tcase(s, t);
    return s;
}
