// Agreement: see agree.h.
//
// The program is compiled twice over: by the C compiler into a library whose
// steps run on the runtime's own host device, and by graph_eval, in double,
// from the very graph that was printed.  Leaves get the same numbers in both.
#include "tests/codegen/agree.h"

#include "ir/tolerance.h"
#include "passes/plan/group.h"
#include "tests/codegen/library.h"
#include "tests/codegen/load.h"
#include "tests/codegen/merged.h"
#include "tests/codegen/tensors.h"
#include "tests/graphs/graphs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_REPORT = 1500 }; // what Check can carry

typedef struct {
    Arena *a;
    const Case *test;
    Program *program;
    Plan *plan;
    RtDevice *device;
    void *library;
    const RtPlan *rt;
    const char *folder;
    const char *sums; // a file of sums of outputs; NULL: none
    Text report;
} Run;

static bool load(Run *r) {
    const Case *c = r->test;
    r->program = load_program(r->a, c->model, c->setting, c->num_settings,
                              c->storage, &r->report);
    return r->program != NULL;
}

// Only the builds of models for the host are optimised: fused, in f32, with the
// real plan; with AGREE_ALL=1 more so, of small networks too, and with separate
// buffers as well.  16 bits are those of a type of the compiler, which the tiny
// one lacks.
static const char *flags_of(const Case *c) {
    bool all = getenv("AGREE_ALL") != NULL;
    bool is_built = c->reuse && strncmp(c->model, "models/", 7) == 0;
    bool is_trainer = c->level > 0 && c->storage == F32 && (all || is_built);
    switch (c->how) {
    case FAST:
        return is_trainer          ? (all ? "-O2" : "-O1")
               : c->storage == F32 ? LIBRARY_TINY
                                   : "-O0";
    case FAITHFUL:
        return LIBRARY_TINY " -DSINTER_SIMT";
    case WATCHED:
        return LIBRARY_RACES;
    default:
        return library_gpu_flags();
    }
}

static int num_threads(const Case *c) {
    bool is_single =
        library_tiny() || strstr(flags_of(c), LIBRARY_TINY) != NULL;
    return c->how == FAST && !is_single ? 2 : 1;
}

static void take_tiles(const GraphPlan *p) {
    for (int i = 0; i < p->tiles.count; i++)
        p->tiles.fusion[i].taken = true;
}

int agree_multiprocessors;

// The emitted program as a library.
static bool build(Run *r) {
    bool on_gpu = r->test->how == ON_GPU;
    PassOptions o = pass_options(&r->program->recipe, on_gpu ? "cuda" : "host");
    o.storage = r->test->storage;
    o.level = r->test->level;
    o.reuse = r->test->reuse;
    if (r->test->how == TILED)
        o.multiprocessors = 24; // so that long sums are split
    if (agree_multiprocessors > 0)
        o.multiprocessors = agree_multiprocessors;
    o.deep_verify = true;
    r->plan = program_plan(r->program, &o);
    for (int i = 0; r->test->how == TILED && i < r->plan->num_steps; i++)
        take_tiles(r->plan->step[i].plan);
    library_write(r->a, r->folder, "model", r->program, r->plan);
    const char *name[] = {"model"};
    const char *why =
        library_compile(r->a, r->folder, 1, name, flags_of(r->test));
    if (why == NULL) {
        r->library = library_open(r->a, r->folder, &why);
        if (r->library != NULL)
            r->rt = library_plan(r->a, r->library, "model");
    }
    if (r->rt == NULL)
        text_add(&r->report, "%s\n", why);
    return r->rt != NULL;
}

// ---- leaves ----

enum { INPUT_SEED = 1, STATE_SEED = 2 };

