// Suites of the CUDA device's tests, and the trainer that they run.
#ifndef SINTER_TESTS_CUDA_SUITES_H
#define SINTER_TESTS_CUDA_SUITES_H

#include "runtime/runtime.h"

#include <check.h>

Suite *preload_suite(void);
Suite *batches_suite(void);
Suite *cache_suite(void);
Suite *compile_suite(void);
Suite *device_suite(void);
Suite *embedded_suite(void);
Suite *nccl_suite(void);
Suite *nvrtc_suite(void);
Suite *peak_suite(void);
Suite *sum_suite(void);
Suite *tune_suite(void);

// ---- counter.c ----

// A trainer whose training step adds an input to each of COUNTERS numbers, and
// then leaves the sum of all of them, found in phases, in each of SUMS places.
enum { COUNTERS = 3000, SUMS = 500, TOTALS_AT = 16384, INPUT_AT = 20480 };
extern const RtTrainer counter;

// Puts a folder of its own in place of the user's cache; removes it.
void cache_begin(void);
void cache_end(void);

#endif
