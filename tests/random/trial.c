// Trial: see trial.h.
#include "tests/random/trial.h"

#include "ir/noise.h"
#include "ir/tolerance.h"
#include "runtime/device.h"
#include "tests/codegen/library.h"
#include "tests/codegen/merged.h"
#include "tests/codegen/tensors.h"
#include "tests/graphs/graphs.h"
#include "tests/random/fusing_device.h"
#include "tests/random/margin.h"
#include "tests/random/slope.h"
#include "tests/random/stages.h"

#include <math.h>
#include <string.h>

// ---- what a seed stands for ----

// splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
// generators").
static uint32_t scatter(uint32_t seed, uint32_t purpose) {
    uint64_t z = ((uint64_t)purpose << 32 | seed) + 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)(z >> 33);
}

enum {
    PRECISION = 1,
    STORAGE,
    STEPS,
    SIZE,
    BEFORE,
    SOURCE,
    NUMBERS,
    EMPTY,
    LIMIT,
    READS,
    WITHOUT,
    MEMORY,
    PLAIN,
    STAGES,
    FROZEN,
    AVERAGE,
    EVALUATES,
    ROW,
    TURN,
    DESCRIBED
};

// Each pass that may be missing, by chance; of half of the seeds none is.
static uint32_t draw_missing(uint32_t draw) {
    static const char *const name[] = {
        "canonicalize", "layout",   "derive",  "simplify",   "dce",
        "statistics",   "schedule", "inplace", "bit_packing"};
    uint32_t missing = 0;
    for (int i = 0; i < 9 && draw % 2; i++)
        if (draw >> (1 + 2 * i) & 1 && draw >> (2 + 2 * i) & 1)
            missing |= 1u << (pass_find(name[i]) - standard_passes);
    return missing;
}

Setup setup_of(uint32_t seed) {
    static const DType precision[] = {F32, F32, F16, BF16};
    Setup s = {.seed = seed,
               .precision = precision[scatter(seed, PRECISION) % 4],
               .level = 1,
               .reuse = true,
               .before = scatter(seed, BEFORE)};
    uint32_t limit = scatter(seed, LIMIT);
    s.limit = limit % 4 ? INT64_MAX : limit / 4 % 64;
    s.storage = scatter(seed, STORAGE) % 4 ? s.precision : F32;
    s.reads = scatter(seed, READS) % 8 == 0;
    s.without = draw_missing(scatter(seed, WITHOUT));
    uint32_t memory = scatter(seed, MEMORY);
    s.again = memory % 4 == 0;
    s.memory = memory / 4 % 3 ? (int)(20 + memory / 12 % 80) : 0;
    s.plain = scatter(seed, PLAIN) % 16 == 0;
    uint32_t stages = scatter(seed, STAGES), average = scatter(seed, AVERAGE);
    s.stages = stages % 6 ? 1 : 2 + (int)(stages / 6 % 2);
    s.frozen = scatter(seed, FROZEN);
    s.gathers = stages / 12 % 8 == 0;
    s.average = average % 8 == 0   ? AVERAGE_EACH_STEP
                : average % 8 == 1 ? AVERAGE_SOMETIMES
                                   : AVERAGE_NEVER;
    s.back = average / 8 % 3 == 0;
    uint32_t evaluates = scatter(seed, EVALUATES), row = scatter(seed, ROW);
    s.evaluates = evaluates % 4 == 0;
    s.of_averages = evaluates / 4 % 4;
    s.row = row % 4 ? 0 : 2 + (int)(row / 4 % 3);
    s.described = scatter(seed, DESCRIBED) % 4 == 0;
    return s;
}

void setup_tile(Setup *s) {
    s->tiled = true;
    s->precision = s->storage = s->seed % 2 ? BF16 : F16;
}

