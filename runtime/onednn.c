// oneDNN: the contractions of the host device.
//
// Images are plain NHWC and stay so: oneDNN is as fast on them as on its own
// blocked layouts.  Weights are another matter: a convolution over plain ones
// is many times slower, so each call brings its weights from [K,R,S,C] into the
// layout that its primitive asks for, or the gradient back.  All buffers that
// this takes are shared by the calls, which run one after another.
//
// The element type is f32; operands of other types pass through f32 buffers.
// Results are the same from run to run as long as the number of threads is; a
// gradient of weights is summed by threads, and its last bits change with it.
//
// Versions 2 and 3 of oneDNN differ in how descriptors are made: that is all
// that the first part is about.
#define _POSIX_C_SOURCE 200809L

#include "runtime/runtime.h"

#include <dnnl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64 };

typedef enum { SRC, WEIGHTS, DST, NUM_ROLES } Role;

static void check(dnnl_status_t status, const char *what) {
    if (status == dnnl_success)
        return;
    fprintf(stderr, "error: oneDNN: cannot %s (status %d)\n", what, status);
    exit(status == dnnl_out_of_memory ? EXIT_MEMORY : EXIT_DEVICE);
}

typedef struct {
    dnnl_dims_t stride, dilation, before, after; // of the window
} Window;

#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t Layout;

static Layout layout_new(int rank, const dnnl_dims_t dim,
                         const dnnl_dims_t stride) {
    dnnl_memory_desc_t m;
    if (stride == NULL)
        check(dnnl_memory_desc_create_with_tag(&m, rank, dim, dnnl_f32,
                                               dnnl_format_tag_any),
              "describe a tensor");
    else
        check(dnnl_memory_desc_create_with_strides(&m, rank, dim, dnnl_f32,
                                                   stride),
              "describe a tensor");
    return m;
}

static void layout_free(Layout m) {
    dnnl_memory_desc_destroy((dnnl_memory_desc_t)m);
}

static dnnl_primitive_desc_t describe(RtCallKind kind, dnnl_engine_t engine,
                                      const Layout *of, const Window *w,
                                      dnnl_primitive_desc_t hint,
                                      dnnl_primitive_attr_t attr) {
    const dnnl_alg_kind_t direct = dnnl_convolution_direct;
    dnnl_primitive_desc_t p = NULL;
    dnnl_status_t status;
    if (kind == RT_CONV)
        status = dnnl_convolution_forward_primitive_desc_create(
            &p, engine, dnnl_forward_training, direct, of[SRC], of[WEIGHTS],
            NULL, of[DST], w->stride, w->dilation, w->before, w->after, attr);
    else if (kind == RT_CONV_GRAD_INPUT)
        status = dnnl_convolution_backward_data_primitive_desc_create(
            &p, engine, direct, of[SRC], of[WEIGHTS], of[DST], w->stride,
            w->dilation, w->before, w->after, hint, attr);
    else
        status = dnnl_convolution_backward_weights_primitive_desc_create(
            &p, engine, direct, of[SRC], of[WEIGHTS], NULL, of[DST], w->stride,
            w->dilation, w->before, w->after, hint, attr);
    check(status, "plan a convolution");
    return p;
}
#else
typedef const dnnl_memory_desc_t *Layout;

static Layout layout_new(int rank, const dnnl_dims_t dim,
                         const dnnl_dims_t stride) {
    dnnl_memory_desc_t *m = malloc(sizeof *m);
    check(m == NULL ? dnnl_out_of_memory : dnnl_success, "describe a tensor");
    if (stride == NULL)
        check(dnnl_memory_desc_init_by_tag(m, rank, dim, dnnl_f32,
                                           dnnl_format_tag_any),
              "describe a tensor");
    else
        check(dnnl_memory_desc_init_by_strides(m, rank, dim, dnnl_f32, stride),
              "describe a tensor");
    return m;
}

static void layout_free(Layout m) {
    free((dnnl_memory_desc_t *)m);
}

