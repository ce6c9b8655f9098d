// Plan tables: the states, inputs and steps of a plan, and the tensors that its
// launches store.

#include "codegen/program.h"

#include <string.h>

const char *const on_device[NUM_PLANS] = {"host", "cuda"};

const char *rt_type_text(DType d, DType act) {
    switch (d == ACT ? act : d) {
    case F16:
        return "RT_F16";
    case BF16:
        return "RT_BF16";
    case I32:
        return "RT_I32";
    case U8:
        return "RT_U8";
    case BOOL:
        return "RT_BOOL";
    default:
        return "RT_F32";
    }
}

static const char *rt_kind(const Node *d) {
    static const char *const kinds[][2] = {
        {STATE_STATISTIC, "RT_STATISTIC"}, {STATE_OPTIMIZER, "RT_OPTIMIZER"},
        {STATE_AVERAGE, "RT_AVERAGED"},    {STATE_GRADIENT, "RT_GRADIENT"},
        {STATE_PARTIAL, "RT_PARTIAL"},     {STATE_RUN, "RT_RUN"},
        {STATE_METRIC, "RT_METRIC"},       {STATE_DERIVED, "RT_DERIVED"},
        {STATE_START, "RT_DERIVED"},       {STATE_SCORES, "RT_DERIVED"},
    };
    const char *kind = node_text(d, ATTR_kind);
    int count = sizeof kinds / sizeof kinds[0];
    for (int i = 0; kind != NULL && i < count; i++)
        if (strcmp(kind, kinds[i][0]) == 0)
            return kinds[i][1];
    return "RT_PARAM";
}

static const char *dims_text(Arena *a, Type type) {
    Text t = text_new(a);
    text_add(&t, "%d, {", type.rank);
    for (int i = 0; i < type.rank; i++)
        text_add(&t, "%s%lld", i ? ", " : "", (long long)type.dim[i]);
    text_add(&t, type.rank ? "}" : "0}");
    return text_string(&t);
}

void states_write(const Writer *w, Text *t, int which) {
    text_add(t, "\nstatic const RtState states_%s[] = {\n", on_device[which]);
    for (int i = 0; i < w->num_steps; i++) {
        const Graph *g = w->step[i].plan[which]->graph;
        for (NodeId n = 0; n < g->count; n++) {
            const Node *d = &g->node[n];
            bool seen = false;
            if ((d->op != OP_param && d->op != OP_state) ||
                state_is(d, STATE_CACHE))
                continue;
            const char *name = node_text(d, ATTR_name);
            for (int j = 0; j < i && !seen; j++)
                seen =
                    graph_find(w->step[j].plan[which]->graph, name) != NO_NODE;
            if (seen)
                continue;
            text_add(t, "    {\"%s\", %s, %s, %s, %lld, ", name, rt_kind(d),
                     rt_type_text(d->type->dtype, g->act),
                     dims_text(w->a, *d->type), (long long)d->offset);
            text_double(t, node_float(d, ATTR_init, 0.0));
            text_add(t, "},\n");
        }
    }
    text_add(t, "};\n");
}

static void tensor_add(const Writer *w, Text *t, const Graph *g, NodeId n,
                       const char *name, size_t offset) {
    const Node *d = &g->node[n];
    text_add(t, "{\"%s\", %s, %s, %zu}", name,
             rt_type_text(d->type->dtype, g->act), dims_text(w->a, *d->type),
             offset);
}

static void input_add(const Writer *w, Text *t, const Graph *g, NodeId n,
                      size_t offset) {
    tensor_add(w, t, g, n, node_text(&g->node[n], ATTR_name), offset);
}

