// Shards: the terms of all shards, then the update, make the step.
#include "frontend/frontend.h"
#include "tests/passes/suites.h"
#include "tests/passes/values.h"

#include <math.h>
#include <string.h>

enum { BATCH = 8 };

static Program *parsed(Arena *a, const char *text) {
    Diagnostics diags = diag_new(a);
    Program *p =
        frontend_parse(a, "x.net", text, strlen(text), NULL, 0, &diags);
    ck_assert_msg(p != NULL, "%s",
                  diags.count ? diags.list[0]->message : "no program");
    return p;
}

// layers: others between the convolution and the head; keys: of the recipe.
static Program *program(Arena *a, const char *layers, int batch, int shards,
                        const char *reduce, const char *keys) {
    const char *text = arena_format(
        a,
        "model Net(image: u8[N, 4, 4, 1]) -> f32[N, 2] {\n"
        "image |> conv(2, 1, bias=false) as stem %s |> relu\n"
        "|> flatten |> linear(2) as head\n}\n"
        "train Net {\ndata = synthetic()\nbatch = %d%s\nepochs = 2\n%s"
        "loss = %s(cross_entropy(output, label))\n"
        "optimizer = sgd(lr=0.1, momentum=0.9)\nclip = value(0.5)\n"
        "average = lookahead(decay=0.7)\n"
        "}\n",
        layers, batch, keys,
        shards > 0 ? arena_format(a, "shards = %d\n", shards) : "", reduce);
    return parsed(a, text);
}

// shard: of PART_OPTIMIZE.
static Graph *part_of_shard(Program *p, StepPart part, int shard, DType act) {
    PassOptions o = {.device = "cuda",
                     .act = act,
                     .level = 1,
                     .part = part,
                     .optimizer_shard = shard,
                     .deep_verify = true};
    return passes_run(graph_clone(p->stage[0].train), &o, "optimizer_shards",
                      NULL, NULL);
}

static Graph *part_of(Program *p, StepPart part, DType act) {
    return part_of_shard(p, part, 0, act);
}

static NodeId leaf_named(const Graph *g, const char *name) {
    NodeId n = graph_find(g, name);
    ck_assert_msg(n != NO_NODE, "%s", name);
    return n;
}

// The leaves of a shard: its samples of the whole batch's.
static double **shard_leaves(const Graph *whole, double **all, const Graph *g,
                             Arena *a, int shard, int valid) {
    double **leaf = leaf_values(g, a, 0, -2, 2);
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        const char *name = node_text(d, ATTR_name);
        if (d->op != OP_input)
            continue;
        if (strcmp(name, "valid") == 0)
            leaf[n][0] = valid;
        else if (strcmp(name, "shard") == 0)
            leaf[n][0] = shard;
        else
            leaf[n] =
                all[leaf_named(whole, name)] + shard * type_count(d->type);
    }
    return leaf;
}

static double **eval_shard(const Graph *whole, double **all, const Graph *g,
                           Arena *a, int shard, int valid) {
    return graph_eval(g, a, shard_leaves(whole, all, g, a, shard, valid), true);
}

// Adds a shard's terms to the leaves of the update.
static void add_terms(const Graph *shard, double **value, const Graph *apply,
                      double **sum, bool first) {
    for (NodeId n = 0; n < apply->count; n++) {
        const Node *d = &apply->node[n];
        if (!state_is(d, STATE_PARTIAL))
            continue;
        const double *term = value_named(shard, value, node_text(d, ATTR_name));
        ck_assert(term != NULL);
        for (int64_t i = 0; i < type_count(d->type); i++)
            sum[n][i] = first ? term[i] : sum[n][i] + term[i];
    }
}

static const char *assigned(const Graph *g, NodeId n) {
    const Node *d = &g->node[n];
    return d->op == OP_assign ? node_text(&g->node[d->arg[0]], ATTR_name)
                              : NULL;
}

// A step of so many valid samples in shards, and without.
typedef struct {
    Arena *a;
    Graph *whole, *apply;
    double **all;         // leaves of the whole step
    double **want, **got; // values of the whole step, and of the update
    int each;
} Sharded;

