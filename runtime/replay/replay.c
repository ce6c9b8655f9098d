// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Replay: see replay.h.
#include "runtime/replay/replay.h"
#include "runtime/replay/find.h"
#include "runtime/replay/range.h"

#include "ir/ir.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct Replay {
    Arena *arena;
    Graph *graph;
};

// ---- the graph ----

// Each ends with a line "}".
const char *graph_text_find(const char *text, size_t *length,
                            const char *name) {
    static const char begins[] = "graph ", ends[] = "\n}\n";
    const char *end = text + *length;
    while (text < end) {
        const char *last = strstr(text, ends), *own = text + strlen(begins);
        const char *next = last ? last + strlen(ends) : end;
        size_t known = strlen(name);
        if (strncmp(text, begins, strlen(begins)) == 0 &&
            strncmp(own, name, known) == 0 && own[known] == ' ') {
            *length = (size_t)(next - text);
            return text;
        }
        text = next;
    }
    return NULL;
}

Replay *replay_open(const char *text, size_t length, const char *name) {
    const char *own = graph_text_find(text, &length, name), *error;
    if (own == NULL)
        return NULL;
    Arena *a = arena_new();
    Replay *r = ARENA_NEW(a, Replay);
    *r = (Replay){a, graph_read(a, own, length, &error)};
    if (r->graph != NULL) {
        r->graph->act = F32; // between the operations of a kernel
        return r;
    }
    arena_free(a);
    return NULL;
}

void replay_close(Replay *r) {
    if (r != NULL)
        arena_free(r->arena);
}

bool replay_assignment(const Replay *r, const char *state, uint32_t *node,
                       int *launch) {
    const Graph *g = r->graph;
    int group = -1;
    *launch = -1;
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        if (d->group >= 0 && d->group != group) {
            group = d->group;
            ++*launch;
        }
        *node = n;
        if (d->op == OP_assign &&
            strcmp(node_text(&g->node[d->arg[0]], ATTR_name), state) == 0)
            return true;
    }
    return false;
}

// ---- evaluating ----

typedef struct {
    const Graph *g;
    const ReplayQuery *query;
    const ReplayMemory *memory;
    Arena *a;
    bool *needed, *stored;
    NodeId *last; // the last node that reads it
    double **value;
    Range *range;
} Walk;

static const char *leaf_name(const Node *n) {
    return op_info[n->op].traits & LEAF ? node_text(n, ATTR_name) : NULL;
}

static bool node_read(const Walk *w, NodeId n, double *to) {
    const Node *d = &w->g->node[n];
    return w->memory->read(w->memory, n, leaf_name(d), type_count(d->type), to);
}

// Marks the nodes from the query back to the stored ones.
static void walk_mark(Walk *w) {
    w->needed[w->query->node] = true;
    for (NodeId n = w->query->node + 1; n-- > 0;) {
        const Node *d = &w->g->node[n];
        w->stored[n] = w->needed[n] && n != w->query->node &&
                       !node_immediate(d) && node_read(w, n, NULL);
        for (int i = 0; i < d->num_args; i++)
            if (w->needed[n] && !w->stored[n] && !w->needed[d->arg[i]]) {
                w->needed[d->arg[i]] = true;
                w->last[d->arg[i]] = n;
            }
    }
}

static size_t node_room(const Walk *w, NodeId n) {
    return ((size_t)type_count(w->g->node[n].type) + 1) * sizeof(double);
}

// Whether n is the last reader of its operand number i.
static bool is_last(const Walk *w, NodeId n, int i) {
    const NodeId *arg = w->g->node[n].arg;
    for (int j = 0; j < i; j++)
        if (arg[j] == arg[i])
            return false;
    return !w->stored[n] && w->last[arg[i]] == n;
}

// A value is live from its node to its last reader.
static bool walk_fits(const Walk *w) {
    size_t room = 0;
    for (NodeId n = 0; n <= w->query->node; n++) {
        if (!w->needed[n])
            continue;
        room += node_room(w, n);
        if (room > w->query->room)
            return false;
        for (int i = 0; i < w->g->node[n].num_args; i++)
            if (is_last(w, n, i))
                room -= node_room(w, w->g->node[n].arg[i]);
    }
    return true;
}

