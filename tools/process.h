// Process: runs programs without a shell.
//
// A signal that interrupts this program while they run interrupts them, and
// ends this program once all have ended.
#ifndef TOOLS_PROCESS_H
#define TOOLS_PROCESS_H

#include "base/arena.h"

#include <stdbool.h>
#include <sys/types.h>

// The words of a command line.
typedef struct {
    Arena *a;
    const char **word; // ends with NULL
    int count;
} Words;

void words_add(Words *w, const char *word);
void words_add_all(Words *w, const char *const *list); // ends with NULL
void words_split(Words *w, const char *text);          // at its spaces

typedef struct {
    Words words;
    const char *folder;    // that it runs in
    const char *out, *log; // the files of stdout and stderr, which may be the
                           // same; NULL: ours
    pid_t id;              // 0: it does not run
    int status;            // that it exited with, or one of those below
} Process;

// The status of a program that a signal ended, as in a shell: 128 and the
// number.
enum { BY_SIGNAL = 128 };
// "ended with status 3", "was ended by signal 9, Killed".
const char *ended_how(Arena *a, int status);

// The number of processors that this process may use.
int processors(void);

// It has not started, with errno set; `wanted` has ended it.
enum { NOT_STARTED = -1, ENDED = -2 };

// Runs all until they have ended, at most processors() at a time.
void processes_run(Process *p, int count);

// Runs one; returns its status.
int program_run(const Words *words, const char *folder, const char *out,
                const char *log);

// Runs one while `wanted` is true, which is called POLLS_A_SECOND times a
// second and after the end.
enum { POLLS_A_SECOND = 10 };
typedef bool Wanted(void *whose);
int program_run_while(const Words *words, const char *folder, const char *out,
                      const char *log, Wanted *wanted, void *whose);

#endif
