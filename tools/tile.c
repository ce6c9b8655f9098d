// Tile: see tile.h.
//
// NVRTC compiles on threads of this process, tileiras in processes of its own.
// Their CUDA_HOME is the toolchain's folder, as tileiras would load libnvvm of
// any toolkit that it finds.
#include "tools/tile.h"
#include "base/exits.h"
#include "base/source.h"
#include "tools/embed.h"
#include "tools/process.h"
#include "tools/scratch.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- the toolchain ----

// The release of a program, as 13.5; NULL if it does not start.
static const char *release_of(Arena *a, const char *folder,
                              const char *program) {
    enum { MAX_BYTES = 1 << 16 };
    static const char word[] = "release ";
    const char *out = arena_format(a, "%s/version", folder), *why;
    Words words = {.a = a};
    words_add(&words, program);
    words_add(&words, "--version");
    if (program_run(&words, folder, out, out) != 0)
        return NULL;
    const Source *s = source_read(a, out, MAX_BYTES, &why);
    const char *at = s ? strstr(s->text, word) : NULL;
    return at ? arena_string(a, at + sizeof word - 1,
                             strcspn(at + sizeof word - 1, ",\n"))
              : NULL;
}

// Whether a program of the toolchain is of NVRTC's release.
static bool is_of_release(Arena *a, const char *folder, const TileToolchain *t,
                          const char *name, const char **why) {
    const char *program = arena_format(a, "%s/bin/%s", t->root, name);
    const char *release = release_of(a, folder, program);
    if (release && strcmp(release, t->version) == 0)
        return true;
    *why = release
               ? arena_format(a,
                              "%s is of release %s, but NVRTC of %s: install "
                              "Python packages of one version",
                              program, release, t->version)
               : arena_format(a,
                              "%s does not start: install the Python packages "
                              "nvidia-cuda-nvcc, nvidia-nvvm and "
                              "nvidia-cuda-tileiras of version %s",
                              program, t->version);
    return false;
}

bool tile_toolchain(Arena *a, const char *folder, TileToolchain *out,
                    const char **why) {
    RtError e;
    int major, minor;
    *out = (TileToolchain){.nvrtc = rt_tile_open(&e)};
    if (out->nvrtc == NULL) {
        *why = arena_string(a, e.text, strlen(e.text));
        return false;
    }
    const char *root = rt_tile_root(out->nvrtc, &major, &minor);
    out->root = arena_string(a, root, strlen(root));
    out->version = arena_format(a, "%d.%d", major, minor);
    out->tileiras = arena_format(a, "%s/bin/tileiras", out->root);
    if (is_of_release(a, folder, out, "tileiras", why) &&
        is_of_release(a, folder, out, "ptxas", why))
        return true;
    rt_tile_close(out->nvrtc);
    out->nvrtc = NULL;
    return false;
}

// ---- the estimate ----

// A tile kernel's speed as a part of the library's.  Assumed: no GPU has run
// one of these.
static const double TILE_SHARE = 0.8;

// Assumed too: the bytes that a multiprocessor reads from the L2 cache in a
// cycle; the wait of a wave of blocks for its first operands; and the part of
// the cache that keeps an operand while others pass.
static const double CACHE_WIDTH = 40, WAVE_LATENCY = 0.7e-6, CACHE_SHARE = 0.5;

// Registers of a thread, and steps whose operands shared memory has, as in most
// kernels that tileiras 13.5 makes; and bytes of an activation.
enum { THREAD_REGISTERS = 168, WARP = 32, STAGES = 6, BYTES = 2 };

// Operands that a kernel computes of windows.
static int window_readers(const TileFusions *f, int kernel) {
    int readers = 0;
    for (int i = 0; i < f->count; i++)
        for (int o = 0; o < TILE_OPERANDS; o++)
            readers += f->fusion[i].windows[o] == kernel;
    return readers;
}

