// The passes: graph -> graph.  pipeline.c has their order.
#ifndef PASSES_PASSES_H
#define PASSES_PASSES_H

#include "passes/plan/plan.h"

// The parts of a training step with shards.
// PART_OPTIMIZE updates one optimizer shard; PART_APPLY does the rest of the
// update.
typedef enum { PART_WHOLE, PART_SHARD, PART_OPTIMIZE, PART_APPLY } StepPart;

// The options of a compilation.
typedef struct {
    const char *device;  // "host" or "cuda"
    int multiprocessors; // of the described device; 0: the generic one
    TimeModel time_model; // on that device
    DType act;           // of activations, from the recipe
    DType storage;       // of ACT in this device's memory
    int level;           // 0: a kernel for each operation; 1: fused
    bool rematerialize;  // recompute values instead of keeping them
    int64_t memory;      // bytes that an arena may take; 0: any number
    DType measured;      // of ACT for that limit: the same on all devices
    bool reuse;          // let buffers share memory when not live together
    StepPart part;       // of a training step that remains
    int optimizer_shard; // of PART_OPTIMIZE
    bool no_updates;     // gradients are computed, and optimizers left out
    bool deep_verify;    // also print, read back and compare after each pass
    const int64_t *rewrite_limit; // makes that many rewrites of each graph, the
                                  // first ones; NULL: all
    uint32_t left_out; // bit i: pass i of standard_passes, where it gives no
                       // fact, leaves graphs as they are
} PassOptions;

// The options of a device, with any number of bytes of memory.  The graphs are
// the same for all: only the storage of activations differs, the recipe's
// precision on cuda and f32 on the host.
PassOptions pass_options(const Recipe *recipe, const char *device);

// A pass takes a verified graph and returns the graph it becomes, in the same
// arena.  scratch is released when it returns.
typedef Graph *PassFunction(Graph *g, Arena *scratch, const PassOptions *o);

// The steps of a program between two passes.
typedef struct {
    const Program *program;
    const PassOptions *options;
    Arena *arena;
    int shards, waiting_sums, optimizer_shards; // of the program
    int lockstep;                               // as in Plan
    Step *step; // has room for two more
    int count;
    int64_t state_bytes;     // of all states, by what ACT is
    int64_t partial, partial_bytes; // as in Plan
    const char *not_decoded; // the reason; NULL: decoded, or has no texts
} Steps;

typedef void StepsFunction(Steps *s);

// The steps that passes begin with, with room for two more: those of the
// program, gradients if it has them, and decode.  *why: see decode_graph.
Step *steps_given(const Program *p, Arena *a, int *count, const char **why);

// The options for a step of a program with so many shards.
PassOptions step_options(const PassOptions *o, const Step *step, int shards);

typedef struct {
    const char *name;
    PassFunction *run;
    unsigned needs, gives; // facts of the graph (ir.h)
    bool training;         // only for graphs with a loss to train on
    const char *summary;   // one line, for sinter passes
    StepsFunction *then;   // for all steps of a program together, after it
} Pass;

// The order; ends with a NULL name.
extern const Pass standard_passes[];
const Pass *pass_find(const char *name);

// Called after each pass when given, with the graph it left.
typedef void PassHook(void *context, const Pass *pass, const Graph *g);

// Runs every standard pass up to and including the one named last (NULL: all)
// that applies to g.  A graph has something to train when it holds an output
// named "loss" and an optimizer node.  Ends the program with a report when the
// verifier finds a fault, which is ours.
Graph *passes_run(Graph *g, const PassOptions *o, const char *last,
                  PassHook *hook, void *context);

// The same for a graph that the pass named `after` has left, whose memory is
// given back.
Graph *passes_after(Graph *g, const PassOptions *o, const char *after,
                    const char *last);

// Counts a rewrite that leaves the meaning as it is, and whether it is within
// the limit.  Passes that --rewrite-limit bisects call it before each.
bool rewrite_allowed(Graph *g, const PassOptions *o);

// Runs one pass and verifies.
Graph *pass_run(Graph *g, const PassOptions *o, const Pass *pass);

// ---- canonicalize.c: rewrites of layers, values up to rounding ----
PassFunction pass_canonicalize;

// ---- expand_attention.c ----

// g with other operations in place of attention, which has no dropout.
Graph *graph_expand_attention(const Graph *g, Arena *scratch);

// ---- fold_batch_norm.c: batch_norm of an evaluation ----
PassFunction pass_fold_batch_norm;

// ---- prepare.c: values that all batches of an evaluation share ----
PassFunction pass_prepare;

// The graph that computes the states which pass_prepare leaves, before the
// first batch: NULL when there are none.  g is the graph before pass_prepare.
Graph *prepare_graph(Graph *g);

// Whether the first of those states are the ones of `part`, in the same order.
bool prepares_first(const Graph *g, const Graph *part);

// ---- decode.c: a prediction for the next position of one text ----
// From a prediction for texts i32[N,T] of scores f32[N,T,V].  NULL if it is
// another one, or with a phrase in *why if a position may read later ones.
Graph *decode_graph(const Graph *predict, const char **why);

// ---- gradients_only.c: a step that computes gradients and changes nothing ----
// From the graph of a training step; optimizer nodes stay, so that autodiff
// knows the parameters.
Graph *gradients_graph(const Graph *train, const char *name);

