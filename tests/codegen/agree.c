// Agreement: see agree.h.
//
// The program is compiled twice over: by the C compiler into a library whose
// steps run on the runtime's own host device, and by graph_eval, in double,
// from the very graph that was printed.  Leaves get the same numbers in both.

#define _GNU_SOURCE
#include "tests/codegen/agree.h"

#include "base/source.h"
#include "codegen/codegen.h"
#include "ir/group.h"
#include "runtime/device.h"
#include "tests/passes/graphs.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_REPORT = 1500 }; // what Check can carry

typedef struct {
    Arena *a;
    const Case *test;
    Program *program;
    Plan *plan;
    RtDevice *device;
    const RtPlan *rt;
    char folder[64];
    Text report;
} Run;

static const char *source_path(Arena *a, const char *file) {
    const char *root = getenv("SINTER_SOURCE");
    return arena_format(a, "%s/%s", root ? root : ".", file);
}

// A program that trains a graph.
static Program *program_of(Arena *a, Graph *train, const Case *test) {
    enum { CLASSES = 5 };
    static const char nothing[] =
        "graph eval (primitive, typed; act = f32) {\n"
        "%0 = state {init = 0.0, kind = \"run\", name = \"finite\"} : f32[]\n"
        "%1 = assign %0, %0 : f32[]\n"
        "}\n";
    const char *error;
    Program *p = ARENA_NEW(a, Program);
    p->name = p->file = "graph";
    p->recipe = (Recipe){.data_format = "synthetic",
                         .batch = 1,
                         .classes = CLASSES,
                         .precision = test->storage};
    Stage *stage = ARENA_NEW(a, Stage);
    stage->train = train;
    p->stage = stage;
    p->num_stages = 1;
    p->eval = graph_read(a, nothing, sizeof nothing - 1, &error);
    p->init = graph_read(a, nothing, sizeof nothing - 1, &error);
    p->init->name = "init";
    return p;
}

static bool load_graph(Run *r, const char *path) {
    enum { MOST_BYTES = 1 << 20 };
    const char *why = NULL;
    Source *s = source_read(r->a, path, MOST_BYTES, &why);
    Graph *train = s ? graph_read(r->a, s->text, s->length, &why) : NULL;
    if (train == NULL || (why = graph_verify(train, r->a)) != NULL) {
        text_add(&r->report, "%s: %s\n", path, why);
        return false;
    }
    r->program = program_of(r->a, train, r->test);
    return true;
}

static bool load(Run *r) {
    enum { STEPS = 60 };
    const char *model = r->test->model;
    if (model == NULL) {
        Graph *train = random_graph(r->a, r->test->seed, STEPS);
        r->program = program_of(r->a, train, r->test);
        return true;
    }
    if (strstr(model, ".ir") != NULL)
        return load_graph(r, source_path(r->a, model));
    Diagnostics diags = diag_new(r->a);
    r->program = frontend_load(r->a, source_path(r->a, r->test->model),
                               r->test->setting, r->test->num_settings, &diags);
    if (r->program == NULL)
        diag_print(&r->report, &diags);
    return r->program != NULL;
}

static void write_file(const Run *r, const char *name, const Text *text) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", r->folder, name);
    FILE *f = fopen(path, "wb");
    fwrite(text_string(text), 1, text->length, f);
    fclose(f);
}

// The emitted program as a library.
static bool build(Run *r) {
    const char *include = getenv("SINTER_INCLUDE");
    PassOptions o = pass_options(&r->program->recipe, "host");
    o.storage = r->test->storage;
    o.level = r->test->level;
    o.reuse = r->test->reuse;
    o.deep_verify = true;
    r->plan = program_plan(r->program, &o);
    Text c = text_new(r->a), cu = text_new(r->a);
    CodegenOptions options = {"test", "model", 1};
    codegen_program(r->program, r->plan, r->plan, &options, &c, &cu);
    write_file(r, "model.c", &c);
    write_file(r, "model.cu", &cu);
    const char *cc = getenv("CC") ? getenv("CC") : "cc";
    const char *command = arena_format(
        r->a,
        "cd %s && %s -std=gnu11 -fPIC -march=native -fopenmp-simd "
        "-ffp-contract=off %s -I%s -c model.c -o model.o && "
        "%s -shared model.o -o model.so -lm",
        r->folder, cc, r->test->simt ? "-O1 -DSINTER_SIMT" : "-O2",
        include ? include : source_path(r->a, "."), cc);
    if (system(command) != 0) {
        text_add(&r->report, "did not compile: %s\n", command);
        return false;
    }
    void *library = dlopen(arena_format(r->a, "%s/model.so", r->folder),
                           RTLD_NOW | RTLD_LOCAL);
    const RtTrainer *trainer =
        library ? dlsym(library, "sinter_trainer") : NULL;
    if (trainer == NULL)
        text_add(&r->report, "%s\n", dlerror());
    else
        r->rt = &trainer->plan[0];
    return trainer != NULL;
}

