// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// DuckDB's C interface.  Results are read in chunks of some thousand rows; the
// values of a column lie in one vector of the chunk.
//
// The database neither loads extensions nor writes files, and keeps the rows of
// a file in their order.
#include "runtime/data/duckdb.h"
#include "runtime/library.h"
#include "runtime/machine.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// duckdb_result of duckdb.h, which functions take by value.
typedef struct {
    uint64_t counts[3];
    void *columns;
    char *message;
    void *data;
} Result;

// duckdb_string_t: a length and 12 bytes, or a length, 4 bytes and a pointer.
typedef struct {
    union {
        uint64_t align;
        uint8_t bytes[16];
    } value;
} String;

// clang-format off
#define FUNCTIONS(F) \
    F(const char *, version, "duckdb_library_version", (void)) \
    F(int, open, "duckdb_open", (const char *, void **)) \
    F(void, close, "duckdb_close", (void **)) \
    F(int, connect, "duckdb_connect", (void *, void **)) \
    F(void, disconnect, "duckdb_disconnect", (void **)) \
    F(int, query, "duckdb_query", (void *, const char *, Result *)) \
    F(const char *, message, "duckdb_result_error", (Result *)) \
    F(void, result_free, "duckdb_destroy_result", (Result *)) \
    F(void *, chunk_next, "duckdb_fetch_chunk", (Result)) \
    F(uint64_t, chunk_rows, "duckdb_data_chunk_get_size", (void *)) \
    F(void *, chunk_vector, "duckdb_data_chunk_get_vector", (void *, uint64_t)) \
    F(void, chunk_free, "duckdb_destroy_data_chunk", (void **)) \
    F(void *, vector_data, "duckdb_vector_get_data", (void *)) \
    F(uint64_t *, vector_valid, "duckdb_vector_get_validity", (void *)) \
    F(uint32_t, string_length, "duckdb_string_t_length", (String)) \
    F(const char *, string_data, "duckdb_string_t_data", (String *))
// clang-format on

struct RtDuckdb {
    void *library, *database, *connection;
    FUNCTIONS(RT_FUNCTION)
};

static const RtSymbol symbols[] = {
#define F(type, member, name, arguments) {name, offsetof(RtDuckdb, member)},
    FUNCTIONS(F)
#undef F
};

enum { SUCCESS = 0 }; // duckdb_state

static bool library_open(RtDuckdb *d, RtError *e) {
    const char *named = getenv("SINTER_DUCKDB");
    const char *const files[] = {
        named != NULL && *named != '\0' ? named : "libduckdb.so", NULL};
    const RtLibrary library = {
        .needed = "a table needs",
        .files = files,
        .remedy = "install DuckDB's C library, 1.1 or later, or name its file "
                  "in SINTER_DUCKDB",
        .status = EXIT_DATA,
        .symbol = symbols,
        .num_symbols = sizeof symbols / sizeof *symbols};
    d->library = rt_library_open(&library, d, e);
    return d->library != NULL;
}

static bool database_open(RtDuckdb *d, RtError *e) {
    static const char settings[] = "SET autoinstall_known_extensions = false;"
                                   "SET autoload_known_extensions = false;"
                                   "SET temp_directory = '';"
                                   "SET preserve_insertion_order = true";
    if (d->open(NULL, &d->database) != SUCCESS ||
        d->connect(d->database, &d->connection) != SUCCESS)
        return rt_fail(e, EXIT_MEMORY, "DuckDB %s cannot start", d->version());
    return rt_duckdb_query(d, "DuckDB", settings, NULL, NULL, e);
}

RtDuckdb *rt_duckdb_open(RtError *e) {
    RtDuckdb *d = calloc(1, sizeof *d);
    if (d == NULL)
        rt_fail(e, EXIT_MEMORY, "out of memory");
    else if (library_open(d, e) && database_open(d, e))
        return d;
    rt_duckdb_close(d);
    return NULL;
}

void rt_duckdb_close(RtDuckdb *d) {
    if (d == NULL)
        return;
    if (d->connection != NULL)
        d->disconnect(&d->connection);
    if (d->database != NULL)
        d->close(&d->database);
    rt_library_close(d->library);
    free(d);
}

// ---- queries ----

