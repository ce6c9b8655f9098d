// Traffic: the bytes that a program's plan says each launch moves, against
// those that its kernels touch.
#ifndef TESTS_TRAFFIC_TRAFFIC_H
#define TESTS_TRAFFIC_TRAFFIC_H

#include "frontend/frontend.h"
#include "passes/passes.h"

typedef struct {
    const char *model; // below the source folder
    const Setting *setting;
    int num_settings;
    DType storage; // of activations
    int level;     // 0: a kernel for each operation
} Subject;

// Runs every step of the program once, with kernels that are instrumented.
// NULL, or where plan and kernels differ.
const char *traffic(Arena *a, const Subject *s);

#endif
