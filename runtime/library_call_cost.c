// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Library call cost: element counts and FLOPs of a library call.

#include "runtime/runtime.h"

static void count_product(const RtCall *c, size_t count[3]) {
    size_t batch = (size_t)c->batch;
    count[0] = batch * (size_t)c->n * (size_t)c->c;
    count[1] = batch * (size_t)c->c * (size_t)c->k;
    count[2] = batch * (size_t)c->n * (size_t)c->k;
}

static void count_other(const RtCall *c, size_t count[3]) {
    size_t rows = c->kind == RT_EIGH ? (size_t)c->n + 1 : (size_t)c->n;
    count[0] = (size_t)c->n * (size_t)c->k;
    count[1] = 0;
    count[2] = rows * (size_t)c->k;
}

static void count_convolution(const RtCall *c, size_t count[3]) {
    size_t x = (size_t)c->n * (size_t)c->h * (size_t)c->w * (size_t)c->c;
    size_t y = (size_t)c->n * (size_t)c->oh * (size_t)c->ow * (size_t)c->k;
    size_t weight =
        (size_t)c->k * (size_t)c->r * (size_t)c->s * (size_t)(c->c / c->groups);
    count[0] = c->kind == RT_CONV ? x : y;
    count[1] = c->kind == RT_CONV_GRAD_WEIGHT ? x : weight;
    count[2] = c->kind == RT_CONV              ? y
               : c->kind == RT_CONV_GRAD_INPUT ? x
                                               : weight;
}

void rt_call_count(const RtCall *c, size_t count[3]) {
    if (c->kind == RT_MATMUL)
        count_product(c, count);
    else if (c->kind > RT_MATMUL)
        count_other(c, count);
    else
        count_convolution(c, count);
}

bool rt_call_of_nothing(const RtCall *c) {
    size_t count[3];
    rt_call_count(c, count);
    return c->kind <= RT_MATMUL &&
           (count[0] == 0 || count[1] == 0 || count[2] == 0);
}

double rt_call_flops(const RtCall *c) {
    double n = c->n, k = c->k, channels = c->c;
    if (c->kind == RT_MATMUL)
        return 2 * (double)c->batch * n * k * channels;
    if (c->kind > RT_MATMUL)
        return 0;
    return 2 * n * c->oh * c->ow * k * c->r * c->s * (channels / c->groups);
}
