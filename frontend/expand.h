// Expansion: the tree becomes values, and tensors become nodes of a graph.
// What the .c files of the front end share.
#ifndef FRONTEND_EXPAND_H
#define FRONTEND_EXPAND_H

#include "frontend/ast.h"
#include "frontend/frontend.h"
#include "frontend/report.h"
#include "ir/program.h"

// ---- value.c: values and the names that hold them ----

typedef struct Expansion Expansion;
typedef struct Value Value;
typedef struct Binding Binding;
typedef struct Builtin Builtin;
typedef struct Call Call;
typedef struct Lazy Lazy;

typedef enum {
    VALUE_POISON,  // of what was reported already; silences what uses it
    VALUE_NOTHING, // no value: an argument left out, a block without a result
    VALUE_NUMBER,
    VALUE_TRUTH,
    VALUE_STRING,
    VALUE_WORD,
    VALUE_LIST,
    VALUE_KNOT, // a list of two: where and what
    VALUE_FUNCTION,
    VALUE_BUILTIN,
    VALUE_TENSOR, // a node of the graph that is being built
    VALUE_LAZY,   // a key of the train block, computed when it is used
    VALUE_CALL,   // data and optimizers: kept as the call that describes them
} ValueKind;

struct Value {
    ValueKind kind;
    Unit unit;      // NUMBER
    Span at;        // the expression that made it
    const Expr *by; // TENSOR: the call that made it, if one did
    union {
        double number;
        bool truth;
        const char *text; // STRING, WORD
        struct {
            const Value *item;
            int count;
        } list; // also KNOT
        struct {
            const Function *function;
            Binding *scope; // the names that its body sees
        } closure;
        const Builtin *builtin;
        NodeId node;
        Lazy *lazy;
        const Call *call;
    };
};

// A name and its value; a scope is a list of them, the innermost first.
struct Binding {
    Atom name;
    Value value;
    Binding *next;
};

Value value_poison(void);
Value value_number(double number, Span at);

// Whether a number can enter a graph, whose scalars are f32.
bool number_fits(double number);
Value value_tensor(NodeId node, Span at);

// "a number", "a tensor"
const char *value_kind_name(ValueKind k);

// ---- builtin.c: the functions of the language ----

typedef enum {
    ANYWHERE,
    LAYER,     // in models
    FUNCTION,  // of tensors or numbers, anywhere
    IMAGE,     // in models and in the input of the train block
    INITIAL,   // what an `init` may be, anywhere
    AUGMENT,   // in the input of the train block
    LOSS,      // in its loss
    OPTIMIZER, // in its other keys
    CLIP,
    AVERAGE,
    EVAL_VIEW, // in the views of an evaluation
    SCHEDULE,
    DATA,
} Class;

typedef enum {
    TENSOR,
    OPERAND, // a tensor or a number
    TENSORS, // a list of tensors
    NUMBER,
    POSITIVE, // a number above 0
    SHARE,    // 0 .. 1
    COUNT,    // a whole number from 1
    WHOLE,    // a whole number from 0
    PAIR,     // a count, or [rows, columns]
    PADDING,  // a word, a whole number, [rows, columns] or
              // [top, bottom, left, right]
    FLAG,
    AXIS,    // the name of an axis, or its number
    AXES,    // an axis, or a list of them
    SIZES,   // a whole number from 1, or a list of whole numbers
    STARTS,  // an initialiser, a number, or numbers as LISTS
    NUMBERS, // a number or a list of numbers
    LISTS,   // a list of numbers, or of such lists
    SCALAR,  // a number or a schedule
    TIME,    // with the unit epoch or step, or a share of the run; its
             // default counts steps
    MOMENT,  // of a schedule: a share of the run, epochs or steps
    MOMENTS, // one or a list of them
    STRING,
    WORD,
    KNOTS, // all that follow, each `where: value`
} ParamKind;

typedef enum {
#define BUILTIN(name, ...) B_##name,
#include "frontend/builtins.def"
    NUM_BUILTINS
} BuiltinId;

// Parameters are numbered through all functions; FIRST_f is the first of f.
typedef enum {
#define BUILTIN(name, ...) FIRST_##name, BEFORE_##name = FIRST_##name - 1,
#define PARAM(function, name, ...) P_##function##_##name,
#include "frontend/builtins.def"
    NUM_PARAMS
} ParamId;

