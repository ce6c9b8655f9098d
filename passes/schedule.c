// Schedule: the order of the launches.
//
//   requires   Nodes have groups.
//   preserves  Every group and all dependences stay the same.
//   result     Groups are in launch order.
//
// The next launch is the ready group that frees most memory, or takes least;
// the first one among equals.  In the backward pass a weight's gradient, which
// frees an activation, comes before the gradient of the input, which needs a
// new buffer.  But this order begins all branches before it ends one.  So two
// other orders are tried: the given one, and one that continues with the last
// result unless another group frees memory.  One that needs clearly less memory
// is taken.
//
// The gradients of a shard do not wait for memory, and a bucket of them is
// stored when the last is there, so that its sum over ranks begins early.

#include "passes/passes.h"
#include "passes/plan/group.h"

#include <string.h>

enum {
    AHEAD = 16,
    WORTH = 256, // another order saves at least this part of the memory
};

typedef enum { BY_GAIN, BY_TURN, BY_BRANCH, NUM_RULES } Rule;

typedef struct {
    const Graph *g;
    Rule rule;
    Group *group;
    int count;
    const int *owner; // of each node: index of its group, or -1
    Readers readers;
    int *left;  // groups that still have to read a node
    int *waits; // of each group: inputs that are not computed yet
    int *since; // of each group: its place among those that became ready
    int64_t live, peak; // bytes in use now, and the most until now
} Schedule;

static void count_readers(Schedule *s) {
    for (int k = 0; k < s->count; k++)
        for (int i = 0; i < s->group[k].num_inputs; i++) {
            NodeId n = s->group[k].input[i];
            s->left[n]++;
            s->waits[k] += s->owner[n] >= 0;
        }
    for (NodeId n = 0; n < s->g->count; n++)
        if (s->g->node[n].op == OP_output) // never freed
            s->left[node_base(s->g, s->g->node[n].arg[0])]++;
}

static bool updates(const Group *group) {
    return group->kind == GROUP_UPDATE;
}

static bool stores_terms(const Schedule *s, int k) {
    return updates(&s->group[k]) && group_stores_terms(s->g, &s->group[k]);
}

// Whether n is kept for nothing but to be stored as terms of a shard.  The sums
// of terms over ranks begin as early as they can, so these are no reason to
// wait.
static bool is_term(const Schedule *s, NodeId n) {
    int e = s->readers.first[n];
    bool only = e >= 0;
    for (; e >= 0 && only; e = s->readers.next[e])
        only = stores_terms(s, s->readers.group[e]);
    return only;
}

// Bytes freed less bytes taken by running group k now.
static int64_t gain(const Schedule *s, int k) {
    const Group *group = &s->group[k];
    int64_t bytes = 0;
    for (int i = 0; i < group->num_inputs; i++) {
        NodeId n = group->input[i];
        if (s->owner[n] >= 0 && s->left[n] == 1)
            bytes += graph_bytes(s->g, s->g->node[n].type);
    }
    for (int i = 0; i < group->num_outputs; i++)
        if (!is_term(s, group->output[i]))
            bytes -= graph_bytes(s->g, s->g->node[group->output[i]].type);
    return bytes;
}

static bool is_better(const Schedule *s, int64_t gain, int k, int64_t most,
                      int best) {
    if (s->rule == BY_BRANCH && gain < 0 && most < 0)
        return s->since[k] > s->since[best];
    return gain > most;
}

// Updates write states that others read, so they wait for all other groups.
// Nothing reads the terms of a shard in its step: they are stored at once.
static int choose(const Schedule *s, const int *ready, int num_ready) {
    int best = -1, ahead = s->rule == BY_TURN ? 1 : AHEAD;
    int64_t most = 0;
    if (stores_terms(s, ready[0]))
        return 0;
    for (int i = 0; i < num_ready && (i < ahead || best < 0); i++) {
        if (updates(&s->group[ready[i]]) && num_ready > 1)
            continue;
        int64_t bytes = gain(s, ready[i]);
        if (best < 0 || is_better(s, bytes, ready[i], most, ready[best])) {
            best = i;
            most = bytes;
        }
    }
    return best < 0 ? 0 : best; // updates alone are left
}

// In order, but terms of a shard first.
static int insert(const Schedule *s, int *ready, int num_ready, int k) {
    int i = num_ready;
    bool first = stores_terms(s, k);
    for (; i > 0 &&
           (first || (ready[i - 1] > k && !stores_terms(s, ready[i - 1])));
         i--)
        ready[i] = ready[i - 1];
    ready[i] = k;
    return num_ready + 1;
}

