// Whole runs of the trainer in tiny.c, each in a process of its own as a person
// would start it.
#define _POSIX_C_SOURCE 200809L

#include "runtime/checkpoint/checkpoint.h"
#include "tests/runtime/place.h"
#include "tests/runtime/runs.h"
#include "tests/runtime/suites.h"
#include "tests/runtime/tiny.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// The loss and accuracy of every row, without what depends on time.
static void rows_of(const char *name, char *to, size_t room) {
    size_t length;
    char *bytes = (char *)place_read(name, &length), *at = bytes;
    *to = '\0';
    for (char *end; (end = strchr(at, '\n')) != NULL; at = end + 1) {
        char *rate = strstr(at, ",\"samples_per_second\"");
        ck_assert(rate != NULL && rate < end);
        *rate = '\0';
        strncat(to, at, room - strlen(to) - 1);
        strncat(to, "\n", room - strlen(to) - 1);
    }
    free(bytes);
}

// The plan with another step in the place of its own.
static RtPlan plan_with(RtStep *steps, RtStepKind kind,
                        void (*step)(RtDevice *d)) {
    RtPlan plan = *tiny.plan;
    ck_assert_int_eq(plan.num_steps, TINY_STEPS);
    for (int i = 0; i < TINY_STEPS; i++) {
        steps[i] = plan.step[i];
        if (steps[i].kind == kind)
            steps[i].run = step;
    }
    plan.step = steps;
    return plan;
}

