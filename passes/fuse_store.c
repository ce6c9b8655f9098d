// Finds the values that must be in memory: because of their kind or their
// readers, or because computing them in each kernel would repeat too much work.

#include "passes/fuse.h"

#include "base/round_up.h"

void store(const FuseAnalysis *f, Stored *s, NodeId n, Reason why) {
    if (info(f, base_of(f, n))->immediate) // never in memory
        return;
    while (!s->stored[n]) {
        s->stored[n] = s->changed = true;
        if (!(traits(f, n) & VIEW)) {
            s->why[n] = why;
            return;
        }
        n = info(f, n)->arg[0];
    }
}

// Reasons why an element is slow to compute again.
enum { COSTLY_FUNCTION = 1, OF_WINDOW = 2 };

// Whether a kernel that iterates over the columns of n can keep operand arg
// from row to row instead of computing it for each.
static bool is_kept(const FuseAnalysis *f, NodeId n, NodeId arg) {
    Type t = *at(f, n)->type, a = *at(f, arg)->type;
    return (traits(f, n) & POINTWISE) && a.rank > 0 && is_small(f, arg) &&
           a.dim[a.rank - 1] == t.dim[t.rank - 1];
}

// Whether an operation reads many elements for each of its own.
static bool is_window(const FuseAnalysis *f, NodeId n) {
    Op op = info(f, n)->op;
    return op == OP_max_pool || op == OP_max_pool_index || op == OP_avg_pool ||
           op == OP_resize_grad;
}

// How many elements of its operand a kernel for node n needs: a pool all of
// each window, its gradient one for each window of an element; a scattered
// value, or one in wider rows, each element once.
static int64_t demand(const FuseAnalysis *f, NodeId n) {
    const Node *d = at(f, n);
    if ((traits(f, n) & SCATTERS) || pads_columns(f->old, n))
        return count_of(f, d->arg[0]);
    int64_t count = count_of(f, n);
    bool gradient = d->op == OP_max_pool_grad || d->op == OP_avg_pool_grad;
    for (int i = 0; i < 2 && (traits(f, n) & WINDOW); i++) {
        int64_t window = node_ints(d, ATTR_window, i, 1);
        int64_t stride = gradient ? node_ints(d, ATTR_stride, i, 1) : 1;
        count *= divide_up(window, stride);
    }
    return count;
}

// The column reduction of n, also through views; NO_NODE: there is none.
static NodeId column_reduction_of(const FuseAnalysis *f, NodeId n) {
    const Users *users = &f->users;
    for (int i = users->first[n]; i != NONE; i = users->next[i]) {
        NodeId user = users->user[i];
        if (traits(f, user) & VIEW)
            user = column_reduction_of(f, user);
        if (user != NO_NODE && info(f, user)->reduction == COLUMN_REDUCTION)
            return user;
    }
    return NO_NODE;
}

// The rows of the kernel that computes node n.  A column reduction shares its
// kernel and adds rows of C elements, so [N,H,W,C] has N H W; without one, n
// has all dimensions but the last.
static int64_t rows_of(const FuseAnalysis *f, NodeId n) {
    NodeId sum = column_reduction_of(f, n);
    int64_t columns = sum != NO_NODE ? count_of(f, sum) : 0;
    return columns > 0 ? count_of(f, n) / columns : space_rows(at(f, n)->type);
}

// How often at most a kernel for node n would compute an element of its operand
// arg.
static int64_t times(const FuseAnalysis *f, NodeId n, NodeId arg) {
    int64_t count = count_of(f, arg);
    bool once = !is_inline(f, arg) || f->padded_store[n] || count <= 1 ||
                count == rows_of(f, n) || is_kept(f, n, arg);
    return once ? 1 : divide_up(demand(f, n), count);
}

// For each node, whether it is the gradient of a pool of which only one stored
// value is computed: the kernel that stores it computes each window's value
// once.
static bool *find_by_window(const FuseAnalysis *f, const Stored *s, Arena *a) {
    const Graph *g = f->old;
    uint32_t *uses = graph_uses(g, a);
    bool *by_window = ARENA_ARRAY(a, g->count, bool);
    for (NodeId n = 0; n < g->count; n++) {
        NodeId pool = s->stored[n] ? info(f, n)->pool : NO_NODE;
        if (pool == NO_NODE)
            continue;
        by_window[pool] = !s->unfused[pool];
        for (NodeId m = n; m != pool; m = info(f, m)->arg[0])
            by_window[pool] &= uses[info(f, m)->arg[0]] == 1 &&
                               !s->unfused[info(f, m)->arg[0]];
    }
    return by_window;
}

// Whether a value that takes long, or that reads much, is worth memory when
// elements of it are computed so often.  Computing one twice takes no longer
// than writing it and reading it twice.
static bool is_worth(unsigned taken, int64_t often) {
    return ((taken & COSTLY_FUNCTION) && often > 2) ||
           ((taken & OF_WINDOW) && often > 1);
}

