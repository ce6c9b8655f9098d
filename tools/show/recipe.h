// The recipe in numbers: what a schedule comes to at each update.
#ifndef TOOLS_RECIPE_H
#define TOOLS_RECIPE_H

#include "tools/show/show.h"

// A number of the optimizer, as a graph computes it.
typedef struct {
    const char *name;  // "lr", "sgd rate", "adam beta1" ...
    const Node *first; // the optimizer of the first parameter; NULL: of the run
    const char *of;    // that parameter
    int num_parameters; // that have these numbers
    NodeId node;        // in Recipes.graph
    const char *file;
    int line;
} RecipeRow;

typedef struct {
    Graph *graph; // only what these numbers follow from
    RecipeRow *row;
    int count;
    int64_t samples, epoch_updates, updates;
    bool known;        // whether the samples of an epoch are
    double loss_scale; // that a run starts with; 0: it has none
} Recipes;

// What the numbers of the run's first stage are made of.
Recipes recipe_find(Arena *a, const Program *p, const Plan *plan,
                    const Arguments *arguments);

// Writes the run, and the numbers of all rows at up to 200 updates.
void recipe_json(Arena *a, Text *t, const Recipes *r);

#endif
