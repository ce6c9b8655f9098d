// Eval: what every operation means, slowly and exactly, in double.
//
// It folds constants and judges every kernel, so each arm below is the
// operation's definition and nothing else: no expansion into other
// operations, no order of sums that a kernel would choose.

#include "ir/factor.h"
#include "ir/first_update.h"
#include "ir/ir.h"
#include "ir/products.h"

#include <math.h>
#include <string.h>

// ---- rounding ----

// To the nearest number with `bits` of significand and exponents low .. high,
// ties to even, subnormals below, infinity above.
static double round_float(double v, int bits, int low, int high) {
    if (v == 0 || !isfinite(v))
        return v;
    int exponent = ilogb(v) < low ? low : ilogb(v);
    int unit = exponent - (bits - 1);
    double rounded = ldexp(nearbyint(ldexp(v, -unit)), unit);
    return isinf(rounded) || ilogb(rounded) > high ? copysign(INFINITY, v)
                                                   : rounded;
}

// Towards zero, and to the nearest end when out of range; NaN is 0.
static double round_whole(double v, double least, double most) {
    if (isnan(v))
        return 0;
    return v < least ? least : v > most ? most : trunc(v);
}

double dtype_round(DType d, double value) {
    switch (d) {
    case F16:
        return round_float(value, 11, -14, 15);
    case BF16:
        return round_float(value, 8, -126, 127);
    case I32:
        return round_whole(value, INT32_MIN, INT32_MAX);
    case U8:
        return round_whole(value, 0, UINT8_MAX);
    case BOOL:
        return value != 0;
    default: // what the language means by it, and much faster than round_float
        return (float)value;
    }
}

// ---- random numbers ----

static void philox_round(uint32_t x[4], uint32_t key0, uint32_t key1) {
    uint64_t a = (uint64_t)UINT32_C(0xd2511f53) * x[0];
    uint64_t b = (uint64_t)UINT32_C(0xcd9e8d57) * x[2];
    x[0] = (uint32_t)(b >> 32) ^ x[1] ^ key0;
    x[1] = (uint32_t)b;
    x[2] = (uint32_t)(a >> 32) ^ x[3] ^ key1;
    x[3] = (uint32_t)a;
}

double random_uniform(uint32_t seed, uint32_t stream, uint32_t epoch,
                      uint32_t index) {
    uint32_t x[4] = {index, epoch, 0, 0};
    for (int i = 0; i < 10; i++) {
        philox_round(x, seed, stream);
        seed += UINT32_C(0x9e3779b9);
        stream += UINT32_C(0xbb67ae85);
    }
    return (x[0] >> 8) * 0x1p-24;
}

int64_t stream_of(const char *name) {
    uint32_t hash = UINT32_C(2166136261);
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * UINT32_C(16777619);
    return hash & INT32_MAX;
}

// ---- places ----

// Where the elements of a large tensor, one after the other, are in a small
// one, which broadcasts to it.  As a reduction's result broadcasts back to its
// operand, this is also where they are reduced to.  The small one mostly is the
// large one's last axes, over and over.
typedef struct {
    Type large, small;
    bool repeats;
    int64_t count,
        next; // of small; next: of small if it repeats, else of large
} Places;

static Places places_of(Type large, Type small) {
    Places p = {large, small, true, type_count(&small), 0};
    int lead = large.rank - small.rank, k = 0;
    while (k < small.rank && small.dim[k] == 1)
        k++;
    for (; k < small.rank; k++)
        p.repeats &= small.dim[k] == large.dim[lead + k];
    return p;
}

static int64_t place_far(const Places *p, int64_t i) {
    int64_t at = 0, stride = 1;
    for (int k = 1; k <= p->small.rank; k++) {
        int64_t size = p->large.dim[p->large.rank - k];
        if (p->small.dim[p->small.rank - k] != 1)
            at += i % size * stride;
        stride *= p->small.dim[p->small.rank - k];
        i /= size;
    }
    return at;
}

static inline int64_t place_next(Places *p) {
    int64_t at = p->next++;
    if (!p->repeats)
        return place_far(p, at);
    if (p->next == p->count)
        p->next = 0;
    return at;
}

// Element [n,h,w,c] of images.
static int64_t pixel(Type t, int64_t n, int64_t h, int64_t w, int64_t c) {
    return ((n * t.dim[1] + h) * t.dim[2] + w) * t.dim[3] + c;
}