// Fills inputs, or states with what the runtime would write.
static void fill(const Run *r, const Graph *g, bool inputs) {
    uint32_t seed = inputs ? INPUT_SEED : STATE_SEED;
    for (NodeId n = 0; n < g->count; n++) {
        Op op = g->node[n].op;
        if (inputs ? op == OP_input : op == OP_state || op == OP_param)
            tensor_write(
                r->device, r->a, g, n,
                tensor_leaf(g, r->a, n, seed, r->program->recipe.classes));
    }
}

// What memory holds now, as the leaves of an evaluation.
static double **read_leaves(const Run *r, const Graph *g) {
    double **leaf = ARENA_ARRAY(r->a, g->count, double *);
    for (NodeId n = 0; n < g->count; n++) {
        Op op = g->node[n].op;
        if (op == OP_input || op == OP_param || op == OP_state)
            leaf[n] = tensor_read(r->device, r->a, g, n);
    }
    return leaf;
}

// ---- comparison ----

// Error allowed, relative to the root mean square of what is right: that of
// one rounding of the result, and for f32 that of the sums inside a kernel.
// What is left at the end of a whole step adds up the errors of its kernels.
static double allowed(const Run *r, const Graph *g, DType d) {
    if (r->test->reuse)
        return 1e-4;
    return error_alone(d == ACT ? g->act : F32);
}

// rough is what rounding each operation to f32 makes of it: of what cancels
// inside a kernel, no more is left.
static void compare(Run *r, const Graph *g, NodeId n, const double *right,
                    const double *rough, const double *found, double terms) {
    int64_t count = type_count(g->node[n].type), wrong = 0;
    DType d = g->node[n].type->dtype;
    ErrorNorms norm =
        error_norms(d == ACT ? g->act : d, count, right, rough, found);
    for (int64_t i = 0; i < count; i++)
        wrong += found[i] != right[i];
    double most =
        allowed(r, g, d) * norm.size + 3 * norm.rounding + 1e-6 * terms + 1e-30;
    bool good = dtype_float(d) ? norm.error <= most
                               : wrong <= error_indices(count, g->act);
    if (good || r->report.length > MAX_REPORT)
        return;
    Text line = text_new(r->a);
    node_print(&line, g, n);
    text_add(&r->report, "%s: relative error %.2e, %lld of %lld differ%s\n",
             text_string(&line), norm.error / (norm.size + 1e-150),
             (long long)wrong, (long long)count,
             g->facts & BACKWARD ? "" : " (no gradients)");
    for (int64_t i = 0, shown = 0; i < count && shown < 4; i++)
        if (found[i] != right[i] && ++shown)
            text_add(&r->report, "    [%lld] is %.9g, should be %.9g\n",
                     (long long)i, found[i], right[i]);
}

// The tensors that a step stores: not the result of a call that a tile kernel
// computes together with its only reader.
static bool *find_stored(const Run *r, const Graph *g) {
    bool *stored = graph_stored(g, r->a);
    for (int i = 0; r->test->how == TILED && i < r->plan->num_steps; i++) {
        const GraphPlan *p = r->plan->step[i].plan;
        for (int k = 0; p->graph == g && k < p->tiles.count; k++) {
            const TileFusion *f = &p->tiles.fusion[k];
            if (!f->stores)
                stored[group_first(g, &p->group[f->call], CALLS)] = false;
        }
    }
    return stored;
}

// The operands of attention that its kernel computes: tile kernels round them,
// as they multiply them.
static bool *find_rounded(const Run *r, const Graph *g) {
    bool *rounded = ARENA_ARRAY(r->a, g->count, bool);
    for (int i = 0; r->test->how == TILED && i < r->plan->num_steps; i++) {
        const GraphPlan *p = r->plan->step[i].plan;
        for (int k = 0; p->graph == g && k < p->tiles.count; k++) {
            const TileFusion *f = &p->tiles.fusion[k];
            if (f->call >= 0)
                continue;
            const Node *d =
                &g->node[group_first(g, &p->group[f->epilogue], ATTENDS)];
            for (int j = 0; j < d->num_args; j++)
                rounded[d->arg[j]] =
                    group_has(&p->group[f->epilogue], d->arg[j]);
        }
    }
    return rounded;
}

