// What the files that grow random graphs share.
#ifndef TESTS_GRAPHS_GARDEN_H
#define TESTS_GRAPHS_GARDEN_H

#include "ir/ir.h"

// A graph while it grows.
typedef struct {
    Graph *g;
    uint64_t state;
    NodeId *pick; // what operands are drawn from
    int count;
    int64_t most;  // elements of a node
    bool source;   // as the front end leaves it: without ACT, to be trained
    bool vanishes; // a dimension may be 0
} Garden;

// ---- garden.c ----

uint32_t garden_draw(Garden *b, uint32_t below);
const Type *garden_type(const Garden *b, NodeId n);

// Makes n an operand of what is to come, and returns it.
NodeId garden_keep(Garden *b, NodeId n);

// Adds n, or gives NO_NODE if its operands do not allow it or it is too large.
NodeId garden_plant(Garden *b, Node n);
NodeId garden_op1(Garden *b, Op op, NodeId x);
NodeId garden_op2(Garden *b, Op op, NodeId x, NodeId y);
NodeId garden_op3(Garden *b, Op op, NodeId x, NodeId y, NodeId z);

// x with attributes.
NodeId garden_with(Garden *b, Op op, NodeId x, int count, const Attr *attr);

// A library call on x and y, in f32 or in act.
NodeId garden_contract(Garden *b, Op op, NodeId x, NodeId y, int count,
                       const Attr *attr);

// A value of this type and rank (-1: any), the newer the likelier, or NO_NODE.
NodeId garden_any(Garden *b, DType dtype, int rank);

// A name with this stem that nothing else has.
const char *garden_name(Garden *b, const char *stem);

NodeId garden_leaf(Garden *b, Op op, DType dtype, int rank, const int64_t *dim);
// A number of the run, as run.step, i32[].
NodeId garden_run(Garden *b, const char *name);
NodeId garden_number(Garden *b, double value);

// ---- layers.c ----

// The softmax of the rows of x.
NodeId garden_shares(Garden *b, NodeId x);

// ---- families.c, functions.c, layers.c, pixels.c, sequences.c ----

// Adds operations of one family, and returns the last of them, or NO_NODE
// where no operands were found that fit.
typedef NodeId Family(Garden *b);

Family family_unary, family_binary, family_choice, family_reduction,
    family_pool, family_resized, family_moved, family_transposed,
    family_gathered, family_taken, family_collected, family_view,
    family_product, family_convolution, family_uniform, family_best;
Family family_guarded, family_truth, family_whole, family_narrowed;
Family family_normalized, family_exponents, family_composite, family_costs,
    family_layer, family_tail, family_separable, family_pixels;
Family family_embedded, family_placed, family_dropped, family_attention;

#endif
