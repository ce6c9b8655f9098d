// Codegen: a planned program becomes the source of its trainer.
#ifndef CODEGEN_CODEGEN_H
#define CODEGEN_CODEGEN_H

#include "passes/plan/plan.h"

// A file, or a setting.
typedef struct {
    const char *name, *text;
} NamedText;

// What is written about the program beside its plans.
typedef struct {
    const char *version;  // of sinter
    const char *base;     // file name without extension, for the #include
    uint64_t fingerprint; // of model and recipe
    bool lines;           // GPU code keeps a table of the kernels' lines
    bool embeds;          // the trainer carries GPU code, in base.bin
    bool graphs;          // and its graphs, in base.ir
    // The model file and those that it imports, and the settings it was changed
    // by: a run's folder has them.
    const NamedText *source, *set;
    int num_sources, num_sets;
} CodegenOptions;

// ---- kernel.c ----

// The nodes that names such as v12 have in a kernel's own text, each once, in
// the order in which they appear.  Where launches share a text, those of each
// have the places of those of the first.
typedef struct {
    long *number;
    int count;
} Numbers;

// A pointer that a kernel is given.
typedef struct {
    NodeId node;      // whose address it is; NO_NODE: the arena itself
    int plus;         // bytes to add to it
    const char *type; // of what is there: "const act"
    const char *name;
} Parameter;

// A launch: a kernel, or with text NULL a library call.  Its group is of the
// host's plan.
typedef struct Kernel {
    const Group *group;
    const char *name; // "k03_batch_norm__layer1", "c02_conv__layer1"
    const char *text; // the kernel and the tables it reads
    int grid[2];      // blocks, on the host and on the other device
    int num_args;
    Parameter *arg;
    const char *remark;    // the comment above it
    struct Tree *tree;     // see kernel/tree.h; NULL for a call
    Numbers numbers;       // none before share.c has compared it
    const char *on_host;   // the kernel whose function the host calls
    struct Kernel *head;   // of its family, whose function that one is
    struct Kernel *family; // the next of the family
    const char *sizes;     // the sizes in which it differs
    struct Kernel *first;  // the first launch with its text; NULL before
    size_t comment;        // of the first: bytes of its text that are a comment
    size_t entry; // and those before what is launched, between which is what
                  // others may call and read too
    size_t body;  // and those before the kernel's own statements
    struct MergedKernel *merged; // of the first: merges that end with it
    bool is_split;               // it has a function for merged launches
} Kernel;

// The launches of a graph in order.  host and device plan the same graph for
// the two devices.  Names are numbered from *number on.
Kernel *codegen_kernels(const GraphPlan *host, const GraphPlan *device,
                        Arena *a, int *number);

// Appends kernel IR of a launch that is a kernel: see kernel/tree.h.
void codegen_kernel_ir(Text *t, const GraphPlan *host, const GraphPlan *device,
                       int launch, const char *name);

// ---- share.c, merged_launches.c ----

// Launches that may be one.
typedef struct MergedKernel {
    MergedLaunch launch;
    const char *name, *text; // no text if an earlier one does the same
    size_t entry;            // bytes of it before what is launched
    int num_args;
    const char **type; // of what its arguments point to: those of its kernels
                       // in turn, and the barrier
    int blocks;        // on the other device
    struct MergedKernel *next; // that ends with the same kernel
} MergedKernel;

// The launches of a step.
typedef struct {
    const GraphPlan *plan; // for the device
    Kernel *kernel;
    int count;
    MergedKernel *merged; // one for each merged launch of the plan
} Launches;

// Of each step of a plan.  host and device are plans of the same graphs.
Launches *codegen_launches(const Plan *host, const Plan *device, Arena *a);

// ---- graphs.c, program.c ----

// The graphs of the steps that train, as a trainer carries them.
void codegen_graphs(const Plan *plan, Text *t);

// Writes the C file and the CUDA file of a trainer.  host and device are plans
// of the same graphs.
void codegen_program(const Program *p, const Plan *host, const Plan *device,
                     const CodegenOptions *o, Text *c, Text *cu);

#endif
