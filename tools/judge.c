// Judge: what a described device need not launch.
#include "tools/device.h"

#include <string.h>

Judged step_judge(Arena *a, const Plan *plan, const Step *step,
                  const Device *device) {
    Judged j = {.device = device, .rides = graph_rides(step->graph, a)};
    bool joins = device->cooperative && step_joins(step->kind) &&
                 strcmp(plan->device, "host") != 0;
    if (joins)
        j.joins = graph_joins(step->graph, &j.rides, a);
    j.saving = rides_saving(&j.rides, device->sm);
    j.ridden = rides_taken(&j.rides, device->sm, a);
    j.joined = joins_taken(&j.joins, &j.rides, j.ridden, a);
    j.joins_alone = joins_saving(&j.joins, &j.rides, 0);
    j.joins_beside = joins_saving(&j.joins, &j.rides, device->sm);
    return j;
}
