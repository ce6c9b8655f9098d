// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Verify: the invariants between passes, as numbered rules.
//
//    1  operands come before their users
//    2  the type is one, and the one that the operation gives
//    3  attributes are in order of key, once each, and whole
//    4  leaves have names, which differ; so do outputs
//    5  an iota's axis is one of its type's
//    6  no composite operation after `primitive`
//    7  no gradient or optimizer node after `updates`
//    8  a param or state is assigned once
//    9  nodes have groups after `grouped` and only then; a group is one run
//   10  offsets after `planned` and only then, aligned and inside the arena
//   11  no operand is a workspace
//
// Rules 1 to 3 are checked for a node before anything that relies on them.

#include "ir/ir.h"

#include <string.h>

enum { MAX_OPERANDS = 3, NUM_KNOWN = 1024 };

// A pointwise node without attributes: its type follows from these.
typedef struct {
    Op op;
    const Type *type, *arg[MAX_OPERANDS];
} Typing;

// The rule and node at fault.
typedef struct {
    const Graph *g;
    Arena *arena;
    const char *message;
    Typing *known; // right ones, each where its hash says
} Verifier;

__attribute__((format(printf, 4, 5))) static bool
broken(Verifier *v, int rule, NodeId id, const char *format, ...) {
    Text t = text_new(v->arena);
    text_add(&t, "rule %d: %%%lu: ", rule, (unsigned long)id);
    va_list list;
    va_start(list, format);
    text_addv(&t, format, list);
    va_end(list);
    v->message = text_string(&t);
    return false;
}

static bool check_operands(Verifier *v, NodeId id) {
    const Node *n = &v->g->node[id];
    for (int i = 0; i < n->num_args; i++)
        if (n->arg[i] >= id)
            return broken(v, 1, id, "operand %%%lu does not come before it",
                          (unsigned long)n->arg[i]);
        else if (v->g->node[n->arg[i]].op == OP_workspace)
            return broken(v, 11, id, "operand %%%lu is a workspace",
                          (unsigned long)n->arg[i]);
    return true;
}

// Where the typing of n is kept once it was found right, or NULL.  Graphs have
// few types, each once, so that most nodes are typed as one before.
static Typing *typing_entry(const Verifier *v, const Node *n, Typing *typing) {
    if (!(op_info[n->op].traits & POINTWISE) || n->num_attrs > 0 ||
        n->num_args > MAX_OPERANDS)
        return NULL;
    *typing = (Typing){.op = n->op, .type = n->type};
    uintptr_t hash = (uintptr_t)n->type / sizeof(Type) + n->op;
    for (int i = 0; i < n->num_args; i++) {
        typing->arg[i] = v->g->node[n->arg[i]].type;
        hash = 31 * hash + (uintptr_t)typing->arg[i] / sizeof(Type);
    }
    return &v->known[hash % NUM_KNOWN];
}

static bool check_typing(Verifier *v, NodeId id) {
    const Node *n = &v->g->node[id];
    Type type;
    const char *why = type_infer(v->g, n, &type);
    if (why && !type_valid(n->type))
        return broken(v, 2, id, "its type is not valid");
    if (why)
        return broken(v, 2, id, "%s: %s", op_info[n->op].name, why);
    if (type_is(&type, n->type))
        return true;
    Text given = text_new(v->arena), right = text_new(v->arena);
    type_print(&given, n->type);
    type_print(&right, &type);
    return broken(v, 2, id, "its type is %s and must be %s",
                  text_string(&given), text_string(&right));
}

static bool typing_equal(const Typing *a, const Typing *b) {
    bool equal = a->op == b->op && a->type == b->type;
    for (int i = 0; i < MAX_OPERANDS; i++)
        equal &= a->arg[i] == b->arg[i];
    return equal;
}

static bool check_type(Verifier *v, NodeId id) {
    Typing typing, *entry = typing_entry(v, &v->g->node[id], &typing);
    if (entry != NULL && typing_equal(entry, &typing))
        return true;
    if (!check_typing(v, id))
        return false;
    if (entry != NULL)
        *entry = typing;
    return true;
}

static bool attr_whole(const Attr *attr) {
    switch (attr_info[attr->key].kind) {
    case TEXT:
        return attr->s != NULL && attr->count >= 0 &&
               strlen(attr->s) == (size_t)attr->count;
    case INTS:
        return attr->count == 0 || (attr->count > 0 && attr->ints != NULL);
    case FLOATS:
        return attr->count == 0 || (attr->count > 0 && attr->floats != NULL);
    default:
        return true;
    }
}

static bool check_attrs(Verifier *v, NodeId id) {
    const Node *n = &v->g->node[id];
    for (int i = 0; i < n->num_attrs; i++) {
        if ((unsigned)n->attr[i].key >= NUM_ATTRS)
            return broken(v, 3, id, "its attribute %d is unknown", i);
        const char *name = attr_info[n->attr[i].key].name;
        if (!attr_whole(&n->attr[i]))
            return broken(v, 3, id, "attribute %s has no value", name);
        if (i > 0 && n->attr[i].key <= n->attr[i - 1].key)
            return broken(v, 3, id, "attribute %s is out of order", name);
    }
    return true;
}

