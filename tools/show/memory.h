// Memory of a step: what is in it from when to when, and what it holds most of.
#ifndef TOOLS_MEMORY_H
#define TOOLS_MEMORY_H

#include "codegen/codegen.h"
#include "passes/lifetime.h"
#include "tools/show/show.h"

typedef struct {
    const Graph *graph;
    const Launches *launches;
    Buffer *buffer; // in the order in which they are written
    int count;
    int64_t states, inputs, beside; // beside: for fusions of the library
    int64_t *live;                  // of each launch: bytes of buffers
    int peak;                       // the launch where most is live
} MemoryUse;

// ---- memory.c ----

MemoryUse memory_use(Arena *a, const Plan *plan, const Step *step);
void memory_json(Arena *a, Text *t, const Plan *plan, const Step *step);

#endif
