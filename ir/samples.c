// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Samples: finds the batch axes of every tensor, and the nodes whose value
// depends on the number of samples.
//
// Index i of a batch axis belongs to sample i / stride mod N.  So [N, T] has a
// batch axis of stride 1; reshaped to [N T], its stride is T.  Two batches, one
// after the other, are an axis of 2 N.  A size that merely equals N is no batch
// axis.
//
// Invariant: unless a node before it depends on the batch, a tensor's elements
// of the first `valid` samples are those of a batch of only these samples.
// Pointwise operations preserve it; a constant with an element for each sample
// counts by its first elements.  A reduction over samples preserves it if its
// operand is masked: elements of padding samples are neutral.  The front end
// masks, and this finds whether it did.

#include "ir/ir.h"

#include <string.h>

static bool is_sampled(const Samples *s, int axis) {
    return s->stride[axis] != 0;
}

static bool is_masked(const Samples *s, int axis) {
    return s->masked >> axis & 1;
}

// Whether a reduction over the axis would include padding samples.
static bool is_unmasked(const Samples *s, int axis) {
    return is_sampled(s, axis) && !is_masked(s, axis);
}

// Whether elements differ by constants only along an axis, so that a batch of
// fewer samples has the first of them.
static bool is_constant(const Samples *s, int axis) {
    return s->fixed || s->of_valid || (s->constant >> axis & 1);
}

static void set_axis(Samples *to, int axis, const Samples *from, int of) {
    to->stride[axis] = from->stride[of];
    if (is_constant(from, of))
        to->constant |= 1u << axis;
    if (is_masked(from, of))
        to->masked |= 1u << axis;
}

// ---- element by element ----

// Whether an operand has the whole axis and does not broadcast along it.
// Shapes are aligned by their last axes.
static bool is_whole(const Node *n, const Node *arg, int axis) {
    int of = axis - n->type->rank + arg->type->rank;
    return of >= 0 && arg->type->dim[of] == n->type->dim[axis];
}

static int32_t stride_of(const Node *n, const Node *arg, const Samples *from,
                         int axis) {
    int of = axis - n->type->rank + arg->type->rank;
    return is_whole(n, arg, axis) ? from->stride[of] : 0;
}

// Combines the operands along one axis.
static void join(const Graph *g, const Node *n, Samples *to, const Samples *of,
                 int axis) {
    for (int i = 0; i < n->num_args && !is_sampled(to, axis); i++)
        to->stride[axis] =
            stride_of(n, &g->node[n->arg[i]], &of[n->arg[i]], axis);
    to->constant |= 1u << axis;
    for (int i = 0; i < n->num_args; i++) {
        const Node *arg = &g->node[n->arg[i]];
        const Samples *from = &of[n->arg[i]];
        int own = axis - n->type->rank + arg->type->rank;
        if (!is_whole(n, arg, axis) || is_constant(from, own))
            continue;
        to->constant &= ~(1u << axis);
        to->depends_on_batch |= from->stride[own] != to->stride[axis];
    }
}

// A mask makes the elements of padding samples neutral.
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
        if (type_has_shape(n->type, g->node[n->arg[i]].type) && to->split == 0)
            to->split = of[n->arg[i]].split;
    if (n->op == OP_cast)
        to->masked = of[n->arg[0]].masked;
    // A mask over another: both have the same neutral number.
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
            to->depends_on_batch |= is_unmasked(from, i);
        else
            set_axis(to, i + shift, from, i);
}

// Softmax and its kin, over the last axis, which stays.
static void rows(const Graph *g, const Node *n, Samples *to,
                 const Samples *of) {
    const Samples *from = &of[n->arg[0]];
    int last = g->node[n->arg[0]].type->rank - 1;
    to->depends_on_batch = is_unmasked(from, last);
    for (int i = 0; i <= last; i++)
        to->stride[i] = from->stride[i];
}

