// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The graph, on which all passes work.  Read this first.
//
// A node's index is its identity.  Operands come before users, so the array is
// a topological order.  A pass rebuilds the graph: it iterates over the old
// nodes, maps operands through now[], adds new nodes and records now[n].  Late
// passes add a group and an offset to the nodes.  Then code generation builds a
// tree for each kernel (codegen/kernel/tree.h).
#ifndef IR_IR_H
#define IR_IR_H

#include "base/arena.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

// ---- type.c: element types and shapes ----

// ACT is the type of activations, which are stored as Graph.act says: f16 or
// bf16, as the recipe and the device decide, else f32.
typedef enum { F32, F16, BF16, ACT, I32, U8, BOOL, NUM_DTYPES } DType;

enum { MAX_RANK = 8 };

// A tensor type.  Rank 0 is a scalar.  Each dimension is in 0 .. 2^31-1 and the
// number of bytes below 2^46; type_valid says so.
typedef struct {
    DType dtype;
    int rank;
    int64_t dim[MAX_RANK];
} Type;

Type type_scalar(DType dtype);
Type type_of(DType dtype, int rank, const int64_t *dim);

static inline bool type_has_shape(const Type *a, const Type *b) {
    bool same = a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++)
        same = a->dim[i] == b->dim[i];
    return same;
}

static inline bool type_is(const Type *a, const Type *b) {
    return a == b || (a->dtype == b->dtype && type_has_shape(a, b));
}

bool type_valid(const Type *t);

bool dtype_float(DType d); // f32, f16, bf16, act
const char *dtype_name(DType d);
bool dtype_find(const char *name, size_t length, DType *found);

// Number of elements; a valid type cannot overflow.
int64_t type_count(const Type *t);

// The shape both broadcast to, false when they do not.  dtype is left alone.
bool type_broadcast(const Type *a, const Type *b, Type *out);

// f32[512,10]
void type_print(Text *t, const Type *type);

// ---- op.c: the operations, from ops.def ----

typedef enum {
#define OP(name, ...) OP_##name,
#include "ir/ops.def"
    NUM_OPS
} Op;

// Traits of an operation, as ops.def states them: MLIR's word.  A pass queries
// traits where a new operation may have them, and names operations that it
// rewrites.
typedef enum {
    LEAF = 1u << 0,       // no operands: a value from outside, or a fixed one
    POINTWISE = 1u << 1,  // an element needs the same element of each operand
    COMMUTES = 1u << 2,   // the two operands may be exchanged
    COSTLY = 1u << 3,     // worth storing rather than computing twice
    REDUCES = 1u << 4,    // many elements become one
    INDEXES = 1u << 5,    // an element is one of the operand elsewhere, or 0
    WINDOW = 1u << 6,     // an element needs a window of the operand
    VIEW = 1u << 7,       // the same bytes under another shape
    CONTRACTS = 1u << 8,  // adds products of its two operands
    COMPOSITE = 1u << 9,  // expands to simpler operations
    EFFECT = 1u << 10,    // is kept although no node uses its value
    OPTIMIZES = 1u << 11, // updates a param by its gradient
    CALLS = 1u << 12,     // calls a library, the host or other ranks
    SCATTERS = 1u << 13,  // an element of the operand is added to one elsewhere
    REDUCES_ALL = 1u << 14, // reduces any number of tensors to a scalar
    STACKS = 1u << 15,      // tensors of several shapes become one
    MATH = 1u << 16,        // its kernel text calls a function
    DIVIDES = 1u << 17,     // its kernel text divides
    COLLECTIVE = 1u << 18,  // all shards compute it together
    ATTENDS = 1u << 19,     // its kernel iterates over tiles, as attention does
} OpTrait;

typedef struct Graph Graph;
typedef struct Node Node;

// Computes the type of a node from its operands and attributes.  NULL, or a
// phrase with the reason why it has none.  For declared shapes *out holds the
// declaration on entry and the rule checks it.
typedef const char *ShapeRule(const Graph *g, const Node *n, Type *out);

typedef struct {
    const char *name;
    int arity;
    ShapeRule *shape;
    unsigned traits; // set of OpTrait
} OpInfo;

extern const OpInfo op_info[NUM_OPS];
bool op_find(const char *name, size_t length, Op *found);

// ---- attributes, from attrs.def ----

typedef enum {
#define ATTR(name, kind) ATTR_##name,
#include "ir/attrs.def"
    NUM_ATTRS
} AttrKey;

