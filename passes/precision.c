// Precision: types activations as ACT, and adds the dynamic loss scale.
//
//   requires   The graph is primitive and in f32.
//   preserves  Every value stays the same if ACT is f32, and otherwise up to
//              the rounding of activations.
//   result     Contractions are of ACT, parameters are f32, and no loss_scale
//              is left.
//
// Operands of contractions become ACT and so do their results.  The type rules
// do the rest: ACT with f32 gives f32, and so does every reduction, which
// keeps statistics, losses and updates in f32, as well as nodes that the user
// wants in full, whatever their operands are.  A value that comes from data
// and that some contraction wants in ACT is ACT for all of its users, so that
// only one copy need be stored.
//
// Values that are compared for equality, as a maximum with its operand in the
// gradient, stay in f32, and so do the values from which they follow element by
// element: one kernel may have a value before rounding and another read it
// after, and then nothing would be the maximum.
//
// f16 has a narrow range, so the loss is scaled (Micikevicius et al., "Mixed
// Precision Training", ICLR 2018) by a state of the run.  A step with a
// gradient that is not finite changes no parameter, optimizer state or
// statistic, and halves the scale; after GROWTH_STEPS good steps it doubles.
// The numbers are those of PyTorch's GradScaler, with bounds; below 1 the scale
// only says that a step was skipped at 1, which ends a run.
#include "passes/passes.h"

enum { SCALE_START = 65536, SCALE_MOST = 1 << 24, GROWTH_STEPS = 2000 };
static const double SCALE_LEAST = 0.5;

typedef struct {
    Graph *g;
    const Graph *old;
    NodeId *now;
    bool *narrow;    // old nodes that become ACT
    bool *exact;     // old nodes that are wanted in full to be compared
    NodeId *raw;     // new nodes: gradients that still carry the loss scale
    NodeId *assigns; // old assign nodes that wait for the finite check
    int num_raw, num_assigns;
    bool scaled;  // the loss is
    bool guarded; // assignments wait for the check
    NodeId scale; // the state, when scaled
} Precision;

// Whether n multiplies activations, as attention does inside its kernel.
static bool contracts(const Graph *g, NodeId n) {
    return op_info[g->node[n].op].traits & (CONTRACTS | ATTENDS);
}

// Whether operand i of n is multiplied: the logarithms of attention's rows are
// f32, as is its seed an integer.
static bool is_multiplied(const Graph *g, NodeId n, int i) {
    return !(op_info[g->node[n].op].traits & ATTENDS) || i < 3;
}

static bool is_stack(const Graph *g, NodeId n) {
    return op_info[g->node[n].op].traits & STACKS;
}

// Whether n is the same numbers as its operands.
static bool is_same(const Graph *g, NodeId n) {
    return (op_info[g->node[n].op].traits & VIEW) || is_stack(g, n);
}

// Which nodes depend on the data: one value for each sample, not one for all.
static bool *find_bulk(const Graph *g, Arena *scratch) {
    bool *bulk = ARENA_ARRAY(scratch, g->count, bool);
    for (NodeId n = 0; n < g->count; n++) {
        bulk[n] = g->node[n].op == OP_input;
        for (int i = 0; i < g->node[n].num_args; i++)
            bulk[n] |= bulk[g->node[n].arg[i]];
    }
    return bulk;
}

// Marks nodes that are compared for equality, and the nodes below them up to
// results of library calls.
static bool *find_exact(const Graph *g, Arena *scratch) {
    bool *exact = ARENA_ARRAY(scratch, g->count, bool);
    for (NodeId n = g->count; n-- > 0;) {
        const Node *d = &g->node[n];
        bool follows = op_info[d->op].traits & (POINTWISE | VIEW | STACKS);
        if (d->op != OP_eq && !(exact[n] && follows))
            continue;
        for (int i = 0; i < d->num_args; i++) {
            const Node *of = &g->node[d->arg[i]];
            exact[d->arg[i]] |= dtype_float(of->type->dtype) &&
                                !(op_info[of->op].traits & (LEAF | CALLS));
        }
    }
    return exact;
}

static bool is_full(const Precision *p, NodeId n) {
    return p->old->node[n].from.full_precision || p->exact[n];
}

// Marks nodes that become ACT: operands of contractions, also through views.
static bool *find_narrow(const Precision *p, Arena *scratch) {
    const Graph *g = p->old;
    bool *bulk = find_bulk(g, scratch);
    bool *narrow = ARENA_ARRAY(scratch, g->count, bool);
    for (NodeId n = g->count; n-- > 0;)
        if (!is_full(p, n) && (contracts(g, n) || (is_same(g, n) && narrow[n])))
            for (int i = 0; i < g->node[n].num_args; i++) {
                NodeId arg = g->node[n].arg[i];
                narrow[arg] |= bulk[arg] && !is_full(p, arg) &&
                               is_multiplied(g, n, i) &&
                               dtype_float(g->node[arg].type->dtype);
            }
    return narrow;
}

