// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Products of matrices on a CUDA device, by cuBLASLt.
//
// That library has 542 MB, takes half a second to open and needs a GPU to plan
// for, so it is left to plans with products of many matrices at once, as in
// attention; then it has all products.  In other plans they are convolutions
// (convolution.h), for which cuDNN is open anyway, and which can be planned for
// a GPU that is described.
#ifndef RUNTIME_CUDA_MATMUL_H
#define RUNTIME_CUDA_MATMUL_H

#include "runtime/cuda/driver/driver.h"
#include "runtime/cuda/tune/tuning.h"

typedef struct RtMatmuls RtMatmuls;

// The library for a GPU of this generation (0: any) and a driver that knows
// CUDA up to `driver`, and its function that tells its version; NULL: *e says
// why.  It is for rt_library_close.
void *rt_matmuls_library(int gpu, int driver, size_t (**version)(void),
                         RtError *e);

// Whether a plan's products are done here.
bool rt_matmuls_needed(const RtPlan *plan);

// Opens the library and asks for the algorithms of each product, on the GPU of
// the current context; the first of them is chosen.  NULL: *e says which
// layer's has none.
RtMatmuls *rt_matmuls_new(const RtPlan *plan, const RtGpu *gpu, void *stream,
                          RtError *e);
void rt_matmuls_free(RtMatmuls *p);
size_t rt_matmuls_version(const RtMatmuls *p);

// How many algorithms there are for a call of the plan; 0: it is not done here.
int rt_matmuls_candidates(const RtMatmuls *p, int call);
// Chooses one for a call and those that are alike.
void rt_matmuls_choose(RtMatmuls *p, int call, int offer);
// Chooses the next that works in the room there is; false: there is none.
bool rt_matmuls_fall_back(RtMatmuls *p, int call);
// What tells an algorithm from others, below 2^62.
uint64_t rt_matmuls_digest(const RtMatmuls *p, int call, int offer);
// Chooses what a tuning says; false: the library offers something else now.
bool rt_matmuls_as_chosen(RtMatmuls *p, const RtChosen *t);

// Bytes of the room that the products share.
size_t rt_matmuls_workspace(const RtMatmuls *p);
// Where on the device the plan's arena and that room are.
void rt_matmuls_bind(RtMatmuls *p, uint64_t arena, uint64_t workspace);
// Puts a product on the stream.
bool rt_matmuls_run(const RtMatmuls *p, int call, size_t a, size_t b,
                    size_t out, RtError *e);

#endif
