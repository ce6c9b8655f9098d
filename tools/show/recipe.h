// Recipe: the values of schedules at each update.
#ifndef TOOLS_RECIPE_H
#define TOOLS_RECIPE_H

#include "tools/show/show.h"

// A number of the optimizer that a graph computes.
typedef struct {
    const char *name;  // "lr", "sgd rate", "adam beta1" ...
    const Node *first; // the optimizer of the first parameter; NULL: of the run
    const char *of;    // that parameter
    int num_parameters; // parameters with these numbers
    NodeId node;        // in Recipes.graph
    const char *file;
    int line;
} RecipeRow;

typedef struct {
    Graph *graph; // only nodes that these numbers depend on
    RecipeRow *row;
    int count;
    int64_t samples, epoch_updates, updates;
    bool known;        // the number of samples of an epoch is known
    double loss_scale; // initial; 0: none
} Recipes;

// The numbers of the run's first stage.
Recipes recipe_find(Arena *a, const Program *p, const Plan *plan,
                    const Arguments *arguments);

// Writes the run, and the numbers of all rows at up to 200 updates.
void recipe_json(Arena *a, Text *t, const Recipes *r);

#endif
