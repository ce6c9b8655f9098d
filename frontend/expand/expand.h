// Expansion: the tree becomes values, and tensors become nodes of a graph.
#ifndef FRONTEND_EXPAND_H
#define FRONTEND_EXPAND_H

#include "frontend/frontend.h"
#include "frontend/report.h"
#include "frontend/text/ast.h"
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
    bool of_batch;  // NUMBER: a size that a smaller batch would have smaller
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
// The same, or "an initialiser", "a data set".
const char *value_described(Value v);

// Says what was meant by an initialiser in the place of a tensor.
void note_initialiser(Value v, Diagnostic *d);

// Whether v, which stands at a place, is of a kind; a report about `what` if
// not.
bool expect_kind(Expansion *e, Value v, ValueKind kind, Span at,
                 const char *what);

// ---- scope.c: names ----

// Whether a name stands for something here, and whether the file says for what.
bool name_known(Expansion *e, Atom name);
bool name_defined(Expansion *e, Atom name);

// Defines a name from here on.
void scope_bind(Expansion *e, Atom name, Value v);

// ---- type.c: types of parameters and results ----

// The type that is written in a function, for a tensor of which `found` is
// known: names of dimensions that are new take their sizes from it.  False
// after a report.
bool type_expand(Expansion *e, const Function *f, const TypeExpr *t, Type found,
                 Type *out);

// ---- call.c ----

// Calls a user's function or model with a value for each parameter, NOTHING
// where the default is meant.
Value expand_function(Expansion *e, Value function, const Value *arg, Span at);

// The outermost call that is being expanded of those in the model's body or
// the train block; no source where there is none.
Span call_site(const Expansion *e);

// ---- sites.c: call sites of layers ----

// Records the call site of the layer at this path, if a function of the file
// adds it.
void site_add(Expansion *e, const char *path);

// The recorded sites, sorted by path.
const CallSite *sites_list(const Expansion *e, int *count);

// ---- expand.c: expressions and statements ----

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

// ---- path.c: names of layers ----

typedef struct Path Path;
// Begins anew with a prefix; returns what e->path was.
Path *path_begin(Expansion *e, const char *prefix);
// alone: of all layers that follow, one has parameters, and it bears the name.
void path_enter(Expansion *e, Atom name, bool alone);
void path_leave(Expansion *e);
const char *path_layer(Expansion *e, const char *kind, bool trains);

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

// ---- moment.c: times ----

// Whether a value is a time of a run, of 0 or more.
bool time_of_value(Value v, Time *out);

// Warns of a moment after the end of the run, as far as that can be seen.
void time_warn_late(Expansion *e, Time time, Span at);

// ---- the train block: names that are computed when they are used ----

// The value of a name of the train block, computed when it is first used.
Value lazy_force(Expansion *e, Lazy *lazy, Span at);

// ---- the state of an expansion ----

// What is known of the data before its files are read: 0 where nothing is.
typedef struct {
    Span at;
    const char *format, *path;
    const DataSetting *setting;
    int num_settings;
    Type batch; // of samples; rank 0: as the model takes them
    bool typed; // whether its element type is known
    Type label; // of a batch; rank 0: as the output has them
    int64_t classes, samples, tests;
} DataSet;

// How an evaluation sees an image, of the mean over several.
typedef struct {
    double weight;
    const Expr *chain;
} View;

// One step of a view: it mirrors the image, or moves it down and to
// the right.
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

typedef struct Transform Transform; // of images, see transform.c
typedef struct Parameter Parameter; // see parameter.c

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
    const ViewStep *view_step; // of the view that is expanded, the last first
    Type image;
    const Transform *transform; // of the input, the last first
    NodeId shown;               // the image that the model is given
    Span shown_at;
    int places;       // of labels: LabelPlaces
    bool mixes;       // training mixes labels; an evaluation has such, too
    NodeId label;     // that the loss was given
    NodeId own_label; // the same before samples were blended
    NodeId inside;    // places of labels that count, bool[N,H,W,1]
    NodeId input[NUM_INPUTS], run[NUM_RUN];
    Samples *samples; // how the first num_samples nodes have them
    NodeId num_samples, samples_room;
    const char *sized; // where a node first has a number of the batch's size
    AtomMap site;      // a CallSite for each path that has one
    Parameter *parameter, *statistic;
    int num_parameters, num_statistics;
    struct {
        NodeId samples, total; // the loss of each sample, and reduced
        bool is_mean;          // how it is
        bool of_sides;         // it takes bce_with_logits of the output
    } loss;
    Value output;          // of the model; NOTHING before there is one
    struct Biased *biased; // batch_norms behind a bias, see norm.c
    struct Biased *last_biased;
    struct Padded *padded; // convolutions that 16 bits pad, see conv.c
    struct Padded *last_padded;

    // Where the walk is.
    const File *file;
    size_t main_folder;     // bytes of the main file's path before its name
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
