// Register cache: values of one sweep over a row stay in registers for later
// sweeps.  Cached are elements that cost much, such as an exponential or Philox
// rounds, and that a later sweep needs again.  A thread must have few vectors
// of a row, or registers would not suffice.

#include "codegen/emit.h"

int64_t warp_columns(const Emit *e, int vectors) {
    enum { WARP = 32, LANES = 8 };
    return WARP * vectors * (e->step % LANES == 0 ? LANES : 1);
}

// Whether a warp covers a row at once.
static bool has_few(const Emit *e) {
    return space_columns(e->group->iteration_space) > 0 &&
           e->group->columns <= warp_columns(e, 1);
}

// The nodes that a sweep needs at its own elements.  It adds the operands of
// needed nodes that depend on a costly value without being cached.
typedef struct {
    const Emit *e;
    int *sweep; // sweep that computes a node first; 0: none
    bool *costs, *needed, *cached;
} Keep;

static bool follows_cost(const Keep *k, NodeId n) {
    const Group *group = k->e->group;
    const Node *d = &k->e->g->node[n];
    if (k->cached[n - group->first] || (op_info[d->op].traits & REDUCES))
        return false;
    for (int i = 0; i < d->num_args; i++)
        if (group_has(group, d->arg[i]) && k->costs[d->arg[i] - group->first])
            return true;
    return (op_info[d->op].traits & COSTLY) != 0;
}

static void need(const Keep *k, NodeId n) {
    const Group *group = k->e->group;
    if (group_has(group, n) && k->costs[n - group->first] &&
        type_has_shape(k->e->g->node[n].type, group->iteration_space))
        k->needed[n - group->first] = true;
}

// Operands precede users, so one backward scan finds all.
static void sweep_follow(const Keep *k, int sweep) {
    const Group *group = k->e->group;
    for (NodeId n = group->last + 1; n-- > group->first;) {
        int at = (int)(n - group->first);
        const Node *d = &k->e->g->node[n];
        if (!k->needed[at])
            continue;
        k->needed[at] = false;
        if (k->sweep[at] > 0) {
            k->cached[at] = true;
            continue;
        }
        k->sweep[at] = sweep;
        for (int i = 0; i < d->num_args && (op_info[d->op].traits & POINTWISE);
             i++)
            need(k, d->arg[i]);
    }
}

// The stores and sums of the sweep after the last reduction.
static bool is_output(const Emit *e, NodeId n) {
    return sums_blocks(e->g, n) ||
           (e->stored[n] && e->g->node[n].op != OP_workspace);
}

static NodeId needed_of(const Emit *e, NodeId n) {
    bool operand = sums_blocks(e->g, n) || pads_columns(e->g, n);
    return operand ? e->g->node[n].arg[0] : n;
}

// The part of n that the sweep computes: the operand of a reduction, or an
// output after all of them.
static void sweep_need(const Keep *k, NodeId n, int sweep, int sweeps) {
    const Emit *e = k->e;
    if (sweep > sweeps
            ? is_output(e, n)
            : reduces_row(e, n) && e->sweep[n - e->group->first] == sweep)
        need(k, sweep > sweeps ? needed_of(e, n) : e->g->node[n].arg[0]);
}

void cache_find(Emit *e, int sweeps) {
    const Group *group = e->group;
    size_t count = group->last - group->first + 1;
    if (!has_few(e))
        return;
    Keep k = {.e = e,
              .sweep = ARENA_ARRAY(e->a, count, int),
              .costs = ARENA_ARRAY(e->a, count, bool),
              .needed = ARENA_ARRAY(e->a, count, bool),
              .cached = ARENA_ARRAY(e->a, count, bool)};
    for (int sweep = 1; sweep <= sweeps + 1; sweep++) {
        for (NodeId n = group->first; n <= group->last; n++)
            k.costs[n - group->first] = follows_cost(&k, n);
        for (NodeId n = group->first; n <= group->last; n++)
            sweep_need(&k, n, sweep, sweeps);
        sweep_follow(&k, sweep);
    }
    for (NodeId n = group->first; n <= group->last; n++)
        e->num_cached += k.cached[n - group->first];
    e->cached = k.cached;
    e->cached_in = k.sweep;
}

void cache_write(Emit *e, Scope *row, Scope *sweep, Index p, int number) {
    const Group *group = e->group;
    for (NodeId n = group->first; n <= group->last && e->num_cached > 0; n++) {
        int at = (int)(n - group->first);
        if (!e->cached[at] || e->cached_in[at] != number)
            continue;
        CODE(e, &row->before, n,
             arena_format(e->a, "%s cached@[VECTORS_PER_THREAD][VW];",
                          held_type(e->g->node[n].type->dtype)));
        const Expr *value = value_at(e, sweep, n, p);
        CODE(e, &sweep->lanes, n, "cached@[j][k] = $;", value);
        value_define(
            e, row, n, p, HELD_ARRAY,
            x_element(e->a, x_of_node(e->a, "cached", n), x_name(e->a, "j")));
    }
}
