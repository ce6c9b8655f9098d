// Bits: see bits.h.
//
// Both devices have one plan, and so the same addresses.  Library calls are the
// GPU's alone: the host is given what they leave.
#include "tests/codegen/bits/bits.h"

#include "passes/passes.h"
#include "tests/codegen/library.h"
#include "tests/codegen/load.h"
#include "tests/codegen/tensors.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_LAUNCHES = 4096 };

typedef struct {
    RtWatch watch; // of the GPU
    Arena *a;
    const Subject *subject;
    const char *const *function;
    Program *program;
    Plan *plan;
    RtDevice *gpu, *host;
    const RtPlan *rt;
    const char *kernels;     // their text
    char *left, *meant;      // all memory, of the GPU and of the host
    int grid[MAX_LAUNCHES];  // of the launches of the step that runs
    int step, launch;
    int first;      // of the launches since memory was the same
    bool leave_out; // them
    BitsCount *count;
    Text report;
} Run;

// ---- the blocks of each launch ----

// A device that takes note of them.
typedef struct {
    RtDevice device;
    int *grid;
    int launches;
} Notes;

static void note(Notes *n, int grid) {
    if (n->launches == MAX_LAUNCHES)
        abort();
    n->grid[n->launches++] = grid;
}

static void note_launch(RtDevice *d, int kernel, int grid, const size_t *arg) {
    (void)kernel, (void)arg;
    note((Notes *)(void *)d, grid); // device is its first field
}

static void note_call(RtDevice *d, int call, size_t a, size_t b, size_t out) {
    (void)call, (void)a, (void)b, (void)out;
    note((Notes *)(void *)d, 0);
}

static void note_phase(RtDevice *d, RtPhase phase) {
    (void)d, (void)phase;
}

static void note_grids(Run *r) {
    Notes n = {.device = {.name = "notes",
                          .launch = note_launch,
                          .library_call = note_call,
                          .phase = note_phase},
               .grid = r->grid};
    r->rt->step[r->step].run(&n.device);
}

// ---- the text of a kernel ----

// Whether the function that begins so in the text calls another.
static bool text_calls(const char *text, const char *head, const char *called) {
    const char *at = strstr(text, head);
    const char *end = at ? strstr(at, "\n}\n") : NULL;
    const char *call = at ? strstr(at, called) : NULL;
    return call && call < end;
}

// A kernel that may be merged has its body in a function of its own.
static bool kernel_calls(const Run *r, int kernel, const char *called) {
    const char *name = r->rt->kernel[kernel].name;
    const char *head = arena_format(r->a, " %s(", name);
    const char *body = arena_format(r->a, " %s_body(", name);
    return text_calls(r->kernels, head, called) ||
           text_calls(r->kernels, body, called);
}

static bool is_left_out(const Run *r, int kernel) {
    for (int i = 0; r->function[i]; i++)
        if (kernel_calls(r, kernel, arena_format(r->a, "%s(", r->function[i])))
            return true;
    return false;
}

// ---- the launches of a step ----

static void compare(Run *r, int kernel) {
    const Launches of = {r->step, r->first, r->launch};
    bits_compare(r->rt, &of, r->left, r->meant, r->rt->kernel[kernel].name,
                 &r->report);
}

// A launch that the GPU makes later, with others, is made here at once.
static void launched(RtWatch *w, int kernel, const size_t *arg) {
    Run *r = (Run *)(void *)w; // watch is its first field
    size_t bytes = r->rt->arena_bytes;
    if (kernel >= 0) {
        r->host->launch(r->host, kernel, r->grid[r->launch], arg);
        r->leave_out |= is_left_out(r, kernel);
    }
    if (!w->absent) {
        r->gpu->sync(r->gpu);
        r->gpu->read(r->gpu, r->left, 0, bytes);
        r->host->read(r->host, r->meant, 0, bytes);
        if (kernel >= 0 && !r->leave_out)
            compare(r, kernel);
        if (kernel >= 0)
            *(r->leave_out ? &r->count->left_out : &r->count->compared) += 1;
        r->host->write(r->host, 0, r->left, bytes);
        r->leave_out = false;
        r->first = r->launch + 1;
    }
    r->launch++;
}

// ---- a program ----

static void fill(const Run *r, const Graph *g, bool inputs) {
    enum { SEED = 1 };
    for (NodeId n = 0; n < g->count; n++) {
        Op op = g->node[n].op;
        if (inputs ? op == OP_input : op == OP_param || op == OP_state)
            tensor_write(
                r->gpu, r->a, g, n,
                tensor_leaf(g, r->a, n, SEED, r->program->recipe.classes));
    }
}

static void run_step(Run *r, int step) {
    size_t bytes = r->rt->arena_bytes;
    r->step = step;
    r->launch = r->first = 0;
    note_grids(r);
    fill(r, r->plan->step[step].graph, true);
    r->gpu->sync(r->gpu);
    r->gpu->read(r->gpu, r->left, 0, bytes);
    r->host->write(r->host, 0, r->left, bytes);
    r->gpu->watch = &r->watch;
    r->gpu->run(r->gpu, &r->rt->step[step]);
    r->gpu->watch = NULL;
}

static void run_steps(Run *r) {
    r->watch.launched = launched;
    r->left = arena_alloc(r->a, r->rt->arena_bytes);
    r->meant = arena_alloc(r->a, r->rt->arena_bytes);
    r->gpu->reserve(r->gpu);
    r->host->reserve(r->host);
    for (int i = 0; i < r->plan->num_steps; i++)
        fill(r, r->plan->step[i].graph, false);
    for (int i = 0; i < r->plan->num_steps; i++)
        run_step(r, i);
    r->host->close(r->host);
    r->gpu->close(r->gpu);
}

static bool devices_open(Run *r, const char *folder, const char **why) {
    const char *name[] = {"model"};
    library_write(r->a, folder, "model", r->program, r->plan);
    *why = library_compile(r->a, folder, 1, name,
                           LIBRARY_TINY " " LIBRARY_EMBEDS " -DSINTER_SIMT");
    void *library = *why ? NULL : library_open(r->a, folder, why);
    if (library == NULL)
        return false;
    r->kernels = library_kernels(r->a, library, "model");
    r->host = host_open(library_plan(r->a, library, "model"), 1);
    r->gpu = library_gpu(r->a, library, "model", &r->rt, why);
    return r->gpu != NULL;
}

static void run(Run *r, const char *folder) {
    const Subject *s = r->subject;
    const char *why;
    r->program = load_program(r->a, s->file, s->setting, s->num_settings,
                              s->storage, &r->report);
    if (r->program == NULL)
        return;
    PassOptions o = pass_options(&r->program->recipe, "cuda");
    o.storage = s->storage;
    o.level = s->level;
    // For a described GPU small products are kernels, too.
    o.multiprocessors = GENERIC_MULTIPROCESSORS;
    r->plan = program_plan(r->program, &o);
    if (devices_open(r, folder, &why))
        run_steps(r);
    else
        text_add(&r->report, "%s\n", why);
}

const char *bits_differ(Arena *a, const Subject *s, const char *const *function,
                        BitsCount *count) {
    const char *name[] = {"model"}, *folder = library_folder(a);
    Run *r = ARENA_NEW(a, Run);
    *r = (Run){.a = a,
               .subject = s,
               .function = function,
               .count = count,
               .report = text_new(a)};
    *count = (BitsCount){0, 0};
    if (folder == NULL)
        return "no temporary folder";
    run(r, folder);
    library_remove(a, folder, 1, name);
    return r->report.length ? text_string(&r->report) : NULL;
}
