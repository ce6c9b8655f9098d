// Derive: casts and pads of a parameter become derived states (weight
// prepacking).
//
//   requires   Casts and pads of parameters are in place.
//   preserves  Every value stays the same.
//   result     States of kind "derived" replace such casts and pads.  The step
//              that assigns a parameter assigns its derived states, too.
//
// The last type and the padded lengths describe a chain of casts and of pads at
// the ends of axes.  The state has both, so the graph that derives it needs
// only the state, even if the parameter itself is no longer used.  Its name is
// NAME.act, followed by the dimensions if they differ from the parameter's, so
// that graphs over the same parameters agree.
#include "passes/passes.h"

#include <string.h>

// The ends of a parameter's chains, as a list through all nodes.
typedef struct {
    NodeId *root;  // the param that a chain starts from, NO_NODE if not a chain
    NodeId *state; // of the new graph, for the end of a chain
    NodeId *first; // of a param, the first end
    NodeId *next;  // of an end, the next one
} Chains;

static bool pads_at_end(const Node *n) {
    for (int i = 0; i < n->type->rank; i++)
        if (node_ints(n, ATTR_low, i, 0) != 0)
            return false;
    return true;
}

static bool continues(const Node *n) {
    return n->op == OP_cast || (n->op == OP_pad && pads_at_end(n));
}

static void find_roots(const Graph *g, NodeId *root) {
    for (NodeId n = 0; n < g->count; n++) {
        const Node *node = &g->node[n];
        if (node->op == OP_param)
            root[n] = n;
        else if (continues(node))
            root[n] = root[node->arg[0]];
    }
}

static bool is_chain(const Graph *g, const Chains *c, NodeId n) {
    return c->root[n] != NO_NODE && c->root[n] != n &&
           g->node[n].type->dtype == ACT;
}

// The end of a chain has users outside chains.  A chain that computes a derived
// state already is left alone.
static bool *find_ends(const Graph *g, const Chains *c, Arena *scratch) {
    bool *end = ARENA_ARRAY(scratch, g->count, bool);
    for (NodeId n = 0; n < g->count; n++) {
        const Node *node = &g->node[n];
        if (is_chain(g, c, n) ||
            (node->op == OP_assign &&
             state_is(&g->node[node->arg[0]], STATE_DERIVED)))
            continue;
        for (int i = 0; i < node->num_args; i++)
            end[node->arg[i]] |= is_chain(g, c, node->arg[i]);
    }
    return end;
}

static const char *name_state(Arena *a, const Node *param, Type type) {
    Text t = text_new(a);
    text_add(&t, "%s.act", node_text(param, ATTR_name));
    if (!type_has_shape(param->type, &type))
        for (int i = 0; i < type.rank; i++)
            text_add(&t, "%c%lld", i == 0 ? '.' : 'x', (long long)type.dim[i]);
    return text_string(&t);
}

static NodeId add_state(Graph *g, const Node *param, Type type) {
    int64_t high[MAX_RANK];
    for (int i = 0; i < type.rank; i++)
        high[i] = type.dim[i] - param->type->dim[i];
    Attr attr[] = {attr_ints(ATTR_high, type.rank, high),
                   attr_float(ATTR_init, 0),
                   attr_text(ATTR_kind, STATE_DERIVED),
                   attr_text(ATTR_name, name_state(g->arena, param, type))};
    return graph_add(g, (Node){.op = OP_state,
                               .type = &type,
                               .num_attrs = 4,
                               .attr = attr,
                               .group = -1});
}

// The state for the chain that ends at n; equal chains share it.
static NodeId add_end(Graph *g, const Graph *old, Chains *c, NodeId n) {
    NodeId root = c->root[n], *link = &c->first[root];
    for (; *link != NO_NODE; link = &c->next[*link])
        if (type_is(old->node[*link].type, old->node[n].type))
            return c->state[*link];
    *link = n;
    c->state[n] = add_state(g, &old->node[root], *old->node[n].type);
    return c->state[n];
}

