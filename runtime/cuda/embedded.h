// Embedded: machine code and assembly that a trainer was built with.
//
// They are one after another, each behind a header.  Machine code is for GPUs
// of its major number from its minor number on, assembly for all from its
// generation on, by the driver's own compiler.
#ifndef RUNTIME_CUDA_EMBEDDED_H
#define RUNTIME_CUDA_EMBEDDED_H

#include "runtime/rt.h"

typedef enum { RT_MACHINE_CODE, RT_ASSEMBLY } RtForm;

typedef struct {
    int32_t generation; // 10 * major + minor
    int32_t form;       // RtForm
    uint64_t length;    // of what follows, and zeros to a multiple of 16
} RtEmbedded;

// The best for a GPU; NULL: there is none.
const char *rt_embedded_find(const RtTrainer *t, int major, int minor);
// "8.0, 9.0": the generations there are.
void rt_embedded_names(const RtTrainer *t, char *to, size_t room);

#endif
