// Variant: builds and runs a variant of a model.
#define _POSIX_C_SOURCE 200809L

#include "tools/compare/variant.h"
#include "base/exits.h"
#include "base/source.h"
#include "tools/process.h"
#include "tools/scratch.h"
#include "tools/tile.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LOG = 1 << 16 };

// ---- building ----

// Adds the settings of both, then the batch, which so takes effect.
static bool settings_add(Arena *a, Variant *v, const Arguments *both,
                         const Runs *runs) {
    for (int i = 0; i < both->num_settings; i++)
        if (!setting_add(&v->arguments, both->set[i]))
            return false;
    return setting_add(
        &v->arguments,
        (Setting){"batch", arena_format(a, "%" PRId64, runs->batch)});
}

static bool options_take(Arena *a, Variant *v, const Arguments *both) {
    static const Command variant = {.name = "variant"};
    Words w = {.a = a};
    words_split(&w, v->options);
    const char **word = ARENA_ARRAY(a, (size_t)w.count + 1, const char *);
    for (int i = 0; i < w.count; i++)
        word[i] = w.word[i];
    v->arguments.diagnostics = both->diagnostics;
    if (!arguments_parse(&v->arguments, &variant, w.count, (char **)word))
        return false;
    v->arguments.operand = both->operand;
    v->arguments.num_operands = 1;
    if (v->arguments.memory == 0)
        v->arguments.memory = both->memory;
    return true;
}

static bool is_cuda(const Runs *runs) {
    return strncmp(runs->device, "cuda", 4) == 0;
}

int variant_build(Arena *a, Variant *v, const Arguments *both,
                  const Runs *runs) {
    Diagnostics diags = diag_new(a);
    if (!options_take(a, v, both) || !settings_add(a, v, both, runs))
        return EXIT_USAGE;
    const Arguments *own = &v->arguments;
    if (is_cuda(runs) && tiles_on_host(own)) {
        complain(own,
                 "--tile of variant %s runs tile kernels on the host, not on "
                 "--device=%s",
                 v->name, runs->device);
        return EXIT_USAGE;
    }
    v->program =
        frontend_load(a, own->operand[0], own->set, own->num_settings, &diags);
    if (v->program == NULL) { // its warnings were printed before
        diagnostics_print(a, own, &diags);
        return EXIT_MODEL;
    }
    part_remove(v->program, v->part);
    // Evaluations and checkpoints within the run are not needed.
    v->program->recipe.eval_every = v->program->recipe.checkpoint_every =
        (Time){0};
    v->arguments.no_updates = v->part == PART_UPDATES;
    v->text = trainer_text(a, v->program, &v->arguments);
    if (tiles_on_host(own) && v->text.tiles.count == 0)
        return EXIT_USAGE; // tiles_take has told why
    if (!plan_fits(a, &v->arguments, v->program, v->text.plan))
        return EXIT_MEMORY;
    v->plan = is_cuda(runs) ? v->text.plan : v->text.host;
    if (!update_cost(v->program, v->plan, &v->cost)) {
        complain_uncounted(&v->arguments, v->program);
        return EXIT_MODEL;
    }
    v->trainer = arena_format(a, "%s/%s", runs->folder, v->name);
    return trainer_build(a, &v->arguments, &v->text, v->trainer);
}

// ---- running ----

static Words words_begin(Arena *a, const Variant *v, const Runs *runs) {
    Words w = {.a = a};
    if (runs->launcher != NULL)
        words_split(&w, runs->launcher);
    words_add(&w, v->trainer);
    words_add(&w, arena_format(a, "--device=%s", runs->device));
    if (runs->data != NULL)
        words_add(&w, arena_format(a, "--data=%s", runs->data));
    if (runs->validation != NULL)
        words_add(&w, arena_format(a, "--validation=%s", runs->validation));
    words_add(&w, "--quiet");
    if (v->part == PART_LOADING)
        words_add(&w, "--repeat-batch");
    return w;
}

