// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Device: holds the arena and runs kernels.  host/host.c and cuda/device.c
// implement it.
//
// Calls on one device run in order; sync waits for all of them.  A call that
// fails prints a message and ends the program with EXIT_DEVICE, since a trainer
// cannot continue without its device.  Addresses are byte offsets into the
// arena, so a step is the same list of numbers on every device.
#ifndef RUNTIME_DEVICE_H
#define RUNTIME_DEVICE_H

#include "runtime/rt.h"

struct RtError;
struct RtTrace;
struct RtNvtx;

// Kinds of work in the time budget.
typedef enum {
    RT_AUGMENTATION, // launches that prepare the model's input
    RT_KERNELS,
    RT_CALLS, // of libraries
    RT_NUM_WORKS
} RtWork;

typedef struct {
    double phase[RT_NUM_PHASES], work[RT_NUM_WORKS]; // seconds
} RtTimes;

// An observer of a step: `launched` is called after each launch, in order.  The
// device sets `absent` before the call if it leaves the launch out or merges it
// with later ones, and `tile` if a tile kernel did the work of the launch and of
// a library call, so that not all of its operands are in memory.
typedef struct RtWatch RtWatch;
struct RtWatch {
    // kernel: -1 for a library call, which has three addresses.
    void (*launched)(RtWatch *w, int kernel, const size_t *arg);
    bool absent;
    const RtTile *tile;
};

// Work that goes on beside a step: sums over ranks.
typedef struct RtStepHooks RtStepHooks;
struct RtStepHooks {
    void (*begin)(RtStepHooks *h);    // before the first launch
    void (*launched)(RtStepHooks *h); // after each launch
    // A device that replays steps calls both functions in the first runs with
    // hooks, and records the work that they queue.  Later runs replay it, and
    // set this instead.
    bool replayed;
};

// A JPEG file in memory, of h x w pixels, and a function for each of its rows
// from the top, of 3 w bytes.
typedef struct {
    const uint8_t *bytes;
    size_t count;
    int h, w;
    void (*row)(void *context, const uint8_t *pixel);
    void *context;
} RtJpegFile;

// The parts of the arena that other processes hold, and access to them.
typedef struct RtElsewhere RtElsewhere;
struct RtElsewhere {
    // From `begin` to `end`, but for own_begin to own_end, which may be empty.
    size_t begin, own_begin, own_end, end;
    void (*read)(RtElsewhere *e, void *to, size_t from, size_t bytes);
    void (*write)(RtElsewhere *e, size_t to, const void *from, size_t bytes);
};

// A segment of a step, between two sums over shards, for one shard.
typedef struct {
    const RtPlan *plan;
    int number, shard;  // of the step's segments; among those in lockstep
    int first, end;     // launches of the step
    size_t from, shift; // addresses from `from` on are shifted by these bytes
    bool is_watched, is_overlapped; // observers see this shard
    // While the step's function runs:
    int launch;    // the next one
    RtPhase phase; // of the first one
    size_t *arg;   // room for the addresses of any launch
    size_t sum[3]; // addresses of launch number `end`, if that is a call
} RtSegment;

