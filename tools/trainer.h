// The text of a trainer, from a program.
#ifndef TOOLS_TRAINER_H
#define TOOLS_TRAINER_H

#include "tools/tools.h"

typedef struct {
    const char *name; // of the files, without extension
    Text c_file, cu_file;
    const Plan *plan; // for CUDA, which memory is limited for
} TrainerText;

// Plans the program for both devices and writes its two files.
TrainerText trainer_text(Arena *a, const Program *p,
                         const Arguments *arguments);

#endif