typedef struct {
    const char *name;
    ParamKind kind;
    const char *otherwise, *words;
} ParamInfo;

// Makes the value of a call whose arguments have been checked.
typedef Value Lowering(Expansion *e, const Call *c);

struct Builtin {
    const char *name;
    Class class;
    Lowering *lower;
    const char *module; // what it is imported from; NULL: nothing
    ParamId first;
};

struct Call {
    const Builtin *builtin;
    Value *arg; // of each parameter
    const Expr *by;
    bool piped; // the first argument stands before a |>
    Span at;
    const char *path; // of the layer: "layer1.conv_1"
};

extern const Builtin builtin_info[NUM_BUILTINS];
extern const ParamInfo param_info[NUM_PARAMS];

// The builtin of that name, or NULL.
const Builtin *builtin_find(const char *name);
BuiltinId builtin_id(const Builtin *b);
int builtin_num_params(const Builtin *b);

// Whether it is a layer with parameters.
bool builtin_trains(const Builtin *b);

// "an optimizer", "the train block": what a class is and where it belongs.
const char *class_name(Class c);
const char *class_place(Class c);

// The value of an argument, and readings of it.
const Value *call_arg(const Call *c, ParamId p);
double call_number(const Call *c, ParamId p);
int64_t call_count(const Call *c, ParamId p);
bool call_flag(const Call *c, ParamId p);
NodeId call_node(const Call *c, ParamId p);
void call_pair(const Call *c, ParamId p, int64_t pair[2]);

// ---- expand.c: expressions, statements, calls ----

typedef enum {
    PHASE_CONSTANTS,
    PHASE_INPUT,
    PHASE_MODEL,
    PHASE_LOSS,
    PHASE_KEYS
} Phase;

enum { MOST_WORK = 20000000 };

// False, with a report, when the expansion has become too large or too deep,
// or when enough mistakes have been found.
bool within_limits(Expansion *e, Span at);

// False, with a report, unless the graph has room for so many nodes more.
bool has_room(Expansion *e, Span at, int64_t nodes);

Value expand(Expansion *e, const Expr *x);

// Whether a name stands for something here, and whether the file says for what.
bool name_known(Expansion *e, Atom name);
bool name_defined(Expansion *e, Atom name);

// Defines a name from here on.
void scope_bind(Expansion *e, Atom name, Value v);

// Calls a user's function or model with a value for each parameter, NOTHING
// where the default is meant.
Value expand_function(Expansion *e, Value function, const Value *arg, Span at);

// Whether v, which stands at a place, is of a kind; a report about `what` if
// not.
bool expect_kind(Expansion *e, Value v, ValueKind kind, Span at,
                 const char *what);

// The type that is written in a function, for a tensor of which `found` is
// known: names of dimensions that are new take their sizes from it.  False
// after a report.
bool type_expand(Expansion *e, const Function *f, const TypeExpr *t, Type found,
                 Type *out);

// ---- argument.c: arguments meet parameters ----

// An argument as it stands in a call: an expression, or the value that a chain
// hands on.
typedef struct {
    Atom name; // NULL: given by position
    Span at;   // of the name, or of the value
    const Expr *expr;
    const Value *value; // NULL: expr is to be expanded
    bool replaces;      // what is given before it
} Given;

Given argument_given(const Argument *a);

// Which argument each parameter gets.  False, and reports, when they do not
// fit.
typedef struct {
    const char *function;
    Span at;          // of the call
    Span declared_at; // of the function; no source for a builtin
    int num_params;
    const char *const *name;
    const bool *optional;
    bool rest; // the last parameter takes all that remain
    bool list; // the last parameter is a list of numbers
} Signature;
bool match_arguments(Expansion *e, const Signature *s, const Given *given,
                     int num_given, int *slot);

// Checks and converts the arguments of a builtin.  False after a report.
bool bind_builtin(Expansion *e, Call *c, const Given *given, int num_given);

// ---- operator.c: + - * / ^ and comparisons ----

Value expand_unary(Expansion *e, const Expr *x, Value v);
Value expand_binary(Expansion *e, const Expr *x, Value a, Value b);

// a op b for numbers and scalars, op being +, -, * or /.
Value scalar_operate(Expansion *e, TokenKind op, Value a, Value b, Span at);

// ---- joint.c: tensors that meet element by element ----

