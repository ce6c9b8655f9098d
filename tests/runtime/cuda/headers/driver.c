// The runtime's declarations of the CUDA driver agree with its header.  This
// file only has to compile.  With the internal version all functions are
// declared under the names that the library exports.

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <assert.h>

#define CU(member, function, arguments)                                        \
    CUresult(*const is_##member) arguments = function;
#define CONSTANT(name, value)                                                  \
    static_assert((int)name == (value), "number of " #name);
#include "runtime/cuda/driver/driver.def"
