// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Declarations that the runtime's files share: a section for each file, and a
// header for each folder.  Emitted programs include rt.h only.
#ifndef RUNTIME_RUNTIME_H
#define RUNTIME_RUNTIME_H

#include "base/exits.h"
#include "base/options.h"
#include "runtime/device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/types.h>

// An error: a sentence without a full stop, and its exit status.  A function
// that can fail returns false and fills one.  The text holds the longest path
// and its message.
enum { RT_MESSAGE_BYTES = 4096 + 600 };

typedef struct RtError {
    int status;
    char text[RT_MESSAGE_BYTES];
} RtError;

bool rt_fail(RtError *e, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Prints the error to stderr; returns its status.
int rt_print_error(const RtError *e);

// The call of a library that this thread is in: an error of the device ends it
// with the error, and a trainer, where this is NULL, with a message.
typedef struct {
    jmp_buf at;
    RtError error;
    RtDevice *opening; // to close after an error; NULL: none
} RtGuard;

extern _Thread_local RtGuard *rt_guard;

_Noreturn void rt_end(int status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// Ends the call of a library, if this is one.
void rt_guard_end(const RtError *e);

// Prints a warning to stderr, from any thread.
// Rank 0 alone prints warnings of several ranks.  rt_warn_own is for a warning
// that other ranks need not have, and names the rank.
void rt_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void rt_warn_own(const char *format, ...) __attribute__((format(printf, 1, 2)));
void rt_warn_as_rank(int rank); // of several, from now on
bool rt_warns_as_rank(void);
void rt_warnv(const char *format, va_list list)
    __attribute__((format(printf, 1, 0)));

// Prints a line to stderr, after `before`.  Escape sequences in the text are
// shown, not sent to the terminal.
void rt_print_line(const char *format, ...)
    __attribute__((format(printf, 1, 2)));
void rt_print_linev(const char *before, const char *format, va_list list)
    __attribute__((format(printf, 2, 0)));

// ---- log.c ----

// Prints text to stdout or stderr, and to the run's log without colours.
void rt_print(FILE *to, const char *text);
// Opens the log; earlier lines are written to it.  False with errno set.
bool rt_log_open(const char *path);
int rt_log_lost(void); // errno of the first line that could not be written; 0

// The escape sequence `code` if `to` is a terminal with colours and NO_COLOR is
// not set, else "".
const char *rt_colour(FILE *to, const char *code);

// Starts a line on stderr: erases the progress bar of a terminal.
const char *rt_wiped(void);

// ---- output.c ----

enum { RT_READER_TIMEOUT = 10 }; // seconds that a slow reader is waited for

// Lets no reader of stdout or stderr stop the program for longer than a second.
// At exit, buffered text is written for some seconds.
void rt_output_begin(void);
// Whether all of stdout has been written; waits for it if necessary.
bool rt_output_complete(void);
// Waits until all has been written, for some seconds at most.
void rt_output_end(void);
// The same, then _Exit.
_Noreturn void rt_leave(int status);
// A buffered stream to a descriptor, which it closes; NULL: no memory.  Rows
// that a slow reader does not take are lost with ETIMEDOUT.
FILE *rt_output_open(int fd);
const char *rt_output_reason(int reason); // strerror, and a text for ETIMEDOUT

// ---- files.c ----

// The system calls for data and checkpoints, as a table so that a test can let
// the n-th one fail.
typedef struct {
    int (*open)(const char *path, int flags, mode_t mode);
    ssize_t (*read)(int fd, void *to, size_t bytes);
    ssize_t (*write)(int fd, const void *from, size_t bytes);
    int (*sync)(int fd);
    int (*close)(int fd);
    int (*rename)(const char *from, const char *to);
    int (*unlink)(const char *path);
    // Maps the first bytes of a file for reading, until munmap; NULL with errno
    // set.  A page that cannot be read later raises SIGBUS (signals.c).
    void *(*map)(int fd, size_t bytes);
} RtFiles;

extern const RtFiles rt_system_files;

// The same for files that are found without being named and loaded as code,
// such as caches.  A file or folder is opened only if no other user can have
// written it, and is created for this user alone.  The first other one gives a
// warning.
extern const RtFiles rt_private_files;
void rt_warn_unused(const char *path, const char *why);

// All bytes, or false with errno set (0: end of file).
bool rt_read(const RtFiles *f, int fd, void *to, size_t bytes);
bool rt_write(const RtFiles *f, int fd, const void *from, size_t bytes);

// Fill *e from errno.  The status is EXIT_IO, and EXIT_DATA if the path is
// wrong.
bool rt_fail_open(RtError *e, const char *path);
bool rt_fail_read(RtError *e, const char *what);

// A file opened for reading and its size; -1 with *e filled.
int rt_open_sized(const RtFiles *f, const char *path, size_t *bytes,
                  RtError *e);

// Whether the path of rows or of a trace is -, standard output.
bool rt_is_stdout(const char *path);
const char *rt_rows_name(const char *path); // for messages
// Opens a file, a pipe or standard output for rows; NULL with errno set.  Waits
// some seconds for the reader of a pipe: ETIMEDOUT.
FILE *rt_rows_open(const char *path);

// Makes a folder and its parents.
bool rt_make_folder(const char *path, mode_t mode, RtError *e);

// Formats a path; the caller frees it.  NULL: no memory.
char *rt_path(const char *format, ...) __attribute__((format(printf, 1, 2)));

// ---- clock.c ----

// Monotonic time in seconds.
double rt_seconds(void);

// The parts of the time before the first step.
typedef enum {
    RT_START_DEVICE,    // finding it; starting the host's threads
    RT_START_CONTEXT,   // of a GPU, and streams
    RT_START_LIBRARIES, // opening them
    RT_START_PLANS,     // of library calls
    RT_START_COMPILING, // waiting for compilation
    RT_START_LOADING,   // of kernels
    RT_START_DATA,
    RT_START_MEMORY,
    RT_START_IMAGES, // copying them to the device
    RT_START_STATES,
    RT_START_LOADERS, // starting threads that load, printing the header
    RT_NUM_STARTS
} RtStart;

// Seconds of each part; `last`: the end of the last one.
typedef struct {
    double last, part[RT_NUM_STARTS];
} RtLaps;

// Adds the time since the last call to a part.  NULL: no timing.
void rt_lap(RtLaps *l, RtStart part);

// ---- options.c ----

enum { RT_MAX_LOADERS = 64 }; // threads that load

// The training samples to evaluate instead of the test set: a number or a
// percentage; both 0: none.
typedef struct {
    double samples, percent;
} RtValidation;

typedef struct RtOptions {
    const char *data, *out, *device, *metrics, *snapshot, *times, *tensorboard;
    double epochs;            // 0: not given
    double stall_timeout;     // seconds; 0: not given
    int64_t seed;             // -1: not given
    int64_t threads, loaders; // 0: not given
    int64_t log_every;        // steps; 0: not given
    int64_t steps;            // 0: not given
    int64_t verify_every;     // steps; 0: not given
    int64_t bad_samples;      // image files to skip in train, and in test
    RtValidation validation;
    int64_t max_image_pixels; // 0: not given
    const char *resident;     // auto, yes, no
    const char *collectives;  // auto, shared, mpi, nccl
    const char *decode;       // cpu, nvjpeg
    const char *reduce;       // fixed, fast
    const char *profile;
    int64_t profile_steps; // 0: not given
    const char *dump_cuda, *load_cuda;
    const char *tuning; // the file; NULL: in the user's cache
    bool list_kernels, print_plan, repeat_batch;
    bool resume, eval_only, init_only, load_only, tune, nvtx, quiet, time, help,
        version;
    const char *resume_path; // NULL: the newest in the out folder
    const char *init;        // a file of weights; NULL: they are drawn
    const char *init_except; // names that are left out; NULL: none
    const char *map;         // a file of names; NULL: none
    int rank;                // in its world; only rank 0 writes files
    int local_rank;          // among the ranks of its machine
    unsigned without;        // a bit for each; see disabled_features.c
    const char *predict;     // its first path; NULL: it trains or evaluates
    const char *weights;     // of a prediction; NULL: those of the newest run
    int64_t top;             // classes to print; 0: not given
    bool logits;
    const char *generate; // a text to continue; NULL: none
    const char *tokenizer;
    double temperature;
    double top_p;          // 0: not given
    int64_t top_k, tokens; // 0: not given
} RtOptions;

// The trainer is for messages, and may be NULL.
bool rt_options_parse(RtOptions *o, int argc, char **argv, const RtTrainer *t,
                      RtError *e);
extern const Option rt_options[];
// The next path of --predict among the words of a command line; NULL: none.
const char *rt_options_path(OptionReader *r);
void rt_options_help(const RtTrainer *t, const char *program);

// ---- disabled_features.c ----

enum {
    RT_WITHOUT_GRAPH,
    RT_WITHOUT_LIBRARY_FUSIONS,
    RT_WITHOUT_MERGED_LAUNCHES,
    RT_WITHOUT_FORKS,
    RT_WITHOUT_PROGRAMMATIC_LAUNCHES,
    RT_WITHOUT_TIMING_EVENTS,
    RT_WITHOUT_TILE_KERNELS,
    RT_WITHOUT_STEP_GROUPS
};

// Reads a comma-separated list of names.
bool rt_without_parse(unsigned *without, const char *list);
void rt_without_apply(unsigned without, RtPlan *plan);
// Checks that the device has these features.
bool rt_without_check(unsigned without, const RtDevice *d, RtError *e);

// A copy of a trainer whose plans lack some features.
enum { RT_MAX_PLANS = 2 }; // the host's and CUDA's
typedef struct {
    RtTrainer trainer;
    RtPlan plan[RT_MAX_PLANS];
} RtReducedTrainer;

const RtTrainer *rt_without_trainer(RtReducedTrainer *to, const RtTrainer *from,
                                    unsigned without);

// ---- signals.c ----

void rt_signals_catch(void);
// The signal that requests the run to stop, or 0.
int rt_signals_caught(void);
// Ranks stop after the same step: from now on rt_signals_caught is the signal
// that they agree on; rt_signals_pending is the one of this process, or 0.
void rt_signals_together(void);
int rt_signals_pending(void);
void rt_signals_agree(int number);
// Ends the program by that signal.
void rt_signals_raise(int number);

// ---- device_name.c ----

// The number in cuda:N, 0 for cuda alone, -1 for any other word.
int rt_cuda_ordinal(const char *name);
// Checks that the name is auto, host or cuda:N.
bool rt_device_named(const char *name, RtError *e);
// Checks that the device exists.  Opens the driver, creates no context.
bool rt_device_found(const char *name, RtError *e);

// ---- device_open.c ----

// The device of the options; NULL with the reason in *e.
RtDevice *rt_device_open(const RtTrainer *t, const RtOptions *o,
                         const RtPlan **plan, RtLaps *laps, RtError *e);
// The plan for that device, without opening it.
const RtPlan *rt_device_plan(const RtTrainer *t, const RtOptions *o,
                             RtError *e);

// ---- cuda/driver, cuda/device.c ----

// The GPUs that the driver finds, even unusable ones; 1 if it does not start
// for another reason than the lack of one.
int rt_driver_gpus(void);
// Whether the GPU of that number can be used.
bool rt_gpu_found(int ordinal, RtError *e);
// Opens the GPU of that number; NULL: *e has the reason.  The options (NULL:
// none) select a tuning file.
RtDevice *rt_cuda_open(const RtTrainer *t, const RtPlan *plan, int ordinal,
                       const RtOptions *o, RtLaps *laps, RtError *e);

// ---- time.c ----

// The position of a run, and the facts that decide its bits.
typedef struct {
    int64_t step, steps, epoch_steps, seed;
    uint64_t data_hash;
} RtProgress;

// A time in steps.
double rt_time_steps(RtTime t, const RtProgress *p);
// The first step at or after that time; the end of the run at the latest.
int64_t rt_time_first(RtTime t, const RtProgress *p);
// Whether an event with this period is due after the steps so far.
bool rt_time_due(RtTime every, const RtProgress *p);
// The stage of the next step.
int rt_time_stage(const RtTrainer *t, const RtProgress *p);
// Whether RT_AVERAGE runs after the steps so far: when averaging begins, each
// period from then on, and at the end.  If each step averages, only before the
// first.
bool rt_time_averages(const RtTrainer *t, const RtProgress *p);

// ---- step.c ----

enum { RT_NUM_FLOATS = RT_BF16 + 1 }; // element types of contractions

// The plan's step of that kind; NULL: none.
const RtStep *rt_step_find(const RtPlan *plan, RtStepKind kind, int stage);
// The outputs of a PREDICT step.
int rt_step_num_outputs(const RtStep *step);
const RtInput *rt_step_output(const RtStep *step, int i);
// Adds the FLOPs of the step's library calls, by operand type.
void rt_step_flops(const RtPlan *plan, const RtStep *step, int64_t runs,
                   double to[RT_NUM_FLOATS]);
// Runs the step if there is one, then RT_DERIVE if it requires that.
void rt_step_run(const RtPlan *plan, RtDevice *d, RtStepKind kind, int stage);
size_t rt_input_bytes(const RtInput *in);
// The image input of the training step; NULL: it reads none.
const RtInput *rt_images_of(const RtPlan *plan);

// ---- shards.c ----

// Adds `count` f32 terms at offset `at`, which batch i has left there, to those
// before it; with the last of `batches`, `at` has the sums of all.
void rt_shard_sum(const RtPlan *p, RtDevice *d, const RtTrainer *t, int i,
                  int batches, size_t at, size_t count);
// Runs the update of a stage, which reads the sums: that of `count` optimizer
// shards from `first` on, and the rest.  With optimizer shards RT_DERIVE
// remains to be run, once the parameters of all of them are there.
void rt_shard_update(const RtPlan *p, RtDevice *d, int stage, int first,
                     int count);

// ---- lockstep.c ----

// A step with sums over shards runs in lockstep: all shards of a process up to
// a sum, the sum, all shards up to the next one.  The first shard has the
// addresses of the plan; each other one has a copy of the arena from the terms
// on, behind it.

// The segments of a step, which are between its sums; 1: it has none.
int rt_lockstep_segments(const RtPlan *plan, const RtStep *step);
// Whether the plan's training steps have such sums.
bool rt_lockstep_needed(const RtPlan *plan);
// Bytes of the arena with the copies of so many shards; SIZE_MAX: too many.
size_t rt_lockstep_arena_bytes(const RtPlan *plan, int shards);
// Bytes from an address of the first shard to that of another one.
size_t rt_lockstep_shift(const RtPlan *plan, int shard);

typedef struct RtLockstep RtLockstep;
struct RtLockstep {
    const RtPlan *plan;
    RtDevice *device; // with memory for these shards
    int shards;       // of this process
    bool *empty;      // for each: it has no samples
    size_t *arg;      // room for the addresses of a launch
    // Replaces `count` f32 at an offset, the sum of this process, by the sum
    // over ranks; launch: of the step.  NULL: this process has all shards.
    void (*sum_ranks)(RtLockstep *l, int launch, size_t at, size_t count);
    void *context; // of sum_ranks
};

// Ends the program if there is no memory.
void rt_lockstep_open(RtLockstep *l, const RtPlan *plan, RtDevice *d,
                      int shards);
void rt_lockstep_close(RtLockstep *l);
// Runs a step for all shards that are not empty; the terms of others are 0.
void rt_lockstep_run(RtLockstep *l, const RtStep *step);
// Runs a step without such sums for one shard.
void rt_lockstep_run_one(RtLockstep *l, const RtStep *step, int shard);
// Adds `count` f32 terms at an offset that batch i of `batches` has left in
// each shard to those of its batches before.
void rt_lockstep_add_batch(const RtLockstep *l, const RtTrainer *t, int i,
                           size_t at, size_t count);
// Stores the sum over this process's shards at the first one's offset.
void rt_lockstep_add_shards(const RtLockstep *l, size_t at, size_t count);

// ---- state.c ----

const RtState *rt_state_find(const RtPlan *plan, const char *name);
size_t rt_state_bytes(const RtState *s);
// Fills a state if there is one of that name.
void rt_state_set(const RtPlan *plan, RtDevice *d, const char *name,
                  double value);
// Sets all states to zero, as reserve does.
void rt_states_clear(const RtPlan *plan, RtDevice *d);
// Fills states with their initial values, and those of the run.  The device's
// memory is zero before, as reserve leaves it.
void rt_states_start(const RtPlan *plan, RtDevice *d, const RtProgress *p);

// A compensated sum, high + low, as the step stores it.
typedef struct {
    float high, low;
} RtSum;

// Sums over samples since they were cleared, the last learning rate, and the
// loss scale, which only a step changes.  Metrics that the program lacks are
// zero.
typedef struct {
    RtSum loss, correct, top5, count;
    float lr, scale, skipped;
} RtMetrics;

RtMetrics rt_metrics_read(const RtPlan *plan, RtDevice *d);
// Whether a mean loss is not finite, or the loss scale has reached its end;
// NAN: there is none.  EXIT_DIVERGED in *e.
bool rt_diverged(double loss, double scale, int64_t step, double epoch,
                 RtError *e);
// Clears the sums of evaluations that are not in RtMetrics.
void rt_metrics_clear_sums(const RtPlan *plan, RtDevice *d);
void rt_metrics_write(const RtPlan *plan, RtDevice *d, const RtMetrics *m);
// The same, asynchronously: poll returns the values of the oldest request.
void rt_metrics_request(const RtPlan *plan, RtDevice *d);
bool rt_metrics_poll(const RtPlan *plan, RtDevice *d, bool wait, RtMetrics *m);

// ---- library_call_cost.c ----

// Numbers of elements of a call's a, b and result; a factor has no b.
void rt_call_count(const RtCall *c, size_t count[3]);
// Whether an operand or the result of a convolution or product is empty.  The
// result is then 0, and libraries refuse the call.
bool rt_call_of_nothing(const RtCall *c);
// FLOPs of a convolution or product, counted as in passes/cost.c.
double rt_call_flops(const RtCall *c);

// ---- element.c ----

// Element i of a tensor; the largest finite number of a type, and its bytes.
double rt_number(const void *from, RtType type, int64_t i);
double rt_type_max(RtType type);
size_t rt_type_bytes(RtType t);

// ---- json.c ----

// A pull parser over a text in memory.  After the first error every function
// returns false.
typedef struct {
    const char *at, *end;
    bool failed;
} RtJson;

bool rt_json_take(RtJson *j, char c);   // this character, after any space
bool rt_json_accept(RtJson *j, char c); // the same, if it comes next
// A string with its escapes resolved.  A string that is too long is an error.
bool rt_json_string(RtJson *j, char *to, size_t room);
bool rt_json_count(RtJson *j, uint64_t *value); // a whole number below 2^63
bool rt_json_word(RtJson *j, const char *word); // null, true or false, if next
bool rt_json_skip(RtJson *j);                   // any value
bool rt_json_end(RtJson *j);                    // only space is left

// ---- utf8.c ----

// Bytes of the UTF-8 character at `from`, and its code; 0: it is none.
size_t rt_utf8(const char *from, size_t length, unsigned *code);

// Writes the character of a code; returns the number of its bytes.
size_t rt_utf8_put(char to[4], unsigned code);

// ---- memory.c ----

// Bytes that this process can still allocate.
size_t rt_memory_available(void);

// ---- host/processor.c ----

void rt_processor_name(char *to, size_t room); // or "processor"

#endif
