// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Find: a graph among the texts of several.
#ifndef REPLAY_FIND_H
#define REPLAY_FIND_H

#include <stddef.h>

// The text of the graph of that name, and its length; NULL: not there.
const char *graph_text_find(const char *text, size_t *length, const char *name);

#endif
