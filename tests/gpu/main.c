// The kernels on a GPU: every awkward network, and every model made narrow,
// with activations in f32 and in f16, against the meaning of its graph.
//
//   gpu [--jobs=N] [--limit=N] [--multiprocessors=N] [PART]
//
// runs those whose name has PART in it, planned for so many multiprocessors.
// A case that takes longer than the limit, in seconds, has failed: where one
// kernel hangs others may, and would keep the rest from being tried.
// Each case is a process of its own, which says how it ends.  The last line
// counts them; status 77: there is no GPU.
#define _GNU_SOURCE
#include "tests/codegen/cases.h"

#include "runtime/cuda/driver/driver.h"
#include "runtime/rt.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NO_GPU = 77 };

// The emitted library finds the runtime in this program.
static void *const runtime[] __attribute__((used)) = {
    (void *)rt_main, (void *)rt_phase, (void *)rt_launch, (void *)rt_contract};

enum { MAX_JOBS = 256 };

// A case that runs.
typedef struct {
    pid_t process; // 0: none
    const char *name;
} Job;

typedef struct {
    const char *part; // of the names to run; NULL: all
    int jobs, running, passed, failed;
    unsigned limit; // seconds; 0: none
    Job job[MAX_JOBS];
} Session;

static Job *job_of(Session *s, pid_t process) {
    for (int i = 0; i < MAX_JOBS; i++)
        if (s->job[i].process == process)
            return &s->job[i];
    return NULL;
}

// A case that did not come to its end has not said so.
static void wait_for_one(Session *s) {
    int status;
    pid_t child = wait(&status);
    Job *job = child > 0 ? job_of(s, child) : NULL;
    if (job == NULL)
        return;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        printf("FAILED: %s\ntook longer than %u s\n", job->name, s->limit);
    else if (WIFSIGNALED(status))
        printf("FAILED: %s\nended by signal %d\n", job->name, WTERMSIG(status));
    else if (WEXITSTATUS(status) > EXIT_FAILURE)
        printf("FAILED: %s\nended with status %d\n", job->name,
               WEXITSTATUS(status));
    s->running--;
    if (status == 0)
        s->passed++;
    else
        s->failed++;
    *job = (Job){0};
}

static _Noreturn void judge(Arena *a, const char *name, const Case *c) {
    const char *why = agree(a, c);
    if (why == NULL)
        printf("agrees: %s\n", name);
    else
        printf("FAILED: %s\n%s\n", name, why);
    fflush(stdout);
    _exit(why == NULL ? EXIT_SUCCESS : EXIT_FAILURE);
}

static void start(Session *s, Arena *a, const char *name, Case c) {
    if (s->part != NULL && strstr(name, s->part) == NULL)
        return;
    while (s->running >= s->jobs)
        wait_for_one(s);
    c.how = ON_GPU;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(s->limit);
        judge(a, name, &c);
    }
    if (child < 0) {
        printf("FAILED: %s\ncannot start a process\n", name);
        s->failed++;
        return;
    }
    *job_of(s, 0) = (Job){child, name};
    s->running++;
}

static void run_all(Session *s, Arena *a) {
    for (int i = 0; i < agree_num_cases; i++)
        start(s, a, agree_cases[i].name, agree_cases[i].test);
    for (int i = 0; i < num_narrow_models; i++) {
        const Narrow *model = &narrow_models[i];
        Case c = narrow_case(a, model);
        start(s, a, arena_format(a, "%s in f32", model->name), c);
        c.storage = F16;
        start(s, a, arena_format(a, "%s in f16", model->name), c);
    }
    while (s->running > 0)
        wait_for_one(s);
}

// Once a process has started the driver, its children cannot: a child looks.
static bool has_gpu(void) {
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(rt_driver_gpus() > 0 ? EXIT_SUCCESS : EXIT_FAILURE);
    return child > 0 && waitpid(child, &status, 0) == child &&
           WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
}

int main(int argc, char **argv) {
    Session s = {.jobs = (int)sysconf(_SC_NPROCESSORS_ONLN)};
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], "--jobs=", 7) == 0)
            s.jobs = atoi(argv[i] + 7);
        else if (strncmp(argv[i], "--limit=", 8) == 0)
            s.limit = (unsigned)atoi(argv[i] + 8);
        else if (strncmp(argv[i], "--multiprocessors=", 18) == 0)
            agree_multiprocessors = atoi(argv[i] + 18);
        else
            s.part = argv[i];
    s.jobs = s.jobs < 1 ? 1 : s.jobs < MAX_JOBS ? s.jobs : MAX_JOBS;
    if (!has_gpu()) {
        puts("there is no GPU");
        return NO_GPU;
    }
    Arena *a = arena_new();
    run_all(&s, a);
    printf("%d passed, %d failed\n", s.passed, s.failed);
    if (s.passed + s.failed == 0)
        printf("no case has %s in its name\n", s.part);
    arena_free(a);
    return s.failed || !s.passed ? EXIT_FAILURE : EXIT_SUCCESS;
}
