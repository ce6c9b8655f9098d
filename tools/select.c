// Select: the library fusions and merged launches of a described device.
#include "tools/device.h"

#include <string.h>

Selected step_select(Arena *a, const Plan *plan, const Step *step,
                     const Device *device) {
    Selected j = {.device = device, .plan = step->plan};
    const LibraryFusions *fusions = &step->plan->fusions;
    if (device->cooperative && strcmp(plan->device, "host") != 0)
        j.merges = step->plan->merged;
    j.saving = fusions_saving(fusions, device->sm);
    j.fused = fusions_taken(fusions, device->sm, a);
    j.merged = merged_taken(&j.merges, fusions, j.fused, NULL, a);
    j.merged_alone = merged_saving(&j.merges, fusions, 0, NULL);
    j.merged_beside = merged_saving(&j.merges, fusions, device->sm, NULL);
    return j;
}
