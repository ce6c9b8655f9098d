// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Range: the smallest and largest finite number of a tensor, and how many are
// not finite.
#ifndef REPLAY_RANGE_H
#define REPLAY_RANGE_H

#include <stdint.h>

typedef struct {
    double min, max;          // of the finite numbers
    int64_t count, nonfinite; // of all; of infinities and NaN
    int64_t nans;
} Range;

Range range_new(void);
void range_add(Range *r, double value);

// "-1.5 .. 2 and not finite in 3 elements", into RANGE_TEXT bytes.
enum { RANGE_TEXT = 96 };
const char *range_text(char *to, const Range *r);

#endif
