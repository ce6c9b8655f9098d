// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The format of a checkpoint: what its writer and its reader share.
//
// One safetensors file.  Metadata says which run it is of and where the run
// was, and has the XXH3-64 hash of every tensor and, under "header", of the
// length and header themselves with that hash's digits as zeroes.  So no bit of
// the file can change unseen.  Equal runs write equal files: there is no date
// in them.
#ifndef RUNTIME_FORMAT_H
#define RUNTIME_FORMAT_H

#include "runtime/checkpoint/checkpoint.h"

enum {
    PIECE = 1 << 20, // bytes moved at once
    DIGITS = 16      // of a hash
};

// A string that grows to what it was given room for; what does not fit is
// only counted.
typedef struct {
    char *data;
    size_t length, room;
} Header;

struct RtCheckpoint {
    const RtTrainer *trainer;
    const RtPlan *plan;
    RtDevice *device;
    const RtFiles *files;
    Header header; // begins with its length as eight bytes
    char *piece;
    uint64_t *hash; // of each state
};

// What a recipe sets and a refusal can tell.
typedef struct {
    const char *key;
    char value[16];
} RtRecipeSetting;

enum { NUM_RECIPE_SETTINGS = 3 };

void rt_recipe_settings(RtRecipeSetting to[NUM_RECIPE_SETTINGS],
                        const RtTrainer *t);

// Whether a checkpoint has the state.
bool rt_state_saved(const RtState *s);

// A length as eight bytes, the lowest first.
void rt_length_put(char to[8], uint64_t length);

// Whether no number is infinite or none: its exponent is not all ones.
bool rt_bits_finite(const char *from, size_t bytes);

#endif
