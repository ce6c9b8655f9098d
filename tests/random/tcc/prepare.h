// What the Tiny C Compiler lacks, which compiles an emitted program in a few
// milliseconds: it is included before one.  It has no variables of threads, so
// trainers are bound to one processor, and run on one thread then.
#ifndef TESTS_RANDOM_TCC_PREPARE_H
#define TESTS_RANDOM_TCC_PREPARE_H

#define _GNU_SOURCE

#include "runtime/rt.h"

#include <sched.h>

#undef __attribute__ // which <sys/cdefs.h> takes from compilers unknown to it
#define _Thread_local
#define _Pragma(text)
#define __builtin_inff() ((float)1e39)
#define __builtin_prefetch(p) ((void)0)
#define __builtin_unreachable() ((void)0)
#define __ATOMIC_ACQ_REL 4
#define __atomic_fetch_add(p, n, order) ((*(p) += (n)) - (n))

// Its assembler includes no files: the script cc does it, for trainers.
#undef RT_EMBED
#ifndef TCC_EMBEDS
#define RT_EMBED(name, file) static const char name[1], name##_end[1]
#else
#define RT_EMBED(name, file) extern const char name[], name##_end[]

static __attribute__((constructor)) void bind_to_one_processor(void) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(sched_getcpu(), &set);
    sched_setaffinity(0, sizeof set, &set);
}
#endif

#endif
