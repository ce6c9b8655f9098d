// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tables: Parquet or CSV files with a row for each sample, read by DuckDB.
// Columns of numbers are the input, others the label, which may also be the
// name of a class.
//
// All rows are read to memory at the start.  DuckDB holds the whole result of a
// query in double, so each query reads a part of the columns.
#define _POSIX_C_SOURCE 200809L

#include "runtime/data/data.h"
#include "runtime/data/duckdb.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static const char *const suffixes[] = {".parquet", ".csv", NULL};

// Columns and classes of all files, as the first file of the training set and
// the model file give them.
typedef struct {
    const RtDataSpec *spec;
    RtDuckdb *duckdb;
    RtNames input, label; // columns
    RtNames class;        // sorted, if the label is a name
    bool has_names;
} Table;

typedef struct {
    const char *path;
    char *from;         // its clause of a query
    RtNames name, type; // of its columns
    int64_t rows;
} File;

static int64_t num_labels(const Table *t) {
    return t->spec->label.rank < 0 ? 0 : t->label.count;
}

// The name of a column, counted over inputs, then labels.
static const char *column_name(const Table *t, int64_t k) {
    return k < t->input.count ? t->input.name[k]
                              : t->label.name[k - t->input.count];
}

static int64_t position(const RtNames *n, const char *name) {
    for (int64_t i = 0; i < n->count; i++)
        if (strcmp(n->name[i], name) == 0)
            return i;
    return -1;
}

// ---- queries ----

// Closes a stream of memory and returns its text, which the caller frees; NULL:
// no memory.
static char *text_close(FILE *stream, char **text) {
    if (stream != NULL && fclose(stream) == 0)
        return *text;
    free(*text);
    return NULL;
}

// Runs SQL, which it frees; NULL: no memory.
static bool query(const Table *t, const File *f, char *sql, RtChunkHook *hook,
                  void *context, RtError *e) {
    bool good = sql != NULL
                    ? rt_duckdb_query(t->duckdb, f->path, sql, hook, context, e)
                    : rt_fail(e, EXIT_MEMORY, "out of memory");
    free(sql);
    return good;
}

// The types of a CSV file's columns follow from all of its rows.  That takes
// longer than a query, so later ones get the types.
static void csv_options(FILE *to, const RtNames *type) {
    fprintf(to, ", header = true, quote = '\"', escape = '\"', comment = '', "
                "skip = 0");
    if (type->count == 0)
        fprintf(to, ", sample_size = -1");
    for (int64_t i = 0; i < type->count; i++)
        fprintf(to, "%s'%s'", i > 0 ? ", " : ", types = [", type->name[i]);
    if (type->count > 0)
        fprintf(to, "]");
}

// The function of SQL that reads a file.  type: of its columns; without any,
// DuckDB finds them.
static char *from_clause(const char *path, const RtNames *type) {
    bool is_csv = rt_names_suffix(path, suffixes) == suffixes[1];
    char *text = NULL, *quoted = rt_duckdb_path(path);
    size_t length;
    FILE *to = quoted != NULL ? open_memstream(&text, &length) : NULL;
    if (to != NULL) {
        fprintf(to, "read_%s(%s, hive_partitioning = false",
                is_csv ? "csv" : "parquet", quoted);
        if (is_csv)
            csv_options(to, type);
        fprintf(to, ")");
    }
    free(quoted);
    return text_close(to, &text);
}

static bool columns_add(void *context, const RtChunk *c, RtError *e) {
    File *f = context;
    RtVector name = rt_chunk_column(c, 0), type = rt_chunk_column(c, 1);
    bool good = true;
    for (int64_t i = 0; good && i < c->rows; i++)
        good = rt_names_add(&f->name, rt_vector_copy(&name, i), e) &&
               rt_names_add(&f->type, rt_vector_copy(&type, i), e);
    return good;
}

static bool rows_set(void *context, const RtChunk *c, RtError *e) {
    File *f = context;
    RtVector count = rt_chunk_column(c, 0);
    f->rows = (int64_t)rt_vector_number(&count, 0);
    return f->rows > 0 || rt_fail(e, EXIT_DATA, "%s has no rows", f->path);
}

