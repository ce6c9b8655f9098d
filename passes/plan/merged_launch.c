// Merged launches: see merged_launch.h.
//
// A run ends at a library call, where the backward pass begins, since
// the times of the passes are measured apart, and at the update, which has a
// barrier of its own and the largest text.

#include "passes/plan/merged_launch.h"

typedef struct {
    const Graph *g;
    const Group *group;
    int num_groups;
    const bool *saved; // of each group: a device may fuse it into a call
    MergedLaunches *found;
} Search;

bool step_merges(StepKind kind) {
    return (kind >= STEP_TRAIN && kind <= STEP_ACCUMULATE) ||
           kind == STEP_EVAL || kind == STEP_PREDICT || kind == STEP_DECODE;
}

int merged_barrier_counter(const Graph *g) {
    return (int)type_count(g->node[graph_counters(g)].type) - 1;
}

// Whether the last counter is that of no group: fuse leaves it where launches
// may be merged.
static bool has_barrier_counter(const Graph *g, const Group *group, int count) {
    int used = 0;
    for (int k = 0; k < count; k++)
        if (group[k].counter >= 0)
            used = group[k].counter + group[k].num_counters;
    return graph_counters(g) != NO_NODE && merged_barrier_counter(g) >= used;
}

// Attention has shared memory for itself alone.
static bool may_merge(const Group *group) {
    return group->kind != GROUP_CALL && group->kind != GROUP_ATTENTION &&
           !group_is_multi_tensor(group->kind);
}

static int pointers_of(const Group *group) {
    return group->num_inputs + group->num_outputs +
           (group->workspace != NO_NODE) + (group->counter >= 0);
}

// How many groups from k on are one launch; with `apart` without such as
// fusion.
static int run_length(const Search *s, int k, int end, bool apart) {
    int count = 0, pointers = 1;
    bool backward = group_backward(s->g, &s->group[k]);
    for (; k + count < end && count < MAX_MERGED; count++) {
        const Group *next = &s->group[k + count];
        pointers += pointers_of(next);
        if (!may_merge(next) || (apart && s->saved[k + count]) ||
            pointers > MAX_MERGED_POINTERS ||
            group_backward(s->g, next) != backward)
            break;
    }
    return count;
}

static void find_runs(Search *s, int first, int end, bool apart) {
    for (int k = first, count; k < end; k += count ? count : 1) {
        count = run_length(s, k, end, apart);
        if (count < 2 || (apart && count == end - first))
            continue;
        s->found->launch[s->found->count++] = (MergedLaunch){k, count};
        if (!apart)
            find_runs(s, k, k + count, true);
    }
}

MergedLaunches graph_merged_launches(const Graph *g,
                                     const LibraryFusions *fusions, Arena *a) {
    MergedLaunches found = {0};
    Search s = {.g = g,
                .group = fusions->group,
                .num_groups = fusions->num_groups,
                .found = &found};
    if (!has_barrier_counter(g, s.group, s.num_groups))
        return found;
    bool *saved = ARENA_ARRAY(a, (size_t)s.num_groups + 1, bool);
    for (int i = 0; i < fusions->count; i++)
        if (fusions->fusion[i].kernel >= 0)
            saved[fusions->fusion[i].kernel] = true;
    s.saved = saved;
    found.launch = ARENA_ARRAY(a, (size_t)s.num_groups + 1, MergedLaunch);
    find_runs(&s, 0, s.num_groups, false);
    return found;
}

// ---- the merged launches that a device takes ----

static bool is_free(const MergedLaunch *launch, const bool *gone) {
    for (int k = launch->first; k < launch->first + launch->count; k++)
        if (gone[k])
            return false;
    return true;
}

bool *merged_taken(const MergedLaunches *merged, const LibraryFusions *fusions,
                   const bool *fused, const bool *replaced, Arena *a) {
    bool *taken = ARENA_ARRAY(a, (size_t)merged->count + 1, bool);
    bool *gone = ARENA_ARRAY(a, (size_t)fusions->num_groups + 1, bool);
    for (int k = 0; replaced != NULL && k < fusions->num_groups; k++)
        gone[k] = replaced[k];
    for (int i = 0; i < fusions->count; i++)
        if (fused[i] && fusions->fusion[i].kernel >= 0)
            gone[fusions->fusion[i].kernel] = true;
    for (int i = 0; i < merged->count; i++) {
        const MergedLaunch *launch = &merged->launch[i];
        taken[i] = is_free(launch, gone);
        for (int k = launch->first;
             taken[i] && k < launch->first + launch->count; k++)
            gone[k] = true;
    }
    return taken;
}

int merged_saving(const MergedLaunches *merged, const LibraryFusions *fusions,
                  int sm, const bool *replaced) {
    Arena *a = arena_new();
    const bool *taken = merged_taken(
        merged, fusions, fusions_taken(fusions, sm, a), replaced, a);
    int saved = 0;
    for (int i = 0; i < merged->count; i++)
        saved += taken[i] ? merged->launch[i].count - 1 : 0;
    arena_free(a);
    return saved;
}
