// Scratch: a folder or a file that is gone when a command ends, and when it is
// interrupted.
#define _XOPEN_SOURCE 700 // mkdtemp, nftw

#include "tools/scratch.h"

#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int remove_one(const char *path, const struct stat *about, int kind,
                      struct FTW *where) {
    (void)about, (void)kind, (void)where;
    return remove(path);
}

static void path_remove(const char *path) {
    enum { OPEN_FOLDERS = 8 };
    nftw(path, remove_one, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS);
}

// What is in it may be gigabytes, which must not stay where a command is
// interrupted.  So a process waits until nobody has the other end of its pipe
// any more: neither this program nor those that it runs, which are given it and
// may still write.
static pid_t path_guard(const char *path, int *end) {
    int ends[2];
    char none;
    if (pipe(ends) != 0)
        return -1;
    pid_t guard = fork();
    if (guard < 0)
        close(ends[1]);
    if (guard == 0) {
        close(ends[1]);
        signal(SIGINT, SIG_IGN);
        signal(SIGTERM, SIG_IGN);
        signal(SIGHUP, SIG_IGN);
        signal(SIGQUIT, SIG_IGN);
        while (read(ends[0], &none, 1) < 0 && errno == EINTR)
            ;
        path_remove(path);
        _exit(0);
    }
    close(ends[0]);
    *end = ends[1];
    return guard;
}

bool scratch_open(Arena *a, const Arguments *arguments, Scratch *out) {
    const char *temporary = getenv("TMPDIR");
    char *folder = arena_format(a, "%s/sinter-XXXXXX",
                                temporary && *temporary ? temporary : "/tmp");
    if (!mkdtemp(folder)) {
        complain(arguments, "%s: %s", folder, strerror(errno));
        return false;
    }
    scratch_file(folder, out);
    return true;
}

void scratch_file(const char *path, Scratch *out) {
    out->path = path;
    out->guard = path_guard(path, &out->end);
}

void scratch_close(const Scratch *s) {
    path_remove(s->path);
    scratch_keep(s);
}

// The guard would wait for a server that a compiler has started, as caches do.
void scratch_keep(const Scratch *s) {
    if (s->guard < 0)
        return;
    kill(s->guard, SIGKILL);
    close(s->end);
    while (waitpid(s->guard, NULL, 0) < 0 && errno == EINTR)
        ;
}
