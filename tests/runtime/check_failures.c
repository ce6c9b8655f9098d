// Runs that fail: user errors, failures on the way, and outputs that cannot be
// written.
#define _POSIX_C_SOURCE 200809L

#include "runtime/runtime.h"
#include "tests/runtime/place.h"
#include "tests/runtime/runs.h"
#include "tests/runtime/suites.h"
#include "tests/runtime/tiny.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

START_TEST(mistakes_have_their_status) {
    ck_assert_int_eq(run_whole(&tiny, (char *[]){"--data=nowhere", NULL}),
                     EXIT_DATA);
    ck_assert(run_says("err", "nowhere"));
    ck_assert(run_says("err", "or use --data synthetic"));
    ck_assert_int_eq(
        run_whole(&tiny, (char *[]){"--data=nowhere", "--profile=trace", NULL}),
        EXIT_DATA);
    ck_assert_int_ne(access("trace", F_OK), 0);
    ck_assert_int_eq(run_whole(&tiny, (char *[]){NULL}), EXIT_DATA);
    ck_assert(run_says("err", "data/tiny"));
    ck_assert_int_eq(RUN(&tiny, "--epoch=1"), EXIT_USAGE);
    ck_assert_int_eq(RUN(&tiny, "--device=cuda:0"), EXIT_DEVICE);
    ck_assert_int_eq(RUN(&tiny, "--device=toaster"), EXIT_USAGE);
    ck_assert_int_eq(RUN(&tiny, "--bad-samples=skip:2"), EXIT_USAGE);
    ck_assert(run_says("err", "--bad-samples applies to image files, but this "
                              "trainer takes cifar10"));
    ck_assert_int_eq(RUN(&tiny, "--max-image-pixels=2"), EXIT_USAGE);
    ck_assert(run_says("err", "--max-image-pixels applies to image files"));
    ck_assert_int_eq(RUN(&tiny, "--metrics=no/such/file"), EXIT_IO);
    place_write("file", "", 0);
    ck_assert_int_eq(RUN(&tiny, "--out=file"), EXIT_IO);
    ck_assert_int_eq(RUN(&tiny, "--epochs=1e8"), EXIT_USAGE);
    ck_assert_int_eq(run_whole(&tiny, (char *[]){"--help", NULL}), EXIT_GOOD);
    ck_assert(run_says("out", "--eval-only"));
    ck_assert(run_says("out", " ends by that signal: 130, 143 or 129."));
    ck_assert_int_eq(run_whole(&tiny, (char *[]){"--version", NULL}),
                     EXIT_GOOD);
    ck_assert(run_says("out", "0.2.0"));
}
END_TEST

// A path would be skipped.
START_TEST(a_trainer_that_draws_its_data_takes_no_other) {
    RtTrainer t = tiny;
    t.data_format = "synthetic";
    ck_assert_int_eq(run_whole(&t, (char *[]){"--data=nowhere", NULL}),
                     EXIT_USAGE);
    ck_assert(run_says("err", "generates its data"));
    ck_assert_int_eq(run_whole(&t, (char *[]){"--data=synthetic:0", NULL}),
                     EXIT_USAGE);
    ck_assert_int_eq(
        run_whole(&t, (char *[]){"--data=synthetic:99999999999", NULL}),
        EXIT_USAGE);
}
END_TEST

START_TEST(too_few_samples_for_a_batch) {
    RtTrainer t = tiny;
    t.drop_last = true;
    t.batch = 20000;
    ck_assert_int_eq(RUN(&t, "--out=r"), EXIT_DATA);
    ck_assert(run_says("err", "3120 samples, fewer than one batch of 20000"));
}
END_TEST

START_TEST(a_run_that_does_not_fit_is_not_started) {
    RtTrainer t = tiny;
    RtPlan plan = *tiny.plan;
    t.plan = &plan;
    plan.arena_bytes = (size_t)1 << 45;
    ck_assert_int_eq(RUN(&t, "--out=r"), EXIT_MEMORY);
    ck_assert(run_says("err", "a batch of 32 needs 33554434 MiB"));
    ck_assert(run_says("err", "would fit"));
    ck_assert_int_ne(access("r", F_OK), 0);
}
END_TEST

