// cuDNN's engines, as the heuristics offer them.  The first is not available,
// the second varies the order of its sums, others are less exact, or must be
// compiled, or need more memory.  The last varies too, and has more notes than
// there are kinds of notes.
#include "tests/runtime/cuda/double/dnn.h"

#include <string.h>

enum { NO, READY, COMPILED, VARIES };
enum { PLAIN = 40, FUSED = 60, FORMS = 80 }; // indices of families

#define TENSOR_CORE CUDNN_NUMERICAL_NOTE_TENSOR_CORE
#define VARYING CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC
#define REDUCED CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION
#define FOUR(note) note, note, note, note

static const Engine engines[] = {
    {PLAIN, {TENSOR_CORE, -1}, .broken = true, .speed = 1},
    {PLAIN + 1, {TENSOR_CORE, VARYING, -1}, .varies = true, .speed = 1},
    {PLAIN + 2, {TENSOR_CORE, REDUCED, -1}, .inexact = true, .speed = 1.1},
    {PLAIN + 3,
     {TENSOR_CORE, -1},
     .workspace = 4096,
     .speed = 1.4,
     .inexact = true},
    {PLAIN + 4,
     {TENSOR_CORE, -1},
     .workspace = 65536,
     .speed = 1.3,
     .compiled = true,
     .inexact = true},
    {PLAIN + 5,
     {TENSOR_CORE, -1},
     .workspace = 1 << 20,
     .speed = 1.2,
     .inexact = true},
    {PLAIN + 6, {-1}, .speed = 2},
    {PLAIN + 7,
     {FOUR(TENSOR_CORE), FOUR(TENSOR_CORE), FOUR(TENSOR_CORE),
      FOUR(TENSOR_CORE), VARYING, -1},
     .varies = true,
     .speed = 1},
    {FUSED, {TENSOR_CORE, -1}, .broken = true, .speed = 1},
    {FUSED + 1, {TENSOR_CORE, -1}, .workspace = 1 << 17, .speed = 1.5},
    {FUSED + 2, {TENSOR_CORE, -1}, .compiled = true, .speed = 1.6},
    {FUSED + 3, {TENSOR_CORE, VARYING, -1}, .varies = true, .speed = 1.5},
    {FORMS, {-1}, .speed = 1},
};
enum { NUM_ENGINES = sizeof engines / sizeof engines[0] };

const Engine *dnn_engine(int64_t index) {
    for (int i = 0; i < NUM_ENGINES; i++)
        if (engines[i].index == index)
            return &engines[i];
    return NULL;
}

// ---- which fusions there are ----

// The name of a graph in passes/plan/library.def; NULL if it has none.
static const char *fusion_of(const Descriptor *g) {
    bool stats = false, weights = false, prologue = false, conv = false;
    cudnnBackendDescriptorType_t kind = CUDNN_BACKEND_POINTWISE_DESCRIPTOR;
    for (int i = 0; i < dnn_count(g, CUDNN_ATTR_OPERATIONGRAPH_OPS); i++) {
        const Descriptor *op = dnn_link(g, CUDNN_ATTR_OPERATIONGRAPH_OPS, i);
        Convolution c;
        if (dnn_convolution(op, &c)) {
            conv = true;
            kind = op->kind;
        }
        stats |= op->kind == CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR;
        weights |=
            op->kind == CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR;
        prologue |=
            op->kind == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR && !conv;
    }
    if (kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR)
        return prologue ? "prologue_weight" : NULL;
    if (kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR)
        return weights ? "backward" : NULL;
    return prologue ? stats ? "prologue_statistics" : "prologue"
           : stats  ? "statistics"
                    : NULL;
}

static int fusion_support(const char *name) {
    static const struct {
        const char *name;
        int by_architecture[4];
    } fusion[] = {
#define FUSION(name, sm_80, sm_90, sm_100, sm_120, result)                     \
    {#name, {sm_80, sm_90, sm_100, sm_120}},
#include "passes/plan/library.def"
    };
    int sm = device_architecture();
    int column = sm >= 120 ? 3 : sm >= 100 ? 2 : sm >= 90 ? 1 : 0;
    for (size_t i = 0; i < sizeof fusion / sizeof fusion[0]; i++)
        if (sm >= 80 && name != NULL && strcmp(fusion[i].name, name) == 0)
            return fusion[i].by_architecture[column];
    return NO;
}

static bool is_eights(const Convolution *c) {
    Tensor x = dnn_tensor(c->x), w = dnn_tensor(c->w), y = dnn_tensor(c->y);
    return w.type == CUDNN_DATA_HALF && x.dim[1] % 8 == 0 &&
           y.dim[1] % 8 == 0 && w.dim[1] == x.dim[1];
}

// ---- offers ----

// A call alone wants one type for all that is stored.
static bool is_plain(const Convolution *c) {
    Tensor x = dnn_tensor(c->x), w = dnn_tensor(c->w), y = dnn_tensor(c->y);
    return x.type == w.type && w.type == y.type;
}

static int offer(const Engine **to, int count, int64_t index) {
    to[count] = dnn_engine(index);
    return count + 1;
}

static int offer_plain(cudnnBackendHeurMode_t mode, const Engine **to) {
    static const int best[] = {0, 1, 2, 3, 4, 5, 6, 7};
    static const int other[] = {5, 4, 3, 6};
    int count = 0;
    if (mode == CUDNN_HEUR_MODE_FALLBACK)
        return offer(to, 0, PLAIN + 6);
    const int *list = mode == CUDNN_HEUR_MODE_A ? best : other;
    for (int i = 0; i < (mode == CUDNN_HEUR_MODE_A ? 8 : 4); i++)
        count = offer(to, count, PLAIN + list[i]);
    return count;
}

static int offer_fused(int support, const Engine **to) {
    int count = 0;
    if (support == NO)
        return 0;
    if (support == VARIES)
        return offer(to, 0, FUSED + 3);
    count = offer(to, 0, FUSED);
    if (support == READY)
        count = offer(to, count, FUSED + 1);
    return offer(to, count, FUSED + 2);
}

int dnn_offer(const Descriptor *graph, cudnnBackendHeurMode_t mode,
              const Engine **to) {
    int64_t ops = dnn_count(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
    const Descriptor *first = dnn_link(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, 0);
    Convolution c;
    if (ops == 1 &&
        first->kind ==
            CUDNN_BACKEND_OPERATION_BN_FINALIZE_STATISTICS_DESCRIPTOR)
        return offer(to, 0, FORMS);
    if (ops == 1 && dnn_convolution(first, &c))
        return is_plain(&c) ? offer_plain(mode, to) : 0;
    for (int i = 0; i < ops; i++)
        if (dnn_convolution(dnn_link(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, i),
                            &c))
            return is_eights(&c) && mode != CUDNN_HEUR_MODE_FALLBACK
                       ? offer_fused(fusion_support(fusion_of(graph)), to)
                       : 0;
    return 0;
}
