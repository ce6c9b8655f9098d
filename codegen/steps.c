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

enum { NO_PHASE = -1, FORWARD, BACKWARD_PHASE, UPDATE_PHASE };

// The phase of a launch after one of phase `before`; they follow one another.
// Stacks belong to all: of states, of gradients, of updates.  The terms of a
// shard are stored on the way.
static int phase_after(int before, const Graph *g, const Group *group) {
    bool update = group->kind == GROUP_STACK
                      ? before >= BACKWARD_PHASE && !group->backward
                      : group_is_multi_tensor(group->kind) &&
                            !group_stores_terms(g, group);
    int phase = update            ? UPDATE_PHASE
                : group->backward ? BACKWARD_PHASE
                                  : FORWARD;
    return phase > before ? phase : before;
}

// A step, and its launches by iteration.
typedef struct {
    const Writer *w;
    const PlannedStep *s;
    LaunchLoop *loop;
    int num_loops;
    bool *listed; // tensors with a member of their own
    bool *sliced; // slices that have one
} StepText;

static const char *argument_text(Arena *a, Argument x) {
    char letter = x.slice ? 's' : 'v';
    return x.node == NO_NODE ? "0"
           : x.plus ? arena_format(a, "t->%c%u + %d", letter, x.node, x.plus)
                    : arena_format(a, "t->%c%u", letter, x.node);
}

// Argument i of launch j of an iteration.
static const char *iteration_argument(const StepText *x, const LaunchLoop *r,
                                      int j, int i) {
    const Kernel *k = &x->s->kernel[r->first + j];
    int column = loop_column(r, j, i);
    return column >= 0
               ? arena_format(x->w->a, "v[%d]", column)
               : argument_text(x->w->a, launch_argument(x->s->graph, k, i));
}

static const char *call_text(const StepText *x, const LaunchLoop *r,
                             const Kernel *k) {
    return r->trips == 1
               ? k->name
               : arena_format(x->w->a, "%s + %d * i", k->name, r->calls);
}

static void write_launch(const StepText *x, Text *t, const LaunchLoop *r,
                         int j) {
    const Kernel *k = &x->s->kernel[r->first + j];
    int margin = r->trips == 1 ? 4 : 8;
    if (k->text == NULL) {
        text_add(t, "%*srt_contract(d, %s", margin, "", call_text(x, r, k));
        for (int i = 0; i < launch_arguments(k); i++)
            text_add(t, ", %s", iteration_argument(x, r, j, i));
        text_add(t, ");\n");
        return;
    }
    text_add(t, "%*sRUN(%s,\n%*s", margin, "", k->name, margin + 4, "");
    Wrap wrap = {t, margin + 4, margin + 4, 0};
    for (int i = 0; i < launch_arguments(k); i++)
        wrap_add(&wrap, iteration_argument(x, r, j, i));
    text_add(t, ");\n");
}

// A comment where the layer changes, with the model's line.
static void write_layer(Text *t, const PlannedStep *s, const Kernel *k, int margin,
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
    text_add(t, "\n%*s// %s%s, %s:%d\n", margin, "", *layer,
             from.backward ? ", backward" : "",
             from.file ? file_text(t->arena, from.file) : "", from.line);
}

// Unmarks the tensors of arguments that differ, or marks those of the others.
static void mark_arguments(StepText *x, const LaunchLoop *r, bool varies) {
    for (int j = 0; j < r->period * r->trips; j++) {
        const Kernel *k = &x->s->kernel[r->first + j];
        for (int i = 0; i < launch_arguments(k); i++) {
            Argument own = launch_argument(x->s->graph, k, i);
            bool *marked = own.slice ? x->sliced : x->listed;
            bool differs = loop_column(r, j % r->period, i) >= 0;
            if (own.node != NO_NODE && differs == varies)
                marked[own.node] = !varies;
        }
    }
}

// Marks the tensors of a step: stored ones, and slices that kernels read.
// Tensors that only differing arguments name are in tables.
static void find_tensors(StepText *x) {
    const Graph *g = x->s->graph;
    x->listed = ARENA_ARRAY(x->w->a, g->count, bool);
    x->sliced = ARENA_ARRAY(x->w->a, g->count, bool);
    memcpy(x->listed, x->s->plan[HOST_PLAN]->stored, g->count * sizeof(bool));
    for (int varies = 1; varies >= 0; varies--)
        for (int k = 0; k < x->num_loops; k++)
            mark_arguments(x, &x->loop[k], varies);
}

// The byte offset of an argument on one device.
static long long argument_address(const Graph *g, Argument x) {
    return (x.slice ? slice_address(g, x.node) : g->node[x.node].offset) +
           x.plus;
}

