// Live ranges: from which launch to which each buffer is needed.

#include "passes/live_range.h"

#include "base/round_up.h"
#include "passes/plan/fork.h"
#include "passes/plan/tile_fusion.h"

int64_t slot_bytes(const Graph *g, NodeId n) {
    int64_t bytes = graph_bytes(g, g->node[n].type);
    return round_up(bytes, ARENA_ALIGNMENT);
}

int64_t leaves_bytes(const Graph *g, bool states) {
    int64_t bytes = 0;
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        bool cache = state_is(d, STATE_CACHE);
        if (states ? d->op == OP_param || (d->op == OP_state && !cache)
                   : d->op == OP_input || cache)
            bytes += slot_bytes(g, n);
    }
    return bytes;
}

// The node of an output is read after the last launch.
static void keep_outputs(const Graph *g, const int *buffer_of, int groups,
                         Buffer *buffer) {
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_output) {
            int at = buffer_of[node_base(g, g->node[n].arg[0])] - 1;
            if (at >= 0)
                buffer[at].to = groups;
        }
}

// A call that does the work of a kernel writes the kernel's results, and reads
// batch_norm's operand in place of its result.  Live ranges allow for both
// ways, so that the device's choice changes no address.
static void keep_fusions(const LibraryFusions *fusions, const Group *group,
                         const int *buffer_of, Buffer *buffer) {
    for (int i = 0; i < fusions->count; i++) {
        const LibraryFusion *fusion = &fusions->fusion[i];
        Buffer *x = &buffer[buffer_of[fusions->norm[fusion->norm].x] - 1];
        x->to = x->to > fusion->call ? x->to : fusion->call;
        if (fusion->kind != FUSION_statistics &&
            fusion->kind != FUSION_backward)
            continue;
        const Group *kernel = &group[fusion->kernel];
        for (int j = 0; j < kernel->num_outputs; j++) {
            Buffer *out = &buffer[buffer_of[kernel->output[j]] - 1];
            out->from = out->from < fusion->call ? out->from : fusion->call;
        }
    }
}

// The bytes that are live at each launch, and after the last one.
static int64_t *live_bytes(const Buffer *buffer, int count, int last,
                           Arena *a) {
    int64_t *live = ARENA_ARRAY(a, (size_t)last + 2, int64_t);
    for (int i = 0; i < count; i++) {
        live[buffer[i].from] += buffer[i].bytes;
        live[buffer[i].to + 1] -= buffer[i].bytes;
    }
    for (int k = 1; k <= last; k++)
        live[k] += live[k - 1];
    return live;
}

// The operands of a launch stay until another one, if the peak stays too.
static void keep_operands(const Group *group, int from, int to,
                          const int *buffer_of, Buffer *buffer, int64_t *live,
                          int64_t peak) {
    int64_t most = 0;
    for (int k = from + 1; k <= to; k++) {
        int64_t more = 0;
        for (int i = 0; i < group->num_inputs; i++) {
            int at = buffer_of[group->input[i]] - 1;
            if (at >= 0 && buffer[at].to < k)
                more += buffer[at].bytes;
        }
        most = live[k] + more > most ? live[k] + more : most;
    }
    for (int i = 0; i < group->num_inputs && most <= peak; i++) {
        int at = buffer_of[group->input[i]] - 1;
        for (; at >= 0 && buffer[at].to < to; buffer[at].to++)
            live[buffer[at].to + 1] += buffer[at].bytes;
    }
}

// A tile kernel that applies a prologue reads the prologue's operands.  The
// prologue's result has its place all the same, for a device that has no such
// kernel.
static void keep_prologues(const Graph *g, const LibraryFusions *fusions,
                           const int *buffer_of, Buffer *buffer, int64_t *live,
                           int64_t peak, Arena *a) {
    int count;
    const TilePrologue *p =
        graph_tile_prologues(g, fusions->group, fusions->num_groups, a, &count);
    for (int i = 0; i < count; i++)
        keep_operands(&fusions->group[p[i].kernel], p[i].kernel, p[i].last,
                      buffer_of, buffer, live, peak);
}

