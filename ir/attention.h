// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The sizes of attention: see ops.def.
#ifndef IR_ATTENTION_H
#define IR_ATTENTION_H

#include "ir/ir.h"

// Channels of a head are at most so many: a kernel has tiles of a few positions
// and all channels in shared memory.
enum { MAX_HEAD_SIZE = 256 };

typedef struct {
    int64_t samples, positions;
    int64_t heads, kv_heads; // heads / kv_heads consecutive ones share keys
    int64_t size;            // channels of a head
    int64_t width;           // channels of a position: of queries, keys, values
    bool causal;             // position i attends to positions 0 .. i
    double scale;            // of scores
    double dropout;
    int64_t stream; // of its random numbers
} Attention;

// The sizes of a node with the trait ATTENDS.
Attention attention_of(const Graph *g, const Node *n);

// The first channel of head h's queries, and of the keys and the values that
// it attends to.
int64_t attention_query(const Attention *s, int64_t h);
int64_t attention_key(const Attention *s, int64_t h);
int64_t attention_value(const Attention *s, int64_t h);

// The number of the random number for head h of sample n at row i and column j.
// A row begins at a multiple of four, the numbers of a block.
int64_t attention_row(const Attention *s);
int64_t attention_numbers(const Attention *s);

#endif
