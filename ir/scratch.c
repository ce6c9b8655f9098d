// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The scratch: what a kernel leaves in memory for itself, and its tickets.
//
// Where blocks have a share in a reduction each leaves numbers of its own, a
// row of the scratch, and over parts each part leaves one.  In it reductions
// come one after another, as their nodes do.  The last block makes the results;
// that it is the last it knows by a ticket.

#include "ir/group.h"

int reduce_slots(const Graph *g, NodeId n) {
    return g->node[n].op == OP_var ? 3 : 1;
}

bool sums_blocks(const Graph *g, NodeId n) {
    unsigned facts = op_info[g->node[n].op].facts;
    return (facts & REDUCES) && !(facts & OVERALL) &&
           reduce_extent(g, n) != OVER_ROW;
}

void scratch_add(Room *s, const Graph *g, NodeId n, bool result) {
    const Node *d = &g->node[n];
    if (result && s->kind == GROUP_UPDATE)
        s->scalar |= type_count(d->type) == 1;
    if (!(op_info[d->op].facts & REDUCES))
        return;
    if (group_is_multi_tensor(s->kind)) {
        s->any = true;
        s->numbers += reduction_chunks(g, n);
    } else if (sums_blocks(g, n)) {
        s->any = true;
        s->numbers += reduce_slots(g, n) * type_count(d->type);
    }
}

const int64_t *scratch_places(const Graph *g, const Group *group, Arena *a) {
    Room s = {.kind = group->kind};
    int64_t *place =
        ARENA_ARRAY(a, (size_t)(group->last - group->first) + 1, int64_t);
    for (NodeId n = group->first; n <= group->last; n++) {
        place[n - group->first] = s.numbers;
        scratch_add(&s, g, n, false);
    }
    return place;
}

// Rows for the blocks of whichever device has more.
static int64_t scratch_rows(const Room *s) {
    int host = space_grid(s->space, true), other = space_grid(s->space, false);
    return host > other ? host : other;
}

Type scratch_type(const Room *s) {
    if (group_is_multi_tensor(s->kind))
        return type_of(F32, 1, &s->numbers);
    return type_of(F32, 2, (int64_t[]){scratch_rows(s), s->numbers});
}

int scratch_tickets(const Room *s) {
    if (!s->any)
        return s->scalar;
    if (group_is_multi_tensor(s->kind)) // a second one counts at the barrier
        return s->kind == GROUP_CHECK ? 1 : 2;
    int64_t rows = scratch_rows(s);
    return rows > TEAM_BLOCKS
               ? 1 + (int)((rows + TEAM_BLOCKS - 1) / TEAM_BLOCKS)
               : 1;
}
