// Launches: what a step runs, a line for each kernel and library call.
#include "codegen/codegen.h"
#include "tools/tools.h"

#include <inttypes.h>
#include <string.h>

void launches_print(Arena *a, Text *t, const Plan *plan, const char *name) {
    int step = 0;
    while (strcmp(plan->step[step].name, name) != 0)
        step++;
    const Launches *launches = &codegen_launches(plan, plan, a)[step];
    int64_t all = 0;
    for (int i = 0; i < launches->count; i++) {
        const Kernel *kernel = &launches->kernel[i];
        int64_t bytes = group_bytes(plan->step[step].graph, kernel->group);
        text_add(t, "%12" PRId64 "  %s\n", bytes, kernel->name);
        all += bytes;
    }
    text_add(t, "%12" PRId64 "  bytes read and written by %d launches\n", all,
             launches->count);
}
