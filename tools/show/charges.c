// Charges: attributes the bytes and flops of a launch to layers and lines of
// the model.  A written tensor belongs to the operation that makes it, a read
// one to the first operation of the launch that reads it.  The bytes of all
// charges add up to those of the launch.
#include "passes/plan/access_region.h"
#include "tools/show/inspect.h"

#include <stdlib.h>
#include <string.h>

static void charge_add(Inspected *l, const Origin *from, int64_t bytes,
                       int64_t flops) {
    if (bytes == 0 && flops == 0)
        return;
    l->charge[l->num_charges++] = (Charge){from, {0}, bytes, flops};
}

// For each entry of region the first operation of the group that reads it, or
// NO_NODE.
static NodeId *readers_of(const Graph *g, const Group *group,
                          const AccessRegion *region, Arena *a) {
    NodeId *reader = ARENA_ARRAY(a, (size_t)group->num_inputs + 1, NodeId);
    for (int i = 0; i < group->num_inputs; i++)
        reader[i] = NO_NODE;
    for (NodeId n = group->last + 1; n-- > group->first;)
        for (int k = 0; k < g->node[n].num_args; k++) {
            NodeId base = node_base(g, g->node[n].arg[k]);
            const AccessRegion *at =
                region_find(region, group->num_inputs, base);
            if (at != NULL)
                reader[at - region] = n;
        }
    return reader;
}

static void reads_charge(Inspected *l, const Graph *g, const Group *group,
                         Arena *a) {
    const AccessRegion *region = group->region;
    const NodeId *reader = readers_of(g, group, region, a);
    for (int i = 0; i < group->num_reads; i++) {
        const AccessRegion *at =
            region_find(region, group->num_inputs, group->read[i]);
        NodeId n = reader[at - region];
        charge_add(l, &g->node[n == NO_NODE ? group->last : n].from, at->bytes,
                   0);
    }
}

static void writes_charge(Inspected *l, const Graph *g, const Group *group) {
    for (int i = 0; i < group->num_outputs; i++) {
        const Node *d = &g->node[group->output[i]];
        charge_add(
            l, &d->from,
            graph_bytes(g, d->type) + scattered_bytes(g, group->output[i]), 0);
    }
    for (NodeId n = group->first; n <= group->last; n++)
        if (g->node[n].op == OP_assign)
            charge_add(l, &g->node[n].from, assigned_bytes(g, n), 0);
}

static int text_order(const char *a, const char *b) {
    return strcmp(a ? a : "", b ? b : "");
}

static int by_origin(const void *a, const void *b) {
    const Origin *x = ((const Charge *)a)->from, *y = ((const Charge *)b)->from;
    int order = text_order(x->file, y->file);
    if (order == 0)
        order = (x->line > y->line) - (x->line < y->line);
    return order ? order : text_order(x->path, y->path);
}

// Merges charges of the same line and layer.
static void charges_merge(Inspected *l, const Program *p) {
    int count = 0;
    qsort(l->charge, (size_t)l->num_charges, sizeof *l->charge, by_origin);
    for (int i = 0; i < l->num_charges; i++) {
        Charge *last = &l->charge[count - 1], *c = &l->charge[i];
        if (count > 0 && by_origin(last, c) == 0) {
            last->bytes += c->bytes;
            last->flops += c->flops;
        } else {
            l->charge[count] = *c;
            l->charge[count++].site = program_site(p, c->from);
        }
    }
    l->num_charges = count;
}

void charges_find(Arena *a, const Program *p, Inspected *l) {
    const Graph *g = l->step->graph;
    const Group *group = l->group;
    size_t most = (size_t)(group->last - group->first) * 2 + 2;
    most += (size_t)group->num_reads + (size_t)group->num_outputs;
    l->charge = ARENA_ARRAY(a, most, Charge);
    for (NodeId n = NO_NODE; (n = launch_operation(l, n)) != NO_NODE;)
        charge_add(l, &g->node[n].from, 0, operation_flops(g, n));
    reads_charge(l, g, group, a);
    writes_charge(l, g, group);
    charges_merge(l, p);
}
