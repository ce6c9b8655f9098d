// Judge: what a described device need not launch.
#include "tools/device.h"

#include <string.h>

Judged step_judge(Arena *a, const Plan *plan, const Step *step,
                  const Device *device) {
    Judged j = {.device = device,
                .fusions = graph_library_fusions(step->graph, a)};
    bool merges = device->cooperative && step_merges(step->kind) &&
                  strcmp(plan->device, "host") != 0;
    if (merges)
        j.merges = graph_merged_launches(step->graph, &j.fusions, a);
    j.saving = fusions_saving(&j.fusions, device->sm);
    j.fused = fusions_taken(&j.fusions, device->sm, a);
    j.merged = merged_taken(&j.merges, &j.fusions, j.fused, a);
    j.merged_alone = merged_saving(&j.merges, &j.fusions, 0);
    j.merged_beside = merged_saving(&j.merges, &j.fusions, device->sm);
    return j;
}
