// Kernels for programs: docs/kernels.schema.json says what each value is.
#include "tools/inspect.h"

#include <inttypes.h>
#include <string.h>

static void text_field(Text *t, const char *name, const char *value) {
    text_add(t, ", \"%s\": ", name);
    if (value)
        json_string(t, value);
    else
        text_add(t, "null");
}

static void count_field(Text *t, const char *name, int64_t value) {
    text_add(t, ", \"%s\": %" PRId64, name, value);
}

static void type_field(Arena *a, Text *t, Type type) {
    Text s = text_new(a);
    type_print(&s, type);
    text_field(t, "type", text_string(&s));
}

static void lines_json(Text *t, const Inspected *l) {
    text_add(t, ", \"lines\": [");
    for (int i = 0; i < l->num_lines; i++) {
        text_add(t, "%s{\"line\": %d", i ? ", " : "", l->line[i].line);
        text_field(t, "file", l->line[i].file);
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
        text_field(t, "op", op_info[d->op].name);
        type_field(a, t, d->type);
        text_field(t, "file", d->from.file);
        count_field(t, "line", d->from.line);
        text_field(t, "path", d->from.path);
        text_add(t, ", \"backward\": %s}", d->from.backward ? "true" : "false");
        comma = ", ";
    }
    text_add(t, "]");
}

static void tensors_json(Arena *a, Text *t, const char *name, const Graph *g,
                         const NodeId *list, int count) {
    text_add(t, ", \"%s\": [", name);
    for (int i = 0; i < count; i++) {
        const Node *d = &g->node[list[i]];
        text_add(t, "%s{\"node\": %u", i ? ", " : "", list[i]);
        text_field(t, "name", tensor_name(d));
        type_field(a, t, d->type);
        count_field(t, "offset", d->offset);
        count_field(t, "bytes", graph_bytes(g, d->type));
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

static void launch_json(Arena *a, Text *t, const Inspection *in,
                        const Inspected *l) {
    const Kernel *k = l->kernel;
    const Graph *g = l->step->graph;
    const Kernel *written = k->first ? k->first : k;
    text_add(t, "{\"name\": \"%s\"", k->name);
    text_field(t, "step", l->step->name);
    count_field(t, "index", l->index);
    text_field(t, "kind", k->text ? "kernel" : "call");
    lines_json(t, l);
    operations_json(a, t, l);
    tensors_json(a, t, "reads", g, k->group->input, k->group->num_inputs);
    tensors_json(a, t, "writes", g, k->group->output, k->group->num_outputs);
    count_field(t, "bytes", l->bytes);
    count_field(t, "flops", l->flops);
    count_field(t, "blocks", k->text ? k->grid[1] : 0);
    count_field(t, "threads", k->text ? BLOCK_THREADS : 0);
    text_add(t, ", \"roofline_seconds\": %.9g", l->seconds);
    text_field(t, "bound_by", l->by_memory ? "memory" : "arithmetic");
    text_field(t, "rides_on", l->rides_on);
    text_field(t, "joined_to", l->joined_to);
    resources_json(t, in, l);
    text_field(t, "text_of", k->text ? written->name : NULL);
    text_field(t, "text", written == k ? k->text : NULL);
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
    text_add(t, "{\"schema\": 1");
    text_field(t, "model", in->p->name);
    text_field(t, "file", in->p->file);
    device_json(t, in->device);
    count_field(t, "arena_bytes", in->plan->arena_bytes);
    text_field(t, "compiler", in->compiler);
    text_field(t, "header", in->header);
    text_add(t, ", \"launches\": [");
    for (int i = 0; i < in->count; i++)
        if (in->launch[i].chosen) {
            text_add(t, "%s", comma);
            launch_json(a, t, in, &in->launch[i]);
            comma = ",\n";
        }
    text_add(t, "\n]}\n");
}
