// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the runtime's own files share; a section for each file, and a header of
// its own for each folder.  Emitted programs see rt.h only.
#ifndef RUNTIME_RUNTIME_H
#define RUNTIME_RUNTIME_H

#include "base/exits.h"
#include "runtime/device.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/types.h>

// What went wrong, in a sentence without a full stop, and the exit status that
// goes with it.  Functions that can fail return false and fill one.  There is
// room for a path as long as the system takes, and for what is said of it.
enum { RT_MESSAGE_BYTES = 4096 + 600 };

typedef struct RtError {
    int status;
    char text[RT_MESSAGE_BYTES];
} RtError;

bool rt_fail(RtError *e, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Prints it to stderr; returns the status.
int rt_print_error(const RtError *e);

// Prints a warning to stderr, from any thread.
void rt_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void rt_warnv(const char *format, va_list list)
    __attribute__((format(printf, 1, 0)));

// Prints a line to stderr, in which nothing steers a terminal but `before`.
void rt_print_line(const char *format, ...)
    __attribute__((format(printf, 1, 2)));
void rt_print_linev(const char *before, const char *format, va_list list)
    __attribute__((format(printf, 2, 0)));

// ---- log.c ----

// Prints text to stdout or stderr, and to the run's log without its colours.
void rt_print(FILE *to, const char *text);
// From now on lines are added to this file, too; false with errno set.
bool rt_log_open(const char *path);
int rt_log_lost(void); // errno of the first line that could not be written; 0

// The escape sequence `code` where `to` is a terminal that shows colours and
// NO_COLOR is not set, else "".
const char *rt_colour(FILE *to, const char *code);
bool rt_coloured(FILE *to);

// The start of a line on stderr: it erases the progress bar of a terminal.
const char *rt_wiped(void);

// ---- output.c ----

enum {
    RT_READER_TIMEOUT = 10
}; // seconds in which a reader must take something

// From now on no reader of stdout or stderr stops the program for longer than a
// moment.  At exit what is left is waited for some seconds.
void rt_output_begin(void);
// Whether all that was printed to stdout has been taken, soon at the latest.
bool rt_output_complete(void);
// Waits until all has been taken, for some seconds at most.
void rt_output_end(void);
// The same, then _Exit.
_Noreturn void rt_leave(int status);
// Such a stream to a descriptor, which it closes; NULL: no memory.  Rows that
// its reader does not take in time are lost with ETIMEDOUT.
FILE *rt_output_open(int fd);
const char *rt_output_reason(int reason); // strerror, but for that

// ---- files.c ----

// The system calls that touch data and checkpoints, as a table so that tests
// can let the n-th one fail.  Each behaves like the call it is named after.
typedef struct {
    int (*open)(const char *path, int flags, mode_t mode);
    ssize_t (*read)(int fd, void *to, size_t bytes);
    ssize_t (*write)(int fd, const void *from, size_t bytes);
    int (*sync)(int fd);
    int (*close)(int fd);
    int (*rename)(const char *from, const char *to);
    int (*unlink)(const char *path);
} RtFiles;

extern const RtFiles rt_system_files;

// The same for what is looked for without being named, and loaded as code or
// decides what is: a file or folder is opened only where no other user may have
// written it, and is made for this one alone.  The first that is not gets a
// warning.
extern const RtFiles rt_private_files;
// That warning.
void rt_warn_unused(const char *path, const char *why);

// All the bytes asked for, or false with errno set (0: the file ended).
bool rt_read(const RtFiles *f, int fd, void *to, size_t bytes);
bool rt_write(const RtFiles *f, int fd, const void *from, size_t bytes);

// What could not be opened or read, for which errno has the reason: EXIT_IO,
// but where the path is wrong EXIT_DATA.
bool rt_fail_open(RtError *e, const char *path);
bool rt_fail_read(RtError *e, const char *what);

// A file opened for reading and its size; -1 with *e filled.
int rt_open_sized(const RtFiles *f, const char *path, size_t *bytes,
                  RtError *e);

// Whether rows, or a trace, that are written to this path go to standard
// output.
bool rt_is_stdout(const char *path);
const char *rt_rows_name(const char *path); // for messages
// A new file of rows, a pipe or standard output; NULL with errno set.  A pipe
// without a reader is waited for some seconds: ETIMEDOUT.
FILE *rt_rows_open(const char *path);

// Makes a folder and those above it.
bool rt_make_folder(const char *path, mode_t mode, RtError *e);

// A path from printf's arguments; the caller frees it.  NULL: no memory.
char *rt_path(const char *format, ...) __attribute__((format(printf, 1, 2)));

// ---- clock.c ----

// Seconds since some fixed moment; never steps back.
double rt_seconds(void);

// What the time before the first step goes to.
typedef enum {
    RT_START_DEVICE,    // it is found, with its driver; or the host's threads
    RT_START_CONTEXT,   // of a GPU, and streams
    RT_START_LIBRARIES, // they are opened
    RT_START_PLANS,     // of library calls
    RT_START_COMPILING, // what of it was waited for
    RT_START_LOADING,   // of kernels
    RT_START_DATA,
    RT_START_MEMORY,
    RT_START_IMAGES, // they are given to the device
    RT_START_STATES,
    RT_START_LOADERS, // of batches, and what is said before the first
    RT_NUM_STARTS
} RtStart;

// Seconds of each; `last` is when the last of them was over.
typedef struct {
    double last, part[RT_NUM_STARTS];
} RtLaps;

// Since the last of them it was this.  NULL: nobody asks.
void rt_lap(RtLaps *l, RtStart part);

// ---- options.c ----

enum { RT_MAX_LOADERS = 64 }; // threads that load

// How many training samples are evaluated in the place of the test set, or of
// a hundred; 0 of both: none.
typedef struct {
    double samples, percent;
} RtValidation;

typedef struct RtOptions {
    const char *data, *out, *device, *metrics, *snapshot, *times;
    double epochs;        // 0: not given
    double stall_timeout; // seconds; 0: not given
    int64_t seed;         // -1: not given
    int threads, loaders; // 0: not given
    int64_t log_every;    // steps; 0: not given
    int64_t steps;        // 0: not given
    int64_t verify_every; // steps; 0: not given
    int64_t bad_samples;  // that may be left out of train, or of test
    RtValidation validation;
    int64_t max_image_pixels; // 0: not given
    const char *resident;     // auto, yes, no
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
    unsigned without;        // a bit for each; see without.c
} RtOptions;

bool rt_options_parse(RtOptions *o, int argc, char **argv, RtError *e);
// Option i of every trainer.  `value` is as --help shows it: NULL where the
// option takes none, in brackets where it may go without.  False: no more.
typedef struct {
    const char *name, *value, *help;
} RtOptionText;
bool rt_option_text(int i, RtOptionText *out);
void rt_options_help(const RtTrainer *t, const char *program);

// ---- without.c ----

enum { RT_WITHOUT_GRAPH, RT_WITHOUT_JOINS, RT_WITHOUT_MARKS, RT_WITHOUT_RIDES };

// Reads names that commas set apart.
bool rt_without_parse(unsigned *without, const char *list, RtError *e);
void rt_without_apply(unsigned without, RtPlan *plan);
// Whether the device has what it is to do without.
bool rt_without_check(unsigned without, const RtDevice *d, RtError *e);

// A trainer whose plans do without.
enum { RT_MAX_PLANS = 2 }; // the host's and CUDA's
typedef struct {
    RtTrainer trainer;
    RtPlan plan[RT_MAX_PLANS];
} RtReducedTrainer;

const RtTrainer *rt_without_trainer(RtReducedTrainer *to, const RtTrainer *from,
                                    unsigned without);

// ---- signals.c ----

void rt_signals_catch(void);
// The signal that asked the run to stop, or 0.
int rt_signals_caught(void);
// Ends the program as that signal would have.
void rt_signals_raise(int number);

// ---- device_name.c ----

// The number in cuda:N, 0 for cuda alone, -1 for any other word.
int rt_cuda_ordinal(const char *name);
// Whether it is auto, host or cuda:N.
bool rt_device_named(const char *name, RtError *e);
// Whether the device is there, in a word that names one.  Opens the driver, but
// makes no context.
bool rt_device_found(const char *name, RtError *e);

// ---- device_open.c ----

// The device that the options ask for; NULL, with the reason in *e, where it
// cannot be used.
RtDevice *rt_device_open(const RtTrainer *t, const RtOptions *o,
                         const RtPlan **plan, RtLaps *laps, RtError *e);
// The plan that it would run, without opening it.
const RtPlan *rt_device_plan(const RtTrainer *t, const RtOptions *o,
                             RtError *e);

// ---- time.c ----

// Where a run is, and what it must be to go on with the same bits.
typedef struct {
    int64_t step, steps, epoch_steps, seed;
    uint64_t data_hash;
} RtProgress;

// A time in steps of the run.
double rt_time_steps(RtTime t, const RtProgress *p);
// The first step from that moment on; the end of the run at the latest.
int64_t rt_time_first(RtTime t, const RtProgress *p);
// Whether something done every so often is done after the steps so far.
bool rt_time_due(RtTime every, const RtProgress *p);
// The stage that the next step belongs to.
int rt_time_stage(const RtTrainer *t, const RtProgress *p);
// Whether weights are to be averaged after the steps so far: when averaging
// begins, every so often from then on, and at the end.  What is averaged every
// step is part of the step, and only begun before the first.
bool rt_time_averages(const RtTrainer *t, const RtProgress *p);

// ---- step.c ----

enum { RT_NUM_FLOATS = RT_BF16 + 1 }; // types that contractions have

// The step of that kind, NULL where the program has none.
const RtStep *rt_step_find(const RtPlan *plan, RtStepKind kind, int stage);
// Adds the operations of its library calls in so many runs, by the type of
// their operands.
void rt_step_flops(const RtPlan *plan, const RtStep *step, int64_t runs,
                   double to[RT_NUM_FLOATS]);
// Runs it if there is one, and what must follow.
void rt_step_run(const RtPlan *plan, RtDevice *d, RtStepKind kind, int stage);
size_t rt_input_bytes(const RtInput *in);
// The images of a batch that it trains on; NULL: it reads none.
const RtInput *rt_images_of(const RtPlan *plan);

// ---- state.c ----

const RtState *rt_state_find(const RtPlan *plan, const char *name);
size_t rt_state_bytes(const RtState *s);
// Makes all states what reserve leaves: zero.
void rt_states_clear(const RtPlan *plan, RtDevice *d);
// Gives every state its starting value, and the run's states theirs.  The
// device's memory is still what reserve left: zero.
void rt_states_start(const RtPlan *plan, RtDevice *d, const RtProgress *p);

// A compensated sum, as the step keeps it: its value is high + low.
typedef struct {
    float high, low;
} RtSum;

// Sums over samples since they were cleared, the last learning rate, and the
// loss scale, which only a step changes.  What the program does not keep stays
// zero.
typedef struct {
    RtSum loss, correct, top5, count;
    float lr, scale, skipped;
} RtMetrics;

RtMetrics rt_metrics_read(const RtPlan *plan, RtDevice *d);
void rt_metrics_write(const RtPlan *plan, RtDevice *d, const RtMetrics *m);
// The same numbers some steps later, as RtDevice's ask and tell.
void rt_metrics_request(const RtPlan *plan, RtDevice *d);
bool rt_metrics_poll(const RtPlan *plan, RtDevice *d, bool wait, RtMetrics *m);

// ---- call.c ----

// How many values a call's a, b and result have; a factor has no b.
void rt_call_count(const RtCall *c, size_t count[3]);
// Whether an operand or the result of a convolution or product has no values:
// the result is 0, and libraries refuse it.
bool rt_call_of_nothing(const RtCall *c);
// Operations of a convolution or product, as passes/cost.c counts them.
double rt_call_flops(const RtCall *c);

// ---- number.c ----

// Element i of a tensor; of a type the largest finite number, and its bytes.
double rt_number(const void *from, RtType type, int64_t i);
double rt_type_max(RtType type);
size_t rt_type_bytes(RtType t);

// ---- json.c ----

// A pull reader over a text in memory.  Every function returns false at
// anything unexpected, and then so do all that follow.
typedef struct {
    const char *at, *end;
    bool failed;
} RtJson;

bool rt_json_take(RtJson *j, char c);   // this character, after any space
bool rt_json_accept(RtJson *j, char c); // the same, if it comes next
// A string, its escapes resolved.  One that is too long is an error.
bool rt_json_string(RtJson *j, char *to, size_t room);
bool rt_json_count(RtJson *j, uint64_t *value); // a whole number below 2^63
bool rt_json_end(RtJson *j);                    // only space is left

// ---- memory.c ----

// Bytes that this process may still take.
size_t rt_memory_available(void);

// ---- host/processor.c ----

void rt_processor_name(char *to, size_t room); // or "processor"

#endif
