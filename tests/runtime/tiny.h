// A trainer made by hand: a convolution and a product, plain momentum, written
// against rt.h as an emitted program is.
#ifndef TESTS_RUNTIME_TINY_H
#define TESTS_RUNTIME_TINY_H

#include "runtime/rt.h"

enum {
    TINY_BATCH = 32,
    TINY_H = 8,
    TINY_W = 8,
    TINY_C = 3,
    TINY_CLASSES = 4,
    TINY_STEPS = 3 // of its plan
};

// epochs, keep and the like may be changed in a copy.
extern const RtTrainer tiny;

#endif
