// The runtime's declarations of MPI agree with MPICH's header: the same
// functions and numbers.  This file only has to compile.
#include <mpi.h>

#include "tests/runtime/mpi/header.h"

#define HANDLE(type, member, name, symbol, number)                             \
    static_assert(sizeof(type) == sizeof(int), "size of " #type);              \
    static_assert((int)name == number, "number of " #name);
#include "runtime/distributed/mpi.def"
