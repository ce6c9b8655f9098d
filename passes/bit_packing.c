// Masks and small indices become bit-packed in memory.
//
//   needs   groups
//   keeps   every value
//   leaves  bools and places in a small window packed, where one kernel stores
//           them for others; and where a kernel reads a tensor only to compare
//           it with a number, the packed outcome beside the tensor
//
// An example of an outcome is the mask of a relu whose result is in memory for
// a library call, where the gradient's kernel cannot recompute it: an eighth of
// a byte for each element in place of two.

#include "passes/passes.h"
#include "passes/plan/group.h"

enum { NONE = -1 };

// A kernel's need of a tensor in memory: packed bits (OP_pack), a comparison
// with a number, or all of it (OP_output).
typedef struct {
    Op op;
    NodeId number;
    int side; // which operand of the comparison the number is
} Question;

// An answer that the kernel which computes the tensor stores packed.
typedef struct Answer {
    Question q;
    NodeId packed;
    struct Answer *next;
} Answer;

typedef struct {
    const Graph *old;
    Graph *g;
    Arena *scratch;
    const bool *stored;
    Group *group;
    int count;
    const int *owner; // of each node: index of its group, or NONE
    bool *plain;      // of each group: its kernel iterates over whole rows
    NodeId *tensor;   // of a cast: the tensor of another group that it is
    Question **asked; // of each group: about each of its inputs
    int *readers;     // of each tensor: groups and others that take all of it
    Answer **answer;  // of each tensor
    Answer **reads;   // of each tensor: its replacement for the current group
    NodeId *now;
} Bits;

static const Node *at(const Bits *b, NodeId n) {
    return &b->old->node[n];
}

// ---- which kernels ----

// Whether lanes of the group's kernel are neighbours in all that it reads, and
// multiples of 8: those that gather elements of a vector are not.
static bool walks_rows(const Graph *g, const Group *group) {
    if (group->kind != GROUP_GRID || group->iteration_space->rank < 2 ||
        space_columns(group->iteration_space) % 8 != 0)
        return false;
    for (NodeId n = group->first; n <= group->last; n++) {
        const Node *d = &g->node[n];
        if (!(op_info[d->op].facts & (INDEXES | VIEW)))
            continue;
        Type from = *g->node[d->arg[0]].type;
        bool elements = d->op == OP_gather && from.rank == 1;
        if (from.rank != d->type->rank || d->op == OP_transpose || elements ||
            space_columns(&from) != space_columns(d->type))
            return false;
    }
    return true;
}

static void find_groups(Bits *b) {
    b->group = graph_groups(b->old, b->scratch, &b->count);
    b->owner = group_owners(b->old, b->group, b->count, b->scratch);
    b->plain = ARENA_ARRAY(b->scratch, (size_t)b->count + 1, bool);
    b->asked = ARENA_ARRAY(b->scratch, (size_t)b->count + 1, Question *);
    for (int k = 0; k < b->count; k++)
        b->plain[k] = walks_rows(b->old, &b->group[k]);
}

// ---- the needs of kernels ----

// Bits of n itself; 0 if it may have many.
static int bits_of(const Bits *b, NodeId n) {
    const Node *d = at(b, n);
    if (d->type->dtype == BOOL)
        return 1;
    if (d->op != OP_max_pool_index)
        return 0;
    int64_t places =
        node_ints(d, ATTR_window, 0, 1) * node_ints(d, ATTR_window, 1, 1);
    return places <= 2 ? 1 : places <= 4 ? 2 : places <= 16 ? 4 : 0;
}

// Whether the kernel that computes n can store something else for it.
static bool may_change(const Bits *b, NodeId n) {
    int k = b->owner[n];
    return k != NONE && b->plain[k] && b->stored[n] &&
           at(b, n)->op != OP_pack &&
           type_has_shape(at(b, n)->type, b->group[k].iteration_space);
}

// The tensor of another group that operand n in group k is, also behind casts.
static NodeId tensor_of(const Bits *b, NodeId n, int k) {
    if (b->owner[n] == k)
        return b->tensor[n];
    return may_change(b, n) ? n : NO_NODE;
}

// The need of node n of group k for a tensor that is an operand.
static Question question_of(const Bits *b, NodeId n, NodeId tensor, int k) {
    const Node *d = at(b, n);
    if (!b->plain[k])
        return (Question){.op = OP_output};
    if (bits_of(b, tensor) > 0)
        return (Question){.op = OP_pack};
    for (int i = 0; i < 2 && (d->op == OP_le || d->op == OP_lt); i++) {
        const Node *number = at(b, d->arg[i]);
        if (number->op == OP_constant && type_count(number->type) == 1 &&
            tensor_of(b, d->arg[1 - i], k) == tensor)
            return (Question){d->op, d->arg[i], i};
    }
    return (Question){.op = OP_output};
}