// The start of DuckDB's message, in one line; advice about SQL follows it.
static bool fail(const RtDuckdb *d, Result *r, const char *path, RtError *e) {
    enum { MOST = 400 };
    const char *message = d->message(r);
    char why[MOST] = "unknown error";
    if (message != NULL)
        snprintf(why, sizeof why, "%s", message);
    char *end = strstr(why, "\n\n");
    if (end != NULL)
        *end = '\0';
    for (char *line = why; (line = strchr(line, '\n')) != NULL;)
        *line = ' ';
    return rt_fail(e, EXIT_DATA, "%s: %s", path, why);
}

static bool result_read(const RtDuckdb *d, Result r, RtChunkHook *hook,
                        void *context, RtError *e) {
    RtChunk c = {.duckdb = d};
    bool good = true;
    while (good && (c.chunk = d->chunk_next(r)) != NULL) {
        c.rows = (int64_t)d->chunk_rows(c.chunk);
        good = hook(context, &c, e);
        c.first += c.rows;
        d->chunk_free(&c.chunk);
    }
    return good;
}

bool rt_duckdb_query(const RtDuckdb *d, const char *path, const char *sql,
                     RtChunkHook *hook, void *context, RtError *e) {
    Result r = {.data = NULL};
    bool good =
        d->query(d->connection, sql, &r) == SUCCESS || fail(d, &r, path, e);
    good = good && (hook == NULL || result_read(d, r, hook, context, e));
    d->result_free(&r);
    return good;
}

// ---- SQL ----

char *rt_duckdb_path(const char *path) {
    size_t at = 0;
    char *quoted = malloc(3 * strlen(path) + 3);
    if (quoted == NULL)
        return NULL;
    quoted[at++] = '\'';
    for (; *path != '\0'; path++) {
        bool special = strchr("*?[", *path) != NULL;
        if (special)
            quoted[at++] = '[';
        if (*path == '\'')
            quoted[at++] = '\'';
        quoted[at++] = *path;
        if (special)
            quoted[at++] = ']';
    }
    quoted[at++] = '\'';
    quoted[at] = '\0';
    return quoted;
}

bool rt_duckdb_is_number(const char *type) {
    static const char *const types[] = {
        "BOOLEAN",   "TINYINT", "SMALLINT", "INTEGER", "BIGINT",
        "HUGEINT",   "FLOAT",   "DOUBLE",   "DECIMAL", "UTINYINT",
        "USMALLINT", "UBIGINT", "UINTEGER", "UHUGEINT"};
    size_t length = strcspn(type, "(");
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strlen(types[i]) == length && memcmp(type, types[i], length) == 0)
            return true;
    return false;
}

// ---- values ----

RtVector rt_chunk_column(const RtChunk *c, int column) {
    const RtDuckdb *d = c->duckdb;
    void *vector = d->chunk_vector(c->chunk, (uint64_t)column);
    return (RtVector){.duckdb = d,
                      .data = d->vector_data(vector),
                      .valid = d->vector_valid(vector)};
}

bool rt_vector_has(const RtVector *v, int64_t i) {
    return v->valid == NULL || (v->valid[i / 64] >> (i % 64) & 1) != 0;
}

double rt_vector_number(const RtVector *v, int64_t i) {
    return ((const double *)v->data)[i];
}

const char *rt_vector_text(const RtVector *v, int64_t i, size_t *length) {
    String *s = (String *)v->data + i;
    *length = v->duckdb->string_length(*s);
    return v->duckdb->string_data(s);
}

char *rt_vector_copy(const RtVector *v, int64_t i) {
    size_t length;
    const char *text = rt_vector_text(v, i, &length);
    return rt_path("%.*s", (int)length, text);
}

// ---- sinter doctor ----

// The library is optional.
void rt_duckdb_component(RtComponentHook *report, void *context) {
    RtComponent found = {.name = "DuckDB"};
    RtDuckdb d = {.library = NULL};
    char absent[sizeof(RtError) + 16];
    RtError e;
    if (library_open(&d, &e)) {
        found.version = d.version();
        found.version += *found.version == 'v';
        found.path = rt_library_path(&d.version);
    } else {
        snprintf(absent, sizeof absent, "absent: %s", e.text);
        found.version = absent;
    }
    report(context, &found);
    rt_library_close(d.library);
}
