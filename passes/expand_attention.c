// Expand attention: products, a mask and a softmax in place of it.
//
// For readers of scores: other programs, and the step that decodes one position
// of a text, whose row of scores is short.  Predictions have no dropout.

#include "ir/attention.h"
#include "passes/passes.h"

// The score of a position that is not attended to.
static const double MASKED = -1e30;

// `heads` heads of qkv from channel `from` on, as [N,kv_heads,rows,size]: rows
// are the positions of each head that shares one of kv_heads.
static NodeId heads_of(Graph *g, NodeId qkv, const Attention *s, int64_t from,
                       int64_t heads) {
    int64_t group = heads / s->kv_heads;
    int64_t low[] = {0, 0, from};
    int64_t high[] = {0, 0, s->width - from - heads * s->size};
    int64_t view[] = {s->samples, s->positions, s->kv_heads, s->size};
    int64_t views[] = {s->samples, s->positions, s->kv_heads, group, s->size};
    int64_t rows[] = {s->samples, s->kv_heads, group * s->positions, s->size};
    NodeId x = graph_slice(g, qkv, low, high);
    if (group == 1)
        return graph_transpose(g, graph_reshape(g, x, 4, view),
                               (int64_t[]){0, 2, 1, 3});
    x = graph_transpose(g, graph_reshape(g, x, 5, views),
                        (int64_t[]){0, 2, 3, 1, 4});
    return graph_reshape(g, x, 4, rows);
}

// The inverse of heads_of for the result: [N,positions,channels].
static NodeId heads_join(Graph *g, NodeId y, const Attention *s) {
    int64_t group = s->heads / s->kv_heads;
    int64_t view[] = {s->samples, s->kv_heads, group, s->positions, s->size};
    int64_t out[] = {s->samples, s->positions, s->heads * s->size};
    y = group == 1 ? graph_transpose(g, y, (int64_t[]){0, 2, 1, 3})
                   : graph_transpose(g, graph_reshape(g, y, 5, view),
                                     (int64_t[]){0, 3, 1, 2, 4});
    return graph_reshape(g, y, 3, out);
}

static NodeId product(Graph *g, NodeId a, NodeId b, bool transposed) {
    Attr tb = attr_int(ATTR_tb, 1);
    return graph_add(g, (Node){.op = OP_matmul,
                               .num_args = 2,
                               .arg = (NodeId[]){a, b},
                               .num_attrs = transposed,
                               .attr = &tb,
                               .group = -1});
}

// Later positions have the least score.
static NodeId mask(Graph *g, NodeId scores, const Attention *s) {
    Type type = *g->node[scores].type;
    int64_t square[] = {s->positions, s->positions};
    int64_t each[] = {s->samples, s->kv_heads, s->heads / s->kv_heads,
                      s->positions, s->positions};
    NodeId row = graph_iota(g, type_of(I32, 2, square), 0);
    NodeId column = graph_iota(g, type_of(I32, 2, square), 1);
    NodeId seen = graph_op2(g, OP_le, column, row);
    if (each[2] != 1)
        scores = graph_reshape(g, scores, 5, each);
    scores = graph_op3(g, OP_select, seen, scores, graph_number(g, MASKED));
    return graph_reshape(g, scores, type.rank, type.dim);
}

static NodeId expand(Graph *g, NodeId qkv, const Attention *s) {
    int64_t keys = s->heads * s->size, values = keys + s->kv_heads * s->size;
    NodeId q = heads_of(g, qkv, s, 0, s->heads);
    NodeId k = heads_of(g, qkv, s, keys, s->kv_heads);
    NodeId v = heads_of(g, qkv, s, values, s->kv_heads);
    NodeId scores = product(g, q, k, true);
    scores = graph_op2(g, OP_mul, scores, graph_number(g, s->scale));
    if (s->causal)
        scores = mask(g, scores, s);
    NodeId shares = graph_op1(g, OP_softmax, scores);
    return heads_join(g, product(g, shares, v, false), s);
}

Graph *graph_expand_attention(const Graph *g, Arena *scratch) {
    Graph *out = graph_like(g);
    NodeId *now = ARENA_ARRAY(scratch, (size_t)g->count + 1, NodeId);
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        Attention s;
        out->origin = d->from;
        if (d->op != OP_attention) {
            now[n] = graph_copy(out, g, n, now);
            continue;
        }
        s = attention_of(g, d);
        now[n] = expand(out, now[d->arg[0]], &s);
    }
    return out;
}
