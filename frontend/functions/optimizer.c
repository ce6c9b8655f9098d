// Optimizers: one node for each parameter, which the optimizer pass turns into
// assignments.

#include "frontend/functions/functions.h"

#include <string.h>

// An optimizer is kept as its call until the parameters are known.
Value lower_optimizer(Expansion *e, const Call *c) {
    (void)e;
    return (Value){.kind = VALUE_CALL, .call = c};
}

Value optimizer_rate(const Call *c) {
    return c->arg[0];
}

// Whether there was a report of this place: one for all parameters will do.
static bool is_reported(const Expansion *e, Span at) {
    for (int i = 0; i < e->diags->count; i++) {
        const Span was = e->diags->list[i]->label[0].at;
        if (was.source == at.source && was.start == at.start)
            return true;
    }
    return false;
}

// ---- numbers that no optimizer works with ----

// What a number must be, by the name of its parameter.
static const struct {
    const char *name;
    bool below_one;
    const char *what;
} bound[] = {
    {"lr", false, "0 or more"},
    {"weight_decay", false, "0 or more"},
    {"momentum", true, "from 0 to below 1"},
    {"beta1", true, "from 0 to below 1"},
    {"beta2", true, "from 0 to below 1"},
};

static bool check_number(Expansion *e, const Call *c, const char *name,
                         const Value *v) {
    for (size_t i = 0; i < sizeof bound / sizeof bound[0]; i++) {
        if (strcmp(bound[i].name, name) != 0 || v->kind != VALUE_NUMBER ||
            (v->number >= 0 && (!bound[i].below_one || v->number < 1)))
            continue;
        Span at = v->at.source ? v->at : c->at;
        if (!is_reported(e, at))
            report(e->diags, D_range, at, "`%s` of %s must be %s, and not %.9g",
                   name, c->builtin->name, bound[i].what, v->number);
        return false;
    }
    return true;
}

static bool is_zero(const Value *v) {
    return v->kind == VALUE_NUMBER && v->number == 0;
}

static bool check_nesterov(Expansion *e, const Call *c) {
    if (builtin_id(c->builtin) != B_sgd || !call_flag(c, P_sgd_nesterov) ||
        !is_zero(call_arg(c, P_sgd_momentum)))
        return true;
    if (!is_reported(e, c->at)) {
        Diagnostic *d = report(e->diags, D_missing, c->at,
                               "nesterov needs momentum, and there is none");
        diag_note(d, "as in: sgd(lr=0.1, momentum=0.9, nesterov)");
    }
    return false;
}

static bool check_numbers(Expansion *e, const Call *c) {
    const ParamInfo *p = &param_info[c->builtin->first];
    bool good = true;
    for (int i = 0; i < builtin_num_params(c->builtin); i++)
        good &= check_number(e, c, p[i].name, &c->arg[i]);
    return good && check_nesterov(e, c);
}

// ---- nodes ----

// What follows comes from the parameter's layer; the numbers that all updates
// share come from the optimizer.
static void blame(Expansion *e, NodeId param) {
    e->graph->at = e->graph->node[param].from;
}

static NodeId scalar(Expansion *e, const Call *c, ParamId p) {
    return scalar_node(e, *call_arg(c, p));
}

static void add(Expansion *e, Op op, const NodeId *arg, int num_args,
                const Attr *attr, int num_attrs) {
    blame(e, arg[0]);
    graph_add(e->graph, (Node){.op = op,
                               .num_args = num_args,
                               .arg = arg,
                               .num_attrs = num_attrs,
                               .attr = attr,
                               .group = -1});
}

static void sgd(Expansion *e, const Call *c, NodeId param) {
    NodeId arg[4] = {param};
    arg[1] = scalar(e, c, P_sgd_lr);
    arg[2] = scalar(e, c, P_sgd_momentum);
    arg[3] = scalar(e, c, P_sgd_weight_decay);
    Attr attr[3];
    int count = 0;
    if (call_flag(c, P_sgd_decoupled))
        attr[count++] = attr_int(ATTR_decoupled, 1);
    attr[count++] = attr_int(ATTR_nesterov, call_flag(c, P_sgd_nesterov));
    if (call_flag(c, P_sgd_rate_in_velocity))
        attr[count++] = attr_int(ATTR_rate_in_velocity, 1);
    add(e, OP_sgd, arg, 4, attr, count);
}

static void lars(Expansion *e, const Call *c, NodeId param) {
    NodeId arg[4] = {param};
    arg[1] = scalar(e, c, P_lars_lr);
    arg[2] = scalar(e, c, P_lars_momentum);
    arg[3] = scalar(e, c, P_lars_weight_decay);
    Attr attr[] = {
        attr_float(ATTR_eps, call_number(c, P_lars_eps)),
        attr_int(ATTR_nesterov, call_flag(c, P_lars_nesterov)),
        attr_int(ATTR_rate_in_velocity, 1),
        attr_float(ATTR_trust, call_number(c, P_lars_trust)),
    };
    add(e, OP_sgd, arg, 4, attr, 4);
}

