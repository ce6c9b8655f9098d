// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Factors of a matrix, on the host in double, for initial values.
//
// Eigenvectors by Jacobi's method, cyclic by rows (Golub and Van Loan, "Matrix
// Computations", 8.5); orthonormal vectors by Householder's reflections (5.2).
// One thread suffices, as this runs once.

#include "runtime/host/host.h"

#include <math.h>
#include <string.h>

size_t rt_factor_bytes(const RtCall *c) {
    size_t n = (size_t)c->n, k = (size_t)c->k;
    return (2 * n * k + n + k) * sizeof(double);
}

// ---- eigenvectors ----

// Rotates elements a and b by the angle of this cosine and sine.
static void rotate_pair(double *a, double *b, double cosine, double sine) {
    double x = *a, y = *b;
    *a = cosine * x - sine * y;
    *b = sine * x + cosine * y;
}

// Rotates axes p < q of the symmetric s so that s[p,q] becomes 0, and the rows
// of v with them.
static void rotate_axes(double *s, double *v, int n, int p, int q) {
    double *sp = s + (size_t)p * n, *sq = s + (size_t)q * n;
    double *vp = v + (size_t)p * n, *vq = v + (size_t)q * n;
    double ratio = (sq[q] - sp[p]) / (2 * sp[q]);
    double tangent = copysign(1, ratio) / (fabs(ratio) + hypot(ratio, 1));
    double cosine = 1 / hypot(tangent, 1), sine = tangent * cosine;
    double change = tangent * sp[q];
    sp[p] -= change;
    sq[q] += change;
    sp[q] = sq[p] = 0;
    for (int i = 0; i < n; i++) {
        rotate_pair(&vp[i], &vq[i], cosine, sine);
        if (i == p || i == q)
            continue;
        rotate_pair(&sp[i], &sq[i], cosine, sine);
        s[(size_t)i * n + p] = sp[i];
        s[(size_t)i * n + q] = sq[i];
    }
}

// The sum of the squares above the diagonal.
static double squares_above(const double *s, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++)
        for (int j = i + 1; j < n; j++)
            sum += s[(size_t)i * n + j] * s[(size_t)i * n + j];
    return sum;
}

static void start(const float *a, int n, double *s, double *v) {
    memset(v, 0, (size_t)n * (size_t)n * sizeof *v);
    for (int i = 0; i < n; i++) {
        v[(size_t)i * n + i] = 1;
        for (int j = i; j < n; j++)
            s[(size_t)i * n + j] = s[(size_t)j * n + i] =
                (double)a[(size_t)i * n + j];
    }
}

static void diagonalise(double *s, double *v, int n) {
    enum { MAX_SWEEPS = 50 }; // six to ten are usual
    double all = 2 * squares_above(s, n);
    for (int i = 0; i < n; i++)
        all += s[(size_t)i * n + i] * s[(size_t)i * n + i];
    for (int sweep = 0; sweep < MAX_SWEEPS; sweep++) {
        if (!(squares_above(s, n) > 1e-32 * all))
            return;
        for (int p = 0; p < n; p++)
            for (int q = p + 1; q < n; q++)
                if (s[(size_t)p * n + q] != 0)
                    rotate_axes(s, v, n, p, q);
    }
}

// The row with the largest diagonal value that is not used, or -1.
static int find_largest(const double *s, int n, const double *used) {
    int best = -1;
    for (int i = 0; i < n; i++)
        if (used[i] == 0 &&
            (best < 0 || s[(size_t)i * n + i] > s[(size_t)best * n + best]))
            best = i;
    return best;
}

// The sign that makes the largest element positive.
static double sign_of(const double *v, int n) {
    double most = 0;
    for (int i = 0; i < n; i++)
        if (fabs(v[i]) > fabs(most))
            most = v[i];
    return most < 0 ? -1 : 1;
}

static void eigh(const float *a, int n, float *out, double *work) {
    double *s = work, *v = s + (size_t)n * (size_t)n;
    double *used = v + (size_t)n * (size_t)n;
    start(a, n, s, v);
    diagonalise(s, v, n);
    memset(used, 0, (size_t)n * sizeof *used);
    for (int k = 0; k < n; k++) {
        int i = find_largest(s, n, used);
        const double *vector = v + (size_t)i * n;
        double sign = sign_of(vector, n);
        used[i] = 1;
        out[k] = (float)s[(size_t)i * n + i];
        for (int j = 0; j < n; j++)
            out[(size_t)(k + 1) * n + j] = (float)(sign * vector[j]);
    }
}

// ---- orthonormal vectors ----

// Reflects x at the unit vector v, whose first `from` elements are 0.
static void reflect(const double *v, double *x, int from, int length) {
    double along = 0;
    for (int i = from; i < length; i++)
        along += v[i] * x[i];
    for (int i = from; i < length; i++)
        x[i] -= 2 * along * v[i];
}

// Turns x into the unit vector that reflects it onto axis `from`; returns its
// coordinate there.
static double make_reflector(double *x, int from, int length) {
    double square = 0;
    for (int i = from; i < length; i++)
        square += x[i] * x[i];
    double onto = x[from] < 0 ? sqrt(square) : -sqrt(square);
    square += onto * onto - 2 * onto * x[from];
    x[from] -= onto;
    for (int i = from; i < length && square > 0; i++)
        x[i] /= sqrt(square);
    return onto;
}

// The columns of a, or its rows if there are fewer, are `count` vectors.
static void orthogonal(const float *a, int m, int n, float *out, double *work) {
    bool rows = m < n;
    int count = rows ? m : n, length = rows ? n : m;
    double *v = work, *unit = v + (size_t)m * (size_t)n;
    double *onto = unit + (size_t)m * (size_t)n;
    for (int i = 0; i < count; i++)
        for (int j = 0; j < length; j++)
            v[(size_t)i * length + j] =
                (double)a[rows ? (size_t)i * n + j : (size_t)j * n + i];
    for (int i = 0; i < count; i++) {
        onto[i] = make_reflector(v + (size_t)i * length, i, length);
        for (int k = i + 1; k < count; k++)
            reflect(v + (size_t)i * length, v + (size_t)k * length, i, length);
    }
    for (int k = 0; k < count; k++) {
        double *x = unit + (size_t)k * length;
        memset(x, 0, (size_t)length * sizeof *x);
        x[k] = onto[k] < 0 ? -1 : 1;
        for (int i = k; i >= 0; i--)
            reflect(v + (size_t)i * length, x, i, length);
        for (int j = 0; j < length; j++)
            out[rows ? (size_t)k * n + j : (size_t)j * n + k] = (float)x[j];
    }
}

void rt_factor(const RtCall *c, const float *a, float *out, void *work) {
    if (c->kind == RT_EIGH)
        eigh(a, c->n, out, work);
    else
        orthogonal(a, c->n, c->k, out, work);
}
