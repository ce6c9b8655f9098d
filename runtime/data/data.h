// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Data: from the files of a data set to batches in a device's staging buffers.
#ifndef RUNTIME_DATA_H
#define RUNTIME_DATA_H

#include "runtime/runtime.h"

#include <pthread.h>

// ---- data.c ----

// 256 MiB at three bytes a pixel; Pillow warns there.
enum { RT_MAX_PIXELS = 89478485 };

// The data that a trainer expects.
typedef struct {
    RtShape image, label; // label.rank -1: labels are unused
    const char *image_name; // of its files; NULL: the only input
    const RtArray *array;
    int num_arrays;
    int classes;          // integer labels are below
    bool sets_classes;    // --set classes=N of a compilation sets their number
    int ignored;          // an integer label that may be any
    const RtSetting *setting;
    int num_settings;
    int64_t synthetic; // samples of synthetic data; 0: by the settings
    // Image files per split that may be skipped because they cannot be decoded;
    // -1: none, where --bad-samples is no option.
    int64_t max_bad_files;
    int64_t max_pixels; // of an image file; 0: RT_MAX_PIXELS
    bool test_optional; // the test set may be missing
} RtDataSpec;

// The value of a setting, or `otherwise` if not given.
int64_t rt_setting(const RtDataSpec *spec, const char *name, int64_t otherwise);
// Its names, one in a line; "" if not given.
const char *rt_setting_text(const RtDataSpec *spec, const char *name);
size_t rt_shape_values(const RtShape *s); // numbers in one sample
// Whether two shapes hold the same numbers: dimensions of 1 are ignored.
bool rt_shape_same(const RtShape *s, int rank, const int64_t *dim);
// "32x32x3"
const char *rt_shape_text(char *to, size_t room, int rank, const int64_t *dim);

// Fails with a message about classes; names the setting, if the model has one,
// that takes so many.
bool rt_fail_classes(RtError *e, const RtDataSpec *spec, int64_t classes,
                     const char *format, ...)
    __attribute__((format(printf, 4, 5)));

// The type of numbers as read from a file.
typedef enum { RT_FILE_U8, RT_FILE_U16, RT_FILE_I32, RT_FILE_F32 } RtFileType;

size_t rt_file_type_bytes(RtFileType t);
// Whether an input of type `type` represents all numbers exactly.
bool rt_file_type_fits(RtFileType t, RtType type);
// Converts `count` numbers at the start of a buffer in place, to the type that
// the buffer is for.
void rt_file_type_widen(void *room, size_t count, RtFileType from, RtType to);

// The images or the labels of all samples.
typedef struct {
    RtFileType type;
    size_t values; // of a sample
    size_t step;   // numbers from one sample to the next
    uint8_t *bytes;
    bool borrowed; // the bytes belong to another column
} RtColumn;

// The samples of a split: all, or those of training or validation.  The `held`
// validation samples are the last ones, or spread over all.
typedef enum { RT_PART_ALL, RT_PART_TRAIN, RT_PART_VALIDATION } RtPart;
typedef struct {
    RtPart part;
    bool at_end;
    int64_t all, held;
} RtHoldout;

// A part of a data set. fetch copies the image of one sample in its file type;
// several threads call it.
typedef struct RtSplit {
    int64_t count; // in this split
    RtHoldout holdout;
    bool is_text; // samples follow one another
    RtColumn image, label;
    RtColumn array[RT_MAX_ARRAYS]; // in the order of the trainer's
    int num_arrays;
    bool (*fetch)(const struct RtSplit *s, int64_t sample, uint8_t *to,
                  RtError *e);
    void *source; // of a format that reads images on demand
    void (*release)(void *source);
} RtSplit;

enum { RT_IGNORED_BYTES = 560 };

