// Reductions of a loss and its metrics over valid samples and pixels.
//
// A short last batch is padded with other, invalid samples: in training unless
// drop_last skips such batches, in evaluation always.  Augmentation may shift
// pixels from outside the image into labels; these are invalid too
// (transform.c).

#include "frontend/functions/functions.h"

// ---- valid samples ----

// 1 for valid samples and 0 for others: f32[N, 1].
static NodeId sample_mask(Expansion *e) {
    Type rows = type_of(F32, 2, (int64_t[]){e->recipe.batch, 1});
    return as_float(e, valid_mask(e, rows, 0, 1));
}

NodeId sample_count(Expansion *e) {
    if (all_valid(e))
        return number_node(e, (double)e->recipe.batch);
    return as_float(e, input_node(e, INPUT_VALID));
}

NodeId sum_samples(Expansion *e, NodeId x) {
    if (!all_valid(e))
        x = graph_op2(e->graph, OP_mul, x, sample_mask(e));
    return graph_reduce(e->graph, OP_sum, x, 2, (int64_t[]){0, 1});
}

// All axes but the first.
static unsigned inner_axes(Type t) {
    return (1u << t.rank) - 2;
}

// ---- sums over the elements of a sample ----

// The sum over axes first ... last - 1, which stay as 1.
static NodeId sum_axes(Expansion *e, NodeId x, int first, int last) {
    Type t = *node_type(e, x);
    int64_t axes[MAX_RANK];
    for (int i = first; i < last; i++) {
        axes[i - first] = i;
        t.dim[i] = 1;
    }
    NodeId sum = graph_reduce(e->graph, OP_sum, x, last - first, axes);
    return graph_reshape(e->graph, sum, t.rank, t.dim);
}

// A long sequential sum loses digits, so axes with a large product are summed
// one by one.
static NodeId sum_inner(Expansion *e, NodeId x) {
    enum { MAX_TERMS = 1024 };
    Type t = *node_type(e, x);
    int64_t terms = 1;
    int last = t.rank;
    for (int i = t.rank; --i > 0; terms *= t.dim[i])
        if (last > i + 1 && terms > MAX_TERMS / t.dim[i]) {
            x = sum_axes(e, x, i + 1, last);
            last = i + 1;
            terms = 1;
        }
    return sum_axes(e, x, 1, last);
}

// The sum of each sample, f32[N, 1].
static NodeId sum_per_sample(Expansion *e, NodeId x) {
    Type t = *node_type(e, x);
    bool one = type_count(&t) == t.dim[0];
    return graph_reshape(e->graph, one ? x : sum_inner(e, x), 2,
                         (int64_t[]){t.dim[0], 1});
}

// ---- valid pixels ----

// Whether x has the height and width of a transformed label.
static bool has_valid_pixels(const Expansion *e, Type t) {
    if (e->valid == NO_NODE || t.rank < 3)
        return false;
    Type inside = *node_type(e, e->valid);
    return t.dim[1] == inside.dim[1] && t.dim[2] == inside.dim[2];
}

// x with zeros at invalid pixels.
static NodeId mask_pixels(Expansion *e, NodeId x) {
    Type t = *node_type(e, x), inside = *node_type(e, e->valid);
    for (int i = 3; i < t.rank; i++)
        inside.dim[i] = 1;
    NodeId mask = graph_reshape(e->graph, e->valid, t.rank, inside.dim);
    return graph_op3(e->graph, OP_select, mask, x, number_node(e, 0));
}

// The number of valid pixels of each sample, f32[N, 1].
static NodeId count_valid_pixels(Expansion *e) {
    return sum_per_sample(e, as_float(e, e->valid));
}

static NodeId max_one(Expansion *e, NodeId count) {
    return graph_op2(e->graph, OP_maximum, count, number_node(e, 1));
}

// Elements per pixel.
static double elements_per_pixel(Type t) {
    return (double)(type_count(&t) / (t.dim[0] * t.dim[1] * t.dim[2]));
}

static NodeId means_of_valid_pixels(Expansion *e, NodeId x) {
    Graph *g = e->graph;
    NodeId each = number_node(e, elements_per_pixel(*node_type(e, x)));
    NodeId count = max_one(e, count_valid_pixels(e));
    NodeId all = graph_op2(g, OP_mul, count, each);
    return graph_op2(g, OP_div, sum_per_sample(e, mask_pixels(e, x)), all);
}

// Each sample's part of the mean over all valid pixels of the batch, times the
// number of samples: [N, 1].
static NodeId contributions_to_mean(Expansion *e, NodeId x) {
    Graph *g = e->graph;
    NodeId each = number_node(e, elements_per_pixel(*node_type(e, x)));
    NodeId count = max_one(e, sum_samples(e, count_valid_pixels(e)));
    NodeId all = graph_op2(g, OP_mul, count, each);
    NodeId scale = graph_op2(g, OP_div, sample_count(e), all);
    return graph_op2(g, OP_mul, sum_per_sample(e, mask_pixels(e, x)), scale);
}

