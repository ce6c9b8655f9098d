// Plot: draws rows of metrics as curves in SVG.
#ifndef TOOLS_PLOT_H
#define TOOLS_PLOT_H

#include "tools/tools.h"

// ---- rows.c ----

typedef struct {
    double x, y; // y: NaN where the row has no finite number
} PlotPoint;

// The numbers under one key of the rows of one split, in the order of the rows.
typedef struct {
    const char *metric; // loss, accuracy, lr ...
    const char *split;  // train, test, validation, step; "": none
    PlotPoint *point;
    int count;
} PlotSeries;

// The rows of one run.
typedef struct {
    const char *name; // the path, without /metrics.jsonl or .jsonl
    PlotSeries *series;
    int count;
} PlotRun;

// Reads rows of --metrics; a folder stands for its metrics.jsonl.  x is epoch,
// step or time.  Returns an exit status, after a message for a mistake.  Prints
// a warning for lines that are not rows.
int curves_read(Arena *a, const Arguments *arguments, const char *path,
                const char *x, PlotRun *out);

// The file with the rows of a run.
const char *run_file(Arena *a, const char *path);

// Whether `out` is a file of one of these runs, after a message if it is.
bool run_is_out(Arena *a, const Arguments *arguments, const char *const *path,
                int count, const char *out);

// The series of a metric and a split; NULL for none.
const PlotSeries *run_series(const PlotRun *r, const char *metric,
                             const char *split);
bool run_has(const PlotRun *r, const char *metric);

// ---- curves.c ----

// A drawing: a chart for each metric, below one another.
typedef struct {
    const PlotRun *run;
    int num_runs;
    const char *const *metric;
    int num_metrics;
    const char *x;
    bool powers; // x is on a scale of powers of two
} Curves;

// Adds an <svg> element.  Its colours suit light and dark pages.
void curves_add(Text *t, const Curves *c);

// Adds text escaped for XML; characters that XML does not allow become '?'.
void xml_add(Text *t, const char *s);

// ---- confusion.c ----

// Adds the last confusion matrix of a run, or of each of its outputs, as a
// table, if its rows have one of a drawable size.
void confusion_add(Arena *a, Text *t, const char *path);

// ---- plot.c ----

// Adds the curves of the runs that --metrics names, of loss, accuracy and
// learning rate, and confusion matrices; nothing where there is no --metrics.
// Returns an exit status.
int plot_add(Arena *a, const Arguments *arguments, Text *t);

#endif
