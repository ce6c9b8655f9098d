// Bits: see bits.h.
//
// Both devices have one plan, and so the same addresses.  Library calls are the
// GPU's alone: the host is given what they leave.
#define _GNU_SOURCE
#include "tests/bits/bits.h"

#include "ir/group.h"
#include "passes/passes.h"
#include "runtime/runtime.h"
#include "tests/codegen/library.h"
#include "tests/codegen/load.h"
#include "tests/codegen/tensors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LAUNCHES = 4096, MOST_REPORT = 1500 };

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
    int grid[MOST_LAUNCHES]; // of the launches of the step that runs
    int step, launch;
    bool leave_out; // what was launched since memory was the same
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
    if (n->launches == MOST_LAUNCHES)
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
                          .contract = note_call,
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

// What a launch does that may be joined is a function beside the kernel.
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

// ---- comparison ----

// What a byte of memory belongs to.
typedef struct {
    const char *what;
    RtType type;
    size_t offset, bytes;
} Owner;

static bool is_in(const Owner *p, size_t at) {
    return at >= p->offset && at < p->offset + p->bytes;
}

// What a launch stores is there until it is stored over.
static Owner owner_of(const Run *r, size_t at) {
    Owner found = {"a number that is kept for a while", RT_F32, at / 4 * 4, 4};
    for (int i = 0; i < r->rt->num_states; i++) {
        const RtState *s = &r->rt->state[i];
        Owner p = {s->name, s->type, s->offset, rt_state_bytes(s)};
        if (is_in(&p, at))
            found = p;
    }
    for (int i = 0; i < r->rt->num_stored; i++) {
        const RtStored *t = &r->rt->stored[i];
        Owner p = {t->what, t->type, t->offset,
                   (size_t)t->count * rt_type_bytes(t->type)};
        if (t->step == r->step && t->launch <= r->launch && is_in(&p, at))
            found = p;
    }
    return found;
}

// Blocks of a GPU count each other, at barriers of the grid too: no number of
// the model.
static bool is_ticket(const Owner *p) {
    return strncmp(p->what, TICKETS, strlen(TICKETS)) == 0;
}

// Room that a kernel has for itself is f32, and may be where a tensor was.
static bool is_no_number(const Run *r, size_t at) {
    float found, right;
    memcpy(&found, r->left + at / 4 * 4, sizeof found);
    memcpy(&right, r->meant + at / 4 * 4, sizeof right);
    return isnan(found) && isnan(right);
}

static void compare(Run *r, int kernel) {
    size_t bytes = r->rt->arena_bytes, next;
    for (size_t at = 0; at < bytes && r->report.length < MOST_REPORT;
         at = next) {
        next = at + 1;
        if (r->left[at] == r->meant[at] || is_no_number(r, at))
            continue;
        Owner p = owner_of(r, at);
        size_t each = rt_type_bytes(p.type);
        int64_t i = (int64_t)((at - p.offset) / each);
        double found = rt_number(r->left + p.offset, p.type, i);
        double right = rt_number(r->meant + p.offset, p.type, i);
        next = p.offset + (size_t)(i + 1) * each;
        if (!is_ticket(&p) && (!isnan(found) || !isnan(right)))
            text_add(&r->report, "%s: %s[%lld] is %.9g, should be %.9g\n",
                     r->rt->kernel[kernel].name, p.what, (long long)i, found,
                     right);
    }
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
    r->launch = 0;
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
    *why = library_compile(r->a, folder, 1, name, "-O0 -DSINTER_SIMT");
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
    r->plan = program_plan(r->program, &o);
    if (devices_open(r, folder, &why))
        run_steps(r);
    else
        text_add(&r->report, "%s\n", why);
}

const char *bits_differ(Arena *a, const Subject *s, const char *const *function,
                        BitsCount *count) {
    const char *tmp = getenv("TMPDIR"), *name[] = {"model"};
    char *folder = arena_format(a, "%s/sinter-bits-XXXXXX", tmp ? tmp : "/tmp");
    Run *r = ARENA_NEW(a, Run);
    *r = (Run){.a = a,
               .subject = s,
               .function = function,
               .count = count,
               .report = text_new(a)};
    *count = (BitsCount){0, 0};
    if (mkdtemp(folder) == NULL)
        return "no temporary folder";
    run(r, folder);
    library_remove(a, folder, 1, name);
    return r->report.length ? text_string(&r->report) : NULL;
}
