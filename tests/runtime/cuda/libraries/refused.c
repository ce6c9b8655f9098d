// cuDNN refuses wrong descriptors, where they are made and where they are read.
// The library is tried where it is installed, and its double, which must refuse
// the same.
//
// usage: refused DESCRIPTION.json.  Status 77: there is no library; 1: it
// accepts a wrong descriptor, or refuses the same one done right.
#include "runtime/cuda/libraries/cudnn.h"
#include "tests/runtime/cuda/libraries/file.h"

#include <stdio.h>

enum { MAX_MADE = 64 };

static RtCudnn dnn;
static void *made[MAX_MADE];
static int num_made, failures;

static void judge(const char *what, int status, bool right) {
    if ((status == 0) == right)
        return;
    failures++;
    printf("FAILED %s: %s (status %d)\n", what, right ? "refused" : "taken",
           status);
}

static void is_taken(const char *what, int status) {
    judge(what, status, true);
}

static void is_refused(const char *what, int status) {
    judge(what, status, false);
}

// ---- descriptors ----

static void *make(int kind) {
    void *d = NULL;
    is_taken("a descriptor", dnn.create(kind, &d));
    if (num_made == MAX_MADE)
        abort();
    return made[num_made++] = d;
}

static int set_int(void *d, int name, int64_t value) {
    return dnn.set(d, name, DNN_TYPE_INT64, 1, &value);
}

static int set_enum(void *d, int name, int type, int value) {
    return dnn.set(d, name, type, 1, &value);
}

static int link(void *d, int name, void *const *other, int64_t count) {
    return dnn.set(d, name, DNN_TYPE_BACKEND_DESCRIPTOR, count, other);
}

// A tensor of 4x8x8x64 numbers or, as a filter, of 64x3x3x64.
static void *tensor_set(int64_t id, bool filter, int64_t alignment) {
    const int64_t side = filter ? 3 : 8;
    const int64_t dim[4] = {filter ? 64 : 4, 64, side, side};
    const int64_t stride[4] = {64 * side * side, 1, 64 * side, 64};
    void *t = make(DNN_BACKEND_TENSOR_DESCRIPTOR);
    set_enum(t, DNN_ATTR_TENSOR_DATA_TYPE, DNN_TYPE_DATA_TYPE, DNN_DATA_HALF);
    dnn.set(t, DNN_ATTR_TENSOR_DIMENSIONS, DNN_TYPE_INT64, 4, dim);
    dnn.set(t, DNN_ATTR_TENSOR_STRIDES, DNN_TYPE_INT64, 4, stride);
    set_int(t, DNN_ATTR_TENSOR_UNIQUE_ID, id);
    set_int(t, DNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment);
    return t;
}

static void *tensor(int64_t id, bool filter) {
    void *t = tensor_set(id, filter, 16);
    is_taken("a tensor", dnn.finalize(t));
    return t;
}