// Along positions and channels, which must not be samples.
static void attention(const Node *n, Samples *to, const Samples *of) {
    const Samples *from = &of[n->arg[0]];
    to->stride[0] = from->stride[0];
    to->depends_on_batch = is_sampled(from, 1) || is_sampled(from, 2);
}

static void cross_entropy(const Graph *g, const Node *n, Samples *to,
                          const Samples *of) {
    for (int i = 0; i < 2; i++) {
        const Samples *from = &of[n->arg[i]];
        if (g->node[n->arg[i]].type->rank == 2)
            to->depends_on_batch |= is_unmasked(from, 1);
        if (is_sampled(from, 0))
            to->stride[0] = from->stride[0];
    }
}

// Statistics over all axes but the last.
static void batch_norm(const Graph *g, const Node *n, Samples *to,
                       const Samples *of) {
    const Samples *x = &of[n->arg[0]];
    for (int i = 0; i < g->node[n->arg[0]].type->rank - 1; i++)
        to->depends_on_batch |= is_sampled(x, i);
    for (int i = 0; i < n->type->rank; i++)
        to->stride[i] = of[n->arg[n->num_args == 4 ? 3 : 0]].stride[i];
}

// ---- data movement ----

// The elements from one index of an axis to the next.
static int64_t elements_after(const Type *t, int axis) {
    int64_t count = 1;
    for (int i = axis + 1; i < t->rank; i++)
        count *= t->dim[i];
    return count;
}

// The axis along which samples have a stride in elements; -1 if they are on
// several axes.
static int axis_of_stride(const Type *t, int64_t stride, int64_t samples) {
    for (int i = 0; i < t->rank; i++) {
        int64_t after = elements_after(t, i);
        if (stride % after == 0 && t->dim[i] % (stride / after * samples) == 0)
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
        int64_t stride = from->stride[i] * elements_after(t, i);
        int axis = axis_of_stride(n->type, stride, samples);
        if (axis < 0 || is_sampled(to, axis)) {
            to->depends_on_batch = true;
            to->split = stride;
            continue;
        }
        set_axis(to, axis, from, i);
        to->stride[axis] = (int32_t)(stride / elements_after(n->type, axis));
    }
    int axis = from->split ? axis_of_stride(n->type, from->split, samples) : -1;
    if (axis >= 0)
        to->stride[axis] =
            (int32_t)(from->split / elements_after(n->type, axis));
}

static void transpose(const Node *n, Samples *to, const Samples *of) {
    for (int i = 0; i < n->type->rank; i++)
        set_axis(to, i, &of[n->arg[0]], (int)node_ints(n, ATTR_order, i, i));
}

// A slice or pad by whole batches keeps the batch axis.
static void cut(const Node *n, Samples *to, const Samples *of,
                int64_t samples) {
    const Samples *from = &of[n->arg[0]];
    for (int i = 0; i < n->type->rank; i++) {
        int64_t whole = from->stride[i] * samples;
        if (!is_sampled(from, i))
            continue;
        if (node_ints(n, ATTR_low, i, 0) % whole == 0 &&
            n->type->dim[i] % whole == 0)
            to->stride[i] = from->stride[i];
        else
            to->depends_on_batch = true;
    }
}

// Matrices of which every row is a sample have the batch axis second.
static void stack(const Graph *g, const Node *n, Samples *to,
                  const Samples *of) {
    const Samples *first = &of[n->arg[0]];
    to->stride[1] = first->stride[0];
    for (int i = 0; i < n->num_args; i++) {
        const Type *t = g->node[n->arg[i]].type;
        const Samples *from = &of[n->arg[i]];
        to->depends_on_batch |=
            is_sampled(to, 1) && t->dim[0] != n->type->dim[1];
        to->depends_on_batch |= from->stride[0] != to->stride[1];
        for (int k = 1; k < t->rank; k++)
            to->depends_on_batch |= is_sampled(from, k);
    }
}

