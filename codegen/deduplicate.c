// Deduplication: equal kernels are written once.
//
// Blocks of a network repeat, and stages of a run differ in a few gradients and
// updates.  So most kernels differ only in the node numbers of their names.
// Compiling them dominates the build of a trainer, for the C compiler as for
// NVRTC.  A shared kernel has the name of its first launch.

#include "codegen/structural_key.h"

typedef struct {
    Arena *a;
    StringMap seen;
    Families families;
} Sharing;

// Names a kernel after the first equal one, which may be itself.
static void share_kernel(void *context, Kernel *k) {
    Sharing *s = context;
    Arena *scratch = arena_new();
    Text key = text_new(scratch);
    kernel_key(s->a, &key, k, &k->numbers, NULL);
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
        family_take(&s->families, k, s->a);
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

Launches *codegen_launches(const Plan *host, const Plan *device, Arena *a) {
    Launches *step = ARENA_ARRAY(a, (size_t)host->num_steps, Launches);
    Arena *scratch = arena_new();
    int number = 0, most = count_launches(host);
    Sharing s = {a, map_new(scratch, most), families_new(scratch, most)};
    for (int i = 0; i < host->num_steps; i++) {
        const GraphPlan *on_host = host->step[i].plan;
        step[i].plan = device->step[i].plan;
        step[i].count = on_host->num_groups;
        step[i].kernel = kernels_build(on_host, step[i].plan, a, &number,
                                       share_kernel, &s);
    }
    families_print(&s.families, a);
    arena_free(scratch);
    share_merged(step, host->num_steps, a);
    for (int i = 0; i < host->num_steps; i++)
        for (int j = 0; j < step[i].count; j++)
            if (step[i].kernel[j].first != NULL)
                step[i].kernel[j].text = step[i].kernel[j].first->text;
    return step;
}
