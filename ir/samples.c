// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Samples: finds the axes of a tensor that run over the samples of the batch,
// and the nodes at which a batch with fewer valid samples would give other
// numbers.
//
// Place i of such an axis belongs to sample i / apart mod N.  So [N, T] as rows
// [N T] has an axis with T places of a sample side by side, and two batches
// one after the other have an axis of 2 N places.  A size that merely equals
// the batch is no axis of samples.
//
// Invariant: where no node mixes, the places that belong to the first `valid`
// samples hold the numbers of a batch of only those.  Pointwise operations
// keep it; constants with a place for each sample count by their first places.
// A reduction over samples keeps it if its operand is masked: if the places of
// all other samples hold the neutral number.  The front end masks, and this
// finds whether it has.

#include "ir/ir.h"

#include <string.h>

static bool is_sampled(const Samples *s, int axis) {
    return s->apart[axis] != 0;
}

static bool is_masked(const Samples *s, int axis) {
    return s->masked >> axis & 1;
}

// Whether an axis runs over samples of which all would count.
static bool is_open(const Samples *s, int axis) {
    return is_sampled(s, axis) && !is_masked(s, axis);
}

// Whether the places of an axis differ by constants alone, so that a batch of
// fewer samples has the first of them.
static bool is_constant(const Samples *s, int axis) {
    return s->fixed || s->of_valid || (s->constant >> axis & 1);
}

static void set_axis(Samples *to, int axis, const Samples *from, int of) {
    to->apart[axis] = from->apart[of];
    if (is_constant(from, of))
        to->constant |= 1u << axis;
    if (is_masked(from, of))
        to->masked |= 1u << axis;
}

// ---- element by element ----

// Whether an operand has all places of an axis, and not one that is repeated.
// Shapes are aligned by their last axes.
static bool is_whole(const Node *n, const Node *arg, int axis) {
    int of = axis - n->type->rank + arg->type->rank;
    return of >= 0 && arg->type->dim[of] == n->type->dim[axis];
}

static int32_t apart_of(const Node *n, const Node *arg, const Samples *from,
                        int axis) {
    int of = axis - n->type->rank + arg->type->rank;
    return is_whole(n, arg, axis) ? from->apart[of] : 0;
}

// Combines one axis of the operands that meet there.
static void join(const Graph *g, const Node *n, Samples *to, const Samples *of,
                 int axis) {
    for (int i = 0; i < n->num_args && !is_sampled(to, axis); i++)
        to->apart[axis] =
            apart_of(n, &g->node[n->arg[i]], &of[n->arg[i]], axis);
    to->constant |= 1u << axis;
    for (int i = 0; i < n->num_args; i++) {
        const Node *arg = &g->node[n->arg[i]];
        const Samples *from = &of[n->arg[i]];
        int own = axis - n->type->rank + arg->type->rank;
        if (!is_whole(n, arg, axis) || is_constant(from, own))
            continue;
        to->constant &= ~(1u << axis);
        to->mixed |= from->apart[own] != to->apart[axis];
    }
}

// A mask leaves its neutral number at the places of samples that do not count.
static void mask(const Node *n, Samples *to, const Node *by) {
    int shift = n->type->rank - by->type->rank;
    for (int i = 0; i < by->type->rank; i++)
        if (by->type->dim[i] > 1)
            to->masked |= 1u << (i + shift);
}

static void pointwise(const Graph *g, const Node *n, Samples *to,
                      const Samples *of) {
    for (int i = 0; i < n->type->rank; i++)
        join(g, n, to, of, i);
    for (int i = 0; i < n->num_args; i++)
        if (type_has_shape(n->type, g->node[n->arg[i]].type) && to->parted == 0)
            to->parted = of[n->arg[i]].parted;
    if (n->op == OP_cast)
        to->masked = of[n->arg[0]].masked;
    // A mask over another: the number is the same.
    if (n->op == OP_select && of[n->arg[0]].of_valid)
        to->masked = of[n->arg[1]].masked;
    int masks = n->op == OP_mul ? 2 : n->op == OP_select ? 1 : 0;
    for (int i = 0; i < masks; i++)
        if (of[n->arg[i]].of_valid)
            mask(n, to, &g->node[n->arg[i]]);
}

// ---- reductions ----

static unsigned reduced_axes(const Node *n, int rank) {
    const Attr *axes = node_attr(n, ATTR_axes);
    unsigned set = 0;
    if (axes == NULL) // argmax: the last
        return 1u << (rank - 1);
    for (int i = 0; i < axes->count; i++)
        set |= 1u << axes->ints[i];
    return set;
}

static void reduce(const Graph *g, const Node *n, Samples *to,
                   const Samples *of) {
    const Samples *from = &of[n->arg[0]];
    int rank = g->node[n->arg[0]].type->rank, shift = n->type->rank - rank;
    unsigned reduced = rank > 0 ? reduced_axes(n, rank) : 0;
    for (int i = 0; i < rank; i++)
        if (reduced >> i & 1)
            to->mixed |= is_open(from, i);
        else
            set_axis(to, i + shift, from, i);
}

