// The update of one parameter, in the graph that the optimizer pass builds.
// Shared by its .c files.
#ifndef PASSES_UPDATE_H
#define PASSES_UPDATE_H

#include "ir/ir.h"

typedef struct {
    Graph *g;
    Node from; // the optimizer node, operands mapped
    NodeId param, rate;
    NodeId gradient; // of the loss itself, clipped
} Update;

// ---- update.c: parts of updates ----

NodeId update_number(Update *u, double value);
NodeId update_op2(Update *u, Op op, NodeId a, NodeId b);

// The operand of that name, and the number of this update as f32.
NodeId update_in(const Update *u, const char *scalar);
NodeId update_count(Update *u);

// An attribute as a constant.
NodeId update_setting(Update *u, AttrKey key);

// Whether n is the constant 0, so that its products need not be computed.
bool update_is_zero(const Update *u, NodeId n);

// The parameter's own slot of that name in ir/optimizers.def.
NodeId update_slot(Update *u, const char *name);

// The slot of that name that all updates with equal settings share.  *first is
// whether this is the first that asks; it is the one to assign.
NodeId update_shared(Update *u, const char *name, const char *settings,
                     bool *first);

// a x + (1 - a) y
NodeId update_average(Update *u, NodeId a, NodeId x, NodeId y);

// x + decay * parameter, or x where the decay is 0.
NodeId update_add_decay(Update *u, NodeId x, NodeId decay);

// x as a decay outside the gradient leaves it: times 1 - rate * decay.
NodeId update_shrink(Update *u, NodeId x, NodeId decay);

// The slot's value after this update: a slot + (1 - a) x.
NodeId update_moment(Update *u, const char *slot, NodeId a, NodeId x);

// 1 - beta^t
NodeId update_correction(Update *u, NodeId beta);

// sqrt(v) + eps, and sqrt(v / (1 - beta^t)) + eps.
NodeId update_root(Update *u, NodeId v);
NodeId update_root_corrected(Update *u, NodeId v, NodeId beta);

// d, or d with momentum in the slot of that name.
NodeId update_accelerate(Update *u, NodeId d);

// The root of the sum of squares, a scalar.
NodeId update_norm(Update *u, NodeId x);

// The ratio of two norms a and b, or 1 where either is 0.
NodeId update_unless_zero(Update *u, NodeId a, NodeId b, NodeId ratio);

// The parameter becomes from - rate * direction.
void update_descend(Update *u, NodeId from, NodeId rate, NodeId direction);

// ---- the rules, in a file for each family ----

// For one parameter, or for all of an optimizer's.
typedef void UpdateEach(Update *u);
typedef void UpdateTogether(Update *u, int count, Arena *scratch);

#define RULE_each UpdateEach
#define RULE_together UpdateTogether
#define OPTIMIZER(name, shape, rule, check) RULE_##rule update_##name;
#include "ir/optimizers.def"
UpdateEach update_accumulate;

// ---- accumulate.c ----

// The sum of a gradient and those of its parameter that have waited; none wait
// afterwards.
NodeId gradient_collect(Graph *g, NodeId param, NodeId gradient);

// ---- clip.c ----

// Limits the gradients, NO_NODE where a param has none, as the clip node says.
void gradients_clip(Graph *g, Node clip, NodeId *gradient, NodeId count);

#endif
