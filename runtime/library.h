// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared libraries that are opened when needed, so that a trainer runs without
// those it does not need.
//
// A list of functions,
//
//   #define FUNCTIONS(F) F(int, close, "foo_close", (Foo * f)) ...
//
// is expanded twice: to the members of a struct, and to the offset of each
// address in it.
#ifndef RUNTIME_LIBRARY_H
#define RUNTIME_LIBRARY_H

#include "runtime/runtime.h"

// A pointer to a function, as a member of a struct.
#define RT_FUNCTION(type, member, name, arguments) type(*member) arguments;

typedef struct {
    const char *name; // the library's own
    size_t at;        // offset of the pointer in the struct
} RtSymbol;

typedef struct {
    const char *needed;       // a clause: "JPEG files need"
    const char *const *files; // file names to try, to NULL
    const char *remedy;       // "install libjpeg62-turbo"
    int status;               // exit status if it cannot be opened
    const RtSymbol *symbol;
    size_t num_symbols;
} RtLibrary;

// Opens the first file that exists and finds all functions for the struct at
// `functions`.  NULL with the reason in e.
void *rt_library_open(const RtLibrary *l, void *functions, RtError *e);
void rt_library_close(void *library);

// The file that has the function whose pointer is at `function`; NULL: unknown.
const char *rt_library_path(const void *function);

#endif
