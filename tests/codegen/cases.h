// Cases: small networks and graphs made to be awkward, and narrow models, for
// the tests that judge kernels.
#ifndef TESTS_CODEGEN_CASES_H
#define TESTS_CODEGEN_CASES_H

#include "tests/codegen/agree.h"

typedef struct {
    const char *name;
    Case test;
} Named;

extern const Named agree_cases[], faithful_cases[], merged_cases[],
    tiled_cases[];
extern const int agree_num_cases, faithful_num_cases, merged_num_cases,
    tiled_num_cases;

// ---- narrow.c ----

enum { MAX_NARROW = 6 };

// Every model, narrow and with a small batch: groups and texts of kernels stay
// what they are, but for their sizes.  Those whose data is large are given
// small images, and those that repeat a block have it once.
typedef struct {
    const char *name; // below models/
    Setting setting[MAX_NARROW];
} Narrow;

extern const Narrow narrow_models[];
extern const int num_narrow_models;

// The case of one, with storage F32.
Case narrow_case(Arena *a, const Narrow *model);

#endif