// A node being computed: its own elements and those of its operands.
typedef struct {
    const Graph *g;
    const Node *n;
    double *out;          // zeros at first
    double *const *value; // of every node before this one
    Arena *arena;
} Eval;

static const Type *arg_type(const Eval *e, int i) {
    return e->g->node[e->n->arg[i]].type;
}

static const double *arg(const Eval *e, int i) {
    return e->value[e->n->arg[i]];
}

// ---- leaves ----

static void eval_constant(const Eval *e) {
    const Attr *values = node_attr(e->n, ATTR_values);
    for (int64_t i = 0; i < type_count(e->n->type); i++)
        e->out[i] = values->floats[values->count == 1 ? 0 : i];
}

static void eval_iota(const Eval *e) {
    Type t = *e->n->type;
    int64_t stride = 1, axis = node_int(e->n, ATTR_axis, 0);
    for (int k = t.rank - 1; k > axis; k--)
        stride *= t.dim[k];
    for (int64_t i = 0; i < type_count(&t); i++)
        e->out[i] =
            (double)(node_int(e->n, ATTR_from, 0) + i / stride % t.dim[axis]);
}

static void fill(const Eval *e, double v) {
    for (int64_t i = 0; i < type_count(e->n->type); i++)
        e->out[i] = v;
}

// ---- pointwise ----

// a / b as C has it for integers, and 0 where C has nothing.
static double divide(double a, double b, DType d) {
    if (dtype_float(d))
        return a / b;
    return b == 0 ? 0 : trunc(a / b);
}

static double draw(const Node *n, double seed, double epoch, double index) {
    return random_uniform((uint32_t)(int64_t)seed,
                          (uint32_t)node_int(n, ATTR_stream, 0),
                          (uint32_t)(int64_t)epoch, (uint32_t)(int64_t)index);
}

static double convert(DType to, double v) {
    return dtype_float(to) ? v : dtype_round(to, v);
}

// Of one number, as an element of type d.
static double of_one(Op op, double a, DType d) {
    switch (op) {
    case OP_neg:
        return -a;
    case OP_abs:
        return fabs(a);
    case OP_exp:
        return exp(a);
    case OP_log:
        return log(a);
    case OP_sqrt:
        return sqrt(a);
    case OP_rsqrt:
        return 1 / sqrt(a);
    case OP_cos:
        return cos(a);
    case OP_sin:
        return sin(a);
    case OP_tanh:
        return tanh(a);
    case OP_erf:
        return erf(a);
    case OP_sigmoid:
        return 1 / (1 + exp(-a));
    case OP_floor:
        return floor(a);
    case OP_relu:
        return a < 0 ? 0 : a;
    case OP_not:
        return a == 0;
    case OP_finite:
        return isfinite(a);
    case OP_cast:
        return convert(d, a);
    case OP_broadcast:
        return a;
    default:
        return NAN;
    }
}

static double of_two(Op op, double a, double b, DType d) {
    switch (op) {
    case OP_add:
        return a + b;
    case OP_sub:
        return a - b;
    case OP_mul:
        return a * b;
    case OP_div:
        return divide(a, b, d);
    case OP_mod:
        return b == 0 ? 0 : fmod(a, b);
    case OP_maximum:
        return a < b ? b : a;
    case OP_minimum:
        return b < a ? b : a;
    case OP_lt:
        return a < b;
    case OP_le:
        return a <= b;
    case OP_eq:
        return a == b;
    case OP_and:
        return a != 0 && b != 0;
    case OP_or:
        return a != 0 || b != 0;
    default:
        return NAN;
    }
}

double scalar_eval(const Node *n, double a, double b, double c) {
    Op op = n->op;
    DType d = n->type->dtype;
    switch (op) {
    case OP_select:
        return a != 0 ? b : c;
    case OP_variance: // here no library takes the place of a var
        return a;
    case OP_uniform:
        return draw(n, a, b, c);
    default:
        return n->num_args == 1 ? of_one(op, a, d) : of_two(op, a, b, d);
    }
}

static void eval_pointwise(const Eval *e) {
    int64_t count = type_count(e->n->type);
    int num_args = e->n->num_args;
    const double *from[3];
    Places p[3];
    for (int k = 0; k < num_args; k++) {
        from[k] = arg(e, k);
        p[k] = places_of(*e->n->type, *arg_type(e, k));
    }
    for (int64_t i = 0; i < count; i++) {
        double x[3] = {0};
        for (int k = 0; k < num_args; k++)
            x[k] = from[k][place_next(&p[k])];
        e->out[i] = scalar_eval(e->n, x[0], x[1], x[2]);
    }
}