Graph *setup_graph(Arena *a, const Setup *s) {
    uint32_t size = scatter(s->seed, SIZE), steps = scatter(s->seed, STEPS);
    Habit habit = {.steps = 1 + (int)((steps % 32) * (steps / 32 % 32) / 32),
                   .max_elements = size % 8 ? 1500 : 12000,
                   .source = scatter(s->seed, SOURCE) % 3 != 0,
                   .vanishes = scatter(s->seed, EMPTY) % 10 == 0};
    return random_graph_of(a, s->seed, &habit);
}

// ---- plans ----

// Passes that may run at any time before their turn, a few of them, in the
// order that the digits of `order` have.
static Graph *run_before(Graph *g, const PassOptions *o, uint32_t order) {
    static const char *const name[] = {"simplify", "dce", "layout", "derive"};
    if (order % 2 == 0)
        return g;
    bool typed = g->facts & TYPED;
    for (order = order / 2 | 4u << 27; order % 8 < 4; order /= 8)
        if (typed || order % 4 < 2)
            g = pass_run(g, o, pass_find(name[order % 4]));
    return g;
}

// Unfused too, it is what the same passes come to before their turn: which
// values are activations depends on what simplify has made of views.
static Plan *plan_with(Trial *t, const PassOptions *o) {
    Program *p = stages_program(t->a, t->grown, &t->setup);
    Stage *stage = ARENA_ARRAY(t->a, (size_t)p->num_stages, Stage);
    for (int i = 0; i < p->num_stages; i++) {
        stage[i] = p->stage[i];
        stage[i].train = run_before(stage[i].train, o, t->setup.before);
        if (stage[i].accumulate != NULL)
            stage[i].accumulate =
                run_before(stage[i].accumulate, o, t->setup.before);
    }
    p->stage = stage;
    t->program = p;
    return program_plan(p, o);
}

static Plan *plan_of(Trial *t, int level) {
    const Setup *s = &t->setup;
    Recipe recipe = {.precision = s->precision};
    PassOptions o = pass_options(&recipe, s->gpu ? "cuda" : "host");
    o.storage = s->storage;
    o.measured = s->precision;
    o.multiprocessors = s->tiled       ? 24
                        : s->described ? GENERIC_MULTIPROCESSORS
                                       : 0;
    o.level = level;
    o.reuse = s->reuse;
    o.deep_verify = s->reads;
    // A convolution by products is in f32, which the other plan may not come
    // to.
    if (level == 0 && s->limit < INT64_MAX)
        o.left_out = 1u << (pass_find("direct_conv") - standard_passes);
    if (level == 0)
        return plan_with(t, &o);
    if (s->limit < INT64_MAX)
        o.rewrite_limit = &s->limit;
    o.left_out = s->without;
    o.rematerialize = s->again && s->memory == 0;
    Plan *plan = plan_with(t, &o);
    if (!s->again || s->memory == 0)
        return plan;
    o.rematerialize = true;
    o.memory = plan->arena_bytes * s->memory / 100;
    return plan_with(t, &o);
}

// The step of a plan that is judged now.
static int judged_step(const Trial *t, const Plan *p) {
    const Step *turn = &t->turn[t->now];
    int i = 0;
    while (p->step[i].kind != turn->kind || p->step[i].stage != turn->stage)
        i++;
    return i;
}

Plan *trial_plan(Arena *a, const Graph *g, const Setup *s) {
    Trial t = {.a = a, .setup = *s, .grown = g};
    return plan_of(&t, s->level);
}

const Graph *trial_step(const Plan *p) {
    int i = 0;
    while (p->step[i].kind != STEP_TRAIN)
        i++;
    return p->step[i].graph;
}

// Gradients that wait for an update do so with the scale of the loss.  No other
// follows from it, and in what they mean it is 1.
static bool waits(const Graph *g) {
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_accumulate || g->node[n].op == OP_accumulated)
            return true;
    return false;
}

