// Fusion: prints the operations that share a kernel, and the reasons why others
// do not.
#include "tools/show/inspect.h"

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

void value_add(Text *t, const Graph *g, NodeId n) {
    text_add(t, "%%%u %s ", n, op_info[g->node[n].op].name);
    type_print(t, g->node[n].type);
    origin_add(t, &g->node[n].from);
}

static bool may_merge_before(const MergedLaunches *merged, int k) {
    for (int i = 0; i < merged->count; i++)
        if (k > merged->launch[i].first &&
            k < merged->launch[i].first + merged->launch[i].count)
            return true;
    return false;
}

// Prints why a kernel is not merged with the one before.
static void refusal_print(Text *t, const Inspection *in, const GraphPlan *p,
                          int k) {
    const MergeRefusal *r = p->refusal != NULL ? &p->refusal[k] : NULL;
    if (r == NULL || r->kernel == NO_LAUNCH)
        return;
    const char *of = launch_name(&in->launch[r->kernel]);
    text_add(t, "  is not merged with %s\n", launch_name(&in->launch[k - 1]));
    if (r->merged_seconds > r->seconds)
        text_add(t,
                 "    because %s would have %d resident blocks in place of %d, "
                 "and take %.2f us in place of %.2f\n",
                 of, r->merged_resident, r->resident, 1e6 * r->merged_seconds,
                 1e6 * r->seconds);
    else
        text_add(t,
                 "    because %s takes %.2f us, and a launch saved %.2f us\n",
                 of, 1e6 * r->seconds, 1e6 * GPU_LAUNCH);
}

static void operations_print(Text *t, const Inspected *l) {
    for (NodeId n = NO_NODE; (n = launch_operation(l, n)) != NO_NODE;) {
        text_add(t, "    ");
        value_add(t, l->step->graph, n);
        text_add(t, "\n");
    }
}

// Says why a convolution in groups is no tile kernel.
static void groups_print(Text *t, const Launches *launches, int k) {
    const Graph *g = launches->plan->graph;
    const Group *group = &launches->plan->group[k];
    if (group->kind != GROUP_CALL || g->act == F32 ||
        tile_groups_fit(g, group_first(g, group, CALLS)))
        return;
    text_add(t,
             "  cannot be a tile kernel\n    because its groups have too few "
             "channels for tensor cores: 16, and a multiple of 8\n");
}

static void candidates_print(Text *t, const TileKernel *k) {
    double seconds;
    const TileConfig *c;
    for (int i = 0; (c = tile_candidate(k, i, &seconds)) != NULL; i++)
        text_add(t, "      %.2f us: %s\n", 1e6 * seconds,
                 tile_config_text(c, t->arena));
}

// Prints the tile kernel that may compute a call or attention.
static void tile_print(Text *t, const Inspection *in, const Launches *launches,
                       const Inspected *l) {
    const TileKernel *tile = l->tile;
    const char *word = " with";
    groups_print(t, launches, l->index);
    if (tile == NULL)
        return;
    text_add(t, tile->second != NULL ? "  can be two tile kernels"
                                     : "  can be a tile kernel");
    const TileFusion *f = tile->fusion;
    const int parts[] = {f->prologue[0], f->prologue[1], f->epilogue, f->pool};
    for (size_t i = 0; i < sizeof parts / sizeof *parts && f->call >= 0; i++) {
        int with = parts[i];
        if (with < 0)
            continue;
        text_add(t, "%s %s", word, launch_name(&in->launch[with]));
        word = ",";
    }
    text_add(t, "\n    estimated at %.2f us in place of %.2f%s\n",
             1e6 * l->tile_time.tile, 1e6 * l->tile_time.library,
             l->tile_time.library < TILE_GAIN * l->tile_time.tile
                 ? ": too little gain for --tile=auto"
                 : "");
    for (; tile != NULL; tile = tile->second)
        candidates_print(t, tile);
    for (int o = 0; o < TILE_OPERANDS; o++)
        if (f->windows[o] >= 0)
            text_add(t,
                     "    %s computes windows: as a prologue estimated at %.2f "
                     "us in place of %.2f\n",
                     launch_name(&in->launch[f->windows[o]]),
                     1e6 * l->with_windows[o].tile,
                     1e6 * l->with_windows[o].library);
}

// "reads %12 of k03_..." or "leaves %12 to k05_...".
static void edge_print(Text *t, const Edge *e, const char *does,
                       const char *whom, const Inspected *other) {
    text_add(t, "  %s %%%u %s %s\n", does, e->node, whom, launch_name(other));
    text_add(t, "    because %s\n", reason_info[e->why].text);
}

// Prints the hidden readers of a kernel's results.
static void readers_print(Text *t, const Inspection *in, int k) {
    for (int i = k + 1; i < in->count; i++)
        for (int e = 0; !in->launch[i].chosen && e < in->launch[i].num_edges;
             e++)
            if (in->launch[i].edge[e].from == k)
                edge_print(t, &in->launch[i].edge[e], "leaves", "to",
                           &in->launch[i]);
}

void fusion_print(Text *t, const Inspection *in) {
    const Launches *launches = &in->launches[in->step - in->plan->step];
    for (int k = 0; k < in->count; k++) {
        const Inspected *l = &in->launch[k];
        if (!l->chosen)
            continue;
        text_add(t, "%s\n", launch_name(l));
        operations_print(t, l);
        tile_print(t, in, launches, l);
        if (may_merge_before(&launches->plan->merged, k))
            text_add(t, "  can be merged with %s\n", launch_name(l - 1));
        else
            refusal_print(t, in, launches->plan, k);
        for (int e = 0; e < l->num_edges; e++)
            edge_print(t, &l->edge[e], "reads", "of",
                       &in->launch[l->edge[e].from]);
        readers_print(t, in, k);
    }
}