// ---- on the way ----

static int stop_at;

static void train_and_break(RtDevice *d) {
    static int steps;
    float bad = NAN;
    rt_step_run(tiny.plan, d, RT_TRAIN, 0);
    if (++steps == stop_at)
        d->write(d, rt_state_find(tiny.plan, "metric.loss")->offset, &bad, 4);
}

START_TEST(a_run_that_diverges_keeps_its_last_good_checkpoint) {
    RtTrainer t = tiny;
    RtPlan plan = *tiny.plan;
    RtStep steps[TINY_STEPS];
    t.plan = &plan;
    plan = plan_with(tiny.plan, steps, RT_TRAIN, train_and_break);
    t.checkpoint_every.count = 0.5;
    stop_at = 60;
    ck_assert_int_eq(
        RUN(&t, "--out=r", "--profile=trace", "--profile-steps=1000"),
        EXIT_DIVERGED);
    ck_assert(run_says("err", "the loss is not a number"));
    ck_assert(run_says("trace", "\"note\":\"steps 4 to "));
    ck_assert_int_eq(place_count("r", "step-"), 1);
    ck_assert_int_eq(place_count("r", "step-00000049"), 1);
    ck_assert(run_says("r/settings.json", "\"state\": \"diverged\""));
}
END_TEST

// One bit of one weight.
static void train_and_forget(RtDevice *d) {
    static int steps;
    size_t weight =
        rt_state_find(tiny.plan, "linear.weight")->offset + 40 * sizeof(float);
    char byte;
    rt_step_run(tiny.plan, d, RT_TRAIN, 0);
    if (++steps != stop_at)
        return;
    d->sync(d);
    d->read(d, &byte, weight, 1);
    byte ^= 1;
    d->write(d, weight, &byte, 1);
}

// Every fourth step runs twice, so step eight ends with the tenth execution.  A
// bit that is lost in another one is not detected.
START_TEST(a_step_that_leaves_other_bits_ends_a_run) {
    RtTrainer t = tiny;
    RtPlan plan = *tiny.plan;
    RtStep steps[TINY_STEPS];
    t.plan = &plan;
    plan = plan_with(tiny.plan, steps, RT_TRAIN, train_and_forget);
    t.checkpoint_every = (RtTime){5, RT_STEPS};
    for (stop_at = 8; stop_at <= 11; stop_at++) {
        bool seen = stop_at == 9 || stop_at == 10;
        place_forget("r");
        ck_assert_int_eq(
            RUN(&t, "--out=r", "--epochs=0.15", "--verify-every=4"),
            seen ? EXIT_DEVICE : EXIT_GOOD);
        if (!seen)
            continue;
        ck_assert(run_says("err", "error: host: step 8, repeated from the "
                                  "same states and samples, gave different "
                                  "bits, first in linear.weight; it is not "
                                  "saved"));
        ck_assert_int_eq(access("r/step-00000005.safetensors", F_OK), 0);
        ck_assert_int_ne(access("r/step-00000010.safetensors", F_OK), 0);
    }
}
END_TEST

// Also with a repeated batch.
START_TEST(steps_that_are_verified_are_the_same) {
    static const char *const repeats[] = {"--quiet", "--repeat-batch"};
    char *again = (char *)repeats[_i];
    ck_assert_int_eq(
        RUN(&tiny, "--out=a", "--epochs=0.1", again, "--metrics=ma"), 0);
    ck_assert_int_eq(RUN(&tiny, "--out=b", "--epochs=0.1", again,
                         "--metrics=mb", "--verify-every=1"),
                     0);
    ck_assert(files_same("a/step-00000010.safetensors",
                         "b/step-00000010.safetensors"));
}
END_TEST

