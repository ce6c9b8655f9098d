// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rides: kernels whose work a library call can do on the way.
//
// A convolution of cuDNN can take the statistics of what it computes, read its
// operand through batch_norm and relu, or reduce the gradient that it computes.
// Such a kernel rides on its call: on a device that has the fusion it need not
// be launched.  A ride is read off the groups and changes none of them: whether
// it is taken is decided where the step runs, by measuring, and both ways fit
// one memory plan.
#ifndef IR_RIDE_H
#define IR_RIDE_H

#include "ir/group.h"

// ---- ride.c: what could ride ----

typedef enum {
#define FUSION(name, ...) FUSION_##name,
#include "ir/library.def"
    NUM_FUSIONS
} Fusion;

// A batch_norm of what a convolution computes, by its tensors.  With a finalize
// step after the convolution, the library has its mean, deviation, scale and
// bias in the forms that later fusions read.
typedef struct {
    NodeId x, sum, var;    // var: of all elements of a channel
    NodeId scale, bias, y; // NO_NODE where no kernel stores y, relu of it
    double epsilon;
    int number;     // of the variances that read var and sum
    int kernel;     // which group stores y
    int statistics; // the ride that its sums come from
    int64_t forms;  // where they are, from the start of their room; -1: nowhere
} Norm;

typedef struct {
    Fusion fusion; // statistics, prologue, prologue_weight or backward
    int call;      // which group calls the library
    int kernel;    // which group is not launched; -1: none
    int norm;      // the batch_norm
    int beside;    // prologue: the statistics ride on its call, or -1
    int together;  // prologue: its prologue_weight, or -1; and the reverse
    NodeId d_scale, d_bias; // backward: the sums
    int64_t bytes;          // not read or written when it is taken
} Ride;

typedef struct {
    const Group *group; // of the graph, in which they are
    int num_groups;
    Ride *ride;
    int count;
    Norm *norm;
    int num_norms;
    int64_t bytes; // of the forms of all, at the end of the arena
} Rides;

// Forms of a batch_norm, a row of channels each: f32 but for the two that end
// in f16.
enum {
    FORM_MEAN,
    FORM_DEVIATION, // its inverse
    FORM_SCALE,     // f16
    FORM_BIAS,      // f16
    FORM_UNUSED,    // four rows that the library wants to write
    NUM_FORMS = FORM_UNUSED + 4
};

// Bytes of a form of so many channels.
int64_t form_bytes(int64_t channels);

// The rides of a graph whose activations are f16, none of another.
Rides graph_rides(const Graph *g, Arena *a);
Rides groups_rides(const Graph *g, const Group *group, int count, Arena *a);

// ---- taken.c: what a device takes ----

typedef enum { NO, READY, COMPILED, VARIES } Support;

extern const struct FusionInfo {
    const char *name;
    Support support[4]; // of sm_80, sm_90, sm_100, sm_120 and what follows each
    const char *result; // how results differ from those of the kernels
} fusion_info[NUM_FUSIONS];

// What the library has for devices of compute capability sm, as 90.
Support fusion_support(Fusion f, int sm);

// What a device that takes all that it has saves.
typedef struct {
    int launches; // fewer
    int64_t bytes;
    int taken; // rides
} Saving;

// Which rides a device of compute capability sm can take together: for each
// whether it is.
bool *rides_taken(const Rides *r, int sm, Arena *a);
Saving rides_saving(const Rides *r, int sm);

#endif
