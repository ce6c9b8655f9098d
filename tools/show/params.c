// Parameters: what a model learns, where it is kept and what beside it.
#include "base/exits.h"
#include "tools/show/inspect.h"
#include "tools/show/recipe.h"

#include <inttypes.h>
#include <string.h>

// The optimizer that updates a parameter in the first stage of the run; NULL
// for one that stays as it is.
static const char *optimizer_of(const Program *p, const char *name) {
    const Graph *g = p->stage[0].train;
    NodeId param = graph_find(g, name);
    for (NodeId n = param; param != NO_NODE && n < g->count; n++)
        if ((op_info[g->node[n].op].facts & OPTIMIZES) &&
            g->node[n].op != OP_accumulate && g->node[n].arg[0] == param)
            return optimizer_name(&g->node[n]);
    return NULL;
}

// ---- the graphs that are looked at ----

// One that is shown, or all of a plan, beginning with the one that trains: what
// is frozen may be in no other than the one that derives a copy of it.
typedef struct {
    const Graph **graph;
    int count;
} Graphs;

static Graphs graphs_of(Arena *a, const Plan *plan, const Step *first,
                        bool all) {
    Graphs g = {ARENA_ARRAY(a, (size_t)plan->num_steps, const Graph *), 0};
    g.graph[g.count++] = first->graph;
    for (int i = 0; all && i < plan->num_steps; i++)
        if (&plan->step[i] != first)
            g.graph[g.count++] = plan->step[i].graph;
    return g;
}

// Whether what graph i has by that name is in none before it.
static bool is_new(const Graphs *g, int i, const char *name) {
    while (i-- > 0)
        if (graph_find(g->graph[i], name) != NO_NODE)
            return false;
    return true;
}

// The node behind n of graph i that is such a leaf and in no graph before;
// NO_NODE after the last.
static NodeId leaf_after(const Graphs *g, int i, Op op, NodeId n) {
    const Graph *in = g->graph[i];
    for (n = n == NO_NODE ? 0 : n + 1; n < in->count; n++)
        if (in->node[n].op == op &&
            is_new(g, i, node_text(&in->node[n], ATTR_name)))
            return n;
    return NO_NODE;
}

// Bytes of the states that are named for a parameter.
static int64_t states_of(const Graphs *g, const char *name) {
    size_t length = strlen(name);
    int64_t bytes = 0;
    for (int i = 0; i < g->count; i++)
        for (NodeId n = NO_NODE;
             (n = leaf_after(g, i, OP_state, n)) != NO_NODE;) {
            const Node *d = &g->graph[i]->node[n];
            const char *own = node_text(d, ATTR_name);
            if (strncmp(own, name, length) == 0 && own[length] == '.')
                bytes += graph_bytes(g->graph[i], d->type);
        }
    return bytes;
}

// ---- for people and for programs ----

static void param_print(Arena *a, Text *t, const Program *p, const Graphs *g,
                        const Node *d) {
    const char *name = node_text(d, ATTR_name);
    const char *optimizer = optimizer_of(p, name);
    Text type = text_new(a);
    type_print(&type, d->type);
    text_add(t, "%-32s %-20s %10" PRId64 " %12" PRId64 " %12" PRId64 "  %-6s",
             name, text_string(&type), type_count(d->type), d->offset,
             states_of(g, name), optimizer ? optimizer : "fixed");
    if (d->from.file)
        text_add(t, "  %s:%d", d->from.file, d->from.line);
    text_add(t, "\n");
}

static void param_json(Arena *a, Text *t, const Program *p, const Graphs *g,
                       const Node *d) {
    const char *name = node_text(d, ATTR_name);
    const char *optimizer = optimizer_of(p, name);
    Text type = text_new(a);
    type_print(&type, d->type);
    text_add(t, "{\"name\": ");
    json_string(t, name);
    text_add(t, ", \"type\": \"%s\"", text_string(&type));
    text_add(t, ", \"count\": %" PRId64 ", \"states\": %" PRId64,
             type_count(d->type), states_of(g, name));
    text_add(t, ", \"optimizer\": \"%s\"", optimizer ? optimizer : "");
    text_add(t, ", \"line\": %d, \"file\": ", d->from.line);
    json_string(t, d->from.file ? d->from.file : "");
    text_add(t, "}");
}

void params_json(Arena *a, Text *t, const Program *p, const Plan *plan,
                 const Step *step) {
    Graphs g = graphs_of(a, plan, step, true);
    const char *comma = "";
    text_add(t, "[");
    for (int i = 0; i < g.count; i++)
        for (NodeId n = NO_NODE;
             (n = leaf_after(&g, i, OP_param, n)) != NO_NODE; comma = ", ") {
            text_add(t, "%s", comma);
            param_json(a, t, p, &g, &g.graph[i]->node[n]);
        }
    text_add(t, "]");
}

int params_write(Show *s, const View *stage, Text *out) {
    (void)stage;
    int status;
    const Step *step = show_step(s, &status);
    if (step == NULL)
        return status;
    Graphs g = graphs_of(s->a, show_plan(s), step, !s->arguments->graph);
    int64_t numbers = 0;
    int count = 0;
    text_add(out, "%-32s %-20s %10s %12s %12s  %s\n", "parameter", "type",
             "numbers", "offset", "states", "update");
    for (int i = 0; i < g.count; i++)
        for (NodeId n = NO_NODE;
             (n = leaf_after(&g, i, OP_param, n)) != NO_NODE; count++) {
            param_print(s->a, out, s->p, &g, &g.graph[i]->node[n]);
            numbers += type_count(g.graph[i]->node[n].type);
        }
    text_add(out, "%d parameter%s, %" PRId64 " numbers\n", count,
             count == 1 ? "" : "s", numbers);
    return EXIT_GOOD;
}