typedef struct {
    RtSplit train, test;
    uint64_t hash; // of the data; a resumed run must find the same
    struct RtDecodeMemory *decode_memory; // NULL: none needed
    char *classes;   // their names, one in a line; NULL: unknown
    char *columns;   // of a table's input, one in a line; NULL: unknown
    char *tokenizer; // text of the tokenizer.json beside tokens; NULL: none
    char ignored[RT_IGNORED_BYTES]; // a line about ignored files; "": none
} RtData;

// The file of a data set's folder with the names of the classes, one in a line.
#define RT_CLASSES_FILE "classes.txt"
// Reads the data set in folder `path` and checks every size and label.
bool rt_data_open(RtData *d, const char *format, const char *path,
                  const RtDataSpec *spec, const RtFiles *files, RtError *e);
void rt_data_close(RtData *d);
// Whether a test set is neither there nor required: none of the files `name`
// (to NULL) exists.
bool rt_lacks_test(const RtDataSpec *spec, const char *folder,
                   const char *const *name);
// Whether the file of the test set exists; names --validation if that would do.
bool rt_test_found(const RtDataSpec *spec, const char *folder, const char *name,
                   RtError *e);

// Allocates numbers for `count` samples.
bool rt_column_reserve(RtColumn *c, RtFileType type, size_t values,
                       int64_t count, RtError *e);
// The numbers of one sample.
uint8_t *rt_column_at(const RtColumn *c, int64_t sample);
// Allocates images and labels of `count` samples for rt_split_fetch.
bool rt_split_reserve(RtSplit *s, int64_t count, RtFileType image,
                      size_t image_values, RtFileType label,
                      size_t label_values, RtError *e);
bool rt_split_fetch(const RtSplit *s, int64_t sample, uint8_t *to, RtError *e);
void rt_split_close(RtSplit *s);
// Whether images are decoded when they are fetched.
bool rt_split_decodes(const RtSplit *s);
// False with *e filled if a label is not below spec's classes, nor ignored.
bool rt_labels_check(const RtSplit *s, const RtDataSpec *spec, const char *path,
                     RtError *e);
// The same for the whole numbers of an array.
bool rt_classes_check(const RtColumn *c, int64_t count, const RtArray *a,
                      const char *path, RtError *e);
// False with *e filled if a number of an input is not finite, or a weight of a
// sample is not finite or below 0.
bool rt_numbers_check(const RtColumn *c, int64_t count, bool weighs,
                      const char *path, RtError *e);

// ---- find.c ----

// Opens the data set of --data or of the model file, and applies --validation.
bool rt_data_find(const RtTrainer *t, const RtOptions *o, RtData *d,
                  const RtFiles *files, RtError *e);

// ---- holdout.c ----

// Moves samples from d->train to d->test, and xors their number into d->hash.
bool rt_data_hold_out(RtData *d, const RtValidation *v, RtError *e);

// The data set's sample at position i of a split; whether a split has a sample;
// the number of samples of both parts.
int64_t rt_split_sample(const RtSplit *s, int64_t i);
bool rt_split_has(const RtSplit *s, int64_t sample);
int64_t rt_split_all(const RtSplit *s);

// ---- ignored.c ----

// Counts of ignored files by suffix, in order of suffix.
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
// One line about the files in `folder` that are not `expected`.
void rt_ignored_text(char to[RT_IGNORED_BYTES], const RtIgnored *p,
                     const char *folder, const char *expected);

// ---- names.c ----

typedef struct {
    char **name;
    int64_t count, room;
} RtNames;

// Takes ownership of the name; NULL: no memory.
bool rt_names_add(RtNames *n, char *name, RtError *e);
void rt_names_free(RtNames *n);
// Adds the sorted entries of a folder: files with one of the suffixes (to NULL,
// in any case), of which `ignored` counts the others; or its subfolders, with
// suffix NULL.
bool rt_names_list(const char *folder, const char *const *suffix,
                   RtIgnored *ignored, RtNames *n, RtError *e);
