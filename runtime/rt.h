// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// All that an emitted trainer includes: the tables that describe it, what its
// steps may call, and the main that does the rest.
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

// What a state is for.  All but derived state, which is made again, and
// gradients that wait within an update is saved in checkpoints; metrics too, so
// that the rows of a resumed run are whole.
typedef enum {
    RT_PARAM,
    RT_STATISTIC,
    RT_OPTIMIZER,
    RT_AVERAGED,
    RT_GRADIENT,
    RT_RUN,
    RT_METRIC,
    RT_DERIVED
} RtKind;

// A tensor that lives from step to step.  The runtime fills it with `initial`
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

// What the loader fills before a step: image, label, index and valid, as
// ir/program.h describes them.  A program that does not use one leaves it out.
typedef struct {
    const char *name;
    RtType type;
    int rank;
    int64_t dim[RT_MAX_RANK];
    size_t offset;
} RtInput;

enum { RT_MOST_INPUTS = 4 };

// Bytes on their way into an input, which is at `to` in the arena; or with
// `kept` not 0 the numbers of so many rows that the device keeps.
typedef struct {
    size_t to;
    const void *from;
    size_t bytes;
    int kept;
} RtPiece;

// Rows that a device is to keep, each of so many bytes.
typedef struct {
    const void *from;
    size_t bytes;
    int64_t count;
} RtRows;

// What one sample has in an input; the batch is left out.
typedef struct {
    RtType type;
    int rank;
    int64_t dim[RT_MAX_RANK];
} RtShape;

// A number that the model file gives to its data set, as the length of tokens.
typedef struct {
    const char *name;
    int64_t value;
} RtSetting;

// Runs one phase of blocks first .. last-1 of a grid of `grid` on the host.
typedef void RtHostKernel(char *arena, const size_t *arg, int first, int last,
                          int grid, int phase);

typedef struct {
    const char *name;   // as in the kernels' text
    RtHostKernel *host; // NULL in a plan for another device, and of joins
    // More than 1: no block begins a phase before all have ended the one
    // before.  A GPU launches such a kernel cooperatively, over no more blocks
    // than are resident; it may take fewer than it is asked for.
    int phases;
    int threads; // of a block on a GPU
    int args;    // pointer parameters
    int fewer;   // 1: with fewer blocks than a launch has it does the same
} RtKernel;

// A library call.  Images are NHWC; conv weights [K,R,S,C/groups].
//   RT_CONV              a = x [n,h,w,c], b = weight      -> y  [n,oh,ow,k]
//   RT_CONV_GRAD_INPUT   a = dy [n,oh,ow,k], b = weight   -> dx [n,h,w,c]
//   RT_CONV_GRAD_WEIGHT  a = dy, b = x                    -> dw
//   RT_MATMUL            a [m,k] (ta: [k,m]), b [k,n] (tb: [n,k]) -> [m,n],
//                        `batch` of each, one after another
//   RT_EIGH              a [n,n] -> [n+1,n]: eigenvalues, then eigenvectors
//   RT_ORTHOGONAL        a [m,n] -> [m,n] with orthonormal columns or rows
// Operands and result have element type `type`; sums are in f32.
typedef enum {
    RT_CONV,
    RT_CONV_GRAD_INPUT,
    RT_CONV_GRAD_WEIGHT,
    RT_MATMUL,
    RT_EIGH,
    RT_ORTHOGONAL
} RtCallKind;

typedef struct {
    const char *layer; // for messages: "layer1, resnet9.net:13"
    RtCallKind kind;
    RtType type;
    bool accumulate; // add to what the result holds
    int n, h, w, c, k, r, s, oh,
        ow; // convolutions; matmul: m = n, n = k, k = c; factors: m = n, n = k
    int stride[2], dilation[2], pad[4], groups; // pad: top, bottom, left, right
    bool ta, tb;
    int64_t batch; // matmul
} RtCall;

// Kernels whose work a library call can do on the way, where the library has a
// fusion for it.  Both ways fit the plan's addresses: what only one of them
// needs is planned too.  A device takes a fusion, or launches the kernel; it
// may not take one whose sums come in another order each time.
//   STATISTICS       the call also leaves the sums of its result at `sum` and
//                    those of squares at `var`; sinter_squares[number] is then
//                    1
//   PROLOGUE         the call reads relu(batch_norm) of `x` in place of `y`,
//                    which is not stored, so that `together` is taken too
//   PROLOGUE_WEIGHT  the same for the gradient of the call's weight
//   BACKWARD         the call leaves 0 where relu stops its gradient, and the
//                    sums of that at `d_bias`, of its product with the
//                    normalised x at `d_scale`
// All but the first need the forms of the batch_norm, which a call after the
// statistics makes of them, and so that statistics are taken.
typedef enum {
    RT_FUSED_STATISTICS,
    RT_FUSED_PROLOGUE,
    RT_FUSED_PROLOGUE_WEIGHT,
    RT_FUSED_BACKWARD
} RtFusionKind;

// A batch_norm of what a convolution computes; one of no channels has a
// variance that only a kernel can take.  Its forms are eight rows of
// `channels` numbers, each form_bytes after the last: mean, one by the
// deviation, scale and bias in f16 as a prologue reads them, and four that the
// library writes and nothing reads.
typedef struct {
    size_t x, sum, var;           // var: or squares
    size_t scale, bias, y, forms; // with no forms, only statistics ride
    size_t form_bytes;            // 0: no forms
    int64_t channels, count;      // elements of a channel
    double epsilon;
    int number;
} RtNorm;

