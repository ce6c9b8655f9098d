// JSON: any bytes become a valid string of JSON, whole or in pieces.
#define _POSIX_C_SOURCE 200809L // open_memstream

#include "base/json.h"
#include "base/text.h"
#include "tests/base/suites.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

START_TEST(escapes) {
    static const struct {
        const char *string, *escaped;
    } known[] = {
        {"a\"b\\c\n\x01", "a\\\"b\\\\c\\u000a\\u0001"},
        {"\x7f\xc2\x9b\xe2\x80\xae\xff\xc3\xa9",
         "\\u007f\\u009b\\u202e\\ufffd\xc3\xa9"},
    };
    char to[64];
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        size_t length = strlen(known[i].string);
        ck_assert_uint_eq(json_escape(to, sizeof to, known[i].string, length),
                          length);
        ck_assert_str_eq(to, known[i].escaped);
    }
}
END_TEST

START_TEST(a_short_buffer_has_whole_characters) {
    char to[16];
    ck_assert_uint_eq(json_escape(to, sizeof to, "\n\n\n\n", 4), 2);
    ck_assert_str_eq(to, "\\u000a\\u000a");
}
END_TEST

// Longer than any buffer of the writer, with an escape at every place.
START_TEST(a_long_string_is_whole) {
    enum { LENGTH = 3000 };
    Arena *a = arena_new();
    Text text = text_new(a);
    char string[LENGTH + 1] = {0}, *file = NULL;
    size_t length;
    FILE *f = open_memstream(&file, &length);
    for (int i = 0; i < LENGTH; i++)
        string[i] = i % 7 ? 'a' : '"';
    json_string(&text, string);
    json_put_string(f, string);
    fclose(f);
    ck_assert_uint_eq(length, LENGTH + (LENGTH + 6) / 7 + 2);
    ck_assert_str_eq(text_string(&text), file);
    free(file);
    arena_free(a);
}
END_TEST

START_TEST(no_word_for_infinity) {
    Arena *a = arena_new();
    Text t = text_new(a);
    json_number(&t, "a", INFINITY);
    json_number(&t, "b", 0.5);
    json_numbers(&t, "c", (const double[]){1, NAN}, 2);
    json_text(&t, "d", NULL);
    ck_assert_str_eq(text_string(&t), ", \"a\": null, \"b\": 0.5, "
                                      "\"c\": [1, null], \"d\": null");
    arena_free(a);
}
END_TEST

Suite *json_suite(void) {
    Suite *s = suite_create("json");
    TCase *t = tcase_create("json");
    tcase_add_test(t, escapes);
    tcase_add_test(t, a_short_buffer_has_whole_characters);
    tcase_add_test(t, a_long_string_is_whole);
    tcase_add_test(t, no_word_for_infinity);
    suite_add_tcase(s, t);
    return s;
}
