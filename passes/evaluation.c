// Evaluation: values that all of its batches share.
//
//   needs   the graph of one batch of evaluation; others stay as they are
//   keeps   every output, up to the rounding of moved factors
//   leaves  fold: no batch_norm behind a convolution, but a bias
//           prepare: states of kind "derived" where a library call reads a
//           value of states alone
//
// Between the batches of an evaluation no parameter, average or statistic
// changes.  So batch_norm is a factor and a shift for each channel; the factor
// goes into the weights, and scaled weights, as well as f16 copies of averages,
// are made once before the first batch, by the graph that prepare_graph
// returns.
#include "passes/passes.h"
#include "passes/plan/group.h"

#include <string.h>

// Whether g is the step of a batch whose values between steps are fixed.
static bool evaluates(const Graph *g) {
    return strcmp(g->name, "eval") == 0 || strcmp(g->name, "predict") == 0 ||
           strcmp(g->name, "decode") == 0;
}

// Whether each node is the same for all batches.
static bool *find_fixed(const Graph *g, Arena *scratch) {
    bool *fixed = ARENA_ARRAY(scratch, g->count, bool);
    bool *assigned = ARENA_ARRAY(scratch, g->count, bool);
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_assign)
            assigned[g->node[n].arg[0]] = true;
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        bool leaf = op_info[d->op].facts & LEAF;
        fixed[n] = leaf ? d->op != OP_input && !assigned[n]
                        : !(op_info[d->op].facts & EFFECT);
        for (int i = 0; i < d->num_args; i++)
            fixed[n] &= fixed[d->arg[i]];
    }
    return fixed;
}

// ---- fold ----

typedef struct {
    const Graph *old;
    Graph *g;
    uint32_t *uses;
    bool *fixed;
} Fold;

// (conv(x, w) + before - mean) * factor + shift, as nodes of the old graph;
// before may be NO_NODE.
typedef struct {
    NodeId conv, before, mean, factor, shift;
} Scaled;

static const Node *at(const Fold *f, NodeId n) {
    return &f->old->node[n];
}

// Whether n is a fixed number for each channel.
static bool is_channels(const Fold *f, NodeId n, int64_t channels) {
    Type t = *at(f, n)->type;
    return f->fixed[n] && t.rank == 1 && t.dim[0] == channels;
}

// The operand of n = a op b that has n's shape, if the other one is a number
// for each channel; NO_NODE if n is another operation, or the operand has other
// users.
static NodeId beside_channels(const Fold *f, NodeId n, Op op,
                              NodeId *channels) {
    const Node *d = at(f, n);
    if (d->op != op || d->type->rank != 4)
        return NO_NODE;
    for (int i = op == OP_sub; i < 2; i++)
        if (is_channels(f, d->arg[i], d->type->dim[3]) &&
            !f->fixed[d->arg[1 - i]] && f->uses[d->arg[1 - i]] == 1 &&
            type_has_shape(at(f, d->arg[1 - i])->type, d->type)) {
            *channels = d->arg[i];
            return d->arg[1 - i];
        }
    return NO_NODE;
}

static bool find_scaled(const Fold *f, NodeId n, Scaled *s) {
    NodeId product = beside_channels(f, n, OP_add, &s->shift);
    NodeId centred = product == NO_NODE
                         ? NO_NODE
                         : beside_channels(f, product, OP_mul, &s->factor);
    NodeId conv = centred == NO_NODE
                      ? NO_NODE
                      : beside_channels(f, centred, OP_sub, &s->mean);
    if (conv == NO_NODE)
        return false;
    NodeId biased = beside_channels(f, conv, OP_add, &s->before);
    if (biased == NO_NODE)
        s->before = NO_NODE;
    s->conv = biased == NO_NODE ? conv : biased;
    return at(f, s->conv)->op == OP_conv && f->fixed[at(f, s->conv)->arg[1]];
}

static NodeId fold_one(const Fold *f, const Scaled *s, const NodeId *now) {
    Graph *g = f->g;
    const Node *conv = at(f, s->conv);
    NodeId factor = now[s->factor], mean = now[s->mean];
    Origin here = g->at;
    int64_t filters[] = {conv->type->dim[3], 1, 1, 1};
    g->at = conv->from;
    NodeId weight = graph_op2(g, OP_mul, now[conv->arg[1]],
                              graph_reshape(g, factor, 4, filters));
    Node folded = *conv;
    folded.arg = (NodeId[]){now[conv->arg[0]], weight};
    NodeId moved, product = graph_add(g, folded);
    g->at = here;
    if (s->before != NO_NODE)
        mean = graph_op2(g, OP_sub, mean, now[s->before]);
    moved = graph_op2(g, OP_mul, mean, factor);
    return graph_op2(g, OP_add, product,
                     graph_op2(g, OP_sub, now[s->shift], moved));
}