// ---- reductions ----

static void eval_sum(const Eval *e) {
    Places p = places_of(*arg_type(e, 0), *e->n->type);
    int64_t count = type_count(&p.large);
    for (int64_t i = 0; i < count; i++)
        e->out[place_next(&p)] += arg(e, 0)[i];
}

// NaN is larger than any number, so that a run that diverges shows it.
static bool larger(double v, double best) {
    return v > best || isnan(v);
}

static void eval_max(const Eval *e) {
    Places p = places_of(*arg_type(e, 0), *e->n->type);
    int64_t count = type_count(&p.large);
    fill(e, -INFINITY);
    for (int64_t i = 0; i < count; i++) {
        double *best = &e->out[place_next(&p)];
        if (larger(arg(e, 0)[i], *best))
            *best = arg(e, 0)[i];
    }
}

// Of every stride-th of x, count in all.
static double mean_of(const double *x, int64_t count, int64_t stride) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += x[i * stride];
    return sum / (double)count;
}

static double variance_of(const double *x, int64_t count, int64_t stride) {
    double mean = mean_of(x, count, stride), sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (x[i * stride] - mean) * (x[i * stride] - mean);
    return sum / (double)count;
}

// Two passes: the means first, then the squares of what differs from them.
static void eval_var(const Eval *e) {
    Places p = places_of(*arg_type(e, 0), *e->n->type);
    int64_t count = type_count(&p.large), kept = type_count(&p.small);
    double each = kept ? (double)(count / kept) : 0;
    double *sum = ARENA_ARRAY(e->arena, (size_t)kept + 1, double);
    for (int64_t i = 0; i < count; i++)
        sum[place_next(&p)] += arg(e, 0)[i];
    p.next = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t to = place_next(&p);
        double away = arg(e, 0)[i] - sum[to] / each;
        e->out[to] += away * away;
    }
    for (int64_t i = 0; i < kept; i++)
        e->out[i] /= each;
}

static void eval_argmax(const Eval *e) {
    Type t = *arg_type(e, 0);
    int64_t K = t.dim[t.rank - 1];
    for (int64_t m = 0; m < type_count(e->n->type); m++) {
        const double *row = arg(e, 0) + m * K;
        int64_t best = 0;
        for (int64_t k = 1; k < K; k++)
            if (row[k] > row[best])
                best = k;
        e->out[m] = (double)best;
    }
}

static void eval_all_finite(const Eval *e) {
    e->out[0] = 1;
    for (int k = 0; k < e->n->num_args; k++) {
        int64_t count = type_count(arg_type(e, k));
        for (int64_t i = 0; i < count; i++)
            if (!isfinite(arg(e, k)[i]))
                e->out[0] = 0;
    }
}

static void eval_total(const Eval *e) {
    e->out[0] = 0;
    for (int k = 0; k < e->n->num_args; k++) {
        int64_t count = type_count(arg_type(e, k));
        for (int64_t i = 0; i < count; i++)
            e->out[0] += arg(e, k)[i];
    }
}

// ---- other places of the same numbers ----

static void copy(const Eval *e, const double *from) {
    size_t count = (size_t)type_count(e->n->type);
    if (count)
        memcpy(e->out, from, count * sizeof *from);
}

static void eval_copy(const Eval *e) {
    copy(e, arg(e, 0));
}

// out[i] = x[i + sign * low], 0 outside x.
static void eval_moved(const Eval *e, int sign) {
    Type t = *e->n->type, x = *arg_type(e, 0);
    for (int64_t i = 0; i < type_count(&t); i++) {
        int64_t rest = i, at = 0, stride = 1;
        bool inside = true;
        for (int k = t.rank - 1; k >= 0; k--) {
            int64_t from =
                rest % t.dim[k] + sign * node_ints(e->n, ATTR_low, k, 0);
            inside = inside && from >= 0 && from < x.dim[k];
            at += from * stride;
            stride *= x.dim[k];
            rest /= t.dim[k];
        }
        e->out[i] = inside ? arg(e, 0)[at] : 0;
    }
}