typedef enum { INT, FLOAT, TEXT, INTS, FLOATS } AttrKind;

typedef struct {
    AttrKey key;
    int count; // INTS, FLOATS: the number of values; TEXT: length
    union {
        int64_t i;
        double f;
        const char *s;
        const int64_t *ints;
        const double *floats;
    };
} Attr;

extern const struct AttrInfo {
    const char *name;
    AttrKind kind;
} attr_info[NUM_ATTRS];

// ---- graph.c: nodes ----

typedef uint32_t NodeId;
// A graph of a text has at most MAX_NODES.  The graphs of a program have at
// most MAX_PROGRAM_NODES together, with the backward pass, updates and
// recomputed nodes, which bounds the time of a compilation.  The front end
// checks the limit after each construct; one construct may exceed it by
// NODES_MARGIN.
enum {
    NO_NODE = UINT32_MAX,
    MAX_NODES = 1000000,
    NODES_MARGIN = 1000,
    MAX_PROGRAM_NODES = 200000
};

// Where a node came from: a line of a model file, and the layer's path such as
// "layer1.conv_1".  full_precision: computed and stored in f32; backward:
// autodiff added it for that layer.
typedef struct {
    const char *file; // NULL: nowhere
    const char *path; // NULL: no layer
    int line;
    bool full_precision, backward;
} Origin;

// Why a value is in memory although a kernel that uses it could compute it,
// from reasons.def.
typedef enum {
    REASON_none,
#define REASON(name, text) REASON_##name,
#include "ir/reasons.def"
    NUM_REASONS
} Reason;

extern const struct ReasonInfo {
    const char *name, *text;
} reason_info[NUM_REASONS];

struct Node {
    Op op;
    uint32_t hash;    // of its operation and attributes, or of its name
    const Type *type; // which equal nodes share: see graph_type
    int num_args, num_attrs;
    const NodeId *arg;
    const Attr *attr; // in order of key
    Origin from;
    int group;      // its kernel or library call; -1: none, or before fuse
    Reason why;     // fuse decided to store it, for this reason
    int64_t offset; // bytes into the arena of tensors, else -1: not stored
};

// Facts of a graph, which passes require and establish.
typedef enum {
    BACKWARD = 1u << 0,  // gradients are there
    UPDATES = 1u << 1,   // optimizers became assignments
    PRIMITIVE = 1u << 2, // no composite operation is left
    TYPED = 1u << 3,     // precision is decided
    GROUPED = 1u << 4,   // nodes have groups; each group is a run of nodes
    PLANNED = 1u << 5,   // stored nodes have offsets
} GraphFact;

// The number of blocks decides the order of partial sums.  So that a trainer
// computes the same on every GPU, plans without a described device are for one
// number of multiprocessors: an H200's.
enum { GENERIC_MULTIPROCESSORS = 132, MAX_MULTIPROCESSORS = 1 << 16 };

// Offsets are multiples of it, so that a kernel may read and write whole
// vectors up to the end of its tensor.
enum { ARENA_ALIGNMENT = 256 };

// Called when a graph can have no more nodes; does not return.
typedef void GraphFull(const Graph *g);

struct Graph {
    Arena *arena;     // of attributes, which graphs share
    Arena *own;       // of all else, released with the graph
    const char *name; // train, eval, init
    unsigned facts;   // set of GraphFact
    DType act;           // that ACT stands for: F32, F16 or BF16
    int multiprocessors; // of the device that launches are planned for
    Node *node;
    NodeId count, capacity;
    NodeId max_nodes;
    int64_t arena_bytes;   // size of the arena of all tensors; before PLANNED,
                           // bytes of the states in it
    int64_t live_bytes;    // with PLANNED: peak of live bytes, without states
    int rewrites;          // that passes have counted so far
    Origin origin;         // given to nodes that are added
    GraphFull *on_full;    // reports it and exits; NULL: a sentence on stderr
    struct Types *types;   // those that nodes have, which graphs share
    struct HashSlot *slot; // hash of the nodes, for graph_add
    uint32_t num_slots;
    NodeId *named; // hash of the names, for graph_find
    uint32_t num_named, named_size;
};

Graph *graph_new(Arena *a, const char *name);

static inline const Node *graph_node(const Graph *g, NodeId n) {
    return &g->node[n];
}