// False, with a report, unless the shapes of two tensors or numbers broadcast;
// verb is what cannot be done, as "add".
bool expect_joint(Expansion *e, Span at, const char *verb, Value a, Value b);
bool expect_joint_call(Expansion *e, const Call *c, Value a, Value b);

// a op b; NO_NODE after a report.
NodeId add_joint(Expansion *e, const Call *c, Op op, Value a, Value b);

// ---- samples.c: types as the user writes them ----

const char *type_text(Expansion *e, Type t); // "f32[128, 3, 3, 64]"
// Whether the first axis of node n runs over samples.
bool has_samples(Expansion *e, NodeId n);
// "f32[N, 16, 16, 128]": of what has a batch of samples.
const char *samples_text(Expansion *e, Type t);
// Of a node, with N where its first axis runs over the samples.
const char *tensor_text(Expansion *e, NodeId n);
const char *joint_text(Expansion *e, Value v); // a number is f32[]
// How many numbers a node has, "128 x 3072" where it has samples.
const char *count_text(Expansion *e, NodeId n);

// ---- tensor.c: adding to the graph on the user's behalf ----

// Where the nodes that follow come from.
void origin_set(Expansion *e, Span at, const char *path);

const Type *node_type(const Expansion *e, NodeId n);

// The nodes as numbers: u8 and i32 become f32.
NodeId as_float(Expansion *e, NodeId n);

// A number or scalar as f32[].
NodeId scalar_node(Expansion *e, Value v);
NodeId number_node(Expansion *e, double value);
NodeId whole_node(Expansion *e, int64_t value); // i32[]
// A tensor as numbers, or a number as f32[].
NodeId operand_node(Expansion *e, const Value *v);

// Whether a tensor of that shape is still below the limit when bytes and truths
// become numbers, which may happen to any.
bool fits_as_numbers(Type t);

// Whether a tensor can be taken as rows of its last dimension: their number is
// a dimension then.  A report where not.
bool expect_rows(Expansion *e, const Call *c, NodeId x);

// Adds n unless the user's sizes forbid it; NO_NODE after a report.
NodeId add_checked(Expansion *e, const Call *c, Node n);
NodeId add_at(Expansion *e, Span at, const char *what, Node n);
NodeId add_unary(Expansion *e, Op op, NodeId a);
NodeId add_binary(Expansion *e, Op op, NodeId a, NodeId b);

// False, and a report, unless the tensor has that rank.
bool expect_rank(Expansion *e, const Call *c, const Value *x, int rank);

// False, and a report, unless n is a tensor's axis; *axis is its number.
bool expect_axis(Expansion *e, const Call *c, Value v, NodeId x, int *axis);

// Inputs and states of the run, each once in a graph.
typedef enum {
    INPUT_IMAGE,
    INPUT_LABEL,
    INPUT_INDEX,
    INPUT_VALID,
    NUM_INPUTS
} InputId;
typedef enum {
    RUN_STEP,
    RUN_STEPS,
    RUN_EPOCH_STEPS,
    RUN_SEED,
    RUN_GATHERED, // batches of this update before this one
    RUN_UPDATES,  // steps that were not skipped; advanced where it is used
    NUM_RUN
} RunState;
NodeId input_node(Expansion *e, InputId id);
NodeId run_node(Expansion *e, RunState s);

// The number of this batch, counted over the whole run.
NodeId batch_node(Expansion *e);

// ---- path.c: names of layers ----

typedef struct Path Path;
// Begins anew with a prefix; returns what e->path was.
Path *path_begin(Expansion *e, const char *prefix);
// alone: of all layers that follow, one has parameters, and it bears the name.
void path_enter(Expansion *e, Atom name, bool alone);
void path_leave(Expansion *e);
const char *path_layer(Expansion *e, const char *kind, bool trains);

// ---- numbers.c: tensors that are written as lists ----

typedef struct {
    Type type;
    const double *number;
} Numbers;

// False, with a report, unless a list is of numbers or of such lists; `at` is
// where it is used.
bool expect_numbers(Expansion *e, Span at, const Value *list, Numbers *n);
NodeId numbers_node(Graph *g, const Numbers *n);

// ---- parameter.c: what is trained ----

typedef enum {
    INIT_CONSTANT, // low
    INIT_UNIFORM,  // low .. high
    INIT_NORMAL,   // mean low, standard deviation high
    INIT_DIRAC,    // as INIT_UNIFORM, its first filters the identity
    INIT_ADD_DIRAC,
    INIT_ORTHOGONAL, // times high
    INIT_WHITENING,  // eps low, of the first `images` samples
    INIT_NUMBERS,
} InitKind;

