// The C compiler of this machine, and sinter's own files beside its program.
#ifndef TOOLS_COMPILER_H
#define TOOLS_COMPILER_H

#include "tools/tools.h"

// Where the runtime library and its headers are: beside the program, in a
// build tree as in an installation.
typedef struct {
    const char *library, *include;
} Installation;

// false when they are not there, which has been said on stderr.
bool installation_find(Arena *a, const Arguments *arguments, Installation *out);

// The programs that are tried, in their order: what CC names, or where it names
// none the usual ones; NULL where there is none.
enum { COMPILER_CANDIDATES = 3 };
const char *compiler_candidate(size_t i);

// The first line that a program prints when it is asked for its version; NULL:
// it does not start.  A file in `folder` is written for that.
const char *compiler_version(Arena *a, const char *folder, const char *program);

// Adds everything but the source that decides which program compiler_run makes:
// the compiler's file and version, all its flags, and the variables it reads.
void compiler_describe(Arena *a, const char *folder, Text *t);

// The path seen from any folder.
const char *path_absolute(Arena *a, const char *path);

// Compiles source, a file in folder with so many bytes of kernels, to the
// program out, which is an absolute path.  Returns an exit status; what went
// wrong has been said.
int compiler_run(Arena *a, const Arguments *arguments,
                 const Installation *where, const char *folder,
                 const char *source, size_t bytes, const char *out);

#endif