struct RtDevice {
    const char *name; // "host", "cuda:0"
    int threads;      // of the host that compute; 0 on a GPU
    // Set before needed and reserve: it mainly predicts, and may keep weights
    // in a library's layout from one prediction to the next.
    bool predicts;
    // Set before as well: those parts take no memory, and nothing touches
    // them.  NULL: the arena is whole.
    RtElsewhere *elsewhere;
    // Likewise: the shards that run in lockstep, each with a copy of a step's
    // memory; 0 and 1: one.
    int shards;
    // For people: the processor and its threads, or the GPU and its memory.
    const char *(*describe)(RtDevice *d);
    // Free bytes, and the bytes that the plan needs: its arena and the
    // libraries' buffers.
    size_t (*available)(RtDevice *d);
    size_t (*needed)(RtDevice *d);
    // Allocates and zeroes all memory of the plan, and prepares every kernel
    // and library call.  Called once.  Later allocations: make_resident,
    // acquire_staging, and code that a library loads when it first runs.
    void (*reserve)(RtDevice *d);
    // Copies to offset `to` of the arena; `from` may change on return.
    void (*write)(RtDevice *d, size_t to, const void *from, size_t bytes);
    void (*read)(RtDevice *d, void *to, size_t from, size_t bytes);
    // Stores the sums of `count` f32 at each of the offsets `from` at `to`,
    // which may be the first of them.  Added in order; no terms: 0.
    void (*sum)(RtDevice *d, size_t to, const size_t *from, int terms,
                size_t count);
    // A pinned staging buffer, NULL if none is left.  Its release waits for
    // its copies.  NULL functions: the device needs no staging.
    void *(*acquire_staging)(RtDevice *d, size_t bytes);
    void (*release_staging)(RtDevice *d, void *buffer);
    // Copies a batch from staging buffers into the inputs of the next step and
    // returns the number of batches submitted so far.  Its buffers may change
    // once `completed_batches` has reached that number; that function waits
    // until it is at least `least`.
    int64_t (*submit_batch)(RtDevice *d, const RtPiece *piece, int count);
    int64_t (*completed_batches)(RtDevice *d, int64_t least);
    // Copies rows to device memory for the rest of the run; a batch then
    // gathers `taken` of them by number.  Pieces name the first set of rows 1.
    // NULL: the device has no memory of its own.
    bool (*make_resident)(RtDevice *d, const RtRows *rows, int64_t taken,
                          struct RtError *e);
    // Decodes a file to red, green and blue.  *declined: it gave no row, and
    // another decoder must.  Several threads call it.  NULL: the device does
    // not decode, or --decode does not ask for it.
    bool (*decode_jpeg)(RtDevice *d, const RtJpegFile *file, bool *declined,
                        struct RtError *e);
    // Requests a copy of `count` floats as they are after the work queued so
    // far.  poll_readback returns the oldest request's values; false: they have
    // not arrived, and `wait` is false.
    void (*request_readback)(RtDevice *d, const size_t *from, int count);
    bool (*poll_readback)(RtDevice *d, float *to, bool wait);
    // Runs a step: its function calls launch, library_call and phase.  A step
    // does the same each time, so a device may record it and replay it.
    void (*run)(RtDevice *d, const RtStep *step);
    // Launches kernel number `kernel` of the plan with `grid` blocks; arg[] has
    // an offset into the arena for each pointer parameter.
    void (*launch)(RtDevice *d, int kernel, int grid, const size_t *arg);
    // Runs library call number `call` of the plan.
    void (*library_call)(RtDevice *d, int call, size_t a, size_t b, size_t out);
    // Later work belongs to this phase in the time budget.
    void (*phase)(RtDevice *d, RtPhase phase);
    void (*sync)(RtDevice *d);
    // Measures the fastest way to run a step, whose inputs and states are in
    // place, for later runs.  *report is a table for people.  Overwrites the
    // states.  NULL: the device has no choice.
    bool (*tune)(RtDevice *d, const RtStep *step, const char **report,
                 struct RtError *e);
    // Time spent since the last call; waits like sync.
    void (*times)(RtDevice *d, RtTimes *t);
    // Peak operations a second in contractions of a type, 0 if unknown.  NULL:
    // unknown for all.
    double (*peak)(RtDevice *d, RtType type);
    // Adds a span of each launch and copy to the trace from now on, and may
    // launch one by one meanwhile; NULL ends it.  Waits like sync.
    void (*trace)(RtDevice *d, struct RtTrace *trace);
    uint64_t tuning; // a hash of the choices of autotuning; 0: none are used
    bool replays;    // a step is one launch unless it is traced
    // The first launches of the running step whose work is queued: others are
    // merged with later ones.  NULL: all.
    int (*queued_launches)(RtDevice *d);
    void (*close)(RtDevice *d);
    RtSegment *segment;        // that steps run; NULL: all of them
    RtWatch *watch;            // NULL: none; a watched step is not recorded
    RtStepHooks *hooks;        // of the next runs; NULL: none
    const struct RtNvtx *nvtx; // ranges of phases and launches; may be NULL
    struct RtTrace *profile;   // written when a call fails; may be NULL
};

// Readbacks in flight at most, and values in each.
enum { RT_MAX_READBACKS = 8, RT_MAX_READBACK_VALUES = 12 };

// Whether a range of the arena that begins at an offset is here; a state is
// here or elsewhere, never both.
bool rt_device_holds(const RtDevice *d, size_t offset);
// Copies bytes of a state, wherever it is.
void rt_device_read(RtDevice *d, void *to, size_t from, size_t bytes);
void rt_device_write(RtDevice *d, size_t to, const void *from, size_t bytes);
// The parts of the arena that are not here, each made of whole units of bytes;
// returns the sum of their bytes.
typedef struct {
    size_t begin, end;
} RtRange;
size_t rt_device_absent(const RtDevice *d, size_t unit, RtRange part[2]);

// Calls the step's function, for the device's segment if it has one; else its
// hooks begin.
void rt_step_launch(RtDevice *d, const RtStep *step);

// The address of a launch's argument in the segment that runs, if one does.
size_t rt_segment_address(const RtDevice *d, size_t at);
// Tells the observers that see the shard of a launch, or of a sum over shards.
void rt_observers_tell(RtDevice *d, int kernel, const size_t *arg);

// The operation's name: "conv_grad_input".
const char *rt_call_name(RtCallKind kind);

// Launch `number` of a step with its place in the model; NULL: unknown.
const RtLaunch *rt_launch_of(const RtStep *step, int number);
RtWork rt_launch_work(const RtLaunch *launch, bool is_call);

// Uses `threads` threads, or one for each core if that is 0.
RtDevice *host_open(const RtPlan *plan, int threads);

#endif