static Graph *scale_loss(const Graph *g, Arena *a) {
    Graph *out = graph_like(g);
    NodeId *now = ARENA_ARRAY(a, g->count + 1, NodeId);
    for (NodeId n = 0; n < g->count; n++)
        now[n] = g->node[n].op == OP_loss_scale
                     ? graph_constant(out, *g->node[n].type, LOSS_SCALE)
                     : graph_copy(out, g, n, now);
    return out;
}

// The graph with gradients and updates, which are what is to be computed.
static Graph *meaning(Trial *t, Graph *g) {
    PassOptions o = pass_options(&t->program->recipe, "host");
    o.act = F32;
    o.left_out = 1u << (pass_find("canonicalize") - standard_passes) |
                 1u << (pass_find("fold_batch_norm") - standard_passes);
    if (g->facts & UPDATES)
        return g;
    bool scaled = t->setup.precision == F16 && waits(g);
    g = passes_run(g, &o, "optimizer", NULL, NULL);
    if (t->turn[t->now].kind == STEP_TRAIN &&
        program_averages_each_step(t->source))
        g = step_with_average(g, t->source->average);
    return scaled ? scale_loss(g, t->a) : g;
}

// ---- numbers ----

// One rounding, and what it may have become on its way through a graph.
static double unit_of(DType storage) {
    return storage == F32 ? 0x1p-18 : storage == F16 ? 0x1p-8 : 0x1p-5;
}

static int count_unsure(const Graph *g, const bool *unsure) {
    int count = 0;
    for (NodeId n = 0; n < g->count; n++)
        count += unsure[n] &&
                 (g->node[n].op == OP_output || g->node[n].op == OP_assign);
    return count;
}

static bool step_finite(const Plan *p, int step, const Values *numbers) {
    return number_finite(p->step[step].graph, numbers->value);
}

// Starts the step from other numbers if every value is finite and fewer than so
// many are unsure, and returns how many are then.
static int try_numbers(Trial *t, Start start, int least) {
    double **leaf = number_leaves(t->meant, t->a, &start);
    double **right = graph_eval(t->meant, t->a, leaf, false);
    if (!number_finite(t->meant, right))
        return least;
    bool *unsure =
        margin_unsure(t->meant, right, unit_of(t->setup.storage), t->a);
    int count = count_unsure(t->meant, unsure);
    if (count >= least)
        return least;
    int step = judged_step(t, t->unfused);
    Values rough = number_step(t->unfused, step, t->a, &start, true);
    if (!step_finite(t->unfused, step, &rough))
        return least;
    t->right = right;
    t->unsure = unsure;
    t->rough = rough;
    t->start = start;
    return count;
}

// Tries some seeds and stays with the one that leaves the fewest values
// unsure.
static bool find_numbers(Trial *t) {
    enum { TRIES = 8 };
    int least = INT32_MAX;
    for (uint32_t k = 0; k < TRIES && least > 0; k++) {
        Start start = {.seed = scatter(t->setup.seed + k, NUMBERS)};
        least = try_numbers(t, start, least);
    }
    return least < INT32_MAX;
}

static void take_turn(Trial *t, int turn) {
    t->now = turn;
    t->meant = meaning(t, graph_clone(t->turn[turn].graph));
}

bool trial_turn(Trial *t, int turn) {
    take_turn(t, turn);
    return find_numbers(t);
}

static const Step *find_turns(const Program *p, const Setup *s, Arena *a,
                              int *count) {
    int steps;
    Step *step = program_steps(p, a, &steps);
    *count = 0;
    for (int i = 0; i < steps; i++)
        if (step[i].kind == STEP_TRAIN || step[i].kind == STEP_ACCUMULATE ||
            (step[i].kind == STEP_AVERAGE && !program_averages_each_step(p)) ||
            (step[i].kind == STEP_EVAL && s->evaluates))
            step[(*count)++] = step[i];
    return step;
}