// Runs a trainer while `wanted` is true, and prints its log if it fails.
static int run(Arena *a, const Variant *v, const Runs *runs, const Words *w,
               Wanted *wanted, void *whose) {
    const char *why;
    const char *log = arena_format(a, "%s/%s.log", runs->folder, v->name);
    int status = program_run_while(w, ".", log, log, wanted, whose);
    if (status == EXIT_GOOD ||
        (wanted && (status == EXIT_DIVERGED || status == ENDED)))
        return status;
    if (status == NOT_STARTED)
        return trainer_end_report(&v->arguments, v->trainer, status);
    const Source *said = source_read(a, log, MAX_LOG, &why);
    complain(&v->arguments, "%s, built with %s, %s: %s", v->name, v->options,
             ended_how(a, status),
             said != NULL && said->length > 0 ? said->text
                                              : "it printed no message");
    return status;
}

// The one checkpoint in a folder.
static const char *checkpoint_in(Arena *a, const char *folder) {
    DIR *d = opendir(folder);
    const char *found = NULL;
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        if (strstr(e->d_name, ".safetensors") != NULL)
            found = arena_format(a, "%s/%s", folder, e->d_name);
    if (d != NULL)
        closedir(d);
    return found;
}

// Runs a few steps first: errors of momentum and running statistics would not
// show while they are zero.
int variant_start(Arena *a, Variant *v, const Runs *runs, const char **path) {
    const char *folder = arena_format(a, "%s/%s.start", runs->folder, v->name);
    Words w = words_begin(a, v, runs);
    folder_remove(folder);
    words_add(&w, "--steps=2");
    words_add(&w, arena_format(a, "--out=%s", folder));
    int status = run(a, v, runs, &w, NULL, NULL);
    *path = checkpoint_in(a, folder);
    if (status != EXIT_GOOD || *path != NULL)
        return status;
    complain(&v->arguments, "%s wrote no state to %s", v->name, folder);
    return EXIT_IO;
}

// Each run overwrites the folder of the previous one.
static Words words_from(Arena *a, const Variant *v, const Runs *runs,
                        const char *start, int64_t steps) {
    const char *out = arena_format(a, "%s/%s.run", runs->folder, v->name);
    Words w = words_begin(a, v, runs);
    folder_remove(out);
    if (start != NULL)
        words_add(&w, arena_format(a, "--resume=%s", start));
    words_add(&w, arena_format(a, "--steps=%lld", (long long)steps));
    words_add(&w, arena_format(a, "--out=%s", out));
    return w;
}

int variant_look(Arena *a, Variant *v, const Runs *runs, const char *start,
                 const Snapshot *beside) {
    const char *path = arena_format(a, "%s/%s.step", runs->folder, v->name);
    Words w = words_from(a, v, runs, start, 1);
    words_add(&w, arena_format(a, "--snapshot=%s", path));
    int status = run(a, v, runs, &w, NULL, NULL);
    // The comparison reports losses that are not finite.
    if (status != EXIT_GOOD && status != EXIT_DIVERGED)
        return status;
    const char *why = snapshot_read(a, path, v->plan, beside, &v->snapshot);
    if (why == NULL)
        return EXIT_GOOD;
    complain(&v->arguments, "%s: %s", path, why);
    return EXIT_IO;
}

// ---- rows of steps ----

static Series times_read(Arena *a, const char *path) {
    char line[LINE_BYTES];
    Series times = {0};
    FILE *f = fopen(path, "r");
    while (f != NULL && line_next(f, line))
        series_add(a, &times, strtod(line, NULL));
    if (f != NULL)
        fclose(f);
    return times;
}

const char *variant_rows(Arena *a, const Variant *v, const Runs *runs) {
    return arena_format(a, "%s/%s.rows", runs->folder, v->name);
}

static Words words_rows(Arena *a, const Variant *v, const Runs *runs,
                        const char *start) {
    Words w = words_from(a, v, runs, start, runs->steps);
    words_add(&w, "--log-every=1");
    words_add(&w, arena_format(a, "--metrics=%s", variant_rows(a, v, runs)));
    return w;
}

int variant_run(Arena *a, Variant *v, const Runs *runs, const char *start) {
    const char *times = arena_format(a, "%s/%s.times", runs->folder, v->name);
    Words w = words_rows(a, v, runs, start);
    words_add(&w, arena_format(a, "--times=%s", times));
    int status = run(a, v, runs, &w, NULL, NULL);
    v->loss = rows_series(a, variant_rows(a, v, runs), "step", "loss");
    v->times = times_read(a, times);
    return status;
}

int variant_watch(Arena *a, Variant *v, const Runs *runs, Wanted *wanted,
                  void *whose) {
    Words w = words_rows(a, v, runs, NULL);
    return run(a, v, runs, &w, wanted, whose);
}
