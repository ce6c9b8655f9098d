// Runs: folders of runs, as sinter runs lists them.
#ifndef TOOLS_RUNS_H
#define TOOLS_RUNS_H

#include "tools/rows.h"
#include "tools/tools.h"

typedef struct {
    const char *path;
    const char *name;     // below the listed folder, as shown
    const char *text;     // settings.json
    const char *settings; // --set and options
    const char *started, *state;
    double epochs, epochs_done, loss, accuracy, elapsed;
    int64_t bytes;
} RunRecord;

typedef struct {
    RunRecord *run;
    int count;
} RunList;

// ---- read.c ----

// Reads the run in a folder; false if it has none.
bool run_read(Arena *a, const char *path, const char *name, RunRecord *r);

// Adds the runs in a folder, shown as name, and in its folders.
void runs_find(Arena *a, const char *path, const char *name, int depth,
               RunList *to);

// The value of a key in settings.json, as text; NULL if there is none.
const char *record_value(Arena *a, const char *text, const char *key);

// Its metrics.jsonl; NULL if it cannot be read.
const Source *run_rows(Arena *a, const RunRecord *r);

// The path of a run that is relative to the current folder, or to runs/.
const char *run_path(Arena *a, const char *name);

// ---- runs.c ----

// Formats a number; NAN is -. format: digits behind the point, then a suffix,
// as "2 %".
const char *number_shown(Arena *a, const char *format, double value);
const char *time_shown(Arena *a, double seconds);
const char *epochs_shown(Arena *a, const RunRecord *r);

void runs_json(Text *t, const RunList *runs);

// ---- diff.c ----

// Compares the runs of both operands.  Returns an exit status.
int runs_compare(Arena *a, const Arguments *arguments);

#endif
