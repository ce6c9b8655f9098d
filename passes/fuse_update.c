// Finds the reductions that a multi-tensor kernel computes, in a phase before
// the one that assigns or stacks.
//
// They are numbers that nothing else needs: whether gradients are finite, and
// norms.  The kernel computes a sum over tensors that it reads anyway; for any
// other a kernel that has its operand at hand is better.

#include "passes/fuse.h"

static bool is_candidate(const FuseAnalysis *f, NodeId n) {
    const NodeInfo *d = info(f, n);
    if (d->traits & REDUCES_ALL)
        return true;
    return d->op == OP_sum && d->reduction == FULL_REDUCTION &&
           at(f, n)->type->dtype == F32 && count_of(f, d->arg[0]) > 1;
}

// The kernel that alone needs each node: a stack, or that of the update, which
// is numbered as a node more than there are.  NO_NODE is none; a value in
// memory is needed by many.
static NodeId *find_users(const FuseAnalysis *f, const Stored *s, Arena *a) {
    NodeId update = f->old->count, many = f->old->count + 1;
    NodeId *user = graph_map_new(f->old, a);
    for (NodeId n = f->old->count; n-- > 0;) {
        const NodeInfo *d = info(f, n);
        bool stored = s->stored[n] && !is_leaf(f, n);
        bool passes =
            f->elementwise[n] || is_candidate(f, n) || f->padded_store[n];
        if (d->op == OP_output && !is_candidate(f, base_of(f, d->arg[0])))
            continue; // it is read when all is done
        NodeId own = d->op == OP_assign        ? update
                     : (traits(f, n) & STACKS) ? n
                     : !passes || stored       ? many
                                               : user[n];
        for (int i = 0; i < d->num_args; i++) {
            NodeId *of = &user[d->arg[i]];
            *of = *of == NO_NODE || *of == own ? own
                  : own == NO_NODE             ? *of
                                               : many;
        }
    }
    return user;
}

static bool has_one_user(const FuseAnalysis *f, const NodeId *user, NodeId n) {
    return user[n] != NO_NODE && user[n] <= f->old->count;
}

// Nodes that assignments and stacks are computed from, element by element.
static bool *find_touched(const FuseAnalysis *f, Arena *a) {
    bool *touched = ARENA_ARRAY(a, f->old->count, bool);
    for (NodeId n = f->old->count; n-- > 0;) {
        const NodeInfo *d = info(f, n);
        bool begins = d->op == OP_assign || (traits(f, n) & STACKS);
        for (int i = 0; i < d->num_args; i++)
            touched[d->arg[i]] |= begins || (touched[n] && f->elementwise[n]);
    }
    return touched;
}

// Whether computing a node reads no tensor that they do not read.
static bool *find_covered(const FuseAnalysis *f, Arena *a) {
    bool *covered = find_touched(f, a);
    for (NodeId n = 0; n < f->old->count; n++) {
        const NodeInfo *d = info(f, n);
        bool all = d->num_args > 0 && f->elementwise[n];
        for (int i = 0; i < d->num_args; i++)
            all &= covered[d->arg[i]];
        covered[n] |= all || count_of(f, n) == 1 || d->immediate;
    }
    return covered;
}

void find_written_by_update(const FuseAnalysis *f, Stored *s,
                            const NodeId *user) {
    bool any = false;
    for (NodeId n = 0; n < f->old->count; n++) {
        any |= info(f, n)->op == OP_assign;
        s->written_by_update[n] = false;
    }
    for (NodeId n = 0; n < f->old->count; n++) {
        if (!any || f->options->level == 0 || info(f, n)->op != OP_output)
            continue;
        NodeId arg = info(f, n)->arg[0];
        s->written_by_update[arg] =
            (traits(f, arg) & POINTWISE) && f->elementwise[arg] &&
            count_of(f, arg) == 1 &&
            (user[arg] == NO_NODE || user[arg] == f->old->count);
    }
}

void find_updated(const FuseAnalysis *f, Stored *s, Arena *a) {
    const NodeId *user = find_users(f, s, a);
    const bool *covered = find_covered(f, a);
    for (NodeId n = 0; n < f->old->count && f->options->level > 0; n++)
        s->in_update[n] =
            is_candidate(f, n) && has_one_user(f, user, n) &&
            ((traits(f, n) & REDUCES_ALL) || covered[info(f, n)->arg[0]]);
    find_written_by_update(f, s, user);
}

// One of them that a value in memory needs as well by now, or that shares no
// kernel, or NO_NODE.
static NodeId find_left(const FuseAnalysis *f, const Stored *s,
                        const NodeId *user) {
    for (NodeId n = 0; n < f->old->count; n++)
        if (s->in_update[n] && (!has_one_user(f, user, n) || s->unfused[n]))
            return n;
    return NO_NODE;
}

// A pad directly below an assignment is a store to other addresses.
void store_for_update(const FuseAnalysis *f, Stored *s, Arena *a) {
    bool *updating = ARENA_ARRAY(a, f->old->count, bool);
    for (NodeId n = f->old->count; n-- > 0;) {
        const NodeInfo *d = info(f, n);
        if (d->op == OP_assign) {
            NodeId value = d->arg[1];
            if (f->padded_store[value] && !s->stored[value])
                value = info(f, value)->arg[0];
            updating[value] = true;
        }
        bool walks =
            s->in_update[n] || update_writes(s, n) || (traits(f, n) & STACKS);
        for (int i = 0; i < d->num_args && walks; i++)
            updating[d->arg[i]] = true;
        if (!updating[n] || !is_inline(f, n) || s->stored[n])
            continue;
        if (!f->elementwise[n])
            store(f, s, n, REASON_update);
        else
            for (int i = 0; i < d->num_args; i++)
                updating[d->arg[i]] = true;
    }
}

NodeId *leave_update(const FuseAnalysis *f, Stored *s, Arena *a) {
    for (;;) {
        NodeId *user = find_users(f, s, a), n = find_left(f, s, user);
        if (n == NO_NODE)
            return user;
        s->in_update[n] = false;
        store(f, s, n, REASON_none);
        for (int i = 0; i < info(f, n)->num_args; i++)
            if (traits(f, n) & REDUCES_ALL)
                store(f, s, info(f, n)->arg[i], REASON_none);
    }
}
