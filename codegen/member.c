// The members of a kernel over parts, and the text of each.
//
// Tensors that assignments or numbers need together (a weight, its gradient and
// its momentum) are a member.  v_1 in its text is numbered within it, so that
// equal members have equal text; v1 is a scalar that all share.  A scalar that
// is computed from a member's own tensors, as their norm, is part of it.

#include "codegen/member.h"

static bool is_scalar(const Emit *e, NodeId n) {
    return type_count(e->g->node[n].type) == 1;
}

static bool is_own(const Emit *e, NodeId n) {
    return n >= e->group->first && n <= e->group->last;
}

static bool reduces(const Emit *e, NodeId n) {
    return op_info[e->g->node[n].op].facts & REDUCES;
}

// ---- which tensors are together ----

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

static NodeId *find_members(const Emit *e) {
    NodeId *parent = ARENA_ARRAY(e->a, e->g->count, NodeId);
    for (NodeId n = 0; n < e->g->count; n++)
        parent[n] = n;
    for (NodeId n = e->group->first; n <= e->group->last; n++) {
        const Node *d = &e->g->node[n];
        for (int i = 0; i < d->num_args; i++) {
            NodeId base = node_base(e->g, d->arg[i]);
            if (!is_scalar(e, n) && !is_scalar(e, base) &&
                !node_immediate(&e->g->node[base]))
                join(parent, n, base);
        }
    }
    return parent;
}

// The member that the tensor of a reduction, or all scalars below a scalar,
// belong to, or NO_NODE.  A number about any tensors is nobody's own.
static NodeId find_owner(const Emit *e, const NodeId *root, NodeId n) {
    const Node *d = &e->g->node[n];
    NodeId owner = NO_NODE;
    if (op_info[d->op].facts & OVERALL)
        return NO_NODE;
    for (int i = 0; i < d->num_args; i++) {
        NodeId base = node_base(e->g, d->arg[i]);
        NodeId of = reduces(e, n)     ? root[base]
                    : is_own(e, base) ? e->owner[base - e->group->first]
                                      : NO_NODE;
        if (reduces(e, n) && is_scalar(e, base))
            return NO_NODE;
        if (of == NO_NODE)
            continue;
        if (owner != NO_NODE && owner != of)
            return NO_NODE;
        owner = of;
    }
    return owner;
}

NodeId *member_roots(Emit *e) {
    NodeId *root = find_members(e);
    for (NodeId n = 0; n < e->g->count; n++)
        root[n] = find(root, n);
    size_t count = (size_t)(e->group->last - e->group->first) + 1;
    e->owner = ARENA_ARRAY(e->a, count, NodeId);
    for (NodeId n = e->group->first; n <= e->group->last; n++)
        e->owner[n - e->group->first] =
            is_scalar(e, n) ? find_owner(e, root, n) : NO_NODE;
    return root;
}

bool is_pointer(const Emit *e, NodeId n) {
    return !is_own(e, n) && node_base(e->g, n) == n;
}

// ---- assignments ----

// A pad below an assignment is a store to other addresses.
static NodeId scattered(const Emit *e, NodeId value) {
    return is_own(e, value) && e->g->node[value].op == OP_pad ? value : NO_NODE;
}

// Where element i of the pad's operand is in its result.
static const char *scatter_offset(Emit *e, Scope *s, NodeId pad) {
    const Node *d = &e->g->node[pad];
    Type from = e->g->node[d->arg[0]].type;
    Place p = {.rank = from.rank};
    int64_t stride = 1;
    for (int i = from.rank - 1; i >= 0; i--) {
        const char *name = arena_format(e->a, "x%d", ++e->num_indices);
        text_line(&s->before, "const int %s = i / %lld %% %lld + %lld;", name,
                  (long long)stride, (long long)from.dim[i],
                  (long long)node_ints(d, ATTR_low, i, 0));
        p.dim[i] = d->type.dim[i];
        p.index[i] = name;
        stride *= from.dim[i];
    }
    return place_offset(e, p);
}

