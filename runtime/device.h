// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Device: where the arena lives and kernels run.  host.c and cuda/device.c fill
// one.
//
// Calls on one device happen in order; sync waits for all of them.  A call
// that fails says what it was doing and ends the program with EXIT_DEVICE: a
// trainer cannot go on without its device.  Addresses are bytes from the start
// of the arena, so a step is the same list of numbers on every device.
#ifndef RUNTIME_DEVICE_H
#define RUNTIME_DEVICE_H

#include "runtime/rt.h"

struct RtError;
struct RtTrace;
struct RtNvtx;

// What a device's work is.
typedef enum {
    RT_AUGMENTATION, // launches that make what the model sees
    RT_KERNELS,
    RT_CALLS, // of libraries
    RT_NUM_WORKS
} RtWork;

typedef struct {
    double phase[RT_NUM_PHASES], work[RT_NUM_WORKS]; // seconds
} RtTimes;

// One who looks at a step: is told of each launch in order, once it has been
// made.  A device that leaves the launch out, or makes it later with others,
// sets `absent` before.
typedef struct RtWatch RtWatch;
struct RtWatch {
    // kernel: its number, -1 for a library call, which has three addresses.
    void (*launched)(RtWatch *w, int kernel, const size_t *arg);
    bool absent;
};

struct RtDevice {
    const char *name; // "host", "cuda:0"
    int threads;      // of the host that compute; 0: a GPU does
    // What the device is, for people: processor and threads, or GPU and memory.
    const char *(*describe)(RtDevice *d);
    // Bytes that reserve could get now, and that it will need for the plan:
    // the arena and the libraries' own buffers.
    size_t (*available)(RtDevice *d);
    size_t (*needed)(RtDevice *d);
    // Takes all memory the plan needs and zeroes it; prepares every kernel and
    // library call.  Called once.  After it only keep and lend take memory, and
    // libraries some for code that runs for the first time.
    void (*reserve)(RtDevice *d);
    // The bytes at `from` are free to change when write returns.
    void (*write)(RtDevice *d, size_t to, const void *from, size_t bytes);
    void (*read)(RtDevice *d, void *to, size_t from, size_t bytes);
    // Memory that feed reads faster than any other, NULL if there is none left,
    // and its return, which waits until nothing reads it.  No functions: all
    // memory is alike.
    void *(*lend)(RtDevice *d, size_t bytes);
    void (*take_back)(RtDevice *d, void *lent);
    // Gives the next run its inputs, from lent memory, and returns how many
    // feeds there have been.  The bytes are to stay as they are until fed,
    // which waits for it to be `least`, returns as many.
    int64_t (*feed)(RtDevice *d, const RtPiece *piece, int count);
    int64_t (*fed)(RtDevice *d, int64_t least);
    // Keeps rows in memory of its own from now on, of which feed takes `taken`
    // at a time; the first that is kept is number 1.  NULL: it has no memory
    // of its own.
    bool (*keep)(RtDevice *d, const RtRows *rows, int64_t taken,
                 struct RtError *e);
    // Takes note of floats as what was given before leaves them.  tell gives
    // the numbers of the oldest note that it has not given yet; false: they
    // are not there, and it was not to wait.
    void (*ask)(RtDevice *d, const size_t *from, int count);
    bool (*tell)(RtDevice *d, float *to, bool wait);
    // Runs a step: by its function, which calls what follows, or again what an
    // earlier run of it did.  A step does the same each time.
    void (*run)(RtDevice *d, const RtStep *step);
    // Runs kernel number `kernel` of the plan over `grid` blocks; arg[] are
    // addresses in the arena, one for each pointer parameter.
    void (*launch)(RtDevice *d, int kernel, int grid, const size_t *arg);
    // Runs library call number `call` of the plan.
    void (*contract)(RtDevice *d, int call, size_t a, size_t b, size_t out);
    // What follows belongs to this phase of a step, for the time budget.
    void (*phase)(RtDevice *d, RtPhase phase);
    void (*sync)(RtDevice *d);
    // Measures how a step, whose inputs and states are there, is done fastest,
    // for later runs to do so; *said has what came of it.  States are not what
    // they were.  NULL: nothing is left open.
    bool (*tune)(RtDevice *d, const RtStep *step, const char **said,
                 struct RtError *e);
    // What was spent since the last call; waits like sync.
    void (*times)(RtDevice *d, RtTimes *t);
    // Operations a second that it could do at most in contractions of that
    // type, 0: not known.  NULL: of none.
    double (*peak)(RtDevice *d, RtType type);
    // From now on gives the trace a span of each launch and copy; NULL: no
    // more.  Waits like sync, and until then may make launches one by one.
    void (*trace)(RtDevice *d, struct RtTrace *trace);
    bool replays; // a step is one launch while nothing is traced
    void (*close)(RtDevice *d);
    RtWatch *watch; // NULL: nobody looks; else steps are not recorded
    const struct RtNvtx *nvtx; // is told of phases and launches; or NULL
    struct RtTrace *profile; // written where a call fails; NULL: there is none
};

// Notes that may be asked for and not told yet, and numbers in each.
enum { RT_MAX_READBACKS = 8, RT_MAX_READBACK_VALUES = 12 };

// "conv_grad_input", as operations are called.
const char *rt_call_name(RtCallKind kind);

// The launch of that number of a step in the model's words; NULL: unknown.
const RtLaunch *rt_launch_of(const RtStep *step, int number);
// What kind of work it is, of a kernel or a call.
RtWork rt_launch_work(const RtLaunch *launch, bool is_call);

// Number of worker threads is threads, or one for each core if that is 0.
RtDevice *host_open(const RtPlan *plan, int threads);

#endif