static NodeId op2(Precision *p, Op op, NodeId a, NodeId b) {
    return graph_op2(p->g, op, a, b);
}

static NodeId choose(Precision *p, NodeId condition, NodeId yes, NodeId no) {
    return graph_op3(p->g, OP_select, condition, yes, no);
}

static NodeId number(Precision *p, double value) {
    return graph_number(p->g, value);
}

static NodeId count(Precision *p, double value) {
    return graph_constant(p->g, type_scalar(I32), value);
}

// ---- one node ----

static NodeId convert_contraction(Precision *p, NodeId id, Node n) {
    NodeId arg[6];
    for (int i = 0; i < n.num_args; i++) {
        bool narrow = is_multiplied(p->old, id, i) &&
                      dtype_float(p->old->node[n.arg[i]].type->dtype);
        arg[i] = p->now[n.arg[i]];
        if (narrow)
            arg[i] = graph_cast(p->g, arg[i], ACT);
    }
    n.arg = arg;
    return graph_move(p->g, n);
}

static NodeId convert_stack(Precision *p, Node n, bool narrow) {
    NodeId *arg = ARENA_ARRAY(p->g->own, (size_t)n.num_args + 1, NodeId);
    for (int i = 0; i < n.num_args; i++)
        arg[i] = graph_cast(p->g, p->now[n.arg[i]], narrow ? ACT : F32);
    n.arg = arg;
    return graph_move(p->g, n);
}

// Nodes in f32 read f32.
static NodeId convert_full(Precision *p, Node n) {
    NodeId *arg = ARENA_ARRAY(p->g->own, (size_t)n.num_args + 1, NodeId);
    for (int i = 0; i < n.num_args; i++) {
        arg[i] = p->now[n.arg[i]];
        if (p->g->node[arg[i]].type->dtype == ACT)
            arg[i] = graph_cast(p->g, arg[i], F32);
    }
    n.arg = arg;
    return graph_move(p->g, n);
}

// Effects keep the type that others see, and factors of a matrix are f32.
static bool keeps_type(const Node *n) {
    unsigned traits = op_info[n->op].traits;
    return n->op == OP_assign || n->op == OP_output ||
           ((traits & CALLS) && !(traits & CONTRACTS));
}

// Whether n assigns a statistic in a step whose finite check is in the update:
// by then values that are not finite would be part of it for good.
static bool keeps_finite(const Precision *p, const Node *n) {
    return p->scaled && !p->guarded && n->op == OP_assign &&
           state_is(&p->old->node[n->arg[0]], STATE_STATISTIC);
}

static NodeId convert_kept(Precision *p, Node n) {
    NodeId arg[2];
    for (int i = 0; i < n.num_args; i++)
        arg[i] = p->now[n.arg[i]];
    int last = n.num_args - 1;
    arg[last] = graph_cast(p->g, arg[last], n.type->dtype);
    if (keeps_finite(p, &n))
        arg[1] = choose(p, graph_op1(p->g, OP_finite, arg[1]), arg[1], arg[0]);
    n.arg = arg;
    return graph_move(p->g, n);
}

static NodeId convert_scale(Precision *p) {
    if (!p->scaled)
        return number(p, 1);
    p->scale = graph_state(p->g, "run.loss_scale", STATE_RUN, type_scalar(F32),
                           SCALE_START);
    return p->scale;
}

static NodeId convert(Precision *p, NodeId id) {
    Node n = p->old->node[id];
    n.from.full_precision |= p->exact[id];
    p->g->origin = n.from;
    if (n.op == OP_loss_scale)
        return convert_scale(p);
    if (keeps_type(&n))
        return convert_kept(p, n);
    if (is_stack(p->old, id))
        return convert_stack(p, n, p->narrow[id]);
    if (n.from.full_precision)
        return convert_full(p, n);
    if (contracts(p->old, id) && p->g->act != F32)
        return convert_contraction(p, id, n);
    return graph_copy(p->g, p->old, id, p->now);
}

static bool is_inverse_scale(const Graph *g, NodeId id) {
    const Node *n = &g->node[id];
    return n->op == OP_div && g->node[n->arg[1]].op == OP_loss_scale;
}

