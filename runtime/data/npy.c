// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// NumPy's files: a magic word, a version, the length of a header, the header (a
// Python dictionary in a fixed form), and the numbers.  A folder has
// train_x.npy and test_x.npy, whose first dimension counts the samples, and, if
// labels are used, train_y.npy and test_y.npy.  Several inputs or labels have
// their names in the place of x and y.
//
// Numbers keep their type if a step can read it; i64 becomes i32 if it fits,
// and f64 becomes f32.
#define _POSIX_C_SOURCE 200809L

#include "runtime/data/data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum {
    MAX_HEADER = 1 << 16,
    MAX_DESCR = 16, // shown in a message
    MAX_DIMS = RT_MAX_RANK + 1
};

typedef enum { AS_IT_IS, FROM_I64, FROM_F64 } Conversion;

// Types of numbers in a file.
static const struct {
    const char *descr;
    RtFileType type;
    size_t bytes; // in the file
    Conversion conversion;
} kinds[] = {
    {"|u1", RT_FILE_U8, 1, AS_IT_IS},  {"|b1", RT_FILE_U8, 1, AS_IT_IS},
    {"<u2", RT_FILE_U16, 2, AS_IT_IS}, {"<i4", RT_FILE_I32, 4, AS_IT_IS},
    {"<i8", RT_FILE_I32, 8, FROM_I64}, {"<f4", RT_FILE_F32, 4, AS_IT_IS},
    {"<f8", RT_FILE_F32, 8, FROM_F64},
};
enum { NUM_KINDS = sizeof kinds / sizeof kinds[0] };

typedef struct {
    int kind;
    int rank;
    int64_t dim[MAX_DIMS];
} Header;

// ---- the header ----

// The text after `'key':` in the dictionary; NULL without the key.
static const char *value_of(const char *text, const char *key) {
    const char *at = strstr(text, key);
    if (at == NULL)
        return NULL;
    at += strlen(key);
    return at + strspn(at, " ");
}

static bool find_kind(const char *text, int *kind) {
    const char *at = value_of(text, "'descr':");
    for (int i = 0; at != NULL && *at == '\'' && i < NUM_KINDS; i++) {
        size_t length = strlen(kinds[i].descr);
        *kind = i;
        if (strncmp(at + 1, kinds[i].descr, length) == 0 &&
            at[1 + length] == '\'')
            return true;
    }
    return false;
}

static bool fail_kind(const char *text, const char *path, RtError *e) {
    static const char plain[] = "<>|=abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    const char *descr = value_of(text, "'descr':");
    if (descr == NULL || *descr != '\'')
        descr = "'";
    size_t length = strspn(descr + 1, plain);
    return rt_fail(e, EXIT_DATA,
                   "%s has numbers of %s%.*s, not u8, bool, u16, i32, "
                   "i64, f32 or f64, little-endian",
                   path, length > 0 ? "type " : "an unsupported type",
                   (int)(length < MAX_DESCR ? length : MAX_DESCR), descr + 1);
}

// "(60000, 28, 28)", "(3,)"
static bool read_dims(const char *at, Header *h) {
    if (at == NULL || *at++ != '(')
        return false;
    for (h->rank = 0; *(at += strspn(at, " ")) != ')'; h->rank++) {
        char *end;
        errno = 0;
        if (*at < '0' || *at > '9' || h->rank == MAX_DIMS)
            return false;
        h->dim[h->rank] = strtoll(at, &end, 10);
        if (errno != 0 || h->dim[h->rank] > INT32_MAX)
            return false;
        at = end + strspn(end, " ");
        if (*at == ',')
            at++;
        else if (*at != ')')
            return false;
    }
    return h->rank > 0;
}

static bool parse_header(const char *text, Header *h, const char *path,
                         RtError *e) {
    const char *order = value_of(text, "'fortran_order':");
    if (!find_kind(text, &h->kind))
        return fail_kind(text, path, e);
    if (order == NULL || strncmp(order, "False", 5) != 0)
        return rt_fail(
            e, EXIT_DATA,
            "%s is in Fortran order; convert it with numpy.ascontiguousarray",
            path);
    return read_dims(value_of(text, "'shape':"), h) ||
           rt_fail(e, EXIT_DATA, "%s has no shape of 1 to %d dimensions", path,
                   MAX_DIMS);
}

// The length of the header, from the 12 bytes before it; 0: not an npy file.
static size_t header_length(const uint8_t start[12]) {
    if (memcmp(start, "\x93NUMPY", 6) != 0 || start[6] < 1 || start[6] > 3)
        return 0;
    size_t length = start[8] | (size_t)start[9] << 8;
    return start[6] == 1
               ? length
               : length | (size_t)start[10] << 16 | (size_t)start[11] << 24;
}

