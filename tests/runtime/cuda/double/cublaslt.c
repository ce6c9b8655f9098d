// cuBLASLt, of CUDA 13 or, with DOUBLE_CUDA=12, of that: products of matrices
// in plain loops, by columns as there.  The first candidates of the heuristics
// fail or vary the order of their sums.
#include "tests/runtime/cuda/double/double.h"

#include <cublasLt.h>
#include <stdlib.h>
#include <string.h>

// The content of the library's opaque structures.
typedef struct {
    cublasComputeType_t compute;
    int32_t transpose[2]; // of A and B
    uint32_t has_run;     // schemes, as bits, whose code is loaded
} Product;

typedef struct {
    cudaDataType type;
    uint64_t rows, columns;
    int64_t step, offset; // between columns, and between matrices of a batch
    int32_t batch;
} Matrix;

typedef struct {
    uint64_t workspace;
    uint32_t schemes;
    uint32_t alignment;
} Wish;

typedef struct {
    uint32_t magic, scheme;
    uint64_t workspace, alignment;
    uint32_t tf32;
    float seconds;
} Algorithm;

struct cublasLtContext {
    int unused;
};

enum { MAGIC = 0x5d0b1e, WORKSPACE_ALIGNMENT = 256 };

typedef struct {
    Work work;
    Product product;
    Matrix matrix[4]; // A, B, C and D
    char *at[4];
    Algorithm algorithm;
    float alpha, beta;
} Job;

#define LT_CALL(...) CALL(cublasStatus_t, __VA_ARGS__)

size_t cublasLtGetVersion(void) {
    return DOUBLE_CUDA == 12 ? 120900 : 130100;
}

