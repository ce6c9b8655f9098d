// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Session: the state of a run, shared by the files of this folder.
#ifndef RUNTIME_SESSION_H
#define RUNTIME_SESSION_H

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/report/nvtx.h"
#include "runtime/session/run.h"
#include "runtime/watch/watch.h"

#include <stdio.h>

typedef struct RtScores RtScores;
typedef struct RtEvalSums RtEvalSums;

typedef struct RtSession {
    const RtRun *run;
    const RtPlan *plan;
    RtDevice *device;
    RtReport *report;
    const char *report_folder; // of the run's files; NULL: it writes none
    RtCheckpoint *checkpoint;
    RtRetention retention, best; // checkpoints by time; by metric
    RtFeeder train, eval;        // their batches
    int64_t epoch_batches;
    RtProgress at;
    RtBudget budget;
    int64_t *batches;             // of training, per step of the plan
    RtRow test;                   // the last evaluation
    double *measured;             // its metrics of named outputs
    RtConfusion *confusion;       // its matrices, one for each output
    RtScores *scores;             // its rows, likewise; NULL: not ranked
    RtEvalSums *sums;             // of its batches; NULL: in the device
    RtLockstep *lockstep;         // of shards; NULL: they have no sums
    int64_t saved;                // step of the last checkpoint; -1: none
    int failures;                 // of checkpoints, in a row
    double failing_since, try_at; // the first failure; the next try
    int wait;                     // seconds from a failure to try_at
    bool data_failed;             // loading failed
    bool loader_stuck; // a closed loader has threads that hang in files
    bool snapshot_taken;
    struct RtGradients *gradients; // of this update; NULL: not shown
    FILE *times;                   // of steps; NULL: not written
    int times_lost;                // errno of a failed write; 0: none
    RtAnomaly *anomaly;            // NULL: steps are not observed
    RtKernelReplay *kernel_replay; // NULL: nor is a kernel
    double began;                  // time of the first step of this program
    int64_t began_at;              // the step before
    int64_t resumes;               // times resumed
    double elapsed_before;         // seconds before it resumed
    double saved_at; // time of the last checkpoint, or of the start
    // Since the last row:
    double since, waited, paused; // its start; seconds lost
    int64_t samples;
    double shown;     // time of the last progress line
    RtMetrics logged; // metrics at the last step row of the epoch
    // A ring of rows whose metrics were requested, and counts.
    RtRow pending_row[RT_MAX_READBACKS];
    int64_t requested, reported;
    int64_t traced_from, traced_to; // the steps of a trace
    bool traces, traced;            // this step is traced; the trace is written
    char loaded[RT_LOADED_BYTES];   // message of --init, in lines
} RtSession;

// Functions that return bool: false with the reason in *e.

// ---- predict.c ----

// Loads the file that --weights names, or the newest checkpoint of its folder
// or the run's, and computes what predictions share.  The caller frees *path,
// the file's.
bool rt_weights_load(RtSession *s, char **path, RtError *e);

// ---- input_pipeline.c ----

// Opens the loader of the evaluation data.
bool rt_session_open_eval(RtSession *s, RtError *e);

// The loader's configuration for training, from step p->step to the end.
RtLoaderConfig rt_session_plan_train(const RtRun *run, const RtProgress *p);

// Opens the loader of the training data, from step s->at.step on.
bool rt_session_open_train(RtSession *s, RtError *e);
// Closes it; a loader that hangs is left, and loader_stuck set.
void rt_session_close_train(RtSession *s);

// Runs the step that collects statistics for initial parameters, if the plan
// has one, on the first samples in file order.
bool rt_session_collect(RtSession *s, RtError *e);

// ---- tensorboard.c ----

// Adds the graph and the first images to the files of --tensorboard.
void rt_session_board(const RtSession *s);

// ---- step.c ----

// Copies the weights to their averages before averaging begins.
void rt_session_average_early(const RtSession *s);

// Computes the initial states of a run.
bool rt_session_begin(RtSession *s, RtError *e);

// Runs one update: its batches, then the step count.  Returns before the device
// is done.
bool rt_session_step(RtSession *s, RtError *e);

// Repeats the last step from the states before it.
bool rt_session_step_again(RtSession *s, const char *before, RtError *e);

// ---- shards.c ----

// Clears the terms of a batch.
void rt_shard_clear(const RtSession *s);
// Adds the terms of the last batch, number i of `count` of this rank's shards,
// to those before it; the last one's are added by an overlap.
void rt_shard_add(const RtSession *s, int i, int count);

