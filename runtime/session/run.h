// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Run: a trainer's run, as its main begins it.
#ifndef RUNTIME_RUN_H
#define RUNTIME_RUN_H

#include "runtime/data/data.h"
#include "runtime/report/report.h"

// ---- folder.c ----

#define RT_SETTINGS "settings.json"
#define RT_MODEL_FILE "model.net"
#define RT_SOURCE_FOLDER "source"

// Where a run keeps its files.
typedef struct {
    char *path; // NULL: not known yet, or there is none
    bool made;  // by this run
    char *init; // the file of weights that --init=DIR stands for; or NULL
} RtFolder;

// Finds the folder that the options name, before anything is opened: false
// where it holds another run, or where there is none to resume.  A new run has
// none yet.
bool rt_folder_find(RtFolder *f, const RtTrainer *t, RtOptions *o, RtError *e);
// Makes it; a new run takes the next number.
bool rt_folder_make(RtFolder *f, const RtTrainer *t, const RtOptions *o,
                    RtError *e);
// Whether the run may write to that folder: a new run finds none of the names
// that it writes there.
bool rt_folder_check_unused(const char *path, const RtTrainer *t,
                            const RtOptions *o, RtError *e);
// Makes the folders above a file or a folder, where they are missing.
bool rt_folder_make_above(const char *path, RtError *e);
// Removes a new one that has stayed empty.
void rt_folder_close(RtFolder *f);

// ---- train.c ----

typedef struct {
    const RtTrainer *trainer;
    const RtPlan *plan;
    RtDevice *device;
    const RtData *data;
    const RtOptions *options;
    const RtFiles *files;
    const char *folder; // of the run; NULL: it has none
    double began;       // when the program started
    char *const *word;  // of its command line, without its name
    int num_words;
    RtLaps *laps;   // since then
    RtTrace *trace; // NULL: nothing is traced
    const struct RtNvtx *nvtx;
    bool resident; // the device keeps the images
    // Where images are, in words; "": where all is.
    char data_is[RT_MESSAGE_BYTES + 40];
} RtRun;

// Trains, or only evaluates.  False: *e has what stopped it.  *caught is the
// signal that did, if one did.
bool rt_run(const RtRun *run, int *caught, RtError *e);

// ---- input_pipeline.c ----

// The host's memory that loading takes.
size_t rt_loading_bytes(const RtRun *run);

// ---- load_only.c ----

// Loads the training data and does nothing else; the run has no device.
bool rt_load_only(const RtRun *run, RtError *e);

// ---- progress.c ----

// Where a run begins that takes these samples.
bool rt_progress_plan(const RtTrainer *t, const RtOptions *o,
                      const RtData *data, RtProgress *p, RtError *e);
// Batches of an epoch, and the first of a step, counted over all epochs.
int64_t rt_epoch_batches(const RtTrainer *t, const RtProgress *p,
                         int64_t samples);
int64_t rt_first_batch(const RtTrainer *t, const RtProgress *p,
                       int64_t epoch_batches, int64_t step);

// ---- resident.c ----

// What is evaluated, and the split that it is.
RtOn rt_eval_on(const RtRun *run);
const RtSplit *rt_eval_split(const RtRun *run);

// Decides whether the device keeps the images, and if so gives them to it.
bool rt_resident_keep(RtRun *run, RtError *e);

#endif
