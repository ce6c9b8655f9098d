// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A program: the graphs and the recipe of a model file.
#ifndef IR_PROGRAM_H
#define IR_PROGRAM_H

#include "ir/ir.h"

// A length of a run or a moment in it; a count of 0 stands for none.
typedef enum { IN_EPOCHS, IN_STEPS, IN_SHARES } TimeUnit; // shares of the run
typedef struct {
    double count;
    TimeUnit unit;
} Time;

// Training ends early once an evaluation's metric is at least the value, or at
// most where `above` is false; with a patience, once evaluations have not
// improved the metric for so long.
typedef struct {
    const char *metric; // of base/metrics.def; NULL: never
    bool above;
    double value;
    Time patience; // count 0: the value decides
} Stop;

// A factor of a learning rate, a state.  It is multiplied by `factor` each time
// that evaluations have not improved the metric for the patience.
typedef struct {
    const char *state, *metric;
    double factor;
    Time patience;
} Plateau;

// A number or names that the model file gives to its data set, as the length of
// tokens or the columns of a table.
typedef struct {
    const char *name;
    int64_t value;
    const char *text; // the names, one in a line; NULL: a number
} DataSetting;

// Whether values may be recomputed instead of kept: where a limit of memory
// asks for it, never, or wherever it saves memory and costs little.
typedef enum { RECOMPUTE_FOR_LIMIT, RECOMPUTE_NONE, RECOMPUTE_AUTO } Recompute;

// The meaning of the model's output: values, a score of each class in the last
// axis, or a logit of each label.
typedef enum { OUTPUT_VALUES, OUTPUT_CLASSES, OUTPUT_LABELS } OutputKind;

// An array of the data set beside images and labels: a further input of the
// model, the label of a named output, or a number for each sample.
typedef struct {
    const char *name;  // of its files: meta
    const char *input; // of the graphs: input.meta, label.meta
    int classes;       // that whole numbers are below; 0: any
    int ignored;       // a label that the loss leaves out, of any size
    bool weighs;       // weights of samples, from 0
} DataArray;

// Arrays of a data set beside images and labels, at most; and outputs.
enum { MAX_ARRAYS = 16 };

// An output of a model that gives its outputs names.
typedef struct {
    const char *name;
    OutputKind kind;
} OutputName;

// A metric of a named output.
typedef struct {
    const char *name; // METRIC, or OUTPUT.METRIC if another output has it, too
    int metric;       // MetricId of base/metrics.h
    const char *output; // whose sums it is computed from
} OutputMetric;

// The recipe, except for the parts that are in the graphs.
typedef struct {
    const char *data_format; // a data set of the language, as cifar10
    const char *data_path;   // as written in the model file
    const DataSetting *data_setting;
    int num_data_settings;
    int classes; // that whole labels are below
    bool sets_classes; // the model's parameter `classes` sets their number
    int ignored; // a label that the loss leaves out, of any size
    OutputKind output;      // of named outputs: of the first
    const char *input_name; // the model's parameter of the input image
    const char *image_name; // of its files; NULL: the only input
    const DataArray *array;
    int num_arrays;
    const OutputName *output_name; // none: the output has no name
    int num_output_names;
    int64_t batch;  // of a shard, if there are shards
    bool drop_last; // leave out a last batch that is short
    Time length;
    int64_t seed;
    DType precision;       // of activations on a GPU: F32, F16, BF16
    Time eval_every;       // count 0: at the end only
    bool eval_train;       // evaluation is on the training set
    int64_t eval_samples;  // of an evaluation; 0: not known
    unsigned metrics;      // of evaluations: 1 << MetricId of base/metrics.h
    const OutputMetric *output_metric; // those of named outputs
    int num_output_metrics;
    Time checkpoint_every; // count 0: at the end only
    int checkpoint_keep;
    const char *best; // metric of the checkpoint that is kept beside them, or
                      // NULL
    int best_keep;
    const Plateau *plateau;
    int num_plateaus;
    Recompute recompute;
    int accumulate; // batches whose gradients make one update; 1: each
    int shards;     // that each of these batches is divided into; 0: none
    int optimizer_shards; // parts of the optimizer's states that ranks own; 0:
                          // each has all
    bool sync_batch_norm; // over shards
    Stop stop;
    int64_t collect_samples; // that the collect graph sees
    const char *rate;        // the setting whose learning rate is shown
    // The first node of each graph that mixes the samples of a short batch with
    // those that fill it up, in words; NULL: none does.
    const char *whole_train, *whole_eval, *whole_collect;
    // The first batch_norm whose statistics have those too; NULL: none.
    const char *statistics;
    // The first parameter that is frozen from the start with random values, and
    // the number of these; NULL: none.
    const char *frozen_random;
    int num_frozen_random;
} Recipe;

// A part of the run with a set of trained parameters of its own.
typedef struct {
    Time from;     // when it begins; count 0 for the first
    Graph *train;  // one step, up to the loss, its metrics and optimizer nodes
    Graph *accumulate; // NULL, or a step that only adds its gradients up: it
                       // runs for all but the last batch of an update
} Stage;

// A file that a model imports, and its name in the origins of lines.
typedef struct {
    const char *path, *name;
    const char *below; // the path from the main file's folder
} ImportedFile;

// The line of the model's body or the train block whose call of a function
// adds a layer.
typedef struct {
    const char *path, *file;
    int line;
} CallSite;

