// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Retention: the checkpoints of a run in its folder.
//
// A checkpoint is step-00001234.safetensors.  It is written under another name,
// made durable and renamed; only then are older ones removed.  A new run in the
// folder of an old one does not mix with it: when its first checkpoint is
// ready, those of the old run beyond its first step are renamed to
// previous-..., which are loaded only if nothing else is left.  The checkpoints
// of `checkpoint best` are named best-... and previous-best-..., and only
// options that name a file load them.
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

#define CURRENT "step-"
#define PREVIOUS "previous-"
#define BEST "best-"
#define PREVIOUS_BEST "previous-best-"
#define PARTIAL_START ".step-"
#define END ".safetensors"
#define PARTIAL_END ".partial"

typedef struct {
    int64_t *step; // newest first
    size_t count;
} Steps;

// The step in a name between `start` and `ending`; -1: another name.
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

static char *name_of(const RtRetention *r, const char *start, int64_t step) {
    return rt_path("%s/%s%08" PRId64 END, r->folder, start, step);
}

static char *partial_name(const RtRetention *r, int64_t step) {
    return rt_path("%s/" PARTIAL_START "%08" PRId64 PARTIAL_END, r->folder,
                   step);
}

static const char *current_of(const RtRetention *r) {
    return r->by_metric ? BEST : CURRENT;
}

static const char *previous_of(const RtRetention *r) {
    return r->by_metric ? PREVIOUS_BEST : PREVIOUS;
}

static int newest_first(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x > y ? -1 : x < y;
}

// The steps of checkpoints whose names begin with `start`.
static Steps list(const RtRetention *r, const char *start) {
    Steps found = {0};
    size_t room = 0;
    DIR *folder = opendir(r->folder);
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
        qsort(found.step, found.count, sizeof *found.step, newest_first);
    return found;
}

// ---- other trainers, other runs ----

