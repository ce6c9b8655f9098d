// Averages of the weights: an evaluation uses those of ema instead of the
// weights, lookahead writes them back.
//
// The statistics of batch_norm are averaged too.  The update of an average is
//
//     decay * average + (1 - decay) * weight
//
// with decay 0 up to the start of averaging, which so starts with the current
// weights, and decay 1 after the last step, unless averaging is due there
// anyway: lookahead then ends with the averages.

#include "frontend/train/train.h"

#include <math.h>

typedef struct {
    const Call *call; // NULL: no average
    bool writes_back; // lookahead: parameters become their averages
    Time every, from; // counts of from may be 0
    Value decay;      // weight of the old average, in the current graph
} Average;

// ema and lookahead have the same parameters.
static const Value *argument(const Call *c, ParamId ema) {
    return &c->arg[(int)ema - (int)FIRST_ema];
}

static Time time_argument(const Call *c, ParamId ema) {
    Time time = {0};
    time_of_value(*argument(c, ema), &time);
    return time;
}

static bool check_call(Expansion *e, const Call *c) {
    const Value *decay = argument(c, P_ema_decay);
    if (decay->kind == VALUE_NUMBER &&
        !(decay->number >= 0 && decay->number <= 1)) {
        Diagnostic *d = report(e->diags, D_out_of_range, decay->at,
                               "`decay` of %s must be a number from 0 to 1",
                               c->builtin->name);
        diag_note(d, "it is the share of the old average that is kept");
        return false;
    }
    if (time_argument(c, P_ema_every).count > 0)
        return true;
    report(e->diags, D_out_of_range, argument(c, P_ema_every)->at,
           "`every` of %s must be more than 0", c->builtin->name);
    return false;
}

// False after a report.
static bool average_read(Expansion *e, TrainBlock *t, Average *out) {
    Value v = key_value(e, t, "average");
    *out = (Average){0};
    if (v.kind == VALUE_NONE)
        return true;
    if (v.kind == VALUE_POISON)
        return false;
    if (v.kind != VALUE_CALL || v.call->builtin->class != AVERAGE) {
        diag_note(key_report(e, key_at(t, "average"), "`average`",
                             "ema(...) or lookahead(...)"),
                  "as in: average = ema(0.999)");
        return false;
    }
    const Call *c = v.call;
    *out = (Average){.call = c,
                     .writes_back = builtin_id(c->builtin) == B_lookahead,
                     .every = time_argument(c, P_ema_every),
                     .from = time_argument(c, P_ema_start),
                     .decay = *argument(c, P_ema_decay)};
    time_warn_late(e, out->from, argument(c, P_ema_start)->at);
    return check_call(e, c);
}

// ---- the graph ----

static NodeId binary(Expansion *e, Op op, NodeId a, NodeId b) {
    return graph_op2(e->graph, op, a, b);
}

static NodeId select_node(Expansion *e, NodeId condition, NodeId yes,
                          NodeId no) {
    return graph_op3(e->graph, OP_select, condition, yes, no);
}

static NodeId i32_constant(Expansion *e, double value) {
    return graph_constant(e->graph, type_scalar(I32), value);
}

// A time in steps, f32[].
static NodeId time_node(Expansion *e, Time time) {
    NodeId count = number_node(e, time.count);
    if (time.unit == IN_STEPS)
        return count;
    RunState all = time.unit == IN_EPOCHS ? RUN_EPOCH_STEPS : RUN_STEPS;
    return binary(e, OP_mul, count, as_float(e, run_node(e, all)));
}

// Whether averaging is due after the steps so far.  Whole periods are exact, as
// in the runtime.
static NodeId is_due(Expansion *e, Time every) {
    NodeId step = run_node(e, RUN_STEP);
    if (every.unit != IN_SHARES && every.count == floor(every.count) &&
        every.count <= INT32_MAX) {
        NodeId period = i32_constant(e, every.count);
        if (every.unit == IN_EPOCHS)
            period = binary(e, OP_mul, period, run_node(e, RUN_EPOCH_STEPS));
        NodeId zero = i32_constant(e, 0);
        return binary(e, OP_eq, binary(e, OP_mod, step, period), zero);
    }
    // The runtime counts in double; an f32 quotient may be slightly below the
    // integer that it should be.
    NodeId slack = number_node(e, 1 + 4e-7);
    NodeId period = binary(e, OP_div, time_node(e, every), slack);
    NodeId now = binary(e, OP_div, as_float(e, step), period);
    NodeId before = binary(
        e, OP_div, as_float(e, binary(e, OP_sub, step, i32_constant(e, 1))),
        period);
    now = add_unary(e, OP_floor, now);
    return binary(e, OP_lt, add_unary(e, OP_floor, before), now);
}

