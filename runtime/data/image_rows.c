// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parquet files with a row for each image, as Hugging Face's datasets writes
// them: a column with the bytes of an image file, alone or as `bytes` of a
// struct, and columns of numbers.  DuckDB reads a file at a time.
//
// Rows become lines of an image table.  The bytes go to a file without a name
// in TMPDIR, since a page of Parquet cannot be read at random.
#define _GNU_SOURCE // mkostemp

#include "runtime/data/data.h"
#include "runtime/data/duckdb.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    RtImageRows *to;
    const char *path, *image;
    FILE *text;
    RtNames column, type; // of the first file
    int64_t room;         // for parts
    int64_t bytes;        // of all images so far
} Rows;

// ---- the query ----

static bool columns_add(void *context, const RtChunk *c, RtError *e) {
    Rows *r = context;
    RtVector name = rt_chunk_column(c, 0), type = rt_chunk_column(c, 1);
    bool good = true;
    for (int64_t i = 0; good && i < c->rows; i++)
        good = rt_names_add(&r->column, rt_vector_copy(&name, i), e) &&
               rt_names_add(&r->type, rt_vector_copy(&type, i), e);
    return good;
}

// Text with each quote doubled, in quotes.
static void quote(FILE *to, const char *text) {
    fputc('"', to);
    for (; *text != '\0'; text++) {
        if (*text == '"')
            fputc('"', to);
        fputc(*text, to);
    }
    fputc('"', to);
}

// The bytes of the image's column; false if it has none.
static bool image_select(FILE *to, const Rows *r) {
    int64_t k = 0;
    while (k < r->column.count && strcmp(r->column.name[k], r->image) != 0)
        k++;
    const char *type = k < r->column.count ? r->type.name[k] : "";
    bool alone = strcmp(type, "BLOB") == 0;
    fprintf(to, "SELECT ");
    quote(to, r->image);
    fprintf(to, alone ? "" : ".bytes");
    return alone || strstr(type, "bytes BLOB") != NULL;
}

static bool is_number(const Rows *r, int64_t k) {
    return rt_duckdb_is_number(r->type.name[k]);
}

static char *select_rows(const Rows *r, const char *from, bool *has_image) {
    char *text = NULL;
    size_t length;
    FILE *to = open_memstream(&text, &length);
    if (to == NULL)
        return NULL;
    *has_image = image_select(to, r);
    for (int64_t k = 0; k < r->column.count; k++) {
        if (!is_number(r, k))
            continue;
        fprintf(to, ", CAST(");
        quote(to, r->column.name[k]);
        fprintf(to, " AS DOUBLE)");
    }
    fprintf(to, " FROM %s", from);
    return fclose(to) == 0 ? text : NULL;
}

// ---- rows ----

static bool part_add(Rows *r, int64_t bytes, RtError *e) {
    RtImageRows *to = r->to;
    if (to->count == r->room) {
        r->room = 2 * r->room + 1024;
        RtFilePart *more =
            realloc(to->part, (size_t)r->room * sizeof *to->part);
        if (more == NULL)
            return rt_fail(e, EXIT_MEMORY, "out of memory");
        to->part = more;
    }
    to->part[to->count++] = (RtFilePart){.first = r->bytes, .bytes = bytes};
    r->bytes += bytes;
    return true;
}

