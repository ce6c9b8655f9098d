// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Host: the parts of its device.
#ifndef RUNTIME_HOST_H
#define RUNTIME_HOST_H

#include "runtime/runtime.h"

// ---- team.c ----

// Runs work(arg, me, members) in each of `threads` members of the OpenMP team.
void rt_team_run(int threads, void (*work)(void *arg, int me, int members),
                 void *arg);
// The range of `count` items for a member.
void rt_team_share(size_t count, int me, int members, size_t *first,
                   size_t *last);
int rt_team_largest(void); // one member for each core available
// The processors that this process may use, as bits; none: unknown.
enum { RT_PROCESSORS = 1024 };
void rt_team_processors(uint64_t set[RT_PROCESSORS / 64]);
// Creates the team with that many threads, 0: the largest, and returns its
// size, with a warning if OpenMP's limits leave fewer, or if it is larger than
// the largest; ranks have warned of that together.  Ends the program if the
// system refuses a thread.
int rt_team_start(int requested);
// The members for which oneDNN's next primitive is planned, or runs.
void rt_team_use(int threads);
int rt_team_used(void); // by this thread
// Sets how long members spin before they sleep, unless libgomp's variables are
// set, and restarts the program: libgomp reads them before main.
void rt_team_spin_briefly(char **argv);

// ---- team_size.c ----

// The members of a library call, `threads` or 1.  The choice depends on the
// call's flops alone, as the members decide the last bits of its result.
int rt_call_threads(const RtCall *c, int threads);

// The times of one of our kernels' launches, whose result is the same for any
// number of threads; all 0 before its first run.
typedef struct {
    int runs;          // of the trials, so far
    float alone, team; // seconds of the fastest run; 0: none
    double spent;      // seconds of all runs after the trials
} RtTeamSize;

// The members of the next run, `threads` or 1.
int rt_team_size(const RtTeamSize *t, int threads);
void rt_team_measure(RtTeamSize *t, int threads, double seconds);

// ---- onednn.c ----

typedef struct RtContractions RtContractions;

// Plans the calls; rt_contractions_bytes is the memory for reserve.  *to is set
// first, so that it can be freed after an error.
void rt_contractions_new(const RtPlan *plan, int threads, RtContractions **to);
size_t rt_contractions_bytes(const RtContractions *c);
void rt_contractions_reserve(RtContractions *c);
// A call with the second operand in the layout of the library, which is
// `packed` if that is not NULL.
void rt_contractions_run(RtContractions *c, int call, char *a, char *b,
                         char *packed, char *out);
// The bytes of that, 0: the arena's layout serves; and its conversion.
size_t rt_contractions_packed_bytes(const RtContractions *c, int call);
void rt_contractions_pack(RtContractions *c, int call, char *b, char *packed);
void rt_contractions_free(RtContractions *c);

// ---- packed_weights.c ----

// Weights in the layouts of the calls that predictions make, from the first
// prediction after weights have changed to the next change.
typedef struct RtPackedWeights RtPackedWeights;

// The calls of the plan's predictions, found by running their steps on a device
// that only lists.
RtPackedWeights *rt_packed_weights_new(const RtPlan *plan,
                                       RtContractions *contractions);
size_t rt_packed_weights_bytes(const RtPackedWeights *w);
void rt_packed_weights_reserve(RtPackedWeights *w);
void rt_packed_weights_free(RtPackedWeights *w);
// A step begins: packs the weights if it predicts and they have changed.
void rt_packed_weights_begin(RtPackedWeights *w, const RtStep *step,
                             char *arena);
// The arena is written at that offset.
void rt_packed_weights_written(RtPackedWeights *w, size_t to);
// The packed second operand of a call; NULL: it is not packed.
char *rt_packed_weights_find(const RtPackedWeights *w, int call, size_t b);

// ---- tile.c ----

// The tile kernels of a plan, and the call that one of them computes at a later
// launch.
typedef struct {
    const RtPlan *plan;
    char *arena, *workspace;
    void **at, **argument; // values and addresses of arguments
    int step;              // number of the step; -1: none runs
    const RtTile *pending; // NULL: there is no such call
    size_t arg[3];         // addresses of the call
    const RtTile *ran;     // the last one
} RtHostTiles;

// Bytes of workspace, which reserve allocates.
size_t rt_host_tiles_bytes(const RtPlan *plan);
void rt_host_tiles_reserve(RtHostTiles *t, const RtPlan *plan, char *arena);
void rt_host_tiles_free(RtHostTiles *t);

// Whether tile kernels do the work of a call or a launch: now, or at another
// launch of the step.
typedef enum { RT_NO_TILE, RT_TILE_HERE, RT_TILE_ELSEWHERE } RtTileUse;
void rt_host_tiles_begin(RtHostTiles *t, const RtStep *step);
RtTileUse rt_host_tiles_call(RtHostTiles *t, const RtDevice *d, int call,
                             const size_t arg[3]);
RtTileUse rt_host_tiles_launch(RtHostTiles *t, const RtDevice *d, int launch,
                               int kernel, const size_t *arg);

// ---- copy.c ----

// A tensor of the arena, and its numbers as f32.
typedef struct {
    RtType type;
    bool adds; // copy out adds to the tensor
    char *tensor;
    float *copy;
    size_t count;
} RtCopy;

void rt_copy_in(RtCopy *c, int threads);
void rt_copy_out(RtCopy *c, int threads);

// ---- sum.c ----

// Stores the sums of `count` f32 at each of the offsets `from` at `to`, which
// may be one of them.  Added in order; no terms: 0.
void rt_sum(char *arena, size_t to, const size_t *from, int terms, size_t count,
            int threads);

// ---- dgrad_conv.c ----

// Expresses a convolution's data gradient as a convolution of the output
// gradient, with flipped weights.  False: not possible.
bool rt_dgrad_as_conv(const RtCall *c, RtCall *conv);
void rt_dgrad_flip_weights(const RtCall *c, const float *from, float *to,
                           int threads);

// ---- factor.c ----

// Factors a matrix; the bytes of workspace for that.
size_t rt_factor_bytes(const RtCall *c);
void rt_factor(const RtCall *c, const float *a, float *out, void *work);

#endif
