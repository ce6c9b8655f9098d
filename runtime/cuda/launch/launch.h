// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Launch: how a step runs on a GPU, and the open device.
#ifndef RUNTIME_CUDA_LAUNCH_H
#define RUNTIME_CUDA_LAUNCH_H

#include "runtime/cuda/libraries/libraries.h"

// ---- merged_launch.c ----

// Chooses merged launches of a plan: those without a kernel that is fused or
// that tile kernels replace (NULL: there are none) which are not `unmerged`
// (NULL: none are) and do not overlap.  fused has one for each of the plan's
// fusions, merged one for each of its merged launches.
void rt_merges_choose(const RtPlan *plan, const RtTiles *tiles,
                      const bool *fused, const bool *unmerged, bool *merged);

// Collects the launches of a step that become one.
typedef struct {
    const RtPlan *plan;
    const bool *merged;
    int step, launch; // the next one
    size_t arg[RT_MAX_MERGED_ARGS];
    int num_args; // collected so far
} RtMerging;

void rt_merging_begin(RtMerging *m, const RtPlan *plan, const bool *merged,
                      int step);
// Counts a library call or a fused kernel.
void rt_merging_skip(RtMerging *m);
// Counts a kernel.  True: launch *kernel now, which may have become the merged
// one; false: it was collected.
bool rt_merging_add(RtMerging *m, int *kernel, int *grid, const size_t **arg);

// ---- timing_events.c ----

// An event, and the phase and work that begin there; RT_NUM_WORKS: neither.
typedef struct {
    CUevent event;
    RtPhase phase;
    RtWork work;
} RtTimingEvent;

// Times the phases and the kinds of work of a step by events between them.  One
// timed run stands for the many untimed ones after it.  Events are read without
// waiting, once the GPU has passed the last one.
typedef struct {
    const RtDriver *cu;
    CUevent end;
    RtTimingEvent *event;
    int count, capacity;
    bool pending;        // a timed run was queued and is not read yet
    RtTimes spent;       // in all runs that were read
    int64_t reads, runs; // runs: since the last rt_timing_events_times
} RtTimingEvents;

bool rt_timing_events_open(RtTimingEvents *m, const RtDriver *cu, int capacity,
                           RtError *e);
void rt_timing_events_close(RtTimingEvents *m);

// Starts a timed run, whose events are then added; replays of a captured run
// record the same events.
void rt_timing_events_begin(RtTimingEvents *m);
bool rt_timing_events_add(RtTimingEvents *m, RtPhase phase, RtWork work,
                          CUstream stream, bool captured, RtError *e);
// Ends a timed run with an event of its own: events in a graph keep their old
// state until the graph reaches them.
bool rt_timing_events_end(RtTimingEvents *m, CUstream stream, RtError *e);
// Reads a timed run if it has ended.
bool rt_timing_events_read(RtTimingEvents *m, RtError *e);
// Drops all times so far, as later runs are different.
void rt_timing_events_forget(RtTimingEvents *m);
// Adds the time of all runs since the last call, scaled from the timed ones.
void rt_timing_events_times(RtTimingEvents *m, RtTimes *t);

// ---- the open device ----

// Measures single launches for autotuning.
typedef struct RtLaunchTimer RtLaunchTimer;
struct RtLaunchTimer {
    // Called before launch number `launch`; call: -1 for a kernel.
    bool (*before)(RtLaunchTimer *t, int launch, int call, RtError *e);
    bool *failed; // for each launch: its library refused to run it
};

// The side stream, and the launch before which the main one waits for it; -1:
// it has nothing to wait for.
typedef struct {
    const RtDriver *cu;
    CUstream stream; // NULL: the plan has no forks
    CUevent begin, end;
    int join;
} RtForks;

// A step's CUDA graphs, of runs without hooks or with them.
typedef struct {
    CUgraphExec plain, timed;
    RtTimingEvents events;
    bool has_times;  // the step is timed
    int64_t untimed; // runs since a timed one
    int64_t runs;
    bool one_by_one; // not captured, or refused by the driver
} RtStepGraph;

// The inputs of a batch of a step group, in a slot of the copy stream.
typedef struct {
    RtPiece piece[RT_MAX_INPUTS];
    int pieces;
} RtHeldBatch;

// Training steps that wait to be launched together.
typedef struct {
    int steps; // of a group; 1: there are none
    RtHeldBatch held[RT_MAX_GROUP];
    int batches, runs;    // held: batches, and how many of these have a run
    int first;            // slot of the first
    CUgraphExec graph[2]; // for both sets of slots; NULL: not captured
    RtHeldBatch batch[2]; // that it was captured with
    int step;             // that both are of
} RtStepGroup;

enum { RECENT = 4 }; // launches that an error names

// A library call whose tile kernel is launched at a later launch.
typedef struct {
    const RtTile *tile; // NULL: none
    int number;         // of the call's launch
    size_t arg[3];
} RtPendingTile;

