// Scratch: a folder or a file that is removed when a command ends or is
// interrupted.
#define _GNU_SOURCE // mkdtemp, mkstemps, nftw

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

void folder_remove(const char *path) {
    enum { OPEN_FOLDERS = 8 };
    nftw(path, remove_one, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS);
}

// Never removes a folder in the place of a file: it is not this command's.
static void scratch_remove(const Scratch *s) {
    if (s->is_folder)
        folder_remove(s->path);
    else
        unlink(s->path);
}

// An interrupted command must not leave gigabytes.  So a guard process waits
// until the other end of its pipe is closed in this program and in all its
// children, which inherit it and may still write.
static void scratch_guard(Scratch *s) {
    int ends[2];
    char none;
    s->guard = -1;
    if (pipe(ends) != 0)
        return;
    s->guard = fork();
    if (s->guard < 0)
        close(ends[1]);
    if (s->guard == 0) {
        close(ends[1]);
        signal(SIGINT, SIG_IGN);
        signal(SIGTERM, SIG_IGN);
        signal(SIGHUP, SIG_IGN);
        signal(SIGQUIT, SIG_IGN);
        while (read(ends[0], &none, 1) < 0 && errno == EINTR)
            ;
        scratch_remove(s);
        _exit(0);
    }
    close(ends[0]);
    s->end = ends[1];
}

bool scratch_open(Arena *a, const Arguments *arguments, Scratch *out) {
    const char *temporary = getenv("TMPDIR");
    char *folder = arena_format(a, "%s/sinter-XXXXXX",
                                temporary && *temporary ? temporary : "/tmp");
    if (!mkdtemp(folder)) {
        complain(arguments, "%s: %s", folder, strerror(errno));
        return false;
    }
    *out = (Scratch){.path = folder, .is_folder = true};
    scratch_guard(out);
    return true;
}

// The name is unique: a guard may outlive its command, and must not remove the
// next one's file.
bool scratch_file(Arena *a, const Arguments *arguments, const char *beside,
                  const char *end, Scratch *out) {
    const char *slash = strrchr(beside, '/');
    char *path = arena_format(a, "%.*s.%s.XXXXXX%s",
                              slash ? (int)(slash + 1 - beside) : 0, beside,
                              stem_of(a, beside), end);
    int file = mkstemps(path, (int)strlen(end));
    if (file < 0) {
        complain(arguments, "cannot create a file beside %s: %s", beside,
                 strerror(errno));
        return false;
    }
    close(file);
    *out = (Scratch){.path = path};
    scratch_guard(out);
    return true;
}

void scratch_close(const Scratch *s) {
    scratch_remove(s);
    scratch_keep(s);
}

// Ends the guard, which would else wait for servers that a compiler has
// started, as caches do.
void scratch_keep(const Scratch *s) {
    if (s->guard < 0)
        return;
    kill(s->guard, SIGKILL);
    close(s->end);
    while (waitpid(s->guard, NULL, 0) < 0 && errno == EINTR)
        ;
}
