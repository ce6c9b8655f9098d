// What is shown of a model: stages, and what they are made from.
#ifndef TOOLS_SHOW_H
#define TOOLS_SHOW_H

#include "tools/device.h"
#include "tools/trainer.h"

enum { MODEL_BYTES = 1 << 20 };

// A model, and what has been made of it so far: plan and trainer are made when
// they are asked for.
typedef struct {
    Arena *a;
    const Arguments *arguments;
    const char *file;
    const Program *p;
    const Plan *plan;
    TrainerText *trainer;
} Show;

typedef struct View View;

// Writes a stage; returns an exit status, and has said what is wrong.
typedef int ViewWriter(Show *s, const View *stage, Text *out);

struct View {
    const char *name, *suffix, *last;
    bool dumped;
    ViewWriter *write;
    const char *what; // NULL: another way in which the stage before is written
};

// ---- show.c ----

const Plan *show_plan(Show *s);
const TrainerText *show_trainer(Show *s);

// The step that is asked for, planned; NULL and an exit status, after a
// message, where the program has none of that name.
const Step *show_step(Show *s, int *status);

#endif