typedef struct {
    RtDevice device;
    const RtTrainer *trainer;
    const RtPlan *plan;
    RtPlan unmerged_plan; // for a GPU without cooperative launches
    RtDriver cu;
    RtGpu gpu;
    RtKernels kernels;
    RtTiles tiles;
    RtPlan untiled_plan; // with all calls, of which tuning chooses some to tile
    RtPlan tiled_plan;   // where calls that tile kernels replace are RT_TILED
    RtCall *tiled_call;  // of the latter
    RtPendingTile pending;
    RtLibraryCalls calls;
    RtStaging staging;
    RtNvjpeg *nvjpeg; // NULL: not used
    RtBuiltins builtins;
    const RtFunction *sum; // built-in kernel; NULL: the plan has no shards
    RtCopyStream copies;
    RtAsyncReadback readback;
    RtTraceSpans spans;
    CUstream stream;
    RtForks forks;
    CUdeviceptr arena;
    RtSparse sparse;       // of the arena, if it has parts elsewhere
    RtStepGraph *graph;    // of each step, then of each step with hooks
    RtStepGraph **segment; // of each step in lockstep, by segment and shard
    RtStepGraph *segment_graph; // all of them
    size_t num_segments;
    RtStepGraph *running; // one of all these
    RtStepGroup group;
    int step;         // running, or the last one; -1: none
    bool is_capturing; // the step
    bool is_refused;  // its capture has failed, for this reason
    RtError why;
    RtError error; // of the last call that failed
    bool is_timed; // the run has timing events
    RtPhase phase;
    RtWork work;                // RT_NUM_WORKS: none
    bool names_phase;           // a profiler range of the phase is open
    bool *merged;               // for each merged launch of the plan
    RtMerging merging;          // counts the launches of the step
    int first;                  // launch of those being merged
    bool is_programmatic;       // kernels may start while others run
    bool after_kernel;          // the stream's last work is one of ours
    CUdeviceptr *at;            // room for any kernel's arguments
    void **argument;            // pointers to them
    bool *needed;               // kernels that steps launch
    bool is_listing;            // only fills `needed`, launches nothing
    bool is_guessing;           // fusions, as the libraries are not open yet
    const char *recent[RECENT]; // names of the last launches, a ring
    int64_t launches;           // of the run
    bool is_chosen;
    RtChosen chosen;             // by autotuning, if is_chosen
    RtLaunchTimer *timer;        // NULL: none
    char *tuning_path;           // file of `chosen`; NULL: none
    const RtFiles *tuning_files; // to open it with
    char *report;                // of autotuning
    char name[16], description[192];
} RtCuda;

static inline RtCuda *rt_cuda_of(RtDevice *d) {
    return (RtCuda *)(void *)d; // device is its first field
}

// ---- launch.c ----

// Ends the program with c->error unless `good`.
void rt_cuda_check(const RtCuda *c, bool good);
// The same for work of a step; while captured, sets is_refused and why.
void rt_cuda_check_launch(RtCuda *c, bool good);
const char *rt_cuda_step_name(const RtCuda *c);

// Whether a library call does the work of a launch.
bool rt_cuda_is_fused(const RtCuda *c, int step, int launch);

// The functions of RtDevice that a step calls.
void rt_cuda_phase(RtDevice *d, RtPhase phase);
void rt_cuda_launch(RtDevice *d, int kernel, int grid, const size_t *arg);
void rt_cuda_library_call(RtDevice *d, int call, size_t a, size_t b,
                          size_t out);

// RtDevice's queued_launches.
int rt_cuda_queued_launches(RtDevice *d);

// Launches c's step one by one, with timing events if `timed`.
void rt_cuda_launch_step(RtCuda *c, bool captured, bool timed);

// ---- fork.c ----

bool rt_forks_open(RtForks *f, const RtDriver *cu, const RtPlan *plan,
                   RtError *e);
void rt_forks_close(RtForks *f);
// Starts the fork of launch number `launch` of the step, which is that library
// call, if there is one: the side stream waits for the main one, and the caller
// queues the call there.  Returns whether it did.
bool rt_fork_begin(RtCuda *c, int launch, int library_call);
// Called before launch number `launch`: makes the main stream wait for the side
// stream if the fork ends there.
void rt_fork_join(RtCuda *c, int launch);

// ---- sum.c ----

// RtDevice's sum.
void rt_cuda_sum(RtDevice *d, size_t to, const size_t *from, int terms,
                 size_t count);

// ---- step.c ----

// Room for `events` timing events, 0 if the step is not timed.
bool rt_step_graph_open(RtStepGraph *g, const RtDriver *cu, int events,
                        RtError *e);
void rt_step_graph_close(RtStepGraph *g);

// RtDevice's run.
void rt_cuda_run(RtDevice *d, const RtStep *step);
// Runs step c->step once more.
void rt_step_graph_run(RtCuda *c, RtStepGraph *g, RtStepHooks *hooks);
// Whether the run after `ahead` others is a replay without timing events.
bool rt_step_graph_replays(const RtStepGraph *g, int ahead);

// Captures what `queue` launches as a graph.
typedef void RtEnqueue(RtCuda *c, const void *context);
bool rt_graph_build(RtCuda *c, RtEnqueue *queue, const void *context,
                    CUgraphExec *out, RtError *e);

// ---- step_group.c ----

// Training steps of a plan that are launched together.
int rt_step_group_of(const RtPlan *plan);
void rt_step_group_close(RtCuda *c);
// RtDevice's submit_batch.
int64_t rt_cuda_submit_batch(RtDevice *d, const RtPiece *piece, int count);
// Holds a run of the step, if its batch is held; false: run it.
bool rt_step_group_run(RtCuda *c, const RtStep *step);
// Launches the held batches and runs.  All other work of the stream calls it
// first.
void rt_step_group_flush(RtCuda *c);

#endif