static dnnl_primitive_desc_t describe(RtCallKind kind, dnnl_engine_t engine,
                                      const Layout *of, const Window *w,
                                      dnnl_primitive_desc_t hint,
                                      dnnl_primitive_attr_t attr) {
    const dnnl_alg_kind_t direct = dnnl_convolution_direct;
    dnnl_convolution_desc_t d;
    dnnl_primitive_desc_t p = NULL;
    dnnl_status_t status;
    if (kind == RT_CONV)
        status = dnnl_dilated_convolution_forward_desc_init(
            &d, dnnl_forward_training, direct, of[SRC], of[WEIGHTS], NULL,
            of[DST], w->stride, w->dilation, w->before, w->after);
    else if (kind == RT_CONV_GRAD_INPUT)
        status = dnnl_dilated_convolution_backward_data_desc_init(
            &d, direct, of[SRC], of[WEIGHTS], of[DST], w->stride, w->dilation,
            w->before, w->after);
    else
        status = dnnl_dilated_convolution_backward_weights_desc_init(
            &d, direct, of[SRC], of[WEIGHTS], NULL, of[DST], w->stride,
            w->dilation, w->before, w->after);
    check(status, "describe a convolution");
    check(dnnl_primitive_desc_create(&p, &d, attr, engine, hint),
          "plan a convolution");
    return p;
}
#endif

// ---- a planned call ----

// How the operands of a call and its result are used by a convolution.
static const struct {
    Role a, b, out;
    dnnl_query_t query[NUM_ROLES];
    int argument[NUM_ROLES];
} uses[] = {
    [RT_CONV] = {SRC,
                 WEIGHTS,
                 DST,
                 {dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md},
                 {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST}},
    [RT_CONV_GRAD_INPUT] = {DST,
                            WEIGHTS,
                            SRC,
                            {dnnl_query_diff_src_md, dnnl_query_weights_md,
                             dnnl_query_diff_dst_md},
                            {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS,
                             DNNL_ARG_DIFF_DST}},
    [RT_CONV_GRAD_WEIGHT] = {DST,
                             SRC,
                             WEIGHTS,
                             {dnnl_query_src_md, dnnl_query_diff_weights_md,
                              dnnl_query_diff_dst_md},
                             {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS,
                              DNNL_ARG_DIFF_DST}},
};

typedef struct {
    const RtCall *call;
    size_t count[3]; // values of a, b and the result
    dnnl_primitive_desc_t plan;
    dnnl_primitive_t primitive;
    dnnl_primitive_desc_t pack_plan; // weights to the wanted layout, or back
    dnnl_primitive_t pack;           // NULL: they have it already
    Layout plain;                    // the weights as the arena has them
    dnnl_memory_t memory[NUM_ROLES], plain_memory, scratch, pack_scratch;
} Step;

struct RtContractions {
    int threads, num_steps;
    Step *step;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_attr_t attr;
    // Sizes in bytes, then the buffers: packed weights, what primitives work
    // in, and f32 copies of a, b and the result.
    size_t packed_bytes, work_bytes, copy_bytes[3];
    char *packed, *work;
    float *copy[3];
};

static void grow(size_t *to, size_t bytes) {
    bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    if (bytes > *to)
        *to = bytes;
}

static bool is_conv(const RtCall *c) {
    return c->kind == RT_CONV || c->kind == RT_CONV_GRAD_INPUT ||
           c->kind == RT_CONV_GRAD_WEIGHT;
}

static bool is_factor(const RtCall *c) {
    return c->kind == RT_EIGH || c->kind == RT_ORTHOGONAL;
}

static Layout image_layout(int n, int h, int w, int c) {
    return layout_new(4, (dnnl_dims_t){n, c, h, w},
                      (dnnl_dims_t){(int64_t)h * w * c, 1, (int64_t)w * c, c});
}

// Weights in the arena's order, or in any that oneDNN likes.
static Layout weight_layout(const RtCall *c, bool any) {
    int64_t k = c->k / c->groups, in = c->c / c->groups;
    int64_t one = in * c->r * c->s; // filter
    dnnl_dims_t dim = {c->groups, k, in, c->r, c->s};
    dnnl_dims_t stride = {k * one, one, 1, in * c->s, in};
    int skip = c->groups == 1; // without groups there is no such dimension
    return layout_new(5 - skip, dim + skip, any ? NULL : stride + skip);
}

