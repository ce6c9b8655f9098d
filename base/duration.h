// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Duration: seconds as minutes and seconds, "3:07", or with hours, "1:03:07".
#ifndef BASE_DURATION_H
#define BASE_DURATION_H

#include <math.h>
#include <stdio.h>

enum { DURATION_TEXT = 32 };

static inline const char *duration_text(char to[DURATION_TEXT],
                                        double seconds) {
    long long s = llround(fmax(0, fmin(seconds, 1e15)));
    if (s >= 3600)
        snprintf(to, DURATION_TEXT, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60,
                 s % 60);
    else
        snprintf(to, DURATION_TEXT, "%lld:%02lld", s / 60, s % 60);
    return to;
}

#endif
