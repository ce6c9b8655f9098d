// The steps of a run, and their order: stages, accumulated batches, averages,
// collection, and early ends.
//
// The steps are those of tiny.c, each of which also leaves a letter in a file.
#define _POSIX_C_SOURCE 200809L

#include "base/metrics.h"
#include "runtime/runtime.h"
#include "tests/runtime/place.h"
#include "tests/runtime/runs.h"
#include "tests/runtime/suites.h"
#include "tests/runtime/tiny.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_STEPS = 16, MAX_LETTERS = 4000 };

static void leave(char letter) {
    int fd = open("log", O_WRONLY | O_CREAT | O_APPEND, 0666);
    ck_assert_int_eq(write(fd, &letter, 1), 1);
    close(fd);
}

static int stop_after; // updates; 0: none

static void update(RtDevice *d, char letter) {
    static int updates;
    leave(letter);
    rt_step_run(tiny.plan, d, RT_TRAIN, 0);
    if (++updates == stop_after)
        raise(SIGTERM);
}

static void start(RtDevice *d) {
    leave('i');
    rt_step_run(tiny.plan, d, RT_INIT, 0);
}

static void first_stage(RtDevice *d) {
    update(d, '1');
}

static void second_stage(RtDevice *d) {
    update(d, '2');
}

static void third_stage(RtDevice *d) {
    update(d, '3');
}

static void accumulate(RtDevice *d) {
    (void)d;
    leave('g');
}

static void average(RtDevice *d) {
    (void)d;
    leave('a');
}

static void collect(RtDevice *d) {
    int32_t valid;
    const RtStep *train = rt_step_find(tiny.plan, RT_TRAIN, 0);
    d->read(d, &valid, train->input[2].offset, sizeof valid);
    leave(valid == TINY_BATCH ? 'c' : 'p');
}

static void test_quietly(RtDevice *d) {
    rt_step_run(tiny.plan, d, RT_EVAL, 0);
}

static void test(RtDevice *d) {
    leave('e');
    test_quietly(d);
}

static void before_tests(RtDevice *d) {
    (void)d;
    leave('b');
}

// A trainer of tiny's network with more steps.
typedef struct {
    RtTrainer trainer;
    RtPlan plan;
    RtStep step[MAX_STEPS];
} Course;

static void add(Course *c, RtStepKind kind, int stage,
                void (*run)(RtDevice *d)) {
    const RtStep *like = rt_step_find(tiny.plan, RT_TRAIN, 0);
    c->step[c->plan.num_steps++] = (RtStep){.kind = kind,
                                            .stage = stage,
                                            .run = run,
                                            .input = like->input,
                                            .num_inputs = like->num_inputs};
}

static void course_begin(Course *c) {
    *c = (Course){.trainer = tiny, .plan = *tiny.plan};
    c->trainer.plan = &c->plan;
    c->plan.step = c->step;
    c->plan.num_steps = 0;
    c->trainer.eval_every.count = 0;
    c->trainer.checkpoint_every = (RtTime){10, RT_STEPS};
    add(c, RT_INIT, 0, start);
    add(c, RT_TRAIN, 0, first_stage);
    add(c, RT_EVAL, 0, test_quietly);
}

static void read_log(char log[MAX_LETTERS]) {
    size_t length;
    uint8_t *bytes = place_read("log", &length);
    ck_assert_int_lt((int)length, MAX_LETTERS);
    memcpy(log, bytes, length);
    log[length] = '\0';
    free(bytes);
    unlink("log");
}

// Whether the log matches a pattern of letters and counts, such as "i1 g2".
static void expect_log(const char *pattern) {
    char log[MAX_LETTERS], want[MAX_LETTERS] = "";
    char letter;
    int count, used;
    read_log(log);
    for (; sscanf(pattern, " %c%d%n", &letter, &count, &used) == 2;
         pattern += used)
        for (size_t at = strlen(want); count-- > 0; at++)
            want[at] = letter;
    ck_assert_str_eq(log, want);
}

// ---- stages ----

static const RtTime stage_from[] = {
    {0, RT_STEPS}, {12, RT_STEPS}, {0.32, RT_EPOCHS}};

static void add_stages(Course *c) {
    add(c, RT_TRAIN, 1, second_stage);
    add(c, RT_TRAIN, 2, third_stage);
    c->trainer.stage_from = stage_from;
    c->trainer.num_stages = 3;
    c->trainer.length = (RtTime){40, RT_STEPS};
}

START_TEST(stages_follow_one_another) {
    Course c;
    course_begin(&c);
    add_stages(&c);
    ck_assert_int_eq(RUN(&c.trainer, "--out=r"), 0);
    expect_log("i1 112 220 38");
}
END_TEST

