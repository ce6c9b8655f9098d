// Builtins: their table, and functions that their files share.
#ifndef FRONTEND_FUNCTIONS_H
#define FRONTEND_FUNCTIONS_H

#include "frontend/value/value.h"

// ---- builtin.c: the table ----

typedef enum {
    ANYWHERE,
    LAYER,      // in models
    NORM,       // a layer that normalizes
    FUNCTION,   // of tensors or numbers, anywhere
    ACTIVATION, // a function of tensors
    IMAGE,      // in models and in the input of the train block
    INITIAL,    // a value of `init`, anywhere
    AUGMENT,    // in the input of the train block
    LOSS,       // in its loss
    OPTIMIZER,  // in its other keys
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
    TERMS,   // a tensor, a number or a list of numbers
    NUMBER,
    POSITIVE, // a number above 0
    FRACTION, // 0 .. 1
    COUNT,    // a whole number from 1
    INDEX,    // a whole number; below 0 it counts from the end
    WHOLE,    // a whole number from 0
    PAIR,     // a count, or [rows, columns]
    PADDING,  // a word, a whole number, [rows, columns] or
              // [top, bottom, left, right]
    FLAG,
    NAMES,       // a flag, a string or a list of strings
    AXIS,        // the name of an axis, or its number
    AXES,        // an axis, or a list of them
    AXES_OR_NUMBER,
    SIZES,       // a whole number from 1, or a list of whole numbers
    INITIALISER, // an initialiser, a number, or numbers as LISTS
    NUMBERS,     // a number or a list of numbers
    LIST,
    LISTS,       // a list of numbers, or of such lists
    WEIGHTS,     // a list, or a tensor
    SCALAR,      // a number or a schedule
    RATE,        // a number from 0, or a schedule
    TIME,        // in epochs, in steps, as a fraction; a default is in steps
    TIME_POINT,  // of a schedule: a fraction of the run, epochs or steps
    TIME_POINTS, // one or a list of them
    STRING,
    STRINGS, // a string or a list of strings
    WORD,
    KNOTS, // all remaining arguments, each `time: value`
} ParamKind;

typedef enum {
#define BUILTIN(name, ...) B_##name,
#include "frontend/functions/builtins.def"
    NUM_BUILTINS
} BuiltinId;

// Parameters are numbered across all functions; FIRST_f is the first of f.
typedef enum {
#define BUILTIN(name, ...) FIRST_##name, BEFORE_##name = FIRST_##name - 1,
#define PARAM(function, name, ...) P_##function##_##name,
#include "frontend/functions/builtins.def"
    NUM_PARAMS
} ParamId;

typedef struct {
    const char *name;
    ParamKind kind;
    const char *otherwise, *words;
} ParamInfo;

// Computes the value of a call with checked arguments.
typedef Value Lowering(Expansion *e, const Call *c);

struct Builtin {
    const char *name;
    Class class;
    Lowering *lower;
    const char *module; // the module that exports it; NULL: none
    ParamId first;
};

struct Call {
    const Builtin *builtin;
    Value *arg; // by parameter
    const Expr *by;
    bool piped; // the first argument comes from a |>
    Span at;
    const char *path; // of the layer: "layer1.conv_1"
};

extern const Builtin builtin_info[NUM_BUILTINS];
extern const ParamInfo param_info[NUM_PARAMS];

// The builtin of that name, or NULL.
const Builtin *builtin_find(const char *name);
// The same, ignoring case and underscores.
const Builtin *builtin_find_loose(const char *word);
BuiltinId builtin_id(const Builtin *b);
int builtin_num_params(const Builtin *b);

// Whether it is a layer with parameters.
bool builtin_trains(const Builtin *b);

// "an optimizer", "the train block": a class and its context.
const char *class_name(Class c);
const char *class_context(Class c);

// As value_kind_name, or "an initialiser", "a data set".
const char *value_described(Value v);

// Notes how to use an initialiser that stands for a tensor.
void note_initialiser(Value v, Diagnostic *d);

// The value of an argument, and conversions of it.
const Value *call_arg(const Call *c, ParamId p);
double call_number(const Call *c, ParamId p);
int64_t call_count(const Call *c, ParamId p);
bool call_flag(const Call *c, ParamId p);
NodeId call_node(const Call *c, ParamId p);
void call_pair(const Call *c, ParamId p, int64_t pair[2]);