START_TEST(a_run_learns_and_reports) {
    ck_assert_int_eq(RUN(&tiny, "--out=r", "--metrics=m"), EXIT_GOOD);
    ck_assert_int_eq(place_count("r", ""), 2);
    ck_assert(run_says("out", "test accuracy"));
    ck_assert(run_says("out", "waiting for data"));
    ck_assert(run_says("out", "samples/s in training"));
    ck_assert(run_says("err", "epoch    1/2.5   loss"));
    ck_assert(run_says("err", "epoch  2.5/2.5   loss"));
    FILE *f = fopen("m", "r");
    char split[8];
    double epoch, loss, accuracy, lr, rate, wait, best = 0;
    long long step;
    int rows = 0;
    while (fscanf(f,
                  "{\"split\":\"%5[a-z]\",\"epoch\":%lf,\"step\":%lld,"
                  "\"loss\":%lf,\"accuracy\":%lf,\"lr\":%lf,"
                  "\"samples_per_second\":%lf,\"wait_ms\":%lf}\n",
                  split, &epoch, &step, &loss, &accuracy, &lr, &rate,
                  &wait) == 8) {
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
                            "\"copies\":%*f,\"augmentation\":%*f,"
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

// A row of training covers its epoch, evaluated in its midst or not.
START_TEST(evaluations_leave_training_alone) {
    RtTrainer t = tiny;
    char with[1024], without[1024];
    t.eval_every.count = 0.03;
    ck_assert_int_eq(RUN(&t, "--out=a", "--epochs=0.1", "--metrics=ma"), 0);
    ck_assert_int_eq(RUN(&tiny, "--out=b", "--epochs=0.1", "--metrics=mb"), 0);
    ck_assert_int_eq(run_times("ma", "test"), 4);
    rows_of("ma", with, sizeof with);
    rows_of("mb", without, sizeof without);
    ck_assert_ptr_nonnull(strstr(with, without));
    ck_assert(files_same("a/step-00000032.safetensors",
                         "b/step-00000032.safetensors"));
}
END_TEST

START_TEST(quiet_is_quiet) {
    size_t length;
    ck_assert_int_eq(RUN(&tiny, "--out=r", "--epochs=0.01", "--quiet"), 0);
    free(place_read("err", &length));
    ck_assert_uint_eq(length, 0);
    uint8_t *out = place_read("out", &length);
    ck_assert_uint_eq(strcspn((char *)out, "\n") + 1, length);
    free(out);
}
END_TEST

// A run in pieces takes the steps of one that never stopped.
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
    ck_assert(files_same("a/step-00000094.safetensors",
                         "b/step-00000094.safetensors"));
}
END_TEST

START_TEST(equal_runs_are_equal) {
    ck_assert_int_eq(RUN(&tiny, "--out=a", "--epochs=0.3"), 0);
    ck_assert_int_eq(RUN(&tiny, "--out=b", "--epochs=0.3", "--seed=0"), 0);
    ck_assert_int_eq(RUN(&tiny, "--out=c", "--epochs=0.3", "--seed=1"), 0);
    ck_assert(files_same("a/step-00000094.safetensors",
                         "b/step-00000094.safetensors"));
    ck_assert(!files_same("a/step-00000094.safetensors",
                          "c/step-00000094.safetensors"));
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
    plan = plan_with(steps, RT_INIT, start_alike);
    ck_assert_int_eq(
        RUN(&t, "--out=a", "--epochs=0.1", "--seed=0", "--metrics=ma"), 0);
    ck_assert_int_eq(
        RUN(&t, "--out=b", "--epochs=0.1", "--seed=1", "--metrics=mb"), 0);
    ck_assert(!files_same("a/step-00000032.safetensors",
                          "b/step-00000032.safetensors"));
    rows_of("ma", first, sizeof first);
    rows_of("mb", second, sizeof second);
    ck_assert_str_ne(first, second);
}
END_TEST

static int32_t run_state(RtDevice *d, const char *name) {
    int32_t value;
    d->read(d, &value, rt_state_find(tiny.plan, name)->offset, sizeof value);
    return value;
}

START_TEST(the_states_of_the_run_are_set) {
    RtError e;
    RtProgress p;
    ck_assert_int_eq(RUN(&tiny, "--out=r", "--epochs=0.1", "--seed=5"), 0);
    RtDevice *d = host_open(tiny.plan, 1);
    d->reserve(d);
    RtCheckpoint *c =
        rt_checkpoint_new(&tiny, tiny.plan, d, &rt_system_files, &e);
    ck_assert_int_eq(
        rt_checkpoint_read(c, "r/step-00000032.safetensors", &p, &e), RT_GOOD);
    ck_assert_int_eq(run_state(d, "run.seed"), 5);
    ck_assert_int_eq(run_state(d, "run.step"), 32);
    ck_assert_int_eq(run_state(d, "run.steps"), 32);
    ck_assert_int_eq(run_state(d, "run.epoch_steps"), 313);
    rt_checkpoint_free(c);
    d->close(d);
}
END_TEST

// ---- stopping and going on ----

// Sends itself a signal at a step: the moment is then the same every time.
static int stop_at, stop_by;

static void train_and_stop(RtDevice *d) {
    static int steps;
    rt_step_run(tiny.plan, d, RT_TRAIN, 0);
    if (++steps == stop_at)
        raise(stop_by);
}

START_TEST(a_stopped_run_goes_on_to_the_same_bits) {
    static const struct {
        int at, by;
    } stops[] = {
        {1, SIGTERM},   {50, SIGTERM}, {94, SIGINT},  {95, SIGHUP},
        {188, SIGTERM}, {64, SIGKILL}, {96, SIGKILL}, {188, SIGKILL},
    };
    RtTrainer t = tiny;
    RtPlan plan = *tiny.plan;
    RtStep steps[TINY_STEPS];
    char whole[4096], parts[4096];
    t.plan = &plan;
    t.checkpoint_every.count = 0.1;
    t.eval_every.count = 0.3;
    ck_assert_int_eq(RUN(&t, "--out=a", "--epochs=0.6", "--metrics=ma"), 0);
    plan = plan_with(steps, RT_TRAIN, train_and_stop);
    stop_at = stops[_i].at;
    stop_by = stops[_i].by;
    int status = RUN(&t, "--out=b", "--epochs=0.6", "--metrics=mb");
    ck_assert_int_eq(status, 128 + stop_by);
    plan = *tiny.plan;
    ck_assert_int_eq(RUN(&t, "--out=b", "--resume", "--metrics=mb"), 0);
    ck_assert(files_same("a/step-00000188.safetensors",
                         "b/step-00000188.safetensors"));
    rows_of("ma", whole, sizeof whole);
    rows_of("mb", parts, sizeof parts);
    ck_assert_str_eq(whole, parts);
}
END_TEST

START_TEST(a_killed_run_goes_on_from_its_checkpoint) {
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
    ck_assert(files_same("a/step-00000313.safetensors",
                         "b/step-00000313.safetensors"));
}
END_TEST

START_TEST(what_a_resumed_run_refuses) {
    RtTrainer t = tiny;
    ck_assert_int_eq(RUN(&tiny, "--out=r", "--resume"), EXIT_DATA);
    ck_assert(run_says("err", "no whole checkpoint in r"));
    ck_assert_int_eq(RUN(&tiny, "--out=r", "--epochs=0.1"), 0);
    ck_assert_int_eq(RUN(&tiny, "--out=r", "--resume", "--epochs=0.2"), 3);
    ck_assert(run_says("err", "is of a run of 32 steps, not 63; its "
                              "schedule cannot be changed on the way: --init "
                              "starts another with its weights"));
    ck_assert_int_eq(RUN(&tiny, "--out=r", "--resume", "--seed=5"), 3);
    ck_assert(run_says("err", "with seed 0, not 5; --init starts another"));
    ck_assert_int_eq(RUN(&tiny, "--data=synthetic:320", "--out=r", "--resume"),
                     3);
    ck_assert(run_says("err", "is of a run on other data (313 steps in an "
                              "epoch, here 10); --init starts another"));
    ck_assert_int_eq(RUN(&tiny, "--data=synthetic:9999", "--out=r", "--resume"),
                     3);
    ck_assert(run_says("err", "on other data, of as many steps in an epoch ("));
    t.fingerprint++;
    ck_assert_int_eq(RUN(&t, "--out=r", "--resume"), 3);
    ck_assert(run_says("err", "another model text or recipe (fingerprint "));
    ck_assert(run_says("err", "); --init starts another run"));
    t.precision = "bf16";
    t.accumulate = 2;
    ck_assert_int_eq(RUN(&t, "--out=r", "--resume"), 3);
    ck_assert(run_says("err", "recipe, precision f32, here bf16, accumulate "
                              "1, here 2 (fingerprint "));
    ck_assert_int_eq(RUN(&tiny, "--resume=r/step-00000031.safetensors"), 3);
    ck_assert_int_eq(
        RUN(&tiny, "--out=x", "--resume=r/step-00000032.safetensors"), 0);
}
END_TEST

START_TEST(eval_only_shows_what_training_showed) {
    size_t length;
    ck_assert_int_eq(RUN(&tiny, "--out=r", "--epochs=0.2", "--quiet"), 0);
    char *first = (char *)place_read("out", &length);
    ck_assert_int_eq(RUN(&tiny, "--out=r", "--eval-only", "--quiet"), 0);
    char *second = (char *)place_read("out", &length);
    ck_assert_str_eq(first, second);
    free(first);
    free(second);
    ck_assert_int_eq(RUN(&tiny, "--out=none", "--eval-only"), EXIT_DATA);
    ck_assert_int_ne(access("none", F_OK), 0);
}
END_TEST

// The losses of the rows of one split, and how many there are.
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
        RUN(&tiny, "--out=r", "--epochs=0.2", "--metrics=m", "--log-every=7"),
        0);
    ck_assert_int_eq(losses_of("m", "step", step), 9);
    ck_assert_int_eq(losses_of("m", "train", epoch), 1);
    for (int i = 0; i < 9; i++)
        sum += step[i] / 9;
    ck_assert(fabs(sum - epoch[0]) < 1e-5);
    ck_assert(fabs(step[0] - step[8]) > 1e-3);
}
END_TEST