static Window window_of(const RtCall *c) {
    return (Window){
        .stride = {c->stride[0], c->stride[1]},
        .dilation = {c->dilation[0] - 1, c->dilation[1] - 1},
        .before = {c->pad[0], c->pad[2]},
        .after = {c->pad[1], c->pad[3]},
    };
}

static void plan_pack(RtContractions *o, Step *s) {
    Layout wanted = dnnl_primitive_desc_query_md(
        s->plan, uses[s->call->kind].query[WEIGHTS], 0);
    if (dnnl_memory_desc_equal(wanted, s->plain))
        return;
    grow(&o->packed_bytes, dnnl_memory_desc_get_size(wanted));
    bool back = s->call->kind == RT_CONV_GRAD_WEIGHT;
    check(dnnl_reorder_primitive_desc_create(
              &s->pack_plan, back ? wanted : s->plain, o->engine,
              back ? s->plain : wanted, o->engine, o->attr),
          "plan a reordering of weights");
}

static void plan_work(RtContractions *o, dnnl_primitive_desc_t plan) {
    if (plan == NULL)
        return;
    grow(&o->work_bytes, dnnl_memory_desc_get_size(dnnl_primitive_desc_query_md(
                             plan, dnnl_query_scratchpad_md, 0)));
}

static void plan_conv(RtContractions *o, Step *s) {
    const RtCall *c = s->call;
    Window w = window_of(c);
    Layout of[NUM_ROLES] = {
        [SRC] = image_layout(c->n, c->h, c->w, c->c),
        [WEIGHTS] = weight_layout(c, true),
        [DST] = image_layout(c->n, c->oh, c->ow, c->k),
    };
    s->plain = weight_layout(c, false);
    dnnl_primitive_desc_t forward =
        describe(RT_CONV, o->engine, of, &w, NULL, o->attr);
    s->plan = forward;
    if (c->kind != RT_CONV) {
        s->plan = describe(c->kind, o->engine, of, &w, forward, o->attr);
        dnnl_primitive_desc_destroy(forward);
    }
    plan_pack(o, s);
    plan_work(o, s->plan);
    plan_work(o, s->pack_plan);
    for (int i = 0; i < NUM_ROLES; i++)
        layout_free(of[i]);
}

static void count_values(Step *s) {
    const RtCall *c = s->call;
    if (is_factor(c)) // in f32, and so never copied
        return;
    if (c->kind == RT_MATMUL) {
        size_t batch = (size_t)c->batch;
        s->count[0] = batch * (size_t)c->n * (size_t)c->c;
        s->count[1] = batch * (size_t)c->c * (size_t)c->k;
        s->count[2] = batch * (size_t)c->n * (size_t)c->k;
        return;
    }
    size_t of[NUM_ROLES] = {
        [SRC] = (size_t)c->n * (size_t)c->h * (size_t)c->w * (size_t)c->c,
        [WEIGHTS] = (size_t)c->k * (size_t)c->r * (size_t)c->s *
                    (size_t)(c->c / c->groups),
        [DST] = (size_t)c->n * (size_t)c->oh * (size_t)c->ow * (size_t)c->k,
    };
    s->count[0] = of[uses[c->kind].a];
    s->count[1] = of[uses[c->kind].b];
    s->count[2] = of[uses[c->kind].out];
}

// Whether oneDNN makes a convolution of it.  Of nothing it refuses some, and
// the result is 0.
static bool is_planned(const Step *s) {
    return is_conv(s->call) && s->count[0] > 0 && s->count[1] > 0 &&
           s->count[2] > 0;
}

// Which of a, b and the result pass through a buffer.  A sum cannot be asked of
// every primitive, so there the result is added afterwards.
static bool is_copied(const RtCall *c, int i) {
    return c->type != RT_F32 || (i == 2 && c->accumulate && is_conv(c));
}