static void eval_stack(const Eval *e) {
    int64_t rows = e->n->type->dim[1], columns = e->n->type->dim[2];
    for (int64_t i = 0; i < type_count(e->n->type); i++)
        e->out[i] = 0;
    for (int k = 0; k < e->n->num_args; k++) {
        Type t = *arg_type(e, k);
        int64_t own = type_count(&t) / t.dim[0];
        for (int64_t i = 0; i < type_count(&t); i++)
            e->out[(k * rows + i / own) * columns + i % own] = arg(e, k)[i];
    }
}

// Where a shifted image reads row or column i of `size`: -1 for nowhere.
// `reflect` mirrors once, without repeating the edge, then clamps.
static int64_t shifted(int64_t i, int64_t size, const char *mode) {
    if (i >= 0 && i < size)
        return i;
    if (strcmp(mode, "zero") == 0)
        return -1;
    if (strcmp(mode, "reflect") == 0)
        i = i < 0 ? -i : 2 * (size - 1) - i;
    return i < 0 ? 0 : i >= size ? size - 1 : i;
}

static void eval_shift(const Eval *e) {
    Type t = *e->n->type;
    const char *mode = node_text(e->n, ATTR_mode);
    for (int64_t i = 0; i < type_count(&t); i++) {
        int64_t c = i % t.dim[3], w = i / t.dim[3] % t.dim[2];
        int64_t h = i / t.dim[3] / t.dim[2] % t.dim[1];
        int64_t n = i / t.dim[3] / t.dim[2] / t.dim[1];
        int64_t y = shifted(h + (int64_t)arg(e, 1)[n], t.dim[1], mode);
        int64_t x = shifted(w + (int64_t)arg(e, 2)[n], t.dim[2], mode);
        e->out[i] = y < 0 || x < 0 ? 0 : arg(e, 0)[pixel(t, n, y, x, c)];
    }
}

static void eval_flip(const Eval *e) {
    Type t = *e->n->type;
    for (int64_t i = 0; i < type_count(&t); i++) {
        int64_t c = i % t.dim[3], w = i / t.dim[3] % t.dim[2];
        int64_t h = i / t.dim[3] / t.dim[2] % t.dim[1];
        int64_t n = i / t.dim[3] / t.dim[2] / t.dim[1];
        int64_t x = arg(e, 1)[n] != 0 ? t.dim[2] - 1 - w : w;
        e->out[i] = arg(e, 0)[pixel(t, n, h, x, c)];
    }
}

static void eval_pack(const Eval *e) {
    int bits = (int)node_int(e->n, ATTR_bits, 1), each = 8 / bits;
    for (int64_t i = 0; i < type_count(e->n->type); i++) {
        int byte = 0;
        for (int j = 0; j < each; j++)
            byte |= ((int)arg(e, 0)[i * each + j] & ((1 << bits) - 1))
                    << (j * bits);
        e->out[i] = byte;
    }
}

static void eval_unpack(const Eval *e) {
    int bits = (int)node_int(e->n, ATTR_bits, 1), each = 8 / bits;
    for (int64_t i = 0; i < type_count(e->n->type); i++)
        e->out[i] =
            ((int)arg(e, 0)[i / each] >> (i % each * bits)) & ((1 << bits) - 1);
}

static void eval_transpose(const Eval *e) {
    Type t = *e->n->type, x = *arg_type(e, 0);
    const Attr *order = node_attr(e->n, ATTR_order);
    for (int64_t i = 0; i < type_count(&t); i++) {
        int64_t index[MAX_RANK] = {0}, rest = i, at = 0;
        for (int k = t.rank - 1; k >= 0; k--) {
            index[order->ints[k]] = rest % t.dim[k];
            rest /= t.dim[k];
        }
        for (int k = 0; k < x.rank; k++)
            at = at * x.dim[k] + index[k];
        e->out[i] = arg(e, 0)[at];
    }
}

static int64_t nearest_inside(double i, int64_t size) {
    return i < 0 ? 0 : i >= (double)size ? size - 1 : (int64_t)i;
}

static void eval_gather(const Eval *e) {
    Type table = *arg_type(e, 0);
    int64_t row = type_count(&table) / table.dim[0];
    for (int64_t i = 0; i < type_count(e->n->type); i++) {
        int64_t from = nearest_inside(arg(e, 1)[i / row], table.dim[0]);
        e->out[i] = arg(e, 0)[from * row + i % row];
    }
}

static void eval_gather_grad(const Eval *e) {
    Type table = *e->n->type;
    int64_t row = type_count(&table) / table.dim[0];
    for (int64_t i = 0; i < type_count(arg_type(e, 0)); i++) {
        int64_t to = nearest_inside(arg(e, 1)[i / row], table.dim[0]);
        e->out[to * row + i % row] += arg(e, 0)[i];
    }
}

