// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Factors of matrices: their definitions, for matrices of a test's size.
//
// Eigenvectors come from Jacobi's method (1846), which turns the largest
// element off the diagonal to zero until all are; orthonormal columns from
// Gram and Schmidt's, each projection done twice so that rounding does not add
// up.

#include "ir/factor.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

// ---- eigenvectors ----

// The largest element above the diagonal of s, as row and column.
static double find_pivot(const double *s, int64_t n, int64_t *p, int64_t *q) {
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i + 1; j < n; j++)
            if (fabs(s[i * n + j]) > most) {
                most = fabs(s[i * n + j]);
                *p = i;
                *q = j;
            }
    return most;
}

// Turns elements a and b of a vector by the angle of cosine c and sine s.
static void turn(double *a, double *b, double c, double s) {
    double x = *a, y = *b;
    *a = c * x - s * y;
    *b = s * x + c * y;
}

// Turns axes p and q of s so that s[p,q] becomes 0, and rows p and q of v with
// them.
static void rotate(double *s, double *v, int64_t n, int64_t p, int64_t q) {
    double ratio = (s[q * n + q] - s[p * n + p]) / (2 * s[p * n + q]);
    double t = copysign(1, ratio) / (fabs(ratio) + sqrt(ratio * ratio + 1));
    double cosine = 1 / sqrt(t * t + 1), sine = t * cosine;
    for (int64_t i = 0; i < n; i++)
        turn(&s[i * n + p], &s[i * n + q], cosine, sine);
    for (int64_t i = 0; i < n; i++)
        turn(&s[p * n + i], &s[q * n + i], cosine, sine);
    for (int64_t i = 0; i < n; i++)
        turn(&v[p * n + i], &v[q * n + i], cosine, sine);
    s[p * n + q] = s[q * n + p] = 0;
}

static double largest_of(const double *row, int64_t n) {
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        if (fabs(row[i]) > fabs(most))
            most = row[i];
    return most;
}

// Rows of v in the order of their values s[i,i], the largest first.
static void sort_rows(const double *s, const double *v, int64_t n, double *out,
                      bool *taken) {
    for (int64_t k = 0; k < n; k++) {
        int64_t best = -1;
        for (int64_t i = 0; i < n; i++)
            if (!taken[i] && (best < 0 || s[i * n + i] > s[best * n + best]))
                best = i;
        taken[best] = true;
        out[k] = s[best * n + best];
        double sign = largest_of(v + best * n, n) < 0 ? -1 : 1;
        for (int64_t i = 0; i < n; i++)
            out[(k + 1) * n + i] = sign * v[best * n + i];
    }
}

void factor_eigh(const double *a, int64_t n, double *out, Arena *scratch) {
    enum { MAX_TURNS = 100 }; // of each element; a handful is usual
    size_t count = (size_t)(n * n) + 1;
    double *s = ARENA_ARRAY(scratch, count, double);
    double *v = ARENA_ARRAY(scratch, count, double);
    double size = 0;
    int64_t p = 0, q = 0;
    for (int64_t i = 0; i < n; i++) {
        v[i * n + i] = 1;
        for (int64_t j = i; j < n; j++) {
            s[i * n + j] = s[j * n + i] = a[i * n + j];
            size += fabs(a[i * n + j]);
        }
    }
    for (int64_t turns = 0; turns < MAX_TURNS * n * n; turns++) {
        if (!(find_pivot(s, n, &p, &q) > 1e-18 * size))
            break;
        rotate(s, v, n, p, q);
    }
    sort_rows(s, v, n, out, ARENA_ARRAY(scratch, (size_t)n + 1, bool));
}

// ---- orthonormal columns ----

// `count` numbers, each `step` after the one before.
typedef struct {
    double *at;
    int64_t count, step;
} Vector;

static Vector vector_of(double *out, int64_t m, int64_t n, int64_t i) {
    return m < n ? (Vector){out + i * n, n, 1} : (Vector){out + i, m, n};
}

static double dot(Vector a, Vector b) {
    double sum = 0;
    for (int64_t i = 0; i < a.count; i++)
        sum += a.at[i * a.step] * b.at[i * b.step];
    return sum;
}

// a += by * b.
static void add_scaled(Vector a, double by, Vector b) {
    for (int64_t i = 0; i < a.count; i++)
        a.at[i * a.step] += by * b.at[i * b.step];
}

void factor_orthogonal(const double *a, int64_t m, int64_t n, double *out) {
    int64_t vectors = m < n ? m : n;
    if (m * n > 0)
        memcpy(out, a, (size_t)(m * n) * sizeof *out);
    for (int64_t i = 0; i < vectors; i++) {
        Vector v = vector_of(out, m, n, i);
        for (int twice = 0; twice < 2; twice++)
            for (int64_t j = 0; j < i; j++) {
                Vector u = vector_of(out, m, n, j);
                add_scaled(v, -dot(v, u), u);
            }
        add_scaled(v, 1 / sqrt(dot(v, v)) - 1, v);
    }
}
