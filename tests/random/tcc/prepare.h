// What the Tiny C Compiler lacks, which compiles an emitted program in a few
// milliseconds: it is included before one.  Programs run on one thread then.
#ifndef TESTS_RANDOM_TCC_PREPARE_H
#define TESTS_RANDOM_TCC_PREPARE_H

#include "runtime/rt.h"

#define _Thread_local
#define _Pragma(text)
#define __builtin_inff() ((float)1e39)
#define __builtin_prefetch(p) ((void)0)
#define __builtin_unreachable() ((void)0)
#define __ATOMIC_ACQ_REL 4
#define __atomic_fetch_add(p, n, order) ((*(p) += (n)) - (n))

// The text of the kernels is for CUDA.
#undef RT_EMBED
#define RT_EMBED(name, file) static const char name[1], name##_end[1]

// <stdio.h> takes attributes away from compilers that it does not know, and the
// faithful mode needs them.
#ifdef SINTER_SIMT
#include <stdio.h>
#include <stdlib.h>
#undef __attribute__
#endif

#endif