// Softmax and its kin, over the last axis, which stays.
static void rows(const Graph *g, const Node *n, Samples *to,
                 const Samples *of) {
    const Samples *from = &of[n->arg[0]];
    int last = g->node[n->arg[0]].type->rank - 1;
    to->mixed = is_open(from, last);
    for (int i = 0; i <= last; i++)
        to->apart[i] = from->apart[i];
}

static void cross_entropy(const Graph *g, const Node *n, Samples *to,
                          const Samples *of) {
    for (int i = 0; i < 2; i++) {
        const Samples *from = &of[n->arg[i]];
        if (g->node[n->arg[i]].type->rank == 2)
            to->mixed |= is_open(from, 1);
        if (is_sampled(from, 0))
            to->apart[0] = from->apart[0];
    }
}

// Statistics over all axes but the last.
static void batch_norm(const Node *n, Samples *to, const Samples *of) {
    for (int i = 0; i < n->type->rank; i++) {
        to->apart[i] = of[n->arg[0]].apart[i];
        to->mixed |= i < n->type->rank - 1 && is_sampled(to, i);
    }
}

// ---- other places ----

static int64_t places_after(const Type *t, int axis) {
    int64_t count = 1;
    for (int i = axis + 1; i < t->rank; i++)
        count *= t->dim[i];
    return count;
}

// The axis on which numbers of one sample are so many places apart, counted
// through the whole tensor; -1 where its samples are on several.
static int axis_apart(const Type *t, int64_t apart, int64_t samples) {
    for (int i = 0; i < t->rank; i++) {
        int64_t after = places_after(t, i);
        if (apart % after == 0 && t->dim[i] % (apart / after * samples) == 0)
            return i;
    }
    return -1;
}

static void reshape(const Graph *g, const Node *n, Samples *to,
                    const Samples *of, int64_t samples) {
    const Samples *from = &of[n->arg[0]];
    const Type *t = g->node[n->arg[0]].type;
    for (int i = 0; i < t->rank; i++) {
        if (!is_sampled(from, i))
            continue;
        int64_t apart = from->apart[i] * places_after(t, i);
        int axis = axis_apart(n->type, apart, samples);
        if (axis < 0 || is_sampled(to, axis)) {
            to->mixed = true;
            to->parted = apart;
            continue;
        }
        set_axis(to, axis, from, i);
        to->apart[axis] = (int32_t)(apart / places_after(n->type, axis));
    }
    int axis = from->parted ? axis_apart(n->type, from->parted, samples) : -1;
    if (axis >= 0)
        to->apart[axis] = (int32_t)(from->parted / places_after(n->type, axis));
}

static void transpose(const Node *n, Samples *to, const Samples *of) {
    for (int i = 0; i < n->type->rank; i++)
        set_axis(to, i, &of[n->arg[0]], (int)node_ints(n, ATTR_order, i, i));
}

// Whole batches of an axis may be cut off, or put before and behind it.
static void cut(const Node *n, Samples *to, const Samples *of,
                int64_t samples) {
    const Samples *from = &of[n->arg[0]];
    for (int i = 0; i < n->type->rank; i++) {
        int64_t whole = from->apart[i] * samples;
        if (!is_sampled(from, i))
            continue;
        if (node_ints(n, ATTR_low, i, 0) % whole == 0 &&
            n->type->dim[i] % whole == 0)
            to->apart[i] = from->apart[i];
        else
            to->mixed = true;
    }
}

// Rows for each place of an index.  One that follows from `valid` alone names
// samples that count.
static void gather(const Graph *g, const Node *n, Samples *to,
                   const Samples *of) {
    const Samples *table = &of[n->arg[0]], *index = &of[n->arg[1]];
    int rank = g->node[n->arg[1]].type->rank;
    for (int i = 0; i < rank; i++)
        to->apart[i] = index->apart[i];
    for (int i = rank; i < n->type->rank; i++)
        to->apart[i] = table->apart[i - rank + 1];
    to->mixed = is_sampled(table, 0) && !index->of_valid;
    if (index->of_valid && rank == 1)
        to->apart[0] = table->apart[0];
}

// ---- windows and products ----

// Samples are on the first axis of images and of nothing else.  Where images
// are constant, they differ by how each sample moves them.
static void images(const Graph *g, const Node *n, Samples *to,
                   const Samples *of) {
    const Samples *x = &of[n->arg[0]];
    bool moved = n->op != OP_conv && !is_sampled(x, 0) && is_constant(x, 0);
    to->apart[0] = x->apart[0];
    for (int k = 1; k < n->num_args && moved && !is_sampled(to, 0); k++)
        to->apart[0] = of[n->arg[k]].apart[0];
    for (int i = 1; i < g->node[n->arg[0]].type->rank; i++)
        to->mixed |= is_sampled(&of[n->arg[0]], i);
    for (int k = 1; k < n->num_args; k++)
        for (int i = 0; i < g->node[n->arg[k]].type->rank; i++)
            to->mixed |=
                is_sampled(&of[n->arg[k]], i) && (i > 0 || n->op == OP_conv);
}