// The outputs of a prediction: the first, then the others.
static void outputs_add(const Writer *w, Text *t, const Graph *g) {
    int count = 0;
    for (NodeId n = 0; n < g->count; n++) {
        if (g->node[n].op != OP_output)
            continue;
        NodeId base = node_base(g, g->node[n].arg[0]);
        text_add(t, count == 0   ? ",\n     .output = "
                    : count == 1 ? ",\n     .more_output = (const RtInput[]){"
                                 : ", ");
        input_add(w, t, g, n, (size_t)g->node[base].offset);
        count++;
    }
    if (count > 1)
        text_add(t, "},\n     .num_more_outputs = %d", count - 1);
}

// The bytes of a decode step's caches, which lie side by side.
static void caches_add(Text *t, const Graph *g) {
    int64_t begin = 0, end = 0;
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        if (!state_is(d, STATE_CACHE))
            continue;
        if (end == 0 || d->offset < begin)
            begin = d->offset;
        if (d->offset + graph_bytes(g, d->type) > end)
            end = d->offset + graph_bytes(g, d->type);
    }
    if (end > 0)
        text_add(t, ",\n     .cache = %lld, .cache_bytes = %lld",
                 (long long)begin, (long long)(end - begin));
}

// The outputs "gradient of NAME" of a step.
void gradients_write(const Writer *w, Text *t, int which) {
    static const char before[] = "gradient of ";
    for (int i = 0; i < w->num_steps; i++) {
        const Graph *g = w->step[i].plan[which]->graph;
        if (w->step[i].step->kind != STEP_GRADIENTS)
            continue;
        text_add(t, "\nstatic const RtInput %s_of_%s[] = {\n", w->step[i].name,
                 on_device[which]);
        for (NodeId n = 0; n < g->count; n++) {
            const Node *d = &g->node[n];
            if (d->op != OP_output ||
                strncmp(node_text(d, ATTR_name), before, strlen(before)) != 0)
                continue;
            NodeId base = node_base(g, d->arg[0]);
            text_add(t, "    ");
            tensor_add(w, t, g, n, node_text(d, ATTR_name) + strlen(before),
                       (size_t)g->node[base].offset);
            text_add(t, ",\n");
        }
        text_add(t, "};\n");
    }
}

void buckets_write(const Writer *w, Text *t, int which) {
    for (int i = 0; i < w->num_steps; i++) {
        const Step *s = &w->plan[which]->step[i];
        if (s->num_buckets == 0)
            continue;
        text_add(t, "\nstatic const RtBucket %s_buckets_%s[] = {\n",
                 w->step[i].name, on_device[which]);
        for (int k = 0; k < s->num_buckets; k++)
            text_add(t, "    {%lld, %lld, %d},\n",
                     (long long)s->bucket[k].offset,
                     (long long)s->bucket[k].bytes, s->bucket[k].ready);
        text_add(t, "};\n");
    }
}

// The host has no second stream.
void forks_write(const Writer *w, Text *t) {
    for (int i = 0; i < w->num_steps; i++) {
        const Forks *f = &w->step[i].plan[GPU_PLAN]->forks;
        if (f->count == 0)
            continue;
        text_add(t, "\nstatic const RtFork %s_forks[] = {\n", w->step[i].name);
        for (int k = 0; k < f->count; k++)
            text_add(t, "    {%d, %d},\n", f->fork[k].call, f->fork[k].join);
        text_add(t, "};\n");
    }
}

void optimizer_shards_write(const Writer *w, Text *t, int which) {
    const Plan *plan = w->plan[which];
    if (plan->num_optimizer_shards == 0)
        return;
    text_add(t, "\nstatic const RtOptimizerShard optimizer_shards_%s[] = {\n",
             on_device[which]);
    for (int i = 0; i < plan->num_optimizer_shards; i++) {
        const OptimizerShard *s = &plan->optimizer_shard[i];
        text_add(t, "    {%lld, %lld, %lld, %lld},\n", (long long)s->params,
                 (long long)s->param_bytes, (long long)s->states,
                 (long long)s->state_bytes);
    }
    text_add(t, "};\n");
}

