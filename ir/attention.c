// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Attention: its sizes.
#include "ir/attention.h"

#include "base/round_up.h"

#include <math.h>

Attention attention_of(const Graph *g, const Node *n) {
    Type t = *g->node[n->arg[0]].type;
    Attention s = {.samples = t.dim[0],
                   .positions = t.dim[1],
                   .width = t.dim[2],
                   .heads = node_int(n, ATTR_heads, 1),
                   .causal = node_int(n, ATTR_causal, 0),
                   .dropout = node_float(n, ATTR_dropout, 0),
                   .stream = node_int(n, ATTR_stream, 0)};
    s.kv_heads = node_int(n, ATTR_kv_heads, s.heads);
    s.size = s.width / (s.heads + 2 * s.kv_heads);
    s.scale = node_float(n, ATTR_scale, 1 / sqrt((double)s.size));
    return s;
}

int64_t attention_query(const Attention *s, int64_t h) {
    return h * s->size;
}

int64_t attention_key(const Attention *s, int64_t h) {
    return (s->heads + h / (s->heads / s->kv_heads)) * s->size;
}

int64_t attention_value(const Attention *s, int64_t h) {
    return attention_key(s, h) + s->kv_heads * s->size;
}

int64_t attention_row(const Attention *s) {
    return round_up(s->positions, 4);
}

int64_t attention_numbers(const Attention *s) {
    return s->samples * s->heads * s->positions * attention_row(s);
}
