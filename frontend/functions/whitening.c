// whitening: filters that decorrelate the patches of a convolution's input,
// from the first training samples.
//
// The collect graph sums X'X over all patches X of the unpadded images.  The
// init graph divides by their number and takes filter i as v_i / sqrt(l_i +
// eps), with l_i the descending eigenvalues and v_i the eigenvectors; if there
// are twice as many filters as elements of a patch, the second half is the
// negated first.

#include "frontend/functions/functions.h"

static int64_t patch_size(Type weight) {
    return type_count(&weight) / weight.dim[0];
}

static const char *state_name(Arena *a, const char *weight,
                              const char *suffix) {
    return arena_format(a, "%s.%s", weight, suffix);
}

bool whitening_check(Expansion *e, const Call *c, Type weight, int64_t groups) {
    int64_t patch = patch_size(weight), filters = weight.dim[0];
    if (groups == 1 && (filters <= patch || filters == 2 * patch))
        return true;
    Diagnostic *d = report(e->diags, D_out_of_range, c->at,
                           "whitening cannot start %s", type_text(e, weight));
    if (groups != 1)
        diag_note(d, "it is for convolutions without groups");
    else
        diag_note(d,
                  "a patch has %lld numbers: there can be up to %lld filters, "
                  "or %lld with their negations",
                  (long long)patch, (long long)patch, (long long)(2 * patch));
    return false;
}

// ---- the collect graph ----

// The patches of x, f32[N, OH, OW, patch], with elements in a filter's order:
// row, column, channel.
static NodeId patches(Expansion *e, const Call *c, NodeId x, Type weight) {
    int64_t dilation[2], reach[2];
    Type t = *node_type(e, x);
    call_pair(c, P_conv_dilation, dilation);
    for (int i = 0; i < 2; i++) {
        reach[i] = t.dim[1 + i] - dilation[i] * (weight.dim[1 + i] - 1);
        if (reach[i] < 1) {
            report(e->diags, D_window_too_large, c->at,
                   "whitening needs images larger than the filters");
            return NO_NODE;
        }
    }
    const int64_t nodes_per_part = 6;
    if (!has_room(e, c->at, nodes_per_part * weight.dim[1] * weight.dim[2]))
        return NO_NODE;
    int count = 0;
    NodeId *part =
        ARENA_ARRAY(e->arena, (size_t)(weight.dim[1] * weight.dim[2]), NodeId);
    for (int64_t r = 0; r < weight.dim[1]; r++)
        for (int64_t s = 0; s < weight.dim[2]; s++) {
            int64_t top = r * dilation[0], left = s * dilation[1];
            NodeId rows = axis_slice(e, x, 1, top, top + reach[0]);
            part[count++] = axis_slice(e, rows, 2, left, left + reach[1]);
        }
    return axis_concat(e, part, count, 3);
}

// Adds to a state; returns its old value.
static NodeId add_to_state(Expansion *e, const char *name, NodeId value) {
    NodeId state =
        graph_state(e->graph, name, STATE_START, *node_type(e, value), 0);
    graph_assign(e->graph, state, graph_op2(e->graph, OP_add, state, value));
    return state;
}

// 1 for the first `images` valid samples: f32[N,1,1,1].  Counts them, because
// their indices in the file have gaps if some are held out.
static NodeId first_samples(Expansion *e, const char *weight, int64_t images) {
    Graph *g = e->graph;
    NodeId index = graph_iota(g, type_of(I32, 1, &e->recipe.batch), 0);
    NodeId most = graph_constant(g, type_scalar(I32), (double)images);
    NodeId count = input_node(e, INPUT_VALID);
    NodeId valid = graph_op2(g, OP_lt, index, count);
    NodeId before =
        add_to_state(e, state_name(e->arena, weight, "samples"), count);
    NodeId number = graph_op2(g, OP_add, before, index);
    NodeId among = graph_op2(g, OP_lt, number, most);
    NodeId chosen = as_float(e, graph_op2(g, OP_and, valid, among));
    int64_t shape[] = {e->recipe.batch, 1, 1, 1};
    return graph_reshape(g, chosen, 4, shape);
}