// Takes every tile fusion of the plan, and returns their number.
static int take_tiles(const Plan *p) {
    int taken = 0;
    for (int i = 0; i < p->num_steps; i++) {
        const TileFusions *f = &p->step[i].plan->tiles;
        for (int k = 0; k < f->count; k++)
            f->fusion[k].taken = true;
        taken += f->count;
    }
    return taken;
}

Trial *trial_new(Arena *a, const Graph *g, const Setup *s) {
    Trial *t = ARENA_NEW(a, Trial);
    t->a = a;
    t->setup = *s;
    t->grown = g;
    t->unfused = plan_of(t, 0);
    t->plan = plan_of(t, s->level);
    t->tiles = s->tiled ? take_tiles(t->plan) : 0;
    if (s->tiled && t->tiles == 0)
        return t;
    t->source = stages_program(a, g, s);
    t->turn = find_turns(t->source, s, a, &t->num_turns);
    return trial_turn(t, 0) ? t : NULL;
}

// ---- running ----

// Memory that no step may read before it has written it.
static void fill_garbage(RtDevice *d, Arena *a, size_t bytes) {
    char *garbage = arena_alloc(a, bytes + 1);
    memset(garbage, 0xff, bytes);
    d->write(d, 0, garbage, bytes);
}

static void fill_leaves(const Trial *t, RtDevice *d) {
    for (int i = 0; i < t->plan->num_steps; i++) {
        const Graph *g = t->plan->step[i].graph;
        for (NodeId n = 0; n < g->count; n++)
            if (g->node[n].op == OP_state || g->node[n].op == OP_param)
                tensor_write(d, t->a, g, n, number_leaf(g, t->a, n, &t->start));
    }
}

static void fill_inputs(const Trial *t, RtDevice *d, int i) {
    const Graph *g = t->plan->step[i].graph;
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_input)
            tensor_write(d, t->a, g, n, number_leaf(g, t->a, n, &t->start));
}

static void launch_all(RtDevice *d, const RtPlan *rt, int i) {
    d->run(d, &rt->step[i]);
    d->sync(d);
}

static void run_step(const Trial *t, RtDevice *d, const RtPlan *rt, int i) {
    fill_inputs(t, d, i);
    launch_all(d, rt, i);
}

// Runs the steps that derive states for one of a kind.
static void run_deriving(const Trial *t, RtDevice *d, const RtPlan *rt,
                         StepKind before) {
    for (int i = 0; i < t->plan->num_steps; i++)
        if (number_derives(t->plan->step[i].kind, before))
            run_step(t, d, rt, i);
}

// Gives the step what it starts from, also the states that are derived for it.
static void run_before_step(const Trial *t, RtDevice *d, const RtPlan *rt) {
    fill_leaves(t, d);
    run_deriving(t, d, rt, t->turn[t->now].kind);
    fill_inputs(t, d, judged_step(t, t->plan));
}

static void run_once(const Trial *t, RtDevice *d, const RtPlan *rt) {
    run_before_step(t, d, rt);
    launch_all(d, rt, judged_step(t, t->plan));
}

// Once more, in faithful mode with launches merged that may be.
static void run_again(const Trial *t, RtDevice *d, const RtPlan *rt) {
    if (!t->setup.faithful) {
        run_once(t, d, rt);
        return;
    }
    MergingDevice merged = merged_device(d, rt);
    int step = judged_step(t, t->plan);
    run_before_step(t, d, rt);
    merged_begin(&merged, step);
    rt->step[step].run(&merged.device);
    d->sync(d);
    merged_close(&merged);
}

// ---- comparison ----

