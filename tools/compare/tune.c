// sinter tune: builds a model, or takes a trainer, and lets the trainer measure
// the fastest candidates of a step on a GPU.
#include "base/exits.h"
#include "base/source.h"
#include "tools/compare/variant.h"
#include "tools/process.h"

#include <string.h>

enum { TABLE_BYTES = 64 << 20 };

// Passes on the trainer's output, whose last line is the path of the tuning.
static int table_pass(Arena *a, const Arguments *arguments, const char *trainer,
                      const char *path) {
    const char *why;
    const Source *said = source_read(a, path, TABLE_BYTES, &why);
    if (said == NULL) {
        file_report(a, arguments, path, why);
        return EXIT_IO;
    }
    fputs(said->text, stdout);
    if (strstr(said->text, "; written to ") != NULL)
        return EXIT_GOOD;
    complain(
        arguments,
        "%s is not a trainer: it exited with status 0 but reported no tuning",
        trainer);
    return EXIT_USAGE;
}

static int trainer_run(Arena *a, const Arguments *arguments, const Runs *runs,
                       const char *trainer) {
    Words w = {.a = a};
    words_add(&w, trainer);
    words_add(&w, "--tune");
    words_add(&w, "--quiet");
    words_add(&w, arena_format(a, "--device=%s", runs->device));
    words_add(&w, arena_format(a, "--data=%s", runs->data));
    if (arguments->out != NULL)
        words_add(&w, arena_format(a, "--tuning=%s", arguments->out));
    const char *said = arena_format(a, "%s/said", runs->folder);
    int status = program_run(&w, ".", said, NULL);
    return status == EXIT_GOOD ? table_pass(a, arguments, trainer, said)
                               : trainer_end_report(arguments, trainer, status);
}

// Builds the model, unless p is NULL, and runs the trainer.
static int trainer_tune(Arena *a, const Arguments *arguments, const Program *p,
                        const TrainerText *t) {
    Runs runs;
    int status;
    if (arguments->out && !output_check(arguments, p, arguments->out, &status))
        return status;
    if (!runs_open(a, arguments, p ? recipe_batch(&p->recipe) : 0, &runs))
        return EXIT_IO;
    const char *trainer = p ? arena_format(a, "%s/trainer", runs.folder)
                            : trainer_file_path(a, arguments->operand[0]);
    status =
        p ? inputs_named_check(a, arguments, p, runs.device, runs.data, NULL)
          : EXIT_GOOD;
    if (status == EXIT_GOOD && p)
        status = trainer_build(a, arguments, t, trainer);
    if (status == EXIT_GOOD)
        status = trainer_run(a, arguments, &runs, trainer);
    runs_close(&runs);
    return status;
}

static int tune(Arena *a, const Arguments *arguments) {
    int status;
    TrainerText t;
    if (trainer_file_is(arguments->operand[0]))
        return trainer_file_suits(arguments)
                   ? trainer_tune(a, arguments, NULL, NULL)
                   : EXIT_USAGE;
    const Program *p = trainer_load(a, arguments, &t, &status);
    return p ? trainer_tune(a, arguments, p, &t) : status;
}

int tune_command(Arena *a, const Arguments *arguments) {
    Arguments copy = *arguments;
    if (copy.device == NULL)
        copy.device = "cuda:0";
    return tune(a, &copy);
}