// The same over rows of different weights, which x has as factors.  Where all
// are 0 the mean is 0.  An evaluation divides by the weights of all its batches
// in the end, so it takes the sums of x and of the weights.
static NodeId contributions_to_weighted_mean(Expansion *e, NodeId x,
                                             NodeId weights, NodeId *sum) {
    Graph *g = e->graph;
    Type t = *node_type(e, x);
    weights = graph_reshape(g, weights, t.rank, t.dim);
    if (has_valid_pixels(e, t)) {
        x = mask_pixels(e, x);
        weights = mask_pixels(e, weights);
    }
    NodeId all = sum_samples(e, sum_per_sample(e, weights));
    if (!e->training) {
        *sum = all;
        return sum_per_sample(e, x);
    }
    NodeId some = graph_op2(g, OP_lt, number_node(e, 0), all);
    NodeId divisor = graph_op3(g, OP_select, some, all, number_node(e, 1));
    NodeId scale = graph_op2(g, OP_div, sample_count(e), divisor);
    return graph_op2(g, OP_mul, sum_per_sample(e, x), scale);
}

// Whether an operation moves pixels along rows or columns.
static bool moves_axis(const Graph *g, const Node *n) {
    switch (n->op) {
    case OP_flip:
    case OP_shift:
    case OP_take:
    case OP_resize:
        return true;
    case OP_transpose:
        return node_ints(n, ATTR_order, 1, 1) != 1 ||
               (n->type->rank > 2 && node_ints(n, ATTR_order, 2, 2) != 2);
    case OP_pad:
    case OP_slice:
        for (int i = 1; i <= 2; i++)
            if (node_ints(n, ATTR_low, i, 0) || node_ints(n, ATTR_high, i, 0))
                return g->node[n->arg[0]].type->rank > 2;
        return false;
    default:
        return false;
    }
}

// Whether an operation between x and the output, the label or the input moves
// pixels.
static bool moves_pixels(Expansion *e, NodeId x) {
    const Graph *g = e->graph;
    bool *needed = ARENA_ARRAY(e->arena, (size_t)x + 1, bool);
    needed[x] = true;
    for (NodeId n = x + 1; n-- > 0;) {
        const Node *d = &g->node[n];
        bool end = n == e->output.node || n == e->label ||
                   n == e->unblended_label || n == e->model_input;
        if (!needed[n] || end)
            continue;
        if (moves_axis(g, d))
            return true;
        for (int i = 0; i < d->num_args; i++)
            needed[d->arg[i]] = true;
    }
    return false;
}

// The nodes that x is computed from, and x.
static const bool *operands_of(Expansion *e, NodeId x) {
    const Graph *g = e->graph;
    bool *needed = ARENA_ARRAY(e->arena, g->count, bool);
    needed[x] = true;
    for (NodeId n = x + 1; n-- > 0;)
        for (int i = 0; needed[n] && i < g->node[n].num_args; i++)
            needed[g->node[n].arg[i]] = true;
    return needed;
}

static bool report_invalid_pixels(Expansion *e, const Call *c, const Value *x) {
    Diagnostic *d = report(e->diags, D_label_not_moved, c->at,
                           "%s cannot leave out pixels from outside the image",
                           c->builtin->name);
    diag_secondary(d, x->at, "this is %s", tensor_text(e, x->node));
    diag_note(d, "use mean(x) or sum(x) with an x that is computed from output "
                 "and label pixel by pixel, or mode=reflect or mode=edge in "
                 "the augmentation, with which all pixels count");
    return false;
}

bool expect_valid(Expansion *e, const Call *c, const Value *x, unsigned axes) {
    if (e->phase == PHASE_LOSS)
        output_select_for(e, operands_of(e, x->node));
    bool among = e->phase == PHASE_LOSS && (axes & 6) != 0 &&
                 has_valid_pixels(e, *node_type(e, x->node));
    return !among || report_invalid_pixels(e, c, x);
}

// ---- reductions ----

NodeId sample_shares(Expansion *e, NodeId hit) {
    Type t = *node_type(e, hit), rows;
    NodeId counted = e->loss.counted;
    if (counted == NO_NODE)
        return sample_means(e, as_float(e, hit));
    rows = *node_type(e, counted);
    if (type_count(&t) != type_count(&rows))
        return sample_means(e, as_float(e, hit));
    counted = graph_reshape(e->graph, counted, t.rank, t.dim);
    hit = graph_op2(e->graph, OP_and, hit, counted);
    counted = as_float(e, counted);
    return contributions_to_weighted_mean(e, as_float(e, hit), counted,
                                          &e->loss.counted_sum);
}

