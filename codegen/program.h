// Shared declarations of the writers of a trainer's two files.  Each file here
// writes one part from all plans; program.c orders the parts.
#ifndef CODEGEN_PROGRAM_H
#define CODEGEN_PROGRAM_H

#include "codegen/emit.h"

// The licence line of both files.
#define EMITTED_LICENCE                                                        \
    "// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception\n"

// A step of all plans, which differ in addresses and numbers of blocks.
typedef struct {
    const Step *step;
    const char *name;
    const GraphPlan *plan[NUM_PLANS];
    const Graph *graph; // of the host
    Kernel *kernel;
    int count;
    const Launches *launches;
} PlannedStep;

typedef struct {
    const Program *program;
    const Plan *const *plan;
    const CodegenOptions *options;
    Arena *a;
    PlannedStep *step;
    int num_steps;
    const Kernel **kernel; // with a text of their own, in order
    int num_kernels;
    const MergedKernel **merged; // the same; numbered after the kernels
    int num_merged;
    FusionTables fusions;
    bool merges, tiles, prologues, stored; // whether there are any
    int tiled;                             // which plan has tile kernels
} Writer;

// Defines the activation type for the prelude.
int act_bits(DType act);

// ---- wrap.c ----

// Words separated by commas, wrapped at the page's width.
typedef struct {
    Text *t;
    int column, indent, written;
} Wrap;

void wrap_add(Wrap *w, const char *word);

// ---- kernel_file.c ----

// NAME.cu.
void kernels_write(const Writer *w, Text *t);

// ---- entry_points.c ----

void entries_write(const Writer *w, Text *t);

// ---- library_calls.c ----

// The second operand of a library call, or its only one again.
NodeId called_second(const Node *d);
const Node *called_node(const Graph *g, const Kernel *k);
bool any_calls(const Writer *w);

void calls_write(const Writer *w, Text *t);
void fusion_tables_write(Writer *w, Text *t);
void merged_tables_write(Writer *w, Text *t);

// ---- tile.c ----

// The tile kernels of the plan `tiled`.
void tiles_write(Writer *w, Text *t, TileTexts *out);

// ---- reroll.c ----

// An argument of a launch: the address of a tensor, or of a slice in its
// operand, and bytes.
typedef struct {
    NodeId node; // NO_NODE: the arena itself
    bool slice;
    int plus;
} Argument;

int launch_arguments(const Kernel *k);
Argument launch_argument(const Graph *g, const Kernel *k, int i);

// An argument of a launch in a loop that differs in some iteration.
typedef struct {
    int launch, argument;
} Column;

// A loop over `period` launches from `first` on, with `trips` iterations.
typedef struct {
    int first, period, trips;
    int calls; // among the launches of an iteration
    Column *column;
    int columns;
} LaunchLoop;

// All launches of a step, each as part of one loop, in order; a launch that
// does not repeat is a loop of one iteration.
LaunchLoop *reroll_launches(const PlannedStep *s, Arena *a, int *count);

// The launches of a step that its function has, each one of a loop once.
int count_emitted_launches(const PlannedStep *s, Arena *a);

// The column of an argument, or -1 if it is the same in all iterations.
int loop_column(const LaunchLoop *r, int launch, int argument);

// The argument in a column of iteration `number`.
Argument loop_argument(const PlannedStep *s, const LaunchLoop *r, int number,
                       int column);

// ---- steps.c ----

void step_write(const Writer *w, Text *t, const PlannedStep *s);
void wrappers_write(const Writer *w, Text *t);

// ---- plan_tables.c: which is the index of a plan ----

extern const char *const on_device[NUM_PLANS];

void states_write(const Writer *w, Text *t, int which);
void inputs_write(const Writer *w, Text *t, int which);
void gradients_write(const Writer *w, Text *t, int which);
void buckets_write(const Writer *w, Text *t, int which);
void forks_write(const Writer *w, Text *t);
void optimizer_shards_write(const Writer *w, Text *t, int which);
void step_table_write(const Writer *w, Text *t, int which);
void stored_write(Writer *w, Text *t, int which);
void plan_write(const Writer *w, Text *t, int which);

// ---- library.c ----

// The functions of a library, for a program that includes instance.h.
void functions_write(const Program *p, Text *t);

// ---- trainer.c ----

void trainer_write(const Writer *w, Text *t);

#endif