// Runs group k: its results are live, inputs that it reads last are not.
static void run(Schedule *s, int k) {
    const Group *group = &s->group[k];
    for (int i = 0; i < group->num_outputs; i++)
        s->live += graph_bytes(s->g, s->g->node[group->output[i]].type);
    s->peak = s->live > s->peak ? s->live : s->peak;
    for (int i = 0; i < group->num_inputs; i++) {
        NodeId n = group->input[i];
        if (--s->left[n] == 0 && s->owner[n] >= 0)
            s->live -= graph_bytes(s->g, s->g->node[n].type);
    }
}

static int *order(Schedule *s, Arena *scratch) {
    const Readers *r = &s->readers;
    int *ready = ARENA_ARRAY(scratch, (size_t)s->count + 1, int);
    int *result = ARENA_ARRAY(scratch, (size_t)s->count + 1, int);
    int num_ready = 0, done = 0, stamp = 0;
    for (int k = 0; k < s->count; k++)
        if (s->waits[k] == 0)
            num_ready = insert(s, ready, num_ready, k);
    while (num_ready > 0) {
        int i = choose(s, ready, num_ready), k = ready[i];
        memmove(&ready[i], &ready[i + 1],
                (size_t)(--num_ready - i) * sizeof *ready);
        result[done++] = k;
        run(s, k);
        const Group *group = &s->group[k];
        for (int j = 0; j < group->num_outputs; j++)
            for (int e = r->first[group->output[j]]; e >= 0; e = r->next[e])
                if (--s->waits[r->group[e]] == 0) {
                    s->since[r->group[e]] = ++stamp;
                    num_ready = insert(s, ready, num_ready, r->group[e]);
                }
    }
    return result;
}

// When each node is placed: leaves first, a group's nodes in its order, a view
// right after its operand, outputs last.
static int *places_of(const Schedule *s, const int *order, Arena *scratch) {
    const Graph *g = s->g;
    int *place = ARENA_ARRAY(scratch, g->count, int);
    int *rank = ARENA_ARRAY(scratch, (size_t)s->count + 1, int);
    for (int i = 0; i < s->count; i++)
        rank[order[i]] = i + 1;
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        if (s->owner[n] >= 0)
            place[n] = rank[s->owner[n]];
        else if (d->op == OP_output)
            place[n] = s->count + 1;
        else
            place[n] = d->num_args ? place[d->arg[0]] : 0;
    }
    return place;
}

// The nodes sorted by place; those of one place stay in order.
static NodeId *by_place(const Schedule *s, const int *place, Arena *scratch) {
    NodeId count = s->g->count;
    NodeId *start = ARENA_ARRAY(scratch, (size_t)s->count + 3, NodeId);
    NodeId *sorted = ARENA_ARRAY(scratch, count, NodeId);
    for (NodeId n = 0; n < count; n++)
        start[place[n] + 1]++;
    for (int i = 0; i < s->count + 2; i++)
        start[i + 1] += start[i];
    for (NodeId n = 0; n < count; n++)
        sorted[start[place[n]]++] = n;
    return sorted;
}

static Graph *reorder(const Schedule *s, const int *order, Arena *scratch) {
    const Graph *old = s->g;
    Graph *g = graph_like(old);
    NodeId *now = ARENA_ARRAY(scratch, old->count, NodeId);
    int *place = places_of(s, order, scratch);
    NodeId *sorted = by_place(s, place, scratch);
    for (NodeId i = 0; i < old->count; i++) {
        Node d = node_mapped(&old->node[sorted[i]], now, scratch);
        d.group = s->owner[sorted[i]] >= 0 ? place[sorted[i]] - 1 : -1;
        g->origin = d.from;
        now[sorted[i]] = graph_move(g, d);
    }
    return g;
}

static Schedule schedule_of(const Graph *g, Rule rule, Group *group, int count,
                            Arena *scratch) {
    Schedule s = {.g = g, .rule = rule, .group = group, .count = count};
    s.owner = group_owners(g, group, count, scratch);
    s.readers = group_readers(g, group, count, scratch);
    s.left = ARENA_ARRAY(scratch, g->count, int);
    s.waits = ARENA_ARRAY(scratch, (size_t)s.count + 1, int);
    s.since = ARENA_ARRAY(scratch, (size_t)s.count + 1, int);
    count_readers(&s);
    return s;
}

Graph *pass_schedule(Graph *g, Arena *scratch, const PassOptions *o) {
    (void)o;
    Schedule best = {.peak = INT64_MAX};
    int *place = NULL, count;
    Group *group = graph_groups(g, scratch, &count);
    for (int rule = 0; rule < NUM_RULES; rule++) {
        Schedule s = schedule_of(g, (Rule)rule, group, count, scratch);
        int *found = order(&s, scratch);
        if (s.peak >= best.peak - best.peak / WORTH)
            continue;
        best = s;
        place = found;
    }
    return reorder(&best, place, scratch);
}
