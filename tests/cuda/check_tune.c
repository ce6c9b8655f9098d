// Tuning: what is taken follows from what was measured, and a file of it is
// read as it was written or not at all.  Plans are the double's, for a device
// that is described; times are made up.
#define _XOPEN_SOURCE 700

#include "tests/cuda/suites.h"

#include "runtime/cuda/tune.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Two convolutions, and a step that is: call 0, the kernel of its statistics,
// the kernel that applies batch_norm, call 1, the gradients by call 2 and 3,
// and the kernel that reduces the last.
#define CONV(of)                                                               \
    {                                                                          \
        .layer = "layer", .kind = of, .type = RT_F16, .n = 8, .h = 8, .w = 8,  \
        .c = 16, .k = 16, .r = 3, .s = 3, .oh = 8, .ow = 8, .stride = {1, 1},  \
        .dilation = {1, 1}, .pad = {1, 1, 1, 1}, .groups = 1                   \
    }
static const RtCall calls[] = {
    {.layer = "first",
     .kind = RT_CONV,
     .type = RT_F16,
     .n = 8,
     .h = 8,
     .w = 8,
     .c = 8,
     .k = 16,
     .r = 3,
     .s = 3,
     .oh = 8,
     .ow = 8,
     .stride = {1, 1},
     .dilation = {1, 1},
     .pad = {1, 1, 1, 1},
     .groups = 1},
    CONV(RT_CONV),
    CONV(RT_CONV_GRAD_WEIGHT),
    CONV(RT_CONV_GRAD_INPUT),
};
enum { LAUNCHES = 7, STATISTICS = 1, APPLY = 2, REDUCE = 6 };
static const int call_of[LAUNCHES] = {0, -1, -1, 1, 2, 3, -1};
static const RtNorm norms[] = {{.channels = 16, .count = 512, .form_bytes = 1}};
static const RtFusion fusions[] = {
    {.kind = RT_FUSED_STATISTICS, .call = 0, .launch = 1, .together = -1},
    {.kind = RT_FUSED_PROLOGUE, .call = 1, .launch = 2, .together = 2},
    {.kind = RT_FUSED_PROLOGUE_WEIGHT, .call = 2, .launch = -1, .together = 1},
    {.kind = RT_FUSED_BACKWARD, .call = 3, .launch = 6, .together = -1},
};
static const RtPlan plan = {.call = calls,
                            .num_calls = 4,
                            .fusion = fusions,
                            .num_fusions = 4,
                            .norm = norms,
                            .num_norms = 1};

// What launches take: a kernel, a call, what each fusion adds to its call, and
// what making the forms does.  One candidate of calls alone is faster.
typedef struct {
    double kernel, call, more[4], forms;
    int fast;
} Times;

static double call_seconds(const Times *t, const RtConvolutions *v, int call) {
    RtPlanned p = {0};
    rt_convolutions_planned(v, rt_convolutions_of(v, call), &p);
    double seconds = t->call;
    for (int k = 0; k < 4; k++)
        if (p.with >> k & 1)
            seconds += t->more[k];
    if (p.with == 0 && p.plan->candidate == t->fast)
        seconds *= 0.5;
    const bool *taken = rt_convolutions_taken(v);
    return seconds + (call == 0 && (taken[1] || taken[3]) ? t->forms : 0);
}

static bool measure(void *arg, RtConvolutions *v, double *seconds, RtError *e) {
    const Times *t = arg;
    (void)e;
    for (int i = 0; i < LAUNCHES; i++)
        seconds[i] = call_of[i] >= 0 ? call_seconds(t, v, call_of[i])
                     : rt_convolutions_save(v, 0, i) ? 0
                                                     : t->kernel;
    return true;
}

static RtCudnn cudnn;

static void open_library(void) {
    RtError e;
    char json[1 << 14] = "";
    const char *source = getenv("SINTER_SOURCE");
    char path[1000];
    snprintf(path, sizeof path, "%s/devices/h200.json", source);
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_gt(fread(json, 1, sizeof json - 1, f), 0);
    fclose(f);
    ck_assert_msg(rt_cudnn_open(&cudnn, &e), "%s", e.text);
    ck_assert_msg(rt_cudnn_describe(&cudnn, json, &e), "%s", e.text);
}

