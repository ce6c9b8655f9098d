// Library calls: their tables, and those of library fusions and of candidate
// merged launches.

#include "codegen/program.h"

static void write_conv(Text *t, const Node *d, const char *kind, Type x,
                       Type weight, Type y) {
    text_add(t, "%s, .n = %lld, .h = %lld, .w = %lld, .c = %lld,", kind,
             (long long)x.dim[0], (long long)x.dim[1], (long long)x.dim[2],
             (long long)x.dim[3]);
    text_add(
        t, "\n     .k = %lld, .r = %lld, .s = %lld, .oh = %lld, .ow = %lld,",
        (long long)weight.dim[0], (long long)weight.dim[1],
        (long long)weight.dim[2], (long long)y.dim[1], (long long)y.dim[2]);
    text_add(t, "\n     .stride = {%lld, %lld}, .dilation = {%lld, %lld},",
             (long long)node_ints(d, ATTR_stride, 0, 1),
             (long long)node_ints(d, ATTR_stride, 1, 1),
             (long long)node_ints(d, ATTR_dilation, 0, 1),
             (long long)node_ints(d, ATTR_dilation, 1, 1));
    text_add(t, " .pad = {%lld, %lld, %lld, %lld}, .groups = %lld",
             (long long)node_ints(d, ATTR_pad, 0, 0),
             (long long)node_ints(d, ATTR_pad, 1, 0),
             (long long)node_ints(d, ATTR_pad, 2, 0),
             (long long)node_ints(d, ATTR_pad, 3, 0),
             (long long)node_int(d, ATTR_groups, 1));
}

static void write_matmul(Text *t, const Node *d, Type a) {
    bool ta = node_int(d, ATTR_ta, 0), tb = node_int(d, ATTR_tb, 0);
    int rows = d->type->rank - 2;
    int64_t batch = 1;
    for (int i = 0; i < rows; i++)
        batch *= d->type->dim[i];
    text_add(t, "RT_MATMUL, .batch = %lld, .n = %lld, .k = %lld, .c = %lld,",
             (long long)batch, (long long)d->type->dim[rows],
             (long long)d->type->dim[rows + 1],
             (long long)a.dim[ta ? rows : rows + 1]);
    text_add(t, "\n     .ta = %s, .tb = %s", ta ? "true" : "false",
             tb ? "true" : "false");
}

static void write_sum(Text *t, const Node *d) {
    text_add(t, "RT_SUM_OVER_SHARDS, .n = 1, .k = %lld",
             (long long)type_count(d->type));
}

static void write_factor(Text *t, const Node *d, Type a) {
    text_add(t, "%s, .n = %lld, .k = %lld",
             d->op == OP_eigh ? "RT_EIGH" : "RT_ORTHOGONAL",
             (long long)a.dim[0], (long long)a.dim[1]);
}

NodeId called_second(const Node *d) {
    return d->arg[d->num_args > 1 ? 1 : 0];
}

static void write_call(Text *t, const Graph *g, const Node *d) {
    Type a = *g->node[d->arg[0]].type;
    Type b = *g->node[called_second(d)].type;
    switch (d->op) {
    case OP_conv:
        write_conv(t, d, "RT_CONV", a, b, *d->type);
        break;
    case OP_conv_grad_input:
        write_conv(t, d, "RT_CONV_GRAD_INPUT", *d->type, b, a);
        break;
    case OP_conv_grad_weight:
        write_conv(t, d, "RT_CONV_GRAD_WEIGHT", b, *d->type, a);
        break;
    case OP_matmul:
        write_matmul(t, d, a);
        break;
    case OP_sum_over_shards:
        write_sum(t, d);
        break;
    default:
        write_factor(t, d, a);
    }
}

const Node *called_node(const Graph *g, const Kernel *k) {
    return &g->node[group_first(g, k->group, CALLS)];
}

bool any_calls(const Writer *w) {
    for (int i = 0; i < w->num_steps; i++)
        for (int k = 0; k < w->step[i].count; k++)
            if (w->step[i].kernel[k].text == NULL)
                return true;
    return false;
}

// The layer of a call, for messages.
static const char *call_layer(const Writer *w, const Node *d,
                              const Kernel *kernel) {
    const Origin *from = &d->from;
    return from->path == NULL ? kernel->name
           : from->file == NULL
               ? from->path
               : arena_format(w->a, "%s, %s:%d", from->path,
                              file_text(w->a, from->file), from->line);
}

static void write_call_table(const Writer *w, Text *t, int which) {
    DType act = w->plan[which]->act;
    text_add(t, "\nstatic const RtCall calls_%s[] = {\n", on_device[which]);
    for (int i = 0; i < w->num_steps; i++)
        for (int k = 0; k < w->step[i].count; k++) {
            const Kernel *kernel = &w->step[i].kernel[k];
            if (kernel->text != NULL)
                continue;
            const Node *d = called_node(w->step[i].graph, kernel);
            text_add(t, "    {.layer = \"%s\",\n     ",
                     call_layer(w, d, kernel));
            text_add(t, ".type = %s, .accumulate = %s, .kind = ",
                     rt_type_text(d->type->dtype, act),
                     node_int(d, ATTR_accumulate, 0) ? "true" : "false");
            write_call(t, w->step[i].graph, d);
            text_add(t, "}, // %s\n", kernel->name);
        }
    text_add(t, "};\n");
}

void calls_write(const Writer *w, Text *t) {
    if (!any_calls(w))
        return;
    text_add(t, "\n// ---- library calls ----\n\nenum {\n");
    for (int i = 0; i < w->num_steps; i++)
        for (int k = 0; k < w->step[i].count; k++)
            if (w->step[i].kernel[k].text == NULL)
                text_add(t, "    %s,\n", w->step[i].kernel[k].name);
    text_add(t, "};\n");
    for (int which = 0; which < NUM_PLANS; which++)
        write_call_table(w, t, which);
}

// Whether a tile kernel computes a call or a kernel of a library fusion: then
// none is offered, as fusions depend on one another.
static bool replaces_fusions(const Writer *w) {
    for (int i = 0; i < w->num_steps; i++) {
        const TileFusions *f = &w->step[i].launches->plan->tiles;
        for (int k = 0; k < f->count; k++)
            if (f->fusion[k].taken && f->fusion[k].fused)
                return true;
    }
    return false;
}

void fusion_tables_write(Writer *w, Text *t) {
    w->fusions =
        (FusionTables){.norms = text_new(w->a), .fusions = text_new(w->a)};
    for (int i = 0; !replaces_fusions(w) && i < w->num_steps; i++)
        fusions_emit(&w->fusions, w->step[i].launches, i);
    if (w->fusions.num_fusions > 0)
        text_add(t,
                 "\n// Prologues and epilogues of library calls on CUDA.\n"
                 "static const RtNorm norms[] = {\n%s};\n\n"
                 "static const RtFusion fusions[] = {\n%s};\n",
                 text_string(&w->fusions.norms),
                 text_string(&w->fusions.fusions));
}

void merged_tables_write(Writer *w, Text *t) {
    Text rows = text_new(w->a);
    for (int i = 0; i < w->num_steps; i++)
        merged_emit(&rows, w->step[i].launches, i);
    w->merges = rows.length > 0;
    if (w->merges)
        text_add(t,
                 "\n// Merged cooperative launches on CUDA.\n"
                 "static const RtMergedLaunch merged_launches[] = {\n%s};\n",
                 text_string(&rows));
}
