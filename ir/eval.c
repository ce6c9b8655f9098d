// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Eval: the meaning of every operation, slowly and exactly, in double.
//
// It folds constants and judges every kernel, so each rule is the operation's
// definition and nothing else: no expansion into other operations, no order of
// sums that a kernel would choose.  Rules are in the files of this name's
// folder, those of leaves here.
#include "ir/eval/rule.h"
#include "ir/factor.h"
#include "ir/first_update.h"
#include "ir/products.h"

#include <string.h>

// ---- leaves ----

static void eval_constant(const Eval *e) {
    const Attr *values = node_attr(e->n, ATTR_values);
    for (int64_t i = 0; i < type_count(e->n->type); i++)
        e->out[i] = values->floats[values->count == 1 ? 0 : i];
}

static void eval_iota(const Eval *e) {
    Type t = *e->n->type;
    int64_t stride = 1, axis = node_int(e->n, ATTR_axis, 0);
    for (int k = t.rank - 1; k > axis; k--)
        stride *= t.dim[k];
    for (int64_t i = 0; i < type_count(&t); i++)
        e->out[i] =
            (double)(node_int(e->n, ATTR_from, 0) + i / stride % t.dim[axis]);
}

static void fill(const Eval *e, double v) {
    for (int64_t i = 0; i < type_count(e->n->type); i++)
        e->out[i] = v;
}

// ---- library calls ----

static void eval_conv(const Eval *e) {
    if (call_adds_to(e->n) != NO_NODE)
        memcpy(e->out, arg(e, 2),
               (size_t)type_count(e->n->type) * sizeof *e->out);
    conv_eval(e->g, e->n, e->value, e->out);
}

static void eval_matmul(const Eval *e) {
    matmul_eval(e->g, e->n, e->value, e->out);
}

// ---- one rule for each operation ----

// Leaves that are given, and memory that nothing has written.
static void eval_nothing(const Eval *e) {
    (void)e;
}

static void eval_state(const Eval *e) {
    fill(e, node_float(e->n, ATTR_init, 0));
}

static void eval_loss_scale(const Eval *e) {
    fill(e, 1);
}

static void eval_eigh(const Eval *e) {
    factor_eigh(arg(e, 0), e->n->type->dim[1], e->out, e->arena);
}

static void eval_orthogonal(const Eval *e) {
    Type t = *e->n->type;
    factor_orthogonal(arg(e, 0), t.dim[0], t.dim[1], e->out);
}

static void eval_clip(const Eval *e) {
    e->out[0] = clip_eval(e->g, e->n, e->value);
}

static void eval_update(const Eval *e) {
    update_eval(e->g, e->n, e->value, e->arena, e->out);
}

// Operations that are not here are computed element by element.
static void (*const rules[NUM_OPS])(const Eval *) = {
    [OP_input] = eval_nothing,
    [OP_param] = eval_nothing,
    [OP_workspace] = eval_nothing,
    [OP_state] = eval_state,
    [OP_constant] = eval_constant,
    [OP_iota] = eval_iota,
    [OP_loss_scale] = eval_loss_scale,
    [OP_sum] = eval_sum,
    [OP_max] = eval_max,
    [OP_var] = eval_var,
    [OP_argmax] = eval_argmax,
    [OP_all_finite] = eval_all_finite,
    [OP_total] = eval_total,
    [OP_reshape] = eval_copy,
    [OP_stack] = eval_stack,
    [OP_pad] = eval_pad,
    [OP_slice] = eval_slice,
    [OP_shift] = eval_shift,
    [OP_flip] = eval_flip,
    [OP_transpose] = eval_transpose,
    [OP_gather] = eval_gather,
    [OP_gather_grad] = eval_gather_grad,
    [OP_take] = eval_take,
    [OP_pack] = eval_pack,
    [OP_unpack] = eval_unpack,
    [OP_max_pool] = eval_max_pool,
    [OP_max_pool_index] = eval_max_pool_index,
    [OP_max_pool_grad] = eval_max_pool_grad,
    [OP_avg_pool] = eval_avg_pool,
    [OP_avg_pool_grad] = eval_avg_pool_grad,
    [OP_resize] = eval_resize,
    [OP_resize_grad] = eval_resize_grad,
    [OP_conv] = eval_conv,
    [OP_conv_grad_input] = eval_conv,
    [OP_conv_grad_weight] = eval_conv,
    [OP_matmul] = eval_matmul,
    [OP_attention] = eval_attention,
    [OP_attention_lse] = eval_attention_lse,
    [OP_attention_grad] = eval_attention_grad,
    [OP_eigh] = eval_eigh,
    [OP_orthogonal] = eval_orthogonal,
    [OP_sum_over_shards] = eval_copy,
    [OP_batch_norm] = eval_batch_norm,
    [OP_cross_entropy] = eval_cross_entropy,
    [OP_softmax] = eval_softmax,
    [OP_log_softmax] = eval_log_softmax,
    [OP_stop_gradient] = eval_copy,
    [OP_gradient] = eval_copy,
    [OP_assign] = eval_copy,
    [OP_output] = eval_copy,
    [OP_accumulated] = eval_copy,
    [OP_clip] = eval_clip,
    [OP_accumulate] = eval_update,
#define OPTIMIZER(name, ...) [OP_##name] = eval_update,
#include "ir/optimizers.def"
};

