// embedding: rows of a table, selected by index.

#include "frontend/functions/functions.h"

static bool expect_index(Expansion *e, const Call *c, const Value *x) {
    Type t = *node_type(e, x->node);
    if ((t.dtype == I32 || t.dtype == U8) && t.rank < MAX_RANK)
        return true;
    Diagnostic *d =
        report(e->diags, D_wrong_kind, c->at, "embedding needs integers");
    diag_place(d, x->at, "this is %s", tensor_text(e, x->node));
    diag_note(
        d, "declare them as the model's input, tokens: i32[N, 64]; for a "
           "column of f32 use (x == tensor(range(20))) @ parameter([20, 4])");
    return false;
}

Value lower_embedding(Expansion *e, const Call *c) {
    const Value *x = call_arg(c, P_embedding_x);
    if (!expect_index(e, c, x))
        return value_poison();
    int64_t shape[] = {call_count(c, P_embedding_vocabulary),
                       call_count(c, P_embedding_size)};
    Type type = type_of(F32, 2, shape);
    Init init = {INIT_NORMAL, .low = 0, .high = 1};
    if (!initial_argument(e, call_arg(c, P_embedding_init), type, &init))
        return value_poison();
    NodeId table = parameter_new(e, c, "weight", type, init);
    if (table == NO_NODE)
        return value_poison();
    NodeId arg[] = {table, graph_cast(e->graph, x->node, I32)};
    NodeId y =
        add_checked(e, c, (Node){.op = OP_gather, .num_args = 2, .arg = arg});
    // Its gradient is a scatter of rows.
    if (y != NO_NODE && !expect_rows(e, c, y))
        return value_poison();
    return value_tensor(y, c->at);
}