static Sharded steps(DType act, const char *layers, int shards, int valid,
                     const char *reduce, const char *keys) {
    Sharded s = {.a = arena_new(), .each = BATCH / shards};
    Program *p = program(s.a, layers, BATCH, shards, reduce, keys);
    s.whole =
        part_of(program(s.a, layers, BATCH, 0, reduce, keys), PART_WHOLE, act);
    s.apply = part_of(p, PART_APPLY, act);
    s.all = leaf_values(s.whole, s.a, 0, -2, 2);
    if (graph_find(s.whole, "valid") != NO_NODE)
        s.all[leaf_named(s.whole, "valid")][0] = valid;
    double **sum = leaf_values(s.apply, s.a, 0, -2, 2);
    Graph *shard = part_of(p, PART_SHARD, act);
    for (int k = 0; k * s.each < valid; k++) {
        int left = valid - k * s.each;
        double **value = eval_shard(s.whole, s.all, shard, s.a, k,
                                    left < s.each ? left : s.each);
        add_terms(shard, value, s.apply, sum, k == 0);
    }
    s.want = graph_eval(s.whole, s.a, s.all, true);
    s.got = graph_eval(s.apply, s.a, sum, true);
    return s;
}

static void check(Sharded s, double tolerance) {
    int found = 0;
    for (NodeId n = 0; n < s.whole->count; n++) {
        const char *name = assigned(s.whole, n);
        if (name == NULL)
            continue;
        const double *x = value_named(s.apply, s.got, name);
        ck_assert_msg(x != NULL, "%s", name);
        for (int64_t i = 0; i < type_count(s.whole->node[n].type); i++)
            ck_assert_msg(fabs(x[i] - s.want[n][i]) <=
                              tolerance * (1 + fabs(s.want[n][i])),
                          "%s[%lld]: %.17g, not %.17g", name, (long long)i,
                          x[i], s.want[n][i]);
        found++;
    }
    ck_assert_int_gt(found, 8);
    arena_free(s.a);
}

START_TEST(one_shard_is_the_step_to_the_bit) {
    check(steps(_i ? F16 : F32, "|> batch_norm", 1, BATCH, "mean", ""), 0);
}
END_TEST

START_TEST(shards_of_a_batch_make_its_step) {
    static const char *const reduce[] = {"mean", "sum"};
    const char *keys = _i < 4 ? "" : ", drop_last";
    check(steps(F32, "", 1 << _i % 4, BATCH, reduce[_i % 2], keys), 1e-9);
}
END_TEST

START_TEST(a_short_shard_counts_by_its_samples) {
    check(steps(F32, "", 2, 7, "mean", ""), 1e-9);
}
END_TEST

// ---- sums over shards ----

enum { MAX_SHARDS = BATCH };

// Adds the operand of a sum over shards in all of them.
static void sum_shards(const Graph *g, NodeId n, double **value[], int shards) {
    for (int64_t i = 0; i < type_count(g->node[n].type); i++) {
        double sum = 0;
        for (int k = 0; k < shards; k++)
            sum += value[k][g->node[n].arg[0]][i];
        for (int k = 0; k < shards; k++)
            value[k][n][i] = sum;
    }
}

// Computes the part of each shard, in double.
static void eval_in_lockstep(const Graph *g, Arena *a, double **value[],
                             int shards) {
    for (NodeId n = 0; n < g->count; n++) {
        for (int k = 0; k < shards; k++) {
            double *leaf = value[k][n];
            if (leaf != NULL)
                continue;
            value[k][n] =
                ARENA_ARRAY(a, (size_t)type_count(g->node[n].type) + 1, double);
            node_eval(g, n, value[k], value[k][n], a);
        }
        if (g->node[n].op == OP_sum_over_shards)
            sum_shards(g, n, value, shards);
    }
}