static void assign(Emit *e, Scope *s, NodeId n, Place p) {
    const Node *d = &e->g->node[n];
    DType type = d->type.dtype;
    NodeId pad = scattered(e, d->arg[1]);
    NodeId from = pad == NO_NODE ? d->arg[1] : e->g->node[pad].arg[0];
    const char *x = value_at(e, s, from, p);
    const char *to = pointer_name(e, d->arg[0]);
    if (p.lanes == NULL) {
        const char *at = pad == NO_NODE ? "i" : scatter_offset(e, s, pad);
        text_line(&s->after, "put_%s(%s + %s, %s);", access_suffix(type), to,
                  at, x);
        return;
    }
    const char *out = value_name(e, "out", d->arg[0]);
    text_line(&s->before, "%s %s[VW];", held_type(type), out);
    text_line(&s->lanes, "%s[k] = %s;", out, x);
    text_line(&s->after, "store_%s(%s + i, %s, VW);", access_suffix(type), to,
              out);
}

// The elements that an assignment computes: those of what is padded.
static NodeId assigned(const Emit *e, NodeId n) {
    NodeId value = e->g->node[n].arg[1], pad = scattered(e, value);
    return pad == NO_NODE ? value : e->g->node[pad].arg[0];
}

// ---- reductions ----

// Adds operand i of reduction n to what this part leaves in the scratch.
// Lanes behind the end of the tensor are no part of it.
static void reduce(Emit *e, Scope *member, Scope *s, NodeId n, int i, Place p) {
    const char *sum = arena_format(e->a, "s%d", ++e->num_indices);
    const char *x = value_at(e, s, e->g->node[n].arg[i], p);
    bool finite = e->g->node[n].op == OP_all_finite;
    text_line(&member->before, "float %s[VW];", sum);
    text_line(&member->before, "LANES_DO(k, VW) %s[k] = 0.0f;", sum);
    if (finite)
        text_line(&s->lanes,
                  "%s[k] += i + k < hi && !is_finite(%s) ? 1.0f : 0.0f;", sum,
                  x);
    else
        text_line(&s->lanes, "%s[k] += i + k < hi ? %s : 0.0f;", sum, x);
    int64_t place = part_place(e->g, e->group, n, i);
    const char *first =
        number_text(e, arena_format(e->a, "%lld", (long long)place));
    text_line(&member->after,
              "total_sum(part + %s + (at - first), %s, VW, shared, NT);", first,
              sum);
}

// ---- the text of a member ----

// What a phase does to tensors of a member: an assignment, or operand `operand`
// of a reduction.
typedef struct {
    NodeId node;
    int operand;
    NodeId value; // what is computed for each element
} Task;

