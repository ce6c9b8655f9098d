// Memory verifier: replays a plan and tracks the contents of each byte.
//
// It shares nothing with the planner.  Launch by launch, the inputs of
// a group must still be intact, and nothing may be written over a state, an
// input, or a tensor of the same launch; a state that is assigned is not read
// afterwards.  It replays library fusions too: a
// call that does the work of a kernel finds its operands, and its results are
// intact where the kernel would have run.  The tensors of a forked call are
// intact until its join, and the operands of a prologue until a tile kernel
// applies it.

#include "passes/passes.h"
#include "passes/plan/fork.h"
#include "passes/plan/tile_fusion.h"

#include <string.h>

typedef struct {
    int64_t begin, end;
    NodeId node;
    bool fixed; // states and inputs, which no launch may overwrite
} Held;

typedef struct {
    const Graph *g;
    Arena *arena;
    Held *held; // tensors in memory, in order; ranges do not overlap
    int count;
    bool *holds;    // whether it holds node n
    bool *assigned; // of a state
    const Group *group;
    LibraryFusions fusions;
    int *first, *next; // of each group: the fusions of its call, as a list
    int *saves;        // of each group: the fusion that saves its kernel, or -1
    Forks forks;
    TileFusions tiles;
} Replay;

static Held range_of(const Graph *g, NodeId n) {
    const Node *d = &g->node[n];
    return (Held){d->offset, d->offset + graph_bytes(g, d->type), n,
                  d->op == OP_input || d->op == OP_param || d->op == OP_state};
}

static bool overlap(Held a, Held b) {
    return a.begin < b.end && b.begin < a.end;
}

static const char *fault(const Replay *r, const char *what, NodeId n,
                         NodeId other) {
    return arena_format(r->arena, "%%%u at %lld %s %%%u at %lld", n,
                        (long long)r->g->node[n].offset, what, other,
                        (long long)r->g->node[other].offset);
}

static const char *check_range(const Replay *r, NodeId n) {
    Held h = range_of(r->g, n);
    if (h.begin < 0 || h.end > r->g->arena_bytes - r->fusions.bytes)
        return arena_format(r->arena, "%%%u is outside the arena", n);
    if (h.begin % ARENA_ALIGNMENT != 0)
        return arena_format(r->arena, "%%%u is not aligned to %d bytes", n,
                            ARENA_ALIGNMENT);
    return NULL;
}

