// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// All that an emitted trainer includes: the tables that describe it, the
// functions that its steps call, and rt_main.
#ifndef RUNTIME_RT_H
#define RUNTIME_RT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum { RT_F32, RT_F16, RT_BF16, RT_I32, RT_U8, RT_BOOL } RtType;
enum { RT_MAX_RANK = 8 };

typedef enum {
    RT_FORWARD, // augmentation, forward and loss
    RT_BACKWARD,
    RT_UPDATE,
    RT_OTHER,
    RT_NUM_PHASES
} RtPhase;

typedef struct RtDevice RtDevice;

// The purpose of a state.  Derived states are recomputed, and gradients live
// within an update; all others are saved in checkpoints.  Metrics are saved so
// that the rows of a resumed run are complete.
typedef enum {
    RT_PARAM,
    RT_STATISTIC,
    RT_OPTIMIZER,
    RT_AVERAGED,
    RT_GRADIENT,
    RT_PARTIAL,
    RT_RUN,
    RT_METRIC,
    RT_DERIVED
} RtKind;

// A tensor that lives from step to step.  The runtime sets it to `initial`
// before init runs.
typedef struct {
    const char *name; // "layer1.conv_1.weight"
    RtKind kind;
    RtType type;
    int rank;
    int64_t dim[RT_MAX_RANK];
    size_t offset; // bytes from the start of the arena
    double initial;
} RtState;

// An input that the loader fills before a step: image, label, index, valid or
// an array of the trainer, as in ir/program.h.  A program lists only the inputs
// that it uses.  Or the output of a step.
typedef struct {
    const char *name;
    RtType type;
    int rank;
    int64_t dim[RT_MAX_RANK];
    size_t offset;
} RtInput;

enum { RT_MAX_ARRAYS = 16, RT_MAX_INPUTS = 5 + RT_MAX_ARRAYS };

// Bytes to copy to an input, which is at `to` in the arena.  If `kept` is not
// 0, they are indices into that set of resident rows.
typedef struct {
    size_t to;
    const void *from;
    size_t bytes;
    int kept;
} RtPiece;

// Rows for a device to hold, each of so many bytes.
typedef struct {
    const void *from;
    size_t bytes;
    int64_t count;
} RtRows;

// The shape of one sample in an input, without the batch.
typedef struct {
    RtType type;
    int rank;
    int64_t dim[RT_MAX_RANK];
} RtShape;

// An array of the data set beside images and labels.
typedef struct {
    const char *name;  // of its files: "meta"
    const char *input; // of steps: "input.meta" or "label.meta"
    RtShape shape;
    int classes; // that whole numbers are below; 0: any
    int ignored; // a label outside of the classes that files may have; 0: none
    bool weighs; // weights of samples, from 0
} RtArray;

// A number or names of the model file's data set, such as the length of tokens
// or the columns of a table.
typedef struct {
    const char *name;
    int64_t value;
    const char *text; // the names, one in a line; NULL: a number
} RtSetting;

// Runs one phase of blocks first .. last-1 of a grid of `grid` on the host.
typedef void RtHostKernel(char *arena, const size_t *arg, int first, int last,
                          int grid, int phase);

typedef struct {
    const char *name;   // in the kernels' text
    RtHostKernel *host; // NULL for another device and for merged launches
    // Above 1: all blocks end a phase before any begins the next.  A GPU
    // launches such a kernel cooperatively, with no more blocks than are
    // resident.
    int phases;
    int threads; // of a block on a GPU
    int args;    // pointer parameters
    int fewer;   // 1: fewer blocks compute the same
} RtKernel;

