// Multi-tensor kernels: all assignments of a step in one launch, and reductions
// over many tensors.
//
// A reduction that assignments need, such as the norm of all gradients, has an
// earlier phase; passes/plan/multi_tensor.c defines the phases.  The last block
// stores assignments of scalars, after all others have read the old values, and
// scalars that other kernels need.

#include "codegen/multi_tensor.h"

#include <string.h>

static void emit_pointer(const Emit *e, Stmts *b, NodeId terms, NodeId n) {
    const Node *d = &e->g->node[n];
    const char *type = memory_type(d->type->dtype), *label = tensor_label(e, n);
    if (is_shard_term(e, terms, n))
        CODE(e, b, n,
             arena_format(e->a, "%s *const p@ = (%s *)(terms + ($ - $));", type,
                          type),
             planned_offset(e, n), planned_offset(e, terms));
    else
        CODE(
            e, b, n,
            arena_format(e->a, "%s *const p@ = (%s *)(arena + $);", type, type),
            planned_offset(e, n));
    b->last->comment = *label ? label : op_info[d->op].name;
}

// Pointers to the scalars that the kernel reads and writes.
static void emit_pointers(const Emit *e, Stmts *b) {
    bool *seen = ARENA_ARRAY(e->a, e->g->count, bool);
    NodeId terms = shard_terms(e->g);
    for (NodeId n = e->group->first; n <= e->group->last; n++)
        for (int i = 0; i < e->g->node[n].num_args; i++) {
            NodeId base = node_base(e->g, e->g->node[n].arg[i]);
            const Node *d = &e->g->node[base];
            if (!is_pointer(e, base) || !is_scalar(e, base) ||
                node_immediate(d) || seen[base])
                continue;
            seen[base] = true;
            emit_pointer(e, b, terms, base);
        }
    for (int i = 0; i < e->group->num_outputs; i++)
        if (e->group->kind == GROUP_UPDATE)
            emit_pointer(e, b, terms, e->group->output[i]);
}

// A reduction without chunks is the sum of its scalar operands.
const Expr *partials_value(Emit *e, Scope *s, NodeId n, Index p) {
    const Node *d = &e->g->node[n];
    bool finite = d->op == OP_all_finite;
    const Expr *x = literal(e->a, F32, 0);
    if (reduction_chunks(e->g, n) > 0) {
        const Expr *offset = integer_of(e, workspace_offset(e, n));
        const Expr *count = finite ? x_name(e->a, "blocks")
                                   : integer_of(e, reduction_chunks(e->g, n));
        x = EXPR(e, "partials_sum(partials + $, $, shared, NT)", offset, count);
    }
    for (int i = 0; i < d->num_args; i++)
        if (is_scalar(e, d->arg[i]))
            x = EXPR(e, finite ? "$ + !is_finite($)" : "$ + $", x,
                     value_at(e, s, d->arg[i], p));
    if (finite)
        x = EXPR(e, "$ == 0.0f ? 1.0f : 0.0f", x);
    return value_set(e, s, n, p, x);
}

// ---- scalars ----

static const Expr *scalar(Emit *e, Scope *s, NodeId n) {
    return value_at(e, s, n, (Index){.flat = true});
}

static void put_scalar(Emit *e, Scope *s, Stmts *b, NodeId to, NodeId x) {
    CODE(e, b, to,
         arena_format(e->a, "put_%s(p@, $);",
                      access_suffix(e->g->node[to].type->dtype)),
         scalar(e, s, x));
}

// The assignments to scalars, and scalar results.
static void emit_assigned(Emit *e, Scope *kernel, Stmts *b) {
    Scope *end = scope_new(e, kernel, IN_END, NULL);
    for (NodeId n = e->group->first; n <= e->group->last; n++) {
        const Node *d = &e->g->node[n];
        if (d->op == OP_assign && is_scalar(e, n))
            put_scalar(e, end, &end->after, node_base(e->g, d->arg[0]),
                       d->arg[1]);
    }
    for (int i = 0; i < e->group->num_outputs; i++)
        put_scalar(e, end, &end->after, e->group->output[i],
                   e->group->output[i]);
    if (end->after.first != NULL)
        CODE(e, b, NO_NODE,
             "if (last_block(counter, blocks) && threadIdx.x == 0) { ~ }",
             scope_close(e, end));
}

// The results of a multi-tensor reduction.
static void emit_results(Emit *e, Scope *kernel, Stmts *b) {
    Scope *done = scope_new(e, kernel, IN_KERNEL, NULL);
    for (int i = 0; i < e->group->num_outputs; i++) {
        NodeId n = e->group->output[i];
        Stmts put = {NULL, NULL};
        put_scalar(e, done, &put, n, n);
        CODE(e, &done->after, n, "if (threadIdx.x == 0) ~", &put);
    }
    CODE(e, b, NO_NODE, "if (last_block(counter, blocks)) { ~ }",
         scope_close(e, done));
}

// ---- phases ----

static Entries emit_phase(Emit *e, Stmts *b, NodeId *root, int phase) {
    Stmts loop = {NULL, NULL}, scalars = {NULL, NULL};
    Scope *kernel = scope_new(e, NULL, IN_KERNEL, NULL);
    e->num_values = 0;
    names_clear(e);
    Entries entries = multi_tensor_write(e, kernel, root, phase);
    if (entries.count > 0)
        multi_tensor_loop(e, &loop, &entries);
    multi_tensor_finite(e, kernel, &loop, phase);
    if (e->group->kind == GROUP_MULTI_REDUCE)
        emit_results(e, kernel, &scalars);
    else if (e->group->kind == GROUP_UPDATE && phase == e->group->phases - 1)
        emit_assigned(e, kernel, &scalars);
    stmts_append(b, scope_close(e, kernel));
    stmts_append(b, &loop);
    stmts_append(b, &scalars);
    return entries;
}

// One block for each multiprocessor, and more if they have two whole chunks
// each.
static int64_t device_blocks(const Emit *e, int64_t chunks, int64_t elements) {
    int64_t blocks = elements / (2 * CHUNK_ELEMENTS);
    if (blocks < e->gpu->multiprocessors)
        blocks = e->gpu->multiprocessors;
    return blocks < chunks ? blocks : chunks;
}

void emit_update(Emit *e, Stmts *b) {
    NodeId *root = entry_roots(e);
    int phases = e->group->phases;
    int64_t chunks = 0, elements = 0; // of the largest phase
    CODE(e, b, NO_NODE, "enum { NT = THREADS(256), VW = MULTI_TENSOR_LANES };");
    if (e->group->workspace != NO_NODE)
        CODE(e, b, NO_NODE, "SHARED float shared[NT];");
    emit_pointers(e, b);
    for (int phase = 0; phase < phases; phase++) {
        Stmts own = {NULL, NULL};
        Entries entries = emit_phase(e, &own, root, phase);
        chunks = entries.chunks > chunks ? entries.chunks : chunks;
        elements = entries.elements > elements ? entries.elements : elements;
        if (phase > 0)
            CODE(e, b, NO_NODE, "GRID_BARRIER(counter + 1);");
        if (phases > 1)
            CODE(e, b, NO_NODE, "PHASE($) { ~ }", x_number(e->a, phase), &own);
        else
            stmts_append(b, &own);
    }
    e->grid[HOST_PLAN] = grid_within(chunks, e->group->grid[HOST_PLAN]);
    e->grid[GPU_PLAN] = grid_within(device_blocks(e, chunks, elements),
                                    e->group->grid[GPU_PLAN]);
}
