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

#include "passes/passes.h"
#include "passes/plan/group.h"
#include "runtime/rt.h"
#include "tests/random/numbers.h"

// Whether weights are averaged: as part of each step, or in one of its own.
typedef enum { AVERAGE_NEVER, AVERAGE_EACH_STEP, AVERAGE_SOMETIMES } Averaged;

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
    int stages;       // of a program that trains
    uint32_t frozen;  // which params train in which stage
    bool gathers;     // there are steps that only gather gradients
    Averaged average;
    bool back;        // averages are written back to params
    bool evaluates;   // there is an evaluation
    bool of_averages; // in which they stand for params, if there are any
    int row;          // steps in a row after each by itself; 0: none
    bool gpu;         // it runs on GPU 0
    bool faithful;    // every thread of a kernel exists
    bool tiled;       // contractions are tile kernels, in 16 bits
    bool described;   // the plan is for a described GPU
} Setup;

typedef struct {
    Arena *a;
    Setup setup;
    const Graph *grown;
    const Program *source; // before all passes
    const Step *turn;      // of it: trains, gathers, averages or evaluates
    int num_turns, now;    // which of them is judged
    Program *program;
    Plan *plan;   // what is compiled
    Graph *meant; // what is right
    double **right;
    bool *unsure; // of meant: whether a rounding may decide about the value
    Plan *unfused;
    Values rough; // of its step
    Start start;  // of the step
    unsigned char
        *squares; // of the compiled program, see fusing_device.h; or NULL
    int tiles;    // tile kernels of the plan
} Trial;

// How many values were compared, and how many could not be.
typedef struct {
    long graphs, unfused, nodes, results, unsure, infinite, fusing, row, failed;
    long tiled, untiled; // tile kernels of programs, programs without any
} Counts;

// The setup and the graph of a seed; and the setup in which contractions are
// tile kernels.
Setup setup_of(uint32_t seed);
void setup_tile(Setup *s);
Graph *setup_graph(Arena *a, const Setup *s);

// What is compiled, and the step of it that trains.
Plan *trial_plan(Arena *a, const Graph *g, const Setup *s);
const Graph *trial_step(const Plan *p);

// Plans the program, and takes the first turn.  NULL when no numbers are
// finite.  One that is to have tile kernels and has none takes no turn.
Trial *trial_new(Arena *a, const Graph *g, const Setup *s);

// Turns to one of the steps: finds numbers for which every value is finite and,
// if there are any, for which no rounding decides about a value.  False when
// none are finite.
bool trial_turn(Trial *t, int turn);

// Runs that step of the compiled plan twice on a device, which it closes, and
// compares: NULL, or what is wrong.
const char *trial_judge(Trial *t, const RtPlan *rt, RtDevice *d,
                        Counts *counts);

// Runs as many steps in a row as the setup says, in an order that is drawn, and
// compares what each leaves with what it should make of what it found.
const char *trial_row(Trial *t, const RtPlan *rt, RtDevice *d, Counts *counts);

#endif