// A library call.  Images are NHWC; conv weights [K,R,S,C/groups].
//   RT_CONV              a = x [n,h,w,c], b = weight      -> y  [n,oh,ow,k]
//   RT_CONV_GRAD_INPUT   a = dy [n,oh,ow,k], b = weight   -> dx [n,h,w,c]
//   RT_CONV_GRAD_WEIGHT  a = dy, b = x                    -> dw
//   RT_MATMUL            a [m,k] (ta: [k,m]), b [k,n] (tb: [n,k]) -> [m,n],
//                        `batch` of each, one after another
//   RT_EIGH              a [n,n] -> [n+1,n]: eigenvalues, then eigenvectors
//   RT_ORTHOGONAL        a [m,n] -> [m,n] with orthonormal columns or rows
//   RT_SUM_OVER_SHARDS   a [1,n] -> [1,n]: the sum over shards, which the
//                        runtime computes (lockstep.c); a device copies the
//                        value of its only shard
// Operands and result have element type `type`; sums are in f32.
typedef enum {
    RT_CONV,
    RT_CONV_GRAD_INPUT,
    RT_CONV_GRAD_WEIGHT,
    RT_MATMUL,
    RT_EIGH,
    RT_ORTHOGONAL,
    RT_SUM_OVER_SHARDS,
    RT_TILED // by a tile kernel: a device's libraries have nothing to do
} RtCallKind;

typedef struct {
    const char *layer; // for messages: "layer1, resnet9.net:13"
    RtCallKind kind;
    RtType type;
    bool accumulate; // add to the result's old value
    int n, h, w, c, k, r, s, oh,
        ow; // convolutions; matmul: m = n, n = k, k = c; others: m = n, n = k
    int stride[2], dilation[2], pad[4], groups; // pad: top, bottom, left, right
    bool ta, tb;
    int64_t batch; // matmul
} RtCall;

// Kernels that a library call can compute, if the library has a fusion for it.
// The plan has addresses for both ways.  A device selects the fusion or
// launches the kernel; it never selects a fusion whose sums have no fixed
// order.
//   STATISTICS       the call also stores the sums of its result at `sum` and
//                    of its squares at `var`; sinter_squares[number] is then 1
//   PROLOGUE         the call reads relu(batch_norm) of `x` instead of `y`,
//                    which is not stored, so `paired` is selected too
//   PROLOGUE_WEIGHT  the same for the gradient of the call's weight
//   BACKWARD         the call stores 0 where relu stops its gradient, the sums
//                    of that at `d_bias`, and of its product with the
//                    normalised x at `d_scale`
// All but the first need STATISTICS and the finalized batch_norm (`bn_params`),
// which a call after the statistics computes.
typedef enum {
    RT_FUSED_STATISTICS,
    RT_FUSED_PROLOGUE,
    RT_FUSED_PROLOGUE_WEIGHT,
    RT_FUSED_BACKWARD
} RtFusionKind;

// A batch_norm of a convolution's result; with no channels only a kernel can
// compute its variance.  `bn_params` is eight rows of `channels` numbers,
// bn_param_bytes apart: mean, inverse deviation, scale and bias in f16 for a
// prologue, and four that the library writes and nothing reads.
typedef struct {
    size_t x, sum, var;           // var: variance, or squares
    size_t scale, bias, y, bn_params; // without these, only statistics fuse
    size_t bn_param_bytes;            // 0: no bn_params
    int64_t channels, count;      // elements of a channel
    double epsilon;
    int number;
} RtNorm;

typedef struct {
    RtFusionKind kind;
    int step;   // of the plan's steps
    int call;   // that computes the kernel
    int launch; // the step's launch that is replaced, from 0; -1: none
    int norm;
    int paired; // a fusion selected if and only if this one is; or -1
    size_t d_scale, d_bias;
} RtFusion;

enum { RT_MAX_MERGED_ARGS = 64 };

// Consecutive kernels of a step that can be one cooperative launch, with any
// number of resident blocks.  Its arguments are theirs in turn, and `barrier`.
// A device selects the merged launch or launches the kernels.  It selects at
// most one for each kernel, and none with a kernel that a selected library
// fusion replaces.
typedef struct {
    int step;          // of the plan's steps
    int launch, count; // the launches of the step that are replaced, from 0
    int kernel;
    int blocks; // the most that have work
    size_t barrier;
} RtMergedLaunch;