// The last batch of a rank's shards: the sums of a bucket of its terms, over
// the rank's batches and then over ranks, begin when the step has stored them.
typedef struct {
    RtStepHooks hooks; // of the device; is the first field
    const RtSession *session;
    const RtStep *step;
    int batches;           // of the rank, or in lockstep of a shard
    bool full;             // as below
    int launches, buckets; // done; begun
} RtOverlap;

// Begins before that batch's step, of a stage.  At its end, or without one, the
// place of terms has the sums of all.  full: each shard of each rank has a
// batch, and the step runs as a whole.
void rt_overlap_begin(RtOverlap *o, const RtSession *s, int stage, int batches,
                      bool full);
void rt_overlap_end(RtOverlap *o);

// Runs the update of a stage: of the optimizer shards of this rank.  All ranks
// then have all parameters.
void rt_session_update(const RtSession *s, int stage);

// Opens *l if the device has memory for shards in lockstep.
void rt_session_open_lockstep(RtSession *s, RtLockstep *l);

// ---- data_failure.c ----

// This rank has no data from f; the next sum tells all ranks.  False: there are
// no others, or another failure ends the run.
bool rt_session_tell_failure(const RtSession *s, const RtFeeder *f,
                             const RtError *e);
// After a sum.  False: some rank had no data.
bool rt_session_has_data(RtSession *s, RtError *e);
// Whether data are missing because of a signal.
bool rt_session_is_interrupted(const RtSession *s, const RtFeeder *f);

// ---- gradients.c ----

// The gradients of an update whose histograms are due: begin; add, before each
// batch runs; end, with the loss scale and the stage of the update.
void rt_session_gradients_begin(RtSession *s);
// shard: among those in lockstep, else 0.
void rt_session_gradients_add(RtSession *s, const RtStep *trains, int valid,
                              int shard);
// Copies the inputs of a step, at their addresses plus `shift`; false: no
// memory.  They are written to the inputs of the same name of a step `to`.
bool rt_session_inputs_read(RtDevice *d, const RtStep *step, size_t shift,
                            void *copy[RT_MAX_INPUTS]);
void rt_session_inputs_write(RtDevice *d, const RtStep *from, const RtStep *to,
                             size_t shift, void *const copy[RT_MAX_INPUTS]);
void rt_session_inputs_free(void *copy[RT_MAX_INPUTS]);
void rt_session_gradients_end(RtSession *s, double loss_scale, int stage);
void rt_session_gradients_free(RtSession *s);

// ---- verify.c ----

// Whether --verify-every checks the next step.
bool rt_session_verifies(const RtSession *s);
// Runs the step twice; false if the results differ.
bool rt_session_verify(RtSession *s, RtError *e);

// ---- rows.c ----

// A row of training or evaluation with the metrics m.
RtRow rt_session_row(const RtSession *s, bool train, const RtMetrics *m);

// Starts the time and the sample count of a row.
void rt_session_begin_row(RtSession *s);

// Whether a row's loss is not finite, or its loss scale has reached its end:
// EXIT_DIVERGED in *e.
bool rt_session_diverged(const RtRow *row, RtError *e);

// The row of the training so far; waits for the device.  False if diverged.
bool rt_session_measure(const RtSession *s, RtRow *row, RtError *e);

// Reports pending rows in order until at most `most` are left, or the next has
// no metrics yet; blocks if `wait`.  False if diverged.
bool rt_session_poll_rows(RtSession *s, bool wait, int64_t most, RtError *e);

// After a step: request a row for --log-every, or every half second for
// progress; report the row of an epoch that has ended.
bool rt_session_log_steps(RtSession *s, RtError *e);
bool rt_session_show_progress(RtSession *s, RtError *e);
bool rt_session_end_epoch(RtSession *s, RtError *e);

// ---- short_batch.c ----

// Refuses a short last batch if the model needs whole ones; warns if it changes
// the statistics of batch_norm.
bool rt_session_check_short_batch(const RtRun *run, bool collects, RtError *e);

// ---- evaluate.c ----

// Waits for the device and adds its time to the budget.
void rt_session_add_device_time(RtSession *s);

// The metric of a row that `stop` names.
double rt_session_metric(const RtSession *s, const RtRow *row,
                         const char *name);

