// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// DuckDB: queries of Parquet and CSV files by its library, opened when a data
// set needs it.
#ifndef RUNTIME_DATA_DUCKDB_H
#define RUNTIME_DATA_DUCKDB_H

#include "runtime/runtime.h"

// A connection to an empty database in memory.
typedef struct RtDuckdb RtDuckdb;
RtDuckdb *rt_duckdb_open(RtError *e); // NULL with *e filled
void rt_duckdb_close(RtDuckdb *d);    // may be NULL

// Some rows of a result, as long as the call that gets them.
typedef struct {
    const RtDuckdb *duckdb;
    void *chunk;
    int64_t first, rows; // counted in the result
} RtChunk;

typedef bool RtChunkHook(void *context, const RtChunk *chunk, RtError *e);

// Runs SQL and calls `hook` with all rows of the result, in order.  Messages
// begin with `path`.
bool rt_duckdb_query(const RtDuckdb *d, const char *path, const char *sql,
                     RtChunkHook *hook, void *context, RtError *e);

// A path in quotes, whose special characters stand for themselves; the caller
// frees it.  NULL: no memory.
char *rt_duckdb_path(const char *path);
// Whether a column's type, as DESCRIBE names it, has numbers.
bool rt_duckdb_is_number(const char *type);

// A column of a chunk, of type DOUBLE, VARCHAR or BLOB.
typedef struct {
    const RtDuckdb *duckdb;
    void *data;
    const uint64_t *valid; // a bit of each row; NULL: every row has a value
} RtVector;

RtVector rt_chunk_column(const RtChunk *c, int column);
// Whether row i of the chunk has a value; the value.  A text has no null byte
// at its end.
bool rt_vector_has(const RtVector *v, int64_t i);
double rt_vector_number(const RtVector *v, int64_t i);
const char *rt_vector_text(const RtVector *v, int64_t i, size_t *length);
// A copy of a text, which the caller frees; NULL: no memory.
char *rt_vector_copy(const RtVector *v, int64_t i);

#endif
