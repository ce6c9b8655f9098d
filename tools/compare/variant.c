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
static bool settings_add(Arena *a, Variant *s, const Arguments *both,
                         const Runs *runs) {
    for (int i = 0; i < both->num_settings; i++)
        if (!setting_add(&s->arguments, both->set[i]))
            return false;
    return setting_add(
        &s->arguments,
        (Setting){"batch", arena_format(a, "%" PRId64, runs->batch)});
}

static bool options_take(Arena *a, Variant *s, const Arguments *both) {
    static const Command variant = {.name = "variant"};
    Words w = {.a = a};
    words_split(&w, s->options);
    const char **word = ARENA_ARRAY(a, (size_t)w.count + 1, const char *);
    for (int i = 0; i < w.count; i++)
        word[i] = w.word[i];
    s->arguments.diagnostics = both->diagnostics;
    if (!arguments_parse(&s->arguments, &variant, w.count, (char **)word))
        return false;
    s->arguments.operand = both->operand;
    s->arguments.num_operands = 1;
    if (s->arguments.memory == 0)
        s->arguments.memory = both->memory;
    return true;
}

static bool is_cuda(const Runs *runs) {
    return strncmp(runs->device, "cuda", 4) == 0;
}

int variant_build(Arena *a, Variant *s, const Arguments *both,
                  const Runs *runs) {
    Diagnostics diags = diag_new(a);
    if (!options_take(a, s, both) || !settings_add(a, s, both, runs))
        return EXIT_USAGE;
    const Arguments *own = &s->arguments;
    if (is_cuda(runs) && tiles_on_host(own)) {
        complain(own,
                 "--tile of variant %s runs tile kernels on the host, not on "
                 "--device=%s",
                 s->name, runs->device);
        return EXIT_USAGE;
    }
    s->program =
        frontend_load(a, own->operand[0], own->set, own->num_settings, &diags);
    if (s->program == NULL) { // its warnings were printed before
        diagnostics_print(a, own, &diags);
        return EXIT_MODEL;
    }
    part_remove(s->program, s->part);
    // Evaluations and checkpoints within the run are not needed.
    s->program->recipe.eval_every = s->program->recipe.checkpoint_every =
        (Time){0};
    s->arguments.no_updates = s->part == PART_UPDATES;
    s->text = trainer_text(a, s->program, &s->arguments);
    if (tiles_on_host(own) && s->text.tiles.count == 0)
        return EXIT_USAGE; // tiles_take has told why
    if (!plan_fits(a, &s->arguments, s->program, s->text.plan))
        return EXIT_MEMORY;
    s->plan = is_cuda(runs) ? s->text.plan : s->text.host;
    if (!update_cost(s->program, s->plan, &s->cost)) {
        complain_uncounted(&s->arguments, s->program);
        return EXIT_MODEL;
    }
    s->trainer = arena_format(a, "%s/%s", runs->folder, s->name);
    return trainer_build(a, &s->arguments, &s->text, s->trainer);
}

// ---- running ----

static Words words_begin(Arena *a, const Variant *s, const Runs *runs) {
    Words w = {.a = a};
    if (runs->launcher != NULL)
        words_split(&w, runs->launcher);
    words_add(&w, s->trainer);
    words_add(&w, arena_format(a, "--device=%s", runs->device));
    if (runs->data != NULL)
        words_add(&w, arena_format(a, "--data=%s", runs->data));
    if (runs->validation != NULL)
        words_add(&w, arena_format(a, "--validation=%s", runs->validation));
    words_add(&w, "--quiet");
    if (s->part == PART_LOADING)
        words_add(&w, "--repeat-batch");
    return w;
}

// Runs a trainer while `wanted` is true, and prints its log if it fails.
static int run(Arena *a, const Variant *s, const Runs *runs, const Words *w,
               Wanted *wanted, void *whose) {
    const char *why;
    const char *log = arena_format(a, "%s/%s.log", runs->folder, s->name);
    int status = program_run_while(w, ".", log, log, wanted, whose);
    if (status == EXIT_GOOD ||
        (wanted && (status == EXIT_DIVERGED || status == ENDED)))
        return status;
    if (status == NOT_STARTED)
        return trainer_end_report(&s->arguments, s->trainer, status);
    const Source *said = source_read(a, log, MAX_LOG, &why);
    complain(&s->arguments, "%s, built with %s, %s: %s", s->name, s->options,
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
int variant_start(Arena *a, Variant *s, const Runs *runs, const char **path) {
    const char *folder = arena_format(a, "%s/%s.start", runs->folder, s->name);
    Words w = words_begin(a, s, runs);
    folder_remove(folder);
    words_add(&w, "--steps=2");
    words_add(&w, arena_format(a, "--out=%s", folder));
    int status = run(a, s, runs, &w, NULL, NULL);
    *path = checkpoint_in(a, folder);
    if (status != EXIT_GOOD || *path != NULL)
        return status;
    complain(&s->arguments, "%s wrote no state to %s", s->name, folder);
    return EXIT_IO;
}

// Each run overwrites the folder of the previous one.
static Words words_from(Arena *a, const Variant *s, const Runs *runs,
                        const char *start, int64_t steps) {
    const char *out = arena_format(a, "%s/%s.run", runs->folder, s->name);
    Words w = words_begin(a, s, runs);
    folder_remove(out);
    if (start != NULL)
        words_add(&w, arena_format(a, "--resume=%s", start));
    words_add(&w, arena_format(a, "--steps=%lld", (long long)steps));
    words_add(&w, arena_format(a, "--out=%s", out));
    return w;
}

int variant_look(Arena *a, Variant *s, const Runs *runs, const char *start,
                 const Snapshot *beside) {
    const char *path = arena_format(a, "%s/%s.step", runs->folder, s->name);
    Words w = words_from(a, s, runs, start, 1);
    words_add(&w, arena_format(a, "--snapshot=%s", path));
    int status = run(a, s, runs, &w, NULL, NULL);
    // The comparison reports losses that are not finite.
    if (status != EXIT_GOOD && status != EXIT_DIVERGED)
        return status;
    const char *why = snapshot_read(a, path, s->plan, beside, &s->snapshot);
    if (why == NULL)
        return EXIT_GOOD;
    complain(&s->arguments, "%s: %s", path, why);
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

const char *variant_rows(Arena *a, const Variant *s, const Runs *runs) {
    return arena_format(a, "%s/%s.rows", runs->folder, s->name);
}

static Words words_rows(Arena *a, const Variant *s, const Runs *runs,
                        const char *start) {
    Words w = words_from(a, s, runs, start, runs->steps);
    words_add(&w, "--log-every=1");
    words_add(&w, arena_format(a, "--metrics=%s", variant_rows(a, s, runs)));
    return w;
}

int variant_run(Arena *a, Variant *s, const Runs *runs, const char *start) {
    const char *times = arena_format(a, "%s/%s.times", runs->folder, s->name);
    Words w = words_rows(a, s, runs, start);
    words_add(&w, arena_format(a, "--times=%s", times));
    int status = run(a, s, runs, &w, NULL, NULL);
    s->loss = rows_series(a, variant_rows(a, s, runs), "step", "loss");
    s->times = times_read(a, times);
    return status;
}

int variant_watch(Arena *a, Variant *s, const Runs *runs, Wanted *wanted,
                  void *whose) {
    Words w = words_rows(a, s, runs, NULL);
    return run(a, s, runs, &w, wanted, whose);
}
