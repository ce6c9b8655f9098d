// What the runtime's own files share; a section for each file.  Emitted
// programs see rt.h only.
#ifndef RUNTIME_RUNTIME_H
#define RUNTIME_RUNTIME_H

#include "base/exits.h"
#include "runtime/device.h"
#include "runtime/trace.h"

#include <stdio.h>
#include <sys/types.h>

// What went wrong, in a sentence without a full stop, and the exit status that
// goes with it.  Functions that can fail return false and fill one.  There is
// room for a path as long as the system takes, and for what is said of it.
enum { RT_MOST_SAID = 4096 + 600 };

typedef struct RtError {
    int status;
    char text[RT_MOST_SAID];
} RtError;

bool rt_fail(RtError *e, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Prints it to stderr; returns the status.
int rt_complain(const RtError *e);

// Prints a warning to stderr, from any thread.
void rt_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

// What a line on stderr is to begin with, so that it does not stand behind the
// progress that is drawn on a terminal.
const char *rt_wiped(void);

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

// ---- random.c ----

// 64 random bits, a pure function of both numbers.
uint64_t rt_random(uint64_t key, uint64_t counter);
// A number from 0 to 1, without 1; a whole number below n.
double rt_uniform(uint64_t key, uint64_t counter);
int rt_below(uint64_t key, uint64_t counter, int n);

// ---- order.c ----

// The sample at `position` of an epoch: for each (seed, epoch) a permutation
// of 0 .. count-1.
int64_t rt_order(uint64_t seed, int64_t epoch, int64_t position, int64_t count);

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
// A new file of rows, or standard output; NULL with errno set.
FILE *rt_rows_open(const char *path);

// Makes a folder and those above it.
bool rt_make_folder(const char *path, RtError *e);

// A path from printf's arguments; the caller frees it.  NULL: no memory.
char *rt_path(const char *format, ...) __attribute__((format(printf, 1, 2)));

// ---- data.c ----

// What a trainer takes of a data set.
typedef struct {
    RtShape image, label; // label.rank -1: labels are not used
    int classes;          // whole labels are below
    const RtSetting *setting;
    int num_settings;
    int64_t synthetic; // samples of synthetic data; 0: as the settings say
    // Files that may be left out of each part, as they cannot be decoded.
    int64_t left_out;
    bool held_out; // some are evaluated in place of a test set
} RtSample;

// The value of a setting, or `otherwise` where it is not given.
int64_t rt_setting(const RtSample *s, const char *name, int64_t otherwise);
size_t rt_shape_values(const RtShape *s); // numbers of one sample
// Whether two shapes hold the same numbers: dimensions of 1 do not matter.
bool rt_shape_same(const RtShape *s, int rank, const int64_t *dim);
// "32x32x3"
const char *rt_shape_text(char *to, size_t room, int rank, const int64_t *dim);

// How numbers are kept: as they came from a file.
typedef enum { RT_KEPT_U8, RT_KEPT_U16, RT_KEPT_I32, RT_KEPT_F32 } RtKept;

size_t rt_kept_bytes(RtKept k);
// Whether an input of that type takes them: each is the same number there.
bool rt_kept_fits(RtKept k, RtType type);
// Turns `count` numbers at the start of a room into the type that the room is
// for, in place.
void rt_kept_widen(void *room, size_t count, RtKept from, RtType to);

// The images or the labels of all samples.
typedef struct {
    RtKept kept;
    size_t values; // of a sample
    size_t step;   // numbers from the start of one sample to the next
    uint8_t *bytes;
    bool lent; // the bytes belong to another column
} RtColumn;

// Which samples a split takes, of `all` that it could: the `held` ones, which
// are the last ones or else are spread over all, or the rest.
typedef enum { RT_TAKE_ALL, RT_TAKE_REST, RT_TAKE_HELD } RtTaken;
typedef struct {
    RtTaken taken;
    bool at_end;
    int64_t all, held;
} RtHeld;

// A part of a data set.  fetch copies the image of one sample as it is kept;
// it is called from several threads at once.
typedef struct RtSplit {
    int64_t count; // of samples that it takes
    RtHeld held;
    bool is_text; // its samples follow one another
    RtColumn image, label;
    bool (*fetch)(const struct RtSplit *s, int64_t sample, uint8_t *to,
                  RtError *e);
    void *source; // of a format that does not keep its images
    void (*release)(void *source);
} RtSplit;

enum { RT_MOST_PASSED = 560 };

typedef struct {
    RtSplit train, test;
    uint64_t hash; // of what was read: what a resumed run must find again
    char passed_over[RT_MOST_PASSED]; // files that are no data; "": none
} RtData;

// Reads the data set in folder `path`, checking every size and label.
bool rt_data_open(RtData *d, const char *format, const char *path,
                  const RtSample *sample, const RtFiles *files, RtError *e);
void rt_data_close(RtData *d);
// Whether none of the files of a test set is there (names, to NULL), nor has to
// be.
bool rt_lacks_test(const RtSample *s, const char *folder,
                   const char *const *name);

// Room for numbers of `count` samples.
bool rt_column_reserve(RtColumn *c, RtKept kept, size_t values, int64_t count,
                       RtError *e);
// The numbers of one sample.
uint8_t *rt_column_at(const RtColumn *c, int64_t sample);
// Room for the images and labels of `count` samples that rt_split_fetch then
// serves.
bool rt_split_reserve(RtSplit *s, int64_t count, RtKept image,
                      size_t image_values, RtKept label, size_t label_values,
                      RtError *e);
bool rt_split_fetch(const RtSplit *s, int64_t sample, uint8_t *to, RtError *e);
void rt_split_close(RtSplit *s);
// False, and a sentence, if a label is not below `classes`.
bool rt_labels_check(const RtSplit *s, int classes, const char *path,
                     RtError *e);

// ---- held.c ----

// How many training samples are evaluated in the place of the test set, or of
// a hundred; 0 of both: none.
typedef struct {
    double samples, percent;
} RtValidation;

// Holds them out: d->test is them afterwards, and d->hash is that of the files
// with their number in its lowest bits.
bool rt_data_hold_out(RtData *d, const RtValidation *v, RtError *e);

// The sample that the i-th one of a split is, whether the split takes it, and
// how many there are for it to take from.
int64_t rt_split_sample(const RtSplit *s, int64_t i);
bool rt_split_takes(const RtSplit *s, int64_t sample);
int64_t rt_split_all(const RtSplit *s);

// ---- passed.c ----

// Files of a folder that are no data, by how their names end, in order.
enum { RT_MOST_ENDINGS = 8, RT_ENDING_BYTES = 12 };
typedef struct {
    struct {
        char name[RT_ENDING_BYTES];
        int64_t count;
    } ending[RT_MOST_ENDINGS];
    int endings;
    int64_t others;
} RtPassed;

void rt_pass_over(RtPassed *p, const char *name);
// A line of what there is in `folder` beside what is wanted.
void rt_passed_text(char to[RT_MOST_PASSED], const RtPassed *p,
                    const char *folder, const char *wanted);

// ---- cifar.c, idx.c, npy.c, tokens.c, image_folder.c, synthetic.c ----

typedef bool RtFormat(RtData *d, const char *path, const RtSample *sample,
                      const RtFiles *files, RtError *e);
RtFormat rt_cifar10_read, rt_cifar100_read, rt_idx_read, rt_npy_read,
    rt_tokens_read, rt_synthetic_draw, rt_image_folder_read;

// ---- jpeg.c, png.c, fit.c: images in files ----

enum { RT_MOST_PIXELS = 1 << 27 };

// Rows of pixels of three bytes; the caller frees them.
typedef struct {
    int h, w;
    uint8_t *pixel;
} RtImage;

// The libraries that decode; NULL: not installed.
typedef struct RtJpeg RtJpeg;
RtJpeg *rt_jpeg_open(RtError *e);
void rt_jpeg_close(RtJpeg *j);
typedef struct RtPng RtPng;
RtPng *rt_png_open(RtError *e);
void rt_png_close(RtPng *p);

// The image may be smaller than the file's, but its sides at least twice as
// long as wanted, or as they are.
bool rt_jpeg_decode(const RtJpeg *j, const uint8_t *bytes, size_t length,
                    int wanted, RtImage *to, RtError *e);
bool rt_png_decode(const RtPng *p, const uint8_t *bytes, size_t length,
                   RtImage *to, RtError *e);

// The image as size x size pixels.
bool rt_image_fit(const RtImage *image, int size, uint8_t *to, RtError *e);

// ---- textures.c ----

typedef struct {
    int h, w, c;
} RtSize;

typedef struct {
    int top, bottom, left, right;
} RtBox;

// What synthetic images are drawn from; NULL: no memory.
typedef struct RtTextures RtTextures;
RtTextures *rt_textures_new(RtSize shape, int classes);
void rt_textures_free(RtTextures *t);
// Draws the image that follows from a class and a key; where its rectangle is.
RtBox rt_textures_draw(const RtTextures *t, int class, uint64_t key,
                       uint8_t *to);

// ---- loader.c ----

enum { RT_MOST_LOADERS = 64 }; // threads

typedef struct {
    const RtSplit *split;
    int64_t batch;
    int64_t epoch_batches; // batches of an epoch
    int64_t first, last;   // batches to deliver, counted over all epochs
    bool shuffle;          // otherwise every epoch is in file order
    uint64_t seed;
    RtType image, label; // as which they are delivered
    int threads;
    RtDevice *device;      // whose memory batches lie in; NULL: in any
    struct RtTrace *trace; // of what the threads do; NULL: none
    bool no_images;        // the device has them
    double patience;       // seconds until it is said that no batch comes;
                           // 0: a minute
    double longest_wait;   // until a take gives up; 0: it does not
} RtLoading;

// A batch, which with all it points at is in memory of the device.  Samples
// from `valid` on repeat earlier ones of the same batch.
typedef struct {
    void *image, *label;
    int32_t *index;
    int32_t valid;
} RtBatch;

typedef struct RtLoader RtLoader;

RtLoader *rt_loader_open(const RtLoading *plan, RtError *e);
// The next batch, in order; it stays until it is released, as the oldest of at
// most RT_MOST_HELD.  NULL: a worker failed, or none comes; one that is needed
// is waited for when a signal has come, too.  Adds the seconds it waited to
// *waited.
const RtBatch *rt_loader_take(RtLoader *l, bool needed, double *waited,
                              RtError *e);
// Whether a take gave up, as a file does not answer, or a signal came then.
bool rt_loader_stalled(const RtLoader *l);
// Asks its threads to end; false where one does not come back from a file: it
// can be waited for no more than it can be stopped, so that closing leaves such
// a loader as it is, and what it uses has to stay until the program ends.
bool rt_loader_stop(RtLoader *l);
void rt_loader_release(RtLoader *l);
// Seconds in which its threads have loaded, added up, and how many there are.
double rt_loader_busy(RtLoader *l);
int rt_loader_threads(const RtLoader *l);
bool rt_loader_close(RtLoader *l); // false: it is left

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

// Writes a string's characters with the escapes JSON asks for.
size_t rt_json_escape(char *to, size_t room, const char *s);

// ---- safetensors.c ----

enum { RT_MAX_KEY = 1024, RT_MAX_TENSORS = 1000000 };

typedef struct {
    char *name;
    RtType type;
    int rank;
    int64_t dim[RT_MAX_RANK];
    uint64_t begin, end; // within the data
} RtTensor;

typedef struct {
    char *key, *value;
    size_t value_at; // where the value's text begins in the header
} RtNote;

typedef struct {
    RtTensor *tensor;       // in the order of their data, without holes
    const RtTensor **named; // by name
    size_t num_tensors;
    RtNote *note; // by key
    size_t num_notes;
} RtHeader;

// Reads the JSON of a header and checks it against the size of the data.
bool rt_header_parse(RtHeader *h, const char *text, size_t length,
                     uint64_t data_bytes, RtError *e);
void rt_header_free(RtHeader *h);
const RtNote *rt_header_note(const RtHeader *h, const char *key);
const RtTensor *rt_header_tensor(const RtHeader *h, const char *name);
const char *rt_type_name(RtType t); // as safetensors writes it
size_t rt_type_bytes(RtType t);

// ---- weights.c ----

enum { RT_MOST_LOADED = 3900 };

// The state that each tensor of a file goes to, NULL for none, how many do, and
// what is to be said of it, in lines.
typedef struct {
    const RtState **state;
    size_t count;
    char said[RT_MOST_LOADED];
} RtWeights;

// Holds a file against the model's parameters and statistics; false where they
// differ in more than `except` names: globs with commas between, or NULL. ours:
// a trainer has written it.
bool rt_weights_fit(RtWeights *w, const RtTrainer *t, const RtPlan *plan,
                    const RtHeader *h, bool ours, const char *except,
                    RtError *e);
void rt_weights_free(RtWeights *w);

// ---- checkpoint.c ----

// Where a run is, and what it must be to go on with the same bits.
typedef struct {
    int64_t step, steps, epoch_steps, seed;
    uint64_t data_hash;
} RtProgress;

typedef enum { RT_GOOD, RT_BROKEN, RT_OTHER_RUN } RtLoad;

// Saves and loads the states of one device.  All its memory is taken at once.
typedef struct RtCheckpoint RtCheckpoint;

RtCheckpoint *rt_checkpoint_new(const RtTrainer *t, const RtPlan *plan,
                                RtDevice *d, const RtFiles *files, RtError *e);
void rt_checkpoint_free(RtCheckpoint *c);
// Writes a new file and makes its bytes durable; a failure removes it.
bool rt_checkpoint_write(RtCheckpoint *c, const char *path, const RtProgress *p,
                         RtError *e);
// Every byte is checked.  RT_BROKEN: states may have been overwritten.
RtLoad rt_checkpoint_read(RtCheckpoint *c, const char *path, RtProgress *p,
                          RtError *e);
// Reads the weights that a run starts with, of any safetensors file.  False:
// some of them may have been overwritten.
bool rt_checkpoint_start(RtCheckpoint *c, const char *path, const char *except,
                         char said[RT_MOST_LOADED], RtError *e);

// ---- shelf.c ----

// The checkpoints in one folder.
typedef struct {
    const char *folder;
    const RtFiles *files;
    int keep;
    int64_t from;   // the step this run began at; -1: afresh
    bool set_aside; // whether checkpoints of another run are out of the way
    int claim;      // the folder, while no other trainer may write to it
} RtShelf;

// Keeps other trainers from the folder, where its file system can; until the
// release, or the end of the process.
bool rt_shelf_claim(RtShelf *s, RtError *e);
void rt_shelf_release(RtShelf *s);

// The newest step of another run whose checkpoints this one's first will set
// aside, -1 for none; *drops says whether those of a run before that will go.
int64_t rt_shelf_others(const RtShelf *s, bool *drops);

// Removes what a run that was cut off left half written.
void rt_shelf_sweep(const RtShelf *s);
// Adds a checkpoint, then drops those beyond `keep`.
bool rt_shelf_save(RtShelf *s, RtCheckpoint *c, const RtProgress *p,
                   RtError *e);
// Loads the newest checkpoint that is whole, with a warning for each that is
// not; *path becomes its name.
bool rt_shelf_load(const RtShelf *s, RtCheckpoint *c, RtProgress *p,
                   char **path, RtError *e);

// ---- options.c ----

typedef struct {
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
    const char *resident; // auto, yes, no
    const char *profile;
    int64_t profile_steps; // 0: not given
    const char *dump_cuda, *load_cuda;
    const char *tuning; // the file; NULL: in the user's cache
    bool list_kernels, print_plan, repeat_batch;
    bool resume, eval_only, init_only, load_only, tune, nvtx, quiet, help,
        version;
    const char *resume_path; // NULL: the newest in the out folder
    const char *init;        // a file of weights; NULL: they are drawn
    const char *init_except; // names that are left out; NULL: none
    unsigned without;        // a bit for each; see without.c
} RtOptions;

bool rt_options_parse(RtOptions *o, int argc, char **argv, RtError *e);
void rt_options_help(const RtTrainer *t, const char *program);

// ---- without.c ----

enum { RT_WITHOUT_GRAPH, RT_WITHOUT_JOINS, RT_WITHOUT_MARKS, RT_WITHOUT_RIDES };

// Reads names that commas set apart.
bool rt_without_parse(unsigned *without, const char *list, RtError *e);
void rt_without_apply(unsigned without, RtPlan *plan);
// Whether the device has what it is to do without.
bool rt_without_suits(unsigned without, const RtDevice *d, RtError *e);

// A trainer whose plans do without.
enum { RT_MOST_PLANS = 2 }; // the host's and CUDA's
typedef struct {
    RtTrainer trainer;
    RtPlan plan[RT_MOST_PLANS];
} RtLesser;

const RtTrainer *rt_without_trainer(RtLesser *to, const RtTrainer *from,
                                    unsigned without);

// ---- signals.c ----

void rt_signals_catch(void);
// The signal that asked the run to stop, or 0.
int rt_signals_caught(void);
// Ends the program as that signal would have.
void rt_signals_raise(int number);

// ---- open.c ----

// The device that the options ask for; NULL, with the reason in *e, where it
// cannot be used.
RtDevice *rt_device_open(const RtTrainer *t, const RtOptions *o,
                         const RtPlan **plan, RtLaps *laps, RtError *e);
// The plan that it would run, without opening it.
const RtPlan *rt_device_plan(const RtTrainer *t, const RtOptions *o,
                             RtError *e);

// ---- launched.c ----

// What a launch took in all the steps of a trace.
typedef struct {
    RtSpan span; // the first of them
    double seconds;
    int64_t times;
} RtLaunched;

// Those of training, longest first; the caller frees them.  NULL: no memory.
RtLaunched *rt_launched(const RtTrace *t, const RtPlan *plan, int *count);

// ---- list.c ----

// Prints what each step of a plan launches, or all of the plan with what
// --resident says; false where stdout cannot be written.
bool rt_list_kernels(const RtPlan *plan);
bool rt_list_plan(const RtPlan *plan, const char *resident);

// ---- report.c ----

typedef enum { RT_ON_TEST, RT_ON_TRAIN, RT_ON_VALIDATION } RtOn;

typedef struct {
    bool train; // otherwise an evaluation
    RtOn on;    // what an evaluation is of
    bool stops; // it ends the run
    bool part;  // of an epoch's row: some steps of it
    double epoch, epochs;
    int64_t step, steps, samples;
    double loss;
    double accuracy, top5, perplexity; // NAN: not measured
    double lr, scale;                  // of the loss; NAN: it has none
    double skipped;                    // steps; NAN where there is no scale
    double seconds, waited;
} RtRow;

enum { RT_NUM_FLOATS = RT_BF16 + 1 }; // types that contractions have

// Seconds of the run by what they went to.  What the device does and what the
// host does may go on at the same time.
typedef struct {
    double start, evaluation, checkpoints, total;
    double started[RT_NUM_STARTS]; // what start went to
    RtTimes device;                // its work in training
    double waiting, copying, held; // of the host: for data, to give it, for
                                   // the device
    double loading;                // of all loading threads together
    int loaders;
    double trained; // samples
    // Of library calls in training, by their type, and how many of them the
    // device could do in a second at most; 0: not known.
    double flops[RT_NUM_FLOATS], peak[RT_NUM_FLOATS];
    int64_t step;
} RtBudget;

// What was loaded by a trainer that only loads.
typedef struct {
    int64_t step, batches, samples, bytes; // bytes: of samples, in their slots
    double epochs, seconds;
    double opening; // seconds before that in which the data set was opened
    double busy;    // seconds of all threads together
    int batch, threads;
    bool from_files; // images are decoded when they are loaded
} RtLoaded;

typedef struct RtReport RtReport;

RtReport *rt_report_open(const RtOptions *o, int64_t from, RtError *e);
void rt_report_say(RtReport *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void rt_report_progress(RtReport *r, const RtRow *row);
void rt_report_row(RtReport *r, const RtRow *row);
void rt_report_result(RtReport *r, const RtRow *test);
// Prints the first of them, and what all others took.
void rt_report_launched(RtReport *r, const RtLaunched *l, int count);
// Prints it, and adds it to the metrics.
void rt_report_budget(RtReport *r, const RtBudget *b);
// The same of what was loaded.
void rt_report_loaded(RtReport *r, const RtLoaded *l);
// Closes the metrics file; false if a row or the result was lost.
bool rt_report_close(RtReport *r);

// ---- memory.c ----

// Bytes that this process may still take.
size_t rt_memory_available(void);

// ---- factor.c ----

// The calls that factor a matrix: bytes that they work in, and what they do.
size_t rt_factor_bytes(const RtCall *c);
void rt_factor(const RtCall *c, const float *a, float *out, void *work);

// ---- turn.c ----

// Writes to *turned the convolution of its gradient that a convolution's
// gradient with respect to its input is; false: there is none.  The weights of
// that are the call's, turned.
bool rt_turn_call(const RtCall *c, RtCall *turned);
void rt_turn_weights(const RtCall *c, const float *from, float *to,
                     int threads);

// ---- onednn.c ----

typedef struct RtContractions RtContractions;

// Plans the calls; rt_contractions_bytes is what reserve will take.
RtContractions *rt_contractions_new(const RtPlan *plan, int threads);
size_t rt_contractions_bytes(const RtContractions *c);
void rt_contractions_reserve(RtContractions *c);
void rt_contractions_run(RtContractions *c, int call, char *a, char *b,
                         char *out);
void rt_contractions_free(RtContractions *c);

// ---- cuda/device.c ----

// The CUDA device of that number; NULL, with the reason in *e, where it cannot
// be used.  The options (NULL: none) say which tuning it follows.
RtDevice *rt_cuda_open(const RtTrainer *t, const RtPlan *plan, int ordinal,
                       const RtOptions *o, RtLaps *laps, RtError *e);

// ---- team.c ----

// Runs work(arg, me, members) in each of `threads` members of the OpenMP team.
void rt_team_run(int threads, void (*work)(void *arg, int me, int members),
                 void *arg);
int rt_team_largest(void); // one member for each core that we may use
// Makes the team; ends the program where the system does not give its threads.
void rt_team_start(int threads);

// ---- time.c ----

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

// ---- snapshot.c ----

// Runs a step and writes what it reads and leaves to a file, in the order in
// which it is there: "sinter 1\n", the number of the step as int32, 0 as
// int32, then records of int32 when, int32 0, uint64 offset, uint64 bytes, and
// the bytes.  when is -1 for inputs and states before the step, the number of
// the launch for what that has left, and -2 for states after the step.
bool rt_snapshot_run(const char *path, const RtFiles *files, const RtPlan *plan,
                     RtDevice *d, const RtStep *step, RtError *e);

// ---- blame.c ----

// Looks for the first value of a step that is not finite.
typedef struct {
    RtWatch watch;
    const RtPlan *plan;
    RtDevice *device;
    int run;                // of a step that has been looked at, from 1
    int step, launch, next; // next: of what is stored
    bool found;
    const RtStored *stored; // what it is in; NULL: in a state
    const RtState *state;
    char text[600]; // where, and what the kernel had read
} RtBlame;

// Has the next run of a step looked at.
void rt_blame_begin(RtBlame *b, const RtPlan *plan, RtDevice *d,
                    const RtStep *step);
void rt_blame_end(RtBlame *b);

// All states, one after another; NULL: no memory.  Whether all that is saved is
// finite.
char *rt_states_copy(const RtPlan *plan, RtDevice *d, bool *finite);
void rt_states_restore(const RtPlan *plan, RtDevice *d, const char *copy);

// ---- members.c ----

// Looks for the operation, of those in the kernel that is to blame, that is the
// first whose result is not finite.
typedef struct {
    RtWatch watch;
    const RtPlan *plan;
    RtDevice *device;
    const RtBlame *blame;
    struct Replay *replay;
    uint32_t node;
    int run, launch; // of the step; the launch that comes
    int wanted;      // the launch that is to blame
    bool *left;      // of what is stored, what has been left in this run
    bool found;
    char text[800]; // in which kernel, which, and what it had read
} RtMembers;

// false: the trainer carries no graph of the step, or nothing of it is known.
bool rt_members_open(RtMembers *m, const RtTrainer *t, const RtPlan *plan,
                     RtDevice *d, const RtBlame *blame);
void rt_members_close(RtMembers *m);
// Has the next run of a step looked at, which follows from the same states as
// what the blame is of.
void rt_members_begin(RtMembers *m, const RtStep *step);

// ---- number.c ----

// Element i of a tensor; the largest finite number of a type.
double rt_number(const void *from, RtType type, int64_t i);
double rt_number_most(RtType type);

// ---- feeder.c ----

enum { RT_MOST_HELD = 2 };

typedef struct {
    const RtPlan *plan;
    RtDevice *device;
    RtLoader *loader;
    // Batches that the device may still read, of which the oldest is number
    // `next` that it was given, and how many feeds have been made with it.
    int64_t number[RT_MOST_HELD], next;
    int held;
    int kept;     // the number of the images that the device keeps; 0: none
    bool repeats; // gives the first batch again and again
    bool partly;  // some batches of an update have been taken
    const RtBatch *first;
} RtFeeder;

// A batch that was given to a device, and the seconds that went to that.
typedef struct {
    int32_t valid;
    double waited, copying, held; // held: for room, until the device had read
} RtFed;

// It owns the loader from now on.
void rt_feeder_open(RtFeeder *f, const RtPlan *plan, RtDevice *d,
                    RtLoader *loader);
// Gives the step of that kind the next batch.
bool rt_feeder_take(RtFeeder *f, RtStepKind kind, int stage, RtFed *fed,
                    RtError *e);
bool rt_feeder_close(RtFeeder *f); // false: its loader is left

// ---- call.c ----

// How many values a call's a, b and result have; a factor has no b.
void rt_call_count(const RtCall *c, size_t count[3]);
// Whether an operand or the result of a convolution or product has no values:
// the result is 0, and libraries refuse it.
bool rt_call_of_nothing(const RtCall *c);
// Operations of a convolution or product, as passes/cost.c counts them.
double rt_call_flops(const RtCall *c);

// ---- join.c ----

// Which joins of a plan a device can take that takes these of its fusions, and
// is to leave those that are `apart` (NULL: none): for each whether it is.
void rt_joins_take(const RtPlan *plan, const bool *fused, const bool *apart,
                   bool *taken);

// The launches of a step on their way to a device that joins them.
typedef struct {
    const RtPlan *plan;
    const bool *taken;
    int step, launch; // which comes next
    size_t arg[RT_MOST_JOINED_ARGS];
    int num_args; // of the join that is open
} RtJoining;

void rt_joining_begin(RtJoining *j, const RtPlan *plan, const bool *taken,
                      int step);
// The next one is a library call, or rides on one.
void rt_joining_pass(RtJoining *j);
// The next one is a kernel.  True when something is to be launched now: what
// comes back in its place.
bool rt_joining_add(RtJoining *j, int *kernel, int *grid, const size_t **arg);

// ---- state.c ----

const RtState *rt_state_find(const RtPlan *plan, const char *name);
size_t rt_state_bytes(const RtState *s);
// Makes all states what reserve leaves: zero.
void rt_states_clear(const RtPlan *plan, RtDevice *d);
// Gives every state its starting value, and the run's states theirs.  The
// device's memory is still what reserve left: zero.
void rt_states_start(const RtPlan *plan, RtDevice *d, const RtProgress *p);

// Sums over samples since they were cleared, the last learning rate, and the
// loss scale, which only a step changes.  What the program does not keep stays
// zero.
typedef struct {
    float loss, correct, top5, count, lr, scale, skipped;
} RtMetrics;

RtMetrics rt_metrics_read(const RtPlan *plan, RtDevice *d);
void rt_metrics_write(const RtPlan *plan, RtDevice *d, const RtMetrics *m);
// The same numbers some steps later, as RtDevice's ask and tell.
void rt_metrics_ask(const RtPlan *plan, RtDevice *d);
bool rt_metrics_tell(const RtPlan *plan, RtDevice *d, bool wait, RtMetrics *m);

// ---- progress.c ----

// Where a run begins that takes these samples.
bool rt_progress_plan(const RtTrainer *t, const RtOptions *o,
                      const RtData *data, RtProgress *p, RtError *e);
// Batches of an epoch, and the first of a step, counted over all epochs.
int64_t rt_epoch_batches(const RtTrainer *t, const RtProgress *p,
                         int64_t samples);
int64_t rt_first_batch(const RtTrainer *t, const RtProgress *p,
                       int64_t epoch_batches, int64_t step);

// ---- train.c ----

typedef struct {
    const RtTrainer *trainer;
    const RtPlan *plan;
    RtDevice *device;
    const RtData *data;
    const RtOptions *options;
    const RtFiles *files;
    const char *folder; // of the checkpoints
    double began;       // when the program started
    RtLaps *laps;       // since then
    RtTrace *trace;     // NULL: nothing is traced
    const struct RtNvtx *nvtx;
    bool resident; // the device keeps the images
    // Where images are, in words; "": where all is.
    char data_is[RT_MOST_SAID + 40];
} RtRun;

// Trains, or only evaluates.  False: *e has what stopped it.  *caught is the
// signal that did, if one did.
bool rt_run(const RtRun *run, int *caught, RtError *e);

// ---- load.c ----

// Loads the training data and does nothing else; the run has no device.
bool rt_load_only(const RtRun *run, RtError *e);

// ---- resident.c ----

// What is evaluated, and the split that it is.
RtOn rt_eval_on(const RtRun *run);
const RtSplit *rt_eval_split(const RtRun *run);

// Decides whether the device keeps the images, and if so gives them to it.
bool rt_resident_keep(RtRun *run, RtError *e);

#endif
