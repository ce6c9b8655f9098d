// Entries of a multi-tensor kernel (Entry), and the text of each.
//
// An entry is the set of tensors that an assignment or a reduction uses
// together, such as a weight, its gradient and its momentum.  v_1 in its text
// is numbered within the entry, so equal entries have equal text; v1 is a
// scalar that all entries share.  A scalar computed from an entry's own
// tensors, such as their norm, belongs to the entry.

#include "codegen/multi_tensor.h"

#include <stdlib.h>

static bool reduces(const Emit *e, NodeId n) {
    return op_info[e->g->node[n].op].traits & REDUCES;
}

static bool stacks(const Emit *e, NodeId n) {
    return op_info[e->g->node[n].op].traits & STACKS;
}

// ---- tensors to entries ----

static NodeId find(NodeId *parent, NodeId n) {
    while (parent[n] != n)
        n = parent[n] = parent[parent[n]];
    return n;
}

static void join(NodeId *parent, NodeId a, NodeId b) {
    a = find(parent, a);
    b = find(parent, b);
    if (a < b)
        parent[b] = a;
    else
        parent[a] = b;
}

// Finds the nodes that any entry can read or compute by itself: tensors of
// other kernels that this one does not assign, and functions of them and of
// scalars.
static bool *find_free(const Emit *e) {
    bool *is_free = ARENA_ARRAY(e->a, e->g->count, bool);
    for (NodeId n = 0; n < e->g->count; n++)
        is_free[n] = e->g->node[n].op != OP_assign;
    for (NodeId n = e->group->first; n <= e->group->last; n++)
        if (!is_free[n] && !is_scalar(e, n))
            is_free[node_base(e->g, e->g->node[n].arg[0])] = false;
    for (NodeId n = e->group->first; n <= e->group->last; n++)
        for (int i = 0; i < e->g->node[n].num_args; i++) {
            NodeId base = node_base(e->g, e->g->node[n].arg[i]);
            is_free[n] &= is_scalar(e, base) || is_free[base];
        }
    return is_free;
}

// A free node, and an entry that reads it.
typedef struct {
    NodeId free, entry;
} Reader;

static int by_free(const void *a, const void *b) {
    const Reader *x = a, *y = b;
    if (x->free != y->free)
        return x->free < y->free ? -1 : 1;
    return (x->entry > y->entry) - (x->entry < y->entry);
}

// Merges a few entries that read the same node, such as two biases with one
// gradient.  Many entries would make a long text, so they read it separately.
static void join_few(NodeId *parent, Reader *reader, int count) {
    enum { FEW = 8 };
    for (int i = 0; i < count; i++)
        reader[i] = (Reader){find(parent, reader[i].free),
                             find(parent, reader[i].entry)};
    if (count > 0)
        qsort(reader, (size_t)count, sizeof *reader, by_free);
    for (int i = 0, own; i < count; i += own) {
        int entries = 0;
        for (own = 0; i + own < count && reader[i + own].free == reader[i].free;
             own++)
            entries +=
                own == 0 || reader[i + own].entry != reader[i + own - 1].entry;
        for (int k = 0; k < own && entries <= FEW; k++)
            join(parent, reader[i + k].entry, reader[i].free);
    }
}

static NodeId *find_entries(const Emit *e) {
    NodeId *parent = ARENA_ARRAY(e->a, e->g->count, NodeId);
    bool *is_free = find_free(e);
    Reader *reader = NULL;
    int count = 0;
    for (NodeId n = 0; n < e->g->count; n++)
        parent[n] = n;
    for (NodeId n = e->group->first; n <= e->group->last; n++) {
        const Node *d = &e->g->node[n];
        bool separate = is_scalar(e, n) || d->op == OP_slice || stacks(e, n);
        for (int i = 0; i < d->num_args && !separate; i++) {
            NodeId base = node_base(e->g, d->arg[i]);
            if (is_scalar(e, base) || node_immediate(&e->g->node[base]))
                continue;
            if (is_free[n] == is_free[base])
                join(parent, n, base);
            else
                ARENA_APPEND(e->a, reader, count, ((Reader){base, n}));
        }
    }
    join_few(parent, reader, count);
    return parent;
}

