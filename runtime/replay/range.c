// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Range: see range.h.
#include "runtime/replay/range.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

Range range_new(void) {
    return (Range){.least = INFINITY, .most = -INFINITY};
}

void range_add(Range *r, double value) {
    r->count++;
    if (!isfinite(value)) {
        r->bad++;
        r->nans += isnan(value);
        return;
    }
    r->least = value < r->least ? value : r->least;
    r->most = value > r->most ? value : r->most;
}

const char *range_text(char *to, const Range *r) {
    if (r->bad == r->count)
        snprintf(to, RANGE_TEXT, "%s", r->count == 0 ? "empty" : "not finite");
    else if (r->bad > 0)
        snprintf(to, RANGE_TEXT,
                 "%.6g .. %.6g and not finite in %" PRId64 " element%s",
                 r->least, r->most, r->bad, r->bad == 1 ? "" : "s");
    else if (r->least == r->most)
        snprintf(to, RANGE_TEXT, "%.6g", r->least);
    else
        snprintf(to, RANGE_TEXT, "%.6g .. %.6g", r->least, r->most);
    return to;
}
