// KernelTime: the time of each kernel of a plan on a described GPU.
#include "codegen/codegen.h"
#include "tools/device.h"

#include <math.h>

// Assumed: the gap before a launch; the time of a barrier of the whole grid, of
// a load from memory that is in use, and of a wait of the last block, whose
// loads hit the L2 cache.
const double GPU_LAUNCH = 1.5e-6, GPU_BARRIER = 0.7e-6;
static const double LOAD_LATENCY = 0.7e-6, TAIL_LATENCY = 0.5e-6;

// A launch saved is less than a tenth of a longer kernel.
static const double LONGEST_MERGED = 10e-6;

// Parts of the described peaks that kernels and library calls reach, assumed:
// on an H200 3.9 of 4.8 TB/s, and 70 % of the 790 Tflop/s, of 989, that its
// power allows.
static const double MEMORY_SHARE = 0.81, CALL_SHARE = 0.56;

static double bytes_read(const Graph *g, const Group *group) {
    double written = 0;
    for (int i = 0; i < group->num_outputs; i++)
        written += (double)graph_bytes(g, g->node[group->output[i]].type);
    return fmax(0, (double)group_bytes(g, group, NULL) - written);
}

double memory_seconds(double bytes, const Device *d) {
    return bytes / (MEMORY_SHARE * d->bandwidth);
}

double call_seconds(double at_peak) {
    return at_peak / CALL_SHARE;
}

double tail_seconds(const KernelCost *k) {
    return k->waits * TAIL_LATENCY;
}

// The products of attention take f32 operands.
static double product_seconds(const Graph *g, const Group *group,
                              const Device *d) {
    double flops = 0;
    for (NodeId n = group->first; n <= group->last; n++)
        if (op_info[g->node[n].op].traits & ATTENDS)
            flops += (double)node_flops(g, n);
    return flops / d->f32_flops;
}

// Loads take turns: each takes the latency, in which a block loads the bytes in
// flight of its threads (Little, 1961).
KernelTime kernel_time(const Graph *g, const Group *group, const Kernel *k,
                       const Device *d) {
    int blocks = k->grid[GPU_PLAN];
    double all = (double)group_bytes(g, group, NULL);
    double loaded = d->multiprocessors * BLOCK_THREADS * k->cost.in_flight;
    KernelTime time = {.issue = issue_seconds(&k->cost, blocks, d),
                       .tail = tail_seconds(&k->cost),
                       .resident = max_resident_blocks(&k->cost, d),
                       .blocks = (int)ceil(blocks / d->multiprocessors)};
    time.least = fmax(memory_seconds(all, d),
                      fmax(time.issue, product_seconds(g, group, d)));
    if (loaded > 0)
        time.latency = bytes_read(g, group) / loaded * LOAD_LATENCY;
    return time;
}

static const KernelTime *times(const TimeModel *time_model, const GraphPlan *p,
                               Arena *a) {
    Arena *own = arena_new();
    Graph g = *p->graph;
    GraphPlan on_device = *p;
    int number = 0;
    g.act = time_model->act;
    on_device.graph = &g;
    Kernel *k = codegen_kernels(&on_device, &on_device, own, &number);
    KernelTime *time = ARENA_ARRAY(a, (size_t)p->num_groups + 1, KernelTime);
    for (int i = 0; i < p->num_groups; i++)
        if (p->group[i].kind != GROUP_CALL)
            time[i] = kernel_time(&g, &p->group[i], &k[i], time_model->device);
    arena_free(own);
    return time;
}

TimeModel device_time_model(const Device *d) {
    return (TimeModel){.times = times,
                       .device = d,
                       .launch = GPU_LAUNCH,
                       .barrier = GPU_BARRIER,
                       .max_merged_seconds = LONGEST_MERGED};
}
