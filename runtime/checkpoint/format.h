// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The format of a checkpoint, shared by its writer and its reader.
//
// A safetensors file.  Its metadata identifies the run and its position, and
// has the XXH3-64 hash of every tensor and, under "header", of the length and
// header with that hash's digits as zeroes.  So no change of a bit is
// undetected.  Equal runs write equal files: there is no date.
#ifndef RUNTIME_FORMAT_H
#define RUNTIME_FORMAT_H

#include "runtime/checkpoint/checkpoint.h"

enum {
    PIECE = 1 << 20, // bytes of one copy
    DIGITS = 16      // of a hash
};

// A string in a fixed buffer; text beyond it is only counted.
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
    uint64_t *hash;                // of each state
    const char *classes, *columns; // written; NULL: unknown
    char **read_class;             // in the file that was loaded
    int64_t num_read;
    char *read_columns; // ... one in a line; NULL: none
};

// A setting of the recipe that a message can name.
typedef struct {
    const char *key;
    char value[16];
} RtRecipeSetting;

enum { NUM_RECIPE_SETTINGS = 3 };

void rt_recipe_settings(RtRecipeSetting to[NUM_RECIPE_SETTINGS],
                        const RtTrainer *t);

// Whether checkpoints include the state.
bool rt_state_saved(const RtState *s);

// An open safetensors file and its header.
typedef struct {
    int fd;
    RtHeader header;
    char *text; // of the header
    size_t length;
    bool by_sinter; // written by a trainer: hashes must match
    bool fresh;     // initial weights: all numbers must be finite
} RtWeightsFile;

// Opens a file of any program, or a trainer's with a valid header; the tensors'
// bytes are read next.
bool rt_weights_open(const RtFiles *files, RtWeightsFile *f, const char *path,
                     RtError *e);
void rt_weights_close(const RtFiles *files, RtWeightsFile *f);
// The hash in an entry of the metadata; false: there is none.
bool rt_metadata_hash(const RtHeader *h, const char *key, uint64_t *value);

// A length as eight bytes, little-endian.
void rt_length_put(char to[8], uint64_t length);

// Whether all floats are finite: no exponent has all bits set.
bool rt_bits_finite(const char *from, size_t bytes);

#endif
