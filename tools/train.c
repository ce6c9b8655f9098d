// sinter train: builds the trainer of a model, unless the cache has it, and
// becomes it: signals, output and exit status are the trainer's.
#define _POSIX_C_SOURCE 200809L // execv

#include "base/exits.h"
#include "runtime/runtime.h"
#include "tools/embed.h"
#include "tools/scratch.h"
#include "tools/tools.h"
#include "tools/trainer.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// The trainer's command line.  execv takes char *, though it changes none.
static char **trainer_words(Arena *a, const Arguments *arguments,
                            const char *trainer) {
    size_t count = (size_t)arguments->num_passed;
    char **word = ARENA_ARRAY(a, count + 2, char *);
    word[0] = arena_string(a, trainer, strlen(trainer));
    memcpy(word + 1, arguments->passed, count * sizeof *word);
    return word;
}

static int trainer_become(Arena *a, const Arguments *arguments,
                          const char *trainer) {
    fflush(NULL);
    signal(SIGXFSZ, SIG_DFL);
    execv(trainer, trainer_words(a, arguments, trainer));
    return trainer_end_report(arguments, trainer, -1);
}

// Whether the trainer reads no data set: it prints about itself, or has its
// inputs on the command line.
static bool needs_no_data(const RtOptions *o) {
    return o->help || o->version || o->list_kernels || o->print_plan ||
           o->dump_cuda != NULL || o->predict != NULL || o->generate != NULL;
}

// Prints one line, which begins before the C compiler and ends after it.  Only
// the user may write to a cached program, whatever the umask.
static int build_report(Arena *a, const Arguments *arguments,
                        const TrainerText *t, const RtOptions *o,
                        const char *path) {
    double began = rt_seconds();
    if (!o->quiet)
        line_begin(arena_format(a, "sinter: building %s ... ", t->name));
    mode_t before = umask(077);
    int status = trainer_build(a, arguments, t, path);
    umask(before);
    if (status == EXIT_GOOD && !o->quiet)
        fprintf(stderr, "%.1f s", rt_seconds() - began);
    line_end();
    return status;
}

// Without a cache, the trainer is in a scratch folder, which its guard removes.
static const char *path_aside(Arena *a, const Arguments *arguments,
                              const TrainerText *t) {
    Scratch scratch;
    return scratch_open(a, arguments, &scratch)
               ? arena_format(a, "%s/%s", scratch.path, t->name)
               : NULL;
}

static int trainer_make(Arena *a, const Arguments *arguments, const Program *p,
                        const TrainerText *t, const RtOptions *o,
                        const char *path) {
    int status = inputs_files_check(arguments, o);
    if (status == EXIT_GOOD && !needs_no_data(o))
        status = inputs_check(arguments, p, o);
    return status == EXIT_GOOD ? build_report(a, arguments, t, o, path)
                               : status;
}

// Returns the path of the trainer, built if the cache does not have it; NULL
// and an exit status if that fails.
static const char *trainer_get(Arena *a, const Arguments *arguments,
                               const Program *p, const TrainerText *t,
                               const RtOptions *o, int *status) {
    const char *path = trainer_cache_path(a, arguments, t);
    if (path != NULL && trainer_cache_has(path)) {
        if (!o->quiet)
            fprintf(stderr, "sinter: %s is up to date\n", t->name);
        return path;
    }
    const char *out = path != NULL ? path : path_aside(a, arguments, t);
    *status = EXIT_IO;
    if (out != NULL)
        *status = trainer_make(a, arguments, p, t, o, out);
    if (*status == EXIT_GOOD && path != NULL)
        trainer_cache_trim(a, path);
    return *status == EXIT_GOOD ? out : NULL;
}

// Whether the trainer accepts its options.
static bool options_good(Arena *a, const Arguments *arguments, RtOptions *o,
                         int *status) {
    RtError e;
    if (rt_options_parse(o, arguments->num_passed + 1,
                         trainer_words(a, arguments, "trainer"), NULL, &e))
        return true;
    complain(arguments, "%s", e.text);
    *status = e.status;
    return false;
}

int train_command(Arena *a, const Arguments *given) {
    int status;
    RtOptions o;
    TrainerText t;
    Arguments copy = *given;
    const Arguments *arguments = &copy;
    if (!options_good(a, arguments, &o, &status))
        return status;
    copy.gradients = o.tensorboard != NULL;
    const Program *p = trainer_load(a, arguments, &t, &status);
    if (p == NULL ||
        (arguments->embed && (!embed_wanted(arguments, &status) ||
                              !embed_make(a, arguments, &t, &status))))
        return status;
    const char *trainer = trainer_get(a, arguments, p, &t, &o, &status);
    return trainer ? trainer_become(a, arguments, trainer) : status;
}
