// Resumed runs, and runs that start with the weights of a file.
#define _POSIX_C_SOURCE 200809L

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
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

// Sends itself a signal at a step, so the time is the same every run.
static int stop_at, stop_by;

static void train_and_stop(RtDevice *d) {
    static int steps;
    rt_step_run(tiny.plan, d, RT_TRAIN, 0);
    if (++steps == stop_at)
        raise(stop_by);
}

// A run that ends itself by a signal at a step, then resumes.
static void stop_and_resume(RtTrainer *t, RtPlan *plan, int at, int by) {
    RtStep steps[TINY_STEPS];
    *plan = plan_with(tiny.plan, steps, RT_TRAIN, train_and_stop);
    stop_at = at;
    stop_by = by;
    int status = RUN(t, "--out=b", "--epochs=0.6", "--metrics=mb");
    ck_assert_int_eq(status, 128 + by);
    *plan = *tiny.plan;
    ck_assert_int_eq(RUN(t, "--out=b", "--resume", "--metrics=mb"), 0);
}

START_TEST(a_stopped_run_resumes_to_the_same_bits) {
    static const struct {
        int at, by;
    } stops[] = {
        {1, SIGTERM},  {16, SIGTERM}, {30, SIGINT},  {31, SIGHUP},
        {59, SIGTERM}, {21, SIGKILL}, {32, SIGKILL}, {59, SIGKILL},
    };
    RtTrainer t = tiny;
    RtPlan plan = *tiny.plan;
    char whole[4096], parts[4096];
    t.plan = &plan;
    t.checkpoint_every.count = 0.1;
    t.eval_every.count = 0.3;
    ck_assert_int_eq(RUN(&t, "--out=a", "--epochs=0.6", "--metrics=ma"), 0);
    run_rows("ma", whole, sizeof whole);
    for (size_t i = 0; i < sizeof stops / sizeof stops[0]; i++) {
        stop_and_resume(&t, &plan, stops[i].at, stops[i].by);
        ck_assert_msg(files_same("a/step-00000059.safetensors",
                                 "b/step-00000059.safetensors"),
                      "stopped at %d by signal %d", stops[i].at, stops[i].by);
        run_rows("mb", parts, sizeof parts);
        ck_assert_str_eq(whole, parts);
        place_forget("b");
        place_forget("mb");
    }
}
END_TEST

START_TEST(a_killed_run_resumes_from_its_checkpoint) {
    RtTrainer t = tiny;
    struct timespec moment = {0, 2000000};
    t.checkpoint_every.count = 0.1;
    ck_assert_int_eq(RUN(&t, "--out=a", "--epochs=1"), 0);
    pid_t child = START(&t, "--out=b", "--epochs=1");
    while (place_count("b", ".safetensors") == 0)
        nanosleep(&moment, NULL);
    kill(child, SIGKILL);
    ck_assert_int_eq(run_finish(child), 128 + SIGKILL);
    ck_assert_int_eq(RUN(&t, "--out=b", "--resume"), 0);
    ck_assert(files_same("a/step-00000098.safetensors",
                         "b/step-00000098.safetensors"));
}
END_TEST

