// Launches: what a step runs, a line for each kernel and library call.
#include "codegen/codegen.h"
#include "ir/reach.h"
#include "ir/ride.h"
#include "tools/tools.h"

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

static void saving_print(Text *t, const Rides *r, int launches, int64_t bytes,
                         int sm, const char *device) {
    Saving saving = rides_saving(r, sm);
    if (saving.taken > 0)
        text_add(t,
                 "%12" PRId64 "  by %d where %s takes %d %s of the "
                 "library\n",
                 bytes - saving.bytes, launches - saving.launches, device,
                 saving.taken, saving.taken == 1 ? "fusion" : "fusions");
}

void launches_print(Arena *a, Text *t, const Plan *plan, const char *name,
                    int sm, const char *device) {
    int step = 0;
    while (strcmp(plan->step[step].name, name) != 0)
        step++;
    const Graph *g = plan->step[step].graph;
    const Launches *launches = &codegen_launches(plan, plan, a)[step];
    Rides rides = graph_rides(g, a);
    bool *taken = rides_taken(&rides, sm, a);
    int64_t all = 0;
    for (int i = 0; i < launches->count; i++) {
        const Kernel *kernel = &launches->kernel[i];
        int64_t bytes = group_bytes(g, kernel->group, NULL);
        text_add(t, "%12" PRId64 "  %s", bytes, kernel->name);
        ride_print(t, launches, &rides, taken, i);
        text_add(t, "\n");
        all += bytes;
    }
    text_add(t, "%12" PRId64 "  bytes read and written by %d launches\n", all,
             launches->count);
    saving_print(t, &rides, launches->count, all, sm, device);
}
