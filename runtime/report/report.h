// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Report: what a trainer tells of itself and of its run.
#ifndef RUNTIME_REPORT_H
#define RUNTIME_REPORT_H

#include "runtime/report/trace.h"
#include "runtime/runtime.h"

// ---- launch_times.c ----

// What a launch took in all the steps of a trace.
typedef struct {
    RtSpan span; // the first of them
    double seconds;
    int64_t times;
} RtLaunchTime;

// Those of training, longest first; the caller frees them.  NULL: no memory.
RtLaunchTime *rt_launch_times(const RtTrace *t, const RtPlan *plan, int *count);
// Prints the first of them, and what all others took.
void rt_launch_times_print(FILE *f, const RtLaunchTime *l, int count);

// ---- list.c ----

// Prints what each step of a plan launches, or all of the plan with what
// --resident says; false where stdout cannot be written.
bool rt_list_kernels(const RtPlan *plan);
bool rt_list_plan(const RtPlan *plan, const char *resident);

// ---- budget.c ----

// Seconds of the run by what they went to.  What the device does and what the
// host does may go on at the same time.
typedef struct {
    double start, evaluation, checkpoints, total;
    double start_part[RT_NUM_STARTS];     // what start went to
    RtTimes device;                       // its work in training
    double waiting, copying, device_wait; // of the host: for data, to give it,
                                          // for the device
    double loading;                       // of all loading threads together
    int loaders;
    double trained; // samples
    // Of library calls in training, by their type, and how many of them the
    // device could do in a second at most; 0: not known.
    double flops[RT_NUM_FLOATS], peak[RT_NUM_FLOATS];
    int64_t step;
} RtBudget;

// Prints it as one line, or as a table, and writes it as a row.  unit: what a
// sample is called, "images".
void rt_budget_line(FILE *f, const RtBudget *b, const char *unit);
void rt_budget_print(FILE *f, const RtBudget *b, const char *unit);
void rt_budget_write(FILE *f, const RtBudget *b);
// Digits that a rate is told with: of slow steps one more, so that they are not
// none.
int rt_rate_digits(double rate);

// ---- report.c ----

typedef enum { RT_ON_TEST, RT_ON_TRAIN, RT_ON_VALIDATION } RtOn;

typedef struct {
    bool train;    // otherwise an evaluation
    RtOn on;       // what an evaluation is of
    bool stops;    // it ends the run
    bool interval; // of an epoch's row: some steps of it
    double epoch, epochs;
    int64_t step, steps, samples;
    double loss;
    double accuracy, top5, perplexity; // NAN: not measured
    double lr, scale;                  // of the loss; NAN: it has none
    double skipped;                    // steps; NAN where there is no scale
    double seconds, waited;
    double elapsed, left; // seconds: since the program started; to the end of
                          // the run, NAN: not known yet
    double within; // the share of the epoch, or of a run shorter than one
} RtRow;

// What was loaded by a trainer that only loads.
typedef struct {
    int64_t step, batches, samples, bytes; // bytes: of samples, in their slots
    double epochs, seconds;
    double opening; // seconds before that in which the data set was opened
    double busy;    // seconds of all threads together
    int batch, threads;
    bool from_files; // images are decoded when they are loaded
} RtLoadStats;

typedef struct RtReport RtReport;

// folder: of the run, for metrics.jsonl and log.txt; NULL: they are not
// written. from: the step that it resumes at, whose later rows are replaced;
// -1: none.
RtReport *rt_report_open(const RtOptions *o, const char *folder,
                         const char *unit, int64_t from, RtError *e);
void rt_report_print(RtReport *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void rt_report_warn(RtReport *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void rt_report_progress(RtReport *r, const RtRow *row);
void rt_report_row(RtReport *r, const RtRow *row);
void rt_report_result(RtReport *r, const RtRow *test);
void rt_report_launch_times(RtReport *r, const RtLaunchTime *l, int count);
// Prints the file that has the weights: a run's last line, behind its result,
// or to the log where it has none.
void rt_report_weights(RtReport *r, const char *path, bool after_result);
// Prints it, as --time asks, and adds it to the metrics.
void rt_report_budget(RtReport *r, const RtBudget *b);
// The same of what was loaded.
void rt_report_load_stats(RtReport *r, const RtLoadStats *l);
// Closes the metrics files; false if a row of --metrics or the result was lost.
bool rt_report_close(RtReport *r);

#endif
