// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Report: the output of a trainer about itself and its run.
#ifndef RUNTIME_REPORT_H
#define RUNTIME_REPORT_H

#include "base/metrics.h"
#include "runtime/report/trace.h"
#include "runtime/runtime.h"

// ---- launch_times.c ----

// The time of a launch in all steps of a trace.
typedef struct {
    RtSpan span; // the first one
    double seconds;
    int64_t times;
} RtLaunchTime;

// The launches of training, longest first; the caller frees them.  NULL: no
// memory.
RtLaunchTime *rt_launch_times(const RtTrace *t, const RtPlan *plan, int *count);
// Prints the first ones, and the sum of all others.
void rt_launch_times_print(FILE *f, const RtLaunchTime *l, int count);

// ---- list.c ----

// Prints the launches of each step, or the whole plan with the effect of
// --resident; false if stdout cannot be written.
bool rt_list_kernels(const RtPlan *plan);
bool rt_list_plan(const RtPlan *plan, const char *resident);

// ---- budget.c ----

// Seconds of the run by parts.  Device and host may work in parallel.
typedef struct {
    double start, evaluation, checkpoints, total;
    double start_part[RT_NUM_STARTS]; // parts of start
    RtTimes device;                   // in training
    double waiting, copying,
        device_wait; // of the host: for data, for copies, for the device
    double ranks;    // from the end of a rank's shards to that of their sums
    double loading;  // of all loading threads together
    int loaders;
    double trained; // samples
    // By type: flops of library calls in training; the peak, 0: unknown.
    double flops[RT_NUM_FLOATS], peak[RT_NUM_FLOATS];
    int64_t step;
} RtBudget;

// Prints one line or a table, and writes a row. unit: the name of samples, such
// as "images".
void rt_budget_line(FILE *f, const RtBudget *b, const char *unit);
void rt_budget_print(FILE *f, const RtBudget *b, const char *unit);
void rt_budget_write(FILE *f, const RtBudget *b);
// Decimals of a printed rate: 1 below 10 per second, else 0.
int rt_rate_digits(double rate);

// ---- report.c ----

typedef enum { RT_ON_TEST, RT_ON_TRAIN, RT_ON_VALIDATION } RtEvalSet;

// A confusion matrix, [classes, classes]: rows are labels.
typedef struct {
    const char *output; // its name; "": it has none
    double *count;
    int64_t classes;
} RtConfusion;

typedef struct {
    bool train;    // else an evaluation
    RtEvalSet on;  // data of an evaluation
    bool stops;    // it ends the run
    bool interval; // of some steps, not of the whole epoch
    double epoch, epochs;
    int64_t step, steps, samples;
    double metric[NUM_METRICS]; // NAN: not measured
    // The values of RtTrainer.output_metric, and a matrix for each named
    // output, or one.  NULL, 0: none.
    const double *measured;
    const RtConfusion *confusion;
    int num_confusions;
    double lr, scale;                  // of the loss; NAN: none
    double skipped;                    // steps; NAN without a loss scale
    double seconds, waited;
    double elapsed, left; // seconds: since the program started; to the end of
                          // the run, NAN: unknown
    double within;        // progress within the epoch, or a shorter run; 0 to 1
} RtRow;

// ---- csv.c: rows as text with commas, under a line of names ----

bool rt_csv_named(const char *path); // whether its name ends with .csv
void rt_csv_begin(FILE *f, const RtTrainer *t);
void rt_csv_row(FILE *f, const RtTrainer *t, const RtRow *row,
                double rate);             // samples a second
const char *rt_csv_step(const char *row); // its step; NULL: it has none

// Statistics of --load-only.
typedef struct {
    int64_t step, batches, samples, bytes; // bytes: of samples, as delivered
    double epochs, seconds;
    double opening; // seconds of opening the data set
    double busy;    // seconds of all threads together
    int batch, threads;
    bool from_files; // images are decoded while loading
} RtLoadStats;

typedef struct RtReport RtReport;

// folder: of the run, for metrics.jsonl and log.txt; NULL: neither. from: the
// step at which a run resumes; later rows are replaced; -1: none.
RtReport *rt_report_open(const RtOptions *o, const char *folder,
                         const char *unit, const RtTrainer *trainer,
                         int64_t from, RtError *e);
// Whether a metric is one of several outputs, OUTPUT.METRIC in rows.
bool rt_metric_has_output(const RtOutputMetric *m);
void rt_report_print(RtReport *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void rt_report_warn(RtReport *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// The files of --tensorboard; NULL: none.
struct RtEvents *rt_report_events(const RtReport *r);
// Whether histograms are written, and the histogram of a tensor.
bool rt_report_histograms(const RtReport *r);
void rt_report_histogram(RtReport *r, const char *name, int64_t step,
                         const float *value, int64_t count);
void rt_report_progress(RtReport *r, const RtRow *row);
void rt_report_row(RtReport *r, const RtRow *row);
void rt_report_result(RtReport *r, const RtRow *test);
void rt_report_launch_times(RtReport *r, const RtLaunchTime *l, int count);
// Prints the path of the weights: the last line of a run, after its result, or
// to the log without one.
void rt_report_weights(RtReport *r, const char *path, bool after_result);
// Prints the budget, as --time requests, and adds it to the metrics.
void rt_report_budget(RtReport *r, const RtBudget *b);
void rt_report_load_stats(RtReport *r, const RtLoadStats *l);
// Closes the metrics files; false if a row of --metrics or the result was lost.
bool rt_report_close(RtReport *r);

#endif
