// Shards: divides a training step into the part of a shard and the update.
//
//   requires   Gradients are gradient nodes, and no optimizer is lowered.
//   preserves  With one full shard, the value of every assignment.
//   result     The part of a shard computes its terms and assigns them to
//              states of kind "partial"; the runtime adds the terms of all
//              shards.  The update reads the sums, and has every other effect
//              of the step.
//
// Terms are the gradients, and the largest subexpressions of other assigned
// values that depend on the batch but on no state that the batch changes: the
// sum of a metric over the shard, the statistics of a batch_norm.  Terms are
// added over shards.  Statistics are weighted by the samples of their shard.
// They and the gradients of a mean are divided by the samples of all shards, in
// full shards.
#include "passes/passes.h"

#include <string.h>

typedef struct {
    const Graph *old;
    Graph *g;
    bool *bulk;         // the value depends on the batch
    bool *mixed;        // and on a state that the batch changes
    const char **state; // the name of a term's state
    bool *averaged;     // the term is divided by samples
    NodeId *now;        // the node of g for one of old
} Shards;

static bool is_effect(const Graph *g, NodeId n) {
    return op_info[g->node[n].op].traits & EFFECT;
}

// Whether n assigns a value that depends on samples.
static bool collects(const Shards *s, NodeId n) {
    const Node *d = &s->old->node[n];
    return d->op == OP_assign && s->bulk[d->arg[1]];
}

static bool any_operand(const Graph *g, NodeId n, const bool *has) {
    for (int i = 0; i < g->node[n].num_args; i++)
        if (has[g->node[n].arg[i]])
            return true;
    return false;
}

static void find_bulk(Shards *s) {
    for (NodeId n = 0; n < s->old->count; n++)
        s->bulk[n] = s->old->node[n].op == OP_input ||
                     (op_info[s->old->node[n].op].traits & COLLECTIVE) ||
                     any_operand(s->old, n, s->bulk);
}

static void find_mixed(Shards *s, Arena *scratch) {
    bool *reads = ARENA_ARRAY(scratch, s->old->count, bool);
    for (NodeId n = 0; n < s->old->count; n++)
        if (collects(s, n))
            reads[s->old->node[n].arg[0]] = true;
    for (NodeId n = 0; n < s->old->count; n++) {
        reads[n] |= any_operand(s->old, n, reads);
        s->mixed[n] = s->bulk[n] && reads[n];
    }
}

// ---- terms ----

static bool is_named(const Shards *s, const char *name) {
    for (NodeId n = 0; n < s->old->count; n++)
        if (s->state[n] != NULL && strcmp(s->state[n], name) == 0)
            return true;
    return false;
}

static void name_term(Shards *s, NodeId n, const char *of, bool averaged) {
    Arena *a = s->old->arena;
    const char *name = arena_format(a, "%s.shard", of);
    if (s->state[n] != NULL)
        return;
    for (int i = 2; is_named(s, name); i++)
        name = arena_format(a, "%s.shard.%d", of, i);
    s->state[n] = name;
    s->averaged[n] = averaged;
}

// Names the terms of n, which is assigned to the state `of`.
static void find_terms(Shards *s, NodeId n, const char *of, bool averaged) {
    const Node *d = &s->old->node[n];
    if (!s->bulk[n])
        return;
    if (!s->mixed[n]) {
        name_term(s, n, of, averaged);
        return;
    }
    for (int i = 0; i < d->num_args; i++)
        find_terms(s, d->arg[i], of, averaged);
}

static void find_effects(Shards *s) {
    for (NodeId n = 0; n < s->old->count; n++) {
        const Node *d = &s->old->node[n];
        if (!is_effect(s->old, n) || d->op == OP_output ||
            d->op == OP_accumulated)
            continue;
        if (d->op == OP_gradient) {
            const Node *param = &s->old->node[d->arg[0]];
            name_term(s, d->arg[1], node_text(param, ATTR_name), false);
            continue;
        }
        const Node *to = &s->old->node[d->arg[0]];
        const char *of =
            d->op == OP_assign ? node_text(to, ATTR_name) : op_info[d->op].name;
        for (int i = d->op == OP_assign ? 1 : 0; i < d->num_args; i++)
            find_terms(s, d->arg[i], of,
                       d->op == OP_assign && state_is(to, STATE_STATISTIC));
    }
}

static NodeId term_state(Shards *s, NodeId n) {
    return graph_state(s->g, s->state[n], STATE_PARTIAL, *s->old->node[n].type,
                       0);
}

// ---- the part of a shard ----

#define WEIGHT "run.samples.shard"

