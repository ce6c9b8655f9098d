// Sums of shards and of ranks on the CUDA device, on the stand-in for the
// driver: the bits of the host.
#define _XOPEN_SOURCE 700

#include "runtime/cuda/launch/launch.h"
#include "runtime/distributed/distributed.h"
#include "runtime/host/host.h"
#include "tests/runtime/cuda/suites.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// The memory of a shard's terms and of ten levels, from AT on.
enum { AT = 40960, MAX_TERMS = 11, COUNT = 3001, BYTES = 4 * COUNT };
enum { ARENA = AT + MAX_TERMS * BYTES };

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
    for (int i = 0; i < MAX_TERMS * COUNT; i++)
        f[i] = ldexpf((float)rand() / (float)RAND_MAX - 0.5f, rand() % 30);
}

// Adds terms of both arenas, in place of the first of them or not, and compares
// all memory.
static void compare(RtDevice *d, int terms, size_t count, bool in_place) {
    static char host[ARENA], gpu[ARENA];
    size_t from[MAX_TERMS], to = AT + (in_place ? 0 : 10 * BYTES);
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
        for (int terms = 0; terms < MAX_TERMS; terms++) {
            compare(d, terms, count[i], false);
            compare(d, terms, count[i], true);
        }
    d->close(d);
}
END_TEST

// Terms of `ranks` ranks of `count` elements each.
static void compare_ranks(RtDevice *d, const RtFunction *f, int ranks,
                          int count) {
    static float host[ARENA / 4], gpu[ARENA / 4], sum[COUNT];
    RtCuda *c = rt_cuda_of(d);
    CUdeviceptr to = c->arena, terms = c->arena + AT;
    CUdeviceptr end = to + (size_t)count * sizeof(float);
    void *argument[] = {&to, &end, &terms, &count, &ranks};
    fill((char *)host);
    d->write(d, 0, host, ARENA);
    ck_assert_int_eq(c->cu.launch(f->function, 3, 1, 1, RT_BUILTIN_THREADS, 1,
                                  1, 0, c->stream, argument, NULL),
                     CUDA_SUCCESS);
    d->read(d, gpu, 0, ARENA);
    rt_ranks_sum(host + AT / 4, (size_t)count, ranks, (size_t)count, sum);
    ck_assert_msg(memcmp(sum, gpu, (size_t)count * sizeof *sum) == 0,
                  "%d ranks of %d elements differ", ranks, count);
}

START_TEST(sums_of_ranks_are_a_tree) {
    static const int ranks[] = {1, 2, 3, 5, 6, 7, 8, 12, 31, 100, 1024};
    RtError e;
    RtDevice *d = open_device();
    const RtFunction *f =
        rt_builtin_load(&rt_cuda_of(d)->builtins, RT_SUM_RANKS, &e);
    ck_assert_msg(f != NULL, "%s", e.text);
    for (size_t i = 0; i < sizeof ranks / sizeof ranks[0]; i++)
        compare_ranks(d, f, ranks[i], ranks[i] < 10 ? COUNT : 29);
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
    tcase_add_test(c, sums_of_ranks_are_a_tree);
    tcase_add_exit_test(c, a_sum_that_fails_ends_it, EXIT_DEVICE);
    suite_add_tcase(s, c);
    return s;
}
