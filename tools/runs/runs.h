// Runs: what trainers leave in their folders, as sinter runs shows it.
#ifndef TOOLS_RUNS_H
#define TOOLS_RUNS_H

#include "tools/rows.h"
#include "tools/tools.h"

typedef struct {
    const char *path;
    const char *name;     // below the folder that is listed, as it is shown
    const char *text;     // settings.json
    const char *settings; // what the user chose: --set and options
    const char *started, *state;
    double epochs, epochs_done, loss, accuracy, elapsed;
    int64_t bytes;
} RunRecord;

typedef struct {
    RunRecord *run;
    int count;
} RunList;

// ---- read.c ----

// Whether the folder holds a run, which is then in *r.
bool run_read(Arena *a, const char *path, const char *name, RunRecord *r);

// Adds the runs in a folder, which is called name, and in its folders.
void runs_find(Arena *a, const char *path, const char *name, int depth,
               RunList *to);

// The value of a key in settings.json as it is written there; NULL: no such.
const char *record_value(Arena *a, const char *text, const char *key);

// Its metrics.jsonl; NULL: it has none that can be read.
const Source *run_rows(Arena *a, const RunRecord *r);

// ---- runs.c ----

// Numbers for people; NAN is -.  format: digits behind the point, and what
// follows the number, "2 %".
const char *number_shown(Arena *a, const char *format, double value);
const char *time_shown(Arena *a, double seconds);
const char *epochs_shown(Arena *a, const RunRecord *r);

void runs_json(Text *t, const RunList *runs);

// ---- versus.c ----

// Compares the runs of both operands.  Returns an exit status.
int runs_compare(Arena *a, const Arguments *arguments);

#endif
