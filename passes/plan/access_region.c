// Access regions: see access_region.h.
//
// From the outputs of a group back to its inputs, each node has the box of its
// elements that are needed: for each axis the first and the one past the last.

#include "passes/plan/access_region.h"

#include "base/round_up.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    int64_t low[MAX_RANK], high[MAX_RANK];
    bool any;     // else nothing is needed
    bool loose;   // not all of the box may be
    int64_t most; // elements that are, at most; 0: as many as it has
} Box;

static Box box_of(Type t) {
    Box b = {.any = type_count(&t) > 0};
    memcpy(b.high, t.dim, sizeof b.high);
    return b;
}

// The most elements of a box that are needed.
static int64_t box_most(const Box *box, int rank) {
    int64_t count = 1;
    for (int i = 0; i < rank; i++)
        count *= box->high[i] - box->low[i];
    return box->most != 0 && box->most < count ? box->most : count;
}

static bool covers(const Box *box, int axis, Type t) {
    return box->low[axis] == 0 && box->high[axis] == t.dim[axis];
}

static bool is_whole(const Box *box, Type t) {
    for (int i = 0; i < t.rank; i++)
        if (!covers(box, i, t))
            return false;
    return true;
}

static int64_t nearest(int64_t i, int64_t low, int64_t high) {
    return i < low ? low : i > high ? high : i;
}

// For an element outside a tensor, as in the border of a pad, kernels read the
// nearest element.
static void box_clip(Box *box, Type t) {
    for (int i = 0; i < t.rank && box->any; i++) {
        box->low[i] = nearest(box->low[i], 0, t.dim[i] - 1);
        box->high[i] = nearest(box->high[i], 1, t.dim[i]);
    }
}

// The smallest box around both.  It has more than they have unless they differ
// along one axis alone, and touch.
static void box_join(Box *to, const Box *from, int rank) {
    int differ = 0;
    bool apart = false, inside = true, around = true;
    int64_t most = box_most(to, rank) + box_most(from, rank);
    if (!from->any)
        return;
    if (!to->any) {
        *to = *from;
        return;
    }
    for (int i = 0; i < rank; i++) {
        int64_t low = from->low[i], high = from->high[i];
        differ += low != to->low[i] || high != to->high[i];
        apart |= low > to->high[i] || high < to->low[i];
        inside &= low >= to->low[i] && high <= to->high[i];
        around &= low <= to->low[i] && high >= to->high[i];
        to->low[i] = low < to->low[i] ? low : to->low[i];
        to->high[i] = high > to->high[i] ? high : to->high[i];
    }
    bool same = differ == 0;
    to->most = same && to->most == from->most ? to->most : most;
    to->loose = same     ? to->loose && from->loose
                : inside ? to->loose
                : around ? from->loose
                         : to->loose || from->loose || apart || differ > 1;
}

// ---- the box of an operand for a box of the result ----

// Axis `to` of the operand is needed where the box has axis `from`.
static void need_axis(Box *need, int to, const Box *box, int from) {
    need->low[to] = box->low[from];
    need->high[to] = box->high[from];
}

// Axes from the last on: a broadcast axis is read at its one element, a reduced
// one as a whole.
static void need_aligned(Type from, Type to, const Box *box, Box *need) {
    int offset = from.rank - to.rank;
    for (int i = 0; i < to.rank; i++)
        if (offset + i >= 0 && from.dim[offset + i] == to.dim[i])
            need_axis(need, i, box, offset + i);
}

// Whether the elements of the box on axes first .. end-1 are one run, of which
// *low and *high are the first and the one past the last.
static bool find_run(Type t, int first, int end, const Box *box, int64_t *low,
                     int64_t *high) {
    int64_t length = 1;
    *low = 0;
    for (int i = first; i < end; i++) {
        if (length > 1 && !covers(box, i, t))
            return false;
        *low = *low * t.dim[i] + box->low[i];
        length *= box->high[i] - box->low[i];
    }
    *high = *low + length;
    return true;
}

// The same bytes in another shape: axes that both have at an end keep their
// ranges.  The axes between them need a run of elements, or all.
static void need_view(Type from, Type to, const Box *box, Box *need) {
    int first = 0, from_end = from.rank, to_end = to.rank;
    int64_t low, high, each = 1;
    while (first < from_end && first < to_end &&
           from.dim[first] == to.dim[first]) {
        need_axis(need, first, box, first);
        first++;
    }
    while (from_end > first && to_end > first &&
           from.dim[from_end - 1] == to.dim[to_end - 1])
        need_axis(need, --to_end, box, --from_end);
    for (int i = first + 1; i < to_end; i++)
        each *= to.dim[i];
    if (first == to_end || each == 0 ||
        !find_run(from, first, from_end, box, &low, &high)) {
        for (int i = first; i < from_end; i++)
            need->loose |= !covers(box, i, from);
        need->most = box_most(box, from.rank);
        return;
    }
    need->low[first] = low / each;
    need->high[first] = divide_up(high, each);
    need->loose |= low % each != 0 || high % each != 0;
}

