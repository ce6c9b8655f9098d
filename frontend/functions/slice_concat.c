// slice, split, concat, stack and pad.

#include "frontend/functions/functions.h"

#include <string.h>

// ---- slice ----

// An index below 0 counts from the end of an axis.
static int64_t index_from(const Value *v, int64_t size) {
    return (int64_t)v->number + (v->number < 0 ? size : 0);
}

NodeId axis_slice(Expansion *e, NodeId x, int axis, int64_t from, int64_t to) {
    int64_t low[MAX_RANK] = {0}, high[MAX_RANK] = {0};
    low[axis] = from;
    high[axis] = node_type(e, x)->dim[axis] - to;
    return graph_slice(e->graph, x, low, high);
}

Value lower_slice(Expansion *e, const Call *c) {
    const Value *x = call_arg(c, P_slice_x), *end = call_arg(c, P_slice_to);
    Type t = *node_type(e, x->node);
    int axis;
    if (!expect_axis(e, c, *call_arg(c, P_slice_axis), x->node, &axis))
        return value_poison();
    int64_t size = t.dim[axis];
    int64_t from = index_from(call_arg(c, P_slice_from), size), to = size;
    if (end->kind == VALUE_NUMBER)
        to = index_from(end, size);
    if (from >= 0 && from < to && to <= size)
        return value_tensor(axis_slice(e, x->node, axis, from, to), c->at);
    Diagnostic *d =
        report(e->diags, D_out_of_range, c->at,
               "the range %lld to %lld is not within 0 to %lld",
               (long long)from, (long long)to, (long long)size);
    diag_secondary(d, x->at, "this is %s", tensor_text(e, x->node));
    diag_note(d, "`from` is the first index and `to` the one after the last; "
                 "below 0 they count from the end");
    return value_poison();
}

// ---- split ----

enum { MAX_PARTS = 4096 };

// Sizes of equal parts; false if they do not divide the axis.
static bool equal_sizes(int64_t whole, int64_t count, int64_t *size) {
    for (int64_t i = 0; i < count; i++)
        size[i] = whole / count;
    return whole % count == 0;
}

static bool listed_sizes(int64_t whole, const Value *list, int64_t *size) {
    int64_t sum = 0;
    for (int i = 0; i < list->list.count; i++) {
        size[i] = (int64_t)list->list.item[i].number;
        if (size[i] < 1 || size[i] > whole - sum)
            return false;
        sum += size[i];
    }
    return sum == whole;
}

// The sizes of the parts; NULL after a report.
static int64_t *part_sizes(Expansion *e, const Call *c, int64_t whole,
                           int64_t count) {
    const Value *x = call_arg(c, P_split_x);
    const Value *parts = call_arg(c, P_split_parts);
    if (count > MAX_PARTS) {
        report(e->diags, D_out_of_range, c->at, "split makes at most %d parts",
               MAX_PARTS);
        return NULL;
    }
    int64_t *size = ARENA_ARRAY(e->arena, (size_t)count, int64_t);
    if (parts->kind == VALUE_LIST ? listed_sizes(whole, parts, size)
                                  : equal_sizes(whole, count, size))
        return size;
    Diagnostic *d =
        report(e->diags, D_indivisible_groups, c->at,
               "%lld does not divide into these parts", (long long)whole);
    diag_secondary(d, x->at, "this is %s", tensor_text(e, x->node));
    return NULL;
}

Value lower_split(Expansion *e, const Call *c) {
    NodeId x = call_node(c, P_split_x);
    const Value *parts = call_arg(c, P_split_parts);
    Type t = *node_type(e, x);
    int axis;
    if (!expect_axis(e, c, *call_arg(c, P_split_axis), x, &axis))
        return value_poison();
    int64_t count =
        parts->kind == VALUE_LIST ? parts->list.count : (int64_t)parts->number;
    const int64_t *size = part_sizes(e, c, t.dim[axis], count);
    if (size == NULL || !has_room(e, c->at, count))
        return value_poison();
    Value *item = ARENA_ARRAY(e->arena, (size_t)count, Value);
    int64_t from = 0;
    for (int64_t i = 0; i < count; from += size[i++])
        item[i] =
            value_tensor(axis_slice(e, x, axis, from, from + size[i]), c->at);
    return (Value){.kind = VALUE_LIST, .at = c->at, .list = {item, (int)count}};
}

// ---- concat ----

// A slice, a pad, a cast and a select.
enum { NODES_PER_PART = 6 };