// Evaluates, reports the row and stores it in s->test.  Training's metrics are
// restored.
bool rt_session_evaluate(RtSession *s, RtError *e);

// ---- metrics.c ----

enum { RT_NAME_BYTES = 320 }; // of a state, with the name of an output

// The number of outputs, and the name of one in states; "": it has none.
int rt_num_outputs(const RtTrainer *t);
const char *rt_output_name(const RtTrainer *t, int i);

// The state metric.OUTPUT.SUMS, or metric.SUMS where there is none; NULL: there
// is neither.
const RtState *rt_sums_find(const RtPlan *plan, const char *output,
                            const char *sums);

// Allocates memory for the metrics of an evaluation; rt_session_close_metrics
// frees it.
bool rt_session_open_metrics(RtSession *s, RtError *e);
void rt_session_close_metrics(RtSession *s);

// Computes the metrics of an evaluation of so many samples from sums that are
// not in RtMetrics.  s owns the row's confusion matrices until the next call.
void rt_session_measure_sums(RtSession *s, RtRow *row, double samples);

// ---- scores.c ----

// Allocates memory for the outputs and labels of an evaluation, if its metrics
// rank them; rt_session_close_scores frees it.
bool rt_session_open_scores(RtSession *s, RtError *e);
void rt_session_close_scores(RtSession *s);

// Copies those of a batch, the last that ran, from the device.
void rt_session_add_scores(RtSession *s, int64_t batch);

// With several ranks: clears all rows before an evaluation, and takes those of
// others after it.
void rt_session_clear_scores(RtSession *s);
void rt_session_gather_scores(RtSession *s);

// The area under the ROC curve of an evaluation: of each class against all
// others, or of each label, then the mean over those that have positive and
// negative rows.  NAN: none has, or a score is NaN.
double rt_session_auc(const RtSession *s, const char *output);

// ---- eval_sums.c ----

// With shards, an evaluation adds its batches in their order, whichever rank
// runs them, so that a metric does not depend on the number of ranks.
bool rt_session_open_sums(RtSession *s, RtError *e);
void rt_eval_sums_free(RtEvalSums *e);
void rt_session_sums_begin(RtSession *s);
// Takes the sums of the last batch of each rank, after so many of them ran one,
// and clears the device's.
void rt_session_add_sums(RtSession *s, int batches);
// Stores the sums of all batches in the states of the device.
void rt_session_sums_end(RtSession *s);

// ---- monitor.c ----

// After an evaluation: updates the best values of metrics; then the plateaus,
// and saves a checkpoint if it is the best.  Repeated, they change nothing.
void rt_session_update_best(const RtSession *s);
void rt_session_monitor(RtSession *s);

// The step of the best evaluation by a metric, and its value; -1: none.
int64_t rt_session_best(const RtSession *s, const char *metric, double *value);

// Whether evaluations have not improved a metric for so long.
bool rt_session_stalled(const RtSession *s, const char *metric,
                        RtTime patience);

// ---- resume.c ----

// Saves a checkpoint unless this step has one or a retry is not yet due.
// Failures are warnings for a minute; the last checkpoint is retried.
bool rt_session_save(RtSession *s, bool last, RtError *e);

// Loads the states and the progress of the checkpoint to resume.
bool rt_session_load(RtSession *s, RtError *e);

// ---- profile.c ----

// Chooses the traced steps, once the start of the run is known, and creates the
// file.
bool rt_session_trace_plan(RtSession *s, RtError *e);

// Begins or ends the trace before a step.
bool rt_session_trace_step(RtSession *s, RtError *e);
bool rt_session_trace_end(RtSession *s, RtError *e);

// Adds a span of the main loop since `begin`, in rt_seconds(), if traced.
// number: of the step; -1: none.
void rt_session_trace_since(const RtSession *s, const char *name, double begin,
                            int64_t number);

// Adds the spans of taking a batch.
void rt_session_trace_batch(const RtSession *s, double begin,
                            const RtSubmitted *done);

// ---- record.c ----

// Writes the model file and settings.json to the run's folder.
void rt_record_begin(RtSession *s);
// Writes settings.json again with the final state: "finished", "interrupted",
// "diverged", "failed" or "initialized".
void rt_record_end(const RtSession *s, const char *state);

// ---- diverge.c ----

// Replays the run from its last checkpoint, and prints the first value that is
// not finite.
void rt_session_find_anomaly(RtSession *s);

#endif
