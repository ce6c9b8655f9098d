// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Plans a convolution with oneDNN.
//
// oneDNN offers small matrix products ("brgconv") first, which read all weights
// again for each row of the result.  If that costs more than it saves, the next
// implementation is chosen.  The choice depends on the shape alone, so results
// repeat.
#define _POSIX_C_SOURCE 200809L

#include "runtime/host/onednn.h"
#include "runtime/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Measured: brgconv is slower with fewer pixels in a row of the result and more
// bytes of weights than fit in a core's cache.
enum { SHORT_ROW = 8, L2_BYTES = 1 << 20 };

enum { MAX_LANES = 16 }; // of f32 in a vector

void rt_dnnl_check(dnnl_status_t status, const char *what) {
    if (status == dnnl_success)
        return;
    rt_end(status == dnnl_out_of_memory ? EXIT_MEMORY : EXIT_DEVICE,
           "oneDNN: cannot %s (status %d)", what, status);
}

typedef struct {
    RtCallKind kind;
    dnnl_alg_kind_t algorithm;
    Layout of[NUM_ROLES];
    dnnl_dims_t stride, dilation, before, after; // of the window
} Problem;

#if DNNL_VERSION_MAJOR >= 3
static Layout layout_new(int rank, const dnnl_dims_t dim,
                         const dnnl_dims_t stride) {
    dnnl_memory_desc_t m;
    if (stride == NULL)
        rt_dnnl_check(dnnl_memory_desc_create_with_tag(&m, rank, dim, dnnl_f32,
                                                       dnnl_format_tag_any),
                      "describe a tensor");
    else
        rt_dnnl_check(dnnl_memory_desc_create_with_strides(&m, rank, dim,
                                                           dnnl_f32, stride),
                      "describe a tensor");
    return m;
}

dnnl_status_t rt_dnnl_append_sum(dnnl_post_ops_t to) {
    return dnnl_post_ops_append_sum(to, 1, 0, dnnl_data_type_undef);
}

void rt_layout_free(Layout m) {
    dnnl_memory_desc_destroy((dnnl_memory_desc_t)m);
}

// NULL: no such implementation.
static dnnl_primitive_desc_t describe(const Problem *c, dnnl_engine_t engine,
                                      dnnl_primitive_desc_t hint,
                                      dnnl_primitive_attr_t attr, int skip) {
    const Layout *of = c->of;
    dnnl_primitive_desc_t p = NULL;
    dnnl_status_t status;
    if (c->kind == RT_CONV)
        status = dnnl_convolution_forward_primitive_desc_create(
            &p, engine, dnnl_forward_training, c->algorithm, of[SRC],
            of[WEIGHTS], NULL, of[DST], c->stride, c->dilation, c->before,
            c->after, attr);
    else if (c->kind == RT_CONV_GRAD_INPUT)
        status = dnnl_convolution_backward_data_primitive_desc_create(
            &p, engine, c->algorithm, of[SRC], of[WEIGHTS], of[DST], c->stride,
            c->dilation, c->before, c->after, hint, attr);
    else
        status = dnnl_convolution_backward_weights_primitive_desc_create(
            &p, engine, c->algorithm, of[SRC], of[WEIGHTS], NULL, of[DST],
            c->stride, c->dilation, c->before, c->after, hint, attr);
    if (status == dnnl_unimplemented)
        return NULL;
    rt_dnnl_check(status, "plan a convolution");
    for (; skip > 0; skip--)
        if (dnnl_primitive_desc_next_impl(p) != dnnl_success) {
            dnnl_primitive_desc_destroy(p);
            return NULL;
        }
    return p;
}
#else
static Layout layout_new(int rank, const dnnl_dims_t dim,
                         const dnnl_dims_t stride) {
    dnnl_memory_desc_t *m = malloc(sizeof *m);
    rt_dnnl_check(m == NULL ? dnnl_out_of_memory : dnnl_success,
                  "describe a tensor");
    if (stride == NULL)
        rt_dnnl_check(dnnl_memory_desc_init_by_tag(m, rank, dim, dnnl_f32,
                                                   dnnl_format_tag_any),
                      "describe a tensor");
    else
        rt_dnnl_check(
            dnnl_memory_desc_init_by_strides(m, rank, dim, dnnl_f32, stride),
            "describe a tensor");
    return m;
}

