// The runtime's declarations of NCCL agree with its header.  This file only has
// to compile.

#include <nccl.h>

#include <assert.h>
#include <stddef.h>

#define NCCL(member, function, arguments)                                      \
    ncclResult_t(*const is_##member) arguments = function;
#define CONSTANT(name, value)                                                  \
    static_assert((int)name == (value), "number of " #name);
#include "runtime/cuda/nccl.def"

// The runtime has the first members of the configuration.
static_assert(sizeof(ncclUniqueId) == NCCL_UNIQUE_ID_BYTES, "of a name");
static_assert(offsetof(ncclConfig_t, size) == 0, "of a configuration");
static_assert(offsetof(ncclConfig_t, magic) == sizeof(size_t), "its mark");
static_assert(offsetof(ncclConfig_t, version) == sizeof(size_t) + 4, "version");
static_assert(offsetof(ncclConfig_t, blocking) == sizeof(size_t) + 8, "mode");