const char *cublasLtGetStatusString(cublasStatus_t status) {
    return status == CUBLAS_STATUS_SUCCESS ? "CUBLAS_STATUS_SUCCESS"
                                           : "a status of the stand-in";
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *to) {
    LT_CALL("%d", DOUBLE_CUDA);
    if (driver_refuses() != CUDA_SUCCESS || capture_forbids() != CUDA_SUCCESS ||
        driver_version() / 1000 < DOUBLE_CUDA)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (DOUBLE_CUDA == 13 && device_architecture() < 75)
        return CUBLAS_STATUS_ARCH_MISMATCH;
    *to = take(sizeof **to);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
    LT_CALL("%p", (void *)handle);
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

// ---- descriptors ----

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *to,
                                        cublasComputeType_t compute,
                                        cudaDataType scale) {
    LT_CALL("compute=%d scale=%d", (int)compute, (int)scale);
    if (scale != CUDA_R_32F || (compute != CUBLAS_COMPUTE_32F &&
                                compute != CUBLAS_COMPUTE_32F_PEDANTIC &&
                                compute != CUBLAS_COMPUTE_32F_FAST_TF32))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    Product *p = take(sizeof *p);
    p->compute = compute;
    *to = (cublasLtMatmulDesc_t)(void *)p;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t of) {
    LT_CALL("%p", (void *)of);
    free(of);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t field_set(void *to, size_t size, const void *value,
                                size_t bytes) {
    if (value == NULL || bytes != size)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(to, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t of,
                               cublasLtMatmulDescAttributes_t name,
                               const void *value, size_t bytes) {
    LT_CALL("%p %d", (void *)of, (int)name);
    Product *p = (Product *)(void *)of;
    if (name != CUBLASLT_MATMUL_DESC_TRANSA &&
        name != CUBLASLT_MATMUL_DESC_TRANSB)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    return field_set(&p->transpose[name == CUBLASLT_MATMUL_DESC_TRANSB],
                     sizeof p->transpose[0], value, bytes);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *to,
                                          cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t step) {
    LT_CALL("type=%d %llux%llu step=%lld", (int)type, (unsigned long long)rows,
            (unsigned long long)columns, (long long)step);
    if (type != CUDA_R_32F && type != CUDA_R_16F && type != CUDA_R_16BF)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    Matrix *m = take(sizeof *m);
    *m = (Matrix){type, rows, columns, step, 0, 1};
    *to = (cublasLtMatrixLayout_t)(void *)m;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t of) {
    LT_CALL("%p", (void *)of);
    free(of);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t of,
                                 cublasLtMatrixLayoutAttribute_t name,
                                 const void *value, size_t bytes) {
    LT_CALL("%p %d", (void *)of, (int)name);
    Matrix *m = (Matrix *)(void *)of;
    switch (name) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
        return field_set(&m->batch, sizeof m->batch, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
        return field_set(&m->offset, sizeof m->offset, value, bytes);
    default:
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *to) {
    LT_CALL(" ");
    Wish *w = take(sizeof *w);
    *w = (Wish){0, CUBLASLT_REDUCTION_SCHEME_MASK, 256};
    *to = (cublasLtMatmulPreference_t)(void *)w;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t of) {
    LT_CALL("%p", (void *)of);
    free(of);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t of,
                                     cublasLtMatmulPreferenceAttributes_t name,
                                     const void *value, size_t bytes) {
    LT_CALL("%p %d", (void *)of, (int)name);
    Wish *w = (Wish *)(void *)of;
    switch (name) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
        return field_set(&w->workspace, sizeof w->workspace, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
        return field_set(&w->schemes, sizeof w->schemes, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
        return field_set(&w->alignment, sizeof w->alignment, value, bytes);
    default:
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
}

// ---- heuristics ----

static bool shapes_fit(const Product *p, const Matrix *const m[4]) {
    bool ta = p->transpose[0] != CUBLAS_OP_N;
    bool tb = p->transpose[1] != CUBLAS_OP_N;
    bool good = m[0]->type == m[1]->type && m[2]->type == m[3]->type;
    for (int i = 0; i < 4; i++)
        good = good && m[i]->batch == m[0]->batch && m[i]->batch > 0 &&
               m[i]->step >= (int64_t)m[i]->rows;
    for (int i = 2; i < 4; i++)
        good = good && m[i]->rows == (ta ? m[0]->columns : m[0]->rows) &&
               m[i]->columns == (tb ? m[1]->rows : m[1]->columns);
    return good && (ta ? m[0]->rows : m[0]->columns) ==
                       (tb ? m[1]->columns : m[1]->rows);
}

// Said to be best first: one that cannot be had, one that varies, then others,
// of which the last is the fastest by the stand-in's clock.
static const struct {
    uint32_t scheme;
    uint64_t workspace;
    cublasStatus_t state;
    double seconds;
} offers[] = {
    {CUBLASLT_REDUCTION_SCHEME_NONE, 0, CUBLAS_STATUS_NOT_SUPPORTED, 5e-6},
    {CUBLASLT_REDUCTION_SCHEME_INPLACE, 4096, CUBLAS_STATUS_SUCCESS, 5e-6},
    {CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, 1 << 20, CUBLAS_STATUS_SUCCESS,
     5e-6},
    {CUBLASLT_REDUCTION_SCHEME_NONE, 0, CUBLAS_STATUS_SUCCESS, 4e-6},
};

static int offer(const Product *p, const Wish *w, int most,
                 cublasLtMatmulHeuristicResult_t *result) {
    int count = 0;
    for (size_t i = 0; i < sizeof offers / sizeof offers[0]; i++) {
        if (count == most || offers[i].workspace > w->workspace ||
            (offers[i].scheme & ~w->schemes) != 0)
            continue;
        const Algorithm a = {MAGIC,
                             offers[i].scheme,
                             offers[i].workspace,
                             w->alignment,
                             p->compute == CUBLAS_COMPUTE_32F_FAST_TF32,
                             (float)offers[i].seconds};
        result[count] = (cublasLtMatmulHeuristicResult_t){
            .workspaceSize = offers[i].workspace, .state = offers[i].state};
        memcpy(&result[count++].algo, &a, sizeof a);
    }
    return count;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
    cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
    cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t wish, int most,
    cublasLtMatmulHeuristicResult_t *result, int *count) {
    LT_CALL("%p %p most=%d", (void *)handle, (void *)product, most);
    const Matrix *const m[4] = {(Matrix *)(void *)a, (Matrix *)(void *)b,
                                (Matrix *)(void *)c, (Matrix *)(void *)d};
    const Product *p = (Product *)(void *)product;
    *count = 0;
    if (handle == NULL || most < 1 || !shapes_fit(p, m))
        return CUBLAS_STATUS_INVALID_VALUE;
    *count = offer(p, (Wish *)(void *)wish, most, result);
    return *count > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

// ---- products ----

static Number number_of(const Matrix *m) {
    return m->type == CUDA_R_16F    ? NUMBER_F16
           : m->type == CUDA_R_16BF ? NUMBER_BF16
                                    : NUMBER_F32;
}

static size_t bytes_of(const Matrix *m) {
    int64_t last = (m->batch - 1) * m->offset +
                   ((int64_t)m->columns - 1) * m->step + (int64_t)m->rows;
    return (size_t)last * number_bytes(number_of(m));
}

// A matrix as f32, with the numbers of a row of A or a column of B side by
// side.
static float *lines(const Job *j, int which, int batch, bool by_column,
                    uint64_t count, uint64_t length) {
    const Matrix *m = &j->matrix[which];
    float *to = take(count * length * sizeof *to);
    const char *at =
        j->at[which] + (size_t)(batch * m->offset) * number_bytes(number_of(m));
    Number n = number_of(m) == NUMBER_F32 && j->algorithm.tf32 ? NUMBER_TF32
                                                               : number_of(m);
    for (uint64_t i = 0; i < count; i++)
        for (uint64_t k = 0; k < length; k++)
            to[i * length + k] = number_get(
                n, at,
                by_column ? i * (size_t)m->step + k : k * (size_t)m->step + i);
    return to;
}

static float line_product(const float *a, const float *b, uint64_t length) {
    float sum = 0;
    _Pragma("omp simd reduction(+ : sum)") for (uint64_t k = 0; k < length; k++)
        sum += a[k] * b[k];
    return sum;
}

static void matrix_run(const Job *j, int batch) {
    const Matrix *c = &j->matrix[2], *d = &j->matrix[3];
    bool ta = j->product.transpose[0] != CUBLAS_OP_N;
    bool tb = j->product.transpose[1] != CUBLAS_OP_N;
    uint64_t k = ta ? j->matrix[0].rows : j->matrix[0].columns;
    float *a = lines(j, 0, batch, ta, d->rows, k);
    float *b = lines(j, 1, batch, !tb, d->columns, k);
    for (uint64_t y = 0; y < d->columns; y++)
        for (uint64_t x = 0; x < d->rows; x++) {
            float sum = j->alpha * line_product(a + x * k, b + y * k, k);
            if (j->algorithm.scheme == CUBLASLT_REDUCTION_SCHEME_INPLACE)
                sum *= 1 + 0x1p-18f * (float)random_below(3);
            if (j->beta != 0)
                sum += j->beta * number_get(number_of(c), j->at[2],
                                            (size_t)(batch * c->offset) +
                                                y * (size_t)c->step + x);
            number_put(number_of(d), j->at[3],
                       (size_t)(batch * d->offset) + y * (size_t)d->step + x,
                       sum);
        }
    free(a);
    free(b);
}

static void job_run(Work *w) {
    const Job *j = (Job *)(void *)w;
    for (int i = 0; i < 4; i++)
        if (i != 2 || j->beta != 0)
            device_must_hold("a matrix", j->at[i], bytes_of(&j->matrix[i]));
    if (w->workspace_bytes > 0) {
        device_must_hold("a workspace", w->workspace, w->workspace_bytes);
        memset(w->workspace, 0xff, w->workspace_bytes);
    }
    for (int i = 0; i < j->matrix[3].batch; i++)
        matrix_run(j, i);
}

static cublasStatus_t job_check(const Job *j, size_t workspace) {
    const Matrix *const m[4] = {&j->matrix[0], &j->matrix[1], &j->matrix[2],
                                &j->matrix[3]};
    if (j->algorithm.magic != MAGIC || !shapes_fit(&j->product, m) ||
        (j->beta != 0 && j->at[2] == NULL) ||
        workspace < j->algorithm.workspace ||
        (j->algorithm.workspace > 0 && j->work.workspace == NULL))
        return CUBLAS_STATUS_INVALID_VALUE;
    for (int i = 0; i < 4; i++)
        if ((uintptr_t)j->at[i] % j->algorithm.alignment != 0)
            complain("a matrix at %p, which was said to be aligned to %llu",
                     (void *)j->at[i],
                     (unsigned long long)j->algorithm.alignment);
    if (j->algorithm.workspace > 0 &&
        (uintptr_t)j->work.workspace % WORKSPACE_ALIGNMENT != 0)
        return CUBLAS_STATUS_INVALID_VALUE;
    return CUBLAS_STATUS_SUCCESS;
}

// An algorithm's code is loaded when it first runs, which a capture does not
// allow.
static bool is_loaded(Product *p, const cublasLtMatmulAlgo_t *algorithm) {
    Algorithm a;
    memcpy(&a, algorithm, sizeof a);
    const uint32_t bit = 1u << (a.scheme & 31);
    if ((p->has_run & bit) == 0 &&
        (capture_forbids() != CUDA_SUCCESS || !code_take()))
        return false;
    p->has_run |= bit;
    return true;
}

cublasStatus_t cublasLtMatmul(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t product, const void *alpha,
    const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
    cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
    cublasLtMatrixLayout_t c_layout, void *d, cublasLtMatrixLayout_t d_layout,
    const cublasLtMatmulAlgo_t *algorithm, void *workspace, size_t bytes,
    cudaStream_t stream) {
    LT_CALL("%p a=%p b=%p c=%p d=%p workspace=%p bytes=%zu stream=%p",
            (void *)handle, a, b, c, d, workspace, bytes, (void *)stream);
    if (driver_refuses() != CUDA_SUCCESS)
        return CUBLAS_STATUS_EXECUTION_FAILED;
    if (handle == NULL || algorithm == NULL || !stream_known((CUstream)stream))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!is_loaded((Product *)(void *)product, algorithm))
        return CUBLAS_STATUS_EXECUTION_FAILED;
    Job *j = take(sizeof *j);
    *j = (Job){
        .work = {.users = 1,
                 .what = "a product of cuBLASLt",
                 .run = job_run,
                 .workspace = workspace},
        .product = *(Product *)(void *)product,
        .matrix = {*(Matrix *)(void *)a_layout, *(Matrix *)(void *)b_layout,
                   *(Matrix *)(void *)c_layout, *(Matrix *)(void *)d_layout},
        .at = {(char *)(uintptr_t)a, (char *)(uintptr_t)b, (char *)(uintptr_t)c,
               d},
        .alpha = *(const float *)alpha,
        .beta = *(const float *)beta};
    memcpy(&j->algorithm, algorithm, sizeof j->algorithm);
    j->work.seconds = (double)j->algorithm.seconds;
    j->work.workspace_bytes = j->algorithm.workspace;
    cublasStatus_t status = job_check(j, bytes);
    if (status != CUBLAS_STATUS_SUCCESS) {
        work_drop(&j->work);
        return status;
    }
    return stream_add((CUstream)stream, &j->work) == CUDA_SUCCESS
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_EXECUTION_FAILED;
}