// Adds a node and returns it, or an equal node that is there already (effects
// and input, param, state and workspace are never merged, nor nodes of
// different groups: set n.group to -1 before fuse).  Commutative operands are
// put in order.  The type is computed; for operations whose shape is declared
// it is taken from n.type.  n.from is replaced by g->origin, n.offset by -1.
// Type, operands and attributes are copied.  A shape error here is our mistake:
// check with type_infer first where the user's text decides.
NodeId graph_add(Graph *g, Node n);

// As graph_add for a node of another graph in the same arena, with other
// operands, another type or group: its attributes are shared, not copied.
NodeId graph_move(Graph *g, Node n);

// The first node of that name (a param, state, input, output or workspace), or
// NO_NODE.  Costs the same however large the graph is.
NodeId graph_find(const Graph *g, const char *name);

// Bytes that a tensor takes: act has the size of its storage type.
int64_t graph_bytes(const Graph *g, const Type *t);

// Whether a value is computed where it is used and never read from memory: a
// constant or an index.
bool node_immediate(const Node *n);

// The stored node through views.
NodeId node_base(const Graph *g, NodeId n);

// Whether the tensors of two nodes share memory of the arena.
bool nodes_overlap(const Graph *g, NodeId a, NodeId b);

// The graph's copy of a type, for a node that is given another.
const Type *graph_type(Graph *g, const Type *t);

// An empty map from the nodes of g: NO_NODE for each, in a.
NodeId *graph_map_new(const Graph *g, Arena *a);

// How often each node is an operand; an array of g->count in a.
uint32_t *graph_uses(const Graph *g, Arena *a);

// The users of each node, as lists: an entry is -1 at the end.  One that uses
// a node twice is there twice.
typedef struct {
    int *first;   // of a node: its first entry
    int *next;    // of an entry: the one after it
    NodeId *user; // of an entry
} Users;

Users graph_users(const Graph *g, Arena *a);

// Ends the program with a diagnostic: the model needs more than g->max_nodes
// nodes.
_Noreturn void graph_report_full(const Graph *g);

// An empty graph with g's name, facts and limits, in the same arena, into
// which a pass rebuilds.
Graph *graph_like(const Graph *g);

// Gives back the memory of a graph's nodes, which is otherwise released with
// its arena.
void graph_free(Graph *g);

// Copies all nodes.  No two nodes of g may be equal, since they would be
// merged.
Graph *graph_clone(const Graph *g);

// Copies node n of old into g with operands mapped through now[], keeping its
// origin and, if the type rule is `declared`, its type.
NodeId graph_copy(Graph *g, const Graph *old, NodeId n, const NodeId *now);

// A node of old with operands mapped through now[], which are in a.
Node node_mapped(const Node *old, const NodeId *now, Arena *a);

// ---- attr.c: attributes of nodes ----

// node_* give the value, or the default where absent.
Attr attr_int(AttrKey key, int64_t value);
Attr attr_float(AttrKey key, double value);
Attr attr_text(AttrKey key, const char *value);
Attr attr_ints(AttrKey key, int count, const int64_t *value);
Attr attr_floats(AttrKey key, int count, const double *value);
// Inserts an attribute into `count` others, which are in order of key.
void attr_insert(Attr *attr, int count, Attr added);
const Attr *node_attr(const Node *n, AttrKey key); // NULL: not there
int64_t node_int(const Node *n, AttrKey key, int64_t otherwise);
double node_float(const Node *n, AttrKey key, double otherwise);
const char *node_text(const Node *n, AttrKey key); // NULL: not there
int64_t node_ints(const Node *n, AttrKey key, int i, int64_t otherwise);

// Whether n is a constant of one number, and which.
bool node_number(const Node *n, double *value);

// Kinds of state.  Six are not part of a checkpoint: derived state, which is
// computed again; sums for data-dependent initial values, which are not needed
// again; gradients and terms of an unfinished update, since there are none
// between updates; scores of a batch, which the runtime collects; and caches,
// which have memory only while their own step runs.
#define STATE_STATISTIC "statistic" // batch_norm's running mean and variance
#define STATE_OPTIMIZER "optimizer" // momentum and other optimizer state
#define STATE_AVERAGE "average"     // averaged params and statistics
#define STATE_GRADIENT "gradient"   // sums over the batches of an update
#define STATE_PARTIAL "partial" // terms of sums over shards (DTensor: Partial)
#define STATE_RUN "run"         // step, seed, loss scale: scalars of the run
#define STATE_METRIC "metric"   // sums that the runtime reads and clears
#define STATE_SCORES "scores"   // rows of an evaluated batch, to be ranked
#define STATE_START "start"     // sums for data-dependent initial values
#define STATE_DERIVED "derived" // prepacked params, counters of blocks
#define STATE_CACHE "cache"     // of a text's positions, while it is decoded

