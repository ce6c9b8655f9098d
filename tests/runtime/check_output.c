// Streams whose reader is slow, stopped, or gone.
#define _POSIX_C_SOURCE 200809L

#include "runtime/runtime.h"
#include "tests/runtime/suites.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 100, LINES = 5000 }; // more than a pipe and a stream hold

static int ends[2];

static void open_pipe(void) {
    ck_assert_int_eq(pipe(ends), 0);
}

static void print_line(FILE *f, int number) {
    fprintf(f, "%0*d\n", LINE - 1, number);
    fflush(f);
}

// Reads lines from `first` on, until the end or another text, which is in
// `other`; returns the number of the next.
static int read_lines(FILE *f, int first, char other[LINE]) {
    char line[2 * LINE];
    *other = '\0';
    for (; fgets(line, sizeof line, f) != NULL; first++) {
        if (strlen(line) != LINE || atoi(line) != first) {
            snprintf(other, LINE, "%.*s", LINE - 1, line);
            break;
        }
    }
    return first;
}

typedef struct {
    int shown, left_out, after;
} Read;

static void *read_log(void *arg) {
    Read *r = arg;
    char other[LINE];
    FILE *f = fdopen(ends[0], "r");
    r->shown = read_lines(f, 0, other);
    ck_assert_msg(sscanf(other, "warning: %d lines left out here: no reader",
                         &r->left_out) == 1,
                  "%s", other);
    r->after =
        read_lines(f, r->shown + r->left_out, other) - r->shown - r->left_out;
    fclose(f);
    return NULL;
}

START_TEST(lines_that_nothing_reads_are_counted) {
    pthread_t reader;
    Read r = {0};
    open_pipe();
    ck_assert_int_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    close(ends[1]);
    rt_output_begin();
    double began = rt_seconds();
    for (int i = 0; i < LINES; i++)
        print_line(stderr, i);
    ck_assert(rt_seconds() - began < RT_READER_TIMEOUT / 2);
    ck_assert_int_eq(pthread_create(&reader, NULL, read_log, &r), 0);
    rt_output_end();
    print_line(stderr, LINES);
    print_line(stderr, LINES + 1);
    rt_output_end();
    close(STDERR_FILENO);
    pthread_join(reader, NULL);
    ck_assert_int_gt(r.shown, 65536 / LINE);
    ck_assert_int_eq(r.shown + r.left_out, LINES);
    ck_assert_int_eq(r.after, 2);
}
END_TEST

static void *read_late(void *arg) {
    char other[LINE];
    FILE *f = fdopen(ends[0], "r");
    nanosleep(&(struct timespec){.tv_sec = 2}, NULL);
    *(int *)arg = read_lines(f, 0, other);
    fclose(f);
    return NULL;
}

START_TEST(rows_wait_for_a_late_reader) {
    pthread_t reader;
    int read = 0;
    open_pipe();
    FILE *f = rt_output_open(ends[1]);
    ck_assert_int_eq(pthread_create(&reader, NULL, read_late, &read), 0);
    for (int i = 0; i < LINES; i++)
        print_line(f, i);
    ck_assert_int_eq(fclose(f), 0);
    pthread_join(reader, NULL);
    ck_assert_int_eq(read, LINES);
}
END_TEST

START_TEST(rows_that_nothing_reads_are_lost_with_an_error) {
    int kept = 0;
    open_pipe();
    FILE *f = rt_output_open(ends[1]);
    double began = rt_seconds();
    errno = 0;
    for (; !ferror(f) && kept < LINES; kept++)
        print_line(f, kept);
    ck_assert_int_eq(errno, ETIMEDOUT);
    ck_assert_int_gt(kept, 65536 / LINE);
    ck_assert_int_lt(kept, LINES);
    for (int i = 0; i < LINES; i++) // no more waiting
        print_line(f, i);
    double took = rt_seconds() - began;
    ck_assert_msg(took >= RT_READER_TIMEOUT && took < RT_READER_TIMEOUT + 5,
                  "%g", took);
    ck_assert_int_ne(fclose(f), 0);
    ck_assert_int_eq(errno, ETIMEDOUT);
}
END_TEST

// A signal would end the program.
START_TEST(a_reader_that_is_gone_is_an_error) {
    open_pipe();
    FILE *f = rt_output_open(ends[1]);
    close(ends[0]);
    ck_assert_int_gt(fprintf(f, "row\n"), 0);
    ck_assert_int_ne(fflush(f), 0);
    ck_assert_int_eq(errno, EPIPE);
    ck_assert_int_ne(fclose(f), 0);
    ck_assert_int_eq(errno, EPIPE);
}
END_TEST

// As its parent may have set it.
START_TEST(a_descriptor_that_does_not_wait_is_waited_for) {
    pthread_t reader;
    int read = 0;
    open_pipe();
    ck_assert_int_eq(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
    FILE *f = rt_output_open(ends[1]);
    ck_assert_int_eq(pthread_create(&reader, NULL, read_late, &read), 0);
    for (int i = 0; i < LINES; i++)
        print_line(f, i);
    ck_assert_int_eq(fclose(f), 0);
    pthread_join(reader, NULL);
    ck_assert_int_eq(read, LINES);
}
END_TEST

Suite *output_suite(void) {
    Suite *s = suite_create("output");
    TCase *c = tcase_create("output");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, lines_that_nothing_reads_are_counted);
    tcase_add_test(c, rows_wait_for_a_late_reader);
    tcase_add_test(c, rows_that_nothing_reads_are_lost_with_an_error);
    tcase_add_test(c, a_reader_that_is_gone_is_an_error);
    tcase_add_test(c, a_descriptor_that_does_not_wait_is_waited_for);
    suite_add_tcase(s, c);
    return s;
}
