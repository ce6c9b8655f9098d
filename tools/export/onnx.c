// ONNX: operators as a model of opset 18
// (github.com/onnx/onnx/blob/main/onnx/onnx.proto).
#include "base/protobuf.h"
#include "tools/export/operators.h"

enum { OPSET = 18, IR_VERSION = 8 };

// Fields of onnx.proto.
enum {
    MODEL_IR_VERSION = 1,
    MODEL_PRODUCER = 2,
    MODEL_PRODUCER_VERSION = 3,
    MODEL_GRAPH = 7,
    MODEL_OPSET = 8,
    MODEL_METADATA = 14,
    OPSET_VERSION = 2,
    GRAPH_NODE = 1,
    GRAPH_NAME = 2,
    GRAPH_INITIALIZER = 5,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    NODE_INPUT = 1,
    NODE_OUTPUT = 2,
    NODE_NAME = 3,
    NODE_OP = 4,
    NODE_ATTRIBUTE = 5,
    FIELD_NAME = 1,
    FIELD_FLOAT = 2,
    FIELD_INT = 3,
    FIELD_STRING = 4,
    FIELD_INTS = 8,
    FIELD_TYPE = 20,
    TENSOR_DIM = 1,
    TENSOR_TYPE = 2,
    TENSOR_NAME = 8,
    TENSOR_RAW = 9,
    VALUE_NAME = 1,
    VALUE_TYPE = 2,
    TYPE_TENSOR = 1,
    TYPE_ELEMENT = 1,
    TYPE_SHAPE = 2,
    SHAPE_DIM = 1,
    DIM_VALUE = 1,
    DIM_NAME = 2,
    ENTRY_KEY = 1,
    ENTRY_VALUE = 2
};

static void attribute_add(Arena *a, Text *node, const Attribute *from) {
    static const int type[] = {[ATTRIBUTE_FLOAT] = 1,
                               [ATTRIBUTE_INT] = 2,
                               [ATTRIBUTE_TEXT] = 3,
                               [ATTRIBUTE_INTS] = 7};
    Text t = text_new(a);
    proto_string(&t, FIELD_NAME, from->name);
    if (from->kind == ATTRIBUTE_FLOAT)
        proto_float(&t, FIELD_FLOAT, (float)from->real);
    else if (from->kind == ATTRIBUTE_TEXT)
        proto_string(&t, FIELD_STRING, from->text);
    else if (from->kind == ATTRIBUTE_INT)
        proto_int(&t, FIELD_INT, from->ints[0]);
    for (int i = 0; from->kind == ATTRIBUTE_INTS && i < from->count; i++)
        proto_int(&t, FIELD_INTS, from->ints[i]);
    proto_int(&t, FIELD_TYPE, type[from->kind]);
    proto_message(node, NODE_ATTRIBUTE, &t);
}

static void operator_add(Arena *a, Text *graph, const Operator *from) {
    Text t = text_new(a);
    for (int i = 0; i < from->num_inputs; i++)
        proto_string(&t, NODE_INPUT, from->input[i]);
    proto_string(&t, NODE_OUTPUT, from->out);
    proto_string(&t, NODE_NAME, from->out);
    proto_string(&t, NODE_OP, from->op);
    for (int i = 0; i < from->attributes.count; i++)
        attribute_add(a, &t, &from->attributes.list[i]);
    proto_message(graph, GRAPH_NODE, &t);
}

static void tensor_add(Arena *a, Text *graph, const ExportTensor *from) {
    Text t = text_new(a);
    for (int i = 0; i < from->rank; i++)
        proto_int(&t, TENSOR_DIM, from->dim[i]);
    proto_int(&t, TENSOR_TYPE, from->type);
    proto_string(&t, TENSOR_NAME, from->name);
    proto_bytes(&t, TENSOR_RAW, from->bytes, from->count);
    proto_message(graph, GRAPH_INITIALIZER, &t);
}

static void interface_add(Arena *a, Text *graph, int field,
                          const Interface *from) {
    Text tensor = text_new(a), shape = text_new(a);
    Text type = text_new(a), info = text_new(a);
    for (int i = 0; i < from->rank; i++) {
        Text dim = text_new(a);
        if (from->batches[i] == 0)
            proto_int(&dim, DIM_VALUE, from->dim[i]);
        else
            proto_string(&dim, DIM_NAME,
                         from->batches[i] == 1
                             ? "batch"
                             : arena_format(a, "%lld*batch",
                                            (long long)from->batches[i]));
        proto_message(&shape, SHAPE_DIM, &dim);
    }
    proto_int(&tensor, TYPE_ELEMENT, from->type);
    proto_message(&tensor, TYPE_SHAPE, &shape);
    proto_message(&type, TYPE_TENSOR, &tensor);
    proto_string(&info, VALUE_NAME, from->name);
    proto_message(&info, VALUE_TYPE, &type);
    proto_message(graph, field, &info);
}

static void entry_add(Arena *a, Text *t, const char *key, const char *text) {
    Text entry = text_new(a);
    proto_string(&entry, ENTRY_KEY, key);
    proto_string(&entry, ENTRY_VALUE, text);
    proto_message(t, MODEL_METADATA, &entry);
}

void onnx_write(Arena *a, Text *t, const Export *x, const Operators *from) {
    Text graph = text_new(a), opset = text_new(a);
    proto_string(&graph, GRAPH_NAME, x->program->name);
    for (int i = 0; i < from->num_tensors; i++)
        tensor_add(a, &graph, &from->tensor[i]);
    for (int i = 0; i < from->num_inputs; i++)
        interface_add(a, &graph, GRAPH_INPUT, &from->input[i]);
    for (int i = 0; i < from->num_outputs; i++)
        interface_add(a, &graph, GRAPH_OUTPUT, &from->output[i]);
    for (int i = 0; i < from->num_operators; i++)
        operator_add(a, &graph, &from->made[i]);
    proto_int(&opset, OPSET_VERSION, OPSET);
    proto_int(t, MODEL_IR_VERSION, IR_VERSION);
    proto_string(t, MODEL_PRODUCER, "sinter");
    proto_string(t, MODEL_PRODUCER_VERSION, x->version);
    proto_message(t, MODEL_GRAPH, &graph);
    proto_message(t, MODEL_OPSET, &opset);
    for (int i = 0; i < x->program->recipe.classes; i++) {
        const char *key = arena_format(a, "class.%d", i);
        const char *name = rt_tensors_metadata(x->weights, key);
        if (name != NULL)
            entry_add(a, t, key, name);
    }
}
