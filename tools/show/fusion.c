// Fusion: which operations share a kernel, and why others do not.
#include "codegen/codegen.h"
#include "tools/tools.h"

#include <string.h>

// "resnet9.net:12 layer1.relu_1 backward"
static void origin_add(Text *t, const Origin *from) {
    if (from->file)
        text_add(t, " %s:%d", from->file, from->line);
    if (from->path)
        text_add(t, " %s", from->path);
    if (from->backward)
        text_add(t, " backward");
}

static void value_add(Text *t, const Graph *g, NodeId n) {
    text_add(t, "%%%u %s ", n, op_info[g->node[n].op].name);
    type_print(t, g->node[n].type);
    origin_add(t, &g->node[n].from);
}

static bool may_join_before(const Joins *j, int k) {
    for (int i = 0; i < j->count; i++)
        if (k > j->join[i].first && k < j->join[i].first + j->join[i].count)
            return true;
    return false;
}

void fusion_print(Arena *a, Text *t, const Plan *plan, const char *name) {
    int count, num_edges;
    const Step *step = plan_step(plan, name);
    const Graph *g = step->graph;
    const Launches *launches =
        &codegen_launches(plan, plan, a)[step - plan->step];
    const Group *group = graph_groups(g, a, &count);
    const Edge *edge = graph_edges(g, a, group, count, &num_edges);
    for (int k = 0; k < count; k++) {
        text_add(t, "%s\n", launches->kernel[k].name);
        for (NodeId n = group[k].first; n <= group[k].last; n++)
            if (g->node[n].op != OP_scratch) {
                text_add(t, "    ");
                value_add(t, g, n);
                text_add(t, "\n");
            }
        if (may_join_before(&launches->joins, k))
            text_add(t, "  may be joined to %s\n",
                     launches->kernel[k - 1].name);
        for (int i = 0; i < num_edges; i++)
            if (edge[i].to == k) {
                text_add(t, "  reads %%%u of %s\n", edge[i].node,
                         launches->kernel[edge[i].from].name);
                text_add(t, "    because %s\n", reason_info[edge[i].why].text);
            }
    }
}