// ---- every file: lowering of calls ----

#define BUILTIN(name, class, lowering, module) Lowering lower_##lowering;
#include "frontend/functions/builtins.def"

// ---- samples.c: valid samples, and text of types ----

// Whether all samples of a batch are always valid.
bool all_valid(const Expansion *e);
// A mask of the valid samples along a batch axis with that stride: bool, of
// size 1 along the other axes of t.
NodeId valid_mask(Expansion *e, Type t, int axis, int64_t stride);
// Whether one of a set of axes runs over samples and some may be invalid.
bool samples_need_mask(Expansion *e, NodeId x, unsigned axes);
// x with `otherwise` in invalid samples, along those axes of `like`, a tensor
// of its shape.
NodeId samples_mask(Expansion *e, NodeId x, NodeId like, unsigned axes,
                    double otherwise);
// The product of the sizes of axes, counting only valid samples: f32[].
NodeId samples_count(Expansion *e, NodeId x, unsigned axes);
// Identities of softmax, in effect minus infinity, and of max.
#define MASKED (-1e30)
#define LOWEST (-3.4028234663852886e38)

// Notes a number that becomes part of a graph: a size of the batch would be
// wrong in a short one.
void note_batch_size(Expansion *e, const Value *v);

// The nodes from `first` on may mix samples: y, or NO_NODE, has those of x.
void samples_allow_mixing(Expansion *e, NodeId first, NodeId y, NodeId x);
// The first needed node that mixes valid samples with others, or a number with
// their size, as text; NULL: none does.
const char *samples_mixed(Expansion *e, const bool *needed);

const char *type_text(Expansion *e, Type t); // "f32[128, 3, 3, 64]"
// Whether the first axis of node n runs over samples.
bool has_samples(Expansion *e, NodeId n);
// "f32[N, 16, 16, 128]": with a batch of samples.
const char *samples_text(Expansion *e, Type t);
// The type of a node, with N if its first axis runs over the samples.
const char *tensor_text(Expansion *e, NodeId n);
const char *operand_text(Expansion *e, Value v); // a number is f32[]
// The number of elements of a node, "128 x 3072" if it has samples.
const char *count_text(Expansion *e, NodeId n);

// ---- tensor.c: adding nodes ----

// Sets the origin of the nodes that follow.
void origin_set(Expansion *e, Span at, const char *path);

const Type *node_type(const Expansion *e, NodeId n);

// Converts u8 and i32 to f32.
NodeId as_float(Expansion *e, NodeId n);

// A number or scalar as f32[].
NodeId scalar_node(Expansion *e, Value v);
NodeId number_node(Expansion *e, double value);
NodeId int_node(Expansion *e, int64_t value); // i32[]
// A tensor as f32, or a number as f32[].
NodeId operand_node(Expansion *e, const Value *v);

// Whether a tensor of that shape stays below the size limit after a conversion
// to f32, which may happen to any.
bool fits_as_numbers(Type t);

// Whether a tensor can be viewed as a matrix of rows of its last axis; a report
// if not.
bool expect_rows(Expansion *e, const Call *c, NodeId x);

// Adds n unless the user's sizes forbid it; NO_NODE after a report.
NodeId add_checked(Expansion *e, const Call *c, Node n);
NodeId add_at(Expansion *e, Span at, const char *subject, Node n);
NodeId add_unary(Expansion *e, Op op, NodeId a);
NodeId add_binary(Expansion *e, Op op, NodeId a, NodeId b);

// False, with a report, unless the tensor has that rank.
bool expect_rank(Expansion *e, const Call *c, const Value *x, int rank);

// False, with a report, unless v is an axis of n; *axis is its number.
bool expect_axis(Expansion *e, const Call *c, Value v, NodeId x, int *axis);

// Inputs and states of the run, once in each graph.
NodeId input_node(Expansion *e, InputId id);
NodeId run_node(Expansion *e, RunState s);

// The number of this batch in the whole run.
NodeId batch_node(Expansion *e);

// ---- broadcast.c: broadcasting ----

// False, with a report, unless the shapes of two tensors or numbers broadcast;
// verb is the operation, as "add".
bool expect_broadcast(Expansion *e, Span at, const char *verb, Value a,
                      Value b);
bool expect_broadcast_call(Expansion *e, const Call *c, Value a, Value b);

