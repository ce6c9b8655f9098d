// A hand-written trainer: a convolution and a product, plain momentum, against
// rt.h like an emitted program.
#ifndef TESTS_RUNTIME_TINY_H
#define TESTS_RUNTIME_TINY_H

#include "runtime/rt.h"

enum {
    TINY_BATCH = 32,
    TINY_H = 8,
    TINY_W = 8,
    TINY_C = 3,
    TINY_CLASSES = 4,
    TINY_EPOCH = 98,  // steps; the last one has half a batch
    TINY_TESTS = 304, // synthetic samples of its test set
    TINY_STEPS = 3    // of its plan
};

// epochs, keep and others may be changed in a copy.
extern const RtTrainer tiny;

#endif