// Bytes that memory transfers for a contraction with the kernels around it.
static double fused_bytes(const Launches *l, const TileFusion *f) {
    const GraphPlan *p = l->plan;
    const Graph *g = p->graph;
    const Group *call = &p->group[f->call];
    const Node *contraction = &g->node[group_first(g, call, CALLS)];
    int64_t bytes = call->bytes - f->bytes;
    if (f->epilogue >= 0)
        bytes += p->group[f->epilogue].bytes;
    if (f->pool >= 0)
        bytes += p->group[f->pool].bytes;
    for (int o = 0; o < TILE_OPERANDS; o++) {
        int kernel = f->prologue[o];
        if (kernel < 0)
            continue;
        NodeId operand = node_base(g, contraction->arg[o]);
        const TilePrologue *prologue = tile_prologue_of(&p->tiles, kernel);
        bytes += prologue != NULL && prologue->stored_by >= 0
                     ? p->group[kernel].bytes
                     : tile_prologue_reads(g, &p->group[kernel], operand);
        bytes -= graph_bytes(g, g->node[operand].type);
    }
    return (double)bytes;
}

static double launch_time(const Launches *l, int kernel, const Device *d) {
    if (kernel < 0)
        return 0;
    return gpu_seconds(l->plan->graph, &l->plan->group[kernel],
                       &l->kernel[kernel], d) +
           GPU_LAUNCH;
}

// Seconds of the launches that a tile kernel replaces.
static double replaced_seconds(const Launches *l, const TileFusion *f,
                               const Device *d) {
    double seconds = launch_time(l, f->call, d) +
                     launch_time(l, f->epilogue, d) +
                     launch_time(l, f->pool, d);
    for (int o = 0; o < TILE_OPERANDS; o++) {
        int kernel = f->prologue[o];
        if (kernel < 0)
            continue;
        const TilePrologue *p = tile_prologue_of(&l->plan->tiles, kernel);
        seconds +=
            launch_time(l, kernel, d) /
            (p != NULL ? p->readers : window_readers(&l->plan->tiles, kernel));
    }
    return seconds;
}

// Blocks that a multiprocessor has at once.
static double resident_tiles(const TileConfig *c, const Device *d) {
    double registers = THREAD_REGISTERS * WARP * c->warps;
    double shared = STAGES * BYTES * (c->rows + c->columns) * c->depth;
    return fmax(1, floor(fmin(d->registers / registers, d->shared / shared)));
}

// Bytes of operands beyond those of one pass over each.  A wave of blocks
// shares rows of the first operand and columns of the second; the next one
// reads them again, unless the cache holds the operand, or the block's part of
// it.  The taps of a weight gradient read the same operands.
static double repeated_bytes(const Launches *l, const TileKernel *k,
                             const TileConfig *c, const Device *d) {
    const Graph *g = l->plan->graph;
    const Group *call = &l->plan->group[k->fusion->call];
    const Node *n = &g->node[group_first(g, call, CALLS)];
    double wave = d->multiprocessors * resident_tiles(c, d), bytes = 0;
    double down = (double)c->down, across = (double)c->across;
    double rows =
        c->swizzle > 1 ? fmin(c->swizzle, down) : fmax(1, floor(wave / across));
    double columns = fmin(across, fmax(1, floor(wave / rows)));
    const double passes[] = {ceil(across / columns), ceil(down / rows)};
    const double readers[] = {across, down}, taps = (double)c->taps;
    for (int i = 0; i < TILE_OPERANDS; i++) {
        double operand = (double)graph_bytes(g, g->node[n->arg[i]].type);
        double pass =
            fmin(operand, BYTES * c->elements[i] / (readers[i] * taps));
        if (operand / c->parts > CACHE_SHARE * d->cache)
            bytes += fmax(0, passes[i] * taps * pass - operand);
    }
    return bytes;
}

static double tile_product_seconds(const TileConfig *c, const Device *d) {
    return call_seconds(c->flops / d->f16_flops) / TILE_SHARE;
}

// Attention's products and other instructions take turns.
static double attention_seconds(const Launches *l, const TileKernel *k,
                                const TileConfig *c, const Device *d) {
    const Group *group = &l->plan->group[k->fusion->epilogue];
    double busy = fmin(1, c->grid / fmax(1, d->multiprocessors));
    return fmax(memory_seconds((double)group->bytes, d),
                tile_product_seconds(c, d) / busy +
                    issue_seconds(&c->cost, c->grid, d)) +
           GPU_LAUNCH;
}

