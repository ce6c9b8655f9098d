// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The binary formats of CIFAR: records of one label byte (CIFAR-100: a coarse
// and a fine one) and 3,072 bytes of image, a red plane, a green and a blue
// one.  CIFAR-10's folder has data_batch_1.bin up to data_batch_5.bin, and
// test_batch.bin, that of CIFAR-100 train.bin and test.bin.  A file has any
// number of whole records.
#define _POSIX_C_SOURCE 200809L

#include "runtime/data/data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum {
    SIDE = 32,
    PLANE = SIDE * SIDE,
    IMAGE = 3 * PLANE,
    CHUNK = 512, // records read at once
    MAX_FILES = 5
};

// The label byte of a record that is used, and the bytes of a record.
typedef struct {
    int label;
    size_t record;
} Layout;

typedef struct {
    char *path[MAX_FILES];
    int64_t records[MAX_FILES];
    int count;
} Files;

static void files_free(Files *f) {
    for (int i = 0; i < f->count; i++)
        free(f->path[i]);
}

// Names the folder: a Python version of both data sets exists, too, and
// archives unpack to a folder inside the one that is often given.
static bool fail_missing(const char *path, size_t record, RtError *e) {
    return rt_fail(
        e, EXIT_DATA,
        "%s does not exist; name the folder %s of CIFAR's binary version", path,
        record == 1 + IMAGE ? "cifar-10-batches-bin" : "cifar-100-binary");
}

// The number of records of a file, from its size.
static bool count_records(const char *path, size_t record, const RtFiles *files,
                          int64_t *records, RtError *e) {
    size_t bytes;
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return fail_missing(path, record, e);
    int fd = rt_open_sized(files, path, &bytes, e);
    if (fd < 0)
        return false;
    files->close(fd);
    if (bytes == 0 || bytes % record != 0)
        return rt_fail(
            e, EXIT_DATA,
            "%s has %zu bytes, not a multiple of the record size, %zu bytes",
            path, bytes, record);
    *records = (int64_t)(bytes / record);
    return true;
}