// The results of a pool have their places since the convolution, if the peak
// stays: a tile kernel computes both.
static void make_earlier(Buffer *buffer, int from, int64_t *live,
                         int64_t peak) {
    int64_t most = 0;
    for (int k = from; k < buffer->from; k++)
        most = live[k] > most ? live[k] : most;
    for (; buffer->from > from && most + buffer->bytes <= peak; buffer->from--)
        live[buffer->from - 1] += buffer->bytes;
}

static void keep_pools(const Graph *g, const LibraryFusions *fusions,
                       const int *buffer_of, Buffer *buffer, int64_t *live,
                       int64_t peak, Arena *a) {
    Readers reader = group_readers(g, fusions->group, fusions->num_groups, a);
    for (int k = 0;
         k < fusions->num_groups && (g->act == F16 || g->act == BF16); k++) {
        if (fusions->group[k].kind != GROUP_CALL)
            continue;
        NodeId call = group_first(g, &fusions->group[k], CALLS);
        int pool = tile_contraction(g, call)
                       ? tile_pool_of(g, fusions->group, &reader, call)
                       : -1;
        for (int i = 0; pool >= 0 && i < fusions->group[pool].num_outputs; i++)
            make_earlier(&buffer[buffer_of[fusions->group[pool].output[i]] - 1],
                         k, live, peak);
    }
}

static void keep_longer(const Graph *g, const LibraryFusions *fusions,
                        const int *buffer_of, Buffer *buffer, int count,
                        Arena *a) {
    Forks f = graph_fork_candidates(g, fusions, a);
    const int64_t peak = buffers_bound(buffer, count);
    int64_t *live = live_bytes(buffer, count, fusions->num_groups, a);
    keep_prologues(g, fusions, buffer_of, buffer, live, peak, a);
    keep_pools(g, fusions, buffer_of, buffer, live, peak, a);
    for (int i = 0; i < f.count; i++)
        keep_operands(&fusions->group[f.fork[i].call], f.fork[i].call,
                      f.fork[i].join - 1, buffer_of, buffer, live, peak);
}

Buffer *graph_buffers(const Graph *g, const LibraryFusions *fusions,
                      bool longer, Arena *a, int *count) {
    const Group *group = fusions->group;
    int groups = fusions->num_groups;
    int *buffer_of = ARENA_ARRAY(a, g->count, int); // in buffer, from 1
    Buffer *buffer = ARENA_ARRAY(a, (size_t)g->count + 1, Buffer);
    *count = 0;
    for (int k = 0; k < groups; k++) {
        for (int i = 0; i < group[k].num_inputs; i++) {
            int at = buffer_of[group[k].input[i]] - 1;
            if (at >= 0)
                buffer[at].to = k;
        }
        for (int i = -1; i < group[k].num_outputs; i++) {
            NodeId n = i < 0 ? group[k].workspace : group[k].output[i];
            if (n == NO_NODE)
                continue;
            NodeId into = call_adds_to(&g->node[n]);
            if (into != NO_NODE) {
                buffer_of[n] = buffer_of[into];
                continue;
            }
            buffer[*count] = (Buffer){n, k, k, slot_bytes(g, n), -1};
            buffer_of[n] = ++*count;
        }
    }
    keep_outputs(g, buffer_of, groups, buffer);
    keep_fusions(fusions, group, buffer_of, buffer);
    if (longer)
        keep_longer(g, fusions, buffer_of, buffer, *count, a);
    return buffer;
}

int64_t buffers_bound(const Buffer *buffer, int count) {
    Arena *a = arena_new();
    int last = 0;
    for (int i = 0; i < count; i++)
        last = buffer[i].to > last ? buffer[i].to : last;
    const int64_t *live = live_bytes(buffer, count, last, a);
    int64_t most = 0;
    for (int k = 0; k <= last; k++)
        most = live[k] > most ? live[k] : most;
    arena_free(a);
    return most;
}