static bool row_add(Rows *r, const RtChunk *c, int64_t i, RtError *e) {
    RtVector image = rt_chunk_column(c, 0);
    long long row = (long long)(c->first + i) + 1;
    size_t count;
    if (!rt_vector_has(&image, i))
        return rt_fail(e, EXIT_DATA, "%s: row %lld has no bytes of an image",
                       r->path, row);
    const char *bytes = rt_vector_text(&image, i, &count);
    errno = 0;
    if (!rt_write(&rt_system_files, r->to->spool, bytes, count))
        return rt_fail(e, EXIT_IO, "cannot copy the images of %s to TMPDIR: %s",
                       r->path, strerror(errno));
    // One of no known form gives its message when it is decoded.
    const char *suffix = rt_image_suffix_of(bytes, count);
    char *name = rt_path("%s:%lld%s", r->path, row,
                         suffix != NULL ? suffix : rt_image_suffix[0]);
    if (name == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    quote(r->text, name);
    free(name);
    int column = 1;
    for (int64_t k = 0; k < r->column.count; k++) {
        if (!is_number(r, k))
            continue;
        RtVector v = rt_chunk_column(c, column++);
        fputc(',', r->text);
        if (rt_vector_has(&v, i))
            fprintf(r->text, "%.17g", rt_vector_number(&v, i));
    }
    fputc('\n', r->text);
    return part_add(r, (int64_t)count, e);
}

static bool rows_add(void *context, const RtChunk *c, RtError *e) {
    bool good = true;
    for (int64_t i = 0; good && i < c->rows; i++)
        good = row_add(context, c, i, e);
    return good;
}

static void names_write(Rows *r) {
    quote(r->text, r->image);
    for (int64_t k = 0; k < r->column.count; k++)
        if (is_number(r, k)) {
            fputc(',', r->text);
            quote(r->text, r->column.name[k]);
        }
    fputc('\n', r->text);
}

// All files have the columns of the first.
static bool file_read(Rows *r, const RtDuckdb *d, RtError *e) {
    bool first = r->column.count == 0, has_image = false;
    char *quoted = rt_duckdb_path(r->path);
    char *from = quoted != NULL ? rt_path("read_parquet(%s)", quoted) : NULL;
    char *sql =
        from != NULL ? rt_path("DESCRIBE SELECT * FROM %s", from) : NULL;
    bool good = sql != NULL || rt_fail(e, EXIT_MEMORY, "out of memory");
    good =
        good && (!first || rt_duckdb_query(d, r->path, sql, columns_add, r, e));
    free(sql);
    sql = good ? select_rows(r, from, &has_image) : NULL;
    if (good && sql == NULL)
        good = rt_fail(e, EXIT_MEMORY, "out of memory");
    if (good && !has_image)
        good = rt_fail(e, EXIT_DATA,
                       "%s has no column \"%s\" with bytes of image files",
                       r->path, r->image);
    if (good && first)
        names_write(r);
    good = good && rt_duckdb_query(d, r->path, sql, rows_add, r, e);
    free(sql);
    free(from);
    free(quoted);
    return good;
}

static int spool_open(RtError *e) {
    const char *folder = getenv("TMPDIR");
    char *path = rt_path("%s/sinter-XXXXXX",
                         folder != NULL && *folder != '\0' ? folder : "/tmp");
    int fd = path != NULL ? mkostemp(path, O_CLOEXEC) : -1;
    if (fd < 0)
        rt_fail(e, EXIT_IO, "cannot make a file in TMPDIR for images");
    else
        unlink(path);
    free(path);
    return fd;
}

bool rt_image_rows_read(RtImageRows *to, const RtNames *path, const char *image,
                        RtError *e) {
    size_t length;
    *to = (RtImageRows){.spool = spool_open(e)};
    Rows r = {.to = to, .image = image};
    RtDuckdb *d = to->spool >= 0 ? rt_duckdb_open(e) : NULL;
    bool good = d != NULL;
    r.text = good ? open_memstream(&to->text, &length) : NULL;
    if (good && r.text == NULL)
        good = rt_fail(e, EXIT_MEMORY, "out of memory");
    for (int64_t i = 0; good && i < path->count; i++) {
        r.path = path->name[i];
        good = file_read(&r, d, e);
    }
    if (r.text != NULL && fclose(r.text) != 0 && good)
        good = rt_fail(e, EXIT_MEMORY, "out of memory");
    rt_duckdb_close(d);
    rt_names_free(&r.column);
    rt_names_free(&r.type);
    return good;
}