// The suffix of a name in the list; NULL: none.
const char *rt_names_suffix(const char *name, const char *const *suffix);
void rt_names_sort(RtNames *n); // in byte order
// The position of a name in a sorted list; -1: not there.
int64_t rt_names_find(const RtNames *n, const char *name);
// The names, one in a line, which the caller frees; NULL: no memory.
char *rt_names_text(const RtNames *n);

// ---- shards.c ----

typedef struct {
    RtNames train, test; // paths, in order
    RtIgnored ignored;
} RtShards;

// Finds the files with one of the suffixes (to NULL): in the folders train, and
// test, val or validation, or without a folder train in the folder itself,
// where a word of a name selects the set.
// suffix NULL: folders.
bool rt_shards_find(RtShards *to, const char *folder, const char *const *suffix,
                    RtError *e);
// The position in a name of the word that selects the set; its length if it has
// none.
size_t rt_shards_word(const char *name);
void rt_shards_free(RtShards *s);

// ---- inputs.c ----

// Opens the samples of a prediction as d->test: image files, those in folders,
// an .npy, .parquet or .csv file, or a data set, whose test set it is.  paths: any number of
// image files and folders, or one path.  columns: of a table's input, one in a
// line, which are found by name; NULL: unknown.
bool rt_inputs_open(RtData *d, const RtTrainer *t, const RtOptions *o,
                    const char *columns, const RtNames *paths,
                    const RtFiles *files, RtError *e);
// The file of a sample; NULL: samples have numbers only.
const char *rt_inputs_path(const RtData *d, int64_t sample);
// Why a sample's file could not be decoded; NULL: it could.
const char *rt_inputs_error(const RtData *d, int64_t sample);
// Sets that of a sample of another rank, once.
bool rt_inputs_set_error(const RtData *d, int64_t sample, const char *error,
                         RtError *e);

// ---- reader.c ----

// An open file.
typedef struct {
    const RtFiles *files;
    const char *path;
    int fd;
    int64_t size;
    int64_t buffered; // offset of the buffer
    size_t ready;
    uint8_t buffer[4 << 10];
} RtReader;

bool rt_reader_open(RtReader *r, const RtFiles *files, const char *path,
                    RtError *e);
// Whether the file has so many bytes from there on.
bool rt_reader_has(const RtReader *r, int64_t from, int64_t count);
// Copies bytes that the file has.
bool rt_reader_copy(RtReader *r, int64_t from, size_t count, void *to,
                    RtError *e);
void rt_reader_close(RtReader *r);

// ---- tar.c ----

enum { RT_TAR_RECORDS = 16 << 10 };

// An open archive.
typedef struct {
    RtReader in;
    int64_t at; // of the next header
    char name[4 << 10];
    bool is_named; // by a header before that of the member
    int64_t bytes; // by such a header; -1: none
} RtTar;

typedef struct {
    const char *name;     // until the next one; NULL: the archive ends
    int64_t first, bytes; // of its data, which the file has
} RtTarMember;

bool rt_tar_open(RtTar *t, const RtFiles *files, const char *path, RtError *e);
// The next regular file.
bool rt_tar_next(RtTar *t, RtTarMember *m, RtError *e);
// Copies bytes of the archive.
bool rt_tar_read(RtTar *t, int64_t from, size_t count, void *to, RtError *e);
void rt_tar_close(RtTar *t);

// ---- lmdb_pages.c ----

// A value of a database, as a part of its file, and its key: bytes until the
// hook returns.
typedef struct {
    const uint8_t *key;
    size_t key_length;
    int64_t first, bytes;
} RtLmdbEntry;

typedef bool RtLmdbHook(void *context, const RtLmdbEntry *entry, RtError *e);
// Calls `hook` with the entries of an LMDB file in the order of their keys.
bool rt_lmdb_walk(RtReader *file, RtLmdbHook *hook, void *context, RtError *e);

// ---- datum.c ----