// Among costly values that would be computed repeatedly, stores those that make
// the others cheap.
static void store_costly(const FuseAnalysis *f, Stored *s, Arena *a) {
    int64_t *often = ARENA_ARRAY(a, f->old->count, int64_t);
    unsigned *taken = ARENA_ARRAY(a, f->old->count, unsigned);
    bool *by_window = find_by_window(f, s, a);
    for (NodeId n = 0; n < f->old->count; n++) {
        int last = info(f, n)->num_args - by_window[n];
        for (int i = 0; i < last; i++) {
            NodeId arg = info(f, n)->arg[i];
            int64_t count = times(f, n, arg);
            often[arg] = count > often[arg] ? count : often[arg];
        }
    }
    for (NodeId n = 0; n < f->old->count; n++) {
        taken[n] = (traits(f, n) & COSTLY ? COSTLY_FUNCTION : 0) |
                   (is_window(f, n) ? OF_WINDOW : 0);
        for (int i = 0; i < info(f, n)->num_args; i++)
            taken[n] |= taken[info(f, n)->arg[i]];
        if (is_worth(taken[n], often[n]))
            store(f, s, n, REASON_repeated);
        if (!is_inline(f, n) || in_memory(f, s, n))
            taken[n] = 0;
    }
}

// An image from which several nodes take pixels is computed once for all of
// them: the work of resizing a resized image would double with each.
static void store_taken(const FuseAnalysis *f, Stored *s, Arena *a) {
    bool *taken = ARENA_ARRAY(a, f->old->count, bool);
    for (NodeId n = 0; n < f->old->count; n++) {
        if (info(f, n)->op != OP_take)
            continue;
        NodeId image = info(f, n)->arg[0];
        if (taken[image] && is_inline(f, image))
            store(f, s, image, REASON_repeated);
        taken[image] = true;
    }
}

// A transposed value that the whole batch shares is stored once: threads that
// take neighbours of it would read elements far apart.
static void store_turned(const FuseAnalysis *f, Stored *s) {
    for (NodeId n = 0; n < f->old->count; n++) {
        NodeId turned = at(f, n)->num_args ? at(f, n)->arg[0] : NO_NODE;
        if (at(f, n)->op == OP_slice && at(f, turned)->op == OP_transpose &&
            !f->batched[turned])
            store(f, s, turned, REASON_repeated);
    }
}

// A sequence of which a loop reads one position after another is stored, so
// that the kernels of all positions read it in place and are equal.
static void store_sliced(const FuseAnalysis *f, Stored *s, Arena *a) {
    enum { MANY = 8 };
    int *slices = ARENA_ARRAY(a, f->old->count, int);
    for (NodeId n = 0; n < f->old->count; n++) {
        if (!slice_takes_index(f->old, n))
            continue;
        NodeId sequence = at(f, n)->arg[0];
        if (++slices[sequence] == MANY && is_inline(f, sequence))
            store(f, s, sequence, REASON_sliced);
    }
}

// Expressions are written, and compiled by others, from their ends on, which
// takes memory for each operation on the way.
static void store_deep(const FuseAnalysis *f, Stored *s, Arena *a) {
    enum { DEEPEST = 500 };
    int *below = ARENA_ARRAY(a, f->old->count, int);
    for (NodeId n = 0; n < f->old->count; n++) {
        for (int i = 0; i < info(f, n)->num_args; i++) {
            NodeId arg = info(f, n)->arg[i];
            if (!in_memory(f, s, arg) && below[arg] >= below[n])
                below[n] = below[arg] + 1;
        }
        if (below[n] >= DEEPEST && is_inline(f, n))
            store(f, s, n, REASON_deep);
    }
}

// Whether users of n read one number or tensor.  A number about many tensors is
// one too: the kernel of updates, which has their chunks, may compute it.
static bool is_one_read(const FuseAnalysis *f, const Stored *s, NodeId n) {
    return in_memory(f, s, n) || !is_inline(f, n) || count_of(f, n) == 1;
}

// The findings of a walk down from a node.
typedef struct {
    NodeId *stack;
    int *seen, walk; // the last walk that came by each node
} Down;

// How many tensors in memory a kernel reads for n, each counted once.
static int count_reads(const FuseAnalysis *f, const Stored *s, Down *down,
                       NodeId n) {
    int reads = 0, height = 0;
    down->walk++;
    down->stack[height++] = n;
    while (height > 0) {
        const NodeInfo *d = info(f, down->stack[--height]);
        for (int i = 0; i < d->num_args; i++) {
            NodeId arg = d->arg[i];
            if (down->seen[arg] == down->walk || info(f, arg)->immediate)
                continue;
            down->seen[arg] = down->walk;
            if (is_one_read(f, s, arg))
                reads++;
            else
                down->stack[height++] = arg;
        }
    }
    return reads;
}