// Marks nodes computed from a slice that is read element by element.
static bool *find_scalarized(const Emit *e) {
    size_t count = (size_t)(e->group->last - e->group->first) + 1;
    bool *scalarized = ARENA_ARRAY(e->a, count, bool);
    for (NodeId n = e->group->first; n <= e->group->last; n++) {
        const Node *d = &e->g->node[n];
        bool *own = &scalarized[n - e->group->first];
        *own = d->op == OP_slice && slice_is_scalarized(e, n);
        for (int i = 0; i < d->num_args && !is_scalar(e, n); i++)
            *own |= group_has(e->group, d->arg[i]) &&
                    scalarized[d->arg[i] - e->group->first];
    }
    return scalarized;
}

// The entry of a reduction's tensor, or of all scalars below a scalar; else
// NO_NODE.  A reduction over several entries belongs to none.
static NodeId find_owner(const Emit *e, const NodeId *root, NodeId n) {
    const Node *d = &e->g->node[n];
    NodeId owner = NO_NODE;
    if (op_info[d->op].traits & REDUCES_ALL)
        return NO_NODE;
    for (int i = 0; i < d->num_args; i++) {
        NodeId base = node_base(e->g, d->arg[i]);
        NodeId of = reduces(e, n) ? root[base]
                    : group_has(e->group, base)
                        ? e->owner[base - e->group->first]
                        : NO_NODE;
        bool whole = is_scalar(e, base) || node_immediate(&e->g->node[base]);
        if (reduces(e, n) && whole)
            return NO_NODE;
        if (of == NO_NODE)
            continue;
        if (owner != NO_NODE && owner != of)
            return NO_NODE;
        owner = of;
    }
    return owner;
}

NodeId *entry_roots(Emit *e) {
    NodeId *root = find_entries(e);
    for (NodeId n = 0; n < e->g->count; n++)
        root[n] = find(root, n);
    size_t count = (size_t)(e->group->last - e->group->first) + 1;
    e->owner = ARENA_ARRAY(e->a, count, NodeId);
    e->chunk_offsets = ARENA_ARRAY(e->a, count, const int64_t *);
    for (NodeId n = e->group->first; n <= e->group->last; n++)
        e->owner[n - e->group->first] =
            is_scalar(e, n) ? find_owner(e, root, n) : NO_NODE;
    e->scalarized = find_scalarized(e);
    return root;
}

bool is_pointer(const Emit *e, NodeId n) {
    return !group_has(e->group, n) && node_base(e->g, n) == n;
}

// ---- assignments ----

// A pad below an assignment becomes a store to other addresses.
static NodeId scattered(const Emit *e, NodeId value) {
    return group_has(e->group, value) && e->g->node[value].op == OP_pad
               ? value
               : NO_NODE;
}

static void assign(Emit *e, Scope *s, NodeId n, Index p) {
    const Node *d = &e->g->node[n];
    DType type = d->type->dtype;
    NodeId pad = scattered(e, d->arg[1]);
    NodeId from = pad == NO_NODE ? d->arg[1] : e->g->node[pad].arg[0];
    const Expr *x = value_at(e, s, from, p), *i = x_name(e->a, "i");
    const Expr *to = pointer_name(e, d->arg[0]);
    if (p.lanes == NULL) {
        const Expr *at =
            pad == NO_NODE
                ? i
                : slice_offset(e, s, *e->g->node[from].type,
                               *e->g->node[pad].type, &e->g->node[pad], i);
        CODE(e, &s->after, n,
             arena_format(e->a, "put_%s($, $);", access_suffix(type)),
             x_address(e->a, to, at), x);
        return;
    }
    const Expr *out = value_name(e, "out", d->arg[0]);
    CODE(e, &s->before, n, arena_format(e->a, "%s $[VW];", held_type(type)),
         out);
    CODE(e, &s->lanes, n, "$[k] = $;", out, x);
    CODE(e, &s->after, n,
         arena_format(e->a, "store_%s($ + i, $, VW);", access_suffix(type)), to,
         out);
}

// The elements that an assignment computes: the pad's operand, if it pads.
static NodeId assigned(const Emit *e, NodeId n) {
    NodeId value = e->g->node[n].arg[1], pad = scattered(e, value);
    return pad == NO_NODE ? value : e->g->node[pad].arg[0];
}

// ---- reductions ----

// The workspace offset of the partial sums of operand i of reduction n.
static int64_t operand_start(Emit *e, NodeId n, int i) {
    const int64_t **before = &e->chunk_offsets[n - e->group->first];
    if (*before == NULL)
        *before = chunks_before(e->g, n, e->a);
    return workspace_offset(e, n) + (*before)[i];
}