// A record of Caffe: message Datum of its caffe.proto.
typedef struct {
    int64_t channels, height, width;
    int64_t encoded;      // not 0: its bytes are an image file
    int64_t label;        // 0 if it has none, as in that file
    int64_t first, bytes; // of field `data` in the file; 0, 0: none
    bool has_floats;      // in place of bytes; nothing is read after them
} RtDatum;

// Reads the message in a part of the file; false with *e filled if it is none.
bool rt_datum_read(RtReader *file, int64_t first, int64_t bytes, RtDatum *to,
                   RtError *e);

// ---- cifar.c, idx.c, npy.c, table.c, tokens.c, image_folder.c, image_table.c,
// webdataset.c, lmdb.c, synthetic.c ----

typedef bool RtFormat(RtData *d, const char *path, const RtDataSpec *spec,
                      const RtFiles *files, RtError *e);
// Reads the samples of an .npy file, or its only one, and hashes them.
bool rt_npy_column(const RtFiles *files, const char *path, const RtShape *shape,
                   RtColumn *c, int64_t *count, uint64_t *hash, RtError *e);
// Whether a name ends as a file of a table does.
bool rt_is_table(const char *path);
// Reads the input's columns of one file as d->test, without labels.
bool rt_table_open(RtData *d, const char *path, const RtDataSpec *spec,
                   RtError *e);
// Reads the images of one Parquet file as d->test, without labels.
bool rt_image_table_open(RtData *d, const char *path, const RtDataSpec *spec,
                         const RtFiles *files, RtError *e);
RtFormat rt_cifar10_read, rt_cifar100_read, rt_idx_read, rt_npy_read,
    rt_tokens_read, rt_synthetic_draw, rt_image_folder_read, rt_webdataset_read,
    rt_table_read, rt_image_table_read, rt_lmdb_read;

// ---- decode.c, jpeg.c, png.c, resize.c: images in files ----

// The libraries that decode; NULL: not installed.
typedef struct RtJpeg RtJpeg;
RtJpeg *rt_jpeg_open(RtError *e);
void rt_jpeg_close(RtJpeg *j);
typedef struct RtPng RtPng;
RtPng *rt_png_open(RtError *e);
void rt_png_close(RtPng *p);
typedef struct RtWebp RtWebp;
RtWebp *rt_webp_open(RtError *e);
void rt_webp_close(RtWebp *w);

typedef struct RtResize RtResize;

// Memory for decoding, shared by all loaders.  NULL: no memory.
typedef struct RtDecodeMemory RtDecodeMemory;
RtDecodeMemory *rt_decode_memory_new(int64_t max_pixels);
void rt_decode_memory_free(RtDecodeMemory *s);
// A device that may decode JPEG files (NULL: none), set before images are read.
void rt_decode_memory_set_device(RtDecodeMemory *s, RtDevice *device);
RtDevice *rt_decode_memory_device(const RtDecodeMemory *s);
size_t rt_decode_memory_bytes(const RtDecodeMemory *s);
// Bytes that each loading thread may allocate in addition.
enum { RT_LOADER_PRIVATE_BYTES = 4 << 20 };
// Limits of a file that a device decodes, and the bytes that each loading thread
// may allocate for it on the host.
enum {
    RT_DEVICE_JPEG_PIXELS = 8 << 20,
    RT_DEVICE_JPEG_BYTES = 8 << 20,
    RT_DEVICE_LOADER_BYTES = 3 * RT_DEVICE_JPEG_PIXELS + RT_DEVICE_JPEG_BYTES,
};

// A part of a file of a list.
typedef struct {
    int64_t first, bytes;
    int32_t file;
    uint16_t h, w; // of raw pixels in planes; 0: an image of some format
} RtFilePart;

// Decodes images to h x w pixels of three bytes.
typedef struct {
    const RtFiles *files;
    int h, w;
    int64_t max_pixels; // of a file
    bool rgb;           // the order of raw planes; else blue, green, red
    RtJpeg *jpeg;       // NULL: not installed
    RtPng *png;
    RtWebp *webp;
    RtDecodeMemory *memory;
} RtImageDecoder;

