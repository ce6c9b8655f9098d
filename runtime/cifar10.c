// CIFAR-10's binary format: records of one label byte and 3,072 bytes of image,
// a red plane, a green and a blue one.  A folder holds data_batch_1.bin and on
// up to five, and test_batch.bin; a file may hold any number of whole records.
#define _POSIX_C_SOURCE 200809L

#include "runtime/runtime.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum {
    SIDE = 32,
    PLANE = SIDE * SIDE,
    RECORD = 1 + 3 * PLANE,
    CHUNK = 512, // records read at once
    MOST_FILES = 5
};

typedef struct {
    char *path[MOST_FILES];
    int64_t records[MOST_FILES];
    int count;
} Files;

static void files_free(Files *f) {
    for (int i = 0; i < f->count; i++)
        free(f->path[i]);
}

// The size of one file, in records, without reading it.
static bool count_records(const char *path, const RtFiles *files,
                          int64_t *records, RtError *e) {
    size_t bytes;
    int fd = rt_open_sized(files, path, &bytes, e);
    if (fd < 0)
        return false;
    files->close(fd);
    if (bytes == 0 || bytes % RECORD != 0)
        return rt_fail(e, EXIT_DATA,
                       "%s has %zu bytes, which is not a whole number of "
                       "records of %d bytes",
                       path, bytes, RECORD);
    *records = (int64_t)(bytes / RECORD);
    return true;
}

static bool add_file(Files *f, char *path, const RtFiles *files, RtError *e) {
    if (path == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    f->path[f->count] = path;
    return count_records(path, files, &f->records[f->count++], e);
}

static bool find_train(Files *f, const char *folder, const RtFiles *files,
                       RtError *e) {
    for (int i = 1; i <= MOST_FILES; i++) {
        char *path = rt_path("%s/data_batch_%d.bin", folder, i);
        if (path != NULL && i > 1 && access(path, F_OK) != 0)
            free(path);
        else if (!add_file(f, path, files, e))
            return false;
    }
    return true;
}

// Planes of a record to pixels of three bytes.
static void interleave(const uint8_t *plane, uint8_t *pixel) {
    for (int i = 0; i < PLANE; i++)
        for (int c = 0; c < 3; c++)
            pixel[3 * i + c] = plane[c * PLANE + i];
}

static bool take_records(const uint8_t *record, int64_t count, RtSplit *s,
                         int64_t at, int classes, int64_t *bad) {
    for (int64_t i = 0; i < count; i++, record += RECORD) {
        *bad = i;
        if (record[0] >= classes)
            return false;
        s->label[at + i] = record[0];
        interleave(record + 1, s->image + (size_t)(at + i) * 3 * PLANE);
    }
    return true;
}

// Reads one file's records to sample number `at` and on.
static bool read_records(const RtFiles *files, int fd, const char *path,
                         int64_t count, RtSplit *s, int64_t at, int classes,
                         uint8_t *chunk, uint64_t *hash, RtError *e) {
    for (int64_t done = 0, some; done < count; done += some) {
        some = count - done < CHUNK ? count - done : CHUNK;
        if (!rt_read(files, fd, chunk, (size_t)some * RECORD))
            return rt_fail(e, EXIT_DATA, "cannot read %s near byte %lld: %s",
                           path, (long long)done * RECORD,
                           errno ? strerror(errno) : "the file ends early");
        *hash = XXH3_64bits_withSeed(chunk, (size_t)some * RECORD, *hash);
        int64_t bad = 0;
        if (!take_records(chunk, some, s, at + done, classes, &bad))
            return rt_fail(e, EXIT_DATA,
                           "%s: record %lld has label %d, but there are %d "
                           "classes",
                           path, (long long)(done + bad), chunk[bad * RECORD],
                           classes);
    }
    return true;
}

static bool read_file(const char *path, int64_t count, RtSplit *s, int64_t at,
                      int classes, const RtFiles *files, uint64_t *hash,
                      RtError *e) {
    size_t bytes;
    int fd = rt_open_sized(files, path, &bytes, e);
    if (fd < 0)
        return false;
    uint8_t *chunk = malloc((size_t)CHUNK * RECORD);
    bool good = chunk != NULL ? read_records(files, fd, path, count, s, at,
                                             classes, chunk, hash, e)
                              : rt_fail(e, EXIT_MEMORY, "out of memory");
    free(chunk);
    files->close(fd);
    return good;
}

static bool read_split(const Files *f, RtSplit *s, const RtSample *shape,
                       const RtFiles *files, uint64_t *hash, RtError *e) {
    int64_t count = 0, at = 0;
    for (int i = 0; i < f->count; i++)
        count += f->records[i];
    if (!rt_split_reserve(s, count, shape, e))
        return false;
    for (int i = 0; i < f->count; at += f->records[i++])
        if (!read_file(f->path[i], f->records[i], s, at, shape->classes, files,
                       hash, e))
            return false;
    return true;
}

bool rt_cifar10_read(RtData *d, const char *path, const RtSample *shape,
                     const RtFiles *files, RtError *e) {
    if (shape->h != SIDE || shape->w != SIDE || shape->c != 3)
        return rt_fail(e, EXIT_DATA,
                       "cifar10 images are 32x32x3, the model takes %dx%dx%d",
                       shape->h, shape->w, shape->c);
    Files train = {0}, test = {0};
    bool good = find_train(&train, path, files, e) &&
                add_file(&test, rt_path("%s/test_batch.bin", path), files, e) &&
                read_split(&train, &d->train, shape, files, &d->hash, e) &&
                read_split(&test, &d->test, shape, files, &d->hash, e);
    files_free(&train);
    files_free(&test);
    return good;
}