// The operand of n for which the most is read that n reads too, or NO_NODE.
static NodeId widest_operand(const FuseAnalysis *f, const Stored *s, NodeId n,
                             const int *below) {
    NodeId most = NO_NODE;
    for (int i = 0; i < info(f, n)->num_args; i++) {
        NodeId arg = info(f, n)->arg[i];
        while ((traits(f, arg) & VIEW) && !in_memory(f, s, arg))
            arg = info(f, arg)->arg[0];
        if ((traits(f, arg) & POINTWISE) && !is_one_read(f, s, arg) &&
            below[arg] > 1 && (most == NO_NODE || below[arg] > below[most]))
            most = arg;
    }
    return most;
}

// The time of a compiler grows faster than the number of a kernel's reads.  The
// bound is added up first, and exact numbers are counted only if it is too
// large.
static void store_wide(const FuseAnalysis *f, Stored *s, Arena *a) {
    enum { MAX_READS = 128 };
    int *below = ARENA_ARRAY(a, f->old->count, int);
    Down down = {ARENA_ARRAY(a, f->old->count, NodeId),
                 ARENA_ARRAY(a, f->old->count, int), 0};
    for (NodeId n = 0; n < f->old->count; n++) {
        NodeId most;
        for (int i = 0; i < info(f, n)->num_args; i++) {
            NodeId arg = info(f, n)->arg[i];
            below[n] += is_one_read(f, s, arg) ? 1 : below[arg];
        }
        if (below[n] <= MAX_READS || !(traits(f, n) & POINTWISE))
            continue;
        below[n] = count_reads(f, s, &down, n);
        if (below[n] <= MAX_READS ||
            (most = widest_operand(f, s, n, below)) == NO_NODE)
            continue;
        store(f, s, most, REASON_wide);
        below[n] = count_reads(f, s, &down, n);
    }
}

// Whether a kernel that reads n several times may compute it each time: it is
// one tensor in memory, element by element, with a value for each column.
static bool is_cheap(const FuseAnalysis *f, NodeId n) {
    while ((traits(f, n) & VIEW) ||
           ((traits(f, n) & POINTWISE) && !(traits(f, n) & COSTLY))) {
        NodeId tensor = NO_NODE;
        for (int i = 0; i < info(f, n)->num_args; i++) {
            NodeId arg = info(f, n)->arg[i];
            if (is_small(f, arg))
                continue;
            if (tensor != NO_NODE)
                return false;
            tensor = arg;
        }
        if (tensor == NO_NODE)
            return false;
        n = tensor;
    }
    return traits(f, n) & (LEAF | CALLS);
}

// Stores values because of their kind or their readers.
static void store_by_kind(const FuseAnalysis *f, Stored *s) {
    for (NodeId n = 0; n < f->old->count; n++) {
        const Node *d = at(f, n);
        bool library = (traits(f, n) & CALLS) || d->op == OP_output ||
                       ((traits(f, n) & REDUCES_ALL) && !s->in_update[n]);
        for (int i = 0; i < d->num_args && library; i++) {
            store(f, s, d->arg[i], REASON_none);
            s->must_store[memory_base(f, s, d->arg[i])] = true;
        }
        for (int i = 0; i < d->num_args && (traits(f, n) & ATTENDS); i++)
            if (!is_small(f, d->arg[i]) && !is_cheap(f, d->arg[i]))
                store(f, s, d->arg[i], REASON_attended);
        if (!(traits(f, n) & EFFECT) && !is_inline(f, n) && !s->in_update[n])
            store(f, s, n, REASON_none);
        if (f->fusible[n] == FUSE_NO_REDUCTION) {
            s->stored[n] = true;
            s->why[n] = REASON_occupancy;
        }
    }
}

// That a value shares a kernel with others is a rewrite, one for each value.
static void keep_apart(const FuseAnalysis *f, Stored *s, Graph *g) {
    for (NodeId n = 0; n < f->old->count; n++) {
        if (traits(f, n) & (LEAF | VIEW | CALLS | EFFECT))
            continue;
        s->unfused[n] =
            !rewrite_allowed(g, f->options) || f->options->level == 0;
        if (s->unfused[n] && is_inline(f, n))
            store(f, s, n, REASON_unfused);
    }
}

Stored store_first(const FuseAnalysis *f, Graph *g, Arena *a) {
    size_t count = f->old->count;
    Stored s = {.stored = ARENA_ARRAY(a, count, bool),
                .why = ARENA_ARRAY(a, count, Reason),
                .must_store = ARENA_ARRAY(a, count, bool),
                .unfused = ARENA_ARRAY(a, count, bool),
                .stored_as_act = ARENA_ARRAY(a, count, bool),
                .in_update = ARENA_ARRAY(a, count, bool),
                .written_by_update = ARENA_ARRAY(a, count, bool),
                .row = ARENA_ARRAY(a, count, NodeId)};
    find_updated(f, &s, a);
    store_by_kind(f, &s);
    keep_apart(f, &s, g);
    store_taken(f, &s, a);
    store_turned(f, &s);
    store_sliced(f, &s, a);
    store_costly(f, &s, a);
    return s;
}

void store_large(const FuseAnalysis *f, Stored *s, Arena *a) {
    store_deep(f, s, a);
    store_wide(f, s, a);
}
