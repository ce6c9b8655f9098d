// The loader delivers the shuffled order with any number of threads.
#define _POSIX_C_SOURCE 200809L

#include "runtime/data/data.h"
#include "tests/runtime/suites.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SAMPLES = 103, VALUES = 6 };

static int64_t broken = -1; // the sample that cannot be read
static int64_t slow = -1;   // the one that comes after two warnings
static atomic_bool stands;  // a thread waits for it
static FILE *heard;         // receives standard error meanwhile

static int lines_heard(void) {
    char text[2000];
    ssize_t length = pread(fileno(heard), text, sizeof text, 0);
    int lines = 0;
    for (ssize_t i = 0; i < length; i++)
        lines += text[i] == '\n';
    return lines;
}

static void wait_for_lines(int lines) {
    while (lines_heard() < lines)
        nanosleep(&(struct timespec){0, 10000000}, NULL);
}

static bool fetch(const RtSplit *s, int64_t sample, uint8_t *to, RtError *e) {
    for (size_t k = 0; k < s->image.values; k++)
        to[k] = (uint8_t)(sample * 7 + (int64_t)k);
    stands = sample == slow;
    if (sample == slow)
        wait_for_lines(lines_heard() + 2);
    if (sample == broken)
        return rt_fail(e, EXIT_DATA, "sample %lld is bad", (long long)sample);
    return true;
}

static RtSplit split_of(uint16_t label[SAMPLES]) {
    for (int i = 0; i < SAMPLES; i++)
        label[i] = (uint16_t)(i % 9 * 1000);
    return (RtSplit){.count = SAMPLES,
                     .image = {.values = VALUES},
                     .label = {.type = RT_FILE_U16,
                               .values = 1,
                               .step = 1,
                               .bytes = (uint8_t *)label},
                     .fetch = fetch};
}

// An epoch in batches of ten.
static RtLoaderConfig tens_of(const RtSplit *split, int threads) {
    return (RtLoaderConfig){.split = split,
                            .image = RT_U8,
                            .label = RT_I32,
                            .batch = 10,
                            .epoch_batches = 11,
                            .last = 11,
                            .threads = threads};
}

static double number(const void *from, RtType type, int64_t i) {
    return type == RT_F32   ? ((const float *)from)[i]
           : type == RT_I32 ? ((const int32_t *)from)[i]
                            : ((const uint8_t *)from)[i];
}

static void check_sample(const RtLoaderConfig *p, const RtBatch *b,
                         int64_t batch, int64_t i) {
    int64_t first = batch % p->epoch_batches * p->batch;
    int64_t valid = SAMPLES - first < p->batch ? SAMPLES - first : p->batch;
    int64_t position = (first + i) % SAMPLES;
    int64_t sample = p->shuffle ? rt_shuffled(p->seed, batch / p->epoch_batches,
                                              position, SAMPLES)
                                : position;
    ck_assert_int_eq(b->valid, valid);
    ck_assert_int_eq(b->index[i], sample);
    ck_assert(number(b->label, p->label, i) == (double)(sample % 9 * 1000));
    for (int k = 0; k < p->num_arrays; k++)
        for (int j = 0; j < 2; j++)
            ck_assert(number(b->array[k], p->array[k].shape.type, 2 * i + j) ==
                      (double)(sample + 1000 * k + j));
    for (int k = 0; k < VALUES; k++) {
        uint8_t want = (uint8_t)(sample * 7 + k);
        ck_assert(number(b->image, p->image, i * VALUES + k) == want);
    }
}

static void check_run(const RtLoaderConfig *p) {
    RtError e;
    double waited = 0;
    RtLoader *l = rt_loader_open(p, &e);
    ck_assert_ptr_nonnull(l);
    for (int64_t batch = p->first; batch < p->last; batch++) {
        const RtBatch *b = rt_loader_next(l, false, &waited, &e);
        ck_assert_ptr_nonnull(b);
        for (int64_t i = 0; i < p->batch; i++)
            check_sample(p, b, batch, i);
        rt_loader_release(l);
    }
    ck_assert(waited >= 0);
    rt_loader_close(l);
}

