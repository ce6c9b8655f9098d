// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// GraphDef: a graph of a trainer in TensorFlow's form, which TensorBoard draws.
#ifndef REPLAY_GRAPH_DEF_H
#define REPLAY_GRAPH_DEF_H

#include "base/text.h"

#include <stdbool.h>

// Appends a message GraphDef of one of several graphs, by its name.  Nodes are
// below the path of their layer, as layer1/conv_1/conv_12; those of the
// backward pass below backward/.  False: there is no such graph.
bool graph_def_add(Text *t, const char *text, size_t length, const char *name);

#endif
