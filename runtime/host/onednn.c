// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// oneDNN: the contractions of the host device.
//
// Images are plain NHWC, on which oneDNN is as fast as on its blocked layouts,
// except for Winograd's method.  A convolution with plain weights is many times
// slower.  So each call reorders its operands into the layouts of its
// primitive, and the result back.  All calls share the buffers for that, as
// they run one after another.
//
// The element type is f32; other types pass through f32 buffers.  Results
// repeat for the same number of threads.  Threads sum a weight gradient and
// divide Winograd's method, so last bits depend on their number.
#define _POSIX_C_SOURCE 200809L

#include "runtime/host/onednn.h"
#include "base/round_up.h"
#include "runtime/host/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64 };

// ---- a planned call ----

// The roles of a call's operands and result in a convolution.
static const struct {
    Role a, b, out;
    dnnl_query_t query[NUM_ROLES];
    int argument[NUM_ROLES];
} operands[] = {
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

// A reorder of a tensor to the layout of a primitive, or of the result back.
typedef struct {
    Layout plain; // in the arena
    dnnl_primitive_desc_t plan;
    dnnl_primitive_t primitive; // NULL: no reorder needed
    dnnl_memory_t memory, scratchpad;
} Reorder;

typedef struct {
    const RtCall *call;
    int threads;
    size_t count[3]; // elements of a, b and the result
    RtCall conv;     // the convolution to run, for a windowed call
    bool is_dgrad;   // it computes a data gradient
    dnnl_primitive_desc_t plan;
    dnnl_primitive_t primitive;
    dnnl_memory_t memory[NUM_ROLES], scratchpad;
    Reorder reorder[NUM_ROLES];
} PlannedCall;

struct RtContractions {
    int num_calls;
    PlannedCall *planned;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_attr_t attr, adding; // adding: to the result's old value
    // Sizes in bytes, then the buffers: reordered tensors, scratchpads, flipped
    // weights, and f32 copies of a, b and the result.
    size_t reordered_bytes[NUM_ROLES], work_bytes, flipped_bytes, copy_bytes[3];
    char *reordered[NUM_ROLES], *work;
    float *flipped, *copy[3];
    size_t code_memory; // free memory for code, from the last measurement
};

static void grow(size_t *to, size_t bytes) {
    bytes = align_up(bytes, ALIGN);
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

static void plan_work(RtContractions *o, dnnl_primitive_desc_t plan) {
    if (plan == NULL)
        return;
    grow(&o->work_bytes, dnnl_memory_desc_get_size(dnnl_primitive_desc_query_md(
                             plan, dnnl_query_scratchpad_md, 0)));
}

static bool is_result(const PlannedCall *s, Role role) {
    return operands[s->conv.kind].out == role;
}

// The reorder of the result adds to its old value if the call accumulates.
static void plan_reorder(RtContractions *o, PlannedCall *s, Role role) {
    Reorder *p = &s->reorder[role];
    Layout target = dnnl_primitive_desc_query_md(
        s->plan, operands[s->conv.kind].query[role], 0);
    bool back = is_result(s, role);
    p->plain = rt_layout_plain(&s->conv, role);
    if (dnnl_memory_desc_equal(target, p->plain))
        return;
    grow(&o->reordered_bytes[role], dnnl_memory_desc_get_size(target));
    rt_dnnl_check(dnnl_reorder_primitive_desc_create(
                      &p->plan, back ? target : p->plain, o->engine,
                      back ? p->plain : target, o->engine,
                      back && s->call->accumulate ? o->adding : o->attr),
                  "plan a layout conversion");
    plan_work(o, p->plan);
}

// Computes a data gradient as a convolution if that has a fast implementation.
// The convolution accumulates by itself.
static void plan_dgrad_as_conv(RtContractions *o, PlannedCall *s) {
    RtCall dgrad;
    if (s->call->kind != RT_CONV_GRAD_INPUT ||
        !rt_dgrad_as_conv(s->call, &dgrad) || rt_conv_is_short(&dgrad) ||
        rt_conv_is_narrow(&dgrad))
        return;
    dnnl_primitive_desc_t plan = rt_conv_plan(
        &dgrad, o->engine, s->call->accumulate ? o->adding : o->attr);
    if (!rt_conv_is_brgemm(plan)) {
        dnnl_primitive_desc_destroy(plan);
        return;
    }
    s->plan = plan;
    s->conv = dgrad;
    s->is_dgrad = true;
    grow(&o->flipped_bytes, s->count[1] * sizeof(float));
}

static void plan_conv(RtContractions *o, PlannedCall *s) {
    s->conv = *s->call;
    s->plan = rt_winograd_plan(s->call, o->engine, o->attr);
    if (s->plan == NULL)
        plan_dgrad_as_conv(o, s);
    if (s->plan == NULL)
        s->plan = rt_conv_plan(s->call, o->engine, o->attr);
    plan_work(o, s->plan);
    for (int i = 0; i < NUM_ROLES; i++)
        plan_reorder(o, s, (Role)i);
}

// Whether oneDNN has a convolution for it.
static bool is_planned(const PlannedCall *s) {
    return is_conv(s->call) && !rt_call_of_nothing(s->call);
}

// Whether the library adds to the result's old value.
static bool adds_itself(const PlannedCall *s) {
    bool packed =
        is_planned(s) && s->reorder[operands[s->conv.kind].out].plan != NULL;
    return s->call->accumulate && (!is_conv(s->call) || s->is_dgrad || packed);
}

// Whether a, b or the result passes through a buffer.  Not every primitive can
// accumulate; the copy back adds then.
static bool is_copied(const PlannedCall *s, int i) {
    const RtCall *c = s->call;
    return c->type != RT_F32 || (i == 2 && c->accumulate && !adds_itself(s));
}

static dnnl_primitive_attr_t attr_new(bool adds) {
    dnnl_primitive_attr_t attr;
    dnnl_post_ops_t after;
    rt_dnnl_check(dnnl_primitive_attr_create(&attr), "start");
    rt_dnnl_check(dnnl_primitive_attr_set_scratchpad_mode(
                      attr, dnnl_scratchpad_mode_user),
                  "start");
    if (!adds)
        return attr;
    rt_dnnl_check(dnnl_post_ops_create(&after), "start");
    rt_dnnl_check(rt_dnnl_append_sum(after), "start");
    rt_dnnl_check(dnnl_primitive_attr_set_post_ops(attr, after), "start");
    rt_dnnl_check(dnnl_post_ops_destroy(after), "start");
    return attr;
}

// oneDNN plans and generates code, and crashes without memory for it, so that is
// checked first.  The check takes as long as generating most code, so it is repeated
// only when the measured memory may be used up.
static void check_code_memory(RtContractions *o, const char *what) {
    enum { MAX_CODE = 8 << 20 }; // sgemm has six million bytes
    if (o->code_memory < MAX_CODE)
        o->code_memory = rt_memory_available();
    if (o->code_memory < MAX_CODE)
        rt_end(EXIT_MEMORY,
               "oneDNN needs up to %d MiB of memory to %s, but only %zu MiB "
               "are free",
               MAX_CODE >> 20, what, o->code_memory >> 20);
    o->code_memory -= MAX_CODE;
}

// sgemm's code is generated at its first use.  Doing so here comes before the
// memory check of the run.
static void compile_sgemm(RtContractions *o) {
    static const char what[] = "multiply matrices";
    const float one[4] = {1, 1, 1, 1};
    float out[4];
    check_code_memory(o, what);
    rt_dnnl_check(dnnl_sgemm('N', 'N', 2, 2, 2, 1, one, 2, one, 2, 0, out, 2),
                  what);
}

static bool is_matmul(const RtCall *c) {
    return c->kind == RT_MATMUL;
}

void rt_contractions_new(const RtPlan *plan, int threads, RtContractions **to) {
    RtContractions *o = *to = calloc(1, sizeof *o);
    rt_dnnl_check(o ? dnnl_success : dnnl_out_of_memory, "start");
    PlannedCall *planned = o->planned =
        calloc((size_t)plan->num_calls + 1, sizeof *planned);
    rt_dnnl_check(planned ? dnnl_success : dnnl_out_of_memory, "start");
    o->num_calls = plan->num_calls;
    check_code_memory(o, "plan");
    rt_dnnl_check(dnnl_engine_create(&o->engine, dnnl_cpu, 0), "start");
    rt_dnnl_check(
        dnnl_stream_create(&o->stream, o->engine, dnnl_stream_default_flags),
        "start");
    o->attr = attr_new(false);
    o->adding = attr_new(true);
    bool multiplies = false;
    for (int i = 0; i < plan->num_calls; i++) {
        planned[i].call = &plan->call[i];
        planned[i].threads = rt_call_threads(planned[i].call, threads);
        rt_team_use(planned[i].threads);
        multiplies = multiplies || is_matmul(planned[i].call);
        rt_call_count(planned[i].call, planned[i].count);
        if (is_planned(&planned[i]))
            plan_conv(o, &planned[i]);
        else if (is_factor(planned[i].call))
            grow(&o->work_bytes, rt_factor_bytes(planned[i].call));
        for (int k = 0; k < 3; k++)
            if (is_copied(&planned[i], k))
                grow(&o->copy_bytes[k], planned[i].count[k] * sizeof(float));
    }
    if (multiplies)
        compile_sgemm(o);
}

size_t rt_contractions_bytes(const RtContractions *o) {
    size_t bytes = o->work_bytes + o->flipped_bytes;
    for (int i = 0; i < NUM_ROLES; i++)
        bytes += o->reordered_bytes[i];
    for (int i = 0; i < 3; i++)
        bytes += o->copy_bytes[i];
    return bytes;
}

// ---- creating the primitives ----

static void *alloc_zeroed(size_t bytes) {
    void *p = bytes > 0 ? aligned_alloc(ALIGN, bytes) : NULL;
    rt_dnnl_check(p || bytes == 0 ? dnnl_success : dnnl_out_of_memory,
                  "allocate its buffers");
    if (p != NULL)
        memset(p, 0, bytes);
    return p;
}

static dnnl_memory_t memory_for(const RtContractions *o, Layout layout,
                                void *at) {
    dnnl_memory_t m;
    rt_dnnl_check(
        dnnl_memory_create(&m, layout, o->engine, at ? at : DNNL_MEMORY_NONE),
        "create a tensor");
    return m;
}

static dnnl_memory_t scratchpad_for(const RtContractions *o,
                                    dnnl_primitive_desc_t plan) {
    return memory_for(
        o, dnnl_primitive_desc_query_md(plan, dnnl_query_scratchpad_md, 0),
        o->work);
}

static dnnl_primitive_t primitive_new(RtContractions *o,
                                      const_dnnl_primitive_desc_t plan,
                                      const char *what) {
    dnnl_primitive_t primitive;
    check_code_memory(o, what);
    rt_dnnl_check(dnnl_primitive_create(&primitive, plan), what);
    return primitive;
}

static void make_reorder(RtContractions *o, Reorder *p) {
    p->memory = memory_for(o, p->plain, NULL);
    p->scratchpad = scratchpad_for(o, p->plan);
    p->primitive = primitive_new(o, p->plan, "create a layout conversion");
}

static void make_primitives(RtContractions *o, PlannedCall *s) {
    for (int i = 0; i < NUM_ROLES; i++) {
        Layout l = dnnl_primitive_desc_query_md(
            s->plan, operands[s->conv.kind].query[i], 0);
        bool packed = s->reorder[i].plan != NULL;
        s->memory[i] = memory_for(o, l, packed ? o->reordered[i] : NULL);
        if (packed)
            make_reorder(o, &s->reorder[i]);
    }
    s->scratchpad = scratchpad_for(o, s->plan);
    s->primitive = primitive_new(o, s->plan, "create a convolution");
}

void rt_contractions_reserve(RtContractions *o) {
    o->work = alloc_zeroed(o->work_bytes);
    o->flipped = alloc_zeroed(o->flipped_bytes);
    for (int i = 0; i < NUM_ROLES; i++)
        o->reordered[i] = alloc_zeroed(o->reordered_bytes[i]);
    for (int i = 0; i < 3; i++)
        o->copy[i] = alloc_zeroed(o->copy_bytes[i]);
    o->code_memory = 0; // the arena and the buffers are allocated now
    for (int i = 0; i < o->num_calls; i++) {
        rt_team_use(o->planned[i].threads);
        if (is_planned(&o->planned[i]))
            make_primitives(o, &o->planned[i]);
    }
}

// ---- running ----

static void execute(RtContractions *o, dnnl_primitive_t primitive,
                    const dnnl_exec_arg_t *args, int count) {
    rt_dnnl_check(dnnl_primitive_execute(primitive, o->stream, count, args),
                  "run a convolution");
    rt_dnnl_check(dnnl_stream_wait(o->stream), "run a convolution");
}

static void run_reorder(RtContractions *o, PlannedCall *s, Role role) {
    const Reorder *p = &s->reorder[role];
    bool back = is_result(s, role);
    dnnl_exec_arg_t args[] = {
        {DNNL_ARG_FROM, back ? s->memory[role] : p->memory},
        {DNNL_ARG_TO, back ? p->memory : s->memory[role]},
        {DNNL_ARG_SCRATCHPAD, p->scratchpad},
    };
    if (p->primitive != NULL)
        execute(o, p->primitive, args, 3);
}

static void bind_tensor(PlannedCall *s, Role role, void *at) {
    const Reorder *p = &s->reorder[role];
    rt_dnnl_check(dnnl_memory_set_data_handle(
                      p->primitive != NULL ? p->memory : s->memory[role], at),
                  "bind a tensor");
}

static void bind_packed(PlannedCall *s, Role role, void *at) {
    rt_dnnl_check(dnnl_memory_set_data_handle(s->memory[role], at),
                  "bind a tensor");
}

static void bind_weights(RtContractions *o, PlannedCall *s, void *b,
                         void *packed) {
    Role role = operands[s->conv.kind].b;
    if (s->reorder[role].plan != NULL)
        bind_packed(s, role, packed ? packed : o->reordered[role]);
    if (packed != NULL)
        return;
    bind_tensor(s, role, s->is_dgrad ? o->flipped : b);
    if (s->is_dgrad)
        rt_dgrad_flip_weights(s->call, b, o->flipped, s->threads);
    run_reorder(o, s, role);
}

static void run_conv(RtContractions *o, PlannedCall *s, void *a, void *b,
                     void *packed, void *out) {
    RtCallKind kind = s->conv.kind;
    bind_tensor(s, operands[kind].a, a);
    bind_tensor(s, operands[kind].out, out);
    run_reorder(o, s, operands[kind].a);
    bind_weights(o, s, b, packed);
    dnnl_exec_arg_t args[NUM_ROLES + 1] = {
        {DNNL_ARG_SCRATCHPAD, s->scratchpad}};
    for (int i = 0; i < NUM_ROLES; i++)
        args[i + 1] =
            (dnnl_exec_arg_t){operands[kind].argument[i], s->memory[i]};
    execute(o, s->primitive, args, NUM_ROLES + 1);
    run_reorder(o, s, operands[kind].out);
}

// Matrix products of a call.
typedef struct {
    const PlannedCall *planned;
    const float *a, *b;
    float *out;
} Matmuls;

static void multiply(const Matmuls *p, int64_t i) {
    const RtCall *c = p->planned->call;
    const size_t *count = p->planned->count;
    size_t at = (size_t)i, batch = (size_t)c->batch;
    size_t own = count[2] / batch;
    if (c->c == 0 && !c->accumulate)
        memset(p->out + at * own, 0, own * sizeof(float));
    if (own == 0 || c->c == 0) // oneDNN refuses it
        return;
    rt_dnnl_check(
        dnnl_sgemm(c->ta ? 'T' : 'N', c->tb ? 'T' : 'N', c->n, c->k, c->c, 1,
                   p->a + at * (count[0] / batch), c->ta ? c->n : c->c,
                   p->b + at * (count[1] / batch), c->tb ? c->c : c->k,
                   c->accumulate ? 1 : 0, p->out + at * own, c->k),
        "multiply matrices");
}

static void multiply_share(void *arg, int me, int members) {
    const Matmuls *p = arg;
    size_t first, last;
    rt_team_share((size_t)p->planned->call->batch, me, members, &first, &last);
    for (size_t i = first; i < last; i++)
        multiply(p, (int64_t)i);
}

// oneDNN divides one product between threads.  If there are several, each
// thread computes whole ones, so results do not depend on the number of
// threads.
static void run_matmul(const PlannedCall *s, void *at[3]) {
    Matmuls p = {s, at[0], at[1], at[2]};
    if (s->call->batch == 1)
        multiply(&p, 0);
    else
        rt_team_run(s->threads, multiply_share, &p);
}

size_t rt_contractions_packed_bytes(const RtContractions *o, int call) {
    const PlannedCall *s = &o->planned[call];
    bool packs = is_planned(s) && s->call->kind == RT_CONV &&
                 s->call->type == RT_F32 && s->reorder[WEIGHTS].plan != NULL;
    return packs ? dnnl_memory_desc_get_size(dnnl_primitive_desc_query_md(
                       s->plan, dnnl_query_weights_md, 0))
                 : 0;
}

void rt_contractions_pack(RtContractions *o, int call, char *b, char *packed) {
    PlannedCall *s = &o->planned[call];
    rt_team_use(s->threads);
    bind_tensor(s, WEIGHTS, b);
    bind_packed(s, WEIGHTS, packed);
    run_reorder(o, s, WEIGHTS);
}

void rt_contractions_run(RtContractions *o, int call, char *a, char *b,
                         char *packed, char *out) {
    PlannedCall *s = &o->planned[call];
    const RtCall *c = s->call;
    char *tensor[3] = {a, b, out};
    void *at[3] = {a, b, out};
    rt_team_use(s->threads);
    for (int i = 0; i < 3; i++) {
        RtCopy copy = {c->type, false, tensor[i], o->copy[i], s->count[i]};
        if (!is_copied(s, i))
            continue;
        at[i] = o->copy[i];
        if (i < 2 || adds_itself(s))
            rt_copy_in(&copy, s->threads);
    }
    if (is_planned(s))
        run_conv(o, s, at[0], at[1], packed, at[2]);
    else if (is_conv(c))
        memset(at[2], 0, s->count[2] * sizeof(float));
    else if (is_factor(c))
        rt_factor(c, at[0], at[2], o->work);
    else
        run_matmul(s, at);
    // A call that accumulates by itself started with the old values.
    bool adds = c->accumulate && !adds_itself(s);
    RtCopy copy = {c->type, adds, out, o->copy[2], s->count[2]};
    if (is_copied(s, 2))
        rt_copy_out(&copy, s->threads);
}

// ---- the end ----

// Each may be NULL after an error.
static void handles_free(dnnl_primitive_desc_t plan, dnnl_primitive_t primitive,
                         dnnl_memory_t scratchpad) {
    if (plan != NULL)
        dnnl_primitive_desc_destroy(plan);
    if (primitive != NULL)
        dnnl_primitive_destroy(primitive);
    if (scratchpad != NULL)
        dnnl_memory_destroy(scratchpad);
}

static void reorder_free(Reorder *p) {
    if (p->plain != NULL)
        rt_layout_free(p->plain);
    if (p->memory != NULL)
        dnnl_memory_destroy(p->memory);
    handles_free(p->plan, p->primitive, p->scratchpad);
}

static void planned_free(PlannedCall *s) {
    for (int i = 0; i < NUM_ROLES; i++) {
        reorder_free(&s->reorder[i]);
        if (s->memory[i] != NULL)
            dnnl_memory_destroy(s->memory[i]);
    }
    handles_free(s->plan, s->primitive, s->scratchpad);
}

void rt_contractions_free(RtContractions *o) {
    for (int i = 0; i < o->num_calls; i++)
        planned_free(&o->planned[i]);
    if (o->attr != NULL)
        dnnl_primitive_attr_destroy(o->attr);
    if (o->adding != NULL)
        dnnl_primitive_attr_destroy(o->adding);
    if (o->stream != NULL)
        dnnl_stream_destroy(o->stream);
    if (o->engine != NULL)
        dnnl_engine_destroy(o->engine);
    free(o->work);
    free(o->flipped);
    for (int i = 0; i < NUM_ROLES; i++)
        free(o->reordered[i]);
    for (int i = 0; i < 3; i++)
        free(o->copy[i]);
    free(o->planned);
    free(o);
}