Graph *pass_fold(Graph *g, Arena *scratch, const PassOptions *o) {
    if (!evaluates(g) || (g->facts & PRIMITIVE))
        return g;
    Fold f = {.old = g,
              .g = graph_like(g),
              .uses = graph_uses(g, scratch),
              .fixed = find_fixed(g, scratch)};
    NodeId *now = ARENA_ARRAY(scratch, g->count, NodeId);
    for (NodeId n = 0; n < g->count; n++) {
        Scaled s;
        f.g->at = g->node[n].from;
        now[n] = find_scaled(&f, n, &s) && rewrite_next(f.g, o)
                     ? fold_one(&f, &s, now)
                     : graph_copy(f.g, g, n, now);
    }
    return f.g;
}

// ---- prepare ----

// Operands of library calls that are fixed and not in memory yet.
static bool *find_prepared(const Graph *g, Arena *scratch) {
    bool *prepared = ARENA_ARRAY(scratch, g->count, bool);
    const bool *fixed = find_fixed(g, scratch);
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        for (int i = 0; i < d->num_args; i++) {
            NodeId base = node_base(g, d->arg[i]);
            prepared[d->arg[i]] |= (op_info[d->op].facts & CALLS) &&
                                   fixed[d->arg[i]] && !fixed[n] &&
                                   !(op_info[g->node[base].op].facts & LEAF);
        }
    }
    return prepared;
}

// The state for a value, which is the number-th that is prepared.
static NodeId add_state(Graph *g, Type type, int number) {
    const char *name = arena_format(g->arena, "eval.prepared_%d", number);
    return graph_state(g, name, STATE_DERIVED, type, 0);
}

Graph *pass_prepare(Graph *g, Arena *scratch, const PassOptions *o) {
    (void)o;
    if (!evaluates(g))
        return g;
    Graph *out = graph_like(g);
    const bool *prepared = find_prepared(g, scratch);
    NodeId *now = ARENA_ARRAY(scratch, g->count, NodeId);
    int number = 0;
    for (NodeId n = 0; n < g->count; n++) {
        out->at = g->node[n].from;
        now[n] = prepared[n] ? add_state(out, *g->node[n].type, number++)
                             : graph_copy(out, g, n, now);
    }
    return out;
}

// g's node for a value of another graph.
static NodeId value_in(Graph *g, const Graph *other, NodeId n, NodeId *now) {
    const Node *d = &other->node[n];
    if (now[n] != NO_NODE)
        return now[n];
    for (int i = 0; i < d->num_args; i++)
        value_in(g, other, d->arg[i], now);
    const char *name = node_text(d, ATTR_name);
    now[n] = name != NULL ? graph_find(g, name) : NO_NODE;
    if (now[n] == NO_NODE)
        now[n] = graph_copy(g, other, n, now);
    return now[n];
}

bool prepares_first(const Graph *g, const Graph *part) {
    Arena *scratch = arena_new();
    Graph *all = graph_clone(g);
    const bool *prepared = find_prepared(g, scratch);
    const bool *wanted = find_prepared(part, scratch);
    NodeId *now = graph_none(part, scratch), next = 0;
    bool same = true;
    for (NodeId n = 0; same && n < part->count; n++) {
        if (!wanted[n])
            continue;
        while (next < g->count && !prepared[next])
            next++;
        same = next < g->count && value_in(all, part, n, now) == next;
        next++;
    }
    graph_free(all);
    arena_free(scratch);
    return same;
}

Graph *prepare_graph(Graph *g) {
    Arena *scratch = arena_new();
    const bool *prepared = find_prepared(g, scratch);
    bool *needed = ARENA_ARRAY(scratch, g->count, bool);
    NodeId *now = ARENA_ARRAY(scratch, g->count, NodeId);
    Graph *out = graph_like(g);
    int number = 0;
    out->name = "prepare";
    for (NodeId n = g->count; n-- > 0;) {
        needed[n] |= prepared[n];
        for (int i = 0; needed[n] && i < g->node[n].num_args; i++)
            needed[g->node[n].arg[i]] = true;
    }
    for (NodeId n = 0; n < g->count; n++) {
        if (!needed[n])
            continue;
        now[n] = graph_copy(out, g, n, now);
        out->at = g->node[n].from;
        if (prepared[n])
            graph_assign(out, add_state(out, *g->node[n].type, number++),
                         now[n]);
    }
    arena_free(scratch);
    return number > 0 ? out : NULL;
}
