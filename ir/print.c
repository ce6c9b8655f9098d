// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Print: a graph as text, one node on a line, which read.c reads back.
//
//   graph train (backward, updates; act = f16) {
//     %0 = input {name = "image"} : u8[512,32,32,3]  # resnet9.net:8
//     %4 = conv %2, %3 {pad = [1,1,1,1]} : act[512,32,32,64] !g3 @65536
//   }
//
// After the type come the group, the offset in the arena, and where the node
// is from: a line of a file, a layer's path, the words full and backward.

#include "base/source.h"
#include "base/terminal.h"
#include "ir/form.h"

#include <ctype.h>
#include <string.h>

// Writes characters that may control a terminal byte by byte.
static void print_quoted(Text *t, const char *s) {
    text_bytes(t, "\"", 1);
    for (size_t left = strlen(s), step; left > 0; left -= step, s += step) {
        step = utf8_length(s, left);
        if (*s == '\n')
            text_bytes(t, "\\n", 2);
        else if (*s == '"' || *s == '\\')
            text_add(t, "\\%c", *s);
        else if (terminal_shows(s, step))
            text_bytes(t, s, step);
        else
            for (size_t i = 0; i < step; i++)
                text_add(t, "\\x%02x", (unsigned char)s[i]);
    }
    text_bytes(t, "\"", 1);
}

// A word that needs no quotes in front of the reader.  `full` and `backward`
// mean something, so a layer of that name is quoted.
static bool plain(const char *s) {
    if (*s == '\0' || strcmp(s, "backward") == 0 || strcmp(s, "full") == 0)
        return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && strchr("_.-/", *s) == NULL)
            return false;
    return true;
}

static void print_word(Text *t, const char *s) {
    if (plain(s))
        text_add(t, "%s", s);
    else
        print_quoted(t, s);
}

static void print_ints(Text *t, const Attr *attr) {
    text_add(t, "[");
    for (int i = 0; i < attr->count; i++)
        text_add(t, "%s%lld", i ? "," : "", (long long)attr->ints[i]);
    text_add(t, "]");
}

static void print_floats(Text *t, const Attr *attr) {
    text_add(t, "[");
    for (int i = 0; i < attr->count; i++) {
        text_add(t, "%s", i ? "," : "");
        text_double(t, attr->floats[i]);
    }
    text_add(t, "]");
}

static void print_attr(Text *t, const Attr *attr) {
    text_add(t, "%s = ", attr_info[attr->key].name);
    switch (attr_info[attr->key].kind) {
    case INT:
        text_add(t, "%lld", (long long)attr->i);
        break;
    case FLOAT:
        text_double(t, attr->f);
        break;
    case TEXT:
        print_quoted(t, attr->s);
        break;
    case INTS:
        print_ints(t, attr);
        break;
    case FLOATS:
        print_floats(t, attr);
        break;
    }
}

static void print_origin(Text *t, const Origin *from) {
    if (!from->file && !from->path && !from->full_precision && !from->backward)
        return;
    text_add(t, "  #");
    if (from->file) {
        text_add(t, " ");
        print_word(t, from->file);
        text_add(t, ":%d", from->line);
    }
    if (from->path) {
        text_add(t, " ");
        print_word(t, from->path);
    }
    if (from->full_precision)
        text_add(t, " full");
    if (from->backward)
        text_add(t, " backward");
}

void node_print(Text *t, const Graph *g, NodeId id) {
    const Node *n = &g->node[id];
    text_add(t, "%%%lu = %s", (unsigned long)id, op_info[n->op].name);
    for (int i = 0; i < n->num_args; i++)
        text_add(t, "%s%%%lu", i ? ", " : " ", (unsigned long)n->arg[i]);
    for (int i = 0; i < n->num_attrs; i++) {
        text_add(t, i ? ", " : " {");
        print_attr(t, &n->attr[i]);
    }
    text_add(t, n->num_attrs ? "} : " : " : ");
    type_print(t, n->type);
    if (n->group >= 0)
        text_add(t, " !g%d", n->group);
    if (n->why != REASON_none)
        text_add(t, " ~%s", reason_info[n->why].name);
    if (n->offset >= 0)
        text_add(t, " @%lld", (long long)n->offset);
    print_origin(t, &n->from);
}

void node_describe(Text *t, const Node *n) {
    const char *name = node_text(n, ATTR_name);
    if (name != NULL && op_info[n->op].traits & LEAF) {
        text_add(t, "%s", name);
        return;
    }
    text_add(t, "%s", op_info[n->op].name);
    if (n->from.path != NULL)
        text_add(t, " of %s", n->from.path);
    if (n->from.backward)
        text_add(t, ", backward");
    if (n->from.file != NULL)
        text_add(t, ", %s:%d", n->from.file, n->from.line);
}

const char *const fact_name[NUM_FACTS] = {
    "backward", "updates", "primitive", "typed", "grouped", "planned",
};

static void print_facts(Text *t, const Graph *g) {
    const char *before = " (";
    for (int i = 0; i < NUM_FACTS; i++)
        if (g->facts >> i & 1) {
            text_add(t, "%s%s", before, fact_name[i]);
            before = ", ";
        }
    if (g->facts)
        before = "; ";
    if (g->act != F32) {
        text_add(t, "%sact = %s", before, dtype_name(g->act));
        before = "; ";
    }
    if (g->multiprocessors != GENERIC_MULTIPROCESSORS) {
        text_add(t, "%smultiprocessors = %d", before, g->multiprocessors);
        before = "; ";
    }
    if (g->facts & PLANNED)
        text_add(t, "%sarena = %lld", before, (long long)g->arena_bytes);
    if (*before != ' ')
        text_add(t, ")");
}

void graph_print(Text *t, const Graph *g) {
    text_add(t, "graph ");
    print_word(t, g->name);
    print_facts(t, g);
    text_add(t, " {\n");
    for (NodeId id = 0; id < g->count; id++) {
        text_add(t, "  ");
        node_print(t, g, id);
        text_add(t, "\n");
    }
    text_add(t, "}\n");
}
