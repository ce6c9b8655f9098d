// Library calls against loops in double that follow their definition.
#include "runtime/data/data.h"
#include "tests/runtime/suites.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PLAIN .stride = {1, 1}, .dilation = {1, 1}, .groups = 1
#define SAME .pad = {1, 1, 1, 1}

// Fills in oh and ow.
static const RtCall windows[] = {
    {.n = 3, .h = 8, .w = 8, .c = 16, .k = 32, .r = 3, .s = 3, PLAIN, SAME},
    {.n = 2, .h = 9, .w = 7, .c = 3, .k = 5, .r = 3, .s = 3, PLAIN, SAME},
    {.n = 2, .h = 9, .w = 7, .c = 4, .k = 6, .r = 1, .s = 1, PLAIN},
    {.n = 1, .h = 5, .w = 5, .c = 1, .k = 1, .r = 5, .s = 5, PLAIN},
    {.n = 2, .h = 31, .w = 31, .c = 24, .k = 64, .r = 3, .s = 3, PLAIN, SAME},
    {.n = 2, .h = 16, .w = 16, .c = 3, .k = 24, .r = 2, .s = 2, PLAIN},
    {.n = 2,
     .h = 12,
     .w = 10,
     .c = 8,
     .k = 8,
     .r = 3,
     .s = 3,
     .stride = {2, 2},
     .dilation = {1, 1},
     .groups = 1,
     SAME},
    {.n = 2,
     .h = 15,
     .w = 11,
     .c = 6,
     .k = 10,
     .r = 3,
     .s = 5,
     .stride = {3, 2},
     .dilation = {1, 1},
     .groups = 1,
     .pad = {1, 0, 2, 1}},
    {.n = 2,
     .h = 14,
     .w = 13,
     .c = 16,
     .k = 16,
     .r = 3,
     .s = 3,
     .stride = {1, 1},
     .dilation = {2, 3},
     .groups = 1,
     .pad = {2, 2, 3, 3}},
    {.n = 3,
     .h = 8,
     .w = 8,
     .c = 8,
     .k = 12,
     .r = 3,
     .s = 3,
     .stride = {1, 1},
     .dilation = {1, 1},
     .groups = 4,
     SAME},
    {.n = 2,
     .h = 9,
     .w = 9,
     .c = 32,
     .k = 32,
     .r = 3,
     .s = 3,
     .stride = {2, 1},
     .dilation = {1, 1},
     .groups = 32,
     SAME},
    {.n = 2,
     .h = 8,
     .w = 8,
     .c = 32,
     .k = 64,
     .r = 3,
     .s = 3,
     .stride = {1, 2},
     .dilation = {2, 1},
     .groups = 2,
     .pad = {2, 1, 0, 1}},
    // Strided single pixels with fewer channels than a vector has lanes, and
    // enough of them that a write beyond a buffer is detected.
    {.n = 2,
     .h = 256,
     .w = 256,
     .c = 4,
     .k = 8,
     .r = 1,
     .s = 1,
     .stride = {2, 2},
     .dilation = {1, 1},
     .groups = 1},
    // Weights that short rows seldom reuse.
    {.n = 1, .h = 4, .w = 4, .c = 192, .k = 192, .r = 3, .s = 3, PLAIN, SAME},
    // Winograd's method: too few channels for a weight gradient, which stays
    // direct; channels that do not fill vectors and pixels that do not fill
    // tiles; one tile per image; and unequal padding, which it does not
    // support.
    {.n = 4, .h = 16, .w = 16, .c = 33, .k = 40, .r = 3, .s = 3, PLAIN, SAME},
    {.n = 4, .h = 15, .w = 14, .c = 68, .k = 72, .r = 3, .s = 3, PLAIN, SAME},
    {.n = 64, .h = 4, .w = 4, .c = 64, .k = 64, .r = 3, .s = 3, PLAIN, SAME},
    {.n = 4,
     .h = 17,
     .w = 15,
     .c = 64,
     .k = 64,
     .r = 3,
     .s = 3,
     PLAIN,
     .pad = {0, 1, 1, 0}},
};
enum { NUM_WINDOWS = sizeof windows / sizeof windows[0] };

// One of each kind: plain, grouped, Winograd.
static const int kinds[] = {0, 4, NUM_WINDOWS - 2};
enum { NUM_KINDS = sizeof kinds / sizeof kinds[0] };

static RtCall window(int i, RtCallKind kind) {
    RtCall c = windows[i];
    c.kind = kind;
    c.oh = (c.h + c.pad[0] + c.pad[1] - c.dilation[0] * (c.r - 1) - 1) /
               c.stride[0] +
           1;
    c.ow = (c.w + c.pad[2] + c.pad[3] - c.dilation[1] * (c.s - 1) - 1) /
               c.stride[1] +
           1;
    return c;
}

