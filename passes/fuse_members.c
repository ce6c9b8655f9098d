// The nodes that a kernel computes: its roots and the nodes between them and
// its inputs.  It also recomputes an input that is in memory for a library but
// follows element by element from its other inputs or its own values, as
// relu(x) in the gradient of a batch_norm of x.

#include "passes/fuse.h"

#include <stdlib.h>
#include <string.h>

// The kernel that is looked at, and for each node the last one of which
// something is known.
typedef struct {
    const FuseAnalysis *f;
    const Stored *s;
    const Clusters *c;
    int k;
    Members *own;
    int *again;  // it computes a value in memory once more
    int *reader; // it reads it from memory or computes it
    int *mark;   // the list of members that it is in, two for each kernel
    NodeId *stack;
} Reading;

// ---- between roots and inputs ----

static int by_number(const void *a, const void *b) {
    NodeId x = *(const NodeId *)a, y = *(const NodeId *)b;
    return (x > y) - (x < y);
}

// Whether the kernel reads a value from memory.  A view of its own value is
// computed too: the update may read, as a scalar, the one element of a vector
// that it stores.
static bool is_read(const Reading *r, NodeId n) {
    if (!in_memory(r->f, r->s, n) || r->again[n] == r->k)
        return false;
    NodeId base = memory_base(r->f, r->s, n);
    return base == n || r->c->of[base] != r->k;
}

// Lists the nodes that the kernel computes, in the order of the old graph.
static void list_members(Reading *r, int list, Arena *a) {
    const FuseAnalysis *f = r->f;
    const Cluster *c = &r->c->cluster[r->k];
    int height = 0, done = 0;
    for (int i = 0; i < c->num_roots; i++) {
        r->mark[c->root[i]] = list;
        r->stack[height++] = c->root[i];
    }
    while (done < height) {
        const Node *d = at(f, r->stack[done++]);
        for (int i = 0; i < d->num_args; i++) {
            NodeId arg = d->arg[i];
            if (r->mark[arg] == list || is_leaf(f, arg) || is_read(r, arg))
                continue;
            r->mark[arg] = list;
            r->stack[height++] = arg;
        }
    }
    qsort(r->stack, (size_t)height, sizeof *r->stack, by_number);
    r->own->node = ARENA_ARRAY(a, (size_t)height, NodeId);
    memcpy(r->own->node, r->stack, (size_t)height * sizeof *r->stack);
    r->own->count = height;
}

// ---- once more ----

enum { FEW = 32 }; // operations that are looked at for one value

// Whether the kernel computes operand arg of n anyway, and of the same
// elements.
static bool is_computed(const Reading *r, NodeId n, NodeId arg) {
    return r->reader[arg] == r->k && !in_memory(r->f, r->s, arg) &&
           type_has_shape(at(r->f, n)->type, at(r->f, arg)->type);
}

// Whether the kernel has all that n is computed from.  A value for each column
// costs no more than reading it.
static bool has_operands(const Reading *r, NodeId n, int *budget) {
    const FuseAnalysis *f = r->f;
    for (int i = 0; i < info(f, n)->num_args; i++) {
        NodeId arg = info(f, n)->arg[i];
        if (info(f, arg)->immediate || r->c->of[arg] == r->k ||
            r->again[arg] == r->k || is_computed(r, n, arg))
            continue;
        if (in_memory(f, r->s, arg)) {
            NodeId base = memory_base(f, r->s, arg);
            if (r->reader[base] != r->k && !is_small(f, base))
                return false;
            continue;
        }
        bool cheap = (traits(f, arg) & POINTWISE) &&
                     (is_small(f, arg) || !(traits(f, arg) & COSTLY));
        if (!cheap || --*budget < 0 || !has_operands(r, arg, budget))
            return false;
    }
    return true;
}

static bool is_worth(const Reading *r, NodeId n) {
    const FuseAnalysis *f = r->f;
    int budget = FEW;
    return r->s->must_store[n] && !r->s->unfused[n] &&
           (traits(f, n) & POINTWISE) && !(traits(f, n) & COSTLY) &&
           !is_small(f, n) && has_operands(r, n, &budget);
}

// Whether every node of the kernel that uses n, directly or through a view,
// reads it at its own index.
static bool stays_in_place(const Reading *r, NodeId n) {
    for (int i = 0; i < r->own->count; i++) {
        const NodeInfo *d = info(r->f, r->own->node[i]);
        for (int j = 0; j < d->num_args; j++)
            if (memory_base(r->f, r->s, d->arg[j]) == n &&
                !(d->traits & (POINTWISE | REDUCES)))
                return false;
    }
    return true;
}

// Marks a value in memory as computed, and its views with it.
static void compute_again(Reading *r, NodeId n) {
    const FuseAnalysis *f = r->f;
    for (; (traits(f, n) & VIEW) && in_memory(f, r->s, n);
         n = info(f, n)->arg[0])
        r->again[n] = r->k;
    r->again[n] = r->k;
}

// Finds inputs that the kernel can recompute from its other inputs or values,
// in the order of the graph, so that it also finds those that follow from a
// recomputed value.  False if there are none.
static bool find_again(Reading *r) {
    const FuseAnalysis *f = r->f;
    GroupKind kind = r->c->cluster[r->k].kind;
    bool any = false;
    if (kind != GROUP_GRID && kind != GROUP_ROWS)
        return false;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < r->own->count; i++) {
            const Node *d = at(f, r->own->node[i]);
            r->reader[r->own->node[i]] = r->k;
            for (int j = 0; j < d->num_args; j++) {
                NodeId arg = d->arg[j];
                if (!in_memory(f, r->s, arg))
                    continue;
                NodeId base = memory_base(f, r->s, arg);
                r->reader[base] = r->k;
                if (pass == 0 || r->c->of[base] == r->k ||
                    r->again[arg] == r->k || !is_worth(r, base) ||
                    !stays_in_place(r, base))
                    continue;
                compute_again(r, arg);
                any = true;
            }
        }
    return any;
}

const Members *find_members(const FuseAnalysis *f, const Stored *s,
                            const Clusters *c, Arena *a) {
    NodeId count = f->old->count;
    Members *members = ARENA_ARRAY(a, (size_t)c->count + 1, Members);
    Reading r = {.f = f,
                 .s = s,
                 .c = c,
                 .again = ARENA_ARRAY(a, count, int),
                 .reader = ARENA_ARRAY(a, count, int),
                 .mark = ARENA_ARRAY(a, count, int),
                 .stack = ARENA_ARRAY(a, (size_t)count + 1, NodeId)};
    for (NodeId n = 0; n < count; n++)
        r.mark[n] = r.reader[n] = r.again[n] = NONE;
    for (int k = 0; k < c->count; k++) {
        r.k = k;
        r.own = &members[k];
        list_members(&r, 2 * k, a);
        if (find_again(&r))
            list_members(&r, 2 * k + 1, a);
    }
    return members;
}
