// Launches: what a step runs, a line for each kernel and library call.
#include "codegen/codegen.h"
#include "ir/reach.h"
#include "tools/device.h"

#include <inttypes.h>
#include <string.h>

// What launch k need not do on a device that takes these rides.
static void ride_print(Text *t, const Launches *launches, const Rides *r,
                       const bool *taken, int k) {
    for (int i = 0; i < r->count; i++) {
        const Ride *ride = &r->ride[i];
        const char *fusion = fusion_info[ride->fusion].name;
        if (!taken[i])
            continue;
        if (ride->kernel == k)
            text_add(t, "  %s of %s", fusion,
                     launches->kernel[ride->call].name);
        else if (ride->kernel < 0 && ride->call == k)
            text_add(t, "  %s", fusion);
    }
}

// What launches k and others as one.
static void join_print(Text *t, const Launches *launches, const Judged *j,
                       int k) {
    for (int i = 0; i < j->joins.count; i++) {
        const Join *join = &j->joins.join[i];
        if (j->joined[i] && k >= join->first && k < join->first + join->count)
            text_add(t, "  joined as %s", launches->joined[i].name);
    }
}

static void saving_print(Text *t, const Judged *j, int launches,
                         int64_t bytes) {
    const Saving *saving = &j->saving;
    if (j->joins_alone > 0)
        text_add(t, "%12" PRId64 "  by %d where %s joins launches\n", bytes,
                 launches - j->joins_alone, j->device->name);
    if (saving->taken > 0)
        text_add(t,
                 "%12" PRId64 "  by %d where %s takes %d %s of the "
                 "library%s\n",
                 bytes - saving->bytes,
                 launches - saving->launches - j->joins_beside, j->device->name,
                 saving->taken, saving->taken == 1 ? "fusion" : "fusions",
                 j->joins_beside > 0 ? ", and joins launches" : "");
}

void launches_print(Arena *a, Text *t, const Plan *plan, const char *name,
                    const Device *device) {
    const Step *step = plan_step(plan, name);
    const Graph *g = step->graph;
    const Launches *launches =
        &codegen_launches(plan, plan, a)[step - plan->step];
    Judged j = step_judge(a, plan, step, device);
    int64_t all = 0;
    for (int i = 0; i < launches->count; i++) {
        const Kernel *kernel = &launches->kernel[i];
        int64_t bytes = group_bytes(g, kernel->group);
        text_add(t, "%12" PRId64 "  %s", bytes, kernel->name);
        ride_print(t, launches, &j.rides, j.ridden, i);
        join_print(t, launches, &j, i);
        text_add(t, "\n");
        all += bytes;
    }
    text_add(t, "%12" PRId64 "  bytes read and written by %d launch%s\n", all,
             launches->count, launches->count == 1 ? "" : "es");
    saving_print(t, &j, launches->count, all);
}