// `sinter runs` locks a folder for a moment, to test whether a trainer runs.
static bool is_locked(int folder) {
    const struct timespec shortly = {.tv_nsec = 10000000};
    for (int tries = 0; tries < 10; tries++) {
        if (flock(folder, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
            return false;
        nanosleep(&shortly, NULL);
    }
    return true;
}

bool rt_retention_lock(RtRetention *r, RtError *e) {
    r->lock = r->files->open(r->folder, O_RDONLY | O_DIRECTORY, 0);
    if (r->lock < 0 || !is_locked(r->lock))
        return true;
    return rt_fail(e, EXIT_DATA,
                   "another trainer writes its checkpoints to %s; --out "
                   "names another folder",
                   r->folder);
}

bool rt_retention_holds(const RtRetention *r) {
    struct stat locked, there;
    return r->lock < 0 || fstat(r->lock, &locked) != 0 ||
           (stat(r->folder, &there) == 0 && there.st_dev == locked.st_dev &&
            there.st_ino == locked.st_ino);
}

void rt_retention_unlock(RtRetention *r) {
    if (r->lock >= 0)
        r->files->close(r->lock);
    r->lock = -1;
}

// The folder may have been removed, renamed or recreated since it was locked;
// checkpoints in another folder are not this run's.
static bool lock_again(RtRetention *r, RtError *e) {
    struct stat locked, there;
    RtRetention again = *r;
    if (r->lock < 0 || fstat(r->lock, &locked) != 0)
        return true;
    if (stat(r->folder, &there) != 0)
        return rt_fail(e, EXIT_IO, "%s is gone: %s", r->folder,
                       strerror(errno));
    if (there.st_dev == locked.st_dev && there.st_ino == locked.st_ino)
        return true;
    if (!rt_retention_lock(&again, e)) {
        rt_retention_unlock(&again);
        e->status = EXIT_IO; // it may be free later
        return false;
    }
    if (again.lock < 0) // the lock of the old folder is kept meanwhile
        return rt_fail(e, EXIT_IO, "cannot open %s: %s", r->folder,
                       strerror(errno));
    rt_retention_unlock(r);
    *r = again;
    r->from = -1;
    r->set_aside = false;
    rt_warn("%s is another folder than the run began with; its checkpoints go "
            "there from now on",
            r->folder);
    return true;
}

int64_t rt_retention_superseded(const RtRetention *r, bool *removes) {
    Steps current = list(r, current_of(r)), previous = list(r, previous_of(r));
    int64_t newest = current.count > 0 ? current.step[0] : -1;
    *removes = previous.count > 0;
    free(current.step);
    free(previous.step);
    return newest > r->from ? newest : -1;
}

char *rt_retention_path(const RtRetention *r, int64_t step) {
    return name_of(r, current_of(r), step);
}

static char *newest_of(const RtRetention *r, const char *start) {
    Steps found = list(r, start);
    char *path = found.count > 0 ? name_of(r, start, found.step[0]) : NULL;
    free(found.step);
    return path;
}

char *rt_retention_newest(const char *folder) {
    const RtRetention r = {.folder = folder};
    char *path = newest_of(&r, CURRENT);
    return path != NULL ? path : newest_of(&r, PREVIOUS);
}

bool rt_retention_has(const RtRetention *r, int64_t step) {
    char *path = name_of(r, current_of(r), step);
    bool has = path != NULL && access(path, R_OK) == 0;
    free(path);
    return has;
}

void rt_retention_remove_partial(const RtRetention *r) {
    DIR *folder = opendir(r->folder);
    for (struct dirent *f; folder != NULL && (f = readdir(folder)) != NULL;) {
        char *path = step_in(f->d_name, PARTIAL_START, PARTIAL_END) < 0
                         ? NULL
                         : rt_path("%s/%s", r->folder, f->d_name);
        if (path != NULL)
            r->files->unlink(path);
        free(path);
    }
    if (folder != NULL)
        closedir(folder);
}

// ---- saving ----

// A rename is durable once its folder is.
static bool sync_folder(const RtRetention *r) {
    int fd = r->files->open(r->folder, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0)
        return false;
    bool good = r->files->sync(fd) == 0;
    return r->files->close(fd) == 0 && good;
}

static void remove_step(const RtRetention *r, const char *start, int64_t step) {
    char *path = name_of(r, start, step);
    if (path != NULL)
        r->files->unlink(path);
    free(path);
}

// Renames the checkpoints of another run, the newest last so that it is found
// until the end, and removes those of an earlier run.
static bool set_aside(RtRetention *r) {
    Steps current = list(r, current_of(r)), previous = {0};
    bool good = true, any = current.count > 0 && current.step[0] > r->from;
    if (any)
        previous = list(r, previous_of(r));
    for (size_t i = current.count; i-- > 0 && good;) {
        if (current.step[i] <= r->from)
            continue;
        char *from = name_of(r, current_of(r), current.step[i]);
        char *to = name_of(r, previous_of(r), current.step[i]);
        good = from != NULL && to != NULL && r->files->rename(from, to) == 0;
        free(from);
        free(to);
    }
    for (size_t i = 0; i < previous.count && good; i++) {
        bool replaced = false;
        for (size_t k = 0; k < current.count; k++)
            replaced = replaced || current.step[k] == previous.step[i];
        if (!replaced)
            remove_step(r, previous_of(r), previous.step[i]);
    }
    free(current.step);
    free(previous.step);
    r->set_aside = good;
    return good;
}

static void remove_old(const RtRetention *r) {
    Steps current = list(r, current_of(r));
    for (size_t i = (size_t)r->keep; i < current.count; i++)
        remove_step(r, current_of(r), current.step[i]);
    free(current.step);
}

static bool put_in_place(RtRetention *r, const char *partial, const char *path,
                         RtError *e) {
    if ((r->set_aside || set_aside(r)) &&
        r->files->rename(partial, path) == 0) {
        if (sync_folder(r))
            return true;
        return rt_fail(e, EXIT_IO, "cannot make %s durable: %s", path,
                       strerror(errno));
    }
    rt_fail(e, EXIT_IO, "cannot rename %s: %s", partial, strerror(errno));
    r->files->unlink(partial);
    return false;
}

bool rt_retention_save(RtRetention *r, RtCheckpoint *c, const RtProgress *p,
                       RtError *e) {
    char *path = name_of(r, current_of(r), p->step);
    char *partial = partial_name(r, p->step);
    bool good = path != NULL && partial != NULL;
    if (!good)
        rt_fail(e, EXIT_IO, "out of memory"); // retried like a failing disk
    good = good && lock_again(r, e) && rt_checkpoint_write(c, partial, p, e) &&
           put_in_place(r, partial, path, e);
    if (good)
        remove_old(r);
    free(path);
    free(partial);
    return good;
}

// ---- loading ----

// *e describes the newest invalid checkpoint.
static RtLoad load_newest(const RtRetention *r, const char *start,
                          RtCheckpoint *c, RtProgress *p, char **path,
                          RtError *e) {
    Steps steps = list(r, start);
    RtLoad load = RT_BROKEN;
    for (size_t i = 0; i < steps.count && load == RT_BROKEN; i++) {
        RtError why = {0};
        free(*path);
        *path = name_of(r, start, steps.step[i]);
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

bool rt_retention_load(const RtRetention *r, RtCheckpoint *c, RtProgress *p,
                       char **path, RtError *e) {
    RtError why = {EXIT_GOOD, ""};
    *path = NULL;
    RtLoad load = load_newest(r, CURRENT, c, p, path, &why);
    if (load == RT_BROKEN)
        load = load_newest(r, PREVIOUS, c, p, path, &why);
    if (load == RT_GOOD)
        return true;
    *e = why;
    if (load == RT_OTHER_RUN)
        return false;
    if (access(r->folder, R_OK | X_OK) != 0)
        return rt_fail(e, EXIT_DATA, "no checkpoint can be read in %s: %s",
                       r->folder, strerror(errno));
    return rt_fail(e, why.status != EXIT_GOOD ? why.status : EXIT_DATA,
                   "no whole checkpoint in %s", r->folder);
}
