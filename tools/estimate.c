// Estimate: time of a step by the roofline of each launch (Williams, Waterman
// and Patterson, 2009).  A GPU's peaks are those of its description, and no
// launch reaches them: the sum is the least time.  Beside it stands an estimate
// by the cost model, with the parts of the peaks that are usual
// (kernel_time.c).  A processor's peaks are measured, and each kind of work
// gets a share of them. The shares were fitted on one machine, two cores of an
// EPYC with AVX-512, to the launches of lenet, mlp, resnet9 and gpt_nano.
#include "codegen/codegen.h"
#include "tools/device.h"
#include "tools/tile.h"

#include <math.h>
#include <string.h>

static const double LIBRARY_SHARE = 0.8; // of the peak, in calls of oneDNN
static const double KERNEL_SHARE =
    0.12;                               // of the peak, in operations of kernels
static const double HOST_LAUNCH = 5e-6; // seconds, to start all threads

// ---- arithmetic ----

// The cost of one element in simple operations.
static double element_flops(const Node *n) {
    enum { DRAW = 150, FUNCTION = 6 };
    unsigned traits = op_info[n->op].traits;
    if (n->op == OP_uniform)
        return DRAW;
    return traits & MATH ? FUNCTION : 1;
}

// A library call computes whole vectors of the result's channels.
static double call_flops(const Graph *g, NodeId n, const Device *d) {
    const Type *t = g->node[n].type;
    double flops = (double)node_flops(g, n);
    if (d->lanes == 0 || t->rank == 0)
        return flops;
    bool filter = g->node[n].op == OP_conv_grad_weight;
    double channels = (double)t->dim[filter ? 0 : t->rank - 1];
    return channels > 0
               ? flops * d->lanes * ceil(channels / d->lanes) / channels
               : flops;
}

static double kernel_flops(const Graph *g, const Group *group) {
    double flops = 0;
    for (NodeId n = group->first; n <= group->last; n++) {
        const Node *node = &g->node[n];
        unsigned traits = op_info[node->op].traits;
        if (traits & REDUCES)
            flops += (double)type_count(g->node[node->arg[0]].type);
        else if ((traits & POINTWISE) && node->num_args > 0)
            flops += element_flops(node) * (double)type_count(node->type);
    }
    return flops;
}

static double arithmetic_seconds(const Graph *g, const Group *group,
                                 const Device *d) {
    bool host = d->lanes > 0;
    if (group->kind != GROUP_CALL)
        return kernel_flops(g, group) /
               (d->f32_flops * (host ? KERNEL_SHARE : 1));
    NodeId call = group_first(g, group, CALLS);
    DType type = g->node[g->node[call].arg[0]].type->dtype;
    DType stored = type == ACT ? g->act : type;
    bool half = stored == F16 || stored == BF16;
    return call_flops(g, call, d) / (half ? d->f16_flops : d->f32_flops) /
           (host ? LIBRARY_SHARE : 1);
}

// ---- a step ----

// Without the gap before the launch.
static double work_seconds(const GraphPlan *p, const Group *group,
                           const Device *d) {
    return fmax((double)group->bytes / d->bandwidth,
                arithmetic_seconds(p->graph, group, d));
}

double gpu_seconds(const Graph *g, const Group *group, const Kernel *k,
                   const Device *d) {
    if (group->kind == GROUP_CALL)
        return fmax(memory_seconds((double)group->bytes, d),
                    call_seconds(arithmetic_seconds(g, group, d)));
    KernelTime time = kernel_time(g, group, k, d);
    return kernel_seconds(&time, time.resident);
}

static double graph_seconds(const GraphPlan *p, const Device *d) {
    double seconds = 0;
    for (int i = 0; i < p->num_groups; i++)
        seconds +=
            work_seconds(p, &p->group[i], d) + (d->lanes > 0 ? HOST_LAUNCH : 0);
    return seconds;
}

int64_t tree_bytes(int64_t n, int64_t bytes) {
    return n > 1 ? (3 * n - 1) * bytes : 0;
}

int64_t shard_sum_bytes(const Plan *plan, const Program *p) {
    return p->recipe.shards > 0 ? tree_bytes(recipe_update_batches(&p->recipe),
                                             plan->partial_bytes)
                                : 0;
}

double shard_sum_seconds(const Plan *plan, const Program *p, const Device *d) {
    int64_t bytes = shard_sum_bytes(plan, p);
    int launches = bytes > 0 ? recipe_update_batches(&p->recipe) : 0;
    return (double)bytes / d->bandwidth +
           (d->lanes > 0 ? launches * HOST_LAUNCH : 0);
}

