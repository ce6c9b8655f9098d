// Gradient: follows the assignment to a parameter back, through pointwise
// operations, to tensors that the backward pass stored.  The scaling and the
// padding of the layout are on the way, so there may be several.
#include "tools/compare/gradient.h"

typedef struct {
    const Graph *g;
    const char *param;
    NodeId *queue;
    bool *met, *taken; // seen in this walk; known as a gradient
    int queued;
    Gradient *found;
    int count;
} Walk;

static bool is_gradient(const Node *d) {
    return d->from.backward && d->offset >= 0 && d->op != OP_workspace;
}

// Operands of products and reductions are other tensors.
static bool goes_on(const Graph *g, const Node *d, NodeId arg) {
    if ((op_info[d->op].traits & CALLS) || d->op == OP_sum)
        return false;
    return d->op == OP_slice || d->op == OP_pad ||
           type_count(g->node[arg].type) == type_count(d->type);
}

static void queue_add(Walk *w, NodeId n) {
    if (w->met[n] || (op_info[w->g->node[n].op].traits & LEAF))
        return;
    w->met[n] = true;
    w->queue[w->queued++] = n;
}

static void assignment_walk(Walk *w, NodeId value) {
    w->queued = 0;
    queue_add(w, value);
    for (int i = 0; i < w->queued; i++) {
        NodeId n = w->queue[i];
        const Node *d = &w->g->node[n];
        if (is_gradient(d) && !w->taken[n])
            w->found[w->count++] = (Gradient){w->param, n};
        w->taken[n] |= is_gradient(d);
        for (int k = 0; k < d->num_args; k++)
            if (goes_on(w->g, d, d->arg[k]))
                queue_add(w, d->arg[k]);
    }
    for (int i = 0; i < w->queued; i++)
        w->met[w->queue[i]] = false;
}

Gradient *gradients_of(Arena *a, const Graph *g, int *count) {
    Walk w = {.g = g,
              .queue = ARENA_ARRAY(a, (size_t)g->count + 1, NodeId),
              .met = ARENA_ARRAY(a, (size_t)g->count + 1, bool),
              .taken = ARENA_ARRAY(a, (size_t)g->count + 1, bool),
              .found = ARENA_ARRAY(a, (size_t)g->count + 1, Gradient)};
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        if (d->op != OP_assign || g->node[d->arg[0]].op != OP_param)
            continue;
        w.param = node_text(&g->node[d->arg[0]], ATTR_name);
        assignment_walk(&w, d->arg[1]);
    }
    *count = w.count;
    return w.found;
}