// A resumed run continues in its stage, with the same bits.
START_TEST(a_stopped_run_finds_its_stage) {
    static const int stops[] = {5, 11, 12, 13, 31, 32, 33};
    Course c;
    course_begin(&c);
    add_stages(&c);
    ck_assert_int_eq(RUN(&c.trainer, "--out=a"), 0);
    unlink("log");
    stop_after = stops[_i];
    ck_assert_int_eq(RUN(&c.trainer, "--out=b"), 128 + SIGTERM);
    stop_after = 0;
    ck_assert_int_eq(RUN(&c.trainer, "--out=b", "--resume"), 0);
    expect_log("i1 112 220 38");
    ck_assert(files_same("a/step-00000040.safetensors",
                         "b/step-00000040.safetensors"));
}
END_TEST

// Raises a signal at the n-th request for device times since the first test
// batch: one comes in the evaluation, and one after it.
static void (*true_times)(RtDevice *d, RtTimes *t);
static int times_left;

static void times_and_signal(RtDevice *d, RtTimes *t) {
    true_times(d, t);
    if (--times_left == 0)
        raise(SIGTERM);
}

static void test_and_watch(RtDevice *d) {
    test_quietly(d);
    if (d->times != times_and_signal) {
        true_times = d->times;
        d->times = times_and_signal;
    }
}

START_TEST(a_signal_behind_the_last_evaluation_leaves_its_result) {
    Course c;
    course_begin(&c);
    c.step[c.plan.num_steps - 1].run = test_and_watch;
    c.trainer.length = (RtTime){3, RT_STEPS};
    bool behind = _i == 1;
    times_left = 1 + behind;
    ck_assert_int_eq(RUN(&c.trainer, "--out=r"), 128 + SIGTERM);
    ck_assert_int_eq(run_times("out", "test accuracy "), behind);
    ck_assert_int_eq(run_times("err", "stopped at step 3 of 3"), !behind);
}
END_TEST

// Counts writes to the device between updates.
static void (*true_write)(RtDevice *d, size_t to, const void *from,
                          size_t bytes);
static long writes, reads;
static void (*true_read)(RtDevice *d, void *to, size_t from, size_t bytes);

static int64_t (*true_feed)(RtDevice *d, const RtPiece *piece, int count);

static void counting_write(RtDevice *d, size_t to, const void *from,
                           size_t bytes) {
    writes++;
    true_write(d, to, from, bytes);
}

static void counting_read(RtDevice *d, void *to, size_t from, size_t bytes) {
    reads++;
    true_read(d, to, from, bytes);
}

static int64_t counting_feed(RtDevice *d, const RtPiece *piece, int count) {
    writes += count;
    return true_feed(d, piece, count);
}

static void no_reserve(RtDevice *d) {
    (void)d;
    leave('!');
}

static void watch(RtDevice *d) {
    if (d->write != counting_write) {
        true_write = d->write;
        true_read = d->read;
        d->write = counting_write;
        d->read = counting_read;
        true_feed = d->submit_batch;
        d->submit_batch = counting_feed;
        d->reserve = no_reserve;
    }
    char seen[16];
    snprintf(seen, sizeof seen, "%ld%ld", writes, reads);
    for (char *s = seen; *s != '\0'; s++)
        leave(*s);
    writes = reads = 0;
}

static void watched_first(RtDevice *d) {
    watch(d);
    update(d, 'x');
}

static void watched_second(RtDevice *d) {
    watch(d);
    update(d, 'y');
}

// Between two steps only the three inputs of a batch are written, also at the
// start of a stage; reserve, which compiles kernels, is not called after the
// first step.
START_TEST(a_switch_copies_and_compiles_nothing) {
    Course c;
    course_begin(&c);
    c.plan.num_steps = 1;
    add(&c, RT_TRAIN, 0, watched_first);
    add(&c, RT_TRAIN, 1, watched_second);
    add(&c, RT_EVAL, 0, test_quietly);
    c.trainer.stage_from = stage_from;
    c.trainer.num_stages = 2;
    c.trainer.length = (RtTime){20, RT_STEPS};
    c.trainer.checkpoint_every.count = 0;
    ck_assert_int_eq(RUN(&c.trainer, "--out=r"), 0);
    char log[MAX_LETTERS], want[MAX_LETTERS] = "i00x";
    read_log(log);
    for (int i = 1; i < 20; i++)
        strcat(want, i < 12 ? "30x" : "30y");
    ck_assert_str_eq(log, want);
}
END_TEST

// ---- accumulated batches ----

