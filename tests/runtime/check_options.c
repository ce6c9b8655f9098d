// The command line: accepted options, and messages about mistakes.
#include "runtime/runtime.h"
#include "tests/runtime/suites.h"

#include <string.h>

enum { MOST = 8 };

static bool parse(RtOptions *o, RtError *e, char *const *arguments) {
    char *argv[MOST] = {(char[]){"trainer"}};
    int argc = 1;
    while (arguments[argc - 1] != NULL) {
        argv[argc] = arguments[argc - 1];
        argc++;
    }
    return rt_options_parse(o, argc, argv, NULL, e);
}

#define PARSE(o, e, ...) parse((o), (e), (char *[]){__VA_ARGS__, NULL})

START_TEST(both_forms) {
    RtOptions o;
    RtError e;
    ck_assert(PARSE(&o, &e, "--data", "here", "--out=there", "--epochs=2.5",
                    "--seed", "7"));
    ck_assert_str_eq(o.data, "here");
    ck_assert_str_eq(o.out, "there");
    ck_assert(o.epochs == 2.5);
    ck_assert_int_eq(o.seed, 7);
    ck_assert_str_eq(o.device, "auto");
    ck_assert(!o.resume && !o.quiet && !o.eval_only);
}
END_TEST

START_TEST(bad_samples_stop_or_are_counted) {
    RtOptions o;
    RtError e;
    ck_assert(PARSE(&o, &e, "--bad-samples=skip:12"));
    ck_assert_int_eq(o.bad_samples, 12);
    ck_assert(PARSE(&o, &e, "--bad-samples", "stop"));
    ck_assert_int_eq(o.bad_samples, 0);
    ck_assert_int_eq(o.max_image_pixels, 0);
    ck_assert(PARSE(&o, &e, "--max-image-pixels", "1000"));
    ck_assert_int_eq(o.max_image_pixels, 1000);
}
END_TEST

START_TEST(options_have_defaults) {
    RtOptions o;
    RtError e;
    ck_assert(rt_options_parse(&o, 1, (char *[]){"trainer", NULL}, NULL, &e));
    ck_assert(o.epochs == 0);
    ck_assert_int_eq(o.seed, -1);
    ck_assert_int_eq(o.threads, 0);
    ck_assert_ptr_null(o.data);
}
END_TEST

START_TEST(resume_takes_a_path_after_the_sign_only) {
    RtOptions o;
    RtError e;
    ck_assert(PARSE(&o, &e, "--resume", "--quiet"));
    ck_assert(o.resume && o.quiet);
    ck_assert_ptr_null(o.resume_path);
    ck_assert(PARSE(&o, &e, "--resume=some/file"));
    ck_assert(o.resume);
    ck_assert_str_eq(o.resume_path, "some/file");
    ck_assert(!PARSE(&o, &e, "--resume", "some/file"));
    ck_assert_ptr_nonnull(strstr(e.text, "named by --resume=some/file"));
}
END_TEST

START_TEST(weights_are_not_loaded_twice) {
    RtOptions o;
    RtError e;
    ck_assert(PARSE(&o, &e, "--init=f", "--init-except", "a,b", "--init-only"));
    ck_assert_str_eq(o.init, "f");
    ck_assert_str_eq(o.init_except, "a,b");
    ck_assert(PARSE(&o, &e, "--init", "f", "--eval-only"));
    ck_assert(!PARSE(&o, &e, "--init=f", "--resume=c"));
    ck_assert_int_eq(e.status, EXIT_USAGE);
    ck_assert_ptr_nonnull(strstr(e.text, "--init and --resume exclude"));
}
END_TEST