// Which tensors are still there after a step in which no two share memory: not
// those that a library call has added to, or that tile kernels compute and
// round as their prologue.
static bool *find_kept(const Run *r, const Graph *g) {
    bool *kept = find_stored(r, g);
    for (NodeId n = 0; n < g->count; n++) {
        NodeId into = call_adds_to(&g->node[n]);
        kept[n] &= !(op_info[g->node[n].op].traits & LEAF);
        if (into != NO_NODE)
            kept[into] = false;
    }
    for (int i = 0; r->test->how == TILED && i < r->plan->num_steps; i++) {
        const GraphPlan *p = r->plan->step[i].plan;
        for (int k = 0; p->graph == g && k < p->tiles.num_prologues; k++) {
            const TilePrologue *own = &p->tiles.prologue[k];
            const Group *group = &p->group[own->kernel];
            bool skips = own->stored_by < 0 && tile_skips(&p->tiles, k);
            for (int j = 0; skips && j < group->num_outputs; j++)
                kept[group->output[j]] = false;
        }
    }
    return kept;
}

// What node n of a graph comes to, rounded as it is stored, given its leaves.
static double *value_of(const Run *r, const Graph *g, DType act,
                        double *const *leaf, NodeId n) {
    Graph *cone = graph_new(r->a, g->name);
    bool *needed = ARENA_ARRAY(r->a, (size_t)n + 1, bool);
    NodeId *now = ARENA_ARRAY(r->a, (size_t)n + 1, NodeId);
    double **value = ARENA_ARRAY(r->a, (size_t)n + 1, double *);
    cone->act = g->act;
    needed[n] = true;
    for (NodeId m = n + 1; m-- > 0;)
        for (int i = 0; i < g->node[m].num_args && needed[m]; i++)
            needed[g->node[m].arg[i]] = true;
    for (NodeId m = 0; m <= n; m++)
        if (needed[m]) {
            now[m] = graph_copy(cone, g, m, now);
            value[now[m]] = leaf[m];
        }
    double *result = graph_eval(cone, r->a, value, false)[now[n]];
    Type t = *g->node[n].type;
    for (int64_t i = 0; i < type_count(&t); i++)
        result[i] = dtype_round(t.dtype == ACT ? act : t.dtype, result[i]);
    return result;
}

// The same graph, cut where kernels meet: what a group reads from another is
// an input, whose value is what the other really left, or where a call has
// added to that, what it should have left.  *computed[n] is where
// node n of g is computed from such inputs.
static Graph *cut(const Run *r, const Graph *g, double **leaf,
                  double ***cut_leaf, NodeId *computed) {
    Graph *c = graph_new(r->a, g->name);
    NodeId *seen = ARENA_ARRAY(r->a, g->count, NodeId);
    NodeId *now = ARENA_ARRAY(r->a, g->count, NodeId);
    bool *kept = find_kept(r, g), *stored = find_stored(r, g);
    bool *rounded = find_rounded(r, g);
    double **value = ARENA_ARRAY(r->a, 2 * (size_t)g->count + 1, double *);
    c->act = g->act;
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        for (int i = 0; i < d->num_args; i++) {
            NodeId arg = d->arg[i];
            bool own = (d->group >= 0 && g->node[arg].group == d->group) ||
                       (g->node[arg].group >= 0 && !stored[arg]);
            now[arg] = own && !rounded[arg] ? computed[arg] : seen[arg];
        }
        computed[n] = seen[n] = graph_copy(c, g, n, now);
        if ((op_info[d->op].traits & LEAF) && leaf[n] != NULL)
            value[seen[n]] = leaf[n];
        if ((stored[n] || rounded[n]) && !(op_info[d->op].traits & LEAF)) {
            seen[n] = graph_leaf(c, OP_input,
                                 arena_format(r->a, "stored %u", n), *d->type);
            value[seen[n]] = kept[n] && !rounded[n]
                                 ? tensor_read(r->device, r->a, g, n)
                                 : value_of(r, c, g->act, value, computed[n]);
        }
    }
    *cut_leaf = value;
    return c;
}

