// Kernels as JSON: docs/kernels.schema.json describes each value.
#include "tools/show/inspect.h"

#include <string.h>

static void type_field(Arena *a, Text *t, Type type) {
    Text s = text_new(a);
    type_print(&s, &type);
    json_text(t, "type", text_string(&s));
}

static void lines_json(Text *t, const Inspected *l) {
    text_add(t, ", \"lines\": [");
    for (int i = 0; i < l->num_lines; i++) {
        text_add(t, "%s{\"line\": %d", i ? ", " : "", l->line[i].line);
        json_text(t, "file", l->line[i].file);
        text_add(t, "}");
    }
    text_add(t, "]");
}

static void charges_json(Text *t, const Inspected *l) {
    text_add(t, ", \"charges\": [");
    for (int i = 0; i < l->num_charges; i++) {
        const Charge *c = &l->charge[i];
        text_add(t, "%s{\"line\": %d", i ? ", " : "", c->site.line);
        json_text(t, "file", c->site.file);
        json_count(t, "own_line", c->from->line);
        json_text(t, "own_file", c->from->file);
        json_text(t, "path", c->from->path);
        json_count(t, "bytes", c->bytes);
        json_count(t, "flops", c->flops);
        text_add(t, "}");
    }
    text_add(t, "]");
}

static void operations_json(Arena *a, Text *t, const Inspected *l) {
    const char *comma = "";
    text_add(t, ", \"operations\": [");
    for (NodeId n = NO_NODE; (n = launch_operation(l, n)) != NO_NODE;) {
        const Node *d = &l->step->graph->node[n];
        text_add(t, "%s{\"node\": %u", comma, n);
        json_text(t, "op", op_info[d->op].name);
        type_field(a, t, *d->type);
        json_text(t, "file", d->from.file);
        json_count(t, "line", d->from.line);
        json_text(t, "path", d->from.path);
        text_add(t, ", \"backward\": %s}", d->from.backward ? "true" : "false");
        comma = ", ";
    }
    text_add(t, "]");
}

// The reason why a launch reads a value instead of computing it; NULL if no
// launch makes it.
static const char *reason_of(const Inspected *l, NodeId n) {
    for (int i = 0; i < l->num_edges; i++)
        if (l->edge[i].node == n)
            return reason_info[l->edge[i].why].text;
    return NULL;
}

static void tensors_json(Arena *a, Text *t, const char *name,
                         const Inspected *l, const NodeId *list, int count) {
    const Graph *g = l->step->graph;
    bool reads = strcmp(name, "reads") == 0;
    text_add(t, ", \"%s\": [", name);
    for (int i = 0; i < count; i++) {
        const Node *d = &g->node[list[i]];
        text_add(t, "%s{\"node\": %u", i ? ", " : "", list[i]);
        json_text(t, "name", tensor_name(d));
        type_field(a, t, *d->type);
        json_count(t, "offset", d->offset);
        json_count(t, "bytes", graph_bytes(g, d->type));
        if (reads)
            json_text(t, "reason", reason_of(l, list[i]));
        text_add(t, "}");
    }
    text_add(t, "]");
}

static void resources_json(Text *t, const Inspection *in, const Inspected *l) {
    text_add(t, ", \"resources\": [");
    for (int i = 0; l->resources && i < in->num_archs; i++) {
        const Resources *r = &l->resources[i];
        text_add(t,
                 "%s{\"arch\": \"sm_%d\", \"registers\": %d, "
                 "\"spill_bytes\": %d, \"stack_bytes\": %d, "
                 "\"shared_bytes\": %d}",
                 i ? ", " : "", in->arch[i], r->registers, r->spills, r->stack,
                 r->shared);
    }
    text_add(t, "]");
}

static void estimate_json(Text *t, const Inspection *in, const Inspected *l) {
    static const char *const kind[] = {"float",   "special", "integer",
                                       "convert", "global",  "shared",
                                       "control"};
    if (!launch_text(l)) {
        text_add(t, ", \"estimate\": null");
        return;
    }
    text_add(t, ", \"estimate\": {\"instructions\": {");
    for (int i = 0; i < NUM_ISSUES; i++)
        text_add(t, "%s\"%s\": %.6g", i > 0 ? ", " : "", kind[i],
                 launch_instructions(l, (Issue)i));
    text_add(t, "}");
    text_add(t, ", \"issue_seconds\": %.6g",
             launch_issue_seconds(l, in->device));
    text_add(t, ", \"tail_seconds\": %.6g", tail_seconds(&l->cost));
    json_count(t, "elements", l->elements);
    json_count(t, "code", (int64_t)l->cost.code);
    json_count(t, "registers", l->cost.registers);
    json_count(t, "shared_bytes", l->cost.shared);
    json_count(t, "resident_blocks",
               resident_blocks(&l->cost, launch_blocks(l), in->device));
    json_count(t, "bytes_in_flight",
               bytes_in_flight(&l->cost, launch_blocks(l), in->device));
    text_add(t, "}");
}