// ---- numbers in memory ----

static DType stored_type(const Graph *g, DType d) {
    return d == ACT ? g->act : d;
}

// Half precision by its definition: not every compiler has the type.
static double half_value(uint16_t bits) {
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double size = exponent == 0   ? ldexp(fraction, -24)
                  : exponent < 31 ? ldexp(1024 + fraction, exponent - 25)
                                  : (fraction ? NAN : INFINITY);
    return bits >> 15 ? -size : size;
}

static uint16_t half_bits(double value) {
    unsigned sign = signbit(value) ? 0x8000 : 0;
    double size = fabs(dtype_round(F16, value));
    int exponent;
    if (isnan(size) || isinf(size))
        return (uint16_t)(sign | (isnan(size) ? 0x7e00 : 0x7c00));
    frexp(size, &exponent); // size = 0.1... * 2^exponent
    if (size == 0 || exponent < -13)
        return (uint16_t)(sign | (unsigned)ldexp(size, 24));
    unsigned digits = (unsigned)ldexp(size, 11 - exponent); // 1024 .. 2047
    return (uint16_t)(sign | ((unsigned)(exponent + 14) << 10) |
                      (digits - 1024));
}

static double get(const void *bytes, DType d, int64_t i) {
    switch (d) {
    case F32:
        return ((const float *)bytes)[i];
    case I32:
        return ((const int32_t *)bytes)[i];
    case F16:
        return half_value(((const uint16_t *)bytes)[i]);
    case BF16: {
        uint32_t u = (uint32_t)((const uint16_t *)bytes)[i] << 16;
        float f;
        memcpy(&f, &u, 4);
        return f;
    }
    default:
        return ((const uint8_t *)bytes)[i];
    }
}

static void put(void *bytes, DType d, int64_t i, double value) {
    float f = (float)value;
    uint32_t u;
    switch (d) {
    case F32:
        ((float *)bytes)[i] = f;
        break;
    case I32:
        ((int32_t *)bytes)[i] = (int32_t)value;
        break;
    case F16:
        ((uint16_t *)bytes)[i] = half_bits(value);
        break;
    case BF16: // the values given here are exact
        memcpy(&u, &f, 4);
        ((uint16_t *)bytes)[i] = (uint16_t)(u >> 16);
        break;
    default:
        ((uint8_t *)bytes)[i] = (uint8_t)value;
    }
}

static double *download(const Run *r, const Graph *g, NodeId n) {
    int64_t count = type_count(g->node[n].type);
    size_t bytes = (size_t)graph_bytes(g, g->node[n].type);
    DType d = stored_type(g, g->node[n].type.dtype);
    char *raw = arena_alloc(r->a, bytes + 1);
    double *value = ARENA_ARRAY(r->a, (size_t)count + 1, double);
    r->device->read(r->device, raw, (size_t)g->node[n].offset, bytes);
    for (int64_t i = 0; i < count; i++)
        value[i] = get(raw, d, i);
    return value;
}

static void upload(const Run *r, const Graph *g, NodeId n,
                   const double *value) {
    int64_t count = type_count(g->node[n].type);
    size_t bytes = (size_t)graph_bytes(g, g->node[n].type);
    DType d = stored_type(g, g->node[n].type.dtype);
    char *raw = arena_alloc(r->a, bytes + 1);
    for (int64_t i = 0; i < count; i++)
        put(raw, d, i, value[i]);
    r->device->write(r->device, (size_t)g->node[n].offset, raw, bytes);
}

// ---- leaves ----

static double input_value(const char *name, Type t, int64_t i, int classes) {
    double u = random_uniform(1, (uint32_t)stream_of(name), 0, (uint32_t)i);
    if (strcmp(name, "label") == 0)
        return floor(u * classes);
    if (strcmp(name, "index") == 0)
        return (double)(3 * i + 1);
    if (strcmp(name, "valid") == 0)
        return 3;
    switch (t.dtype) {
    case U8:
        return floor(u * 256);
    case I32:
        return floor(u * 7) - 3;
    case BOOL:
        return u < 0.5;
    default:
        return dtype_round(F16, 2 * u - 1);
    }
}