// The number of this update, from 1.  A step that is skipped does not count,
// so this is not the run's step; the state is advanced where it is made.
static NodeId update_count(Expansion *e) {
    bool first = e->run[RUN_UPDATES] == NO_NODE;
    NodeId done = run_node(e, RUN_UPDATES);
    NodeId one = graph_constant(e->graph, type_scalar(I32), 1);
    NodeId count = graph_op2(e->graph, OP_add, done, one);
    if (first)
        graph_assign(e->graph, done, count);
    return count;
}

// adam, adamw and lamb have the same parameters.
static void adam(Expansion *e, const Call *c, NodeId param) {
    BuiltinId id = builtin_id(c->builtin);
    ParamId first = c->builtin->first - FIRST_adam;
    NodeId arg[6] = {param};
    arg[1] = scalar(e, c, first + P_adam_lr);
    arg[2] = scalar(e, c, first + P_adam_beta1);
    arg[3] = scalar(e, c, first + P_adam_beta2);
    arg[4] = scalar(e, c, first + P_adam_weight_decay);
    arg[5] = update_count(e);
    Attr attr[] = {
        attr_int(ATTR_decoupled, id != B_adam),
        attr_float(ATTR_eps, call_number(c, first + P_adam_eps)),
        attr_float(ATTR_trust, 1),
    };
    add(e, OP_adam, arg, 6, attr, id == B_lamb ? 3 : 2);
}

static void report_vector(Expansion *e, const Call *c, const Parameter *p) {
    const char *last = strrchr(p->name, '.');
    if (is_reported(e, c->at))
        return;
    Diagnostic *d = report(e->diags, D_rank, c->at,
                           "muon needs matrices or filters, and `%s` is %s",
                           p->name, type_text(e, p->type));
    diag_place(d, p->at, "it belongs to this layer");
    diag_note(d,
              "give it and its like another optimizer: params \"*%s\" { "
              "optimizer = adamw() }",
              last ? last : p->name);
}

// Jordan's, unless others are given.
static bool read_coefficients(Expansion *e, const Call *c,
                              double coefficient[3]) {
    static const double usual[] = {3.4445, -4.7750, 2.0315};
    const Value *list = call_arg(c, P_muon_coefficients);
    bool given = list->kind != VALUE_NOTHING;
    if (given && (list->kind != VALUE_LIST || list->list.count != 3)) {
        if (!is_reported(e, c->at))
            report(e->diags, D_length, c->at,
                   "`coefficients` of muon must be three numbers, as in "
                   "[3.4445, -4.775, 2.0315]");
        return false;
    }
    for (int i = 0; i < 3; i++)
        coefficient[i] = given ? list->list.item[i].number : usual[i];
    return true;
}

// Each iteration is three products in the graph of every parameter.
static bool check_iterations(Expansion *e, const Call *c) {
    enum { MOST = 100 };
    const Value *v = call_arg(c, P_muon_iterations);
    if (v->number <= MOST)
        return true;
    Span at = v->at.source ? v->at : c->at;
    if (!is_reported(e, at))
        report(e->diags, D_range, at,
               "`iterations` of muon must be at most %d, and not %.9g", MOST,
               v->number);
    return false;
}

static void muon(Expansion *e, const Call *c, const Parameter *p) {
    double coefficient[3];
    if (!read_coefficients(e, c, coefficient) || !check_iterations(e, c))
        return;
    if (p->type.rank != 2 && p->type.rank != 4) {
        report_vector(e, c, p);
        return;
    }
    NodeId arg[4] = {p->node};
    arg[1] = scalar(e, c, P_muon_lr);
    arg[2] = scalar(e, c, P_muon_momentum);
    arg[3] = scalar(e, c, P_muon_weight_decay);
    Attr attr[] = {
        attr_floats(ATTR_coefficients, 3, coefficient),
        attr_float(ATTR_eps, call_number(c, P_muon_eps)),
        attr_int(ATTR_iterations, call_count(c, P_muon_iterations)),
        attr_int(ATTR_nesterov, call_flag(c, P_muon_nesterov)),
        attr_int(ATTR_renormalize, call_flag(c, P_muon_renormalize)),
    };
    add(e, OP_muon, arg, 4, attr, 5);
}

void optimizer_apply(Expansion *e, const Call *c, const Parameter *p) {
    if (!check_numbers(e, c))
        return;
    origin_set(e, c->at, NULL);
    switch (builtin_id(c->builtin)) {
    case B_sgd:
        sgd(e, c, p->node);
        return;
    case B_lars:
        lars(e, c, p->node);
        return;
    case B_muon:
        muon(e, c, p);
        return;
    default:
        adam(e, c, p->node);
    }
}