// ---- steps that are skipped ----

static float least_scale; // what the scale is halved to at least
static int32_t skip_every;

// The plan with the states of a loss that is scaled, where the others end.
static RtPlan plan_scaled(RtState *states) {
    RtPlan plan = *tiny.plan;
    size_t end = rt_state_find(&plan, "metric.lr")->offset + sizeof(float);
    int count = plan.num_states;
    memcpy(states, plan.state, (size_t)count * sizeof *states);
    states[count++] = (RtState){.name = "metric.skipped",
                                .kind = RT_METRIC,
                                .type = RT_F32,
                                .offset = end};
    states[count++] = (RtState){.name = "run.loss_scale",
                                .kind = RT_RUN,
                                .type = RT_F32,
                                .offset = end + sizeof(float),
                                .initial = 65536};
    plan.state = states;
    plan.num_states = count;
    return plan;
}

// Counts a step as the update does that takes none.
static void train_and_skip(RtDevice *d) {
    size_t end = rt_state_find(tiny.plan, "metric.lr")->offset + sizeof(float);
    float skipped_scale[2];
    bool skips = run_state(d, "run.step") % skip_every == 0;
    rt_step_run(tiny.plan, d, RT_TRAIN, 0);
    d->sync(d);
    if (!skips)
        return;
    d->read(d, skipped_scale, end, sizeof skipped_scale);
    skipped_scale[0]++;
    skipped_scale[1] = fmaxf(skipped_scale[1] / 2, least_scale);
    d->write(d, end, skipped_scale, sizeof skipped_scale);
}

