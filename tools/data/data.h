// The parts of sinter data.
#ifndef TOOLS_DATA_DATA_H
#define TOOLS_DATA_DATA_H

#include "tools/tools.h"

// A share as 10%, from 0 to below 100.
bool share_parse(const char *text, double *percent);

// Writes the tokens of texts into a folder.  Returns an exit status.
int tokenize(Arena *a, const Arguments *arguments);

// Reads the data set of a model file, and prints its statistics, or to verify
// whether all samples can be read.  Returns an exit status.
int data_stats(Arena *a, const Arguments *arguments, bool verify);

#endif
