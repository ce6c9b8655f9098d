// Scratch: a folder in TMPDIR, or a file, that is removed when a command ends.
#ifndef TOOLS_SCRATCH_H
#define TOOLS_SCRATCH_H

#include "tools/tools.h"

#include <sys/types.h>

typedef struct {
    const char *path;
    bool is_folder;
    pid_t guard; // a process that removes it after a crash; -1: none
    int end;     // of the guard's pipe
} Scratch;

// Makes a new folder; false, after a message, if it cannot.
bool scratch_open(Arena *a, const Arguments *arguments, Scratch *out);

// Makes a new file beside another one, whose name ends with `end`; false as
// above.
bool scratch_file(Arena *a, const Arguments *arguments, const char *beside,
                  const char *end, Scratch *out);

// Removes a folder inside one, with its contents, if there is one.
void folder_remove(const char *path);

void scratch_close(const Scratch *s); // removes it
void scratch_keep(const Scratch *s);  // leaves it to be looked at

#endif