// Graphs over the same inputs and states, which agree by name.
//
// Inputs (filled by the runtime): image u8, i32 or f32 [N,...], label i32 or
// f32 [N,...], index i32[N] (the sample's number in its data set), valid i32[]
// (how many of the N samples count; the rest are of earlier batches), and
// input.NAME and label.NAME, the arrays of the recipe.
//
// States of the run (kind run): run.step i32[] (updates done), run.steps i32[]
// (updates in the whole run), run.epoch_steps i32[] (in one epoch), run.seed
// i32[].  The runtime alone writes monitor.METRIC f32[] (its best value in an
// evaluation), monitor.METRIC.step i32[] (the step of that, -1 for none), and
// of each Plateau STATE f32[] and STATE.step i32[] (of its last reduction).
//
// States that the runtime reads and clears (kind metric): metric.loss,
// metric.correct, metric.top5, metric.count f32[] (sums over samples, each
// compensated by a NAME.low; evaluations also have metric.counts,
// metric.errors, metric.moments and metric.scores, and such sums of further
// outputs, metric.OUTPUT.counts, see frontend/functions/metric.c),
// metric.lr f32[] (the learning rate of the last update), metric.skipped f32[]
// (updates that were not made, where the loss is scaled).
typedef struct {
    const char *name; // of the model
    const char *file; // the model file's base name, without directories
    const ImportedFile *imported; // the first that was read is the last
    int num_imported;
    const CallSite *site; // of layers that functions add, sorted by path
    int num_sites;
    Recipe recipe;
    Graph *collect; // NULL, or sums over a batch of training samples that init
                    // starts parameters from
    Graph *init;    // assigns every param that does not start as a constant
    const Stage *stage;
    int num_stages;
    Graph *average; // NULL, or updates averaged weights: see average_every
    Time average_every, average_from; // also once after the last step; with an
                                      // `every` of 1 step it is part of train
    Graph *eval;                      // one batch of evaluation
    Graph *predict; // NULL, or the part of it up to the model's output, which
                    // it returns as prediction
    bool predicts_only; // its steps are average, predict and decode
    bool has_gradients; // for each stage it has a step that only computes them
} Program;

// The graphs of a program as steps that a trainer runs.
typedef enum {
    STEP_COLLECT,
    STEP_INIT,
    STEP_DERIVE,   // derived state from the rest
    STEP_TRAIN,    // with shards, only a shard's terms of the sums over them
    STEP_OPTIMIZE, // the update of an optimizer shard, before STEP_APPLY
    STEP_APPLY,    // with shards, the rest of STEP_TRAIN
    STEP_ACCUMULATE,
    STEP_GRADIENTS, // of a batch, as outputs; changes no state
    STEP_AVERAGE,
    STEP_PREPARE, // before an evaluation, values that its batches share
    STEP_EVAL,
    STEP_PREDICT,
    STEP_DECODE // PREDICT for the next position of one text
} StepKind;

typedef struct {
    StepKind kind;
    int stage;        // of TRAIN to GRADIENTS, from 0
    int shard;        // of OPTIMIZE, from 0
    const char *name; // collect, init, derive, train, train_2, accumulate, ...;
                      // the graph's own, each another
    Graph *graph;
    const struct GraphPlan *plan; // of a final graph: passes/plan/plan.h
    // Of TRAIN with shards, in the order in which they are ready.
    const struct Bucket *bucket;
    int num_buckets;
} Step;

// ---- program.c ----

// The batch as the recipe has it, of all shards.
int64_t recipe_batch(const Recipe *r);

// The batches of an update, those of `accumulate` in each shard, and its
// samples.
int recipe_update_batches(const Recipe *r);
int64_t recipe_update_samples(const Recipe *r);

// Whether steps have sums over shards before the update, so that the shards of a
// process run in lockstep.
bool program_in_lockstep(const Program *p);
// The sums of some terms of shards that wait for their siblings at one time, at
// most; 0 without shards.  In lockstep only those of a shard's batches wait.
int program_waiting_sums(const Program *p);

// Whether ranks can each own a part of the optimizer's states.
bool recipe_divides_optimizer(const Recipe *r);

// How often a step runs for an update of the first stage.
int step_runs(const Recipe *r, const Step *s);

// The updates of an epoch: samples that do not fill one are left out with
// drop_last, and else are one more.
int64_t recipe_epoch_updates(const Recipe *r, int64_t samples);

// Whether a model has several inputs, labels by name or named outputs.
bool recipe_has_several(const Recipe *r);

// Whether that is 1 step.
bool time_is_each_step(Time t);

// The line that a node's cost is charged to: the call site of its layer, else
// its own line.  .file is NULL where it has neither.
CallSite program_site(const Program *p, const Origin *from);

// The graphs that there are and that run, in the order of StepKind; no derive.
Step *program_steps(const Program *p, Arena *a, int *count);

// The step of that name, or NULL.
const Step *step_named(const Step *step, int count, const char *name);

// Whether weights are averaged after every step, which is then planned as part
// of it.  The average graph itself only begins averages.  With optimizer shards
// it is a step of its own, as a rank does not compute all weights.
bool program_averages_each_step(const Program *p);

// ---- optimizer_shards.c ----

// Deals the parameters that an optimizer updates to the recipe's optimizer
// shards, so that the shards have about as many bytes of optimizer states.
// Marks them in all graphs.
void program_divide_optimizer(Program *p, Arena *a);

#endif
