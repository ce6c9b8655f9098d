// The double of cuDNN, through the runtime's own plans: convolutions and
// library fusions, against sums in double.
#include "tests/runtime/cuda/double/check_double.h"

#include "runtime/cuda/libraries/cudnn.h"
#include "tests/runtime/cuda/double/double.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const RtCall calls[] = {
    {.type = RT_F32,
     .n = 2,
     .h = 5,
     .w = 4,
     .c = 3,
     .k = 2,
     .r = 3,
     .s = 3,
     .oh = 5,
     .ow = 4,
     .stride = {1, 1},
     .dilation = {1, 1},
     .pad = {1, 1, 1, 1},
     .groups = 1},
    {.type = RT_F32,
     .n = 1,
     .h = 7,
     .w = 6,
     .c = 4,
     .k = 6,
     .r = 3,
     .s = 2,
     .oh = 3,
     .ow = 3,
     .stride = {2, 2},
     .dilation = {1, 1},
     .pad = {0, 1, 0, 0},
     .groups = 2,
     .accumulate = true},
    {.type = RT_F16,
     .n = 3,
     .h = 6,
     .w = 6,
     .c = 8,
     .k = 8,
     .r = 2,
     .s = 2,
     .oh = 4,
     .ow = 4,
     .stride = {1, 1},
     .dilation = {2, 2},
     .pad = {0, 0, 0, 0},
     .groups = 1},
    {.type = RT_BF16,
     .n = 4,
     .h = 1,
     .w = 1,
     .c = 16,
     .k = 5,
     .r = 1,
     .s = 1,
     .oh = 1,
     .ow = 1,
     .stride = {1, 1},
     .dilation = {1, 1},
     .groups = 1,
     .accumulate = true},
};
enum { NUM_CALLS = sizeof calls / sizeof calls[0], NUM_KINDS = 3 };

// A tensor on both sides.
typedef struct {
    int64_t count;
    Number type;
    double *value;
    CUdeviceptr at;
} Side;

static struct {
    RtCudnn c;
    RtError error;
    CUstream stream;
    CUdeviceptr workspace;
    Side side[RT_NUM_ROLES];
    uint64_t address[RT_NUM_ROLES];
} dnn;

static void dnn_open(void) {
    double_open("2");
    dnn.stream = double_stream();
    dnn.workspace = double_memory(2 << 20);
    ck_assert(rt_cudnn_open(&dnn.c, &dnn.error));
    ck_assert_msg(rt_cudnn_attach(&dnn.c, dnn.stream, NULL, &dnn.error), "%s",
                  dnn.error.text);
}

static Number number_of(RtType type) {
    return type == RT_F16    ? NUMBER_F16
           : type == RT_BF16 ? NUMBER_BF16
                             : NUMBER_F32;
}

// A tensor with numbers between -1 and 1 that are the same each time.
static void side_make(RtRole role, Number type, int64_t count) {
    Side *s = &dnn.side[role];
    size_t bytes = (size_t)count * number_bytes(type);
    char *image = malloc(bytes);
    *s = (Side){count, type, malloc((size_t)count * sizeof(double)),
                double_memory(bytes)};
    for (int64_t i = 0; i < count; i++) {
        float v = number_round(type, (float)sin((double)(i * 7 + role * 3)));
        s->value[i] = (double)v;
        number_put(type, image, (size_t)i, v);
    }
    GOOD(cuMemcpyHtoDAsync_v2(s->at, image, bytes, dnn.stream));
    GOOD(cuStreamSynchronize(dnn.stream));
    free(image);
    dnn.address[role] = s->at;
}

// Compares values on the device with the expected ones, within a few roundings.
static void side_is(RtRole role, const double *want) {
    Side *s = &dnn.side[role];
    size_t bytes = (size_t)s->count * number_bytes(s->type);
    char *image = malloc(bytes);
    double step = s->type == NUMBER_F16    ? 0x1p-10
                  : s->type == NUMBER_BF16 ? 0x1p-7
                                           : 0x1p-18;
    GOOD(cuMemcpyDtoHAsync_v2(image, s->at, bytes, dnn.stream));
    for (int64_t i = 0; i < s->count; i++)
        ck_assert_double_eq_tol((double)number_get(s->type, image, (size_t)i),
                                want[i], step * (1 + fabs(want[i])));
    free(image);
}

