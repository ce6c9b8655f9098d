// Layers of a program, as the author of a model sees them.
#ifndef TOOLS_LAYERS_H
#define TOOLS_LAYERS_H

#include "ir/program.h"

// A layer as the model's author sees it: the forward nodes of one path.
typedef struct {
    const char *path;
    Type type;    // of the last node of the best role
    bool samples; // the first dimension is the batch
    int role;
    int64_t parameters, flops;
    CallSite site; // the line that its cost is charged to
} Layer;

typedef struct {
    Layer *layer;
    int count;
    int *slot; // a hash of paths: the layer's number from 1, 0: free
    size_t size;
    int64_t parameters, flops; // of all nodes, with a path or not
} Layers;

// The layers of the first stage's training step, in the order of the model.
Layers layers_of(Arena *a, const Program *p);

// [N, 32, 32, 64]; [128, 48] for a value that all samples share.
const char *layer_shape(Arena *a, const Layer *layer);

#endif
