// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Files: the table of system calls, and loops that complete short or
// interrupted ones.
#define _POSIX_C_SOURCE 200809L

#include "runtime/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int system_open(const char *path, int flags, mode_t mode) {
    return open(path, flags | O_CLOEXEC, mode);
}

// Shared, so that no memory is reserved for it.
static void *system_map(int fd, size_t bytes) {
    void *at = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    return at == MAP_FAILED ? NULL : at;
}

const RtFiles rt_system_files = {
    .open = system_open,
    .read = read,
    .write = write,
    .sync = fsync,
    .close = close,
    .rename = rename,
    .unlink = unlink,
    .map = system_map,
};

// ---- files of the user's own ----

void rt_warn_unused(const char *path, const char *why) {
    static atomic_flag warned = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&warned))
        rt_warn("%s is not used: %s", path, why);
}

// Why other users may have written an open file or folder; NULL: they cannot.
static const char *why_not_private(int fd) {
    struct stat s;
    if (fstat(fd, &s) != 0)
        return strerror(errno);
    if (s.st_uid != geteuid())
        return "it belongs to another user; set XDG_CACHE_HOME to another "
               "folder";
    if ((s.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return "others can write to it; run chmod go-w on it";
    return NULL;
}

static int private_open(const char *path, int flags, mode_t mode) {
    int fd = system_open(path, flags | O_NOFOLLOW, mode & 0600);
    // O_DIRECTORY refuses a link to a folder with ENOTDIR.
    bool links = fd < 0 && (errno == ELOOP || errno == ENOTDIR);
    struct stat s;
    if (links && lstat(path, &s) == 0 && S_ISLNK(s.st_mode))
        rt_warn_unused(path, "it is a symbolic link");
    const char *why = fd < 0 ? NULL : why_not_private(fd);
    if (why == NULL)
        return fd;
    rt_warn_unused(path, why);
    close(fd);
    errno = EPERM;
    return -1;
}

const RtFiles rt_private_files = {
    .open = private_open,
    .read = read,
    .write = write,
    .sync = fsync,
    .close = close,
    .rename = rename,
    .unlink = unlink,
    .map = system_map,
};

bool rt_read(const RtFiles *f, int fd, void *to, size_t bytes) {
    char *p = to;
    while (bytes > 0) {
        ssize_t n = f->read(fd, p, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0)
            errno = 0;
        if (n <= 0)
            return false;
        p += n;
        bytes -= (size_t)n;
    }
    return true;
}

// A write of 0 bytes without an error counts as a full disk; a retry could loop
// for ever.
bool rt_write(const RtFiles *f, int fd, const void *from, size_t bytes) {
    const char *p = from;
    while (bytes > 0) {
        ssize_t n = f->write(fd, p, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0)
            errno = ENOSPC;
        if (n <= 0)
            return false;
        p += n;
        bytes -= (size_t)n;
    }
    return true;
}

bool rt_fail_open(RtError *e, const char *path) {
    static const int wrong[] = {ENOENT, ENOTDIR, EISDIR, EACCES,
                                EPERM,  ELOOP,   ENXIO,  ENAMETOOLONG};
    int status = EXIT_IO;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        if (errno == wrong[i])
            status = EXIT_DATA;
    return rt_fail(e, status, "cannot open %s: %s", path, strerror(errno));
}

bool rt_fail_read(RtError *e, const char *what) {
    return rt_fail(e, EXIT_IO, "cannot read %s: %s", what,
                   errno ? strerror(errno) : "the file is truncated");
}

int rt_open_sized(const RtFiles *f, const char *path, size_t *bytes,
                  RtError *e) {
    int fd = f->open(path, O_RDONLY | O_NONBLOCK, 0); // a pipe would wait
    struct stat s;
    if (fd < 0) {
        rt_fail_open(e, path);
        return -1;
    }
    if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode)) {
        rt_fail(e, EXIT_DATA, "%s is not a file", path);
        f->close(fd);
        return -1;
    }
    *bytes = (size_t)s.st_size;
    return fd;
}

bool rt_is_stdout(const char *path) {
    return path != NULL && strcmp(path, "-") == 0;
}

const char *rt_rows_name(const char *path) {
    return rt_is_stdout(path) ? "standard output" : path;
}

// Opening a pipe without a reader would block for ever.
static int open_rows(const char *path) {
    const struct timespec shortly = {.tv_nsec = 20000000};
    const double since = rt_seconds();
    int fd;
    while (
        (fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC,
                   0666)) < 0 &&
        errno == ENXIO) {
        if (rt_seconds() - since >= RT_READER_TIMEOUT) {
            errno = ETIMEDOUT;
            return -1;
        }
        nanosleep(&shortly, NULL);
    }
    return fd;
}

// Closing the copy leaves standard output open.
FILE *rt_rows_open(const char *path) {
    struct stat s;
    int fd = rt_is_stdout(path) ? dup(STDOUT_FILENO) : open_rows(path);
    if (fd < 0 || fstat(fd, &s) != 0)
        return NULL;
    return S_ISREG(s.st_mode) ? fdopen(fd, "w") : rt_output_open(fd);
}

char *rt_path(const char *format, ...) {
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    int length = vsnprintf(NULL, 0, format, list);
    va_end(list);
    char *path = length < 0 ? NULL : malloc((size_t)length + 1);
    if (path != NULL)
        vsnprintf(path, (size_t)length + 1, format, again);
    va_end(again);
    return path;
}

static bool make_one(const char *path, mode_t mode, RtError *e) {
    struct stat s;
    bool made = mkdir(path, mode) == 0;
    int reason = errno;
    if (made || (stat(path, &s) == 0 && S_ISDIR(s.st_mode)))
        return true;
    return rt_fail(e, EXIT_IO, "cannot make folder %s: %s", path,
                   strerror(reason));
}

bool rt_make_folder(const char *path, mode_t mode, RtError *e) {
    char *part = rt_path("%s", path);
    bool good = part != NULL || rt_fail(e, EXIT_MEMORY, "out of memory");
    for (char *p = part; good && *p != '\0'; p++) {
        if (*p != '/' || p == part)
            continue;
        *p = '\0';
        good = make_one(part, mode, e);
        *p = '/';
    }
    good = good && make_one(part, mode, e);
    free(part);
    return good;
}