// Appends what node n does to tensors in this phase.
static int add_tasks(const Emit *e, NodeId n, int phase, Task *task,
                     int count) {
    const Node *d = &e->g->node[n];
    bool last = phase == e->group->phases - 1;
    if (d->op == OP_assign && !is_scalar(e, n) && last)
        task[count++] = (Task){n, 0, assigned(e, n)};
    if (!reduces(e, n) || e->group->level[n - e->group->first] != phase)
        return count;
    for (int i = 0; i < d->num_args; i++)
        if (!is_scalar(e, d->arg[i]))
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

// The member that a task belongs to.
static NodeId task_root(const Emit *e, const NodeId *root, Task task) {
    bool assigns = e->g->node[task.node].op == OP_assign;
    return root[node_base(e->g, assigns ? task.node : task.value)];
}

// Values of a member are of no use to the next; those of the kernel are.
static void forget(Emit *e, const Scope *kernel, int mark) {
    int kept = mark;
    for (int i = mark; i < e->num_values; i++)
        if (e->value[i].scope == kernel)
            e->value[kept++] = e->value[i];
    e->num_values = kept;
}

// Ends the numbering of a member.
static void take_tensors(Emit *e, Member *m) {
    m->tensor = ARENA_ARRAY(e->a, (size_t)e->num_local + 1, NodeId);
    m->num_tensors = e->num_local;
    for (int i = 0; i < e->num_local; i++) {
        NodeId n = m->tensor[i] = e->local_node[i];
        e->local[n] = e->names[n] = 0;
    }
}

// The loop over the elements of a part, with what comes before and after it.
static const char *loop_text(Emit *e, Scope *member, Scope *s, bool single) {
    Text t = text_new(e->a);
    t.indent = member->before.indent;
    text_bytes(&t, text_string(&member->before), member->before.length);
    text_line(&t, single ? "for (int i = lo + threadIdx.x; i < hi; i += NT) {"
                         : "for (int i = lo + threadIdx.x * VW; i < hi; "
                           "i += NT * VW) {");
    scope_close(e, s, &t);
    text_line(&t, "}");
    text_bytes(&t, text_string(&member->after), member->after.length);
    return text_string(&t);
}

static void write_member(Emit *e, Scope *kernel, const Task *task, int count,
                         Member *m) {
    int mark = e->num_values, indent = kernel->before.indent + 2;
    bool single = false;
    e->num_local = e->num_constants = e->max_constants = e->num_indices = 0;
    e->member = m->root;
    for (int i = 0; i < count; i++) {
        m->elements = type_count(e->g->node[task[i].value].type);
        single |= e->g->node[task[i].node].op == OP_assign &&
                  scattered(e, e->g->node[task[i].node].arg[1]) != NO_NODE;
    }
    Place p = {.rank = 1,
               .flat = true,
               .index = {"i"},
               .dim = {m->elements},
               .lanes = single ? NULL : "VW"};
    Scope *member = scope_new(e, kernel, IN_MEMBER, NULL, indent);
    Scope *s = scope_new(e, member, IN_ROW, "VW", indent + 1);
    for (int i = 0; i < count; i++)
        if (e->g->node[task[i].node].op == OP_assign)
            assign(e, s, task[i].node, p);
        else
            reduce(e, member, s, task[i].node, task[i].operand, p);
    m->text = loop_text(e, member, s, single);
    m->number = e->constant;
    m->num_numbers = e->num_constants;
    take_tensors(e, m);
    e->constant = NULL;
    e->member = NO_NODE;
    forget(e, kernel, mark);
}

// Sorts tasks by member, those of one in their order, and members by the first
// task of each.
static Task *by_member(const Emit *e, const NodeId *root, const Task *task,
                       int count) {
    int *first = ARENA_ARRAY(e->a, e->g->count, int); // place + 1
    int *last = ARENA_ARRAY(e->a, e->g->count, int);
    int *next = ARENA_ARRAY(e->a, (size_t)count + 1, int);
    Task *sorted = ARENA_ARRAY(e->a, (size_t)count + 1, Task);
    for (int i = 0; i < count; i++) {
        NodeId member = task_root(e, root, task[i]);
        if (first[member] == 0)
            first[member] = i + 1;
        else
            next[last[member]] = i + 1;
        last[member] = i;
    }
    int done = 0;
    for (int i = 0; i < count; i++)
        if (first[task_root(e, root, task[i])] == i + 1)
            for (int j = i + 1; j > 0; j = next[j - 1])
                sorted[done++] = task[j - 1];
    return sorted;
}

Members members_write(Emit *e, Scope *kernel, NodeId *root, int phase) {
    int count;
    Task *task = find_tasks(e, phase, &count);
    task = by_member(e, root, task, count);
    Members all = {
        .member = ARENA_ARRAY(e->a, (size_t)count + 1, Member),
        .suffix = e->group->phases > 1 ? arena_format(e->a, "_%d", phase) : ""};
    e->local = ARENA_ARRAY(e->a, e->g->count, int);
    for (int i = 0, own; i < count; i += own) {
        Member *m = &all.member[all.count++];
        m->root = task_root(e, root, task[i]);
        own = 1;
        while (i + own < count && task_root(e, root, task[i + own]) == m->root)
            own++;
        write_member(e, kernel, &task[i], own, m);
        all.parts += part_count(m->elements);
    }
    e->local = NULL;
    return all;
}
