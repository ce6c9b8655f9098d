// Judge: what a described device need not launch.
#include "tools/device.h"

#include <string.h>

Judged step_judge(Arena *a, const Plan *plan, const Step *step,
                  const Device *device) {
    Judged j = {.device = device,
                .fusions = graph_library_fusions(step->graph, a)};
    bool joins = device->cooperative && step_joins(step->kind) &&
                 strcmp(plan->device, "host") != 0;
    if (joins)
        j.joins = graph_joins(step->graph, &j.fusions, a);
    j.saving = fusions_saving(&j.fusions, device->sm);
    j.fused = fusions_taken(&j.fusions, device->sm, a);
    j.joined = joins_taken(&j.joins, &j.fusions, j.fused, a);
    j.joins_alone = joins_saving(&j.joins, &j.fusions, 0);
    j.joins_beside = joins_saving(&j.joins, &j.fusions, device->sm);
    return j;
}