// ---- autodiff.c: append the backward graph ----
// Walks back from output "loss", whose gradient is loss_scale, and appends
// gradient(param, value) for every param that an optimizer node updates.
// Values that do not depend on a trained param get no gradient.
PassFunction pass_autodiff;

// ---- stack_sums.c: sums of many equal terms, as of a loop over positions ----
PassFunction pass_stack_sums;

// ---- shards.c: the part of a shard, and the update ----
PassFunction pass_shards;

// ---- buckets.c: ranges of terms that ranks add at once ----
// Gives each state of a shard's terms its bucket.
StepsFunction steps_buckets;
// Finds the buckets of a step of kind TRAIN; all steps have plans.
void plan_buckets(Plan *plan, Step *step, Arena *a);

// ---- optimizer.c: optimizer nodes become assignments ----
PassFunction pass_optimizer;

// ---- optimizer_shards.c: the update of an optimizer shard, or the rest ----
PassFunction pass_optimizer_shards;
// Finds the states of each optimizer shard of a plan.
void plan_optimizer_shards(Plan *plan, int shards, Arena *a);

// ---- expand.c: composite operations become primitive ones ----
PassFunction pass_expand;

// ---- direct_conv.c: convolutions of few numbers as products ----
PassFunction pass_direct_conv;

// ---- direct_matmul.c: small matrix products as products and sums ----
PassFunction pass_direct_matmul;

// ---- conv_reductions.c: conv-backward reductions ----
PassFunction pass_conv_reductions;

// ---- precision.c: casts, and the dynamic loss scale ----
PassFunction pass_precision;

// ---- average.c: an average of every step is taken in the step ----
// A step and the averages after it, as one graph.  The same passes have run on
// both.
Graph *step_with_average(const Graph *step, const Graph *average);

// ---- layout.c: pads channels where tensor cores need multiples of 8 ----
PassFunction pass_layout;

// ---- derive.c: weight prepacking: values of params alone become states ----
PassFunction pass_derive;

// The graph that computes every derived state of the graphs from parameters,
// for the start of a run and after loading: NULL when there is none.  They are
// graphs that pass_derive has left.
Graph *derive_graph(Graph *const *graph, int count);
// Lets a step assign the derived states of the parameters that it assigns,
// though it reads none: those of that graph.
void step_derives(Graph *step, const Graph *derive);

// ---- simplify.c, dce.c ----
PassFunction pass_simplify;
PassFunction pass_dce;

// ---- statistics.c: sums of squares from a library in place of a variance ----
PassFunction pass_statistics;

// ---- fuse.c: which nodes share a kernel ----
// Leaves every node with a group that is launched as one, each group a run of
// consecutive nodes, and recomputed nodes as copies in each group.
PassFunction pass_fuse;

// ---- inplace.c: library calls that add to a tensor in memory ----
PassFunction pass_inplace;

// ---- bit_packing.c: masks and small indices in few bits ----
PassFunction pass_bit_packing;

// ---- schedule.c: order of the launches ----
PassFunction pass_schedule;

// ---- rematerialize.c: values recomputed instead of kept ----
PassFunction pass_rematerialize;

// ---- memory.c: live ranges to offsets in one arena ----
PassFunction pass_memory;

// Gives every param and state of the graphs an offset, the same in each that
// has it, from 0 up; returns the end of the last.  The terms of a shard are the
// last ones, from *partial on.
int64_t memory_states(Graph *const *graph, int count, int64_t *partial);

// Whether pass_memory would end within so many bytes.
bool memory_fits(Graph *g, int64_t bytes);

// ---- memory_verify.c ----
// Checks a memory plan without the planner's code: NULL, or the fault.
const char *memory_verify(const Graph *g, Arena *a);

// ---- compile.c: all graphs of a program for one device ----
StepsFunction steps_average, steps_derive, steps_measure, steps_assign;

Plan *program_plan(const Program *p, const PassOptions *o);

// Whether that plan takes no more than the options' memory; no plan is made.
bool program_fits(const Program *p, const PassOptions *o);

// The same launches for another device, whose options differ in nothing else.
Plan *plan_elsewhere(const Plan *plan, const PassOptions *o);

// ---- cost.c: the cost of a plan ----
typedef struct {
    int64_t launches;    // kernels and library calls in a step
    int64_t flops;       // of the whole step: 2 for each multiply-add
    int64_t bytes;       // global memory read and written, weights included
    int64_t batch_bytes; // ... by tensors that have the batch dimension
    int64_t arena;       // bytes that are planned
} Cost;

// Counts every launch, also of kernels that library fusions can save:
// passes/plan/library_fusion.h has the saving of a device.
Cost graph_cost(const GraphPlan *p);

// The cost of an update, with all batches of `accumulate`: all but the last
// only accumulate gradients.  False: the numbers overflow.
bool update_cost(const Program *p, const Plan *plan, Cost *cost);

// The least arena that a plan of these launches in this order can have: all
// states of the program, and the most that is live at once in any of its steps.
int64_t plan_bound(const Plan *plan);

// Whether each node has the batch dimension.
bool *graph_batched(const Graph *g, Arena *a);

// Multiply-adds of one node, times 2.  0 for other operations.
int64_t node_flops(const Graph *g, NodeId n);

#endif