// The time of whole tiles, on the multiprocessor that has most of them.  While
// tensor cores multiply, warps issue other instructions.
static double tiles_seconds(const TileConfig *c, const Device *d) {
    double processors = fmax(1, d->multiprocessors);
    double imbalance = ceil(c->grid / processors) * processors / c->grid;
    double waves = ceil(c->grid / (processors * resident_tiles(c, d)));
    double loads = BYTES * (c->elements[0] + c->elements[1]) /
                   (CACHE_WIDTH * d->clock * processors);
    return fmax(imbalance * fmax(tile_product_seconds(c, d), loads),
                issue_seconds(&c->cost, c->grid, d)) +
           waves * WAVE_LATENCY;
}

// The time of NAME_sums, whose blocks read equal parts of the workspace.
static double sums_seconds(const TileConfig *c, const Device *d) {
    double blocks = c->sum_grid, bytes = (double)c->workspace;
    if (blocks == 0)
        return 0;
    double most = ceil(blocks / fmax(1, d->multiprocessors)) * bytes / blocks;
    return fmax(memory_seconds(bytes, d), most / (CACHE_WIDTH * d->clock)) +
           GPU_LAUNCH;
}

static double config_seconds(const Launches *l, const TileKernel *k,
                             const TileConfig *c, const Device *d) {
    if (k->fusion->call < 0)
        return attention_seconds(l, k, c, d);
    double bytes = fused_bytes(l, k->fusion) + (double)c->workspace +
                   repeated_bytes(l, k, c, d);
    return fmax(memory_seconds(bytes, d), tiles_seconds(c, d)) + GPU_LAUNCH +
           sums_seconds(c, d);
}

TileModel tile_model(const Device *d) {
    return (TileModel){.capability = d->sm,
                       .processors = (int)d->multiprocessors,
                       .device = d,
                       .seconds = config_seconds};
}

// The GPUs of --target, in its order.
static TileModels models_of(Arena *a, const Arguments *arguments) {
    int *arch, count = embed_tile_archs(a, arguments, &arch);
    Device *d = ARENA_ARRAY(a, (size_t)count + 1, Device);
    TileModel *m = ARENA_ARRAY(a, (size_t)count + 1, TileModel);
    for (int i = 0; i < count; i++) {
        d[i] = device_for(a, arguments, arch[i]);
        m[i] = tile_model(&d[i]);
        m[i].capability = arch[i];
    }
    return (TileModels){m, count};
}

// The GPU that is described, for tile kernels on the host.
static TileModels model_here(Arena *a, const Arguments *arguments) {
    Device *d = ARENA_NEW(a, Device);
    TileModel *m = ARENA_NEW(a, TileModel);
    int status;
    if (!device_find(a, arguments, d, &status))
        return (TileModels){0};
    *m = tile_model(d);
    return (TileModels){m, 1};
}

// ---- the choice ----

TileTime tile_time(const Launches *l, const TileKernel *k, const Device *d) {
    TileTime time = {.library = replaced_seconds(l, k->fusion, d)};
    for (; k != NULL; k = k->second)
        time.tile += k->ranking[0].seconds[0];
    return time;
}

TileTime tile_time_with_windows(const Launches *l, const TileKernel *k,
                                int operand, const Device *d) {
    const Graph *g = l->plan->graph;
    TileFusion fusion = *k->fusion;
    TileKernel with = *k;
    TileTime without = tile_time(l, k, d), time;
    int kernel = fusion.windows[operand];
    fusion.prologue[operand] = kernel;
    with.fusion = &fusion;
    double replaced = replaced_seconds(l, &fusion, d);
    time.library = fmin(replaced, without.tile + replaced - without.library);
    NodeId n = l->plan->group[kernel].output[0];
    double instructions =
        tile_instructions(&l->kernel[kernel], g->node[n].type);
    time.tile = INFINITY;
    for (int i = 0; i < k->num_configs; i++) {
        TileConfig c = tile_with_prologue(k->config[i], operand, instructions);
        time.tile = fmin(time.tile, config_seconds(l, &with, &c, d));
    }
    return time;
}

