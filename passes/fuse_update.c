// Which reductions a kernel over parts computes, in a phase before the one that
// assigns or stacks.
//
// They are numbers that nothing else needs: whether gradients are finite, and
// norms.  A sum over what the kernel reads anyway is made there; any other is
// better made by a kernel that has its operand at hand.

#include "passes/fuse.h"

// A piece of what a library left is read where it lies.
static bool is_piece(const Fuse *f, NodeId n) {
    if (brief(f, n)->op != OP_slice)
        return false;
    return (facts(f, base_of(f, brief(f, n)->arg[0])) & CALLS) &&
           count_of(f, n) > 1;
}

static bool is_in_place(const Fuse *f, NodeId n) {
    if (is_piece(f, n))
        return true;
    if (!(facts(f, n) & (POINTWISE | VIEW)))
        return false;
    for (int i = 0; i < brief(f, n)->num_args; i++) {
        int64_t count = count_of(f, brief(f, n)->arg[i]);
        if (count != count_of(f, n) && count != 1)
            return false;
    }
    return true;
}

bool *find_fits(const Fuse *f) {
    bool *fits = ARENA_ARRAY(f->scratch, f->old->count, bool);
    for (NodeId n = 0; n < f->old->count; n++)
        fits[n] = is_in_place(f, n);
    return fits;
}

static bool is_candidate(const Fuse *f, NodeId n) {
    const Brief *d = brief(f, n);
    if (d->facts & OVERALL)
        return true;
    return d->op == OP_sum && d->extent == OVER_ALL &&
           at(f, n)->type->dtype == F32 && count_of(f, d->arg[0]) > 1;
}

// Whether n assigns a derived state.  Nothing in the update reads one, and what
// a pad leaves out stays as it began, 0.
static bool assigns_derived(const Fuse *f, NodeId n) {
    return brief(f, n)->op == OP_assign &&
           state_is(at(f, brief(f, n)->arg[0]), STATE_DERIVED);
}

bool *find_scattered(const Fuse *f) {
    bool *otherwise = ARENA_ARRAY(f->scratch, f->old->count, bool);
    for (NodeId n = 0; n < f->old->count; n++)
        for (int i = 0; i < brief(f, n)->num_args; i++)
            otherwise[brief(f, n)->arg[i]] |= !assigns_derived(f, n);
    for (NodeId n = 0; n < f->old->count; n++)
        otherwise[n] = brief(f, n)->op == OP_pad && !otherwise[n];
    return otherwise;
}

NodeId *find_users(const Fuse *f) {
    NodeId update = f->old->count, many = f->old->count + 1;
    NodeId *user = graph_none(f->old, f->scratch);
    for (NodeId n = f->old->count; n-- > 0;) {
        const Brief *d = brief(f, n);
        bool stored = f->stored[n] && !is_leaf(f, n);
        bool passes =
            fits_update(f, n) || is_candidate(f, n) || f->scattered[n];
        if (d->op == OP_output && !is_candidate(f, base_of(f, d->arg[0])))
            continue; // it is read when all is done
        NodeId own = d->op == OP_assign       ? update
                     : (facts(f, n) & STACKS) ? n
                     : !passes || stored      ? many
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

static bool has_one_user(const Fuse *f, const NodeId *user, NodeId n) {
    return user[n] != NO_NODE && user[n] <= f->old->count;
}

// Nodes that assignments and stacks are computed from, element by element.
static bool *find_touched(const Fuse *f) {
    bool *touched = ARENA_ARRAY(f->scratch, f->old->count, bool);
    for (NodeId n = f->old->count; n-- > 0;) {
        const Brief *d = brief(f, n);
        bool begins = d->op == OP_assign || (facts(f, n) & STACKS);
        for (int i = 0; i < d->num_args; i++)
            touched[d->arg[i]] |= begins || (touched[n] && fits_update(f, n));
    }
    return touched;
}

// Whether computing a node reads no tensor that they do not read.
static bool *find_covered(const Fuse *f) {
    bool *covered = find_touched(f);
    for (NodeId n = 0; n < f->old->count; n++) {
        const Brief *d = brief(f, n);
        bool all = d->num_args > 0 && fits_update(f, n);
        for (int i = 0; i < d->num_args; i++)
            all &= covered[d->arg[i]];
        covered[n] |= all || count_of(f, n) == 1 || d->immediate;
    }
    return covered;
}

bool *find_late(const Fuse *f, const NodeId *user) {
    bool *late = ARENA_ARRAY(f->scratch, f->old->count, bool);
    bool any = false;
    for (NodeId n = 0; n < f->old->count; n++)
        any |= brief(f, n)->op == OP_assign;
    if (!any || f->options->level == 0)
        return late;
    for (NodeId n = 0; n < f->old->count; n++)
        if (brief(f, n)->op == OP_output)
            late[brief(f, n)->arg[0]] = true;
    for (NodeId n = 0; n < f->old->count; n++)
        late[n] &= (facts(f, n) & POINTWISE) && fits_update(f, n) &&
                   count_of(f, n) == 1 &&
                   (user[n] == NO_NODE || user[n] == f->old->count);
    return late;
}

bool *find_joined(const Fuse *f) {
    bool *joined = ARENA_ARRAY(f->scratch, f->old->count, bool);
    bool any = false;
    for (NodeId n = 0; n < f->old->count; n++)
        any |= is_candidate(f, n);
    if (!any || f->options->level == 0)
        return joined;
    NodeId *user = find_users(f);
    bool *covered = find_covered(f);
    for (NodeId n = 0; n < f->old->count; n++)
        joined[n] = is_candidate(f, n) && has_one_user(f, user, n) &&
                    ((facts(f, n) & OVERALL) || covered[brief(f, n)->arg[0]]);
    return joined;
}

NodeId find_left(const Fuse *f, const NodeId *user) {
    for (NodeId n = 0; n < f->old->count; n++)
        if (f->joined[n] && (!has_one_user(f, user, n) || f->apart[n]))
            return n;
    return NO_NODE;
}
