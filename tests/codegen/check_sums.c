// The sums of an epoch, as emitted kernels add to them and the runtime reads
// them: docs/numerics.md derives their error, section 2.
#define _GNU_SOURCE
#include "frontend/frontend.h"
#include "passes/passes.h"
#include "runtime/runtime.h"
#include "tests/codegen/library.h"
#include "tests/codegen/suites.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// An evaluation of one sample, whose loss is the number in the image.
static const char model[] =
    "model Sums(image: f32[N, 2, 1, 1]) -> f32[N, 2, 1, 1] {\n"
    "image |> batch_norm\n}\n"
    "train Sums {\ndata = synthetic()\nbatch = 1\nepochs = 1\n"
    "loss = mean(input + 0.0 * output)\noptimizer = sgd(lr=0.1)\n}\n";

typedef struct {
    Arena *a;
    const char *folder;
    void *library;
    const RtPlan *plan;
    RtDevice *device;
} Run;

static Run run_begin(void) {
    Run r = {.a = arena_new()};
    Diagnostics diags = diag_new(r.a);
    Program *p =
        frontend_parse(r.a, "x.net", model, strlen(model), NULL, 0, &diags);
    ck_assert_ptr_nonnull(p);
    PassOptions o = pass_options(&p->recipe, "host");
    const char *name[] = {"sums"}, *why;
    r.folder = library_folder(r.a);
    library_write(r.a, r.folder, "sums", p, program_plan(p, &o));
    why = library_compile(r.a, r.folder, 1, name, "-O2");
    ck_assert_msg(why == NULL, "%s", why);
    r.library = library_open(r.a, r.folder, &why);
    ck_assert_msg(r.library != NULL, "%s", why);
    return r;
}

static void run_end(Run *r) {
    const char *name[] = {"sums"};
    r->device->close(r->device);
    library_remove(r->a, r->folder, 1, name);
    arena_free(r->a);
}

static void start(Run *r) {
    r->device->reserve(r->device);
    rt_states_start(r->plan, r->device, &(RtProgress){.steps = 1});
}

static void open_host(Run *r) {
    r->plan = library_plan(r->a, r->library, "sums");
    r->device = host_open(r->plan, 1);
    start(r);
}

static void open_gpu(Run *r) {
    const char *why;
    r->device = library_gpu(r->a, r->library, "sums", &r->plan, &why);
    ck_assert_msg(r->device != NULL, "%s", why);
    start(r);
}

static void evaluate(const Run *r, float loss) {
    const RtStep *step = rt_step_find(r->plan, RT_EVAL, 0);
    float image[2] = {loss, loss};
    int32_t valid = 1;
    for (int i = 0; i < step->num_inputs; i++) {
        const RtInput *in = &step->input[i];
        bool is_image = strcmp(in->name, "image") == 0;
        r->device->write(r->device, in->offset,
                         is_image ? (void *)image : (void *)&valid,
                         rt_input_bytes(in));
    }
    r->device->run(r->device, step);
}

static double value_of(RtSum s) {
    return (double)s.high + (double)s.low;
}

// The loss of sample k: always the same, or one in 0 ... 4.
static float loss_of(bool same, uint32_t k) {
    return same ? 1.44f : (float)(k * 2654435761u >> 8) * 0x1p-22f;
}

// Where a count begins, to which f32 cannot add 1.
static const float MANY = 0x1p40f;

// (3 u + n u^2) of the sum, u = 2^-24.
static double most_lost(double n, double sum) {
    return (3 * 0x1p-24 + n * 0x1p-48) * sum;
}

// The last 100,000 of ten million samples: a sum in f32, where 1.2e7 has no
// fraction, would be wrong by tens of thousands.
START_TEST(ten_million_samples_keep_their_digits) {
    enum { SAMPLES = 10000000, BEFORE = SAMPLES - 100000 };
    static const float before[2] = {1.2e7f, 0.125f};
    Run r = run_begin();
    open_host(&r);
    double sum = (double)before[0] + (double)before[1];
    rt_metrics_write(
        r.plan, r.device,
        &(RtMetrics){.loss = {before[0], before[1]}, .count = {MANY, 0}});
    for (uint32_t k = BEFORE; k < SAMPLES; k++) {
        float loss = loss_of(_i == 0, k);
        evaluate(&r, loss);
        sum += (double)loss;
    }
    RtMetrics m = rt_metrics_read(r.plan, r.device);
    ck_assert(most_lost(SAMPLES, 1) < 1e-6);
    ck_assert_double_le(fabs(value_of(m.loss) - sum), most_lost(SAMPLES, sum));
    ck_assert_double_eq(value_of(m.count), (double)MANY + SAMPLES - BEFORE);
    run_end(&r);
}
END_TEST

// The sum of an evaluation that was infinite once is not NaN.
START_TEST(infinite_sums_stay_infinite) {
    Run r = run_begin();
    open_host(&r);
    evaluate(&r, 1);
    evaluate(&r, FLT_MAX); // whose sum over both places is infinite
    evaluate(&r, 1);
    ck_assert_double_eq(value_of(rt_metrics_read(r.plan, r.device).loss),
                        (double)INFINITY);
    evaluate(&r, NAN);
    ck_assert(isnan(value_of(rt_metrics_read(r.plan, r.device).loss)));
    run_end(&r);
}
END_TEST

// Goes on from what ten million samples have left.
static RtMetrics go_on(const Run *r, int samples) {
    RtMetrics m = {.loss = {1.44e7f, 0.25f}, .count = {MANY, 0}};
    rt_metrics_write(r->plan, r->device, &m);
    for (int k = 0; k < samples; k++)
        evaluate(r, loss_of(k % 2, (uint32_t)k));
    return rt_metrics_read(r->plan, r->device);
}

static void check_same(RtSum x, RtSum y) {
    ck_assert_mem_eq(&x, &y, sizeof x);
}

START_TEST(a_gpu_sums_as_the_host) {
    enum { SAMPLES = 1000 };
    Run host = run_begin(), gpu = run_begin();
    open_host(&host);
    open_gpu(&gpu);
    RtMetrics here = go_on(&host, SAMPLES), there = go_on(&gpu, SAMPLES);
    double sum = 1.44e7 + 0.25;
    for (int k = 0; k < SAMPLES; k++)
        sum += (double)loss_of(k % 2, (uint32_t)k);
    check_same(here.loss, there.loss);
    check_same(here.count, there.count);
    ck_assert_double_le(fabs(value_of(there.loss) - sum),
                        most_lost(SAMPLES, sum - 1.44e7) +
                            SAMPLES * 0x1p-48 * sum);
    ck_assert_double_eq(value_of(there.count), (double)MANY + SAMPLES);
    run_end(&host);
    run_end(&gpu);
}
END_TEST

// A GPU is there only where CK_RUN_CASE asks for it.
Suite *sums_suite(void) {
    Suite *s = suite_create("sums");
    TCase *t = tcase_create("host");
    tcase_set_timeout(t, 300);
    tcase_add_loop_test(t, ten_million_samples_keep_their_digits, 0, 2);
    tcase_add_test(t, infinite_sums_stay_infinite);
    suite_add_tcase(s, t);
    const char *only = getenv("CK_RUN_CASE");
    t = tcase_create("gpu");
    tcase_set_timeout(t, 300);
    if (only != NULL && strcmp(only, "gpu") == 0)
        tcase_add_test(t, a_gpu_sums_as_the_host);
    suite_add_tcase(s, t);
    return s;
}