// Synchronized, a batch_norm of shards is that of the batch: forward, backward,
// running statistics and ghost batches.
START_TEST(synchronized_shards_are_the_batch) {
    static const char *const layers[] = {
        "|> batch_norm", "|> batch_norm(ghost=2)",
        "|> batch_norm |> relu |> conv(3, 3) |> batch_norm(momentum=0.3)"};
    int shards = 1 << _i % 4;
    const char *norm = layers[_i / 4];
    Sharded s = {.a = arena_new(), .each = BATCH / shards};
    const char *keys = "\nsync_batch_norm = true";
    if (_i / 4 == 1 && shards == BATCH) // a shard of one sample has no ghosts
        shards = s.each = 4;
    Program *p = program(s.a, norm, BATCH, shards, "mean", keys);
    s.each = BATCH / shards;
    s.whole =
        part_of(program(s.a, norm, BATCH, 0, "mean", ""), PART_WHOLE, F32);
    s.apply = part_of(p, PART_APPLY, F32);
    s.all = leaf_values(s.whole, s.a, 0, -2, 2);
    s.all[leaf_named(s.whole, "valid")][0] = BATCH;
    double **sum = leaf_values(s.apply, s.a, 0, -2, 2), **value[MAX_SHARDS];
    Graph *shard = part_of(p, PART_SHARD, F32);
    ck_assert_int_gt(count_ops(shard, OP_sum_over_shards), 4);
    ck_assert_int_eq(count_ops(s.apply, OP_sum_over_shards), 0);
    for (int k = 0; k < shards; k++)
        value[k] = shard_leaves(s.whole, s.all, shard, s.a, k, s.each);
    eval_in_lockstep(shard, s.a, value, shards);
    for (int k = 0; k < shards; k++)
        add_terms(shard, value[k], s.apply, sum, k == 0);
    s.want = graph_eval(s.whole, s.a, s.all, false);
    s.got = graph_eval(s.apply, s.a, sum, false);
    check(s, 1e-11);
}
END_TEST

START_TEST(without_shards_there_is_no_sum) {
    Arena *a = arena_new();
    const char *key = "\nsync_batch_norm = true", *norm = "|> batch_norm";
    Program *with = program(a, norm, BATCH, 0, "mean", key);
    Program *without = program(a, norm, BATCH, 0, "mean", "");
    Text text[] = {text_new(a), text_new(a)};
    graph_print(&text[0], with->stage[0].train);
    graph_print(&text[1], without->stage[0].train);
    ck_assert_int_eq(count_ops(with->stage[0].train, OP_sum_over_shards), 0);
    ck_assert(strlen(text_string(&text[0])) > 0);
    ck_assert_int_eq(with->stage[0].train->count,
                     without->stage[0].train->count);
    arena_free(a);
}
END_TEST

// A plan has a copy of a shard's memory for each in one process.
START_TEST(memory_in_lockstep_is_of_each_shard) {
    Arena *a = arena_new();
    Program *p = program(a, "|> batch_norm", BATCH, 4, "mean",
                         "\nsync_batch_norm = true");
    PassOptions o = pass_options(&p->recipe, "host");
    o.deep_verify = true;
    const Plan *plan = program_plan(p, &o);
    ck_assert_int_eq(plan->lockstep, 4);
    ck_assert_int_eq(plan->waiting_sums, 0);
    int64_t own = plan->arena_bytes - plan->partial;
    ck_assert_int_eq(plan_process_bytes(plan), plan->partial + 4 * own);
    ck_assert_int_eq(plan->partial % 256, 0);
    ck_assert_int_eq(own % 256, 0);
    Program *each = program(a, "|> batch_norm", BATCH, 4, "mean", "");
    ck_assert_int_eq(program_plan(each, &o)->lockstep, 1);
    arena_free(a);
}
END_TEST

// The step of each shard alone updates the statistics from the same old ones,
// so their mean, weighted by samples, is the update of all.
START_TEST(statistics_are_averaged_by_samples) {
    static const char name[] = "head.batch_norm_1.running_mean";
    enum { VALID = 7, EACH = BATCH / 2 };
    const char *norm = "|> batch_norm";
    Sharded s = steps(F32, norm, 2, VALID, "mean", "");
    Graph *alone =
        part_of(program(s.a, norm, EACH, 0, "mean", ""), PART_WHOLE, F32);
    double want[2] = {0};
    for (int k = 0; k < 2; k++) {
        int valid = k == 0 ? EACH : VALID - EACH;
        double **value = eval_shard(s.whole, s.all, alone, s.a, k, valid);
        for (int i = 0; i < 2; i++)
            want[i] += value_named(alone, value, name)[i] * valid / VALID;
    }
    for (int i = 0; i < 2; i++)
        ck_assert_double_eq_tol(value_named(s.apply, s.got, name)[i], want[i],
                                1e-6 * fabs(want[i]));
    arena_free(s.a);
}
END_TEST

static bool assigns(const Graph *g, const char *name) {
    for (NodeId n = 0; n < g->count; n++) {
        const char *to = assigned(g, n);
        if (to != NULL && strcmp(to, name) == 0)
            return true;
    }
    return false;
}

