// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// GraphDef (tensorflow/core/framework/graph.proto, node_def.proto,
// attr_value.proto, tensor_shape.proto).
#include "runtime/replay/graph_def.h"
#include "base/protobuf.h"
#include "runtime/replay/find.h"

#include "ir/ir.h"

#include <string.h>

// Fields of the messages.
enum {
    GRAPH_NODE = 1,
    NODE_NAME = 1,
    NODE_OP = 2,
    NODE_INPUT = 3,
    NODE_ATTR = 5,
    ENTRY_KEY = 1,
    ENTRY_VALUE = 2,
    VALUE_LIST = 1,
    LIST_SHAPE = 7,
    SHAPE_DIM = 2,
    DIM_SIZE = 1
};

// The node's name: its layer's path, or the name of a parameter, and what it
// does, with slashes where TensorBoard makes groups.
static const char *name_of(Arena *a, const Graph *g, NodeId n) {
    const Node *d = &g->node[n];
    const char *own = node_text(d, ATTR_name);
    Text t = text_new(a);
    if (d->from.backward)
        text_add(&t, "backward/");
    if (own == NULL && d->from.path != NULL)
        text_add(&t, "%s/", d->from.path);
    text_add(&t, own != NULL && d->op != OP_output ? "%s" : "%s_%u",
             own != NULL ? own : op_info[d->op].name, n);
    char *name = arena_string(a, text_string(&t), t.length);
    for (char *c = name; *c != '\0'; c++)
        *c = *c == '.' ? '/' : strchr(" :,[]()^@", *c) != NULL ? '_' : *c;
    return name;
}

// _output_shapes: a list of one shape.
static void shape_add(Text *node, const Type *type) {
    Arena *a = node->arena;
    Text shape = text_new(a), list = text_new(a), value = text_new(a),
         entry = text_new(a);
    for (int i = 0; i < type->rank; i++) {
        Text dim = text_new(a);
        proto_int(&dim, DIM_SIZE, type->dim[i]);
        proto_message(&shape, SHAPE_DIM, &dim);
    }
    proto_message(&list, LIST_SHAPE, &shape);
    proto_message(&value, VALUE_LIST, &list);
    proto_string(&entry, ENTRY_KEY, "_output_shapes");
    proto_message(&entry, ENTRY_VALUE, &value);
    proto_message(node, NODE_ATTR, &entry);
}

bool graph_def_add(Text *t, const char *text, size_t length, const char *name) {
    const char *own = graph_text_find(text, &length, name), *error;
    Arena *a = t->arena;
    const Graph *g = own != NULL ? graph_read(a, own, length, &error) : NULL;
    if (g == NULL)
        return false;
    for (NodeId n = 0; n < g->count; n++) {
        Text node = text_new(a);
        proto_string(&node, NODE_NAME, name_of(a, g, n));
        proto_string(&node, NODE_OP, op_info[g->node[n].op].name);
        for (int i = 0; i < g->node[n].num_args; i++)
            proto_string(&node, NODE_INPUT, name_of(a, g, g->node[n].arg[i]));
        shape_add(&node, g->node[n].type);
        proto_message(t, GRAPH_NODE, &node);
    }
    return true;
}