static void need_moved(const Node *d, int sign, const Box *box, Box *need) {
    for (int i = 0; i < d->type->rank; i++) {
        int64_t by = sign * node_ints(d, ATTR_low, i, 0);
        need->low[i] = box->low[i] + by;
        need->high[i] = box->high[i] + by;
    }
}

static void need_transposed(const Node *d, const Box *box, Box *need) {
    for (int i = 0; i < d->type->rank; i++)
        need_axis(need, (int)node_ints(d, ATTR_order, i, 0), box, i);
}

// Several elements in a byte: all parts of a row count as one.
static void need_packed(Type from, Type to, const Box *box, Box *need) {
    for (int i = 0; i + 1 < to.rank; i++)
        need_axis(need, i, box, i);
    need->loose |= !covers(box, from.rank - 1, from);
}

// A window along rows (0) or columns (1).
typedef struct {
    int64_t size, stride, pad;
} Window;

static Window window_of(const Node *d, int axis) {
    return (Window){node_ints(d, ATTR_window, axis, 1),
                    node_ints(d, ATTR_stride, axis, 1),
                    node_ints(d, ATTR_pad, axis == 0 ? 0 : 2, 0)};
}

// Rows and columns of an image that a window has.
static void need_windows(const Node *d, const Box *box, Box *need) {
    memcpy(need->low, box->low, sizeof need->low);
    memcpy(need->high, box->high, sizeof need->high);
    for (int i = 0; i < 2; i++) {
        Window w = window_of(d, i);
        need->low[1 + i] = box->low[1 + i] * w.stride - w.pad;
        need->high[1 + i] = (box->high[1 + i] - 1) * w.stride - w.pad + w.size;
        need->loose |= w.stride > w.size;
    }
}

// Windows that have a row or column of an image.
static void need_gradients(const Node *d, const Box *box, Box *need) {
    memcpy(need->low, box->low, sizeof need->low);
    memcpy(need->high, box->high, sizeof need->high);
    for (int i = 0; i < 2; i++) {
        Window w = window_of(d, i);
        int64_t before = box->low[1 + i] + w.pad - w.size; // its last row
        need->low[1 + i] = before < 0 ? 0 : before / w.stride + 1;
        need->high[1 + i] = (box->high[1 + i] - 1 + w.pad) / w.stride + 1;
    }
}

// Images whose indices on the axes first .. last are computed: all of these
// axes may be needed, or less.
static void need_somewhere(Type to, int first, int last, const Box *box,
                           Box *need) {
    for (int i = 0; i < to.rank; i++)
        if (i < first || i > last)
            need_axis(need, i, box, i);
    need->loose = true;
}

// The needed images, or their needed pixels, [N,H,W].
static void need_pixels(Type to, const Box *box, Box *need) {
    for (int i = 0; i < (to.rank == 3 ? 3 : to.rank > 0); i++)
        need_axis(need, i, box, i);
}

static Box operand_box(const Graph *g, const Node *d, int i, const Box *box) {
    Type from = *d->type, to = *g->node[d->arg[i]].type;
    Box need = box_of(to);
    need.loose = box->loose;
    switch (d->op) {
    case OP_slice:
        need_moved(d, 1, box, &need);
        break;
    case OP_pad:
        need_moved(d, -1, box, &need);
        break;
    case OP_transpose:
        need_transposed(d, box, &need);
        break;
    case OP_shift:
    case OP_flip:
    case OP_take:
        if (i > 0)
            need_pixels(to, box, &need);
        else
            need_somewhere(to, 1, 2, box, &need);
        break;
    case OP_gather:
        if (i > 0)
            need_pixels(to, box, &need);
        else
            need.loose = true;
        break;
    case OP_pack:
    case OP_unpack:
        need_packed(from, to, box, &need);
        break;
    case OP_max_pool:
    case OP_max_pool_index:
    case OP_avg_pool:
        need_windows(d, box, &need);
        break;
    case OP_max_pool_grad:
    case OP_avg_pool_grad:
        need_gradients(d, box, &need);
        break;
    default:
        if (op_info[d->op].traits & VIEW)
            need_view(from, to, box, &need);
        else if (op_info[d->op].traits & (POINTWISE | REDUCES) &&
                 !(op_info[d->op].traits & REDUCES_ALL))
            need_aligned(from, to, box, &need);
        else
            need.loose |= !is_whole(box, from);
    }
    box_clip(&need, to);
    return need;
}

// ---- a group ----

static int by_node(const void *a, const void *b) {
    NodeId x = ((const AccessRegion *)a)->node,
           y = ((const AccessRegion *)b)->node;
    return (x > y) - (x < y);
}

