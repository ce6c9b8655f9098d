// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Image table: images in files, and a table with the numbers of each.
//
// A folder has train.csv and test.csv (RFC 4180, without line ends in quotes;
// blanks around a field are not part of it).
// The first line has the names of the columns.  Each other line is a sample:
// the path of its image from the folder, and the numbers of its arrays.  An
// array NAME of one number has the column NAME, one of several the columns
// NAME.0, NAME.1 and so on, in any order.  Other columns are ignored.
//
// Or it has Parquet files with the bytes of the images (image_rows.c).
#define _POSIX_C_SOURCE 200809L

#include "runtime/data/data.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

// The target of a column: a number of an array, or the image.
typedef struct {
    RtColumn *to; // NULL: the image, or an ignored column
    RtType type;  // of the array
    size_t value;
    bool is_image;
    char *name; // in the text of the table
} Field;

typedef struct {
    const char *path, *folder;
    const RtFilePart *part; // of each image; NULL: they are files of the folder
    const char *row;        // the part's name, for messages; NULL: none
    char *text, *at;
    int64_t line;
    Field *field; // by column
    int num_fields, room;
    RtColumn label; // the split's, in the end
} Table;

// ---- text ----

static bool fail_line(const Table *t, const char *why, RtError *e) {
    return t->row != NULL
               ? rt_fail(e, EXIT_DATA, "%s: %s", t->row, why)
               : rt_fail(e, EXIT_DATA, "%s:%lld: %s", t->path,
                         (long long)t->line, why);
}

static const char blanks[] = " \t";

// Unquotes the field at t->at in place, and moves to its end.
static char *field_take(Table *t, char **end, RtError *e) {
    t->at += strspn(t->at, blanks);
    char *from = t->at, *to = from;
    if (*from != '"') {
        t->at += strcspn(from, ",\r\n");
        *end = t->at;
        while (*end > from && strchr(blanks, (*end)[-1]) != NULL)
            --*end;
        return from;
    }
    char *p = from + 1;
    while (*p != '\0' && *p != '\n' && (p[0] != '"' || p[1] == '"')) {
        p += p[0] == '"';
        *to++ = *p++;
    }
    if (*p != '"') {
        fail_line(t, "a quote has no end on its line", e);
        return NULL;
    }
    t->at = p + 1;
    t->at += strspn(t->at, blanks);
    *end = to;
    return from;
}

// The next field of a line; NULL with *e filled. *last: the line ends.
static char *field_next(Table *t, bool *last, RtError *e) {
    char *end, *field = field_take(t, &end, e);
    if (field == NULL)
        return NULL;
    *last = *t->at != ',';
    t->at += t->at[0] == '\r' && t->at[1] == '\n';
    if (*t->at != ',' && *t->at != '\n' && *t->at != '\0') {
        fail_line(t, "a field has text after its quote", e);
        return NULL;
    }
    t->at += *t->at != '\0';
    *end = '\0';
    return field;
}

static bool table_open(Table *t, const RtFiles *files, RtError *e) {
    static const char mark[] = "\xef\xbb\xbf"; // Unicode's byte order mark
    size_t bytes;
    int fd = rt_open_sized(files, t->path, &bytes, e);
    if (fd < 0)
        return false;
    t->text = t->at = bytes < SIZE_MAX ? calloc(bytes + 1, 1) : NULL;
    bool good = t->text != NULL || rt_fail(e, EXIT_MEMORY, "out of memory");
    if (good && !rt_read(files, fd, t->text, bytes))
        good = rt_fail_read(e, t->path);
    files->close(fd);
    if (good && strlen(t->text) != bytes)
        good = rt_fail(e, EXIT_DATA, "%s has a zero byte", t->path);
    if (good && strncmp(t->text, mark, sizeof mark - 1) == 0)
        t->at += sizeof mark - 1;
    return good;
}

// The samples that its lines have at most.
static int64_t count_lines(const Table *t) {
    int64_t count = 1;
    for (const char *c = t->at; (c = strchr(c, '\n')) != NULL; c++)
        count++;
    return count;
}

// ---- columns ----

// Whether a column is NAME, or NAME.VALUE of an array of several.
static bool column_is(const char *column, const char *name, size_t values,
                      size_t *value) {
    size_t length = strlen(name);
    char *end;
    *value = 0;
    if (strncmp(column, name, length) != 0)
        return false;
    if (values == 1 && column[length] == '\0')
        return true;
    if (column[length] != '.' || column[length + 1] < '0' ||
        column[length + 1] > '9')
        return false;
    *value = strtoull(column + length + 1, &end, 10);
    return *end == '\0' && *value < values;
}

