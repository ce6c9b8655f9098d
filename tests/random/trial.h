// Trial: one random program, the numbers that it is given, and what it must
// make of them.
//
// The graph as it was grown, with its gradients and updates but before every
// other pass, is evaluated in double: that is right.  Its unfused plan is
// evaluated with a rounding to the stored type at each operation: how far that
// is from right is what the kernels are measured by, and where that is too
// little, what roundings at random do to it, and to the compiled plan if that
// stores as activations what follows from them and is f32 in the other.
#ifndef TESTS_RANDOM_TRIAL_H
#define TESTS_RANDOM_TRIAL_H

#include "ir/group.h"
#include "passes/passes.h"
#include "runtime/rt.h"
#include "tests/random/numbers.h"

// What a program is made of, and how it is planned.
typedef struct {
    uint32_t seed; // of the graph, if grown, and of its numbers
    DType precision, storage;
    int level;
    bool reuse;       // of memory
    bool reads;       // each graph back from its text
    uint32_t before;  // which passes run more than once, and in which order
    uint32_t without; // passes that are left out, as PassOptions has them
    int64_t limit;    // of rewrites; INT64_MAX: none
    int memory;       // percent of what keeping everything takes; 0: any
    bool again;       // values are made again to take so little
    bool plain;       // the unfused plan is compiled as well
    bool gpu;         // it runs on GPU 0
    bool faithful;    // every thread of a kernel exists
} Setup;

typedef struct {
    Arena *a;
    Setup setup;
    const Graph *grown;
    Program *program;
    Plan *plan;   // what is compiled
    Graph *meant; // what is right
    double **right;
    bool *unsure; // of meant: whether a rounding may decide about the value
    Plan *unfused;
    Values *rough;          // of each of its steps
    uint32_t numbers;       // seed of the leaves
    unsigned char *squares; // of the compiled program, see riding.h; or NULL
} Trial;

// How many values were compared, and how many could not be.
typedef struct {
    long graphs, unfused, nodes, results, unsure, infinite, riding, failed;
} Counts;

// The setup and the graph of a seed.
Setup setup_of(uint32_t seed);
Graph *setup_graph(Arena *a, const Setup *s);

// What is compiled, and the step of it that trains.
Plan *trial_plan(Arena *a, const Graph *g, const Setup *s);
const Graph *trial_step(const Plan *p);

// Plans the graph, and finds numbers for which every value is finite and, if
// there are any, for which no rounding decides about a value.  NULL when none
// are finite.
Trial *trial_new(Arena *a, const Graph *g, const Setup *s);

// Runs the compiled plan twice on a device, which it closes, and compares:
// NULL, or what is wrong.
const char *trial_judge(Trial *t, const RtPlan *rt, RtDevice *d,
                        Counts *counts);

#endif
