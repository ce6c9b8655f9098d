// Library: emitted programs compiled into a shared object and loaded, several
// at a time.
#ifndef TESTS_CODEGEN_LIBRARY_H
#define TESTS_CODEGEN_LIBRARY_H

#include "passes/plan/plan.h"
#include "runtime/device.h"

// Flags of a library whose kernels the race checker of tests/simt watches.  It
// asks for lines alone: gcc needs long to follow variables too.
#define LIBRARY_RACES "-O0 -g1 -DSINTER_SIMT -fsanitize=thread"

// Flags of a library in fast mode for one thread, or in faithful mode, which
// $TCC compiles where it is set: in a hundredth of the time.
#define LIBRARY_TINY "-O0 -DLIBRARY_TINY"

// Beside them for programs whose text for CUDA is needed.
#define LIBRARY_EMBEDS "-DLIBRARY_EMBEDS"

// Flags of a library whose kernels run on a GPU and not on the host.
const char *library_gpu_flags(void);

// A file below the source folder.
const char *library_source(Arena *a, const char *file);

// A program whose only step of interest is training this graph.
Program *library_program(Arena *a, Graph *train, DType precision);

// A new folder for what follows, below $TMPDIR or /tmp.  NULL: there is none to
// be had, as errno says.
const char *library_folder(Arena *a);

// Writes NAME.c and NAME.cu, the text of tile kernels if the plan takes some,
// and what gives their symbols names of their own, to the folder.
void library_write(Arena *a, const char *folder, const char *name,
                   const Program *p, const Plan *plan);

// Whether $CC is the Tiny C Compiler.  It compiles fast mode for one thread,
// and faithful mode.  Where flags ask for the race checker, cc compiles.
bool library_tiny(void);

// Compiles those programs with $CC and the flags into one library.  NULL, or
// what failed.
const char *library_compile(Arena *a, const char *folder, int count,
                            const char *const *name, const char *flags);

// NULL: see *why.
void *library_open(Arena *a, const char *folder, const char **why);

// The plan for the host of a program in the library.
const RtPlan *library_plan(Arena *a, void *library, const char *name);

// The CUDA text of its kernels.
const char *library_kernels(Arena *a, void *library, const char *name);

// Which statistics a program's kernels take for those of a library, as
// runtime/rt.h says; NULL: none ever, or it is in faithful mode.
unsigned char *library_squares(Arena *a, void *library, const char *name);

// GPU 0 for a program in the library, and its plan there, in which each kernel
// is launched even if a library call could do its work.  NULL: see *why.
RtDevice *library_gpu(Arena *a, void *library, const char *name,
                      const RtPlan **plan, const char **why);

// Deletes the files that were written and made, and the folder.
void library_remove(Arena *a, const char *folder, int count,
                    const char *const *name);

#endif