static void field_find(Table *t, Field *f, RtSplit *s,
                       const RtDataSpec *spec) {
    const char *image = spec->image_name != NULL ? spec->image_name : "image";
    f->is_image = strcmp(f->name, image) == 0;
    if (spec->label.rank >= 0 &&
        column_is(f->name, "label", rt_shape_values(&spec->label), &f->value)) {
        f->to = &t->label;
        f->type = spec->label.type;
    }
    for (int i = 0; f->to == NULL && i < spec->num_arrays; i++) {
        const RtShape *shape = &spec->array[i].shape;
        if (column_is(f->name, spec->array[i].name, rt_shape_values(shape),
                      &f->value)) {
            f->to = &s->array[i];
            f->type = shape->type;
        }
    }
}

static bool field_add(Table *t, char *name, RtSplit *s, const RtDataSpec *spec,
                      RtError *e) {
    if (t->num_fields == t->room) {
        t->room = 2 * t->room + 8;
        Field *more = realloc(t->field, (size_t)t->room * sizeof *more);
        if (more == NULL)
            return rt_fail(e, EXIT_MEMORY, "out of memory");
        t->field = more;
    }
    Field *f = &t->field[t->num_fields++];
    *f = (Field){.name = name};
    field_find(t, f, s, spec);
    return true;
}

// Lists the columns, and names the separator if it is another.
static bool fail_columns(const Table *t, const char *why, RtError *e) {
    char list[1000] = "";
    size_t length = 0;
    for (int i = 0; i < t->num_fields && length < sizeof list; i++)
        length +=
            (size_t)snprintf(list + length, sizeof list - length, "%s'%s'",
                             i > 0 ? ", " : "", t->field[i].name);
    bool other = t->num_fields == 1 && strpbrk(t->field->name, ";\t") != NULL;
    return rt_fail(e, EXIT_DATA, "%s has %s; it has %s%s", t->path, why, list,
                   other ? ": separate columns by commas" : "");
}

// Whether each number of an array has one column.
static bool check_array(const Table *t, const RtColumn *to, const char *name,
                        size_t values, RtError *e) {
    for (size_t k = 0; k < values; k++) {
        int found = 0;
        for (int i = 0; i < t->num_fields; i++)
            found += t->field[i].to == to && t->field[i].value == k;
        const char *many = found == 0 ? "no" : "more than one";
        char why[200];
        if (values == 1)
            snprintf(why, sizeof why, "%s column %s", many, name);
        else
            snprintf(why, sizeof why, "%s column %s.%zu", many, name, k);
        if (found != 1)
            return fail_columns(t, why, e);
    }
    return true;
}

static bool check_fields(const Table *t, const RtSplit *s,
                         const RtDataSpec *spec, RtError *e) {
    int images = 0;
    char why[200];
    for (int i = 0; i < t->num_fields; i++)
        images += t->field[i].is_image;
    snprintf(why, sizeof why, "%d columns %s, and not one", images,
             spec->image_name != NULL ? spec->image_name : "image");
    if (images != 1)
        return fail_columns(t, why, e);
    bool good =
        spec->label.rank < 0 ||
        check_array(t, &t->label, "label", rt_shape_values(&spec->label), e);
    for (int i = 0; good && i < spec->num_arrays; i++)
        good = check_array(t, &s->array[i], spec->array[i].name,
                           rt_shape_values(&spec->array[i].shape), e);
    return good;
}

static bool fields_read(Table *t, RtSplit *s, const RtDataSpec *spec,
                        RtError *e) {
    bool last = false;
    t->line = 1;
    while (!last) {
        char *name = field_next(t, &last, e);
        if (name == NULL || !field_add(t, name, s, spec, e))
            return false;
    }
    return check_fields(t, s, spec, e);
}

// ---- samples ----