// Fills inputs, and states with what the runtime would write.
static void fill_inputs(const Run *r, const Graph *g) {
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        if (d->op != OP_input)
            continue;
        int64_t count = type_count(d->type);
        double *value = ARENA_ARRAY(r->a, (size_t)count + 1, double);
        for (int64_t i = 0; i < count; i++)
            value[i] = input_value(node_text(d, ATTR_name), d->type, i,
                                   r->program->recipe.classes);
        upload(r, g, n, value);
    }
}

static double first_value(const char *name, const Node *d, int64_t i) {
    static const struct {
        const char *name;
        double value;
    } run[] = {{"run.step", 7},
               {"run.steps", 20},
               {"run.epoch_steps", 5},
               {"run.seed", 3}};
    for (int k = 0; k < 4; k++)
        if (strcmp(name, run[k].name) == 0)
            return run[k].value;
    double u = random_uniform(2, (uint32_t)stream_of(name), 0, (uint32_t)i);
    const char *kind = node_text(d, ATTR_kind);
    if (kind != NULL && strcmp(kind, STATE_OPTIMIZER) == 0)
        return 0.01 * dtype_round(F16, u); // a second moment is not negative
    if (kind != NULL && strcmp(kind, STATE_STATISTIC) == 0)
        return dtype_round(F16, 0.5 + u);
    if (d->op == OP_param && node_attr(d, ATTR_init) == NULL)
        return dtype_round(F16, u - 0.5); // unless the program assigns it
    return node_float(d, ATTR_init, 0);
}

static void fill_states(const Run *r, const Graph *g) {
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        if (d->op != OP_state && d->op != OP_param)
            continue;
        int64_t count = type_count(d->type);
        double *value = ARENA_ARRAY(r->a, (size_t)count + 1, double);
        for (int64_t i = 0; i < count; i++)
            value[i] = first_value(node_text(d, ATTR_name), d, i);
        upload(r, g, n, value);
    }
}

// What memory holds now, as the leaves of an evaluation.
static double **read_leaves(const Run *r, const Graph *g) {
    double **leaf = ARENA_ARRAY(r->a, g->count, double *);
    for (NodeId n = 0; n < g->count; n++) {
        Op op = g->node[n].op;
        if (op == OP_input || op == OP_param || op == OP_state)
            leaf[n] = download(r, g, n);
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
    if (d != ACT || g->act == F32)
        return 2e-5;
    return g->act == F16 ? 5e-4 : 4e-3;
}

// Where terms cancel, a sum is no more exact than they are: the root mean
// square of what it would be if none did.
static double size_of_terms(const Graph *g, NodeId n, double *const *value) {
    const Node *d = &g->node[n];
    double total = 0;
    if (d->op != OP_sum)
        return 0;
    for (int64_t i = 0; i < type_count(g->node[d->arg[0]].type); i++)
        total += fabs(value[d->arg[0]][i]);
    return total / sqrt((double)type_count(d->type));
}

// Whether both are the same infinity or no number once they are stored: a
// loss scale that is too large makes such gradients, and must find them.
static bool overflows_alike(const Graph *g, DType d, double right,
                            double found) {
    double stored = d == ACT ? dtype_round(g->act, right) : right;
    return (isinf(stored) && stored == found) ||
           (isnan(stored) && isnan(found));
}

static void compare(Run *r, const Graph *g, NodeId n, const double *right,
                    const double *found, double terms) {
    int64_t count = type_count(g->node[n].type), wrong = 0;
    double error = 0, size = 0;
    DType d = g->node[n].type.dtype;
    for (int64_t i = 0; i < count; i++) {
        if (overflows_alike(g, d, right[i], found[i]))
            continue;
        error += (found[i] - right[i]) * (found[i] - right[i]);
        size += right[i] * right[i];
        wrong += found[i] != right[i];
    }
    // Where two values of a window are all but equal, either may win.
    bool index = !dtype_float(d) && type_count(g->node[n].type) > 1000 &&
                 wrong <= count / (g->act == F32 ? 1000 : 20);
    // Values of a random graph are near 1, so that smaller ones are what is
    // left of such.
    double least = r->test->model ? 1e-30 : 1e-6 * sqrt((double)count);
    bool good = dtype_float(d) ? sqrt(error) <= allowed(r, g, d) * sqrt(size) +
                                                    1e-6 * terms + least
                               : wrong == 0 || index;
    if (good || r->report.length > MOST_REPORT)
        return;
    Text line = text_new(r->a);
    node_print(&line, g, n);
    text_add(&r->report, "%s: relative error %.2e, %lld of %lld differ%s\n",
             text_string(&line), sqrt(error / (size + 1e-300)),
             (long long)wrong, (long long)count,
             g->facts & BACKWARD ? "" : " (no gradients)");
    for (int64_t i = 0, shown = 0; i < count && shown < 4; i++)
        if (found[i] != right[i] && ++shown)
            text_add(&r->report, "    [%lld] is %.9g, should be %.9g\n",
                     (long long)i, found[i], right[i]);
}

// The same graph, cut where kernels meet: what a group reads from another is
// an input, whose value is what the other really left.  *computed[n] is where
// node n of g is computed from such inputs.
static Graph *cut(const Run *r, const Graph *g, double **leaf,
                  double ***cut_leaf, NodeId *computed) {
    Graph *c = graph_new(r->a, g->name);
    NodeId *seen = ARENA_ARRAY(r->a, g->count, NodeId);
    NodeId *now = ARENA_ARRAY(r->a, g->count, NodeId);
    bool *stored = graph_stored(g, r->a);
    double **value = ARENA_ARRAY(r->a, 2 * (size_t)g->count + 1, double *);
    c->act = g->act;
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        for (int i = 0; i < d->num_args; i++) {
            NodeId arg = d->arg[i];
            bool own = d->group >= 0 && g->node[arg].group == d->group;
            now[arg] = own ? computed[arg] : seen[arg];
        }
        computed[n] = seen[n] = graph_copy(c, g, n, now);
        if ((op_info[d->op].facts & LEAF) && leaf[n] != NULL)
            value[seen[n]] = leaf[n];
        if (stored[n] && !(op_info[d->op].facts & LEAF)) {
            seen[n] = graph_leaf(c, OP_input,
                                 arena_format(r->a, "stored %u", n), d->type);
            value[seen[n]] = download(r, g, n);
        }
    }
    *cut_leaf = value;
    return c;
}

