// Kernels over parts: all assignments of a step in one launch, and numbers
// about many tensors.
//
// A number that assignments need, as the norm of all gradients, is computed in
// a phase before theirs; passes/plan/multi_tensor.c says what that is.
// Assignments of scalars are stored by the last block, when all others have
// read what they replace, as are numbers that other kernels need.

#include "codegen/member.h"

#include <string.h>

static bool is_scalar(const Emit *e, NodeId n) {
    return type_count(e->g->node[n].type) == 1;
}

static void write_pointer(const Emit *e, Text *t, NodeId n) {
    const Node *d = &e->g->node[n];
    const char *type = memory_type(d->type->dtype), *label = tensor_label(e, n);
    text_line(t,
              "%s *const p" NODE
              " = (%s *)(arena + AT(%lld, %lld));" REMARK(" // %s"),
              type, n, type, (long long)d->offset,
              (long long)e->device->node[n].offset,
              *label ? label : op_info[d->op].name);
}

// Pointers to the scalars that the kernel reads and writes.
static void write_pointers(const Emit *e, Text *t) {
    bool *seen = ARENA_ARRAY(e->a, e->g->count, bool);
    for (NodeId n = e->group->first; n <= e->group->last; n++)
        for (int i = 0; i < e->g->node[n].num_args; i++) {
            NodeId base = node_base(e->g, e->g->node[n].arg[i]);
            const Node *d = &e->g->node[base];
            if (!is_pointer(e, base) || !is_scalar(e, base) ||
                node_immediate(d) || seen[base])
                continue;
            seen[base] = true;
            write_pointer(e, t, base);
        }
    for (int i = 0; i < e->group->num_outputs; i++)
        if (e->group->kind == GROUP_UPDATE)
            write_pointer(e, t, e->group->output[i]);
}

// A number that no part has a share in is the sum of what scalars have.
const char *parts_value(Emit *e, Scope *s, NodeId n, Place p) {
    const Node *d = &e->g->node[n];
    bool finite = d->op == OP_all_finite;
    long long place = sums_place(e, n);
    long long count = (long long)reduction_chunks(e->g, n);
    Text t = text_new(e->a);
    if (count > 0)
        text_add(&t, "parts_sum(part + %s, %s, shared, NT)",
                 number_text(e, arena_format(e->a, "%lld", place)),
                 number_text(e, arena_format(e->a, "%lld", count)));
    else
        text_add(&t, "0.0f");
    for (int i = 0; i < d->num_args; i++)
        if (is_scalar(e, d->arg[i]))
            text_add(&t, finite ? " + !is_finite(%s)" : " + %s",
                     value_at(e, s, d->arg[i], p));
    if (finite)
        text_add(&t, " == 0.0f ? 1.0f : 0.0f");
    return value_set(e, s, n, p, text_string(&t));
}

// ---- scalars ----

static const char *scalar(Emit *e, Scope *s, NodeId n) {
    return value_at(e, s, n, (Place){.flat = true});
}

static void put_scalar(Emit *e, Scope *kernel, Text *t, NodeId to, NodeId x) {
    node_line(t, to, "    put_%s(p#, %s);",
              access_suffix(e->g->node[to].type->dtype), scalar(e, kernel, x));
}

// What is assigned to scalars, and scalars that are results.
static void write_assigned(Emit *e, Scope *kernel, Text *t) {
    Text put = text_new(e->a);
    put.indent = t->indent;
    for (NodeId n = e->group->first; n <= e->group->last; n++) {
        const Node *d = &e->g->node[n];
        if (d->op == OP_assign && is_scalar(e, n))
            put_scalar(e, kernel, &put, node_base(e->g, d->arg[0]), d->arg[1]);
    }
    for (int i = 0; i < e->group->num_outputs; i++)
        put_scalar(e, kernel, &put, e->group->output[i], e->group->output[i]);
    if (put.length == 0)
        return;
    text_line(t, "if (last_block(ticket, blocks) && threadIdx.x == 0) {");
    text_bytes(t, text_string(&put), put.length);
    text_line(t, "}");
}

// What a CHECK leaves in memory.
static void write_results(Emit *e, Scope *kernel, Text *t) {
    Scope *done = scope_new(e, kernel, IN_KERNEL, NULL, t->indent + 1);
    for (int i = 0; i < e->group->num_outputs; i++) {
        NodeId n = e->group->output[i];
        const char *x = scalar(e, done, n);
        text_line(&done->after, "if (threadIdx.x == 0)");
        node_line(&done->after, n, "    put_%s(p#, %s);",
                  access_suffix(e->g->node[n].type->dtype), x);
    }
    text_line(t, "if (last_block(ticket, blocks)) {");
    scope_close(done, t);
    text_line(t, "}");
}

// ---- phases ----

static int64_t write_phase(Emit *e, Text *t, NodeId *root, int phase) {
    Text loop = text_new(e->a), scalars = text_new(e->a);
    Scope *kernel = scope_new(e, NULL, IN_KERNEL, NULL, t->indent);
    loop.indent = scalars.indent = t->indent;
    e->num_values = 0;
    names_clear(e);
    Members m = members_write(e, kernel, root, phase);
    if (m.count > 0)
        members_loop(e, &loop, &m);
    if (e->group->kind == GROUP_CHECK)
        write_results(e, kernel, &scalars);
    else if (e->group->kind == GROUP_UPDATE && phase == e->group->phases - 1)
        write_assigned(e, kernel, &scalars);
    scope_close(kernel, t);
    text_bytes(t, text_string(&loop), loop.length);
    text_bytes(t, text_string(&scalars), scalars.length);
    return m.parts;
}

void emit_update(Emit *e, Text *t, int *grid) {
    NodeId *root = member_roots(e);
    int phases = e->group->phases;
    int64_t most = 0;
    text_line(t, "enum { NT = THREADS(256), VW = PART_LANES };");
    if (e->group->workspace != NO_NODE)
        text_line(t, "SHARED float shared[NT];");
    write_pointers(e, t);
    for (int phase = 0; phase < phases; phase++) {
        if (phase > 0)
            text_line(t, "GRID_BARRIER(ticket + 1);");
        if (phases > 1)
            text_line(t, "PHASE(%d) {", phase);
        t->indent += phases > 1;
        int64_t parts = write_phase(e, t, root, phase);
        most = parts > most ? parts : most;
        t->indent -= phases > 1;
        if (phases > 1)
            text_line(t, "}");
    }
    grid[0] = chunks_grid(most, phases, true);
    grid[1] = chunks_grid(most, phases, false);
}
