// Finds the values that cost more to recompute than to store, in bytes read and
// written.

#include "passes/fuse.h"

#include <math.h>
#include <stdlib.h>

enum {
    MANY = 4, // clusters that are counted as makers of a node
    NEAR = 64 // nodes and inputs that are looked at below one
};

typedef struct {
    int count; // clusters that compute the node, up to MANY
    int cluster[MANY];
} Makers;

static bool is_maker(const Makers *m, int cluster) {
    for (int i = 0; i < m->count; i++)
        if (m->cluster[i] == cluster)
            return true;
    return false;
}

static void maker_add(Makers *m, int cluster) {
    if (!is_maker(m, cluster) && m->count < MANY)
        m->cluster[m->count++] = cluster;
}

// The inputs of a node's computation: the inline nodes below it and the stored
// tensors that those read.
typedef struct {
    NodeId inner[NEAR], input[NEAR];
    int num_inner, num_inputs;
} Tree;

static int users_first(const void *a, const void *b) {
    NodeId x = *(const NodeId *)a, y = *(const NodeId *)b;
    return (x < y) - (x > y);
}

static bool contains(const NodeId *list, int count, NodeId n) {
    for (int i = 0; i < count; i++)
        if (list[i] == n)
            return true;
    return false;
}

// A slice that kernels read where it is counts as a tensor of its own.
static bool is_slice_in_memory(const FuseAnalysis *f, const Stored *s,
                               NodeId n) {
    return slice_takes_index(f->old, n) && in_memory(f, s, at(f, n)->arg[0]);
}

// False when the tree is larger than is looked at.
static bool find_tree(const FuseAnalysis *f, const Stored *s, NodeId n,
                      Tree *t) {
    t->inner[0] = n;
    t->num_inner = 1;
    t->num_inputs = 0;
    for (int done = 0; done < t->num_inner; done++) {
        const NodeInfo *d = info(f, t->inner[done]);
        for (int i = 0; i < d->num_args; i++) {
            NodeId arg = d->arg[i];
            if (info(f, arg)->immediate || is_small(f, arg))
                continue;
            bool stored = s->stored[arg] || is_leaf(f, arg) ||
                          is_slice_in_memory(f, s, arg);
            NodeId *list = stored ? t->input : t->inner;
            int *count = stored ? &t->num_inputs : &t->num_inner;
            if (contains(list, *count, arg))
                continue;
            if (*count == NEAR)
                return false;
            list[(*count)++] = arg;
        }
    }
    return true;
}

// Whether a parameter or a state of n's shape goes into it: then it updates
// one.
static bool follows_state(const FuseAnalysis *f, NodeId n, const Tree *t) {
    for (int i = 0; i < t->num_inputs; i++) {
        Op op = info(f, t->input[i])->op;
        if ((op == OP_param || op == OP_state) && same_shape(f, t->input[i], n))
            return true;
    }
    return false;
}

// Whether n follows element by element from activations, and so loses no more
// than they have when it is stored as one.
static bool can_narrow(const FuseAnalysis *f, const Stored *s, NodeId n) {
    Tree tree;
    if (f->old->act == F32 || !f->batched[n] || f->in_rows[n] ||
        at(f, n)->type->dtype != F32 || at(f, n)->from.full_precision ||
        s->row[n] != NO_NODE || s->must_store[n] ||
        !(traits(f, n) & POINTWISE) || !find_tree(f, s, n, &tree) ||
        follows_state(f, n, &tree))
        return false;
    for (int i = 0; i < tree.num_inputs; i++)
        if (at(f, tree.input[i])->type->dtype == ACT ||
            s->stored_as_act[tree.input[i]])
            return true;
    return false;
}

// Bytes that n takes in memory.
static int64_t bytes_of(const FuseAnalysis *f, NodeId n, bool narrow) {
    Type t = *at(f, n)->type;
    if (narrow)
        t.dtype = ACT;
    return graph_bytes(f->old, &t);
}

// Whether n is 1 or -1.
static bool is_sign(const FuseAnalysis *f, NodeId n) {
    double value[2] = {0};
    const Node *d = at(f, n);
    return d->op == OP_select && node_number(at(f, d->arg[1]), &value[0]) &&
           node_number(at(f, d->arg[2]), &value[1]) && fabs(value[0]) == 1 &&
           fabs(value[1]) == 1;
}

// Whether n has the largest elements of windows, but for their signs.
static bool is_pooled(const FuseAnalysis *f, NodeId n) {
    for (;;) {
        const Node *d = at(f, n);
        if (d->op == OP_cast || (d->op == OP_mul && is_sign(f, d->arg[1])))
            n = d->arg[0];
        else if (d->op == OP_mul && is_sign(f, d->arg[0]))
            n = d->arg[1];
        else
            return d->op == OP_max_pool;
    }
}

// Whether n follows from such elements, which are not in memory, and values for
// each column.  Then they are stored and not n: activations are not rounded so,
// and the kernel that stores them finds their indices, too.
static bool follows_pool(const FuseAnalysis *f, const Stored *s, NodeId n) {
    NodeId operand = NO_NODE;
    for (int i = 0; i < info(f, n)->num_args; i++) {
        NodeId arg = info(f, n)->arg[i];
        if (is_small(f, arg))
            continue;
        if (operand != NO_NODE || !same_shape(f, arg, n))
            return false;
        operand = arg;
    }
    return (traits(f, n) & POINTWISE) && operand != NO_NODE &&
           !is_pooled(f, n) && is_pooled(f, operand) &&
           !in_memory(f, s, operand) &&
           bytes_of(f, operand, can_narrow(f, s, operand)) <=
               bytes_of(f, n, can_narrow(f, s, n));
}

