// Parameters: a model's parameters and their optimizer states.
#include "base/exits.h"
#include "tools/show/inspect.h"
#include "tools/show/recipe.h"

#include <inttypes.h>
#include <string.h>

// The optimizer of a parameter in the first stage of the run; NULL if it is
// frozen.
static const char *optimizer_of(const Program *p, const char *name) {
    const Graph *g = p->stage[0].train;
    NodeId param = graph_find(g, name);
    for (NodeId n = param; param != NO_NODE && n < g->count; n++)
        if (is_optimizer(g->node[n].op) && g->node[n].arg[0] == param)
            return op_info[g->node[n].op].name;
    return NULL;
}

// ---- the list ----

// A parameter or a state, and its graph.
typedef struct {
    const Graph *g;
    const Node *node;
} Leaf;

typedef struct {
    Leaf *leaf;
    int count;
} Leaves;

static bool is_known(const Graph *const *graph, int count, const char *name) {
    for (int i = 0; i < count; i++)
        if (graph_find(graph[i], name) != NO_NODE)
            return true;
    return false;
}

// Adds the leaves of a graph that the graphs before it do not have.
static void leaves_add(Arena *a, Leaves *l, const Graph *const *graph,
                       int before) {
    const Graph *g = graph[before];
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        if ((d->op == OP_param || d->op == OP_state) &&
            !is_known(graph, before, node_text(d, ATTR_name)))
            ARENA_APPEND(a, l->leaf, l->count, ((Leaf){g, d}));
    }
}

// The leaves of the shown step, or of all steps, the training step first.  A
// frozen parameter may be only in the step that derives a copy of it.
static Leaves leaves_of(Arena *a, const Plan *plan, const Step *first,
                        bool all) {
    Leaves l = {0};
    const Graph **graph =
        ARENA_ARRAY(a, (size_t)plan->num_steps, const Graph *);
    int count = 0;
    graph[count++] = first->graph;
    for (int i = 0; all && i < plan->num_steps; i++)
        if (&plan->step[i] != first)
            graph[count++] = plan->step[i].graph;
    for (int i = 0; i < count; i++)
        leaves_add(a, &l, graph, i);
    return l;
}

// Bytes of a parameter's states.
static int64_t states_of(const Leaves *l, const char *name) {
    size_t length = strlen(name);
    int64_t bytes = 0;
    for (int i = 0; i < l->count; i++) {
        const Node *d = l->leaf[i].node;
        if (d->op != OP_state)
            continue;
        const char *own = node_text(d, ATTR_name);
        if (strncmp(own, name, length) == 0 && own[length] == '.')
            bytes += graph_bytes(l->leaf[i].g, d->type);
    }
    return bytes;
}

// ---- printing ----

static void param_print(Arena *a, Text *t, const Program *p, const Leaves *l,
                        const Node *d) {
    const char *name = node_text(d, ATTR_name);
    const char *optimizer = optimizer_of(p, name);
    Text type = text_new(a);
    type_print(&type, d->type);
    text_add(t, "%-32s %-20s %10" PRId64 " %12" PRId64 " %12" PRId64 "  %-6s",
             name, text_string(&type), type_count(d->type), d->offset,
             states_of(l, name), optimizer ? optimizer : "fixed");
    if (d->from.file)
        text_add(t, "  %s:%d", d->from.file, d->from.line);
    text_add(t, "\n");
}

static void param_json(Arena *a, Text *t, const Program *p, const Leaves *l,
                       const Node *d) {
    const char *name = node_text(d, ATTR_name);
    const char *optimizer = optimizer_of(p, name);
    Text type = text_new(a);
    type_print(&type, d->type);
    text_add(t, "{\"name\": ");
    json_string(t, name);
    text_add(t, ", \"type\": \"%s\"", text_string(&type));
    text_add(t, ", \"count\": %" PRId64 ", \"states\": %" PRId64,
             type_count(d->type), states_of(l, name));
    text_add(t, ", \"optimizer\": \"%s\"", optimizer ? optimizer : "");
    text_add(t, ", \"line\": %d, \"file\": ", d->from.line);
    json_string(t, d->from.file ? d->from.file : "");
    text_add(t, "}");
}

void params_json(Arena *a, Text *t, const Program *p, const Plan *plan,
                 const Step *step) {
    Leaves l = leaves_of(a, plan, step, true);
    const char *comma = "";
    text_add(t, "[");
    for (int i = 0; i < l.count; i++) {
        if (l.leaf[i].node->op != OP_param)
            continue;
        text_add(t, "%s", comma);
        param_json(a, t, p, &l, l.leaf[i].node);
        comma = ", ";
    }
    text_add(t, "]");
}

int params_write(Show *s, const View *stage, Text *out) {
    (void)stage;
    int status;
    const Step *step = show_step(s, &status);
    if (step == NULL)
        return status;
    Leaves l = leaves_of(s->a, show_plan(s), step, !s->arguments->graph);
    int64_t numbers = 0;
    int count = 0;
    text_add(out, "%-32s %-20s %10s %12s %12s  %s\n", "parameter", "type",
             "numbers", "offset", "states", "update");
    for (int i = 0; i < l.count; i++) {
        const Node *d = l.leaf[i].node;
        if (d->op != OP_param)
            continue;
        param_print(s->a, out, s->p, &l, d);
        numbers += type_count(d->type);
        count++;
    }
    text_add(out, "%d parameter%s, %" PRId64 " numbers\n", count,
             count == 1 ? "" : "s", numbers);
    return EXIT_GOOD;
}
