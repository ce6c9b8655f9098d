// Forks: see fork.h.

#include "passes/plan/fork.h"

// Concurrent kernels read and write this many bytes for each multiprocessor. At
// the bandwidth of the GPUs in tools/devices that takes 1 to 9 microseconds,
// assumed to be longer than to fork and join.
enum { BYTES_OF_MULTIPROCESSOR = 64 << 10 };

typedef struct {
    const Graph *g;
    const LibraryFusions *fusions;
    bool *fused;    // of each group: a library fusion may do its work, or it is
                    // the call that does
    Readers reader; // of each node
} Search;

// The first group after k that reads a result of it.
static int first_reader(const Search *s, int k) {
    const Group *group = &s->fusions->group[k];
    int first = s->fusions->num_groups;
    for (int i = 0; i < group->num_outputs; i++)
        for (int e = s->reader.first[group->output[i]]; e >= 0;
             e = s->reader.next[e])
            if (s->reader.group[e] > k && s->reader.group[e] < first)
                first = s->reader.group[e];
    return first;
}

// A call may be forked if it has one output and no fusion, and the backward
// pass goes on without it.  The device does not fork a call that takes a
// prologue.
static bool may_fork(const Search *s, int k) {
    const Group *group = &s->fusions->group[k];
    if (group->kind != GROUP_CALL || s->fused[k] || group->num_outputs != 1 ||
        !group_backward(s->g, group))
        return false;
    const Node *d = &s->g->node[group->output[0]];
    return (op_info[d->op].traits & CONTRACTS) != 0 &&
           call_adds_to(d) == NO_NODE && first_reader(s, k) > k + 1;
}

static bool reads(const Group *group, NodeId n) {
    for (int i = 0; i < group->num_inputs; i++)
        if (group->input[i] == n)
            return true;
    return false;
}

static bool writes_in_place(const Graph *g, const Group *group, NodeId n) {
    for (NodeId m = group->first; m <= group->last; m++)
        if ((g->node[m].op == OP_assign && g->node[m].arg[0] == n) ||
            call_adds_to(&g->node[m]) == n)
            return true;
    return false;
}

bool group_assigns_input(const Graph *g, const Group *group,
                         const Group *call) {
    for (int i = 0; i < call->num_inputs; i++)
        if (writes_in_place(g, group, call->input[i]))
            return true;
    return false;
}

static int64_t tensor_bytes(const Graph *g, const Group *group) {
    int64_t bytes = 0;
    for (int i = 0; i < group->num_inputs; i++)
        bytes += graph_bytes(g, g->node[group->input[i]].type);
    for (int i = 0; i < group->num_outputs; i++)
        bytes += graph_bytes(g, g->node[group->output[i]].type);
    return bytes;
}

static bool has_work(const Search *s, const Fork *f) {
    int64_t bytes = 0;
    for (int k = f->call + 1; k < f->join; k++)
        if (s->fusions->group[k].kind != GROUP_CALL && !s->fused[k])
            bytes += tensor_bytes(s->g, &s->fusions->group[k]);
    return bytes >= (int64_t)s->g->multiprocessors * BYTES_OF_MULTIPROCESSOR;
}

static Search search_new(const Graph *g, const LibraryFusions *fusions,
                         Arena *a) {
    Search s = {.g = g, .fusions = fusions};
    s.fused = ARENA_ARRAY(a, (size_t)fusions->num_groups + 1, bool);
    s.reader = group_readers(g, fusions->group, fusions->num_groups, a);
    for (int i = 0; i < fusions->count; i++) {
        if (fusions->fusion[i].kind != FUSION_prologue_weight)
            s.fused[fusions->fusion[i].call] = true;
        if (fusions->fusion[i].kernel >= 0)
            s.fused[fusions->fusion[i].kernel] = true;
    }
    return s;
}

Forks graph_fork_candidates(const Graph *g, const LibraryFusions *fusions,
                            Arena *a) {
    Search s = search_new(g, fusions, a);
    Forks f = {.fork = ARENA_ARRAY(a, (size_t)fusions->num_groups + 1, Fork)};
    for (int k = 0; k < fusions->num_groups; k++) {
        if (!may_fork(&s, k))
            continue;
        Fork fork = {k, k + 1};
        int end = first_reader(&s, k);
        while (fork.join < end && !may_fork(&s, fork.join) &&
               !group_assigns_input(g, &fusions->group[fork.join],
                                    &fusions->group[k]))
            fork.join++;
        if (has_work(&s, &fork))
            f.fork[f.count++] = fork;
    }
    return f;
}

// ---- by offsets ----

// Whether a write to node n disturbs a call.
static bool disturbs(const Graph *g, const Group *call, NodeId n) {
    for (int i = 0; i < call->num_inputs; i++)
        if (nodes_overlap(g, call->input[i], n))
            return true;
    return nodes_overlap(g, call->output[0], n);
}

static bool writes_over(const Graph *g, const Group *group, const Group *call) {
    for (int i = 0; i < group->num_outputs; i++)
        if (disturbs(g, call, group->output[i]))
            return true;
    return group->workspace != NO_NODE && disturbs(g, call, group->workspace);
}

// Whether launch k, or the work of kernels that a library call at k may do,
// has to wait for a call.
static bool must_wait(const Search *s, int k, const Group *call) {
    const LibraryFusions *fusions = s->fusions;
    if (writes_over(s->g, &fusions->group[k], call))
        return true;
    for (int i = 0; s->fused[k] && i < fusions->count; i++) {
        const LibraryFusion *f = &fusions->fusion[i];
        if (f->call == k && f->kernel >= 0 &&
            (writes_over(s->g, &fusions->group[f->kernel], call) ||
             reads(&fusions->group[f->kernel], call->output[0])))
            return true;
    }
    return false;
}

Forks graph_forks(const Graph *g, const LibraryFusions *fusions, Arena *a) {
    Search s = search_new(g, fusions, a);
    Forks f = graph_fork_candidates(g, fusions, a);
    int kept = 0;
    for (int i = 0; i < f.count; i++) {
        Fork fork = {f.fork[i].call, f.fork[i].call + 1};
        while (fork.join < f.fork[i].join &&
               !must_wait(&s, fork.join, &fusions->group[fork.call]))
            fork.join++;
        if (has_work(&s, &fork))
            f.fork[kept++] = fork;
    }
    f.count = kept;
    return f;
}
