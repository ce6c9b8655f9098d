// Which reductions the launch of all updates computes, in a phase before the
// one that assigns.
//
// They are numbers that nothing but assignments needs: whether gradients are
// finite, and norms.  A sum over what the update reads anyway is made there;
// any other is better made by a kernel that has its operand at hand.

#include "passes/fuse.h"

bool fits_update(const Fuse *f, NodeId n) {
    if (!(facts(f, n) & (POINTWISE | VIEW)))
        return false;
    for (int i = 0; i < at(f, n)->num_args; i++) {
        int64_t count = count_of(f, at(f, n)->arg[i]);
        if (count != count_of(f, n) && count != 1)
            return false;
    }
    return true;
}

static bool is_candidate(const Fuse *f, NodeId n) {
    const Node *d = at(f, n);
    if (facts(f, n) & OVERALL)
        return true;
    return d->op == OP_sum && d->type.dtype == F32 &&
           reduce_extent(f->old, n) == OVER_ALL && count_of(f, d->arg[0]) > 1;
}

bool *find_scattered(const Fuse *f) {
    bool *otherwise = ARENA_ARRAY(f->scratch, f->old->count, bool);
    for (NodeId n = 0; n < f->old->count; n++)
        for (int i = 0; i < at(f, n)->num_args; i++)
            otherwise[at(f, n)->arg[i]] |= at(f, n)->op != OP_assign;
    for (NodeId n = 0; n < f->old->count; n++)
        otherwise[n] = at(f, n)->op == OP_pad && !otherwise[n];
    return otherwise;
}

// Whether something other than assignments and numbers for them needs a node,
// as every value in memory does.
static bool *find_needed(const Fuse *f) {
    bool *needed = ARENA_ARRAY(f->scratch, f->old->count, bool);
    for (NodeId n = f->old->count; n-- > 0;) {
        const Node *d = at(f, n);
        bool passes = d->op == OP_assign || fits_update(f, n) ||
                      is_candidate(f, n) || f->scattered[n];
        bool needs = !passes || needed[n] || (f->stored[n] && !is_leaf(f, n));
        for (int i = 0; i < d->num_args; i++)
            needed[d->arg[i]] |= needs;
    }
    return needed;
}

// Nodes that assignments are computed from, element by element.
static bool *find_touched(const Fuse *f) {
    bool *touched = ARENA_ARRAY(f->scratch, f->old->count, bool);
    for (NodeId n = f->old->count; n-- > 0;) {
        const Node *d = at(f, n);
        bool begins = d->op == OP_assign;
        for (int i = 0; i < d->num_args; i++)
            touched[d->arg[i]] |= begins || (touched[n] && fits_update(f, n));
    }
    return touched;
}

// Whether computing a node reads no tensor that assignments do not read.
static bool *find_covered(const Fuse *f) {
    bool *covered = find_touched(f);
    for (NodeId n = 0; n < f->old->count; n++) {
        const Node *d = at(f, n);
        bool all = d->num_args > 0 && fits_update(f, n);
        for (int i = 0; i < d->num_args; i++)
            all &= covered[d->arg[i]];
        covered[n] |= all || count_of(f, n) == 1 || node_immediate(d);
    }
    return covered;
}

bool *find_joined(const Fuse *f) {
    bool *joined = ARENA_ARRAY(f->scratch, f->old->count, bool);
    bool any = false;
    for (NodeId n = 0; n < f->old->count; n++)
        any |= at(f, n)->op == OP_assign;
    if (!any || f->options->level == 0)
        return joined;
    bool *needed = find_needed(f), *covered = find_covered(f);
    for (NodeId n = 0; n < f->old->count; n++)
        joined[n] = is_candidate(f, n) && !needed[n] &&
                    ((facts(f, n) & OVERALL) || covered[at(f, n)->arg[0]]);
    return joined;
}

NodeId find_left(const Fuse *f) {
    bool *needed = find_needed(f);
    for (NodeId n = 0; n < f->old->count; n++)
        if (f->joined[n] && (needed[n] || f->apart[n]))
            return n;
    return NO_NODE;
}
