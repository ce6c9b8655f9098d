// Tile attention: kernels of attention that tile kernels can replace.  See
// tile_fusion.h.

#include "ir/attention.h"
#include "passes/plan/tile_fusion.h"

// Whether a value in memory is all of its tensor.
static bool is_all(const Graph *g, NodeId n) {
    return type_count(g->node[n].type) ==
           type_count(g->node[node_base(g, n)].type);
}

// Whether node d of the kernel is a function of elements of its operand, as an
// epilogue is of a result.
static bool is_prologue(const Graph *g, const Group *group, const TileSpace *s,
                        const Node *d) {
    if (!tile_computes(g, s, d))
        return false;
    for (int i = 0; i < d->num_args; i++) {
        NodeId x = d->arg[i];
        if (!group_has(group, x) && !(tile_reads(g, s, x) && is_all(g, x)))
            return false;
    }
    return true;
}

static bool is_number(Type t) {
    return t.dtype == I32 && type_count(&t) == 1;
}

// Whether node d of the kernel is a sum or a product of numbers, as the epoch
// of a shard is.
static bool is_count(const Graph *g, const Group *group, const Node *d) {
    double value;
    if ((d->op != OP_add && d->op != OP_mul) || !is_number(*d->type))
        return false;
    for (int i = 0; i < d->num_args; i++) {
        NodeId x = d->arg[i];
        const Node *n = &g->node[x];
        if (!is_number(*n->type) ||
            (n->op == OP_constant ? !node_number(n, &value)
                                  : !group_has(group, x) && !is_all(g, x)))
            return false;
    }
    return true;
}

// Operands that are multiplied, and after them a row's logarithms and the seed
// and the epoch of dropout, which the kernel reads from memory.
static bool has_operands(const Graph *g, const Group *group, const Node *d) {
    int products = d->op == OP_attention_grad ? 3 : 1;
    for (int i = 0; i < d->num_args; i++) {
        NodeId x = d->arg[i];
        Type t = *g->node[x].type;
        bool in_memory = !group_has(group, x) && g->node[x].op != OP_constant &&
                         is_all(g, x);
        if (i < products ? t.dtype != ACT || !tile_is_indexed(t) ||
                               !(in_memory || group_has(group, x))
                         : !in_memory && !is_number(t))
            return false;
    }
    return true;
}

bool tile_attends(const Graph *g, const Group *group) {
    enum { MOST_CHANNELS = 128 };
    bool has_result = false;
    if (group->kind != GROUP_ATTENTION || group->workspace != NO_NODE)
        return false;
    const Node *first = &g->node[group_first(g, group, ATTENDS)];
    // The gradient's other operands have the channels of the queries.
    TileSpace qkv = tile_positions(g->node[first->arg[0]].type), result = qkv;
    if (first->op == OP_attention_grad)
        result = tile_positions(g->node[first->arg[1]].type);
    if (attention_of(g, first).size > MOST_CHANNELS)
        return false;
    for (NodeId n = group->first; n <= group->last; n++) {
        const Node *d = &g->node[n];
        if (!(op_info[d->op].traits & ATTENDS)
                ? !is_prologue(g, group, &qkv, d) &&
                      !is_prologue(g, group, &result, d) &&
                      !is_count(g, group, d)
                : !has_operands(g, group, d))
            return false;
    }
    for (int i = 0; i < group->num_outputs; i++) {
        const Node *d = &g->node[group->output[i]];
        has_result |= d->op != OP_attention_lse && d->type->dtype == ACT;
        if (!(op_info[d->op].traits & ATTENDS))
            return false;
    }
    return has_result;
}