// In faithful mode launches that may be merged are.
static void take_step(Run *r, int which) {
    const RtStep *step = &r->rt->step[which];
    if (r->test->how == FAITHFUL || r->test->how == WATCHED) {
        MergingDevice d = merged_device(r->device, r->rt);
        merged_begin(&d, which);
        step->run(&d.device);
        merged_close(&d);
    } else {
        r->device->run(r->device, step);
    }
}

// The size of the sum that state n completes, if n is what a metric's sum has
// lost: a rounding of that sum.
static double completed(const Run *r, const Graph *g, NodeId n) {
    const char *name = node_text(&g->node[n], ATTR_name);
    const char *low = name != NULL ? strstr(name, ".low") : NULL;
    if (low == NULL)
        return 0;
    NodeId sum = graph_find(g, arena_string(r->a, name, (size_t)(low - name)));
    return sum == NO_NODE ? 0 : fabs(tensor_read(r->device, r->a, g, sum)[0]);
}

// Runs one step and compares what each kernel left with what its inputs make
// of it, or with reuse of memory what the whole step left in the states.
static void run_step(Run *r, const Graph *g, int which) {
    if (r->test->how == WATCHED) {
        take_step(r, which);
        return;
    }
    double **leaf = read_leaves(r, g);
    NodeId *at = ARENA_ARRAY(r->a, g->count, NodeId);
    bool *kept = find_kept(r, g);
    take_step(r, which);
    r->device->sync(r->device);
    Graph *meant = graph_clone(g);
    for (NodeId n = 0; n < g->count; n++)
        at[n] = n;
    if (!r->test->reuse)
        meant = cut(r, g, leaf, &leaf, at);
    double **right = graph_eval(meant, r->a, leaf, false);
    meant->act = F32;
    double **rough = graph_eval(meant, r->a, leaf, true);
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        if (d->op == OP_assign)
            compare(r, g, n, right[at[n]], rough[at[n]],
                    tensor_read(r->device, r->a, g, d->arg[0]),
                    completed(r, g, d->arg[0]));
        else if (kept[n] && !r->test->reuse)
            compare(r, g, n, right[at[n]], rough[at[n]],
                    tensor_read(r->device, r->a, g, n),
                    error_terms(meant, at[n], right));
    }
}

static void run_steps(Run *r) {
    const Plan *p = r->plan;
    for (int i = 0; i < p->num_steps; i++)
        fill(r, p->step[i].graph, false);
    for (int i = 0; i < p->num_steps; i++) {
        fill(r, p->step[i].graph, true);
        run_step(r, p->step[i].graph, i);
    }
}

// ---- sums of outputs ----

enum { NUM_SUMS = 4, SUM_SEED = 3 };

// Its elements are right but for roundings to the stored type, which come to
// `allowed` in a sum with drawn weights: they are independent.
static void compare_sum(Run *r, const char *name, int k, const double *x,
                        int64_t count, double right, double rms) {
    const double most = 6 * error_alone(r->test->storage);
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < count; i++) {
        double w =
            2 * random_uniform(SUM_SEED + (uint32_t)k,
                               (uint32_t)stream_of(name), 0, (uint32_t)i) -
            1;
        sum += w * x[i];
        squares += w * w;
    }
    if (!(fabs(sum - right) <= most * rms * sqrt(squares)))
        text_add(&r->report, "%s: sum %d is %.9g, PyTorch has %.9g\n", name, k,
                 sum, right);
}