START_TEST(a_resumed_run_refuses_contradictions) {
    RtTrainer t = tiny;
    ck_assert_int_eq(RUN(&tiny, "--out=r", "--resume"), EXIT_DATA);
    ck_assert(run_says("err", "no whole checkpoint in r"));
    ck_assert_int_eq(RUN(&tiny, "--out=r", "--epochs=0.1"), 0);
    ck_assert_int_eq(RUN(&tiny, "--out=r", "--resume", "--epochs=0.2"), 3);
    ck_assert(run_says("err", "is of a run of 10 steps, not 20, and the "
                              "schedule of a run is fixed; --init "
                              "starts a new run with its weights"));
    ck_assert_int_eq(RUN(&tiny, "--out=r", "--resume", "--seed=5"), 3);
    ck_assert(run_says("err", "with seed 0, not 5; --init starts a new"));
    ck_assert_int_eq(RUN(&tiny, "--data=synthetic:320", "--out=r", "--resume"),
                     3);
    ck_assert(run_says("err", "is of a run on other data (98 steps in an "
                              "epoch, here 10); --init starts a new"));
    ck_assert_int_eq(RUN(&tiny, "--data=synthetic:3119", "--out=r", "--resume"),
                     3);
    ck_assert(
        run_says("err", "on other data with as many steps in an epoch ("));
    t.fingerprint++;
    ck_assert_int_eq(RUN(&t, "--out=r", "--resume"), 3);
    ck_assert(run_says("err", "different model text or recipe (fingerprint "));
    ck_assert(run_says("err", "or start a new run with its weights by --init"));
    t.precision = "bf16";
    t.accumulate = 2;
    ck_assert_int_eq(RUN(&t, "--out=r", "--resume"), 3);
    ck_assert(run_says("err", "recipe, precision f32, here bf16, accumulate "
                              "1, here 2 (fingerprint "));
    ck_assert_int_eq(RUN(&tiny, "--resume=r/step-00000009.safetensors"), 3);
    ck_assert_int_eq(
        RUN(&tiny, "--out=x", "--resume=r/step-00000010.safetensors"), 0);
}
END_TEST

START_TEST(a_resumed_run_reads_no_rows_from_a_pipe) {
    ck_assert_int_eq(RUN(&tiny, "--out=r", "--epochs=2", "--steps=2"), 0);
    ck_assert_int_eq(mkfifo("rows", 0666), 0);
    int rows = open("rows", O_RDWR);
    ck_assert_int_eq(RUN(&tiny, "--out=r", "--resume", "--metrics=rows"), 0);
    char row[16] = "";
    ck_assert_int_eq(read(rows, row, sizeof row - 1), sizeof row - 1);
    ck_assert_str_eq(row, "{\"split\":\"train");
    close(rows);
}
END_TEST

// Nothing reads the pipe; the run does not wait.
START_TEST(a_resumed_run_takes_no_pipe_for_its_log) {
    ck_assert_int_eq(RUN(&tiny, "--out=r", "--epochs=0.1", "--steps=2"), 0);
    ck_assert_int_eq(unlink("r/log.txt"), 0);
    ck_assert_int_eq(mkfifo("r/log.txt", 0666), 0);
    ck_assert_int_eq(RUN(&tiny, "--out=r", "--resume"), 0);
    ck_assert(run_says("err", "warning: cannot open r/log.txt: "));
    int log = open("r/log.txt", O_RDWR);
    ck_assert_int_eq(RUN(&tiny, "--out=r", "--resume"), 0);
    ck_assert(run_says("err", "warning: cannot open r/log.txt: "));
    close(log);
}
END_TEST

START_TEST(a_run_can_start_from_an_init_only_checkpoint) {
    ck_assert_int_eq(RUN(&tiny, "--out=a", "--epochs=0.1"), 0);
    ck_assert_int_eq(RUN(&tiny, "--out=b", "--epochs=0.1", "--init-only"), 0);
    ck_assert(run_says("err", "weights in b/step-00000000.safetensors\n"));
    ck_assert_int_eq(
        RUN(&tiny, "--out=c", "--resume=b/step-00000000.safetensors"), 0);
    ck_assert(files_same("a/step-00000010.safetensors",
                         "c/step-00000010.safetensors"));
    ck_assert_int_eq(RUN(&tiny, "--init-only", "--eval-only"), EXIT_USAGE);
    ck_assert_int_eq(RUN(&tiny, "--init-only", "--resume"), EXIT_USAGE);
}
END_TEST

// ---- weights of a file ----

#define LAST "r/step-00000010.safetensors"

// With any recipe.
START_TEST(a_run_starts_with_the_weights_of_a_file) {
    size_t length;
    RtTrainer t = tiny;
    t.fingerprint++;
    ck_assert_int_eq(RUN(&tiny, "--out=r", "--epochs=0.1", "--quiet"), 0);
    char *first = (char *)place_read("out", &length);
    ck_assert_int_eq(RUN(&t, "--init=" LAST, "--eval-only", "--quiet"), 0);
    char *second = (char *)place_read("out", &length);
    *strchr(first, '\n') = *strchr(second, '\n') = '\0';
    ck_assert_str_eq(first, second);
    free(first);
    free(second);
    ck_assert_int_eq(RUN(&t, "--init=" LAST, "--eval-only", "--out=none"), 0);
    ck_assert(
        run_says("err", "starting with " LAST ": 2 of 2 tensors of Tiny"));
    ck_assert_int_ne(access("none", F_OK), 0);
}
END_TEST

