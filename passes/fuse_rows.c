// Finds the nodes that a kernel over whole rows can compute: reductions of
// rows, values that follow from them, and reductions over blocks.

#include "passes/fuse.h"

// Reductions of everything, or sums of each column: threads keep their partial
// results.  A variance over blocks needs pivots, so whole rows would be reduced
// first.
bool fits_reduction(const FuseAnalysis *f, NodeId n, NodeId space) {
    enum { MAX_COLUMNS = 1024 };
    const NodeInfo *d = info(f, n);
    if (d->reduction == FULL_REDUCTION)
        return d->op != OP_var;
    return d->op == OP_sum && d->reduction == COLUMN_REDUCTION &&
           same_shape(f, d->arg[0], space) &&
           space_columns(at(f, space)->type) <= MAX_COLUMNS;
}

// Whether node n can be computed by a kernel that iterates over the rows of row
// reduction `row`, which is below its operand arg.
static bool fits_rows(const FuseAnalysis *f, const Stored *s, NodeId n,
                      NodeId arg, NodeId row) {
    NodeId space = info(f, row)->arg[0];
    int64_t elements = count_of(f, space),
            rows = space_rows(at(f, space)->type);
    bool per_row = count_of(f, arg) == rows;
    if (reduces_rows(f, n))
        return same_shape(f, n, row) && count_of(f, arg) == elements;
    if (traits(f, n) & REDUCES)
        return fits_reduction(f, n, space) &&
               (count_of(f, arg) == elements ||
                (per_row && info(f, n)->reduction == FULL_REDUCTION));
    if (pads_columns(f->old, n)) // rows are stored that far apart
        return s->stored[n] && count_of(f, arg) == elements;
    // As many elements in as many columns: so the rows are the same.
    bool by_row =
        count_of(f, n) == elements &&
        space_columns(at(f, n)->type) == space_columns(at(f, space)->type);
    return (traits(f, n) & POINTWISE) && (by_row || count_of(f, n) == rows);
}

void find_rows(const FuseAnalysis *f, Stored *s) {
    for (NodeId n = 0; n < f->old->count; n++) {
        s->row[n] = NO_NODE;
        for (int i = 0; i < info(f, n)->num_args; i++) {
            NodeId arg = info(f, n)->arg[i], row = s->row[arg];
            if (row == NO_NODE || s->stored[arg])
                continue;
            bool same =
                s->row[n] == NO_NODE ||
                same_shape(f, info(f, s->row[n])->arg[0], info(f, row)->arg[0]);
            if (same && fits_rows(f, s, n, arg, row))
                s->row[n] = row;
            else
                store(f, s, arg, REASON_rows);
        }
        if (reduces_rows(f, n) && s->row[n] == NO_NODE)
            s->row[n] = n;
    }
}
