// Bits: a GPU leaves in memory, to the bit, what the text of its kernels says.
#ifndef TESTS_BITS_BITS_H
#define TESTS_BITS_BITS_H

#include "base/text.h"
#include "frontend/frontend.h"
#include "runtime/rt.h"

#include <check.h>

// ---- bits.c ----

// A model, or a graph with name.ir, below the source folder.
typedef struct {
    const char *file;
    const Setting *setting;
    int num_settings;
    DType storage; // of activations
    int level;     // 0: a kernel for each operation
} Subject;

// Launches of kernels that were compared, and those that were not.
typedef struct {
    int compared, left_out;
} BitsCount;

// Runs each step of a program once on GPU 0, and after each launch the same
// kernels in faithful mode, on the memory that was there before it: all bytes
// are to be the same then, but of what is no number, and of counters.  Kernels
// that call one of the functions, a list that ends with NULL, are not compared.
// NULL, or what differs.
const char *bits_differ(Arena *a, const Subject *s, const char *const *function,
                        BitsCount *count);

// ---- compare.c ----

// Launches of a step.
typedef struct {
    int step, first, last;
} Launches;

// Adds to the report where the memory that these launches left is not what they
// mean, as bits_differ says.
void bits_compare(const RtPlan *plan, const Launches *of, const char *left,
                  const char *meant, const char *kernel, Text *report);

// ---- check_compare.c ----

Suite *compare_suite(void);

#endif