// The optimizer pass multiplies each gradient by the inverse of the loss scale.
static bool unscales(const Graph *g, NodeId id) {
    const Node *n = &g->node[id];
    return n->op == OP_mul && is_inverse_scale(g, n->arg[1]);
}

static bool has_scale(const Graph *g) {
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_loss_scale)
            return true;
    return false;
}

// A step that only adds gradients up leaves the check to the update.
static bool has_unscaled(const Graph *g) {
    for (NodeId n = 0; n < g->count; n++)
        if (unscales(g, n))
            return true;
    return false;
}

static void walk(Precision *p) {
    for (NodeId n = 0; n < p->old->count; n++) {
        if (p->guarded && p->old->node[n].op == OP_assign) {
            p->assigns[p->num_assigns++] = n;
            continue;
        }
        p->now[n] = convert(p, n);
        if (p->narrow[n] && dtype_float(p->g->node[p->now[n]].type->dtype))
            p->now[n] = graph_cast(p->g, p->now[n], ACT);
        if (unscales(p->old, n))
            p->raw[p->num_raw++] = p->now[p->old->node[n].arg[0]];
    }
}

// ---- the loss scale ----

// Whether a step that failed must leave this param or state alone.
static bool is_guarded(const Node *n) {
    return n->op == OP_param || state_is(n, STATE_OPTIMIZER) ||
           state_is(n, STATE_STATISTIC);
}

static void add_assign(Precision *p, NodeId id, NodeId good) {
    Node n = p->old->node[id];
    NodeId to = p->now[n.arg[0]];
    NodeId value = graph_cast(p->g, p->now[n.arg[1]], n.type->dtype);
    p->g->origin = n.from;
    if (is_guarded(&p->g->node[to]))
        value = choose(p, good, value, to);
    graph_assign(p->g, to, value);
}

static NodeId all_finite(Precision *p) {
    NodeId finite = graph_add(p->g, (Node){.op = OP_all_finite,
                                           .num_args = p->num_raw,
                                           .arg = p->raw,
                                           .group = -1});
    return op2(p, OP_lt, number(p, 0.5), finite);
}

static void add_scale_update(Precision *p, NodeId good) {
    NodeId steps =
        graph_state(p->g, "run.good_steps", STATE_RUN, type_scalar(I32), 0);
    NodeId next = op2(p, OP_add, steps, count(p, 1));
    NodeId grows = op2(p, OP_le, count(p, GROWTH_STEPS), next);
    NodeId twice = op2(p, OP_mul, p->scale, number(p, 2));
    NodeId half = op2(p, OP_mul, p->scale, number(p, 0.5));
    NodeId larger = op2(p, OP_minimum, twice, number(p, SCALE_MOST));
    NodeId smaller = op2(p, OP_maximum, half, number(p, SCALE_LEAST));
    NodeId kept = choose(p, grows, larger, p->scale);
    NodeId restart = choose(p, grows, count(p, 0), next);
    graph_assign(p->g, p->scale, choose(p, good, kept, smaller));
    graph_assign(p->g, steps, choose(p, good, restart, count(p, 0)));
}

// Skipped steps are counted beside the metrics.
static void add_skipped(Precision *p, NodeId good) {
    NodeId skipped =
        graph_state(p->g, "metric.skipped", STATE_METRIC, type_scalar(F32), 0);
    NodeId more = op2(p, OP_add, skipped, number(p, 1));
    graph_assign(p->g, skipped, choose(p, good, skipped, more));
}

static void finish_scaled(Precision *p) {
    NodeId good = all_finite(p);
    for (int i = 0; i < p->num_assigns; i++)
        add_assign(p, p->assigns[i], good);
    p->g->origin = p->g->node[p->scale].from;
    add_scale_update(p, good);
    add_skipped(p, good);
}

static bool *nothing(const Graph *g, Arena *scratch) {
    return ARENA_ARRAY(scratch, g->count, bool);
}

Graph *pass_precision(Graph *g, Arena *scratch, const PassOptions *o) {
    Precision p = {.g = graph_like(g),
                   .old = g,
                   .now = ARENA_ARRAY(scratch, g->count, NodeId),
                   .raw = ARENA_ARRAY(scratch, g->count, NodeId),
                   .assigns = ARENA_ARRAY(scratch, g->count, NodeId),
                   .scaled = o->act == F16 && has_scale(g),
                   .guarded = o->act == F16 && has_unscaled(g)};
    p.exact = o->act == F32 ? nothing(g, scratch) : find_exact(g, scratch);
    p.narrow = o->act == F32 ? nothing(g, scratch) : find_narrow(&p, scratch);
    p.g->act = o->act;
    walk(&p);
    if (p.guarded)
        finish_scaled(&p);
    return p.g;
}
