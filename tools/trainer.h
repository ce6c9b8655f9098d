// Trainer: its text, its compilation, and the cache of compiled ones.
#ifndef TOOLS_TRAINER_H
#define TOOLS_TRAINER_H

#include "codegen/codegen.h"
#include "runtime/rt.h"
#include "tools/tools.h"

typedef struct {
    const char *name; // of the files, without extension
    Text c_file, cu_file;
    Text code;        // machine code for --target; empty without it
    Text graphs;      // of the steps that train
    TileTexts tiles;  // that the plan for CUDA takes, or that for the host
    Text tile_file;   // C++ of the latter; empty without it
    const Plan *plan; // for CUDA, which memory is limited for
    const Plan *host;
    uint64_t fingerprint; // of model and recipe
} TrainerText;

// FNV-1a, 64 bits: continues a hash with these bytes.
#define HASH_OF_NOTHING 0xcbf29ce484222325u
uint64_t hash_bytes(uint64_t hash, const char *s, size_t length);

// Plans the program for both devices and writes its files.
TrainerText trainer_text(Arena *a, const Program *p,
                         const Arguments *arguments);

// The same from a model file.  NULL and an exit status in *status, after a
// message, if that fails or it exceeds --memory.
const Program *trainer_load(Arena *a, const Arguments *arguments,
                            TrainerText *out, int *status);

// ---- inputs.c ----

// The fields of a program's trainer that describe its data.
typedef struct {
    RtTrainer trainer;
    RtSetting setting[MAX_SETTINGS];
    RtArray array[RT_MAX_ARRAYS];
} DataDescription;
void data_describe(const Program *p, DataDescription *d);

// ---- trainer_file.c ----

// Whether a file is an executable; its path with a folder; and whether the
// command line has no option that needs a model file, or a message.
bool trainer_file_is(const char *path);
const char *trainer_file_path(Arena *a, const char *path);
bool trainer_file_suits(const Arguments *arguments);

// The hash of the file; 0 if it cannot be read.
uint64_t trainer_file_hash(const char *path);

// Prints how a trainer ended that could not print it: it did not start, with
// the reason in errno, or a signal ended it.  Returns the exit status.
int trainer_end_report(const Arguments *arguments, const char *trainer,
                       int status);

// ---- build.c ----

// Compiles it to the program `out`. Returns an exit status, after a message if
// it failed.
int trainer_build(Arena *a, const Arguments *arguments, const TrainerText *t,
                  const char *out);

// ---- inputs.c ----

struct RtOptions;

// Whether the files of weights and of names exist; a message if not.
int inputs_files_check(const Arguments *arguments, const struct RtOptions *o);

// Whether the device and the data of a trainer of the program exist, by the
// trainer's own checks.  If not, prints the trainer's message and returns its
// exit status.  Generated data are not checked.
int inputs_check(const Arguments *arguments, const Program *p,
                 const struct RtOptions *o);

// The same for a trainer with these options; data and validation may be NULL.
int inputs_named_check(Arena *a, const Arguments *arguments, const Program *p,
                       const char *device, const char *data,
                       const char *validation);

// ---- trainer_cache.c: trainers that were built, in the user's cache ----

// The path of this trainer in the user's cache, a hash of its text and of
// everything that compiles it; the file may be missing.  NULL: there is no
// folder that only the user can write to.
const char *trainer_cache_path(Arena *a, const Arguments *arguments,
                               const TrainerText *t);
// Whether it is there and only the user can have written it.  Marks it as used
// now.
bool trainer_cache_has(const char *path);
// Removes cached trainers that were not used for long, or are too many.
void trainer_cache_trim(Arena *a, const char *path);

#endif
