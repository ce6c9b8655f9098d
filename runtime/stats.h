// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Statistics of a data set.
#ifndef RUNTIME_STATS_H
#define RUNTIME_STATS_H

#include "runtime/runtime.h"

// Reads all samples of the data set in `path`, NULL for the trainer's own, and
// prints their numbers, classes and the mean and standard deviation of each
// channel on standard output; or, to verify, only how many there are.  Samples
// that cannot be read are listed on stderr.  t needs its data format, path and
// settings, shapes and classes.  Returns an exit status: EXIT_DATA if a sample
// cannot be read.
int rt_data_stats(const RtTrainer *t, const char *path, bool verify);

#endif
