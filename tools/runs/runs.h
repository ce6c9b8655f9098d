// Runs: what trainers leave in their folders, as sinter runs shows it.
#ifndef TOOLS_RUNS_H
#define TOOLS_RUNS_H

#include "tools/tools.h"

typedef struct {
    const char *path, *name; // name: below the folder that is listed
    const char *text;        // settings.json
    const char *settings;    // what the user chose: --set and options
    const char *started, *state;
    double epochs, epochs_done, loss, accuracy, elapsed;
    int64_t bytes;
} Run;

typedef struct {
    Run *run;
    int count;
} Runs;

// ---- read.c ----

enum { MOST_ROW = 4096 };

// How rows of metrics begin.
#define TRAIN_ROW "{\"split\":\"train\""
#define TEST_ROW "{\"split\":\"test\""

// Whether the folder holds a run, which is then in *r.
bool run_read(Arena *a, const char *path, const char *name, Run *r);

// Adds the runs in a folder, which is called name, and in its folders.
void runs_find(Arena *a, const char *path, const char *name, int depth,
               Runs *to);

// The value of a key in settings.json as it is written there; NULL: no such.
const char *record_value(Arena *a, const char *text, const char *key);

// The number behind "key": in a row of metrics; NAN: there is none.
double row_number(const char *row, const char *key);

// ---- runs.c ----

// Numbers for people; NAN is -.  format: digits behind the point, and what
// follows the number, "2 %".
const char *number_shown(Arena *a, const char *format, double value);
const char *time_shown(Arena *a, double seconds);
const char *epochs_shown(Arena *a, const Run *r);

void runs_json(Text *t, const Runs *runs);

// ---- versus.c ----

// Compares the runs of both operands.  Returns an exit status.
int runs_compare(Arena *a, const Arguments *arguments);

#endif
