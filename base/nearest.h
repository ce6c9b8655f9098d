// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Nearest: the right name that a wrong one was meant to be.
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

#include "base/diag.h"

// The name nearest to a misspelt one, kept as more names are offered.
typedef struct {
    const char *name; // misspelt
    const char *best; // NULL: none is near
    int distance;
    int tried;
} Nearest;

Nearest nearest_to(const char *name);
void nearest_offer(Nearest *n, const char *candidate);

// Adds "did you mean" when there is one.
void nearest_note(const Nearest *n, Diagnostic *d);

#endif