// The file is read at the start only; another file gives another run.
START_TEST(a_run_with_weights_of_a_file_resumes) {
    ck_assert_int_eq(RUN(&tiny, "--out=r", "--epochs=0.1"), 0);
    ck_assert_int_eq(RUN(&tiny, "--out=a", "--epochs=0.3", "--init=" LAST), 0);
    ck_assert_int_eq(
        RUN(&tiny, "--out=b", "--epochs=0.3", "--init=" LAST, "--steps=4"), 0);
    ck_assert_int_eq(rename(LAST, "away"), 0);
    ck_assert_int_eq(RUN(&tiny, "--out=b", "--resume"), 0);
    ck_assert(files_same("a/step-00000030.safetensors",
                         "b/step-00000030.safetensors"));
    ck_assert_int_eq(RUN(&tiny, "--out=c", "--epochs=0.3", "--init=away",
                         "--init-except=linear.*"),
                     0);
    ck_assert(run_says("err", "starting with away: 1 of 2 tensors of Tiny\n"
                              "initialized, not loaded: linear.weight\n"));
    ck_assert(!files_same("a/step-00000030.safetensors",
                          "c/step-00000030.safetensors"));
}
END_TEST

// A run that does not start leaves nothing.
START_TEST(weights_that_do_not_fit_end_a_run) {
    ck_assert_int_eq(RUN(&tiny, "--out=r", "--init=nowhere"), EXIT_DATA);
    ck_assert(run_says("err", "cannot open nowhere"));
    ck_assert_int_ne(access("r", F_OK), 0);
    place_folder("r");
    ck_assert_int_eq(RUN(&tiny, "--out=r", "--init=r"), EXIT_DATA);
    ck_assert(run_says("err", "--init: r has no checkpoint"));
    place_write("none", "\x02\0\0\0\0\0\0\0{}", 10);
    ck_assert_int_eq(RUN(&tiny, "--out=r", "--init=none"), EXIT_DATA);
    ck_assert(run_says("err", "it has no conv.weight, linear.weight"));
    ck_assert_int_eq(RUN(&tiny, "--out=r", "--init=none", "--resume"),
                     EXIT_USAGE);
    ck_assert_int_eq(RUN(&tiny, "--out=x", "--resume=none"), EXIT_DATA);
    ck_assert(run_says("err", "it is not a checkpoint; --init=FILE loads"));
    ck_assert_int_eq(place_count("r", ""), 0);
}
END_TEST

Suite *resume_suite(void) {
    Suite *s = suite_create("resume");
    TCase *t = tcase_create("resume");
    tcase_set_timeout(t, 300);
    tcase_add_checked_fixture(t, place_enter, place_leave);
    tcase_add_test(t, a_killed_run_resumes_from_its_checkpoint);
    tcase_add_test(t, a_resumed_run_refuses_contradictions);
    tcase_add_test(t, a_resumed_run_reads_no_rows_from_a_pipe);
    tcase_add_test(t, a_resumed_run_takes_no_pipe_for_its_log);
    tcase_add_test(t, a_run_can_start_from_an_init_only_checkpoint);
    tcase_add_test(t, a_run_starts_with_the_weights_of_a_file);
    tcase_add_test(t, a_run_with_weights_of_a_file_resumes);
    tcase_add_test(t, weights_that_do_not_fit_end_a_run);
    suite_add_tcase(s, t);
    t = tcase_create("bits");
    tcase_set_tags(t, "numbers");
    tcase_set_timeout(t, 300);
    tcase_add_checked_fixture(t, place_enter, place_leave);
    tcase_add_test(t, a_stopped_run_resumes_to_the_same_bits);
    suite_add_tcase(s, t);
    return s;
}
