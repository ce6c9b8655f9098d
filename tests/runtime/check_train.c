// Whole runs of the trainer in tiny.c, each in its own process: results, output
// and files.
#define _POSIX_C_SOURCE 200809L

#include "runtime/checkpoint/checkpoint.h"
#include "tests/runtime/place.h"
#include "tests/runtime/runs.h"
#include "tests/runtime/suites.h"
#include "tests/runtime/tiny.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

START_TEST(a_run_learns_and_reports) {
    RtTrainer t = tiny;
    t.num_data_settings = 0; // all 10000 samples
    ck_assert_int_eq(RUN(&t, "--out=r", "--metrics=m"), EXIT_GOOD);
    ck_assert_int_eq(place_count("r", "step-"), 2);
    ck_assert(run_says("out", "test accuracy"));
    ck_assert(run_says("out", "waiting for data"));
    ck_assert(run_says("out", "images/s in training"));
    ck_assert(run_says("err", "epoch    1/2.5   loss"));
    ck_assert(run_says("err", "epoch  2.5/2.5   loss"));
    FILE *f = fopen("m", "r");
    char split[8];
    double epoch, loss, accuracy, lr, rate, wait, elapsed;
    double before = 0, best = 0;
    long long step;
    int rows = 0;
    while (fscanf(f,
                  "{\"split\":\"%5[a-z]\",\"epoch\":%lf,\"step\":%lld,"
                  "\"loss\":%lf,\"accuracy\":%lf,\"lr\":%lf,"
                  "\"samples_per_second\":%lf,\"wait_ms\":%lf,"
                  "\"elapsed\":%lf}\n",
                  split, &epoch, &step, &loss, &accuracy, &lr, &rate, &wait,
                  &elapsed) == 9) {
        ck_assert(elapsed >= before);
        before = elapsed;
        ck_assert_str_eq(split, rows % 2 ? "test" : "train");
        ck_assert_int_eq(step, rows < 2 ? 313 : rows < 4 ? 626 : 783);
        ck_assert(fabs(epoch - (double)step / 313) < 1e-6);
        ck_assert(loss > 0 && loss < 2 && rate > 0 && lr > 0);
        best = accuracy > best ? accuracy : best;
        rows++;
    }
    // The last row is the time budget.
    double total = 0, calls = 0;
    ck_assert_str_eq(split, "time");
    ck_assert_int_eq(fscanf(f,
                            "step\":%lld,\"samples_per_second\":%lf,"
                            "\"total\":%lf,\"start\":%*f,\"waiting\":%*f,"
                            "\"copies\":%*f,\"ranks\":%*f,\"augmentation\":%*f,"
                            "\"kernels\":%*f,\"calls\":%lf,%*[^\n]\n",
                            &step, &rate, &total, &calls),
                     4);
    ck_assert(step == 783 && rate > 0 && calls > 0 && calls < total);
    ck_assert_int_eq(fgetc(f), EOF);
    fclose(f);
    ck_assert_int_eq(rows, 6);
    ck_assert_msg(best > 0.6 && best <= 1, "best accuracy %f", best);
}
END_TEST

// A training row covers its epoch, with or without an evaluation inside.
START_TEST(evaluations_leave_training_alone) {
    RtTrainer t = tiny;
    char with[1024], without[1024];
    t.eval_every.count = 0.03;
    ck_assert_int_eq(RUN(&t, "--out=a", "--epochs=0.1", "--metrics=ma"), 0);
    ck_assert_int_eq(RUN(&tiny, "--out=b", "--epochs=0.1", "--metrics=mb"), 0);
    ck_assert_int_eq(run_times("ma", "test"), 4);
    run_rows("ma", with, sizeof with);
    run_rows("mb", without, sizeof without);
    ck_assert_ptr_nonnull(strstr(with, without));
    ck_assert(files_same("a/step-00000010.safetensors",
                         "b/step-00000010.safetensors"));
}
END_TEST

START_TEST(quiet_is_quiet) {
    size_t length;
    ck_assert_int_eq(RUN(&tiny, "--out=r", "--epochs=0.01", "--quiet"), 0);
    free(place_read("err", &length));
    ck_assert_uint_eq(length, 0);
    ck_assert_int_eq(run_times("out", "\n"), 2);
    ck_assert(run_says("out", "\nweights in r/step-00000001.safetensors\n"));
}
END_TEST

