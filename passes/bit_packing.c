// Bit packing: stores masks in one bit per element, and indices in small
// windows in one, two or four.
//
//   requires   Nodes have groups.
//   preserves  Every value stays the same.
//   result     A kernel stores bools and small window indices packed if all of
//              their readers can unpack them.  If a kernel only compares a
//              tensor with a number, it reads the packed comparison, which is
//              stored beside the tensor.
//
// An example of a comparison is the mask of a relu whose result is in memory
// for a library call, where the gradient's kernel cannot recompute it: it reads
// an eighth of a byte per element instead of two bytes.

#include "passes/passes.h"
#include "passes/plan/group.h"

enum { NONE = -1 };

// How a kernel uses a tensor in memory.
typedef enum {
    USE_NONE,
    USE_PACKED,  // its kernel can unpack the elements
    USE_COMPARE, // it only compares them with a number
    USE_FULL,    // it needs the elements as they are
} UseKind;

typedef struct {
    UseKind kind;
    Op op;         // of a comparison: lt or le
    NodeId number; // of a comparison: the constant
    int side;      // the index of that constant among the operands
} Use;

// A packed value of a tensor, which the tensor's kernel stores.
typedef struct PackedValue {
    Use use;
    NodeId node; // the pack; NO_NODE until it is added
    struct PackedValue *next;
} PackedValue;

typedef struct {
    const Graph *old;
    Graph *g;
    Arena *scratch;
    const bool *stored;
    Group *group;
    int count;
    const int *owner;     // of each node: index of its group, or NONE
    bool *contiguous;     // of each group: see is_contiguous
    NodeId *source;       // of a cast: its source tensor in another group
    Use **use;            // of each group: how it uses each of its inputs
    int *full;            // of each tensor: the number of readers with USE_FULL
    PackedValue **packed; // of each tensor: a list
    PackedValue **reads;  // of each tensor: read instead by the current group
    NodeId *now;
} BitPacking;

// ---- which kernels ----

// Whether the lanes of the group's kernel are neighbours in every tensor that
// it reads, and a multiple of 8, so that they fill bytes of a packed tensor.
static bool is_contiguous(const Graph *g, const Group *group) {
    if (group->kind != GROUP_GRID || group->iteration_space->rank < 2 ||
        space_columns(group->iteration_space) % 8 != 0)
        return false;
    for (NodeId n = group->first; n <= group->last; n++) {
        const Node *d = &g->node[n];
        if (!(op_info[d->op].traits & (INDEXES | VIEW)))
            continue;
        Type from = *g->node[d->arg[0]].type;
        bool elements = d->op == OP_gather && from.rank == 1;
        if (from.rank != d->type->rank || d->op == OP_transpose || elements ||
            space_columns(&from) != space_columns(d->type))
            return false;
    }
    return true;
}

static void find_groups(BitPacking *b) {
    b->group = graph_groups(b->old, b->scratch, &b->count);
    b->owner = group_owners(b->old, b->group, b->count, b->scratch);
    b->contiguous = ARENA_ARRAY(b->scratch, (size_t)b->count + 1, bool);
    b->use = ARENA_ARRAY(b->scratch, (size_t)b->count + 1, Use *);
    for (int k = 0; k < b->count; k++)
        b->contiguous[k] = is_contiguous(b->old, &b->group[k]);
}

// ---- how kernels use their inputs ----

// The bits of an element of n; 0 if it may need more than four.
static int bits_of(const BitPacking *b, NodeId n) {
    const Node *d = graph_node(b->old, n);
    if (d->type->dtype == BOOL)
        return 1;
    if (d->op != OP_max_pool_index)
        return 0;
    int64_t indices =
        node_ints(d, ATTR_window, 0, 1) * node_ints(d, ATTR_window, 1, 1);
    return indices <= 2 ? 1 : indices <= 4 ? 2 : indices <= 16 ? 4 : 0;
}

// Whether the kernel that computes n can store packed values of it.
static bool can_pack(const BitPacking *b, NodeId n) {
    int k = b->owner[n];
    return k != NONE && b->contiguous[k] && b->stored[n] &&
           graph_node(b->old, n)->op != OP_pack &&
           type_has_shape(graph_node(b->old, n)->type,
                          b->group[k].iteration_space);
}

// The tensor of another group that operand n of group k is, perhaps through
// casts; NO_NODE if there is none.
static NodeId source_of(const BitPacking *b, NodeId n, int k) {
    if (b->owner[n] == k)
        return b->source[n];
    return can_pack(b, n) ? n : NO_NODE;
}

// How node n of group k uses a tensor that is its operand.
static Use use_of(const BitPacking *b, NodeId n, NodeId tensor, int k) {
    const Node *d = graph_node(b->old, n);
    if (!b->contiguous[k])
        return (Use){.kind = USE_FULL};
    if (bits_of(b, tensor) > 0)
        return (Use){.kind = USE_PACKED};
    for (int i = 0; i < 2 && (d->op == OP_le || d->op == OP_lt); i++) {
        const Node *number = graph_node(b->old, d->arg[i]);
        if (number->op == OP_constant && type_count(number->type) == 1 &&
            source_of(b, d->arg[1 - i], k) == tensor)
            return (Use){USE_COMPARE, d->op, d->arg[i], i};
    }
    return (Use){.kind = USE_FULL};
}

