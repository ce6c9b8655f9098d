// Sums: a thread runs them one after another, and the rank waits for all.
#include "runtime/distributed/distributed.h"
#include "tests/runtime/suites.h"

#include <stdatomic.h>

// A back end that is done when it is asked for the third time; it records the
// buffers of sums in their order.
typedef struct {
    RtCollectives base;
    atomic_int started, finished, progress;
    atomic_bool waited, stuck; // stuck: until the rank waits
    size_t offset[256];
    int *flag, given; // the flag of a sum's rank
    bool fast;
} Fake;

enum { LOOKS = 3 };

static void fake_start(RtCollectives *c, const RtBuffer *b, size_t count,
                       int *flag, bool fast) {
    Fake *f = (Fake *)(void *)c;
    ck_assert_int_eq(f->started, f->finished); // one at a time
    f->offset[f->started++] = b->offset + count;
    f->flag = flag;
    f->given = *flag;
    f->progress = 0;
    f->fast = fast;
}

static void fake_end(Fake *f) {
    *f->flag = f->started; // as if a rank had that signal
    f->finished++;
}

static bool fake_progress(RtCollectives *c) {
    Fake *f = (Fake *)(void *)c;
    if (f->finished == f->started)
        return true;
    if (f->stuck || ++f->progress < LOOKS)
        return false;
    fake_end(f);
    return true;
}

static void fake_finish(RtCollectives *c) {
    Fake *f = (Fake *)(void *)c;
    f->waited = true;
    fake_end(f);
}

static Fake fake_new(bool stuck) {
    return (Fake){.base.start_sum = fake_start,
                  .base.progress = fake_progress,
                  .base.finish = fake_finish,
                  .stuck = stuck};
}

START_TEST(sums_run_in_their_order) {
    enum { COUNT = 200 }; // more than the queue holds
    Fake fake = fake_new(false);
    RtSums *s = rt_sums_new(&fake.base, true);
    int signal = -1;
    for (int i = 0; i < COUNT; i++)
        rt_sums_begin(s, &(RtBuffer){.offset = (size_t)i * 1000}, (size_t)i, i);
    rt_sums_finish(s, &signal);
    ck_assert_int_eq(fake.finished, COUNT);
    ck_assert_int_eq(signal, COUNT);
    ck_assert_int_eq(fake.given, COUNT - 1);
    ck_assert(fake.fast);
    for (int i = 0; i < COUNT; i++)
        ck_assert_uint_eq(fake.offset[i], (size_t)i * 1001);
    ck_assert(rt_sums_free(s));
}
END_TEST

// A sum that other ranks hold up goes on beside this rank, until it waits.
START_TEST(beginning_a_sum_does_not_wait) {
    Fake fake = fake_new(true);
    RtSums *s = rt_sums_new(&fake.base, false);
    int signal = -1;
    rt_sums_begin(s, &(RtBuffer){.offset = 0}, 1, 0);
    rt_sums_begin(s, &(RtBuffer){.offset = 1000}, 1, 0);
    ck_assert_int_eq(fake.finished, 0);
    rt_sums_finish(s, &signal);
    ck_assert(fake.waited);
    ck_assert_int_eq(fake.finished, 2);
    ck_assert_int_eq(signal, 2);
    // Nothing more: the signal of the last one stays.
    rt_sums_finish(s, &signal);
    ck_assert_int_eq(signal, 2);
    ck_assert(rt_sums_free(s));
}
END_TEST

START_TEST(a_sum_that_others_hold_up_is_left) {
    Fake fake = fake_new(true);
    RtSums *s = rt_sums_new(&fake.base, false);
    rt_sums_begin(s, &(RtBuffer){.offset = 0}, 1, 0);
    ck_assert(!rt_sums_free(s));
    fake.stuck = false;
    int signal;
    rt_sums_finish(s, &signal);
    ck_assert(rt_sums_free(s));
}
END_TEST

START_TEST(a_thread_without_sums_ends) {
    Fake fake = fake_new(false);
    RtSums *s = rt_sums_new(&fake.base, false);
    int signal = 7;
    rt_sums_finish(s, &signal);
    ck_assert_int_eq(signal, 7);
    ck_assert(rt_sums_free(s));
    ck_assert_int_eq(fake.started, 0);
}
END_TEST

Suite *sums_suite(void) {
    Suite *s = suite_create("sums");
    TCase *c = tcase_create("sums");
    tcase_add_test(c, sums_run_in_their_order);
    tcase_add_test(c, beginning_a_sum_does_not_wait);
    tcase_add_test(c, a_sum_that_others_hold_up_is_left);
    tcase_add_test(c, a_thread_without_sums_ends);
    suite_add_tcase(s, c);
    return s;
}
