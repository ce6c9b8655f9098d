// Padded columns: whether a kernel of kind rows iterates over their padding
// too.
//
// Tensors of 197 columns, as the scores of attention, are padded to 200 for
// tensor cores.  A kernel that reads and writes only such tensors, in vectors
// of 8, iterates over the padding too and leaves it out of reductions: else
// rows would not begin at multiples of a vector.

#include "passes/plan/group.h"

#include "base/round_up.h"

enum { VECTOR = 8 };

// Whether n cuts rows of `columns` off longer ones of a tensor in memory.
static bool cuts_rows(const Graph *g, const Group *group, NodeId n,
                      int64_t columns) {
    const Node *d = &g->node[n];
    return d->op == OP_slice && d->arg[0] < group->first &&
           space_columns(g->node[d->arg[0]].type) == columns &&
           node_ints(d, ATTR_low, d->type->rank - 1, 0) == 0;
}

// Whether the values of n after a row follow from those of its operands there,
// or are left out.
static bool allows_margin(const Graph *g, const Group *group, NodeId n,
                          int64_t columns) {
    const Node *d = &g->node[n];
    if (d->op == OP_workspace || cuts_rows(g, group, n, columns))
        return true;
    if (d->op == OP_pad)
        return pads_columns(g, n) && space_columns(d->type) == columns;
    for (int i = 0; i < d->num_args; i++)
        if (d->arg[i] < group->first && g->node[d->arg[i]].op != OP_iota &&
            space_columns(g->node[d->arg[i]].type) != 1)
            return false;
    if (op_info[d->op].traits & POINTWISE)
        return true;
    if (d->op == OP_sum)
        return reduction_kind(g, n) == ROW_REDUCTION ||
               reduction_kind(g, n) == FULL_REDUCTION;
    return (d->op == OP_max || d->op == OP_argmax) &&
           reduction_kind(g, n) == ROW_REDUCTION;
}

int64_t group_columns(const Graph *g, const Group *group) {
    int64_t own = space_columns(group->iteration_space);
    int64_t columns = round_up(own, VECTOR);
    bool cuts = false;
    if (group->kind != GROUP_ROWS || own <= 1 || own == columns)
        return own;
    for (NodeId n = group->first; n <= group->last; n++) {
        if (!allows_margin(g, group, n, columns))
            return own;
        cuts |= cuts_rows(g, group, n, columns);
    }
    for (int i = 0; i < group->num_outputs; i++) {
        int64_t out = space_columns(g->node[group->output[i]].type);
        if (out != 1 && out != columns)
            return own;
    }
    return cuts ? columns : own;
}
