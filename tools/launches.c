// Launches: what a step runs, a line for each kernel and library call.
#include "codegen/codegen.h"
#include "tools/tools.h"

#include <inttypes.h>
#include <string.h>

// The graph of that name, and how many launches the trainer numbers before its.
static const Graph *graph_planned(Arena *a, const Plan *p, const char *name,
                                  int *before) {
    *before = 0;
    for (int i = 0; i < p->num_steps; i++) {
        int count = 0;
        if (strcmp(p->step[i].name, name) == 0)
            break;
        graph_groups(p->step[i].graph, a, &count);
        *before += count;
    }
    return plan_graph(p, name);
}

void launches_print(Arena *a, Text *t, const Plan *plan, const char *name) {
    int number, count;
    const Graph *g = graph_planned(a, plan, name, &number);
    const Kernel *kernel = codegen_kernels(g, g, a, &number, &count);
    int64_t bytes = 0;
    for (int i = 0; i < count; i++) {
        int64_t own = group_bytes(g, kernel[i].group);
        text_add(t, "%12" PRId64 "  %s\n", own, kernel[i].name);
        bytes += own;
    }
    text_add(t, "%12" PRId64 "  bytes read and written by %d launches\n", bytes,
             count);
}
