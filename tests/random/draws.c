// Draws: see draws.h.
#include "tests/random/draws.h"

#include "codegen/codegen.h"

#include <stdio.h>
#include <string.h>

// A program: as it was grown, its setup, its plan, and the step of that which
// trains.
typedef struct {
    const Graph *grown;
    const Setup *setup;
    const Plan *plan;
    const Graph *planned;
} Drawn;

typedef bool Has(const Drawn *d);

// ---- of the graph as it was grown ----

static bool has_op(const Graph *g, Op op) {
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == op)
            return true;
    return false;
}

static bool has_facts(const Graph *g, unsigned traits) {
    for (NodeId n = 0; n < g->count; n++)
        if (op_info[g->node[n].op].traits & traits)
            return true;
    return false;
}

// Whether some result that is no leaf has a dimension for which this holds.
static bool has_size(const Graph *g, bool (*is)(int64_t size)) {
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        for (int i = 0; i < d->type->rank && d->num_args > 0; i++)
            if (is(d->type->dim[i]))
                return true;
    }
    return false;
}

static bool is_nothing(int64_t size) {
    return size == 0;
}

static bool is_one(int64_t size) {
    return size == 1;
}

static bool is_odd(int64_t size) {
    return size > 1 && size % 2 == 1;
}

static bool has_few(const Drawn *d) {
    return d->grown->count < 20;
}

static bool has_some(const Drawn *d) {
    return d->grown->count >= 20 && d->grown->count < 60;
}

static bool has_many(const Drawn *d) {
    return d->grown->count >= 60;
}

static bool has_nothing(const Drawn *d) {
    return has_size(d->grown, is_nothing);
}

static bool has_ones(const Drawn *d) {
    return has_size(d->grown, is_one);
}

static bool has_odd(const Drawn *d) {
    return has_size(d->grown, is_odd);
}

static bool has_rank_0(const Drawn *d) {
    for (NodeId n = 0; n < d->grown->count; n++) {
        const Node *node = &d->grown->node[n];
        if ((op_info[node->op].traits & POINTWISE) && node->type->rank == 0)
            return true;
    }
    return false;
}

static bool has_broadcast(const Drawn *d) {
    for (NodeId n = 0; n < d->grown->count; n++) {
        const Node *node = &d->grown->node[n];
        for (int i = 0; i < node->num_args; i++) {
            Type t = *d->grown->node[node->arg[i]].type;
            if ((op_info[node->op].traits & POINTWISE) && t.rank > 0 &&
                type_count(&t) < type_count(node->type))
                return true;
        }
    }
    return false;
}

static bool has_number(const Drawn *d) {
    for (NodeId n = 0; n < d->grown->count; n++) {
        const Node *node = &d->grown->node[n];
        unsigned traits = op_info[node->op].traits;
        if ((traits & REDUCES) && !(traits & REDUCES_ALL) &&
            type_count(node->type) == 1 &&
            type_count(d->grown->node[node->arg[0]].type) > 1)
            return true;
    }
    return false;
}

// Rows that are counted by the index of their batch.
static bool has_tail(const Drawn *d) {
    for (NodeId n = 0; n < d->grown->count; n++) {
        const Node *node = &d->grown->node[n];
        if (node->op == OP_lt && d->grown->node[node->arg[0]].op == OP_iota)
            return true;
    }
    return false;
}

// A label of each place that is moved.
static bool has_pixels(const Drawn *d) {
    const Graph *g = d->grown;
    for (NodeId n = 0; n < g->count; n++) {
        const Node *node = &g->node[n];
        const char *name = node->num_args
                               ? node_text(&g->node[node->arg[0]], ATTR_name)
                               : NULL;
        if ((op_info[node->op].traits & INDEXES) && name != NULL &&
            strncmp(name, "label", 5) == 0)
            return true;
    }
    return false;
}

static bool has_training(const Drawn *d) {
    return has_facts(d->grown, OPTIMIZES);
}

static bool has_precision(const Drawn *d) {
    return d->grown->facts & TYPED && has_op(d->grown, OP_cast) &&
           d->setup->precision != F32;
}

static bool has_call(const Drawn *d) {
    return has_facts(d->grown, CALLS);
}