// How the blocks of a tile kernel divide its work: their numbers, and a
// workspace.
typedef struct {
    const char *name; // "128x64x64, 8 warps": rows, columns and depth of a tile
    int grid;         // blocks
    int sum_grid;     // of NAME_sums; 0: there is none
    size_t workspace; // bytes
} RtTileConfig;

// A tile kernel that computes a library call, the kernels of its prologues and
// the kernel that reads its result, in place of the last.  Its arguments are
// the call's three addresses, those of its prologues, the kernel's, then that
// of a workspace if it has one.  After it, NAME_sums with the same arguments
// adds the partial sums that it has left there.  Or it replaces a kernel
// without a call, together with the other tile kernels of that launch, in their
// order; then it has the kernel's arguments and `number`.  A device launches it
// if the trainer has code of it for the GPU, else the call and the kernel.
typedef struct {
    const char *name; // of its function
    int code;         // the number of the code of its first configuration;
                      // those of the others follow; equal kernels share them
    const RtTileConfig *config;
    int num_configs;
    int call;          // of the plan; -1: none
    int step;          // of the plan's steps
    int launch;        // the step's launch that is replaced, from 0; -1: none
    int args;          // of prologues
    const size_t *arg; // their offsets in the arena
    int number;        // the last argument of a kernel without a call
} RtTile;

// A tile kernel's text compiled for the host: runs all blocks of the kernel, or
// of NAME_sums; argument[i] is the address of argument i.
typedef void RtHostBlocks(void **argument, int grid);
typedef struct {
    RtHostBlocks *run;
    RtHostBlocks *sums; // NULL: there are none
} RtHostTile;

// A launch of a step, from 0, whose work the tile kernel of a call does as its
// prologue or its pool.  It is skipped if all calls that a list has for it have
// a tile kernel.
typedef struct {
    int step, launch;
    int call; // of the plan
} RtFusedLaunch;

// A tensor that a launch stores in memory, for an observer of the step.
typedef struct {
    int step, launch; // index of the plan's step; of its launch
    int node;         // of the step's graph
    RtType type;
    int64_t count;
    size_t offset;
    const char *what; // "conv of layer1.conv_1, resnet9.net:13"
} RtStored;

// The meaning of the model's output: values, a score of each class in the last
// axis, or a logit of each label.
typedef enum { RT_VALUES, RT_CLASSES, RT_LABELS } RtOutputKind;

// An output of a model that names its outputs.
typedef struct {
    const char *name;
    RtOutputKind kind;
} RtOutputName;

// The kinds of steps; ir/program.h says when each runs.
typedef enum {
    RT_COLLECT,
    RT_INIT,
    RT_DERIVE,
    RT_TRAIN,
    RT_OPTIMIZE,
    RT_APPLY,
    RT_ACCUMULATE,
    RT_GRADIENTS,
    RT_AVERAGE,
    RT_PREPARE,
    RT_EVAL,
    RT_PREDICT,
    RT_DECODE
} RtStepKind;

// A launch of a step, in terms of the model.
typedef struct {
    int kernel, call;  // index in the plan; -1: not one
    const char *path;  // of the layer: "layer1.conv_1, backward"; or ""
    const char *lines; // of the model: "resnet9.net:12,14"
    bool augments;     // a data augmentation
} RtLaunch;

// A range of a shard's terms: its sum over ranks may begin when launch number
// `ready` of the step is done.
typedef struct {
    size_t offset, bytes;
    int ready;
} RtBucket;

// A library call at launch number `call` that may run on a side stream.  Launch
// number `join`, or the end of the step, waits for it, and no later fork begins
// before.
typedef struct {
    int call, join;
} RtFork;

