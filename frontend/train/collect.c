// The collect graph: sums over the first training samples, without
// augmentation, before parameters are initialised.

#include "frontend/train/train.h"

bool *effects_needed(Expansion *e, const Graph *g) {
    bool *needed = ARENA_ARRAY(e->arena, g->count, bool);
    for (NodeId n = g->count; n-- > 0;) {
        needed[n] |= (op_info[g->node[n].op].traits & EFFECT) != 0;
        for (int i = 0; needed[n] && i < g->node[n].num_args; i++)
            needed[g->node[n].arg[i]] = true;
    }
    return needed;
}

// Parameters have no values yet.
static bool check_leaves(Expansion *e, const Graph *g, const bool *needed) {
    for (NodeId n = 0; n < g->count; n++) {
        if (!needed[n] || g->node[n].op != OP_param)
            continue;
        const char *name = node_text(&g->node[n], ATTR_name);
        for (int i = 0; i < e->num_parameters; i++)
            if (e->parameter[i].init.kind == INIT_WHITENING) {
                Diagnostic *d = report(
                    e->diags, D_wrong_context, e->parameter[i].at,
                    "whitening starts from the data, before `%s` has a value",
                    name);
                diag_note(d, "no layer with parameters can come before it");
                return false;
            }
    }
    return true;
}

bool collect_needed(Expansion *e) {
    int64_t most = 0;
    for (int i = 0; i < e->num_parameters; i++) {
        const Init *init = &e->parameter[i].init;
        if (init->kind == INIT_WHITENING && init->images > most)
            most = init->images;
    }
    e->recipe.collect_samples = most;
    return most > 0;
}

Graph *collect_finish(Expansion *e) {
    const Graph *g = e->graph;
    const bool *needed = effects_needed(e, g);
    if (!check_leaves(e, g, needed))
        return NULL;
    e->recipe.whole_collect = samples_mixed(e, needed);
    Graph *out = graph_like(g);
    NodeId *now = ARENA_ARRAY(e->arena, g->count, NodeId);
    for (NodeId n = 0; n < g->count; n++)
        now[n] = needed[n] ? graph_copy(out, g, n, now) : NO_NODE;
    return out;
}