static bool has_norm(const Drawn *d) {
    return has_op(d->grown, OP_batch_norm);
}

static bool has_pool(const Drawn *d) {
    return has_op(d->grown, OP_max_pool) || has_op(d->grown, OP_avg_pool);
}

static bool has_muon(const Drawn *d) {
    return has_op(d->grown, OP_muon);
}

static bool has_clip(const Drawn *d) {
    return has_op(d->grown, OP_clip);
}

static bool has_gather(const Drawn *d) {
    return has_op(d->grown, OP_gather);
}

// A table of which several indices want rows.
static bool has_several(const Drawn *d) {
    const Graph *g = d->grown;
    for (NodeId n = 0; n < g->count; n++)
        for (NodeId m = 0; m < n && g->node[n].op == OP_gather; m++)
            if (g->node[m].op == OP_gather &&
                g->node[m].arg[0] == g->node[n].arg[0])
                return true;
    return false;
}

static bool has_list(const Drawn *d) {
    for (NodeId n = 0; n < d->grown->count; n++)
        if (d->grown->node[n].op == OP_constant &&
            type_count(d->grown->node[n].type) > 1)
            return true;
    return false;
}

// Sine or cosine of something that is an index.
static bool has_places(const Drawn *d) {
    const Graph *g = d->grown;
    bool *follows = ARENA_ARRAY(g->arena, g->count + 1, bool);
    for (NodeId n = 0; n < g->count; n++) {
        const Node *node = &g->node[n];
        follows[n] = node->op == OP_iota;
        for (int i = 0; i < node->num_args && i < 2; i++)
            follows[n] |= follows[node->arg[i]];
        if (follows[n] && (node->op == OP_sin || node->op == OP_cos))
            return true;
    }
    return false;
}

// What is left out by numbers that are drawn.
static bool has_mask(const Drawn *d) {
    const Graph *g = d->grown;
    for (NodeId n = 0; n < g->count; n++) {
        const Node *test = &g->node[n];
        if (test->op == OP_lt &&
            g->node[node_base(g, test->arg[0])].op == OP_uniform)
            return true;
    }
    return false;
}

// Scores of all by all, in heads.
static bool has_attention(const Drawn *d) {
    const Graph *g = d->grown;
    for (NodeId n = 0; n < g->count; n++) {
        const Node *node = &g->node[n];
        if (node->op == OP_attention)
            return true;
        if (node->op == OP_matmul && node->type->rank == 4 &&
            g->node[node->arg[0]].op == OP_transpose &&
            g->node[node->arg[1]].op == OP_transpose)
            return true;
    }
    return false;
}

static bool has_tiles(const Drawn *d) {
    for (NodeId n = 0; n < d->grown->count; n++)
        if (d->grown->node[n].op == OP_attention)
            return true;
    return false;
}

// The node's operand i, without reshapes; NULL: it has none.
static const Node *operand_of(const Graph *g, const Node *n, int i) {
    if (n == NULL || i >= n->num_args)
        return NULL;
    n = &g->node[n->arg[i]];
    while (n->op == OP_reshape)
        n = &g->node[n->arg[0]];
    return n;
}

static bool is_op(const Node *n, Op op) {
    return n != NULL && n->op == op;
}

// Whether a node is like that.
static bool has_node(const Drawn *d, bool (*is)(const Graph *, const Node *)) {
    for (NodeId n = 0; n < d->grown->count; n++)
        if (is(d->grown, &d->grown->node[n]))
            return true;
    return false;
}

static bool is_rms(const Graph *g, const Node *n) {
    const Node *mean = operand_of(g, operand_of(g, n, 0), 0);
    return n->op == OP_rsqrt && is_op(mean, OP_div) &&
           is_op(operand_of(g, mean, 0), OP_sum);
}

static bool has_rms(const Drawn *d) {
    return has_node(d, is_rms);
}

static bool is_turned(const Graph *g, const Node *n) {
    return n->op == OP_sub &&
           is_op(operand_of(g, operand_of(g, n, 0), 1), OP_cos) &&
           is_op(operand_of(g, operand_of(g, n, 1), 1), OP_sin);
}