START_TEST(without_takes_a_list) {
    RtOptions o;
    RtError e;
    RtPlan plan = {.num_merged = 2, .num_fusions = 3};
    ck_assert(PARSE(&o, &e, "--without", "library-fusions,graph"));
    rt_without_apply(o.without, &plan);
    ck_assert(plan.one_by_one && plan.num_merged == 2 && plan.num_fusions == 0);
    ck_assert(!plan.unmarked);
    plan = (RtPlan){.num_merged = 2, .num_fusions = 3};
    ck_assert(PARSE(&o, &e, "--without=merged-launches"));
    rt_without_apply(o.without, &plan);
    ck_assert(!plan.one_by_one && plan.num_merged == 0);
    ck_assert_int_eq(plan.num_fusions, 3);
    plan = (RtPlan){.num_merged = 2, .num_fusions = 3};
    ck_assert(PARSE(&o, &e, "--without=timing-events"));
    rt_without_apply(o.without, &plan);
    ck_assert(plan.unmarked && plan.num_merged == 2 && plan.num_fusions == 3);
    ck_assert(!plan.serialized);
    ck_assert(PARSE(&o, &e, "--without=programmatic-launches"));
    rt_without_apply(o.without, &plan);
    ck_assert(plan.serialized && !plan.unmarked && plan.num_merged == 2);
    ck_assert(!plan.ungrouped);
    ck_assert(PARSE(&o, &e, "--without=step-groups"));
    rt_without_apply(o.without, &plan);
    ck_assert(plan.ungrouped && !plan.serialized);
}
END_TEST

START_TEST(loading_alone_takes_no_step) {
    static const char *const other[] = {"--init-only",
                                        "--eval-only",
                                        "--resume",
                                        "--tune",
                                        "--steps=3",
                                        "--log-every=2",
                                        "--times=f",
                                        "--snapshot=f",
                                        "--profile=f",
                                        "--repeat-batch",
                                        "--nvtx",
                                        "--load-cuda=d",
                                        "--without=library-fusions",
                                        "--init=f",
                                        "--verify-every=2"};
    RtOptions o;
    RtError e = {0};
    ck_assert(PARSE(&o, &e, "--load-only", "--device=cuda:0", "--epochs=2",
                    "--metrics=-"));
    ck_assert(o.load_only);
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        ck_assert_msg(!PARSE(&o, &e, (char *)other[i], "--load-only"),
                      "%s was accepted", other[i]);
        ck_assert_int_eq(e.status, EXIT_USAGE);
        char says[80];
        snprintf(says, sizeof says, "--load-only and %.*s exclude each other",
                 (int)strcspn(other[i], "="), other[i]);
        ck_assert_str_eq(e.text, says);
    }
}
END_TEST

static const struct {
    const char *argument, *says;
} wrong[] = {
    {"--epoch=3", "did you mean --epochs?"},
    {"--log-every=0", "--log-every 0: expected a number of steps from 1"},
    {"--evalonly", "did you mean --eval-only?"},
    {"--sede=1", "did you mean --seed?"},
    {"--frobnicate", "unknown option --frobnicate; see --help"},
    {"--set=batch=3", "keys of the recipe: sinter build FILE.net --set"},
    {"--a-very-long-option-that-nothing-is-near-to-at-all", "unknown option"},
    {"-x", "unexpected argument -x"},
    {"--", "unexpected argument --"},
    {"data", "unexpected argument data"},
    {"--data", "--data needs a value: DIR"},
    {"--data=", "--data needs a value"},
    {"--quiet=yes", "--quiet takes no value"},
    {"--resume=", "--resume= needs a path"},
    {"--init", "--init needs a value: PATH"},
    {"--init-except=head.*", "--init-except needs --init=FILE"},
    {"--epochs=0", "expected a number above 0"},
    {"--epochs=-1", "expected a number above 0"},
    {"--epochs=nan", "expected a number above 0"},
    {"--epochs=3x", "expected a number above 0"},
    {"--epochs=0x4", "expected a number above 0"},
    {"--epochs= 4", "expected a number above 0"},
    {"--validation=0x4", "--validation 0x4: expected a number of samples"},
    {"--validation=0xap1%", "expected a number of samples from 1, or a share"},
    {"--epochs=1e300", "--epochs 1e300: expected a number above 0, at most "
                       "1000000000"},
    {"--epochs=1000000001", "at most 1000000000"},
    {"--steps=2147483648", "expected a number of steps from 1 to 2147483647"},
    {"--stall-timeout=0", "--stall-timeout 0: expected a number above 0"},
    {"--collectives=nvlink", "expected auto, shared, mpi or nccl"},
    {"--reduce=slow", "expected fixed or fast"},
    {"--seed=-1", "expected a whole number"},
    {"--seed=1.5", "expected a whole number"},
    {"--seed=2147483648", "expected a whole number"},
    {"--seed=99999999999999999999", "expected a whole number"},
    {"--without=", "--without needs a value: LIST"},
    {"--without=graph,",
     "--without graph,: expected a comma-separated list of graph, library"},
    {"--without=grap",
     "--without grap: expected a comma-separated list of graph, library"},
    {"--bad-samples=skip", "expected stop, or skip:N with a number from 1"},
    {"--bad-samples=skip:0", "--bad-samples skip:0: expected stop, or"},
    {"--bad-samples=12", "--bad-samples 12: expected stop, or skip:N"},
    {"--max-image-pixels=0", "expected a number of pixels from 1 to"},
    {"--max-image-pixels=2147483648", "from 1 to 2147483647"},
    {"--threads=0", "from 1 to 1024"},
    {"--threads=1025", "from 1 to 1024"},
    {"--loaders=0", "from 1 to 64"},
    {"--loaders=65", "from 1 to 64"},
};