static void eval_take(const Eval *e) {
    Type t = *e->n->type, x = *arg_type(e, 0);
    for (int64_t i = 0; i < type_count(&t); i++) {
        int64_t c = i % t.dim[3], w = i / t.dim[3] % t.dim[2];
        int64_t h = i / t.dim[3] / t.dim[2] % t.dim[1];
        int64_t n = i / t.dim[3] / t.dim[2] / t.dim[1];
        int64_t row = nearest_inside(arg(e, 1)[n * t.dim[1] + h], x.dim[1]);
        int64_t column = nearest_inside(arg(e, 2)[n * t.dim[2] + w], x.dim[2]);
        e->out[i] = arg(e, 0)[pixel(x, n, row, column, c)];
    }
}

// ---- windows ----

// The row (axis 0) or column (axis 1) of the image that place r of window o
// is on, or -1 in the padding.
static int64_t window_at(const Node *n, Type image, int axis, int64_t o,
                         int64_t r) {
    int64_t at = o * node_ints(n, ATTR_stride, axis, 1) +
                 r * node_ints(n, ATTR_dilation, axis, 1) -
                 node_ints(n, ATTR_pad, 2 * axis, 0);
    return at >= 0 && at < image.dim[1 + axis] ? at : -1;
}

// Windows of `size` places over `image`, one for each element of `pooled`.
typedef struct {
    Type image, pooled;
    int64_t size;
} Pool;

static Pool pool_of(const Eval *e, Type image, Type pooled) {
    return (Pool){.image = image,
                  .pooled = pooled,
                  .size = node_ints(e->n, ATTR_window, 0, 1) *
                          node_ints(e->n, ATTR_window, 1, 1)};
}

// The image's element at place k of window o, or -1 in the padding.
static int64_t pool_pixel(const Eval *e, const Pool *p, int64_t o, int64_t k) {
    const int64_t *dim = p->pooled.dim;
    int64_t columns = node_ints(e->n, ATTR_window, 1, 1);
    int64_t w = o / dim[3] % dim[2], h = o / dim[3] / dim[2] % dim[1];
    int64_t y = window_at(e->n, p->image, 0, h, k / columns);
    int64_t x = window_at(e->n, p->image, 1, w, k % columns);
    if (y < 0 || x < 0)
        return -1;
    return pixel(p->image, o / dim[3] / dim[2] / dim[1], y, x, o % dim[3]);
}

// The largest of each window, or with index set its place, the first on ties.
static void eval_max_pool(const Eval *e, bool index) {
    Pool p = pool_of(e, *arg_type(e, 0), *e->n->type);
    for (int64_t o = 0; o < type_count(&p.pooled); o++) {
        double best = 0;
        int64_t first = -1;
        for (int64_t k = 0; k < p.size; k++) {
            int64_t i = pool_pixel(e, &p, o, k);
            if (i >= 0 && (first < 0 || larger(arg(e, 0)[i], best))) {
                best = arg(e, 0)[i];
                first = k;
            }
        }
        e->out[o] = index ? (double)first : best;
    }
}

static void eval_max_pool_grad(const Eval *e) {
    Pool p = pool_of(e, *e->n->type, *arg_type(e, 1));
    for (int64_t o = 0; o < type_count(&p.pooled); o++) {
        int64_t i = pool_pixel(e, &p, o, (int64_t)arg(e, 0)[o]);
        if (i >= 0)
            e->out[i] += arg(e, 1)[o];
    }
}

// Padding counts as zeros: the sum is divided by the window's size.
static void eval_avg_pool(const Eval *e) {
    Pool p = pool_of(e, *arg_type(e, 0), *e->n->type);
    for (int64_t o = 0; o < type_count(&p.pooled); o++) {
        for (int64_t k = 0; k < p.size; k++) {
            int64_t i = pool_pixel(e, &p, o, k);
            e->out[o] += i >= 0 ? arg(e, 0)[i] : 0;
        }
        e->out[o] /= (double)p.size;
    }
}

static void eval_avg_pool_grad(const Eval *e) {
    Pool p = pool_of(e, *e->n->type, *arg_type(e, 0));
    for (int64_t o = 0; o < type_count(&p.pooled); o++)
        for (int64_t k = 0; k < p.size; k++) {
            int64_t i = pool_pixel(e, &p, o, k);
            if (i >= 0)
                e->out[i] += arg(e, 0)[o] / (double)p.size;
        }
}