static bool has_rotary(const Drawn *d) {
    return has_node(d, is_turned);
}

static bool is_grouped_product(const Graph *g, const Node *n) {
    const Node *query = operand_of(g, n, 0);
    return n->op == OP_matmul && n->type->rank == 4 &&
           is_op(query, OP_transpose) && query->type->rank == 5;
}

static bool has_grouped_heads(const Drawn *d) {
    return has_node(d, is_grouped_product);
}

static bool is_weighed(const Graph *g, const Node *n) {
    const Node *sum = operand_of(g, n, 0);
    return n->op == OP_div && is_op(sum, OP_sum) &&
           is_op(operand_of(g, operand_of(g, sum, 0), 0), OP_cross_entropy);
}

static bool has_weighed(const Drawn *d) {
    return has_node(d, is_weighed);
}

static bool is_tied(const Graph *g, const Node *n) {
    const Node *row = operand_of(g, operand_of(g, n, 0), 0);
    return n->op == OP_matmul && is_op(row, OP_gather) &&
           operand_of(g, row, 0) == operand_of(g, n, 1);
}

static bool has_tied(const Drawn *d) {
    return has_node(d, is_tied);
}

static bool is_row(const Graph *g, const Node *n) {
    return n->op == OP_conv && n->type->dim[1] == 1 &&
           g->node[n->arg[0]].op == OP_reshape;
}

static bool has_sequence(const Drawn *d) {
    return has_node(d, is_row);
}

static bool has_upsampled(const Drawn *d) {
    return has_op(d->grown, OP_conv_grad_input);
}

static bool has_conv(const Drawn *d, bool (*is)(const Node *conv)) {
    for (NodeId n = 0; n < d->grown->count; n++)
        if (d->grown->node[n].op == OP_conv && is(&d->grown->node[n]))
            return true;
    return false;
}

static bool is_grouped(const Node *conv) {
    return node_int(conv, ATTR_groups, 1) > 1;
}

static bool is_strided(const Node *conv) {
    return node_ints(conv, ATTR_stride, 0, 1) > 1;
}

static bool is_dilated(const Node *conv) {
    return node_ints(conv, ATTR_dilation, 0, 1) > 1;
}

static bool is_all(const Node *conv) {
    return is_grouped(conv) && is_strided(conv) && is_dilated(conv);
}

static bool has_grouped(const Drawn *d) {
    return has_conv(d, is_grouped);
}

static bool has_strided(const Drawn *d) {
    return has_conv(d, is_strided);
}

static bool has_dilated(const Drawn *d) {
    return has_conv(d, is_dilated);
}

static bool has_all(const Drawn *d) {
    return has_conv(d, is_all);
}

static bool has_full(const Drawn *d) {
    for (NodeId n = 0; n < d->grown->count; n++)
        if (d->grown->node[n].from.full_precision && d->setup->precision != F32)
            return true;
    return false;
}

// ---- of its program ----

static bool has_step(const Drawn *d, StepKind kind, int stage) {
    for (int i = 0; i < d->plan->num_steps; i++)
        if (d->plan->step[i].kind == kind && d->plan->step[i].stage == stage)
            return true;
    return false;
}

static bool has_stages(const Drawn *d) {
    return has_step(d, STEP_TRAIN, 1);
}

static bool has_third(const Drawn *d) {
    return has_step(d, STEP_TRAIN, 2);
}

static bool has_gathering(const Drawn *d) {
    return has_step(d, STEP_ACCUMULATE, 0);
}

static bool has_average(const Drawn *d) {
    return has_step(d, STEP_AVERAGE, 0) &&
           d->setup->average == AVERAGE_SOMETIMES;
}

static bool has_row(const Drawn *d) {
    return d->setup->row > 0;
}

static bool has_eval(const Drawn *d) {
    return d->setup->evaluates;
}

static bool has_eval_average(const Drawn *d) {
    const Graph *g = plan_graph(d->plan, "eval");
    for (NodeId n = 0; n < g->count; n++) {
        const char *kind = node_text(&g->node[n], ATTR_kind);
        if (g->node[n].op == OP_state && strcmp(kind, STATE_AVERAGE) == 0)
            return true;
    }
    return false;
}