START_TEST(an_update_takes_several_batches) {
    Course c;
    course_begin(&c);
    add(&c, RT_ACCUMULATE, 0, accumulate);
    c.trainer.accumulate = 4;
    c.trainer.length = (RtTime){26, RT_STEPS};
    c.trainer.checkpoint_every.count = 0;
    // 98 batches in an epoch: 24 updates of four and one of the rest.
    ck_assert_int_eq(RUN(&c.trainer, "--out=r", "--metrics=m"), 0);
    char log[MAX_LETTERS], want[MAX_LETTERS] = "i";
    read_log(log);
    for (int i = 0; i < 26; i++)
        strcat(want, i == 24 ? "g1" : "ggg1");
    ck_assert_str_eq(log, want);
    ck_assert(run_says("err", "25 steps of 4 x 32 in an epoch, 26 in all"));
    ck_assert(run_says("m", "\"epoch\":1,\"step\":25"));
}
END_TEST

// With drop_last every update is complete.
START_TEST(drop_last_drops_incomplete_updates) {
    Course c;
    course_begin(&c);
    add(&c, RT_ACCUMULATE, 0, accumulate);
    c.trainer.accumulate = 4;
    c.trainer.drop_last = true;
    c.trainer.length = (RtTime){1, RT_EPOCHS};
    c.trainer.checkpoint_every.count = 0;
    ck_assert_int_eq(RUN(&c.trainer, "--out=r"), 0);
    char log[MAX_LETTERS], want[MAX_LETTERS] = "i";
    read_log(log);
    for (int i = 0; i < TINY_EPOCH / 4; i++)
        strcat(want, "ggg1");
    ck_assert_str_eq(log, want);
}
END_TEST

START_TEST(a_stopped_run_accumulates_the_same_batches) {
    Course c;
    course_begin(&c);
    add(&c, RT_ACCUMULATE, 0, accumulate);
    c.trainer.accumulate = 3;
    c.trainer.length = (RtTime){38, RT_STEPS};
    ck_assert_int_eq(RUN(&c.trainer, "--out=a"), 0);
    stop_after = 32 + _i; // an epoch has 33 updates
    ck_assert_int_eq(RUN(&c.trainer, "--out=b"), 128 + SIGTERM);
    stop_after = 0;
    ck_assert_int_eq(RUN(&c.trainer, "--out=b", "--resume"), 0);
    ck_assert(files_same("a/step-00000038.safetensors",
                         "b/step-00000038.safetensors"));
}
END_TEST

// ---- averages ----

START_TEST(weights_are_averaged_when_it_is_due) {
    static const struct {
        RtTime from, every;
        bool each_step;
        const char *log;
    } cases[] = {
        // From the start: at once, then periodically, and at the end.
        {{0, RT_STEPS}, {4, RT_STEPS}, false, "i1 a1 14 a1 14 a1 12 a1"},
        {{0, RT_STEPS}, {5, RT_STEPS}, false, "i1 a1 15 a1 15 a1"},
        {{3, RT_STEPS}, {4, RT_STEPS}, false, "i1 13 a1 11 a1 14 a1 12 a1"},
        {{0.5, RT_SHARES}, {3, RT_STEPS}, false, "i1 15 a1 11 a1 13 a1 11 a1"},
        {{99, RT_STEPS}, {3, RT_STEPS}, false, "i1 110 a1"},
        // Averages of every step are part of the step, once averaging has
        // begun.
        {{0, RT_STEPS}, {1, RT_STEPS}, true, "i1 a1 110"},
        {{3, RT_STEPS}, {1, RT_STEPS}, true, "i1 110"},
    };
    Course c;
    course_begin(&c);
    add(&c, RT_AVERAGE, 0, average);
    c.trainer.length = (RtTime){10, RT_STEPS};
    c.trainer.average_from = cases[_i].from;
    c.trainer.average_every = cases[_i].every;
    c.trainer.averages_each_step = cases[_i].each_step;
    ck_assert_int_eq(RUN(&c.trainer, "--out=r"), 0);
    expect_log(cases[_i].log);
}
END_TEST

// Before averaging begins, the weights are evaluated.
START_TEST(an_early_evaluation_averages_and_prepares_first) {
    Course c;
    course_begin(&c);
    c.plan.num_steps = 1;
    add(&c, RT_TRAIN, 0, first_stage);
    add(&c, RT_AVERAGE, 0, average);
    add(&c, RT_PREPARE, 0, before_tests);
    add(&c, RT_EVAL, 0, test);
    c.trainer.length = (RtTime){10, RT_STEPS};
    c.trainer.eval_every = (RtTime){4, RT_STEPS};
    c.trainer.average_from = (RtTime){6, RT_STEPS};
    c.trainer.average_every = (RtTime){100, RT_STEPS};
    ck_assert_int_eq(RUN(&c.trainer, "--out=r"), 0);
    expect_log("i1 14 a1 b1 e10 12 a1 12 b1 e10 12 a1 b1 e10");
}
END_TEST