START_TEST(every_batch_of_five_epochs) {
    static const int64_t batches[] = {1, 7, 16, 50, 103, 200};
    uint16_t label[SAMPLES];
    RtSplit split = split_of(label);
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++)
        for (int dropped = 0; dropped < 2; dropped++) {
            int64_t n = batches[i], whole = SAMPLES / n;
            if (dropped && whole == 0)
                continue;
            RtLoaderConfig p = {.split = &split,
                                .batch = n,
                                .epoch_batches =
                                    dropped ? whole : (SAMPLES - 1) / n + 1,
                                .shuffle = true,
                                .seed = 11,
                                .image = batches[i] % 3 == 1   ? RT_U8
                                         : batches[i] % 3 == 2 ? RT_I32
                                                               : RT_F32,
                                .label = dropped ? RT_F32 : RT_I32,
                                .threads = _i};
            p.last = 5 * p.epoch_batches;
            check_run(&p);
        }
}
END_TEST

START_TEST(from_the_middle) {
    uint16_t label[SAMPLES];
    RtSplit split = split_of(label);
    RtLoaderConfig p = tens_of(&split, 2);
    p.first = 17;
    p.last = 40;
    p.shuffle = true;
    p.seed = 3;
    check_run(&p);
}
END_TEST

// ---- several ranks ----

enum { EPOCHS = 3 };

// Marks the samples that a rank takes from update `first` on, of so many
// batches each; in the last update of an epoch there are fewer.
static void mark_rank(RtLoaderConfig p, int64_t first,
                      int seen[EPOCHS][SAMPLES]) {
    int64_t updates = (p.epoch_batches - 1) / p.shards + 1;
    RtError e;
    double waited = 0;
    p.first = first / updates * p.epoch_batches + first % updates * p.shards;
    p.last = EPOCHS * p.epoch_batches;
    RtLoader *l = rt_loader_open(&p, &e);
    for (int64_t update = first; update < EPOCHS * updates; update++)
        for (int k = 0; k < p.own_shards; k++) {
            int each = p.own_shards / p.rounds; // shards
            int i = k % each * p.rounds + k / each;
            int64_t at = update % updates * p.shards + p.first_shard + i;
            if (at >= p.epoch_batches)
                continue;
            const RtBatch *b = rt_loader_next(l, false, &waited, &e);
            ck_assert_ptr_nonnull(b);
            ck_assert_int_eq(b->shard, p.first_shard + i);
            check_sample(&p, b, update / updates * p.epoch_batches + at, 0);
            for (int j = 0; j < b->valid; j++)
                seen[update / updates][b->index[j]]++;
            rt_loader_release(l);
        }
    rt_loader_close(l);
}

static void mark_ranks(RtLoaderConfig p, int ranks, int64_t first) {
    static int seen[EPOCHS][SAMPLES];
    memset(seen, 0, sizeof seen);
    p.shards = p.own_shards * ranks;
    for (int r = 0; r < ranks; r++) {
        p.first_shard = r * p.own_shards;
        mark_rank(p, first, seen);
    }
    for (int s = 0; s < SAMPLES; s++) {
        ck_assert_int_le(seen[0][s], 1);
        ck_assert(seen[0][s] == 1 || first > 0);
        ck_assert_int_eq(seen[1][s], 1);
        ck_assert_int_eq(seen[2][s], 1);
    }
}

// Ranks by batches of each in an update, for batches of an odd size; the last
// update of an epoch reaches all ranks, some or one.  In lockstep the batches
// of each shard are apart.
START_TEST(ranks_take_each_sample_once) {
    static const int ranks[] = {1, 2, 3, 5, 8};
    static const int each[][2] = {{1, 1}, {2, 1}, {2, 2}, {3, 1}, {6, 3}};
    static const int64_t batches[] = {1, 3, 5, 7, 16, 103, 150};
    uint16_t label[SAMPLES];
    RtSplit split = split_of(label);
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++)
        for (size_t k = 0; k < sizeof each / sizeof *each; k++) {
            RtLoaderConfig p = {.split = &split,
                                .batch = batches[i],
                                .epoch_batches = (SAMPLES - 1) / batches[i] + 1,
                                .own_shards = each[k][0],
                                .rounds = each[k][1],
                                .shuffle = true,
                                .seed = 5,
                                .image = RT_U8,
                                .label = RT_I32,
                                .threads = 2};
            for (int64_t first = 0; first < 2; first++)
                mark_ranks(p, ranks[_i], first);
        }
}
END_TEST

