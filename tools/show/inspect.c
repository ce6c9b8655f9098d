// Inspect: collects the costs of each launch.
//
// Bytes are those of the plan.  A library call has two floating point
// operations for a multiply-add, a kernel one for each element of each
// operation.  The roofline (Williams, Waterman and Patterson, 2009) is the
// longest of the times for memory, for arithmetic and for the issue of a
// kernel's instructions: most launches take more.
#include "tools/show/inspect.h"
#include "base/exits.h"

#include <stdlib.h>
#include <string.h>

NodeId launch_operation(const Inspected *l, NodeId from) {
    const Node *node = l->step->graph->node;
    NodeId last = l->group[l->count - 1].last;
    NodeId n = from == NO_NODE ? l->group->first : from + 1;
    for (; n <= last; n++)
        if (node[n].op != OP_workspace && node[n].group >= 0)
            return n;
    return NO_NODE;
}

const char *launch_name(const Inspected *l) {
    return l->merged ? l->merged->name : l->kernel->name;
}

int launch_blocks(const Inspected *l) {
    return l->merged         ? l->merged->blocks
           : l->kernel->text ? l->kernel->grid[GPU_PLAN]
                             : 0;
}

double launch_instructions(const Inspected *l, Issue kind) {
    enum { WARPS = BLOCK_THREADS / 32 };
    return l->cost.issue[kind] * launch_blocks(l) * WARPS;
}

double launch_issue_seconds(const Inspected *l, const Device *d) {
    double seconds = 0;
    for (int i = 0; i < l->count; i++)
        seconds +=
            issue_seconds(&l->kernel[i].cost, l->kernel[i].grid[GPU_PLAN], d);
    return seconds;
}

const char *launch_text(const Inspected *l) {
    if (!l->merged)
        return l->kernel->text ? l->kernel->first->text : NULL;
    const MergedKernel *merged = l->kernel[l->count - 1].first->merged;
    while (strcmp(merged->name, l->merged->name) != 0)
        merged = merged->next;
    return merged->text;
}

const char *launch_new_text(const Inspection *in, const Inspected *l) {
    const char *text = launch_text(l);
    const Inspected *other = l->merged ? in->merged : in->launch;
    for (; text && other < l; other++)
        if (other->chosen && launch_text(other) == text)
            return NULL;
    return text;
}

const char *tensor_name(const Node *n) {
    const char *name = node_text(n, ATTR_name);
    return name ? name : n->from.path ? n->from.path : "";
}

// ---- lines ----

static int by_place(const void *a, const void *b) {
    const ModelLine *x = a, *y = b;
    int files = strcmp(x->file, y->file);
    return files ? files : (x->line > y->line) - (x->line < y->line);
}

static void lines_find(Arena *a, Inspected *l) {
    NodeId last = l->group[l->count - 1].last;
    size_t most = (size_t)(last - l->group->first) + 1;
    l->line = ARENA_ARRAY(a, most, ModelLine);
    int count = 0;
    for (NodeId n = NO_NODE; (n = launch_operation(l, n)) != NO_NODE;) {
        const Origin *from = &l->step->graph->node[n].from;
        if (from->file)
            l->line[count++] = (ModelLine){from->file, from->line};
    }
    qsort(l->line, (size_t)count, sizeof *l->line, by_place);
    for (int i = 0; i < count; i++)
        if (i == 0 || by_place(&l->line[i], &l->line[i - 1]) != 0)
            l->line[l->num_lines++] = l->line[i];
}

// ---- the roofline ----

static int max_int(int a, int b) {
    return a > b ? a : b;
}

int64_t operation_flops(const Graph *g, NodeId n) {
    const Node *d = &g->node[n];
    unsigned traits = op_info[d->op].traits;
    if (traits & CALLS)
        return node_flops(g, n);
    if (traits & REDUCES)
        return type_count(g->node[d->arg[0]].type);
    return (traits & POINTWISE) && d->num_args > 0 ? type_count(d->type) : 0;
}

