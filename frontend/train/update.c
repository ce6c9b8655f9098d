// The updates of a step: each parameter's optimizer, the logged learning rate,
// and the step counter.

#include "frontend/train/train.h"

static void count_step(Expansion *e) {
    NodeId step = run_node(e, RUN_STEP);
    NodeId one = graph_constant(e->graph, type_scalar(I32), 1);
    graph_assign(e->graph, step, graph_op2(e->graph, OP_add, step, one));
}

static void log_rate(Expansion *e, Value rate) {
    NodeId state =
        graph_state(e->graph, "metric.lr", STATE_METRIC, type_scalar(F32), 0);
    graph_assign(e->graph, state, scalar_node(e, rate));
}

static bool has_rate_of(const Call *c, const Call *base) {
    Value a = optimizer_rate(c), b = optimizer_rate(base);
    return a.kind == b.kind &&
           (a.kind == VALUE_NUMBER ? a.number == b.number : a.node == b.node);
}

// Logs the common learning rate if a trained parameter uses it, else that of
// the first optimizer.
static bool add_updates(Expansion *e, TrainBlock *t, const Call *base,
                        int stage) {
    const Call *shown = NULL;
    for (int i = 0; i < e->num_parameters; i++) {
        const Parameter *p = &e->parameter[i];
        if (is_frozen(e, t, p, stage))
            continue;
        const Call *optimizer = group_optimizer(e, t, base, p);
        if (optimizer == NULL)
            return false;
        if (base != NULL && has_rate_of(optimizer, base))
            shown = base;
        if (shown == NULL)
            shown = optimizer;
        optimizer_apply(e, optimizer, p);
    }
    Value rate = train_rate(e, t, shown);
    origin_set(e, shown->at, NULL);
    log_rate(e, rate);
    return true;
}

// clip = norm(1) or value(1)
static bool add_clip(Expansion *e, TrainBlock *t) {
    Value v = key_value(e, t, "clip");
    if (v.kind == VALUE_CALL && v.call->builtin->class == CLIP)
        clip_apply(e, v.call);
    else if (v.kind != VALUE_NONE && v.kind != VALUE_POISON)
        diag_note(key_report(e, key_at(t, "clip"), "`clip`",
                             "norm(...) or value(...)"),
                  "as in: clip = norm(1)");
    return v.kind == VALUE_CALL || v.kind == VALUE_NONE;
}

bool update_add(Expansion *e, TrainBlock *t, int stage) {
    e->phase = PHASE_KEYS;
    Value base = train_optimizer(e, t);
    bool good = groups_check(e, t);
    good &= freezes_check(e, t);
    good &= add_clip(e, t);
    if (!good || base.kind == VALUE_POISON ||
        !add_updates(e, t, base.kind == VALUE_CALL ? base.call : NULL, stage))
        return false;
    count_step(e);
    return true;
}