// Rows for each element of an index.  An index that depends on `valid` alone
// names valid samples.
static void gather(const Graph *g, const Node *n, Samples *to,
                   const Samples *of) {
    const Samples *table = &of[n->arg[0]], *index = &of[n->arg[1]];
    int rank = g->node[n->arg[1]].type->rank;
    for (int i = 0; i < rank; i++)
        to->stride[i] = index->stride[i];
    for (int i = rank; i < n->type->rank; i++)
        to->stride[i] = table->stride[i - rank + 1];
    to->depends_on_batch = is_sampled(table, 0) && !index->of_valid;
    if (index->of_valid && rank == 1)
        to->stride[0] = table->stride[0];
}

// ---- windows and products ----

// Only the first axis of images may be a batch axis.  Constant images become
// different for each sample if an operand moves them.
static void images(const Graph *g, const Node *n, Samples *to,
                   const Samples *of) {
    const Samples *x = &of[n->arg[0]];
    bool conv = n->op == OP_conv || n->op == OP_conv_grad_input;
    bool moved = !conv && !is_sampled(x, 0) && is_constant(x, 0);
    to->stride[0] = x->stride[0];
    for (int k = 1; k < n->num_args && moved && !is_sampled(to, 0); k++)
        to->stride[0] = of[n->arg[k]].stride[0];
    for (int i = 1; i < g->node[n->arg[0]].type->rank; i++)
        to->depends_on_batch |= is_sampled(&of[n->arg[0]], i);
    for (int k = 1; k < n->num_args; k++)
        for (int i = 0; i < g->node[n->arg[k]].type->rank; i++)
            to->depends_on_batch |=
                is_sampled(&of[n->arg[k]], i) && (i > 0 || conv);
}

// [M,K] by [K,N] keeps the first axis of one and the last of the other.  If K
// is a batch axis of one operand only, one of the two must be constant along K.
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
        summed[i] = from->stride[sum];
        constant |= is_constant(from, sum);
        to->depends_on_batch |= is_unmasked(from, sum);
        to->stride[last - 1 + i] = from->stride[stays];
        for (int k = 0; k < own - 1; k++)
            if (is_sampled(from, k))
                to->stride[k] = from->stride[k];
    }
    to->depends_on_batch |= summed[0] != summed[1] && !constant;
}

// ---- all ----

// The number of samples of a batch; 0 if no input has any.
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
        to->stride[0] = 1;
    to->of_valid = input && name != NULL && strcmp(name, "valid") == 0;
    to->fixed = n->op != OP_param && !to->of_valid &&
                !((input || state) && n->type->rank > 0);
}

// Finds nodes that depend only on constants, states of the run and the number
// of a shard, and nodes that depend only on these and `valid`.
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
    case OP_stack:
        stack(g, n, to, of);
        return;
    case OP_matmul:
        matmul(g, n, to, of);
        return;
    case OP_softmax:
    case OP_log_softmax:
        rows(g, n, to, of);
        return;
    case OP_attention:
        attention(n, to, of);
        return;
    case OP_cross_entropy:
        cross_entropy(g, n, to, of);
        return;
    case OP_batch_norm:
        batch_norm(g, n, to, of);
        return;
    case OP_stop_gradient:
        *to = of[n->arg[0]];
        return;
    case OP_conv:
    case OP_conv_grad_input:
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
        to->depends_on_batch = has_any(g, n, of);
    }
}

void samples_extend(const Graph *g, Samples *of, NodeId from, NodeId count) {
    const int64_t samples = batch_of(g, count);
    for (NodeId n = from; n < count; n++) {
        const Node *d = &g->node[n];
        Samples *to = &of[n];
        *to = (Samples){0};
        if (op_info[d->op].traits & LEAF) {
            leaf(d, to);
            continue;
        }
        origin(d, to, of);
        if (op_info[d->op].traits & POINTWISE)
            pointwise(g, d, to, of);
        else if ((op_info[d->op].traits & (REDUCES | REDUCES_ALL)) == REDUCES)
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
