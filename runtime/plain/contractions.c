// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Plain contractions: convolutions and matrix products in f32 without a
// library, for small networks that only predict.  A program that is linked with
// them before the rest of the runtime needs no oneDNN.
//
// Both are products of rows with columns: of a matrix, or of the windows of an
// image with filters.  Columns are packed WIDE beside each other, and TALL rows
// at a time are multiplied with them in registers.  Every sum has the order of
// its terms, so results do not depend on the number of threads.

#include "runtime/host/host.h"

#include "base/round_up.h"

#include <stdlib.h>
#include <string.h>

enum {
    TALL = 6,
    WIDE = 16,
    ROWS = 48,
    ALIGN = 64
}; // ROWS of windows at a time

// A function for each kind of vectors; the program chooses when it starts.
#if defined __x86_64__ && defined __GNUC__ && !defined __clang__ &&            \
    !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
#define VECTORS                                                                \
    __attribute__((                                                            \
        target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define VECTORS
#endif

struct RtContractions {
    const RtPlan *plan;
    int threads;
    size_t packed_bytes, rows_bytes; // of all threads
    float *packed, *rows;
};

// A call as products of `rows` rows with `columns` columns of `depth` numbers,
// in `parts` of a batch or a convolution's groups.
typedef struct {
    const RtCall *call;
    const float *a, *b;
    float *out, *packed, *windows;
    int64_t parts, rows, columns, depth;
} Product;

static bool is_depthwise(const RtCall *c) {
    return c->kind == RT_CONV && c->groups == c->c && c->k == c->c;
}

static Product product_of(const RtCall *c) {
    Product p = {.call = c};
    if (c->kind == RT_MATMUL) {
        p.parts = c->batch;
        p.rows = c->n;
        p.columns = c->k;
        p.depth = c->c;
    } else {
        p.parts = c->groups;
        p.rows = (int64_t)c->n * c->oh * c->ow;
        p.columns = c->k / c->groups;
        p.depth = (int64_t)c->r * c->s * (c->c / c->groups);
    }
    return p;
}

static int64_t panels_of(const Product *p) {
    return divide_up(p->columns, WIDE);
}

static size_t rounded(int64_t floats) {
    size_t bytes = (size_t)floats * sizeof(float);
    return align_up(bytes, ALIGN);
}

// ---- plan ----

void rt_contractions_new(const RtPlan *plan, int threads, RtContractions **to) {
    RtContractions *o = *to = calloc(1, sizeof *o);
    if (o == NULL)
        rt_end(EXIT_MEMORY, "out of memory");
    *o = (RtContractions){.plan = plan, .threads = threads};
    for (int i = 0; i < plan->num_calls; i++) {
        Product p = product_of(&plan->call[i]);
        size_t packed = rounded((panels_of(&p) * WIDE + p.parts) * p.depth),
               rows = rounded(ROWS * p.depth) * (size_t)threads;
        o->packed_bytes = packed > o->packed_bytes ? packed : o->packed_bytes;
        o->rows_bytes = rows > o->rows_bytes ? rows : o->rows_bytes;
    }
}

size_t rt_contractions_bytes(const RtContractions *o) {
    return o->packed_bytes + o->rows_bytes;
}

void rt_contractions_reserve(RtContractions *o) {
    o->packed = aligned_alloc(ALIGN, o->packed_bytes + ALIGN);
    o->rows = aligned_alloc(ALIGN, o->rows_bytes + ALIGN);
    if (o->packed == NULL || o->rows == NULL)
        rt_end(EXIT_MEMORY, "out of memory");
}

void rt_contractions_free(RtContractions *o) {
    free(o->packed);
    free(o->rows);
    free(o);
}

// ---- products ----

enum { QUAD = 4 };
typedef float Quad __attribute__((vector_size(QUAD * sizeof(float))));

// Four numbers of four columns, `across` apart, as rows that are WIDE apart.
static inline void quad_turn(const float *from, size_t across, float *to) {
    Quad c[QUAD], low[2], high[2];
    for (int k = 0; k < QUAD; k++)
        memcpy(&c[k], from + (size_t)k * across, sizeof c[k]);
    for (int k = 0; k < 2; k++) {
        low[k] = __builtin_shufflevector(c[2 * k], c[2 * k + 1], 0, 4, 1, 5);
        high[k] = __builtin_shufflevector(c[2 * k], c[2 * k + 1], 2, 6, 3, 7);
    }
    const Quad row[QUAD] = {
        __builtin_shufflevector(low[0], low[1], 0, 1, 4, 5),
        __builtin_shufflevector(low[0], low[1], 2, 3, 6, 7),
        __builtin_shufflevector(high[0], high[1], 0, 1, 4, 5),
        __builtin_shufflevector(high[0], high[1], 2, 3, 6, 7)};
    for (int d = 0; d < QUAD; d++)
        memcpy(to + d * WIDE, &row[d], sizeof row[d]);
}

// Columns whose numbers lie together.
static void columns_pack(const float *from, int64_t columns, int64_t depth,
                         float *to) {
    int64_t k = 0;
    for (; k + QUAD <= columns; k += QUAD) {
        const float *at = from + (size_t)(k * depth);
        int64_t d = 0;
        for (; d + QUAD <= depth; d += QUAD)
            quad_turn(at + d, (size_t)depth, to + d * WIDE + k);
        for (; d < depth; d++)
            for (int i = 0; i < QUAD; i++)
                to[d * WIDE + k + i] = at[i * depth + d];
    }
    for (; k < columns; k++)
        for (int64_t d = 0; d < depth; d++)
            to[d * WIDE + k] = from[k * depth + d];
    for (; k < WIDE; k++)
        for (int64_t d = 0; d < depth; d++)
            to[d * WIDE + k] = 0;
}

// Filters, and the columns of tb, lie together; those of other matrices lie
// beside each other.
static void panel_pack(const Product *p, int64_t panel) {
    float *to = p->packed + (size_t)(panel * WIDE * p->depth);
    int64_t first = panel * WIDE, left = p->columns - first;
    int64_t columns = left < WIDE ? left : WIDE;
    if (p->call->kind == RT_CONV || p->call->tb) {
        columns_pack(p->b + (size_t)(first * p->depth), columns, p->depth, to);
        return;
    }
    for (int64_t d = 0; d < p->depth; d++, to += WIDE) {
        memcpy(to, p->b + (size_t)(d * p->columns + first),
               (size_t)columns * sizeof *to);
        memset(to + columns, 0, (size_t)(WIDE - columns) * sizeof *to);
    }
}

static void pack_share(void *arg, int me, int members) {
    const Product *p = arg;
    size_t first, last;
    rt_team_share((size_t)panels_of(p), me, members, &first, &last);
    for (size_t i = first; i < last; i++)
        panel_pack(p, (int64_t)i);
}

// WIDE numbers, in as many registers as the processor needs.
typedef float Vector __attribute__((vector_size(WIDE * sizeof(float))));

// Up to TALL rows times a panel.  Rows beyond the last are computed again.
#define TALL_DO(i) _Pragma("GCC unroll 6") for (int i = 0; i < TALL; i++)
static inline __attribute__((always_inline)) void
tile_multiply(const float *const at[TALL], size_t step, const float *packed,
              int64_t depth, Vector sum[TALL]) {
    Vector s[TALL];
    TALL_DO(i) s[i] = (Vector){0};
    for (int64_t d = 0; d < depth; d++) {
        Vector column = *(const Vector *)(const void *)(packed + d * WIDE);
        TALL_DO(i) s[i] += at[i][(size_t)d * step] * column;
    }
    TALL_DO(i) sum[i] = s[i];
}

// The rows of a block, `row` floats apart, times all panels; a number of a row
// is `step` from the next.  Results are `apart` from row to row.
VECTORS static void block_multiply(const Product *p, const float *a, size_t row,
                                   size_t step, int64_t rows, float *out,
                                   size_t apart) {
    for (int64_t panel = 0; panel < panels_of(p); panel++) {
        const float *packed = p->packed + (size_t)(panel * WIDE * p->depth);
        int64_t left = p->columns - panel * WIDE;
        size_t width = left < WIDE ? (size_t)left : WIDE;
        for (int64_t first = 0; first < rows; first += TALL) {
            int64_t tall = rows - first < TALL ? rows - first : TALL;
            Vector sum[TALL];
            const float *at[TALL];
            for (int64_t i = 0; i < TALL; i++)
                at[i] = a + (size_t)(first + (i < tall ? i : 0)) * row;
            if (step == 1)
                tile_multiply(at, 1, packed, p->depth, sum);
            else
                tile_multiply(at, step, packed, p->depth, sum);
            for (int64_t i = 0; i < tall; i++)
                memcpy(out + (size_t)(first + i) * apart + panel * WIDE,
                       &sum[i], width * sizeof(float));
        }
    }
}

// One row with columns that lie together needs no packing.
VECTORS static void row_multiply(const Product *p, int64_t first,
                                 int64_t last) {
    for (int64_t k = first; k < last; k++) {
        const float *column = p->b + (size_t)(k * p->depth);
        float part[WIDE] = {0}, sum = 0;
        int64_t d = 0;
        for (; d + WIDE <= p->depth; d += WIDE)
            for (int i = 0; i < WIDE; i++)
                part[i] += p->a[d + i] * column[d + i];
        for (; d < p->depth; d++)
            part[0] += p->a[d] * column[d];
        for (int i = 0; i < WIDE; i++)
            sum += part[i];
        p->out[k] = sum;
    }
}

static void row_share(void *arg, int me, int members) {
    const Product *p = arg;
    size_t first, last;
    rt_team_share((size_t)p->columns, me, members, &first, &last);
    row_multiply(p, (int64_t)first, (int64_t)last);
}

// ---- matrix products ----

static void matmul_share(void *arg, int me, int members) {
    const Product *p = arg;
    size_t first, last;
    rt_team_share((size_t)divide_up(p->rows, TALL), me, members, &first, &last);
    int64_t begin = (int64_t)first * TALL, end = (int64_t)last * TALL;
    bool ta = p->call->ta;
    size_t row = ta ? 1 : (size_t)p->depth, step = ta ? (size_t)p->rows : 1;
    end = end < p->rows ? end : p->rows;
    if (begin < end)
        block_multiply(p, p->a + (size_t)begin * row, row, step, end - begin,
                       p->out + (size_t)(begin * p->columns),
                       (size_t)p->columns);
}

static void matmul(Product *p, int threads) {
    const float *a = p->a, *b = p->b;
    float *out = p->out;
    for (int64_t i = 0; i < p->parts; i++) {
        p->a = a + (size_t)(i * p->rows * p->depth);
        p->b = b + (size_t)(i * p->depth * p->columns);
        p->out = out + (size_t)(i * p->rows * p->columns);
        if (p->rows == 1 && p->call->tb) {
            rt_team_run(threads, row_share, p);
            continue;
        }
        rt_team_run(threads, pack_share, p);
        rt_team_run(threads, matmul_share, p);
    }
}

// ---- convolutions ----

// The first row and column of the window of an output pixel, and its image.
static const float *window_at(const Product *p, int64_t pixel, int64_t *y,
                              int64_t *x) {
    const RtCall *c = p->call;
    *x = pixel % c->ow * c->stride[1] - c->pad[2];
    pixel /= c->ow;
    *y = pixel % c->oh * c->stride[0] - c->pad[0];
    return p->a +
           (size_t)(pixel / c->oh) * (size_t)c->h * (size_t)c->w * (size_t)c->c;
}

// Copies one row of a window, of which some may be outside of the image.
static void window_row_copy(const RtCall *c, const float *image, int64_t x,
                            float *to) {
    int64_t channels = c->c / c->groups, apart = c->dilation[1];
    bool together = apart == 1 && c->groups == 1;
    if (together && x >= 0 && x + c->s <= c->w) {
        const float *from = image + (size_t)(x * channels);
        for (int64_t i = 0; i < c->s * channels; i++)
            to[i] = from[i];
        return;
    }
    for (int s = 0; s < c->s; s++, x += apart, to += channels)
        for (int64_t i = 0; i < channels; i++)
            to[i] = x >= 0 && x < c->w ? image[x * c->c + i] : 0;
}

// Copies the window of a pixel; outside of the image it is 0.
static void window_copy(const Product *p, int64_t pixel, float *to) {
    const RtCall *c = p->call;
    int64_t row = (int64_t)c->s * (c->c / c->groups), y, x;
    const float *image = window_at(p, pixel, &y, &x);
    for (int r = 0; r < c->r; r++, y += c->dilation[0], to += row)
        if (y < 0 || y >= c->h)
            memset(to, 0, (size_t)row * sizeof *to);
        else
            window_row_copy(c, image + (size_t)(y * c->w * c->c), x, to);
}

static void conv_share(void *arg, int me, int members) {
    const Product *p = arg;
    size_t first, last, depth = (size_t)p->depth, k = (size_t)p->call->k;
    rt_team_share((size_t)divide_up(p->rows, ROWS), me, members, &first, &last);
    float *windows =
        p->windows + (size_t)me * (rounded(ROWS * p->depth) / sizeof(float));
    for (size_t block = first; block < last; block++) {
        int64_t begin = (int64_t)block * ROWS, left = p->rows - begin;
        int64_t rows = left < ROWS ? left : ROWS;
        for (int64_t i = 0; i < rows; i++)
            window_copy(p, begin + i, windows + (size_t)i * depth);
        block_multiply(p, windows, depth, 1, rows, p->out + (size_t)begin * k,
                       k);
    }
}

static void conv(Product *p, int threads) {
    const RtCall *c = p->call;
    const float *a = p->a, *b = p->b;
    float *out = p->out;
    for (int g = 0; g < c->groups; g++) {
        p->a = a + (size_t)g * (size_t)(c->c / c->groups);
        p->b = b + (size_t)(g * p->columns * p->depth);
        p->out = out + (size_t)(g * p->columns);
        rt_team_run(threads, pack_share, p);
        rt_team_run(threads, conv_share, p);
    }
}

// One filter for each channel: packed is [R,S,C].
VECTORS static void depthwise_pixel(const Product *p, int64_t pixel) {
    const RtCall *c = p->call;
    int64_t y, x, channels = c->c;
    const float *image = window_at(p, pixel, &y, &x), *filter = p->packed;
    float *restrict to = p->out + (size_t)(pixel * channels);
    memset(to, 0, (size_t)channels * sizeof(float));
    for (int r = 0; r < c->r; r++)
        for (int s = 0; s < c->s; s++, filter += channels) {
            int64_t v = y + (int64_t)r * c->dilation[0],
                    u = x + (int64_t)s * c->dilation[1];
            if (v < 0 || v >= c->h || u < 0 || u >= c->w)
                continue;
            const float *at = image + (size_t)((v * c->w + u) * channels);
            for (int64_t k = 0; k < channels; k++)
                to[k] += at[k] * filter[k];
        }
}

static void depthwise_share(void *arg, int me, int members) {
    const Product *p = arg;
    size_t first, last;
    rt_team_share((size_t)p->rows, me, members, &first, &last);
    for (size_t i = first; i < last; i++)
        depthwise_pixel(p, (int64_t)i);
}

static void depthwise(Product *p, int threads) {
    int64_t channels = p->call->c, window = p->depth;
    for (int64_t k = 0; k < channels; k++)
        for (int64_t d = 0; d < window; d++)
            p->packed[d * channels + k] = p->b[k * window + d];
    rt_team_run(threads, depthwise_share, p);
}

// Packing takes 2 % of a prediction of gpt_nano, and less of lenet.
size_t rt_contractions_packed_bytes(const RtContractions *o, int call) {
    (void)o, (void)call;
    return 0;
}

void rt_contractions_pack(RtContractions *o, int call, char *b, char *packed) {
    (void)o, (void)call, (void)b, (void)packed;
}

void rt_contractions_run(RtContractions *o, int call, char *a, char *b,
                         char *packed, char *out) {
    const RtCall *c = &o->plan->call[call];
    (void)packed;
    int threads = rt_call_threads(c, o->threads);
    Product p = product_of(c);
    p.a = (const float *)(const void *)a;
    p.b = (const float *)(const void *)b;
    p.out = (float *)(void *)out;
    p.packed = o->packed;
    p.windows = o->rows;
    if (c->kind == RT_MATMUL)
        matmul(&p, threads);
    else if (is_depthwise(c))
        depthwise(&p, threads);
    else
        conv(&p, threads);
}