// The 16-bit copies that a shard reads.
START_TEST(copies_of_weights_follow_the_update) {
    Arena *a = arena_new();
    Program *p = program(a, "", BATCH, 2, "mean", "\nprecision = f16");
    PassOptions o = pass_options(&p->recipe, _i ? "host" : "cuda");
    const Plan *plan = program_plan(p, &o);
    const Graph *shard = plan_graph(plan, "train");
    int copies = 0;
    for (NodeId n = 0; n < shard->count; n++) {
        const char *name = node_text(&shard->node[n], ATTR_name);
        if (!state_is(&shard->node[n], STATE_DERIVED) ||
            strstr(name, ".act") == NULL)
            continue;
        ck_assert_msg(assigns(plan_graph(plan, "apply"), name), "%s", name);
        copies++;
    }
    ck_assert_int_ge(copies, 2);
    arena_free(a);
}
END_TEST

// ---- buckets ----

// Each hidden layer has 2 MB of weights.
static Plan *wide_plan(Arena *a, const char *keys) {
    const char *text = arena_format(
        a,
        "model Net(image: u8[N, 4, 4, 1]) -> f32[N, 2] {\n"
        "image |> flatten |> linear(700) as a |> relu\n"
        "|> linear(700) as b |> relu |> linear(700) as c |> relu\n"
        "|> linear(700) as d |> relu |> linear(700) as e |> relu\n"
        "|> linear(2) as head\n}\n"
        "train Net {\ndata = synthetic()\nbatch = 8\nepochs = 2\nshards = 2\n"
        "loss = mean(cross_entropy(output, label))\n"
        "optimizer = adam(lr=0.1)\n%s}\n",
        keys);
    Program *p = parsed(a, text);
    PassOptions o = pass_options(&p->recipe, "host");
    o.deep_verify = true;
    return program_plan(p, &o);
}

static int64_t offset_of(const Plan *p, const char *name) {
    for (int i = 0; i < p->num_steps; i++) {
        NodeId n = graph_find(p->step[i].graph, name);
        if (n != NO_NODE)
            return p->step[i].graph->node[n].offset;
    }
    ck_abort_msg("no state %s", name);
}

static int bucket_of(const Step *s, int64_t offset) {
    int i = 0;
    while (i < s->num_buckets &&
           (offset < s->bucket[i].offset ||
            offset >= s->bucket[i].offset + s->bucket[i].bytes))
        i++;
    return i;
}

// No term is stored after its bucket is ready, and no sum read before it is
// needed.
static void check_buckets(const Plan *p, const Step *train, const Step *apply) {
    const GraphPlan *plan = train->plan, *update = apply->plan;
    for (int k = 0; k < plan->num_groups; k++)
        for (NodeId n = plan->group[k].first; n <= plan->group[k].last; n++) {
            const Node *d = &plan->graph->node[n];
            if (d->op != OP_assign)
                continue;
            const Node *state = &plan->graph->node[d->arg[0]];
            int i = bucket_of(train, state->offset);
            ck_assert_int_lt(i, train->num_buckets);
            ck_assert_int_le(k, train->bucket[i].ready);
        }
    for (int k = 0; k < update->num_groups; k++)
        for (int i = 0; i < update->group[k].num_inputs; i++) {
            NodeId n = update->group[k].input[i];
            const Node *d = &update->graph->node[n];
            if (state_is(d, STATE_PARTIAL))
                ck_assert_int_ge(
                    k, train->bucket[bucket_of(train, d->offset)].needed);
        }
    for (int i = 0; i < train->num_buckets; i++) {
        const Bucket *b = &train->bucket[i];
        ck_assert_int_ge(b->offset, p->partial);
        ck_assert_int_le(b->offset + b->bytes, p->partial + p->partial_bytes);
        ck_assert(i == 0 || b->ready >= b[-1].ready);
    }
}

START_TEST(buckets_are_full_in_the_order_of_the_backward_pass) {
    Arena *a = arena_new();
    Plan *p = wide_plan(a, "");
    const Step *train = plan_step(p, "train");
    check_buckets(p, train, plan_step(p, "apply"));
    ck_assert_int_eq(train->num_buckets, 2);
    ck_assert_int_eq(bucket_of(train, offset_of(p, "head.weight.shard")), 0);
    ck_assert_int_eq(bucket_of(train, offset_of(p, "d.weight.shard")), 0);
    ck_assert_int_eq(bucket_of(train, offset_of(p, "a.weight.shard")), 1);
    ck_assert_int_ge(train->bucket[0].bytes, 4 << 20);
    ck_assert_int_eq(train->bucket[0].bytes + train->bucket[1].bytes,
                     p->partial_bytes);
    ck_assert_int_eq(train->bucket[0].offset, p->partial);
    // The gradients below wait for it: there is time to add.
    ck_assert_int_lt(train->bucket[0].ready + 3, train->bucket[1].ready);
    ck_assert_int_eq(train->bucket[1].ready, train->plan->num_groups - 1);
    PassOptions o = {.device = "cuda", .storage = F16, .measured = F32};
    Plan *cuda = plan_elsewhere(p, &o);
    check_buckets(cuda, plan_step(cuda, "train"), plan_step(cuda, "apply"));
    ck_assert_int_eq(plan_step(cuda, "train")->num_buckets, 2);
    arena_free(a);
}
END_TEST