static bool read_header(const RtFiles *files, int fd, const char *path,
                        size_t *bytes, Header *h, RtError *e) {
    uint8_t start[12] = {0};
    if (*bytes < sizeof start)
        return rt_fail(e, EXIT_DATA, "%s is too short for its header", path);
    if (!rt_read(files, fd, start, 10))
        return rt_fail_read(e, path);
    size_t before = start[6] == 1 ? 10 : 12;
    if (before == 12 && !rt_read(files, fd, start + 10, 2))
        return rt_fail_read(e, path);
    size_t length = header_length(start);
    if (length == 0 || length > MAX_HEADER)
        return rt_fail(e, EXIT_DATA, "%s is not an npy file", path);
    char *text = calloc(length + 1, 1);
    bool good = text != NULL || rt_fail(e, EXIT_MEMORY, "out of memory");
    if (good && length > *bytes - before)
        good = rt_fail(e, EXIT_DATA, "%s is too short for its header", path);
    if (good && !rt_read(files, fd, text, length))
        good = rt_fail_read(e, path);
    good = good && parse_header(text, h, path, e);
    free(text);
    *bytes -= good ? before + length : 0;
    return good;
}

// ---- the numbers ----

// Numbers of one sample; false if the file's size does not match.
static bool count_values(const Header *h, size_t bytes, size_t *values,
                         const char *path, RtError *e) {
    size_t all = kinds[h->kind].bytes;
    *values = 1;
    bool fits = true;
    for (int i = 0; i < h->rank; i++) {
        size_t dim = (size_t)h->dim[i];
        fits = fits && !__builtin_mul_overflow(all, dim, &all);
        if (i > 0)
            *values = fits ? *values * dim : 0;
    }
    if (fits && all == 0)
        return rt_fail(e, EXIT_DATA, "%s has no samples", path);
    if (fits && all == bytes)
        return true;
    return rt_fail(e, EXIT_DATA,
                   "%s should have %zu bytes after its header, but has %zu",
                   path, fits ? all : SIZE_MAX, bytes);
}

// Converts numbers of 8 bytes to 4 bytes.
static bool narrow(uint8_t *to, const uint8_t *from, size_t count,
                   Conversion c) {
    for (size_t i = 0; i < count; i++) {
        int64_t whole;
        double real;
        memcpy(&whole, from + 8 * i, 8);
        memcpy(&real, from + 8 * i, 8);
        if (c == FROM_I64 && (whole < INT32_MIN || whole > INT32_MAX))
            return false;
        int32_t as_whole = c == FROM_I64 ? (int32_t)whole : 0;
        float as_real = (float)real;
        memcpy(to + 4 * i, c == FROM_I64 ? (const void *)&as_whole : &as_real,
               4);
    }
    return true;
}

// Reads sample by sample, through `room` if they are converted.
static bool read_values(const RtFiles *files, int fd, const char *path,
                        const Header *h, RtColumn *c, uint8_t *room,
                        uint64_t *hash, RtError *e) {
    size_t bytes = c->values * kinds[h->kind].bytes;
    Conversion conversion = kinds[h->kind].conversion;
    for (int64_t i = 0; i < h->dim[0]; i++) {
        uint8_t *at = rt_column_at(c, i);
        uint8_t *to = conversion == AS_IT_IS ? at : room;
        if (!rt_read(files, fd, to, bytes))
            return rt_fail_read(e, path);
        *hash = XXH3_64bits_withSeed(to, bytes, *hash);
        if (conversion != AS_IT_IS && !narrow(at, room, c->values, conversion))
            return rt_fail(e, EXIT_DATA,
                           "%s: sample %lld has a number outside of 32 bits",
                           path, (long long)i);
    }
    return true;
}

static const char *type_word(RtType t) {
    return t == RT_U8 ? "u8" : t == RT_I32 ? "i32" : "f32";
}

static bool check_fits(const Header *h, const RtShape *shape, const char *path,
                       RtError *e) {
    char found[100], expected[100];
    if (!rt_shape_same(shape, h->rank - 1, h->dim + 1))
        return rt_fail(
            e, EXIT_DATA, "%s has samples of %s, but the trainer takes %s",
            path, rt_shape_text(found, sizeof found, h->rank - 1, h->dim + 1),
            rt_shape_text(expected, sizeof expected, shape->rank, shape->dim));
    return rt_file_type_fits(kinds[h->kind].type, shape->type) ||
           rt_fail(e, EXIT_DATA,
                   "%s has numbers of type %s, but the trainer takes %s", path,
                   kinds[h->kind].descr, type_word(shape->type));
}

// The shape of one sample gets a first dimension.
static void single_widen(Header *h, const RtShape *shape) {
    if (!rt_shape_same(shape, h->rank, h->dim) || h->rank != shape->rank)
        return;
    memmove(h->dim + 1, h->dim, (size_t)h->rank * sizeof *h->dim);
    h->dim[0] = 1;
    h->rank++;
}

