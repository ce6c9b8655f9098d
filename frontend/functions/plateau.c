// Plateau: a schedule that falls when evaluations no longer improve a metric.
//
// Its factor is a state, which the runtime multiplies after an evaluation.
// Equal calls share one: schedules are lowered again for each graph.

#include "frontend/functions/schedule.h"

#include <string.h>

static const Plateau *plateau_find(const Recipe *r, const Plateau *p) {
    for (int i = 0; i < r->num_plateaus; i++) {
        const Plateau *q = &r->plateau[i];
        if (strcmp(q->metric, p->metric) == 0 && q->factor == p->factor &&
            q->patience.count == p->patience.count &&
            q->patience.unit == p->patience.unit)
            return q;
    }
    return NULL;
}

static const Plateau *plateau_add(Expansion *e, Plateau p) {
    Recipe *r = &e->recipe;
    Plateau *all =
        ARENA_ARRAY(e->arena, (size_t)r->num_plateaus + 1, Plateau);
    for (int i = 0; i < r->num_plateaus; i++)
        all[i] = r->plateau[i];
    p.state = r->num_plateaus == 0
                  ? "run.plateau"
                  : arena_format(e->arena, "run.plateau_%d",
                                 r->num_plateaus + 1);
    all[r->num_plateaus] = p;
    r->plateau = all;
    return &all[r->num_plateaus++];
}

Value lower_plateau(Expansion *e, const Call *c) {
    const char *metric = call_arg(c, P_plateau_metric)->text;
    Plateau p = {.metric = metric, .factor = call_number(c, P_plateau_factor)};
    if (strchr(metric, '.') == NULL) // else a name from metric_measured
        p.metric = metric_name(e, (MetricId)metric_find(metric), NULL, c->at);
    if (!period_check(e, c, P_plateau_patience) || p.metric == NULL ||
        !time_of_value(*call_arg(c, P_plateau_patience), &p.patience))
        return value_poison();
    const Plateau *found = plateau_find(&e->recipe, &p);
    if (found == NULL)
        found = plateau_add(e, p);
    NodeId factor = graph_find(e->graph, found->state);
    if (factor == NO_NODE)
        factor = graph_state(e->graph, found->state, STATE_RUN,
                             type_scalar(F32), 1);
    return scalar_operate(e, TOKEN_TIMES, *call_arg(c, P_plateau_start),
                          value_tensor(factor, c->at), c->at);
}

// ---- states of the runtime ----

static void state_begin(Expansion *e, Graph *init, const char *name,
                        DType dtype, double value) {
    if (graph_find(init, name) != NO_NODE)
        return;
    NodeId state =
        graph_state(init, arena_format(e->arena, "%s", name), STATE_RUN,
                    type_scalar(dtype), value);
    graph_assign(init, state, graph_constant(init, type_scalar(dtype), value));
}

static void monitor_begin(Expansion *e, Graph *init, const char *metric) {
    state_begin(e, init, arena_format(e->arena, "monitor.%s", metric), F32, 0);
    state_begin(e, init, arena_format(e->arena, "monitor.%s.step", metric), I32,
                -1);
}

void monitor_states(Expansion *e, Graph *init) {
    const Recipe *r = &e->recipe;
    if (r->stop.patience.count > 0)
        monitor_begin(e, init, r->stop.metric);
    if (r->best != NULL)
        monitor_begin(e, init, r->best);
    for (int i = 0; i < r->num_plateaus; i++) {
        const Plateau *p = &r->plateau[i];
        monitor_begin(e, init, p->metric);
        state_begin(e, init, arena_format(e->arena, "%s.step", p->state), I32,
                    0);
    }
}
