// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kept: rows that stay in the GPU's memory, and their gathering by an index.
//
// A data set that fits is copied once; a batch is then a list of numbers, and a
// kernel takes its rows to where the step reads them, in place of the copy that
// takes a streamed batch there.
//
// Kernels of the step could read through the numbers themselves.  That would
// save this launch and a batch's bytes written and read, some microseconds, but
// each kernel that reads images would take an index that neither the host nor a
// streamed batch has a use for, and the batch would not be in the arena, where
// snapshots look for it.
#ifndef RUNTIME_CUDA_KEPT_H
#define RUNTIME_CUDA_KEPT_H

#include "runtime/cuda/kernels/kernels.h"
#include "runtime/cuda/memory/staging.h"

enum { RT_MAX_RESIDENT = 2 };

enum { RT_GATHER_WORDS = 3 }; // that rows may have: of 8 bytes, 4 and 1

// What gathers: for each word the kernel that takes it.
typedef struct {
    const RtGpu *gpu;
    RtTrainer trainer; // of these kernels alone
    RtKernels kernels[RT_GATHER_WORDS];
} RtGather;

void rt_gather_open(RtGather *g, const RtGpu *gpu, const RtTrainer *t);
// Begins to compile what is likely to gather rows of so many bytes, while the
// caller goes on.  The GPU needs no context yet.
bool rt_gather_start(RtGather *g, size_t row, RtError *e);
void rt_gather_close(RtGather *g);

typedef struct {
    const RtDriver *cu;
    CUdeviceptr at;         // of the first row
    CUfunction gather;      // which takes its words
    int grid, taken, words; // taken: rows at a time; words: of one
} RtResident;

// Copies the rows; `taken` of them are gathered at a time.
bool rt_resident_open(RtResident *r, RtGather *g, RtStaging *staging,
                      const RtRows *rows, int64_t taken, RtError *e);
void rt_resident_close(RtResident *r);

// Takes the rows whose numbers are at `index`.
bool rt_resident_gather(const RtResident *r, CUdeviceptr index, CUdeviceptr to,
                        CUstream stream, RtError *e);

#endif