dnnl_status_t rt_dnnl_append_sum(dnnl_post_ops_t to) {
    return dnnl_post_ops_append_sum(to, 1);
}

void rt_layout_free(Layout m) {
    free((dnnl_memory_desc_t *)m);
}

// NULL: there is no such implementation.
static dnnl_primitive_desc_t describe(const Problem *c, dnnl_engine_t engine,
                                      dnnl_primitive_desc_t hint,
                                      dnnl_primitive_attr_t attr, int skip) {
    const Layout *of = c->of;
    dnnl_convolution_desc_t d;
    dnnl_primitive_desc_iterator_t each;
    dnnl_primitive_desc_t p = NULL;
    dnnl_status_t status;
    if (c->kind == RT_CONV)
        status = dnnl_dilated_convolution_forward_desc_init(
            &d, dnnl_forward_training, c->algorithm, of[SRC], of[WEIGHTS], NULL,
            of[DST], c->stride, c->dilation, c->before, c->after);
    else if (c->kind == RT_CONV_GRAD_INPUT)
        status = dnnl_dilated_convolution_backward_data_desc_init(
            &d, c->algorithm, of[SRC], of[WEIGHTS], of[DST], c->stride,
            c->dilation, c->before, c->after);
    else
        status = dnnl_dilated_convolution_backward_weights_desc_init(
            &d, c->algorithm, of[SRC], of[WEIGHTS], NULL, of[DST], c->stride,
            c->dilation, c->before, c->after);
    rt_dnnl_check(status, "describe a convolution");
    status = dnnl_primitive_desc_iterator_create(&each, &d, attr, engine, hint);
    if (status == dnnl_unimplemented)
        return NULL;
    rt_dnnl_check(status, "plan a convolution");
    while (skip > 0 && dnnl_primitive_desc_iterator_next(each) == dnnl_success)
        skip--;
    if (skip == 0)
        p = dnnl_primitive_desc_iterator_fetch(each);
    dnnl_primitive_desc_iterator_destroy(each);
    return p;
}
#endif

static Layout image_layout(int n, int h, int w, int c, bool any) {
    const dnnl_dims_t stride = {(int64_t)h * w * c, 1, (int64_t)w * c, c};
    return layout_new(4, (dnnl_dims_t){n, c, h, w}, any ? NULL : stride);
}

static Layout weight_layout(const RtCall *c, bool any) {
    int64_t k = c->k / c->groups, in = c->c / c->groups;
    int64_t one = in * c->r * c->s; // one filter
    dnnl_dims_t dim = {c->groups, k, in, c->r, c->s};
    dnnl_dims_t stride = {k * one, one, 1, in * c->s, in};
    int skip = c->groups == 1; // no such dimension without groups
    return layout_new(5 - skip, dim + skip, any ? NULL : stride + skip);
}

// In the arena's layout, or in any.
static Layout layout_of(const RtCall *c, Role role, bool any) {
    if (role == WEIGHTS)
        return weight_layout(c, any);
    return role == SRC ? image_layout(c->n, c->h, c->w, c->c, any)
                       : image_layout(c->n, c->oh, c->ow, c->k, any);
}

Layout rt_layout_plain(const RtCall *c, Role role) {
    return layout_of(c, role, false);
}

// Images have the arena's layout, or any.
static Problem problem_new(const RtCall *c, dnnl_alg_kind_t algorithm,
                           bool any) {
    return (Problem){
        .kind = c->kind,
        .algorithm = algorithm,
        .of = {[SRC] = layout_of(c, SRC, any),
               [WEIGHTS] = layout_of(c, WEIGHTS, true),
               [DST] = layout_of(c, DST, any)},
        .stride = {c->stride[0], c->stride[1]},
        .dilation = {c->dilation[0] - 1, c->dilation[1] - 1},
        .before = {c->pad[0], c->pad[2]},
        .after = {c->pad[1], c->pad[3]},
    };
}

static void problem_free(Problem *p) {
    for (int i = 0; i < NUM_ROLES; i++)
        rt_layout_free(p->of[i]);
}

static bool is_named(const_dnnl_primitive_desc_t plan, const char *start) {
    const char *name = "";
    rt_dnnl_check(
        dnnl_primitive_desc_query(plan, dnnl_query_impl_info_str, 0, &name),
        "plan a convolution");
    return strncmp(name, start, strlen(start)) == 0;
}