// The value of operand i of reduction n, and 0 for lanes past the end of the
// tensor.
static const Expr *reduced(Emit *e, Scope *s, NodeId n, int i, Index p) {
    const Expr *x = value_at(e, s, e->g->node[n].arg[i], p);
    bool has_rest = p.lanes != NULL && p.dim[0] % MAX_LANES != 0;
    return has_rest ? EXPR(e, "i + k < hi ? $ : 0.0f", x) : x;
}

// A product with 0 is 0, or NaN for an infinity and NaN, and so is their sum.
static void reduce_finite(Emit *e, Scope *s, NodeId n, int i, Index p) {
    const Expr *x = reduced(e, s, n, i, p);
    if (p.lanes == NULL)
        CODE(e, &s->after, n, "finite@[0] = fma_of($, 0.0f, finite@[0]);", x);
    else
        CODE(e, &s->lanes, n, "finite@[k] = fma_of($, 0.0f, finite@[k]);", x);
}

// Adds operand i of reduction n to the partial sum of this chunk.
static void reduce(Emit *e, Scope *entry, Scope *s, NodeId n, int i, Index p) {
    const Expr *sum = index_name(e, "s");
    const Expr *x = reduced(e, s, n, i, p);
    const Expr *lanes = p.lanes != NULL ? p.lanes : e->one;
    CODE(e, &entry->before, n, "float $[$]; LANES_DO(k, $) $[k] = 0.0f;", sum,
         lanes, lanes, sum);
    if (p.lanes == NULL)
        CODE(e, &s->after, n, "$[0] += $;", sum, x);
    else
        CODE(e, &s->lanes, n, "$[k] += $;", sum, x);
    CODE(e, &entry->after, n,
         "total_sum(partials + $ + (chunk - entry.first), $, $, shared, NT);",
         integer_of(e, operand_start(e, n, i)), sum, lanes);
}

// ---- stacks ----

// Whether operand i of a stack fills its block.
static bool fills_block(const Emit *e, NodeId n, int i) {
    Type t = *e->g->node[e->g->node[n].arg[i]].type, all = *e->g->node[n].type;
    return t.dim[0] == all.dim[1] &&
           type_count(&t) == all.dim[1] * all.dim[2] &&
           type_count(&t) % 64 == 0;
}

// Element i of the block of operand `operand`, with zeros outside of the
// operand.  Other operands of the stack may have more rows and columns.
static void put_in_block(Emit *e, Scope *s, NodeId n, int operand, Index p) {
    const Node *d = &e->g->node[n];
    Type t = *e->g->node[d->arg[operand]].type;
    int64_t columns = type_count(&t) / t.dim[0];
    const Expr *all = integer_of(e, d->type->dim[2]),
               *own = integer_of(e, columns);
    int j = ++e->num_indices;
    const Expr *r = x_name(e->a, arena_format(e->a, "r%d", j));
    const Expr *c = x_name(e->a, arena_format(e->a, "c%d", j));
    const Expr *inside = x_name(e->a, arena_format(e->a, "inside%d", j));
    const Expr *rows = integer_of(e, t.dim[0]);
    p.index[0] = x_name(e->a, arena_format(e->a, "x%d", j));
    CODE(e, &s->before, n,
         "const int $ = i / $, $ = i % $;"
         "const int $ = $ < $ && $ < $;"
         "const int $ = $ ? $ * $ + $ : 0;",
         r, all, c, all, inside, r, rows, c, own, p.index[0], inside, r, own,
         c);
    const Expr *x = value_at(e, s, d->arg[operand], p);
    CODE(e, &s->after, n,
         arena_format(e->a, "put_%s(p@ + $ + i, $ ? $ : 0.0f);",
                      access_suffix(d->type->dtype)),
         integer_of(e, operand * d->type->dim[1] * d->type->dim[2]), inside, x);
}

