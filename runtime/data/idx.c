// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The idx format of MNIST and similar data sets: big-endian headers, images and
// labels in separate files.  Names are the authors' (train-images-idx3-ubyte),
// or with a dot before idx, as in some archives, or with .gz at the end.
#define _POSIX_C_SOURCE 200809L

#include "runtime/data/data.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { IMAGES = 0x803, LABELS = 0x801, MAX_DIMS = 3 };

static uint32_t big_endian(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 |
           p[3];
}

// The path of a file under either name; NULL with *e filled.
static char *find(const char *folder, const char *split, const char *what,
                  int dims, RtError *e) {
    for (const char *mark = "-."; *mark != '\0'; mark++) {
        char *path =
            rt_path("%s/%s-%s%cidx%d-ubyte", folder, split, what, *mark, dims);
        if (path == NULL || access(path, F_OK) == 0)
            return path;
        free(path);
    }
    char *packed =
        rt_path("%s/%s-%s-idx%d-ubyte.gz", folder, split, what, dims);
    if (packed == NULL || access(packed, F_OK) == 0)
        return packed;
    rt_fail(e, EXIT_DATA, "no file %s-%s-idx%d-ubyte in %s", split, what, dims,
            folder);
    free(packed);
    return NULL;
}

// Opens a file, whose name ends with .gz if it is compressed.
static int open_idx(const RtFiles *files, const char *path, size_t *bytes,
                    RtError *e) {
    size_t length = strlen(path);
    return strcmp(path + length - 3, ".gz") == 0
               ? rt_gzip_open(path, bytes, e)
               : rt_open_sized(files, path, bytes, e);
}

// Checks the magic number, reads the dimensions and compares them with the size
// of the file.
static bool read_dims(const RtFiles *files, int fd, const char *path,
                      size_t bytes, uint32_t magic, int rank,
                      uint32_t dim[MAX_DIMS], RtError *e) {
    uint8_t head[4 + 4 * MAX_DIMS];
    size_t length = 4 + 4 * (size_t)rank, product = 1;
    if (bytes < length)
        return rt_fail(e, EXIT_DATA, "%s is too short for its header", path);
    if (!rt_read(files, fd, head, length))
        return rt_fail_read(e, path);
    if (big_endian(head) != magic)
        return rt_fail(e, EXIT_DATA,
                       "%s is not an idx file of %s: it begins with 0x%08x, "
                       "not 0x%08x",
                       path, rank == 1 ? "labels" : "images", big_endian(head),
                       magic);
    for (int i = 0; i < rank; i++) {
        dim[i] = big_endian(head + 4 + 4 * i);
        if (__builtin_mul_overflow(product, dim[i], &product))
            return rt_fail(e, EXIT_DATA, "%s: the sizes in its header overflow",
                           path);
    }
    if (product == 0)
        return rt_fail(e, EXIT_DATA, "%s has no samples", path);
    if (product != bytes - length)
        return rt_fail(e, EXIT_DATA,
                       "%s should have %zu bytes after its header, but has %zu",
                       path, product, bytes - length);
    return true;
}

static bool read_bytes(const RtFiles *files, int fd, const char *path,
                       uint8_t *to, size_t bytes, uint64_t *hash, RtError *e) {
    if (!rt_read(files, fd, to, bytes))
        return rt_fail_read(e, path);
    *hash = XXH3_64bits_withSeed(to, bytes, *hash);
    return true;
}

static bool check_images(const char *path, const uint32_t dim[MAX_DIMS],
                         const RtShape *s, RtError *e) {
    const int64_t size[] = {dim[1], dim[2], 1};
    char text[100];
    return (dim[0] <= INT32_MAX && rt_shape_same(s, 3, size)) ||
           rt_fail(e, EXIT_DATA,
                   "%s has images of %ux%ux1, but the trainer takes %s", path,
                   dim[1], dim[2],
                   rt_shape_text(text, sizeof text, s->rank, s->dim));
}

static bool read_images(RtSplit *s, const char *path, const RtShape *shape,
                        const RtFiles *files, uint64_t *hash, RtError *e) {
    size_t bytes;
    uint32_t dim[MAX_DIMS] = {0};
    int fd = open_idx(files, path, &bytes, e);
    if (fd < 0)
        return false;
    bool good = read_dims(files, fd, path, bytes, IMAGES, 3, dim, e);
    size_t values = (size_t)dim[1] * dim[2];
    good =
        good && check_images(path, dim, shape, e) &&
        rt_split_reserve(s, dim[0], RT_FILE_U8, values, RT_FILE_U8, 1, e) &&
        read_bytes(files, fd, path, s->image.bytes, dim[0] * values, hash, e);
    files->close(fd);
    return good;
}

static bool read_labels(RtSplit *s, const char *path, const RtDataSpec *spec,
                        const RtFiles *files, uint64_t *hash, RtError *e) {
    size_t bytes;
    uint32_t dim[MAX_DIMS] = {0};
    int fd = open_idx(files, path, &bytes, e);
    if (fd < 0)
        return false;
    bool good = read_dims(files, fd, path, bytes, LABELS, 1, dim, e);
    if (good && dim[0] != s->count)
        good = rt_fail(e, EXIT_DATA, "%s has %u labels for %lld images", path,
                       dim[0], (long long)s->count);
    good = good &&
           read_bytes(files, fd, path, s->label.bytes, dim[0], hash, e) &&
           rt_labels_check(s, spec, path, e);
    files->close(fd);
    return good;
}

static bool read_split(RtSplit *s, const char *folder, const char *name,
                       const RtDataSpec *spec, const RtFiles *files,
                       uint64_t *hash, RtError *e) {
    rt_fail(e, EXIT_MEMORY, "out of memory");
    char *images = find(folder, name, "images", 3, e);
    char *labels = images == NULL ? NULL : find(folder, name, "labels", 1, e);
    bool good = labels != NULL &&
                read_images(s, images, &spec->image, files, hash, e) &&
                read_labels(s, labels, spec, files, hash, e);
    free(images);
    free(labels);
    return good;
}

bool rt_idx_read(RtData *d, const char *path, const RtDataSpec *spec,
                 const RtFiles *files, RtError *e) {
    static const char *const test[] = {
        "t10k-images-idx3-ubyte", "t10k-images.idx3-ubyte",
        "t10k-labels-idx1-ubyte", "t10k-labels.idx1-ubyte", NULL};
    return read_split(&d->train, path, "train", spec, files, &d->hash, e) &&
           (rt_lacks_test(spec, path, test) ||
            read_split(&d->test, path, "t10k", spec, files, &d->hash, e));
}