bool rt_conv_is_brgemm(const_dnnl_primitive_desc_t plan) {
    return is_named(plan, "brgconv");
}

// Whether there is a product for each row, not one for all.
static bool has_rows(const RtCall *c) {
    return c->r > 1 || c->s > 1;
}

bool rt_conv_is_short(const RtCall *c) {
    size_t each = (size_t)(c->c / c->groups) * (size_t)c->r * (size_t)c->s;
    size_t bytes = each * (size_t)c->k * sizeof(float);
    return has_rows(c) && c->ow < SHORT_ROW && bytes > L2_BYTES;
}

// If the rows of a product are one vector, each number of the image is read for
// one sum only.
bool rt_conv_is_narrow(const RtCall *c) {
    return has_rows(c) && c->k <= MAX_LANES;
}

// With fewer image channels than a vector has lanes, sums are short, too.
static bool has_few_channels(const RtCall *c) {
    return rt_conv_is_narrow(c) && c->c < MAX_LANES;
}

static dnnl_primitive_desc_t plan_forward(const RtCall *c, const Problem *p,
                                          dnnl_engine_t engine,
                                          dnnl_primitive_attr_t attr) {
    Problem forward = *p;
    forward.kind = RT_CONV;
    dnnl_primitive_desc_t first = describe(&forward, engine, NULL, attr, 0);
    bool slow = rt_conv_is_short(c) || has_few_channels(c);
    if (first == NULL || !rt_conv_is_brgemm(first) || !slow)
        return first;
    for (int skip = 1;; skip++) {
        dnnl_primitive_desc_t other =
            describe(&forward, engine, NULL, attr, skip);
        if (other == NULL)
            return first;
        if (!rt_conv_is_brgemm(other)) {
            dnnl_primitive_desc_destroy(first);
            return other;
        }
        dnnl_primitive_desc_destroy(other);
    }
}

// With fewer channels than its vectors have lanes, this implementation copies
// the pixels of a stride to a buffer for just these channels, and writes beyond
// it: oneDNN's issue 6035, in 2.6 to 3.12.
static bool overruns(const RtCall *c, const_dnnl_primitive_desc_t plan) {
    bool strided = c->stride[0] > 1 || c->stride[1] > 1;
    return c->kind == RT_CONV_GRAD_WEIGHT && strided && c->c < MAX_LANES &&
           is_named(plan, "jit_1x1");
}

static dnnl_primitive_desc_t plan_problem(const RtCall *c, const Problem *p,
                                          dnnl_engine_t engine,
                                          dnnl_primitive_attr_t attr) {
    dnnl_primitive_desc_t forward = plan_forward(c, p, engine, attr);
    if (forward == NULL || p->kind == RT_CONV)
        return forward;
    dnnl_primitive_desc_t plan;
    for (int skip = 0;
         (plan = describe(p, engine, forward, attr, skip)) != NULL &&
         overruns(c, plan);
         skip++)
        dnnl_primitive_desc_destroy(plan);
    dnnl_primitive_desc_destroy(forward);
    return plan;
}

dnnl_primitive_desc_t rt_conv_plan(const RtCall *c, dnnl_engine_t engine,
                                   dnnl_primitive_attr_t attr) {
    Problem p = problem_new(c, dnnl_convolution_direct, false);
    dnnl_primitive_desc_t plan = plan_problem(c, &p, engine, attr);
    problem_free(&p);
    rt_dnnl_check(plan != NULL ? dnnl_success : dnnl_unimplemented,
                  "plan a convolution");
    return plan;
}

dnnl_primitive_desc_t rt_winograd_plan(const RtCall *c, dnnl_engine_t engine,
                                       dnnl_primitive_attr_t attr) {
    if (!rt_winograd_is_faster(c))
        return NULL;
    Problem p = problem_new(c, dnnl_convolution_winograd, true);
    dnnl_primitive_desc_t plan = plan_problem(c, &p, engine, attr);
    problem_free(&p);
    if (plan == NULL || is_named(plan, "jit_wino_4x3"))
        return plan;
    dnnl_primitive_desc_destroy(plan);
    return NULL;
}