static void stack(Emit *e, Scope *s, NodeId n, int operand, Index p) {
    const Node *d = &e->g->node[n];
    if (!fills_block(e, n, operand)) {
        put_in_block(e, s, n, operand, p);
        return;
    }
    const Expr *x = value_at(e, s, d->arg[operand], p);
    const char *suffix = access_suffix(d->type->dtype);
    const Expr *first =
        integer_of(e, operand * d->type->dim[1] * d->type->dim[2]);
    if (p.lanes == NULL) {
        CODE(e, &s->after, n,
             arena_format(e->a, "put_%s(p@ + $ + i, $);", suffix), first, x);
        return;
    }
    const Expr *out = index_name(e, "out");
    CODE(e, &s->before, n, "float $[VW];", out);
    CODE(e, &s->lanes, n, "$[k] = $;", out, x);
    CODE(e, &s->after, n,
         arena_format(e->a, "store_%s(p@ + $ + i, $, VW);", suffix), first,
         out);
}

// ---- the statements of an entry ----

// A task: one phase's work on the tensors of an entry.  It is an assignment, or
// operand `operand` of a reduction or a stack.
typedef struct {
    NodeId node;
    int operand;
    NodeId value; // computed for each element
} Task;

// Appends the tasks of node n in this phase.
static int add_tasks(const Emit *e, NodeId n, int phase, Task *task,
                     int count) {
    const Node *d = &e->g->node[n];
    bool last = phase == e->group->phases - 1;
    if (d->op == OP_assign && !is_scalar(e, n) && last)
        task[count++] = (Task){n, 0, assigned(e, n)};
    bool now = stacks(e, n)
                   ? last
                   : reduces(e, n) &&
                         e->group->node_phase[n - e->group->first] == phase;
    if (!now)
        return count;
    for (int i = 0; i < d->num_args; i++)
        if (!is_scalar(e, d->arg[i]) || stacks(e, n))
            task[count++] = (Task){n, i, d->arg[i]};
    return count;
}

static Task *find_tasks(const Emit *e, int phase, int *count) {
    size_t most = 1;
    for (NodeId n = e->group->first; n <= e->group->last; n++)
        most += (size_t)e->g->node[n].num_args;
    Task *task = ARENA_ARRAY(e->a, most, Task);
    *count = 0;
    for (NodeId n = e->group->first; n <= e->group->last; n++)
        *count = add_tasks(e, n, phase, task, *count);
    return task;
}

// The entry of a task.
static NodeId task_root(const Emit *e, const NodeId *root, Task task) {
    bool assigns = e->g->node[task.node].op == OP_assign;
    return root[node_base(e->g, assigns ? task.node : task.value)];
}

// Forgets the entry's values; the kernel's values stay.
static void forget(Emit *e, const Scope *kernel, int mark) {
    int kept = mark;
    for (int i = mark; i < e->num_values; i++)
        if (e->value[i].scope == kernel)
            e->value[kept++] = e->value[i];
    e->num_values = kept;
}

// Ends the local numbering of an entry.
static void take_tensors(Emit *e, Entry *to) {
    to->tensor = ARENA_ARRAY(e->a, (size_t)e->num_local + 1, NodeId);
    to->num_tensors = e->num_local;
    for (int i = 0; i < e->num_local; i++) {
        NodeId n = to->tensor[i] = e->local_node[i];
        e->local[n] = e->names[n] = 0;
    }
}

// The loop over the elements of a chunk, with the statements before and after.
static Stmts loop_of(Emit *e, Scope *entry, Scope *s, bool single,
                     int64_t elements) {
    enum { FEW = 3 * 1024 }; // elements, of which a GPU's block has three turns
    Stmts b = entry->before, turn = *scope_close(e, s);
    int turns = single || elements <= FEW ? 1 : unroll_turns(e->a, &turn);
    if (single)
        CODE(e, &b, NO_NODE,
             "for (int i = lo + threadIdx.x; i < hi; i += NT) { ~ }", &turn);
    else
        CODE(e, &b, NO_NODE,
             "for (int i = lo + threadIdx.x * VW; i < hi; i += $) { ~ }",
             turn_elements(e->a, turns), &turn);
    stmts_append(&b, &entry->after);
    return b;
}

// Whether a task takes one element at a time.
static bool is_single(const Emit *e, Task t) {
    const Node *d = &e->g->node[t.node];
    if (d->op == OP_assign && scattered(e, d->arg[1]) != NO_NODE)
        return true;
    if (stacks(e, t.node) && !fills_block(e, t.node, t.operand))
        return true;
    return group_has(e->group, t.value) &&
           e->scalarized[t.value - e->group->first];
}