typedef struct {
    InitKind kind;
    double low, high;
    int64_t groups; // of a convolution; 0: of another layer
    int64_t images;
    const Numbers *numbers; // broadcast to the parameter's shape
} Init;

typedef struct {
    const char *name;
    Type type;
    Init init;
    Span at;
    NodeId node; // in the train graph
} Parameter;

// A new parameter of the layer that c is: NAME is added to its path.  NO_NODE
// after a report.
NodeId parameter_new(Expansion *e, const Call *c, const char *name, Type type,
                     Init init);
NodeId statistic_new(Expansion *e, const Call *c, const char *name, Type type,
                     double init);

// The graph that fills parameters with random numbers.
Graph *init_graph(Expansion *e);

// ---- initial.c: how parameters start ----

// PyTorch's default for the weights of a layer, and for its bias: uniform
// within 1 / sqrt(fan_in).
Init initial_default(Type weight);

// Uniform within sqrt(6 / (fan_in + fan_out)).
Init initial_xavier(Type weight);

// Replaces *init by what an argument asks for, if it was given, for a
// parameter of type t.  False after a report.
bool initial_given(Expansion *e, const Value *v, Type t, Init *init);

// What a parameter starts with, as a node of an init graph.
NodeId initial_values(Graph *g, NodeId seed, NodeId epoch, const Parameter *p);

// ---- linear.c: matrix products ----

// x weight' along the last axis of x, whatever its rank.
NodeId rows_product(Expansion *e, const Call *c, NodeId x, NodeId weight);

// a @ b
Value matrix_product(Expansion *e, const Expr *x, Value a, Value b);

// What follows a product with weights of a type: a bias for each of its rows,
// unless it is left out.
Value add_bias(Expansion *e, const Call *c, NodeId y, Type weight, bool wanted,
               const Value *given);

// ---- shape.c: other shapes ----

// x with an axis and the last one exchanged.
NodeId axis_exchanged(Expansion *e, NodeId x, int axis);

// ---- join.c: tensors cut up and put together ----

// Places from .. to - 1 of an axis.
NodeId axis_cut(Expansion *e, NodeId x, int axis, int64_t from, int64_t to);

// The parts one after the other along an axis.  Their other sizes are equal, or
// 1, which is repeated.
NodeId axis_joined(Expansion *e, const NodeId *part, int count, int axis);

// ---- whitening.c: filters from the data ----

// False, with a report, unless weights of that type can be whitened.
bool whitening_check(Expansion *e, const Call *c, Type weight, int64_t groups);

// Adds the sums over the patches of x to the collect graph.  False after a
// report.
bool whitening_collect(Expansion *e, const Call *c, NodeId x, Type weight,
                       const Init *init);

// The filters, as a node of the init graph.
NodeId whitening_values(Graph *g, const Parameter *p);

// ---- collect.c: before parameters start ----

// Whether some parameter starts from the data, and from how many samples: that
// is left in e->recipe.
bool collect_wanted(Expansion *e);

// What remains of the current graph, in which e->collecting was set; NULL after
// a report.
Graph *collect_finish(Expansion *e);

// ---- dropout.c ----

// False, with a report, unless p leaves something.
bool expect_dropout(Expansion *e, const Call *c, double p);

// x with numbers left out; `what` tells two uses of one layer apart.
NodeId dropout_node(Expansion *e, const Call *c, const char *what, NodeId x,
                    double p);

// ---- conv.c: windows ----

// Top, bottom, left and right, from a number or a list of 2 or 4.
void read_pads(const Value *v, int64_t pad[4]);

// Warns of channels that 16 bits pad, when the whole model is there: how many
// its output has is not for the model to choose.
void conv_warn(Expansion *e);

// ---- conv.c, norm.c, loss.c, optimizer.c, clip.c, schedule.c, augment.c,
// data.c ----

#define BUILTIN(name, class, lowering, module) Lowering lower_##lowering;
#include "frontend/builtins.def"

// Adds the update of a parameter.
void optimizer_apply(Expansion *e, const Call *c, const Parameter *p);
Value optimizer_rate(const Call *c);

// Limits the gradients of the train graph, by a call of class CLIP.
void clip_apply(Expansion *e, const Call *c);

