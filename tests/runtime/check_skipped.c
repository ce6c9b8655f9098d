// Runs that skip steps, as with a loss scale and non-finite gradients.
#define _POSIX_C_SOURCE 200809L

#include "runtime/runtime.h"
#include "tests/runtime/place.h"
#include "tests/runtime/runs.h"
#include "tests/runtime/suites.h"
#include "tests/runtime/tiny.h"

#include <math.h>
#include <string.h>

static float least_scale; // minimum of the scale
static int32_t skip_every;

// The plan, with the states of a scaled loss after the others.
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

// Counts a step as a skipped update does.
static void train_and_skip(RtDevice *d) {
    size_t end = rt_state_find(tiny.plan, "metric.lr")->offset + sizeof(float);
    float skipped_scale[2];
    bool skips = run_state(tiny.plan, d, "run.step") % skip_every == 0;
    rt_step_run(tiny.plan, d, RT_TRAIN, 0);
    d->sync(d);
    if (!skips)
        return;
    d->read(d, skipped_scale, end, sizeof skipped_scale);
    skipped_scale[0]++;
    skipped_scale[1] = fmaxf(skipped_scale[1] / 2, least_scale);
    d->write(d, end, skipped_scale, sizeof skipped_scale);
}

// A trainer with short epochs that skips steps whose number is a multiple of
// `every`.
static RtTrainer trainer_that_skips(RtPlan *plan, RtState *states,
                                    RtStep *steps, int32_t every) {
    RtTrainer t = tiny;
    skip_every = every;
    *plan = plan_scaled(states);
    RtPlan with = plan_with(tiny.plan, steps, RT_TRAIN, train_and_skip);
    plan->step = with.step;
    t.plan = plan;
    t.eval_every.count = 0.3;
    return t;
}

enum { MAX_STATES = 16 };

#define SHORT "--data=synthetic:320", "--epochs=3"

START_TEST(skipped_steps_are_reported_by_epoch) {
    RtPlan plan;
    RtState states[MAX_STATES];
    RtStep steps[TINY_STEPS];
    RtTrainer t = trainer_that_skips(&plan, states, steps, 4);
    least_scale = 1;
    ck_assert_int_eq(RUN(&t, SHORT, "--out=r", "--metrics=m"), 0);
    // Ten steps an epoch: 0, 4 and 8; 12 and 16; 20, 24 and 28.
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

// Also from a checkpoint within an epoch.
START_TEST(a_resumed_run_reports_all_skipped_steps) {
    RtPlan plan;
    RtState states[MAX_STATES];
    RtStep steps[TINY_STEPS];
    RtTrainer t = trainer_that_skips(&plan, states, steps, 4);
    char whole[4096], parts[4096];
    least_scale = 1;
    ck_assert_int_eq(RUN(&t, SHORT, "--out=a", "--metrics=ma"), 0);
    ck_assert_int_eq(RUN(&t, SHORT, "--out=b", "--metrics=mb", "--steps=15"),
                     0);
    ck_assert_int_eq(run_times("mb", "\"skipped\":2"), 0);
    ck_assert_int_eq(RUN(&t, SHORT, "--out=b", "--metrics=mb", "--resume"), 0);
    run_rows("ma", whole, sizeof whole);
    run_rows("mb", parts, sizeof parts);
    ck_assert_str_eq(whole, parts);
    ck_assert(files_same("a/step-00000030.safetensors",
                         "b/step-00000030.safetensors"));
}
END_TEST

START_TEST(an_epoch_of_skipped_steps_is_warned_of) {
    RtPlan plan;
    RtState states[MAX_STATES];
    RtStep steps[TINY_STEPS];
    RtTrainer t = trainer_that_skips(&plan, states, steps, 1);
    least_scale = 0.5;
    ck_assert_int_eq(RUN(&t, "--data=synthetic:256", "--epochs=2", "--out=r"),
                     0);
    ck_assert_int_eq(run_times("err", "warning: every step of this epoch"), 2);
    ck_assert_int_eq(run_times("err", "is 256 and is halved by each of them"),
                     1);
    ck_assert_int_eq(run_times("err", "is 1 and is halved by each of them"), 1);
    // The last epoch is short.
    ck_assert_int_eq(RUN(&t, "--data=synthetic:320", "--epochs=0.5", "--out=s"),
                     0);
    ck_assert_int_eq(run_times("err", "warning: every step of this epoch"), 1);
    // Without a scale nothing is skipped.
    ck_assert_int_eq(RUN(&tiny, SHORT, "--out=t", "--metrics=m"), 0);
    ck_assert_int_eq(run_times("m", "skipped"), 0);
}
END_TEST

// Step 17 is the first that is skipped at scale 1: the checkpoint of the epoch
// before remains.
START_TEST(a_loss_scale_below_1_ends_a_run) {
    RtPlan plan;
    RtState states[MAX_STATES];
    RtStep steps[TINY_STEPS];
    RtTrainer t = trainer_that_skips(&plan, states, steps, 1);
    least_scale = 0.5;
    ck_assert_int_eq(RUN(&t, SHORT, "--out=a", "--steps=16"), 0);
    ck_assert_int_eq(RUN(&t, SHORT, "--out=b", "--steps=17"), EXIT_DIVERGED);
    ck_assert_int_eq(RUN(&t, SHORT, "--out=c", "--metrics=m"), EXIT_DIVERGED);
    ck_assert(run_says("err", "gradients are not finite at the smallest loss "
                              "scale, 1, after step 20, epoch 2.00; build with "
                              "precision=bf16 or f32"));
    ck_assert(
        run_says("err", "replaying from step 10 to find the first operation"));
    ck_assert(run_says("m", "\"step\":20,"));
    ck_assert(run_says("m", "\"loss_scale\":0.5,"));
    ck_assert_int_eq(run_times("m", "\"step\":30,"), 0);
    ck_assert_int_eq(place_count("c", "step-00000010"), 1);
    ck_assert_int_eq(place_count("c", "step-"), 1);
}
END_TEST

Suite *skipped_suite(void) {
    Suite *s = suite_create("skipped");
    TCase *t = tcase_create("skipped");
    tcase_set_timeout(t, 300);
    tcase_add_checked_fixture(t, place_enter, place_leave);
    tcase_add_test(t, skipped_steps_are_reported_by_epoch);
    tcase_add_test(t, a_resumed_run_reports_all_skipped_steps);
    tcase_add_test(t, an_epoch_of_skipped_steps_is_warned_of);
    tcase_add_test(t, a_loss_scale_below_1_ends_a_run);
    suite_add_tcase(s, t);
    return s;
}
