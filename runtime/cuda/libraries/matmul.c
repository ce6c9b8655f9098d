// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Matmuls: cuBLASLt's algorithms for each product, best first.
//
// The library's matrices are column-major.  A row-major matrix is its transpose
// in column-major order, and the transpose of a product is the product of the
// transposes in reverse order.

#include "runtime/cuda/libraries/libraries.h"

#include "runtime/library.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

typedef struct {
    uint64_t data[8];
} RtLtAlgorithm;

typedef struct {
    RtLtAlgorithm algorithm;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} RtLtCandidate;

enum {
#define LTN(name, value) LT_##name = value,
#include "runtime/cuda/libraries/cublaslt.def"
};

typedef struct {
#define LT(member, function, arguments) int(*member) arguments;
#include "runtime/cuda/libraries/cublaslt.def"
    size_t (*version)(void);
} Functions;

typedef enum { LEFT, RIGHT, RESULT, NUM_MATRICES } Matrix;
enum { MAX_CANDIDATES = 8 };

_Static_assert(sizeof(RtLtCandidate) == 96, "the library's default");

// A product and its algorithms.
typedef struct {
    void *product, *matrix[NUM_MATRICES];
    RtLtCandidate candidate[MAX_CANDIDATES];
    int candidates, chosen;
    RtWorkspaceSlot slot;
    float accumulate; // 1: adds to the result
} Product;

struct RtMatmuls {
    void *library, *handle;
    Functions lt;
    const RtPlan *plan;
    Product *product; // of each of the plan's calls
    CUstream stream[RT_NUM_STREAMS];
    uint64_t arena;
    RtWorkspace workspace;
};

static RtLibrary library_for(int gpu, int driver, const RtSymbol *symbol,
                             size_t count) {
    static const char *const files[] = {"libcublasLt.so.13",
                                        "libcublasLt.so.12", NULL};
    bool newest = rt_capability_cuda(gpu, driver) == 13;
    return (RtLibrary){.needed = "matrix products on a GPU need",
                       .files = newest ? files : files + 1,
                       .remedy = newest ? "install cuBLAS of CUDA 13 or 12"
                                        : "install cuBLAS of CUDA 12",
                       .status = EXIT_DEVICE,
                       .symbol = symbol,
                       .num_symbols = count};
}

void *rt_matmuls_library(int gpu, int driver, size_t (**version)(void),
                         RtError *e) {
    static const RtSymbol symbols[] = {{"cublasLtGetVersion", 0}};
    const RtLibrary library = library_for(gpu, driver, symbols, 1);
    return rt_library_open(&library, version, e);
}