// A trainer of short epochs, whose steps of a number that is a multiple of
// `every` are skipped.
static RtTrainer trainer_that_skips(RtPlan *plan, RtState *states,
                                    RtStep *steps, int32_t every) {
    RtTrainer t = tiny;
    skip_every = every;
    *plan = plan_scaled(states);
    RtPlan with = plan_with(steps, RT_TRAIN, train_and_skip);
    plan->step = with.step;
    t.plan = plan;
    t.eval_every.count = 0.3;
    return t;
}

enum { MOST_STATES = 16 };

#define SHORT "--data=synthetic:320", "--epochs=3"

START_TEST(skipped_steps_are_told_by_epoch) {
    RtPlan plan;
    RtState states[MOST_STATES];
    RtStep steps[TINY_STEPS];
    RtTrainer t = trainer_that_skips(&plan, states, steps, 4);
    least_scale = 1;
    ck_assert_int_eq(RUN(&t, SHORT, "--out=r", "--metrics=m"), 0);
    // Of ten steps in an epoch 0, 4 and 8; 12 and 16; 20, 24 and 28.
    ck_assert_int_eq(run_times("m", "\"loss_scale\":8192,\"skipped\":3,"), 1);
    ck_assert_int_eq(run_times("m", "\"loss_scale\":2048,\"skipped\":2,"), 1);
    ck_assert_int_eq(run_times("m", "\"loss_scale\":256,\"skipped\":3,"), 1);
    ck_assert_int_eq(run_times("m", "skipped"), 3);
    ck_assert_int_eq(run_times("err", "loss scale 8192     skipped 3  "), 1);
    ck_assert_int_eq(run_times("err", "warning"), 0);
    ck_assert_int_eq(
        RUN(&t, SHORT, "--out=s", "--metrics=s.m", "--log-every=2"), 0);
    ck_assert_int_eq(run_times("s.m", "\"skipped\":1"), 8);
    ck_assert_int_eq(run_times("s.m", "\"skipped\":0"), 7);
}
END_TEST

// From a checkpoint in the midst of an epoch too.
START_TEST(a_resumed_run_tells_all_steps_it_skipped) {
    RtPlan plan;
    RtState states[MOST_STATES];
    RtStep steps[TINY_STEPS];
    RtTrainer t = trainer_that_skips(&plan, states, steps, 4);
    char whole[4096], parts[4096];
    least_scale = 1;
    ck_assert_int_eq(RUN(&t, SHORT, "--out=a", "--metrics=ma"), 0);
    ck_assert_int_eq(RUN(&t, SHORT, "--out=b", "--metrics=mb", "--steps=15"),
                     0);
    ck_assert_int_eq(run_times("mb", "\"skipped\":2"), 0);
    ck_assert_int_eq(RUN(&t, SHORT, "--out=b", "--metrics=mb", "--resume"), 0);
    rows_of("ma", whole, sizeof whole);
    rows_of("mb", parts, sizeof parts);
    ck_assert_str_eq(whole, parts);
    ck_assert(files_same("a/step-00000030.safetensors",
                         "b/step-00000030.safetensors"));
}
END_TEST

START_TEST(an_epoch_of_skipped_steps_is_warned_of) {
    RtPlan plan;
    RtState states[MOST_STATES];
    RtStep steps[TINY_STEPS];
    RtTrainer t = trainer_that_skips(&plan, states, steps, 1);
    least_scale = 0.5;
    ck_assert_int_eq(RUN(&t, "--data=synthetic:256", "--epochs=2", "--out=r"),
                     0);
    ck_assert_int_eq(run_times("err", "warning: every step of this epoch"), 2);
    ck_assert_int_eq(run_times("err", "is 256 and falls with each of them"), 1);
    ck_assert_int_eq(run_times("err", "is 1 and falls with each of them"), 1);
    // A last epoch is short.
    ck_assert_int_eq(RUN(&t, "--data=synthetic:320", "--epochs=0.5", "--out=s"),
                     0);
    ck_assert_int_eq(run_times("err", "warning: every step of this epoch"), 1);
    // Where there is no scale nothing is skipped.
    ck_assert_int_eq(RUN(&tiny, SHORT, "--out=t", "--metrics=m"), 0);
    ck_assert_int_eq(run_times("m", "skipped"), 0);
}
END_TEST

