// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shelf: the checkpoints of a run, in the folder of its results.
//
// A checkpoint is step-00001234.safetensors.  It is written under a name that
// no one looks for, made durable, and renamed; only then are older ones
// dropped. A new run in the folder of an old one does not mix with it: when its
// first checkpoint is ready, what lies there beyond the step it began at is
// renamed to previous-..., which is looked at only when nothing else is left.
#define _POSIX_C_SOURCE 200809L

#include "runtime/checkpoint/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define OURS "step-"
#define THEIRS "previous-"
#define HIDDEN ".step-"
#define END ".safetensors"
#define PARTIAL ".partial"

typedef struct {
    int64_t *step; // newest first
    size_t count;
} Steps;

// The step in a name between `start` and `ending`; -1 if the name is another.
static int64_t step_in(const char *name, const char *start,
                       const char *ending) {
    if (strncmp(name, start, strlen(start)) != 0)
        return -1;
    const char *digits = name + strlen(start);
    char *end;
    if (*digits < '0' || *digits > '9' || strlen(digits) > 40)
        return -1;
    errno = 0;
    int64_t step = strtoll(digits, &end, 10);
    return errno == 0 && strcmp(end, ending) == 0 ? step : -1;
}

static char *name_of(const RtShelf *s, const char *start, int64_t step) {
    return rt_path("%s/%s%08" PRId64 END, s->folder, start, step);
}

static char *partial_name(const RtShelf *s, int64_t step) {
    return rt_path("%s/" HIDDEN "%08" PRId64 PARTIAL, s->folder, step);
}

static int downwards(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x > y ? -1 : x < y;
}

// The checkpoints whose names begin with `start`.
static Steps list(const RtShelf *s, const char *start) {
    Steps found = {0};
    size_t room = 0;
    DIR *folder = opendir(s->folder);
    for (struct dirent *f; folder != NULL && (f = readdir(folder)) != NULL;) {
        int64_t step = step_in(f->d_name, start, END);
        if (step < 0)
            continue;
        if (found.count == room) {
            room = room == 0 ? 16 : 2 * room;
            int64_t *more = realloc(found.step, room * sizeof *more);
            if (more == NULL)
                break;
            found.step = more;
        }
        found.step[found.count++] = step;
    }
    if (folder != NULL)
        closedir(folder);
    if (found.count > 1)
        qsort(found.step, found.count, sizeof *found.step, downwards);
    return found;
}

// ---- other trainers, other runs ----