START_TEST(mistakes_are_named) {
    RtOptions o;
    RtError e = {0};
    ck_assert_msg(!PARSE(&o, &e, (char *)wrong[_i].argument), "%s was accepted",
                  wrong[_i].argument);
    ck_assert_int_eq(e.status, EXIT_USAGE);
    ck_assert_msg(strstr(e.text, wrong[_i].says) != NULL, "%s", e.text);
}
END_TEST

// Settings of the model file that a trainer was compiled from.
static const struct {
    const char *word, *next, *says;
} setting[] = {
    {"--batch=64", NULL, "sinter build x.net --set batch=64"},
    {"--batch", "64", "sinter build x.net --set batch=64"},
    {"--batch", "--quiet", "sinter build x.net --set batch=VALUE"},
    {"--rate=0.1", NULL, "sinter build x.net --set rate=0.1"},
    {"--lr=0.1", NULL, "sinter build x.net --set optimizer.lr=0.1"},
    {"--smoothing=0.1", NULL, "keys of the recipe: sinter build FILE.net"},
    {"--bach=64", NULL, "keys of the recipe: sinter build FILE.net"},
};

START_TEST(settings_are_named) {
    static const RtNamed source = {"x.net",
                                   "model M(x: f32[N, 1]) {\n  x\n}\n\n"
                                   "train M {\n  batch = 2\n  rate=1\n"
                                   "  loss = mean(cross(x, smoothing=0))\n"
                                   "  optimizer = sgd(rate, lr=rate)\n}\n"};
    const RtTrainer t = {.file = "x.net", .source = &source, .num_sources = 1};
    char *word[] = {"trainer", (char *)setting[_i].word,
                    (char *)setting[_i].next};
    int count = setting[_i].next ? 3 : 2;
    RtOptions o;
    RtError e = {0};
    ck_assert(!rt_options_parse(&o, count, word, &t, &e));
    ck_assert_int_eq(e.status, EXIT_USAGE);
    ck_assert_msg(strstr(e.text, setting[_i].says) != NULL, "%s", e.text);
}
END_TEST

Suite *options_suite(void) {
    Suite *s = suite_create("options");
    TCase *t = tcase_create("options");
    tcase_add_test(t, both_forms);
    tcase_add_test(t, bad_samples_stop_or_are_counted);
    tcase_add_test(t, options_have_defaults);
    tcase_add_test(t, resume_takes_a_path_after_the_sign_only);
    tcase_add_test(t, weights_are_not_loaded_twice);
    tcase_add_test(t, without_takes_a_list);
    tcase_add_test(t, loading_alone_takes_no_step);
    tcase_add_loop_test(t, mistakes_are_named, 0,
                        sizeof wrong / sizeof wrong[0]);
    tcase_add_loop_test(t, settings_are_named, 0,
                        sizeof setting / sizeof setting[0]);
    suite_add_tcase(s, t);
    return s;
}
