// The runtime's declarations of MPI agree with OpenMPI's header: the same
// functions, numbers and symbols.  This file only has to compile.
#include <mpi.h>

#include "tests/runtime/mpi/header.h"

#define HANDLE(type, member, name, symbol, number)                             \
    static_assert(sizeof(type) == sizeof(void *), "size of " #type);           \
    const void *address_of_##member(void);                                     \
    const void *address_of_##member(void) {                                    \
        return name == (type)(void *)&symbol ? &symbol : NULL;                 \
    }
#include "runtime/distributed/mpi.def"
