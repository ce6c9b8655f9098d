// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pointwise: operations that compute an element from one of each operand.
//
// Their meaning is defined for numbers, once; for tensors the C compiler makes
// a loop of each.  Blocks are so small that a processor's nearest cache holds
// their operands and results.
#include "ir/eval/broadcast.h"
#include "ir/eval/rule.h"

#include <math.h>
#include <string.h>

// Inlined, so that the switch on the operation is gone where it is known.
#define INLINED static inline __attribute__((always_inline))

enum { BLOCK = 512, MAX_ARGS = 3 };

// ---- of numbers ----

// a / b as C has it for integers, and 0 where C has nothing.
INLINED double divide(double a, double b, DType d) {
    if (dtype_float(d))
        return a / b;
    return b == 0 ? 0 : trunc(a / b);
}

static double draw(const Node *n, double seed, double epoch, double index) {
    bool shared = node_int(n, ATTR_words, 1) == 4;
    return (shared ? random_shared : random_uniform)(
        (uint32_t)(int64_t)seed, (uint32_t)node_int(n, ATTR_stream, 0),
        (uint32_t)(int64_t)epoch, (uint32_t)(int64_t)index);
}

static double convert(DType to, double v) {
    return dtype_float(to) ? v : dtype_round(to, v);
}

// An operation on one number, an element of type d.
INLINED double of_one(Op op, double a, DType d) {
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
    case OP_cdf:
        return 0.5 * erfc(-sqrt(0.5) * a);
    case OP_pdf:
        return sqrt(0.5 / acos(-1)) * exp(-0.5 * a * a);
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

INLINED double of_two(Op op, double a, double b, DType d) {
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
        return a < b || b != b ? b : a;
    case OP_minimum:
        return b < a || b != b ? b : a;
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

// The result of node n, with that operation, so many operands and elements of
// type d, for numbers.
INLINED double element(Op op, int num_args, DType d, const Node *n, double a,
                       double b, double c) {
    switch (op) {
    case OP_select:
        return a != 0 ? b : c;
    case OP_var_finalize: // here no library takes the place of a var
        return a;
    case OP_uniform:
        return draw(n, a, b, c);
    default:
        return num_args == 1 ? of_one(op, a, d) : of_two(op, a, b, d);
    }
}

double scalar_eval(const Node *n, double a, double b, double c) {
    return element(n->op, n->num_args, n->type->dtype, n, a, b, c);
}

// ---- of tensors ----

// Some elements of a node, and the operands that they are made of.
typedef struct {
    const Node *n;
    double *out;
    const double *from[MAX_ARGS];
    int64_t count;
} Block;

INLINED void elements(Op op, int num_args, const Block *b) {
    const double *x = b->from[0], *y = b->from[1], *z = b->from[2];
    double *restrict out = b->out;
    DType d = b->n->type->dtype;
    for (int64_t i = 0; i < b->count; i++)
        out[i] = element(op, num_args, d, b->n, x[i], num_args > 1 ? y[i] : 0,
                         num_args > 2 ? z[i] : 0);
}

static void block_eval(const Block *b) {
    switch (b->n->op) {
#define OP(name, arity, shape, traits)                                         \
    case OP_##name:                                                            \
        if ((traits)&POINTWISE)                                                \
            elements(OP_##name, arity, b);                                     \
        break;
#include "ir/ops.def"
    default:
        break;
    }
}

// The next elements of an operand, in `near` if they do not lie in a row.
static const double *take(BroadcastWalk *p, const double *from, double *near,
                          int64_t count) {
    int64_t at, some = broadcast_next(p, count, &at);
    if (some == count && p->step[0] == 1)
        return from + at;
    for (int64_t done = 0; done < count;) {
        for (int64_t i = 0; i < some; i++)
            near[done + i] = from[at + i * p->step[0]];
        done += some;
        some = broadcast_next(p, count - done, &at);
    }
    return near;
}

void eval_pointwise(const Eval *e) {
    double near[MAX_ARGS][BLOCK];
    BroadcastWalk p[MAX_ARGS];
    int64_t count = type_count(e->n->type);
    for (int k = 0; k < e->n->num_args; k++)
        p[k] = broadcast_walk(*e->n->type, *arg_type(e, k));
    for (int64_t i = 0; i < count; i += BLOCK) {
        Block b = {.n = e->n, .out = e->out + i, .count = count - i};
        b.count = b.count < BLOCK ? b.count : BLOCK;
        for (int k = 0; k < e->n->num_args; k++)
            b.from[k] = take(&p[k], arg(e, k), near[k], b.count);
        block_eval(&b);
    }
}