static bool is_faster(const TileFusion *f, TileTime time) {
    return !f->fused && time.library >= TILE_GAIN * time.tile;
}

// A kernel that is launched all the same is no prologue.  Returns whether it
// dropped one.
static bool drop_prologues(const TileFusions *f) {
    bool found = false;
    for (int i = 0; i < f->num_prologues; i++) {
        bool skips = tile_skips(f, i);
        for (int k = 0; k < f->count; k++)
            for (int o = 0; o < TILE_OPERANDS; o++)
                if (!skips &&
                    f->fusion[k].prologue[o] == f->prologue[i].kernel) {
                    f->fusion[k].prologue[o] = -1;
                    found = true;
                }
    }
    return found;
}

static int mark_taken(Arena *a, const Launches *l, bool all,
                      const TileModels *models) {
    const TileFusions *f = &l->plan->tiles;
    const TileKernel *k = codegen_tile_kernels(l, models, a);
    int taken = 0;
    for (int i = 0; i < f->count; i++) {
        TileTime time = tile_time(l, &k[i], models->model[0].device);
        f->fusion[i].taken = all || is_faster(&f->fusion[i], time);
        taken += f->fusion[i].taken;
    }
    return taken;
}

// Returns the number of fusions that it takes.  Without a prologue a tile
// kernel may be no faster than the library, so that another prologue has a
// reader less.
static int step_take(Arena *a, const Launches *l, bool all,
                     const TileModels *models) {
    int taken;
    do
        taken = mark_taken(a, l, all, models);
    while (drop_prologues(&l->plan->tiles));
    return taken;
}

// A merged launch without one of its kernels is not taken, but parts of it may
// be.
static void split_merges(Arena *a, const TileFusions *f,
                         const Selected *selected, double *seconds) {
    const LibraryFusions *fusions = &selected->plan->fusions;
    bool *replaced = ARENA_ARRAY(a, (size_t)fusions->num_groups + 1, bool);
    for (int k = 0; k < fusions->num_groups; k++)
        replaced[k] = tile_replaces(f, k);
    const bool *merged =
        merged_taken(&selected->merges, fusions, selected->fused, replaced, a);
    for (int i = 0; i < selected->merges.count; i++) {
        const MergedLaunch *m = &selected->merges.launch[i];
        double more =
            (selected->merged[i] - merged[i]) * (GPU_LAUNCH - GPU_BARRIER);
        for (int k = m->first + 1; k < m->first + m->count; k++)
            seconds[k] += more;
    }
}

void tile_seconds(Arena *a, const Launches *l, const Selected *selected,
                  double *seconds) {
    const Device *d = selected->device;
    GraphPlan plan = *l->plan; // whose fusions it takes
    Launches with_tiles = *l;
    const TileFusions *f = &plan.tiles;
    if (f->count == 0)
        return;
    with_tiles.plan = &plan;
    plan.tiles.fusion = ARENA_ARRAY(a, (size_t)f->count, TileFusion);
    memcpy(plan.tiles.fusion, l->plan->tiles.fusion,
           (size_t)f->count * sizeof *f->fusion);
    const TileModel model = tile_model(d);
    const TileModels models = {&model, 1};
    step_take(a, &with_tiles, false, &models);
    const TileKernel *k = codegen_tile_kernels(&with_tiles, &models, a);
    split_merges(a, f, selected, seconds);
    for (int i = 0; i < f->count; i++) {
        const TileFusion *fusion = &f->fusion[i];
        if (!fusion->taken)
            continue;
        if (fusion->epilogue >= 0)
            seconds[fusion->epilogue] = 0;
        if (fusion->pool >= 0)
            seconds[fusion->pool] = 0;
        seconds[fusion->call >= 0 ? fusion->call : fusion->epilogue] =
            tile_time(&with_tiles, &k[i], d).tile;
    }
    for (int i = 0; i < f->num_prologues; i++)
        if (tile_skips(f, i))
            seconds[f->prologue[i].kernel] = 0;
}