// The output or assignment of g that stands for node n of another graph.
static NodeId counterpart(const Graph *g, const Graph *other, NodeId n) {
    const Node *d = &other->node[n];
    const Node *named = d->op == OP_assign ? &other->node[d->arg[0]] : d;
    const char *name = node_text(named, ATTR_name);
    for (NodeId i = 0; i < g->count; i++) {
        if (g->node[i].op != d->op)
            continue;
        const Node *own =
            d->op == OP_assign ? &g->node[g->node[i].arg[0]] : &g->node[i];
        if (strcmp(node_text(own, ATTR_name), name) == 0)
            return i;
    }
    return NO_NODE;
}

// Where the result of an output or assignment is kept, or NO_NODE: an output of
// a state is what the step has made of it, and a constant is nowhere.
static NodeId keeper(const Graph *g, NodeId n) {
    NodeId base = node_base(g, g->node[n].arg[0]);
    bool leaf = op_info[g->node[base].op].traits & LEAF;
    return leaf && g->node[n].op == OP_output ? NO_NODE : base;
}

typedef struct {
    NodeId meant, at, rough; // output or assignment of the graphs
    Type type;
    const double *right, *found, *again;
    bool squares;    // a library has left some in place of variances
    double rounding; // how far roundings take a plan from right
} Result;

static double allowed_error(const Trial *t, const Result *r) {
    return error_allowed(r->type, t->setup.storage, r->rounding, r->right);
}

// Not if the error is no number.
static bool is_good(const Trial *t, const Result *r) {
    return error_rms(r->found, r->right, type_count(&r->type)) <=
           allowed_error(t, r);
}

// Whether nodes that follow from stored activations, and from no param or state
// of its shape, are what a kernel stores as node n.
static bool follows_from_act(const Graph *g, Arena *a, NodeId n) {
    bool *part = ARENA_ARRAY(a, n + 1, bool), follows = false;
    part[n] = true;
    for (NodeId k = n + 1; k-- > 0;) {
        const Node *d = &g->node[k];
        bool state = d->op == OP_param || d->op == OP_state;
        if (!part[k])
            continue;
        if (state && type_count(d->type) == type_count(g->node[n].type))
            return false;
        if (k != n && (d->offset >= 0 || d->type->dtype == ACT))
            follows |= d->type->dtype == ACT;
        else
            for (int i = 0; i < d->num_args; i++)
                part[d->arg[i]] = true;
    }
    return follows;
}

// Whether a kernel may store in 16 bits what the unfused plan does not, and its
// own other users read unrounded: docs/numerics.md says of what.
static bool narrows(const Graph *g, Arena *a) {
    bool some = false;
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        if (g->act == F32 || d->op != OP_cast || d->type->dtype != ACT ||
            d->why != REASON_traffic)
            continue;
        if (!follows_from_act(g, a, n))
            return false;
        some = true;
    }
    return some;
}

// Measures a result by what random roundings do to a plan.
static void disturb(const Trial *t, Result *r, const Plan *plan,
                    const Values *rough, NodeId at) {
    enum { SAMPLES = 4 };
    int step = judged_step(t, plan);
    for (uint32_t k = 0; k < SAMPLES; k++) {
        double **value = noise_eval(plan->step[step].graph, t->a, rough->leaf,
                                    rough->value, r->squares, k);
        double error = error_rms(value[at], r->right, type_count(&r->type));
        if (isfinite(error) && error > r->rounding)
            r->rounding = error;
    }
}

static void disturb_plans(const Trial *t, Result *r) {
    int step = judged_step(t, t->plan);
    disturb(t, r, t->unfused, &t->rough, r->rough);
    if (is_good(t, r) || t->setup.level == 0 ||
        !narrows(t->plan->step[step].graph, t->a))
        return;
    Values rough = number_step(t->plan, step, t->a, &t->start, true);
    if (step_finite(t->plan, step, &rough))
        disturb(t, r, t->plan, &rough, r->at);
}