// What row or column i of a resized image is made of: `low` and the one after
// it, the latter with this share.  Pixels are squares, and their centres are at
// halves.  nearest takes the pixel that the corner of the result's is in.
typedef struct {
    int64_t low, high;
    double share;
} Blend;

static Blend blend_of(const Node *n, Type image, int axis, int64_t i) {
    int64_t from = image.dim[1 + axis], to = node_ints(n, ATTR_size, axis, 1);
    if (strcmp(node_text(n, ATTR_mode), "nearest") == 0)
        return (Blend){i * from / to, i * from / to, 0};
    double at = ((double)i + 0.5) * (double)from / (double)to - 0.5;
    at = at < 0 ? 0 : at;
    int64_t low = (int64_t)at;
    return (Blend){low, low + 1 < from ? low + 1 : low, at - (double)low};
}

// Element k of 0 .. 3 that element o of the result is made of, and its share.
static int64_t blend_pixel(const Eval *e, Type image, Type result, int64_t o,
                           int k, double *share) {
    const int64_t *dim = result.dim;
    Blend y = blend_of(e->n, image, 0, o / dim[3] / dim[2] % dim[1]);
    Blend x = blend_of(e->n, image, 1, o / dim[3] % dim[2]);
    *share = (k & 2 ? y.share : 1 - y.share) * (k & 1 ? x.share : 1 - x.share);
    return pixel(image, o / dim[3] / dim[2] / dim[1], k & 2 ? y.high : y.low,
                 k & 1 ? x.high : x.low, o % dim[3]);
}

static void eval_resize(const Eval *e) {
    double share;
    for (int64_t o = 0; o < type_count(e->n->type); o++)
        for (int k = 0; k < 4; k++) {
            int64_t i =
                blend_pixel(e, *arg_type(e, 0), *e->n->type, o, k, &share);
            e->out[o] += share != 0 ? share * arg(e, 0)[i] : 0;
        }
}

static void eval_resize_grad(const Eval *e) {
    double share;
    for (int64_t o = 0; o < type_count(arg_type(e, 0)); o++)
        for (int k = 0; k < 4; k++) {
            int64_t i =
                blend_pixel(e, *e->n->type, *arg_type(e, 0), o, k, &share);
            e->out[i] += share != 0 ? share * arg(e, 0)[o] : 0;
        }
}

// ---- library calls ----

static void eval_conv(const Eval *e) {
    if (call_adds_to(e->n) != NO_NODE)
        memcpy(e->out, arg(e, 2),
               (size_t)type_count(e->n->type) * sizeof *e->out);
    conv_eval(e->g, e->n, e->value, e->out);
}

static void eval_matmul(const Eval *e) {
    matmul_eval(e->g, e->n, e->value, e->out);
}

// ---- composite operations ----

static void eval_batch_norm(const Eval *e) {
    Type t = *e->n->type;
    int64_t C = t.dim[t.rank - 1], count = C ? type_count(&t) / C : 0;
    double eps = node_float(e->n, ATTR_eps, 1e-5);
    for (int64_t c = 0; c < C; c++) {
        const double *x = arg(e, 0) + c;
        double mean = mean_of(x, count, C);
        double root = sqrt(variance_of(x, count, C) + eps);
        for (int64_t i = 0; i < count; i++)
            e->out[i * C + c] =
                (x[i * C] - mean) / root * arg(e, 1)[c] + arg(e, 2)[c];
    }
}

// The logarithm of the sum of exponentials, exact for large numbers too.
static double log_sum_exp(const double *x, int64_t count) {
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < count; i++)
        most = larger(x[i], most) ? x[i] : most;
    for (int64_t i = 0; i < count; i++)
        sum += exp(x[i] - most);
    return most + log(sum);
}

// Against (1 - smoothing) for the label, or of each class's share, and
// smoothing / K for each class.
static void eval_cross_entropy(const Eval *e) {
    Type t = *arg_type(e, 0);
    double smoothing = node_float(e->n, ATTR_smoothing, 0);
    bool soft = arg_type(e, 1)->dtype != I32;
    for (int64_t m = 0; m < t.dim[0]; m++) {
        const double *row = arg(e, 0) + m * t.dim[1];
        double total = log_sum_exp(row, t.dim[1]);
        for (int64_t k = 0; k < t.dim[1]; k++) {
            double label =
                soft ? arg(e, 1)[m * t.dim[1] + k] : arg(e, 1)[m] == (double)k;
            double target =
                (1 - smoothing) * label + smoothing / (double)t.dim[1];
            if (target != 0)
                e->out[m] += target * (total - row[k]);
        }
    }
}