typedef struct {
    const char *name; // "train", "train_2"
    RtStepKind kind;
    int stage; // of TRAIN to GRADIENTS, from 0
    void (*run)(RtDevice *d);
    // Its launches in order; fused and merged kernels count.  NULL: unknown.
    const RtLaunch *launch;
    const int64_t *bytes; // read and written by each
    int num_launches;
    bool then_derive; // RT_DERIVE must follow
    const RtInput *input;
    int num_inputs;             // at most RT_MAX_INPUTS
    RtInput output;             // of PREDICT and DECODE: the model's first
    const RtInput *more_output; // of PREDICT: the others
    int num_more_outputs;
    const RtInput *gradient; // of GRADIENTS: each with its parameter's name
    int num_gradients;
    size_t cache, cache_bytes; // of DECODE: zeros before a text begins
    const RtBucket *bucket;    // of TRAIN with shards, the first ready first
    int num_buckets;
    const RtFork *fork; // in their order
    int num_forks;
} RtStep;

// An optimizer shard: ranges of its parameters and of their optimizer states.
// The ranges of all shards follow one another; one may be empty.
typedef struct {
    size_t params, param_bytes, states, state_bytes;
} RtOptimizerShard;

// A plan for one device: addresses, kernels, and steps as launch lists.
typedef struct {
    const char *device; // "host" or "cuda"
    size_t arena_bytes;
    // With shards: the f32 terms of a shard; behind them are slots of the same
    // size for sums that wait (shards.c).
    size_t partial, partial_bytes;
    // With these, the update of a stage is an RT_OPTIMIZE of each, in the order
    // of the steps, then RT_APPLY and RT_DERIVE.
    const RtOptimizerShard *optimizer_shard;
    int num_optimizer_shards;
    const RtState *state;
    int num_states;
    const RtKernel *kernel;
    int num_kernels;
    const RtCall *call;
    int num_calls;
    const RtStep *step;
    int num_steps;
    const RtNorm *norm;
    const RtFusion *fusion;
    int num_fusions, num_norms;
    const RtMergedLaunch *merged;
    int num_merged;
    const RtTile *tile;
    int num_tiles;
    const RtHostTile *host_tile; // of the host: each code of `tile`, of which
                                 // kernels have the first configuration
    const RtFusedLaunch *fused;  // of tile kernels
    int num_fused;
    const RtStored *stored; // in the order of steps and launches
    int num_stored;
    bool one_by_one; // steps are not recorded as CUDA graphs
    bool unmarked;   // no timing events for the time budget
    bool unforked;   // no forks
    bool ungrouped;  // a launch of a CUDA graph is one step
    bool serialized; // no kernel starts before the one before it has ended
} RtPlan;

// A length of a run or a time in it; a count of 0: none.
typedef enum { RT_EPOCHS, RT_STEPS, RT_SHARES } RtTimeUnit;
typedef struct {
    double count;
    RtTimeUnit unit;
} RtTime;

// A metric of a named output.
typedef struct {
    const char *name; // METRIC, or OUTPUT.METRIC if another output has it, too
    int metric;       // MetricId of base/metrics.h
    const char *output; // whose sums it is computed from
} RtOutputMetric;

// The condition that ends a run early; metric NULL: none.
typedef struct {
    const char *metric; // of base/metrics.def, or the name of an RtOutputMetric
    bool above;
    double value;
    RtTime patience; // without an improvement of the metric; none: by value
} RtStop;

// A factor of the learning rate, a state.  It is multiplied by `factor` each
// time that evaluations have not improved the metric for the patience.
typedef struct {
    const char *state, *metric;
    double factor;
    RtTime patience;
} RtPlateau;

// A source file of the model with its path from the model file's folder, or a
// --set.
typedef struct {
    const char *name, *text;
} RtNamed;

