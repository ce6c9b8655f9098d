// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Range: between what the numbers of a tensor are, of which some may be
// infinite or none.
#ifndef REPLAY_RANGE_H
#define REPLAY_RANGE_H

#include <stdint.h>

typedef struct {
    double min, max;          // of those that are finite
    int64_t count, nonfinite; // all; infinite ones and NaN
    int64_t nans;
} Range;

Range range_new(void);
void range_add(Range *r, double value);

// "-1.5 .. 2 and not finite in 3 places", into room for RANGE_TEXT bytes.
enum { RANGE_TEXT = 96 };
const char *range_text(char *to, const Range *r);

#endif
