// Tiles of attention's kernels: as many positions as shared memory holds.
#include "passes/plan/attention_tiles.h"

#include "base/round_up.h"

// Floats of shared memory on a GPU: a kernel has 48 KiB without asking for
// more.
enum { SHARED_FLOATS = 47 << 8, MOST = 64, LEAST = 8 };

// A tile of queries, one of keys or values, weights, and a factor of each row.
static int64_t forward_floats(const Attention *s, const AttentionTiles *t) {
    int64_t row = s->size + ATTENTION_PAD;
    return (t->bm + t->bn) * row + t->bm * (t->bn + ATTENTION_PAD) + t->bm;
}

// Queries and the gradients of their results, keys and values, weights and the
// gradients of scores, and two numbers of each row of queries.
static int64_t backward_floats(const Attention *s, const AttentionTiles *t) {
    int64_t row = s->size + ATTENTION_PAD;
    return 2 * (t->bm + t->bn) * row + t->bm * (t->bn + ATTENTION_PAD) +
           t->bn * (t->bm + ATTENTION_PAD) + 2 * t->bm;
}

// The same for one pass, whose tiles are as large, with a tile of keys by rows
// and, of all rows of queries, two numbers and the gradients.
static int64_t one_pass_floats(const Attention *s, const AttentionTiles *t) {
    int64_t row = s->size + ATTENTION_PAD;
    int64_t queries = s->heads / s->kv_heads * round_up(s->positions, t->bm);
    return 2 * t->bn * row + 2 * t->bm * s->size +
           2 * t->bn * (t->bm + ATTENTION_PAD) + t->bm * row +
           queries * (row + 2);
}

AttentionTiles attention_tiles(const Attention *s, bool backward) {
    int64_t (*floats)(const Attention *s, const AttentionTiles *t) =
        backward ? backward_floats : forward_floats;
    AttentionTiles t = {s->size <= 32 || !backward ? MOST : MOST / 2,
                        backward ? MOST / 2 : MOST, false};
    t.one_pass = backward && one_pass_floats(s, &t) <= SHARED_FLOATS;
    if (t.one_pass)
        return t;
    while (floats(s, &t) > SHARED_FLOATS && t.bm > LEAST) {
        if (t.bn >= t.bm)
            t.bn /= 2;
        else
            t.bm /= 2;
    }
    return t;
}

int64_t attention_blocks(const Attention *s, bool backward) {
    AttentionTiles t = attention_tiles(s, backward);
    int64_t heads = backward ? s->heads + s->kv_heads : s->heads;
    return s->samples *
           (t.one_pass ? s->kv_heads : heads * divide_up(s->positions, t.bm));
}