// x at `at` in an axis of `size`, padded with zeros.
static NodeId pad_to_size(Expansion *e, NodeId x, int axis, int64_t at,
                          int64_t size) {
    Type t = *node_type(e, x);
    int64_t low[MAX_RANK] = {0}, high[MAX_RANK] = {0};
    low[axis] = at;
    high[axis] = size - at - t.dim[axis];
    return graph_pad(e->graph, x, low, high);
}

// `before` below index `at` of an axis, else `after`.
static NodeId select_below(Expansion *e, NodeId index, int64_t at,
                           NodeId before, NodeId after) {
    NodeId start = graph_constant(e->graph, type_scalar(I32), (double)at);
    NodeId is = graph_op2(e->graph, OP_lt, index, start);
    return graph_op3(e->graph, OP_select, is, before, after);
}

// Pads each part with zeros, and selects by index.
NodeId axis_concat(Expansion *e, const NodeId *part, int count, int axis) {
    int64_t size = 0, at = 0;
    for (int i = 0; i < count; i++)
        size += node_type(e, part[i])->dim[axis];
    Type along = *node_type(e, part[0]);
    for (int i = 0; i < along.rank; i++)
        along.dim[i] = i == axis ? size : 1;
    along.dtype = I32;
    NodeId index = graph_iota(e->graph, along, axis), all = NO_NODE;
    for (int i = 0; i < count; i++) {
        NodeId next = pad_to_size(e, part[i], axis, at, size);
        all = i ? select_below(e, index, at, all, next) : next;
        at += node_type(e, part[i])->dim[axis];
    }
    return all;
}

// Whether the parts can be concatenated along an axis, to a tensor below the
// size limit.
static bool expect_parts(Expansion *e, const Call *c, const Value *list,
                         int axis) {
    Type all = *node_type(e, list->list.item[0].node);
    int64_t size = 0;
    all.dtype = F32;
    for (int i = 0; i < list->list.count; i++) {
        const Value *part = &list->list.item[i];
        Type t = *node_type(e, part->node);
        size += t.rank == all.rank ? t.dim[axis] : 0;
        all.dim[axis] = t.rank == all.rank ? t.dim[axis] : 1;
        if (t.rank == all.rank && type_broadcast(&all, &t, &all))
            continue;
        Diagnostic *d = report(e->diags, D_incompatible_shapes, c->at,
                               "cannot join tensors of these shapes");
        diag_secondary(d, list->list.item[0].at, "this is %s",
                       tensor_text(e, list->list.item[0].node));
        diag_secondary(d, part->at, "and this is %s",
                       tensor_text(e, part->node));
        diag_note(d,
                  "all dimensions but %d, along which they are joined, "
                  "must be equal, or 1",
                  axis);
        return false;
    }
    all.dim[axis] = size;
    if (type_valid(&all))
        return true;
    report(e->diags, D_tensor_too_large, c->at, "the result is too large");
    return false;
}

Value lower_concat(Expansion *e, const Call *c) {
    const Value *list = call_arg(c, P_concat_parts);
    int axis, count = list->list.count;
    if (!expect_axis(e, c, *call_arg(c, P_concat_axis), list->list.item[0].node,
                     &axis) ||
        !expect_parts(e, c, list, axis) ||
        !has_room(e, c->at, (int64_t)NODES_PER_PART * count))
        return value_poison();
    NodeId *part = ARENA_ARRAY(e->arena, (size_t)count, NodeId);
    for (int i = 0; i < count; i++)
        part[i] = as_float(e, list->list.item[i].node);
    return value_tensor(axis_concat(e, part, count, axis), c->at);
}

// ---- stack ----

// Whether the parts, [N,...], can be stacked below the size limit.
static bool expect_equal_parts(Expansion *e, const Call *c, const Value *list) {
    const Value *first = &list->list.item[0];
    Type t = *node_type(e, first->node), all = t;
    for (int i = 1; i < list->list.count; i++) {
        const Value *part = &list->list.item[i];
        if (type_has_shape(node_type(e, part->node), &t))
            continue;
        Diagnostic *d = report(e->diags, D_incompatible_shapes, c->at,
                               "cannot stack tensors of different shapes");
        diag_secondary(d, first->at, "this is %s", tensor_text(e, first->node));
        diag_secondary(d, part->at, "and this is %s",
                       tensor_text(e, part->node));
        return false;
    }
    if (t.rank == 0 || t.rank == MAX_RANK) {
        Diagnostic *d = report(e->diags, D_wrong_rank, c->at,
                               "`stack` adds an axis after the first of 1 to "
                               "%d",
                               MAX_RANK - 1);
        diag_secondary(d, first->at, "this is %s", tensor_text(e, first->node));
        return false;
    }
    all.dtype = F32;
    all.dim[0] *= list->list.count;
    if (type_valid(&all))
        return true;
    report(e->diags, D_tensor_too_large, c->at, "the result is too large");
    return false;
}