// a op b; NO_NODE after a report.
NodeId add_broadcast(Expansion *e, const Call *c, Op op, Value a, Value b);

// ---- operator.c: + - * / ^ and comparisons ----

Value expand_unary(Expansion *e, const Expr *x, Value v);
Value expand_binary(Expansion *e, const Expr *x, Value a, Value b);

// a op b for numbers and scalars, with op +, -, * or /.
Value scalar_operate(Expansion *e, TokenKind op, Value a, Value b, Span at);

// ---- number.c: functions of numbers ----

// A number; poison, with a report, if it is not finite in f32.
Value number_checked(Expansion *e, double number, Span at);

// The value of a function of numbers that needs no graph.  False for another
// one.
bool number_function(Expansion *e, const Call *c, Value *v);

// ---- literal.c: tensor literals ----

typedef struct {
    Type type;
    const double *number;
} Literal;

// False, with a report at `at`, unless a list has numbers or such lists.
bool expect_literal(Expansion *e, Span at, const Value *list, Literal *n);

// False, with a report, unless sizes are 1 to MAX_RANK positive integers;
// `subject` names the tensor.
bool expect_sizes(Expansion *e, const Call *c, const Value *sizes,
                  const char *subject, Type *t);

// ---- parameter.c: trained parameters ----

typedef enum {
    INIT_CONSTANT, // low
    INIT_UNIFORM,  // low .. high
    INIT_NORMAL,   // mean low, standard deviation high
    INIT_DIRAC,    // as INIT_UNIFORM, with identity as the first filters
    INIT_ADD_DIRAC,
    INIT_ORTHOGONAL, // times high
    INIT_WHITENING,  // eps low, of the first `images` samples
    INIT_LITERAL,
} InitKind;

typedef struct {
    InitKind kind;
    double low, high;
    int64_t groups; // of a convolution; 0: of another layer
    int64_t images;
    const Literal *literal; // broadcast to the parameter's shape
} Init;

struct Parameter {
    const char *name;
    Type type;
    Init init;
    Span at;
    NodeId node; // in the train graph
};

// A new parameter of the layer c, with NAME appended to its path.  NO_NODE
// after a report.
NodeId parameter_new(Expansion *e, const Call *c, const char *name, Type type,
                     Init init);
NodeId statistic_new(Expansion *e, const Call *c, const char *name, Type type,
                     double init);

// The average of a parameter or statistic, which starts at `init`.
NodeId average_node(Expansion *e, const char *name, Type type, double init);

// The graph that initialises parameters.
Graph *init_graph(Expansion *e);

// ---- initial.c: initial values of parameters ----

// PyTorch's default for a layer's weight and bias: uniform within 1 /
// sqrt(fan_in).
Init initial_default(Type weight);

// Uniform within sqrt(6 / (fan_in + fan_out)).
Init initial_xavier(Type weight);

// Replaces *init by the argument, if given, for a parameter of type t.  False
// after a report.
bool initial_argument(Expansion *e, const Value *v, Type t, Init *init);

// The initial values of a parameter, as a node of an init graph.
NodeId initial_values(Graph *g, NodeId seed, NodeId epoch, const Parameter *p);

// ---- linear.c: matrix products ----

// x weight' along the last axis of x, of any rank.
NodeId rows_product(Expansion *e, const Call *c, NodeId x, NodeId weight);

// a @ b
Value matrix_product(Expansion *e, const Expr *x, Value a, Value b);

// Adds a bias for each row of the weights to a product, if has_bias.
Value add_bias(Expansion *e, const Call *c, NodeId y, Type weight,
               bool has_bias, const Value *given);

// ---- shape.c: transpose ----

// x with an axis and the last one swapped.
NodeId axis_swapped(Expansion *e, NodeId x, int axis);

// ---- slice_concat.c: slice, split, concat, stack and pad ----

// Elements from .. to - 1 along an axis.
NodeId axis_slice(Expansion *e, NodeId x, int axis, int64_t from, int64_t to);

// Concatenates parts along an axis.  Other sizes are equal, or 1, which is
// broadcast.
NodeId axis_concat(Expansion *e, const NodeId *part, int count, int axis);

// ---- whitening.c: filters from the data ----

// False, with a report, unless weights of that type can be whitened.
bool whitening_check(Expansion *e, const Call *c, Type weight, int64_t groups);