static bool add_file(Files *f, char *path, const Layout *l,
                     const RtFiles *files, RtError *e) {
    if (path == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    f->path[f->count] = path;
    return count_records(path, l->record, files, &f->records[f->count++], e);
}

static bool find_batches(Files *f, const char *folder, const Layout *l,
                         const RtFiles *files, RtError *e) {
    int missing = 0;
    for (int i = 1; i <= MAX_FILES; i++) {
        char *path = rt_path("%s/data_batch_%d.bin", folder, i);
        if (path != NULL && i > 1 && access(path, F_OK) != 0) {
            missing = missing > 0 ? missing : i;
            free(path);
        } else if (!add_file(f, path, l, files, e)) {
            return false;
        } else if (missing > 0) {
            return rt_fail(e, EXIT_DATA,
                           "%s/data_batch_%d.bin does not exist, but "
                           "data_batch_%d.bin does: unpack the archive again",
                           folder, missing, i);
        }
    }
    return true;
}

// Planes of a record to pixels of three bytes.
static void interleave(const uint8_t *plane, uint8_t *pixel) {
    for (int i = 0; i < PLANE; i++)
        for (int c = 0; c < 3; c++)
            pixel[3 * i + c] = plane[c * PLANE + i];
}

// Records of one file become the samples from index `at` on.
typedef struct {
    const Layout *layout;
    const RtFiles *files;
    const char *path;
    RtSplit *split;
    int64_t at, count;
    int classes;
    uint64_t *hash;
} Part;

static bool copy_records(const Part *p, const uint8_t *record, int64_t done,
                         int64_t count, RtError *e) {
    const Layout *l = p->layout;
    for (int64_t i = 0; i < count; i++, record += l->record) {
        int64_t sample = p->at + done + i;
        if (record[l->label] >= p->classes)
            return rt_fail(
                e, EXIT_DATA,
                "%s: record %lld has label %d, but the model has %d classes",
                p->path, (long long)(done + i), record[l->label], p->classes);
        *rt_column_at(&p->split->label, sample) = record[l->label];
        interleave(record + l->record - IMAGE,
                   rt_column_at(&p->split->image, sample));
    }
    return true;
}

static bool read_records(const Part *p, int fd, uint8_t *chunk, RtError *e) {
    size_t record = p->layout->record;
    for (int64_t done = 0, some; done < p->count; done += some) {
        some = p->count - done < CHUNK ? p->count - done : CHUNK;
        if (!rt_read(p->files, fd, chunk, (size_t)some * record))
            return rt_fail(e, EXIT_IO, "cannot read %s near byte %lld: %s",
                           p->path, (long long)done * (long long)record,
                           errno ? strerror(errno) : "the file is truncated");
        *p->hash = XXH3_64bits_withSeed(chunk, (size_t)some * record, *p->hash);
        if (!copy_records(p, chunk, done, some, e))
            return false;
    }
    return true;
}

static bool read_file(const Part *p, RtError *e) {
    size_t bytes;
    int fd = rt_open_sized(p->files, p->path, &bytes, e);
    if (fd < 0)
        return false;
    uint8_t *chunk = malloc(CHUNK * p->layout->record);
    bool good = chunk != NULL ? read_records(p, fd, chunk, e)
                              : rt_fail(e, EXIT_MEMORY, "out of memory");
    free(chunk);
    p->files->close(fd);
    return good;
}

static bool read_split(const Files *f, RtSplit *s, const Layout *l, int classes,
                       const RtFiles *files, uint64_t *hash, RtError *e) {
    Part part = {.layout = l,
                 .files = files,
                 .split = s,
                 .classes = classes,
                 .hash = hash};
    int64_t count = 0;
    for (int i = 0; i < f->count; i++)
        count += f->records[i];
    if (!rt_split_reserve(s, count, RT_FILE_U8, IMAGE, RT_FILE_U8, 1, e))
        return false;
    for (int i = 0; i < f->count; i++) {
        part.path = f->path[i];
        part.count = f->records[i];
        if (!read_file(&part, e))
            return false;
        part.at += part.count;
    }
    return true;
}

static bool check_shape(const char *format, const RtDataSpec *spec,
                        RtError *e) {
    static const int64_t dim[] = {SIDE, SIDE, 3};
    char text[100];
    const RtShape *s = &spec->image;
    return rt_shape_same(s, 3, dim) ||
           rt_fail(e, EXIT_DATA,
                   "%s images are 32x32x3, but the trainer takes %s", format,
                   rt_shape_text(text, sizeof text, s->rank, s->dim));
}

static bool read_both(RtData *d, const Files *train, const Files *test,
                      const Layout *l, int classes, const RtFiles *files,
                      RtError *e) {
    return read_split(train, &d->train, l, classes, files, &d->hash, e) &&
           read_split(test, &d->test, l, classes, files, &d->hash, e);
}

bool rt_cifar10_read(RtData *d, const char *path, const RtDataSpec *spec,
                     const RtFiles *files, RtError *e) {
    static const Layout layout = {0, 1 + IMAGE};
    static const char *const name[] = {"test_batch.bin", NULL};
    Files train = {0}, test = {0};
    bool good =
        check_shape("cifar10", spec, e) &&
        find_batches(&train, path, &layout, files, e) &&
        (rt_lacks_test(spec, path, name) ||
         add_file(&test, rt_path("%s/%s", path, name[0]), &layout, files, e)) &&
        read_both(d, &train, &test, &layout, spec->classes, files, e);
    files_free(&train);
    files_free(&test);
    return good;
}

bool rt_cifar100_read(RtData *d, const char *path, const RtDataSpec *spec,
                      const RtFiles *files, RtError *e) {
    const Layout layout = {rt_setting(spec, "coarse", 0) ? 0 : 1, 2 + IMAGE};
    static const char *const name[] = {"test.bin", NULL};
    Files train = {0}, test = {0};
    bool good =
        check_shape("cifar100", spec, e) &&
        add_file(&train, rt_path("%s/train.bin", path), &layout, files, e) &&
        (rt_lacks_test(spec, path, name) ||
         add_file(&test, rt_path("%s/%s", path, name[0]), &layout, files, e)) &&
        read_both(d, &train, &test, &layout, spec->classes, files, e);
    files_free(&train);
    files_free(&test);
    return good;
}
