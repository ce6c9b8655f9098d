// embedding: rows of a table, selected by index.

#include "frontend/functions/functions.h"

static bool expect_index(Expansion *e, const Call *c, const Value *x) {
    Type t = *node_type(e, x->node);
    if ((t.dtype == I32 || t.dtype == U8) && t.rank < MAX_RANK)
        return true;
    Diagnostic *d =
        report(e->diags, D_wrong_kind, c->at, "embedding needs integers");
    diag_secondary(d, x->at, "this is %s", tensor_text(e, x->node));
    diag_note(
        d, "declare them as the model's input, tokens: i32[N, 64]; for a "
           "column of f32 use (x == tensor(range(20))) @ parameter([20, 4])");
    return false;
}

// The layer's own table.  NO_NODE after a report.
static NodeId own_table(Expansion *e, const Call *c) {
    static const ParamId needed[] = {P_embedding_vocabulary, P_embedding_size};
    for (int i = 0; i < 2; i++)
        if (call_arg(c, needed[i])->kind == VALUE_NONE) {
            Diagnostic *d = report(e->diags, D_missing_argument, c->at,
                                   "embedding needs `%s`",
                                   param_info[needed[i]].name);
            diag_note(d, "as in: embedding(65, 48), or embedding(table=rows) "
                         "for rows that are a tensor [65, 48]");
            return NO_NODE;
        }
    int64_t shape[] = {call_count(c, P_embedding_vocabulary),
                       call_count(c, P_embedding_size)};
    Type type = type_of(F32, 2, shape);
    Init init = {INIT_NORMAL, .low = 0, .high = 1};
    if (!initial_argument(e, call_arg(c, P_embedding_init), type, &init))
        return NO_NODE;
    return parameter_new(e, c, "weight", type, init);
}

// A table that other layers use, too.  NO_NODE after a report.
static NodeId shared_table(Expansion *e, const Call *c) {
    static const ParamId own[] = {P_embedding_vocabulary, P_embedding_size,
                                  P_embedding_init};
    const Value *table = call_arg(c, P_embedding_table);
    for (int i = 0; i < 3; i++)
        if (call_arg(c, own[i])->kind != VALUE_NONE) {
            Diagnostic *d =
                report(e->diags, D_too_many_arguments, c->at,
                       "embedding with a `table` has no `%s` of its own",
                       param_info[own[i]].name);
            diag_secondary(d, table->at, "this is %s",
                           tensor_text(e, table->node));
            return NO_NODE;
        }
    if (node_type(e, table->node)->rank == 2)
        return as_float(e, table->node);
    Diagnostic *d = report(e->diags, D_wrong_rank, table->at,
                           "a table of embedding has rows, [vocabulary, size]");
    diag_label(d, "this is %s", tensor_text(e, table->node));
    return NO_NODE;
}

Value lower_embedding(Expansion *e, const Call *c) {
    const Value *x = call_arg(c, P_embedding_x);
    if (!expect_index(e, c, x))
        return value_poison();
    bool shared = call_arg(c, P_embedding_table)->kind == VALUE_TENSOR;
    NodeId table = shared ? shared_table(e, c) : own_table(e, c);
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
