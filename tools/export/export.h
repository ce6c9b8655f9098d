// Export: the evaluation graph of a model, with weights, in formats of other
// programs.
#ifndef TOOLS_EXPORT_EXPORT_H
#define TOOLS_EXPORT_EXPORT_H

#include "runtime/machine.h"
#include "tools/tools.h"

typedef struct {
    const Program *program;
    const Graph *graph; // predict
    const Graph
        *doubled; // the same of twice the batch; NULL: the batch is fixed
    const RtTensors *weights;
    const char *version;
} Export;

typedef struct Operators Operators;

// Appends the operators as an ONNX file.
void onnx_write(Arena *a, Text *t, const Export *x, const Operators *from);

// Appends the operators as a Python file with an nn.Module, and its state_dict
// as a safetensors file.  NULL, or why it cannot be one.
const char *pytorch_write(Arena *a, Text *module, Text *weights,
                          const Export *x, const Operators *from);

#endif
