// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Attention (Vaswani et al., "Attention Is All You Need", NeurIPS 2017):
// softmax(scale q k') v in each head, with dropout of the softmax.
#include "ir/attention.h"
#include "ir/eval/rule.h"

// The node, and a row of it: position i of head h of sample n.
typedef struct {
    const Eval *e;
    Attention s;
    uint32_t seed, epoch;
    int64_t n, h, i;
    double *score; // of each position; then its weight
} Row;

static Row row_new(const Eval *e, int tensors) {
    Row r = {.e = e, .s = attention_of(e->g, e->n)};
    r.score = ARENA_ARRAY(e->arena, (size_t)r.s.positions + 1, double);
    if (r.s.dropout > 0) {
        r.seed = (uint32_t)(int32_t)arg(e, tensors)[0];
        r.epoch = (uint32_t)(int32_t)arg(e, tensors + 1)[0];
    }
    return r;
}

// Whether there is a next row, from i = -1 on.
static bool row_next(Row *r) {
    if (++r->i == r->s.positions) {
        r->i = 0;
        if (++r->h == r->s.heads) {
            r->h = 0;
            r->n++;
        }
    }
    return r->s.positions > 0 && r->n < r->s.samples;
}

// The offset of channel c at position j.
static int64_t offset_of(const Row *r, int64_t j, int64_t c) {
    return (r->n * r->s.positions + j) * r->s.width + c;
}

static int64_t offset_out(const Row *r, int64_t i) {
    return (r->n * r->s.positions + i) * r->s.heads * r->s.size +
           r->h * r->s.size;
}

static int64_t end_of(const Row *r) {
    return r->s.causal ? r->i + 1 : r->s.positions;
}

static double dot(const double *x, const double *y, int64_t count) {
    double sum = 0;
    for (int64_t c = 0; c < count; c++)
        sum += x[c] * y[c];
    return sum;
}

// Computes the scores, and returns the logarithm of their exponentials' sum.
static double row_scores(Row *r) {
    const double *qkv = arg(r->e, 0);
    const double *q = qkv + offset_of(r, r->i, attention_query(&r->s, r->h));
    double most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < end_of(r); j++) {
        const double *k = qkv + offset_of(r, j, attention_key(&r->s, r->h));
        r->score[j] = r->s.scale * dot(q, k, r->s.size);
        most = larger(r->score[j], most) ? r->score[j] : most;
    }
    for (int64_t j = 0; j < end_of(r); j++)
        sum += exp(r->score[j] - most);
    return most + log(sum);
}

// The factor of position j's weight from dropout.
static double kept(const Row *r, int64_t j) {
    if (r->s.dropout == 0)
        return 1;
    int64_t row = (r->n * r->s.heads + r->h) * r->s.positions + r->i;
    double u = random_shared(r->seed, (uint32_t)r->s.stream, r->epoch,
                             (uint32_t)(row * attention_row(&r->s) + j));
    return u < (float)r->s.dropout ? 0 : 1 / (1 - r->s.dropout);
}

void eval_attention(const Eval *e) {
    Row r = row_new(e, 1);
    for (r.i = -1; row_next(&r);) {
        double lse = row_scores(&r), *out = e->out + offset_out(&r, r.i);
        for (int64_t j = 0; j < end_of(&r); j++) {
            double weight = exp(r.score[j] - lse) * kept(&r, j);
            const double *v =
                arg(e, 0) + offset_of(&r, j, attention_value(&r.s, r.h));
            for (int64_t c = 0; c < r.s.size; c++)
                out[c] += weight * v[c];
        }
    }
}

void eval_attention_lse(const Eval *e) {
    Row r = row_new(e, 1);
    double *out = e->out;
    for (r.i = -1; row_next(&r);)
        *out++ = row_scores(&r);
}

// With weights p = exp(score - lse), kept by m = 0 or 1 / (1 - dropout):
//   dv = (p m)' dout,  dscore = p (m (dout v') - dout out'),
//   dq = scale dscore k,  dk = scale dscore' q.
void eval_attention_grad(const Eval *e) {
    Row r = row_new(e, 4);
    int64_t size = r.s.size, row = 0;
    const double *qkv = arg(e, 0);
    for (r.i = -1; row_next(&r); row++) {
        const double *out = arg(e, 1) + offset_out(&r, r.i);
        const double *dout = arg(e, 2) + offset_out(&r, r.i);
        int64_t q = offset_of(&r, r.i, attention_query(&r.s, r.h));
        double delta = dot(dout, out, size);
        row_scores(&r);
        for (int64_t j = 0; j < end_of(&r); j++) {
            int64_t k = offset_of(&r, j, attention_key(&r.s, r.h));
            int64_t v = offset_of(&r, j, attention_value(&r.s, r.h));
            double p = exp(r.score[j] - arg(e, 3)[row]), m = kept(&r, j);
            double slope =
                r.s.scale * p * (m * dot(dout, qkv + v, size) - delta);
            for (int64_t c = 0; c < size; c++) {
                e->out[q + c] += slope * qkv[k + c];
                e->out[k + c] += slope * qkv[q + c];
                e->out[v + c] += p * m * dout[c];
            }
        }
    }
}