NodeId sample_means(Expansion *e, NodeId x) {
    Type t = *node_type(e, x);
    if (has_valid_pixels(e, t))
        return means_of_valid_pixels(e, x);
    if (type_count(&t) == t.dim[0])
        return sum_per_sample(e, x);
    NodeId sum = sum_per_sample(e, samples_mask(e, x, x, inner_axes(t), 0));
    return graph_op2(e->graph, OP_div, sum, samples_count(e, x, inner_axes(t)));
}

// The loss of each sample.  A loss whose first axis is not the batch gives each
// its mean.
static NodeId per_sample_loss(Expansion *e, NodeId x, bool mean, NodeId weights,
                              NodeId *weight_sum) {
    if (mean && weights != NO_NODE)
        return contributions_to_weighted_mean(e, x, weights, weight_sum);
    if (mean && e->valid != NO_NODE)
        return contributions_to_mean(e, x);
    NodeId means = sample_means(e, x);
    if (all_valid(e) || has_samples(e, x))
        return means;
    Type t = *node_type(e, means);
    NodeId sum = graph_reduce(e->graph, OP_sum, means, 1, (int64_t[]){0});
    NodeId of = graph_op2(e->graph, OP_div, sum,
                          number_node(e, (double)e->recipe.batch));
    return graph_broadcast(e->graph, of, &t);
}

// The sum over all elements of x; `means` are those of each sample.
static NodeId loss_sum(Expansion *e, NodeId x, NodeId means) {
    Type t = *node_type(e, x);
    if (e->valid != NO_NODE)
        return sum_samples(e, sum_per_sample(e, mask_pixels(e, x)));
    if (!all_valid(e) && !has_samples(e, x)) {
        NodeId each =
            sum_per_sample(e, samples_mask(e, x, x, inner_axes(t), 0));
        return graph_reduce(e->graph, OP_sum, each, 2, (int64_t[]){0, 1});
    }
    NodeId total = sum_samples(e, means);
    if (type_count(&t) == t.dim[0])
        return total;
    return graph_op2(e->graph, OP_mul, total,
                     samples_count(e, x, inner_axes(t)));
}

// Whether a mean divides by the full batch size: with gradient accumulation,
// or shards, the update weighs batches by their samples (train/stage.c).
static bool divides_by_batch(const Expansion *e) {
    return all_valid(e) ||
           (e->training && (e->recipe.accumulate > 1 || e->recipe.shards > 0));
}

static NodeId loss_mean(Expansion *e, NodeId means) {
    NodeId total = sum_samples(e, means);
    if (!divides_by_batch(e))
        return graph_op2(e->graph, OP_div, total, sample_count(e));
    return graph_op2(e->graph, OP_mul, total,
                     number_node(e, 1.0 / (double)e->recipe.batch));
}

static bool expect_reduced(Expansion *e, const Call *c, const Value *x) {
    Type t = *node_type(e, x->node);
    if (e->phase == PHASE_LOSS)
        output_select_for(e, operands_of(e, x->node));
    if (e->phase != PHASE_LOSS) {
        Diagnostic *d = report(e->diags, D_missing_argument, c->at,
                               "%s needs `axes`", c->builtin->name);
        diag_note(d, "as in: %s(x, axes=[height, width])", c->builtin->name);
        return false;
    }
    if (t.rank == 0 || t.dim[0] != e->recipe.batch) {
        Diagnostic *d = report(e->diags, D_wrong_rank, c->at,
                               "%s needs numbers for each sample, f32[N, ...]",
                               c->builtin->name);
        diag_secondary(d, x->at, "this is %s", tensor_text(e, x->node));
        return false;
    }
    bool counts = e->valid == NO_NODE ||
                  (has_valid_pixels(e, t) && !moves_pixels(e, x->node));
    return counts || report_invalid_pixels(e, c, x);
}

// The weights of the losses that x is computed from; NO_NODE: they have none.
// Several have others: *differ.
static NodeId weights_of(Expansion *e, NodeId x, bool *differ) {
    const bool *needed = operands_of(e, x);
    NodeId weights = NO_NODE;
    for (int i = 0; i < e->loss.num_weighted; i++) {
        WeightedLoss w = e->loss.weighted[i];
        if (!needed[w.loss])
            continue;
        *differ |= weights != NO_NODE && weights != w.weights;
        weights = w.weights;
    }
    return weights;
}

