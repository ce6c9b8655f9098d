// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Checkpoints: the states of a run in a file, the files of a run in a folder,
// and the weights of any program's file.
#ifndef RUNTIME_CHECKPOINT_H
#define RUNTIME_CHECKPOINT_H

#include "runtime/runtime.h"

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
} RtMetadata;

typedef struct {
    RtTensor *tensor;       // in the order of their data, without holes
    const RtTensor **named; // by name
    size_t num_tensors;
    RtMetadata *metadata; // by key
    size_t num_metadata;
} RtHeader;

// Reads the JSON of a header and checks it against the size of the data.
bool rt_header_parse(RtHeader *h, const char *text, size_t length,
                     uint64_t data_bytes, RtError *e);
void rt_header_free(RtHeader *h);
const RtMetadata *rt_header_metadata(const RtHeader *h, const char *key);
const RtTensor *rt_header_tensor(const RtHeader *h, const char *name);
const char *rt_type_name(RtType t); // as safetensors writes it

// ---- weights.c ----

enum { RT_LOADED_BYTES = 3900 };

// The state that each tensor of a file goes to, NULL for none, how many do, and
// what is to be said of it, in lines.
typedef struct {
    const RtState **state;
    size_t count;
    char message[RT_LOADED_BYTES];
} RtWeights;

// Holds a file against the model's parameters and statistics; false where they
// differ in more than `except` names: globs with commas between, or NULL. ours:
// a trainer has written it.
bool rt_weights_fit(RtWeights *w, const RtTrainer *t, const RtPlan *plan,
                    const RtHeader *h, bool ours, const char *except,
                    RtError *e);
void rt_weights_free(RtWeights *w);

// ---- checkpoint.c ----

// Saves and loads the states of one device.  All its memory is taken at once.
typedef struct RtCheckpoint RtCheckpoint;

RtCheckpoint *rt_checkpoint_new(const RtTrainer *t, const RtPlan *plan,
                                RtDevice *d, const RtFiles *files, RtError *e);
void rt_checkpoint_free(RtCheckpoint *c);
// Writes a new file and makes its bytes durable; a failure removes it.
bool rt_checkpoint_write(RtCheckpoint *c, const char *path, const RtProgress *p,
                         RtError *e);

// ---- load.c ----

typedef enum { RT_GOOD, RT_BROKEN, RT_OTHER_RUN } RtLoad;

// Every byte is checked.  RT_BROKEN: states may have been overwritten.
RtLoad rt_checkpoint_read(RtCheckpoint *c, const char *path, RtProgress *p,
                          RtError *e);
// Reads the weights that a run starts with, of any safetensors file.  False:
// some of them may have been overwritten.
bool rt_checkpoint_load_weights(RtCheckpoint *c, const char *path,
                                const char *except,
                                char message[RT_LOADED_BYTES], RtError *e);

// ---- retention.c ----

// The checkpoints in one folder.
typedef struct {
    const char *folder;
    const RtFiles *files;
    int keep;
    int64_t from;   // the step this run began at; -1: afresh
    bool set_aside; // whether checkpoints of another run are out of the way
    int lock;       // the folder, while no other trainer may write to it
} RtRetention;

// Keeps other trainers from the folder, where its file system can; until the
// release, or the end of the process.  If another folder is in its
// place, saving claims that one.
bool rt_retention_lock(RtRetention *r, RtError *e);
void rt_retention_unlock(RtRetention *r);

// The newest step of another run whose checkpoints this one's first will set
// aside, -1 for none; *drops says whether those of a run before that will go.
int64_t rt_retention_superseded(const RtRetention *r, bool *removes);

// The file of a folder's newest checkpoint, whole or not; of a step.  The
// caller frees it; NULL: there is none, or no memory.
char *rt_retention_newest(const char *folder);
char *rt_retention_path(const RtRetention *r, int64_t step);

// Whether it has that checkpoint of this run.
bool rt_retention_has(const RtRetention *r, int64_t step);

// Removes what a run that was cut off left half written.
void rt_retention_remove_partial(const RtRetention *r);
// Adds a checkpoint, then drops those beyond `keep`.
bool rt_retention_save(RtRetention *r, RtCheckpoint *c, const RtProgress *p,
                       RtError *e);
// Loads the newest checkpoint that is whole, with a warning for each that is
// not; *path becomes its name.
bool rt_retention_load(const RtRetention *r, RtCheckpoint *c, RtProgress *p,
                       char **path, RtError *e);

#endif