// The value of a derived state when its parameter has `value`.
static void derive(Graph *g, NodeId state, NodeId value) {
    static const int64_t none[MAX_RANK];
    const Attr *high = node_attr(&g->node[state], ATTR_high);
    value = graph_cast(g, value, g->node[state].type->dtype);
    graph_assign(g, state, graph_pad(g, value, none, high->ints));
}

// Derived states follow their parameter.
static void follow(Graph *g, const Graph *old, const Chains *c,
                   const NodeId *now) {
    for (NodeId n = 0; n < old->count; n++) {
        const Node *node = &old->node[n];
        if (node->op != OP_assign || old->node[node->arg[0]].op != OP_param)
            continue;
        g->origin = node->from;
        NodeId end = c->first[node->arg[0]];
        for (; end != NO_NODE; end = c->next[end])
            derive(g, c->state[end], now[node->arg[1]]);
    }
}

Graph *pass_derive(Graph *g, Arena *scratch, const PassOptions *o) {
    (void)o;
    Graph *out = graph_like(g);
    NodeId *now = ARENA_ARRAY(scratch, g->count, NodeId);
    Chains c = {graph_map_new(g, scratch), graph_map_new(g, scratch),
                graph_map_new(g, scratch), graph_map_new(g, scratch)};
    find_roots(g, c.root);
    bool *end = find_ends(g, &c, scratch);
    for (NodeId n = 0; n < g->count; n++) {
        out->origin = g->node[n].from;
        now[n] = end[n] ? add_end(out, g, &c, n) : graph_copy(out, g, n, now);
    }
    follow(out, g, &c, now);
    return out;
}

// ---- the graph that starts a run ----

// The name of the parameter behind a derived state: all before the last ".act".
static const char *param_name(Arena *a, const Node *state) {
    const char *name = node_text(state, ATTR_name), *end = name;
    for (const char *s = name; (s = strstr(s, ".act")) != NULL; s++)
        end = s;
    return arena_string(a, name, (size_t)(end - name));
}

// That parameter, with the type before padding.
static NodeId add_param(Graph *g, const Node *state) {
    Type type = *state->type;
    type.dtype = F32;
    for (int i = 0; i < type.rank; i++)
        type.dim[i] -= node_ints(state, ATTR_high, i, 0);
    const char *name = param_name(g->arena, state);
    NodeId param = graph_find(g, name);
    return param != NO_NODE ? param : graph_leaf(g, OP_param, name, type);
}

static void derive_states(Graph *out, const Graph *g) {
    for (NodeId n = 0; n < g->count; n++) {
        const char *name = node_text(&g->node[n], ATTR_name);
        if (!state_is(&g->node[n], STATE_DERIVED) ||
            graph_find(out, name) != NO_NODE)
            continue;
        out->origin = g->node[n].from;
        NodeId param = add_param(out, &g->node[n]);
        Node state = g->node[n];
        state.group = -1;
        derive(out, graph_add(out, state), param);
    }
}

Graph *derive_graph(Graph *const *graph, int count) {
    Graph *out = graph_like(graph[0]);
    out->name = "derive";
    out->facts = PRIMITIVE | TYPED;
    for (int i = 0; i < count; i++)
        derive_states(out, graph[i]);
    return out->count > 0 ? out : NULL;
}

// ---- a step that reads no derived state ----

// The assignment of a parameter in a graph.
static NodeId find_assignment(const Graph *g, const char *name) {
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        if (d->op == OP_assign && g->node[d->arg[0]].op == OP_param &&
            strcmp(node_text(&g->node[d->arg[0]], ATTR_name), name) == 0)
            return n;
    }
    return NO_NODE;
}

void step_derives(Graph *step, const Graph *derived) {
    for (NodeId n = 0; n < derived->count; n++) {
        Node state = derived->node[n];
        if (!state_is(&state, STATE_DERIVED))
            continue;
        NodeId to = find_assignment(step, param_name(step->arena, &state));
        if (to == NO_NODE)
            continue;
        step->origin = step->node[to].from;
        derive(step, graph_add(step, state), step->node[to].arg[1]);
    }
    step->origin = (Origin){0};
}
