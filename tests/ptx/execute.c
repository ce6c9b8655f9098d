// Executes the instructions of one thread.
//
// A register is 64 bits, of which an instruction reads and leaves as many as
// its type has.
#include "tests/ptx/module.h"

#include "base/half.h"

#include <fenv.h>
#include <math.h>
#include <string.h>

static uint64_t value(const Thread *t, Operand o) {
    return o.is_register ? t->r[o.value] : o.value;
}

static uint64_t mask_of(Type type) {
    int bits = type == PRED ? 1 : 8 * type_bytes(type);
    return bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
}

static uint64_t narrowed(Type type, uint64_t bits) {
    return bits & mask_of(type);
}

static int64_t extended(Type type, uint64_t bits) {
    int rest = 64 - 8 * type_bytes(type);
    return (int64_t)(bits << rest) >> rest;
}

// The whole number that an operand of this type is.
static int64_t whole(Type type, uint64_t bits) {
    return type_signed(type) ? extended(type, bits)
                             : (int64_t)narrowed(type, bits);
}

static uint64_t from(const Thread *t, const Instruction *i, int n) {
    return narrowed(i->type, value(t, i->from[n]));
}

static void to(Thread *t, const Instruction *i, uint64_t bits) {
    t->r[i->to[0]] = bits;
}

static void unknown(const Instruction *i) {
    ptx_fail(i->line, "this instruction is not known for its type");
}

// ---- whole numbers ----

static unsigned __int128 product(Type type, uint64_t a, uint64_t b) {
    if (type_signed(type))
        return (unsigned __int128)((__int128)whole(type, a) * whole(type, b));
    return (unsigned __int128)narrowed(type, a) * narrowed(type, b);
}

static uint64_t multiplied(const Instruction *i, uint64_t a, uint64_t b) {
    unsigned __int128 all = product(i->type, a, b);
    return (uint64_t)(i->half == HIGH ? all >> 8 * type_bytes(i->type) : all);
}

// By 0 a GPU gives all ones.
static uint64_t quotient(const Instruction *i, uint64_t a, uint64_t b,
                         bool rest) {
    int64_t x = whole(i->type, a), y = whole(i->type, b);
    if (narrowed(i->type, b) == 0)
        return rest ? a : UINT64_MAX;
    if (!type_signed(i->type))
        return rest ? (uint64_t)x % (uint64_t)y : (uint64_t)x / (uint64_t)y;
    if (y == -1) // whose quotient may be too large
        return rest ? 0 : 0 - (uint64_t)x;
    return (uint64_t)(rest ? x % y : x / y);
}

static uint64_t shifted(const Instruction *i, uint64_t a, uint64_t by) {
    unsigned bits = 8u * (unsigned)type_bytes(i->type);
    by &= UINT32_MAX;
    if (i->op == OP_SHL)
        return by >= bits ? 0 : a << by;
    if (type_signed(i->type))
        return (uint64_t)(whole(i->type, a) >> (by >= bits ? bits - 1 : by));
    return by >= bits ? 0 : narrowed(i->type, a) >> by;
}

// A word of b a: the upper one after a shift to the left, else the lower one.
static uint64_t funnel_shifted(const Instruction *i, uint64_t a, uint64_t b,
                               uint64_t by) {
    uint64_t all = (b & UINT32_MAX) << 32 | (a & UINT32_MAX);
    by = i->clamps && (by & UINT32_MAX) > 32 ? 32 : i->clamps ? by : by & 31;
    return i->shifts_left ? all << by >> 32 : all >> by & UINT32_MAX;
}

static bool less(Type type, uint64_t a, uint64_t b) {
    return type_signed(type) ? whole(type, a) < whole(type, b)
                             : narrowed(type, a) < narrowed(type, b);
}

