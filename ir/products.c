// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Products: convolutions and matrix products in double.
//
// A convolution is y[n,oh,ow,k] = sum of x[n,h,v,c] * w[k,r,s,c] over r, s and
// c, where tap r, s of the window at oh, ow is pixel h, v of x; padding adds
// nothing.  Its two gradients add up the same products with
// other roles.  So for each index in a window each of the three is a product
// of two matrices, whose rows are pixels that belong together.
//
// These take most of the time of evaluating a model, so four rows by four
// columns are summed at a time.  The terms of a sum come in the order of the
// formula, but for the gradient to x, where those of one index in a window
// follow each other.
#include "ir/products.h"

#include <string.h>

// ---- one product of two matrices ----

// out[out_at[m] + n] += a[a_at[m] + a_by[k]] * b[b_at[k] + n * b_step], over k.
typedef struct {
    double *out;
    const double *a, *b;
    const int64_t *out_at, *a_at; // of each row
    const int64_t *a_by, *b_at;   // of each term
    int64_t b_step;
    int64_t rows, columns, terms;
} Product;

// Two numbers are added and multiplied at once by any processor of 64 bits.  So
// many terms of b are copied to where they lie side by side.
enum { LANES = 2, ROWS = 4, COLUMNS = 2 * LANES, TERMS = 256 };
typedef double Lanes __attribute__((vector_size(LANES * sizeof(double))));

static Lanes load(const double *from) {
    Lanes v;
    memcpy(&v, from, sizeof v);
    return v;
}

static void store(double *to, Lanes v) {
    memcpy(to, &v, sizeof v);
}

// The columns of b beside each other, COLUMNS by COLUMNS, for some terms.
static void columns_copy(const Product *p, double *near, int64_t wide) {
    for (int64_t n = 0; n < wide; n += COLUMNS)
        for (int64_t k = 0; k < p->terms; k++)
            for (int64_t j = 0; j < COLUMNS; j++)
                *near++ = p->b[p->b_at[k] + (n + j) * p->b_step];
}

// Sums that have names are in registers.
static void rows_add(const Product *p, int64_t m, int64_t n,
                     const double *near) {
    double *out[ROWS];
    const double *a[ROWS];
    for (int i = 0; i < ROWS; i++) {
        out[i] = p->out + p->out_at[m + i] + n;
        a[i] = p->a + p->a_at[m + i];
    }
    Lanes sum0 = load(out[0]), sum1 = load(out[1]);
    Lanes sum2 = load(out[2]), sum3 = load(out[3]);
    Lanes next0 = load(out[0] + LANES), next1 = load(out[1] + LANES);
    Lanes next2 = load(out[2] + LANES), next3 = load(out[3] + LANES);
    for (int64_t k = 0; k < p->terms; k++, near += COLUMNS) {
        int64_t by = p->a_by[k];
        Lanes b = load(near), next = load(near + LANES);
        sum0 += a[0][by] * b;
        sum1 += a[1][by] * b;
        sum2 += a[2][by] * b;
        sum3 += a[3][by] * b;
        next0 += a[0][by] * next;
        next1 += a[1][by] * next;
        next2 += a[2][by] * next;
        next3 += a[3][by] * next;
    }
    store(out[0], sum0), store(out[0] + LANES, next0);
    store(out[1], sum1), store(out[1] + LANES, next1);
    store(out[2], sum2), store(out[2] + LANES, next2);
    store(out[3], sum3), store(out[3] + LANES, next3);
}

static void element_add(const Product *p, int64_t m, int64_t n) {
    const double *a = p->a + p->a_at[m], *b = p->b + n * p->b_step;
    double sum = p->out[p->out_at[m] + n];
    for (int64_t k = 0; k < p->terms; k++)
        sum += a[p->a_by[k]] * b[p->b_at[k]];
    p->out[p->out_at[m] + n] = sum;
}