// A run in pieces takes the steps of an uninterrupted one.
START_TEST(steps_end_a_run_early) {
    ck_assert_int_eq(RUN(&tiny, "--out=a", "--epochs=0.3"), 0);
    ck_assert_int_eq(RUN(&tiny, "--out=b", "--epochs=0.3", "--steps=10"), 0);
    ck_assert(access("b/step-00000010.safetensors", R_OK) == 0);
    ck_assert_int_eq(RUN(&tiny, "--out=b", "--epochs=0.3", "--steps=7",
                         "--resume", "--quiet"),
                     0);
    ck_assert(access("b/step-00000017.safetensors", R_OK) == 0);
    ck_assert_int_eq(
        RUN(&tiny, "--out=b", "--epochs=0.3", "--steps=1000", "--resume"), 0);
    ck_assert(files_same("a/step-00000030.safetensors",
                         "b/step-00000030.safetensors"));
}
END_TEST

START_TEST(equal_runs_are_equal) {
    ck_assert_int_eq(RUN(&tiny, "--out=a", "--epochs=0.3"), 0);
    ck_assert_int_eq(RUN(&tiny, "--out=b", "--epochs=0.3", "--seed=0"), 0);
    ck_assert_int_eq(RUN(&tiny, "--out=c", "--epochs=0.3", "--seed=1"), 0);
    ck_assert(files_same("a/step-00000030.safetensors",
                         "b/step-00000030.safetensors"));
    ck_assert(!files_same("a/step-00000030.safetensors",
                          "c/step-00000030.safetensors"));
}
END_TEST

static void start_alike(RtDevice *d) {
    char bytes[864];
    memset(bytes, 0x3c, sizeof bytes);
    d->write(d, tiny.plan->state[0].offset, bytes, sizeof bytes);
}

START_TEST(the_seed_orders_samples) {
    RtTrainer t = tiny;
    RtPlan plan = *tiny.plan;
    RtStep steps[TINY_STEPS];
    char first[1024], second[1024];
    t.plan = &plan;
    plan = plan_with(tiny.plan, steps, RT_INIT, start_alike);
    ck_assert_int_eq(
        RUN(&t, "--out=a", "--epochs=0.1", "--seed=0", "--metrics=ma"), 0);
    ck_assert_int_eq(
        RUN(&t, "--out=b", "--epochs=0.1", "--seed=1", "--metrics=mb"), 0);
    ck_assert(!files_same("a/step-00000010.safetensors",
                          "b/step-00000010.safetensors"));
    run_rows("ma", first, sizeof first);
    run_rows("mb", second, sizeof second);
    ck_assert_str_ne(first, second);
}
END_TEST

START_TEST(the_states_of_the_run_are_set) {
    RtError e;
    RtProgress p;
    ck_assert_int_eq(RUN(&tiny, "--out=r", "--epochs=0.1", "--seed=5"), 0);
    RtDevice *d = host_open(tiny.plan, 1);
    d->reserve(d);
    RtCheckpoint *c =
        rt_checkpoint_new(&tiny, tiny.plan, d, &rt_system_files, &e);
    ck_assert_int_eq(
        rt_checkpoint_read(c, "r/step-00000010.safetensors", &p, &e), RT_GOOD);
    ck_assert_int_eq(run_state(tiny.plan, d, "run.seed"), 5);
    ck_assert_int_eq(run_state(tiny.plan, d, "run.step"), 10);
    ck_assert_int_eq(run_state(tiny.plan, d, "run.steps"), 10);
    ck_assert_int_eq(run_state(tiny.plan, d, "run.epoch_steps"), TINY_EPOCH);
    rt_checkpoint_free(c);
    d->close(d);
}
END_TEST