// ---- optimizer shards ----

enum { OPTIMIZER_SHARDS = 4 };

// With a norm of all gradients, and parameters that share a state.
static Program *divided(Arena *a, int shards) {
    return parsed(
        a, arena_format(
               a,
               "model Net(image: u8[N, 4, 4, 1]) -> f32[N, 2] {\n"
               "image |> conv(2, 1, bias=false) as stem |> batch_norm |> relu\n"
               "|> flatten |> linear(4) |> relu |> linear(2) as head\n}\n"
               "train Net {\ndata = synthetic()\nbatch = 8\nepochs = 2\n"
               "shards = 2\noptimizer_shards = %d\nclip = norm(0.1)\n"
               "loss = mean(cross_entropy(output, label))\n"
               "optimizer = nadam()\n"
               "params \"head.*\" { optimizer = adam(lr=0.1) }\n}\n",
               shards));
}

// The value that a graph assigns to a state, whose leaves have the values of
// `all`; NULL: it does not.
static const double *assigned_in(const Graph *g, Arena *a, const Graph *whole,
                                 double **all, const char *state) {
    double **leaf = leaf_values(g, a, 0, -2, 2);
    for (NodeId n = 0; n < g->count; n++)
        if (node_text(&g->node[n], ATTR_name) != NULL)
            leaf[n] = all[leaf_named(whole, node_text(&g->node[n], ATTR_name))];
    double **value = graph_eval(g, a, leaf, true);
    for (NodeId n = 0; n < g->count; n++)
        if (assigned(g, n) != NULL && strcmp(assigned(g, n), state) == 0)
            return value[n];
    return NULL;
}

// Each assignment of the update is one of one part, and has the same value, in
// f16 with the finite check of all gradients.
START_TEST(optimizer_shards_make_the_update) {
    Arena *a = arena_new();
    DType act = _i == 0 ? F32 : F16;
    Graph *part[OPTIMIZER_SHARDS + 1];
    Graph *whole = part_of(divided(a, 1), PART_APPLY, act);
    Program *p = divided(a, OPTIMIZER_SHARDS);
    for (int k = 0; k <= OPTIMIZER_SHARDS; k++)
        part[k] = part_of_shard(
            p, k < OPTIMIZER_SHARDS ? PART_OPTIMIZE : PART_APPLY, k, act);
    double **all = leaf_values(whole, a, 0, -2, 2);
    double **want = graph_eval(whole, a, all, true);
    int assignments = 0, found = 0;
    for (NodeId n = 0; n < whole->count; n++) {
        const char *state = assigned(whole, n);
        if (state == NULL)
            continue;
        assignments++;
        for (int k = 0; k <= OPTIMIZER_SHARDS; k++) {
            const double *got = assigned_in(part[k], a, whole, all, state);
            if (got == NULL)
                continue;
            found++;
            ck_assert_mem_eq(got, want[n],
                             (size_t)type_count(whole->node[n].type) *
                                 sizeof *got);
        }
    }
    ck_assert_int_ge(assignments, 12);
    ck_assert_int_eq(found, assignments);
    arena_free(a);
}
END_TEST

