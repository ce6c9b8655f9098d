// Memory: live ranges to offsets in one arena.
//
//   requires   Groups are in launch order.
//   preserves  The graph stays the same, and so do offsets of states that
//              memory_states assigned.
//   result     Every stored node has an offset; a view has the offset of its
//              base.
//
// The arena has, in this order:
//
// - states, at the same offsets in every graph of a program: those of no
//   optimizer shard, the parameters of each shard, the optimizer states of each
//   shard, and the terms of a shard of the samples;
// - inputs and caches;
// - buffers that live within a step: offset_assignment.c assigns their offsets;
// - the parameters of batch_norms that library fusions read.

#include "passes/live_range.h"
#include "passes/passes.h"

static bool is_state(const Node *n) {
    return n->op == OP_param ||
           (n->op == OP_state && !state_is(n, STATE_CACHE));
}

// States that lie side by side.
typedef struct {
    bool partial;
    int shard;  // -1: none
    bool param; // of the shard
} Kind;

static bool is_of(const Kind *k, const Node *d, int shard) {
    if (!is_state(d) || state_is(d, STATE_PARTIAL) != k->partial)
        return false;
    return shard == k->shard && (shard < 0 || k->param == (d->op == OP_param));
}

// The optimizer shard of a node; a graph may have the parameter unmarked.
static int shard_in(Graph *const *graph, int count, const Node *d, int shards) {
    int shard = node_optimizer_shard(d);
    for (int i = 0; i < count && shard < 0 && shards > 0 && d->op == OP_param;
         i++) {
        NodeId same = graph_find(graph[i], node_text(d, ATTR_name));
        if (same != NO_NODE)
            shard = node_optimizer_shard(&graph[i]->node[same]);
    }
    return shard;
}

static int64_t assign_states(Graph *const *graph, int count, int shards,
                             const Kind *kind, int64_t end) {
    for (int i = 0; i < count; i++)
        for (NodeId n = 0; n < graph[i]->count; n++) {
            Node *d = &graph[i]->node[n];
            if (!is_of(kind, d, shard_in(graph, count, d, shards)))
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

static int count_shards(Graph *const *graph, int count) {
    int shards = 0;
    for (int i = 0; i < count; i++)
        for (NodeId n = 0; n < graph[i]->count; n++) {
            int own = node_optimizer_shard(&graph[i]->node[n]);
            shards = own >= shards ? own + 1 : shards;
        }
    return shards;
}

int64_t memory_states(Graph *const *graph, int count, int64_t *partial) {
    int shards = count_shards(graph, count);
    int64_t end = assign_states(graph, count, shards, &(Kind){.shard = -1}, 0);
    for (int params = 1; params >= 0; params--)
        for (int k = 0; k < shards; k++)
            end = assign_states(graph, count, shards,
                                &(Kind){.shard = k, .param = params}, end);
    *partial = end;
    return assign_states(graph, count, shards,
                         &(Kind){.shard = -1, .partial = true}, end);
}

// The end of the states, which may be those of the program's other graphs too,
// and of the inputs, which follow them.
static int64_t assign_leaves(Graph *g) {
    int64_t end = g->arena_bytes, partial;
    memory_states(&g, 1, &partial);
    for (NodeId n = 0; n < g->count; n++)
        if (is_state(&g->node[n]) && g->node[n].offset + slot_bytes(g, n) > end)
            end = g->node[n].offset + slot_bytes(g, n);
    for (int caches = 0; caches < 2; caches++)
        for (NodeId n = 0; n < g->count; n++)
            if (caches ? state_is(&g->node[n], STATE_CACHE)
                       : g->node[n].op == OP_input) {
                g->node[n].offset = end;
                end += slot_bytes(g, n);
            }
    return end;
}

bool memory_fits(Graph *g, int64_t bytes) {
    Arena *a = arena_new();
    int count;
    LibraryFusions fusions = graph_library_fusions(g, a);
    Buffer *buffer = graph_buffers(g, &fusions, false, a, &count);
    int64_t room = bytes - assign_leaves(g) - fusions.bytes;
    bool fits = buffers_bound(buffer, count) <= room &&
                offsets_assign(buffer, count, room) <= room;
    arena_free(a);
    return fits;
}

static int64_t assign(const Graph *g, Buffer *buffer, int count,
                      const PassOptions *o) {
    for (int i = 0; i < count && !o->reuse; i++) {
        buffer[i].from = 0;
        buffer[i].to = (int)g->count;
    }
    return offsets_assign(buffer, count, 0);
}

// Forks may lead to worse offsets; then there are fewer of them.
Graph *pass_memory(Graph *g, Arena *scratch, const PassOptions *o) {
    int64_t start = assign_leaves(g);
    int count;
    LibraryFusions fusions = graph_library_fusions(g, scratch);
    Buffer *buffer = graph_buffers(g, &fusions, true, scratch, &count);
    const int64_t bound = buffers_bound(buffer, count);
    g->live_bytes = leaves_bytes(g, false) + bound + fusions.bytes;
    int64_t end = assign(g, buffer, count, o);
    if (o->reuse && end > bound) {
        Buffer *other = graph_buffers(g, &fusions, false, scratch, &count);
        int64_t own = assign(g, other, count, o);
        buffer = own < end ? other : buffer;
        end = own < end ? own : end;
    }
    g->arena_bytes = start + end + fusions.bytes;
    for (int i = 0; i < count; i++)
        g->node[buffer[i].node].offset = start + buffer[i].offset;
    for (NodeId n = 0; n < g->count; n++) {
        NodeId into = call_adds_to(&g->node[n]);
        if (into != NO_NODE)
            g->node[n].offset = g->node[into].offset;
        if (node_base(g, n) != n)
            g->node[n].offset = g->node[node_base(g, n)].offset;
    }
    g->facts |= PLANNED;
    return g;
}
