// A folder of TMPDIR for what nobody wants when a command has ended.
#ifndef TOOLS_SCRATCH_H
#define TOOLS_SCRATCH_H

#include "tools/tools.h"

#include <sys/types.h>

typedef struct {
    const char *folder;
    pid_t guard; // removes the folder if nobody else does; -1: none
    int end;     // of the guard's pipe
} Scratch;

// false when there can be none, which has been said on stderr.
bool scratch_open(Arena *a, const Arguments *arguments, Scratch *out);

void scratch_close(const Scratch *s); // removes the folder
void scratch_keep(const Scratch *s);  // leaves it to be looked at

#endif
