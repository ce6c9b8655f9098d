// Declarations of the double of NCCL.
#ifndef TESTS_DOUBLE_NCCL_H
#define TESTS_DOUBLE_NCCL_H

#include <cuda.h>
#include <stddef.h>

typedef int ncclResult_t, ncclDataType_t, ncclRedOp_t;
typedef struct ncclComm *ncclComm_t;
typedef CUstream cudaStream_t;

enum {
#define CONSTANT(name, value) name = value,
#include "runtime/cuda/nccl.def"
    ncclInvalidArgument = 4
};

typedef struct {
    char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

// As it was in NCCL 2.14, which is what the runtime knows.
typedef struct {
    size_t size;
    unsigned magic, version;
    int blocking;
} ncclConfig_t;

#define NCCL(member, function, arguments) ncclResult_t function arguments;
#include "runtime/cuda/nccl.def"
const char *ncclGetErrorString(ncclResult_t result);
const char *ncclGetLastError(ncclComm_t comm);

#endif
