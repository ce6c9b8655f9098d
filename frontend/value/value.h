// Values of the language, and the state of an expansion.
#ifndef FRONTEND_VALUE_H
#define FRONTEND_VALUE_H

#include "base/metrics.h"
#include "frontend/frontend.h"
#include "frontend/report.h"
#include "frontend/text/ast.h"
#include "ir/program.h"

// ---- value.c: values and bindings ----

typedef struct Expansion Expansion;
typedef struct Value Value;
typedef struct Binding Binding;
typedef struct Builtin Builtin;
typedef struct Call Call;
typedef struct Lazy Lazy;

typedef enum {
    VALUE_POISON, // after a reported error; silences its uses
    VALUE_NONE,   // no value: a default argument, a block without a result
    VALUE_NUMBER,
    VALUE_BOOL,
    VALUE_STRING,
    VALUE_WORD,
    VALUE_LIST,
    VALUE_KNOT, // a list of two: time and value
    VALUE_FUNCTION,
    VALUE_BUILTIN,
    VALUE_TENSOR, // a node of the current graph
    VALUE_LAZY,   // a key of the train block, computed at its first use
    VALUE_CALL,   // data and optimizers: the call itself
} ValueKind;

struct Value {
    ValueKind kind;
    Unit unit;          // NUMBER
    bool follows_batch; // NUMBER: a size that follows the batch size
    Span at;            // its expression
    const Expr *by;     // TENSOR: the call that made it, or NULL
    union {
        double number;
        bool boolean;
        const char *text; // STRING, WORD
        struct {
            const Value *item;
            int count;
        } list; // also KNOT
        struct {
            const Function *function;
            Binding *scope; // the scope of its body
        } closure;
        const Builtin *builtin;
        NodeId node;
        Lazy *lazy;
        const Call *call;
    };
};

// A name and its value; a scope is a list of them, innermost first.
struct Binding {
    Atom name;
    Value value;
    Binding *next;
};

Value value_poison(void);
Value value_number(double number, Span at);

// Whether a number is finite in f32, the type of a graph's scalars.
bool number_fits(double number);
Value value_tensor(NodeId node, Span at);

// "a number", "a tensor"
const char *value_kind_name(ValueKind k);

// ---- call_site.c: call sites of layers ----

// Records the call site of the layer at this path, if a function of the file
// adds it.
void call_site_add(Expansion *e, const char *path);

// The recorded call sites, sorted by path.
const CallSite *call_sites_list(const Expansion *e, int *count);

// ---- limits.c: depth, work and nodes ----

enum { MAX_WORK = 20000000 };

// False, with a report, if the expansion is too large or too deep, or after too
// many errors.
bool within_limits(Expansion *e, Span at);

// False, with a report, unless the graph has room for `nodes` more.
bool has_room(Expansion *e, Span at, int64_t nodes);

// Stops the expansion, with a report.
void expand_stop(Expansion *e, DiagId id, Span at, const char *why);

// ---- path.c: paths of layers ----

typedef struct Path Path;
// Starts with a prefix; returns the old e->path.
Path *path_begin(Expansion *e, const char *prefix);
// alone: only one of the layers that follow has parameters, and it gets the
// name.
void path_enter(Expansion *e, Atom name, bool alone);
void path_leave(Expansion *e);
const char *path_layer(Expansion *e, const char *kind, bool trains);

// ---- time.c: times ----

// Whether a value is a time of a run, at least 0.
bool time_of_value(Value v, Time *out);

// Warns of a time after the end of the run, if both are known.
void time_warn_late(Expansion *e, Time time, Span at);

// ---- the state of an expansion ----

// Facts about the data before its files are read: 0 if unknown.
typedef struct {
    Span at;
    const char *format, *path;
    const DataSetting *setting;
    int num_settings;
    Type batch; // rank 0: as the model takes it
    bool typed; // whether its element type is known
    Type label; // of a batch; rank 0: as the output has it
    bool named; // it may have further arrays by name
    const Value *target; // names of labels that are numbers, strings
    int num_targets;
    bool unlabelled;
    int64_t classes, samples, tests;
} DataSet;

// A reduction of a loss to a number, its part for each sample, and the sum of
// the weights that a mean of an evaluation divides by; NO_NODE: the samples.
typedef struct {
    NodeId total, samples, weight_sum;
} LossTerm;

// A loss whose rows have weights.
typedef struct {
    NodeId loss, weights;
} WeightedLoss;

// An input of the model after the first.
typedef struct {
    const Param *param;
    Type type;
} MoreInput;