static bool has_prepare(const Drawn *d) {
    return has_step(d, STEP_PREPARE, 0);
}

static bool has_average_each(const Drawn *d) {
    return has_step(d, STEP_AVERAGE, 0) &&
           d->setup->average == AVERAGE_EACH_STEP;
}

// ---- of its setup ----

static bool has_f16(const Drawn *d) {
    return d->setup->precision == F16;
}

static bool has_bf16(const Drawn *d) {
    return d->setup->precision == BF16;
}

static bool has_narrow(const Drawn *d) {
    return d->setup->storage != F32;
}

static bool has_limit(const Drawn *d) {
    return d->setup->limit < INT64_MAX;
}

static bool has_order(const Drawn *d) {
    return d->setup->before % 2 && d->setup->before / 2 % 8 < 4;
}

static bool is_without(const Drawn *d, const char *name) {
    return d->setup->without >> (pass_find(name) - standard_passes) & 1;
}

static bool has_no_early(const Drawn *d) {
    return is_without(d, "canonicalize");
}

static bool has_no_layout(const Drawn *d) {
    return is_without(d, "layout");
}

static bool has_no_derive(const Drawn *d) {
    return is_without(d, "derive");
}

static bool has_no_simplify(const Drawn *d) {
    return is_without(d, "simplify");
}

static bool has_no_dce(const Drawn *d) {
    return is_without(d, "dce");
}

static bool has_no_statistics(const Drawn *d) {
    return is_without(d, "statistics");
}

static bool has_no_schedule(const Drawn *d) {
    return is_without(d, "schedule");
}

static bool has_no_inplace(const Drawn *d) {
    return is_without(d, "inplace");
}

static bool has_no_bits(const Drawn *d) {
    return is_without(d, "bit_packing");
}

static bool has_unfused(const Drawn *d) {
    return d->setup->plain;
}

// ---- of its plan ----

static bool has_phases(const Drawn *d) {
    Arena *a = arena_new();
    int count;
    Group *group = graph_groups(d->planned, a, &count);
    bool found = false;
    for (int i = 0; i < count; i++)
        found |= group[i].phases > 1;
    arena_free(a);
    return found;
}

// A variance that a library may leave as a sum of squares.
static bool has_statistics(const Drawn *d) {
    return has_op(d->planned, OP_var_finalize);
}

static bool has_packed(const Drawn *d) {
    return has_op(d->planned, OP_pack);
}

// A copy of a param in another type or shape.
static bool has_copy(const Drawn *d) {
    for (NodeId n = 0; n < d->planned->count; n++) {
        const Node *node = &d->planned->node[n];
        const char *kind = node_text(node, ATTR_kind);
        if (node->op == OP_state && dtype_float(node->type->dtype) &&
            kind != NULL && strcmp(kind, STATE_DERIVED) == 0)
            return true;
    }
    return false;
}

static bool has_description(const Drawn *d) {
    return d->setup->described;
}

// A kernel that is launched once more for the backward pass.
static bool has_again(const Drawn *d) {
    return d->setup->again;
}

// ---- of its kernels ----

// Some that differ in specialization constants alone, and are one function on
// the host.
static bool has_family(const Drawn *d) {
    Arena *a = arena_new();
    const Launches *launches = codegen_launches(d->plan, d->plan, a);
    bool found = false;
    for (int i = 0; i < d->plan->num_steps; i++)
        for (int k = 0; k < launches[i].count; k++)
            found |= kernel_in_family(&launches[i].kernel[k]);
    arena_free(a);
    return found;
}

// ---- the table ----