// Bytes of b a, each chosen by four bits of c; the upper one repeats its sign.
static uint64_t permuted(uint64_t a, uint64_t b, uint64_t c) {
    uint64_t all = (b & UINT32_MAX) << 32 | (a & UINT32_MAX), out = 0;
    for (int k = 0; k < 4; k++) {
        unsigned which = (unsigned)(c >> 4 * k) & 15;
        uint64_t byte = all >> 8 * (which & 7) & 255;
        if (which & 8)
            byte = byte & 128 ? 255 : 0;
        out |= byte << 8 * k;
    }
    return out;
}

// Bits of a, put into b.
static uint64_t inserted(Type type, uint64_t a, uint64_t b, uint64_t at,
                         uint64_t length) {
    uint64_t bits = 8u * (unsigned)type_bytes(type);
    at &= 255, length &= 255;
    if (at >= bits || length == 0)
        return b;
    uint64_t mask = length >= 64 ? UINT64_MAX : ((uint64_t)1 << length) - 1;
    return (b & ~(mask << at)) | (a & mask) << at;
}

static uint64_t extracted(Type type, uint64_t a, uint64_t at, uint64_t length) {
    uint64_t bits = 8u * (unsigned)type_bytes(type), out = 0;
    at &= 255, length &= 255;
    if (length == 0)
        return 0;
    uint64_t sign = type_signed(type)
                        ? a >> (at + length > bits ? bits - 1 : at + length - 1)
                        : 0;
    for (uint64_t k = 0; k < bits; k++) {
        bool inside = k < length && at + k < bits;
        out |= (inside ? a >> (at + k) & 1 : sign & 1) << k;
    }
    return out;
}

// A bit of each operand is the number of a bit in the table, a's the first.
static uint64_t looked_up(Type type, uint64_t a, uint64_t b, uint64_t c,
                          uint64_t table) {
    uint64_t out = 0;
    for (int k = 0; k < 8; k++)
        if (table >> k & 1)
            out |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
    return narrowed(type, out);
}

static uint64_t leading_zeros(Type type, uint64_t a) {
    int above = 64 - 8 * type_bytes(type);
    return (uint64_t)(a == 0 ? 64 : __builtin_clzll(a)) - (uint64_t)above;
}

static uint64_t computed_whole(const Instruction *i, uint64_t a, uint64_t b,
                               uint64_t c, uint64_t d) {
    switch (i->op) {
    case OP_ABS:
        return (uint64_t)(whole(i->type, a) < 0 ? 0 - a : a);
    case OP_ADD:
        return a + b;
    case OP_AND:
        return a & b;
    case OP_BFE:
        return extracted(i->type, a, b, c);
    case OP_BFI:
        return inserted(i->type, a, b, c, d);
    case OP_CLZ:
        return leading_zeros(i->type, a);
    case OP_DIV:
    case OP_REM:
        return quotient(i, a, b, i->op == OP_REM);
    case OP_LOP3:
        return looked_up(i->type, a, b, c, d);
    case OP_MAD:
        return multiplied(i, a, b) + c;
    case OP_MAX:
        return less(i->type, a, b) ? b : a;
    case OP_MIN:
        return less(i->type, b, a) ? b : a;
    case OP_MUL:
        return multiplied(i, a, b);
    case OP_NEG:
        return 0 - a;
    case OP_NOT:
        return narrowed(i->type, ~a);
    case OP_OR:
        return a | b;
    case OP_POPC:
        return (uint64_t)__builtin_popcountll(a);
    case OP_PRMT:
        return permuted(a, b, c);
    case OP_SHF:
        return funnel_shifted(i, a, b, c);
    case OP_SHL:
    case OP_SHR:
        return shifted(i, a, b);
    case OP_SUB:
        return a - b;
    case OP_XOR:
        return a ^ b;
    default:
        unknown(i);
        return 0;
    }
}

static void integer(Thread *t, const Instruction *i) {
    uint64_t x[3] = {0, 0, 0};
    for (int k = 1; k < i->num_from && k < 4; k++)
        x[k - 1] = value(t, i->from[k]);
    if (i->saturates)
        unknown(i);
    to(t, i, computed_whole(i, from(t, i, 0), x[0], x[1], x[2]));
}

