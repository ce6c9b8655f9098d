// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collectives: their operands, and the order of their sums.

#include "runtime/distributed/distributed.h"

#include <string.h>

void rt_buffer_read(const RtBuffer *b, size_t at, void *to, size_t bytes) {
    if (b->device != NULL)
        b->device->read(b->device, to, b->offset + at, bytes);
    else
        memcpy(to, (const char *)b->memory + at, bytes);
}

void rt_buffer_write(const RtBuffer *b, size_t at, const void *from,
                     size_t bytes) {
    if (b->device != NULL)
        b->device->write(b->device, b->offset + at, from, bytes);
    else if (b->memory != NULL)
        memcpy((char *)b->memory + at, from, bytes);
}

enum { PIECE = 1024 }; // floats of a sum in the first cache

static void add_piece(const float *term, size_t stride, int ranks, size_t count,
                      float *to) {
    float right[PIECE];
    int left = 1;
    if (ranks == 1) {
        memcpy(to, term, count * sizeof *to);
        return;
    }
    while (2 * left < ranks)
        left *= 2;
    add_piece(term, stride, left, count, to);
    add_piece(term + (size_t)left * stride, stride, ranks - left, count, right);
    for (size_t i = 0; i < count; i++)
        to[i] += right[i];
}

void rt_ranks_sum(const float *term, size_t stride, int ranks, size_t count,
                  float *to) {
    for (size_t at = 0; at < count; at += PIECE)
        add_piece(term + at, stride, ranks,
                  count - at < PIECE ? count - at : PIECE, to + at);
}
