// Batch: see batch.h.
#define _GNU_SOURCE
#include "tests/random/batch.h"

#include "tests/codegen/library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
    Arena *a;
    Mode mode;
    Counts *counts;
    const char *folder;
    int count;
    Trial **trial;
    const char **name;
} Batch;

static Batch batch_new(int most, Mode mode, Counts *counts) {
    Arena *a = arena_new();
    Batch b = {.a = a,
               .mode = mode,
               .counts = counts,
               .trial = ARENA_ARRAY(a, (size_t)most, Trial *),
               .name = ARENA_ARRAY(a, (size_t)most, const char *)};
    b.folder = library_folder(a);
    if (b.folder == NULL) {
        perror("a temporary folder");
        exit(EXIT_FAILURE);
    }
    return b;
}

static void batch_add(Batch *b, const Graph *g, const Setup *s) {
    b->counts->graphs += s->level != 0;
    b->counts->unfused += s->level == 0;
    b->counts->nodes += g->count;
    Setup here = *s;
    here.gpu = b->mode == MODE_GPU;
    here.faithful = b->mode == MODE_FAITHFUL;
    if (b->mode == MODE_TILED)
        setup_tile(&here);
    Trial *t = trial_new(b->a, g, &here);
    if (t == NULL) {
        b->counts->infinite++;
        return;
    }
    if (here.tiled && t->tiles == 0) {
        b->counts->untiled++;
        return;
    }
    const char *name = arena_format(b->a, "g%d", b->count);
    library_write(b->a, b->folder, name, t->program, t->plan);
    b->trial[b->count] = t;
    b->name[b->count++] = name;
}

static RtDevice *open_device(Batch *b, void *library, const char *name,
                             const RtPlan **plan, const char **why) {
    if (b->mode == MODE_GPU)
        return library_gpu(b->a, library, name, plan, why);
    *plan = library_plan(b->a, library, name);
    // In faithful mode blocks that run together could not be told apart.
    return host_open(*plan, b->mode == MODE_FAITHFUL || library_tiny() ? 1 : 2);
}

typedef const char *Judge(Trial *t, const RtPlan *rt, RtDevice *d,
                          Counts *counts);

static bool judge(Batch *b, void *library, int i, Judge *judges, bool quiet) {
    Trial *t = b->trial[i];
    const RtPlan *plan;
    const char *why = NULL;
    RtDevice *d = open_device(b, library, b->name[i], &plan, &why);
    if (b->mode == MODE_FAST)
        t->squares = library_squares(b->a, library, b->name[i]);
    if (d != NULL)
        why = judges(t, plan, d, b->counts);
    if (d != NULL)
        b->counts->tiled += plan->num_tiles;
    if (why == NULL)
        return true;
    size_t length = strlen(why);
    bool ends = length > 0 && why[length - 1] == '\n';
    if (!quiet)
        printf("seed %u, %s:\n%s%s", t->setup.seed, t->turn[t->now].name, why,
               ends ? "" : "\n");
    return false;
}

// Each step by itself, the first of which has its numbers already, and then
// some in a row.
static bool judge_turns(Batch *b, void *library, int i, bool quiet) {
    Trial *t = b->trial[i];
    bool good = judge(b, library, i, trial_judge, quiet);
    for (int turn = 1; turn < t->num_turns; turn++)
        if (trial_turn(t, turn))
            good &= judge(b, library, i, trial_judge, quiet);
    if (t->setup.row > 0)
        good &= judge(b, library, i, trial_row, quiet);
    b->counts->failed += !good;
    return good;
}

// Compiles what was added and runs it.
static BatchResult compile_and_judge(Batch *b, bool quiet) {
    const char *flags[] = {"-O0 -w", LIBRARY_RACES " -w", library_gpu_flags(),
                           "-O0 -w"};
    bool good = true;
    const char *why =
        library_compile(b->a, b->folder, b->count, b->name, flags[b->mode]);
    void *library = why ? NULL : library_open(b->a, b->folder, &why);
    if (library == NULL) {
        if (!quiet)
            printf("%s\n", why);
        return BATCH_UNCOMPILED;
    }
    for (int i = 0; i < b->count; i++)
        good &= judge_turns(b, library, i, quiet);
    return good ? BATCH_GOOD : BATCH_WRONG;
}

static BatchResult batch_run(Batch *b, bool quiet) {
    BatchResult result = b->count ? compile_and_judge(b, quiet) : BATCH_GOOD;
    library_remove(b->a, b->folder, b->count, b->name);
    return result;
}

// What a child process came to.
static BatchResult wait_for(pid_t child) {
    int status;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) > BATCH_DIED)
        return BATCH_DIED;
    return (BatchResult)WEXITSTATUS(status);
}

static _Noreturn void leave(BatchResult result) {
    fflush(stdout);
    _exit(result);
}

BatchResult batch_seeds(uint32_t first, int count, Mode mode, bool unfused,
                        Counts *counts) {
    fflush(stdout);
    pid_t child = fork();
    if (child != 0)
        return wait_for(child);
    Batch b = batch_new(2 * count, mode, counts);
    for (int i = 0; i < count; i++) {
        Setup s = setup_of(first + (uint32_t)i);
        Graph *g = setup_graph(b.a, &s);
        for (s.level = unfused || s.plain ? 0 : 1; s.level <= !unfused;
             s.level++)
            batch_add(&b, g, &s);
    }
    leave(batch_run(&b, false));
}

BatchResult batch_graph(const Graph *g, const Setup *s, Mode mode,
                        Counts *counts, bool quiet) {
    fflush(stdout);
    pid_t child = fork();
    if (child != 0)
        return wait_for(child);
    if (quiet)
        freopen("/dev/null", "w", stderr);
    Batch b = batch_new(1, mode, counts);
    batch_add(&b, g, s);
    leave(batch_run(&b, quiet));
}