// A leaf that is not stored cannot be computed.
static bool node_take(Walk *w, NodeId n) {
    const Node *d = &w->g->node[n];
    int64_t count = type_count(d->type);
    DType rounded = d->type->dtype == ACT ? F32 : d->type->dtype;
    bool leaf = op_info[d->op].traits & LEAF;
    w->value[n] = calloc((size_t)count + 1, sizeof(double));
    if (w->value[n] == NULL || (leaf && !w->stored[n] && !node_immediate(d)))
        return false;
    if (!w->stored[n])
        node_eval(w->g, n, w->value, w->value[n], w->a);
    else if (!node_read(w, n, w->value[n]))
        return false;
    w->range[n] = range_new();
    for (int64_t i = 0; i < count; i++) {
        if (!w->stored[n])
            w->value[n][i] = dtype_round(rounded, w->value[n][i]);
        range_add(&w->range[n], w->value[n][i]);
    }
    return true;
}

static bool walk_evaluate(Walk *w) {
    bool good = true;
    for (NodeId n = 0; n <= w->query->node && good; n++) {
        if (!w->needed[n])
            continue;
        good = node_take(w, n);
        for (int i = 0; i < w->g->node[n].num_args; i++)
            if (is_last(w, n, i)) {
                free(w->value[w->g->node[n].arg[i]]);
                w->value[w->g->node[n].arg[i]] = NULL;
            }
    }
    for (NodeId n = 0; n <= w->query->node; n++)
        free(w->value[n]);
    return good;
}

// The operand to follow.  A NaN has precedence over an infinity, which a model
// may contain, as in a mask.
static NodeId operand_worst(const Walk *w, NodeId n) {
    const Node *d = &w->g->node[n];
    NodeId worst = NO_NODE;
    for (int i = 0; i < d->num_args && !w->stored[n]; i++) {
        const Range *r = &w->range[d->arg[i]];
        if (r->nonfinite > 0 && !node_immediate(&w->g->node[d->arg[i]]) &&
            (worst == NO_NODE || (r->nans > 0 && w->range[worst].nans == 0)))
            worst = d->arg[i];
    }
    return worst;
}

static NodeId culprit_of(const Walk *w) {
    NodeId culprit = w->query->node;
    for (NodeId n = culprit; n != NO_NODE; n = operand_worst(w, n))
        culprit = n;
    return culprit;
}

static void operands_explain(const Walk *w, Text *t, NodeId n) {
    const Node *d = &w->g->node[n];
    char range[RANGE_TEXT];
    for (int i = 0; i < d->num_args && !w->stored[n]; i++) {
        bool listed = false;
        for (int j = 0; j < i; j++)
            listed |= d->arg[j] == d->arg[i];
        if (listed)
            continue;
        text_add(t, "; ");
        node_describe(t, &w->g->node[d->arg[i]]);
        text_add(t, " is %s", range_text(range, &w->range[d->arg[i]]));
    }
}

// False: all are finite.
static bool culprit_explain(const Walk *w, Text *t) {
    NodeId n = culprit_of(w);
    const Range *r = &w->range[n];
    double max = w->query->max;
    char range[RANGE_TEXT];
    node_describe(t, &w->g->node[n]);
    if (r->nonfinite > 0 && w->stored[n])
        text_add(t, " is an input that is not finite");
    else if (r->nonfinite > 0)
        text_add(t, " is the first tensor that is not finite");
    else if (r->max > max || r->min < -max)
        text_add(t,
                 " is %s, but the largest number of its type in memory is %.6g",
                 range_text(range, r), max);
    else
        return false;
    if (r->nonfinite > 0)
        text_add(t, ", in %" PRId64 " of %" PRId64 " elements", r->nonfinite,
                 r->count);
    operands_explain(w, t, n);
    return true;
}

bool replay_explain(const Replay *r, const ReplayQuery *query,
                    const ReplayMemory *m, char *message, size_t length) {
    const Graph *g = r->graph;
    if (query->node >= g->count)
        return false;
    Arena *a = arena_new();
    Walk w = {.g = g,
              .query = query,
              .memory = m,
              .a = a,
              .needed = ARENA_ARRAY(a, g->count, bool),
              .stored = ARENA_ARRAY(a, g->count, bool),
              .last = ARENA_ARRAY(a, g->count, NodeId),
              .value = ARENA_ARRAY(a, g->count, double *),
              .range = ARENA_ARRAY(a, g->count, Range)};
    Text t = text_new(a);
    walk_mark(&w);
    bool good = walk_fits(&w) && walk_evaluate(&w) && culprit_explain(&w, &t);
    if (good)
        snprintf(message, length, "%s", text_string(&t));
    arena_free(a);
    return good;
}