// Number of elements of a task: in a stack, all of its block.
static int64_t task_elements(const Emit *e, Task t) {
    Type all = *e->g->node[t.node].type;
    return stacks(e, t.node) ? all.dim[1] * all.dim[2]
                             : type_count(e->g->node[t.value].type);
}

static void perform(Emit *e, Scope *entry, Scope *s, Task t, Index p) {
    if (e->g->node[t.node].op == OP_assign)
        assign(e, s, t.node, p);
    else if (stacks(e, t.node))
        stack(e, s, t.node, t.operand, p);
    else if (e->g->node[t.node].op == OP_all_finite)
        reduce_finite(e, s, t.node, t.operand, p);
    else
        reduce(e, entry, s, t.node, t.operand, p);
}

static void write_entry(Emit *e, Scope *kernel, const Task *task, int count,
                        Entry *to) {
    int mark = e->num_values;
    bool single = false;
    e->num_local = e->num_numbers = e->num_indices = 0;
    e->entry = to->root;
    for (int i = 0; i < count; i++) {
        to->elements = task_elements(e, task[i]);
        single |= is_single(e, task[i]);
    }
    Index p = {.rank = 1,
               .flat = true,
               .index = {x_name(e->a, "i")},
               .dim = {to->elements},
               .lanes = single ? NULL : e->vw};
    Scope *entry = scope_new(e, kernel, IN_ENTRY, NULL);
    Scope *s = scope_new(e, entry, IN_LOOP, e->vw);
    for (int i = 0; i < count; i++)
        perform(e, entry, s, task[i], p);
    to->body = loop_of(e, entry, s, single, to->elements);
    to->number = e->number;
    to->num_numbers = e->num_numbers;
    take_tensors(e, to);
    e->number = NULL;
    e->entry = NO_NODE;
    forget(e, kernel, mark);
}

// Sorts tasks by entry, in order of each entry's first task.  The sort is
// stable.
static Task *by_entry(const Emit *e, const NodeId *root, const Task *task,
                      int count) {
    int *first = ARENA_ARRAY(e->a, e->g->count, int); // index + 1
    int *last = ARENA_ARRAY(e->a, e->g->count, int);
    int *next = ARENA_ARRAY(e->a, (size_t)count + 1, int);
    Task *sorted = ARENA_ARRAY(e->a, (size_t)count + 1, Task);
    for (int i = 0; i < count; i++) {
        NodeId entry = task_root(e, root, task[i]);
        if (first[entry] == 0)
            first[entry] = i + 1;
        else
            next[last[entry]] = i + 1;
        last[entry] = i;
    }
    int done = 0;
    for (int i = 0; i < count; i++)
        if (first[task_root(e, root, task[i])] == i + 1)
            for (int j = i + 1; j > 0; j = next[j - 1])
                sorted[done++] = task[j - 1];
    return sorted;
}

Entries multi_tensor_write(Emit *e, Scope *kernel, NodeId *root, int phase) {
    int count;
    Task *task = find_tasks(e, phase, &count);
    task = by_entry(e, root, task, count);
    Entries all = {
        .entry = ARENA_ARRAY(e->a, (size_t)count + 1, Entry),
        .suffix = e->group->phases > 1 ? arena_format(e->a, "_%d", phase) : ""};
    e->local = ARENA_ARRAY(e->a, e->g->count, int);
    for (int i = 0, own; i < count; i += own) {
        Entry *entry = &all.entry[all.count++];
        entry->root = task_root(e, root, task[i]);
        own = 1;
        while (i + own < count &&
               task_root(e, root, task[i + own]) == entry->root)
            own++;
        write_entry(e, kernel, &task[i], own, entry);
        all.chunks += chunk_count(entry->elements);
        all.elements += entry->elements;
    }
    e->local = NULL;
    return all;
}

void multi_tensor_finite(Emit *e, Scope *kernel, Stmts *after, int phase) {
    for (NodeId n = e->group->first; n <= e->group->last; n++) {
        if (e->g->node[n].op != OP_all_finite ||
            e->group->node_phase[n - e->group->first] != phase ||
            reduction_chunks(e->g, n) == 0)
            continue;
        CODE(e, &kernel->before, n,
             "float finite@[VW]; LANES_DO(k, VW) finite@[k] = 0.0f;");
        CODE(e, after, n,
             "total_sum(partials + $ + block, finite@, VW, shared, NT);",
             x_size(e->a, workspace_offset(e, n)));
    }
}
