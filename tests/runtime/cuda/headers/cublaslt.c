// The runtime's declarations of cuBLASLt agree with its header: the same
// numbers, and functions with the same arguments.  This file only has to
// compile.
#include <cublasLt.h>

#include <assert.h>

// Handles and descriptors are pointers to us; results of a choice are the
// library's own structure, of which the runtime has a copy.
static_assert(sizeof(cublasLtMatmulAlgo_t) == 64, "size of an algorithm");
static_assert(sizeof(cublasLtMatmulHeuristicResult_t) == 96, "of an offer");
static_assert(offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize) == 64,
              "its workspace");
static_assert(offsetof(cublasLtMatmulHeuristicResult_t, state) == 72,
              "its state");

#define LT(member, function, arguments)                                        \
    typedef int is_##member[sizeof &function ? 1 : -1];
#define LTN(name, value)                                                       \
    static_assert((int)name == (value), "number of " #name);
#include "runtime/cuda/libraries/cublaslt.def"