// Whether the current step is not after a time.  The first step after a time is
// less than one after it.
static NodeId is_before(Expansion *e, Time time) {
    NodeId part = number_node(e, 0.999);
    NodeId end = binary(e, OP_add, time_node(e, time), part);
    return binary(e, OP_lt, as_float(e, run_node(e, RUN_STEP)), end);
}

static NodeId decay_node(Expansion *e, const Average *a) {
    NodeId step = run_node(e, RUN_STEP);
    NodeId decay = scalar_node(e, a->decay);
    if (!time_is_each_step(a->every)) {
        NodeId end = binary(e, OP_le, run_node(e, RUN_STEPS), step);
        NodeId not_due = graph_op1(e->graph, OP_not, is_due(e, a->every));
        NodeId one = number_node(e, 1);
        NodeId ends = binary(e, OP_and, end, not_due);
        decay = select_node(e, ends, one, decay);
    }
    NodeId early = is_before(e, a->from);
    return select_node(e, early, number_node(e, 0), decay);
}

// lookahead must not write to a frozen parameter: its average becomes the
// parameter's value.
static NodeId decay_of(Expansion *e, const TrainBlock *t, const Average *a,
                       const Parameter *p, NodeId decay) {
    int num_times;
    const Time *time = freeze_times(t, &num_times);
    for (int i = 0; a->writes_back && i < num_times; i++) {
        if (!is_frozen(e, t, p, i + 1))
            continue;
        NodeId trains = is_before(e, time[i]);
        return select_node(e, trains, decay, number_node(e, 0));
    }
    return decay;
}

// torch.lerp, exact at both ends.
static NodeId lerp(Expansion *e, NodeId old, NodeId new, NodeId decay) {
    NodeId fraction = binary(e, OP_sub, number_node(e, 1), decay);
    NodeId difference = binary(e, OP_sub, new, old);
    NodeId near =
        binary(e, OP_add, old, binary(e, OP_mul, fraction, difference));
    NodeId far = binary(e, OP_sub, new, binary(e, OP_mul, decay, difference));
    NodeId is_near = binary(e, OP_lt, fraction, number_node(e, 0.5));
    return select_node(e, is_near, near, far);
}

// init: the initial average of a statistic, as in an evaluation.
static void add_average(Expansion *e, const Average *a, NodeId weight,
                        NodeId decay, double init) {
    Node w = e->graph->node[weight];
    NodeId average = average_node(e, node_text(&w, ATTR_name), *w.type, init);
    NodeId mixed = lerp(e, average, weight, decay);
    graph_assign(e->graph, average, mixed);
    if (a->writes_back)
        graph_assign(e->graph, weight, mixed);
}

static void add_averages(Expansion *e, const TrainBlock *t, const Average *a,
                         const Graph *model) {
    NodeId decay = decay_node(e, a);
    for (int i = 0; i < e->num_parameters; i++) {
        const Parameter *p = &e->parameter[i];
        e->graph->origin = model->node[p->node].from;
        NodeId leaf = graph_leaf(e->graph, OP_param, p->name, p->type);
        add_average(e, a, leaf, decay_of(e, t, a, p, decay), 0);
    }
    for (int i = 0; i < e->num_statistics; i++) {
        const Parameter *p = &e->statistic[i];
        e->graph->origin = model->node[p->node].from;
        NodeId leaf = graph_state(e->graph, p->name, STATE_STATISTIC, p->type,
                                  p->init.low);
        add_average(e, a, leaf, decay, p->init.low);
    }
}

bool average_build(Expansion *e, TrainBlock *t, Program *p) {
    const Graph *model = e->graph;
    Average a;
    graph_begin(e, t, "average", true);
    e->phase = PHASE_KEYS;
    if (!average_read(e, t, &a))
        return false;
    if (a.call == NULL)
        return true;
    origin_set(e, a.call->at, NULL);
    add_averages(e, t, &a, model);
    p->average = e->graph;
    p->average_every = a.every;
    p->average_from = a.from;
    e->eval_averages = !a.writes_back && !e->raw_weights;
    return true;
}