void node_eval(const Graph *g, NodeId n, double *const *value, double *out,
               Arena *a) {
    const Node *d = &g->node[n];
    Eval e = {g, d, out, value, a};
    (rules[d->op] ? rules[d->op] : eval_pointwise)(&e);
}

static void round_all(const Graph *g, Type t, double *value) {
    DType d = t.dtype == ACT ? g->act : t.dtype;
    int64_t count = type_count(&t);
    for (int64_t i = 0; i < count; i++)
        value[i] = dtype_round(d, value[i]);
}

// clip reads gradients that may come after it, and optimizers both.  Nothing
// else reads their results, so they are computed last.
static int turn(const Node *n) {
    return n->op == OP_clip ? 1 : op_info[n->op].traits & OPTIMIZES ? 2 : 0;
}

// The elements of node id, in arena a.
static double *node_value(const Graph *g, NodeId id, Arena *a,
                          double *const *value, const double *leaf) {
    size_t count = (size_t)type_count(g->node[id].type);
    bool whole = leaf != NULL || op_info[g->node[id].op].traits & POINTWISE;
    double *out = whole ? ARENA_UNINIT(a, count + 1, double)
                        : ARENA_ARRAY(a, count + 1, double);
    if (leaf == NULL)
        node_eval(g, id, value, out, a);
    else if (count)
        memcpy(out, leaf, count * sizeof *out);
    return out;
}

double **graph_eval(const Graph *g, Arena *a, double *const *leaf, bool round) {
    double **value = ARENA_ARRAY(a, g->count + 1, double *);
    for (int late = 0; late <= 2; late++)
        for (NodeId id = 0; id < g->count; id++) {
            if (turn(&g->node[id]) != late)
                continue;
            value[id] = node_value(g, id, a, value, leaf ? leaf[id] : NULL);
            if (round)
                round_all(g, *g->node[id].type, value[id]);
        }
    return value;
}

// How often kept nodes, and the nodes that they need, read each node.
static int *reads_count(const Graph *g, Arena *a, const bool *kept) {
    int *reads = ARENA_ARRAY(a, g->count + 1, int);
    for (NodeId id = g->count; id-- > 0;) {
        const Node *n = &g->node[id];
        for (int i = 0; (kept[id] || reads[id] > 0) && i < n->num_args; i++)
            reads[n->arg[i]]++;
    }
    return reads;
}

void graph_eval_visit(const Graph *g, double *const *leaf, bool round,
                      const bool *wanted, NodeVisitor *visit, void *context) {
    Arena *scratch = arena_new();
    double **value = ARENA_ARRAY(scratch, g->count + 1, double *);
    Arena **own = ARENA_ARRAY(scratch, g->count + 1, Arena *);
    int *reads = reads_count(g, scratch, wanted);
    for (NodeId id = 0; id < g->count; id++) {
        const Node *n = &g->node[id];
        if (!wanted[id] && reads[id] == 0)
            continue;
        own[id] = arena_child(scratch);
        value[id] = leaf[id] != NULL ? leaf[id]
                                     : node_value(g, id, own[id], value, NULL);
        if (round && leaf[id] == NULL)
            round_all(g, *n->type, value[id]);
        if (wanted[id])
            visit(context, id, value);
        for (int i = 0; i < n->num_args; i++)
            if (--reads[n->arg[i]] == 0)
                arena_free(own[n->arg[i]]);
        if (reads[id] == 0)
            arena_free(own[id]);
    }
    arena_free(scratch);
}

typedef struct {
    const Graph *g;
    Arena *a;
    double **value;
} Keeper;

static void value_keep(void *context, NodeId n, double *const *value) {
    const Keeper *k = context;
    size_t count = (size_t)type_count(k->g->node[n].type);
    k->value[n] = ARENA_UNINIT(k->a, count + 1, double);
    memcpy(k->value[n], value[n], count * sizeof *value[n]);
}

double **graph_eval_kept(const Graph *g, Arena *a, double *const *leaf,
                         const bool *kept) {
    Keeper k = {g, a, ARENA_ARRAY(a, g->count + 1, double *)};
    graph_eval_visit(g, leaf, false, kept, value_keep, &k);
    return k.value;
}
