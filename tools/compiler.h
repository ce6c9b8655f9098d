// The C compiler of this machine, and sinter's own files beside its program.
#ifndef TOOLS_COMPILER_H
#define TOOLS_COMPILER_H

#include "tools/tools.h"

// Where the runtime library, its plain contractions and its headers are: beside
// the program, in a build tree as in an installation.
typedef struct {
    const char *library, *plain, *include;
    const char *prelude, *tile; // folders below include
} Installation;

// Finds them; false, after a message, if they are not there.
bool installation_find(Arena *a, const Arguments *arguments, Installation *out);

// The programs to try, in order: the one in CC, else the usual ones.  NULL
// after the last.
enum { COMPILER_CANDIDATES = 3 };
const char *compiler_candidate(size_t i);

// The first line of a program's --version, written to a file in `folder`; NULL
// if it does not start.
const char *compiler_version(Arena *a, const char *folder, const char *program);

// Adds everything but the source that decides which program compiler_run makes:
// the compiler's file and version, all its flags, and the variables it reads.
// tiles: those of the C++ compiler, too.
void compiler_describe(Arena *a, const char *folder, bool tiles, Text *t);

// The result of compiler_run: a program, or if `name` is not NULL a shared and
// a static library whose functions begin with that name.
typedef struct {
    const char *name;
    const char *file;    // the program or the shared library, absolute
    const char *archive; // the static library, absolute
    const char *soname;
    bool plain; // without oneDNN
} CompilerOutput;

// The value of --march for all processors of this architecture.
#define MARCH_PORTABLE "portable"

// The path seen from any folder.
const char *path_absolute(Arena *a, const char *path);

// The files of a program in a folder.
typedef struct {
    const char *c_file;
    size_t bytes;          // of its kernels
    const char *tile_file; // C++ of tile kernels; NULL: there is none
} CompilerInput;

// Compiles files in a folder.  Returns an exit status, after a message if it
// failed.
int compiler_run(Arena *a, const Arguments *arguments,
                 const Installation *where, const char *folder,
                 const CompilerInput *in, const CompilerOutput *out);

#endif