static void write_members(const StepText *x, Text *t) {
    const char *separator = "";
    text_add(t, "typedef struct {\n    size_t\n");
    for (NodeId n = 0; n < x->s->graph->count; n++)
        for (int slice = 0; slice < 2; slice++) {
            const Node *d = &x->s->graph->node[n];
            if (!(slice ? x->sliced : x->listed)[n])
                continue;
            text_add(t, "%s        %c%u", separator, slice ? 's' : 'v', n);
            separator = arena_format(x->w->a, ", // %s %s\n",
                                     type_text(x->w->a, *d->type), layer_of(d));
        }
    bool none = *separator == '\0'; // C needs a member
    text_add(t, "%s;\n", none ? "        none" : "");
    for (int k = 0; k < x->num_loops; k++) {
        const LaunchLoop *r = &x->loop[k];
        if (r->columns > 0)
            text_add(t, "    size_t from%d[%d][%d]; // of rerolled launches\n",
                     r->first, r->trips, r->columns);
    }
    text_add(t, "} %s_tensors;\n\n", x->s->name);
}

// The arguments of rerolled launches that differ.
static void write_loop_table(const StepText *x, Text *t, const LaunchLoop *r,
                             int which) {
    const Graph *g = x->s->plan[which]->graph;
    text_add(t, ",\n     .from%d = {", r->first);
    for (int k = 0; k < r->trips; k++) {
        text_add(t, "\n      {");
        Wrap wrap = {t, 7, 7, 0};
        for (int c = 0; c < r->columns; c++)
            wrap_add(&wrap, arena_format(x->w->a, "%lld",
                                         argument_address(
                                             g, loop_argument(x->s, r, k, c))));
        text_add(t, "},");
    }
    text_add(t, "}");
}

static void write_addresses(const StepText *x, Text *t, int which) {
    const Graph *g = x->s->plan[which]->graph;
    Wrap wrap = {t, 5, 5, 0};
    text_add(t, "    {");
    for (NodeId n = 0; n < g->count; n++)
        for (int slice = 0; slice < 2; slice++)
            if ((slice ? x->sliced : x->listed)[n])
                wrap_add(&wrap,
                         arena_format(x->w->a, ".%c%u = %lld",
                                      slice ? 's' : 'v', n,
                                      argument_address(
                                          g, (Argument){n, slice, 0})));
    if (wrap.written == 0)
        wrap_add(&wrap, ".none = 0");
    for (int k = 0; k < x->num_loops; k++)
        if (x->loop[k].columns > 0)
            write_loop_table(x, t, &x->loop[k], which);
    text_add(t, "}, // %s\n", on_device[which]);
}

// The tensors of a step, and their addresses on each device.
static void write_tensors(const StepText *x, Text *t) {
    const char *name = x->s->name;
    text_add(t, "\n// ---- %s ----\n\n", name);
    text_add(t, "// Byte offsets of this step's tensors in the arena.\n");
    write_members(x, t);
    text_add(t, "static const %s_tensors %s_on[%d] = {\n", name, name,
             NUM_PLANS);
    for (int i = 0; i < NUM_PLANS; i++)
        write_addresses(x, t, i);
    text_add(t, "};\n");
}

// Launches that repeat, in a loop.
static void write_loop(const StepText *x, Text *t, const LaunchLoop *r,
                       const char **layer) {
    bool loops = r->trips > 1;
    if (loops)
        text_add(t, "\n    for (int i = 0; i < %d; i++) {\n", r->trips);
    if (r->columns > 0)
        text_add(t, "        const size_t *v = t->from%d[i];\n", r->first);
    for (int j = 0; j < r->period; j++) {
        write_layer(t, x->s, &x->s->kernel[r->first + j], loops ? 8 : 4, layer);
        write_launch(x, t, r, j);
    }
    if (loops)
        text_add(t, "    }\n");
}

void step_write(const Writer *w, Text *t, const PlannedStep *s) {
    static const char *const phase_name[] = {"RT_FORWARD", "RT_BACKWARD",
                                             "RT_UPDATE"};
    StepText x = {.w = w, .s = s};
    x.loop = reroll_launches(s, w->a, &x.num_loops);
    find_tensors(&x);
    write_tensors(&x, t);
    text_add(t,
             "\nstatic void %s_step(RtDevice *d, const %s_tensors *t, "
             "const int *grid)\n{\n",
             s->name, s->name);
    int phase = NO_PHASE;
    const char *layer = NULL;
    bool trains =
        s->step->kind >= STEP_TRAIN && s->step->kind <= STEP_ACCUMULATE;
    for (int k = 0; k < x.num_loops; k++) {
        const LaunchLoop *r = &x.loop[k];
        int now = phase_after(phase, s->graph, s->kernel[r->first].group);
        if (trains && now != phase)
            text_add(t, "%s    rt_phase(d, %s);\n", r->first ? "\n" : "",
                     phase_name[now]);
        phase = now;
        write_loop(&x, t, r, &layer);
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