// The 17th step is the first that is skipped at 1: what is left then is the
// checkpoint of an epoch before.
START_TEST(a_loss_scale_below_1_ends_a_run) {
    RtPlan plan;
    RtState states[MOST_STATES];
    RtStep steps[TINY_STEPS];
    RtTrainer t = trainer_that_skips(&plan, states, steps, 1);
    least_scale = 0.5;
    ck_assert_int_eq(RUN(&t, SHORT, "--out=a", "--steps=16"), 0);
    ck_assert_int_eq(RUN(&t, SHORT, "--out=b", "--steps=17"), EXIT_DIVERGED);
    ck_assert_int_eq(RUN(&t, SHORT, "--out=c", "--metrics=m"), EXIT_DIVERGED);
    ck_assert(run_says("err", "a step was skipped whose loss scale was 1, as "
                              "gradients were not finite: seen after step 20, "
                              "epoch 2.00; build with precision=bf16 or f32"));
    ck_assert(run_says("err", "going back to step 10 to see where"));
    ck_assert(run_says("m", "\"step\":20,"));
    ck_assert(run_says("m", "\"loss_scale\":0.5,"));
    ck_assert_int_eq(run_times("m", "\"step\":30,"), 0);
    ck_assert_int_eq(place_count("c", "step-00000010"), 1);
    ck_assert_int_eq(place_count("c", ""), 1);
}
END_TEST

START_TEST(a_run_can_start_from_what_init_only_saves) {
    ck_assert_int_eq(RUN(&tiny, "--out=a", "--epochs=0.1"), 0);
    ck_assert_int_eq(RUN(&tiny, "--out=b", "--epochs=0.1", "--init-only"), 0);
    ck_assert(run_says("err", "saved in b"));
    ck_assert_int_eq(
        RUN(&tiny, "--out=c", "--resume=b/step-00000000.safetensors"), 0);
    ck_assert(files_same("a/step-00000032.safetensors",
                         "c/step-00000032.safetensors"));
    ck_assert_int_eq(RUN(&tiny, "--init-only", "--eval-only"), EXIT_USAGE);
    ck_assert_int_eq(RUN(&tiny, "--init-only", "--resume"), EXIT_USAGE);
}
END_TEST

// ---- weights of a file ----

#define LAST "r/step-00000032.safetensors"

// Whatever recipe they were trained by.
START_TEST(a_run_starts_with_the_weights_of_a_file) {
    size_t length;
    RtTrainer t = tiny;
    t.fingerprint++;
    ck_assert_int_eq(RUN(&tiny, "--out=r", "--epochs=0.1", "--quiet"), 0);
    char *first = (char *)place_read("out", &length);
    ck_assert_int_eq(RUN(&t, "--init=" LAST, "--eval-only", "--quiet"), 0);
    char *second = (char *)place_read("out", &length);
    ck_assert_str_eq(first, second);
    free(first);
    free(second);
    ck_assert_int_eq(RUN(&t, "--init=" LAST, "--eval-only", "--out=none"), 0);
    ck_assert(
        run_says("err", "starting with " LAST ": 2 of 2 tensors of Tiny"));
    ck_assert_int_ne(access("none", F_OK), 0);
}
END_TEST

// The file is not asked for again; another one gives another run.
START_TEST(a_run_with_weights_of_a_file_goes_on) {
    ck_assert_int_eq(RUN(&tiny, "--out=r", "--epochs=0.1"), 0);
    ck_assert_int_eq(RUN(&tiny, "--out=a", "--epochs=0.3", "--init=" LAST), 0);
    ck_assert_int_eq(
        RUN(&tiny, "--out=b", "--epochs=0.3", "--init=" LAST, "--steps=10"), 0);
    ck_assert_int_eq(rename(LAST, "away"), 0);
    ck_assert_int_eq(RUN(&tiny, "--out=b", "--resume"), 0);
    ck_assert(files_same("a/step-00000094.safetensors",
                         "b/step-00000094.safetensors"));
    ck_assert_int_eq(RUN(&tiny, "--out=c", "--epochs=0.3", "--init=away",
                         "--init-except=linear.*"),
                     0);
    ck_assert(run_says("err", "starting with away: 1 of 2 tensors of Tiny\n"
                              "drawn, not loaded: linear.weight\n"));
    ck_assert(!files_same("a/step-00000094.safetensors",
                          "c/step-00000094.safetensors"));
}
END_TEST