typedef struct {
    const char *model;     // "ResNet9"
    const char *file;      // "resnet9.net"
    const RtNamed *source; // the model file, then the files that it imports
    int num_sources;
    const RtNamed *set; // KEY and VALUE of each --set
    int num_sets;
    const char *version;  // of sinter
    uint64_t fingerprint; // of model and recipe; a checkpoint must match
    const char *data_format, *data_path;
    const RtSetting *data_setting;
    int num_data_settings;
    RtShape image, label;   // of one sample; label.rank -1: labels are not used
    const char *image_name; // of its files; NULL: the only input
    const RtArray *array;
    int num_arrays;                  // at most RT_MAX_ARRAYS
    const RtOutputName *output_name; // none: the output has no name
    int num_output_names;
    int classes;         // whole labels are below
    bool sets_classes;   // --set classes=N of a compilation sets their number
    int ignored;         // a label outside of the classes that files may have;
                         // 0: none
    RtOutputKind output; // of named outputs: of the first
    int batch;
    const char *precision; // of the recipe; NULL: f32
    bool drop_last;
    // The operation that needs whole batches in training, evaluation and
    // collection, and the batch_norm whose statistics include the padding of a
    // short batch, in terms of the model; NULL: none.
    const char *whole_train, *whole_eval, *whole_collect, *statistics;
    // The first parameter that is frozen from the start with random values, and
    // the number of these; NULL: none.
    const char *frozen_random;
    int num_frozen_random;
    // Why a model of texts has no DECODE step, in terms of the model, or NULL.
    const char *not_decoded;
    RtTime length;
    int64_t seed;
    int accumulate;    // batches of an update, those of all shards
    int shards;        // 0: none; 1: a process is a shard; else as many
    bool adds_batches; // its gradient is their sum, not their mean
    const RtTime *stage_from;
    int num_stages;
    RtTime average_every, average_from;
    bool averages_each_step; // train does it, once averaging has begun
    int64_t collect_samples;
    RtTime eval_every, checkpoint_every; // none: at the end only
    bool eval_train;                     // evaluation is on the training data
    unsigned metrics; // of evaluations: bits of base/metrics.h
    const RtOutputMetric *output_metric; // those of named outputs
    int num_output_metrics;
    RtStop stop;
    int checkpoint_keep;
    const char *best; // metric of the checkpoints kept beside them; NULL: none
    int best_keep;
    const RtPlateau *plateau;
    int num_plateaus;
    const RtPlan *plan;
    int num_plans;
    // The kernels' CUDA text; SINTER_KERNEL selects one for compilation.
    const char *kernels, *kernels_end;
    bool kernel_lines;           // compile with line information
    const char *code, *code_end; // cubins of the text for some GPUs; NULL: none
    // The graphs of the training steps, as text; NULL: not embedded.
    const char *graphs, *graphs_end;
    // Headers that the text includes; NULL: the runtime's own.
    const char *const *prelude;
} RtTrainer;

// Parses the command line, trains, and returns the exit status.
int rt_main(int argc, char **argv, const RtTrainer *trainer);

// ---- what an emitted step calls ----

void rt_phase(RtDevice *d, RtPhase phase);
void rt_launch(RtDevice *d, int kernel, int grid, const size_t *arg);
void rt_contract(RtDevice *d, int call, size_t a, size_t b, size_t out);

// rt_launch with the addresses as arguments.
#define LAUNCH(d, kernel, grid, ...)                                           \
    rt_launch((d), (kernel), (grid), (const size_t[]){__VA_ARGS__})

// Embeds a file, followed by a zero byte: NAME, NAME_end.
#define RT_EMBED(name, file)                                                   \
    __asm__(".section .rodata\n"                                               \
            ".balign 16\n" #name ":\n"                                         \
            ".incbin \"" file "\"\n" #name "_end:\n.byte 0\n"                  \
            ".previous\n");                                                    \
    extern const char name[], name##_end[]

#endif
