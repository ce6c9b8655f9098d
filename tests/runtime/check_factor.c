// Factors of a matrix, against their definitions.
#include "runtime/data/data.h"
#include "runtime/host/host.h"
#include "tests/runtime/suites.h"

#include <math.h>
#include <stdlib.h>

static const double tolerance = 1e-6;

static float *draw_all(size_t n) {
    float *v = malloc(n * sizeof *v);
    for (size_t i = 0; i < n; i++)
        v[i] = (float)((int)(rt_random(5, i) % 2001) - 1000) / 1000;
    return v;
}

static float *run(RtCallKind kind, int m, int n, const float *a) {
    RtCall c = {.kind = kind, .n = m, .k = n};
    void *work = malloc(rt_factor_bytes(&c));
    float *out = malloc(((size_t)m + 1) * (size_t)n * sizeof *out);
    rt_factor(&c, a, out, work);
    free(work);
    return out;
}

// The product of two vectors whose elements are `step` apart.
static double dot(const float *a, int a_step, const float *b, int b_step,
                  int count) {
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += (double)a[i * a_step] * (double)b[i * b_step];
    return sum;
}

static void check_near(double got, double want, const char *what) {
    ck_assert_msg(fabs(got - want) <= tolerance, "%s is %.9g, not %.9g", what,
                  got, want);
}

// ---- eigenvectors ----

static void check_eigh(const float *a, int n) {
    float *out = run(RT_EIGH, n, n, a), *v = out + n;
    double size = 0;
    for (int i = 0; i < n * n; i++)
        size = fmax(size, fabs((double)a[i]) * n);
    for (int k = 0; k < n; k++) {
        double most = 0;
        ck_assert(k == 0 || out[k] <= out[k - 1]);
        for (int i = 0; i < n; i++) {
            double image = dot(a + i * n, 1, v + k * n, 1, n);
            double want = (double)out[k] * (double)v[k * n + i];
            check_near((image - want) / (size + 1), 0, "A v - lambda v");
            check_near(dot(v + k * n, 1, v + i * n, 1, n), k == i, "v v'");
            if (fabs((double)v[k * n + i]) > fabs(most))
                most = (double)v[k * n + i];
        }
        ck_assert(most > 0);
    }
    free(out);
}

START_TEST(eigenvectors_of_symmetric_matrices) {
    static const int sizes[] = {1, 2, 3, 8, 27, 60};
    int n = sizes[_i];
    float *a = draw_all((size_t)n * (size_t)n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            a[i * n + j] = a[j * n + i];
    check_eigh(a, n);
    free(a);
}
END_TEST

START_TEST(eigenvectors_where_values_repeat) {
    static const float same[] = {2, 0, 0, 0, 2, 0, 0, 0, 2};
    static const float none[4] = {0};
    static const float pair[] = {1, 1, 1, 1};
    check_eigh(same, 3);
    check_eigh(none, 2);
    check_eigh(pair, 2);
}
END_TEST

START_TEST(eigenvalues_of_a_covariance_span_many_decades) {
    static const float a[] = {1e6F, 1, 1, 1e-2F};
    float *out = run(RT_EIGH, 2, 2, a);
    ck_assert_float_eq(out[0], 1e6F);
    check_near((double)out[1], 1e-2 - 1e-6, "the smaller value");
    free(out);
}
END_TEST

// ---- orthonormal columns and rows ----

// out' a, or a out' where out has orthonormal rows, must be triangular with a
// positive diagonal.
static void check_orthogonal(int m, int n, const float *a) {
    float *out = run(RT_ORTHOGONAL, m, n, a);
    bool rows = m < n;
    int count = rows ? m : n, length = rows ? n : m;
    int next = rows ? n : 1, step = rows ? 1 : n;
    for (int i = 0; i < count; i++)
        for (int j = 0; j < count; j++) {
            const float *u = out + i * next;
            double along = dot(u, step, a + j * next, step, length);
            check_near(dot(u, step, out + j * next, step, length), i == j,
                       "a product of two columns");
            if (j < i)
                check_near(along / (1 + length), 0, "below the diagonal");
            ck_assert(i != j || along > 0);
        }
    free(out);
}

START_TEST(columns_are_orthonormal) {
    static const int sizes[][2] = {{1, 1}, {5, 1},   {1, 5},  {4, 4},
                                   {9, 4}, {16, 27}, {64, 30}};
    int m = sizes[_i][0], n = sizes[_i][1];
    float *a = draw_all((size_t)m * (size_t)n);
    check_orthogonal(m, n, a);
    free(a);
}
END_TEST

Suite *factor_suite(void) {
    Suite *s = suite_create("factor");
    TCase *t = tcase_create("factor");
    tcase_add_loop_test(t, eigenvectors_of_symmetric_matrices, 0, 6);
    tcase_add_test(t, eigenvectors_where_values_repeat);
    tcase_add_test(t, eigenvalues_of_a_covariance_span_many_decades);
    tcase_add_loop_test(t, columns_are_orthonormal, 0, 7);
    suite_add_tcase(s, t);
    return s;
}
