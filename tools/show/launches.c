// Launches: what a step runs, a line for each kernel and library call.
#include "tools/show/inspect.h"

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

static void saving_print(Text *t, const Judged *j, int launches,
                         int64_t bytes) {
    const Saving *saving = &j->saving;
    if (j->joins_alone > 0)
        text_add(t, "%12" PRId64 "  by %d if %s merges launches\n", bytes,
                 launches - j->joins_alone, j->device->name);
    if (saving->taken > 0)
        text_add(t, "%12" PRId64 "  by %d if %s takes %d library %s%s\n",
                 bytes - saving->bytes,
                 launches - saving->launches - j->joins_beside, j->device->name,
                 saving->taken, saving->taken == 1 ? "fusion" : "fusions",
                 j->joins_beside > 0 ? ", and merges launches" : "");
}

void launches_print(Arena *a, Text *t, const Inspection *in) {
    const Launches *launches = &in->launches[in->step - in->plan->step];
    Judged j = step_judge(a, in->plan, in->step, in->device);
    int64_t all = 0;
    int chosen = 0;
    for (int i = 0; i < in->count; i++) {
        const Inspected *l = &in->launch[i];
        if (!l->chosen)
            continue;
        text_add(t, "%12" PRId64 "  %s", l->bytes, launch_name(l));
        ride_print(t, launches, &j.rides, j.ridden, i);
        if (l->joined_as)
            text_add(t, "  merged as %s", l->joined_as);
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
    saving_print(t, &j, in->count, all);
}
