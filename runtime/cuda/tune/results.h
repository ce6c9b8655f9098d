// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tried: what was measured of a step's launches, as a table for people.
#ifndef RUNTIME_CUDA_TRIED_H
#define RUNTIME_CUDA_TRIED_H

#include "runtime/runtime.h"

#include <stdio.h>

// One way to make a launch, or launches that have alternatives together.
typedef struct {
    char launch[80]; // "conv 64x12x12x8 by 8x3x3"
    char model[96];  // "first.conv_1, tiny.net:4"
    char way[48];    // "engine 43"
    int group;       // rows of one group exclude each other
    int number;      // of the way among those of its group
    double seconds;
    bool chosen;
} RtTuningResult;

typedef struct {
    RtTuningResult *row;
    int count, room;
} RtTuningResults;

// A new row of that group; NULL: no memory.
RtTuningResult *rt_tuning_results_add(RtTuningResults *t, int group,
                                      RtError *e);
void rt_tuning_results_free(RtTuningResults *t);

// The rows by groups, each with its fastest first.
void rt_tuning_results_print(FILE *f, const RtTuningResults *t);

// "conv 64x12x12x8 by 8x3x3 + statistics", of a call with what rides on it.
void rt_tuning_result_name(const RtCall *c, unsigned with, char *to,
                           size_t room);

#endif
