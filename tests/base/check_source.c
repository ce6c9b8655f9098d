// Sources: lines and columns of offsets, and files that cannot be read.
#define _POSIX_C_SOURCE 200809L
#include "base/source.h"
#include "tests/base/suites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static Source *source_of(Arena *a, const char *text) {
    return source_new(a, "some/where/x.net", text, strlen(text));
}

START_TEST(places) {
    Arena *a = arena_new();
    Source *s = source_of(a, "ab\n\ncde");
    static const int expected[][2] = {{1, 1}, {1, 2}, {1, 3}, {2, 1},
                                      {3, 1}, {3, 2}, {3, 3}, {3, 4}};
    for (uint32_t i = 0; i < 8; i++) {
        LineColumn p = source_line_column(s, i);
        ck_assert_int_eq(p.line, expected[i][0]);
        ck_assert_int_eq(p.column, expected[i][1]);
    }
    ck_assert_str_eq(s->name, "x.net");
    arena_free(a);
}
END_TEST

START_TEST(columns_are_characters) {
    Arena *a = arena_new();
    Source *s = source_of(a, "\xc3\xa9\xe2\x82\xac x");
    ck_assert_int_eq(source_line_column(s, 2).column, 2);
    ck_assert_int_eq(source_line_column(s, 5).column, 3);
    arena_free(a);
}
END_TEST

START_TEST(lines) {
    Arena *a = arena_new();
    Source *s = source_of(a, "one\ntwo\nthree");
    size_t length;
    const char *line = source_line(s, 2, &length);
    ck_assert_uint_eq(length, 3);
    ck_assert_int_eq(strncmp(line, "two", 3), 0);
    line = source_line(s, 3, &length);
    ck_assert_uint_eq(length, 5);
    ck_assert_int_eq(strncmp(line, "three", 5), 0);
    arena_free(a);
}
END_TEST

START_TEST(reads_a_file) {
    Arena *a = arena_new();
    char path[] = "/tmp/check_source-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_eq((int)write(fd, "a\nb\n", 4), 4);
    close(fd);
    const char *error = NULL;
    Source *s = source_read(a, path, 4, &error);
    ck_assert_ptr_nonnull(s);
    ck_assert_str_eq(s->text, "a\nb\n");
    ck_assert_ptr_null(source_read(a, path, 3, &error));
    ck_assert_ptr_nonnull(error);
    unlink(path);
    error = NULL;
    ck_assert_ptr_null(source_read(a, path, 4, &error));
    ck_assert_ptr_nonnull(error);
    arena_free(a);
}
END_TEST

START_TEST(spans_join) {
    Arena *a = arena_new();
    Source *s = source_of(a, "one two three");
    Span span = span_join((Span){s, 4, 7}, (Span){s, 8, 13});
    ck_assert_uint_eq(span.start, 4);
    ck_assert_uint_eq(span.end, 13);
    arena_free(a);
}
END_TEST

START_TEST(broken_utf8) {
    ck_assert_uint_eq(utf8_length("a", 1), 1);
    ck_assert_uint_eq(utf8_length("\xc3\xa9", 2), 2);
    ck_assert_uint_eq(utf8_length("\xc3", 1), 1);
    ck_assert_uint_eq(utf8_length("\xff\xff", 2), 1);
    ck_assert_uint_eq(utf8_length("\xe2\x82", 2), 1);
    ck_assert_uint_eq(utf8_length("\xf0\x9f\x98\x80", 4), 4);
}
END_TEST

Suite *source_suite(void) {
    Suite *s = suite_create("source");
    TCase *t = tcase_create("source");
    tcase_add_test(t, places);
    tcase_add_test(t, columns_are_characters);
    tcase_add_test(t, lines);
    tcase_add_test(t, reads_a_file);
    tcase_add_test(t, spans_join);
    tcase_add_test(t, broken_utf8);
    suite_add_tcase(s, t);
    return s;
}