void inputs_write(const Writer *w, Text *t, int which) {
    for (int i = 0; i < w->num_steps; i++) {
        const Graph *g = w->step[i].plan[which]->graph;
        bool any = false;
        for (NodeId n = 0; n < g->count; n++) {
            const Node *d = &g->node[n];
            if (d->op != OP_input)
                continue;
            if (!any)
                text_add(t, "\nstatic const RtInput %s_inputs_%s[] = {\n",
                         w->step[i].name, on_device[which]);
            any = true;
            text_add(t, "    ");
            input_add(w, t, g, n, (size_t)d->offset);
            text_add(t, ",\n");
        }
        if (any)
            text_add(t, "};\n");
    }
}

static bool has_inputs(const Graph *g) {
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_input)
            return true;
    return false;
}

// Derived state is recomputed after a step that changes its source without
// updating the copy.
static bool leaves_derived(const PlannedStep *s) {
    if (s->step->kind != STEP_INIT && s->step->kind != STEP_AVERAGE)
        return false;
    for (NodeId n = 0; n < s->graph->count; n++) {
        const Node *d = &s->graph->node[n];
        if (d->op == OP_assign && s->graph->node[d->arg[0]].op == OP_param)
            return true;
    }
    return false;
}

static void stored_row_add(const Writer *w, Text *t, const Graph *g, NodeId n,
                           int step, int launch) {
    const Node *d = &g->node[n];
    Text what = text_new(w->a);
    node_describe(&what, d);
    text_add(t, "    {%d, %d, %u, %s, %lld, %lld, ", step, launch, n,
             rt_type_text(d->type->dtype, g->act),
             (long long)type_count(d->type), (long long)d->offset);
    quoted_add(t, text_string(&what));
    text_add(t, "},\n");
}

// The tensors that launches write, for inspection of a step.
void stored_write(Writer *w, Text *t, int which) {
    Text rows = text_new(w->a);
    for (int i = 0; i < w->num_steps; i++) {
        const PlannedStep *s = &w->step[i];
        const Graph *g = s->plan[which]->graph;
        for (int k = 0; k < s->count; k++) {
            const Group *group = s->kernel[k].group;
            for (int j = 0; j < group->num_outputs; j++)
                if (!(op_info[g->node[group->output[j]].op].traits & LEAF))
                    stored_row_add(w, &rows, g, group->output[j], i, k);
        }
    }
    w->stored = rows.length > 0;
    if (w->stored)
        text_add(t,
                 "\n// Tensors that launches store, for snapshots.\n"
                 "static const RtStored stored_%s[] = {\n%s};\n",
                 on_device[which], text_string(&rows));
}