// ---- real numbers ----

static float real_of(uint64_t bits) {
    uint32_t low = (uint32_t)bits;
    float x;
    memcpy(&x, &low, sizeof x);
    return x;
}

static double double_of(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// What is not a number has the same bits whatever it comes from.
static uint64_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return x != x ? 0x7fffffffu : bits;
}

static uint64_t bits_of_double(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return x != x ? 0x7fffffffffffffffu : bits;
}

static float flushed(const Instruction *i, float x) {
    return i->flushes && fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

static float saturated(const Instruction *i, float x) {
    return !i->saturates ? x : x > 0 ? (x < 1 ? x : 1) : 0;
}

// Of numbers that are equal but for their sign, -0 is less.
static float larger(const Instruction *i, float a, float b) {
    if (a != a || b != b)
        return (a != a) == i->passes_nan ? a : b;
    return a > b || (a == b && !signbit(a)) ? a : b;
}

static double computed_double(const Instruction *i, double a, double b,
                              double c) {
    switch (i->op) {
    case OP_ABS:
        return fabs(a);
    case OP_ADD:
        return a + b;
    case OP_DIV:
        return a / b;
    case OP_FMA:
        return fma(a, b, c);
    case OP_MAX:
        return fmax(a, b);
    case OP_MIN:
        return fmin(a, b);
    case OP_MUL:
        return a * b;
    case OP_NEG:
        return -a;
    case OP_RCP:
        return 1 / a;
    case OP_SQRT:
        return sqrt(a);
    case OP_SUB:
        return a - b;
    default:
        unknown(i);
        return 0;
    }
}

static float computed(const Instruction *i, float a, float b, float c) {
    switch (i->op) {
    case OP_ABS:
        return fabsf(a);
    case OP_ADD:
        return a + b;
    case OP_COPYSIGN:
        return copysignf(b, a);
    case OP_COS:
        return (float)cos((double)a);
    case OP_DIV:
        return a / b;
    case OP_EX2:
        return (float)exp2((double)a);
    case OP_FMA:
        return fmaf(a, b, c);
    case OP_LG2:
        return (float)log2((double)a);
    case OP_MAX:
        return larger(i, a, b);
    case OP_MIN:
        return -larger(i, -a, -b);
    case OP_MUL:
        return a * b;
    case OP_NEG:
        return -a;
    case OP_RCP:
        return 1 / a;
    case OP_RSQRT: // as the host's prelude, for results of the same bits
        return 1 / sqrtf(a);
    case OP_SIN:
        return (float)sin((double)a);
    case OP_SQRT:
        return sqrtf(a);
    case OP_SUB:
        return a - b;
    case OP_TANH:
        return (float)tanh((double)a);
    default:
        unknown(i);
        return 0;
    }
}

static const int c_round[] = {[NEAREST] = FE_TONEAREST,
                              [TO_ZERO] = FE_TOWARDZERO,
                              [DOWN] = FE_DOWNWARD,
                              [UP] = FE_UPWARD};

// Of a sum or product that is not rounded to the nearest.
static float rounded(const Instruction *i, float a, float b, float c) {
    volatile float x = a, y = b, z = c, out;
    if (i->op != OP_FMA && i->op != OP_ADD && i->op != OP_SUB &&
        i->op != OP_MUL && i->op != OP_DIV)
        unknown(i);
    fesetround(c_round[i->round]);
    out = i->op == OP_FMA   ? fmaf(x, y, z)
          : i->op == OP_ADD ? x + y
          : i->op == OP_SUB ? x - y
          : i->op == OP_MUL ? x * y
                            : x / y;
    fesetround(FE_TONEAREST);
    return out;
}

static void real(Thread *t, const Instruction *i) {
    float x[3] = {0, 0, 0};
    for (int k = 0; k < i->num_from && k < 3; k++)
        x[k] = flushed(i, real_of(value(t, i->from[k])));
    float out = i->round == NEAREST ? computed(i, x[0], x[1], x[2])
                                    : rounded(i, x[0], x[1], x[2]);
    // Moving a sign about does not make another number of what is none.
    bool moves = i->op == OP_NEG || i->op == OP_ABS || i->op == OP_COPYSIGN;
    if (moves && out != out)
        to(t, i, value(t, i->from[i->op == OP_COPYSIGN]));
    else
        to(t, i, bits_of(saturated(i, flushed(i, out))));
}

static void real_double(Thread *t, const Instruction *i) {
    double x[3] = {0, 0, 0};
    if (i->round != NEAREST)
        unknown(i);
    for (int k = 0; k < i->num_from && k < 3; k++)
        x[k] = double_of(value(t, i->from[k]));
    to(t, i, bits_of_double(computed_double(i, x[0], x[1], x[2])));
}

// ---- comparisons ----

static bool holds(Compare c, bool less_than, bool equal, bool none) {
    switch (c) {
    case EQ:
        return equal && !none;
    case NE:
        return !equal && !none;
    case LT:
        return less_than && !none;
    case LE:
        return (less_than || equal) && !none;
    case GT:
        return !less_than && !equal && !none;
    case GE:
        return !less_than && !none;
    case NUM:
        return !none;
    case NAN_:
        return none;
    default:
        return none || holds((Compare)(c - EQU), less_than, equal, false);
    }
}

static void compare(Thread *t, const Instruction *i) {
    uint64_t a = from(t, i, 0), b = from(t, i, 1);
    bool is;
    if (i->type == F16 || i->type == BF16)
        unknown(i);
    if (i->type == F32 || i->type == F64) {
        bool single = i->type == F32;
        double x = single ? (double)flushed(i, real_of(a)) : double_of(a);
        double y = single ? (double)flushed(i, real_of(b)) : double_of(b);
        is = holds(i->compare, x < y, x == y, x != x || y != y);
    } else {
        is = holds(i->compare, less(i->type, a, b), a == b, false);
    }
    t->r[i->to[0]] = is;
    if (i->num_to > 1)
        t->r[i->to[1]] = !is;
}

// ---- conversions ----

// To nearest, ties to even: so many units of the last digit.
static uint64_t half_of(float x) {
    double size = fabs((double)x);
    uint64_t sign = signbit(x) ? 0x8000 : 0;
    int exponent;
    if (x != x)
        return 0x7fff;
    if (size == 0 || size >= 65520)
        return sign | (size == 0 ? 0 : 0x7c00);
    frexp(size, &exponent);
    int unit = exponent < -13 ? -24 : exponent - 11;
    uint64_t digits = (uint64_t)nearbyint(ldexp(size, -unit));
    return sign | (((uint64_t)(unit + 25) << 10) + digits - 1024);
}

static uint64_t brain_of(float x) {
    uint64_t bits = bits_of(x);
    return x != x ? 0x7fffu : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

static double whole_of(const Instruction *i, double x) {
    switch (i->round) {
    case NEAREST:
        return nearbyint(x);
    case TO_ZERO:
        return trunc(x);
    case DOWN:
        return floor(x);
    default:
        return ceil(x);
    }
}

// What does not fit becomes the nearest that does, and what is no number 0, or
// the upper bit alone where one of the two types has 64.
static uint64_t whole_from(const Instruction *i, double x) {
    int bits = 8 * type_bytes(i->type);
    bool sign = type_signed(i->type);
    double end = ldexp(1, sign ? bits - 1 : bits), least = sign ? -end : 0;
    if (x != x)
        return bits == 64 || i->of == F64 ? (uint64_t)1 << (bits - 1) : 0;
    x = whole_of(i, x);
    if (x >= end)
        return mask_of(i->type) >> sign;
    if (x <= least)
        return sign ? (uint64_t)1 << (bits - 1) : 0;
    return sign ? (uint64_t)(int64_t)x : (uint64_t)x;
}

static bool is_real(Type type) {
    return type == F16 || type == BF16 || type == F32 || type == F64;
}

static double real_from(const Instruction *i, uint64_t bits) {
    switch (i->of) {
    case F16:
        return half_value((uint16_t)bits);
    case BF16:
        return (double)real_of(bits << 16);
    case F32:
        return (double)flushed(i, real_of(bits));
    default:
        return double_of(bits);
    }
}

static uint64_t real_bits(const Instruction *i, double x) {
    switch (i->type) {
    case F16:
        return half_of((float)x);
    case BF16:
        return brain_of((float)x);
    case F32:
        return bits_of(saturated(i, flushed(i, (float)x)));
    default:
        return bits_of_double(x);
    }
}

// To nearest in one step, also from numbers that a double does not hold.
static uint64_t real_of_whole(const Instruction *i, int64_t x) {
    bool sign = type_signed(i->of);
    if (i->round != NEAREST)
        unknown(i);
    if (i->type == F32)
        return bits_of(sign ? (float)x : (float)(uint64_t)x);
    if (i->type == F64)
        return bits_of_double(sign ? (double)x : (double)(uint64_t)x);
    unknown(i);
    return 0;
}

// Whole numbers of real ones do so anyway.
static bool saturates_here(const Instruction *i) {
    bool whole = !is_real(i->type) && i->type != F16X2 && i->type != BF16X2;
    return is_real(i->of) && (i->type == F32 || whole);
}

static void convert(Thread *t, const Instruction *i) {
    uint64_t a = value(t, i->from[0]);
    if (i->saturates && !saturates_here(i))
        unknown(i);
    if (i->type == F16X2 || i->type == BF16X2) {
        if (i->round != NEAREST)
            unknown(i);
        float high = real_of(a), low = real_of(value(t, i->from[1]));
        to(t, i,
           i->type == F16X2 ? half_of(high) << 16 | half_of(low)
                            : brain_of(high) << 16 | brain_of(low));
    } else if (is_real(i->of)) {
        double x = real_from(i, a);
        if (i->round != NEAREST && !i->is_whole && i->type != i->of &&
            is_real(i->type))
            unknown(i);
        to(t, i,
           !is_real(i->type) ? whole_from(i, x)
           : i->is_whole     ? real_bits(i, whole_of(i, x))
                             : real_bits(i, x));
    } else if (is_real(i->type)) {
        to(t, i, real_of_whole(i, whole(i->of, a)));
    } else {
        to(t, i, narrowed(i->type, (uint64_t)whole(i->of, a)));
    }
}

// ---- memory ----

static uint64_t place(const Thread *t, const Instruction *i) {
    return value(t, i->from[0]) + (uint64_t)i->offset;
}

static int bytes_of(const Instruction *i) {
    return type_bytes(i->type) * i->vector;
}

static char *within(const Instruction *i, const char *kind, char *from,
                    size_t room, uint64_t at) {
    size_t bytes = (size_t)bytes_of(i);
    if (at > room || bytes > room - at)
        ptx_fail(i->line, "%s memory is left", kind);
    return from + at;
}

static char *address(const Kernel *k, const Memory *m, const Thread *t,
                     const Instruction *i) {
    uint64_t at = place(t, i);
    size_t bytes = (size_t)bytes_of(i);
    if (at % bytes != 0)
        ptx_fail(i->line, "%zu bytes at an address that they do not divide",
                 bytes);
    uint64_t local = t->r[R_LOCAL];
    switch (i->space) {
    case PARAM:
        return within(i, "parameter", m->parameters, (size_t)k->parameter_bytes,
                      at);
    case SHARED:
        return within(i, "shared", m->shared, k->shared_bytes, at);
    case LOCAL:
        return within(i, "local", (char *)(uintptr_t)local, k->local_bytes,
                      at - local);
    default:
        return (char *)(uintptr_t)at;
    }
}

static uint64_t loaded(Type type, const char *p) {
    uint64_t bits = 0;
    memcpy(&bits, p, (size_t)type_bytes(type));
    return type_signed(type) ? (uint64_t)extended(type, bits) : bits;
}

static bool is_global(const Instruction *i) {
    return i->space == GLOBAL || i->space == GENERIC;
}

// ---- order ----

static void acquire(const Memory *m, Thread *t, const Instruction *i) {
    if (m->stores != NULL && i->acquires)
        t->since = visible_now(m->stores);
}

static void release(const Memory *m, const Thread *t, const Instruction *i) {
    if (m->stores != NULL && i->releases)
        stores_release(m->stores, (int)t->r[R_TID]);
}

// The launch before ends only after a wait of each thread of this one, so the
// launch behind this one needs no wait for it.
static void depend(const Memory *m, Thread *t, const Instruction *i) {
    const Dependence *d = m->dependence;
    if (!i->waits && !t->has_waited)
        ptx_fail(i->line, "the next launch may start before a wait for the one "
                          "before");
    if (i->waits && d->waits)
        t->state = AT_WAIT;
    t->has_waited |= i->waits;
    *m->has_triggered |= !i->waits;
}

static void end(const Memory *m, Thread *t, const Instruction *i) {
    if (m->dependence->is_programmatic && !t->has_waited)
        ptx_fail(i->line, "a thread ends without a wait for the launch before");
    t->state = ENDED;
}

// A load that waits for other blocks sees all that they have released.
static void load_delayed(const Memory *m, Thread *t, const Instruction *i,
                         const char *p) {
    char bytes[MAX_TO * sizeof(uint64_t)];
    uint64_t since = i->is_volatile ? visible_now(m->stores) : t->since;
    visible_load(m->stores, since, (uintptr_t)p, bytes, bytes_of(i));
    for (int v = 0; v < i->num_to; v++)
        t->r[i->to[v]] = loaded(i->type, bytes + v * type_bytes(i->type));
}

// A multiprocessor may keep constants in its cache from before they were
// written.
static void load(const Memory *m, Thread *t, const Instruction *i,
                 const char *p) {
    if (i->is_constant && written_has(m->written, (uintptr_t)p, bytes_of(i)))
        ptx_fail(i->line, "a constant is loaded that the launch has written");
    if (m->stores != NULL && is_global(i)) {
        load_delayed(m, t, i, p);
        acquire(m, t, i);
        return;
    }
    for (int v = 0; v < i->num_to; v++)
        t->r[i->to[v]] = loaded(i->type, p + v * type_bytes(i->type));
}

static void take_note(const Memory *m, const Instruction *i, const char *p) {
    if (m->written != NULL && is_global(i))
        written_add(m->written, (uintptr_t)p, bytes_of(i));
}

static void store(const Memory *m, Thread *t, const Instruction *i, char *p) {
    take_note(m, i, p);
    release(m, t, i);
    for (int v = 1; v < i->num_from; v++) {
        uint64_t bits = value(t, i->from[v]);
        int each = type_bytes(i->type);
        char *at = p + (v - 1) * each;
        if (m->stores != NULL && is_global(i))
            visible_store(m->stores, (int)t->r[R_TID], (uintptr_t)at,
                          (const char *)&bits, each);
        else
            memcpy(at, &bits, (size_t)each);
    }
}

static void add_atomically(const Memory *m, Thread *t, const Instruction *i,
                           char *p) {
    take_note(m, i, p);
    release(m, t, i);
    uint64_t old = loaded(i->type, p), by = value(t, i->from[1]), sum;
    if (i->type == F64 || is_real(i->type) != (i->type == F32))
        unknown(i);
    sum = i->counts        ? old < by ? old + 1 : 0
          : i->type == F32 ? bits_of(real_of(old) + real_of(by))
                           : old + by;
    memcpy(p, &sum, (size_t)type_bytes(i->type));
    acquire(m, t, i);
    to(t, i, old);
}

// ---- moves ----

// Several registers as one, or one as several.
static void move(Thread *t, const Instruction *i) {
    int bits = 8 * type_bytes(i->type);
    uint64_t all = 0;
    if (i->num_to > 1) {
        uint64_t a = value(t, i->from[0]);
        for (int v = 0; v < i->num_to; v++)
            t->r[i->to[v]] = a >> v * (bits / i->num_to) &
                             (((uint64_t)1 << bits / i->num_to) - 1);
        return;
    }
    if (i->num_from == 1) {
        to(t, i, from(t, i, 0));
        return;
    }
    for (int v = 0; v < i->num_from; v++)
        all |=
            (value(t, i->from[v]) & (((uint64_t)1 << bits / i->num_from) - 1))
            << v * (bits / i->num_from);
    to(t, i, all);
}

// ---- one after the other ----

static bool skips(const Thread *t, const Instruction *i) {
    return i->guard != NOWHERE && (t->r[i->guard] & 1) == i->is_negated;
}

static void arithmetic(Thread *t, const Instruction *i) {
    if (i->type == F32)
        real(t, i);
    else if (i->type == F64)
        real_double(t, i);
    else if (is_real(i->type) || i->type == F16X2 || i->type == BF16X2 ||
             i->saturates)
        unknown(i);
    else
        integer(t, i);
}

// What is left of the next instruction to the caller is its state.
static void step(const Kernel *k, const Memory *m, Thread *t,
                 const Instruction *i) {
    switch (i->op) {
    case OP_ATOM:
        add_atomically(m, t, i, address(k, m, t, i));
        break;
    case OP_BAR:
        if (value(t, i->from[0]) != 0)
            unknown(i);
        t->state = AT_BARRIER;
        break;
    case OP_CVT:
        convert(t, i);
        break;
    case OP_CVTA:
    case OP_MOV:
        move(t, i);
        break;
    case OP_FENCE:
    case OP_MEMBAR:
        release(m, t, i);
        acquire(m, t, i);
        break;
    case OP_GRIDDEPCONTROL:
        depend(m, t, i);
        break;
    case OP_EXIT:
    case OP_RET:
        end(m, t, i);
        break;
    case OP_LD:
        if (i->is_volatile && i->space == SHARED)
            unknown(i); // threads of one block would have to take turns
        load(m, t, i, address(k, m, t, i));
        t->state = i->is_volatile ? LOOKED : RUNS;
        break;
    case OP_SELP:
        to(t, i, from(t, i, value(t, i->from[2]) & 1 ? 0 : 1));
        break;
    case OP_SETP:
        compare(t, i);
        break;
    case OP_SHFL:
        t->state = AT_SHUFFLE;
        break;
    case OP_ST:
        store(m, t, i, address(k, m, t, i));
        break;
    default:
        arithmetic(t, i);
    }
}

static inline void next(const Kernel *k, const Memory *m, Thread *t) {
    const Instruction *i = &k->code[t->at++];
    if (skips(t, i))
        return;
    if (i->op == OP_BRA)
        t->at = i->target;
    else
        step(k, m, t, i);
}

void thread_step(const Kernel *k, const Memory *m, Thread *t) {
    next(k, m, t);
}

bool thread_accesses(const Kernel *k, const Thread *t, uint64_t *address) {
    const Instruction *i = &k->code[t->at];
    if ((i->op != OP_LD && i->op != OP_ST) || skips(t, i))
        return false;
    *address = place(t, i);
    return true;
}

void thread_run(const Kernel *k, const Memory *m, Thread *t) {
    t->state = RUNS;
    while (t->state == RUNS && !(m->dependence->triggers && *m->has_triggered))
        next(k, m, t);
}
