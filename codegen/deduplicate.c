// Deduplication: equal kernels are written once.
//
// Blocks of a network repeat, and stages of a run differ in a few gradients and
// updates.  So most kernels differ only in the node numbers of their names.
// Compiling them dominates the build of a trainer, for the C compiler as for
// NVRTC.  A shared kernel has the name of its first launch.

#include "codegen/emit.h"
#include "codegen/kernel/parametrize.h"

typedef struct {
    Arena *a;
    StringMap seen;
    Families families;
    Kernel **first; // of each family
    int num_first;
} Sharing;

bool kernel_in_family(const Kernel *k) {
    return k->member != NULL && k->member->first->next != NULL;
}

// Adds a kernel to its family, and prints it if it is not the first.  A
// multi-tensor kernel equals no other, as its tables hold its own addresses.
static void family_take(Sharing *s, Kernel *k) {
    if (!group_is_multi_tensor(k->group->kind))
        k->member = families_add(&s->families, k->tree);
    if (s->families.count == s->num_first)
        kernel_print(s->a, k);
    else
        ARENA_APPEND(s->a, s->first, s->num_first, k);
}

// Prints the first of each family, with numbers that differ as parameters.
static void families_print(Sharing *s) {
    for (int i = 0; i < s->num_first; i++) {
        if (kernel_in_family(s->first[i]))
            family_parametrize(s->a, s->first[i]->member);
        kernel_print(s->a, s->first[i]);
    }
}

// Names a kernel after the first equal one, which may be itself.
static void share_kernel(void *context, Kernel *k) {
    Sharing *s = context;
    Arena *scratch = arena_new();
    Text key = text_new(scratch);
    for (int i = 0; i < NUM_PLANS; i++)
        text_add(&key, "%d ", k->grid[i]);
    tree_key(s->a, &key, k->tree, &k->numbers, NULL);
    void **first = map_at(&s->seen, text_string(&key));
    arena_free(scratch);
    bool seen = *first != NULL;
    if (!seen)
        *first = k;
    k->first = *first;
    k->name = k->first->name;
    if (seen)
        kernel_free(k);
    else
        family_take(s, k);
}

// ---- merged launches ----

// Merges launches of frequent steps: the plan selects them.
static void share_merged(Launches *step, int count, Arena *a) {
    for (int i = 0; i < count; i++)
        launches_merge(&step[i], a);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < step[i].plan->merged.count; k++) {
            const MergedLaunch *launch = &step[i].plan->merged.launch[k];
            for (int j = 0; j < launch->count; j++)
                kernel_split(a, step[i].kernel[launch->first + j].first);
        }
}

static int count_launches(const Plan *plan) {
    int count = 0;
    for (int i = 0; i < plan->num_steps; i++)
        count += plan->step[i].plan->num_groups;
    return count;
}

Launches *codegen_launches(const Plan *host, const Plan *gpu, Arena *a) {
    Launches *step = ARENA_ARRAY(a, (size_t)host->num_steps, Launches);
    Arena *scratch = arena_new();
    int number = 0, most = count_launches(host);
    Sharing s = {.a = a,
                 .seen = map_new(scratch, most),
                 .families = families_new(a, scratch, most)};
    for (int i = 0; i < host->num_steps; i++) {
        const GraphPlan *on_host = host->step[i].plan;
        step[i].plan = gpu->step[i].plan;
        step[i].count = on_host->num_groups;
        step[i].kernel = kernels_build(on_host, step[i].plan, a, &number,
                                       share_kernel, &s);
    }
    families_print(&s);
    arena_free(scratch);
    share_merged(step, host->num_steps, a);
    for (int i = 0; i < host->num_steps; i++)
        for (int j = 0; j < step[i].count; j++)
            if (step[i].kernel[j].first != NULL)
                step[i].kernel[j].text = step[i].kernel[j].first->text;
    return step;
}