START_TEST(eval_only_repeats_the_last_evaluation) {
    size_t length;
    ck_assert_int_eq(RUN(&tiny, "--out=r", "--epochs=0.2", "--quiet"), 0);
    char *first = (char *)place_read("out", &length);
    ck_assert_int_eq(RUN(&tiny, "--out=r", "--eval-only", "--quiet"), 0);
    char *second = (char *)place_read("out", &length);
    *strchr(first, '\n') = *strchr(second, '\n') = '\0';
    ck_assert_str_eq(first, second);
    free(first);
    free(second);
    ck_assert_int_eq(RUN(&tiny, "--out=none", "--eval-only"), EXIT_DATA);
    ck_assert_int_ne(access("none", F_OK), 0);
}
END_TEST

// The losses of the rows of one split, and their number.
static int losses_of(const char *name, const char *split, double *to) {
    size_t length;
    char *bytes = (char *)place_read(name, &length), *row = bytes;
    char start[32];
    int count = 0;
    snprintf(start, sizeof start, "{\"split\":\"%s\"", split);
    for (; (row = strstr(row, start)) != NULL; row++)
        to[count++] = strtod(strstr(row, "\"loss\":") + 7, NULL);
    free(bytes);
    return count;
}

START_TEST(rows_of_steps_make_up_those_of_epochs) {
    double step[100], epoch[4], sum = 0;
    ck_assert_int_eq(
        RUN(&tiny, "--out=r", "--epochs=0.2", "--metrics=m", "--log-every=5"),
        0);
    ck_assert_int_eq(losses_of("m", "step", step), 4);
    ck_assert_int_eq(losses_of("m", "train", epoch), 1);
    for (int i = 0; i < 4; i++)
        sum += step[i] / 4;
    ck_assert(fabs(sum - epoch[0]) < 1e-5);
    ck_assert(fabs(step[0] - step[3]) > 1e-3);
}
END_TEST

START_TEST(a_short_run_is_reported_in_steps) {
    ck_assert_int_eq(RUN(&tiny, "--epochs=0.1", "--out=r"), 0);
    ck_assert(run_says("err", "step    10/10    loss "));
    ck_assert(!run_says("err", "epoch  "));
}
END_TEST

START_TEST(one_of_something_has_no_plural) {
    ck_assert_int_eq(RUN(&tiny, "--data=synthetic:1", "--epochs=1", "--out=r"),
                     0);
    ck_assert(run_says("err", "1 training and 1 test sample; 1 step of 32 in "
                              "an epoch, 1 in all\n"));
    ck_assert(run_says("err", " MiB on host, "));
    ck_assert(run_says("err", " MiB of it the arena\n"));
    ck_assert(run_says("out", ", 1 sample\n"));
    ck_assert_int_eq(
        RUN(&tiny, "--data=synthetic:1", "--epochs=2", "--out=r", "--resume"),
        EXIT_DATA);
    ck_assert(run_says("err", "is of a run of 1 step, not 2, "));
    RtTrainer t = tiny;
    t.length = (RtTime){1, RT_EPOCHS};
    ck_assert_int_eq(run_whole(&t, (char *[]){"--help", NULL}), EXIT_GOOD);
    ck_assert(run_says("out", ", 1 epoch, batch 32, "));
    t.drop_last = true;
    ck_assert_int_eq(RUN(&t, "--data=synthetic:1"), EXIT_DATA);
    ck_assert(run_says("err", "data has 1 sample, fewer than one batch of 32"));
}
END_TEST

Suite *train_suite(void) {
    Suite *s = suite_create("train");
    TCase *t = tcase_create("train");
    tcase_set_timeout(t, 300);
    tcase_add_checked_fixture(t, place_enter, place_leave);
    tcase_add_test(t, a_run_learns_and_reports);
    tcase_add_test(t, evaluations_leave_training_alone);
    tcase_add_test(t, quiet_is_quiet);
    tcase_add_test(t, steps_end_a_run_early);
    tcase_add_test(t, equal_runs_are_equal);
    tcase_add_test(t, the_seed_orders_samples);
    tcase_add_test(t, the_states_of_the_run_are_set);
    tcase_add_test(t, eval_only_repeats_the_last_evaluation);
    tcase_add_test(t, rows_of_steps_make_up_those_of_epochs);
    tcase_add_test(t, a_short_run_is_reported_in_steps);
    tcase_add_test(t, one_of_something_has_no_plural);
    suite_add_tcase(s, t);
    return s;
}
