// Print: a plan as lines that a reader of graphs takes for comments.

#include "passes/plan/plan.h"

static void print_nodes(Text *t, const char *word, const NodeId *node,
                        int count) {
    text_add(t, "%s", count ? word : "");
    for (int i = 0; i < count; i++)
        text_add(t, " %%%u", node[i]);
}

// The iteration space of a kernel over rows and columns, its blocks on the host
// and on the device, and its phases.
static void print_kernel(Text *t, const Group *group) {
    if (group->kind == GROUP_CALL)
        return;
    bool most = group_is_multi_tensor(group->kind);
    if (!most) {
        text_add(t, " over ");
        type_print(t, group->iteration_space);
    }
    text_add(t, ", %sblocks %d and %d", most ? "at most " : "",
             group->grid[HOST_PLAN], group->grid[GPU_PLAN]);
    if (group->division.tiles > 1)
        text_add(t, ", %d tiles of columns", group->division.tiles);
    if (group->phases > 1)
        text_add(t, ", %d phases", group->phases);
    if (group->workspace != NO_NODE)
        text_add(t, ", workspace %%%u", group->workspace);
}

static void print_group(Text *t, const Group *group) {
    text_add(t, "#   g%d %s", group->group, group_info[group->kind].name);
    print_kernel(t, group);
    text_add(t, ", %lld bytes", (long long)group->bytes);
    print_nodes(t, ", reads", group->input, group->num_inputs);
    print_nodes(t, ", writes", group->output, group->num_outputs);
    text_add(t, "\n");
}

void plan_print(Text *t, const GraphPlan *p) {
    text_add(t, "# launches, with blocks on the host and on the device\n");
    for (int k = 0; k < p->num_groups; k++)
        print_group(t, &p->group[k]);
    for (int i = 0; i < p->fusions.count; i++) {
        const LibraryFusion *f = &p->fusions.fusion[i];
        text_add(t, "# library fusion %s in g%d", fusion_info[f->kind].name,
                 f->call);
        text_add(t, f->kernel < 0 ? "\n" : " saves g%d\n", f->kernel);
    }
    for (int i = 0; i < p->merged.count; i++) {
        const MergedLaunch *m = &p->merged.launch[i];
        text_add(t, "# merged launch g%d..g%d\n", m->first,
                 m->first + m->count - 1);
    }
    for (int i = 0; i < p->forks.count; i++)
        text_add(t, "# fork of g%d, joined before g%d\n", p->forks.fork[i].call,
                 p->forks.fork[i].join);
}

// The bytes that launches after number k read and write.
static int64_t traffic_after(const GraphPlan *p, int k) {
    int64_t bytes = 0;
    while (++k < p->num_groups)
        bytes += p->group[k].bytes;
    return bytes;
}

void plan_print_buckets(Text *t, const Step *s) {
    for (int i = 0; i < s->num_buckets; i++) {
        const Bucket *b = &s->bucket[i];
        text_add(t,
                 "# bucket of %lld bytes at %lld, ready after g%d, needed by "
                 "g%d of %s, beside %lld bytes of later launches\n",
                 (long long)b->bytes, (long long)b->offset, b->ready, b->needed,
                 b->needed_by, (long long)traffic_after(s->plan, b->ready));
    }
}