static void evaluate_and_break(RtDevice *d) {
    float bad = NAN;
    rt_step_run(tiny.plan, d, RT_EVAL, 0);
    d->write(d, rt_state_find(tiny.plan, "metric.loss")->offset, &bad, 4);
}

// The last update may be the one that diverges.
START_TEST(a_last_evaluation_may_find_that_it_diverged) {
    RtTrainer t = tiny;
    RtPlan plan = *tiny.plan;
    RtStep steps[TINY_STEPS];
    t.plan = &plan;
    plan = plan_with(tiny.plan, steps, RT_EVAL, evaluate_and_break);
    ck_assert_int_eq(RUN(&t, "--out=r", "--epochs=0.1"), EXIT_DIVERGED);
    ck_assert(run_says("err", "the loss is not a number"));
    ck_assert_int_eq(RUN(&t, "--out=r", "--eval-only"), EXIT_DIVERGED);
}
END_TEST

// ---- outputs that cannot be written ----

// A limit on the size of files simulates a full disk.
START_TEST(checkpoints_that_cannot_be_written) {
    RtTrainer t = tiny;
    struct rlimit limit = {4096, 4096};
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    t.checkpoint_every.count = 0.1;
    ck_assert_int_eq(RUN(&t, "--out=r", "--epochs=1"), EXIT_IO);
    ck_assert(run_says(
        "err", "training continues, with the next try of a checkpoint in 1 s "
               "or later; r has no checkpoint of this run"));
    ck_assert_int_eq(run_times("err", "warning: trying again in "), 3);
    ck_assert_int_eq(place_count("r", "step-"), 0);
}
END_TEST

START_TEST(lost_metrics_do_not_stop_a_run) {
    if (access("/dev/full", W_OK) != 0)
        return;
    ck_assert_int_eq(
        RUN(&tiny, "--out=r", "--epochs=0.1", "--metrics=/dev/full"), EXIT_IO);
    ck_assert(run_says("err", "metrics in /dev/full were lost"));
    ck_assert(run_says("out", "test accuracy"));
    ck_assert_int_eq(place_count("r", "step-"), 1);
}
END_TEST

// The disk is full within the row of step 4, and has room again from step 7 on.
static void train_on_a_full_disk(RtDevice *d) {
    static int steps;
    struct stat rows;
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    rt_step_run(tiny.plan, d, RT_TRAIN, 0);
    steps++;
    if (steps == 4 && stat("r/metrics.jsonl", &rows) == 0)
        limit.rlim_cur = (rlim_t)rows.st_size + 20;
    if (steps == 4 || steps == 7)
        setrlimit(RLIMIT_FSIZE, &limit);
}

START_TEST(rows_after_a_full_disk_are_whole) {
    RtTrainer t = tiny;
    RtPlan plan = *tiny.plan;
    RtStep steps[TINY_STEPS];
    char row[2048];
    int rows = 0;
    t.plan = &plan;
    plan = plan_with(tiny.plan, steps, RT_TRAIN, train_on_a_full_disk);
    ck_assert_int_eq(
        RUN(&t, "--out=r", "--epochs=0.15", "--log-every=1", "--quiet"), 0);
    ck_assert(run_says("err", "cannot write to r/metrics.jsonl"));
    FILE *f = fopen("r/metrics.jsonl", "r");
    for (; fgets(row, sizeof row, f) != NULL; rows++)
        ck_assert_msg(strncmp(row, "{\"split\"", 8) == 0 &&
                          strcmp(row + strlen(row) - 2, "}\n") == 0 &&
                          strstr(row + 1, "{") == NULL,
                      "%s", row);
    ck_assert_int_ge(rows, 10);
    fclose(f);
}
END_TEST

START_TEST(a_trace_that_is_lost_is_nowhere) {
    if (access("/dev/full", W_OK) != 0)
        return;
    ck_assert_int_eq(RUN(&tiny, "--out=r", "--profile=/dev/full"), EXIT_IO);
    ck_assert(run_says("err", "cannot write /dev/full"));
    ck_assert(!run_says("out", "has a trace") &&
              !run_says("err", "has a trace"));
}
END_TEST