static void close_library(void) {
    rt_cudnn_close(&cudnn);
}

static void tune(Times times, RtTuning *t, double *before, double *after) {
    RtError e;
    const RtTuner tuner = {.cudnn = &cudnn,
                           .plan = &plan,
                           .launches = LAUNCHES,
                           .call = call_of,
                           .measure = measure,
                           .arg = &times};
    ck_assert_msg(rt_tune(&tuner, t, before, after, &e), "%s", e.text);
}

static const char *wanted(Times times) {
    static char text[5];
    RtTuning t;
    double before, after;
    tune(times, &t, &before, &after);
    for (int i = 0; i < 4; i++)
        text[i] = t.wanted[i] ? '1' : '0';
    rt_tuning_free(&t);
    return text;
}

START_TEST(what_saves_rides) {
    ck_assert_str_eq(wanted((Times){.kernel = 5, .call = 10, .fast = -1}),
                     "1111");
}
END_TEST

START_TEST(what_costs_does_not) {
    const Times times = {.kernel = 5, .call = 10, .fast = -1};
    Times t = times;
    t.more[RT_FUSED_PROLOGUE] = 6;
    ck_assert_str_eq(wanted(t), "1001");
    t.more[RT_FUSED_BACKWARD] = 6;
    ck_assert_str_eq(wanted(t), "1000");
    t.more[RT_FUSED_STATISTICS] = 6;
    ck_assert_str_eq(wanted(t), "0000");
    t = times;
    t.more[RT_FUSED_PROLOGUE_WEIGHT] = 6;
    ck_assert_str_eq(wanted(t), "1001");
}
END_TEST

// Statistics that cost a little are worth what they make possible.
START_TEST(statistics_pay_by_what_reads_them) {
    Times t = {.kernel = 5, .call = 10, .fast = -1};
    t.more[RT_FUSED_STATISTICS] = 8;
    ck_assert_str_eq(wanted(t), "1111");
    t.more[RT_FUSED_STATISTICS] = 16;
    ck_assert_str_eq(wanted(t), "0000");
}
END_TEST

START_TEST(forms_must_pay) {
    Times t = {.kernel = 5, .call = 10, .forms = 9, .fast = -1};
    ck_assert_str_eq(wanted(t), "1111");
    t.forms = 11;
    ck_assert_str_eq(wanted(t), "1000");
}
END_TEST

// A plan that is twice as fast without a fusion is better than what fusions
// save.
START_TEST(the_fastest_candidate_is_found) {
    RtTuning t;
    RtError e;
    double before, after;
    RtConvolutions *v = rt_convolutions_new(&cudnn, &plan, NULL, &e);
    RtPlanned p;
    int first = 0;
    for (int i = 0; rt_convolutions_planned(v, i, &p); i++)
        if (p.with == 0 && p.plan != NULL)
            first = p.plan->candidate;
    rt_convolutions_free(v);
    tune((Times){.kernel = 1, .call = 10, .fast = 6}, &t, &before, &after);
    ck_assert_int_ne(first, 6);
    for (int i = 0; i < t.num_tuned; i++)
        if (t.tuned[i].with == 0)
            ck_assert_int_eq(t.tuned[i].candidate, 6);
    for (int i = 0; i < 4; i++)
        ck_assert(!t.wanted[i]);
    ck_assert_double_eq_tol(after, 4 * 5 + 3, 1e-9);
    ck_assert_double_lt(after, before);
    rt_tuning_free(&t);
}
END_TEST

// ---- files ----

static bool same(const RtTuning *a, const RtTuning *b) {
    bool good = a->num_tuned == b->num_tuned;
    for (int i = 0; good && i < a->num_tuned; i++)
        good = a->tuned[i].call == b->tuned[i].call &&
               a->tuned[i].with == b->tuned[i].with &&
               a->tuned[i].candidate == b->tuned[i].candidate &&
               a->tuned[i].engine == b->tuned[i].engine;
    return good && memcmp(a->wanted, b->wanted, 4 * sizeof(bool)) == 0;
}

