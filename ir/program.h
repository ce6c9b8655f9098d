// A program: what the front end makes of a model file and codegen prints.
#ifndef IR_PROGRAM_H
#define IR_PROGRAM_H

#include "ir/ir.h"

// How to train, apart from what is in the graphs.
typedef struct {
    const char *data_format; // cifar10, idx, synthetic
    const char *data_path;   // as written in the model file
    int classes;             // that labels are below
    int64_t batch;
    bool drop_last; // leave out a last batch that is short
    double epochs;
    int64_t seed;
    DType precision;         // what activations are on a GPU: F32, F16, BF16
    double eval_epochs;      // evaluate every so many epochs; 0: at the end
    double checkpoint_epochs; // 0: none but the last
    int checkpoint_keep;
} Recipe;

// Graphs over the same inputs and states, which agree by name.
//
// Inputs (filled by the runtime): image u8 or f32 [N,...], label i32[N],
// index i32[N] (the sample's number in its data set), valid i32[] (how many
// of the N samples count; the rest are repetitions).
//
// States of the run (kind run): run.step i32[] (updates done), run.steps i32[]
// (updates in the whole run), run.epoch_steps i32[] (in one epoch), run.seed
// i32[].  States that the runtime reads and clears (kind metric): metric.loss,
// metric.correct, metric.count f32[] (sums over samples), metric.lr f32[] (the
// learning rate of the last update).
typedef struct {
    const char *name; // of the model
    const char *file; // the model file's base name, without directories
    Recipe recipe;
    Graph *init;  // assigns every param that starts from random numbers
    Graph *train; // one step, up to the loss, its metrics and optimizer nodes
    Graph *eval;  // one batch of evaluation
} Program;

// What the passes make of a program for one device.  The graphs are planned
// and share one arena: states have the same offsets in each.
typedef struct {
    const char *device; // "host" or "cuda"
    DType act;
    Graph *init;
    Graph *derive; // derived state from the rest; NULL: there is none
    Graph *train;
    Graph *eval;
    int64_t state_bytes, arena_bytes;
} Plan;

#endif
