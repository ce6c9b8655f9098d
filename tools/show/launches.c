// Launches: prints a line for each kernel and library call of a step.
#include "tools/show/inspect.h"

#include <inttypes.h>
#include <string.h>

// The work of launch k that a device with these library fusions saves.
static void fused_print(Text *t, const Launches *launches,
                        const LibraryFusions *fusions, const bool *taken,
                        int k) {
    for (int i = 0; i < fusions->count; i++) {
        const LibraryFusion *fusion = &fusions->fusion[i];
        const char *name = fusion_info[fusion->kind].name;
        if (!taken[i])
            continue;
        if (fusion->kernel == k)
            text_add(t, "  %s of %s", name,
                     launches->kernel[fusion->call].name);
        else if (fusion->kernel < 0 && fusion->call == k)
            text_add(t, "  %s", name);
    }
}

static bool is_fused(const Selected *selected, int k) {
    for (int i = 0; i < selected->plan->fusions.count; i++)
        if (selected->fused[i] && selected->plan->fusions.fusion[i].kernel == k)
            return true;
    return false;
}

static bool is_merged(const Selected *selected, int k) {
    for (int i = 0; i < selected->merges.count; i++) {
        const MergedLaunch *m = &selected->merges.launch[i];
        if (selected->merged[i] && k >= m->first && k < m->first + m->count)
            return true;
    }
    return false;
}

// Whether the device starts launch k while the one before it runs: kernels of
// ours on 9.0 or later that are not cooperative (runtime/cuda/launch/launch.c).
static bool starts_early(const Selected *selected, int k) {
    const Group *group = selected->plan->group;
    int before = k - 1;
    while (before >= 0 && is_fused(selected, before))
        before--;
    return selected->device->sm >= 90 && before >= 0 &&
           group[k].kind != GROUP_CALL && group[before].kind != GROUP_CALL &&
           group[k].phases <= 1 && !is_fused(selected, k) &&
           !is_merged(selected, k);
}

static void saving_print(Text *t, const Selected *selected, int launches,
                         int64_t bytes) {
    const Saving *saving = &selected->saving;
    if (selected->merged_alone > 0)
        text_add(t, "%12" PRId64 "  by %d if %s merges launches\n", bytes,
                 launches - selected->merged_alone, selected->device->name);
    if (saving->taken > 0)
        text_add(t, "%12" PRId64 "  by %d if %s takes %d library %s%s\n",
                 bytes - saving->bytes,
                 launches - saving->launches - selected->merged_beside,
                 selected->device->name, saving->taken,
                 saving->taken == 1 ? "fusion" : "fusions",
                 selected->merged_beside > 0 ? ", and merges launches" : "");
}

void launches_print(Arena *a, Text *t, const Inspection *in) {
    const Launches *launches = &in->launches[in->step - in->plan->step];
    Selected selected = step_select(a, in->plan, in->step, in->device);
    int64_t all = 0;
    int chosen = 0;
    for (int i = 0; i < in->count; i++) {
        const Inspected *l = &in->launch[i];
        if (!l->chosen)
            continue;
        text_add(t, "%12" PRId64 "  %s", l->bytes, launch_name(l));
        fused_print(t, launches, &selected.plan->fusions, selected.fused, i);
        if (l->merged_as)
            text_add(t, "  merged as %s", l->merged_as);
        if (strcmp(in->plan->device, "host") != 0 && starts_early(&selected, i))
            text_add(t, "  starts early");
        text_add(t, "\n");
        all += l->bytes;
        chosen++;
    }
    text_add(t, "%12" PRId64 "  bytes read and written by %d launch%s", all,
             chosen, chosen == 1 ? "" : "es");
    if (chosen < in->count) {
        text_add(t, " of %d\n", in->count);
        return;
    }
    text_add(t, "\n");
    saving_print(t, &selected, in->count, all);
}