static void eval_softmax(const Eval *e, bool logarithm) {
    Type t = *e->n->type;
    int64_t K = t.dim[t.rank - 1];
    for (int64_t i = 0; i < type_count(&t); i++) {
        const double *row = arg(e, 0) + i / K * K;
        double power = arg(e, 0)[i] - log_sum_exp(row, K);
        e->out[i] = logarithm ? power : exp(power);
    }
}

// ---- effects ----

// gradient and assign give their second operand, output its only one.
static void eval_effect(const Eval *e) {
    copy(e, arg(e, e->n->num_args - 1));
}

// ---- any node ----

// ---- one rule for each operation ----

// Leaves that are given, and memory that nothing has written.
static void eval_nothing(const Eval *e) {
    (void)e;
}

static void eval_state(const Eval *e) {
    fill(e, node_float(e->n, ATTR_init, 0));
}

static void eval_loss_scale(const Eval *e) {
    fill(e, 1);
}

static void eval_pad(const Eval *e) {
    eval_moved(e, -1);
}

static void eval_slice(const Eval *e) {
    eval_moved(e, 1);
}

static void eval_max_pool_value(const Eval *e) {
    eval_max_pool(e, false);
}

static void eval_max_pool_index(const Eval *e) {
    eval_max_pool(e, true);
}

static void eval_eigh(const Eval *e) {
    factor_eigh(arg(e, 0), e->n->type->dim[1], e->out, e->arena);
}

static void eval_orthogonal(const Eval *e) {
    Type t = *e->n->type;
    factor_orthogonal(arg(e, 0), t.dim[0], t.dim[1], e->out);
}

static void eval_share(const Eval *e) {
    eval_softmax(e, false);
}

static void eval_log_share(const Eval *e) {
    eval_softmax(e, true);
}

static void eval_clip(const Eval *e) {
    e->out[0] = clip_eval(e->g, e->n, e->value);
}

static void eval_update(const Eval *e) {
    update_eval(e->g, e->n, e->value, e->arena, e->out);
}

// Operations that are not here are computed element by element.
static void (*const rules[NUM_OPS])(const Eval *) = {
    [OP_input] = eval_nothing,
    [OP_param] = eval_nothing,
    [OP_scratch] = eval_nothing,
    [OP_state] = eval_state,
    [OP_constant] = eval_constant,
    [OP_iota] = eval_iota,
    [OP_loss_scale] = eval_loss_scale,
    [OP_sum] = eval_sum,
    [OP_max] = eval_max,
    [OP_var] = eval_var,
    [OP_argmax] = eval_argmax,
    [OP_all_finite] = eval_all_finite,
    [OP_total] = eval_total,
    [OP_reshape] = eval_copy,
    [OP_stack] = eval_stack,
    [OP_pad] = eval_pad,
    [OP_slice] = eval_slice,
    [OP_shift] = eval_shift,
    [OP_flip] = eval_flip,
    [OP_transpose] = eval_transpose,
    [OP_gather] = eval_gather,
    [OP_gather_grad] = eval_gather_grad,
    [OP_take] = eval_take,
    [OP_pack] = eval_pack,
    [OP_unpack] = eval_unpack,
    [OP_max_pool] = eval_max_pool_value,
    [OP_max_pool_index] = eval_max_pool_index,
    [OP_max_pool_grad] = eval_max_pool_grad,
    [OP_avg_pool] = eval_avg_pool,
    [OP_avg_pool_grad] = eval_avg_pool_grad,
    [OP_resize] = eval_resize,
    [OP_resize_grad] = eval_resize_grad,
    [OP_conv] = eval_conv,
    [OP_conv_grad_input] = eval_conv,
    [OP_conv_grad_weight] = eval_conv,
    [OP_matmul] = eval_matmul,
    [OP_eigh] = eval_eigh,
    [OP_orthogonal] = eval_orthogonal,
    [OP_batch_norm] = eval_batch_norm,
    [OP_cross_entropy] = eval_cross_entropy,
    [OP_softmax] = eval_share,
    [OP_log_softmax] = eval_log_share,
    [OP_stop_gradient] = eval_copy,
    [OP_gradient] = eval_effect,
    [OP_assign] = eval_effect,
    [OP_output] = eval_effect,
    [OP_accumulated] = eval_effect,
    [OP_clip] = eval_clip,
    [OP_accumulate] = eval_update,
    [OP_sgd] = eval_update,
    [OP_adam] = eval_update,
    [OP_muon] = eval_update,
};

