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

size_t rt_longest(const RtRange *part, int ranks) {
    size_t longest = 0;
    for (int i = 0; i < ranks; i++)
        if (part[i].end - part[i].begin > longest)
            longest = part[i].end - part[i].begin;
    return longest;
}

RtRange rt_range_piece(const RtRange *part, size_t at, size_t most) {
    size_t bytes = part->end - part->begin;
    size_t begin = at < bytes ? at : bytes;
    size_t left = bytes - begin;
    return (RtRange){part->begin + begin,
                     part->begin + begin + (left < most ? left : most)};
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
