// Compare: two variants of a model.
#ifndef TOOLS_COMPARE_H
#define TOOLS_COMPARE_H

#include "tools/compare/verdict.h"

// Costs of a step with the batch of the model file, or of --set.
typedef struct {
    int64_t batch;        // of all shards
    int shards;           // 0: none
    int64_t flops, bytes; // of a shard; bytes of all stored tensors, in double
    bool whole;    // every batch must be full, so a smaller one divides it
} Size;

typedef struct {
    Variant a, b;
    Runs runs;
    int64_t own_batch; // of the model file
    Rows rows;
} Comparison;

// Checks the model, its data and the device.  Returns an exit status, after a
// message if it failed.
int model_size(const Arguments *arguments, Size *size);

// The batch of a comparison: --batch, or so small that the evaluation in double
// takes seconds.
int64_t comparison_batch(const Arguments *arguments, const Size *size);

// Whether the recorded step is evaluated in double.
bool is_judged(const Arguments *arguments, const Snapshot *s);

// Prints the cost of leaving out each pass, and the share of each part.
// Returns an exit status.
int ablate(Arena *a, const Arguments *arguments);

// ---- comparison.c ----

// The type and shape of a stored tensor.
const char *row_stored_as(Arena *a, const Comparison *c, const Row *r);

// The first wrong tensor and its error; NULL if there is none.
const Row *row_first_wrong(const Rows *rows);
void first_print(Text *t, const Comparison *c);

void comparison_print(Text *t, const Comparison *c);

// ---- comparison_json.c ----

// Adds the options and costs of a variant to an object.
void variant_json(Text *t, const Variant *v);

void comparison_json(Text *t, const Comparison *c);

#endif