static void configs_json(Text *t, const TileKernel *k) {
    double seconds;
    const TileConfig *c;
    text_add(t, "{\"name\": \"%s\", \"configurations\": [", k->name);
    for (int i = 0; (c = tile_candidate(k, i, &seconds)) != NULL; i++)
        text_add(t,
                 "%s{\"rows\": %d, \"columns\": %d, \"depth\": %d, "
                 "\"warps\": %d, \"parts\": %d, \"swizzle\": %d, "
                 "\"blocks\": %d, \"workspace_bytes\": %lld, "
                 "\"seconds\": %.9g}",
                 i > 0 ? ", " : "", c->rows, c->columns, c->depth, c->warps,
                 c->parts, c->swizzle, c->grid, (long long)c->workspace,
                 seconds);
    text_add(t, "]}");
}

static void tile_json(Text *t, const Inspected *l) {
    if (l->tile == NULL) {
        text_add(t, ", \"tile\": null");
        return;
    }
    text_add(t, ", \"tile\": {\"seconds\": %.9g, \"library_seconds\": %.9g",
             l->tile_time.tile, l->tile_time.library);
    text_add(t, ", \"kernels\": [");
    for (const TileKernel *k = l->tile; k != NULL; k = k->second) {
        configs_json(t, k);
        text_add(t, k->second != NULL ? ", " : "]}");
    }
}

// Maps the nodes in a shared text to those of this launch.
static void nodes_json(Text *t, const Kernel *k) {
    const long *own = k->numbers.number;
    const char *comma = "";
    text_add(t, ", \"text_nodes\": [");
    for (int i = 0; i < k->numbers.count; i++) {
        long of = k->first->numbers.number[i];
        if (of != own[i]) {
            text_add(t, "%s[%ld, %ld]", comma, of, own[i]);
            comma = ", ";
        }
    }
    text_add(t, "]");
}

// Members of launches and of merged launches.
static void costs_json(Text *t, const Inspection *in, const Inspected *l) {
    json_count(t, "bytes", l->bytes);
    json_count(t, "flops", l->flops);
    json_count(t, "blocks", launch_blocks(l));
    json_count(t, "threads", launch_text(l) ? BLOCK_THREADS : 0);
    text_add(t, ", \"roofline_seconds\": %.9g", l->seconds);
    json_text(t, "bound_by", bound_name[l->bound]);
    text_add(t, ", \"estimate_seconds\": %.9g", l->estimate);
    estimate_json(t, in, l);
    resources_json(t, in, l);
    json_text(t, "text", launch_new_text(in, l));
}

static void merged_json(Text *t, const Inspection *in, const Inspected *l) {
    text_add(t, "{\"name\": \"%s\"", launch_name(l));
    json_text(t, "step", l->step->name);
    json_count(t, "index", l->index);
    json_count(t, "count", l->count);
    text_add(t, ", \"selected\": %s", l->taken ? "true" : "false");
    lines_json(t, l);
    costs_json(t, in, l);
    text_add(t, "}");
}

static void launch_json(Arena *a, Text *t, const Inspection *in,
                        const Inspected *l) {
    const Kernel *k = l->kernel;
    text_add(t, "{\"name\": \"%s\"", launch_name(l));
    json_text(t, "step", l->step->name);
    json_count(t, "index", l->index);
    json_text(t, "kind", k->text ? "kernel" : "call");
    lines_json(t, l);
    charges_json(t, l);
    operations_json(a, t, l);
    tensors_json(a, t, "reads", l, l->group->input, l->group->num_inputs);
    tensors_json(a, t, "writes", l, l->group->output, l->group->num_outputs);
    json_text(t, "fused_into", l->fused_into);
    json_text(t, "merged_with", l->merged_to);
    json_text(t, "merged_launch", l->merged_as);
    tile_json(t, l);
    json_text(t, "text_of", k->text ? k->first->name : NULL);
    nodes_json(t, k);
    costs_json(t, in, l);
    text_add(t, "}");
}

static void device_json(Text *t, const Device *d) {
    text_add(t, ", \"device\": {\"name\": ");
    json_string(t, d->name);
    text_add(t,
             ", \"arch\": \"sm_%d\", \"bytes_per_second\": %.17g, "
             "\"f16_flops\": %.17g, \"f32_flops\": %.17g}",
             d->sm, d->bandwidth, d->f16_flops, d->f32_flops);
}

void kernels_json(Arena *a, Text *t, const Inspection *in) {
    const char *comma = "\n";
    text_add(t, "{\"schema\": 3");
    json_text(t, "model", in->p->name);
    json_text(t, "file", in->p->file);
    device_json(t, in->device);
    json_count(t, "arena_bytes", in->plan->arena_bytes);
    json_text(t, "compiler", in->compiler);
    json_text(t, "header", in->header);
    text_add(t, ", \"launches\": [");
    for (int i = 0; i < in->count; i++)
        if (in->launch[i].chosen) {
            text_add(t, "%s", comma);
            launch_json(a, t, in, &in->launch[i]);
            comma = ",\n";
        }
    text_add(t, "\n], \"merged_launches\": [");
    comma = "\n";
    for (int i = 0; i < in->num_merged; i++)
        if (in->merged[i].chosen) {
            text_add(t, "%s", comma);
            merged_json(t, in, &in->merged[i]);
            comma = ",\n";
        }
    text_add(t, "\n]}\n");
}