// Nothing is left behind by a run that does not start.
START_TEST(weights_that_do_not_fit_end_a_run) {
    ck_assert_int_eq(RUN(&tiny, "--out=r", "--init=nowhere"), EXIT_DATA);
    ck_assert(run_says("err", "cannot open nowhere"));
    ck_assert_int_eq(RUN(&tiny, "--out=r", "--init=r"), EXIT_DATA);
    ck_assert(run_says("err", "r is not a file"));
    place_write("none", "\x02\0\0\0\0\0\0\0{}", 10);
    ck_assert_int_eq(RUN(&tiny, "--out=r", "--init=none"), EXIT_DATA);
    ck_assert(run_says("err", "it has no conv.weight, linear.weight"));
    ck_assert_int_eq(RUN(&tiny, "--out=r", "--init=none", "--resume"),
                     EXIT_USAGE);
    ck_assert_int_eq(RUN(&tiny, "--out=x", "--resume=none"), EXIT_DATA);
    ck_assert(run_says("err", "it is no checkpoint; --init=FILE starts with"));
    ck_assert_int_eq(place_count("r", ""), 0);
}
END_TEST

// ---- what goes wrong ----

// A path would be passed over.
START_TEST(a_trainer_that_draws_its_data_takes_no_other) {
    RtTrainer t = tiny;
    t.data_format = "synthetic";
    ck_assert_int_eq(run_whole(&t, (char *[]){"--data=nowhere", NULL}),
                     EXIT_USAGE);
    ck_assert(run_says("err", "draws its data"));
    ck_assert_int_eq(run_whole(&t, (char *[]){"--data=synthetic:0", NULL}),
                     EXIT_USAGE);
    ck_assert_int_eq(
        run_whole(&t, (char *[]){"--data=synthetic:99999999999", NULL}),
        EXIT_USAGE);
}
END_TEST

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
    plan = plan_with(steps, RT_TRAIN, train_and_break);
    t.checkpoint_every.count = 0.5;
    stop_at = 200;
    ck_assert_int_eq(
        RUN(&t, "--out=r", "--profile=trace", "--profile-steps=1000"),
        EXIT_DIVERGED);
    ck_assert(run_says("err", "the loss is not a number"));
    ck_assert(run_says("trace", "\"note\":\"steps 4 to "));
    ck_assert_int_eq(place_count("r", ""), 1);
    ck_assert_int_eq(place_count("r", "step-00000157"), 1);
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

// Every fourth step is taken twice, so that the eighth ends with the tenth run
// of it; a bit that is lost elsewhere is not seen.
START_TEST(a_step_that_leaves_other_bits_ends_a_run) {
    RtTrainer t = tiny;
    RtPlan plan = *tiny.plan;
    RtStep steps[TINY_STEPS];
    t.plan = &plan;
    plan = plan_with(steps, RT_TRAIN, train_and_forget);
    t.checkpoint_every = (RtTime){5, RT_STEPS};
    for (stop_at = 8; stop_at <= 11; stop_at++) {
        bool seen = stop_at == 9 || stop_at == 10;
        ck_assert_int_eq(
            RUN(&t, "--out=r", "--epochs=0.05", "--verify-every=4"),
            seen ? EXIT_DEVICE : EXIT_GOOD);
        if (!seen)
            continue;
        ck_assert(run_says("err", "error: host: step 8 was taken twice from "
                                  "the same states and samples, and did not "
                                  "leave the same bits, first of all in "
                                  "linear.weight; it is not saved"));
        ck_assert_int_eq(access("r/step-00000005.safetensors", F_OK), 0);
        ck_assert_int_ne(access("r/step-00000010.safetensors", F_OK), 0);
    }
}
END_TEST

// Also where it is always the same batch.
START_TEST(steps_that_are_verified_are_the_same) {
    static const char *const repeats[] = {"--quiet", "--repeat-batch"};
    char *again = (char *)repeats[_i];
    ck_assert_int_eq(
        RUN(&tiny, "--out=a", "--epochs=0.1", again, "--metrics=ma"), 0);
    ck_assert_int_eq(RUN(&tiny, "--out=b", "--epochs=0.1", again,
                         "--metrics=mb", "--verify-every=1"),
                     0);
    ck_assert(files_same("a/step-00000032.safetensors",
                         "b/step-00000032.safetensors"));
}
END_TEST

