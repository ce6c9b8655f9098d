// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Data: what a trainer learns from, from the files of a data set to batches in
// memory that a device lends.
#ifndef RUNTIME_DATA_H
#define RUNTIME_DATA_H

#include "runtime/runtime.h"

// ---- data.c ----

// An image of three bytes for each pixel is 256 MiB then, as where Pillow
// warns.
enum { RT_MAX_PIXELS = 89478485 };

// What a trainer takes of a data set.
typedef struct {
    RtShape image, label; // label.rank -1: labels are not used
    int classes;          // whole labels are below
    const RtSetting *setting;
    int num_settings;
    int64_t synthetic; // samples of synthetic data; 0: as the settings say
    // Files that may be left out of each part, as they cannot be decoded.
    int64_t max_bad_files;
    int64_t max_pixels; // of an image in a file; 0: RT_MAX_PIXELS
    bool held_out;      // some are evaluated in place of a test set
} RtDataSpec;

// The value of a setting, or `otherwise` where it is not given.
int64_t rt_setting(const RtDataSpec *spec, const char *name, int64_t otherwise);
size_t rt_shape_values(const RtShape *s); // numbers of one sample
// Whether two shapes hold the same numbers: dimensions of 1 do not matter.
bool rt_shape_same(const RtShape *s, int rank, const int64_t *dim);
// "32x32x3"
const char *rt_shape_text(char *to, size_t room, int rank, const int64_t *dim);

// How numbers are kept: as they came from a file.
typedef enum { RT_FILE_U8, RT_FILE_U16, RT_FILE_I32, RT_FILE_F32 } RtFileType;

size_t rt_file_type_bytes(RtFileType t);
// Whether an input of that type takes them: each is the same number there.
bool rt_file_type_fits(RtFileType t, RtType type);
// Turns `count` numbers at the start of a room into the type that the room is
// for, in place.
void rt_file_type_widen(void *room, size_t count, RtFileType from, RtType to);

// The images or the labels of all samples.
typedef struct {
    RtFileType type;
    size_t values; // of a sample
    size_t step;   // numbers from the start of one sample to the next
    uint8_t *bytes;
    bool borrowed; // the bytes belong to another column
} RtColumn;

// Which samples a split takes, of `all` that it could: the `held` ones, which
// are the last ones or else are spread over all, or the rest.
typedef enum { RT_PART_ALL, RT_PART_TRAIN, RT_PART_VALIDATION } RtPart;
typedef struct {
    RtPart part;
    bool at_end;
    int64_t all, held;
} RtHoldout;

// A part of a data set.  fetch copies the image of one sample as it is kept;
// it is called from several threads at once.
typedef struct RtSplit {
    int64_t count; // of samples that it takes
    RtHoldout holdout;
    bool is_text; // its samples follow one another
    RtColumn image, label;
    bool (*fetch)(const struct RtSplit *s, int64_t sample, uint8_t *to,
                  RtError *e);
    void *source; // of a format that does not keep its images
    void (*release)(void *source);
} RtSplit;

enum { RT_IGNORED_BYTES = 560 };

typedef struct {
    RtSplit train, test;
    uint64_t hash; // of what was read: what a resumed run must find again
    struct RtDecodeMemory
        *decode_memory; // in which images are decoded; NULL: they are not
    char ignored[RT_IGNORED_BYTES]; // files that are no data; "": none
} RtData;

// Reads the data set in folder `path`, checking every size and label.
bool rt_data_open(RtData *d, const char *format, const char *path,
                  const RtDataSpec *spec, const RtFiles *files, RtError *e);
void rt_data_close(RtData *d);
// Whether none of the files of a test set is there (names, to NULL), nor has to
// be.
bool rt_lacks_test(const RtDataSpec *spec, const char *folder,
                   const char *const *name);

// Room for numbers of `count` samples.
bool rt_column_reserve(RtColumn *c, RtFileType type, size_t values,
                       int64_t count, RtError *e);
// The numbers of one sample.
uint8_t *rt_column_at(const RtColumn *c, int64_t sample);
// Room for the images and labels of `count` samples that rt_split_fetch then
// serves.
bool rt_split_reserve(RtSplit *s, int64_t count, RtFileType image,
                      size_t image_values, RtFileType label,
                      size_t label_values, RtError *e);
bool rt_split_fetch(const RtSplit *s, int64_t sample, uint8_t *to, RtError *e);
void rt_split_close(RtSplit *s);
// False, and a sentence, if a label is not below `classes`.
bool rt_labels_check(const RtSplit *s, int classes, const char *path,
                     RtError *e);

// ---- find.c ----

// Opens the data set that --data names, or else the model file, and holds out
// the samples that --validation asks for.
bool rt_data_find(const RtTrainer *t, const RtOptions *o, RtData *d,
                  const RtFiles *files, RtError *e);

// ---- holdout.c ----

// Holds them out: d->test is them afterwards, and d->hash is that of the files
// with their number in its lowest bits.
bool rt_data_hold_out(RtData *d, const RtValidation *v, RtError *e);

// The sample that the i-th one of a split is, whether the split takes it, and
// how many there are for it to take from.
int64_t rt_split_sample(const RtSplit *s, int64_t i);
bool rt_split_has(const RtSplit *s, int64_t sample);
int64_t rt_split_all(const RtSplit *s);

