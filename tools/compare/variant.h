// Variant: a variant of a model, built and run.
#ifndef TOOLS_VARIANT_H
#define TOOLS_VARIANT_H

#include "tools/compare/parts.h"
#include "tools/compare/snapshot.h"
#include "tools/process.h"
#include "tools/rows.h"
#include "tools/scratch.h"
#include "tools/trainer.h"

typedef struct {
    const char *name, *options; // "a"; as given
    Part part;                  // removed part
    Arguments arguments;
    Program *program;
    TrainerText text;
    const Plan *plan; // of the device
    Cost cost;        // of a step, with all its batches
    const char *trainer;
    Snapshot snapshot;
    Series loss, times; // milliseconds
    Series run_times;   // median of each run; none for a single run
} Variant;

// How variants are run.
typedef struct {
    Scratch scratch;
    const char *folder;        // its path, for their files
    const char *data, *device; // data NULL: of the model file
    const char *validation;    // held-out samples; NULL: none
    const char *launcher;      // that starts the ranks; NULL: one process
    int64_t steps, batch;
} Runs;

// Parses the options of a variant, after those of both; loads and builds its
// model.  Returns an exit status, after a message if it failed.
int variant_build(Arena *a, Variant *v, const Arguments *both,
                  const Runs *runs);

// Writes the initial state of both variants to *path.
int variant_start(Arena *a, Variant *v, const Runs *runs, const char **path);

// Records the first step from that state: all of it or, beside another
// variant's snapshot, what both store.  Then runs all steps.  Without a state,
// `start` being NULL, the run begins as the recipe says.
int variant_look(Arena *a, Variant *v, const Runs *runs, const char *start,
                 const Snapshot *beside);
int variant_run(Arena *a, Variant *v, const Runs *runs, const char *start);

// Runs while `wanted` is true; variant_rows is the file of its rows.  A
// diverged run is no failure.
int variant_watch(Arena *a, Variant *v, const Runs *runs, Wanted *wanted,
                  void *whose);
const char *variant_rows(Arena *a, const Variant *v, const Runs *runs);

// ---- runs.c ----

// The training data: those of --data, else so many generated batches; with a
// batch of 0, the default number.
enum { DRAWN_BATCHES = 32 };
const char *runs_data(Arena *a, const Arguments *arguments, int64_t batch,
                      int64_t batches);

// Makes the folder and sets the rest from the command line.  False, after a
// message, if there can be no folder.
bool runs_open(Arena *a, const Arguments *arguments, int64_t batch, Runs *out);
void runs_close(const Runs *runs); // removes the folder

#endif
