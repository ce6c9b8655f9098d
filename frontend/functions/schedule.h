// What schedules are made of: moments of the run, and how far it has gone.
//
// A moment is counted in updates from the start of the run, so that whole
// numbers of steps are exact in f32.  What only the trainer knows, as the steps
// of an epoch, is a node.
#ifndef FRONTEND_SCHEDULE_H
#define FRONTEND_SCHEDULE_H

#include "frontend/functions/functions.h"

// ---- progress.c ----

// A state of the run as a number.
Value run_value(Expansion *e, RunState s, Span at);

// How many updates a share of the run, epochs or steps are.
Value period_of(Expansion *e, Value time, Span at);

// Where a MOMENT is.  Where the run ends before, that is warned of.
Value moment_of(Expansion *e, Value time, Span at);

// A moment as a share of the run.  False where only the trainer knows it.
bool moment_share(const Expansion *e, Value time, double *share);

// False, and a report, when a moment that is divided by is 0.
bool moment_check_period(Expansion *e, const Call *c, ParamId p);

// How much of the way from one moment to another has gone: 0 .. 1, and 1 where
// there is no way.
Value moment_way(Expansion *e, Value from, Value to, Span at);

// ---- arithmetic of schedules ----

// yes where a < b, else no.
Value schedule_choose(Expansion *e, Value a, Value b, Value yes, Value no,
                      Span at);

// from (1 - share) + to share: exact at both ends.
Value schedule_blend(Expansion *e, Value from, Value to, Value share, Span at);

// The share of half a wave of the cosine: 0 .. 1, level at both ends.
Value schedule_wave(Expansion *e, Value share, Span at);

// base^exponent for a number above 0.
Value schedule_power(Expansion *e, double base, Value exponent, Span at);

#endif