// ---- ignored.c ----

// Files of a folder that are no data, by how their names end, in order.
enum { RT_MAX_SUFFIXES = 8, RT_SUFFIX_BYTES = 12 };
typedef struct {
    struct {
        char name[RT_SUFFIX_BYTES];
        int64_t count;
    } suffix[RT_MAX_SUFFIXES];
    int suffixes;
    int64_t others;
} RtIgnored;

void rt_ignored_add(RtIgnored *p, const char *name);
// A line of what there is in `folder` beside what is wanted.
void rt_ignored_text(char to[RT_IGNORED_BYTES], const RtIgnored *p,
                     const char *folder, const char *expected);

// ---- cifar.c, idx.c, npy.c, tokens.c, image_folder.c, synthetic.c ----

typedef bool RtFormat(RtData *d, const char *path, const RtDataSpec *spec,
                      const RtFiles *files, RtError *e);
RtFormat rt_cifar10_read, rt_cifar100_read, rt_idx_read, rt_npy_read,
    rt_tokens_read, rt_synthetic_draw, rt_image_folder_read;

// ---- decode.c, jpeg.c, png.c, resize.c: images in files ----

// The libraries that decode; NULL: not installed.
typedef struct RtJpeg RtJpeg;
RtJpeg *rt_jpeg_open(RtError *e);
void rt_jpeg_close(RtJpeg *j);
typedef struct RtPng RtPng;
RtPng *rt_png_open(RtError *e);
void rt_png_close(RtPng *p);

typedef struct RtResize RtResize;

// Memory for decoding that all loaders share.  NULL: no memory.
typedef struct RtDecodeMemory RtDecodeMemory;
RtDecodeMemory *rt_decode_memory_new(int64_t max_pixels);
void rt_decode_memory_free(RtDecodeMemory *s);
size_t rt_decode_memory_bytes(const RtDecodeMemory *s);
// Bytes that each loading thread may take for itself.
enum { RT_LOADER_PRIVATE_BYTES = 4 << 20 };

// How images are decoded: to squares of size x size pixels of three bytes.
typedef struct {
    const RtFiles *files;
    int size;
    int64_t max_pixels; // of a file
    RtJpeg *jpeg;       // NULL: there is none
    RtPng *png;
    RtDecodeMemory *memory;
} RtImageDecoder;

// Reads a file into a square; *broken says that what is in it cannot be
// decoded, here or elsewhere.
bool rt_image_read(const RtImageDecoder *decoder, const char *path, uint8_t *to,
                   bool *broken, RtError *e);

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

// ---- random.c ----

// 64 random bits, a pure function of both numbers.
uint64_t rt_random(uint64_t key, uint64_t counter);
// A number from 0 to 1, without 1; a whole number below n.
double rt_uniform(uint64_t key, uint64_t counter);
int rt_below(uint64_t key, uint64_t counter, int n);

// ---- shuffle.c ----

// The sample at `position` of an epoch: for each (seed, epoch) a permutation
// of 0 .. count-1.
int64_t rt_shuffled(uint64_t seed, int64_t epoch, int64_t position,
                    int64_t count);

// ---- loader.c ----

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
    double warn_after;     // seconds until it is said that no batch comes;
                           // 0: a minute
    double longest_wait;   // until a take gives up; 0: it does not
} RtLoaderConfig;

// A batch, which with all it points at is in memory of the device.  Samples
// from `valid` on are the first of the epoch again.
typedef struct {
    void *image, *label;
    int32_t *index;
    int32_t valid;
} RtBatch;

typedef struct RtLoader RtLoader;

// The memory that its batches take.
size_t rt_loader_bytes(const RtLoaderConfig *plan);
RtLoader *rt_loader_open(const RtLoaderConfig *plan, RtError *e);
// The next batch, in order; it stays until it is released, as the oldest of at
// most RT_MAX_IN_FLIGHT.  NULL: a worker failed, or none comes; one that is
// needed is waited for when a signal has come, too.  Adds the seconds it waited
// to *waited.
const RtBatch *rt_loader_next(RtLoader *l, bool needed, double *waited,
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

// ---- feeder.c ----

enum { RT_MAX_IN_FLIGHT = 2 };

typedef struct {
    const RtPlan *plan;
    RtDevice *device;
    RtLoader *loader;
    // Batches that the device may still read, of which the oldest is number
    // `next` that it was given, and how many feeds have been made with it.
    int64_t number[RT_MAX_IN_FLIGHT], next;
    int in_flight;
    int resident; // the number of the images that the device keeps; 0: none
    bool repeats; // gives the first batch again and again
    bool partly;  // some batches of an update have been taken
    const RtBatch *first;
} RtFeeder;

// A batch that was given to a device, and the seconds that went to that.
typedef struct {
    int32_t valid;
    double waited, copying,
        device_wait; // held: for room, until the device had read
} RtSubmitted;

// It owns the loader from now on.
void rt_feeder_open(RtFeeder *f, const RtPlan *plan, RtDevice *d,
                    RtLoader *loader);
// Gives the step of that kind the next batch.
bool rt_feeder_submit(RtFeeder *f, RtStepKind kind, int stage,
                      RtSubmitted *done, RtError *e);
bool rt_feeder_close(RtFeeder *f); // false: its loader is left

#endif