// The states of a shard are one range of the arena, and so are its parameters.
static void check_optimizer_shards(const Plan *p, int shards) {
    int64_t states = 0, params = 0, most = 0;
    ck_assert_int_eq(p->num_optimizer_shards, shards);
    for (int k = 0; k < shards; k++) {
        const OptimizerShard *s = &p->optimizer_shard[k];
        ck_assert(k == 0 || s->params == params);
        ck_assert(k == 0 || s->states == states);
        params = s->params + s->param_bytes;
        states = s->states + s->state_bytes;
        most = s->state_bytes > most ? s->state_bytes : most;
    }
    int64_t all = states - p->optimizer_shard[0].states;
    ck_assert_int_eq(params, p->optimizer_shard[0].states);
    ck_assert_int_eq(states, p->partial);
    ck_assert_int_le(most * shards * 9, all * 10); // the largest: 10 % above
    for (int i = 0; i < p->num_steps; i++)
        for (NodeId n = 0; n < p->step[i].graph->count; n++) {
            const Node *d = &p->step[i].graph->node[n];
            int own = node_optimizer_shard(d);
            const OptimizerShard *s = &p->optimizer_shard[own < 0 ? 0 : own];
            int64_t begin = d->op == OP_param ? s->params : s->states;
            int64_t bytes = d->op == OP_param ? s->param_bytes : s->state_bytes;
            bool inside = d->offset >= begin && d->offset < begin + bytes;
            ck_assert(own < 0 || inside);
            // Another rank may have the optimizer states of other shards.
            ck_assert(
                own < 0 || d->op == OP_param ||
                (p->step[i].kind == STEP_OPTIMIZE && p->step[i].shard == own));
            ck_assert(own >= 0 || d->op != OP_state || d->offset < params ||
                      d->offset >= states);
        }
}

START_TEST(an_optimizer_shard_is_a_range) {
    Arena *a = arena_new();
    static const char *const keys[] = {
        "optimizer_shards = 4\n",
        "optimizer_shards = 4\nparams \"?.weight\" { optimizer = "
        "muon(lr=0.1) }\n"};
    Plan *p = wide_plan(a, keys[_i]);
    check_optimizer_shards(p, OPTIMIZER_SHARDS);
    PassOptions o = {.device = "cuda", .storage = F16, .measured = F32};
    check_optimizer_shards(plan_elsewhere(p, &o), OPTIMIZER_SHARDS);
    ck_assert_ptr_nonnull(plan_step(p, "optimize_2"));
    ck_assert_str_eq(plan_step(p, "train")->bucket[0].needed_by, "optimize_0");
    arena_free(a);
}
END_TEST

// The number of a shard is no property of its samples.
START_TEST(dropout_takes_short_shards) {
    Arena *a = arena_new();
    Program *p = program(a, "|> dropout(0.5)", BATCH, 2, "mean", "");
    ck_assert_ptr_null(p->recipe.whole_train);
    arena_free(a);
}
END_TEST

// The second stage trains the head alone: the gradients of other layers are not
// added.
START_TEST(a_bucket_without_terms_is_none) {
    Arena *a = arena_new();
    Plan *p = wide_plan(a, "freeze \"?.*\" after 1 epoch\n");
    const Step *second = plan_step(p, "train_2");
    ck_assert_ptr_nonnull(second);
    check_buckets(p, plan_step(p, "train"), plan_step(p, "apply"));
    check_buckets(p, second, plan_step(p, "apply_2"));
    ck_assert_int_eq(second->num_buckets, 1);
    ck_assert_int_eq(bucket_of(second, offset_of(p, "head.bias.shard")), 0);
    arena_free(a);
}
END_TEST

Suite *shards_suite(void) {
    Suite *s = suite_create("shards");
    TCase *c = tcase_create("shards");
    tcase_add_loop_test(c, one_shard_is_the_step_to_the_bit, 0, 2);
    tcase_add_loop_test(c, shards_of_a_batch_make_its_step, 0, 8);
    tcase_add_test(c, a_short_shard_counts_by_its_samples);
    tcase_add_test(c, statistics_are_averaged_by_samples);
    tcase_add_loop_test(c, synchronized_shards_are_the_batch, 0, 12);
    tcase_add_test(c, without_shards_there_is_no_sum);
    tcase_add_test(c, memory_in_lockstep_is_of_each_shard);
    tcase_add_loop_test(c, copies_of_weights_follow_the_update, 0, 2);
    tcase_add_test(c, dropout_takes_short_shards);
    suite_add_tcase(s, c);
    TCase *b = tcase_create("buckets");
    tcase_add_test(b, buckets_are_full_in_the_order_of_the_backward_pass);
    tcase_add_test(b, a_bucket_without_terms_is_none);
    suite_add_tcase(s, b);
    TCase *o = tcase_create("optimizer_shards");
    tcase_add_loop_test(o, optimizer_shards_make_the_update, 0, 2);
    tcase_add_loop_test(o, an_optimizer_shard_is_a_range, 0, 2);
    suite_add_tcase(s, o);
    return s;
}