static void run(const RtCall *call, unsigned with) {
    RtCudnnPlan plan;
    ck_assert_msg(rt_cudnn_plan(&dnn.c, call, with, (RtCudnnCriteria){0}, &plan,
                                &dnn.error),
                  "%s", dnn.error.text);
    ck_assert(!plan.nondeterministic && !plan.reduced_precision);
    void *pack =
        rt_cudnn_variant_pack(&plan, dnn.address, dnn.workspace, &dnn.error);
    ck_assert_msg(pack != NULL, "%s", dnn.error.text);
    ck_assert_msg(rt_cudnn_execute(&plan, RT_MAIN_STREAM, pack, &dnn.error),
                  "%s", dnn.error.text);
    dnn.c.destroy(pack);
    rt_cudnn_plan_free(&plan);
    GOOD(cuStreamSynchronize(dnn.stream));
}

static int64_t count_x(const RtCall *c) {
    return (int64_t)c->n * c->h * c->w * c->c;
}

static int64_t count_weight(const RtCall *c) {
    return (int64_t)c->k * c->r * c->s * (c->c / c->groups);
}

static int64_t count_y(const RtCall *c) {
    return (int64_t)c->n * c->oh * c->ow * c->k;
}

// Adds every product of the convolution to the result of the call.
static void sums(const RtCall *c, double *x, double *w, double *y) {
    const int per = c->c / c->groups;
    for (int64_t i = 0; i < count_y(c) * c->r * c->s * per; i++) {
        int64_t ch = i % per, s = i / per % c->s, r = i / per / c->s % c->r;
        int64_t at = i / per / c->s / c->r, k = at % c->k, v = at / c->k;
        int64_t ow = v % c->ow, oh = v / c->ow % c->oh, n = v / c->ow / c->oh;
        int64_t row = oh * c->stride[0] + r * c->dilation[0] - c->pad[0];
        int64_t col = ow * c->stride[1] + s * c->dilation[1] - c->pad[2];
        if (row < 0 || col < 0 || row >= c->h || col >= c->w)
            continue;
        double *from = &x[((n * c->h + row) * c->w + col) * c->c +
                          k / (c->k / c->groups) * per + ch];
        double *by = &w[((k * c->r + r) * c->s + s) * per + ch];
        if (c->kind == RT_CONV)
            y[at] += *from * *by;
        else if (c->kind == RT_CONV_GRAD_INPUT)
            *from += y[at] * *by;
        else
            *by += y[at] * *from;
    }
}

// The expected result of the call, which its side holds too.
static double *expect(const RtCall *c, RtRole *out) {
    static const RtRole role[] = {RT_ROLE_Y, RT_ROLE_X, RT_ROLE_WEIGHT};
    double *v[RT_NUM_ROLES] = {NULL};
    *out = role[c->kind];
    for (RtRole r = RT_ROLE_X; r <= RT_ROLE_Y; r++)
        v[r] = dnn.side[r].value;
    v[*out] = calloc((size_t)dnn.side[*out].count, sizeof(double));
    for (int64_t i = 0; c->accumulate && i < dnn.side[*out].count; i++)
        v[*out][i] = dnn.side[*out].value[i];
    sums(c, v[RT_ROLE_X], v[RT_ROLE_WEIGHT], v[RT_ROLE_Y]);
    return v[*out];
}

static void sides_make(const RtCall *c) {
    side_make(RT_ROLE_X, number_of(c->type), count_x(c));
    side_make(RT_ROLE_WEIGHT, number_of(c->type), count_weight(c));
    side_make(RT_ROLE_Y, number_of(c->type), count_y(c));
}

START_TEST(convolutions_are_right) {
    RtCall c = calls[_i / NUM_KINDS];
    RtRole out;
    c.kind = (RtCallKind)(_i % NUM_KINDS);
    dnn_open();
    sides_make(&c);
    double *want = expect(&c, &out);
    run(&c, 0);
    side_is(out, want);
    free(want);
}
END_TEST

// Library fusions are of the call in f16 with eight channels.
static RtCall fused_call(RtCallKind kind) {
    RtCall c = calls[2];
    c.kind = kind;
    dnn_open();
    sides_make(&c);
    return c;
}