static const struct {
    const char *what;
    Has *has;
} thing[] = {
    {"3 to 19 nodes", has_few},
    {"20 to 59 nodes", has_some},
    {"60 nodes and more", has_many},
    {"forward, backward and update", has_training},
    {"rank 0", has_rank_0},
    {"a size of 0", has_nothing},
    {"a size of 1", has_ones},
    {"an odd size", has_odd},
    {"broadcast", has_broadcast},
    {"a reduction to one element", has_number},
    {"the tail of a batch", has_tail},
    {"labels that move with their image", has_pixels},
    {"mixed precision within the graph", has_precision},
    {"convolution or product", has_call},
    {"batch_norm", has_norm},
    {"pools", has_pool},
    {"rows of a table", has_gather},
    {"a table of which several indices want rows", has_several},
    {"numbers that the model has", has_list},
    {"sine or cosine of a place", has_places},
    {"a mask of numbers that are drawn", has_mask},
    {"attention", has_attention},
    {"attention as one operation", has_tiles},
    {"heads that share keys", has_grouped_heads},
    {"pairs of channels that turn", has_rotary},
    {"a root mean square", has_rms},
    {"a table tied to a head", has_tied},
    {"a mean of weighted rows", has_weighed},
    {"a convolution of sequences", has_sequence},
    {"a transposed convolution", has_upsampled},
    {"convolutions in groups", has_grouped},
    {"convolutions with strides", has_strided},
    {"convolutions with holes", has_dilated},
    {"all three at once", has_all},
    {"values in full among 16 bits", has_full},
    {"stages", has_stages},
    {"three of them", has_third},
    {"steps that gather gradients", has_gathering},
    {"an average in each step", has_average_each},
    {"an average of its own", has_average},
    {"several steps in a row", has_row},
    {"an evaluation", has_eval},
    {"an evaluation of averages", has_eval_average},
    {"something that batches of an evaluation share", has_prepare},
    {"muon", has_muon},
    {"clipped gradients", has_clip},
    {"activations in f16", has_f16},
    {"activations in bf16", has_bf16},
    {"stored in 16 bits", has_narrow},
    {"a limit of rewrites", has_limit},
    {"passes before their turn", has_order},
    {"without early", has_no_early},
    {"without layout", has_no_layout},
    {"without derive", has_no_derive},
    {"without simplify", has_no_simplify},
    {"without dce", has_no_dce},
    {"without statistics", has_no_statistics},
    {"without schedule", has_no_schedule},
    {"without inplace", has_no_inplace},
    {"without bits", has_no_bits},
    {"a described GPU", has_description},
    {"values made again", has_again},
    {"unfused kernels as well", has_unfused},
    {"a kernel in phases", has_phases},
    {"statistics that a library may take", has_statistics},
    {"values packed to bits", has_packed},
    {"a copy of a param", has_copy},
    {"kernels that differ in specialization constants", has_family},
};

enum { THINGS = sizeof thing / sizeof *thing };

// The operations that no program has: decompositions of matrices, which only
// starting values have, sums over shards, which only a shard's graph has, and
// those that are gone before and after all passes.
static bool is_elsewhere(Op op) {
    return op == OP_eigh || op == OP_orthogonal || op == OP_gradient ||
           op == OP_loss_scale || op == OP_sum_over_shards;
}

static void count_seed(uint32_t seed, int *had, int *ops) {
    Arena *a = arena_new();
    Setup s = setup_of(seed);
    Graph *g = setup_graph(a, &s);
    const Plan *plan = trial_plan(a, g, &s);
    Drawn d = {g, &s, plan, trial_step(plan)};
    for (int i = 0; i < THINGS; i++)
        had[i] += thing[i].has(&d);
    for (int op = 0; op < NUM_OPS; op++)
        ops[op] += has_op(g, (Op)op) || has_op(d.planned, (Op)op);
    arena_free(a);
}

bool draws_print(uint32_t first, int count) {
    enum { RARE = 100 }; // one in so many
    int had[THINGS] = {0}, ops[NUM_OPS] = {0};
    bool good = true;
    for (int i = 0; i < count; i++)
        count_seed(first + (uint32_t)i, had, ops);
    for (int i = 0; i < THINGS; i++) {
        bool rare = had[i] < count / RARE;
        printf("%5.1f %%  %s%s\n", 100.0 * had[i] / count, thing[i].what,
               rare ? ": rare" : "");
        good &= !rare;
    }
    for (int op = 0; op < NUM_OPS; op++) {
        if ((ops[op] == 0) == is_elsewhere((Op)op))
            continue;
        printf("%s is in %d programs\n", op_info[op].name, ops[op]);
        good = false;
    }
    return good;
}
