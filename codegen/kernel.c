// Kernels: a group becomes the text of one kernel, in the common subset of C
// and CUDA C that the preludes in runtime/prelude give meaning to.
//
// v12 in a kernel is %12 in the dump of the graph, and p12 the address it is
// stored at.  Names come from the model only through kernel_name, which leaves
// letters, digits and underscores.

#include "codegen/emit.h"

#include <limits.h>
#include <string.h>

typedef struct {
    Parameter *arg;
    int count;
} Parameters;

static void parameter(Parameters *p, NodeId node, int plus, const char *type,
                      const char *name) {
    p->arg[p->count++] = (Parameter){node, plus, type, name};
}

static Parameters find_parameters(Emit *e) {
    const Group *group = e->group;
    size_t most = (size_t)(group->num_inputs + group->num_outputs) + 3;
    Parameters p = {ARENA_ARRAY(e->a, most, Parameter), 0};
    bool whole = group_is_multi_tensor(group->kind);
    if (whole)
        parameter(&p, NO_NODE, 0, "char", "arena");
    for (int i = 0; i < group->num_inputs && !whole; i++) {
        NodeId n = group->input[i];
        DType d = e->g->node[n].type->dtype;
        parameter(&p, n, 0, arena_format(e->a, "const %s", memory_type(d)),
                  pointer_name(e, n));
    }
    for (int i = 0; i < group->num_outputs && group->kind != GROUP_UPDATE;
         i++) {
        NodeId n = group->output[i];
        DType d = e->g->node[n].type->dtype;
        parameter(&p, n, 0, memory_type(d), pointer_name(e, n));
    }
    if (group->workspace != NO_NODE)
        parameter(&p, group->workspace, 0, "float", "part");
    if (group->counter >= 0)
        parameter(&p, graph_counters(e->g), 4 * group->counter, "int",
                  "ticket");
    return p;
}

// ---- the comment above a kernel ----

static void write_comment(Emit *e, const Group *device, Text *all,
                          const char *name) {
    const Group *group = e->group;
    const char *lines = group_lines(e->g, e->a, group, ", ", INT_MAX);
    Text t = text_new(e->a);
    text_add(&t, "// %s:%s%s", name, *lines != '\0' ? " " : "", lines);
    text_add(&t, "\n// %%%u..%%%u:", group->first, group->last);
    int length = 0;
    for (NodeId n = group->first; n <= group->last; n++) {
        const char *op = op_info[e->g->node[n].op].name;
        if (e->g->node[n].op == OP_workspace)
            continue;
        if (length > 60) {
            text_add(&t, " ...");
            break;
        }
        length += (int)strlen(op) + 1;
        text_add(&t, " %s", op);
    }
    text_add(&t, "\n// %lld bytes read and written (host: %lld)\n",
             (long long)device->bytes, (long long)group->bytes);
    text_add(all, REMARK("%s"), text_string(&t));
}

static void write_signature(const Emit *e, Text *t, const Parameters *p) {
    text_add(t, ENTRY_BEGINS "%s(%d",
             e->group->phases > 1 ? "PHASED" : "KERNEL", BLOCK_THREADS);
    if (e->resident > 1)
        text_add(t, ", %d", e->resident);
    text_add(t, ") " OWN_NAME "(");
    for (int i = 0; i < p->count; i++)
        text_add(t, "%s\n    %s *%s%s", i ? "," : "", p->arg[i].type,
                 p->arg[i].node == NO_NODE ? "" : "RESTRICT ", p->arg[i].name);
    text_add(t, ")\n{\n");
}

// What is kept of a kernel, in another arena than that of its making.
static void keep(Arena *a, Kernel *k, const Parameters *p) {
    Parameter *arg = ARENA_ARRAY(a, (size_t)p->count, Parameter);
    for (int i = 0; i < p->count; i++) {
        arg[i] = p->arg[i];
        arg[i].type = arena_string(a, arg[i].type, strlen(arg[i].type));
        arg[i].name = text_unmarked(a, arg[i].name);
    }
    k->num_args = p->count;
    k->arg = arg;
}

// Kernel k of launch i.
static void write_kernel(const GraphPlan *host, const GraphPlan *device, int i,
                         Arena *kept, Arena *scratch, Kernel *k, int *names) {
    Arena *a = arena_new();
    const Group *group = k->group;
    Emit e;
    emit_init(&e, host->graph, device->graph, a, group, host->stored, names);
    Parameters p = find_parameters(&e);
    Text body = text_new(a), all = text_new(a);
    memcpy(k->grid, group->grid, sizeof k->grid);
    body.indent = 1;
    if (group->kind == GROUP_GRID)
        emit_grid(&e, &body);
    else if (group->kind == GROUP_ROWS)
        emit_rows(&e, &body);
    else if (group->kind == GROUP_SCATTER)
        emit_scatter(&e, &body);
    else
        emit_update(&e, &body, k->grid);
    body = text_tidied(a, &body);
    write_comment(&e, &device->group[i], &all, k->name);
    text_bytes(&all, text_string(&e.tables), e.tables.length);
    write_signature(&e, &all, &p);
    text_add(&all, "    OWN_BLOCK;\n" BODY_BEGINS);
    text_bytes(&all, text_string(&body), body.length);
    text_add(&all, "}\n");
    k->text = arena_string(scratch, text_string(&all), all.length);
    keep(kept, k, &p);
    names_clear(&e);
    arena_free(a);
}

Kernel *kernels_marked(const GraphPlan *host, const GraphPlan *device, Arena *a,
                       Arena *scratch, int *number) {
    const Graph *g = host->graph;
    Kernel *kernel = ARENA_ARRAY(a, (size_t)host->num_groups + 1, Kernel);
    int *names = ARENA_ARRAY(scratch, g->count, int);
    for (int i = 0; i < host->num_groups; i++) {
        const Group *group = kernel[i].group = &host->group[i];
        kernel[i].name = kernel_name(g, a, group, (*number)++);
        if (group->kind != GROUP_CALL)
            write_kernel(host, device, i, a, scratch, &kernel[i], names);
    }
    return kernel;
}

Kernel *codegen_kernels(const GraphPlan *host, const GraphPlan *device,
                        Arena *a, int *number) {
    Arena *scratch = arena_new();
    Kernel *kernel = kernels_marked(host, device, a, scratch, number);
    for (int i = 0; i < host->num_groups; i++)
        if (kernel[i].text != NULL)
            kernel_named(a, &kernel[i], NULL);
    arena_free(scratch);
    return kernel;
}