// The indices of one product of a convolution.
typedef struct {
    size_t x, weight, y;
} Term;

// Calls `use` for every product of the definition.
static void each_term(const RtCall *c, void (*use)(Term t, void *arg),
                      void *arg) {
    int in = c->c / c->groups, out = c->k / c->groups;
    for (int n = 0; n < c->n; n++)
        for (int oy = 0; oy < c->oh; oy++)
            for (int ox = 0; ox < c->ow; ox++)
                for (int k = 0; k < c->k; k++)
                    for (int r = 0; r < c->r; r++)
                        for (int s = 0; s < c->s; s++) {
                            int y = oy * c->stride[0] - c->pad[0] +
                                    r * c->dilation[0];
                            int x = ox * c->stride[1] - c->pad[2] +
                                    s * c->dilation[1];
                            if (y < 0 || y >= c->h || x < 0 || x >= c->w)
                                continue;
                            for (int i = 0; i < in; i++)
                                use((Term){(size_t)((n * c->h + y) * c->w + x) *
                                                   (size_t)c->c +
                                               (size_t)(k / out * in + i),
                                           (size_t)((k * c->r + r) * c->s + s) *
                                                   (size_t)in +
                                               (size_t)i,
                                           (size_t)((n * c->oh + oy) * c->ow +
                                                    ox) *
                                                   (size_t)c->k +
                                               (size_t)k},
                                    arg);
                        }
}

typedef struct {
    size_t x, weight, y; // counts
} Counts;

static Counts counts(const RtCall *c) {
    return (Counts){(size_t)(c->n * c->h * c->w * c->c),
                    (size_t)(c->k * c->r * c->s * (c->c / c->groups)),
                    (size_t)(c->n * c->oh * c->ow * c->k)};
}

typedef struct {
    const RtCall *call;
    const float *a, *b;
    double *out, *size; // the sum, and the sum of magnitudes
} Sum;

static void add_term(Term t, void *arg) {
    const Sum *s = arg;
    double product = 0;
    size_t to = 0;
    switch (s->call->kind) {
    case RT_CONV:
        product = (double)s->a[t.x] * s->b[t.weight];
        to = t.y;
        break;
    case RT_CONV_GRAD_INPUT:
        product = (double)s->a[t.y] * s->b[t.weight];
        to = t.x;
        break;
    default:
        product = (double)s->a[t.y] * s->b[t.x];
        to = t.weight;
        break;
    }
    s->out[to] += product;
    s->size[to] += fabs(product);
}

static void conv_counts(const RtCall *c, size_t count[3]) {
    Counts n = counts(c);
    count[0] = c->kind == RT_CONV ? n.x : n.y;
    count[1] = c->kind == RT_CONV_GRAD_WEIGHT ? n.x : n.weight;
    count[2] = c->kind == RT_CONV              ? n.y
               : c->kind == RT_CONV_GRAD_INPUT ? n.x
                                               : n.weight;
}

static void sum_product(const Sum *s) {
    const RtCall *c = s->call;
    for (int i = 0; i < c->n; i++)
        for (int k = 0; k < c->k; k++)
            for (int m = 0; m < c->c; m++) {
                double a = s->a[c->ta ? m * c->n + i : i * c->c + m];
                double b = s->b[c->tb ? k * c->c + m : m * c->k + k];
                s->out[i * c->k + k] += a * b;
                s->size[i * c->k + k] += fabs(a * b);
            }
}

static void sum_matmul(const Sum *all) {
    const RtCall *c = all->call;
    for (int64_t each = 0; each < c->batch; each++) {
        Sum one = {c, all->a + each * c->n * c->c, all->b + each * c->c * c->k,
                   all->out + each * c->n * c->k,
                   all->size + each * c->n * c->k};
        sum_product(&one);
    }
}

// ---- element types: small multiples of 1/64 are exact in all of them ----

static float draw(uint64_t key, size_t i) {
    return (float)((int)(rt_random(key, i) % 129) - 64) / 64;
}

static uint16_t to_16(RtType type, float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if (type == RT_BF16)
        return (uint16_t)(bits >> 16);
    if (f == 0)
        return (uint16_t)(bits >> 16 & 0x8000);
    return (uint16_t)((bits >> 16 & 0x8000) |
                      (((bits >> 13) & 0x3ffff) - (112 << 10)));
}