static bool read_open(const RtFiles *files, int fd, const char *path,
                      size_t bytes, const RtShape *shape, RtColumn *c,
                      int64_t *count, uint64_t *hash, RtError *e) {
    Header h;
    size_t values;
    if (!read_header(files, fd, path, &bytes, &h, e))
        return false;
    single_widen(&h, shape);
    if (!check_fits(&h, shape, path, e) ||
        !count_values(&h, bytes, &values, path, e) ||
        !rt_column_reserve(c, kinds[h.kind].type, values, h.dim[0], e))
        return false;
    *count = h.dim[0];
    uint8_t *room = malloc(values * kinds[h.kind].bytes);
    bool good = room != NULL
                    ? read_values(files, fd, path, &h, c, room, hash, e)
                    : rt_fail(e, EXIT_MEMORY, "out of memory");
    free(room);
    return good;
}

bool rt_npy_column(const RtFiles *files, const char *path, const RtShape *shape,
                   RtColumn *c, int64_t *count, uint64_t *hash, RtError *e) {
    size_t bytes;
    int fd = rt_open_sized(files, path, &bytes, e);
    if (fd < 0)
        return false;
    bool good = read_open(files, fd, path, bytes, shape, c, count, hash, e);
    files->close(fd);
    return good;
}

static bool read_labels(RtSplit *s, const char *path, const RtDataSpec *spec,
                        const RtFiles *files, uint64_t *hash, RtError *e) {
    int64_t count;
    if (!rt_npy_column(files, path, &spec->label, &s->label, &count, hash, e))
        return false;
    if (count != s->count)
        return rt_fail(e, EXIT_DATA, "%s has %lld labels for %lld samples",
                       path, (long long)count, (long long)s->count);
    return spec->label.type == RT_F32 ||
           rt_labels_check(s, spec, path, e);
}

static bool read_array(RtSplit *s, const char *path, const RtArray *a,
                       const RtFiles *files, uint64_t *hash, RtError *e) {
    RtColumn *c = &s->array[s->num_arrays++];
    int64_t count;
    if (!rt_npy_column(files, path, &a->shape, c, &count, hash, e))
        return false;
    if (count != s->count)
        return rt_fail(e, EXIT_DATA, "%s has %lld samples, and not %lld", path,
                       (long long)count, (long long)s->count);
    if (a->classes > 0)
        return rt_classes_check(c, count, a, path, e);
    bool input = strncmp(a->input, "input.", strlen("input.")) == 0;
    return !(input || a->weighs) ||
           rt_numbers_check(c, count, a->weighs, path, e);
}

static bool read_arrays(RtSplit *s, const char *folder, const char *name,
                        const RtDataSpec *spec, const RtFiles *files,
                        uint64_t *hash, RtError *e) {
    bool good = true;
    for (int i = 0; good && i < spec->num_arrays; i++) {
        const RtArray *a = &spec->array[i];
        char *path = rt_path("%s/%s_%s.npy", folder, name, a->name);
        good = path != NULL ? read_array(s, path, a, files, hash, e)
                            : rt_fail(e, EXIT_MEMORY, "out of memory");
        free(path);
    }
    return good;
}

static const char *image_name(const RtDataSpec *spec) {
    return spec->image_name != NULL ? spec->image_name : "x";
}

static bool read_split(RtSplit *s, const char *folder, const char *name,
                       const RtDataSpec *spec, const RtFiles *files,
                       uint64_t *hash, RtError *e) {
    char *x = rt_path("%s/%s_%s.npy", folder, name, image_name(spec)),
         *y = rt_path("%s/%s_y.npy", folder, name);
    bool good =
        (x != NULL && y != NULL) || rt_fail(e, EXIT_MEMORY, "out of memory");
    s->fetch = rt_split_fetch;
    good =
        good &&
        rt_npy_column(files, x, &spec->image, &s->image, &s->count, hash, e) &&
        rt_numbers_check(&s->image, s->count, false, x, e);
    if (good && spec->label.rank < 0)
        good = rt_column_reserve(&s->label, RT_FILE_U8, 0, s->count, e);
    else
        good = good && read_labels(s, y, spec, files, hash, e);
    good = good && read_arrays(s, folder, name, spec, files, hash, e);
    free(x);
    free(y);
    return good;
}

bool rt_npy_read(RtData *d, const char *path, const RtDataSpec *spec,
                 const RtFiles *files, RtError *e) {
    char *x = rt_path("test_%s.npy", image_name(spec));
    const char *const test[] = {x, "test_y.npy", NULL};
    bool good = x != NULL ? read_split(&d->train, path, "train", spec, files,
                                       &d->hash, e) &&
                                (rt_lacks_test(spec, path, test) ||
                                 (rt_test_found(spec, path, x, e) &&
                                  read_split(&d->test, path, "test", spec,
                                             files, &d->hash, e)))
                          : rt_fail(e, EXIT_MEMORY, "out of memory");
    free(x);
    return good;
}
