// Operators: a graph in the vocabulary of ONNX, before it is a file.
#ifndef TOOLS_EXPORT_OPERATORS_H
#define TOOLS_EXPORT_OPERATORS_H

#include "tools/export/export.h"

// Element types, by their numbers in onnx.proto.
typedef enum {
    ELEMENT_F32 = 1,
    ELEMENT_U8 = 2,
    ELEMENT_I32 = 6,
    ELEMENT_I64 = 7,
    ELEMENT_BOOL = 9
} ElementType;

enum { MAX_ATTRIBUTES = 6 };

typedef struct {
    const char *name;
    enum {
        ATTRIBUTE_INT,
        ATTRIBUTE_FLOAT,
        ATTRIBUTE_TEXT,
        ATTRIBUTE_INTS
    } kind;
    int count;
    int64_t ints[2 * RT_MAX_RANK];
    double real;
    const char *text;
} Attribute;

typedef struct {
    int count;
    Attribute list[MAX_ATTRIBUTES];
} Attributes;

// An operator of ONNX with one output.  An input that is left out is "".
typedef struct {
    const char *op, *out;
    NodeId from; // the node that it computes, or a part of it
    int num_inputs;
    const char *const *input;
    Attributes attributes;
} Operator;

typedef struct {
    const char *name; // a weight's own, with .oihw if its filters are turned
    ElementType type;
    int rank;
    int64_t dim[RT_MAX_RANK];
    const void *bytes;
    size_t count; // of bytes
} ExportTensor;

typedef struct {
    const char *name;
    ElementType type;
    int rank;
    int64_t dim[RT_MAX_RANK];
    int64_t batches[RT_MAX_RANK]; // in the dimension; 0: it is fixed
} Interface;

struct Operators {
    Operator *made; // in order
    int num_operators;
    ExportTensor *tensor;
    int num_tensors;
    Interface *input, *output; // in the order of the model
    int num_inputs, num_outputs;
    bool lacks_weights; // why there is no such form
};

// NULL, or why the graph has no such form.
const char *operators_of(Arena *a, Operators *to, const Export *x);

#endif
