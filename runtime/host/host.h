// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Host: what its device is made of.
#ifndef RUNTIME_HOST_H
#define RUNTIME_HOST_H

#include "runtime/runtime.h"

// ---- team.c ----

// Runs work(arg, me, members) in each of `threads` members of the OpenMP team.
void rt_team_run(int threads, void (*work)(void *arg, int me, int members),
                 void *arg);
// The part of so many things that is a member's.
void rt_team_share(size_t count, int me, int members, size_t *first,
                   size_t *last);
int rt_team_largest(void); // one member for each core that we may use
// Makes the team of so many threads, 0: of the largest, and returns its size,
// with a warning where OpenMP's limits leave fewer.  Ends the program where the
// system does not give them.
int rt_team_start(int asked);
// The members that oneDNN's next primitive is planned for, or runs on.
void rt_team_use(int threads);
// Where libgomp's variables are not set, sets how long members spin before they
// sleep, and starts the program again with its arguments: libgomp reads them
// before main.
void rt_team_spin_briefly(char **argv);

// ---- team_size.c ----

// Of `threads` and 1 the members for a library call.  The choice follows from
// the call's flops alone, as the members decide the last bits of its result.
int rt_call_threads(const RtCall *c, int threads);

// The times of a launch of one of our kernels, whose result is the same for any
// number of threads; all 0 before its first run.
typedef struct {
    int runs;          // so far, of the trials
    float alone, team; // seconds of the fastest run; 0: none yet
    double spent;      // seconds of all runs after the trials
} RtTeamSize;

// Of `threads` and 1 the members for the next run.
int rt_team_size(const RtTeamSize *t, int threads);
void rt_team_measure(RtTeamSize *t, int threads, double seconds);

// ---- onednn.c ----

typedef struct RtContractions RtContractions;

// Plans the calls; rt_contractions_bytes is what reserve will take.
RtContractions *rt_contractions_new(const RtPlan *plan, int threads);
size_t rt_contractions_bytes(const RtContractions *c);
void rt_contractions_reserve(RtContractions *c);
void rt_contractions_run(RtContractions *c, int call, char *a, char *b,
                         char *out);
void rt_contractions_free(RtContractions *c);

// ---- copy.c ----

// A tensor of the arena, and its numbers as f32.
typedef struct {
    RtType type;
    bool adds; // to what the tensor holds, on the way back
    char *tensor;
    float *copy;
    size_t count;
} RtCopy;

void rt_copy_in(RtCopy *c, int threads);
void rt_copy_out(RtCopy *c, int threads);

// ---- dgrad_conv.c ----

// Writes to *turned the convolution of its gradient that a convolution's
// gradient with respect to its input is; false: there is none.  The weights of
// that are the call's, turned.
bool rt_dgrad_as_conv(const RtCall *c, RtCall *conv);
void rt_dgrad_flip_weights(const RtCall *c, const float *from, float *to,
                           int threads);

// ---- factor.c ----

// The calls that factor a matrix: bytes that they work in, and what they do.
size_t rt_factor_bytes(const RtCall *c);
void rt_factor(const RtCall *c, const float *a, float *out, void *work);

#endif
