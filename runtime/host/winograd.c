// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Winograd: selects convolutions that are faster by Winograd's method.
//
// oneDNN's F(4x4, 3x3) computes 4 x 4 pixels from 6 x 6 with 36 products
// instead of 144.  Images and weights are transformed for that, so it needs
// enough channels to let products dominate, enough pixels to reuse the weights,
// and images that tiles cover well.  The choice depends on the shape alone, so
// results repeat.
#include "runtime/host/onednn.h"

#include "base/round_up.h"

// Measured: below these, direct convolution is as fast or faster.
enum {
    SIDE = 4,
    MIN_CHANNELS = 32,
    MIN_PAIRS = 32 * 64, // of channels, for a weight gradient
    MIN_SQUARES = 64,
    MIN_USED = 12, // of the 16 pixels of a tile
};

// oneDNN 2.6.3 computes wrong gradients for unequal padding.
static bool is_same(const RtCall *c) {
    return c->pad[0] == 1 && c->pad[1] == 1 && c->pad[2] == 1 && c->pad[3] == 1;
}

static bool is_plain(const RtCall *c) {
    return c->r == 3 && c->s == 3 && c->groups == 1 && c->stride[0] == 1 &&
           c->stride[1] == 1 && c->dilation[0] == 1 && c->dilation[1] == 1;
}

static bool has_channels(const RtCall *c) {
    bool weights = c->kind == RT_CONV_GRAD_WEIGHT;
    return c->c >= MIN_CHANNELS && c->k >= MIN_CHANNELS &&
           (!weights || (int64_t)c->c * c->k >= MIN_PAIRS);
}

bool rt_winograd_is_faster(const RtCall *c) {
    int64_t high = divide_up(c->oh, SIDE), wide = divide_up(c->ow, SIDE);
    return is_plain(c) && is_same(c) && has_channels(c) &&
           c->n * high * wide >= MIN_SQUARES &&
           (int64_t)c->oh * c->ow >= MIN_USED * high * wide;
}