// Whether n is a state of that kind.  A state of a parsed graph may have
// another kind, or none.
bool state_is(const Node *n, const char *kind);
// The bucket of a shard's terms that a state belongs to; -1: none.
int64_t state_bucket(const Node *n);
// The optimizer shard of a parameter or state; -1: none.
int node_optimizer_shard(const Node *n);

// ---- build.c: common nodes ----

// Nodes of operations without attributes.
NodeId graph_op1(Graph *g, Op op, NodeId a);
NodeId graph_op2(Graph *g, Op op, NodeId a, NodeId b);
NodeId graph_op3(Graph *g, Op op, NodeId a, NodeId b, NodeId c);

// Leaves and often-used nodes.
NodeId graph_leaf(Graph *g, Op op, const char *name, Type type);
NodeId graph_state(Graph *g, const char *name, const char *kind, Type type,
                   double init);
// Gives a leaf one more attribute, a whole number.
void leaf_set(Graph *g, NodeId n, AttrKey key, int64_t value);
NodeId graph_constant(Graph *g, Type type, double value);
NodeId graph_number(Graph *g, double value);                   // f32[]
NodeId graph_vector(Graph *g, const double *value, int count); // f32[count]
NodeId graph_values(Graph *g, Type type, const double *value);
NodeId graph_iota(Graph *g, Type type, int axis); // i32: index along axis
NodeId graph_cast(Graph *g, NodeId a, DType to);  // a itself if it is `to`
NodeId graph_reshape(Graph *g, NodeId a, int rank, const int64_t *dim);
NodeId graph_broadcast(Graph *g, NodeId a, const Type *to);
NodeId graph_reduce(Graph *g, Op op, NodeId a, int count, const int64_t *axes);

// Axis i of the result is axis order[i] of a; a itself if the order is the
// same.
NodeId graph_transpose(Graph *g, NodeId a, const int64_t *order);
// Adds low[i] zeros before axis i and high[i] after it; a itself if all are 0.
NodeId graph_pad(Graph *g, NodeId a, const int64_t *low, const int64_t *high);
// The tensors as matrices [count,rows,columns]: see stack in ops.def.
NodeId graph_stack(Graph *g, const NodeId *a, int count, int64_t rows,
                   int64_t columns);
// Drops low[i] elements at the start of axis i and high[i] at its end; a itself
// if all are 0.
NodeId graph_slice(Graph *g, NodeId a, const int64_t *low, const int64_t *high);

NodeId graph_assign(Graph *g, NodeId state, NodeId value);

// Mean and biased variance of all shards, and the number of values of each,
// f32[].
typedef struct {
    NodeId mean, var, count;
} BatchMoments;

// From the sum and the variance of a shard's `count` values.
BatchMoments graph_sync_moments(Graph *g, NodeId sum, NodeId var, double count);

// ---- optimizer.c: the optimizers, from optimizers.def ----

// A state of an optimizer: each parameter's own, of its shape, or a scalar that
// all updates with equal settings share.
typedef struct {
    Op op;
    const char *name;
    enum { SLOT_own, SLOT_shared } scope;
    double (*initial)(const Node *n);
} OptimizerSlot;

extern const OptimizerSlot optimizer_slots[];
extern const int num_optimizer_slots;

// Whether op is in the table; accumulate is not.
bool is_optimizer(Op op);

// The operands are the parameter, scalars, and, if optimizer_counts, the number
// of the update.
int optimizer_num_scalars(Op op);
bool optimizer_counts(Op op);

// The name of operand i, from 1; NULL past the last scalar.
const char *optimizer_scalar(Op op, int i);

// A scalar by its name, the count of updates, a slot; each must exist.
NodeId optimizer_in(const Node *n, const char *scalar);
NodeId optimizer_count(const Node *n);
const OptimizerSlot *optimizer_slot(Op op, const char *name);

// ---- infer.c, shape/window.c ----

// The operand that a library call adds to and leaves its result in, or NO_NODE.
NodeId call_adds_to(const Node *n);