RtContractions *rt_contractions_new(const RtPlan *plan, int threads) {
    RtContractions *o = calloc(1, sizeof *o);
    Step *step = calloc((size_t)plan->num_calls + 1, sizeof *step);
    check(o && step ? dnnl_success : dnnl_out_of_memory, "start");
    o->threads = threads;
    o->step = step;
    o->num_steps = plan->num_calls;
    check(dnnl_engine_create(&o->engine, dnnl_cpu, 0), "start");
    check(dnnl_stream_create(&o->stream, o->engine, dnnl_stream_default_flags),
          "start");
    check(dnnl_primitive_attr_create(&o->attr), "start");
    check(dnnl_primitive_attr_set_scratchpad_mode(o->attr,
                                                  dnnl_scratchpad_mode_user),
          "start");
    for (int i = 0; i < plan->num_calls; i++) {
        step[i].call = &plan->call[i];
        count_values(&step[i]);
        for (int k = 0; k < 3; k++)
            if (is_copied(step[i].call, k))
                grow(&o->copy_bytes[k], step[i].count[k] * sizeof(float));
        if (is_planned(&step[i]))
            plan_conv(o, &step[i]);
        else if (is_factor(step[i].call))
            grow(&o->work_bytes, rt_factor_bytes(step[i].call));
    }
    return o;
}

size_t rt_contractions_bytes(const RtContractions *o) {
    return o->packed_bytes + o->work_bytes + o->copy_bytes[0] +
           o->copy_bytes[1] + o->copy_bytes[2];
}

// ---- taking memory and making the primitives ----

static void *take(size_t bytes) {
    void *p = bytes > 0 ? aligned_alloc(ALIGN, bytes) : NULL;
    check(p || bytes == 0 ? dnnl_success : dnnl_out_of_memory,
          "take its buffers");
    if (p != NULL)
        memset(p, 0, bytes);
    return p;
}

static dnnl_memory_t memory_for(const RtContractions *o, Layout layout,
                                void *at) {
    dnnl_memory_t m;
    check(dnnl_memory_create(&m, layout, o->engine, at ? at : DNNL_MEMORY_NONE),
          "make a tensor");
    return m;
}

static dnnl_memory_t scratch_for(const RtContractions *o,
                                 dnnl_primitive_desc_t plan) {
    return memory_for(
        o, dnnl_primitive_desc_query_md(plan, dnnl_query_scratchpad_md, 0),
        o->work);
}

static void make_primitives(RtContractions *o, Step *s) {
    for (int i = 0; i < NUM_ROLES; i++) {
        Layout l = dnnl_primitive_desc_query_md(
            s->plan, uses[s->call->kind].query[i], 0);
        bool packed = i == WEIGHTS && s->pack_plan != NULL;
        s->memory[i] = memory_for(o, l, packed ? o->packed : NULL);
    }
    s->plain_memory = memory_for(o, s->plain, NULL);
    s->scratch = scratch_for(o, s->plan);
    check(dnnl_primitive_create(&s->primitive, s->plan), "make a convolution");
    if (s->pack_plan == NULL)
        return;
    s->pack_scratch = scratch_for(o, s->pack_plan);
    check(dnnl_primitive_create(&s->pack, s->pack_plan),
          "make a reordering of weights");
}

void rt_contractions_reserve(RtContractions *o) {
    o->packed = take(o->packed_bytes);
    o->work = take(o->work_bytes);
    for (int i = 0; i < 3; i++)
        o->copy[i] = take(o->copy_bytes[i]);
    for (int i = 0; i < o->num_steps; i++)
        if (is_planned(&o->step[i]))
            make_primitives(o, &o->step[i]);
}

// ---- element types ----