static float from_16(RtType type, uint16_t h) {
    uint32_t bits = (uint32_t)h << 16;
    float f;
    if (type == RT_F16)
        return ldexpf((float)(h >> 10 & 31 ? (h & 0x3ff) | 0x400 : h & 0x3ff),
                      (h >> 10 & 31 ? h >> 10 & 31 : 1) - 25) *
               (h & 0x8000 ? -1 : 1);
    memcpy(&f, &bits, sizeof f);
    return f;
}

static void put(RtDevice *d, RtType type, size_t at, const float *v, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint16_t h = type == RT_F32 ? 0 : to_16(type, v[i]);
        if (type == RT_F32)
            d->write(d, at + 4 * i, &v[i], 4);
        else
            d->write(d, at + 2 * i, &h, 2);
    }
}

static float get(RtDevice *d, RtType type, size_t at, size_t i) {
    float f;
    uint16_t h;
    if (type == RT_F32) {
        d->read(d, &f, at + 4 * i, 4);
        return f;
    }
    d->read(d, &h, at + 2 * i, 2);
    return from_16(type, h);
}

static double rounding(RtType type) {
    return type == RT_F32 ? 1e-6 : type == RT_F16 ? 0x1p-11 : 0x1p-8;
}

// The largest error, relative to the result's root mean square.
#define RMS_ERROR 2e-6

static float *draw_all(uint64_t key, size_t n) {
    float *v = malloc(n * sizeof *v);
    for (size_t i = 0; i < n; i++)
        v[i] = draw(key, i);
    return v;
}

static void run(const RtCall *c, const size_t count[3], const float *a,
                const float *b, const float *old, float *out) {
    size_t at[3], end = 0;
    for (int i = 0; i < 3; i++) {
        at[i] = end;
        end += (count[i] * 4 + 63) / 64 * 64;
    }
    RtPlan plan = {.arena_bytes = end, .call = c, .num_calls = 1};
    RtDevice *d = host_open(&plan, 2);
    d->reserve(d);
    put(d, c->type, at[0], a, count[0]);
    put(d, c->type, at[1], b, count[1]);
    for (int again = 0; again < 2;
         again++) { // no state may remain between runs
        put(d, c->type, at[2], old, count[2]);
        rt_contract(d, 0, at[0], at[1], at[2]);
    }
    for (size_t i = 0; i < count[2]; i++)
        out[i] = get(d, c->type, at[2], i);
    d->close(d);
}

static void check_call(const RtCall *c, const size_t count[3]) {
    float *a = draw_all(1, count[0]), *b = draw_all(2, count[1]);
    float *old = draw_all(3, count[2]);
    float *out = malloc(count[2] * sizeof *out);
    double *want = calloc(count[2], sizeof *want);
    double *size = calloc(count[2], sizeof *size);
    Sum sum = {c, a, b, want, size};
    if (c->kind == RT_MATMUL)
        sum_matmul(&sum);
    else
        each_term(c, add_term, &sum);
    run(c, count, a, b, old, out);
    double errors = 0, squares = 0;
    for (size_t i = 0; i < count[2]; i++) {
        double right = want[i] + (c->accumulate ? old[i] : 0);
        errors += (out[i] - right) * (out[i] - right);
        squares += right * right;
        double most = 1e-6 * (size[i] + 1) + rounding(c->type) * fabs(right);
        ck_assert_msg(fabs(out[i] - right) <= most,
                      "value %zu is %.9g, not %.9g", i, (double)out[i], right);
    }
    double close = c->type == RT_F32 ? RMS_ERROR : rounding(c->type);
    ck_assert_msg(sqrt(errors) <= close * sqrt(squares), "off by %.2g of it",
                  sqrt(errors / squares));
    free(a), free(b), free(old), free(out), free(want), free(size);
}

static void check_window(int i, RtCallKind kind, RtType type, bool add) {
    RtCall c = window(i, kind);
    size_t count[3];
    c.type = type;
    c.accumulate = add;
    conv_counts(&c, count);
    check_call(&c, count);
}

START_TEST(convolutions) {
    check_window(_i, RT_CONV, RT_F32, false);
    check_window(_i, RT_CONV, RT_F32, true);
}
END_TEST

START_TEST(gradients_of_inputs) {
    check_window(_i, RT_CONV_GRAD_INPUT, RT_F32, false);
    check_window(_i, RT_CONV_GRAD_INPUT, RT_F32, true);
}
END_TEST

START_TEST(gradients_of_weights) {
    check_window(_i, RT_CONV_GRAD_WEIGHT, RT_F32, false);
    check_window(_i, RT_CONV_GRAD_WEIGHT, RT_F32, true);
}
END_TEST

