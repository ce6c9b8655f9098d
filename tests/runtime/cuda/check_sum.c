// Sums of shards on the CUDA device, on the stand-in for the driver: the bits
// of the host device.
#define _XOPEN_SOURCE 700

#include "runtime/host/host.h"
#include "tests/runtime/cuda/suites.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// The memory of a shard's terms and of ten levels, from AT on.
enum { AT = 40960, MOST_TERMS = 11, COUNT = 3001, BYTES = 4 * COUNT };
enum { ARENA = AT + MOST_TERMS * BYTES };

static RtPlan plan;

static RtDevice *open_device(void) {
    RtError e;
    plan = *counter.plan;
    plan.arena_bytes = ARENA;
    plan.partial = AT;
    plan.partial_bytes = BYTES;
    RtDevice *d = rt_cuda_open(&counter, &plan, 0, NULL, NULL, &e);
    ck_assert_msg(d != NULL, "%s", e.text);
    d->reserve(d);
    return d;
}

// Numbers whose sum depends on the order.
static void fill(char *arena) {
    float *f = (float *)(void *)(arena + AT);
    srand(1);
    for (int i = 0; i < MOST_TERMS * COUNT; i++)
        f[i] = ldexpf((float)rand() / (float)RAND_MAX - 0.5f, rand() % 30);
}

// Adds terms of both arenas, in place of the first of them or not, and compares
// all memory.
static void compare(RtDevice *d, int terms, size_t count, bool in_place) {
    static char host[ARENA], gpu[ARENA];
    size_t from[MOST_TERMS], to = AT + (in_place ? 0 : 10 * BYTES);
    for (int i = 0; i < terms; i++)
        from[i] = AT + (size_t)i * BYTES;
    memset(host, 0, sizeof host);
    fill(host);
    d->write(d, 0, host, ARENA);
    rt_sum(host, to, from, terms, count, 1);
    d->sum(d, to, from, terms, count);
    d->read(d, gpu, 0, ARENA);
    ck_assert_msg(memcmp(host, gpu, ARENA) == 0,
                  "%d terms of %zu elements differ", terms, count);
}

START_TEST(sums_have_the_bits_of_the_host) {
    static const size_t count[] = {1, 255, 1024, COUNT};
    RtDevice *d = open_device();
    for (int i = 0; i < 4; i++)
        for (int terms = 0; terms < MOST_TERMS; terms++) {
            compare(d, terms, count[i], false);
            compare(d, terms, count[i], true);
        }
    d->close(d);
}
END_TEST

// An error of the sum names it and ends the program.
START_TEST(a_sum_that_fails_ends_it) {
    setenv("SINTER_DOUBLE_FAIL", "cuLaunchKernel:1:719", 1);
    RtDevice *d = open_device();
    d->sum(d, AT, (size_t[]){AT, AT + BYTES}, 2, COUNT);
}
END_TEST

Suite *sum_suite(void) {
    Suite *s = suite_create("sum");
    TCase *c = tcase_create("sum");
    tcase_add_unchecked_fixture(c, cache_begin, cache_end);
    tcase_set_timeout(c, 60);
    tcase_add_test(c, sums_have_the_bits_of_the_host);
    tcase_add_exit_test(c, a_sum_that_fails_ends_it, EXIT_DEVICE);
    suite_add_tcase(s, c);
    return s;
}
