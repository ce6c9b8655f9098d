// What a kernel computes once more although it is in memory for a library: a
// value that follows element by element from what the kernel reads or computes
// anyway, as relu(x) in the gradient of a batch_norm of x.

#include "passes/fuse.h"

enum { FEW = 32 }; // operations that are looked at for one value

// The kernel that is looked at, and for each node the last kernel that reads it
// from memory or computes it.
typedef struct {
    Fuse *f;
    int k;
    int *reader;
} Reading;

// Whether the kernel computes operand arg of n anyway, and of the same places.
static bool is_computed(const Reading *r, NodeId n, NodeId arg) {
    const Fuse *f = r->f;
    return r->reader[arg] == r->k && !in_memory(f, arg) &&
           type_has_shape(at(f, n)->type, at(f, arg)->type);
}

// Whether the kernel has all that n is computed from.  A value for each column
// costs no more than reading it.
static bool has_operands(const Reading *r, NodeId n, int *budget) {
    const Fuse *f = r->f;
    for (int i = 0; i < brief(f, n)->num_args; i++) {
        NodeId arg = brief(f, n)->arg[i];
        if (brief(f, arg)->immediate || f->cluster[arg] == r->k ||
            f->again[arg] == r->k || is_computed(r, n, arg))
            continue;
        if (in_memory(f, arg)) {
            NodeId base = memory_base(f, arg);
            if (r->reader[base] != r->k && !is_small(f, base))
                return false;
            continue;
        }
        bool cheap = (facts(f, arg) & POINTWISE) &&
                     (is_small(f, arg) || !(facts(f, arg) & COSTLY));
        if (!cheap || --*budget < 0 || !has_operands(r, arg, budget))
            return false;
    }
    return true;
}

static bool is_worth(const Reading *r, NodeId n) {
    const Fuse *f = r->f;
    int budget = FEW;
    return f->called[n] && !f->apart[n] && (facts(f, n) & POINTWISE) &&
           !(facts(f, n) & COSTLY) && !is_small(f, n) &&
           has_operands(r, n, &budget);
}

// Whether all of the kernel that uses n, also under another shape, wants the
// same elements as of the rest.
static bool stays_in_place(const Fuse *f, const Cluster *c, NodeId n) {
    for (int i = 0; i < c->num_members; i++) {
        const Brief *d = brief(f, c->member[i]);
        for (int j = 0; j < d->num_args; j++)
            if (memory_base(f, d->arg[j]) == n &&
                !(d->facts & (POINTWISE | REDUCES)))
                return false;
    }
    return true;
}

// What is in memory as n is computed by kernel k, and its views with it.
static void compute_again(Fuse *f, NodeId n, int k) {
    for (; (facts(f, n) & VIEW) && in_memory(f, n); n = brief(f, n)->arg[0])
        f->again[n] = k;
    f->again[n] = k;
}

static bool walks_elements(const Cluster *c) {
    return c->kind == GROUP_GRID || c->kind == GROUP_ROWS;
}

// In the order of the graph, so that what follows from a value that is
// computed again is found too.
bool find_again(Fuse *f, int k, int *reader) {
    Reading r = {f, k, reader};
    const Cluster *c = &f->clusters[k];
    bool any = false;
    if (!walks_elements(c))
        return false;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < c->num_members; i++) {
            const Node *d = at(f, c->member[i]);
            reader[c->member[i]] = k;
            for (int j = 0; j < d->num_args; j++) {
                NodeId arg = d->arg[j];
                if (!in_memory(f, arg))
                    continue;
                NodeId base = memory_base(f, arg);
                reader[base] = k;
                if (pass == 0 || f->cluster[base] == k || f->again[arg] == k ||
                    !is_worth(&r, base) || !stays_in_place(f, c, base))
                    continue;
                compute_again(f, arg, k);
                any = true;
            }
        }
    return any;
}