// A named output with its label.  The fields of the same names in Expansion
// have those of the selected one.
typedef struct {
    Atom name;
    Value output;
    NodeId label_input, label, unblended_label, valid;
    int label_extent;
    NodeId counted;
    int classes, ignored;
    OutputKind kind;
    bool is_binary;
} NamedOutput;

// A metric in the list of eval.
typedef struct {
    MetricId id;
    Atom output; // NULL: it names none
    Span at;
} ListedMetric;

// A view of an image in an evaluation (test-time augmentation).
typedef struct {
    double weight;
    const Expr *chain;
} View;

// One step of a view: mirrors the image, or shifts it down and to the right.
typedef struct ViewStep ViewStep;
struct ViewStep {
    bool mirrors;
    int64_t by[2];
    const ViewStep *before;
};

// Inputs and states of the run.
typedef enum {
    INPUT_IMAGE,
    INPUT_LABEL,
    INPUT_INDEX,
    INPUT_VALID,
    INPUT_SHARD,
    NUM_INPUTS
} InputId;
typedef enum {
    RUN_STEP,
    RUN_STEPS,
    RUN_EPOCH_STEPS,
    RUN_SEED,
    RUN_SHARDS,
    RUN_ACCUMULATED, // micro-batches of this update before this one
    RUN_UPDATES,     // steps that were not skipped; advanced at its use
    NUM_RUN
} RunState;

typedef struct Transform Transform; // see transform.c
typedef struct Parameter Parameter; // see parameter.c

typedef enum {
    PHASE_CONSTANTS,
    PHASE_INPUT,
    PHASE_MODEL,
    PHASE_LOSS,
    PHASE_KEYS
} Phase;

// A frame of the call stack.
struct CallFrame {
    const Function *function;
    const struct CallFrame *outer;
    int depth;
    Span at;     // the call
    bool is_std; // the function is one of std/
};

struct Expansion {
    Arena *arena;
    Atoms *atoms;
    Diagnostics *diags;

    // The current graph, and facts about the run.
    Graph *graph;
    bool training;
    bool collecting;     // the collect graph
    bool full_precision; // add nodes in f32
    Phase phase;
    Recipe recipe;
    DataSet data;
    bool raw_weights;   // evaluation uses the weights, not their averages
    bool averaged;      // the graph reads averages instead of weights
    bool eval_averages; // an evaluation does
    const View *view;   // of the test images; none: as they are
    int num_views;
    const ViewStep *view_step; // of the current view, last first
    Type image;
    const Transform *transform; // of the input, last first
    NodeId model_input;         // the image
    Span model_input_at;
    int label_extent;       // LabelExtent
    bool mixes_labels;      // in training, and so in evaluation
    NodeId label;           // that the loss takes
    NodeId unblended_label; // the same before samples are blended
    NodeId valid;           // pixels of labels, bool[N,H,W,1]
    NodeId input[NUM_INPUTS], run[NUM_RUN];
    Samples *samples; // of the first num_samples nodes
    NodeId num_samples, samples_room;
    const char *batch_size_use; // the first node with the size as a number
    AtomMap site;               // a CallSite for some paths
    Parameter *parameter, *statistic;
    int num_parameters, num_statistics;
    struct {
        NodeId total;
        const WeightedLoss *weighted;
        int num_weighted;
        const char **sample_weights; // inputs whose numbers are weights
        int num_sample_weights;
        NodeId counted;        // rows in the accuracy, bool; NO_NODE: all
        NodeId counted_sum;    // of an evaluation's batch
        bool is_mean;          // the reduction
        const LossTerm *term;  // each reduction
        int num_terms;
        bool mixes_reductions; // some are means and some sums
        bool is_binary;        // it applies bce_with_logits to the output
    } loss;
    Value output;          // of the model; NONE before it is known
    const MoreInput *more_input;
    int num_more_inputs;
    const Function *model;
    NamedOutput *named; // the outputs, if they have names
    int num_named, selected;
    ListedMetric *listed;
    int num_listed;
    Atom sums_output[NUM_SUMS]; // the first output that has those sums
    struct Biased *biased; // batch_norms after a bias, see norm.c
    struct Biased *last_biased;
    struct Padded *padded; // convolutions with padded channels, see conv.c
    struct Padded *last_padded;

    // The state of the interpreter.
    const File *file;
    size_t main_folder;     // length of the folder in the main file's path
    Binding *scope, *frame; // frame: the end of the current function's names
    Path *path;
    const struct CallFrame *call_stack; // innermost first
    int depth;
    int64_t work;
    bool stopped; // the work limit is reached; nothing more is expanded
    struct Module *modules;
    struct Module *importing; // its file is being expanded
    int import_depth;
};

#endif
