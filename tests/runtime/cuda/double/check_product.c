// The double of cuBLASLt: products against sums in double, and invalid calls.
#include "tests/runtime/cuda/double/check_double.h"

#include <cublasLt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { M = 5, N = 4, K = 7, BATCH = 3 };

typedef struct {
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t layout[3];
    CUdeviceptr at[3], workspace;
    float value[3][M * N * K * BATCH];
    CUstream stream;
} Case;

static uint64_t rows_of(bool transposed, int rows, int columns) {
    return (uint64_t)(transposed ? columns : rows);
}

static void matrix_make(Case *c, int i, bool transposed, int rows,
                        int columns) {
    const int32_t batch = BATCH;
    const int64_t offset = rows * columns;
    const uint64_t high = rows_of(transposed, rows, columns);
    const size_t bytes = (size_t)(offset * BATCH) * sizeof(float);
    for (int k = 0; k < offset * BATCH; k++)
        c->value[i][k] = (float)sin(k * 3 + i);
    c->at[i] = double_memory(bytes);
    GOOD(cuMemcpyHtoDAsync_v2(c->at[i], c->value[i], bytes, c->stream));
    GOOD(cublasLtMatrixLayoutCreate(&c->layout[i], CUDA_R_32F, high,
                                    (uint64_t)offset / high, (int64_t)high));
    GOOD(cublasLtMatrixLayoutSetAttribute(c->layout[i],
                                          CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                          &batch, sizeof batch));
    GOOD(cublasLtMatrixLayoutSetAttribute(
        c->layout[i], CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &offset,
        sizeof offset));
}

static void case_open(Case *c, bool ta, bool tb) {
    const int32_t transpose = CUBLAS_OP_T;
    double_open("2");
    c->stream = double_stream();
    c->workspace = double_memory(1 << 20);
    GOOD(cublasLtCreate(&c->handle));
    GOOD(cublasLtMatmulDescCreate(&c->product, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    if (ta)
        GOOD(cublasLtMatmulDescSetAttribute(c->product,
                                            CUBLASLT_MATMUL_DESC_TRANSA,
                                            &transpose, sizeof transpose));
    if (tb)
        GOOD(cublasLtMatmulDescSetAttribute(c->product,
                                            CUBLASLT_MATMUL_DESC_TRANSB,
                                            &transpose, sizeof transpose));
    matrix_make(c, 0, ta, M, K);
    matrix_make(c, 1, tb, K, N);
    matrix_make(c, 2, false, M, N);
}

// The offers for a mask of schemes and a workspace.
static int offers(Case *c, uint32_t schemes, uint64_t workspace,
                  cublasLtMatmulHeuristicResult_t offer[8]) {
    int count = 0;
    cublasLtMatmulPreference_t wish;
    GOOD(cublasLtMatmulPreferenceCreate(&wish));
    GOOD(cublasLtMatmulPreferenceSetAttribute(
        wish, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes,
        sizeof schemes));
    GOOD(cublasLtMatmulPreferenceSetAttribute(
        wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
        sizeof workspace));
    GOOD(cublasLtMatmulAlgoGetHeuristic(c->handle, c->product, c->layout[0],
                                        c->layout[1], c->layout[2],
                                        c->layout[2], wish, 8, offer, &count));
    GOOD(cublasLtMatmulPreferenceDestroy(wish));
    return count;
}

static cublasStatus_t multiply(Case *c, float beta, size_t workspace) {
    const float alpha = 2;
    cublasLtMatmulHeuristicResult_t offer[8];
    int count =
        offers(c, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, 1 << 20, offer);
    ck_assert_int_eq(count, 3);
    ck_assert_int_ne(offer[0].state, CUBLAS_STATUS_SUCCESS);
    ck_assert_uint_eq(offer[1].workspaceSize, 1 << 20);
    return cublasLtMatmul(
        c->handle, c->product, &alpha, (void *)(uintptr_t)c->at[0],
        c->layout[0], (void *)(uintptr_t)c->at[1], c->layout[1], &beta,
        (void *)(uintptr_t)c->at[2], c->layout[2], (void *)(uintptr_t)c->at[2],
        c->layout[2], &offer[1].algo, (void *)(uintptr_t)c->workspace,
        workspace, (cudaStream_t)c->stream);
}

START_TEST(products_are_right) {
    Case c;
    float got[M * N * BATCH];
    const bool ta = _i & 1, tb = _i & 2;
    const float beta = _i & 4 ? 1 : 0;
    case_open(&c, ta, tb);
    GOOD(multiply(&c, beta, 1 << 20));
    GOOD(cuMemcpyDtoHAsync_v2(got, c.at[2], sizeof got, c.stream));
    for (int i = 0; i < M * N * BATCH; i++) {
        const int m = i % M, n = i / M % N, b = i / M / N;
        const float *x = c.value[0] + b * M * K, *y = c.value[1] + b * K * N;
        double sum = (double)(beta * c.value[2][i]);
        for (int k = 0; k < K; k++)
            sum += 2.0 * (double)x[ta ? m * K + k : k * M + m] *
                   (double)y[tb ? k * N + n : n * K + k];
        ck_assert_double_eq_tol((double)got[i], sum, 1e-5);
    }
}
END_TEST

START_TEST(a_workspace_is_checked) {
    Case c;
    case_open(&c, false, false);
    ck_assert_int_eq(multiply(&c, 0, 100), CUBLAS_STATUS_INVALID_VALUE);
    c.workspace += 128; // as the library's manual has it, to 256
    ck_assert_int_eq(multiply(&c, 0, 1 << 20), CUBLAS_STATUS_INVALID_VALUE);
}
END_TEST

START_TEST(a_product_is_captured_once_it_has_run) {
    Case c;
    CUgraph graph;
    case_open(&c, false, false);
    if (_i > 0)
        GOOD(multiply(&c, 0, 1 << 20));
    GOOD(
        cuStreamBeginCapture_v2(c.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    ck_assert_int_eq(multiply(&c, 0, 1 << 20),
                     _i > 0 ? CUBLAS_STATUS_SUCCESS
                            : CUBLAS_STATUS_EXECUTION_FAILED);
    ck_assert_int_eq(cuStreamEndCapture(c.stream, &graph),
                     _i > 0 ? CUDA_SUCCESS
                            : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}
END_TEST

START_TEST(schemes_that_vary_can_be_excluded) {
    Case c;
    cublasLtMatmulHeuristicResult_t offer[8];
    case_open(&c, false, false);
    ck_assert_int_eq(offers(&c, CUBLASLT_REDUCTION_SCHEME_MASK, 1 << 20, offer),
                     4);
    ck_assert_int_eq(offers(&c, CUBLASLT_REDUCTION_SCHEME_NONE, 0, offer), 2);
}
END_TEST

Suite *product_suite(void) {
    Suite *s = suite_create("product");
    TCase *c = tcase_create("product");
    tcase_add_loop_test(c, products_are_right, 0, 8);
    tcase_add_test(c, a_workspace_is_checked);
    tcase_add_loop_test(c, a_product_is_captured_once_it_has_run, 0, 2);
    tcase_add_test(c, schemes_that_vary_can_be_excluded);
    suite_add_tcase(s, c);
    return s;
}
