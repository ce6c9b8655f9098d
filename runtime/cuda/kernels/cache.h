// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Cache: compiled kernels on disk, so that a trainer starts at once when it
// has run on this machine before.
//
// A cache is a folder of files that are named after their keys.  Nothing
// depends on it: what cannot be read is compiled again, and what cannot be
// written is not kept.  A file that another user may have
// written is not read.
#ifndef RUNTIME_CUDA_CACHE_H
#define RUNTIME_CUDA_CACHE_H

#include "runtime/cuda/kernels/nvrtc.h"

typedef struct {
    uint64_t low, high;
} RtCacheKey;

typedef struct {
    char *folder; // NULL: there is no cache
    const RtFiles *files;
} RtCache;

// The path of the user's cache, by the environment; the caller frees it.  NULL:
// there is none, or it is another user's, which has been said.
char *rt_cache_folder(void);

// That cache; its folder is made.  files:
// rt_private_files.
void rt_cache_open(RtCache *c, const RtFiles *files);
void rt_cache_close(RtCache *c);

// The hash of a source and of the compiler's version.
RtCacheKey rt_cache_key(const RtNvrtc *n, const RtSource *s);

// The code that was kept under a key; the caller frees its bytes.
bool rt_cache_read(const RtCache *c, RtCacheKey key, RtCode *out);
void rt_cache_write(const RtCache *c, RtCacheKey key, const RtCode *code);

#endif
