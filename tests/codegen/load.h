// Load: programs of model files, and of graphs in files.
#ifndef TESTS_CODEGEN_LOAD_H
#define TESTS_CODEGEN_LOAD_H

#include "frontend/frontend.h"
#include "passes/passes.h"

// The program of a model below the source folder, or of a training graph if it
// is a file NAME.ir, whose activations are then stored so.  NULL: the report
// has why.
Program *load_program(Arena *a, const char *model, const Setting *setting,
                      int num_settings, DType precision, Text *report);

// The plans of a program as a trainer has them, at optimization level 0 or 1.
void load_plans(const Program *p, int level, const Plan *plan[NUM_PLANS]);

#endif
