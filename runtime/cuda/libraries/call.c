// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls: functions of one call that all libraries share.

#include "runtime/cuda/libraries/libraries.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool rt_convolution_of(const RtCall *m, RtCall *as) {
    *as = *m;
    if (rt_call_of_nothing(m))
        return false;
    if (m->kind != RT_MATMUL)
        return m->kind <= RT_CONV_GRAD_WEIGHT;
    if (m->batch != 1 || (m->ta && m->tb))
        return false;
    *as = (RtCall){.type = m->type,
                   .accumulate = m->accumulate,
                   .layer = m->layer,
                   .h = 1,
                   .w = 1,
                   .r = 1,
                   .s = 1,
                   .oh = 1,
                   .ow = 1,
                   .stride = {1, 1},
                   .dilation = {1, 1},
                   .groups = 1};
    as->kind = m->ta   ? RT_CONV_GRAD_WEIGHT
               : m->tb ? RT_CONV
                       : RT_CONV_GRAD_INPUT;
    as->n = m->ta ? m->c : m->n;
    as->c = m->ta || !m->tb ? m->k : m->c;
    as->k = m->ta ? m->n : m->tb ? m->k : m->c;
    return true;
}

bool rt_call_same(const RtCall *a, const RtCall *b) {
    return a->kind == b->kind && a->type == b->type &&
           a->accumulate == b->accumulate && a->n == b->n && a->h == b->h &&
           a->w == b->w && a->c == b->c && a->k == b->k && a->r == b->r &&
           a->s == b->s && a->oh == b->oh && a->ow == b->ow &&
           memcmp(a->stride, b->stride, sizeof a->stride) == 0 &&
           memcmp(a->dilation, b->dilation, sizeof a->dilation) == 0 &&
           memcmp(a->pad, b->pad, sizeof a->pad) == 0 &&
           a->groups == b->groups && a->ta == b->ta && a->tb == b->tb &&
           a->batch == b->batch;
}

const char *rt_call_text(char *to, size_t room, const RtCall *c) {
    static const char *const kind[] = {
        [RT_CONV] = "convolution",
        [RT_CONV_GRAD_INPUT] = "input gradient of a convolution",
        [RT_CONV_GRAD_WEIGHT] = "weight gradient of a convolution",
        [RT_MATMUL] = "product",
        [RT_EIGH] = "eigenvectors",
        [RT_ORTHOGONAL] = "orthonormalization",
        [RT_SUM_OVER_SHARDS] = "sum over shards",
        [RT_TILED] = "product of a tile kernel"};
    const char *type = c->type == RT_F32   ? "f32"
                       : c->type == RT_F16 ? "f16"
                                           : "bf16";
    if (c->kind > RT_CONV_GRAD_WEIGHT)
        snprintf(to, room, "%s: %s %s [%d, %d] by [%d, %d], batch of %" PRId64,
                 c->layer, type, kind[c->kind], c->n, c->c, c->c, c->k,
                 c->batch);
    else
        snprintf(to, room,
                 "%s: %s %s, images [%d, %d, %d, %d], weight [%d, %d, %d, %d], "
                 "strides %d and %d",
                 c->layer, type, kind[c->kind], c->n, c->h, c->w, c->c, c->k,
                 c->r, c->s, c->c / c->groups, c->stride[0], c->stride[1]);
    return to;
}
