// Building blocks of schedules: times of the run, and progress between them.
//
// Times count updates from the start of the run, so that whole steps are exact
// in f32.  Values that only the trainer knows, as the steps of an epoch, are
// nodes.
#ifndef FRONTEND_SCHEDULE_H
#define FRONTEND_SCHEDULE_H

#include "frontend/functions/functions.h"

// ---- schedule_time.c ----

// A state of the run as a number.
Value run_value(Expansion *e, RunState s, Span at);

// A fraction of the run, epochs or steps, as a number of updates.
Value schedule_period(Expansion *e, Value time, Span at);

// A TIME_POINT as a number of updates.  Warns if the run ends before it.
Value schedule_time(Expansion *e, Value time, Span at);

// A TIME_POINT as a fraction of the run.  False if only the trainer knows it.
bool time_fraction(const Expansion *e, Value time, double *fraction);

// False, with a report, if a period is 0.
bool period_check(Expansion *e, const Call *c, ParamId p);

// The progress from one time to another: 0 .. 1, and 1 if they are equal.
Value time_progress(Expansion *e, Value from, Value to, Span at);

// ---- arithmetic of schedules ----

// a < b ? yes : no.
Value schedule_select(Expansion *e, Value a, Value b, Value yes, Value no,
                      Span at);

// from (1 - fraction) + to fraction: exact at both ends.
Value schedule_lerp(Expansion *e, Value from, Value to, Value fraction,
                    Span at);

// Half a cosine wave: 0 .. 1, level at both ends.
Value schedule_half_cosine(Expansion *e, Value fraction, Span at);

// base^exponent for a number above 0.
Value schedule_power(Expansion *e, double base, Value exponent, Span at);

#endif
