// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Session: a run under way, which the files of this folder share.
#ifndef RUNTIME_SESSION_H
#define RUNTIME_SESSION_H

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/report/nvtx.h"
#include "runtime/session/run.h"
#include "runtime/watch/watch.h"

#include <stdio.h>

typedef struct RtSession {
    const RtRun *run;
    const RtPlan *plan;
    RtDevice *device;
    RtReport *report;
    const char *report_folder; // of the run's files; NULL: it writes none
    RtCheckpoint *checkpoint;
    RtRetention retention;
    RtFeeder train, eval; // what gives them batches
    int64_t epoch_batches;
    RtProgress at;
    RtBudget budget;
    int64_t *batches; // of training, that each step of the plan took
    RtRow test;       // the last evaluation
    int64_t saved;    // the step of the last checkpoint; -1: none yet
    int failures;     // of checkpoints, one after another
    double failing_since, try_at; // the first of them, and when the next may be
    int wait;                     // seconds from a failure to try_at
    bool data_failed;             // its data have failed
    bool loader_stuck;   // a loader that was closed has threads in files
    bool snapshot_taken; // a snapshot has been taken
    FILE *times;         // of steps; NULL: nobody asked
    int times_lost;      // errno where one could not be written
    RtAnomaly *anomaly;  // NULL: a step is not looked at
    RtKernelReplay *kernel_replay; // NULL: nor is a kernel of it
    double began;          // when the first step was taken, in this program
    int64_t began_at;      // the step before
    int64_t resumes;       // how often the run has resumed
    double elapsed_before; // seconds until it resumed
    double saved_at;       // when the last checkpoint was written, or it began
    // Since the last row:
    double since, waited, paused; // when it began; seconds lost
    int64_t samples;
    double shown;     // when progress was last shown
    RtMetrics logged; // what rows of steps have told of the epoch
    // Rows whose numbers have been asked for, in a ring, and how many have been
    // told.
    RtRow pending_row[RT_MOST_ASKED];
    int64_t requested, reported;
    int64_t traced_from, traced_to; // the steps of a trace
    bool traces, traced;            // this is one of them; it is written
    char loaded[RT_LOADED_BYTES];   // what --init has loaded, in lines
} RtSession;

// All functions below that return bool are false with the reason in *e.

// ---- input_pipeline.c: where batches come from ----

// Opens the loader of the test data, or of what is evaluated in its place.
bool rt_session_open_eval(RtSession *s, RtError *e);

// What loads the training data, from the batch of step p->step to the end.
RtLoaderConfig rt_session_plan_train(const RtRun *run, const RtProgress *p);

// Opens the loader of the training data, from the batch of step s->at.step on.
bool rt_session_open_train(RtSession *s, RtError *e);
// Closes it, or leaves it, which is remembered.
void rt_session_close_train(RtSession *s);

// Takes the first samples through the step that collects what parameters start
// from, if the plan has one.
bool rt_session_collect(RtSession *s, RtError *e);

// ---- step.c ----

// Before averaging begins, averages are the weights, for who looks at them.
void rt_session_average_early(const RtSession *s);

// Makes the states that a run starts from.
bool rt_session_begin(RtSession *s, RtError *e);

// Takes the batches of one update, and counts it.  The device may not be done.
bool rt_session_step(RtSession *s, RtError *e);

// Takes the step before from the states that it had.
bool rt_session_step_again(RtSession *s, const char *before, RtError *e);

// ---- verify.c ----

// Whether the next step is one of those that are taken twice.
bool rt_session_verifies(const RtSession *s);
// Takes the step so; false too where the two differ.
bool rt_session_verify(RtSession *s, RtError *e);

// ---- rows.c: what a run tells of itself ----

// A row of the steps so far, with the numbers of m; of training or evaluation.
RtRow rt_session_row(const RtSession *s, bool train, const RtMetrics *m);

// Begins the time and the samples of a row.
void rt_session_begin_row(RtSession *s);

// Whether the loss of a row is not finite, or its scale has come to an end:
// EXIT_DIVERGED in *e then.
bool rt_session_diverged(const RtRow *row, RtError *e);

// The row of the training so far, for which the device is waited for; false if
// it diverged.
bool rt_session_measure(const RtSession *s, RtRow *row, RtError *e);

// Tells the rows that are out, in their order, until at most `most` are left or
// the numbers of the next are not there, which `wait` waits for; false if it
// diverged.
bool rt_session_poll_rows(RtSession *s, bool wait, int64_t most, RtError *e);

// After a step: asks for a row where --log-every has one due, or half a second
// after the last progress; tells the row of an epoch that is over.
bool rt_session_log_steps(RtSession *s, RtError *e);
bool rt_session_show_progress(RtSession *s, RtError *e);
bool rt_session_end_epoch(RtSession *s, RtError *e);

// ---- short_batch.c ----

// False where a last batch is short and the model needs whole ones; warns where
// the statistics of batch_norm include what fills it up.
bool rt_session_check_short_batch(const RtRun *run, bool collects, RtError *e);

// ---- evaluate.c ----

// Waits for the device and adds what it spent to the time budget.
void rt_session_add_device_time(RtSession *s);

// The number of a row that `stop` names.
double rt_session_metric(const RtRow *row, const char *name);

// Evaluates, tells the row and leaves it in s->test; training finds its states
// as they were.
bool rt_session_evaluate(RtSession *s, RtError *e);

// ---- resume.c ----

// Saves a checkpoint unless this step has one, or one has failed a moment ago.
// Failures are warnings for a minute; the last is tried a few times.
bool rt_session_save(RtSession *s, bool last, RtError *e);

// Reads the states and the progress of the checkpoint that options ask for.
bool rt_session_load(RtSession *s, RtError *e);

// ---- profile.c: the steps that a trace shows ----

// Says which steps they are, once it is known where the run begins, and makes
// the file.
bool rt_session_trace_plan(RtSession *s, RtError *e);

// Before a step: the trace begins or ends there.
bool rt_session_trace_step(RtSession *s, RtError *e);
bool rt_session_trace_end(RtSession *s, RtError *e);

// What the loop did since `begin`, in seconds of rt_seconds(); nothing where no
// trace is taken.  number: of the step; -1: none.
void rt_session_trace_since(const RtSession *s, const char *name, double begin,
                            int64_t number);

// What taking a batch was, one after another.
void rt_session_trace_batch(const RtSession *s, double begin,
                            const RtSubmitted *done);

// ---- record.c ----

// Writes the model file and settings.json into the run's folder.
void rt_record_begin(RtSession *s);
// Writes settings.json again, with how the run has ended: "finished",
// "interrupted", "diverged", "failed" or "initialized".
void rt_record_end(const RtSession *s, const char *state);

// ---- diverge.c ----

// Goes back to where the run last was saved, and says what is first not finite.
void rt_session_find_anomaly(RtSession *s);

#endif
