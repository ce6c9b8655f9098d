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

// Bytes of the states that are named for a parameter.
static int64_t states_of(const Graph *g, const char *name) {
    size_t length = strlen(name);
    int64_t bytes = 0;
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        if (d->op != OP_state)
            continue;
        const char *own = node_text(d, ATTR_name);
        if (strncmp(own, name, length) == 0 && own[length] == '.')
            bytes += graph_bytes(g, d->type);
    }
    return bytes;
}

static void param_print(Arena *a, Text *t, const Program *p, const Graph *g,
                        NodeId n) {
    const Node *d = &g->node[n];
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

void params_json(Arena *a, Text *t, const Program *p, const Graph *g) {
    const char *comma = "";
    text_add(t, "[");
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        if (d->op != OP_param)
            continue;
        const char *name = node_text(d, ATTR_name);
        const char *optimizer = optimizer_of(p, name);
        Text type = text_new(a);
        type_print(&type, d->type);
        text_add(t, "%s{\"name\": ", comma);
        json_string(t, name);
        text_add(t, ", \"type\": \"%s\"", text_string(&type));
        text_add(t, ", \"count\": %" PRId64 ", \"states\": %" PRId64,
                 type_count(d->type), states_of(g, name));
        text_add(t, ", \"optimizer\": \"%s\"", optimizer ? optimizer : "");
        text_add(t, ", \"line\": %d, \"file\": ", d->from.line);
        json_string(t, d->from.file ? d->from.file : "");
        text_add(t, "}");
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
    const Graph *g = step->graph;
    int64_t numbers = 0;
    int count = 0;
    text_add(out, "%-32s %-20s %10s %12s %12s  %s\n", "parameter", "type",
             "numbers", "offset", "states", "update");
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_param) {
            param_print(s->a, out, s->p, g, n);
            numbers += type_count(g->node[n].type);
            count++;
        }
    text_add(out, "%d parameters, %" PRId64 " numbers\n", count, numbers);
    return EXIT_GOOD;
}
