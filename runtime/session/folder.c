// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Folder: the folder of a run's files.
//
// Each run has a folder of its own, runs/MODEL/001, 002 and so on, unless --out
// names one. mkdir claims the number, so concurrent trainers get different
// ones.  Only --resume writes to a folder that has a run.
#define _POSIX_C_SOURCE 200809L

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/session/run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_folder(const char *path) {
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

static bool has_checkpoint(const char *folder) {
    char *newest = rt_retention_newest(folder);
    free(newest);
    return newest != NULL;
}

// Whether a folder has an entry of that name, even a dangling link.
static bool has(const char *folder, const char *name) {
    struct stat s;
    char *path = rt_path("%s/%s", folder, name);
    bool found = path != NULL && lstat(path, &s) == 0;
    free(path);
    return found;
}

static bool holds_run(const char *folder) {
    return has(folder, RT_SETTINGS) || has_checkpoint(folder);
}

// A file in the folder that a new run would overwrite; NULL: none.
static const char *in_the_way(const char *folder, const RtTrainer *t) {
    static const char *const name[] = {"log.txt", "metrics.jsonl",
                                       RT_MODEL_FILE, RT_SOURCE_FOLDER};
    int count = 2 + (t->num_sources > 0) + (t->num_sources > 1);
    for (int i = 0; i < count; i++)
        if (has(folder, name[i]))
            return name[i];
    return NULL;
}

// ---- numbers ----

// The number in a name such as 007; -1: not a number.
static int64_t number_of(const char *name) {
    size_t digits = strspn(name, "0123456789");
    if (digits == 0 || digits > 9 || name[digits] != '\0')
        return -1;
    return strtoll(name, NULL, 10);
}

static char *numbered(const char *model, int64_t number) {
    return rt_path("runs/%s/%03" PRId64, model, number);
}

// The highest number below `below`; 0: none.
static int64_t highest(const char *model, int64_t below) {
    char *path = rt_path("runs/%s", model);
    DIR *d = path != NULL ? opendir(path) : NULL;
    int64_t found = 0;
    for (struct dirent *f; d != NULL && (f = readdir(d)) != NULL;) {
        int64_t number = number_of(f->d_name);
        if (number > found && number < below)
            found = number;
    }
    if (d != NULL)
        closedir(d);
    free(path);
    return found;
}

// The newest run with a checkpoint.  If later runs have none, a warning names
// the newest of them.
static char *newest_run(const char *model) {
    char *newer = NULL, *path = NULL;
    int64_t number = INT64_MAX;
    while ((number = highest(model, number)) > 0) {
        path = numbered(model, number);
        if (path == NULL || has_checkpoint(path))
            break;
        if (newer == NULL && has(path, RT_SETTINGS)) {
            newer = path;
            path = NULL;
        }
        free(path);
        path = NULL;
    }
    if (path != NULL && newer != NULL)
        rt_warn("%s is newer but has no checkpoint; using %s", newer, path);
    free(newer);
    return path;
}

static bool claim_number(RtFolder *f, const char *model, RtError *e) {
    char *above = rt_path("runs/%s", model);
    bool good = above != NULL ? rt_make_folder(above, 0777, e)
                              : rt_fail(e, EXIT_MEMORY, "out of memory");
    int64_t number = highest(model, INT64_MAX);
    while (good && !f->made) {
        free(f->path);
        f->path = numbered(model, ++number);
        if (f->path == NULL)
            good = rt_fail(e, EXIT_MEMORY, "out of memory");
        else if (mkdir(f->path, 0777) == 0)
            f->made = true;
        else if (errno != EEXIST)
            good = rt_fail(e, EXIT_IO, "cannot make folder %s: %s", f->path,
                           strerror(errno));
    }
    free(above);
    return good;
}

// ---- where a run goes ----

static bool writes(const RtOptions *o) {
    return !o->eval_only && !o->load_only && !o->tune && o->rank == 0;
}

// --resume=DIR is --resume --out=DIR.
static void take_folder(RtOptions *o) {
    if (o->resume_path == NULL || o->out != NULL || !is_folder(o->resume_path))
        return;
    o->out = o->resume_path;
    o->resume_path = NULL;
}

// --init=DIR starts with the newest checkpoint of a run.
static bool take_weights(RtFolder *f, RtOptions *o, RtError *e) {
    if (o->init == NULL || !is_folder(o->init))
        return true;
    f->init = rt_retention_newest(o->init);
    if (f->init == NULL)
        return rt_fail(e, EXIT_DATA, "--init: %s has no checkpoint", o->init);
    o->init = f->init;
    return true;
}

// Whether a file is in a folder.
static bool lies_in(const char *file, const char *folder) {
    const char *slash = strrchr(file, '/');
    struct stat a, b;
    char *above = slash == NULL
                      ? rt_path(".")
                      : rt_path("%.*s", (int)(slash - file) + 1, file);
    bool same = above != NULL && stat(above, &a) == 0 &&
                stat(folder, &b) == 0 && a.st_dev == b.st_dev &&
                a.st_ino == b.st_ino;
    free(above);
    return same;
}

bool rt_folder_check_unused(const char *path, const RtTrainer *t,
                            const RtOptions *o, RtError *e) {
    bool own =
        o->resume && (o->resume_path == NULL || lies_in(o->resume_path, path));
    if (own)
        return true;
    if (holds_run(path))
        return rt_fail(e, EXIT_DATA,
                       "%s already holds a run; --resume --out=%s continues "
                       "it, another --out starts a new run",
                       path, path);
    const char *name = in_the_way(path, t);
    return name == NULL ||
           rt_fail(e, EXIT_DATA,
                   "%s already holds %s, which a run would overwrite; another "
                   "--out starts a new run",
                   path, name);
}

bool rt_folder_find(RtFolder *f, const RtTrainer *t, RtOptions *o, RtError *e) {
    *f = (RtFolder){0};
    if (o->rank > 0)
        return true;
    take_folder(o);
    if (!take_weights(f, o, e))
        return false;
    bool predicts = o->predict != NULL || o->generate != NULL;
    if (predicts && o->weights != NULL)
        return true;
    if (o->out != NULL && o->predict == NULL) {
        f->path = rt_path("%s", o->out);
        return f->path != NULL
                   ? !writes(o) || rt_folder_check_unused(f->path, t, o, e)
                   : rt_fail(e, EXIT_MEMORY, "out of memory");
    }
    bool reads = (o->resume && o->resume_path == NULL) ||
                 (o->eval_only && o->init == NULL && o->resume_path == NULL);
    if (reads && (f->path = newest_run(t->model)) == NULL)
        return rt_fail(e, EXIT_DATA,
                       "no run in runs/%s has a checkpoint; --%s=PATH "
                       "names a checkpoint or the folder of a run",
                       t->model, predicts ? "weights" : "resume");
    return true;
}

bool rt_folder_make_above(const char *path, RtError *e) {
    size_t length = strlen(path);
    while (length > 0 && path[length - 1] == '/')
        length--;
    while (length > 0 && path[length - 1] != '/')
        length--;
    if (length == 0)
        return true;
    char *above = rt_path("%.*s", (int)length, path);
    bool good = above != NULL ? rt_make_folder(above, 0777, e)
                              : rt_fail(e, EXIT_MEMORY, "out of memory");
    free(above);
    return good;
}

// Only one of several concurrent trainers creates it.
static bool make_named(RtFolder *f, RtError *e) {
    f->made = mkdir(f->path, 0777) == 0;
    return f->made || rt_make_folder(f->path, 0777, e);
}

bool rt_folder_make(RtFolder *f, const RtTrainer *t, const RtOptions *o,
                    RtError *e) {
    if (!writes(o))
        return true;
    if (f->path == NULL)
        return claim_number(f, t->model, e);
    return rt_folder_make_above(f->path, e) && make_named(f, e);
}

// Whether another trainer has locked the folder since this one made it.
static bool is_claimed(const char *path) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool claimed = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0;
    if (fd >= 0)
        close(fd);
    return claimed;
}

void rt_folder_close(RtFolder *f) {
    if (f->made && !is_claimed(f->path))
        rmdir(f->path); // fails if it has files
    free(f->path);
    free(f->init);
}
