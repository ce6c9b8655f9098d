// Tile: see tile.h.
//
// NVRTC compiles on threads of this process, tileiras in processes, with
// CUDA_HOME for them alone: else it takes libnvvm of any toolkit that it finds.
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

// ---- the choice ----

// Parts of the peaks, assumed: tile kernels of others reach 62 to 101 % of the
// library's products.
static const double TILE_SHARE = 0.8; // of the library's speed

// Adds the prologue of an operand: its share of the kernel's time, and the
// bytes that are read in place of the operand's.
static void prologue_add(const Launches *l, int kernel, NodeId operand,
                         const Device *d, TileTime *time, Group *fused) {
    const TileFusions *f = &l->plan->tiles;
    const Graph *g = l->plan->graph;
    const Group *group = &l->plan->group[kernel];
    const TilePrologue *p = tile_prologue_of(f, kernel);
    time->library +=
        (gpu_seconds(g, group, &l->kernel[kernel], d) + GPU_LAUNCH) /
        p->readers;
    fused->bytes +=
        (p->stored_by >= 0 ? group->bytes
                           : tile_prologue_reads(g, group, operand)) -
        graph_bytes(g, g->node[operand].type);
}

// Attention's kernel and its tile kernels: their products and other
// instructions take turns.
static TileTime attention_time(const Launches *l, const TileKernel *k,
                               const Device *d) {
    const Graph *g = l->plan->graph;
    const Group *group = &l->plan->group[k->fusion->kernel];
    TileTime p = {.library =
                      gpu_seconds(g, group, &l->kernel[k->fusion->kernel], d) +
                      GPU_LAUNCH};
    for (; k != NULL; k = k->second) {
        double busy = fmin(1, k->grid / fmax(1, d->multiprocessors));
        Group idle = *group;
        idle.bytes = 0;
        p.tile += fmax(gpu_call_seconds(group, 0, d),
                       (gpu_call_seconds(&idle, k->flops / d->f16_flops, d) /
                            TILE_SHARE +
                        issue_seconds(&k->cost, k->grid, d)) /
                           busy) +
                  GPU_LAUNCH;
    }
    return p;
}

TileTime tile_time(const Launches *l, const TileKernel *k, const Device *d) {
    const Graph *g = l->plan->graph;
    const TileFusion *f = k->fusion;
    if (f->call < 0)
        return attention_time(l, k, d);
    const Group *call = &l->plan->group[f->call];
    const Kernel *kernel = &l->kernel[f->call];
    const Node *contraction = &g->node[group_first(g, call, CALLS)];
    Group fused = *call, idle = *call;
    TileTime p = {.library = gpu_seconds(g, call, kernel, d) + GPU_LAUNCH};
    if (f->kernel >= 0) {
        const Group *epilogue = &l->plan->group[f->kernel];
        p.library +=
            gpu_seconds(g, epilogue, &l->kernel[f->kernel], d) + GPU_LAUNCH;
        fused.bytes += epilogue->bytes - f->bytes;
    }
    for (int o = 0; o < TILE_OPERANDS; o++)
        if (f->prologue[o] >= 0)
            prologue_add(l, f->prologue[o], node_base(g, contraction->arg[o]),
                         d, &p, &fused);
    fused.bytes += 2 * k->workspace;
    idle.bytes = 0;
    double busy = fmin(1, k->grid / fmax(1, d->multiprocessors));
    p.tile = fmax(gpu_seconds(g, &fused, kernel, d),
                  gpu_seconds(g, &idle, kernel, d) / (TILE_SHARE * busy)) +
             (k->sum_grid > 0 ? 2 : 1) * GPU_LAUNCH;
    return p;
}

static bool is_faster(const TileFusion *f, TileTime p) {
    return !f->fused && p.library >= TILE_GAIN * p.tile;
}

// A kernel that is launched all the same is no prologue.  Whether there was
// one.
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

static int mark_taken(Arena *a, const Launches *l, bool all, const Device *d) {
    const TileFusions *f = &l->plan->tiles;
    const TileKernel *k = codegen_tile_kernels(l, a);
    int taken = 0;
    for (int i = 0; i < f->count; i++) {
        TileTime p = tile_time(l, &k[i], d);
        f->fusion[i].taken = all || is_faster(&f->fusion[i], p);
        taken += f->fusion[i].taken;
    }
    return taken;
}

