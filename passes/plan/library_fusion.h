// Library fusions: kernels whose work a library call can do: prologues,
// epilogues and reductions.
//
// A convolution of cuDNN can take the statistics of its result, read its
// operand through batch_norm and relu, or reduce the gradient that it computes.
// A device that has the fusion need not launch such a kernel.  A fusion follows
// from the groups and changes none of them: the device that runs the step
// decides by measuring, and one memory plan fits both ways.
#ifndef PASSES_PLAN_LIBRARY_FUSION_H
#define PASSES_PLAN_LIBRARY_FUSION_H

#include "passes/plan/group.h"

// ---- library_fusion.c: the fusions that a graph offers ----

typedef enum {
#define FUSION(name, ...) FUSION_##name,
#include "passes/plan/library.def"
    NUM_FUSIONS
} FusionKind;

// A batch_norm of a convolution's result, by its tensors.  With a finalize
// step after the convolution, the library has its mean, deviation, scale and
// bias as the parameters that later fusions read.
typedef struct {
    NodeId x, sum, var;    // var: of all elements of a channel
    NodeId scale, bias, y; // NO_NODE where no kernel stores y, relu of it
    double epsilon;
    int number;     // of the variances that read var and sum
    int kernel;     // which group stores y
    int statistics; // the fusion that its sums come from
    int64_t bn_params; // byte offset in the parameters of all; -1: none
} Norm;

typedef struct {
    FusionKind kind; // statistics, prologue, prologue_weight or backward
    int call;        // which group calls the library
    int kernel;      // which group is not launched; -1: none
    int norm;        // the batch_norm
    int statistics_of_call; // prologue: the fusion, or -1
    int paired; // of a prologue its prologue_weight, and the reverse: taken
                // if and only if this one is; or -1
    NodeId d_scale, d_bias; // backward: the sums
    int64_t bytes;          // not read or written when it is taken
} LibraryFusion;

typedef struct {
    const Group *group; // of the graph, in which they are
    int num_groups;
    LibraryFusion *fusion;
    int count;
    Norm *norm;
    int num_norms;
    int64_t bytes; // of the parameters of all, at the end of the arena
} LibraryFusions;

// Parameters of a batch_norm, a row of channels each: mean, inverse deviation,
// scale and bias in f16, and four that the library wants to write.
enum { NUM_BN_PARAMS = 8 };

// Bytes of a row of so many channels.
int64_t bn_param_bytes(int64_t channels);

// The fusions of a graph whose activations are f16, none of another.
LibraryFusions graph_library_fusions(const Graph *g, Arena *a);
LibraryFusions groups_library_fusions(const Graph *g, const Group *group,
                                      int count, Arena *a);

// ---- library_support.c: the fusions that a device takes ----

typedef enum { NO, READY, COMPILED, VARIES } Support;

extern const struct FusionInfo {
    const char *name;
    Support support[4]; // of sm_80, sm_90, sm_100, sm_120 and their successors
    const char *result; // how results differ from those of the kernels
} fusion_info[NUM_FUSIONS];

// The library's support on devices of compute capability sm, as 90.
Support fusion_support(FusionKind f, int sm);

// The saving of a device that takes all fusions that it has.
typedef struct {
    int launches; // fewer
    int64_t bytes;
    int taken; // fusions
} Saving;

// Which fusions a device of compute capability sm can take together: for each
// whether it is.
bool *fusions_taken(const LibraryFusions *fusions, int sm, Arena *a);
Saving fusions_saving(const LibraryFusions *fusions, int sm);

#endif