static bool file_open(File *f, const Table *t, const char *path, RtError *e) {
    *f = (File){.path = path};
    char *from = from_clause(path, &f->type);
    char *sql =
        from != NULL ? rt_path("DESCRIBE SELECT * FROM %s", from) : NULL;
    bool good = query(t, f, sql, columns_add, f, e);
    free(from);
    f->from = good ? from_clause(path, &f->type) : NULL;
    if (good && f->from == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    return good &&
           query(t, f,
                 rt_path("SELECT CAST(count(*) AS DOUBLE) FROM %s", f->from),
                 rows_set, f, e);
}

static void file_close(File *f) {
    free(f->from);
    rt_names_free(&f->name);
    rt_names_free(&f->type);
}

// ---- columns ----

static bool fail_cell(const File *f, int64_t row, const char *column,
                      const char *why, RtError *e) {
    return rt_fail(e, EXIT_DATA, "%s: row %lld, column \"%s\": %s", f->path,
                   (long long)row + 1, column, why);
}

static bool fail_missing(const File *f, const char *column, RtError *e) {
    enum { MOST = 20 };
    char list[500] = "";
    int64_t all = f->name.count;
    for (int64_t i = 0; i < all && i < MOST; i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "",
                 f->name.name[i]);
    }
    return rt_fail(e, EXIT_DATA,
                   "%s has no column \"%s\"; its columns are %s%s", f->path,
                   column, list, all > MOST ? ", ..." : "");
}

// A column of texts while the first that is no number is looked for.
typedef struct {
    const File *file;
    const char *column;
} Texts;

static bool is_numeral(const char *text, size_t length) {
    char copy[64], *end;
    snprintf(copy, sizeof copy, "%.*s", (int)length, text);
    strtod(copy, &end);
    return end != copy && *end == '\0';
}

static bool texts_refuse(void *context, const RtChunk *c, RtError *e) {
    const Texts *t = context;
    RtVector v = rt_chunk_column(c, 0);
    for (int64_t i = 0; i < c->rows; i++) {
        char why[100] = "there is no value";
        if (rt_vector_has(&v, i)) {
            size_t length;
            const char *text = rt_vector_text(&v, i, &length);
            if (is_numeral(text, length))
                continue;
            snprintf(why, sizeof why, "\"%.*s\" is not a number", (int)length,
                     text);
        }
        return fail_cell(t->file, c->first + i, t->column, why, e);
    }
    return true;
}

// Refuses a column of another type than numbers.
static bool fail_type(const Table *t, const File *f, int64_t k, RtError *e) {
    Texts texts = {f, f->name.name[k]};
    const char *type = f->type.name[k];
    bool is_text = strcmp(type, "VARCHAR") == 0;
    return (!is_text ||
            query(t, f,
                  rt_path("SELECT #%lld FROM %s", (long long)k + 1, f->from),
                  texts_refuse, &texts, e)) &&
           rt_fail(e, EXIT_DATA, "%s: column \"%s\" is of type %s, not numbers",
                   f->path, texts.column, type);
}

// Checks that a file has the columns.
static bool columns_check(const Table *t, const File *f, RtError *e) {
    int64_t all = t->input.count + num_labels(t);
    for (int64_t i = 0; i < all; i++) {
        const char *name = column_name(t, i);
        int64_t k = position(&f->name, name);
        bool is_name = t->has_names && i >= t->input.count;
        if (k < 0)
            return fail_missing(f, name, e);
        if (!is_name && !rt_duckdb_is_number(f->type.name[k]))
            return fail_type(t, f, k, e);
    }
    return true;
}

// Adds the columns that a setting of the model file lists.
static bool listed_add(RtNames *to, const RtDataSpec *spec, const char *setting,
                       RtError *e) {
    const char *at = rt_setting_text(spec, setting);
    bool good = true;
    while (good && *at != '\0') {
        size_t length = strcspn(at, "\n");
        good = rt_names_add(to, rt_path("%.*s", (int)length, at), e);
        at += length + (at[length] == '\n');
    }
    return good;
}