START_TEST(other_types) {
    const RtType type = _i % 2 ? RT_F16 : RT_BF16;
    for (int add = 0; add < 2; add++)
        check_window(1, (RtCallKind)(_i / 2), type, add);
}
END_TEST

// The reorder of a result adds to the copy in f32.
START_TEST(other_types_by_winograd) {
    check_window(kinds[NUM_KINDS - 1], (RtCallKind)_i, RT_F16, true);
}
END_TEST

static void check_matmul(int batch, int m, int n, int k, RtType type,
                         int flags) {
    RtCall c = {.kind = RT_MATMUL,
                .batch = batch,
                .type = type,
                .n = m,
                .k = n,
                .c = k,
                .ta = flags & 1,
                .tb = flags & 2,
                .accumulate = flags & 4};
    size_t count[3] = {(size_t)(batch * m * k), (size_t)(batch * k * n),
                       (size_t)(batch * m * n)};
    check_call(&c, count);
}

START_TEST(products) {
    static const int sizes[][4] = {
        {1, 1, 1, 1},     {1, 1, 10, 33},  {1, 17, 1, 5},
        {1, 64, 10, 128}, {1, 31, 47, 63}, {5, 1, 1, 1},
        {2, 7, 5, 3},     {3, 16, 16, 9},  {12, 17, 10, 31}};
    const int *s = sizes[_i];
    for (int flags = 0; flags < 8; flags++)
        check_matmul(s[0], s[1], s[2], s[3], RT_F32, flags);
    check_matmul(s[0], s[1], s[2], s[3], RT_F16, 1);
    check_matmul(s[0], s[1], s[2], s[3], RT_BF16, 6);
}
END_TEST

// Calls share their buffers: each alone and all in turn agree, and bits repeat
// from device to device.
START_TEST(calls_share_buffers) {
    enum { CALLS = 3 * NUM_KINDS };
    RtCall calls[CALLS];
    size_t count[CALLS][3], at[CALLS][3], end = 0;
    for (int i = 0; i < CALLS; i++) {
        calls[i] = window(kinds[i % NUM_KINDS], (RtCallKind)(i / NUM_KINDS));
        conv_counts(&calls[i], count[i]);
        for (int k = 0; k < 3; k++) {
            at[i][k] = end;
            end += (count[i][k] * 4 + 63) / 64 * 64;
        }
    }
    RtPlan plan = {.arena_bytes = end, .call = calls, .num_calls = CALLS};
    char *first = malloc(end), *second = malloc(end);
    for (int round = 0; round < 2; round++) {
        RtDevice *d = host_open(&plan, 2);
        d->reserve(d);
        for (int i = 0; i < CALLS; i++)
            for (size_t k = 0; k < 2; k++) {
                float *v = draw_all((uint64_t)i * 2 + k, count[i][k]);
                d->write(d, at[i][k], v, count[i][k] * 4);
                free(v);
            }
        for (int i = 0; i < CALLS * 3; i++)
            rt_contract(d, i % CALLS, at[i % CALLS][0], at[i % CALLS][1],
                        at[i % CALLS][2]);
        d->read(d, round == 0 ? first : second, 0, end);
        d->close(d);
    }
    ck_assert_int_eq(memcmp(first, second, end), 0);
    for (int i = 0; i < CALLS; i++) {
        float *alone = malloc(count[i][2] * 4);
        float *a = draw_all((uint64_t)i * 2, count[i][0]);
        float *b = draw_all((uint64_t)i * 2 + 1, count[i][1]);
        run(&calls[i], count[i], a, b, alone, alone);
        ck_assert_int_eq(memcmp(alone, first + at[i][2], count[i][2] * 4), 0);
        free(alone), free(a), free(b);
    }
    free(first), free(second);
}
END_TEST

Suite *onednn_suite(void) {
    Suite *s = suite_create("onednn");
    TCase *t = tcase_create("onednn");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, other_types, 0, 6);
    tcase_add_loop_test(t, products, 0, 9);
    tcase_add_test(t, calls_share_buffers);
    suite_add_tcase(s, t);
    TCase *each = tcase_create("windows");
    tcase_set_tags(each, "numbers");
    tcase_set_timeout(each, 120);
    tcase_add_loop_test(each, convolutions, 0, NUM_WINDOWS);
    tcase_add_loop_test(each, gradients_of_inputs, 0, NUM_WINDOWS);
    tcase_add_loop_test(each, gradients_of_weights, 0, NUM_WINDOWS);
    tcase_add_loop_test(each, other_types_by_winograd, 0, 3);
    suite_add_tcase(s, each);
    return s;
}
