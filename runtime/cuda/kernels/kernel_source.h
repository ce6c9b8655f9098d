// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Wanted: what of the kernels' text one kernel is compiled from.  Other kernels
// may change then, and what a cache has of this one still holds.
#ifndef RUNTIME_CUDA_WANTED_H
#define RUNTIME_CUDA_WANTED_H

// The text without what is under a condition that names other kernels alone,
// which is `#if IS_WANTED(1) || IS_WANTED(12)`, and without lines of comments.
// The caller frees it.  NULL: out of memory.
char *rt_kernel_source(const char *text, int kernel);

#endif