static bool counts_check(const Table *t, const File *f, bool listed,
                         RtError *e) {
    const RtDataSpec *s = t->spec;
    char shape[100];
    if ((size_t)t->input.count != rt_shape_values(&s->image))
        return rt_fail(
            e, EXIT_DATA, "%s has %lld columns%s, but the trainer takes %s",
            listed ? "the model file" : f->path, (long long)t->input.count,
            listed ? "" : " besides the label",
            rt_shape_text(shape, sizeof shape, s->image.rank, s->image.dim));
    return s->label.rank < 0 ||
           (size_t)t->label.count == rt_shape_values(&s->label) ||
           rt_fail(
               e, EXIT_DATA,
               "the model file has %lld labels, but the trainer takes %s",
               (long long)t->label.count,
               rt_shape_text(shape, sizeof shape, s->label.rank, s->label.dim));
}

// Chooses the columns of all files by the first one.
static bool columns_choose(Table *t, const File *f, RtError *e) {
    bool good = listed_add(&t->label, t->spec, "label", e) &&
                listed_add(&t->input, t->spec, "columns", e);
    bool listed = t->input.count > 0;
    for (int64_t i = 0; good && !listed && i < f->name.count; i++)
        if (position(&t->label, f->name.name[i]) < 0)
            good = rt_names_add(&t->input, rt_path("%s", f->name.name[i]), e);
    int64_t label = num_labels(t) == 1 && t->spec->label.type == RT_I32
                        ? position(&f->name, t->label.name[0])
                        : -1;
    t->has_names = label >= 0 && strcmp(f->type.name[label], "VARCHAR") == 0;
    for (int64_t i = 0; good && i < num_labels(t); i++)
        good = position(&f->name, t->label.name[i]) >= 0 ||
               fail_missing(f, t->label.name[i], e);
    return good && counts_check(t, f, listed, e);
}

// ---- names of classes ----

// The names of a file while they are added; the first `known` are sorted and of
// other files.
typedef struct {
    Table *table;
    int64_t known;
    const File *file;
} Classes;

static bool class_add(Classes *c, char *name, RtError *e) {
    Table *t = c->table;
    const RtNames known = {.name = t->class.name, .count = c->known};
    const char *path = c->file->path, *column = t->label.name[0];
    if (name != NULL && c->known > 0 && rt_names_find(&known, name) >= 0) {
        free(name);
        return true;
    }
    if (!rt_names_add(&t->class, name, e))
        return false;
    if (strchr(name, '\n') != NULL)
        return rt_fail(e, EXIT_DATA,
                       "%s: column \"%s\" has a class of more than one line",
                       path, column);
    return t->class.count <= t->spec->classes ||
           rt_fail(e, EXIT_DATA,
                   "%s: column \"%s\" has more than the %d classes of the "
                   "trainer",
                   path, column, t->spec->classes);
}

static bool classes_add(void *context, const RtChunk *c, RtError *e) {
    RtVector v = rt_chunk_column(c, 0);
    bool good = true;
    for (int64_t i = 0; good && i < c->rows; i++)
        good = !rt_vector_has(&v, i) || class_add(context, rt_vector_copy(&v, i), e);
    return good;
}

static char *select_names(const Table *t, const File *f, bool distinct) {
    int64_t k = position(&f->name, t->label.name[0]);
    return rt_path("SELECT %sCAST(#%lld AS VARCHAR) FROM %s",
                   distinct ? "DISTINCT " : "", (long long)k + 1, f->from);
}

static bool classes_collect(Table *t, const File *file, int64_t count,
                            RtError *e) {
    bool good = true;
    for (int64_t i = 0; good && i < count; i++) {
        Classes c = {t, t->class.count, &file[i]};
        good = query(t, &file[i], select_names(t, &file[i], true),
                     classes_add, &c, e);
        rt_names_sort(&t->class);
    }
    return good;
}

// ---- rows ----

// A file while rows of some columns are read.
typedef struct {
    const Table *table;
    const File *file;
    RtSplit *split;
    int64_t at;           // of the file's first row in the split
    int64_t first, count; // columns of the query
    int64_t rows;         // read so far
} Reading;

