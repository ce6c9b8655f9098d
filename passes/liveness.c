// Liveness: the launches of a step in order, and the values between them.

#include "passes/live_range.h"
#include "passes/passes.h"
#include "passes/rematerialize.h"

// Flops that take a GPU as long as a byte of memory traffic: f16 on tensor
// cores, from a T4 to an H200 within a quarter.
enum { FLOPS_OF_A_BYTE = 160 };

// ---- values ----

// A result that depends on the order of blocks, or is added to a tensor in
// memory, is not computed twice.
static bool is_repeatable(const Graph *g, NodeId n) {
    const Node *d = &g->node[n];
    unsigned traits = op_info[d->op].traits;
    if (d->op == OP_workspace || node_int(d, ATTR_accumulate, 0))
        return false;
    if (traits & (EFFECT | SCATTERS | COLLECTIVE))
        return false;
    return !(traits & REDUCES) ||
           (!(traits & REDUCES_ALL) && reduction_kind(g, n) == ROW_REDUCTION);
}

bool *group_own(const Graph *g, const Group *group, NodeId n, Arena *a) {
    bool *own = ARENA_ARRAY(a, (size_t)(n - group->first) + 1, bool);
    own[n - group->first] = true;
    for (NodeId m = n + 1; m-- > group->first;)
        for (int i = 0; own[m - group->first] && i < g->node[m].num_args; i++)
            if (g->node[m].arg[i] >= group->first)
                own[g->node[m].arg[i] - group->first] = true;
    return own;
}

// Finds the inputs and the cost of recomputing value v.
static void find_needs(Liveness *l, Value *v, const Group *group, int *seen,
                       Arena *a) {
    const Graph *g = l->g;
    const bool *own = group_own(g, group, v->node, a);
    int *need = ARENA_ARRAY(a, (size_t)group->num_inputs + 1, int);
    int64_t flops = 0;
    v->recomputable = true;
    v->cost = v->bytes;
    for (NodeId n = group->first; n <= v->node; n++) {
        if (!own[n - group->first])
            continue;
        v->recomputable &= is_repeatable(g, n);
        v->calls |= (op_info[g->node[n].op].traits & CALLS) != 0;
        flops += node_flops(g, n);
        for (int i = 0; i < g->node[n].num_args; i++) {
            NodeId base = node_base(g, g->node[n].arg[i]);
            if (base >= group->first || node_immediate(&g->node[base]) ||
                seen[base] == (int)v->node)
                continue;
            seen[base] = (int)v->node;
            v->cost += graph_bytes(g, g->node[base].type);
            if (l->value_of[base] >= 0)
                need[v->num_operands++] = l->value_of[base];
        }
    }
    v->cost += flops / FLOPS_OF_A_BYTE;
    v->operand = need;
}

static void find_values(Liveness *l, Arena *a) {
    int *seen = ARENA_ARRAY(a, l->g->count, int);
    for (NodeId n = 0; n < l->g->count; n++)
        l->value_of[n] = -1;
    for (int k = 0; k < l->count; k++) {
        const Group *group = &l->group[k];
        for (int i = 0; i < group->num_inputs; i++) {
            int at = l->value_of[group->input[i]];
            if (at >= 0 && k < l->split)
                l->value[at].last_forward_use = k;
            else if (at >= 0)
                l->value[at].used_after_split = true;
        }
        for (int i = 0; i < group->num_outputs; i++) {
            NodeId n = group->output[i];
            l->value_of[n] = l->num_values;
            Value *v = &l->value[l->num_values++];
            *v = (Value){.node = n, .def = k, .last_forward_use = -1};
            v->bytes = slot_bytes(l->g, n);
            if (k < l->split)
                find_needs(l, v, group, seen, a);
        }
    }
}

// A launch of the forward pass that only the backward pass reads is there for
// that alone: if it were recomputed, it would have been computed in vain.
static void keep_late(Liveness *l, const Group *group) {
    bool early = false;
    for (int i = 0; i < group->num_outputs; i++) {
        const Value *v = &l->value[l->value_of[group->output[i]]];
        early |= v->last_forward_use >= 0 || v->result;
    }
    for (int i = 0; i < group->num_outputs; i++)
        l->value[l->value_of[group->output[i]]].recomputable &= early;
}

Liveness liveness_of(const Graph *g, Arena *a) {
    Liveness l = {.g = g, .arena = a};
    l.group = graph_groups(g, a, &l.count);
    while (l.split < l.count && !group_backward(g, &l.group[l.split]))
        l.split++;
    l.value_of = ARENA_ARRAY(a, g->count, int);
    l.value = ARENA_ARRAY(a, (size_t)g->count + 1, Value);
    find_values(&l, a);
    for (NodeId n = 0; n < g->count; n++) {
        int at = g->node[n].op == OP_output
                     ? l.value_of[node_base(g, g->node[n].arg[0])]
                     : -1;
        if (at >= 0) {
            l.value[at].used_after_split = l.value[at].result = true;
            l.value[at].recomputable = false;
        }
    }
    for (int k = 0; k < l.split; k++)
        keep_late(&l, &l.group[k]);
    return l;
}

