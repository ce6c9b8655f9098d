// Select: the library fusions and merged launches of a described device.
#include "tools/device.h"

#include <string.h>

Selected step_select(Arena *a, const Plan *plan, const Step *step,
                     const Device *device) {
    Selected selected = {.device = device, .plan = step->plan};
    const LibraryFusions *fusions = &step->plan->fusions;
    if (device->cooperative && strcmp(plan->device, "host") != 0)
        selected.merges = step->plan->merged;
    selected.saving = fusions_saving(fusions, device->sm);
    selected.fused = fusions_taken(fusions, device->sm, a);
    selected.merged =
        merged_taken(&selected.merges, fusions, selected.fused, NULL, a);
    selected.merged_alone = merged_saving(&selected.merges, fusions, 0, NULL);
    selected.merged_beside =
        merged_saving(&selected.merges, fusions, device->sm, NULL);
    return selected;
}