// Whether a column of that type has the number.
static bool number_store(const RtColumn *to, size_t at, double x) {
    bool is_whole = x == floor(x);
    float real = (float)x;
    int32_t whole;
    switch (to->type) {
    case RT_FILE_U8:
        if (!is_whole || x < 0 || x > UINT8_MAX)
            return false;
        to->bytes[at] = (uint8_t)x;
        return true;
    case RT_FILE_I32:
        if (!is_whole || x < INT32_MIN || x > INT32_MAX)
            return false;
        whole = (int32_t)x;
        memcpy(to->bytes + at * sizeof whole, &whole, sizeof whole);
        return true;
    default:
        memcpy(to->bytes + at * sizeof real, &real, sizeof real);
        return isfinite(real);
    }
}

static const char *type_text(RtFileType t) {
    return t == RT_FILE_U8    ? "a whole number from 0 to 255"
           : t == RT_FILE_I32 ? "a whole number of 32 bits"
                              : "a number of type f32";
}

static bool cell_store(const Reading *r, int64_t k, const RtVector *v,
                       int64_t i, RtError *e) {
    const Table *t = r->table;
    bool is_label = k >= t->input.count;
    const RtColumn *to = is_label ? &r->split->label : &r->split->image;
    size_t row = (size_t)(r->at + r->rows + i);
    size_t at = row * to->step + (size_t)(is_label ? k - t->input.count : k);
    char why[100] = "there is no value";
    if (rt_vector_has(v, i)) {
        double x = rt_vector_number(v, i);
        bool fits = number_store(to, at, x);
        bool is_class = !is_label || to->type != RT_FILE_I32 ||
                        (x >= 0 && x < t->spec->classes) ||
                        x == t->spec->ignored;
        if (fits && is_class)
            return true;
        if (fits)
            snprintf(why, sizeof why,
                     "label %.0f, but the model has %d classes", x,
                     t->spec->classes);
        else
            snprintf(why, sizeof why, "%.9g is not %s", x, type_text(to->type));
    }
    return fail_cell(r->file, r->rows + i, column_name(t, k), why, e);
}

static bool fail_changed(const Reading *r, RtError *e) {
    return rt_fail(e, EXIT_DATA, "%s changes while it is read", r->file->path);
}

static bool numbers_store(void *context, const RtChunk *c, RtError *e) {
    Reading *r = context;
    if (r->rows + c->rows > r->file->rows)
        return fail_changed(r, e);
    for (int64_t k = 0; k < r->count; k++) {
        RtVector v = rt_chunk_column(c, (int)k);
        for (int64_t i = 0; i < c->rows; i++)
            if (!cell_store(r, r->first + k, &v, i, e))
                return false;
    }
    r->rows += c->rows;
    return true;
}

static bool name_store(const Reading *r, const RtVector *v, int64_t i,
                       RtError *e) {
    const Table *t = r->table;
    char *name = rt_vector_has(v, i) ? rt_vector_copy(v, i) : NULL;
    int64_t class = name != NULL ? rt_names_find(&t->class, name) : -1;
    char why[100] = "there is no value";
    if (name != NULL)
        snprintf(why, sizeof why, "\"%s\" is a class that is not in train",
                 name);
    free(name);
    return class >= 0 ? number_store(&r->split->label,
                                     (size_t)(r->at + r->rows + i),
                                     (double)class)
                      : fail_cell(r->file, r->rows + i, t->label.name[0], why,
                                  e);
}

static bool names_store(void *context, const RtChunk *c, RtError *e) {
    Reading *r = context;
    RtVector v = rt_chunk_column(c, 0);
    bool good = r->rows + c->rows <= r->file->rows || fail_changed(r, e);
    for (int64_t i = 0; good && i < c->rows; i++)
        good = name_store(r, &v, i, e);
    r->rows += c->rows;
    return good;
}

// DuckDB 2.0 parses the text of a CSV file as the type of a cast, so it refuses
// to cast `true`.
static void number_select(FILE *to, const File *f, const char *column) {
    int64_t k = position(&f->name, column);
    long long n = (long long)k + 1;
    if (strcmp(f->type.name[k], "BOOLEAN") == 0)
        fprintf(to, "CAST(CASE WHEN #%lld THEN 1 WHEN NOT #%lld THEN 0 END AS "
                    "DOUBLE)",
                n, n);
    else
        fprintf(to, "CAST(#%lld AS DOUBLE)", n);
}