static void terms_add(const Product *p, double *near) {
    int64_t tall = p->rows / ROWS * ROWS;
    int64_t wide = tall > 0 ? p->columns / COLUMNS * COLUMNS : 0;
    columns_copy(p, near, wide);
    for (int64_t m = 0; m < tall; m += ROWS)
        for (int64_t n = 0; n < wide; n += COLUMNS)
            rows_add(p, m, n, near + n * p->terms);
    for (int64_t m = 0; m < p->rows; m++)
        for (int64_t n = m < tall ? wide : 0; n < p->columns; n++)
            element_add(p, m, n);
}

static void product_add(const Product *all) {
    Arena *a = arena_new();
    double *near = ARENA_ARRAY(a, (size_t)all->columns * TERMS + 1, double);
    for (int64_t k = 0; k < all->terms; k += TERMS) {
        Product some = *all;
        some.a_by += k;
        some.b_at += k;
        some.terms = all->terms - k < TERMS ? all->terms - k : TERMS;
        terms_add(&some, near);
    }
    arena_free(a);
}

// 0, step, 2 * step ...
static int64_t *steps(Arena *a, int64_t count, int64_t step) {
    int64_t *at = ARENA_ARRAY(a, (size_t)count + 1, int64_t);
    for (int64_t i = 0; i < count; i++)
        at[i] = i * step;
    return at;
}

// ---- convolutions ----

typedef struct {
    const Node *n;
    double *const *value;
    double *out;
    Type x, w, y;   // of the convolution, also where this is a gradient
    int64_t groups; // of channels
    int64_t *x_at,
        *y_at; // pixels that belong together at an index in a window
    int64_t pixels;
    Arena *arena;
} Conv;

static bool is_inside(const Conv *c, int axis, int64_t o, int64_t tap,
                      int64_t *at) {
    *at = o * node_ints(c->n, ATTR_stride, axis, 1) +
          tap * node_ints(c->n, ATTR_dilation, axis, 1) -
          node_ints(c->n, ATTR_pad, 2 * axis, 0);
    return *at >= 0 && *at < c->x.dim[1 + axis];
}

static void row_pair(Conv *c, int64_t n, int64_t oh, int64_t h, int64_t s) {
    for (int64_t ow = 0, v; ow < c->y.dim[2]; ow++) {
        if (!is_inside(c, 1, ow, s, &v))
            continue;
        c->x_at[c->pixels] =
            ((n * c->x.dim[1] + h) * c->x.dim[2] + v) * c->x.dim[3];
        c->y_at[c->pixels++] =
            ((n * c->y.dim[1] + oh) * c->y.dim[2] + ow) * c->y.dim[3];
    }
}

static void pixels_pair(Conv *c, int64_t r, int64_t s) {
    c->pixels = 0;
    for (int64_t n = 0; n < c->y.dim[0]; n++)
        for (int64_t oh = 0, h; oh < c->y.dim[1]; oh++)
            if (is_inside(c, 0, oh, r, &h))
                row_pair(c, n, oh, h, s);
}

// Where tap r, s of the window is in the filters of a group.
static int64_t filter_at(const Conv *c, int64_t group, int64_t r, int64_t s) {
    const int64_t *w = c->w.dim;
    int64_t first = group * (w[0] / c->groups);
    return ((first * w[1] + r) * w[2] + s) * w[3];
}

// From one filter to the next.
static int64_t filter_step(const Conv *c) {
    return c->w.dim[1] * c->w.dim[2] * c->w.dim[3];
}

// Adds the products of that tap for a group of K and C channels: y += x w.
static Product value_product(const Conv *c, Arena *a, int64_t group,
                             int64_t filter, int64_t K, int64_t C) {
    return (Product){.out = c->out + group * K,
                     .a = c->value[c->n->arg[0]] + group * C,
                     .b = c->value[c->n->arg[1]] + filter,
                     .out_at = c->y_at,
                     .a_at = c->x_at,
                     .a_by = steps(a, C, 1),
                     .b_at = steps(a, C, 1),
                     .b_step = filter_step(c),
                     .rows = c->pixels,
                     .columns = K,
                     .terms = C};
}

