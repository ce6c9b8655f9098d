// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Checkpoints: the states of a run in a file, the files in a folder, and
// weights from a safetensors file of any program.
#ifndef RUNTIME_CHECKPOINT_H
#define RUNTIME_CHECKPOINT_H

#include "runtime/runtime.h"

// ---- safetensors.c ----

enum { RT_MAX_KEY = 1024, RT_MAX_TENSORS = 1000000 };

typedef struct {
    char *name;
    RtType type;
    const char *other; // a type that no state has, as I64; NULL: none
    int rank;
    int64_t dim[RT_MAX_RANK];
    uint64_t begin, end; // offsets in the data
} RtTensor;

typedef struct {
    char *key, *value;
    size_t value_at; // offset of the value's text in the header
} RtMetadata;

typedef struct {
    RtTensor *tensor;       // ordered by offset, without gaps
    const RtTensor **named; // ordered by name
    size_t num_tensors;
    RtMetadata *metadata; // entries of __metadata__, ordered by key
    size_t num_metadata;
} RtHeader;

// Parses the JSON of a header and checks it against the size of the data.
bool rt_header_parse(RtHeader *h, const char *text, size_t length,
                     uint64_t data_bytes, RtError *e);
void rt_header_free(RtHeader *h);
const RtMetadata *rt_header_metadata(const RtHeader *h, const char *key);
const RtTensor *rt_header_tensor(const RtHeader *h, const char *name);
const char *rt_type_name(RtType t); // the safetensors name

// ---- weights.c ----

enum { RT_LOADED_BYTES = 3900 };

// For each tensor of a file the state that it initializes, or NULL; the number
// of these; whether its filters are [K,C,R,S], as PyTorch has them; a message
// in lines.
typedef struct {
    const RtState **state;
    size_t count;
    bool channels_first;
    char message[RT_LOADED_BYTES];
} RtWeights;

// The options about a file of weights; NULL: not given.
typedef struct {
    const char *except; // comma-separated globs of names to leave out
    const char *map;    // a file that maps the model's names to the file's
    const char *advice; // about a file that does not fit; NULL: --init-except
} RtWeightsOptions;

// Matches a file's tensors with the model's parameters and statistics.  False
// if they differ in more than the options say.  by_sinter: a trainer wrote the
// file.
bool rt_weights_fit(RtWeights *w, const RtTrainer *t, const RtPlan *plan,
                    const RtHeader *h, bool by_sinter,
                    const RtWeightsOptions *o, RtError *e);
void rt_weights_free(RtWeights *w);

// ---- checkpoint.c ----

// Saves and loads the states of one device.  All memory is allocated here.
typedef struct RtCheckpoint RtCheckpoint;

RtCheckpoint *rt_checkpoint_new(const RtTrainer *t, const RtPlan *plan,
                                RtDevice *d, const RtFiles *files, RtError *e);
void rt_checkpoint_free(RtCheckpoint *c);
// Lets the files keep the names of classes and of a table's columns, one in a
// line; each may be NULL.
bool rt_checkpoint_keep_names(RtCheckpoint *c, const char *classes,
                              const char *columns, RtError *e);
// A class's name in the file whose weights were loaded; NULL: it has none.
const char *rt_checkpoint_class(const RtCheckpoint *c, int64_t number);
// The columns of the file whose weights were loaded, one in a line; NULL: it has
// none.
const char *rt_checkpoint_columns(const RtCheckpoint *c);
// Writes a new file durably; removes it after a failure.
bool rt_checkpoint_write(RtCheckpoint *c, const char *path, const RtProgress *p,
                         RtError *e);

// ---- load.c ----

typedef enum { RT_GOOD, RT_BROKEN, RT_OTHER_RUN } RtLoad;

// Checks every byte.  RT_BROKEN: states may have been overwritten.
RtLoad rt_checkpoint_read(RtCheckpoint *c, const char *path, RtProgress *p,
                          RtError *e);
// Loads initial weights from a safetensors file.  False: some states may have
// been overwritten.
bool rt_checkpoint_load_weights(RtCheckpoint *c, const char *path,
                                const RtWeightsOptions *o,
                                char message[RT_LOADED_BYTES], RtError *e);

// The file of weights that a path means: itself, or the newest checkpoint in the
// folder of a run, which the caller frees; NULL with *e filled.
char *rt_weights_path(const char *path, RtError *e);

// Loads what an evaluation reads: all of this trainer's checkpoint, or the
// weights alone of any other file or by a plan that only predicts.  *p: the
// progress of the file, if it has one; *whole: it was loaded as a checkpoint.
bool rt_checkpoint_load_any(RtCheckpoint *c, const char *path,
                            const RtWeightsOptions *o, RtProgress *p, bool *whole,
                            char message[RT_LOADED_BYTES], RtError *e);

// ---- retention.c ----

// The checkpoints in one folder.
typedef struct {
    const char *folder;
    const RtFiles *files;
    int keep;
    int64_t from;   // first step of this run; -1: a new run
    bool by_metric; // those that `checkpoint best` keeps, with other names
    bool set_aside; // checkpoints of another run have been renamed
    int lock;       // descriptor of the locked folder
} RtRetention;

// Whether the folder is the one that was locked.
bool rt_retention_holds(const RtRetention *r);

// Locks the folder against other trainers, if its file system can, until the
// unlock or the end of the process.  If another folder takes its place, saving
// locks that one.
bool rt_retention_lock(RtRetention *r, RtError *e);
void rt_retention_unlock(RtRetention *r);

// The newest step of another run whose checkpoints the first save will rename,
// -1: none. *removes: it will remove those of an earlier run.
int64_t rt_retention_superseded(const RtRetention *r, bool *removes);

// The path of a folder's newest checkpoint, valid or not; of a step.  The
// caller frees it; NULL: none, or no memory.
char *rt_retention_newest(const char *folder);
char *rt_retention_path(const RtRetention *r, int64_t step);

// Whether it has that checkpoint of this run.
bool rt_retention_has(const RtRetention *r, int64_t step);

// Removes partial files of an interrupted run.
void rt_retention_remove_partial(const RtRetention *r);
// Adds a checkpoint, then removes those beyond `keep`.
bool rt_retention_save(RtRetention *r, RtCheckpoint *c, const RtProgress *p,
                       RtError *e);
// Loads the newest valid checkpoint, with a warning for each invalid one.
// *path: its name.
bool rt_retention_load(const RtRetention *r, RtCheckpoint *c, RtProgress *p,
                       char **path, RtError *e);

#endif
