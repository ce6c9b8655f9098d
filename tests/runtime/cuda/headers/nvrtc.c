// The runtime's declarations of NVRTC agree with its header.  This file only
// has to compile.

#include <nvrtc.h>

#include <assert.h>

#define NVRTC(member, function, arguments)                                     \
    nvrtcResult(*const is_##member) arguments = function;
#define CONSTANT(name, value)                                                  \
    static_assert((int)name == (value), "number of " #name);
#include "runtime/cuda/kernels/nvrtc.def"