static void write_text(const char *path, const char *text, size_t length) {
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(text, 1, length, f), length);
    fclose(f);
}

// Every file that is shorter, or has another byte, is read as one that fits the
// plan or not at all.
START_TEST(a_file_is_read_as_it_was_written) {
    RtTuning t, back;
    RtError e;
    double before, after;
    char path[] = "/tmp/sinter-tuning-XXXXXX", text[4000] = "";
    tune((Times){.kernel = 5, .call = 10, .fast = 6}, &t, &before, &after);
    close(mkstemp(path));
    ck_assert(rt_tuning_write(&t, path, &plan, &rt_system_files, &e));
    ck_assert(rt_tuning_read(&back, path, &plan, &rt_system_files));
    ck_assert(same(&t, &back));
    rt_tuning_free(&back);
    FILE *f = fopen(path, "r");
    size_t length = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    for (size_t i = 0; i + 1 < length; i++) {
        write_text(path, text, i);
        ck_assert(!rt_tuning_read(&back, path, &plan, &rt_system_files));
    }
    for (size_t i = 0; i < length; i++) {
        char is = text[i];
        text[i] = '9';
        write_text(path, text, length);
        if (rt_tuning_read(&back, path, &plan, &rt_system_files)) {
            for (int k = 0; k < back.num_tuned; k++)
                ck_assert_int_lt(back.tuned[k].call, plan.num_calls);
            rt_tuning_free(&back);
        }
        text[i] = is;
    }
    unlink(path);
    rt_tuning_free(&t);
}
END_TEST

// What names an engine that the library no longer has in that place is not
// taken.
START_TEST(another_engine_is_not_taken) {
    RtTuning t;
    RtError e;
    RtPlanned p;
    ck_assert(rt_tuning_new(&t, &plan, &e));
    t.num_tuned = 1;
    t.tuned[0] = (RtTuned){.call = 0, .with = 0, .candidate = 6, .engine = 999};
    RtConvolutions *v = rt_convolutions_new(&cudnn, &plan, &t, &e);
    ck_assert(rt_convolutions_planned(v, rt_convolutions_of(v, 0), &p));
    ck_assert_int_ne(p.plan->candidate, 6);
    ck_assert_uint_eq(p.with, 0); // nothing is wanted
    rt_convolutions_free(v);
    rt_tuning_free(&t);
}
END_TEST

START_TEST(a_file_is_for_one_plan_on_one_kind_of_gpu) {
    const RtTuningKey key = {&plan, "NVIDIA H200", 90, 132, 13000, 91900};
    RtTuningKey other[5] = {key, key, key, key, key};
    RtPlan fewer = plan;
    fewer.num_fusions--;
    other[0].plan = &fewer;
    other[1].gpu = "NVIDIA H100";
    other[2].processors = 114;
    other[3].driver = 12080;
    other[4].cudnn = 91800;
    char *path = rt_tuning_path("folder", &key);
    ck_assert_int_eq(strncmp(path, "folder/", 7), 0);
    for (int i = 0; i < 5; i++) {
        char *another = rt_tuning_path("folder", &other[i]);
        ck_assert_str_ne(path, another);
        free(another);
    }
    free(path);
}
END_TEST

Suite *tune_suite(void) {
    Suite *s = suite_create("tune");
    TCase *t = tcase_create("tune");
    tcase_add_checked_fixture(t, open_library, close_library);
    tcase_add_test(t, what_saves_rides);
    tcase_add_test(t, what_costs_does_not);
    tcase_add_test(t, statistics_pay_by_what_reads_them);
    tcase_add_test(t, forms_must_pay);
    tcase_add_test(t, the_fastest_candidate_is_found);
    tcase_add_test(t, a_file_is_read_as_it_was_written);
    tcase_add_test(t, another_engine_is_not_taken);
    tcase_add_test(t, a_file_is_for_one_plan_on_one_kind_of_gpu);
    suite_add_tcase(s, t);
    return s;
}