// sum(x) or mean(x) without axes: the loss, over the samples that count.
Value reduce_loss(Expansion *e, const Call *c, bool mean);

// How many samples count, f32[]; the sum over them of f32[N, 1]; and of other
// shapes the mean over all but the batch, f32[N, 1].
NodeId sample_count(Expansion *e);
NodeId sum_samples(Expansion *e, NodeId x);
NodeId sample_means(Expansion *e, NodeId x);

// Adds the sums that the runtime reads, after a loss was reduced.
void metrics_add(Expansion *e, NodeId output);

// Names that the train block's expressions may use: step, epoch, progress.
Value schedule_variable(Expansion *e, const char *name);

// What is known of the data before its files are read: 0 where nothing is.
typedef struct {
    Span at;
    const char *format, *path;
    const DataSetting *setting;
    int num_settings;
    Type batch; // of samples; rank 0: as the model takes them
    bool typed; // whether its element type is known
    Type label; // of a batch; rank 0: as the output has them
    int64_t classes, samples;
} DataSet;
// What a call of class DATA says; false after a report.
bool data_set(Expansion *e, const Call *c, DataSet *d);

// ---- norm.c ----

// Warns of biases that batch_norm removes, when the whole model is there: it
// does not where something else reads what they were added to.
void batch_norm_warn(Expansion *e);

// ---- label.c: what `label` is in the loss ----

typedef struct Mixing Mixing;

// Of the run's input of that name.
Type label_type(const Expansion *e);

// From here on each sample is `share`, f32[N] or f32[], of itself and for the
// rest the sample of the batch at `partner`, i32[N].
void labels_mix(Expansion *e, NodeId partner, NodeId share);

// i32[N], i32[N, ...]; or f32 of the output's shape, if they are targets or
// samples of training are mixed.
NodeId label_node(Expansion *e);

// ---- draw.c: random numbers of augmentations ----

// The epoch: i32[].
NodeId draw_epoch(Expansion *e);

// Numbers for each sample, anew in each epoch, which `what` tells from others
// of the same call: from 0 to 1, without 1; the same ones in all epochs; whole
// ones below count; from least to most.
NodeId draw_share(Expansion *e, const Call *c, const char *what);
NodeId draw_once(Expansion *e, const Call *c, const char *what);
NodeId draw_place(Expansion *e, const Call *c, const char *what, int64_t count);
NodeId draw_range(Expansion *e, const Call *c, const char *what, double least,
                  double most);

// A number of each sample as [N, 1, ...] of that rank; a scalar stays one.
NodeId draw_along(Expansion *e, NodeId x, int rank);

// ---- names.c: what can be said before anything is expanded ----

typedef enum {
    NAMES_ONCE, // no name is defined twice
    NAMES_USED, // every value goes somewhere
} NameCheck;

void names_check(Arena *a, const File *f, NameCheck check, Diagnostics *d);

// ---- import.c: files ----

// Parses, checks and expands the top level of a source, in an empty scope.
// The names it defines are in e->scope afterwards.
File *file_expand(Expansion *e, const Source *s);

// Whether a function of a module of `std/` is one of the compiler's own.
bool function_is_native(const Function *f);

// The files that were imported, without those of `std/`.
const ImportedFile *files_imported(Expansion *e, int *count);

// Checks the names of the main file and of all that it imports.
void files_check(Expansion *e, NameCheck check);

// ---- recipe.c: the train block ----

typedef struct TrainBlock TrainBlock;

// The train block of f with the settings that concern it; NULL after a
// report.
TrainBlock *train_new(Expansion *e, const File *f);

// Offers the keys that can be set.
void train_offer_keys(const TrainBlock *t, Nearest *n);

// Whether a name is that of a clause, as eval.
bool train_is_clause(const char *name);

// The model that the block trains.
Value train_model(const TrainBlock *t);

// Reads what must be known before a graph is built into e->recipe and e->data.
bool train_constants(Expansion *e, TrainBlock *t);

// Warns of a last batch that is short.  It comes last, as no mistake follows
// from that.
void train_warn_batch(Expansion *e, const TrainBlock *t);

// Values of the graph that is being built.  train_begin comes first.
void train_begin(Expansion *e, TrainBlock *t);
Value train_input(Expansion *e, TrainBlock *t);
Value train_loss(Expansion *e, TrainBlock *t, Value output);
Value train_optimizer(Expansion *e, TrainBlock *t);
Value train_rate(Expansion *e, TrainBlock *t, const Call *optimizer);