static bool library_open(RtMatmuls *p, const RtGpu *gpu, RtError *e) {
    static const RtSymbol symbols[] = {
#define LT(member, function, arguments)                                        \
    {#function, offsetof(Functions, member)},
#include "runtime/cuda/libraries/cublaslt.def"
        {"cublasLtGetVersion", offsetof(Functions, version)},
    };
    const RtLibrary library =
        library_for(rt_gpu_capability(gpu), gpu->driver, symbols,
                    sizeof symbols / sizeof *symbols);
    p->library = rt_library_open(&library, &p->lt, e);
    if (p->library == NULL)
        return false;
    int status = p->lt.open(&p->handle);
    return status == 0 ||
           rt_fail(e, EXIT_DEVICE,
                   "cuBLASLt does not support this GPU (status %d)", status);
}

// ---- one product ----

static int lt_type(RtType type) {
    return type == RT_F16    ? LT_CUDA_R_16F
           : type == RT_BF16 ? LT_CUDA_R_16BF
                             : LT_CUDA_R_32F;
}

// A batch of row-major matrices of rows x columns.
static bool matrix_new(const Functions *lt, const RtCall *c, int rows,
                       int columns, void **matrix) {
    int32_t batch = (int32_t)c->batch;
    int64_t next = (int64_t)rows * columns;
    return lt->matrix_new(matrix, lt_type(c->type), (uint64_t)columns,
                          (uint64_t)rows, columns) == 0 &&
           lt->matrix_set(*matrix, LT_CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                          &batch, sizeof batch) == 0 &&
           lt->matrix_set(*matrix,
                          LT_CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &next,
                          sizeof next) == 0;
}

static bool transpose(const Functions *lt, void *product, int attribute,
                      bool transposed) {
    int32_t value = LT_CUBLAS_OP_T;
    return !transposed ||
           lt->product_set(product, attribute, &value, sizeof value) == 0;
}

static bool describe(const Functions *lt, const RtCall *c, Product *p) {
    return lt->product_new(&p->product, LT_CUBLAS_COMPUTE_32F, LT_CUDA_R_32F) ==
               0 &&
           transpose(lt, p->product, LT_CUBLASLT_MATMUL_DESC_TRANSA, c->tb) &&
           transpose(lt, p->product, LT_CUBLASLT_MATMUL_DESC_TRANSB, c->ta) &&
           matrix_new(lt, c, c->tb ? c->k : c->c, c->tb ? c->c : c->k,
                      &p->matrix[LEFT]) &&
           matrix_new(lt, c, c->ta ? c->c : c->n, c->ta ? c->n : c->c,
                      &p->matrix[RIGHT]) &&
           matrix_new(lt, c, c->n, c->k, &p->matrix[RESULT]);
}

// Split sums are added in f32 and in a fixed order.
static bool preference_new(const Functions *lt, void **preference) {
    const uint64_t workspace = 32 << 20;
    const uint32_t reduction = LT_CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    return lt->preference_new(preference) == 0 &&
           lt->preference_set(*preference,
                              LT_CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                              &workspace, sizeof workspace) == 0 &&
           lt->preference_set(*preference,
                              LT_CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                              &reduction, sizeof reduction) == 0;
}

// Keeps the candidates that the library can run.
static bool find_candidates(const RtMatmuls *p, Product *product) {
    RtLtCandidate found[MAX_CANDIDATES] = {0};
    int count = 0;
    void *preference = NULL;
    void **m = product->matrix;
    bool good = preference_new(&p->lt, &preference) &&
                p->lt.heuristic(p->handle, product->product, m[LEFT], m[RIGHT],
                                m[RESULT], m[RESULT], preference,
                                MAX_CANDIDATES, found, &count) == 0;
    if (preference != NULL)
        p->lt.preference_free(preference);
    for (int i = 0; good && i < count; i++)
        if (found[i].state == 0)
            product->candidate[product->candidates++] = found[i];
    return product->candidates > 0;
}

// ---- all of a plan ----

static bool is_product(const RtCall *c) {
    return c->kind == RT_MATMUL && !rt_call_of_nothing(c);
}

bool rt_matmuls_needed(const RtPlan *plan) {
    RtCall as;
    for (int i = 0; i < plan->num_calls; i++)
        if (is_product(&plan->call[i]) &&
            !rt_convolution_of(&plan->call[i], &as))
            return true;
    return false;
}

static bool plan_products(RtMatmuls *p, RtError *e) {
    for (int i = 0; i < p->plan->num_calls; i++) {
        const RtCall *c = &p->plan->call[i];
        Product *product = &p->product[i];
        char text[256];
        product->accumulate = c->accumulate ? 1 : 0;
        if (is_product(c) &&
            (!describe(&p->lt, c, product) || !find_candidates(p, product)))
            return rt_fail(e, EXIT_DEVICE,
                           "%s: cuBLASLt has no algorithm for it",
                           rt_call_text(text, sizeof text, c));
    }
    return true;
}

RtMatmuls *rt_matmuls_new(const RtPlan *plan, const RtGpu *gpu,
                          const CUstream stream[RT_NUM_STREAMS], RtError *e) {
    RtMatmuls *p = calloc(1, sizeof *p);
    if (p != NULL) {
        p->plan = plan;
        memcpy(p->stream, stream, sizeof p->stream);
        p->product = calloc((size_t)plan->num_calls + 1, sizeof *p->product);
    }
    if (p == NULL || p->product == NULL)
        rt_fail(e, EXIT_MEMORY, "out of memory for plans of matrix products");
    else if (library_open(p, gpu, e) && plan_products(p, e))
        return p;
    rt_matmuls_free(p);
    return NULL;
}

void rt_matmuls_free(RtMatmuls *p) {
    if (p == NULL)
        return;
    for (int i = 0; p->product != NULL && i < p->plan->num_calls; i++) {
        for (int m = 0; m < NUM_MATRICES; m++)
            if (p->product[i].matrix[m] != NULL)
                p->lt.matrix_free(p->product[i].matrix[m]);
        if (p->product[i].product != NULL)
            p->lt.product_free(p->product[i].product);
    }
    if (p->handle != NULL)
        p->lt.close(p->handle);
    rt_library_close(p->library);
    free(p->product);
    free(p);
}

size_t rt_matmuls_version(const RtMatmuls *p) {
    return p->lt.version();
}

// ---- algorithms ----

int rt_matmuls_candidates(const RtMatmuls *p, int call) {
    return p->product[call].candidates;
}

void rt_matmuls_choose(RtMatmuls *p, int call, int candidate) {
    const RtCall *calls = p->plan->call;
    for (int i = 0; i < p->plan->num_calls; i++)
        if (p->product[i].candidates > candidate &&
            rt_call_same(&calls[i], &calls[call]))
            p->product[i].chosen = candidate;
}

uint64_t rt_matmuls_digest(const RtMatmuls *p, int call, int candidate) {
    const RtLtAlgorithm *a = &p->product[call].candidate[candidate].algorithm;
    return XXH3_64bits(a->data, sizeof a->data) >> 2;
}

static bool match(RtMatmuls *p, const RtChosenAlgorithm *t) {
    if (t->candidate >= p->product[t->call].candidates ||
        rt_matmuls_digest(p, t->call, t->candidate) != t->digest)
        return false;
    rt_matmuls_choose(p, t->call, t->candidate);
    return true;
}

bool rt_matmuls_as_chosen(RtMatmuls *p, const RtChosen *t) {
    bool all = true;
    for (int i = 0; i < t->num_algorithms; i++)
        all &= match(p, &t->algorithm[i]);
    return all;
}

static const RtLtCandidate *chosen_of(const Product *q) {
    return &q->candidate[q->chosen];
}

// ---- running ----

void rt_matmuls_size(RtMatmuls *p, const bool *forked, RtWorkspaceSize *size) {
    for (int i = 0; i < p->plan->num_calls; i++)
        p->product[i].slot = rt_workspace_add(
            size, (int64_t)chosen_of(&p->product[i])->workspace,
            forked[i] ? RT_SIDE_STREAM : RT_MAIN_STREAM);
}

void rt_matmuls_bind(RtMatmuls *p, uint64_t arena, const RtWorkspace *w) {
    p->arena = arena;
    p->workspace = *w;
}

bool rt_matmuls_fall_back(RtMatmuls *p, int call) {
    const Product *q = &p->product[call];
    for (int i = q->chosen + 1; i < q->candidates; i++)
        if (q->candidate[i].workspace <=
            rt_workspace_room(&p->workspace, q->slot)) {
            rt_matmuls_choose(p, call, i);
            return true;
        }
    return false;
}

// A device address as the library takes it.
static void *pointer(uint64_t from, size_t at) {
    return (void *)(uintptr_t)(from + at);
}

bool rt_matmuls_run(const RtMatmuls *p, int call, RtStream on, size_t a,
                    size_t b, size_t out, RtError *e) {
    const Product *q = &p->product[call];
    const float one = 1;
    void *result = pointer(p->arena, out);
    char text[256];
    int status = p->lt.run(
        p->handle, q->product, &one, pointer(p->arena, b), q->matrix[LEFT],
        pointer(p->arena, a), q->matrix[RIGHT], &q->accumulate, result,
        q->matrix[RESULT], result, q->matrix[RESULT], &chosen_of(q)->algorithm,
        pointer(
            rt_workspace_at(&p->workspace, q->slot, chosen_of(q)->workspace),
            0),
        chosen_of(q)->workspace, p->stream[on]);
    return status == 0 ||
           rt_fail(e, EXIT_DEVICE, "%s: cuBLASLt cannot run it (status %d)",
                   rt_call_text(text, sizeof text, &p->plan->call[call]),
                   status);
}