static float bits_to_float(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static uint32_t float_to_bits(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static float half_to_float(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    uint32_t exponent = h >> 10 & 31, fraction = h & 0x3ff;
    if (exponent == 31)
        return bits_to_float(sign | 0x7f800000 | fraction << 13);
    if (exponent == 0) {
        float f = (float)fraction * 0x1p-24f;
        return sign ? -f : f;
    }
    return bits_to_float(sign | (exponent + 112) << 23 | fraction << 13);
}

// Rounds the magnitude to a multiple of 2^bits, ties to even.
static uint32_t round_bits(uint32_t magnitude, int bits) {
    uint32_t odd = magnitude >> bits & 1;
    return (magnitude + ((uint32_t)1 << (bits - 1)) - 1 + odd) >> bits;
}

static uint16_t float_to_half(float f) {
    uint32_t bits = float_to_bits(f), magnitude = bits & 0x7fffffff;
    uint32_t sign = bits >> 16 & 0x8000;
    if (magnitude > 0x7f800000)
        return (uint16_t)(sign | 0x7e00);
    if (magnitude >= 0x47800000)
        return (uint16_t)(sign | 0x7c00);
    if (magnitude < 0x38800000) { // adding 0.5 rounds at 2^-24, as halves do
        float shifted = bits_to_float(magnitude) + 0.5f;
        return (uint16_t)(sign | (float_to_bits(shifted) - 0x3f000000));
    }
    return (uint16_t)(sign | round_bits(magnitude - 0x38000000, 13));
}

static uint16_t float_to_brain(float f) {
    uint32_t bits = float_to_bits(f);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)round_bits(bits, 16);
}

static float load(RtType type, const char *from, size_t i) {
    float f;
    uint16_t half;
    if (type == RT_F32) {
        memcpy(&f, from + 4 * i, sizeof f);
        return f;
    }
    memcpy(&half, from + 2 * i, sizeof half);
    return type == RT_F16 ? half_to_float(half)
                          : bits_to_float((uint32_t)half << 16);
}

static void store(RtType type, char *to, size_t i, float f) {
    if (type == RT_F32) {
        memcpy(to + 4 * i, &f, sizeof f);
        return;
    }
    uint16_t half = type == RT_F16 ? float_to_half(f) : float_to_brain(f);
    memcpy(to + 2 * i, &half, sizeof half);
}

// ---- running ----

typedef struct {
    const RtCall *call;
    char *tensor;
    float *copy;
    size_t count;
} Move;

static void share(size_t count, int me, int members, size_t *first,
                  size_t *last) {
    *first = count * (size_t)me / (size_t)members;
    *last = count * ((size_t)me + 1) / (size_t)members;
}

static void copy_in(void *arg, int me, int members) {
    const Move *m = arg;
    size_t first, last;
    share(m->count, me, members, &first, &last);
    for (size_t i = first; i < last; i++)
        m->copy[i] = load(m->call->type, m->tensor, i);
}

// A product with accumulate had the result's old values copied in, and has
// added to them itself.
static void copy_out(void *arg, int me, int members) {
    const Move *m = arg;
    const RtType type = m->call->type;
    bool adds = m->call->accumulate && is_conv(m->call);
    size_t first, last;
    share(m->count, me, members, &first, &last);
    for (size_t i = first; i < last; i++) {
        float old = adds ? load(type, m->tensor, i) : 0;
        store(type, m->tensor, i, adds ? old + m->copy[i] : m->copy[i]);
    }
}

static void execute(RtContractions *o, dnnl_primitive_t primitive,
                    const dnnl_exec_arg_t *args, int count) {
    check(dnnl_primitive_execute(primitive, o->stream, count, args),
          "run a convolution");
    check(dnnl_stream_wait(o->stream), "run a convolution");
}

static void run_pack(RtContractions *o, Step *s) {
    bool back = s->call->kind == RT_CONV_GRAD_WEIGHT;
    dnnl_exec_arg_t args[] = {
        {DNNL_ARG_FROM, back ? s->memory[WEIGHTS] : s->plain_memory},
        {DNNL_ARG_TO, back ? s->plain_memory : s->memory[WEIGHTS]},
        {DNNL_ARG_SCRATCHPAD, s->pack_scratch},
    };
    execute(o, s->pack, args, 3);
}

static void place(Step *s, Role role, void *at) {
    bool plain = role == WEIGHTS && s->pack != NULL;
    check(dnnl_memory_set_data_handle(plain ? s->plain_memory : s->memory[role],
                                      at),
          "place a tensor");
}

static void run_conv(RtContractions *o, Step *s, void *a, void *b, void *out) {
    RtCallKind kind = s->call->kind;
    place(s, uses[kind].a, a);
    place(s, uses[kind].b, b);
    place(s, uses[kind].out, out);
    if (s->pack != NULL && kind != RT_CONV_GRAD_WEIGHT)
        run_pack(o, s);
    dnnl_exec_arg_t args[NUM_ROLES + 1] = {{DNNL_ARG_SCRATCHPAD, s->scratch}};
    for (int i = 0; i < NUM_ROLES; i++)
        args[i + 1] = (dnnl_exec_arg_t){uses[kind].argument[i], s->memory[i]};
    execute(o, s->primitive, args, NUM_ROLES + 1);
    if (s->pack != NULL && kind == RT_CONV_GRAD_WEIGHT)
        run_pack(o, s);
}

// Products of a call, and what takes part in them.
typedef struct {
    const Step *step;
    const float *a, *b;
    float *out;
} Products;

static void multiply(const Products *p, int64_t i) {
    const RtCall *c = p->step->call;
    const size_t *count = p->step->count;
    size_t at = (size_t)i, batch = (size_t)c->batch;
    size_t own = count[2] / batch;
    if (c->c == 0 && !c->accumulate)
        memset(p->out + at * own, 0, own * sizeof(float));
    if (own == 0 || c->c == 0) // which oneDNN refuses
        return;
    check(dnnl_sgemm(c->ta ? 'T' : 'N', c->tb ? 'T' : 'N', c->n, c->k, c->c, 1,
                     p->a + at * (count[0] / batch), c->ta ? c->n : c->c,
                     p->b + at * (count[1] / batch), c->tb ? c->c : c->k,
                     c->accumulate ? 1 : 0, p->out + at * own, c->k),
          "multiply matrices");
}

static void multiply_share(void *arg, int me, int members) {
    const Products *p = arg;
    size_t first, last;
    share((size_t)p->step->call->batch, me, members, &first, &last);
    for (size_t i = first; i < last; i++)
        multiply(p, (int64_t)i);
}

// One product is oneDNN's to divide between threads; of several each thread
// takes whole ones, which also makes them independent of how many threads
// there are.
static void run_matmul(const RtContractions *o, const Step *s, void *at[3]) {
    Products p = {s, at[0], at[1], at[2]};
    if (s->call->batch == 1)
        multiply(&p, 0);
    else
        rt_team_run(o->threads, multiply_share, &p);
}

static void zero(float *out, size_t count) {
    for (size_t i = 0; i < count; i++)
        out[i] = 0;
}

void rt_contractions_run(RtContractions *o, int call, char *a, char *b,
                         char *out) {
    Step *s = &o->step[call];
    const RtCall *c = s->call;
    char *tensor[3] = {a, b, out};
    void *at[3] = {a, b, out};
    for (int i = 0; i < 3; i++) {
        Move m = {c, tensor[i], o->copy[i], s->count[i]};
        if (!is_copied(c, i))
            continue;
        at[i] = o->copy[i];
        if (i < 2 || (c->accumulate && !is_conv(c)))
            rt_team_run(o->threads, copy_in, &m);
    }
    if (is_planned(s))
        run_conv(o, s, at[0], at[1], at[2]);
    else if (is_conv(c))
        zero(at[2], s->count[2]);
    else if (is_factor(c))
        rt_factor(c, at[0], at[2], o->work);
    else
        run_matmul(o, s, at);
    Move m = {c, out, o->copy[2], s->count[2]};
    if (is_copied(c, 2))
        rt_team_run(o->threads, copy_out, &m);
}

// ---- the end ----

static void step_free(Step *s) {
    if (s->plan == NULL)
        return;
    layout_free(s->plain);
    dnnl_primitive_desc_destroy(s->plan);
    if (s->pack_plan != NULL)
        dnnl_primitive_desc_destroy(s->pack_plan);
    if (s->primitive == NULL)
        return;
    dnnl_primitive_destroy(s->primitive);
    if (s->pack != NULL) {
        dnnl_primitive_destroy(s->pack);
        dnnl_memory_destroy(s->pack_scratch);
    }
    for (int i = 0; i < NUM_ROLES; i++)
        dnnl_memory_destroy(s->memory[i]);
    dnnl_memory_destroy(s->plain_memory);
    dnnl_memory_destroy(s->scratch);
}

void rt_contractions_free(RtContractions *o) {
    for (int i = 0; i < o->num_steps; i++)
        step_free(&o->step[i]);
    dnnl_primitive_attr_destroy(o->attr);
    dnnl_stream_destroy(o->stream);
    dnnl_engine_destroy(o->engine);
    free(o->packed);
    free(o->work);
    for (int i = 0; i < 3; i++)
        free(o->copy[i]);
    free(o->step);
    free(o);
}