// Adds X'X of f32[N, OH, OW, patch], and the number of valid rows.
static bool add_sums(Expansion *e, const Call *c, const char *name, NodeId all,
                     NodeId count) {
    Graph *g = e->graph;
    Type t = *node_type(e, all);
    int64_t rows[] = {type_count(&t) / t.dim[3], t.dim[3]};
    NodeId masked = graph_reshape(g, graph_op2(g, OP_mul, all, count), 2, rows);
    Attr transposed = attr_int(ATTR_ta, 1);
    NodeId products = add_checked(e, c,
                                  (Node){.op = OP_matmul,
                                         .num_args = 2,
                                         .arg = (NodeId[]){masked, masked},
                                         .num_attrs = 1,
                                         .attr = &transposed});
    if (products == NO_NODE)
        return false;
    NodeId samples = graph_reduce(g, OP_sum, count, 4, (int64_t[]){0, 1, 2, 3});
    NodeId each = number_node(e, (double)t.dim[1] * (double)t.dim[2]);
    add_to_state(e, state_name(e->arena, name, "products"), products);
    add_to_state(e, state_name(e->arena, name, "patches"),
                 graph_op2(g, OP_mul, samples, each));
    return true;
}

bool whitening_collect(Expansion *e, const Call *c, NodeId x, Type weight,
                       const Init *init) {
    bool full = e->full_precision;
    e->full_precision = e->graph->origin.full_precision = true;
    const char *name = arena_format(e->arena, "%s.weight", c->path);
    NodeId all = patches(e, c, x, weight);
    NodeId first = e->graph->count;
    bool good = all != NO_NODE &&
                add_sums(e, c, name, all, first_samples(e, name, init->images));
    samples_allow_mixing(e, first, NO_NODE, NO_NODE);
    e->full_precision = e->graph->origin.full_precision = full;
    return good;
}

// ---- the init graph ----

static NodeId rows_of(Graph *g, NodeId x, int64_t from, int64_t to) {
    Type t = *g->node[x].type;
    return graph_slice(g, x, (int64_t[]){from, 0},
                       (int64_t[]){t.dim[0] - to, 0});
}

// v_i / sqrt(l_i + eps), f32[patch, patch].
static NodeId filters(Graph *g, NodeId covariance, int64_t patch, double eps) {
    NodeId parts = graph_op1(g, OP_eigh, covariance);
    NodeId zero = graph_number(g, 0);
    NodeId value =
        graph_reshape(g, rows_of(g, parts, 0, 1), 2, (int64_t[]){patch, 1});
    NodeId power = graph_number(g, eps);
    power = graph_op2(g, OP_add, graph_op2(g, OP_maximum, value, zero), power);
    NodeId root = graph_op1(g, OP_sqrt, power);
    return graph_op2(g, OP_div, rows_of(g, parts, 1, patch + 1), root);
}

// Row k mod patch, negated from row `patch` on.
static NodeId with_negations(Graph *g, NodeId rows, int64_t patch,
                             int64_t count) {
    NodeId k = graph_iota(g, type_of(I32, 1, &count), 0);
    NodeId size = graph_constant(g, type_scalar(I32), (double)patch);
    NodeId chosen =
        graph_op2(g, OP_gather, rows, graph_op2(g, OP_mod, k, size));
    NodeId first = graph_reshape(g, graph_op2(g, OP_lt, k, size), 2,
                                 (int64_t[]){count, 1});
    return graph_op3(g, OP_select, first, chosen, graph_op1(g, OP_neg, chosen));
}

NodeId whitening_values(Graph *g, const Parameter *p) {
    int64_t patch = patch_size(p->type), square[] = {patch, patch};
    NodeId products = graph_state(g, state_name(g->arena, p->name, "products"),
                                  STATE_START, type_of(F32, 2, square), 0);
    NodeId count = graph_state(g, state_name(g->arena, p->name, "patches"),
                               STATE_START, type_scalar(F32), 0);
    NodeId rows =
        filters(g, graph_op2(g, OP_div, products, count), patch, p->init.low);
    rows = with_negations(g, rows, patch, p->type.dim[0]);
    return graph_reshape(g, rows, p->type.rank, p->type.dim);
}
