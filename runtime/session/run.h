// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Run: a trainer's run, as main starts it.
#ifndef RUNTIME_RUN_H
#define RUNTIME_RUN_H

#include "runtime/data/data.h"
#include "runtime/distributed/distributed.h"
#include "runtime/report/report.h"

// ---- folder.c ----

#define RT_SETTINGS "settings.json"
#define RT_MODEL_FILE "model.net"
#define RT_SOURCE_FOLDER "source"

// The folder of a run's files.
typedef struct {
    char *path; // NULL: not known yet, or none
    bool made;  // by this run
    char *init; // the file that --init=DIR resolves to; or NULL
} RtFolder;

// Finds the folder of the options, before anything is opened.  False if it has
// another run, or if there is none to resume.  A new run has no folder yet.
bool rt_folder_find(RtFolder *f, const RtTrainer *t, RtOptions *o, RtError *e);
// Creates it; a new run takes the next number.
bool rt_folder_make(RtFolder *f, const RtTrainer *t, const RtOptions *o,
                    RtError *e);
// Checks that the run may write to that folder: a new run must not find its
// file names there.
bool rt_folder_check_unused(const char *path, const RtTrainer *t,
                            const RtOptions *o, RtError *e);
// Makes the parents of a file or a folder.
bool rt_folder_make_above(const char *path, RtError *e);
// Removes a new folder that is empty.
void rt_folder_close(RtFolder *f);

// ---- train.c ----

typedef struct {
    const RtTrainer *trainer;
    const RtPlan *plan;
    RtDevice *device;
    const RtData *data;
    const RtOptions *options;
    const RtFiles *files;
    const char *folder; // of the run; NULL: none
    double began;       // start time of the program
    char *const *word;  // its arguments
    int num_words;
    RtLaps *laps;     // since then
    RtTrace *trace;   // NULL: nothing is traced
    RtWorld *world;   // NULL: this process is alone
    RtOwners *owners; // NULL: each rank has all states
    const struct RtNvtx *nvtx;
    bool resident; // the device holds the images
    // Where the images are, as a sentence; "": nothing to print.
    char data_is[RT_MESSAGE_BYTES + 40];
} RtRun;

// Trains or evaluates.  False: *e is the reason. *caught: the signal that ended
// the run, or 0.
bool rt_run(const RtRun *run, int *caught, RtError *e);

// ---- predict.c ----

// Predicts for the paths of --predict, and writes the results.  As rt_run.
bool rt_predict(const RtRun *run, int *caught, RtError *e);

// ---- generate.c ----

// Continues the text of --generate on standard output.  As rt_run.
bool rt_generate(const RtRun *run, int *caught, RtError *e);

// ---- input_pipeline.c ----

// Host memory for loading.
size_t rt_loading_bytes(const RtRun *run);

// ---- scores.c ----

// Host memory for the rows that an evaluation ranks; SIZE_MAX: too much.
size_t rt_scores_bytes(const RtRun *run);

// ---- load_only.c ----

// Loads the training data without a device, and prints the speed.
bool rt_load_only(const RtRun *run, RtError *e);

// ---- progress.c ----

// Plans a new run on these samples.
bool rt_progress_plan(const RtTrainer *t, const RtOptions *o,
                      const RtData *data, RtProgress *p, RtError *e);
// Batches of an epoch; the first batch of a step, over all epochs.
int64_t rt_epoch_batches(const RtTrainer *t, const RtProgress *p,
                         int64_t samples);
int64_t rt_first_batch(const RtTrainer *t, const RtProgress *p,
                       int64_t epoch_batches, int64_t step);

// ---- resident.c ----

// The kind of evaluation data, and its split.
RtEvalSet rt_eval_set(const RtRun *run);
const RtSplit *rt_eval_split(const RtRun *run);

// Copies the images to the device if they fit.
bool rt_resident_keep(RtRun *run, RtError *e);

#endif
