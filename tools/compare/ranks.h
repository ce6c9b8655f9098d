// Ranks: tests whether one set of measurements is larger than another.
#ifndef TOOLS_RANKS_H
#define TOOLS_RANKS_H

#include "base/arena.h"

// The probability that values of one distribution differ as these do, or more,
// in either direction.
double ranks_chance(Arena *a, const double *x, int nx, const double *y, int ny);

// The same for values that do not overlap at all: the smallest possible value.
double ranks_least_chance(Arena *a, int nx, int ny);

// The probability that values in random order rise or fall as these do, or
// more.
double ranks_trend_chance(Arena *a, const double *value, int count);

#endif
