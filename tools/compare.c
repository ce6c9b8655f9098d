// sinter compare: builds a model in two ways, runs both from the same state on
// the same batches, and compares all that both keep in memory.
#define _XOPEN_SOURCE 700 // mkdtemp, nftw

#include "tools/compare.h"
#include "base/exits.h"

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Multiply-adds in double, and bytes of doubles, that are not waited for.
static const double MOST_FLOPS = 2e10;
static const double MOST_BYTES = 4e9;
enum { STEPS = 10, LARGEST_BATCH = 32, LEAST_BATCH = 2 };

// ---- what is compared ----

// What a model costs with its own batch, or says the command line.
typedef struct {
    int64_t batch, flops, bytes;
} Size;

static int size_of(const Arguments *arguments, Size *size) {
    int status;
    Arena *a = arena_new();
    Diagnostics diags = diag_new(a);
    Program *p = model_load(a, arguments, &diags, &status);
    if (p != NULL) {
        PassOptions o = plan_options(p, arguments, "host");
        const Graph *g = plan_graph(program_plan(p, &o), "train");
        *size = (Size){p->recipe.batch, graph_cost(g).flops, 0};
        for (NodeId n = 0; n < g->count; n++)
            size->bytes +=
                type_count(g->node[n].type) * (int64_t)sizeof(double);
        status = EXIT_GOOD;
    }
    arena_free(a);
    return status;
}

// The largest batch that is evaluated in double in the time.
static int64_t batch_for(const Arguments *arguments, const Size *size) {
    double share = fmin(MOST_FLOPS / (double)(size->flops + 1),
                        MOST_BYTES / (double)(size->bytes + 1));
    int64_t batch = (int64_t)((double)size->batch * fmin(share, 1));
    if (arguments->batch.given)
        return arguments->batch.value;
    if (arguments->no_eval)
        return size->batch;
    if (batch < LEAST_BATCH)
        batch = LEAST_BATCH;
    batch = batch < LARGEST_BATCH ? batch : LARGEST_BATCH;
    return batch < size->batch ? batch : size->batch;
}

// Steps are evaluated in double unless that takes too long.
static bool is_judged(const Arguments *arguments, const Snapshot *s) {
    const Graph *g = s->step->graph;
    double bytes = 0;
    for (NodeId n = 0; n < g->count; n++)
        bytes += (double)type_count(g->node[n].type) * sizeof(double);
    return !arguments->no_eval && bytes <= MOST_BYTES &&
           (arguments->batch.given ||
            (double)graph_cost(g).flops <= 2 * MOST_FLOPS);
}

// ---- the folder that all this happens in ----

static int remove_one(const char *path, const struct stat *about, int kind,
                      struct FTW *where) {
    (void)about, (void)kind, (void)where;
    return remove(path);
}

static void folder_remove(const char *folder) {
    enum { OPEN_FOLDERS = 8 };
    nftw(folder, remove_one, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS);
}

static char *folder_new(Arena *a, const Arguments *arguments) {
    const char *temporary = getenv("TMPDIR");
    char *folder = arena_format(a, "%s/sinter-XXXXXX",
                                temporary && *temporary ? temporary : "/tmp");
    if (mkdtemp(folder))
        return folder;
    complain(arguments, "%s: %s", folder, strerror(errno));
    return NULL;
}

// ---- the course of a comparison ----

static int sides_build(Arena *a, const Arguments *arguments, Comparison *c) {
    Setting set[MAX_SETTINGS + 1];
    int count = 0;
    for (; count < arguments->num_settings; count++)
        set[count] = arguments->set[count];
    set[count++] = (Setting){"batch", arena_format(a, "%" PRId64, c->batch)};
    int status = side_build(a, &c->a, arguments, set, count, &c->runs);
    if (status == EXIT_GOOD)
        status = side_build(a, &c->b, arguments, set, count, &c->runs);
    return status;
}

// Both start from what b starts from; models that differ, as by their widths,
// cannot.
static int sides_run(Arena *a, Comparison *c) {
    const char *start;
    int status = side_start(a, &c->b, &c->runs, &start);
    if (status == EXIT_GOOD && c->a.text.fingerprint != c->b.text.fingerprint) {
        complain(&c->a.arguments,
                 "-a and -b make two models of %s, which cannot start from the "
                 "same state: let them differ in how they are compiled",
                 c->a.arguments.operand[0]);
        return EXIT_USAGE;
    }
    if (status == EXIT_GOOD)
        status = side_look(a, &c->a, &c->runs, start);
    if (status == EXIT_GOOD)
        status = side_look(a, &c->b, &c->runs, start);
    if (status == EXIT_GOOD)
        status = side_run(a, &c->a, &c->runs, start);
    if (status == EXIT_GOOD)
        status = side_run(a, &c->b, &c->runs, start);
    return status;
}

int sides_compare(Arena *a, const Arguments *arguments, Comparison *c) {
    Size size;
    int status = size_of(arguments, &size);
    if (status != EXIT_GOOD)
        return status;
    c->own_batch = size.batch;
    c->batch = batch_for(arguments, &size);
    char *folder = folder_new(a, arguments);
    if (folder == NULL)
        return EXIT_IO;
    c->runs = (Runs){
        .folder = folder,
        .data = arguments->data ? arguments->data
                                : arena_format(a, "synthetic:%" PRId64,
                                               c->batch * LARGEST_BATCH),
        .device = arguments->device ? arguments->device : "host",
        .steps = arguments->steps.given ? arguments->steps.value : STEPS,
    };
    status = sides_build(a, arguments, c);
    if (status == EXIT_GOOD)
        status = sides_run(a, c);
    folder_remove(folder);
    if (status != EXIT_GOOD)
        return status;
    bool judged = is_judged(arguments, &c->a.snapshot);
    c->rows = rows_compare(a, &c->a, &c->b, judged);
    return EXIT_GOOD;
}

int compare_command(const Arguments *arguments) {
    Arena *a = arena_new();
    Comparison c = {
        .a = {.name = "a", .options = arguments->a ? arguments->a : "-O1"},
        .b = {.name = "b", .options = arguments->b ? arguments->b : "-O0"}};
    int status = sides_compare(a, arguments, &c);
    if (status == EXIT_GOOD) {
        Text t = text_new(a);
        if (arguments->json)
            comparison_json(&t, &c);
        else
            comparison_print(&t, &c);
        fputs(text_string(&t), stdout);
        status = c.rows.wrong ? EXIT_COMPARE : EXIT_GOOD;
    }
    arena_free(a);
    return status;
}
