// Support: finds calls of a plan that a device's libraries lack.
#include "tools/device.h"

// The first compute capability with convolutions and products in bf16.
enum { FIRST_BF16 = 80 };

// The first library call on activations, or NO_NODE.
static NodeId find_call(const Graph *g) {
    for (NodeId n = 0; n < g->count; n++)
        if ((op_info[g->node[n].op].traits & CALLS) &&
            g->node[n].type->dtype == ACT)
            return n;
    return NO_NODE;
}

bool plan_supported(Arena *a, const Arguments *arguments, const Plan *plan,
                    const Device *device) {
    const Graph *g = plan_graph(plan, "train");
    NodeId call = find_call(g);
    if (plan->act != BF16 || device->sm >= FIRST_BF16 || call == NO_NODE)
        return true;
    const Origin *from = &g->node[call].from;
    const char *location =
        from->file ? arena_format(a, " (%s:%d)", from->file, from->line) : "";
    complain(arguments,
             "%s%s: the libraries have no %s in bf16 for %s with compute "
             "capability %d.%d; bf16 needs 8.0, f16 needs 7.5",
             from->path ? from->path : "a layer", location,
             op_info[g->node[call].op].name, device->name, device->sm / 10,
             device->sm % 10);
    return false;
}