// Returns the number of fusions that it takes.  Without a prologue a tile
// kernel may be no faster than the library, so that another prologue has a
// reader less.
static int step_take(Arena *a, const Launches *l, bool all, const Device *d) {
    int taken;
    do
        taken = mark_taken(a, l, all, d);
    while (drop_prologues(&l->plan->tiles));
    return taken;
}

void tile_seconds(Arena *a, const Launches *l, const Device *d,
                  double *seconds) {
    GraphPlan plan = *l->plan; // whose fusions it takes
    Launches own = *l;
    const TileFusions *f = &plan.tiles;
    if (f->count == 0)
        return;
    own.plan = &plan;
    plan.tiles.fusion = ARENA_ARRAY(a, (size_t)f->count, TileFusion);
    memcpy(plan.tiles.fusion, l->plan->tiles.fusion,
           (size_t)f->count * sizeof *f->fusion);
    step_take(a, &own, false, d);
    const TileKernel *k = codegen_tile_kernels(&own, a);
    for (int i = 0; i < f->count; i++) {
        const TileFusion *fusion = &f->fusion[i];
        if (!fusion->taken)
            continue;
        if (fusion->kernel >= 0)
            seconds[fusion->kernel] = 0;
        seconds[fusion->call >= 0 ? fusion->call : fusion->kernel] =
            tile_time(&own, &k[i], d).tile;
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

void tiles_take(Arena *a, const Arguments *arguments, const Plan *gpu,
                const Plan *host) {
    const char *choice = arguments->tile ? arguments->tile : "auto", *why;
    bool all = strcmp(choice, "all") == 0, here = tiles_on_host(arguments);
    const Plan *plan = here ? host : gpu;
    Device d;
    int status, taken = 0;
    if ((arguments->embed == NULL && !here) || strcmp(choice, "none") == 0 ||
        !device_find(a, arguments, &d, &status))
        return;
    const Launches *l = codegen_launches(plan, plan, a);
    for (int i = 0; i < plan->num_steps; i++)
        taken += step_take(a, &l[i], all, &d);
    if (here && taken == 0)
        report_none(host);
    if (here || taken == 0 || all || toolchain_is_here(a, arguments, &why))
        return;
    take_none(plan);
    fprintf(stderr,
            "sinter: %d launches are without tile kernels, though these are "
            "estimated to be faster: %s\n",
            taken, why);
}

// ---- compilation ----

// A kernel for an architecture.
typedef struct {
    const TileKernel *kernel;
    int arch;
    const char *ir, *cubin, *log; // files
    const char *text;             // the candidate that is compiled
    RtCode code, best;            // its cubin, and the best so far
    RtError error;
    bool is_cached, failed, done; // done: the best does not spill
} Job;

typedef struct {
    const TileToolchain *toolchain;
    Job *job;
    int count, next;
    pthread_mutex_t lock;
} Jobs;

static bool ir_write(const char *path, const RtCode *code) {
    FILE *f = fopen(path, "wb");
    bool good = f && fwrite(code->bytes, 1, code->length, f) == code->length;
    return f && fclose(f) == 0 && good;
}

static void ir_make(const TileToolchain *t, Job *job) {
    RtCode ir = {0};
    if (job->done || job->failed)
        return;
    job->is_cached = rt_tile_cached(t->nvrtc, job->text, job->arch, &job->code);
    if (job->is_cached)
        return;
    job->failed =
        !rt_tile_ir(t->nvrtc, job->text, job->arch, &ir, &job->error) ||
        (!ir_write(job->ir, &ir) &&
         !rt_fail(&job->error, EXIT_IO, "cannot write %s", job->ir));
    free(ir.bytes);
}

static void *work(void *argument) {
    Jobs *jobs = argument;
    for (;;) {
        pthread_mutex_lock(&jobs->lock);
        int i = jobs->next < jobs->count ? jobs->next++ : -1;
        pthread_mutex_unlock(&jobs->lock);
        if (i < 0)
            return NULL;
        ir_make(jobs->toolchain, &jobs->job[i]);
    }
}

static void ir_make_all(Arena *a, Jobs *jobs) {
    int threads = processors();
    pthread_t *thread = ARENA_ARRAY(a, (size_t)threads, pthread_t);
    int started = 0;
    jobs->next = 0;
    while (started + 1 < threads && started + 1 < jobs->count &&
           pthread_create(&thread[started], NULL, work, jobs) == 0)
        started++;
    work(jobs);
    while (started > 0)
        pthread_join(thread[--started], NULL);
}

static Process assembler(Arena *a, const char *folder, const TileToolchain *t,
                         const Job *job) {
    Process p = {
        .words = {.a = a}, .folder = folder, .out = job->log, .log = job->log};
    const char *const word[] = {
        "env",       arena_format(a, "CUDA_HOME=%s", t->root),
        t->tileiras, arena_format(a, "--gpu-name=sm_%d", job->arch),
        job->ir,     "-o",
        job->cubin,  NULL};
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
    Process *p = ARENA_ARRAY(a, (size_t)jobs->count + 1, Process);
    Job **of = ARENA_ARRAY(a, (size_t)jobs->count + 1, Job *);
    int count = 0;
    for (int i = 0; i < jobs->count; i++) {
        Job *job = &jobs->job[i];
        if (job->is_cached || job->failed || job->done)
            continue;
        of[count] = job;
        p[count++] = assembler(a, folder, jobs->toolchain, job);
    }
    processes_run(p, count);
    for (int i = 0; i < count; i++) {
        Job *job = of[i];
        job->failed = p[i].status != 0 || !cubin_read(job->cubin, &job->code);
        if (job->failed)
            rt_fail(&job->error, EXIT_DEVICE, "tileiras %s: %s",
                    ended_how(a, p[i].status), log_line(a, job->log));
        else
            rt_tile_keep(jobs->toolchain->nvrtc, job->text, job->arch,
                         &job->code);
    }
}

static void jobs_init(Jobs *jobs, Arena *a, const char *folder,
                      const TileToolchain *t, const TileTexts *tiles,
                      const int *arch, int num_archs) {
    *jobs = (Jobs){.toolchain = t, .count = tiles->count * num_archs};
    jobs->job = ARENA_ARRAY(a, (size_t)jobs->count + 1, Job);
    for (int i = 0; i < jobs->count; i++) {
        const char *path = arena_format(a, "%s/%d", folder, i);
        jobs->job[i] = (Job){.kernel = &tiles->kernel[i % tiles->count],
                             .arch = arch[i / tiles->count],
                             .ir = arena_format(a, "%s.tile", path),
                             .cubin = arena_format(a, "%s.cubin", path),
                             .log = arena_format(a, "%s.log", path)};
    }
    pthread_mutex_init(&jobs->lock, NULL);
}

// Keeps the candidate that spills least.  One that fails ends the search.
static void keep_best(Job *job) {
    if (job->done)
        return;
    if (job->failed) {
        job->failed = job->best.bytes == NULL;
        job->done = true;
        return;
    }
    if (job->best.bytes == NULL ||
        tile_frame(&job->code) < tile_frame(&job->best)) {
        free(job->best.bytes);
        job->best = job->code;
    } else {
        free(job->code.bytes);
    }
    job->code = (RtCode){0};
    job->done = tile_frame(&job->best) == 0;
}

static void candidates_try(Arena *a, const char *folder, Jobs *jobs) {
    for (int k = 0; k < TILE_CANDIDATES; k++) {
        for (int i = 0; i < jobs->count; i++)
            jobs->job[i].text = jobs->job[i].kernel->text[k];
        ir_make_all(a, jobs);
        assemble_all(a, folder, jobs);
        for (int i = 0; i < jobs->count; i++)
            keep_best(&jobs->job[i]);
    }
}

static bool jobs_take(const Arguments *arguments, Jobs *jobs,
                      const TileTexts *tiles, Text *code) {
    bool good = true;
    for (int i = 0; i < jobs->count; i++) {
        Job *job = &jobs->job[i];
        if (job->failed && good)
            complain(arguments, "tile kernel %s for sm_%d: %s",
                     job->kernel->name, job->arch, job->error.text);
        good &= !job->failed;
        if (good)
            embed_add(code, job->arch, RT_TILE_CUBIN + i % tiles->count,
                      job->best.bytes, job->best.length);
        free(job->best.bytes);
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
        Jobs jobs;
        jobs_init(&jobs, a, scratch.path, &t, tiles, arch, num_archs);
        candidates_try(a, scratch.path, &jobs);
        good = jobs_take(arguments, &jobs, tiles, code);
        rt_tile_close(t.nvrtc);
    } else {
        complain(arguments, "%s", why);
    }
    scratch_close(&scratch);
    return good;
}