static bool same_question(Question x, Question y) {
    return x.op == y.op && x.number == y.number && x.side == y.side;
}

static bool is_cast(const Bits *b, NodeId n) {
    const Node *d = at(b, n);
    return d->op == OP_cast && !b->stored[n] && dtype_float(d->type->dtype) &&
           dtype_float(at(b, d->arg[0])->type->dtype);
}

static int place_in(const Group *group, NodeId n) {
    int i = 0;
    while (group->input[i] != n)
        i++;
    return i;
}

// Finds the needs of group k for its inputs.  An input with two needs is read
// as a whole.
static void find_questions(Bits *b, int k) {
    const Group *group = &b->group[k];
    const Op unasked = OP_input;
    b->asked[k] =
        ARENA_ARRAY(b->scratch, (size_t)group->num_inputs + 1, Question);
    for (int i = 0; i < group->num_inputs; i++)
        b->asked[k][i].op = unasked;
    for (NodeId n = group->first; n <= group->last; n++) {
        const Node *d = at(b, n);
        for (int i = 0; i < d->num_args; i++) {
            NodeId tensor = tensor_of(b, d->arg[i], k);
            if (tensor == NO_NODE)
                continue;
            if (is_cast(b, n)) {
                b->tensor[n] = tensor;
                continue;
            }
            Question *known = &b->asked[k][place_in(group, tensor)];
            Question q = question_of(b, n, tensor, k);
            if (known->op == unasked)
                *known = q;
            else if (!same_question(*known, q))
                known->op = OP_output;
        }
    }
    for (int i = 0; i < group->num_inputs; i++)
        if (b->asked[k][i].op == unasked)
            b->asked[k][i].op = OP_output;
}

// Readers that take a tensor as a whole: groups, views and outputs.
static void count_readers(Bits *b) {
    for (NodeId n = 0; n < b->old->count; n++)
        for (int i = 0; i < at(b, n)->num_args && b->owner[n] == NONE; i++)
            b->readers[at(b, n)->arg[i]]++;
    for (int k = 0; k < b->count; k++)
        for (int i = 0; i < b->group[k].num_inputs; i++)
            b->readers[b->group[k].input[i]] += b->asked[k][i].op == OP_output;
}

// ---- answers ----

// The answer to a question about a tensor, which becomes one to store.
static Answer *answer_to(Bits *b, NodeId tensor, Question q,
                         const PassOptions *o) {
    for (Answer *a = b->answer[tensor]; a != NULL; a = a->next)
        if (same_question(a->q, q))
            return a;
    if (!rewrite_next(b->g, o))
        return NULL;
    Answer *a = ARENA_NEW(b->scratch, Answer);
    *a = (Answer){q, NO_NODE, b->answer[tensor]};
    return b->answer[tensor] = a;
}

// A tensor that someone takes as a whole is not packed besides.
// False where there is none.
static bool find_answers(Bits *b, const PassOptions *o) {
    bool any = false;
    for (int k = 0; k < b->count; k++)
        for (int i = 0; i < b->group[k].num_inputs; i++) {
            Question *q = &b->asked[k][i];
            NodeId tensor = b->group[k].input[i];
            bool packs = q->op == OP_pack && b->readers[tensor] > 0;
            if (q->op == OP_output)
                continue;
            if (packs || answer_to(b, tensor, *q, o) == NULL) {
                q->op = OP_output;
                b->readers[tensor] += !packs;
            } else {
                any = true;
            }
        }
    return any;
}

// ---- the graph with them ----

static NodeId add(Bits *b, Node n, int group, Origin from) {
    b->g->at = from;
    n.group = group;
    return graph_add(b->g, n);
}

static NodeId pack(Bits *b, NodeId n, NodeId value, int bits, Reason why) {
    Attr attr = attr_int(ATTR_bits, bits);
    return add(b,
               (Node){.op = OP_pack,
                      .num_args = 1,
                      .arg = &value,
                      .num_attrs = 1,
                      .attr = &attr,
                      .why = why},
               at(b, n)->group, at(b, n)->from);
}

// Places the packed values that the kernel of tensor n stores.
static void place_answers(Bits *b, NodeId n) {
    const Node *d = at(b, n);
    for (Answer *a = b->answer[n]; a != NULL; a = a->next) {
        if (a->packed != NO_NODE) // by another kernel
            continue;
        if (a->q.op == OP_pack) {
            a->packed = pack(b, n, b->now[n], bits_of(b, n), d->why);
            continue;
        }
        NodeId arg[2];
        arg[a->q.side] = b->now[a->q.number];
        arg[1 - a->q.side] = b->now[n];
        NodeId outcome =
            add(b, (Node){.op = a->q.op, .num_args = 2, .arg = arg}, d->group,
                d->from);
        a->packed = pack(b, n, outcome, 1, REASON_traffic);
    }
}