static char *select_numbers(const Reading *r) {
    char *text = NULL;
    size_t length;
    FILE *to = open_memstream(&text, &length);
    for (int64_t k = 0; to != NULL && k < r->count; k++) {
        fprintf(to, "%s", k > 0 ? ", " : "SELECT ");
        number_select(to, r->file, column_name(r->table, r->first + k));
    }
    if (to != NULL)
        fprintf(to, " FROM %s", r->file->from);
    return text_close(to, &text);
}

static bool part_read(Reading *r, char *sql, RtChunkHook *hook, RtError *e) {
    r->rows = 0;
    return query(r->table, r->file, sql, hook, r, e) &&
           (r->rows == r->file->rows || fail_changed(r, e));
}

// The numbers of a query are a sixteenth of the split's, or 64 MiB.
static bool file_read(const Table *t, const File *f, RtSplit *split, int64_t at,
                      RtError *e) {
    enum { FEW = 8 << 20, SHARE = 16 };
    int64_t all = t->input.count + (t->has_names ? 0 : num_labels(t));
    int64_t most = split->count * all / SHARE;
    int64_t each = (most > FEW ? most : FEW) / f->rows;
    Reading r = {.table = t, .file = f, .split = split, .at = at};
    bool good = true;
    each = each > 0 ? each : 1;
    for (; good && r.first < all; r.first += each) {
        r.count = all - r.first < each ? all - r.first : each;
        good = part_read(&r, select_numbers(&r), numbers_store, e);
    }
    return good && (!t->has_names ||
                    part_read(&r, select_names(t, f, false), names_store, e));
}

// ---- a split ----

static bool rows_read(const Table *t, RtSplit *split, const File *file,
                      int64_t count, RtError *e) {
    static const RtFileType type[] = {
        [RT_F32] = RT_FILE_F32, [RT_I32] = RT_FILE_I32, [RT_U8] = RT_FILE_U8};
    const RtDataSpec *s = t->spec;
    int64_t rows = 0, at = 0;
    for (int64_t i = 0; i < count; i++)
        rows += file[i].rows;
    bool good = rt_split_reserve(split, rows, type[s->image.type],
                                 (size_t)t->input.count, type[s->label.type],
                                 (size_t)num_labels(t), e);
    for (int64_t i = 0; good && i < count; at += file[i++].rows)
        good = file_read(t, &file[i], split, at, e);
    return good;
}

static void hash_add(uint64_t *hash, const RtSplit *s) {
    const RtColumn *column[] = {&s->image, &s->label};
    for (int i = 0; i < 2; i++)
        *hash = XXH3_64bits_withSeed(column[i]->bytes,
                                     (size_t)s->count * column[i]->step *
                                         rt_file_type_bytes(column[i]->type),
                                     *hash);
}

static bool files_read(Table *t, RtSplit *split, File *file,
                       const RtNames *path, RtError *e) {
    bool first = t->input.count == 0, good = true;
    for (int64_t i = 0; good && i < path->count; i++)
        good = file_open(&file[i], t, path->name[i], e);
    good = good && (!first || columns_choose(t, file, e));
    for (int64_t i = 0; good && i < path->count; i++)
        good = columns_check(t, &file[i], e);
    if (good && first && t->has_names)
        good = classes_collect(t, file, path->count, e);
    return good && rows_read(t, split, file, path->count, e);
}

static bool split_read(Table *t, RtSplit *split, uint64_t *hash,
                       const RtNames *path, RtError *e) {
    File *file = calloc((size_t)path->count, sizeof *file);
    bool good = file != NULL ? files_read(t, split, file, path, e)
                             : rt_fail(e, EXIT_MEMORY, "out of memory");
    for (int64_t i = 0; file != NULL && i < path->count; i++)
        file_close(&file[i]);
    free(file);
    if (good)
        hash_add(hash, split);
    return good;
}

// ---- files ----

bool rt_is_table(const char *path) {
    return rt_names_suffix(path, suffixes) != NULL;
}