const AccessRegion *region_find(const AccessRegion *region, int count,
                                NodeId n) {
    AccessRegion key = {.node = n};
    return bsearch(&key, region, (size_t)count, sizeof key, by_node);
}

typedef struct {
    const Graph *g;
    const Group *group;
    int64_t columns; // over which its kernel iterates
    AccessRegion *region;
    Box *box;   // of the group's nodes
    Box *input; // of the inputs, in the order of region
} Search;

// Notes that a box of node n is needed, which may be a view of another.
static void need_node(Search *s, NodeId n, Box box) {
    const Graph *g = s->g;
    while (node_base(g, n) != n) {
        box = operand_box(g, &g->node[n], 0, &box);
        n = g->node[n].arg[0];
    }
    int rank = g->node[n].type->rank;
    if (group_has(s->group, n)) {
        box_join(&s->box[n - s->group->first], &box, rank);
        return;
    }
    const AccessRegion *at = region_find(s->region, s->group->num_inputs, n);
    if (at != NULL)
        box_join(&s->input[at - s->region], &box, rank);
}

static void need_operands(Search *s, NodeId n) {
    const Node *d = &s->g->node[n];
    const Box *box = &s->box[n - s->group->first];
    for (int i = d->op == OP_assign; i < d->num_args && box->any; i++) {
        Box need = operand_box(s->g, d, i, box);
        if (d->op == OP_slice &&
            s->columns > space_columns(s->group->iteration_space))
            need.high[d->type->rank - 1] = s->columns;
        need_node(s, d->arg[i], need);
    }
}

static int64_t box_bytes(const Graph *g, NodeId n, const Box *box) {
    Type t = *g->node[n].type;
    int64_t most = box_most(box, t.rank);
    for (int i = 0; i < t.rank; i++)
        t.dim[i] = box->high[i] - box->low[i];
    if (most < type_count(&t))
        t = type_of(t.dtype, 1, &most);
    return box->any ? graph_bytes(g, &t) : 0;
}

AccessRegion *group_regions(const Graph *g, const Group *group, Arena *a) {
    size_t nodes = (size_t)(group->last - group->first) + 1;
    size_t inputs = (size_t)group->num_inputs;
    Arena *scratch = arena_new();
    Search s = {g,
                group,
                group_columns(g, group),
                ARENA_ARRAY(a, inputs + 1, AccessRegion),
                ARENA_ARRAY(scratch, nodes, Box),
                ARENA_ARRAY(scratch, inputs + 1, Box)};
    for (size_t i = 0; i < inputs; i++)
        s.region[i].node = group->input[i];
    qsort(s.region, inputs, sizeof *s.region, by_node);
    for (int i = 0; i < group->num_outputs; i++)
        s.box[group->output[i] - group->first] =
            box_of(*g->node[group->output[i]].type);
    for (NodeId n = group->last + 1; n-- > group->first;) {
        if (g->node[n].op == OP_assign)
            s.box[n - group->first] = box_of(*g->node[n].type);
        need_operands(&s, n);
    }
    for (size_t i = 0; i < inputs; i++) {
        s.region[i].bytes = box_bytes(g, s.region[i].node, &s.input[i]);
        s.region[i].exact = !s.input[i].loose;
    }
    arena_free(scratch);
    return s.region;
}

int64_t assigned_bytes(const Graph *g, NodeId assign) {
    const Node *d = &g->node[assign], *value = &g->node[d->arg[1]];
    bool padded = value->op == OP_pad && value->group == d->group;
    return graph_bytes(
        g, (Type[]){padded ? *g->node[value->arg[0]].type : *d->type});
}

int64_t scattered_bytes(const Graph *g, NodeId n) {
    const Node *d = &g->node[n];
    if (!(op_info[d->op].traits & SCATTERS))
        return 0;
    Type t = *d->type;
    int64_t most = type_count(g->node[d->arg[1]].type);
    t.dim[0] = t.dim[0] < most ? t.dim[0] : most;
    return graph_bytes(g, &t);
}

int64_t group_bytes(const Graph *g, const Group *group, const bool *marked) {
    int64_t bytes = 0;
    for (int i = 0; i < group->num_reads; i++)
        if (marked == NULL || marked[group->read[i]])
            bytes +=
                region_find(group->region, group->num_inputs, group->read[i])
                    ->bytes;
    for (int i = 0; i < group->num_outputs; i++)
        if (marked == NULL || marked[group->output[i]])
            bytes += graph_bytes(g, g->node[group->output[i]].type) +
                     scattered_bytes(g, group->output[i]);
    for (NodeId n = group->first; n <= group->last; n++)
        if (g->node[n].op == OP_assign && (marked == NULL || marked[n]))
            bytes += assigned_bytes(g, n);
    return bytes;
}
