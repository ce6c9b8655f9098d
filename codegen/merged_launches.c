// Merged launches: their texts.  The body of each kernel is a function.  Both
// the kernel and the merged launch call it; the merged launch has one phase for
// each kernel.

#include "codegen/emit.h"

#include <string.h>

// "j05_06_batch_norm_relu__prep": the numbers of all kernels, and the rest of
// the last one's name.
static const char *merged_name(Arena *a, const Kernel *kernel, int count) {
    Text t = text_new(a);
    text_add(&t, "j");
    for (int i = 0; i < count; i++) {
        const char *number = kernel[i].name + 1;
        text_add(&t, "%s%.*s", i ? "_" : "", (int)strcspn(number, "_"), number);
    }
    text_add(&t, "%s", strchr(kernel[count - 1].name, '_'));
    return text_string(&t);
}

static void add_parameters(Text *t, const Kernel *k, int phase) {
    for (int i = 0; i < k->num_args; i++)
        text_add(t, "%s%s *%c%d,", i % 4 ? " " : "\n    ", k->arg[i].type,
                 'a' + phase, i);
}

static void add_phase(Text *t, const Kernel *k, int phase) {
    const char *blocks =
        arena_format(t->arena, "AT(%d, %d)", k->grid[HOST_PLAN],
                     k->grid[DEVICE_PLAN]);
    if (phase > 0)
        text_add(t, "    GRID_BARRIER(barrier);\n");
    text_add(t, "    PHASE(%d) FOR_BLOCKS(%s)\n        %s_body(", phase, blocks,
             k->name);
    for (int i = 0; i < k->num_args; i++)
        text_add(t, "%c%d, ", 'a' + phase, i);
    text_add(t, "block, %s);\n", blocks);
}

static void merged_text(Arena *a, MergedKernel *j, const Kernel *kernel) {
    Text t = text_new(a);
    int count = j->launch.count;
    text_add(&t, "// %s:", j->name);
    for (int i = 0; i < count; i++)
        text_add(&t, "%s %s", i ? ",\n// then" : "", kernel[i].name);
    text_add(&t, "\n");
    j->entry = t.length;
    text_add(&t, "#ifdef SINTER_MERGED\nMERGED(256) %s(", j->name);
    for (int i = 0; i < count; i++)
        add_parameters(&t, &kernel[i], i);
    text_add(&t, "\n    int *barrier)\n{\n");
    for (int i = 0; i < count; i++)
        add_phase(&t, &kernel[i], i);
    text_add(&t, "}\n#endif\n");
    j->text = text_string(&t);
}

// Equal merged launches have equal names, built from their kernels' names.
static bool is_written(const Kernel *last, const char *name) {
    for (const MergedKernel *j = last->merged; j != NULL; j = j->next)
        if (strcmp(j->name, name) == 0)
            return true;
    return false;
}

static void merged_write(Arena *a, MergedKernel *j, const Kernel *kernel) {
    int count = j->launch.count;
    Kernel *last = kernel[count - 1].first;
    j->name = merged_name(a, kernel, count);
    if (is_written(last, j->name))
        return;
    merged_text(a, j, kernel);
    j->next = last->merged;
    last->merged = j;
    j->type = ARENA_ARRAY(a, MOST_MERGED_POINTERS, const char *);
    for (int i = 0; i < count; i++)
        for (int p = 0; p < kernel[i].num_args; p++)
            j->type[j->num_args++] = kernel[i].arg[p].type;
    j->type[j->num_args++] = "int";
}

void launches_merge(Launches *l, Arena *a) {
    const MergedLaunches *merged = &l->plan->merged;
    l->merged = ARENA_ARRAY(a, (size_t)merged->count + 1, MergedKernel);
    for (int i = 0; i < merged->count; i++) {
        MergedKernel *j = &l->merged[i];
        j->launch = merged->launch[i];
        const Kernel *kernel = &l->kernel[j->launch.first];
        merged_write(a, j, kernel);
        for (int k = 0; k < j->launch.count; k++)
            if (kernel[k].grid[DEVICE_PLAN] > j->blocks)
                j->blocks = kernel[k].grid[DEVICE_PLAN];
    }
}

void merged_emit(Text *t, const Launches *l, int step) {
    const Graph *device = l->plan->graph;
    if (l->plan->merged.count == 0)
        return;
    long long barrier = (long long)device->node[graph_counters(device)].offset +
                        4 * (long long)merged_barrier_counter(device);
    for (int i = 0; i < l->plan->merged.count; i++) {
        const MergedKernel *j = &l->merged[i];
        text_add(t,
                 "    {.step = %d, .launch = %d, .count = %d, .blocks = %d,\n"
                 "     .barrier = %lld, .kernel = %s_id},\n",
                 step, j->launch.first, j->launch.count, j->blocks, barrier,
                 j->name);
    }
}