START_TEST(statistics_are_of_what_is_stored) {
    RtCall c = fused_call(RT_CONV);
    RtRole out;
    double sum[8] = {0}, squares[8] = {0};
    side_make(RT_ROLE_SUM, NUMBER_F32, 8);
    side_make(RT_ROLE_SQUARES, NUMBER_F32, 8);
    double *y = expect(&c, &out);
    run(&c, 1 << RT_FUSED_STATISTICS);
    side_is(out, y);
    for (int64_t i = 0; i < count_y(&c); i++) {
        double v = (double)number_round(NUMBER_F16, (float)y[i]);
        sum[i % 8] += v;
        squares[i % 8] += v * v;
    }
    side_is(RT_ROLE_SUM, sum);
    side_is(RT_ROLE_SQUARES, squares);
    free(y);
}
END_TEST

// The prologue of a convolution scales, shifts and clips its input at 0.
START_TEST(a_prologue_comes_before) {
    RtCall c = fused_call(_i == 0 ? RT_CONV : RT_CONV_GRAD_WEIGHT);
    RtRole out;
    Side *x = &dnn.side[RT_ROLE_X];
    side_make(RT_ROLE_SCALE, NUMBER_F16, 8);
    side_make(RT_ROLE_BIAS, NUMBER_F16, 8);
    for (int64_t i = 0; i < x->count; i++) {
        double v = x->value[i] * dnn.side[RT_ROLE_SCALE].value[i % 8] +
                   dnn.side[RT_ROLE_BIAS].value[i % 8];
        x->value[i] = (double)number_round(NUMBER_F16, (float)fmax(v, 0));
    }
    double *want = expect(&c, &out);
    run(&c, 1u << (_i == 0 ? RT_FUSED_PROLOGUE : RT_FUSED_PROLOGUE_WEIGHT));
    side_is(out, want);
    free(want);
}
END_TEST

START_TEST(a_gradient_goes_back_through_batch_norm) {
    RtCall c = fused_call(RT_CONV_GRAD_INPUT);
    RtRole out;
    double d_scale[8] = {0}, d_bias[8] = {0};
    side_make(RT_ROLE_NORM, NUMBER_F16, count_x(&c));
    for (RtRole r = RT_ROLE_SCALE; r < RT_NUM_ROLES; r++)
        if (r <= RT_ROLE_INV_STD || r == RT_ROLE_D_SCALE ||
            r == RT_ROLE_D_BIAS || r >= RT_ROLE_UNUSED)
            side_make(r, NUMBER_F32, 8);
    double *dz = expect(&c, &out);
    for (int64_t i = 0; i < count_x(&c); i++) {
        double norm = (dnn.side[RT_ROLE_NORM].value[i] -
                       dnn.side[RT_ROLE_MEAN].value[i % 8]) *
                      dnn.side[RT_ROLE_INV_STD].value[i % 8];
        double v = norm * dnn.side[RT_ROLE_SCALE].value[i % 8] +
                   dnn.side[RT_ROLE_BIAS].value[i % 8];
        dz[i] = v > 0 ? (double)number_round(NUMBER_F16, (float)dz[i]) : 0;
        d_scale[i % 8] += dz[i] * norm;
        d_bias[i % 8] += dz[i];
    }
    run(&c, 1 << RT_FUSED_BACKWARD);
    side_is(out, dz);
    side_is(RT_ROLE_D_SCALE, d_scale);
    side_is(RT_ROLE_D_BIAS, d_bias);
    free(dz);
}
END_TEST

// Only architectures that have a fusion offer it.
START_TEST(what_can_ride_depends_on_the_device) {
    static const struct {
        const char *device;
        bool statistics;
    } known[] = {
        {"h200", true}, {"a100", true}, {"b200", false}, {"t4", false}};
    RtCudnnPlan plan;
    RtCall c = calls[2];
    char path[4096];
    snprintf(path, sizeof path, "%s/tools/devices/%s.json",
             getenv("SINTER_SOURCE"), known[_i].device);
    setenv("SINTER_DOUBLE_DEVICE", path, 1);
    dnn_open();
    ck_assert(rt_cudnn_plan(&dnn.c, &c, 1 << RT_FUSED_STATISTICS,
                            (RtCudnnCriteria){0}, &plan,
                            &dnn.error) == known[_i].statistics);
}
END_TEST