static void evaluate_and_break(RtDevice *d) {
    float bad = NAN;
    rt_step_run(tiny.plan, d, RT_EVAL, 0);
    d->write(d, rt_state_find(tiny.plan, "metric.loss")->offset, &bad, 4);
}

// The last update may be the one that is too much.
START_TEST(a_last_evaluation_may_find_that_it_diverged) {
    RtTrainer t = tiny;
    RtPlan plan = *tiny.plan;
    RtStep steps[TINY_STEPS];
    t.plan = &plan;
    plan = plan_with(steps, RT_EVAL, evaluate_and_break);
    ck_assert_int_eq(RUN(&t, "--out=r", "--epochs=0.1"), EXIT_DIVERGED);
    ck_assert(run_says("err", "the loss is not a number"));
    ck_assert_int_eq(RUN(&t, "--out=r", "--eval-only"), EXIT_DIVERGED);
}
END_TEST

START_TEST(mistakes_have_their_status) {
    ck_assert_int_eq(run_whole(&tiny, (char *[]){"--data=nowhere", NULL}),
                     EXIT_DATA);
    ck_assert(run_says("err", "nowhere"));
    ck_assert(run_says("err", "--data synthetic needs none"));
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
    ck_assert(run_says("err", "of images out; this trainer takes cifar10"));
    ck_assert_int_eq(RUN(&tiny, "--metrics=no/such/file"), EXIT_IO);
    place_write("file", "", 0);
    ck_assert_int_eq(RUN(&tiny, "--out=file"), EXIT_IO);
    ck_assert_int_eq(RUN(&tiny, "--epochs=1e8"), EXIT_USAGE);
    ck_assert_int_eq(run_whole(&tiny, (char *[]){"--help", NULL}), EXIT_GOOD);
    ck_assert(run_says("out", "--eval-only"));
    ck_assert(run_says("out", " ends by that signal: 130, 143 or 129."));
    ck_assert_int_eq(run_whole(&tiny, (char *[]){"--version", NULL}),
                     EXIT_GOOD);
    ck_assert(run_says("out", "0.1.0"));
}
END_TEST

START_TEST(too_few_samples_for_a_batch) {
    RtTrainer t = tiny;
    t.drop_last = true;
    t.batch = 20000;
    ck_assert_int_eq(RUN(&t, "--out=r"), EXIT_DATA);
    ck_assert(run_says("err", "10000 samples, less than one batch of 20000"));
}
END_TEST

START_TEST(less_than_an_epoch_is_told_in_steps) {
    ck_assert_int_eq(RUN(&tiny, "--epochs=0.1", "--out=r"), 0);
    ck_assert(run_says("err", "step    32/32    loss "));
    ck_assert(!run_says("err", "epoch  "));
}
END_TEST

START_TEST(one_of_something_has_no_plural) {
    ck_assert_int_eq(RUN(&tiny, "--data=synthetic:1", "--epochs=1", "--out=r"),
                     0);
    ck_assert(run_says("err", "1 training and 1 test sample; 1 step of 32 in "
                              "an epoch, 1 in all\n"));
    ck_assert(run_says("err", " MiB on host, "));
    ck_assert(run_says("err", " of them in its arena\n"));
    ck_assert(run_says("out", ", 1 sample\n"));
    ck_assert_int_eq(
        RUN(&tiny, "--data=synthetic:1", "--epochs=2", "--out=r", "--resume"),
        EXIT_DATA);
    ck_assert(run_says("err", "is of a run of 1 step, not 2; "));
    RtTrainer t = tiny;
    t.length = (RtTime){1, RT_EPOCHS};
    ck_assert_int_eq(run_whole(&t, (char *[]){"--help", NULL}), EXIT_GOOD);
    ck_assert(run_says("out", ", 1 epoch, batch 32, "));
    t.drop_last = true;
    ck_assert_int_eq(RUN(&t, "--data=synthetic:1"), EXIT_DATA);
    ck_assert(run_says("err", "data has 1 sample, less than one batch of 32"));
}
END_TEST