void step_table_write(const Writer *w, Text *t, int which) {
    static const char *const kind[] = {[STEP_COLLECT] = "RT_COLLECT",
                                       [STEP_INIT] = "RT_INIT",
                                       [STEP_DERIVE] = "RT_DERIVE",
                                       [STEP_TRAIN] = "RT_TRAIN",
                                       [STEP_OPTIMIZE] = "RT_OPTIMIZE",
                                       [STEP_APPLY] = "RT_APPLY",
                                       [STEP_ACCUMULATE] = "RT_ACCUMULATE",
                                       [STEP_GRADIENTS] = "RT_GRADIENTS",
                                       [STEP_AVERAGE] = "RT_AVERAGE",
                                       [STEP_PREPARE] = "RT_PREPARE",
                                       [STEP_EVAL] = "RT_EVAL",
                                       [STEP_PREDICT] = "RT_PREDICT",
                                       [STEP_DECODE] = "RT_DECODE"};
    const char *on = on_device[which];
    text_add(t, "\nstatic const RtStep steps_%s[] = {\n", on);
    for (int i = 0; i < w->num_steps; i++) {
        const PlannedStep *s = &w->step[i];
        text_add(t,
                 "    {.name = \"%s\", .kind = %s, .stage = %d,\n"
                 "     .run = %s_on_%s",
                 s->name, kind[s->step->kind], s->step->stage, s->name, on);
        if (s->count > 0)
            text_add(t,
                     ",\n     .launch = %s_launches, .num_launches = %d, "
                     ".bytes = %s_bytes[%d]",
                     s->name, s->count, s->name, which);
        if (leaves_derived(s))
            text_add(t, ", .then_derive = true");
        if (has_inputs(s->graph))
            text_add(t,
                     ",\n     .input = %s_inputs_%s, .num_inputs = "
                     "COUNT(%s_inputs_%s)",
                     s->name, on, s->name, on);
        if (s->step->kind == STEP_GRADIENTS)
            text_add(t,
                     ",\n     .gradient = %s_of_%s, .num_gradients = "
                     "COUNT(%s_of_%s)",
                     s->name, on, s->name, on);
        if (s->step->kind >= STEP_PREDICT)
            outputs_add(w, t, s->plan[which]->graph);
        caches_add(t, s->plan[which]->graph);
        if (w->plan[which]->step[i].num_buckets > 0)
            text_add(t,
                     ",\n     .bucket = %s_buckets_%s, .num_buckets = "
                     "COUNT(%s_buckets_%s)",
                     s->name, on, s->name, on);
        if (which == GPU_PLAN && s->plan[which]->forks.count > 0)
            text_add(t,
                     ",\n     .fork = %s_forks, .num_forks = COUNT(%s_forks)",
                     s->name, s->name);
        text_add(t, "},\n");
    }
    text_add(t, "};\n");
}

void plan_write(const Writer *w, Text *t, int which) {
    const char *on = on_device[which];
    const Plan *plan = w->plan[which];
    text_add(t, "    {\n");
    text_add(t, "        .device = \"%s\",\n", on);
    text_add(t, "        .arena_bytes = %lld,\n", (long long)plan->arena_bytes);
    if (plan->shards > 0)
        text_add(t,
                 "        .partial = %lld,\n        .partial_bytes = %lld,\n",
                 (long long)plan->partial, (long long)plan->partial_bytes);
    if (plan->num_optimizer_shards > 0)
        text_add(t,
                 "        .optimizer_shard = optimizer_shards_%s,\n"
                 "        .num_optimizer_shards = "
                 "COUNT(optimizer_shards_%s),\n",
                 on, on);
    text_add(t, "        .state = states_%s,\n", on);
    text_add(t, "        .num_states = COUNT(states_%s),\n", on);
    text_add(t, "        .kernel = kernels,\n");
    text_add(t, "        .num_kernels = NUM_KERNELS,\n");
    if (any_calls(w)) {
        text_add(t, "        .call = calls_%s,\n", on);
        text_add(t, "        .num_calls = COUNT(calls_%s),\n", on);
    }
    text_add(t, "        .step = steps_%s,\n", on);
    text_add(t, "        .num_steps = COUNT(steps_%s),\n", on);
    if (which == GPU_PLAN && w->fusions.num_fusions > 0)
        text_add(t, "        .norm = norms,\n        .fusion = fusions,\n"
                    "        .num_fusions = COUNT(fusions),\n"
                    "        .num_norms = COUNT(norms),\n");
    if (which == GPU_PLAN && w->merges)
        text_add(t, "        .merged = merged_launches,\n"
                    "        .num_merged = COUNT(merged_launches),\n");
    if (which == w->tiled && w->tiles)
        text_add(t,
                 "        .tile = tiles,\n"
                 "        .num_tiles = COUNT(tiles),\n%s",
                 which == HOST_PLAN ? "        .host_tile = sinter_tiles,\n"
                                    : "");
    if (which == w->tiled && w->prologues)
        text_add(t, "        .fused = fused_launches,\n"
                    "        .num_fused = COUNT(fused_launches),\n");
    if (w->stored)
        text_add(t,
                 "        .stored = stored_%s,\n"
                 "        .num_stored = COUNT(stored_%s),\n",
                 on, on);
    text_add(t, "    },\n");
}