// Tensor cores compute products of 16-bit operands.
static double peak_of(const Graph *g, const Group *group, const Device *d) {
    const Node *node = &g->node[group->first];
    DType type = node->num_args ? g->node[node->arg[0]].type->dtype : F32;
    DType stored = type == ACT ? g->act : type;
    bool half = stored == F16 || stored == BF16;
    return group->kind == GROUP_CALL && half ? d->f16_flops : d->f32_flops;
}

const char *const bound_name[NUM_BOUNDS] = {"memory", "arithmetic", "issue"};

static Bound longest_of(const double *time) {
    Bound most = BY_MEMORY;
    for (int i = 1; i < NUM_BOUNDS; i++)
        if (time[i] > time[most])
            most = (Bound)i;
    return most;
}

static void roofline(Inspected *l, const Device *d) {
    const Graph *g = l->step->graph;
    for (NodeId n = NO_NODE; (n = launch_operation(l, n)) != NO_NODE;)
        l->flops += operation_flops(g, n);
    l->bytes = l->group->bytes;
    l->cost = l->kernel->cost;
    if (l->group->iteration_space != NULL &&
        !group_is_multi_tensor(l->group->kind))
        l->elements = type_count(l->group->iteration_space);
    double memory = (double)l->bytes / d->bandwidth;
    double arithmetic = (double)l->flops / peak_of(g, l->group, d);
    double time[NUM_BOUNDS] = {memory, arithmetic, launch_issue_seconds(l, d)};
    l->bound = longest_of(time);
    l->seconds = time[l->bound];
    l->estimate = gpu_seconds(g, l->group, l->kernel, d);
}

// The cost of a merged launch, whose blocks compute each of its kernels.
static void cost_merged(Inspected *l, const Inspected *kernel) {
    for (int i = 0; i < l->count; i++) {
        const KernelCost *k = &kernel[i].cost;
        for (int n = 0; n < NUM_ISSUES; n++)
            l->cost.issue[n] +=
                k->issue[n] * launch_blocks(&kernel[i]) / launch_blocks(l);
        l->cost.code += k->code;
        l->cost.waits += k->waits;
        l->cost.registers = max_int(l->cost.registers, k->registers);
        l->cost.shared = max_int(l->cost.shared, k->shared);
        l->cost.in_flight = max_int(l->cost.in_flight, k->in_flight);
    }
}

// Kernels of a merged launch run one after another: their times add up.
static void roofline_merged(Inspected *l, const Inspected *kernel) {
    double time[NUM_BOUNDS] = {0};
    for (int i = 0; i < l->count; i++) {
        l->bytes += kernel[i].bytes;
        l->flops += kernel[i].flops;
        l->seconds += kernel[i].seconds;
        l->estimate += kernel[i].estimate;
        time[kernel[i].bound] += kernel[i].seconds;
    }
    l->bound = longest_of(time);
    cost_merged(l, kernel);
}

// ---- library fusions and merged launches ----

static void fusions_find(Inspected *first, const Launches *launches,
                         const Selected *selected) {
    for (int i = 0; i < selected->plan->fusions.count; i++) {
        const LibraryFusion *fusion = &selected->plan->fusions.fusion[i];
        if (!selected->fused[i] || fusion->kernel < 0)
            continue;
        first[fusion->kernel].fused_into = launches->kernel[fusion->call].name;
        first[fusion->kernel].fusion = fusion_info[fusion->kind].name;
    }
}

// Edges are sorted by the launch that reads.
static void edges_find(Inspected *first, const GraphPlan *p) {
    for (int i = p->num_edges - 1; i >= 0; i--) {
        first[p->edge[i].to].edge = &p->edge[i];
        first[p->edge[i].to].num_edges++;
    }
}

// Adds the merged launches of a step, whose launches begin at first.
static void merged_inspect(Show *s, Inspection *in, Inspected *first,
                           const Launches *launches, const Selected *judged) {
    for (int i = 0; i < launches->plan->merged.count; i++) {
        const MergedKernel *merged = &launches->merged[i];
        Inspected *of = &first[merged->launch.first],
                  *l = &in->merged[in->num_merged++];
        *l =
            (Inspected){.step = of->step,
                        .group = of->group,
                        .kernel = of->kernel,
                        .merged = merged,
                        .index = of->index,
                        .count = merged->launch.count,
                        .taken = i < judged->merges.count && judged->merged[i]};
        lines_find(s->a, l);
        roofline_merged(l, of);
        l->chosen = launch_matches(l, s->p, s->arguments);
        for (int k = 0; l->taken && k < l->count; k++) {
            of[k].merged_as = merged->name;
            of[k].merged_to = k > 0 ? of[k - 1].kernel->name : NULL;
        }
    }
}