// Calls 11 and 12 read the number and the list of numerical notes of the first
// of two usable engines; the next two calls read its other notes.
START_TEST(an_engine_that_does_not_say_what_it_is_like_is_not_taken) {
    char fail[64];
    RtCudnnPlan plan;
    snprintf(fail, sizeof fail, "cudnnBackendGetAttribute:%d:2000", 10 + _i);
    setenv("SINTER_DOUBLE_FAIL", _i > 0 ? fail : "", 1);
    RtCall c = fused_call(RT_CONV);
    ck_assert(rt_cudnn_plan(&dnn.c, &c, 1 << RT_FUSED_STATISTICS,
                            (RtCudnnCriteria){0}, &plan, &dnn.error));
    ck_assert_int_eq(plan.candidate, _i == 0 ? 1 : 2);
    rt_cudnn_plan_free(&plan);
}
END_TEST

// The last of 17 notes states that the order of sums varies.
START_TEST(an_engine_with_more_notes_than_are_read_is_not_taken) {
    RtCudnnPlan plan;
    dnn_open();
    ck_assert(rt_cudnn_plan(&dnn.c, &calls[2], 0, (RtCudnnCriteria){.first = 7},
                            &plan, &dnn.error));
    ck_assert_int_gt(plan.candidate, 7);
    rt_cudnn_plan_free(&plan);
}
END_TEST

START_TEST(addresses_are_checked) {
    RtCudnnPlan plan;
    RtCall c = calls[0];
    dnn_open();
    sides_make(&c);
    dnn.address[RT_ROLE_X] += 4;
    ck_assert(
        rt_cudnn_plan(&dnn.c, &c, 0, (RtCudnnCriteria){0}, &plan, &dnn.error));
    void *pack =
        rt_cudnn_variant_pack(&plan, dnn.address, dnn.workspace, &dnn.error);
    ck_assert(!rt_cudnn_execute(&plan, RT_MAIN_STREAM, pack, &dnn.error));
    ck_assert_ptr_nonnull(strstr(dnn.error.text, "tensor 1 at"));
}
END_TEST

// A plan runs once before its capture, which loads its code.
START_TEST(a_plan_is_captured_once_it_has_run) {
    RtCudnnPlan plan;
    RtCall c = calls[0];
    CUgraph graph;
    dnn_open();
    sides_make(&c);
    ck_assert(
        rt_cudnn_plan(&dnn.c, &c, 0, (RtCudnnCriteria){0}, &plan, &dnn.error));
    void *pack =
        rt_cudnn_variant_pack(&plan, dnn.address, dnn.workspace, &dnn.error);
    if (_i > 0)
        ck_assert(rt_cudnn_execute(&plan, RT_MAIN_STREAM, pack, &dnn.error));
    GOOD(cuStreamBeginCapture_v2(dnn.stream,
                                 CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    ck_assert(rt_cudnn_execute(&plan, RT_MAIN_STREAM, pack, &dnn.error) ==
              (_i > 0));
    ck_assert_int_eq(cuStreamEndCapture(dnn.stream, &graph),
                     _i > 0 ? CUDA_SUCCESS
                            : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}
END_TEST

START_TEST(a_wrong_shape_is_refused) {
    RtCudnnPlan plan;
    RtCall c = calls[0];
    c.oh++;
    dnn_open();
    ck_assert(
        !rt_cudnn_plan(&dnn.c, &c, 0, (RtCudnnCriteria){0}, &plan, &dnn.error));
    ck_assert_ptr_nonnull(strstr(dnn.error.text, "a convolution of 2x3x5x4"));
}
END_TEST

Suite *dnn_suite(void) {
    Suite *s = suite_create("dnn");
    TCase *c = tcase_create("dnn");
    tcase_add_loop_test(c, convolutions_are_right, 0, NUM_CALLS * NUM_KINDS);
    tcase_add_test(c, statistics_are_of_what_is_stored);
    tcase_add_loop_test(c, a_prologue_comes_before, 0, 2);
    tcase_add_test(c, a_gradient_goes_back_through_batch_norm);
    tcase_add_loop_test(c, what_can_ride_depends_on_the_device, 0, 4);
    tcase_add_loop_test(
        c, an_engine_that_does_not_say_what_it_is_like_is_not_taken, 0, 5);
    tcase_add_test(c, an_engine_with_more_notes_than_are_read_is_not_taken);
    tcase_add_test(c, addresses_are_checked);
    tcase_add_loop_test(c, a_plan_is_captured_once_it_has_run, 0, 2);
    tcase_add_test(c, a_wrong_shape_is_refused);
    suite_add_tcase(s, c);
    return s;
}