static NodeId unpack(Bits *b, NodeId n, const Answer *a, Type type) {
    NodeId packed = a->packed;
    Attr attr = b->g->node[packed].attr[0];
    return add(b,
               (Node){.op = OP_unpack,
                      .type = &type,
                      .num_args = 1,
                      .arg = &packed,
                      .num_attrs = 1,
                      .attr = &attr},
               at(b, n)->group, at(b, n)->from);
}

// Notes which answers group k reads in place of its inputs.
static void open_group(Bits *b, int k) {
    const Group *group = &b->group[k];
    for (int i = 0; i < group->num_inputs; i++) {
        NodeId n = group->input[i];
        Answer *a = b->answer[n];
        while (a != NULL && !same_question(a->q, b->asked[k][i]))
            a = a->next;
        b->reads[n] = a;
    }
}

// The answer that node n of group k is no more than, or NULL.
static const Answer *outcome_of(const Bits *b, NodeId n, int k) {
    const Node *d = at(b, n);
    for (int i = 0; i < d->num_args; i++) {
        NodeId tensor = tensor_of(b, d->arg[i], k);
        const Answer *a = tensor == NO_NODE ? NULL : b->reads[tensor];
        if (a != NULL && a->q.op != OP_pack && a->q.op == d->op)
            return a;
    }
    return NULL;
}

// Whether group k does nothing with n but to store it packed.
static bool is_passed_on(const Bits *b, NodeId n, int k) {
    if (b->answer[n] == NULL || b->readers[n] > 0)
        return false;
    for (NodeId m = n + 1; m <= b->group[k].last; m++)
        for (int i = 0; i < at(b, m)->num_args; i++)
            if (at(b, m)->arg[i] == n)
                return false;
    return true;
}

// Readers of an answer that is only passed on read the first.
static void place_outcome(Bits *b, NodeId n, int k, const Answer *a) {
    if (is_passed_on(b, n, k))
        b->answer[n]->packed = a->packed;
    else
        b->now[n] = unpack(b, n, a, *at(b, n)->type);
}

static bool is_dead_cast(const Bits *b, NodeId n) {
    return b->tensor[n] != NO_NODE && b->reads[b->tensor[n]] != NULL;
}

static void place_node(Bits *b, NodeId n) {
    Node d = *at(b, n);
    int k = b->owner[n];
    NodeId *arg = ARENA_ARRAY(b->scratch, (size_t)d.num_args + 1, NodeId);
    if (k != NONE && is_dead_cast(b, n))
        return;
    const Answer *outcome = k == NONE ? NULL : outcome_of(b, n, k);
    if (outcome != NULL) {
        place_outcome(b, n, k, outcome);
        return;
    }
    for (int i = 0; i < d.num_args; i++) {
        NodeId from = d.arg[i];
        bool packed =
            k != NONE && b->owner[from] != k && b->reads[from] != NULL;
        arg[i] = packed ? unpack(b, n, b->reads[from], *at(b, from)->type)
                        : b->now[from];
    }
    d.arg = arg;
    if (b->answer[n] != NULL && b->readers[n] == 0)
        d.why = REASON_none; // it is not in memory any more
    b->g->at = d.from;
    b->now[n] = graph_move(b->g, d);
}

static void place_all(Bits *b) {
    for (NodeId n = 0; n < b->old->count; n++) {
        int k = b->owner[n];
        if (k != NONE && n == b->group[k].first)
            open_group(b, k);
        place_node(b, n);
        for (int i = 0;
             k != NONE && n == b->group[k].last && i < b->group[k].num_outputs;
             i++)
            place_answers(b, b->group[k].output[i]);
    }
}

Graph *pass_bit_packing(Graph *g, Arena *scratch, const PassOptions *o) {
    if (o->level == 0)
        return g;
    Bits b = {.old = g,
              .g = graph_like(g),
              .scratch = scratch,
              .stored = graph_stored(g, scratch),
              .tensor = graph_none(g, scratch),
              .readers = ARENA_ARRAY(scratch, g->count, int),
              .answer = ARENA_ARRAY(scratch, g->count, Answer *),
              .reads = ARENA_ARRAY(scratch, g->count, Answer *),
              .now = ARENA_ARRAY(scratch, g->count, NodeId)};
    find_groups(&b);
    for (int k = 0; k < b.count; k++)
        find_questions(&b, k);
    count_readers(&b);
    if (!find_answers(&b, o)) {
        g->rewrites = b.g->rewrites;
        return g;
    }
    place_all(&b);
    return b.g;
}
