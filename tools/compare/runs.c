// Runs: where trainers that are measured or compared leave what they leave.
#define _XOPEN_SOURCE 700 // mkdtemp, nftw

#include "tools/compare/side.h"

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// Batches of synthetic data.
enum { STEPS = 10, MOST_STEPS = 1000000, BATCHES = 32 };

static int remove_one(const char *path, const struct stat *about, int kind,
                      struct FTW *where) {
    (void)about, (void)kind, (void)where;
    return remove(path);
}

static void folder_remove(const char *folder) {
    enum { OPEN_FOLDERS = 8 };
    nftw(folder, remove_one, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS);
}

// What runs leave is gigabytes, which must not stay where a comparison is
// interrupted.  So a process waits until nobody has the other end of its pipe
// any more: neither this program nor the trainers, which are given it and may
// still write.
static pid_t folder_guard(const char *folder, int *end) {
    int ends[2];
    char none;
    if (pipe(ends) != 0)
        return -1;
    pid_t guard = fork();
    if (guard == 0) {
        close(ends[1]);
        signal(SIGINT, SIG_IGN);
        signal(SIGTERM, SIG_IGN);
        signal(SIGHUP, SIG_IGN);
        while (read(ends[0], &none, 1) < 0 && errno == EINTR)
            ;
        folder_remove(folder);
        _exit(0);
    }
    close(ends[0]);
    *end = ends[1];
    return guard;
}

bool runs_possible(const Arguments *arguments) {
    const Count *steps = &arguments->steps;
    if (!steps->given || (steps->value >= 1 && steps->value <= MOST_STEPS))
        return true;
    complain(arguments, "--steps needs a number from 1 to %d", MOST_STEPS);
    return false;
}

bool runs_open(Arena *a, const Arguments *arguments, int64_t batch, Runs *out) {
    const char *temporary = getenv("TMPDIR");
    char *folder = arena_format(a, "%s/sinter-XXXXXX",
                                temporary && *temporary ? temporary : "/tmp");
    int64_t samples;
    if (!mkdtemp(folder)) {
        complain(arguments, "%s: %s", folder, strerror(errno));
        return false;
    }
    if (__builtin_mul_overflow(batch, BATCHES, &samples))
        samples = INT32_MAX;
    bool random =
        arguments->data == NULL || strcmp(arguments->data, "random") == 0;
    *out = (Runs){
        .folder = folder,
        .data = random ? arena_format(a, "synthetic:%" PRId64, samples)
                       : arguments->data,
        .device = arguments->device ? arguments->device : "host",
        .steps = arguments->steps.given ? arguments->steps.value : STEPS,
        .batch = batch,
    };
    out->guard = folder_guard(folder, &out->end);
    return true;
}

void runs_close(const Runs *runs) {
    folder_remove(runs->folder);
    if (runs->guard < 0)
        return;
    close(runs->end);
    while (waitpid(runs->guard, NULL, 0) < 0 && errno == EINTR)
        ;
}