// T parts [N,...] as [N,T,...].
static NodeId parts_stack(Expansion *e, const Value *list, Type t) {
    int count = list->list.count;
    NodeId *part = ARENA_ARRAY(e->arena, (size_t)count, NodeId);
    for (int i = 0; i < count; i++)
        part[i] = as_float(e, list->list.item[i].node);
    static const int64_t order[] = {1, 0, 2};
    NodeId y = graph_stack(e->graph, part, count, t.dim[0],
                           type_count(&t) / t.dim[0]);
    y = graph_transpose(e->graph, y, order);
    int64_t dim[MAX_RANK] = {t.dim[0], count};
    for (int i = 1; i < t.rank; i++)
        dim[i + 1] = t.dim[i];
    return graph_reshape(e->graph, y, t.rank + 1, dim);
}

Value lower_stack(Expansion *e, const Call *c) {
    const Value *list = call_arg(c, P_stack_parts);
    if (!expect_equal_parts(e, c, list) ||
        !has_room(e, c->at, 2 * (int64_t)list->list.count + 3))
        return value_poison();
    Type t = *node_type(e, list->list.item[0].node);
    return value_tensor(parts_stack(e, list, t), c->at);
}

// ---- pad ----

enum { MAX_PAD = 256 };

// An axis padded at both ends with its edge, or with its reflection.
static NodeId pad_edge(Expansion *e, NodeId x, int axis, int64_t before,
                       int64_t after, bool mirrored) {
    int64_t size = node_type(e, x)->dim[axis];
    NodeId *part = ARENA_ARRAY(e->arena, (size_t)(before + 1 + after), NodeId);
    int count = 0;
    for (int64_t i = before; i > 0; i--) {
        int64_t from = mirrored ? i : 0;
        part[count++] = axis_slice(e, x, axis, from, from + 1);
    }
    part[count++] = x;
    for (int64_t i = 1; i <= after; i++) {
        int64_t from = size - 1 - (mirrored ? i : 0);
        part[count++] = axis_slice(e, x, axis, from, from + 1);
    }
    return count == 1 ? x : axis_concat(e, part, count, axis);
}

static bool expect_pads(Expansion *e, const Call *c, const Value *x,
                        const int64_t *pad, const char *mode) {
    Type t = *node_type(e, x->node);
    for (int i = 0; i < 4; i++) {
        bool mirror = *mode == 'r' && pad[i] >= t.dim[1 + i / 2];
        if (!mirror && (pad[i] <= MAX_PAD || *mode == 'z'))
            continue;
        Diagnostic *d =
            report(e->diags, D_out_of_range, c->at,
                   mirror ? "mode=reflect needs a size smaller than the image"
                          : "mode=%s pads by %d at most",
                   mode, (int)MAX_PAD);
        diag_secondary(d, x->at, "this is %s", tensor_text(e, x->node));
        return false;
    }
    return true;
}

static NodeId pad_zeros(Expansion *e, const Call *c, NodeId x,
                        const int64_t *pad) {
    int64_t low[] = {0, pad[0], pad[2], 0}, high[] = {0, pad[1], pad[3], 0};
    Attr attr[] = {attr_ints(ATTR_high, 4, high), attr_ints(ATTR_low, 4, low)};
    return add_checked(e, c,
                       (Node){.op = OP_pad,
                              .num_args = 1,
                              .arg = &x,
                              .num_attrs = 2,
                              .attr = attr});
}

// Pads rows and columns of images.
Value lower_pad(Expansion *e, const Call *c) {
    const Value *x = call_arg(c, P_pad_x);
    const char *mode = call_arg(c, P_pad_mode)->text;
    int64_t pad[4];
    read_pads(call_arg(c, P_pad_size), pad);
    if (!expect_rank(e, c, x, 4) || !expect_pads(e, c, x, pad, mode) ||
        !has_room(e, c->at, 4 * NODES_PER_PART * MAX_PAD))
        return value_poison();
    NodeId y = as_float(e, x->node);
    if (*mode == 'z')
        return value_tensor(pad_zeros(e, c, y, pad), c->at);
    y = pad_edge(e, y, 1, pad[0], pad[1], *mode == 'r');
    y = pad_edge(e, y, 2, pad[2], pad[3], *mode == 'r');
    return value_tensor(y, c->at);
}