// Whether cluster k needs node m of the tree for something that is not in the
// tree, or for a part of it that it needs anyway.
static bool needed_anyway(const FuseAnalysis *f, const Makers *makers,
                          const Tree *t, const bool *anyway, NodeId m, int k) {
    const Users *users = &f->users;
    for (int i = users->first[m]; i != NONE; i = users->next[i]) {
        NodeId user = users->user[i];
        bool inner = false;
        for (int j = 0; j < t->num_inner && !inner; j++)
            if (t->inner[j] == user) {
                inner = true;
                if (anyway[j])
                    return true;
            }
        if (!inner && is_maker(&makers[user], k))
            return true;
    }
    return false;
}

// Bytes of the tree's inputs that cluster k would not read without it.
static int64_t bytes_more(const FuseAnalysis *f, const Stored *s,
                          const Makers *makers, const Tree *t, int k) {
    bool anyway[NEAR] = {false};
    int64_t bytes = 0;
    for (int j = 1; j < t->num_inner; j++) // 0 is the root
        anyway[j] = needed_anyway(f, makers, t, anyway, t->inner[j], k);
    for (int i = 0; i < t->num_inputs; i++)
        if (!needed_anyway(f, makers, t, anyway, t->input[i], k))
            bytes += bytes_of(f, t->input[i], s->stored_as_act[t->input[i]]);
    return bytes;
}

// Recomputing a value reads its inputs in each cluster that needs it and does
// not read them anyway.  Storing it reads them once, writes the value, and
// reads that in each.
static bool costs_less_stored(const FuseAnalysis *f, const Stored *s,
                              const Makers *makers, NodeId n) {
    Tree tree;
    const Makers *own = &makers[n];
    int64_t all = 0, least = INT64_MAX;
    if (!find_tree(f, s, n, &tree))
        return true;
    qsort(tree.inner, (size_t)tree.num_inner, sizeof tree.inner[0],
          users_first);
    for (int j = 0; j < own->count; j++) {
        int64_t bytes = bytes_more(f, s, makers, &tree, own->cluster[j]);
        all += bytes;
        least = bytes < least ? bytes : least;
    }
    int64_t value = bytes_of(f, n, can_narrow(f, s, n));
    return all - least > (own->count + 1) * value;
}

// Which nodes would cost less stored than computed by each of their users.
static bool *find_cheaper_stored(const FuseAnalysis *f, const Stored *s,
                                 const Clusters *c, Arena *a) {
    const Graph *g = f->old;
    Makers *makers = ARENA_ARRAY(a, g->count, Makers);
    bool *cheaper = ARENA_ARRAY(a, g->count, bool);
    for (NodeId n = g->count; n-- > 0;) {
        Makers *own = &makers[n];
        if (c->of[n] != NONE)
            *own = (Makers){1, {c->of[n]}};
        if (is_inline(f, n) && !s->stored[n] && own->count > 1 &&
            !(traits(f, n) & VIEW) && !is_small(f, n) &&
            !is_slice_in_memory(f, s, n) && !follows_pool(f, s, n) &&
            costs_less_stored(f, s, makers, n)) {
            cheaper[n] = true;
            *own = (Makers){1, {c->count + (int)n}}; // a cluster to come
        }
        for (int i = 0; i < info(f, n)->num_args; i++) {
            NodeId arg = info(f, n)->arg[i];
            if (c->of[arg] != NONE || is_leaf(f, arg))
                continue; // has its own, or is not computed
            for (int j = 0; j < own->count; j++)
                maker_add(&makers[arg], own->cluster[j]);
        }
    }
    return cheaper;
}

// For each node how many of them lie one below the other under it, and the
// most.
static int *count_cheaper_stored(const FuseAnalysis *f, const Stored *s,
                                 const bool *cheaper, Arena *a, int *most) {
    int *below = ARENA_ARRAY(a, f->old->count, int);
    *most = 0;
    for (NodeId n = 0; n < f->old->count; n++) {
        for (int i = 0; i < info(f, n)->num_args && is_inline(f, n); i++) {
            NodeId arg = info(f, n)->arg[i];
            int count = below[arg] + cheaper[arg];
            if ((cheaper[arg] || !s->stored[arg]) && count > below[n])
                below[n] = count;
        }
        *most = below[n] > *most ? below[n] : *most;
    }
    return below;
}

// With some of them stored the rest may be cheap.  A long chain is that of a
// loop over positions, whose kernels are equal if all are stored.
void store_by_traffic(const FuseAnalysis *f, Stored *s, const Clusters *c,
                      int every) {
    enum { LONG_CHAIN = 32 };
    Arena *a = arena_new();
    const bool *cheaper = find_cheaper_stored(f, s, c, a);
    int most;
    const int *below = count_cheaper_stored(f, s, cheaper, a, &most);
    every = most >= LONG_CHAIN ? 1 : every;
    for (NodeId n = 0; n < f->old->count; n++) {
        if (cheaper[n] && below[n] % every == 0) {
            store(f, s, n, REASON_traffic);
            s->stored_as_act[n] = can_narrow(f, s, n);
        }
    }
    arena_free(a);
}
