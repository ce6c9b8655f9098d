// Memory: lifetimes to offsets in one arena.
//
//   needs   groups in launch order
//   keeps   the graph; offsets of states that memory_states gave
//   leaves  an offset for every stored node; views have that of their base
//
// States come first and keep their place in every graph of a program, then
// inputs, then what lives only within a step.  Those are placed greedily, the
// largest first, each at the lowest gap that no buffer live at the same time
// takes.  Slots are whole multiples of 256 bytes, so that a kernel may read
// and write whole vectors up to the end of its tensor.

#include "ir/group.h"
#include "passes/passes.h"

#include <stdlib.h>
#include <string.h>

enum { SLOT = 256 };

static int64_t slot_bytes(const Graph *g, NodeId n) {
    int64_t bytes = graph_bytes(g, g->node[n].type);
    return (bytes + SLOT - 1) / SLOT * SLOT;
}

static bool is_state(const Node *n) {
    return n->op == OP_param || n->op == OP_state;
}

int64_t memory_states(Graph *const *graph, int count) {
    int64_t end = 0;
    for (int i = 0; i < count; i++)
        for (NodeId n = 0; n < graph[i]->count; n++) {
            Node *d = &graph[i]->node[n];
            if (!is_state(d))
                continue;
            const char *name = node_text(d, ATTR_name);
            for (int j = 0; j < i && d->offset < 0; j++) {
                NodeId other = graph_find(graph[j], name);
                if (other != NO_NODE && is_state(&graph[j]->node[other]))
                    d->offset = graph[j]->node[other].offset;
            }
            if (d->offset < 0) {
                d->offset = end;
                end += slot_bytes(graph[i], n);
            }
        }
    return end;
}

typedef struct {
    NodeId node;
    int from, to; // groups, inclusive
    int64_t bytes, offset;
} Buffer;

// When each stored node that is not a leaf is written and last read.
static Buffer *find_buffers(const Graph *g, Arena *a, bool reuse, int *count) {
    int groups;
    Group *group = graph_groups(g, a, &groups);
    int *place = ARENA_ARRAY(a, g->count, int);
    Buffer *buffer = ARENA_ARRAY(a, (size_t)g->count + 1, Buffer);
    *count = 0;
    for (int k = 0; k < groups; k++) {
        for (int i = 0; i < group[k].num_inputs; i++) {
            int at = place[group[k].input[i]] - 1;
            if (at >= 0)
                buffer[at].to = k;
        }
        for (int i = -1; i < group[k].num_outputs; i++) {
            NodeId n = i < 0 ? group[k].scratch : group[k].output[i];
            if (n == NO_NODE)
                continue;
            buffer[*count] = (Buffer){n, k, k, slot_bytes(g, n), -1};
            place[n] = ++*count;
        }
    }
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_output) {
            int at = place[node_base(g, g->node[n].arg[0])] - 1;
            if (at >= 0)
                buffer[at].to = groups;
        }
    for (int i = 0; i < *count && !reuse; i++) {
        buffer[i].from = 0;
        buffer[i].to = groups;
    }
    return buffer;
}

static int by_size(const void *a, const void *b) {
    const Buffer *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

static bool live_together(const Buffer *a, const Buffer *b) {
    return a->from <= b->to && b->from <= a->to;
}

// Places buffer i among those before it, which are kept sorted by offset in
// `placed`.  Returns the end of its slot.
static int64_t place(Buffer *buffer, int i, int *placed, int64_t start) {
    int64_t offset = start;
    Buffer *b = &buffer[i];
    for (int j = 0; j < i; j++) {
        const Buffer *other = &buffer[placed[j]];
        if (!live_together(b, other))
            continue;
        if (other->offset - offset >= b->bytes)
            break;
        if (other->offset + other->bytes > offset)
            offset = other->offset + other->bytes;
    }
    b->offset = offset;
    int j = i;
    for (; j > 0 && buffer[placed[j - 1]].offset > offset; j--)
        placed[j] = placed[j - 1];
    placed[j] = i;
    return offset + b->bytes;
}

Graph *pass_memory(Graph *g, Arena *scratch, const PassOptions *o) {
    int64_t start = 0, end;
    memory_states(&g, 1);
    for (NodeId n = 0; n < g->count; n++)
        if (is_state(&g->node[n]) &&
            g->node[n].offset + slot_bytes(g, n) > start)
            start = g->node[n].offset + slot_bytes(g, n);
    if (g->arena_bytes > start) // states of the program's other graphs
        start = g->arena_bytes;
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_input) {
            g->node[n].offset = start;
            start += slot_bytes(g, n);
        }
    int count;
    Buffer *buffer = find_buffers(g, scratch, o->reuse, &count);
    int *placed = ARENA_ARRAY(scratch, (size_t)count + 1, int);
    qsort(buffer, (size_t)count, sizeof *buffer, by_size);
    end = start;
    for (int i = 0; i < count; i++) {
        int64_t top = place(buffer, i, placed, start);
        end = top > end ? top : end;
        g->node[buffer[i].node].offset = buffer[i].offset;
    }
    for (NodeId n = 0; n < g->count; n++)
        if (node_base(g, n) != n)
            g->node[n].offset = g->node[node_base(g, n)].offset;
    g->arena_bytes = end;
    g->facts |= PLANNED;
    return g;
}