static void step_inspect(Show *s, Inspection *in, const Step *step,
                         const Launches *launches) {
    Inspected *first = &in->launch[in->count];
    for (int i = 0; i < launches->count; i++) {
        Inspected *l = &first[i];
        *l = (Inspected){.step = step,
                         .group = &step->plan->group[i],
                         .kernel = &launches->kernel[i],
                         .index = i,
                         .count = 1};
        lines_find(s->a, l);
        roofline(l, in->device);
        charges_find(s->a, s->p, l);
        l->chosen = launch_matches(l, s->p, s->arguments);
    }
    Selected selected = step_select(s->a, in->plan, step, in->device);
    fusions_find(first, launches, &selected);
    edges_find(first, step->plan);
    tiles_find(s->a, first, launches, in->device);
    merged_inspect(s, in, first, launches, &selected);
    in->count += launches->count;
}

// The text before the first step's kernels.
static const char *header_of(Arena *a, const Text *cu) {
    const char *text = text_string(cu), *end = strstr(text, "\n// ---- ");
    return arena_string(a, text, end ? (size_t)(end - text) : cu->length);
}

// A step may have no launches to select from.
static bool anything_chosen(const Show *s, const Inspection *in) {
    for (int i = 0; i < in->count; i++)
        if (in->launch[i].chosen)
            return true;
    for (int i = 0; i < in->num_merged; i++)
        if (in->merged[i].chosen)
            return true;
    if (in->count == 0)
        return true;
    filter_report(s, in);
    return false;
}

// Collects the launches of the named step, or of all steps of the plan.
static bool steps_inspect(Show *s, const Device *device, const Plan *host,
                          const char *graph, Inspection *out) {
    const Plan *plan = out->plan;
    const Launches *launches = out->launches =
        codegen_launches(host, plan, s->a);
    size_t most = 0, merges = 0;
    for (int i = 0; i < plan->num_steps; i++) {
        most += (size_t)launches[i].count;
        merges += (size_t)launches[i].plan->merged.count;
    }
    out->p = s->p;
    out->host = host;
    out->device = device;
    out->launch = ARENA_ARRAY(s->a, most + 1, Inspected);
    out->merged = ARENA_ARRAY(s->a, merges + 1, Inspected);
    for (int i = 0; i < plan->num_steps; i++)
        if (!graph || strcmp(plan->step[i].name, graph) == 0)
            step_inspect(s, out, &plan->step[i], &launches[i]);
    return anything_chosen(s, out);
}

bool inspect(Show *s, const Device *device, Inspection *out, int *status) {
    const TrainerText *t = show_trainer(s);
    const char *graph = s->arguments->graph;
    *out =
        (Inspection){.plan = t->plan, .header = header_of(s->a, &t->cu_file)};
    *status = EXIT_USAGE;
    if (graph && !show_step(s, status))
        return false;
    return steps_inspect(s, device, t->host, graph, out) &&
           archs_parse(s->arguments, device, out);
}

// A merged launch selected by name selects its kernels.
static void parts_choose(Inspection *in) {
    for (int i = 0; i < in->num_merged; i++)
        for (int k = 0; in->merged[i].chosen && k < in->merged[i].count; k++)
            in->launch[in->merged[i].index + k].chosen = true;
}

bool inspect_step(Show *s, const Device *device, Inspection *out, int *status) {
    const Step *step = show_step(s, status);
    if (!step)
        return false;
    *out = (Inspection){.plan = show_plan(s), .step = step};
    *status = EXIT_USAGE;
    if (!steps_inspect(s, device, out->plan, step->name, out))
        return false;
    if (s->arguments->kernel)
        parts_choose(out);
    return true;
}
