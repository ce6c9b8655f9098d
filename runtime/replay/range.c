// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Range: see range.h.
#include "runtime/replay/range.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

Range range_new(void) {
    return (Range){.min = INFINITY, .max = -INFINITY};
}

void range_add(Range *r, double value) {
    r->count++;
    if (!isfinite(value)) {
        r->nonfinite++;
        r->nans += isnan(value);
        return;
    }
    r->min = value < r->min ? value : r->min;
    r->max = value > r->max ? value : r->max;
}

const char *range_text(char *to, const Range *r) {
    if (r->nonfinite == r->count)
        snprintf(to, RANGE_TEXT, "%s", r->count == 0 ? "empty" : "not finite");
    else if (r->nonfinite > 0)
        snprintf(to, RANGE_TEXT,
                 "%.6g .. %.6g and not finite in %" PRId64 " element%s", r->min,
                 r->max, r->nonfinite, r->nonfinite == 1 ? "" : "s");
    else if (r->min == r->max)
        snprintf(to, RANGE_TEXT, "%.6g", r->min);
    else
        snprintf(to, RANGE_TEXT, "%.6g .. %.6g", r->min, r->max);
    return to;
}