// Arrays of two kinds of numbers, two of each sample.
START_TEST(arrays_have_the_same_samples) {
    static const RtArray array[] = {
        {"meta", "input.meta", {RT_F32, 1, {2}}, 0, 0, false},
        {"box", "label.box", {RT_I32, 1, {2}}, 0, 0, false}};
    uint16_t label[SAMPLES], meta[2 * SAMPLES], box[2 * SAMPLES];
    RtSplit split = split_of(label);
    for (int i = 0; i < 2 * SAMPLES; i++) {
        meta[i] = (uint16_t)(i / 2 + i % 2);
        box[i] = (uint16_t)(meta[i] + 1000);
    }
    split.num_arrays = 2;
    split.array[0] = (RtColumn){RT_FILE_U16, 2, 2, (uint8_t *)meta, true};
    split.array[1] = (RtColumn){RT_FILE_U16, 2, 2, (uint8_t *)box, true};
    RtLoaderConfig p = tens_of(&split, 3);
    p.array = array;
    p.num_arrays = 2;
    p.last = 40;
    p.shuffle = true;
    p.seed = 5;
    check_run(&p);
}
END_TEST

START_TEST(in_file_order) {
    uint16_t label[SAMPLES];
    RtSplit split = split_of(label);
    RtLoaderConfig p = {.split = &split,
                        .image = RT_U8,
                        .label = RT_I32,
                        .batch = 25,
                        .epoch_batches = 5,
                        .last = 15,
                        .threads = 3};
    check_run(&p);
}
END_TEST

// Batches before the bad one are delivered; then each call returns the error,
// and the threads end.
START_TEST(an_error_reaches_the_caller) {
    uint16_t label[SAMPLES];
    RtSplit split = split_of(label);
    RtLoaderConfig p = tens_of(&split, _i);
    p.last = 1000;
    for (int i = 0; i < 400; i++) {
        broken = i * 17 % SAMPLES;
        RtError e = {0};
        double waited = 0;
        int taken = 0;
        RtLoader *l = rt_loader_open(&p, &e);
        ck_assert_ptr_nonnull(l);
        while (rt_loader_next(l, false, &waited, &e) != NULL) {
            rt_loader_release(l);
            taken++;
        }
        ck_assert_int_le(taken, (int)broken / 10);
        ck_assert_int_eq(e.status, EXIT_DATA);
        ck_assert_ptr_nonnull(strstr(e.text, "is bad"));
        ck_assert_ptr_null(rt_loader_next(l, false, &waited, &e));
        rt_loader_close(l);
    }
    broken = -1;
}
END_TEST

// The text on standard error while a first batch is loaded.
static void take_loudly(const RtLoaderConfig *p, char *said, size_t room) {
    RtError e;
    double waited = 0;
    int saved = dup(STDERR_FILENO);
    heard = tmpfile();
    ck_assert_ptr_nonnull(heard);
    ck_assert_int_ge(dup2(fileno(heard), STDERR_FILENO), 0);
    RtLoader *l = rt_loader_open(p, &e);
    const RtBatch *b = l != NULL ? rt_loader_next(l, false, &waited, &e) : NULL;
    ck_assert_int_ge(dup2(saved, STDERR_FILENO), 0);
    close(saved);
    ck_assert_ptr_nonnull(b);
    rt_loader_release(l);
    rt_loader_close(l);
    rewind(heard);
    said[fread(said, 1, room - 1, heard)] = '\0';
    fclose(heard);
}

// The loading thread waits for warnings, not for a time: a busy machine may
// start it after the first warning.
START_TEST(a_late_batch_gives_a_warning) {
    uint16_t label[SAMPLES];
    char said[2000];
    RtSplit split = split_of(label);
    RtLoaderConfig p = tens_of(&split, 1);
    p.first = 1;
    p.last = 2;
    take_loudly(&p, said, sizeof said);
    ck_assert_str_eq(said, "");
    slow = 13;
    p.warn_after = 0.25;
    take_loudly(&p, said, sizeof said);
    slow = -1;
    ck_assert_ptr_nonnull(strstr(said, "waiting for data for 0.25 s: "));
    ck_assert_ptr_nonnull(strstr(said, "waiting for data for 0.5 s: "));
    ck_assert_ptr_nonnull(strstr(said, "3 of 10 parts of batch 1 are loaded"));
}
END_TEST

