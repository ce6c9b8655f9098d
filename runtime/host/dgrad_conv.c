// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Dgrad as convolution: the data gradient of a convolution with stride 1.
//
// Pixel y of the input got weight r of pixel y + before - r * dilation of the
// result.  So its gradient uses the weights from last to first, and input and
// output channels swap.
#include "runtime/host/host.h"

// A tile is transposed in the L1 cache.
enum { TILE = 16 };

bool rt_dgrad_as_conv(const RtCall *c, RtCall *conv) {
    const int reach[2] = {c->dilation[0] * (c->r - 1),
                          c->dilation[1] * (c->s - 1)};
    *conv = *c;
    conv->kind = RT_CONV;
    conv->h = c->oh, conv->w = c->ow, conv->c = c->k;
    conv->oh = c->h, conv->ow = c->w, conv->k = c->c;
    for (int i = 0; i < 4; i++) {
        conv->pad[i] = reach[i / 2] - c->pad[i];
        if (conv->pad[i] < 0)
            return false;
    }
    return c->groups == 1 && c->stride[0] == 1 && c->stride[1] == 1;
}

typedef struct {
    const RtCall *call;
    const float *from;
    float *to;
} Flip;

// Transposes a tile at filter k and channel c of one tap.  A row of `from` has
// the channels of a filter, a row of `to` the filters of a channel, and the
// rows of all taps are side by side.
static void flip_tile(const Flip *t, int tap, int k, int c) {
    const size_t filters = (size_t)t->call->k, channels = (size_t)t->call->c;
    const size_t taps = (size_t)(t->call->r * t->call->s);
    const float *from = t->from + (size_t)tap * channels;
    float *to = t->to + (taps - 1 - (size_t)tap) * filters;
    for (size_t i = (size_t)c; i < (size_t)c + TILE && i < channels; i++)
        for (size_t j = (size_t)k; j < (size_t)k + TILE && j < filters; j++)
            to[i * taps * filters + j] = from[j * taps * channels + i];
}

static void flip_filters(void *arg, int me, int members) {
    const Flip *t = arg;
    for (int k = me * TILE; k < t->call->k; k += members * TILE)
        for (int tap = 0; tap < t->call->r * t->call->s; tap++)
            for (int c = 0; c < t->call->c; c += TILE)
                flip_tile(t, tap, k, c);
}

void rt_dgrad_flip_weights(const RtCall *c, const float *from, float *to,
                           int threads) {
    Flip t = {c, from, to};
    rt_team_run(threads, flip_filters, &t);
}