// [M,K] by [K,N] keeps the first axis of one and the last of the other.
// An operand that is not masked along K must be constant there.
static void matmul(const Graph *g, const Node *n, Samples *to,
                   const Samples *of) {
    const AttrKey turned[] = {ATTR_ta, ATTR_tb};
    int last = n->type->rank - 1;
    int32_t summed[2];
    bool constant = false;
    for (int i = 0; i < 2; i++) {
        const Samples *from = &of[n->arg[i]];
        int own = g->node[n->arg[i]].type->rank - 1;
        bool first = (i == 0) != (node_int(n, turned[i], 0) != 0);
        int stays = first ? own - 1 : own, sum = first ? own : own - 1;
        summed[i] = from->apart[sum];
        constant |= is_constant(from, sum);
        to->mixed |= is_open(from, sum);
        to->apart[last - 1 + i] = from->apart[stays];
        for (int k = 0; k < own - 1; k++)
            if (is_sampled(from, k))
                to->apart[k] = from->apart[k];
    }
    to->mixed |= summed[0] != summed[1] && !constant;
}

// ---- all ----

// The number of samples of a batch; 0 where no input has any.
static int64_t batch_of(const Graph *g, NodeId count) {
    for (NodeId n = 0; n < count; n++)
        if (g->node[n].op == OP_input && g->node[n].type->rank > 0)
            return g->node[n].type->dim[0];
    return 0;
}

static void leaf(const Node *n, Samples *to) {
    const char *name = node_text(n, ATTR_name);
    bool input = n->op == OP_input, state = n->op == OP_state;
    if (input && n->type->rank > 0)
        to->apart[0] = 1;
    to->of_valid = input && name != NULL && strcmp(name, "valid") == 0;
    to->fixed = !input && n->op != OP_param && !(state && n->type->rank > 0);
}

// Finds nodes that follow from constants and the step of the run, and nodes
// that follow from these and `valid`.
static void origin(const Node *n, Samples *to, const Samples *of) {
    to->fixed = true;
    bool valid = false, all = true;
    for (int i = 0; i < n->num_args; i++) {
        const Samples *from = &of[n->arg[i]];
        to->fixed &= from->fixed;
        valid |= from->of_valid;
        all &= from->fixed || from->of_valid;
    }
    to->of_valid = valid && all;
}

static bool has_any(const Graph *g, const Node *n, const Samples *of) {
    for (int i = 0; i < n->num_args; i++)
        for (int k = 0; k < g->node[n->arg[i]].type->rank; k++)
            if (is_sampled(&of[n->arg[i]], k))
                return true;
    return false;
}

static void other(const Graph *g, const Node *n, Samples *to, const Samples *of,
                  int64_t samples) {
    switch (n->op) {
    case OP_reshape:
        reshape(g, n, to, of, samples);
        return;
    case OP_transpose:
        transpose(n, to, of);
        return;
    case OP_slice:
    case OP_pad:
        cut(n, to, of, samples);
        return;
    case OP_gather:
        gather(g, n, to, of);
        return;
    case OP_matmul:
        matmul(g, n, to, of);
        return;
    case OP_softmax:
    case OP_log_softmax:
        rows(g, n, to, of);
        return;
    case OP_cross_entropy:
        cross_entropy(g, n, to, of);
        return;
    case OP_batch_norm:
        batch_norm(n, to, of);
        return;
    case OP_stop_gradient:
        *to = of[n->arg[0]];
        return;
    case OP_conv:
    case OP_resize:
    case OP_shift:
    case OP_flip:
    case OP_take:
    case OP_max_pool:
    case OP_max_pool_index:
    case OP_avg_pool:
        images(g, n, to, of);
        return;
    default:
        to->mixed = has_any(g, n, of);
    }
}

void samples_extend(const Graph *g, Samples *of, NodeId from, NodeId count) {
    const int64_t samples = batch_of(g, count);
    for (NodeId n = from; n < count; n++) {
        const Node *d = &g->node[n];
        Samples *to = &of[n];
        *to = (Samples){0};
        if (op_info[d->op].facts & LEAF) {
            leaf(d, to);
            continue;
        }
        origin(d, to, of);
        if (op_info[d->op].facts & POINTWISE)
            pointwise(g, d, to, of);
        else if ((op_info[d->op].facts & (REDUCES | OVERALL)) == REDUCES)
            reduce(g, d, to, of);
        else
            other(g, d, to, of, samples);
    }
}

Samples *graph_samples(const Graph *g, NodeId count, Arena *a) {
    Samples *of = ARENA_ARRAY(a, count, Samples);
    samples_extend(g, of, 0, count);
    return of;
}
