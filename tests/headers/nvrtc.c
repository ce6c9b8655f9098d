// What the runtime declares of NVRTC is what its header declares.  That this
// compiles is the test.

#include <nvrtc.h>

#include <assert.h>

#define NVRTC(member, function, arguments)                                     \
    nvrtcResult(*const is_##member) arguments = function;
#define CONSTANT(name, value)                                                  \
    static_assert((int)name == (value), "number of " #name);
#include "runtime/cuda/kernels/nvrtc.def"
