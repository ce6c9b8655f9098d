// Codegen: a planned program becomes the source of its trainer.
#ifndef CODEGEN_CODEGEN_H
#define CODEGEN_CODEGEN_H

#include "ir/group.h"
#include "ir/program.h"

// What is written about the program beside its plans.
typedef struct {
    const char *version;  // of sinter
    const char *base;     // file name without extension, for the #include
    uint64_t fingerprint; // of model and recipe
} CodegenOptions;

// ---- kernel.c ----

// A launch: a kernel, or with text NULL a library call.
typedef struct {
    const Group *group;
    const char *name; // "k03_batch_norm__layer1", "c02_conv__layer1"
    const char *text; // the kernel and the tables it reads
    int grid[2];      // blocks, on the host and on the other device
    int num_args;
    const NodeId *arg; // whose address each pointer parameter is; NO_NODE: the
                       // arena itself
    const int *plus;   // bytes to add to it
    const char *const *c_type; // "const act *"
    const char *key;           // what share.c compares; NULL before it has
    const char *on_host;       // the kernel whose function the host calls
    bool shared; // written for an earlier launch, whose kernel's name it has
} Kernel;

// The launches of a graph in order.  host and device are the same graph,
// planned for the two devices.  Names are numbered from *number on.
Kernel *codegen_kernels(const Graph *host, const Graph *device, Arena *a,
                        int *number, int *count);

// ---- share.c ----

// The launches of a step.
typedef struct {
    Kernel *kernel;
    int count;
} Launches;

// Of each step of a plan.  host and device are plans of the same graphs.
Launches *codegen_launches(const Plan *host, const Plan *device, Arena *a);

// ---- program.c ----

// Writes the C file and the CUDA file of a trainer.  host and device are plans
// of the same graphs.
void codegen_program(const Program *p, const Plan *host, const Plan *device,
                     const CodegenOptions *o, Text *c, Text *cu);

#endif
