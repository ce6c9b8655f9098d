// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Turn: the gradient of a convolution with respect to its input as a
// convolution.
//
// A step of one pixel makes it so: pixel y of the input got weight r of pixel
// y + before - r * dilation of the result, so its gradient takes the weights
// from the last to the first, and input and output channels change places.
#include "runtime/host/host.h"

// A square of a matrix that is transposed while it is in the nearest cache.
enum { SIDE = 16 };

bool rt_turn_call(const RtCall *c, RtCall *turned) {
    const int reach[2] = {c->dilation[0] * (c->r - 1),
                          c->dilation[1] * (c->s - 1)};
    *turned = *c;
    turned->kind = RT_CONV;
    turned->h = c->oh, turned->w = c->ow, turned->c = c->k;
    turned->oh = c->h, turned->ow = c->w, turned->k = c->c;
    for (int i = 0; i < 4; i++) {
        turned->pad[i] = reach[i / 2] - c->pad[i];
        if (turned->pad[i] < 0)
            return false;
    }
    return c->groups == 1 && c->stride[0] == 1 && c->stride[1] == 1;
}

typedef struct {
    const RtCall *call;
    const float *from;
    float *to;
} Turn;

// A square at filter k and channel c of one place of the window.  In `from` a
// row is the channels of a filter, in `to` the filters of a channel, and the
// rows of all places lie side by side.
static void turn_square(const Turn *t, int place, int k, int c) {
    const size_t filters = (size_t)t->call->k, channels = (size_t)t->call->c;
    const size_t places = (size_t)(t->call->r * t->call->s);
    const float *from = t->from + (size_t)place * channels;
    float *to = t->to + (places - 1 - (size_t)place) * filters;
    for (size_t i = (size_t)c; i < (size_t)c + SIDE && i < channels; i++)
        for (size_t j = (size_t)k; j < (size_t)k + SIDE && j < filters; j++)
            to[i * places * filters + j] = from[j * places * channels + i];
}

static void turn_filters(void *arg, int me, int members) {
    const Turn *t = arg;
    for (int k = me * SIDE; k < t->call->k; k += members * SIDE)
        for (int place = 0; place < t->call->r * t->call->s; place++)
            for (int c = 0; c < t->call->c; c += SIDE)
                turn_square(t, place, k, c);
}

void rt_turn_weights(const RtCall *c, const float *from, float *to,
                     int threads) {
    Turn t = {c, from, to};
    rt_team_run(threads, turn_filters, &t);
}