static bool check_iota(Verifier *v, NodeId id) {
    const Node *n = &v->g->node[id];
    if (n->op != OP_iota)
        return true;
    int64_t axis = node_int(n, ATTR_axis, 0);
    if (n->type->dtype != I32)
        return broken(v, 5, id, "iota counts in i32");
    if (axis < 0 || axis >= n->type->rank)
        return broken(v, 5, id, "there is no axis %lld", (long long)axis);
    return true;
}

static bool check_facts(Verifier *v, NodeId id) {
    Op op = v->g->node[id].op;
    const char *name = op_info[op].name;
    if (v->g->facts & PRIMITIVE && op_info[op].traits & COMPOSITE)
        return broken(v, 6, id, "%s is composite", name);
    if (v->g->facts & UPDATES &&
        (op == OP_gradient || op == OP_clip || op == OP_accumulated ||
         op_info[op].traits & OPTIMIZES))
        return broken(v, 7, id, "%s should have become assignments", name);
    return true;
}

static bool check_offset(Verifier *v, NodeId id) {
    const Node *n = &v->g->node[id];
    int64_t end;
    if (n->offset == -1)
        return true;
    if (!(v->g->facts & PLANNED))
        return broken(v, 10, id, "it has an offset before there is a plan");
    if (n->offset < 0 || n->offset % ARENA_ALIGNMENT != 0)
        return broken(v, 10, id, "offset %lld is not a multiple of %d",
                      (long long)n->offset, ARENA_ALIGNMENT);
    if (__builtin_add_overflow(n->offset, graph_bytes(v->g, n->type), &end) ||
        end > v->g->arena_bytes)
        return broken(v, 10, id, "it does not end inside the arena");
    return true;
}

static bool check_node(Verifier *v, NodeId id) {
    return check_operands(v, id) && check_attrs(v, id) && check_type(v, id) &&
           check_iota(v, id) && check_facts(v, id) && check_offset(v, id);
}

// ---- rules about several nodes ----

// The leaves with names, the outputs and the assignments.
typedef struct {
    const NodeId *id;
    size_t count;
} Special;

static bool is_special(const Node *n) {
    return n->op == OP_input || n->op == OP_param || n->op == OP_state ||
           n->op == OP_output || n->op == OP_assign;
}

// Through a hash of the names: a slot holds the node of one, from 1.  Outputs
// may be called as leaves are.
static bool check_names(Verifier *v, Special s, bool outputs) {
    const Node *node = v->g->node;
    size_t size = 2 * s.count + 1;
    NodeId *slot = ARENA_ARRAY(v->arena, size, NodeId);
    for (size_t j = 0; j < s.count; j++) {
        NodeId id = s.id[j];
        Op op = node[id].op;
        if (op == OP_assign || (op == OP_output) != outputs)
            continue;
        const char *name = node_text(&node[id], ATTR_name);
        if (name == NULL)
            return broken(v, 4, id, "it has no name");
        size_t i = node[id].hash % size;
        for (; slot[i] > 0; i = (i + 1) % size)
            if (strcmp(node_text(&node[slot[i] - 1], ATTR_name), name) == 0)
                return broken(v, 4, id, "%%%lu is named \"%s\" too",
                              (unsigned long)slot[i] - 1, name);
        slot[i] = id + 1;
    }
    return true;
}

static bool check_assigns(Verifier *v, Special s) {
    bool *assigned = ARENA_ARRAY(v->arena, v->g->count + 1, bool);
    for (size_t j = 0; j < s.count; j++) {
        const Node *n = &v->g->node[s.id[j]];
        if (n->op != OP_assign)
            continue;
        if (assigned[n->arg[0]])
            return broken(v, 8, s.id[j], "%%%lu is assigned twice",
                          (unsigned long)n->arg[0]);
        assigned[n->arg[0]] = true;
    }
    return true;
}

// Other leaves, views and effects need no kernel of their own.
static bool needs_group(const Node *n) {
    return n->op == OP_workspace ||
           !(op_info[n->op].traits & (LEAF | VIEW | EFFECT));
}

// seen[k]: there were nodes of group k.
static bool check_group(Verifier *v, NodeId id, bool *seen) {
    bool grouped = v->g->facts & GROUPED;
    int group = v->g->node[id].group;
    if (group < -1 || (group >= 0 && (NodeId)group >= v->g->count))
        return broken(v, 9, id, "there cannot be a group %d", group);
    if (!grouped && group != -1)
        return broken(v, 9, id, "it has group %d before fuse", group);
    if (grouped && group == -1 && needs_group(&v->g->node[id]))
        return broken(v, 9, id, "it has no group");
    if (group < 0)
        return true;
    if (seen[group] && v->g->node[id - 1].group != group)
        return broken(v, 9, id, "group %d is not one run", group);
    return seen[group] = true;
}

// One walk: it takes longer to fetch a large graph than to look at it.
const char *graph_verify(const Graph *g, Arena *a) {
    Verifier v = {
        .g = g, .arena = a, .known = ARENA_ARRAY(a, NUM_KNOWN, Typing)};
    bool *seen = ARENA_ARRAY(a, g->count + 1, bool);
    NodeId *special = ARENA_ARRAY(a, g->count + 1, NodeId);
    size_t count = 0;
    for (NodeId id = 0; id < g->count; id++) {
        if (!check_node(&v, id) || !check_group(&v, id, seen))
            return v.message;
        if (is_special(&g->node[id]))
            special[count++] = id;
    }
    Special s = {special, count};
    if (check_names(&v, s, false) && check_names(&v, s, true) &&
        check_assigns(&v, s))
        return NULL;
    return v.message;
}
