// The plan: a program's launches on one device, computed once when its graphs
// are final.  codegen, costs, tools and comparisons read it.
#ifndef PASSES_PLAN_PLAN_H
#define PASSES_PLAN_PLAN_H

#include "passes/plan/access_region.h"
#include "passes/plan/merged_launch.h"

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
} GraphPlan;

// merges: launches may be merged, see step_merges.
const GraphPlan *graph_plan(const Graph *g, bool merges, Arena *a);

// Appends the plan in lines that begin with #.
void plan_print(Text *t, const GraphPlan *p);

// The graphs of a program for one device.  They share one arena: states have
// the same offsets in each.
typedef struct Plan {
    const char *device; // "host" or "cuda"
    DType act;
    Step *step; // with plans; those of the program, and derive where something
                // is derived
    int num_steps;
    int64_t state_bytes, arena_bytes;
} Plan;

// The step of that name, or NULL; its graph, or NULL.
const Step *plan_step(const Plan *p, const char *name);
Graph *plan_graph(const Plan *p, const char *name);

#endif