static void report_result(const Trial *t, const Result *r, Text *report) {
    const double *rough = t->rough.value[r->rough];
    int64_t count = type_count(&r->type);
    double allowed = allowed_error(t, r);
    Text line = text_new(t->a);
    node_print(&line, t->meant, r->meant);
    text_add(report, "%s: error %.3e, allowed %.3e, rounding %.3e, size %.3e\n",
             text_string(&line), error_rms(r->found, r->right, count), allowed,
             r->rounding, error_size(r->right, count));
    for (int64_t i = 0, shown = 0; i < count && shown < 3; i++)
        if (!(fabs(r->found[i] - r->right[i]) <= allowed) && ++shown)
            text_add(report, "    [%lld] is %.9g, should be %.9g (%.9g)\n",
                     (long long)i, r->found[i], r->right[i], rough[i]);
}

static void judge(const Trial *t, Result *r, Text *report) {
    size_t bytes = (size_t)type_count(&r->type) * sizeof(double);
    r->rounding =
        error_rms(t->rough.value[r->rough], r->right, type_count(&r->type));
    if (memcmp(r->found, r->again, bytes) != 0)
        text_add(report, "%%%u is not the same when run again\n", r->meant);
    if (is_good(t, r))
        return;
    if (dtype_float(r->type.dtype))
        disturb_plans(t, r);
    if (!is_good(t, r))
        report_result(t, r, report);
}

typedef struct {
    NodeId meant;     // output or assignment
    NodeId at, rough; // in the plans
    double *found;
} Wanted;

static Wanted *find_wanted(const Trial *t, int *count) {
    const Graph *g = t->plan->step[judged_step(t, t->plan)].graph;
    const Graph *plain = t->unfused->step[judged_step(t, t->unfused)].graph;
    Wanted *wanted = ARENA_ARRAY(t->a, t->meant->count + 1, Wanted);
    *count = 0;
    for (NodeId n = 0; n < t->meant->count; n++) {
        Op op = t->meant->node[n].op;
        if (op == OP_output || op == OP_assign)
            wanted[(*count)++] =
                (Wanted){n, counterpart(g, t->meant, n),
                         counterpart(plain, t->meant, n), NULL};
    }
    return wanted;
}

// What the results are now.
static double **read_results(const Trial *t, RtDevice *d, const Wanted *wanted,
                             int count) {
    const Graph *g = t->plan->step[judged_step(t, t->plan)].graph;
    double **found = ARENA_ARRAY(t->a, (size_t)count + 1, double *);
    for (int i = 0; i < count; i++)
        if (wanted[i].at != NO_NODE && keeper(g, wanted[i].at) != NO_NODE)
            found[i] = tensor_read(d, t->a, g, keeper(g, wanted[i].at));
    return found;
}

// ---- derived state ----

static bool is_derived(const Graph *g, NodeId n) {
    const Node *d = &g->node[n];
    if (d->op != OP_assign)
        return false;
    const char *kind = node_text(&g->node[d->arg[0]], ATTR_kind);
    return kind != NULL && strcmp(kind, STATE_DERIVED) == 0;
}

// The step leaves of each state that follows from params what the step that
// derives them would make of the params as they are now.
static void judge_derived(const Trial *t, RtDevice *d, const RtPlan *rt,
                          Text *report) {
    const Graph *g = t->plan->step[judged_step(t, t->plan)].graph;
    double **left = ARENA_ARRAY(t->a, g->count + 1, double *);
    for (NodeId n = 0; n < g->count; n++)
        if (is_derived(g, n))
            left[n] = tensor_read(d, t->a, g, g->node[n].arg[0]);
    run_deriving(t, d, rt, STEP_TRAIN);
    for (NodeId n = 0; n < g->count; n++) {
        if (left[n] == NULL)
            continue;
        const Node *state = &g->node[g->node[n].arg[0]];
        size_t bytes = (size_t)type_count(state->type) * sizeof(double);
        double *made = tensor_read(d, t->a, g, g->node[n].arg[0]);
        if (memcmp(left[n], made, bytes) != 0)
            text_add(report, "%s is not what follows from its param\n",
                     node_text(state, ATTR_name));
    }
}