// The loader is left: its thread returns only after the test.
START_TEST(a_batch_may_be_waited_for_no_longer) {
    uint16_t label[SAMPLES];
    RtSplit split = split_of(label);
    RtLoaderConfig p = tens_of(&split, 2);
    p.warn_after = 100;
    p.longest_wait = 0.3;
    RtError e;
    double waited = 0;
    heard = tmpfile(); // to which nothing is written
    ck_assert_ptr_nonnull(heard);
    slow = 24;
    RtLoader *l = rt_loader_open(&p, &e);
    ck_assert_ptr_nonnull(l);
    for (int i = 0; i < 2; i++) {
        ck_assert_ptr_nonnull(rt_loader_next(l, false, &waited, &e));
        rt_loader_release(l);
    }
    ck_assert(!rt_loader_stalled(l));
    ck_assert_ptr_null(rt_loader_next(l, false, &waited, &e));
    ck_assert(rt_loader_stalled(l));
    ck_assert(waited >= 0.3 && waited < 30);
    ck_assert_int_eq(e.status, EXIT_IO);
    ck_assert_ptr_nonnull(strstr(e.text, "no batch for 0.3 s: 9 of 10 "
                                         "parts of batch 2 are loaded"));
    ck_assert(!rt_loader_stop(l));
    ck_assert(!rt_loader_close(l));
}
END_TEST

// A loader that is stopped while a thread is in a file is left, too.
START_TEST(a_hanging_thread_is_left) {
    uint16_t label[SAMPLES];
    RtSplit split = split_of(label);
    RtLoaderConfig p = tens_of(&split, 1);
    RtError e;
    double waited = 0;
    heard = tmpfile();
    ck_assert_ptr_nonnull(heard);
    RtLoader *l = rt_loader_open(&p, &e);
    ck_assert_ptr_nonnull(rt_loader_next(l, false, &waited, &e));
    ck_assert(rt_loader_stop(l));
    ck_assert(rt_loader_close(l));
    slow = 14;
    l = rt_loader_open(&p, &e);
    while (!stands)
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    ck_assert(!rt_loader_stop(l));
    ck_assert(!rt_loader_close(l));
}
END_TEST

// Closed at any time: with waiting threads, working threads, and an unreleased
// batch.
START_TEST(closing_early) {
    uint16_t label[SAMPLES];
    RtSplit split = split_of(label);
    for (int round = 0; round < 200; round++) {
        RtLoaderConfig p = tens_of(&split, 1 + round % 4);
        p.last = round % 3 == 0 ? 2 : INT64_MAX;
        RtError e;
        double waited = 0;
        RtLoader *l = rt_loader_open(&p, &e);
        ck_assert_ptr_nonnull(l);
        for (int i = 0; i < round % 3; i++) {
            ck_assert_ptr_nonnull(rt_loader_next(l, false, &waited, &e));
            if (i == 0)
                rt_loader_release(l);
        }
        rt_loader_close(l);
    }
}
END_TEST

Suite *loader_suite(void) {
    Suite *s = suite_create("loader");
    TCase *t = tcase_create("loader");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, every_batch_of_five_epochs, 1, 5);
    tcase_add_test(t, from_the_middle);
    tcase_add_loop_test(t, ranks_take_each_sample_once, 0, 5);
    tcase_add_test(t, arrays_have_the_same_samples);
    tcase_add_test(t, in_file_order);
    tcase_add_loop_test(t, an_error_reaches_the_caller, 1, 5);
    tcase_add_test(t, a_late_batch_gives_a_warning);
    tcase_add_test(t, a_batch_may_be_waited_for_no_longer);
    tcase_add_test(t, a_hanging_thread_is_left);
    tcase_add_test(t, closing_early);
    suite_add_tcase(s, t);
    return s;
}