// Adds the sums over the patches of x to the collect graph.  False after a
// report.
bool whitening_collect(Expansion *e, const Call *c, NodeId x, Type weight,
                       const Init *init);

// The filters, as a node of the init graph.
NodeId whitening_values(Graph *g, const Parameter *p);

// ---- dropout.c ----

// False, with a report, unless p is below 1.
bool expect_dropout(Expansion *e, const Call *c, double p);

// x with dropout; `use` tells two uses in one layer apart.
NodeId dropout_node(Expansion *e, const Call *c, const char *use, NodeId x,
                    double p);

// ---- conv.c: windows ----

// Top, bottom, left and right, from a number or a list of 2 or 4.
void read_pads(const Value *v, int64_t pad[4]);

// Warns of channels that 16-bit precision pads, when the model is complete: the
// task fixes the channels of the output.
void conv_warn(Expansion *e);

// ---- norm.c ----

// Warns of biases that batch_norm removes, when the model is complete: another
// reader of the sum keeps the bias alive.
void batch_norm_warn(Expansion *e);

// ---- random.c: random numbers ----

// A source of random numbers, beside their stream and counter.
typedef struct {
    NodeId seed, epoch; // i32[]
    int words; // adjacent elements that share a block of Philox: 1 or 4
} RandomSource;

// For each element of a type, from the stream of that name: uniform in [0, 1);
// standard normal.
NodeId rand_uniform(Graph *g, const char *name, RandomSource d, Type t);
NodeId rand_normal(Graph *g, const char *name, RandomSource d, Type t);

// For augmentations, from here on.  The epoch: i32[].
NodeId rand_epoch(Expansion *e);

// A number for each sample, new in each epoch; `use` tells several of a call
// apart: uniform in [0, 1); the same in all epochs; an integer below count;
// uniform from least to most.
NodeId rand_fraction(Expansion *e, const Call *c, const char *use);
NodeId rand_fraction_once(Expansion *e, const Call *c, const char *use);
NodeId rand_index(Expansion *e, const Call *c, const char *use, int64_t count);
NodeId rand_range(Expansion *e, const Call *c, const char *use, double least,
                  double most);

// A number for each sample, reshaped to [N, 1, ...] of that rank; a scalar
// stays one.
NodeId rand_broadcast(Expansion *e, NodeId x, int rank);

// ---- mixing.c: colours ----

// A number, or a list with one for each channel: f32[] or f32[C].  NO_NODE
// after a report.
NodeId fill_node(Expansion *e, const Call *c, const Value *fill,
                 int64_t channels);

// ---- interpolate.c: interpolation ----

// Sampling positions along one axis, for each sample.
typedef struct {
    NodeId before, after; // i32[N, size]: the pixels around each position
    NodeId weight;        // f32[N, size]: weight of the one after
} AxisTaps;

// `size` cell centres of an equal division of a crop, which is f32[N] pixels
// long and begins f32[N] pixels after the edge.
AxisTaps axis_taps(Expansion *e, NodeId first, NodeId length, int64_t size);

// Samples x, [N,H,W,C], bilinear as f32, or nearest.
NodeId interpolate_bilinear(Expansion *e, NodeId x, const AxisTaps axis[2]);
NodeId interpolate_nearest(Expansion *e, NodeId x, const AxisTaps axis[2]);

// A sampling position for each pixel of images of `size`.
typedef struct {
    NodeId at[2];    // row and column, f32[N,H,W], from -1 to the size
    int64_t size[2]; // rows and columns
} PixelTaps;

// Pixel (x, y) of the result is at (a x + b y + c, d x + e y + f), counted from
// the centres; matrix is a to f, f32[] or f32[N,1,1].
PixelTaps affine_taps(Expansion *e, const NodeId matrix[6],
                      const int64_t size[2]);

// Samples x, [N,H,W,C]: nearest in the type of `fill`, or bilinear as f32.
// Outside is `fill`; NO_NODE: the edge, in the type of x.
NodeId warp_nearest(Expansion *e, NodeId x, const PixelTaps *at, NodeId fill);
NodeId warp_bilinear(Expansion *e, NodeId x, const PixelTaps *at, NodeId fill);

// ---- geometry.c ----

