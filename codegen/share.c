// Share: a kernel that does what an earlier one does is not written again.
//
// Blocks of a network repeat, and stages of a run differ in a few gradients and
// updates, so most kernels are the same but for the numbers of nodes in their
// names.  Compiling them is most of what building a trainer takes, for the C
// compiler as for NVRTC.  A shared kernel is named after the first layer that
// has it.

#include "codegen/key.h"

// Names a kernel after the first that does the same, which may be it.
static void share_kernel(Arena *a, Arena *scratch, Keys *seen, Kernel *k) {
    Text key = text_new(scratch);
    kernel_key(a, &key, k, &k->numbers, NULL);
    void **first = keys_at(seen, text_string(&key));
    if (*first == NULL)
        *first = k;
    k->first = *first;
    k->name = k->first->name;
}

// Each kernel is written once, and the host has one function for those that do
// the same there or differ in sizes alone.
static void share_kernels(Launches *step, int num_steps, int number, Arena *a) {
    Arena *scratch = arena_new();
    Keys seen = keys_new(scratch, number);
    Kernel **own = ARENA_ARRAY(scratch, (size_t)number + 1, Kernel *);
    int count = 0;
    for (int i = 0; i < num_steps; i++)
        for (int j = 0; j < step[i].count; j++) {
            Kernel *k = &step[i].kernel[j];
            if (k->tree == NULL)
                continue;
            share_kernel(a, scratch, &seen, k);
            if (k->first == k)
                own[count++] = k;
        }
    kernels_gather(own, count, a);
    arena_free(scratch);
}

// Writes the text of each, where that is known.
static void print_kernels(Launches *step, int num_steps, Arena *a) {
    for (int i = 0; i < num_steps; i++)
        for (int j = 0; j < step[i].count; j++) {
            Kernel *k = &step[i].kernel[j];
            if (k->tree != NULL && k->first == k)
                kernel_print(a, k);
            else if (k->tree != NULL)
                k->text = k->first->text;
        }
}

// ---- merged launches ----

// Merges launches of the steps that run often: the plan says which.
static void share_merged(Launches *step, int count, Arena *a) {
    for (int i = 0; i < count; i++)
        launches_merge(&step[i], a);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < step[i].plan->merged.count; k++) {
            const MergedLaunch *launch = &step[i].plan->merged.launch[k];
            for (int j = 0; j < launch->count; j++)
                step[i].kernel[launch->first + j].first->is_split = true;
        }
}

Launches *codegen_launches(const Plan *host, const Plan *device, Arena *a) {
    Launches *step = ARENA_ARRAY(a, (size_t)host->num_steps, Launches);
    int number = 0;
    for (int i = 0; i < host->num_steps; i++) {
        const GraphPlan *on_host = host->step[i].plan;
        step[i].plan = device->step[i].plan;
        step[i].count = on_host->num_groups;
        step[i].kernel = kernels_build(on_host, step[i].plan, a, &number);
    }
    share_kernels(step, host->num_steps, number, a);
    share_merged(step, host->num_steps, a);
    print_kernels(step, host->num_steps, a);
    return step;
}