// ---- the plans in double ----

// What passes make of a graph means the same: without roundings it differs by
// the order of sums alone.  So no mistake of a pass that both plans have in
// common is taken for an error of the unfused one.
static void judge_plan(const Trial *t, const Plan *plan, Text *report) {
    static const double little = 1e-7;
    int step = judged_step(t, plan);
    const Graph *g = plan->step[step].graph;
    Values exact = number_step(plan, step, t->a, &t->start, false);
    for (NodeId n = 0; n < t->meant->count; n++) {
        const Node *d = &t->meant->node[n];
        NodeId at = d->op == OP_output || d->op == OP_assign
                        ? counterpart(g, t->meant, n)
                        : NO_NODE;
        if (at == NO_NODE || t->unsure[n])
            continue;
        int64_t count = type_count(d->type);
        double error = error_rms(exact.value[at], t->right[n], count);
        if (!(error <= little * (error_size(t->right[n], count) + 1e-3)))
            text_add(report, "%%%u: in double the %s plan is %.3e off\n", n,
                     plan == t->unfused ? "unfused" : "compiled", error);
    }
}

// ---- the whole ----

static void judge_all(const Trial *t, const Wanted *wanted, int count,
                      double *const *found, double *const *again, bool squares,
                      Text *report) {
    for (int i = 0; i < count; i++) {
        NodeId n = wanted[i].meant;
        if (wanted[i].at == NO_NODE || wanted[i].rough == NO_NODE) {
            text_add(report, "%%%u is missing from the plan\n", n);
            continue;
        }
        Result r = {.meant = n,
                    .at = wanted[i].at,
                    .rough = wanted[i].rough,
                    .type = *t->meant->node[n].type,
                    .right = t->right[n],
                    .found = found[i],
                    .again = again[i],
                    .squares = squares};
        if (found[i] != NULL && !t->unsure[n])
            judge(t, &r, report);
    }
}

// Once more, with statistics that a library takes if there are any.
static void judge_fusing(const Trial *t, RtDevice *d, const RtPlan *rt,
                         const Wanted *wanted, int count, Counts *counts,
                         Text *report) {
    FusingDevice fusing;
    int step = judged_step(t, t->plan);
    if (t->squares == NULL ||
        !fusing_device(&fusing, t->a, d, rt + 1, t->squares,
                       t->plan->step[step].graph, step))
        return;
    size_t before = report->length;
    run_before_step(t, d, rt);
    fusing_run(&fusing);
    double **found = read_results(t, d, wanted, count);
    judge_all(t, wanted, count, found, found, true, report);
    if (report->length > before)
        text_add(report, "where a library takes statistics\n");
    counts->fusing++;
}

const char *trial_judge(Trial *t, const RtPlan *rt, RtDevice *d,
                        Counts *counts) {
    Text report = text_new(t->a);
    int count;
    Wanted *wanted = find_wanted(t, &count);
    d->reserve(d);
    fill_garbage(d, t->a, rt->arena_bytes);
    run_once(t, d, rt);
    double **found = read_results(t, d, wanted, count);
    run_again(t, d, rt);
    double **again = read_results(t, d, wanted, count);
    judge_derived(t, d, rt, &report);
    judge_all(t, wanted, count, found, again, false, &report);
    judge_fusing(t, d, rt, wanted, count, counts, &report);
    d->close(d);
    if (!(t->grown->facts & UPDATES) && t->setup.level > 0 && t->now == 0)
        slope_judge(t->grown, t->start.seed, &report);
    judge_plan(t, t->plan, &report);
    if (t->setup.level > 0)
        judge_plan(t, t->unfused, &report);
    for (int i = 0; i < count; i++) {
        counts->results += found[i] != NULL;
        counts->unsure += found[i] != NULL && t->unsure[wanted[i].meant];
    }
    return report.length ? text_string(&report) : NULL;
}

