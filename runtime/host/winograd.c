// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Winograd: which convolutions are quicker by Winograd's method.
//
// oneDNN's computes four by four pixels from six by six with 36 products where
// the definition has 144.  It brings images and weights into another basis for
// that, so it takes enough channels to make the products what counts, enough
// pixels to use the new weights for, and images that such squares do not stand
// out of.  The choice depends on nothing but the shape, so that results repeat.
#include "runtime/host/onednn.h"

// By measurement: below these the definition was as quick, or quicker.
enum {
    SIDE = 4,
    MIN_CHANNELS = 32,
    MIN_PAIRS = 32 * 64, // of channels, for a gradient of weights
    MIN_SQUARES = 64,
    MIN_USED = 12, // of the 16 pixels of a square
};

// Gradients of images with unequal margins come out wrong in oneDNN 2.6.3.
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
    int64_t high = (c->oh + SIDE - 1) / SIDE, wide = (c->ow + SIDE - 1) / SIDE;
    return is_plain(c) && is_same(c) && has_channels(c) &&
           c->n * high * wide >= MIN_SQUARES &&
           (int64_t)c->oh * c->ow >= MIN_USED * high * wide;
}
