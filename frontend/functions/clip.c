// Clipping: a node with a limit for all gradients, which the optimizer pass
// reads.

#include "frontend/functions/functions.h"

// A limit is its call until there are gradients.
Value lower_clip(Expansion *e, const Call *c) {
    const Value *most = &c->arg[0];
    if (most->kind == VALUE_NUMBER && !(most->number > 0)) {
        report(e->diags, D_out_of_range, most->at.source ? most->at : c->at,
               "`max` of %s must be above 0, and not %.9g", c->builtin->name,
               most->number);
        return value_poison();
    }
    return (Value){.kind = VALUE_CALL, .call = c};
}

void clip_apply(Expansion *e, const Call *c) {
    origin_set(e, c->at, NULL);
    NodeId limit = scalar_node(e, c->arg[0]);
    Attr attr = attr_text(ATTR_mode, c->builtin->name);
    graph_add(e->graph, (Node){.op = OP_clip,
                               .num_args = 1,
                               .arg = &limit,
                               .num_attrs = 1,
                               .attr = &attr,
                               .group = -1});
}
