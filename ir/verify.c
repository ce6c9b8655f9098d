// Verify: what holds between passes, as numbered rules.
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
//
// Rules 1 to 3 are checked for a node before anything that relies on them.

#include "ir/ir.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 256 };

// The rule and node at fault.
typedef struct {
    const Graph *g;
    Arena *arena;
    const char *message;
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
    return true;
}

static bool check_type(Verifier *v, NodeId id) {
    const Node *n = &v->g->node[id];
    if (!type_valid(n->type))
        return broken(v, 2, id, "its type is not valid");
    Type type;
    const char *why = type_infer(v->g, n, &type);
    if (why)
        return broken(v, 2, id, "%s: %s", op_info[n->op].name, why);
    if (type_equal(type, n->type))
        return true;
    Text given = text_new(v->arena), right = text_new(v->arena);
    type_print(&given, n->type);
    type_print(&right, type);
    return broken(v, 2, id, "its type is %s and must be %s",
                  text_string(&given), text_string(&right));
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
    int64_t axis = node_int(n, ATTR_axis, 0);
    if (n->op != OP_iota)
        return true;
    if (n->type.dtype != I32)
        return broken(v, 5, id, "iota counts in i32");
    if (axis < 0 || axis >= n->type.rank)
        return broken(v, 5, id, "there is no axis %lld", (long long)axis);
    return true;
}

static bool check_facts(Verifier *v, NodeId id) {
    Op op = v->g->node[id].op;
    const char *name = op_info[op].name;
    if (v->g->facts & PRIMITIVE && op_info[op].facts & COMPOSITE)
        return broken(v, 6, id, "%s is composite", name);
    if (v->g->facts & UPDATES &&
        (op == OP_gradient || op == OP_clip || op == OP_accumulated ||
         op_info[op].facts & OPTIMIZES))
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
    if (n->offset < 0 || n->offset % ALIGNMENT != 0)
        return broken(v, 10, id, "offset %lld is not a multiple of %d",
                      (long long)n->offset, ALIGNMENT);
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

typedef struct {
    const char *name;
    NodeId id;
} Name;

static int compare_names(const void *x, const void *y) {
    const Name *a = x, *b = y;
    int order = strcmp(a->name, b->name);
    return order ? order : (a->id > b->id) - (a->id < b->id);
}

static bool all_differ(Verifier *v, Name *name, size_t count) {
    if (count > 1)
        qsort(name, count, sizeof *name, compare_names);
    for (size_t i = 1; i < count; i++)
        if (strcmp(name[i].name, name[i - 1].name) == 0)
            return broken(v, 4, name[i].id, "%%%lu is named \"%s\" too",
                          (unsigned long)name[i - 1].id, name[i].name);
    return true;
}

static bool check_names(Verifier *v) {
    Name *leaf = ARENA_ARRAY(v->arena, v->g->count + 1, Name);
    Name *output = ARENA_ARRAY(v->arena, v->g->count + 1, Name);
    size_t num_leaves = 0, num_outputs = 0;
    for (NodeId id = 0; id < v->g->count; id++) {
        Op op = v->g->node[id].op;
        if (op != OP_input && op != OP_param && op != OP_state &&
            op != OP_output)
            continue;
        Name name = {node_text(&v->g->node[id], ATTR_name), id};
        if (name.name == NULL)
            return broken(v, 4, id, "it has no name");
        if (op == OP_output)
            output[num_outputs++] = name;
        else
            leaf[num_leaves++] = name;
    }
    return all_differ(v, leaf, num_leaves) &&
           all_differ(v, output, num_outputs);
}

static bool check_assigns(Verifier *v) {
    bool *assigned = ARENA_ARRAY(v->arena, v->g->count + 1, bool);
    for (NodeId id = 0; id < v->g->count; id++) {
        const Node *n = &v->g->node[id];
        if (n->op != OP_assign)
            continue;
        if (assigned[n->arg[0]])
            return broken(v, 8, id, "%%%lu is assigned twice",
                          (unsigned long)n->arg[0]);
        assigned[n->arg[0]] = true;
    }
    return true;
}

// Leaves, views and effects need no kernel of their own.
static bool needs_group(const Node *n) {
    return !(op_info[n->op].facts & (LEAF | VIEW | EFFECT));
}

static bool check_groups(Verifier *v) {
    bool grouped = v->g->facts & GROUPED;
    bool *seen = ARENA_ARRAY(v->arena, v->g->count + 1, bool);
    int before = -1;
    for (NodeId id = 0; id < v->g->count; id++) {
        int group = v->g->node[id].group;
        if (group < -1 || (group >= 0 && (NodeId)group >= v->g->count))
            return broken(v, 9, id, "there cannot be a group %d", group);
        if (!grouped && group != -1)
            return broken(v, 9, id, "it has group %d before fuse", group);
        if (grouped && group == -1 && needs_group(&v->g->node[id]))
            return broken(v, 9, id, "it has no group");
        if (group >= 0 && group != before && seen[group])
            return broken(v, 9, id, "group %d is not one run", group);
        if (group >= 0)
            seen[group] = true;
        before = group;
    }
    return true;
}

const char *graph_verify(const Graph *g, Arena *a) {
    Verifier v = {.g = g, .arena = a};
    for (NodeId id = 0; id < g->count; id++)
        if (!check_node(&v, id))
            return v.message;
    if (check_names(&v) && check_assigns(&v) && check_groups(&v))
        return NULL;
    return v.message;
}