// Rows and columns of x from a fixed first row and column on.
NodeId image_crop(Expansion *e, NodeId x, const int64_t size[2],
                  const int64_t first[2]);

// ---- transform.c: labels of pixels follow their image ----

typedef enum {
    TRANSFORM_FLIP,        // horizontal
    TRANSFORM_RANDOM_CROP, // a crop at an offset of each sample
    TRANSFORM_CROP,        // a crop at one offset
    TRANSFORM_RESAMPLE,    // a crop of each sample, resized to one size
    TRANSFORM_RESIZE,
    TRANSFORM_WARP,  // an affine map of each sample
    TRANSFORM_PASTE, // a rectangle of another sample
    TRANSFORM_BLEND, // a weighted mean with another sample
} TransformKind;

// One step of the chain of `input`.
struct Transform {
    TransformKind kind;
    const char
        *function; // the augmentation, and its location in the user's file
    Span at;
    NodeId from, to;  // the images before and after it
    NodeId mirrored;  // FLIP: bool[N]
    NodeId offset[2]; // first row and column; RANDOM_CROP: i32[N], may be
                      // outside, where `mode` decides; RESAMPLE: f32[N]
    NodeId length[2]; // RESAMPLE: rows and columns, f32[N]
    int64_t first[2]; // CROP: first row and column
    NodeId matrix[6]; // WARP: see affine_taps
    const char *mode; // zero, edge, reflect; RESIZE, WARP: nearest, bilinear
    NodeId pasted;    // PASTE: bool[N,H,W,1], pixels of the other sample
    NodeId partner;   // PASTE, BLEND: the other sample, i32[N]
    NodeId weight;    // weight of the sample itself, f32[N] or f32[]
    const Transform *before;
    int number; // from 1
};

// Adds a step of call c to e->transform, unless it is the identity.
void transform_add(Expansion *e, const Call *c, NodeId from, NodeId to,
                   Transform t);

// Whether some step mixes labels, per pixel or per sample.
bool transforms_mix(const Expansion *e, bool spatial);

// The ratio of a label's or output's size to the image's along both axes, or
// its inverse.  False unless it is an integer.
bool sizes_match(Type label, Type image, int64_t *up, int64_t *down);

typedef enum { LABEL_PER_SAMPLE, LABEL_SPATIAL, LABEL_LOST } LabelExtent;

// Whether labels of that type are spatial, and follow the list; LOST after a
// report.
LabelExtent label_extent(Expansion *e, Type label);

// Maps the sizes of a label back to those in the files; false if none exist.
bool transforms_undo(const Expansion *e, Type *label);

typedef struct {
    NodeId label; // i32[N,H,W] with -1 outside the image, or f32[N,H,W,C]
    NodeId valid; // bool[N,H,W,1], valid pixels; NO_NODE: all
} TransformedLabel;

// A label of the files after all steps, or all but BLEND.  False after a
// report.
bool label_transform(Expansion *e, NodeId label, bool blend,
                     TransformedLabel *f);

// ---- label.c: `label` in the loss ----

// The type of `label` without mixed samples, and of the input of that name.
Type label_type(const Expansion *e);
Type label_type_in_files(const Expansion *e);

// Class labels as probabilities of the output's classes, [..., K].  As numbers
// of their own shape, if the output has one for each.
NodeId label_probabilities(Expansion *e, NodeId label);

// The number that whole labels of an output are below: the columns, or the data
// set's classes if they are more; for a single column any byte is a label.
int64_t label_classes(const Expansion *e, Type output);

// A label blended with another sample's.
NodeId label_blend(Expansion *e, const Transform *t, NodeId label);

// i32[N], i32[N, ...]; or f32 of the output's shape for targets and for mixed
// samples.  NO_NODE after a report.
NodeId label_node(Expansion *e);

// ---- named.c: inputs, outputs and labels by name ----

// The node of an array of the data set, once in each graph; input: its name in
// the graph, input.NAME or label.NAME.
NodeId array_node(Expansion *e, const char *input, Type type);

// Makes the model's output known: a tensor, or a list of named ones, of which
// the first is selected.  POISON silences its uses.
void outputs_set(Expansion *e, Value output);
// Selects a named output, or that of a loss's label.
void output_select(Expansion *e, int i);
void output_select_of(Expansion *e, const Call *c);
// Selects the output whose label is among the nodes that a loss is computed
// from, before others one with pixels from outside the image; without a label
// an output whose pixels all count.
void output_select_for(Expansion *e, const bool *needed);
// False, with a report, if the data set's `targets` names no output.
bool targets_check(Expansion *e);
// Whether the label of the selected output has numbers, not classes.
bool label_has_numbers(const Expansion *e);