// `sinter runs` locks a folder for a moment, to see whether a trainer has.
static bool is_taken(int folder) {
    const struct timespec shortly = {.tv_nsec = 10000000};
    for (int tries = 0; tries < 10; tries++) {
        if (flock(folder, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
            return false;
        nanosleep(&shortly, NULL);
    }
    return true;
}

bool rt_shelf_claim(RtShelf *s, RtError *e) {
    s->claim = s->files->open(s->folder, O_RDONLY | O_DIRECTORY, 0);
    if (s->claim < 0 || !is_taken(s->claim))
        return true;
    return rt_fail(e, EXIT_DATA,
                   "another trainer writes its checkpoints to %s; --out "
                   "names another folder",
                   s->folder);
}

void rt_shelf_release(RtShelf *s) {
    if (s->claim >= 0)
        s->files->close(s->claim);
    s->claim = -1;
}

// The folder may have been removed, renamed or made again since it was claimed;
// what is in another one is not this run's.
static bool claim_again(RtShelf *s, RtError *e) {
    struct stat held, there;
    RtShelf again = *s;
    if (s->claim < 0 || fstat(s->claim, &held) != 0)
        return true;
    if (stat(s->folder, &there) != 0)
        return rt_fail(e, EXIT_IO, "%s is gone: %s", s->folder,
                       strerror(errno));
    if (there.st_dev == held.st_dev && there.st_ino == held.st_ino)
        return true;
    if (!rt_shelf_claim(&again, e)) {
        rt_shelf_release(&again);
        e->status = EXIT_IO; // it may be free later
        return false;
    }
    if (again.claim < 0) // the lock of the other folder is kept meanwhile
        return rt_fail(e, EXIT_IO, "cannot open %s: %s", s->folder,
                       strerror(errno));
    rt_shelf_release(s);
    *s = again;
    s->from = -1;
    s->set_aside = false;
    rt_warn("%s is another folder than the run began with; its checkpoints go "
            "there from now on",
            s->folder);
    return true;
}

int64_t rt_shelf_others(const RtShelf *s, bool *drops) {
    Steps ours = list(s, OURS), theirs = list(s, THEIRS);
    int64_t newest = ours.count > 0 ? ours.step[0] : -1;
    *drops = theirs.count > 0;
    free(ours.step);
    free(theirs.step);
    return newest > s->from ? newest : -1;
}

char *rt_shelf_path(const RtShelf *s, int64_t step) {
    return name_of(s, OURS, step);
}

static char *newest_of(const RtShelf *s, const char *start) {
    Steps found = list(s, start);
    char *path = found.count > 0 ? name_of(s, start, found.step[0]) : NULL;
    free(found.step);
    return path;
}

char *rt_shelf_newest(const char *folder) {
    const RtShelf s = {.folder = folder};
    char *path = newest_of(&s, OURS);
    return path != NULL ? path : newest_of(&s, THEIRS);
}

bool rt_shelf_has(const RtShelf *s, int64_t step) {
    char *path = name_of(s, OURS, step);
    bool has = path != NULL && access(path, R_OK) == 0;
    free(path);
    return has;
}

void rt_shelf_sweep(const RtShelf *s) {
    DIR *folder = opendir(s->folder);
    for (struct dirent *f; folder != NULL && (f = readdir(folder)) != NULL;) {
        char *path = step_in(f->d_name, HIDDEN, PARTIAL) < 0
                         ? NULL
                         : rt_path("%s/%s", s->folder, f->d_name);
        if (path != NULL)
            s->files->unlink(path);
        free(path);
    }
    if (folder != NULL)
        closedir(folder);
}

// ---- saving ----

// A rename is durable when its folder is.
static bool sync_folder(const RtShelf *s) {
    int fd = s->files->open(s->folder, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0)
        return false;
    bool good = s->files->sync(fd) == 0;
    return s->files->close(fd) == 0 && good;
}

static void drop(const RtShelf *s, const char *start, int64_t step) {
    char *path = name_of(s, start, step);
    if (path != NULL)
        s->files->unlink(path);
    free(path);
}

// Renames the checkpoints of another run, the newest last so that it is found
// until the end, and drops those of the run before that one.
static bool set_aside(RtShelf *s) {
    Steps ours = list(s, OURS), theirs = {0};
    bool good = true, any = ours.count > 0 && ours.step[0] > s->from;
    if (any)
        theirs = list(s, THEIRS);
    for (size_t i = ours.count; i-- > 0 && good;) {
        if (ours.step[i] <= s->from)
            continue;
        char *from = name_of(s, OURS, ours.step[i]);
        char *to = name_of(s, THEIRS, ours.step[i]);
        good = from != NULL && to != NULL && s->files->rename(from, to) == 0;
        free(from);
        free(to);
    }
    for (size_t i = 0; i < theirs.count && good; i++) {
        bool replaced = false;
        for (size_t k = 0; k < ours.count; k++)
            replaced = replaced || ours.step[k] == theirs.step[i];
        if (!replaced)
            drop(s, THEIRS, theirs.step[i]);
    }
    free(ours.step);
    free(theirs.step);
    s->set_aside = good;
    return good;
}

static void drop_old(const RtShelf *s) {
    Steps ours = list(s, OURS);
    for (size_t i = (size_t)s->keep; i < ours.count; i++)
        drop(s, OURS, ours.step[i]);
    free(ours.step);
}

static bool put_in_place(RtShelf *s, const char *partial, const char *path,
                         RtError *e) {
    if ((s->set_aside || set_aside(s)) &&
        s->files->rename(partial, path) == 0) {
        if (sync_folder(s))
            return true;
        return rt_fail(e, EXIT_IO, "cannot make %s durable: %s", path,
                       strerror(errno));
    }
    rt_fail(e, EXIT_IO, "cannot rename %s: %s", partial, strerror(errno));
    s->files->unlink(partial);
    return false;
}

bool rt_shelf_save(RtShelf *s, RtCheckpoint *c, const RtProgress *p,
                   RtError *e) {
    char *path = name_of(s, OURS, p->step);
    char *partial = partial_name(s, p->step);
    bool good = path != NULL && partial != NULL;
    if (!good)
        rt_fail(e, EXIT_IO, "out of memory"); // tried again, as a disk is
    good = good && claim_again(s, e) && rt_checkpoint_write(c, partial, p, e) &&
           put_in_place(s, partial, path, e);
    if (good)
        drop_old(s);
    free(path);
    free(partial);
    return good;
}

// ---- loading ----

// *e has what is wrong with the newest that is not whole.
static RtLoad load_newest(const RtShelf *s, const char *start, RtCheckpoint *c,
                          RtProgress *p, char **path, RtError *e) {
    Steps steps = list(s, start);
    RtLoad load = RT_BROKEN;
    for (size_t i = 0; i < steps.count && load == RT_BROKEN; i++) {
        RtError why = {0};
        free(*path);
        *path = name_of(s, start, steps.step[i]);
        if (*path == NULL)
            break;
        load = rt_checkpoint_read(c, *path, p, &why);
        if (load == RT_GOOD && p->step != steps.step[i]) {
            rt_fail(&why, EXIT_DATA,
                    "%s is of step %" PRId64 ", which its name contradicts",
                    *path, p->step);
            load = RT_BROKEN;
        }
        if (load == RT_BROKEN)
            rt_warn("%s; trying the one before", why.text);
        if (load == RT_OTHER_RUN || e->status == EXIT_GOOD)
            *e = why;
    }
    free(steps.step);
    return load;
}

bool rt_shelf_load(const RtShelf *s, RtCheckpoint *c, RtProgress *p,
                   char **path, RtError *e) {
    RtError why = {EXIT_GOOD, ""};
    *path = NULL;
    RtLoad load = load_newest(s, OURS, c, p, path, &why);
    if (load == RT_BROKEN)
        load = load_newest(s, THEIRS, c, p, path, &why);
    if (load == RT_GOOD)
        return true;
    *e = why;
    if (load == RT_OTHER_RUN)
        return false;
    if (access(s->folder, R_OK | X_OK) != 0)
        return rt_fail(e, EXIT_DATA, "no checkpoint can be read in %s: %s",
                       s->folder, strerror(errno));
    return rt_fail(e, why.status != EXIT_GOOD ? why.status : EXIT_DATA,
                   "no whole checkpoint in %s", s->folder);
}