// Copies of one table in two forms would be read twice.
static bool suffix_check(const RtNames *path, RtError *e) {
    for (int64_t i = 1; i < path->count; i++)
        if (rt_names_suffix(path->name[i], suffixes) !=
            rt_names_suffix(path->name[0], suffixes))
            return rt_fail(e, EXIT_DATA,
                           "%s and %s are for the same set: keep Parquet or "
                           "CSV files there",
                           path->name[0], path->name[i]);
    return true;
}

static bool files_check(const RtShards *s, const char *path,
                        const RtDataSpec *spec, RtError *e) {
    if (s->train.count == 0)
        return rt_fail(e, EXIT_DATA,
                       "%s has no .parquet or .csv file for training", path);
    if (s->test.count == 0 && !spec->test_optional)
        return rt_fail(e, EXIT_DATA,
                       "%s %s: add one, or hold rows out with "
                       "--validation=10%%",
                       path,
                       rt_is_table(path)
                           ? "is no folder with a file for the test"
                           : "has no .parquet or .csv file for the test, in a "
                             "folder test, val or validation or with that "
                             "word in its name");
    return suffix_check(&s->train, e) && suffix_check(&s->test, e);
}

// A file is the training set, a folder has both sets.
static bool files_find(RtShards *to, const char *path, RtError *e) {
    struct stat s;
    if (stat(path, &s) != 0 || S_ISDIR(s.st_mode))
        return rt_shards_find(to, path, suffixes, e);
    return rt_is_table(path)
               ? rt_names_add(&to->train, rt_path("%s", path), e)
               : rt_fail(e, EXIT_DATA, "%s is neither a .parquet nor a .csv "
                                       "file",
                         path);
}

static void table_close(Table *t) {
    rt_duckdb_close(t->duckdb);
    rt_names_free(&t->input);
    rt_names_free(&t->label);
    rt_names_free(&t->class);
}

// The order of the names gives the labels their meaning.
static bool classes_keep(RtData *d, const Table *t, RtError *e) {
    if (!t->has_names)
        return true;
    d->classes = rt_names_text(&t->class);
    if (d->classes == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    d->hash = XXH3_64bits_withSeed(d->classes, strlen(d->classes), d->hash);
    return true;
}

// A checkpoint keeps a name in a line of at most 255 bytes.
static bool columns_keep(RtData *d, const Table *t, RtError *e) {
    for (int64_t i = 0; i < t->input.count; i++)
        if (strlen(t->input.name[i]) > 255 || *t->input.name[i] == '\0' ||
            strpbrk(t->input.name[i], "\r\n") != NULL)
            return true;
    d->columns = rt_names_text(&t->input);
    return d->columns != NULL || rt_fail(e, EXIT_MEMORY, "out of memory");
}

bool rt_table_read(RtData *d, const char *path, const RtDataSpec *spec,
                   const RtFiles *files, RtError *e) {
    (void)files; // DuckDB opens them
    RtShards s = {.train = {0}};
    Table t = {.spec = spec};
    bool good = files_find(&s, path, e) && files_check(&s, path, spec, e) &&
                (t.duckdb = rt_duckdb_open(e)) != NULL &&
                split_read(&t, &d->train, &d->hash, &s.train, e) &&
                (s.test.count == 0 ||
                 split_read(&t, &d->test, &d->hash, &s.test, e)) &&
                classes_keep(d, &t, e) && columns_keep(d, &t, e);
    rt_ignored_text(d->ignored, &s.ignored, path, ".parquet or .csv");
    rt_shards_free(&s);
    table_close(&t);
    return good;
}

bool rt_table_open(RtData *d, const char *path, const RtDataSpec *spec,
                   RtError *e) {
    char *name = rt_path("%s", path);
    const RtNames one = {.name = &name, .count = 1};
    Table t = {.spec = spec, .duckdb = rt_duckdb_open(e)};
    bool good = t.duckdb != NULL &&
                (name != NULL || rt_fail(e, EXIT_MEMORY, "out of memory")) &&
                split_read(&t, &d->test, &d->hash, &one, e);
    free(name);
    table_close(&t);
    return good;
}