static void compare_output(Run *r, const Graph *g, const char *name,
                           const double right[NUM_SUMS + 1]) {
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        if (d->op != OP_output || strcmp(node_text(d, ATTR_name), name) != 0)
            continue;
        double *x = tensor_read(r->device, r->a, g, d->arg[0]);
        for (int k = 0; k < NUM_SUMS; k++)
            compare_sum(r, name, k, x, type_count(d->type), right[k],
                        right[NUM_SUMS]);
        return;
    }
    text_add(&r->report, "there is no output %s\n", name);
}

static void compare_sums(Run *r) {
    FILE *f = fopen(library_source(r->a, r->sums), "r");
    double right[NUM_SUMS + 1];
    char name[32];
    int lines = 0;
    while (f != NULL &&
           fscanf(f, "%31s %lf %lf %lf %lf %lf", name, &right[0], &right[1],
                  &right[2], &right[3], &right[4]) == NUM_SUMS + 2) {
        compare_output(r, plan_step(r->plan, "train")->graph, name, right);
        lines++;
    }
    if (f == NULL || !feof(f) || lines == 0)
        text_add(&r->report, "%s has no sums\n", r->sums);
    if (f != NULL)
        fclose(f);
}

// ---- the memory of a run whose launches are merged, and of one without ----

// All that the steps leave, run one after the other.
static char *memory_after(Run *r, bool merges) {
    size_t bytes = r->rt->arena_bytes;
    char *memory = arena_alloc(r->a, bytes);
    r->device = host_open(r->rt, 1);
    r->device->reserve(r->device);
    MergingDevice d = merged_device(r->device, r->rt);
    for (int i = 0; i < r->plan->num_steps; i++)
        fill(r, r->plan->step[i].graph, false);
    for (int i = 0; i < r->plan->num_steps; i++) {
        fill(r, r->plan->step[i].graph, true);
        merged_begin(&d, i);
        r->rt->step[i].run(merges ? &d.device : r->device);
    }
    if (merges && d.merged == 0)
        text_add(&r->report, "nothing was merged\n");
    r->device->read(r->device, memory, 0, bytes);
    merged_close(&d);
    r->device->close(r->device);
    return memory;
}

static void compare_merged(Run *r) {
    const char *alone = memory_after(r, false);
    const char *merged = memory_after(r, true);
    for (size_t i = 0; i < r->rt->arena_bytes; i++)
        if (alone[i] != merged[i]) {
            text_add(&r->report, "byte %zu of the arena differs\n", i);
            return;
        }
}

// ---- a case ----

static void open_gpu(Run *r) {
    const char *why;
    r->device = library_gpu(r->a, r->library, "model", &r->rt, &why);
    if (r->device == NULL)
        text_add(&r->report, "%s\n", why);
}

static void compare_values(Run *r) {
    if (r->test->how == ON_GPU)
        open_gpu(r);
    else
        r->device = host_open(r->rt, num_threads(r->test));
    if (r->device == NULL)
        return;
    r->device->reserve(r->device);
    run_steps(r);
    if (r->sums != NULL)
        compare_sums(r);
    if (r->test->how == TILED && r->rt->num_tiles == 0)
        text_add(&r->report, "it has no tile kernel\n");
    r->device->close(r->device);
}

// Builds a case's program and compares what it should.
static const char *run(Arena *a, const Case *c, const char *sums,
                       void (*runs_well)(Run *r)) {
    Run r = {.a = a, .test = c, .sums = sums, .report = text_new(a)};
    r.folder = library_folder(a);
    if (r.folder == NULL)
        return "no temporary folder";
    if (load(&r) && build(&r))
        runs_well(&r);
    const char *name[] = {"model"};
    if (getenv("AGREE_KEEP") == NULL)
        library_remove(a, r.folder, 1, name);
    return r.report.length ? text_string(&r.report) : NULL;
}

const char *agree(Arena *a, const Case *c) {
    return run(a, c, NULL, compare_values);
}

const char *agree_sums(Arena *a, const Case *c, const char *file) {
    return run(a, c, file, compare_values);
}

const char *agree_merged(Arena *a, const Case *c) {
    return run(a, c, NULL, compare_merged);
}