// False, with a report, if a mean has other numbers than the rows by whose
// weights it divides.
static bool expect_rows_of_weights(Expansion *e, const Call *c, const Value *x,
                                   NodeId *weights) {
    Type t = *node_type(e, x->node), rows;
    bool differ = false;
    *weights = weights_of(e, x->node, &differ);
    if (*weights == NO_NODE)
        return true;
    if (differ) {
        Diagnostic *d = report(e->diags, D_not_reduced, c->at,
                               "a mean cannot divide by the `weights` or "
                               "`ignore` of two losses");
        diag_note(d, "a mean of each divides by its own; `sum` divides by "
                     "nothing");
        return false;
    }
    rows = *node_type(e, *weights);
    if (type_count(&t) == type_count(&rows))
        return true;
    Diagnostic *d = report(e->diags, D_incompatible_shapes, c->at,
                           "a mean that `weights` or `ignore` of a loss divide "
                           "has a number for each of its rows");
    diag_secondary(d, x->at, "this is %s", tensor_text(e, x->node));
    diag_note(d, "the rows are %s", tensor_text(e, *weights));
    return false;
}

// ---- several reductions ----

static void term_add(Expansion *e, LossTerm own) {
    LossTerm *term =
        ARENA_ARRAY(e->arena, (size_t)e->loss.num_terms + 1, LossTerm);
    for (int i = 0; i < e->loss.num_terms; i++)
        term[i] = e->loss.term[i];
    term[e->loss.num_terms++] = own;
    e->loss.term = term;
}

// Whether a node depends on a reduction, whether it is a weighted sum of them,
// and its part for each sample; NO_NODE: zeros.
typedef struct {
    bool depends, is_sum;
    NodeId samples;
} Reduced;

// The term whose total is a node, of those that divide by a sum of weights.
static Reduced term_reduced(const Expansion *e, NodeId total,
                            NodeId weight_sum) {
    for (int i = 0; i < e->loss.num_terms; i++) {
        const LossTerm *t = &e->loss.term[i];
        if (t->total == total)
            return (Reduced){
                true, true, t->weight_sum == weight_sum ? t->samples : NO_NODE};
    }
    return (Reduced){false, false, NO_NODE};
}

static NodeId samples_add(Expansion *e, Op op, NodeId a, NodeId b) {
    return b == NO_NODE   ? a
           : a != NO_NODE ? graph_op2(e->graph, op, a, b)
           : op == OP_sub ? graph_op1(e->graph, OP_neg, b)
                          : b;
}

// A factor or a divisor, as a number or a schedule, depends on no reduction.
static Reduced operation_reduced(Expansion *e, const Node *n,
                                 const Reduced *of) {
    const Reduced none = {false, false, NO_NODE};
    Reduced a = n->num_args > 0 ? of[n->arg[0]] : none;
    Reduced b = n->num_args > 1 ? of[n->arg[1]] : none;
    Reduced own = {a.depends || b.depends, true, NO_NODE};
    for (int k = 2; k < n->num_args; k++)
        own.depends |= of[n->arg[k]].depends;
    bool scales = n->op == OP_mul || n->op == OP_div;
    NodeId zero = NO_NODE;
    if ((n->op == OP_add || n->op == OP_sub) && a.is_sum && b.is_sum)
        own.samples = samples_add(e, n->op, a.samples, b.samples);
    else if (n->op == OP_neg && a.is_sum)
        own.samples = samples_add(e, OP_sub, zero, a.samples);
    else if (scales && a.is_sum && !b.depends)
        own.samples = a.samples == zero
                          ? zero
                          : graph_op2(e->graph, n->op, a.samples, n->arg[1]);
    else if (n->op == OP_mul && b.is_sum && !a.depends)
        own.samples = b.samples == zero
                          ? zero
                          : graph_op2(e->graph, OP_mul, n->arg[0], b.samples);
    else
        own.is_sum = false;
    return own;
}

bool loss_samples(Expansion *e, NodeId total, NodeId weight_sum,
                  NodeId *samples) {
    Reduced *of = ARENA_ARRAY(e->arena, (size_t)total + 1, Reduced);
    for (NodeId i = 0; i <= total; i++) {
        const Node n = e->graph->node[i];
        of[i] = term_reduced(e, i, weight_sum);
        if (!of[i].depends)
            of[i] = operation_reduced(e, &n, of);
    }
    *samples = of[total].samples;
    return of[total].is_sum && of[total].depends;
}

Value reduce_loss(Expansion *e, const Call *c, bool mean) {
    NodeId weights = NO_NODE;
    LossTerm own = {.weight_sum = NO_NODE};
    if (!expect_reduced(e, c, &c->arg[0]) ||
        (mean && !expect_rows_of_weights(e, c, &c->arg[0], &weights)))
        return value_poison();
    NodeId x = as_float(e, c->arg[0].node);
    e->loss.mixes_reductions |=
        e->loss.num_terms > 0 && e->loss.is_mean != mean;
    e->loss.is_mean = mean;
    own.samples = per_sample_loss(e, x, mean, weights, &own.weight_sum);
    own.total = mean ? loss_mean(e, own.samples) : loss_sum(e, x, own.samples);
    term_add(e, own);
    return value_tensor(own.total, c->at);
}
