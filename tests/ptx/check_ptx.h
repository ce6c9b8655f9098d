// What the suites of PTX share: a text of one kernel, as NVRTC writes it, that
// reads from one place and writes to another.
#ifndef TESTS_PTX_CHECK_H
#define TESTS_PTX_CHECK_H

#include "tests/ptx/ptx.h"

#include <check.h>

enum { MAX_TEXT = 8192, NUM_FROM = 3 };

// A kernel `k` of a body, behind what is declared for the module.  It has
// registers %p, %rs, %r, %rd, %f and %fd, from 0 on.  %rd11 is where it reads,
// %rd12 where it writes, both in global memory; %rd10 is the first as it was
// given, and %r0 the number of the thread.
typedef struct {
    const char *declared, *body; // NULL: nothing is declared
    int grid, threads;
    unsigned seed;
    bool delays, programmatic; // as in PtxOrder
} Program;

void program_text(const Program *p, char *to);
// From NULL: it reads nothing.
void program_run(const Program *p, const void *from, void *to);

// Instructions whose operands are %r1, %r2 and %r3, or registers of another
// kind with these numbers, and that leave something in number 4 of some kind.
uint64_t instructions_run(const char *text, const uint64_t from[NUM_FROM]);

// The same with bits that go in and come out.
typedef struct {
    const char *text;
    uint64_t from[NUM_FROM], gives;
} BitsCase;
void bits_check(const BitsCase *c);

// The same with numbers, which are what %f and %fd hold, and the whole ones
// that others do.  Zeros have signs; NAN is any that is no number.
typedef struct {
    const char *text;
    double from[NUM_FROM], gives;
} NumberCase;
void numbers_check(const NumberCase *c);

Suite *convert_suite(void);
Suite *float_suite(void);
Suite *flow_suite(void);
Suite *integer_suite(void);
Suite *memory_suite(void);
Suite *refused_suite(void);
Suite *threads_suite(void);
Suite *warp_suite(void);

#endif
