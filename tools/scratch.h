// A folder of TMPDIR, or a file, that nobody wants when a command has ended.
#ifndef TOOLS_SCRATCH_H
#define TOOLS_SCRATCH_H

#include "tools/tools.h"

#include <sys/types.h>

typedef struct {
    const char *path;
    bool is_folder;
    pid_t guard; // removes it if nobody else does; -1: none
    int end;     // of the guard's pipe
} Scratch;

// A new folder; false when there can be none, which has been said on stderr.
bool scratch_open(Arena *a, const Arguments *arguments, Scratch *out);

// A new file beside another one, whose name ends with `end`; false as above.
bool scratch_file(Arena *a, const Arguments *arguments, const char *beside,
                  const char *end, Scratch *out);

// Removes a folder in one, and all that it holds; there may be none.
void folder_remove(const char *path);

void scratch_close(const Scratch *s); // removes it
void scratch_keep(const Scratch *s);  // leaves it to be looked at

#endif