static void take_none(const Plan *plan) {
    for (int i = 0; i < plan->num_steps; i++) {
        const TileFusions *f = &plan->step[i].plan->tiles;
        for (int k = 0; k < f->count; k++)
            f->fusion[k].taken = false;
    }
}

static bool toolchain_is_here(Arena *a, const Arguments *arguments,
                              const char **why) {
    Scratch scratch;
    TileToolchain t;
    *why = "there is no temporary folder";
    if (!scratch_open(a, arguments, &scratch))
        return false;
    bool here = tile_toolchain(a, scratch.path, &t, why);
    if (here)
        rt_tile_close(t.nvrtc);
    scratch_close(&scratch);
    return here;
}

bool tiles_on_host(const Arguments *arguments) {
    return arguments->tile != NULL && arguments->embed == NULL &&
           strcmp(arguments->tile, "none") != 0;
}

static void report_none(const Plan *host) {
    fprintf(stderr, "sinter: the host runs no tile kernels: %s\n",
            host->act == F32
                ? "activations have 32 bits, see precision"
                : "none is estimated to be faster on a GPU, see --tile=all");
}

TileModels tiles_take(Arena *a, const Arguments *arguments, const Plan *gpu,
                      const Plan *host) {
    const char *choice = arguments->tile ? arguments->tile : "auto", *why;
    bool all = strcmp(choice, "all") == 0, here = tiles_on_host(arguments);
    const Plan *plan = here ? host : gpu;
    int taken = 0;
    if ((arguments->embed == NULL && !here) || strcmp(choice, "none") == 0)
        return (TileModels){0};
    const TileModels models =
        here ? model_here(a, arguments) : models_of(a, arguments);
    const Launches *l = codegen_launches(plan, plan, a);
    for (int i = 0; i < plan->num_steps && models.count > 0; i++)
        taken += step_take(a, &l[i], all, &models);
    if (here && taken == 0)
        report_none(host);
    if (here || taken == 0 || all || toolchain_is_here(a, arguments, &why))
        return models;
    take_none(plan);
    fprintf(stderr,
            "sinter: %d launches are without tile kernels, though these are "
            "estimated to be faster: %s\n",
            taken, why);
    return models;
}

// ---- compilation ----

// A candidate of a kernel for an architecture, to be compiled.
typedef struct {
    const char *text;
    int config; // of the kernel
    int arch;
    const char *ir, *cubin, *log; // files
    RtCode code;
    RtError error;
    bool is_cached, failed;
} Attempt;

// A kernel for an architecture.
typedef struct {
    const TileKernel *kernel;
    const TileRanking *ranking;
    int arch;
    int number; // of the code of the kernel's first configuration
    int next;   // candidate of the ranking to compile
    bool done;
    RtCode kept[TILE_CANDIDATES]; // cubins, at first those that do not spill
    int config[TILE_CANDIDATES];
    int count;
    uint32_t frame; // of the only one, if it spills
    RtError error;
} Job;

typedef struct {
    const TileToolchain *toolchain;
    int wanted; // cubins of each job
    Job *job;
    int count;
    // The attempts of a round; the threads that compile take the next.
    Attempt *attempt;
    Job **of;
    int num_attempts, next;
    pthread_mutex_t lock;
} Jobs;

static bool ir_write(const char *path, const RtCode *code) {
    FILE *f = fopen(path, "wb");
    bool good = f && fwrite(code->bytes, 1, code->length, f) == code->length;
    return f && fclose(f) == 0 && good;
}

static void ir_make(const TileToolchain *t, Attempt *attempt) {
    RtCode ir = {0};
    attempt->is_cached =
        rt_tile_cached(t->nvrtc, attempt->text, attempt->arch, &attempt->code);
    if (attempt->is_cached)
        return;
    attempt->failed =
        !rt_tile_ir(t->nvrtc, attempt->text, attempt->arch, &ir,
                    &attempt->error) ||
        (!ir_write(attempt->ir, &ir) &&
         !rt_fail(&attempt->error, EXIT_IO, "cannot write %s", attempt->ir));
    free(ir.bytes);
}

