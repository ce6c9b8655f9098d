// One of the two ways to build a model that are compared: built, and run.
#ifndef TOOLS_SIDE_H
#define TOOLS_SIDE_H

#include "tools/compare/parts.h"
#include "tools/compare/snapshot.h"
#include "tools/process.h"
#include "tools/rows.h"
#include "tools/scratch.h"
#include "tools/trainer.h"

typedef struct {
    const char *name, *options; // "a"; as they were given
    Part part;                  // that it goes without
    Arguments arguments;
    Program *program;
    TrainerText text;
    const Plan *plan; // of the device
    Cost cost;        // of a step, with all its batches
    const char *trainer;
    Snapshot snapshot;
    Series loss, times; // milliseconds
    Series run_times;   // the median of each run; none where it ran once
} Side;

// How sides are run.
typedef struct {
    Scratch scratch;
    const char *folder;        // its: for what they leave
    const char *data, *device; // data NULL: the model file's
    const char *validation;    // what is held out; NULL: nothing
    int64_t steps, batch;
} Runs;

// Takes the options of a side apart, after those that both have, and loads and
// builds the model with them.  Returns an exit status; what went wrong has been
// said.
int side_build(Arena *a, Side *s, const Arguments *both, const Runs *runs);

// Writes the state that both sides start from; *path is where.
int side_start(Arena *a, Side *s, const Runs *runs, const char **path);

// Looks at the first step from that state, of which all is read, or with the
// snapshot of another side what both leave; then takes all steps.  Without a
// state, `start` being NULL, a run begins as the recipe says.
int side_look(Arena *a, Side *s, const Runs *runs, const char *start,
              const Snapshot *beside);
int side_run(Arena *a, Side *s, const Runs *runs, const char *start);

// Begins a run of which as many rows of steps are wanted as `wanted` says, and
// the file that they go to.  That it diverges is no failure.
int side_watch(Arena *a, Side *s, const Runs *runs, Wanted *wanted,
               void *whose);
const char *side_rows(Arena *a, const Side *s, const Runs *runs);

// ---- runs.c ----

// What to train on: where the command line names nothing, so many batches that
// are drawn; with a batch of 0, as many as a trainer draws by itself.
enum { DRAWN_BATCHES = 32 };
const char *runs_data(Arena *a, const Arguments *arguments, int64_t batch,
                      int64_t batches);

// Makes the folder; the rest is as the command line says, or as it mostly is.
// false when there can be none, which has been said on stderr.
bool runs_open(Arena *a, const Arguments *arguments, int64_t batch, Runs *out);
void runs_close(const Runs *runs); // removes the folder

#endif
