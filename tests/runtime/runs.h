// Runs: whole runs of a trainer, each in a process of its own as a person would
// start it.  What it prints goes to the files out and err.
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

// Whether a file has a text in it, which is shown if not; and how often.
bool run_says(const char *file, const char *text);
int run_times(const char *file, const char *text);

// The loss and accuracy of every row of a file, without what depends on time.
void run_rows(const char *name, char *to, size_t room);

bool files_same(const char *a, const char *b);

// A plan with another step in the place of those of a kind; steps[] is for as
// many as it has.
RtPlan plan_with(const RtPlan *plan, RtStep *steps, RtStepKind kind,
                 void (*run)(RtDevice *d));

// A state that is a whole number.
int32_t run_state(const RtPlan *plan, RtDevice *d, const char *name);

#endif