// The samples of this shard as a part of a full one, f32[].
static NodeId shard_weight(Shards *s) {
    NodeId batch = 0, valid = graph_find(s->g, "valid");
    while (s->old->node[batch].op != OP_input ||
           s->old->node[batch].type->rank == 0)
        batch++;
    if (valid == NO_NODE)
        valid = graph_leaf(s->g, OP_input, "valid", type_scalar(I32));
    return graph_op2(
        s->g, OP_div, graph_cast(s->g, valid, F32),
        graph_number(s->g, (double)s->old->node[batch].type->dim[0]));
}

static NodeId weight_state(Shards *s) {
    NodeId known = graph_find(s->g, WEIGHT);
    if (known != NO_NODE)
        return known;
    return graph_state(s->g, WEIGHT, STATE_PARTIAL, type_scalar(F32), 0);
}

// The factor of gradients, or NO_NODE.  That of a mean loss depends on the
// number of samples.
static NodeId find_factor(const Graph *g) {
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_accumulated)
            return g->node[n].arg[0];
    return NO_NODE;
}

static bool needs_weight(const Shards *s) {
    NodeId factor = find_factor(s->old);
    bool needs = factor != NO_NODE && s->bulk[factor];
    for (NodeId n = 0; n < s->old->count; n++)
        needs |= s->averaged[n];
    return needs;
}

// dce removes what no term needs.
static void build_shard(Shards *s) {
    NodeId weight = NO_NODE;
    for (NodeId n = 0; n < s->old->count; n++)
        if (!is_effect(s->old, n))
            s->now[n] = graph_copy(s->g, s->old, n, s->now);
    if (needs_weight(s)) {
        weight = shard_weight(s);
        graph_assign(s->g, weight_state(s), weight);
    }
    for (NodeId n = 0; n < s->old->count; n++) {
        NodeId term = s->now[n];
        if (s->state[n] == NULL)
            continue;
        s->g->origin = s->old->node[n].from;
        if (s->averaged[n])
            term = graph_op2(s->g, OP_mul, term, weight);
        graph_assign(s->g, term_state(s, n), term);
    }
}

// ---- the update ----

static bool is_kept(const Graph *g, NodeId n) {
    Op op = g->node[n].op;
    return op == OP_loss_scale ||
           (is_effect(g, n) && op != OP_output && op != OP_accumulated);
}

static bool *find_needed(const Shards *s, NodeId factor, Arena *scratch) {
    bool *needed = ARENA_ARRAY(scratch, s->old->count, bool);
    if (factor != NO_NODE && !s->bulk[factor])
        needed[factor] = true;
    for (NodeId n = s->old->count; n-- > 0;) {
        const Node *d = &s->old->node[n];
        needed[n] |= is_kept(s->old, n);
        for (int i = 0; needed[n] && s->state[n] == NULL && i < d->num_args;
             i++)
            needed[d->arg[i]] = true;
    }
    return needed;
}

static NodeId read_term(Shards *s, NodeId n) {
    NodeId sum = term_state(s, n);
    if (!s->averaged[n])
        return sum;
    return graph_op2(s->g, OP_div, sum, weight_state(s));
}

static NodeId scale_gradient(Shards *s, const Node *d, NodeId factor) {
    NodeId arg[] = {s->now[d->arg[0]], s->now[d->arg[1]]};
    Node scaled = *d;
    if (factor != NO_NODE && s->bulk[factor])
        arg[1] = graph_op2(s->g, OP_div, arg[1], weight_state(s));
    else if (factor != NO_NODE)
        arg[1] = graph_op2(s->g, OP_mul, arg[1], s->now[factor]);
    scaled.arg = arg;
    return graph_move(s->g, scaled);
}

static void build_update(Shards *s, Arena *scratch) {
    NodeId factor = find_factor(s->old);
    bool *needed = find_needed(s, factor, scratch);
    for (NodeId n = 0; n < s->old->count; n++) {
        const Node *d = &s->old->node[n];
        if (!needed[n])
            continue;
        s->g->origin = d->from;
        if (s->state[n] != NULL)
            s->now[n] = read_term(s, n);
        else if (d->op == OP_gradient)
            s->now[n] = scale_gradient(s, d, factor);
        else
            s->now[n] = graph_copy(s->g, s->old, n, s->now);
    }
}

Graph *pass_shards(Graph *g, Arena *scratch, const PassOptions *o) {
    if (o->part == PART_WHOLE)
        return g;
    Shards s = {.old = g,
                .g = graph_like(g),
                .bulk = ARENA_ARRAY(scratch, g->count, bool),
                .mixed = ARENA_ARRAY(scratch, g->count, bool),
                .state = ARENA_ARRAY(scratch, g->count, const char *),
                .averaged = ARENA_ARRAY(scratch, g->count, bool),
                .now = graph_map_new(g, scratch)};
    find_bulk(&s);
    find_mixed(&s, scratch);
    find_effects(&s);
    if (o->part == PART_SHARD)
        build_shard(&s);
    else
        build_update(&s, scratch);
    return s.g;
}