static bool number_add(const Table *t, const Field *f, const char *text,
                       int64_t sample, RtError *e) {
    char *end;
    double number = strtod(text, &end);
    bool whole = f->type != RT_F32;
    double least = f->type == RT_U8 ? 0 : -INT32_MAX,
           most = f->type == RT_U8 ? UINT8_MAX : INT32_MAX;
    float real = (float)number;
    if (end == text || *end != '\0' || !isfinite(real) ||
        (whole && (number != floor(number) || number < least || number > most))) {
        char why[RT_MESSAGE_BYTES];
        snprintf(why, sizeof why,
                 "column %s has '%.40s', and not a %snumber in its range",
                 f->name, text, whole ? "whole " : "");
        return fail_line(t, why, e);
    }
    int32_t integer = whole ? (int32_t)number : 0;
    uint8_t byte = (uint8_t)integer;
    size_t bytes = rt_file_type_bytes(f->to->type);
    memcpy(rt_column_at(f->to, sample) + f->value * bytes,
           f->type == RT_U8 ? (const void *)&byte
           : whole          ? (const void *)&integer
                            : &real,
           bytes);
    return true;
}

static bool image_add(Table *t, RtSplit *s, const char *name, RtError *e) {
    if (t->part != NULL) {
        t->row = name;
        return rt_images_add(s, rt_path("%s", name), &t->part[s->count], 0, e);
    }
    char *path = rt_path("%s/%s", t->folder, name);
    if (path == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    if (rt_names_suffix(name, rt_image_suffix) != NULL &&
        access(path, R_OK) == 0)
        return rt_images_add(s, path, NULL, 0, e);
    rt_fail(e, EXIT_DATA, "%s:%lld: '%.200s' is no .jpg, .jpeg, .png or .webp "
                          "file in %s",
            t->path, (long long)t->line, name, t->folder);
    free(path);
    return false;
}

static bool sample_read(Table *t, RtSplit *s, RtError *e) {
    bool last = false, good = true;
    int64_t sample = s->count;
    int i = 0;
    for (; good && !last && i < t->num_fields; i++) {
        const Field *f = &t->field[i];
        const char *text = field_next(t, &last, e);
        good = text != NULL && (f->to != NULL ? number_add(t, f, text, sample, e)
                                : f->is_image ? image_add(t, s, text, e)
                                              : true);
    }
    return good && ((last && i == t->num_fields) ||
                    rt_fail(e, EXIT_DATA, "%s:%lld: the line has not %d fields",
                            t->path, (long long)t->line, t->num_fields));
}

// ---- a split ----

static RtFileType file_type(RtType type) {
    return type == RT_F32  ? RT_FILE_F32
           : type == RT_U8 ? RT_FILE_U8
                           : RT_FILE_I32;
}

static bool columns_reserve(Table *t, RtSplit *s, const RtDataSpec *spec,
                            RtError *e) {
    int64_t count = count_lines(t);
    bool good = rt_column_reserve(
        &t->label, file_type(spec->label.type),
        spec->label.rank >= 0 ? rt_shape_values(&spec->label) : 0, count, e);
    for (int i = 0; good && i < spec->num_arrays; i++) {
        const RtShape *shape = &spec->array[i].shape;
        s->num_arrays = i + 1;
        good = rt_column_reserve(&s->array[i], file_type(shape->type),
                                 rt_shape_values(shape), count, e);
    }
    return good;
}

static bool samples_read(Table *t, RtSplit *s, const RtDataSpec *spec,
                         RtError *e) {
    bool good = fields_read(t, s, spec, e);
    for (t->line++; good && *t->at != '\0'; t->line++)
        good = sample_read(t, s, e);
    return good && (s->count > 0 ||
                    rt_fail(e, EXIT_DATA, "%s has no samples", t->path));
}

static bool check_classes(const RtSplit *s, const RtDataSpec *spec,
                          const char *path, RtError *e) {
    bool good = spec->label.rank < 0 || spec->label.type == RT_F32 ||
                rt_labels_check(s, spec, path, e);
    for (int i = 0; good && i < spec->num_arrays; i++) {
        const RtArray *a = &spec->array[i];
        good = a->classes > 0
                   ? rt_classes_check(&s->array[i], s->count, a, path, e)
                   : !a->weighs || rt_numbers_check(&s->array[i], s->count,
                                                    true, path, e);
    }
    return good;
}

static void columns_hash(const RtSplit *s, const char *folder, uint64_t *hash) {
    const RtImages *images = s->source;
    for (int64_t i = 0; i < s->count; i++) {
        const char *within = images->name.name[i] + strlen(folder);
        *hash = XXH3_64bits_withSeed(within, strlen(within), *hash);
    }
    for (int i = -1; i < s->num_arrays; i++) {
        const RtColumn *c = i < 0 ? &s->label : &s->array[i];
        size_t bytes =
            (size_t)s->count * c->values * rt_file_type_bytes(c->type);
        *hash = XXH3_64bits_withSeed(c->bytes, bytes, *hash);
    }
}

// rt_images_add has made labels, of which there is another column.
static bool table_read(Table *t, RtData *d, RtSplit *s, const RtDataSpec *spec,
                       RtError *e) {
    RtImages *images = s->source;
    bool good = columns_reserve(t, s, spec, e) && samples_read(t, s, spec, e);
    if (good) {
        images->is_table = true;
        free(s->label.bytes);
        s->label = t->label;
        t->label.bytes = NULL;
        columns_hash(s, t->folder, &d->hash);
    }
    free(t->label.bytes);
    free(t->field);
    return good && check_classes(s, spec, t->path, e) &&
           rt_images_complete(s, spec, e);
}

static bool csv_read(RtData *d, RtSplit *s, const char *folder,
                     const char *name, const RtDataSpec *spec,
                     const RtFiles *files, RtError *e) {
    char *path = rt_path("%s/%s", folder, name);
    Table t = {.path = path, .folder = folder};
    bool good = (path != NULL || rt_fail(e, EXIT_MEMORY, "out of memory")) &&
                rt_images_open(d, s, spec, files, e) != NULL &&
                table_open(&t, files, e) && table_read(&t, d, s, spec, e);
    free(t.text);
    free(path);
    return good;
}

static bool parquet_read(RtData *d, RtSplit *s, const char *folder,
                         const RtNames *path, const RtDataSpec *spec,
                         const RtFiles *files, RtError *e) {
    const char *image = spec->image_name != NULL ? spec->image_name : "image";
    RtImages *images = rt_images_open(d, s, spec, files, e);
    if (images == NULL)
        return false;
    RtImageRows rows;
    bool good = rt_image_rows_read(&rows, path, image, e);
    images->spool = rows.spool;
    Table t = {.path = folder,
               .folder = folder,
               .text = rows.text,
               .at = rows.text,
               .part = rows.part};
    good = good &&
           rt_names_add(&images->file, rt_path("/proc/self/fd/%d", rows.spool),
                        e) &&
           table_read(&t, d, s, spec, e);
    free(rows.text);
    free(rows.part);
    return good;
}

static bool parquets_read(RtData *d, const RtShards *s, const char *folder,
                          const RtDataSpec *spec, const RtFiles *files,
                          RtError *e) {
    if (s->test.count == 0 && !spec->test_optional)
        return rt_fail(e, EXIT_DATA,
                       "%s has no .parquet file for the test, in a folder "
                       "test, val or validation or with that word in its name: "
                       "add one, or hold images out with --validation=10%%",
                       folder);
    return parquet_read(d, &d->train, folder, &s->train, spec, files, e) &&
           (s->test.count == 0 ||
            parquet_read(d, &d->test, folder, &s->test, spec, files, e));
}

bool rt_image_table_read(RtData *d, const char *path, const RtDataSpec *spec,
                         const RtFiles *files, RtError *e) {
    static const char *const test[] = {"test.csv", NULL};
    static const char *const suffix[] = {".parquet", NULL};
    RtShards s = {.train = {0}};
    char *table = rt_path("%s/train.csv", path);
    bool good = table != NULL || rt_fail(e, EXIT_MEMORY, "out of memory");
    bool is_csv = good && access(table, F_OK) == 0;
    good = good && (is_csv || rt_shards_find(&s, path, suffix, e));
    if (good && s.train.count > 0)
        good = parquets_read(d, &s, path, spec, files, e);
    else
        good = good &&
               csv_read(d, &d->train, path, "train.csv", spec, files, e) &&
               (rt_lacks_test(spec, path, test) ||
                (rt_test_found(spec, path, test[0], e) &&
                 csv_read(d, &d->test, path, test[0], spec, files, e)));
    rt_shards_free(&s);
    free(table);
    return good;
}

bool rt_image_table_open(RtData *d, const char *path, const RtDataSpec *spec,
                         const RtFiles *files, RtError *e) {
    char *name = rt_path("%s", path);
    const RtNames one = {.name = &name, .count = 1};
    bool good = (name != NULL || rt_fail(e, EXIT_MEMORY, "out of memory")) &&
                parquet_read(d, &d->test, path, &one, spec, files, e);
    free(name);
    return good;
}