// ---- several steps in a row ----

// What steps leave to each other, and is not derived from it.
static bool is_kept(const Node *d) {
    const char *kind = node_text(d, ATTR_kind);
    return d->op == OP_param ||
           (d->op == OP_state && strcmp(kind, STATE_DERIVED) != 0);
}

static bool is_given(const Given *given, int count, const char *name) {
    for (int i = 0; i < count; i++)
        if (strcmp(given[i].name, name) == 0)
            return true;
    return false;
}

// The states of all steps, as they are in memory.
static Given *read_states(const Trial *t, RtDevice *d, int *count) {
    const Plan *p = t->plan;
    NodeId most = 1;
    for (int i = 0; i < p->num_steps; i++)
        most += p->step[i].graph->count;
    Given *given = ARENA_ARRAY(t->a, most, Given);
    *count = 0;
    for (int i = 0; i < p->num_steps; i++) {
        const Graph *g = p->step[i].graph;
        for (NodeId n = 0; n < g->count; n++) {
            const char *name = node_text(&g->node[n], ATTR_name);
            if (is_kept(&g->node[n]) && !is_given(given, *count, name))
                given[(*count)++] = (Given){name, type_count(g->node[n].type),
                                            tensor_read(d, t->a, g, n)};
        }
    }
    return given;
}

static bool assigns(const Graph *g, const char *name) {
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_assign &&
            strcmp(node_text(&g->node[g->node[n].arg[0]], ATTR_name), name) ==
                0)
            return true;
    return false;
}

// A step leaves alone what it does not assign.
static void judge_others(const Trial *t, const Given *now, Text *report) {
    const Graph *g = t->plan->step[judged_step(t, t->plan)].graph;
    for (int i = 0; i < t->start.num_given; i++) {
        const Given *was = &t->start.given[i];
        if (!assigns(g, was->name) &&
            memcmp(was->value, now[i].value,
                   (size_t)was->count * sizeof *was->value) != 0)
            text_add(report, "%s is changed and not assigned\n", was->name);
    }
}

// From the states as they are and other inputs.  False where what follows from
// them is not finite.
static bool start_from(Trial *t, RtDevice *d, int k) {
    uint32_t draw = scatter(t->setup.seed + (uint32_t)k, TURN);
    Start start = {.seed = scatter(draw, NUMBERS)};
    start.given = read_states(t, d, &start.num_given);
    take_turn(t, (int)(draw % (uint32_t)t->num_turns));
    return try_numbers(t, start, INT32_MAX) < INT32_MAX;
}

static void judge_next(Trial *t, const RtPlan *rt, RtDevice *d, Text *report) {
    int step = judged_step(t, t->plan), count, others;
    Wanted *wanted = find_wanted(t, &count);
    if (t->turn[t->now].kind == STEP_EVAL)
        run_deriving(t, d, rt, STEP_EVAL);
    run_step(t, d, rt, step);
    double **found = read_results(t, d, wanted, count);
    judge_all(t, wanted, count, found, found, false, report);
    judge_others(t, read_states(t, d, &others), report);
    if (rt->step[step].then_derive)
        run_deriving(t, d, rt, STEP_TRAIN);
}

const char *trial_row(Trial *t, const RtPlan *rt, RtDevice *d, Counts *counts) {
    Text report = text_new(t->a);
    d->reserve(d);
    fill_garbage(d, t->a, rt->arena_bytes);
    fill_leaves(t, d);
    run_deriving(t, d, rt, STEP_TRAIN);
    for (int k = 0; k < t->setup.row && report.length == 0; k++) {
        if (!start_from(t, d, k))
            break;
        judge_next(t, rt, d, &report);
        counts->row++;
        if (report.length > 0)
            text_add(&report, "as step %d in a row\n", k + 1);
    }
    d->close(d);
    return report.length ? text_string(&report) : NULL;
}