// ---- simulation ----

// When a value is there, as indices of schedule entries; from -1: never.
typedef struct {
    int from, to;
} LiveRange;

typedef struct {
    const Liveness *liveness;
    const bool *dropped;
    LiveRange *first,
        *second; // of each value: as computed first, and recomputed
    int *stack;
    Simulation *simulation;
} Run;

static void read_value(Run *r, int v) {
    LiveRange *range = r->dropped[v] ? &r->second[v] : &r->first[v];
    range->to = r->simulation->num_entries;
}

static void take_turn(Run *r, int group, int value) {
    r->simulation->entry[r->simulation->num_entries++] =
        (ScheduleEntry){group, value};
}

// A value that v is made from and that is not there, or -1.
static int find_missing(const Run *r, int v) {
    const Value *value = &r->liveness->value[v];
    for (int i = 0; i < value->num_operands; i++) {
        int need = value->operand[i];
        if (r->dropped[need] && r->second[need].from < 0)
            return need;
    }
    return -1;
}

static void recompute(Run *r, int wanted) {
    int height = 0;
    r->stack[height++] = wanted;
    while (height > 0) {
        int v = r->stack[height - 1], missing = find_missing(r, v);
        if (missing >= 0) {
            r->stack[height++] = missing;
            continue;
        }
        const Value *value = &r->liveness->value[v];
        for (int i = 0; i < value->num_operands; i++)
            read_value(r, value->operand[i]);
        r->second[v].from = r->second[v].to = r->simulation->num_entries;
        r->simulation->cost += value->cost;
        take_turn(r, -1, v);
        height--;
    }
}

// Up to the split nothing is recomputed, so that all simulations are the same.
static void launch_forward(Run *r) {
    const Liveness *l = r->liveness;
    for (int k = 0; k < l->split; k++)
        take_turn(r, k, -1);
    for (int v = 0; v < l->num_values; v++) {
        const Value *value = &l->value[v];
        bool early = value->def < l->split, read = value->last_forward_use >= 0;
        r->first[v].from = early ? value->def : -1;
        r->first[v].to =
            early && read ? value->last_forward_use : r->first[v].from;
        r->second[v].from = -1;
    }
}

static void launch(Run *r, int k) {
    const Liveness *l = r->liveness;
    const Group *group = &l->group[k];
    for (int i = 0; i < group->num_inputs; i++) {
        int v = l->value_of[group->input[i]];
        if (v >= 0 && r->dropped[v] && r->second[v].from < 0)
            recompute(r, v);
    }
    for (int i = 0; i < group->num_inputs; i++)
        if (l->value_of[group->input[i]] >= 0)
            read_value(r, l->value_of[group->input[i]]);
    for (int i = 0; i < group->num_outputs; i++) {
        LiveRange *range = &r->first[l->value_of[group->output[i]]];
        range->from = range->to = r->simulation->num_entries;
    }
    take_turn(r, k, -1);
}

static void keep_results(Run *r) {
    for (int v = 0; v < r->liveness->num_values; v++)
        if (r->liveness->value[v].result)
            r->first[v].to = r->simulation->num_entries;
}

static int64_t find_peak(const Run *r, Arena *a) {
    int entries = r->simulation->num_entries;
    int64_t *change = ARENA_ARRAY(a, (size_t)entries + 2, int64_t);
    for (int v = 0; v < r->liveness->num_values; v++)
        for (int i = 0; i < 2; i++) {
            LiveRange range = i ? r->second[v] : r->first[v];
            if (range.from < 0)
                continue;
            change[range.from] += r->liveness->value[v].bytes;
            change[range.to + 1] -= r->liveness->value[v].bytes;
        }
    int64_t live = 0, peak = 0;
    for (int i = 0; i <= entries; i++) {
        live += change[i];
        peak = live > peak ? live : peak;
    }
    return peak;
}

Simulation liveness_simulate(const Liveness *l, const bool *dropped, Arena *a) {
    Simulation simulation = {0};
    size_t count = (size_t)l->num_values + 1;
    simulation.entry = ARENA_ARRAY(a, (size_t)l->count + count, ScheduleEntry);
    Run r = {.liveness = l,
             .dropped = dropped,
             .first = ARENA_ARRAY(a, count, LiveRange),
             .second = ARENA_ARRAY(a, count, LiveRange),
             .stack = ARENA_ARRAY(a, count, int),
             .simulation = &simulation};
    launch_forward(&r);
    for (int k = l->split; k < l->count; k++)
        launch(&r, k);
    keep_results(&r);
    simulation.peak = find_peak(&r, a);
    return simulation;
}
