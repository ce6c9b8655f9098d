// Show: stages of a model.
#ifndef TOOLS_SHOW_H
#define TOOLS_SHOW_H

#include "tools/device.h"
#include "tools/trainer.h"

// A model, with the plan and the trainer once they are made.
typedef struct {
    Arena *a;
    const Arguments *arguments;
    const char *file;
    const Program *p;
    const Plan *plan;
    TrainerText *trainer;
} Show;

typedef struct View View;

// Writes a stage.  Returns an exit status, after a message if it failed.
typedef int ViewWriter(Show *s, const View *stage, Text *out);

struct View {
    const char *name, *suffix, *last;
    bool dumped;
    ViewWriter *write;
    const char *what; // NULL: another form of the stage before
};

// ---- show.c ----

const Plan *show_plan(Show *s);
const TrainerText *show_trainer(Show *s);

// The requested step, planned.  NULL and an exit status, after a message, if
// the program has none of that name.
const Step *show_step(Show *s, int *status);

#endif
