// Runs: whole runs of a trainer, each in its own process.  Output goes to the
// files out and err.
#ifndef TESTS_RUNTIME_RUNS_H
#define TESTS_RUNTIME_RUNS_H

#include "runtime/rt.h"

#include <sys/types.h>

pid_t run_start(const RtTrainer *t, char *const *arguments);
// Its exit status, or 128 and the signal that ended it.
int run_finish(pid_t child);
int run_whole(const RtTrainer *t, char *const *arguments);

#define RUN(t, ...)                                                            \
    run_whole((t), (char *[]){"--data", "synthetic", "--threads=1",            \
                              __VA_ARGS__, NULL})
#define START(t, ...)                                                          \
    run_start((t), (char *[]){"--data", "synthetic", "--threads=1",            \
                              __VA_ARGS__, NULL})

// Whether a file contains a text; if not, prints the file.  The number of
// occurrences.
bool run_says(const char *file, const char *text);
int run_times(const char *file, const char *text);

// Loss and accuracy of every row of a file, without anything that depends on
// time.
void run_rows(const char *name, char *to, size_t room);

bool files_same(const char *a, const char *b);

// A plan in which a step replaces those of a kind; steps[] has room for all.
RtPlan plan_with(const RtPlan *plan, RtStep *steps, RtStepKind kind,
                 void (*run)(RtDevice *d));

// The value of an integer state.
int32_t run_state(const RtPlan *plan, RtDevice *d, const char *name);

#endif