// input.NAME, output.NAME or label.NAME in the loss.
Value named_value(Expansion *e, const char *variable, Atom name, Span at);
// Reports `output` or `label` of a model with named outputs.
void report_unnamed(Expansion *e, const char *variable, Span at);

// Adds the arrays and the outputs by name to e->recipe, from finished graphs.
void names_record(Expansion *e, const Graph *train, const Graph *eval);

// ---- reduce_loss.c: reductions of a loss and its metrics ----

// sum(x) or mean(x) without axes: the loss, over valid samples and pixels.
Value reduce_loss(Expansion *e, const Call *c, bool mean);
// Whether a total is a weighted sum of reductions, and the loss of each sample,
// f32[N, 1], of those that divide by a sum of weights, or with NO_NODE by the
// samples; NO_NODE: there are none.
bool loss_samples(Expansion *e, NodeId total, NodeId weight_sum,
                  NodeId *samples);

// False, with a report, if a reduction of x over a set of axes in a loss would
// include pixels from outside the image.
bool expect_valid(Expansion *e, const Call *c, const Value *x, unsigned axes);

// The number of valid samples, f32[]; the sum over them of f32[N, 1]; and of
// other shapes the mean of each sample, f32[N, 1].
NodeId sample_count(Expansion *e);
NodeId sum_samples(Expansion *e, NodeId x);
NodeId sample_means(Expansion *e, NodeId x);
// The share of each sample in the number of rows that are true, among those
// that the loss counts; all shares of a batch add up to at most its samples.
NodeId sample_shares(Expansion *e, NodeId hit);

// ---- loss.c: losses ----

// Whether labels match the elements of an output, except trailing axes of size
// 1.
bool labels_each(Type label, Type output);

// ---- metric_name.c: metrics, and the outputs that they are of ----

// Reads METRIC or METRIC(OUTPUT); *output is NULL without one.  -1 after a
// report.
int metric_read(Expansion *e, const Expr *x, Atom *output);

// The output that the list of eval names first for metrics of some sums; NULL:
// it names none.
Atom listed_output(const Expansion *e, MetricSums sums);

// The name of a metric in rows and states: METRIC for the output that the list
// names first for it, or NULL, and OUTPUT.METRIC for others.
const char *metric_name_of(Expansion *e, MetricId id, Atom output);

// The same, and NULL, with a report, if evaluations do not measure the metric,
// or if it is not one number.
const char *metric_name(Expansion *e, MetricId id, Atom output, Span at);

// The same for a metric that a clause or an argument reads.
const char *metric_measured(Expansion *e, const Expr *x);

// ---- metric.c ----

// False, with a report, if the model's output has no metric that the recipe
// asks for.
bool metrics_check(Expansion *e);

// Adds the sums that the runtime reads, after the loss is reduced.
void metrics_add(Expansion *e);

// ---- plateau.c ----

// Adds the states to init that the runtime alone writes, so that checkpoints
// keep them: of each metric whose best value counts, and of each plateau.
void monitor_states(Expansion *e, Graph *init);

// ---- optimizer.c ----

// Adds the update of a parameter.
void optimizer_apply(Expansion *e, const Call *c, const Parameter *p);
Value optimizer_rate(const Call *c);

// ---- view.c: views of images ----

// Mirrors images, or shifts them down and to the right.
NodeId view_mirrored(Expansion *e, NodeId x);
NodeId view_moved(Expansion *e, NodeId x, const int64_t by[2],
                  const char *mode);

// flip_lr as a view: it mirrors every image.
Value view_flip(Expansion *e, const Call *c);

// ---- clip.c ----

// Limits the gradients of the train graph, by a call of class CLIP.
void clip_apply(Expansion *e, const Call *c);

// ---- schedule.c ----

// Variables of the train block: step, epoch, progress.
Value schedule_variable(Expansion *e, const char *name);

// ---- data.c ----

// Reads a call of class DATA; false after a report.
bool data_set(Expansion *e, const Call *c, DataSet *d);

#endif