static void *work(void *argument) {
    Jobs *jobs = argument;
    for (;;) {
        pthread_mutex_lock(&jobs->lock);
        int i = jobs->next < jobs->num_attempts ? jobs->next++ : -1;
        pthread_mutex_unlock(&jobs->lock);
        if (i < 0)
            return NULL;
        ir_make(jobs->toolchain, &jobs->attempt[i]);
    }
}

static void ir_make_all(Arena *a, Jobs *jobs) {
    int threads = processors();
    pthread_t *thread = ARENA_ARRAY(a, (size_t)threads, pthread_t);
    int started = 0;
    jobs->next = 0;
    while (started + 1 < threads && started + 1 < jobs->num_attempts &&
           pthread_create(&thread[started], NULL, work, jobs) == 0)
        started++;
    work(jobs);
    while (started > 0)
        pthread_join(thread[--started], NULL);
}

static Process assembler(Arena *a, const char *folder, const TileToolchain *t,
                         const Attempt *attempt) {
    Process p = {.words = {.a = a},
                 .folder = folder,
                 .out = attempt->log,
                 .log = attempt->log};
    const char *const word[] = {
        "env",          arena_format(a, "CUDA_HOME=%s", t->root),
        t->tileiras,    arena_format(a, "--gpu-name=sm_%d", attempt->arch),
        attempt->ir,    "-o",
        attempt->cubin, NULL};
    words_add_all(&p.words, word);
    return p;
}

static bool cubin_read(const char *path, RtCode *out) {
    enum { MAX_BYTES = 1 << 28 };
    Arena *a = arena_new();
    const char *why;
    const Source *s = source_read(a, path, MAX_BYTES, &why);
    out->length = s ? s->length : 0;
    out->bytes = s && s->length > 0 ? malloc(s->length) : NULL;
    if (out->bytes != NULL)
        memcpy(out->bytes, s->text, s->length);
    arena_free(a);
    return out->bytes != NULL;
}

// The first line of a log.
static const char *log_line(Arena *a, const char *path) {
    enum { MAX_BYTES = 1 << 20 };
    const char *why;
    const Source *s = source_read(a, path, MAX_BYTES, &why);
    return s ? arena_string(a, s->text, strcspn(s->text, "\n")) : "";
}

static void assemble_all(Arena *a, const char *folder, Jobs *jobs) {
    Process *p = ARENA_ARRAY(a, (size_t)jobs->num_attempts + 1, Process);
    Attempt **of = ARENA_ARRAY(a, (size_t)jobs->num_attempts + 1, Attempt *);
    int count = 0;
    for (int i = 0; i < jobs->num_attempts; i++) {
        Attempt *attempt = &jobs->attempt[i];
        if (attempt->is_cached || attempt->failed)
            continue;
        of[count] = attempt;
        p[count++] = assembler(a, folder, jobs->toolchain, attempt);
    }
    processes_run(p, count);
    for (int i = 0; i < count; i++) {
        Attempt *attempt = of[i];
        attempt->failed =
            p[i].status != 0 || !cubin_read(attempt->cubin, &attempt->code);
        if (attempt->failed)
            rt_fail(&attempt->error, EXIT_DEVICE, "tileiras %s: %s",
                    ended_how(a, p[i].status), log_line(a, attempt->log));
        else
            rt_tile_keep(jobs->toolchain->nvrtc, attempt->text, attempt->arch,
                         &attempt->code);
    }
}

static void jobs_init(Jobs *jobs, Arena *a, const TileToolchain *t,
                      const TileTexts *tiles, const int *arch, int num_archs) {
    jobs->toolchain = t;
    jobs->count = tiles->count * num_archs;
    jobs->job = ARENA_ARRAY(a, (size_t)jobs->count + 1, Job);
    for (int i = 0; i < jobs->count; i++) {
        const TileKernel *k = &tiles->kernel[i % tiles->count];
        jobs->job[i] = (Job){.kernel = k,
                             .ranking = &k->ranking[i / tiles->count],
                             .arch = arch[i / tiles->count],
                             .number = tile_code(tiles, i % tiles->count)};
    }
    pthread_mutex_init(&jobs->lock, NULL);
}