static bool same_use(Use x, Use y) {
    return x.kind == y.kind && x.op == y.op && x.number == y.number &&
           x.side == y.side;
}

static bool is_cast(const BitPacking *b, NodeId n) {
    const Node *d = graph_node(b->old, n);
    return d->op == OP_cast && !b->stored[n] && dtype_float(d->type->dtype) &&
           dtype_float(graph_node(b->old, d->arg[0])->type->dtype);
}

static int input_index(const Group *group, NodeId n) {
    int i = 0;
    while (group->input[i] != n)
        i++;
    return i;
}

// Finds how group k uses its inputs.  An input with two uses is used in full.
static void find_uses(BitPacking *b, int k) {
    const Group *group = &b->group[k];
    b->use[k] = ARENA_ARRAY(b->scratch, (size_t)group->num_inputs + 1, Use);
    for (NodeId n = group->first; n <= group->last; n++) {
        const Node *d = graph_node(b->old, n);
        for (int i = 0; i < d->num_args; i++) {
            NodeId tensor = source_of(b, d->arg[i], k);
            if (tensor == NO_NODE)
                continue;
            if (is_cast(b, n)) {
                b->source[n] = tensor;
                continue;
            }
            Use *known = &b->use[k][input_index(group, tensor)];
            Use use = use_of(b, n, tensor, k);
            if (known->kind == USE_NONE)
                *known = use;
            else if (!same_use(*known, use))
                known->kind = USE_FULL;
        }
    }
    for (int i = 0; i < group->num_inputs; i++)
        if (b->use[k][i].kind == USE_NONE)
            b->use[k][i].kind = USE_FULL;
}

// Counts the readers of each tensor that need it in full: groups, views and
// outputs.
static void count_full(BitPacking *b) {
    for (NodeId n = 0; n < b->old->count; n++)
        for (int i = 0;
             i < graph_node(b->old, n)->num_args && b->owner[n] == NONE; i++)
            b->full[graph_node(b->old, n)->arg[i]]++;
    for (int k = 0; k < b->count; k++)
        for (int i = 0; i < b->group[k].num_inputs; i++)
            b->full[b->group[k].input[i]] += b->use[k][i].kind == USE_FULL;
}

// ---- packed values ----

// The packed value for a use of a tensor, which is added if it is new; NULL if
// the rewrite limit forbids it.
static PackedValue *packed_value(BitPacking *b, NodeId tensor, Use use,
                                 const PassOptions *o) {
    for (PackedValue *v = b->packed[tensor]; v != NULL; v = v->next)
        if (same_use(v->use, use))
            return v;
    if (!rewrite_allowed(b->g, o))
        return NULL;
    PackedValue *v = ARENA_NEW(b->scratch, PackedValue);
    *v = (PackedValue){use, NO_NODE, b->packed[tensor]};
    return b->packed[tensor] = v;
}

// A tensor that a group reads unpacked is not packed.  Returns whether any
// tensor is packed.
static bool find_packed(BitPacking *b, const PassOptions *o) {
    bool any = false;
    for (int k = 0; k < b->count; k++)
        for (int i = 0; i < b->group[k].num_inputs; i++) {
            Use *use = &b->use[k][i];
            NodeId tensor = b->group[k].input[i];
            bool stays = use->kind == USE_PACKED && b->full[tensor] > 0;
            if (use->kind == USE_FULL)
                continue;
            if (stays || packed_value(b, tensor, *use, o) == NULL) {
                use->kind = USE_FULL;
                b->full[tensor] += !stays;
            } else {
                any = true;
            }
        }
    return any;
}

// ---- the new graph ----

static NodeId add(BitPacking *b, Node n, int group, Origin from) {
    b->g->origin = from;
    n.group = group;
    return graph_add(b->g, n);
}

static NodeId pack(BitPacking *b, NodeId n, NodeId value, int bits,
                   Reason why) {
    Attr attr = attr_int(ATTR_bits, bits);
    return add(b,
               (Node){.op = OP_pack,
                      .num_args = 1,
                      .arg = &value,
                      .num_attrs = 1,
                      .attr = &attr,
                      .why = why},
               graph_node(b->old, n)->group, graph_node(b->old, n)->from);
}

// Adds the packed values that the kernel of tensor n stores.
static void add_packs(BitPacking *b, NodeId n) {
    const Node *d = graph_node(b->old, n);
    for (PackedValue *v = b->packed[n]; v != NULL; v = v->next) {
        if (v->node != NO_NODE) // another kernel stores it
            continue;
        if (v->use.kind == USE_PACKED) {
            v->node = pack(b, n, b->now[n], bits_of(b, n), d->why);
            continue;
        }
        NodeId arg[2];
        arg[v->use.side] = b->now[v->use.number];
        arg[1 - v->use.side] = b->now[n];
        NodeId comparison =
            add(b, (Node){.op = v->use.op, .num_args = 2, .arg = arg}, d->group,
                d->from);
        v->node = pack(b, n, comparison, 1, REASON_traffic);
    }
}

