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
    return graph_op2(g, OP_div, sum_per_sample(e, mask_pixels(e, x)),
                     graph_op2(g, OP_mul, count, each));
}

// Each sample's part of the mean over all valid pixels of the batch, times the
// number of samples: [N, 1].
static NodeId contributions_to_mean(Expansion *e, NodeId x) {
    Graph *g = e->graph;
    NodeId each = number_node(e, elements_per_pixel(*node_type(e, x)));
    NodeId count = max_one(e, sum_samples(e, count_valid_pixels(e)));
    NodeId scale = graph_op2(g, OP_div, sample_count(e),
                             graph_op2(g, OP_mul, count, each));
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
    NodeId scale = graph_op2(
        g, OP_div, sample_count(e),
        graph_op3(g, OP_select, some, all, number_node(e, 1)));
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

static bool report_invalid_pixels(Expansion *e, const Call *c, const Value *x) {
    Diagnostic *d = report(e->diags, D_label_not_moved, c->at,
                           "%s cannot leave out pixels from outside the image",
                           c->builtin->name);
    diag_place(d, x->at, "this is %s", tensor_text(e, x->node));
    diag_note(d, "use mean(x) or sum(x) with an x that is computed from output "
                 "and label pixel by pixel, or mode=reflect or mode=edge in "
                 "the augmentation, with which all pixels count");
    return false;
}

bool expect_valid(Expansion *e, const Call *c, const Value *x, unsigned axes) {
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
    return contributions_to_weighted_mean(e, as_float(e, hit),
                                          as_float(e, counted),
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
static NodeId per_sample_loss(Expansion *e, NodeId x, bool mean) {
    if (mean && e->loss.weights != NO_NODE)
        return contributions_to_weighted_mean(e, x, e->loss.weights,
                                              &e->loss.weight_sum);
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
// the update weighs micro-batches by their samples (train/stage.c).
static bool divides_by_batch(const Expansion *e) {
    return all_valid(e) || (e->training && e->recipe.accumulate > 1);
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
        diag_place(d, x->at, "this is %s", tensor_text(e, x->node));
        return false;
    }
    bool counts = e->valid == NO_NODE ||
                  (has_valid_pixels(e, t) && !moves_pixels(e, x->node));
    return counts || report_invalid_pixels(e, c, x);
}

// False, with a report, if a mean has other numbers than the rows by whose
// weights it divides.
static bool expect_rows_of_weights(Expansion *e, const Call *c,
                                   const Value *x) {
    Type t = *node_type(e, x->node), rows;
    if (e->loss.weights == NO_NODE)
        return true;
    if (e->loss.weights_differ) {
        Diagnostic *d = report(e->diags, D_not_reduced, c->at,
                               "a mean cannot divide by the `weights` or "
                               "`ignore` of two cross_entropy");
        diag_note(d, "`sum` divides by nothing");
        return false;
    }
    rows = *node_type(e, e->loss.weights);
    if (type_count(&t) == type_count(&rows))
        return true;
    Diagnostic *d = report(e->diags, D_incompatible_shapes, c->at,
                           "a mean that `weights` or `ignore` of cross_entropy "
                           "divide has a number for each label");
    diag_place(d, x->at, "this is %s", tensor_text(e, x->node));
    diag_note(d, "the labels are %s", tensor_text(e, e->loss.weights));
    return false;
}

// ---- several reductions ----

static void term_add(Expansion *e) {
    LossTerm *term =
        ARENA_ARRAY(e->arena, (size_t)e->loss.num_terms + 1, LossTerm);
    for (int i = 0; i < e->loss.num_terms; i++)
        term[i] = e->loss.term[i];
    term[e->loss.num_terms++] = (LossTerm){e->loss.total, e->loss.samples};
    e->loss.term = term;
}

// Whether a node depends on a reduction, and its part for each sample; NO_NODE
// if it is no weighted sum of reductions.
typedef struct {
    bool depends;
    NodeId samples;
} Reduced;

static NodeId term_samples(const Expansion *e, NodeId total) {
    for (int i = 0; i < e->loss.num_terms; i++)
        if (e->loss.term[i].total == total)
            return e->loss.term[i].samples;
    return NO_NODE;
}

// A factor or a divisor, as a number or a schedule, depends on no reduction.
static NodeId samples_of(Expansion *e, const Node *n, const Reduced *of) {
    Reduced a = n->num_args > 0 ? of[n->arg[0]] : (Reduced){false, NO_NODE};
    Reduced b = n->num_args > 1 ? of[n->arg[1]] : (Reduced){false, NO_NODE};
    bool left = a.samples != NO_NODE, right = b.samples != NO_NODE;
    if ((n->op == OP_add || n->op == OP_sub) && left && right)
        return graph_op2(e->graph, n->op, a.samples, b.samples);
    if (n->op == OP_neg && left)
        return graph_op1(e->graph, OP_neg, a.samples);
    if ((n->op == OP_mul || n->op == OP_div) && left && !b.depends)
        return graph_op2(e->graph, n->op, a.samples, n->arg[1]);
    if (n->op == OP_mul && right && !a.depends)
        return graph_op2(e->graph, OP_mul, n->arg[0], b.samples);
    return NO_NODE;
}

NodeId loss_samples(Expansion *e, NodeId total) {
    Reduced *of = ARENA_ARRAY(e->arena, (size_t)total + 1, Reduced);
    for (NodeId i = 0; i <= total; i++) {
        const Node n = e->graph->node[i];
        NodeId samples = term_samples(e, i);
        bool depends = samples != NO_NODE;
        for (int k = 0; k < n.num_args; k++)
            depends |= of[n.arg[k]].depends;
        if (depends && samples == NO_NODE)
            samples = samples_of(e, &n, of);
        of[i] = (Reduced){depends, samples};
    }
    return of[total].samples;
}

Value reduce_loss(Expansion *e, const Call *c, bool mean) {
    if (!expect_reduced(e, c, &c->arg[0]) ||
        (mean && !expect_rows_of_weights(e, c, &c->arg[0])))
        return value_poison();
    NodeId x = as_float(e, c->arg[0].node);
    e->loss.mixes_reductions |=
        e->loss.num_terms > 0 && e->loss.is_mean != mean;
    e->loss.is_mean = mean;
    e->loss.samples = per_sample_loss(e, x, mean);
    e->loss.total =
        mean ? loss_mean(e, e->loss.samples) : loss_sum(e, x, e->loss.samples);
    term_add(e);
    return value_tensor(e->loss.total, c->at);
}