START_TEST(what_does_not_fit_is_not_started) {
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

// A limit on the size of files stands for a disk that is full.
START_TEST(checkpoints_that_cannot_be_written) {
    RtTrainer t = tiny;
    struct rlimit limit = {4096, 4096};
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    t.checkpoint_every.count = 0.1;
    ck_assert_int_eq(RUN(&t, "--out=r", "--epochs=1"), EXIT_IO);
    ck_assert(run_says("err", "failure 2 of 3 in a row"));
    ck_assert_int_eq(run_times("err", "training goes on"), 2);
    ck_assert_int_eq(place_count("r", ""), 0);
}
END_TEST

START_TEST(lost_metrics_do_not_stop_a_run) {
    if (access("/dev/full", W_OK) != 0)
        return;
    ck_assert_int_eq(
        RUN(&tiny, "--out=r", "--epochs=0.1", "--metrics=/dev/full"), EXIT_IO);
    ck_assert(run_says("err", "rows of /dev/full were lost"));
    ck_assert(run_says("out", "test accuracy"));
    ck_assert_int_eq(place_count("r", "step-"), 1);
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

// What a file is given in the place of a closed descriptor would be written
// into that file.
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

START_TEST(a_lost_result_is_an_error) {
    if (access("/dev/full", W_OK) != 0)
        return;
    ck_assert_int_eq(symlink("/dev/full", "out"), 0);
    ck_assert_int_eq(RUN(&tiny, "--out=r", "--epochs=0.1"), EXIT_IO);
    ck_assert(run_says("err", "cannot write the result to stdout"));
    ck_assert_int_eq(place_count("r", "step-"), 1);
}
END_TEST

// One kind of rows has it for itself, and it is not called by its sign.
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

Suite *train_suite(void) {
    Suite *s = suite_create("train");
    TCase *t = tcase_create("train");
    tcase_set_timeout(t, 300);
    tcase_add_checked_fixture(t, place_enter, place_leave);
    tcase_add_test(t, a_run_learns_and_reports);
    tcase_add_test(t, evaluations_leave_training_alone);
    tcase_add_test(t, quiet_is_quiet);
    tcase_add_test(t, the_seed_orders_samples);
    tcase_add_test(t, the_states_of_the_run_are_set);
    tcase_add_test(t, equal_runs_are_equal);
    tcase_add_test(t, steps_end_a_run_early);
    tcase_add_loop_test(t, a_stopped_run_goes_on_to_the_same_bits, 0, 8);
    tcase_add_test(t, a_killed_run_goes_on_from_its_checkpoint);
    tcase_add_test(t, what_a_resumed_run_refuses);
    tcase_add_test(t, eval_only_shows_what_training_showed);
    tcase_add_test(t, rows_of_steps_make_up_those_of_epochs);
    tcase_add_test(t, skipped_steps_are_told_by_epoch);
    tcase_add_test(t, a_resumed_run_tells_all_steps_it_skipped);
    tcase_add_test(t, an_epoch_of_skipped_steps_is_warned_of);
    tcase_add_test(t, a_loss_scale_below_1_ends_a_run);
    tcase_add_test(t, a_run_can_start_from_what_init_only_saves);
    tcase_add_test(t, a_run_starts_with_the_weights_of_a_file);
    tcase_add_test(t, a_run_with_weights_of_a_file_goes_on);
    tcase_add_test(t, weights_that_do_not_fit_end_a_run);
    tcase_add_test(t, a_run_that_diverges_keeps_its_last_good_checkpoint);
    tcase_add_test(t, a_step_that_leaves_other_bits_ends_a_run);
    tcase_add_loop_test(t, steps_that_are_verified_are_the_same, 0, 2);
    tcase_add_test(t, a_last_evaluation_may_find_that_it_diverged);
    tcase_add_test(t, mistakes_have_their_status);
    tcase_add_test(t, a_trainer_that_draws_its_data_takes_no_other);
    tcase_add_test(t, too_few_samples_for_a_batch);
    tcase_add_test(t, less_than_an_epoch_is_told_in_steps);
    tcase_add_test(t, one_of_something_has_no_plural);
    tcase_add_test(t, what_does_not_fit_is_not_started);
    tcase_add_test(t, checkpoints_that_cannot_be_written);
    tcase_add_test(t, lost_metrics_do_not_stop_a_run);
    tcase_add_test(t, a_trace_that_is_lost_is_nowhere);
    tcase_add_test(t, rows_may_go_to_standard_output);
    tcase_add_test(t, files_take_no_closed_descriptors);
    tcase_add_test(t, a_resumed_run_reads_no_rows_from_a_pipe);
    tcase_add_test(t, a_lost_result_is_an_error);
    suite_add_tcase(s, t);
    return s;
}