static NodeId unpack(BitPacking *b, NodeId n, const PackedValue *v, Type type) {
    NodeId packed = v->node;
    Attr attr = b->g->node[packed].attr[0];
    return add(b,
               (Node){.op = OP_unpack,
                      .type = &type,
                      .num_args = 1,
                      .arg = &packed,
                      .num_attrs = 1,
                      .attr = &attr},
               graph_node(b->old, n)->group, graph_node(b->old, n)->from);
}

// Finds the packed values that group k reads in place of its inputs.
static void find_reads(BitPacking *b, int k) {
    const Group *group = &b->group[k];
    for (int i = 0; i < group->num_inputs; i++) {
        NodeId n = group->input[i];
        PackedValue *v = b->packed[n];
        while (v != NULL && !same_use(v->use, b->use[k][i]))
            v = v->next;
        b->reads[n] = v;
    }
}

// The packed comparison that replaces node n in group k, or NULL.
static const PackedValue *comparison_of(const BitPacking *b, NodeId n, int k) {
    const Node *d = graph_node(b->old, n);
    for (int i = 0; i < d->num_args; i++) {
        NodeId tensor = source_of(b, d->arg[i], k);
        const PackedValue *v = tensor == NO_NODE ? NULL : b->reads[tensor];
        if (v != NULL && v->use.kind == USE_COMPARE && v->use.op == d->op)
            return v;
    }
    return NULL;
}

// Whether group k would unpack n only to pack it again.
static bool only_repacks(const BitPacking *b, NodeId n, int k) {
    if (b->packed[n] == NULL || b->full[n] > 0)
        return false;
    for (NodeId m = n + 1; m <= b->group[k].last; m++)
        for (int i = 0; i < graph_node(b->old, m)->num_args; i++)
            if (graph_node(b->old, m)->arg[i] == n)
                return false;
    return true;
}

// If group k only repacks the value, its readers use the original packed value.
static void add_comparison(BitPacking *b, NodeId n, int k,
                           const PackedValue *v) {
    if (only_repacks(b, n, k))
        b->packed[n]->node = v->node;
    else
        b->now[n] = unpack(b, n, v, *graph_node(b->old, n)->type);
}

static bool is_dead_cast(const BitPacking *b, NodeId n) {
    return b->source[n] != NO_NODE && b->reads[b->source[n]] != NULL;
}

static void add_node(BitPacking *b, NodeId n) {
    Node d = *graph_node(b->old, n);
    int k = b->owner[n];
    NodeId *arg = ARENA_ARRAY(b->scratch, (size_t)d.num_args + 1, NodeId);
    if (k != NONE && is_dead_cast(b, n))
        return;
    const PackedValue *compared = k == NONE ? NULL : comparison_of(b, n, k);
    if (compared != NULL) {
        add_comparison(b, n, k, compared);
        return;
    }
    for (int i = 0; i < d.num_args; i++) {
        NodeId from = d.arg[i];
        bool packed =
            k != NONE && b->owner[from] != k && b->reads[from] != NULL;
        arg[i] = packed ? unpack(b, n, b->reads[from],
                                 *graph_node(b->old, from)->type)
                        : b->now[from];
    }
    d.arg = arg;
    if (b->packed[n] != NULL && b->full[n] == 0)
        d.why = REASON_none; // only its packed values are in memory
    b->g->origin = d.from;
    b->now[n] = graph_move(b->g, d);
}

static void rebuild(BitPacking *b) {
    for (NodeId n = 0; n < b->old->count; n++) {
        int k = b->owner[n];
        if (k != NONE && n == b->group[k].first)
            find_reads(b, k);
        add_node(b, n);
        for (int i = 0;
             k != NONE && n == b->group[k].last && i < b->group[k].num_outputs;
             i++)
            add_packs(b, b->group[k].output[i]);
    }
}

Graph *pass_bit_packing(Graph *g, Arena *scratch, const PassOptions *o) {
    if (o->level == 0)
        return g;
    BitPacking b = {.old = g,
              .g = graph_like(g),
              .scratch = scratch,
              .stored = graph_stored(g, scratch),
              .source = graph_map_new(g, scratch),
              .full = ARENA_ARRAY(scratch, g->count, int),
              .packed = ARENA_ARRAY(scratch, g->count, PackedValue *),
              .reads = ARENA_ARRAY(scratch, g->count, PackedValue *),
              .now = ARENA_ARRAY(scratch, g->count, NodeId)};
    find_groups(&b);
    for (int k = 0; k < b.count; k++)
        find_uses(&b, k);
    count_full(&b);
    if (!find_packed(&b, o)) {
        g->rewrites = b.g->rewrites;
        return g;
    }
    rebuild(&b);
    return b.g;
}
