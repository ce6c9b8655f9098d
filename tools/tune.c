// sinter tune: a model is built, or a trainer is there, and the trainer
// measures on a GPU how its step is done fastest.
#include "base/exits.h"
#include "tools/compare/side.h"
#include "tools/process.h"

static int trainer_run(Arena *a, const Arguments *arguments, const Runs *runs,
                       const char *trainer) {
    Words w = {.a = a};
    words_add(&w, trainer);
    words_add(&w, "--tune");
    words_add(&w, "--quiet");
    words_add(&w, arena_format(a, "--device=%s", runs->device));
    words_add(&w, arena_format(a, "--data=%s", runs->data));
    words_add(&w, arena_format(a, "--out=%s/run", runs->folder));
    if (arguments->out != NULL)
        words_add(&w, arena_format(a, "--tuning=%s", arguments->out));
    int status = program_run(&w, ".", NULL, NULL);
    return status == NOT_STARTED ? trainer_not_started(arguments, trainer)
                                 : status;
}

// Whether the file of measurements may be written.
static bool tuning_takes(const Arguments *arguments, const Program *p,
                         int *status) {
    return !arguments->out || out_takes(arguments, p, arguments->out, status);
}

static int trainer_tune(Arena *a, const Arguments *arguments) {
    Runs runs;
    int status;
    if (!trainer_takes(arguments))
        return EXIT_USAGE;
    if (!tuning_takes(arguments, NULL, &status))
        return status;
    if (!runs_open(a, arguments, 0, &runs))
        return EXIT_IO;
    status = trainer_run(a, arguments, &runs,
                         trainer_path(a, arguments->operand[0]));
    runs_close(&runs);
    return status;
}

static int model_tune(Arena *a, const Arguments *arguments) {
    int status;
    Runs runs;
    TrainerText t;
    const Program *p = trainer_load(a, arguments, &t, &status);
    if (!p || !tuning_takes(arguments, p, &status))
        return status;
    if (!runs_open(a, arguments, p->recipe.batch, &runs))
        return EXIT_IO;
    const char *trainer = arena_format(a, "%s/trainer", runs.folder);
    status = trainer_build(a, arguments, &t, trainer);
    if (status == EXIT_GOOD)
        status = trainer_run(a, arguments, &runs, trainer);
    runs_close(&runs);
    return status;
}

int tune_command(const Arguments *arguments) {
    Arena *a = arena_new();
    Arguments own = *arguments;
    if (own.device == NULL)
        own.device = "cuda:0";
    int status = trainer_is(own.operand[0]) ? trainer_tune(a, &own)
                                            : model_tune(a, &own);
    arena_free(a);
    return status;
}