// A file that gets the number of a closed standard descriptor would receive its
// output.
START_TEST(files_take_no_closed_descriptors) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        char *argv[] = {
            (char[]){"tiny"},           (char[]){"--data=synthetic"},
            (char[]){"--out=r"},        (char[]){"--epochs=2"},
            (char[]){"--metrics=rows"}, NULL};
        for (int fd = 0; fd <= STDERR_FILENO; fd++)
            close(fd);
        exit(rt_main(5, argv, &tiny));
    }
    ck_assert_int_eq(run_finish(child), EXIT_IO); // the result is lost
    ck_assert_int_eq(place_count("r", "step-"), 2);
    FILE *f = fopen("rows", "r");
    char row[2048];
    int rows = 0;
    for (; fgets(row, sizeof row, f) != NULL; rows++)
        ck_assert_msg(row[0] == '{', "%s", row);
    ck_assert_int_gt(rows, 2);
    fclose(f);
}
END_TEST

START_TEST(a_lost_result_is_an_error) {
    if (access("/dev/full", W_OK) != 0)
        return;
    ck_assert_int_eq(symlink("/dev/full", "out"), 0);
    ck_assert_int_eq(RUN(&tiny, "--out=r", "--epochs=0.1"), EXIT_IO);
    ck_assert(run_says("err", "cannot write the result to stdout"));
    ck_assert_int_eq(place_count("r", "step-"), 1);
}
END_TEST

// Only one kind of rows can go to standard output, and a file named - is not
// it.
START_TEST(rows_may_go_to_standard_output) {
    ck_assert_int_eq(RUN(&tiny, "--metrics=-", "--times=-"), EXIT_USAGE);
    ck_assert(run_says("err", "--metrics=- and --times=- exclude each other"));
    ck_assert_int_eq(RUN(&tiny, "--times=-", "--profile=-"), EXIT_USAGE);
    ck_assert(run_says("err", "--times=- and --profile=- exclude each other"));
    if (access("/dev/full", W_OK) != 0)
        return;
    ck_assert_int_eq(unlink("out"), 0);
    ck_assert_int_eq(symlink("/dev/full", "out"), 0);
    ck_assert_int_eq(RUN(&tiny, "--out=r", "--epochs=0.1", "--times=-"),
                     EXIT_IO);
    ck_assert(run_says("err", "error: standard output: No space left"));
}
END_TEST

Suite *failures_suite(void) {
    Suite *s = suite_create("failures");
    TCase *t = tcase_create("failures");
    tcase_set_timeout(t, 300);
    tcase_add_checked_fixture(t, place_enter, place_leave);
    tcase_add_test(t, mistakes_have_their_status);
    tcase_add_test(t, a_trainer_that_draws_its_data_takes_no_other);
    tcase_add_test(t, too_few_samples_for_a_batch);
    tcase_add_test(t, a_run_that_does_not_fit_is_not_started);
    tcase_add_test(t, a_run_that_diverges_keeps_its_last_good_checkpoint);
    tcase_add_test(t, a_step_that_leaves_other_bits_ends_a_run);
    tcase_add_loop_test(t, steps_that_are_verified_are_the_same, 0, 2);
    tcase_add_test(t, a_last_evaluation_may_find_that_it_diverged);
    tcase_add_test(t, checkpoints_that_cannot_be_written);
    tcase_add_test(t, lost_metrics_do_not_stop_a_run);
    tcase_add_test(t, rows_after_a_full_disk_are_whole);
    tcase_add_test(t, a_trace_that_is_lost_is_nowhere);
    tcase_add_test(t, files_take_no_closed_descriptors);
    tcase_add_test(t, a_lost_result_is_an_error);
    tcase_add_test(t, rows_may_go_to_standard_output);
    suite_add_tcase(s, t);
    return s;
}