typedef struct {
    RtFusionKind kind;
    int step;   // of the plan's steps
    int call;   // that takes the kernel over
    int launch; // of the step, from 0, that need not be made; -1: none
    int norm;
    int together; // a fusion that is taken if and only if this is; or -1
    size_t d_scale, d_bias;
} RtFusion;

enum { RT_MOST_JOINED_ARGS = 64 };

// Kernels of a step, one after the other, that may be one cooperative launch
// over any number of blocks that are resident together.  Its arguments are
// theirs in turn, and `barrier`.  A device takes a join or launches the
// kernels; of joins that have a kernel in common it takes one, and none with a
// kernel that rides on a call that it takes.
typedef struct {
    int step;          // of the plan's steps
    int launch, count; // of the step, from 0, that need not be made
    int kernel;
    int blocks; // as many as can have work
    size_t barrier;
} RtJoin;

// A tensor that a launch of a step leaves in memory, for who looks at it.
typedef struct {
    int step, launch; // of the plan's steps; of the step, from 0
    int node;         // of the step's graph
    RtType type;
    int64_t count;
    size_t offset;
    const char *what; // "conv of layer1.conv_1, resnet9.net:13"
} RtStored;

// What ends a run early; metric NULL: nothing.
typedef struct {
    const char *metric; // accuracy, top5, loss, perplexity
    bool above;
    double value;
} RtStop;

// What a trainer runs; ir/program.h says when.
typedef enum {
    RT_COLLECT,
    RT_INIT,
    RT_DERIVE,
    RT_TRAIN,
    RT_GATHER,
    RT_AVERAGE,
    RT_PREPARE,
    RT_EVAL
} RtStepKind;

// A launch of a step, in the words of the model.
typedef struct {
    int kernel, call;  // which it is of the plan's; -1: it is none
    const char *path;  // of the layer, "layer1.conv_1, backward"; or ""
    const char *lines; // that it computes, "resnet9.net:12,14"
    bool augments;     // makes of what was loaded what the model sees
} RtLaunch;

typedef struct {
    const char *name; // "train", "train_2"
    RtStepKind kind;
    int stage; // of TRAIN and GATHER, from 0
    void (*run)(RtDevice *d);
    // What it launches, in order; fusions and joins count so.  NULL: unknown.
    const RtLaunch *launch;
    const int64_t *bytes; // that each reads and writes
    int num_launches;
    bool then_derive; // what is derived is to be made again
    const RtInput *input;
    int num_inputs; // at most RT_MOST_INPUTS
} RtStep;

// What one device does: addresses, kernels, and the steps as lists of launches.
typedef struct {
    const char *device; // "host" or "cuda"
    size_t arena_bytes;
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
    const RtJoin *join;
    int num_joins;
    const RtStored *stored; // in the order of steps and launches
    int num_stored;
    bool one_by_one; // launches of a step are not recorded
    bool unmarked;   // no run of a step has events for the time budget
} RtPlan;

// A length of a run or a moment in it; a count of 0 stands for none.
typedef enum { RT_EPOCHS, RT_STEPS, RT_SHARES } RtTimeUnit;
typedef struct {
    double count;
    RtTimeUnit unit;
} RtTime;

// A file of the user's that the model is in, with its path from the model
// file's folder, or a --set that changes it.
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
    uint64_t fingerprint; // of model and recipe: what a checkpoint must match
    const char *data_format, *data_path;
    const RtSetting *data_setting;
    int num_data_settings;
    RtShape image, label; // of one sample; label.rank -1: labels are not used
    int classes;          // whole labels are below
    int batch;
    const char *precision; // of the recipe; NULL: f32
    bool drop_last;
    // The operation that needs whole batches when training, evaluating and
    // collecting, and the batch_norm whose statistics include the samples that
    // fill up a short one, in words of the model; NULL: there is none.
    const char *whole_train, *whole_eval, *whole_collect, *statistics;
    RtTime length;
    int64_t seed;
    int accumulate; // batches of an update
    const RtTime *stage_from;
    int num_stages;
    RtTime average_every, average_from;
    bool averages_each_step; // train does it, once averages have begun
    int64_t collect_samples;
    RtTime eval_every, checkpoint_every; // none: at the end only
    bool eval_train;                     // evaluation is on the training data
    bool top5, perplexity;               // are shown
    RtStop stop;
    int checkpoint_keep;
    const RtPlan *plan;
    int num_plans;
    // The kernels' CUDA text, for a device that compiles it: one at a time, by
    // its number, SINTER_KERNEL.
    const char *kernels, *kernels_end;
    bool kernel_lines; // machine code keeps a table of the text's lines
    const char *code, *code_end; // of the text, for some GPUs; NULL: for none
    // The graphs of the steps that train, as text; NULL: they are not carried.
    const char *graphs, *graphs_end;
    // What the text includes; NULL: the runtime's own.
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

// The bytes of a file, as a string that ends in a zero byte: NAME, NAME_length.
#define RT_EMBED(name, file)                                                   \
    __asm__(".section .rodata\n"                                               \
            ".balign 16\n" #name ":\n"                                         \
            ".incbin \"" file "\"\n" #name "_end:\n.byte 0\n"                  \
            ".previous\n");                                                    \
    extern const char name[], name##_end[]

#endif
