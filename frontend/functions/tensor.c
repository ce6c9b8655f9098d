// Adds nodes for the user: conversions, unique leaves, and nodes with checked
// sizes.

#include "frontend/functions/functions.h"

void origin_set(Expansion *e, Span at, const char *path) {
    if (e->graph == NULL || at.source == NULL)
        return;
    if (path != NULL)
        call_site_add(e, path);
    e->graph->origin = (Origin){.file = at.source->name,
                                .line = source_line_of(at.source, at.start),
                                .path = path,
                                .full_precision = e->full_precision};
}

const Type *node_type(const Expansion *e, NodeId n) {
    return e->graph->node[n].type;
}

NodeId as_float(Expansion *e, NodeId n) {
    return graph_cast(e->graph, n, F32);
}

NodeId number_node(Expansion *e, double value) {
    return graph_number(e->graph, value);
}

NodeId int_node(Expansion *e, int64_t value) {
    return graph_constant(e->graph, type_scalar(I32), (double)value);
}

NodeId scalar_node(Expansion *e, Value v) {
    return v.kind == VALUE_NUMBER ? number_node(e, v.number) : v.node;
}

NodeId operand_node(Expansion *e, const Value *v) {
    if (v->kind != VALUE_NUMBER)
        return as_float(e, v->node);
    note_batch_size(e, v);
    return number_node(e, v->number);
}

bool fits_as_numbers(Type t) {
    t.dtype = F32;
    return type_valid(&t);
}

bool expect_rows(Expansion *e, const Call *c, NodeId x) {
    Type t = *node_type(e, x);
    if (type_count(&t) / t.dim[t.rank - 1] <= INT32_MAX)
        return true;
    Diagnostic *d = report(e->diags, D_tensor_too_large, c->at,
                           "%s: there are too many rows", c->builtin->name);
    diag_label(d, "they are those of %s", type_text(e, t));
    return false;
}

NodeId add_at(Expansion *e, Span at, const char *subject, Node n) {
    n.group = -1;
    Type type;
    const char *why = type_infer(e->graph, &n, &type);
    if (why == NULL && !fits_as_numbers(type))
        why = "the result is too large";
    if (why == NULL)
        return graph_add(e->graph, n);
    report(e->diags, D_tensor_too_large, at, "%s: %s", subject, why);
    return NO_NODE;
}

NodeId add_checked(Expansion *e, const Call *c, Node n) {
    return add_at(e, c->at, c->builtin->name, n);
}

NodeId add_unary(Expansion *e, Op op, NodeId a) {
    return a == NO_NODE ? NO_NODE : graph_op1(e->graph, op, a);
}

NodeId add_binary(Expansion *e, Op op, NodeId a, NodeId b) {
    return a == NO_NODE || b == NO_NODE ? NO_NODE
                                        : graph_op2(e->graph, op, a, b);
}

// Rank 3 may be images without channels, or a sequence.
static void note_images(Type t, Diagnostic *d) {
    if (t.dtype == U8 || t.dim[1] == t.dim[2])
        diag_note(d, "reshape([-1, %lld, %lld, 1]) gives images a channel",
                  (long long)t.dim[1], (long long)t.dim[2]);
    else
        diag_note(d,
                  "a sequence is an image of one column: "
                  "reshape([-1, %lld, 1, %lld]), and its windows are as [3, 1]",
                  (long long)t.dim[1], (long long)t.dim[2]);
}

bool expect_rank(Expansion *e, const Call *c, const Value *x, int rank) {
    Type t = *node_type(e, x->node);
    if (t.rank == rank)
        return true;
    Diagnostic *d =
        report(e->diags, D_wrong_rank, c->at, "%s needs %s", c->builtin->name,
               rank == 4 ? "images, [N, height, width, channels]"
                         : "rows, [N, channels]");
    diag_secondary(d, x->at, "this is %s", tensor_text(e, x->node));
    if (rank == 2 && t.rank > 2)
        diag_note(d, "flatten makes rows of it: `|> flatten |> %s`",
                  c->builtin->name);
    if (rank == 4 && t.rank == 3)
        note_images(t, d);
    return false;
}

NodeId input_node(Expansion *e, InputId id) {
    static const char *const name[] = {
        [INPUT_IMAGE] = "image", [INPUT_LABEL] = "label",
        [INPUT_INDEX] = "index", [INPUT_VALID] = "valid",
        [INPUT_SHARD] = "shard",
    };
    if (e->input[id] != NO_NODE)
        return e->input[id];
    bool is_scalar = id == INPUT_VALID || id == INPUT_SHARD;
    Type type = type_of(I32, is_scalar ? 0 : 1, &e->recipe.batch);
    if (id == INPUT_IMAGE)
        type = e->image;
    if (id != INPUT_LABEL)
        return e->input[id] = graph_leaf(e->graph, OP_input, name[id], type);
    const char *label = name[id];
    if (e->num_named > 0)
        label = arena_format(e->arena, "label.%s", e->named[e->selected].name);
    return e->input[id] = array_node(e, label, label_type_in_files(e));
}

NodeId run_node(Expansion *e, RunState s) {
    static const struct {
        const char *name, *kind;
    } state[] = {
        [RUN_STEP] = {"run.step", STATE_RUN},
        [RUN_STEPS] = {"run.steps", STATE_RUN},
        [RUN_EPOCH_STEPS] = {"run.epoch_steps", STATE_RUN},
        [RUN_SEED] = {"run.seed", STATE_RUN},
        [RUN_SHARDS] = {"run.shards", STATE_RUN},
        [RUN_ACCUMULATED] = {"run.accumulated", STATE_GRADIENT},
        [RUN_UPDATES] = {"run.updates", STATE_OPTIMIZER},
    };
    if (e->run[s] == NO_NODE)
        e->run[s] = graph_state(
            e->graph, state[s].name, state[s].kind, type_scalar(I32),
            s == RUN_SEED     ? (double)e->recipe.seed
            : s == RUN_SHARDS ? recipe_update_batches(&e->recipe)
                              : 0);
    return e->run[s];
}

NodeId batch_node(Expansion *e) {
    Graph *g = e->graph;
    NodeId step = run_node(e, RUN_STEP);
    if (e->recipe.shards > 0)
        return graph_op2(g, OP_add,
                         graph_op2(g, OP_mul, step, run_node(e, RUN_SHARDS)),
                         input_node(e, INPUT_SHARD));
    if (e->recipe.accumulate <= 1)
        return step;
    NodeId each =
        graph_constant(g, type_scalar(I32), (double)e->recipe.accumulate);
    NodeId accumulated = run_node(e, RUN_ACCUMULATED);
    return graph_op2(g, OP_add, graph_op2(g, OP_mul, step, each), accumulated);
}