// ---- setting.c: what the command line sets ----

// Sets keys of the block, arguments of their calls, and parameters of the
// model, of which arg has room for all.  What cannot be set is reported.
void settings_apply(Expansion *e, TrainBlock *t, const Setting *setting,
                    int num_settings, Value *arg);

// ---- update.c: what a step does to the parameters ----

// Adds the updates of a stage.  False after a report.
bool update_add(Expansion *e, TrainBlock *t, int stage);

// ---- moment.c: times ----

// Whether a value is a time of a run, of 0 or more.
bool time_of_value(Value v, Time *out);

// Warns of a moment after the end of the run, as far as that can be seen.
void time_warn_late(Expansion *e, Time time, Span at);

// ---- freeze.c: parameters that stop to train ----

// The moments at which parameters are frozen, ascending.  Stage 0 is before the
// first of them, stage i begins at moment i - 1.
const Time *freeze_moments(const TrainBlock *t, int *count);

// Whether a parameter is frozen in a stage.
bool freeze_holds(Expansion *e, const TrainBlock *t, const Parameter *p,
                  int stage);

// ---- views.c: how evaluation looks at an image ----

typedef struct {
    double weight;
    const Expr *chain;
} View;

// The images as a view shows them; poison after a report.
Value view_apply(Expansion *e, const View *view, Value image);

// ---- average.c ----

// The average of a parameter or statistic, which starts at `init`, and its
// name.
const char *average_name(Expansion *e, const char *name);
NodeId average_node(Expansion *e, const char *name, Type type, double init);

// Builds p->average where averages are kept, and e->eval_averages where an
// evaluation is of them.  False after a report.
bool average_build(Expansion *e, TrainBlock *t, Program *p);

// ---- stage.c: the graphs that train ----

// Builds the stages of p from e->graph, which has the model and its loss.
// False after a report.
bool stages_build(Expansion *e, TrainBlock *t, Program *p);

// Reports keys that nothing has used.
void train_check_used(Expansion *e, const TrainBlock *t);

// The value of a name of the train block, computed when it is first used.
Value lazy_force(Expansion *e, Lazy *lazy, Span at);

// ---- lower.c: the graphs ----

// Begins another graph, in which names of the train block have new values.
void graph_begin(Expansion *e, TrainBlock *t, const char *name, bool training);

Program *lower(Expansion *e, TrainBlock *t, const Value *model_arg);

// Reports what is wrong with the model, the loss and the optimizer where keys
// that they rest on are wrong already.
void lower_doubtful(Expansion *e, TrainBlock *t, const Value *model_arg);

// ---- the state of an expansion ----

struct Expansion {
    Arena *arena;
    Atoms *atoms;
    Diagnostics *diags;

    // The graph that is built, and what is known of the run.
    Graph *graph;
    bool training;
    bool collecting; // it is the collect graph
    bool full;       // what is added is to be computed in f32
    Phase phase;
    Recipe recipe;
    DataSet data;
    bool raw_weights;   // evaluation is without averages
    bool averaged;      // the graph reads averages in the place of weights
    bool eval_averages; // an evaluation does
    const View *view;   // of the test images; none: as they are
    int num_views;
    Type image;
    const Mixing *mixing; // of samples, the last first
    bool mixes;           // training does; an evaluation has such labels too
    NodeId label;         // that the loss was given
    NodeId input[NUM_INPUTS], run[NUM_RUN];
    Parameter *parameter, *statistic;
    int num_parameters, num_statistics;
    struct {
        NodeId samples, total; // the loss of each sample, and reduced
        bool is_mean;          // how it is
    } loss;
    Value output;          // of the model; NOTHING before there is one
    struct Biased *biased; // batch_norms behind a bias, see norm.c
    struct Biased *last_biased;
    struct Padded *padded; // convolutions that 16 bits pad, see conv.c
    struct Padded *last_padded;

    // Where the walk is.
    const File *file;
    Binding *scope, *frame; // frame: where the current function's names end
    Path *path;
    const struct Active *active; // functions that are being expanded
    int depth;
    int64_t work;
    bool stopped; // too much work; nothing is expanded any more
    struct Module *modules;
    struct Module *importing; // whose file is being expanded
    int import_depth;
};

#endif
