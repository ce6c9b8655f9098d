// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared libraries that are opened when they are needed, so that a trainer
// that does not need one runs without it.
//
// What is called of a library is a list of functions,
//
//   #define FUNCTIONS(F) F(int, close, "foo_close", (Foo * f)) ...
//
// which is expanded twice: to the members of a struct, and to where each
// function's address goes in it.
#ifndef RUNTIME_LIBRARY_H
#define RUNTIME_LIBRARY_H

#include "runtime/runtime.h"

// A pointer to a function, as a member of a struct.
#define RT_FUNCTION(type, member, name, arguments) type(*member) arguments;

typedef struct {
    const char *name; // the library's own
    size_t at;        // the pointer's place in the struct
} RtSymbol;

typedef struct {
    const char *needed;       // a clause: "JPEG files need"
    const char *const *files; // names to try in this order, to NULL
    const char *remedy;       // "install libjpeg62-turbo"
    int status; // what a trainer that cannot do without exits with
    const RtSymbol *symbol;
    size_t num_symbols;
} RtLibrary;

// Opens the first of the files that is there and finds all the functions for
// the struct at `functions`.  NULL, with the reason in e, if it cannot.
void *rt_library_open(const RtLibrary *l, void *functions, RtError *e);
// Nothing for NULL.
void rt_library_close(void *library);

#endif