void node_eval(const Graph *g, NodeId n, double *const *value, double *out,
               Arena *a) {
    const Node *d = &g->node[n];
    Eval e = {g, d, out, value, a};
    (rules[d->op] ? rules[d->op] : eval_pointwise)(&e);
}

static void round_all(const Graph *g, Type t, double *value) {
    DType d = t.dtype == ACT ? g->act : t.dtype;
    int64_t count = type_count(&t);
    for (int64_t i = 0; i < count; i++)
        value[i] = dtype_round(d, value[i]);
}

// clip reads gradients that may come after it, and optimizers both.  Nothing
// else reads their results, so they are computed last.
static int turn(const Node *n) {
    return n->op == OP_clip ? 1 : op_info[n->op].facts & OPTIMIZES ? 2 : 0;
}

// The elements of node id, in arena a.
static double *node_value(const Graph *g, NodeId id, Arena *a,
                          double *const *value, const double *leaf) {
    size_t count = (size_t)type_count(g->node[id].type);
    double *out = ARENA_ARRAY(a, count + 1, double);
    if (leaf == NULL)
        node_eval(g, id, value, out, a);
    else if (count)
        memcpy(out, leaf, count * sizeof *out);
    return out;
}

double **graph_eval(const Graph *g, Arena *a, double *const *leaf, bool round) {
    double **value = ARENA_ARRAY(a, g->count + 1, double *);
    for (int late = 0; late <= 2; late++)
        for (NodeId id = 0; id < g->count; id++) {
            if (turn(&g->node[id]) != late)
                continue;
            value[id] = node_value(g, id, a, value, leaf ? leaf[id] : NULL);
            if (round)
                round_all(g, *g->node[id].type, value[id]);
        }
    return value;
}

// How often each node is read by those that are kept, and what they need.
static int *reads_count(const Graph *g, Arena *a, const bool *kept) {
    int *reads = ARENA_ARRAY(a, g->count + 1, int);
    for (NodeId id = g->count; id-- > 0;) {
        const Node *n = &g->node[id];
        for (int i = 0; (kept[id] || reads[id] > 0) && i < n->num_args; i++)
            reads[n->arg[i]]++;
    }
    return reads;
}

void graph_eval_seen(const Graph *g, double *const *leaf, bool round,
                     const bool *wanted, NodeSeen *seen, void *whose) {
    Arena *scratch = arena_new();
    double **value = ARENA_ARRAY(scratch, g->count + 1, double *);
    Arena **own = ARENA_ARRAY(scratch, g->count + 1, Arena *);
    int *reads = reads_count(g, scratch, wanted);
    for (NodeId id = 0; id < g->count; id++) {
        const Node *n = &g->node[id];
        if (!wanted[id] && reads[id] == 0)
            continue;
        own[id] = arena_within(scratch);
        value[id] = leaf[id] != NULL ? leaf[id]
                                     : node_value(g, id, own[id], value, NULL);
        if (round && leaf[id] == NULL)
            round_all(g, *n->type, value[id]);
        if (wanted[id])
            seen(whose, id, value);
        for (int i = 0; i < n->num_args; i++)
            if (--reads[n->arg[i]] == 0)
                arena_free(own[n->arg[i]]);
        if (reads[id] == 0)
            arena_free(own[id]);
    }
    arena_free(scratch);
}

typedef struct {
    const Graph *g;
    Arena *a;
    double **value;
} Keeper;

static void value_keep(void *whose, NodeId n, double *const *value) {
    const Keeper *k = whose;
    size_t count = (size_t)type_count(k->g->node[n].type);
    k->value[n] = ARENA_ROOM(k->a, count + 1, double);
    memcpy(k->value[n], value[n], count * sizeof *value[n]);
}

double **graph_eval_kept(const Graph *g, Arena *a, double *const *leaf,
                         const bool *kept) {
    Keeper k = {g, a, ARENA_ARRAY(a, g->count + 1, double *)};
    graph_eval_seen(g, leaf, false, kept, value_keep, &k);
    return k.value;
}
