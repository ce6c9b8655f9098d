// Steps: the functions of a trainer that launch each step's kernels and calls,
// in order.

#include "codegen/program.h"

#include <string.h>

static const char *type_text(Arena *a, Type type) {
    Text t = text_new(a);
    type_print(&t, &type);
    return text_string(&t);
}

static const char *layer_of(const Node *d) {
    const char *name = node_text(d, ATTR_name);
    return name != NULL           ? name
           : d->from.path != NULL ? d->from.path
                                  : op_info[d->op].name;
}

static int phase_of(const Group *group) {
    if (group_is_multi_tensor(group->kind))
        return 2;
    return group->backward;
}

static void write_launch(const Writer *w, Text *t, const PlannedStep *s,
                         const Kernel *k) {
    if (k->text == NULL) {
        const Node *d = called_node(s->graph, k);
        text_add(t, "    rt_contract(d, %s, t->v%u, t->v%u, t->v%u);\n",
                 k->name, node_base(s->graph, d->arg[0]),
                 node_base(s->graph, called_second(d)),
                 (unsigned)(d - s->graph->node));
        return;
    }
    text_add(t, "    RUN(%s,\n        ", k->name);
    Wrap wrap = {t, 8, 8, 0};
    for (int j = 0; j < k->num_args; j++) {
        const Parameter *p = &k->arg[j];
        wrap_add(&wrap,
                 p->node == NO_NODE ? "0"
                 : p->plus ? arena_format(w->a, "t->v%u + %d", p->node, p->plus)
                           : arena_format(w->a, "t->v%u", p->node));
    }
    text_add(t, ");\n");
}

// A comment where the layer changes, with the model's line.
static void write_layer(Text *t, const PlannedStep *s, const Kernel *k,
                        const char **layer) {
    const Graph *g = s->graph;
    Origin from = {0};
    for (NodeId n = k->group->first; n <= k->group->last; n++)
        if (g->node[n].from.path != NULL) {
            from = g->node[n].from;
            break;
        }
    if (from.path == NULL)
        return;
    const char *dot = strrchr(from.path, '.');
    size_t length = dot ? (size_t)(dot - from.path) : strlen(from.path);
    if (*layer != NULL && strlen(*layer) == length &&
        strncmp(*layer, from.path, length) == 0)
        return;
    *layer = arena_string(t->arena, from.path, length);
    text_add(t, "\n    // %s%s, %s:%d\n", *layer,
             from.backward ? ", backward" : "",
             from.file ? file_text(t->arena, from.file) : "", from.line);
}

// The tensors of a step, and their addresses on each device.
static void write_tensors(const Writer *w, Text *t, const PlannedStep *s,
                          const bool *stored) {
    text_add(t, "\n// ---- %s ----\n\n", s->name);
    text_add(t, "// Byte offsets of this step's tensors in the arena.\n");
    text_add(t, "typedef struct {\n    size_t\n");
    const char *separator = "";
    for (NodeId n = 0; n < s->graph->count; n++)
        if (stored[n]) {
            const Node *d = &s->graph->node[n];
            text_add(t, "%s        v%u", separator, n);
            separator = arena_format(w->a, ", // %s %s\n",
                                     type_text(w->a, *d->type), layer_of(d));
        }
    bool none = *separator == '\0'; // C needs a member
    text_add(t, "%s;\n} %s_tensors;\n\n", none ? "        none" : "", s->name);
    text_add(t, "static const %s_tensors %s_on[%d] = {\n", s->name, s->name,
             NUM_PLANS);
    for (int i = 0; i < NUM_PLANS; i++) {
        const Graph *g = s->plan[i]->graph;
        text_add(t, "    {");
        Wrap wrap = {t, 5, 5, 0};
        if (none)
            wrap_add(&wrap, ".none = 0");
        for (NodeId n = 0; n < g->count; n++)
            if (stored[n])
                wrap_add(&wrap, arena_format(w->a, ".v%u = %lld", n,
                                             (long long)g->node[n].offset));
        text_add(t, "}, // %s\n", on_device[i]);
    }
    text_add(t, "};\n");
}

void step_write(const Writer *w, Text *t, const PlannedStep *s) {
    static const char *const phase_name[] = {"RT_FORWARD", "RT_BACKWARD",
                                             "RT_UPDATE"};
    write_tensors(w, t, s, s->plan[HOST_PLAN]->stored);
    text_add(t,
             "\nstatic void %s_step(RtDevice *d, const %s_tensors *t, "
             "const int *grid)\n{\n",
             s->name, s->name);
    int phase = -1;
    const char *layer = NULL;
    bool trains = s->step->kind == STEP_TRAIN || s->step->kind == STEP_GATHER;
    for (int k = 0; k < s->count; k++) {
        int now = phase_of(s->kernel[k].group);
        if (trains && now != phase)
            text_add(t, "%s    rt_phase(d, %s);\n", k ? "\n" : "",
                     phase_name[now]);
        phase = now;
        write_layer(t, s, &s->kernel[k], &layer);
        write_launch(w, t, s, &s->kernel[k]);
    }
    if (trains)
        text_add(t, "\n    rt_phase(d, RT_OTHER);\n");
    text_add(t, "}\n");
    launches_write(t, s->name, s->plan, s->launches);
}

void wrappers_write(const Writer *w, Text *t) {
    text_add(t, "\n// ---- the steps on each device ----\n");
    for (int d = 0; d < NUM_PLANS; d++)
        for (int i = 0; i < w->num_steps; i++) {
            const char *name = w->step[i].name;
            text_add(t,
                     "\nstatic void %s_on_%s(RtDevice *d)\n{\n"
                     "    %s_step(d, &%s_on[%d], blocks[%d]);\n}\n",
                     name, on_device[d], name, name, d, d);
        }
}