// Runs one step and compares what each kernel left with what its inputs make
// of it, or with reuse of memory what the whole step left in the states.
static void run_step(Run *r, const Graph *g, void (*step)(RtDevice *d)) {
    double **leaf = read_leaves(r, g);
    NodeId *at = ARENA_ARRAY(r->a, g->count, NodeId);
    bool *stored = graph_stored(g, r->a);
    step(r->device);
    r->device->sync(r->device);
    const Graph *meant = g;
    for (NodeId n = 0; n < g->count; n++)
        at[n] = n;
    if (!r->test->reuse)
        meant = cut(r, g, leaf, &leaf, at);
    double **right = graph_eval(meant, r->a, leaf, false);
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        bool leafs = op_info[d->op].facts & LEAF;
        if (d->op == OP_assign)
            compare(r, g, n, right[at[n]], download(r, g, d->arg[0]), 0);
        else if (stored[n] && !leafs && !r->test->reuse)
            compare(r, g, n, right[at[n]], download(r, g, n),
                    size_of_terms(meant, at[n], right));
    }
}

static void run_steps(Run *r) {
    const Plan *p = r->plan;
    for (int i = 0; i < p->num_steps; i++)
        fill_states(r, p->step[i].graph);
    for (int i = 0; i < p->num_steps; i++) {
        fill_inputs(r, p->step[i].graph);
        run_step(r, p->step[i].graph, r->rt->step[i].run);
    }
}

const char *agree(Arena *a, const Case *c) {
    Run r = {.a = a, .test = c, .report = text_new(a)};
    const char *tmp = getenv("TMPDIR");
    snprintf(r.folder, sizeof r.folder, "%s/sinter-agree-XXXXXX",
             tmp ? tmp : "/tmp");
    if (mkdtemp(r.folder) == NULL)
        return "no temporary folder";
    if (load(&r) && build(&r)) {
        r.device = host_open(r.rt, c->simt ? 1 : 2);
        r.device->reserve(r.device);
        run_steps(&r);
        r.device->close(r.device);
    }
    if (getenv("AGREE_KEEP") == NULL)
        for (int i = 0; i < 4; i++)
            unlink(arena_format(a, "%s/model.%s", r.folder,
                                (const char *[]){"c", "cu", "o", "so"}[i]));
    rmdir(r.folder);
    return r.report.length ? text_string(&r.report) : NULL;
}
