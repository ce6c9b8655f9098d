// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Functions of graph.c and print.c that read.c uses.
#ifndef IR_FORM_H
#define IR_FORM_H

#include "ir/ir.h"

// graph.c: appends n without looking for an equal node, ordering its operands
// or computing its type.  Operands and attributes are copied, the origin's
// strings are not.
NodeId graph_append(Graph *g, Node n);

// print.c: the words for the facts of a graph, in order of their bits.
enum { NUM_FACTS = 6 };
extern const char *const fact_name[NUM_FACTS];

#endif
