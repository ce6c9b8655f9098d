// Programs that are run, without a shell.
#ifndef TOOLS_PROCESS_H
#define TOOLS_PROCESS_H

#include "base/arena.h"

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

// Starts a program in a folder, with stdout going to the file `out` and stderr
// to the file `log`, which may be the same; NULL: to ours.  -1, and errno, when
// it does not start.
pid_t program_start(const Words *words, const char *folder, const char *out,
                    const char *log);

// -1 for what has not started, else its exit status.
int program_wait(pid_t child);

// The same of a program that may take hours: what interrupts us interrupts it,
// and ends us once it has ended.
int program_wait_long(pid_t child);

// The exit status of one that has started.  LATE: it took longer, and was
// ended.
enum { LATE = -2 };
int program_wait_most(pid_t child, int seconds);

#endif