// The type n would have; NULL, or why it has none.
const char *type_infer(const Graph *g, const Node *n, Type *out);

// Window arithmetic: (in + pads - dilation*(window-1) - 1) / stride + 1.
int64_t window_count(int64_t in, int64_t pads, int64_t window, int64_t stride,
                     int64_t dilation);

// ---- samples.c: batch axes ----

// The batch axes of a node: axes along which an index selects one of the N
// samples of a batch.  A short last batch is filled up with padding samples,
// which must not change a result: the front end masks them, and these facts
// show whether every reduction over samples is masked.
typedef struct {
    int32_t stride[MAX_RANK]; // 0: not a batch axis; else index i belongs to
                              // sample i / stride mod N
    int64_t split;    // the stride in elements of a batch axis that a reshape
                      // split into several, as for ghost batches; 0: none
    uint8_t masked;   // a bit for each axis along which the elements of padding
                      // samples are the neutral element of their reduction
    uint8_t constant; // a bit for each axis along which elements differ only
                      // by constants
    bool fixed;       // depends only on constants and states of the run
    bool of_valid;    // depends only on these and the input `valid`
    bool depends_on_batch; // on the number of samples, or on padding samples
} Samples;

// The batch axes of the first `count` nodes.  samples_extend finds those of the
// nodes from .. count - 1; `of` has the ones before.
Samples *graph_samples(const Graph *g, NodeId count, Arena *a);
void samples_extend(const Graph *g, Samples *of, NodeId from, NodeId count);

// ---- print.c, read.c: the text form ----

void graph_print(Text *t, const Graph *g);
void node_print(Text *t, const Graph *g, NodeId n);

// Names a node in the words of the model: "conv of layer1.conv_1, backward,
// resnet9.net:13"; a leaf by its name.
void node_describe(Text *t, const Node *n);

// Reads the text of graph_print, and looser text: blanks anywhere, empty lines,
// lines that start with #.  NULL on a mistake, with "LINE: message" in *error.
// It checks only the form: graph_verify must come next.
Graph *graph_read(Arena *a, const char *text, size_t length,
                  const char **error);

// ---- verify.c: invariants between passes ----

// NULL, or which rule is broken at which node.
const char *graph_verify(const Graph *g, Arena *a);

// ---- eval.c: the meaning of every operation, in double ----

// Computes every node of g.  leaf[n] holds the elements of input, param or
// state n; NULL there means that a state has its init and others are zero, and
// leaf itself may be NULL.  The result holds every node's elements.  With round
// set, results are rounded to their element type, else kept in double.
double **graph_eval(const Graph *g, Arena *a, double *const *leaf, bool round);

// Called right after node n is computed: value has its elements, and those of
// its operands.
typedef void NodeVisitor(void *context, NodeId n, double *const *value);

// Computes the wanted nodes and those that they need, visits each wanted one,
// and releases a node's memory after its last use.  g has no clip and no
// optimizer, which read more than their operands.  With round set, results are
// rounded to their element type, but leaves are not.
void graph_eval_visit(const Graph *g, double *const *leaf, bool round,
                      const bool *wanted, NodeVisitor *visit, void *context);

// The elements of the kept nodes, in double; NULL for all others.
double **graph_eval_kept(const Graph *g, Arena *a, double *const *leaf,
                         const bool *kept);

// Computes node n alone into out, zeros at first, from the elements of its
// operands.
void node_eval(const Graph *g, NodeId n, double *const *value, double *out,
               Arena *a);

// ---- eval/pointwise.c, round.c and random.c: numbers ----

// An element of pointwise node n from one of each operand.  Operands that the
// operation does not have are ignored.
double scalar_eval(const Node *n, double a, double b, double c);

// One number in [0, 1), in steps of 2^-24: Philox4x32-10 (Salmon et al.,
// "Parallel Random Numbers: As Easy as 1, 2, 3", SC11) with key (seed, stream)
// and counter (index, epoch, 0, 0); the first word's upper 24 bits.
double random_uniform(uint32_t seed, uint32_t stream, uint32_t epoch,
                      uint32_t index);

// The same where four neighbours share a block: of block index / 4 the word
// index % 4.
double random_shared(uint32_t seed, uint32_t stream, uint32_t epoch,
                     uint32_t index);

// A number for a name, the value of `stream` attributes: FNV-1a, 31 bits.
int64_t stream_of(const char *name);

// Rounds to the element type and back.
double dtype_round(DType d, double value);

#endif
