// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Nearest: typo correction, the known name nearest to a misspelt one.
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

// The best candidate so far.
typedef struct {
    const char *name; // misspelt
    const char *best; // NULL: none is near
    int distance;
    int tried;
} Nearest;

Nearest nearest_to(const char *name);
void nearest_offer(Nearest *n, const char *candidate);

#endif
