// Signals: the run sees one that any thread received, and a later one ends it.
#define _POSIX_C_SOURCE 200809L

#include "runtime/runtime.h"
#include "tests/runtime/suites.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

static void *interrupt(void *number) {
    raise(*(int *)number);
    return NULL;
}

static void wait_until_caught(void) {
    while (rt_signals_caught() == 0)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

// A build with ThreadSanitizer also checks the access.
START_TEST(one_that_a_thread_takes_is_seen) {
    int number = SIGTERM;
    pthread_t thread;
    rt_signals_catch();
    ck_assert_int_eq(rt_signals_caught(), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, interrupt, &number), 0);
    wait_until_caught();
    ck_assert_int_eq(rt_signals_caught(), SIGTERM);
    pthread_join(thread, NULL);
}
END_TEST

// As timeout(1) sends it, to the program and to its group.
START_TEST(two_of_one_moment_are_one) {
    int number = SIGTERM;
    pthread_t thread;
    rt_signals_catch();
    raise(SIGTERM);
    raise(SIGTERM);
    ck_assert_int_eq(pthread_create(&thread, NULL, interrupt, &number), 0);
    pthread_join(thread, NULL);
    ck_assert_int_eq(rt_signals_caught(), SIGTERM);
}
END_TEST

START_TEST(a_later_one_ends_it) {
    int number = SIGINT;
    pthread_t thread;
    rt_signals_catch();
    raise(SIGTERM);
    ck_assert_int_eq(rt_signals_caught(), SIGTERM);
    nanosleep(&(struct timespec){.tv_nsec = 600000000}, NULL);
    pthread_create(&thread, NULL, interrupt, &number);
    pthread_join(thread, NULL);
}
END_TEST

Suite *signals_suite(void) {
    Suite *s = suite_create("signals");
    TCase *c = tcase_create("signals");
    tcase_add_test(c, one_that_a_thread_takes_is_seen);
    tcase_add_test(c, two_of_one_moment_are_one);
    tcase_add_test_raise_signal(c, a_later_one_ends_it, SIGINT);
    suite_add_tcase(s, c);
    return s;
}
