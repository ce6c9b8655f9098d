// The declarations that mpi.def has for both headers; mpi.h comes before.
#ifndef TESTS_RUNTIME_MPI_HEADER_H
#define TESTS_RUNTIME_MPI_HEADER_H

#include <assert.h>
#include <stddef.h>

#define MPI(member, function, arguments)                                       \
    int(*const is_##member) arguments = function;
#define CONSTANT(name, value)                                                  \
    static_assert((int)name == (value), "number of " #name);
#define MOST(what, value)                                                      \
    static_assert((what) <= (value), "at most " #value ": " #what);
#include "runtime/distributed/mpi.def"

#endif
