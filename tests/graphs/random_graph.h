// A random graph while it grows, and the families of operations it grows by.
#ifndef TESTS_GRAPHS_RANDOM_GRAPH_H
#define TESTS_GRAPHS_RANDOM_GRAPH_H

#include "ir/ir.h"

typedef struct {
    Graph *g;
    uint64_t state;
    NodeId *pick; // operands of later nodes are drawn from these
    int count;
    int64_t max_elements; // of a node
    bool source;          // as from the front end: without ACT, to be trained
    bool vanishes;        // a dimension may be 0
} Random;

// ---- random_graph.c ----

uint32_t random_draw(Random *b, uint32_t below);
const Type *random_type(const Random *b, NodeId n);

// Lets later nodes use n as an operand, and returns n.
NodeId random_keep(Random *b, NodeId n);

// Adds n, whose type says only what its operands leave open; NO_NODE if an
// operand is missing, its type is invalid or it is too large.
NodeId random_add(Random *b, Node n);
NodeId random_op1(Random *b, Op op, NodeId x);
NodeId random_op2(Random *b, Op op, NodeId x, NodeId y);
NodeId random_op3(Random *b, Op op, NodeId x, NodeId y, NodeId z);

// x with attributes.
NodeId random_with(Random *b, Op op, NodeId x, int count, const Attr *attr);

// A library call on x and y, in f32 or in act.
NodeId random_contract(Random *b, Op op, NodeId x, NodeId y, int count,
                       const Attr *attr);

// A value of this type and rank (-1: any), the newer the likelier, or NO_NODE.
NodeId random_any(Random *b, DType dtype, int rank);

// A name with this stem that no other node has.
const char *random_name(Random *b, const char *stem);

NodeId random_leaf(Random *b, Op op, DType dtype, int rank, const int64_t *dim);
// A number of the run, as run.step, i32[].
NodeId random_run(Random *b, const char *name);
NodeId random_number(Random *b, double value);

// ---- layers.c ----

// The softmax of the rows of x.
NodeId random_softmax(Random *b, NodeId x);

// ---- families.c, functions.c, layers.c, pixels.c, sequences.c ----

// Adds operations of one family, and returns the last of them, or NO_NODE
// where no operands were found that fit.
typedef NodeId Family(Random *b);

Family family_unary, family_binary, family_choice, family_reduction,
    family_pool, family_resized, family_moved, family_transposed,
    family_gathered, family_taken, family_collected, family_view,
    family_product, family_convolution, family_uniform, family_best;
Family family_guarded, family_truth, family_whole, family_narrowed;
Family family_normalized, family_exponents, family_composite, family_costs,
    family_layer, family_tail, family_separable, family_pixels;
Family family_upsampled, family_sequence, family_rms;
Family family_embedded, family_tied, family_placed, family_rotary,
    family_dropped, family_attention, family_grouped;

#endif