// dx += dy w.
static Product input_product(const Conv *c, Arena *a, int64_t group,
                             int64_t filter, int64_t K, int64_t C) {
    return (Product){.out = c->out + group * C,
                     .a = c->value[c->n->arg[0]] + group * K,
                     .b = c->value[c->n->arg[1]] + filter,
                     .out_at = c->x_at,
                     .a_at = c->y_at,
                     .a_by = steps(a, K, 1),
                     .b_at = steps(a, K, filter_step(c)),
                     .b_step = 1,
                     .rows = c->pixels,
                     .columns = C,
                     .terms = K};
}

// dw += dy x.
static Product weight_product(const Conv *c, Arena *a, int64_t group,
                              int64_t filter, int64_t K, int64_t C) {
    return (Product){.out = c->out + filter,
                     .a = c->value[c->n->arg[0]] + group * K,
                     .b = c->value[c->n->arg[1]] + group * C,
                     .out_at = steps(a, K, filter_step(c)),
                     .a_at = steps(a, K, 1),
                     .a_by = c->y_at,
                     .b_at = c->x_at,
                     .b_step = 1,
                     .rows = K,
                     .columns = C,
                     .terms = c->pixels};
}

static void tap_add(const Conv *c, int64_t r, int64_t s) {
    int64_t K = c->w.dim[0] / c->groups, C = c->w.dim[3];
    for (int64_t group = 0; group < c->groups; group++) {
        int64_t at = filter_at(c, group, r, s);
        Arena *a = arena_new();
        Product p = c->n->op == OP_conv ? value_product(c, a, group, at, K, C)
                    : c->n->op == OP_conv_grad_input
                        ? input_product(c, a, group, at, K, C)
                        : weight_product(c, a, group, at, K, C);
        product_add(&p);
        arena_free(a);
    }
}

static void conv_add(Conv *c) {
    int64_t most = c->y.dim[0] * c->y.dim[1] * c->y.dim[2];
    c->x_at = ARENA_ARRAY(c->arena, (size_t)most + 1, int64_t);
    c->y_at = ARENA_ARRAY(c->arena, (size_t)most + 1, int64_t);
    for (int64_t r = 0; r < c->w.dim[1]; r++)
        for (int64_t s = 0; s < c->w.dim[2]; s++) {
            pixels_pair(c, r, s);
            tap_add(c, r, s);
        }
}

void conv_eval(const Graph *g, const Node *n, double *const *value,
               double *out) {
    Type first = *g->node[n->arg[0]].type, second = *g->node[n->arg[1]].type;
    Conv c = {.n = n,
              .value = value,
              .out = out,
              .groups = node_int(n, ATTR_groups, 1),
              .arena = arena_new()};
    c.x = n->op == OP_conv              ? first
          : n->op == OP_conv_grad_input ? *n->type
                                        : second;
    c.w = n->op == OP_conv_grad_weight ? *n->type : second;
    c.y = n->op == OP_conv ? *n->type : first;
    conv_add(&c);
    arena_free(c.arena);
}

// ---- products of matrices ----

void matmul_eval(const Graph *g, const Node *n, double *const *value,
                 double *out) {
    Type a = *g->node[n->arg[0]].type, b = *g->node[n->arg[1]].type,
         t = *n->type;
    bool ta = node_int(n, ATTR_ta, 0), tb = node_int(n, ATTR_tb, 0);
    int64_t rows = t.dim[t.rank - 2], columns = t.dim[t.rank - 1];
    int64_t terms = a.dim[a.rank - (ta ? 2 : 1)], batch = 1;
    for (int i = 0; i < t.rank - 2; i++)
        batch *= t.dim[i];
    Arena *scratch = arena_new();
    Product p = {.out_at = steps(scratch, rows, columns),
                 .a_at = steps(scratch, rows, ta ? 1 : terms),
                 .a_by = steps(scratch, terms, ta ? rows : 1),
                 .b_at = steps(scratch, terms, tb ? 1 : columns),
                 .b_step = tb ? terms : 1,
                 .rows = rows,
                 .columns = columns,
                 .terms = terms};
    for (int64_t i = 0; i < batch; i++) {
        p.out = out + i * rows * columns;
        p.a = value[n->arg[0]] + i * (type_count(&a) / batch);
        p.b = value[n->arg[1]] + i * (type_count(&b) / batch);
        product_add(&p);
    }
    arena_free(scratch);
}
