// Shared by autodiff and its rules.
#ifndef PASSES_GRADIENTS_H
#define PASSES_GRADIENTS_H

#include "ir/ir.h"

typedef struct {
    Graph *g;
    const bool *trains; // of a forward node: a trained param leads to it
    NodeId *grad;       // of a forward node: the sum so far, or NO_NODE
    NodeId id;          // the node that the rule is for
    Node node;          // a copy, as g->node moves when the graph grows
    NodeId dy;          // its gradient, which has its shape
} Backward;

// Gives a gradient to each operand that trains.
typedef void GradRule(Backward *b);

// In the order of Op.
extern GradRule *const grad_rule[];

// Whether no gradient passes the operation, so that nothing trains before it.
bool grad_stops(Op op);

#endif
