// Whether one set of measurements is beyond another, by their ranks.
#ifndef TOOLS_RANKS_H
#define TOOLS_RANKS_H

#include "base/arena.h"

// How likely values of one distribution lie apart as these do, or further, in
// either direction.
double ranks_chance(Arena *a, const double *x, int nx, const double *y, int ny);

// The same of values that do not overlap at all: none can be less likely.
double ranks_least_chance(Arena *a, int nx, int ny);

// How likely values in random order rise or fall as these do, or more.
double ranks_trend_chance(Arena *a, const double *value, int count);

#endif