// The suffix of the format of an image by its first bytes; NULL: unknown.
const char *rt_image_suffix_of(const void *bytes, size_t count);
// Reads a file into h x w pixels. *broken: no decoder can decode the file.
bool rt_image_read(const RtImageDecoder *decoder, const char *path, uint8_t *to,
                   bool *broken, RtError *e);
// The same for a part of a file, which messages call `name`.
bool rt_image_read_part(const RtImageDecoder *decoder, const char *path,
                        const char *name, const RtFilePart *part, uint8_t *to,
                        bool *broken, RtError *e);

// ---- images.c ----

extern const char *const rt_image_suffix[]; // to NULL

// The source of a split whose samples are images in files.
typedef struct {
    RtNames name;     // of each sample; the path of its file if it has no part
    RtFilePart *part; // of each sample; NULL: whole files
    RtNames file;     // that the parts are of
    int spool;        // one of these, which it keeps open; -1: none
    RtImageDecoder decoder;
    int64_t max_skipped, num_skipped;
    bool *skipped;        // of each sample; each is named once
    bool is_table; // a sample has other arrays, so that no other replaces it
    pthread_mutex_t lock; // guards both
} RtImages;

// Makes a split without samples; NULL with *e filled.
RtImages *rt_images_open(RtData *d, RtSplit *split, const RtDataSpec *spec,
                         const RtFiles *files, RtError *e);
// Takes ownership of the name (NULL: no memory), which ends in a suffix of
// images.  Parts: all samples or none.
bool rt_images_add(RtSplit *split, char *name, const RtFilePart *part,
                   int32_t label, RtError *e);
// Opens the libraries for all samples.
bool rt_images_complete(RtSplit *split, const RtDataSpec *spec, RtError *e);

// ---- image_rows.c ----

// Images of Parquet files, and their numbers as the text of an image table,
// whose column of images has names for messages.
typedef struct {
    char *text;
    RtFilePart *part; // of each row's image in `spool`
    int64_t count;
    int spool; // a file without a name; -1: none
} RtImageRows;

// image: the name of the column of images.  The caller owns all of `to`, also
// after an error.
bool rt_image_rows_read(RtImageRows *to, const RtNames *path, const char *image,
                        RtError *e);

// ---- textures.c ----

typedef struct {
    int h, w, c;
} RtSize;

typedef struct {
    int top, bottom, left, right;
} RtBox;

// The textures of synthetic images; NULL: no memory.
typedef struct RtTextures RtTextures;
RtTextures *rt_textures_new(RtSize shape, int classes);
void rt_textures_free(RtTextures *t);
// Draws the image of a class and a key; returns the box of its rectangle.
RtBox rt_textures_draw(const RtTextures *t, int class, uint64_t key,
                       uint8_t *to);

// ---- random.c ----

// 64 random bits, a pure function of both numbers.
uint64_t rt_random(uint64_t key, uint64_t counter);
// A number in [0, 1); an integer below n.
double rt_uniform(uint64_t key, uint64_t counter);
int rt_below(uint64_t key, uint64_t counter, int n);

// ---- shuffle.c ----

// The sample at `position` of an epoch: a permutation of 0 .. count-1 for each
// (seed, epoch).
int64_t rt_shuffled(uint64_t seed, int64_t epoch, int64_t position,
                    int64_t count);

// ---- loader.c ----

typedef struct {
    const RtSplit *split;
    int64_t batch;
    int64_t epoch_batches; // in an epoch
    int64_t first, last;   // to deliver, counted over all epochs
    // Batches of an update, and those that are delivered here; 0: all.
    int shards, first_shard, own_shards;
    // Batches of a shard, if shards run in lockstep: the first ones of all own
    // shards come first.  0 and 1: batches are in order.
    int rounds;
    bool shuffle;          // else file order in every epoch
    uint64_t seed;
    RtType image, label; // types of delivery
    const RtArray *array; // the trainer's
    int num_arrays;
    int threads;
    RtDevice *device;      // that has staging buffers; NULL: none
    struct RtTrace *trace; // for the threads' spans; NULL: none
    bool no_images;        // images are resident
    double warn_after;   // seconds before a warning that no batch comes; 0: 60
    double longest_wait; // seconds before an error; 0: never
} RtLoaderConfig;