static void *window_set(int64_t stride, int64_t dilation) {
    void *c = make(DNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    const int64_t pad[2] = {1, 1}, by[2] = {stride, stride},
                  apart[2] = {dilation, dilation};
    set_enum(c, DNN_ATTR_CONVOLUTION_COMP_TYPE, DNN_TYPE_DATA_TYPE,
             DNN_DATA_FLOAT);
    set_enum(c, DNN_ATTR_CONVOLUTION_CONV_MODE, DNN_TYPE_CONVOLUTION_MODE,
             DNN_CROSS_CORRELATION);
    set_int(c, DNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 2);
    dnn.set(c, DNN_ATTR_CONVOLUTION_PRE_PADDINGS, DNN_TYPE_INT64, 2, pad);
    dnn.set(c, DNN_ATTR_CONVOLUTION_POST_PADDINGS, DNN_TYPE_INT64, 2, pad);
    dnn.set(c, DNN_ATTR_CONVOLUTION_FILTER_STRIDES, DNN_TYPE_INT64, 2, by);
    dnn.set(c, DNN_ATTR_CONVOLUTION_DILATIONS, DNN_TYPE_INT64, 2, apart);
    return c;
}

static void *operation(void) {
    void *x = tensor(1, false), *w = tensor(2, true), *y = tensor(3, false);
    void *window = window_set(1, 1);
    void *op = make(DNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    is_taken("a window", dnn.finalize(window));
    link(op, DNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, &window, 1);
    link(op, DNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, &x, 1);
    link(op, DNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, &w, 1);
    link(op, DNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, &y, 1);
    is_taken("an operation", dnn.finalize(op));
    return op;
}

static void *look_at(void *graph) {
    void *look = make(DNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    link(look, DNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, &graph, 1);
    link(look, DNN_ATTR_ENGINEHEUR_DEVICEPROP, &dnn.device, 1);
    set_enum(look, DNN_ATTR_ENGINEHEUR_MODE, DNN_TYPE_HEUR_MODE,
             DNN_HEUR_MODE_A);
    is_taken("a question for plans", dnn.finalize(look));
    return look;
}

// ---- wrong descriptors ----

static void try_tensors(void) {
    void *t = tensor(1, false);
    is_refused("an attribute of what is final",
               set_int(t, DNN_ATTR_TENSOR_UNIQUE_ID, 2));
    is_refused("what is final made so again", dnn.finalize(t));
    is_refused("an alignment to 0", dnn.finalize(tensor_set(1, false, 0)));
    is_refused("an alignment to 3", dnn.finalize(tensor_set(1, false, 3)));
    t = tensor_set(1, false, 16);
    is_refused(
        "a type of attribute that it has not",
        set_enum(t, DNN_ATTR_TENSOR_DATA_TYPE, DNN_TYPE_INT64, DNN_DATA_HALF));
    is_refused("an attribute of others",
               set_enum(t, DNN_ATTR_POINTWISE_MODE, DNN_TYPE_POINTWISE_MODE,
                        DNN_POINTWISE_ADD));
}

static void try_windows(void) {
    is_taken("a window with strides", dnn.finalize(window_set(2, 1)));
    is_refused("strides of 0", dnn.finalize(window_set(0, 1)));
    is_refused("dilations of 0", dnn.finalize(window_set(1, 0)));
}

static void *try_graphs(void) {
    void *op[2] = {operation()};
    void *graph = make(DNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    is_refused("a graph of nothing", dnn.finalize(graph));
    graph = make(DNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    op[1] = op[0];
    link(graph, DNN_ATTR_OPERATIONGRAPH_OPS, op, 2);
    is_refused("an operation twice in a graph", dnn.finalize(graph));
    graph = make(DNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    link(graph, DNN_ATTR_OPERATIONGRAPH_OPS, op, 1);
    is_taken("a graph", dnn.finalize(graph));
    return graph;
}

// A reader must ask for the right type, and have room.
static void try_reading(void *graph) {
    void *look = look_at(graph), *engine = make(DNN_BACKEND_ENGINE_DESCRIPTOR);
    void *config = make(DNN_BACKEND_ENGINECFG_DESCRIPTOR);
    int64_t count = 0, many = 0, number = 0;
    int note[16];
    is_refused("offers as numbers", dnn.get(look, DNN_ATTR_ENGINEHEUR_RESULTS,
                                            DNN_TYPE_INT64, 0, &count, NULL));
    is_taken("an offer",
             dnn.get(look, DNN_ATTR_ENGINEHEUR_RESULTS,
                     DNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &config));
    is_refused("an engine as a number",
               dnn.get(config, DNN_ATTR_ENGINECFG_ENGINE, DNN_TYPE_INT64, 1,
                       &count, &engine));
    is_taken("an engine",
             dnn.get(config, DNN_ATTR_ENGINECFG_ENGINE,
                     DNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &engine));
    is_taken("its number", dnn.get(engine, DNN_ATTR_ENGINE_GLOBAL_INDEX,
                                   DNN_TYPE_INT64, 1, &count, &number));
    is_refused("its number as a float",
               dnn.get(engine, DNN_ATTR_ENGINE_GLOBAL_INDEX, DNN_TYPE_FLOAT, 1,
                       &count, &number));
    is_refused("its number without room",
               dnn.get(engine, DNN_ATTR_ENGINE_GLOBAL_INDEX, DNN_TYPE_INT64, 0,
                       &count, &number));
    is_taken("its notes", dnn.get(engine, DNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                  DNN_TYPE_NUMERICAL_NOTE, 16, &count, note));
    is_taken("how many notes it has",
             dnn.get(engine, DNN_ATTR_ENGINE_NUMERICAL_NOTE,
                     DNN_TYPE_NUMERICAL_NOTE, 0, &many, NULL));
    judge("as many notes as were read", many != count, true);
    is_refused("its notes as others",
               dnn.get(engine, DNN_ATTR_ENGINE_NUMERICAL_NOTE,
                       DNN_TYPE_BEHAVIOR_NOTE, 16, &count, note));
}

static void try_plans(void) {
    void *plan = make(DNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    int64_t count = 0, bytes = 0;
    is_refused("the workspace of what is not final",
               dnn.get(plan, DNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                       DNN_TYPE_INT64, 1, &count, &bytes));
}

static void *pack_set(int64_t ids, int64_t pointers) {
    void *pack = make(DNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    const int64_t id[3] = {1, 2, 3};
    const uint64_t at[3] = {1 << 20, 2 << 20, 3 << 20};
    if (ids > 0)
        dnn.set(pack, DNN_ATTR_VARIANT_PACK_UNIQUE_IDS, DNN_TYPE_INT64, ids,
                id);
    if (pointers > 0)
        dnn.set(pack, DNN_ATTR_VARIANT_PACK_DATA_POINTERS, DNN_TYPE_VOID_PTR,
                pointers, at);
    return pack;
}

static void try_packs(void) {
    is_taken("a pack", dnn.finalize(pack_set(3, 3)));
    is_refused("a pack of fewer pointers", dnn.finalize(pack_set(3, 2)));
    is_refused("a pack of no identifiers", dnn.finalize(pack_set(0, 3)));
    is_refused("a pack of no pointers", dnn.finalize(pack_set(3, 0)));
}

int main(int argc, char **argv) {
    RtError e;
    if (argc != 2 || !rt_cudnn_open(&dnn, &e)) {
        printf("%s\n", argc != 2 ? "usage: refused DESCRIPTION.json" : e.text);
        return argc != 2 ? 2 : 77;
    }
    char *json = file_read(argv[1]);
    if (!rt_cudnn_describe(&dnn, json, &e)) {
        printf("FAILED %s\n", e.text);
        return 1;
    }
    free(json);
    try_tensors();
    try_windows();
    try_reading(try_graphs());
    try_plans();
    try_packs();
    while (num_made > 0)
        dnn.destroy(made[--num_made]);
    rt_cudnn_close(&dnn);
    return failures > 0;
}