// ---- collection ----

START_TEST(samples_are_collected_before_the_start) {
    Course c;
    course_begin(&c);
    add(&c, RT_COLLECT, 0, collect);
    c.trainer.length = (RtTime){2, RT_STEPS};
    c.trainer.collect_samples = 3 * TINY_BATCH + _i;
    ck_assert_int_eq(RUN(&c.trainer, "--out=r"), 0);
    expect_log(_i == 0 ? "c3 i1 12" : "c3 p1 i1 12");
    ck_assert_int_eq(
        RUN(&c.trainer, "--out=r", "--resume=r/step-00000002.safetensors"), 0);
    ck_assert_int_ne(access("log", F_OK), 0);
}
END_TEST

// ---- early ends ----

START_TEST(a_run_ends_when_it_is_good_enough) {
    static const struct {
        RtStop stop;
        const char *says;
    } cases[] = {
        {{"loss", false, 1.2, {0, RT_STEPS}}, "loss is 1."},
        {{"accuracy", true, 0.3, {0, RT_STEPS}}, "accuracy is 0."},
        {{"perplexity", false, 3.5, {0, RT_STEPS}}, "perplexity is 3."},
    };
    RtTrainer t = tiny;
    t.eval_every = (RtTime){10, RT_STEPS};
    t.checkpoint_every.count = 0;
    t.stop = cases[_i].stop;
    t.metrics = 1u << METRIC_perplexity;
    ck_assert_int_eq(RUN(&t, "--out=r", "--metrics=m"), 0);
    ck_assert(run_says("err", "stopped at step "));
    ck_assert(run_says("err", cases[_i].says));
    ck_assert(run_says("out", "test accuracy"));
    ck_assert_int_eq(run_times("m", "\"stops\":true}\n"), 1);
    ck_assert_int_eq(place_count("r", "step-"), 1);
    ck_assert_int_eq(place_count("r", "step-00000245"), 0);
    // The same evaluation ends a run that resumes there.
    ck_assert_int_eq(RUN(&t, "--out=r", "--resume", "--metrics=m"), 0);
    ck_assert_int_eq(run_times("m", "\"stops\":true}\n"), 1);
    ck_assert_int_eq(place_count("r", "step-"), 1);
}
END_TEST

START_TEST(a_goal_out_of_reach_ends_nothing) {
    RtTrainer t = tiny;
    t.length = (RtTime){30, RT_STEPS};
    t.eval_every = (RtTime){10, RT_STEPS};
    t.stop = (RtStop){.metric = "loss", .value = 1e-9};
    ck_assert_int_eq(RUN(&t, "--out=r", "--metrics=m"), 0);
    ck_assert_int_eq(run_times("m", "\"test\""), 3);
    ck_assert_int_eq(run_times("m", "stops"), 0);
    ck_assert_int_eq(place_count("r", "step-00000030"), 1);
}
END_TEST

START_TEST(evaluation_may_be_on_the_training_data) {
    RtTrainer t = tiny;
    t.length = (RtTime){10, RT_STEPS};
    t.eval_train = true;
    ck_assert_int_eq(RUN(&t, "--out=r", "--metrics=m"), 0);
    ck_assert(run_says("out", "training accuracy"));
    ck_assert(run_says("out", "3120 samples"));
    ck_assert(run_says("m", "\"on\":\"train\"}"));
}
END_TEST

Suite *steps_suite(void) {
    Suite *s = suite_create("steps");
    TCase *t = tcase_create("steps");
    tcase_set_tags(t, "numbers"); // whole runs, as those of check_train.c
    tcase_add_checked_fixture(t, place_enter, place_leave);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, stages_follow_one_another);
    tcase_add_loop_test(t, a_stopped_run_finds_its_stage, 0, 7);
    tcase_add_loop_test(
        t, a_signal_behind_the_last_evaluation_leaves_its_result, 0, 2);
    tcase_add_test(t, a_switch_copies_and_compiles_nothing);
    tcase_add_test(t, an_update_takes_several_batches);
    tcase_add_test(t, drop_last_drops_incomplete_updates);
    tcase_add_loop_test(t, a_stopped_run_accumulates_the_same_batches, 0, 3);
    tcase_add_loop_test(t, weights_are_averaged_when_it_is_due, 0, 7);
    tcase_add_test(t, an_early_evaluation_averages_and_prepares_first);
    tcase_add_loop_test(t, samples_are_collected_before_the_start, 0, 2);
    tcase_add_loop_test(t, a_run_ends_when_it_is_good_enough, 0, 3);
    tcase_add_test(t, a_goal_out_of_reach_ends_nothing);
    tcase_add_test(t, evaluation_may_be_on_the_training_data);
    suite_add_tcase(s, t);
    return s;
}