// A batch in a staging buffer, with all that it points to.  Samples from
// `valid` on are padding: the first of the epoch.
typedef struct {
    void *image, *label;
    void *array[RT_MAX_ARRAYS]; // in the order of the trainer's
    const RtArray *named;
    int num_arrays;
    int32_t *index;
    int32_t valid;
    int32_t shard; // its number within the update
} RtBatch;

typedef struct RtLoader RtLoader;

// The bytes of its batches.
size_t rt_loader_bytes(const RtLoaderConfig *plan);
RtLoader *rt_loader_open(const RtLoaderConfig *plan, RtError *e);
// The next batch, in order.  It stays until released; at most RT_MAX_IN_FLIGHT
// are unreleased.  NULL: a worker failed or stalled, or a signal came; a
// `needed` batch is waited for in spite of a signal.  Adds the seconds it
// waited to *waited.
const RtBatch *rt_loader_next(RtLoader *l, bool needed, double *waited,
                              RtError *e);
// Whether rt_loader_next gave up because a file hangs or a signal came.
bool rt_loader_stalled(const RtLoader *l);
// Requests the end of the threads.  False if one hangs in a file: it can be
// neither joined nor stopped, so the loader and its memory must stay until the
// program ends.
bool rt_loader_stop(RtLoader *l);
void rt_loader_release(RtLoader *l);
// Busy seconds of all threads together; number of threads.
double rt_loader_busy(RtLoader *l);
int rt_loader_threads(const RtLoader *l);
bool rt_loader_close(RtLoader *l); // false: threads hang

// ---- feeder.c ----

enum { RT_MAX_IN_FLIGHT = 2 };

typedef struct {
    const RtPlan *plan;
    RtDevice *device;
    RtLoader *loader;
    // A ring of batches that the device may still read: the submit number of
    // each, the number of the oldest, and how many there are.
    int64_t number[RT_MAX_IN_FLIGHT], next;
    int in_flight;
    int resident; // the set of resident images; 0: none
    size_t shift; // added to the addresses of inputs
    bool repeats; // submits the first batch again and again
    bool partly;  // within an update of several batches
    const RtBatch *first;
} RtFeeder;

// Results of a submit: samples of the batch, and seconds.
typedef struct {
    int32_t valid;
    double waited, copying, device_wait; // the last for a free slot
} RtSubmitted;

// Owns the loader from now on.
void rt_feeder_open(RtFeeder *f, const RtPlan *plan, RtDevice *d,
                    RtLoader *loader);
// Submits the next batch to the step of that kind.  more: the update has
// further batches.
bool rt_feeder_submit(RtFeeder *f, RtStepKind kind, int stage, bool more,
                      RtSubmitted *done, RtError *e);
bool rt_feeder_close(RtFeeder *f); // false: its threads hang

// ---- png_write.c ----

// An image of [height, width, channels] bytes, 1 or 3 channels; is_map: numbers
// of classes, which get colours.
typedef struct {
    int height, width, channels;
    bool is_map;
    const uint8_t *pixel;
} RtPicture;

typedef struct RtPngWriter RtPngWriter;

RtPngWriter *rt_png_writer_open(RtError *e);
void rt_png_writer_close(RtPngWriter *w); // may be NULL
// The file of an image, which the caller frees.
bool rt_png_encode(const RtPngWriter *w, const RtPicture *from, uint8_t **bytes,
                   size_t *length, RtError *e);

// ---- gzip.c ----

// Opens what a compressed file has, in memory, and its size; -1 with *e filled.
int rt_gzip_open(const char *path, size_t *bytes, RtError *e);

#endif