double step_seconds(const Plan *plan, const Program *p, const Device *d) {
    if (d->bandwidth <= 0 || d->f32_flops <= 0 || d->f16_flops <= 0)
        return 0;
    double seconds = shard_sum_seconds(plan, p, d);
    for (int i = 0; i < plan->num_steps; i++) {
        int times = step_runs(&p->recipe, &plan->step[i]);
        if (times > 0)
            seconds += times * graph_seconds(plan->step[i].plan, d);
    }
    return seconds;
}

// ---- a step by the cost model ----

static void host_launch_seconds(const GraphPlan *p, const Device *d,
                                double *seconds) {
    for (int i = 0; i < p->num_groups; i++)
        seconds[i] = HOST_LAUNCH + work_seconds(p, &p->group[i], d);
}

// The kernels of a merged launch after its first wait for the grid's barrier.
static void merge_launches(const Selected *selected, double *gap) {
    for (int i = 0; i < selected->merges.count; i++)
        for (int k = 1;
             selected->merged[i] && k < selected->merges.launch[i].count; k++)
            gap[selected->merges.launch[i].first + k] = GPU_BARRIER;
}

// A kernel in a call takes no time.  A call whose statistics the library reads
// has another launch after it, which finalizes them.
static void fuse_launches(const Selected *selected, double *seconds, Arena *a) {
    const LibraryFusions *f = &selected->plan->fusions;
    bool *finalized = ARENA_ARRAY(a, (size_t)f->num_norms + 1, bool);
    for (int i = 0; i < f->count; i++) {
        const LibraryFusion *fusion = &f->fusion[i];
        if (!selected->fused[i])
            continue;
        if (fusion->kernel >= 0)
            seconds[fusion->kernel] = 0;
        if (fusion->kind == FUSION_statistics || finalized[fusion->norm])
            continue;
        finalized[fusion->norm] = true;
        seconds[f->fusion[f->norm[fusion->norm].statistics].call] += GPU_LAUNCH;
    }
}

static void gpu_launch_seconds(const Launches *l, const Selected *selected,
                               const Device *d, double *seconds, Arena *a) {
    for (int i = 0; i < l->count; i++)
        seconds[i] = GPU_LAUNCH;
    merge_launches(selected, seconds);
    for (int i = 0; i < l->count; i++)
        seconds[i] +=
            gpu_seconds(l->plan->graph, &l->plan->group[i], &l->kernel[i], d);
    fuse_launches(selected, seconds, a);
}

double **launch_seconds(Arena *a, const Plan *plan, const Device *d,
                        bool tiles) {
    bool host = d->lanes > 0;
    const Launches *l = host ? NULL : codegen_launches(plan, plan, a);
    double **seconds = ARENA_ARRAY(a, (size_t)plan->num_steps + 1, double *);
    for (int i = 0; i < plan->num_steps; i++) {
        const GraphPlan *p = plan->step[i].plan;
        seconds[i] = ARENA_ARRAY(a, (size_t)p->num_groups + 1, double);
        if (host) {
            host_launch_seconds(p, d, seconds[i]);
            continue;
        }
        const Selected selected = step_select(a, plan, &plan->step[i], d);
        gpu_launch_seconds(&l[i], &selected, d, seconds[i], a);
        if (tiles)
            tile_seconds(a, &l[i], &selected, seconds[i]);
    }
    return seconds;
}

double step_estimate(Arena *a, const Plan *plan, const Program *p,
                     const Device *d, bool tiles) {
    if (d->lanes > 0 || step_seconds(plan, p, d) == 0)
        return 0;
    double seconds = shard_sum_seconds(plan, p, d);
    double *const *launch = launch_seconds(a, plan, d, tiles);
    for (int i = 0; i < plan->num_steps; i++)
        for (int k = 0; k < plan->step[i].plan->num_groups; k++)
            seconds += step_runs(&p->recipe, &plan->step[i]) * launch[i][k];
    return seconds;
}

int64_t epoch_samples(const Recipe *r) {
    if (strncmp(r->data_format, "cifar", 5) == 0)
        return 50000;
    for (int i = 0; i < r->num_data_settings; i++)
        if (strcmp(r->data_setting[i].name, "samples") == 0)
            return r->data_setting[i].value;
    return 0;
}
