// Optimizers: one node for each parameter, which the optimizer pass lowers to
// assignments.

#include "frontend/functions/functions.h"

#include <stdlib.h>
#include <string.h>

Value optimizer_rate(const Call *c) {
    return c->arg[0];
}

// Whether this span has a report: one for all parameters suffices.
static bool is_reported(const Expansion *e, Span at) {
    for (int i = 0; i < e->diags->count; i++) {
        const Span was = e->diags->list[i]->label[0].at;
        if (was.source == at.source && was.start == at.start)
            return true;
    }
    return false;
}

// ---- the table ----

typedef enum { RANGE_any, RANGE_from_0, RANGE_below_1, RANGE_to_100 } Range;

// Checks beyond the ranges; false after a report.
typedef bool Check(Expansion *e, const Call *c, const Parameter *p);
static Check check_none, check_sgd, check_muon;

static const struct {
    Op op;
    Check *check;
} optimizers[NUM_BUILTINS] = {
#define OPTIMIZER(name, shape, rule, check)                                    \
    [B_##name] = {OP_##name, check_##check},
#include "ir/optimizers.def"
};

// A setting's attribute; a scalar is an operand.
static const struct {
    Range range;
    AttrKey key;
} arguments[NUM_PARAMS] = {
#define SCALAR(optimizer, name, default, range)                                \
    [P_##optimizer##_##name] = {RANGE_##range, NUM_ATTRS},
#define SETTING(optimizer, name, kind, default, range)                         \
    [P_##optimizer##_##name] = {RANGE_##range, ATTR_##name},
#include "ir/optimizers.def"
};

// ---- mistakes ----

// The range that a number violates, or NULL.
static const char *violated_range(Range range, double x) {
    switch (range) {
    case RANGE_any:
        return NULL;
    case RANGE_from_0:
        return x >= 0 ? NULL : "0 or more";
    case RANGE_below_1:
        return x >= 0 && x < 1 ? NULL : "from 0 to below 1";
    case RANGE_to_100:
        return x <= 100 ? NULL : "at most 100";
    }
    abort();
}

static bool check_number(Expansion *e, const Call *c, int i) {
    ParamId p = c->builtin->first + (ParamId)i;
    const Value *v = &c->arg[i];
    if (v->kind != VALUE_NUMBER)
        return true;
    const char *want = violated_range(arguments[p].range, v->number);
    Span at = v->at.source ? v->at : c->at;
    if (want != NULL && !is_reported(e, at))
        report(e->diags, D_out_of_range, at,
               "`%s` of %s must be %s, and not %.9g", param_info[p].name,
               c->builtin->name, want, v->number);
    return want == NULL;
}

static bool check_numbers(Expansion *e, const Call *c) {
    bool good = true;
    for (int i = 0; i < builtin_num_params(c->builtin); i++)
        good &= check_number(e, c, i);
    return good;
}

static bool check_none(Expansion *e, const Call *c, const Parameter *p) {
    (void)e, (void)c, (void)p;
    return true;
}

static bool check_sgd(Expansion *e, const Call *c, const Parameter *p) {
    (void)p;
    const Value *momentum = call_arg(c, P_sgd_momentum);
    if (!call_flag(c, P_sgd_nesterov) || momentum->kind != VALUE_NUMBER ||
        momentum->number != 0)
        return true;
    if (!is_reported(e, c->at)) {
        Diagnostic *d = report(e->diags, D_missing_argument, c->at,
                               "nesterov needs momentum, and there is none");
        diag_note(d, "as in: sgd(lr=0.1, momentum=0.9, nesterov)");
    }
    return false;
}

static bool check_coefficients(Expansion *e, const Call *c) {
    const Value *list = call_arg(c, P_muon_coefficients);
    if (list->kind == VALUE_LIST && list->list.count == 3)
        return true;
    if (!is_reported(e, c->at))
        report(e->diags, D_wrong_length, c->at,
               "`coefficients` of muon must be three numbers, as in "
               "[3.4445, -4.775, 2.0315]");
    return false;
}

static bool check_muon(Expansion *e, const Call *c, const Parameter *p) {
    if (!check_coefficients(e, c))
        return false;
    if (p->type.rank == 2 || p->type.rank == 4)
        return true;
    const char *last = strrchr(p->name, '.');
    if (is_reported(e, c->at))
        return false;
    Diagnostic *d = report(e->diags, D_wrong_rank, c->at,
                           "muon needs matrices or filters, and `%s` is %s",
                           p->name, type_text(e, p->type));
    diag_secondary(d, p->at, "it belongs to this layer");
    diag_note(d,
              "give such parameters another optimizer: params \"*%s\" { "
              "optimizer = adamw() }",
              last ? last : p->name);
    return false;
}

// ---- nodes ----

// The number of this update, from 1.  Skipped steps do not count, so it differs
// from the run's step; the state is advanced here.
static NodeId update_count(Expansion *e) {
    bool first = e->run[RUN_UPDATES] == NO_NODE;
    NodeId done = run_node(e, RUN_UPDATES);
    NodeId one = graph_constant(e->graph, type_scalar(I32), 1);
    NodeId count = graph_op2(e->graph, OP_add, done, one);
    if (first)
        graph_assign(e->graph, done, count);
    return count;
}

static Attr list_attr(Expansion *e, AttrKey key, const Value *list) {
    int count = list->list.count;
    double *number = ARENA_ARRAY(e->arena, (size_t)count + 1, double);
    for (int i = 0; i < count; i++)
        number[i] = list->list.item[i].number;
    return attr_floats(key, count, number);
}

static Attr setting(Expansion *e, AttrKey key, const Value *v) {
    if (v->kind == VALUE_BOOL)
        return attr_int(key, v->boolean);
    if (v->kind == VALUE_LIST)
        return list_attr(e, key, v);
    return attr_info[key].kind == INT ? attr_int(key, (int64_t)v->number)
                                      : attr_float(key, v->number);
}

static bool is_false_flag(const Value *v) {
    return v->kind == VALUE_BOOL && !v->boolean;
}

// Its origin is the parameter's layer; the origin of shared numbers is the
// optimizer.  A false flag is omitted.
static void update_node(Expansion *e, const Call *c, NodeId param) {
    int count = builtin_num_params(c->builtin);
    Node n = {.op = optimizers[builtin_id(c->builtin)].op, .group = -1};
    NodeId *arg = ARENA_ARRAY(e->arena, (size_t)count + 2, NodeId);
    Attr *attr = ARENA_ARRAY(e->arena, (size_t)count + 1, Attr);
    arg[n.num_args++] = param;
    for (int i = 0; i < count; i++) {
        ParamId p = c->builtin->first + (ParamId)i;
        if (param_info[p].kind == SCALAR)
            arg[n.num_args++] = scalar_node(e, c->arg[i]);
        else if (!is_false_flag(&c->arg[i]))
            attr_insert(attr, n.num_attrs++,
                        setting(e, arguments[p].key, &c->arg[i]));
    }
    if (optimizer_counts(n.op))
        arg[n.num_args++] = update_count(e);
    n.arg = arg;
    n.attr = attr;
    e->graph->origin = e->graph->node[param].from;
    graph_add(e->graph, n);
}

void optimizer_apply(Expansion *e, const Call *c, const Parameter *p) {
    if (!check_numbers(e, c) ||
        !optimizers[builtin_id(c->builtin)].check(e, c, p))
        return;
    origin_set(e, c->at, NULL);
    update_node(e, c, p->node);
}
