// The text of a trainer, from a program.
#ifndef TOOLS_TRAINER_H
#define TOOLS_TRAINER_H

#include "tools/tools.h"

typedef struct {
    const char *name; // of the files, without extension
    Text c_file, cu_file;
    Text code;        // for --target's GPUs; empty: none is asked for
    Text graphs;      // of the steps that train
    const Plan *plan; // for CUDA, which memory is limited for
    const Plan *host;
    uint64_t fingerprint; // of model and recipe
} TrainerText;

// FNV-1a, 64 bits: the hash of what has been hashed and these bytes.
#define HASH_OF_NOTHING 0xcbf29ce484222325u
uint64_t hash_bytes(uint64_t hash, const char *s, size_t length);

// Plans the program for both devices and writes its files.
TrainerText trainer_text(Arena *a, const Program *p,
                         const Arguments *arguments);

// The same of a model file.  NULL, and an exit status in *status, after a
// message: also where it does not fit into the memory asked for.
const Program *trainer_load(Arena *a, const Arguments *arguments,
                            TrainerText *out, int *status);

// ---- taken.c ----

// Whether a file is a program, and no text; how it is run from here; and
// whether nothing was asked of it that only compiling could give, which else
// has been said.
bool trainer_is(const char *path);
const char *trainer_path(Arena *a, const char *path);
bool trainer_takes(const Arguments *arguments);

// The hash of the whole program; 0: it cannot be read.
uint64_t trainer_hash(const char *path);

// Says how one ended that could not say so itself: it has not started, for
// which errno has the reason, or a signal ended it.  Returns the exit status.
int trainer_ended(const Arguments *arguments, const char *trainer, int status);

// ---- build.c ----

// Compiles it to the program `out`.  Returns an exit status; what went wrong
// has been said.
int trainer_build(Arena *a, const Arguments *arguments, const TrainerText *t,
                  const char *out);

// ---- inputs.c ----

struct RtOptions;

// Whether the device and the data that a trainer of the program would be given
// are there, as the trainer itself finds them; if not, says so in the trainer's
// words, and returns its exit status.  Data that are generated are not.
int inputs_check(const Arguments *arguments, const Program *p,
                 const struct RtOptions *o);

// The same of a trainer with these options; data and validation may be NULL.
int inputs_named_check(Arena *a, const Arguments *arguments, const Program *p,
                       const char *device, const char *data,
                       const char *validation);

// ---- trainer_cache.c: trainers that were built, in the user's cache ----

// The path of the trainer of this text, by its content and all that compiles
// it, whether it is there or not.  NULL: the user has no folder for it that
// nobody else can write to.
const char *trainer_cache_path(Arena *a, const Arguments *arguments,
                               const TrainerText *t);
// Whether it is there, and nobody else may have written it; it counts as used
// now.
bool trainer_cache_has(const char *path);
// Removes those beside it that were not used for long, or are too many.
void trainer_cache_trim(Arena *a, const char *path);

#endif