static void attempt_add(Arena *a, const char *folder, Jobs *jobs, Job *job) {
    int i = jobs->num_attempts++;
    const char *path = arena_format(a, "%s/%d", folder, i);
    int config = job->ranking->config[job->next++];
    jobs->of[i] = job;
    jobs->attempt[i] = (Attempt){.text = job->kernel->config[config].text,
                                 .config = config,
                                 .arch = job->arch,
                                 .ir = arena_format(a, "%s.tile", path),
                                 .cubin = arena_format(a, "%s.cubin", path),
                                 .log = arena_format(a, "%s.log", path)};
}

// Each job tries its next candidate; as long as processors would be idle,
// another one.
static void round_plan(Arena *a, const char *folder, Jobs *jobs) {
    int room = jobs->count * TILE_CANDIDATES, before;
    jobs->attempt = ARENA_ARRAY(a, (size_t)room + 1, Attempt);
    jobs->of = ARENA_ARRAY(a, (size_t)room + 1, Job *);
    jobs->num_attempts = 0;
    do {
        before = jobs->num_attempts;
        for (int i = 0; i < jobs->count; i++) {
            Job *job = &jobs->job[i];
            if (!job->done && job->next < job->ranking->count)
                attempt_add(a, folder, jobs, job);
        }
    } while (jobs->num_attempts > before && jobs->num_attempts < processors());
}

// Keeps code that does not spill, else the code that spills least.  The error
// of a candidate counts only if all fail.
static void keep(const Jobs *jobs, Job *job, const Attempt *attempt) {
    if (job->done) {
        free(attempt->code.bytes);
        return;
    }
    if (attempt->failed) {
        job->error = attempt->error;
        return;
    }
    uint32_t frame = tile_frame(&attempt->code);
    if (job->count > 0 && frame < job->frame) {
        free(job->kept[--job->count].bytes);
    } else if (job->count > 0 && frame > 0) {
        free(attempt->code.bytes);
        return;
    }
    job->kept[job->count] = attempt->code;
    job->config[job->count++] = attempt->config;
    job->frame = frame;
    job->done = frame == 0 && job->count == jobs->wanted;
}

static void candidates_try(Arena *a, const char *folder, Jobs *jobs) {
    for (;;) {
        round_plan(a, folder, jobs);
        if (jobs->num_attempts == 0)
            return;
        ir_make_all(a, jobs);
        assemble_all(a, folder, jobs);
        for (int i = 0; i < jobs->num_attempts; i++)
            keep(jobs, jobs->of[i], &jobs->attempt[i]);
    }
}

static bool jobs_take(const Arguments *arguments, Jobs *jobs, Text *code) {
    bool good = true;
    for (int i = 0; i < jobs->count; i++) {
        Job *job = &jobs->job[i];
        if (job->count == 0 && good)
            complain(arguments, "tile kernel %s for sm_%d: %s",
                     job->kernel->name, job->arch, job->error.text);
        good &= job->count > 0;
        for (int k = 0; k < job->count; k++) {
            if (good)
                embed_add(code, job->arch,
                          RT_TILE_CUBIN + job->number + job->config[k],
                          job->kept[k].bytes, job->kept[k].length);
            free(job->kept[k].bytes);
        }
    }
    pthread_mutex_destroy(&jobs->lock);
    return good;
}

bool tiles_embed(Arena *a, const Arguments *arguments, const TileTexts *tiles,
                 const int *arch, int num_archs, Text *code, int *status) {
    Scratch scratch;
    TileToolchain t;
    const char *why;
    *status = EXIT_IO;
    if (!scratch_open(a, arguments, &scratch))
        return false;
    *status = EXIT_DEVICE;
    bool good = tile_toolchain(a, scratch.path, &t, &why);
    if (good) {
        Jobs jobs = {.wanted = arguments->tile_configs.given
                                   ? (int)arguments->tile_configs.value
                                   : 1};
        jobs_init(&jobs, a, &t, tiles, arch, num_archs);
        candidates_try(a, scratch.path, &jobs);
        good = jobs_take(arguments, &jobs, code);
        rt_tile_close(t.nvrtc);
    } else {
        complain(arguments, "%s", why);
    }
    scratch_close(&scratch);
    return good;
}