// The first range that ends past an address.
static int find_range(const Replay *r, int64_t address) {
    int low = 0, high = r->count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (r->held[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Puts h in the place of the ranges first .. last-1.
static void replace(Replay *r, int first, int last, Held h) {
    for (int i = first; i < last; i++)
        r->holds[r->held[i].node] = false;
    memmove(&r->held[first + 1], &r->held[last],
            (size_t)(r->count - last) * sizeof h);
    r->count += 1 - (last - first);
    r->held[first] = h;
    r->holds[h.node] = true;
}

// Writes node n: whatever it covers is gone.
static const char *hold(Replay *r, NodeId n) {
    Held h = range_of(r->g, n);
    const char *why = check_range(r, n);
    if (why != NULL)
        return why;
    int first = find_range(r, h.begin), last = first;
    for (; last < r->count && overlap(h, r->held[last]); last++)
        if (r->held[last].fixed)
            return fault(r, "overwrites", n, r->held[last].node);
    replace(r, first, last, h);
    return NULL;
}

// ---- library fusions ----

// Whether a fused call writes the results of the kernel.
static bool leaves(const LibraryFusion *fusion) {
    return fusion->kind == FUSION_statistics || fusion->kind == FUSION_backward;
}

// Whether the results of a fusion are intact where its kernel would run.
static const char *check_saved(const Replay *r, int k) {
    const Group *group = &r->group[k];
    if (r->saves[k] < 0 || !leaves(&r->fusions.fusion[r->saves[k]]))
        return NULL;
    for (int i = 0; i < group->num_outputs; i++)
        if (!r->holds[group->output[i]])
            return fault(r, "of a library call is overwritten before",
                         group->output[i], group->first);
    return NULL;
}

static const char *replay_fusion(Replay *r, const LibraryFusion *fusion) {
    const Norm *norm = &r->fusions.norm[fusion->norm];
    const Group *call = &r->group[fusion->call];
    const char *why = NULL;
    for (int i = 0; leaves(fusion) && why == NULL &&
                    i < r->group[fusion->kernel].num_outputs;
         i++)
        why = hold(r, r->group[fusion->kernel].output[i]);
    if (why != NULL)
        return why;
    if (!r->holds[norm->x])
        return fault(r, "is gone before a library fusion at", norm->x,
                     call->first);
    for (int i = 0; i < call->num_inputs; i++)
        if (!r->holds[call->input[i]] && call->input[i] != norm->y)
            return fault(r, "is overwritten by the library fusion that reads",
                         call->input[i], call->first);
    return NULL;
}

// Replays the fusions of the call that has just been replayed.
static const char *replay_fusions(Replay *r, int k) {
    const char *why = NULL;
    for (int i = r->first[k]; i >= 0 && why == NULL; i = r->next[i])
        why = replay_fusion(r, &r->fusions.fusion[i]);
    return why;
}

static void list_fusions(Replay *r, int groups) {
    r->fusions = groups_library_fusions(r->g, r->group, groups, r->arena);
    r->first = ARENA_ARRAY(r->arena, (size_t)groups + 1, int);
    r->saves = ARENA_ARRAY(r->arena, (size_t)groups + 1, int);
    r->next = ARENA_ARRAY(r->arena, (size_t)r->fusions.count + 1, int);
    for (int k = 0; k < groups; k++)
        r->first[k] = r->saves[k] = -1;
    for (int i = 0; i < r->fusions.count; i++) {
        const LibraryFusion *fusion = &r->fusions.fusion[i];
        r->next[i] = r->first[fusion->call];
        r->first[fusion->call] = i;
        if (fusion->kernel >= 0)
            r->saves[fusion->kernel] = i;
    }
}

// Whether group k overwrites node n because its call adds to it.
static bool adds_to(const Replay *r, const Group *group, NodeId n) {
    for (int i = 0; i < group->num_outputs; i++) {
        const Node *d = &r->g->node[group->output[i]];
        if (call_adds_to(d) == n && d->offset == r->g->node[n].offset)
            return true;
    }
    return false;
}

static const char *replay_group(Replay *r, int k) {
    const Group *group = &r->group[k];
    const char *why = check_saved(r, k);
    if (why != NULL)
        return why;
    for (int i = 0; i < group->num_inputs; i++)
        if (!r->holds[group->input[i]])
            return arena_format(r->arena,
                                "group %d reads %%%u after it was "
                                "overwritten",
                                group->group, group->input[i]);
        else if (r->assigned[group->input[i]])
            return arena_format(r->arena,
                                "group %d reads %%%u after it was assigned",
                                group->group, group->input[i]);
    for (NodeId n = group->first; n <= group->last; n++)
        if (r->g->node[n].op == OP_assign)
            r->assigned[r->g->node[n].arg[0]] = true;
    for (int i = -1; i < group->num_outputs && why == NULL; i++) {
        NodeId n = i < 0 ? group->workspace : group->output[i];
        if (n != NO_NODE)
            why = hold(r, n);
    }
    if (why != NULL)
        return why;
    for (int i = 0; i < group->num_inputs; i++)
        if (!r->holds[group->input[i]] && !adds_to(r, group, group->input[i]))
            return fault(r, "is overwritten by the group that reads",
                         group->input[i], group->first);
    for (int i = 0; i < group->num_outputs; i++) {
        NodeId into = call_adds_to(&r->g->node[group->output[i]]);
        if (into != NO_NODE && !adds_to(r, group, into))
            return fault(r, "does not add in the place of", group->output[i],
                         into);
    }
    for (int i = 0; i < group->num_outputs; i++)
        if (!r->holds[group->output[i]])
            return fault(r, "shares memory within the group of",
                         group->output[i], group->first);
    return replay_fusions(r, k);
}

// Whether launch k leaves alone what a call beside it reads and writes.
static const char *check_forks(const Replay *r, int k) {
    for (int i = 0; i < r->forks.count; i++) {
        const Fork *f = &r->forks.fork[i];
        const Group *call = &r->group[f->call];
        if (k <= f->call || k >= f->join)
            continue;
        for (int j = 0; j < call->num_inputs; j++)
            if (!r->holds[call->input[j]] || r->assigned[call->input[j]])
                return fault(r, "is gone while a forked call reads it at",
                             call->input[j], call->first);
        if (!r->holds[call->output[0]])
            return fault(r, "is overwritten beside a forked call at",
                         call->output[0], call->first);
        for (int j = 0; j < r->group[k].num_inputs; j++)
            if (r->group[k].input[j] == call->output[0])
                return fault(r, "is read before the join of", call->output[0],
                             call->first);
    }
    return NULL;
}

// Whether a tile kernel in place of launch k finds the tensors that its
// prologues read, and the launch writes over none of them.
static const char *check_prologues(const Replay *r, int k) {
    for (int i = 0; i < r->tiles.count; i++) {
        const TileFusion *f = &r->tiles.fusion[i];
        if (k != (f->epilogue >= 0 ? f->epilogue : f->call))
            continue;
        for (int o = 0; o < TILE_OPERANDS; o++) {
            const Group *group =
                &r->group[f->prologue[o] >= 0 ? f->prologue[o] : 0];
            for (int j = 0; f->prologue[o] >= 0 && j < group->num_inputs; j++)
                if (!r->holds[group->input[j]] || r->assigned[group->input[j]])
                    return fault(r, "is gone before a tile kernel applies",
                                 group->input[j], group->first);
        }
    }
    return NULL;
}

const char *memory_verify(const Graph *g, Arena *a) {
    int count;
    Group *group = graph_groups(g, a, &count);
    Replay r = {.g = g,
                .arena = a,
                .held = ARENA_ARRAY(a, (size_t)g->count + 1, Held),
                .holds = ARENA_ARRAY(a, (size_t)g->count + 1, bool),
                .assigned = ARENA_ARRAY(a, (size_t)g->count + 1, bool),
                .group = group};
    list_fusions(&r, count);
    r.forks = graph_forks(g, &r.fusions, a);
    r.tiles = graph_tile_fusions(g, &r.fusions, &r.forks, a);
    const char *why = NULL;
    for (NodeId n = 0; n < g->count && why == NULL; n++)
        if (range_of(g, n).fixed)
            why = hold(&r, n);
    for (int k = 0; k < count && why == NULL; k++) {
        why = replay_group(&r, k);
        why = why != NULL ? why : check_forks(&r, k);
        why = why != NULL ? why : check_prologues(&r, k);
    }
    for (NodeId n = 0; n < g->count && why == NULL; n++) {
        if (g->node[n].op != OP_output)
            continue;
        NodeId base = node_base(g, g->node[n].arg[0]);
        if (!node_immediate(&g->node[base]) && !r.holds[base])
            why = arena_format(a, "output %%%u was overwritten", n);
    }
    return why;
}
