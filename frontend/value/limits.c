// Limits of an expansion: depth, work and nodes.

#include "frontend/value/value.h"

enum { MAX_EXPAND_DEPTH = 1500 };

void expand_stop(Expansion *e, DiagId id, Span at, const char *why) {
    if (!e->stopped)
        report(e->diags, id, at, "%s", why);
    e->stopped = true;
}

static const char too_many_nodes[] =
    "the model expands to more than 200,000 operations";

bool within_limits(Expansion *e, Span at) {
    if (e->stopped || e->diags->truncated)
        return false;
    if (e->depth > MAX_EXPAND_DEPTH) {
        expand_stop(e, D_nesting, at, "the expansion is nested too deep here");
        return false;
    }
    bool large = e->graph != NULL && e->graph->count > MAX_PROGRAM_NODES;
    if (!large && (e->work += 50) <= MAX_WORK)
        return true;
    expand_stop(e, D_model_too_large, at,
                large ? too_many_nodes : "the expansion takes too many steps");
    return false;
}

bool has_room(Expansion *e, Span at, int64_t nodes) {
    if (nodes <= MAX_PROGRAM_NODES - (int64_t)e->graph->count)
        return true;
    expand_stop(e, D_model_too_large, at, too_many_nodes);
    return false;
}
