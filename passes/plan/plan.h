// The plan: a program's launches on one device, computed once when its graphs
// are final.  codegen, costs, tools and comparisons read it.  Then tools/tile.c
// chooses tile fusions by their costs: it alone writes to them.
#ifndef PASSES_PLAN_PLAN_H
#define PASSES_PLAN_PLAN_H

#include "passes/plan/access_region.h"
#include "passes/plan/fork.h"
#include "passes/plan/merged_launch.h"
#include "passes/plan/tile_fusion.h"

enum { NO_LAUNCH = -1 };

// Why kernels are not merged on a described device: one of them would have
// fewer resident blocks than hide the latency of its loads, or takes long.
typedef struct {
    int kernel; // NO_LAUNCH: they are, or could not be without a device
    int resident, merged_resident; // blocks of it, alone and merged
    double seconds, merged_seconds; // before the last block's sums
} MergeRefusal;

// The launches of one graph.
typedef struct GraphPlan {
    const Graph *graph;
    const Group *group; // a launch each, in order, with its plan
    int num_groups;
    const bool *stored; // of each node: its value is in memory
    const Edge *edge;   // in the order of the groups that read
    int num_edges;
    LibraryFusions fusions;
    MergedLaunches merged;
    Forks forks;
    TileFusions tiles;
    MergeRefusal *refusal; // of each group: why it is not merged with the one
                           // before; NULL: no device is described
} GraphPlan;

// The estimated time of a kernel on a described device, in seconds.
typedef struct {
    double least;   // that its memory accesses and instructions take
    double issue;   // that its instructions take
    double latency; // that its loads take with one resident block
    double tail;    // of the last block, which adds the sums of the others
    int resident;   // blocks that fit on a multiprocessor
    int blocks;     // of the launch for each multiprocessor
} KernelTime;

// The time with room for `resident` blocks on a multiprocessor.
double kernel_seconds(const KernelTime *time, int resident);

// Estimates of registers are wrong by a third for one kernel in ten: what an
// estimate finds slower by less than a quarter is not taken as slower.
bool time_exceeds(double seconds, double other);

// Estimates kernels on a described device.  The estimate reads their text,
// which passes do not know, so the caller of the passes gives the function.
typedef struct TimeModel {
    // A time for each group; that of a library call is zero.  NULL: no device
    // is described.
    const KernelTime *(*times)(const struct TimeModel *time_model,
                               const GraphPlan *p, Arena *a);
    const void *device;
    DType act;      // of activations on it
    double launch;  // seconds between two launches
    double barrier; // seconds between two kernels of a merged launch
    double max_merged_seconds; // of a kernel, alone, that may be merged
} TimeModel;

// Plans a graph.  merges: kernels may share launches, as step_merges says of
// the graph's step.
GraphPlan *graph_plan(const Graph *g, bool merges, Arena *a);

// Divides merged launches where the described device, if there is one, is
// faster with separate launches.
void plan_merges_by_time(GraphPlan *p, const TimeModel *time_model, Arena *a);

// Appends the plan in lines that begin with #.
void plan_print(Text *t, const GraphPlan *p);

// A range of a shard's terms in the arena, which ranks add while the step goes
// on: passes/buckets.c.
typedef struct Bucket {
    int64_t offset, bytes;
    int ready;  // the launch that stores the last of them
    int needed; // the launch of the update that reads the first of their sums
    const char *needed_by; // its step: apply, optimize_0
} Bucket;

// Appends the buckets of a step in such lines.
void plan_print_buckets(Text *t, const Step *s);

// The states of an optimizer shard in the arena: its parameters, and their
// optimizer states.  The ranges of all shards follow one another.
typedef struct {
    int64_t params, param_bytes, states, state_bytes;
} OptimizerShard;

// The graphs of a program for one device.  They share one arena: states have
// the same offsets in each.
typedef struct Plan {
    const char *device; // "host" or "cuda"
    DType act;
    Step *step; // with plans; those of the program, and derive where something
                // is derived
    int num_steps;
    int shards, waiting_sums; // of the program
    int lockstep; // shards at once in one process, each with a copy of the
                  // arena from the terms on (runtime/lockstep.c)
    int64_t state_bytes, arena_bytes;
    // The states of kind "partial": the terms of a shard, f32, and after them
    // waiting_sums times as many bytes.
    int64_t partial, partial_bytes;
    const OptimizerShard *optimizer_shard;
    int num_optimizer_shards; // 0: the optimizer is not divided
    const char *not_decoded; // why a model of texts has no decode step, or NULL
} Plan;

// Bytes of the arena of a process that runs all shards: in lockstep, each
// further one has its own memory from the terms on.
int64_t plan_process_bytes(const Plan *p);

// The step of that name, or NULL; its graph, or NULL.
const Step *plan_step(const Plan *p, const char *name);
Graph *plan_graph(const Plan *p, const char *name);

#endif
