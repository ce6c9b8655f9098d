// Verify: workspaces and block counters of a graph in groups.
//
// Rule 11, after those of ir/verify.c: a group has one workspace of the type
// that it needs, or needs none, and there are counters for all groups.
#include "passes/plan/group.h"

typedef struct {
    const Graph *g;
    Arena *arena;
    const char *message;
    int counters; // that groups so far need
} Verifier;

__attribute__((format(printf, 3, 4))) static bool
broken(Verifier *v, NodeId id, const char *format, ...) {
    Text t = text_new(v->arena);
    text_add(&t, "rule 11: %%%lu: ", (unsigned long)id);
    va_list list;
    va_start(list, format);
    text_addv(&t, format, list);
    va_end(list);
    v->message = text_string(&t);
    return false;
}

static bool check_type(Verifier *v, const Group *group, const Workspace *need) {
    if ((group->workspace != NO_NODE) != need->any)
        return broken(v, group->first, "its group %s",
                      need->any ? "lacks a workspace" : "needs no workspace");
    if (!need->any)
        return true;
    Type type = workspace_type(need);
    if (type_is(&type, v->g->node[group->workspace].type))
        return true;
    Text right = text_new(v->arena);
    type_print(&right, &type);
    return broken(v, group->workspace, "its group needs %s",
                  text_string(&right));
}

static bool check_group(Verifier *v, NodeId first, NodeId last) {
    const Node *node = v->g->node;
    Group group = {.first = first, .last = last, .workspace = NO_NODE};
    group_describe(v->g, &group);
    Workspace need = workspace_new(v->g, group.kind, group.iteration_space);
    for (NodeId n = first; n <= last; n++) {
        workspace_add(&need, v->g, n, node[n].op == OP_assign);
        if (node[n].op == OP_workspace && n != group.workspace)
            return broken(v, n, "its group has another workspace");
    }
    v->counters += workspace_counters(&need);
    return check_type(v, &group, &need);
}

static bool check_counters(Verifier *v) {
    NodeId id = v->counters > 0 ? graph_counters(v->g) : NO_NODE;
    if (v->counters == 0)
        return true;
    if (id == NO_NODE)
        return broken(v, 0, "there are no block counters for groups");
    const Type *type = v->g->node[id].type;
    return (type->dtype == I32 && type_count(type) >= v->counters) ||
           broken(v, id, "groups need %d block counters in i32", v->counters);
}

// Whether node n alone lets its group have a workspace or counters.
static bool leaves_partial_results(const Node *n) {
    return n->op == OP_workspace || n->op == OP_assign ||
           (op_info[n->op].traits & REDUCES);
}

const char *groups_verify(const Graph *g, Arena *a) {
    Verifier v = {.g = g, .arena = a};
    NodeId first = 0;
    bool leaves = false;
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        if (d->group < 0)
            continue;
        if (n == 0 || d[-1].group != d->group) {
            first = n;
            leaves = false;
        }
        leaves |= leaves_partial_results(d);
        bool last = n + 1 == g->count || d[1].group != d->group;
        if (last && leaves && !check_group(&v, first, n))
            return v.message;
    }
    check_counters(&v);
    return v.message;
}
