// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// LMDB: walks the entries of a database by its file alone (format 1, that of
// LMDB 0.9; its structures are in mdb.c of openldap.org's LMDB).
//
// A file has pages of one size, numbered from 0.  Pages 0 and 1 are meta pages:
// the one of the newer transaction has the root of a tree of branch and leaf
// pages.  A page begins with its number, flags and the end of a list of 16-bit
// offsets of nodes.  A leaf's node has a key and a value, or the number of the
// first of the value's overflow pages, which is in one piece.
//
// LMDB itself maps the file and trusts it, so a truncated or damaged one would
// end the process.  Here every number is checked before it is followed.

#include "runtime/data/data.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    // of every page
    NUMBER_AT = 0,
    FLAGS_AT = 10,
    LOWER_AT = 12, // end of the list of offsets
    HEADER = 16,
    // of a meta page
    MAGIC_AT = 16,
    VERSION_AT = 20,
    PAGE_BYTES_AT = 40,
    DEPTH_AT = 94, // of the main database, as all below
    ENTRIES_AT = 120,
    ROOT_AT = 128,
    TRANSACTION_AT = 144,
    META = 152,
    // of a node: 32 bits of a size, or 48 of a page's number
    NODE_FLAGS_AT = 4,
    KEY_LENGTH_AT = 6,
    KEY_AT = 8,
    PAGE_NUMBER = 8, // bytes
};

enum { BRANCH = 1, LEAF = 2, OVERFLOW = 4, META_PAGE = 8 };  // page flags
enum { ON_OVERFLOW_PAGES = 1, SUBTREE = 2, DUPLICATES = 4 }; // node flags

enum { MAX_DEPTH = 32, MAX_PAGE = 64 << 10 };

typedef struct {
    RtReader *file;
    RtLmdbHook *hook;
    void *context;
    RtError *e;
    int64_t page_bytes;
    int depth;
    uint64_t root, entries, transaction;
    uint64_t found;     // entries so far
    int64_t pages_left; // that may be read
    uint8_t *level;     // a page for each
} Tree;

// Little-endian.
static uint64_t number(const uint8_t *at, int bytes) {
    uint64_t value = 0;
    for (int i = bytes; i-- > 0;)
        value = value << 8 | at[i];
    return value;
}

static bool damaged(const Tree *t, uint64_t page, const char *why) {
    return rt_fail(t->e, EXIT_DATA,
                   "%s: page %" PRIu64 " is damaged or missing: %s",
                   t->file->path, page, why);
}

// ---- pages ----

// Copies the first bytes of a page, which has its own number.
static bool read_page(Tree *t, uint64_t page, int64_t bytes, uint8_t *to) {
    int64_t first;
    if (page > INT64_MAX ||
        __builtin_mul_overflow((int64_t)page, t->page_bytes, &first) ||
        !rt_reader_has(t->file, first, bytes))
        return damaged(t, page, "the file is truncated, or a number is wrong");
    return rt_reader_copy(t->file, first, (size_t)bytes, to, t->e) &&
           (number(to + NUMBER_AT, 8) == page ||
            damaged(t, page, "its number is another"));
}

// Takes the newer tree of two meta pages; the second is behind the first.
static bool read_meta(Tree *t, uint64_t page) {
    uint8_t meta[META];
    if (!read_page(t, page, META, meta))
        return false;
    if ((number(meta + FLAGS_AT, 2) & META_PAGE) == 0 ||
        number(meta + MAGIC_AT, 4) != 0xbeefc0de)
        return rt_fail(t->e, EXIT_DATA, "%s is no LMDB file", t->file->path);
    uint64_t version = number(meta + VERSION_AT, 4);
    if (version != 1)
        return rt_fail(t->e, EXIT_DATA,
                       "%s is in format %" PRIu64
                       " of LMDB, but only 1, that of LMDB 0.9, is read",
                       t->file->path, version);
    int64_t bytes = (int64_t)number(meta + PAGE_BYTES_AT, 4);
    if (bytes < META || bytes > MAX_PAGE || bytes % 8 != 0 ||
        (page > 0 && bytes != t->page_bytes))
        return damaged(t, page, "the size of pages is wrong");
    t->page_bytes = bytes;
    uint64_t transaction = number(meta + TRANSACTION_AT, 8);
    if (page == 0 || transaction > t->transaction) {
        t->transaction = transaction;
        t->depth = (int)number(meta + DEPTH_AT, 2);
        t->entries = number(meta + ENTRIES_AT, 8);
        t->root = number(meta + ROOT_AT, 8);
    }
    return t->depth <= MAX_DEPTH || damaged(t, page, "its tree is too deep");
}

// ---- nodes ----

static bool take_value(Tree *t, uint64_t page, const uint8_t *node,
                       int64_t node_at, int64_t room) {
    uint64_t flags = number(node + NODE_FLAGS_AT, 2);
    int64_t before = KEY_AT + (int64_t)number(node + KEY_LENGTH_AT, 2);
    int64_t bytes = (int64_t)number(node, 4);
    RtLmdbEntry entry = {.key = node + KEY_AT,
                         .key_length = (size_t)before - KEY_AT,
                         .bytes = bytes};
    if ((flags & (SUBTREE | DUPLICATES)) != 0)
        return rt_fail(t->e, EXIT_DATA,
                       "%s has databases with names, or several values of a "
                       "key: expected one database, with a value for each key",
                       t->file->path);
    bool elsewhere = (flags & ON_OVERFLOW_PAGES) != 0;
    if (before + (elsewhere ? PAGE_NUMBER : bytes) > room)
        return damaged(t, page, "a value crosses its end");
    entry.first = (int64_t)page * t->page_bytes + node_at + before;
    if (elsewhere) {
        uint8_t header[HEADER];
        uint64_t value_page = number(node + before, PAGE_NUMBER);
        if (!read_page(t, value_page, HEADER, header))
            return false;
        entry.first = (int64_t)value_page * t->page_bytes + HEADER;
        if ((number(header + FLAGS_AT, 2) & OVERFLOW) == 0 ||
            !rt_reader_has(t->file, entry.first, bytes))
            return damaged(t, value_page, "the file lacks a value's bytes");
    }
    if (t->found++ == t->entries)
        return damaged(t, page, "it has more entries than the database");
    return t->hook(t->context, &entry, t->e);
}

static bool walk(Tree *t, uint64_t page, int level) {
    uint8_t *p = t->level + level * t->page_bytes;
    if (t->pages_left-- == 0)
        return damaged(t, page, "pages form a circle");
    if (!read_page(t, page, t->page_bytes, p))
        return false;
    int64_t lower = (int64_t)number(p + LOWER_AT, 2);
    bool is_leaf = level == t->depth - 1;
    if (number(p + FLAGS_AT, 2) % (2 * META_PAGE) != (is_leaf ? LEAF : BRANCH))
        return damaged(t, page, "it is of another kind");
    if (lower < HEADER || lower > t->page_bytes)
        return damaged(t, page, "its list of nodes crosses its end");
    bool good = true;
    for (int64_t i = HEADER; good && i + 2 <= lower; i += 2) {
        int64_t at = (int64_t)number(p + i, 2), room = t->page_bytes - at;
        const uint8_t *node = p + at;
        if (at < lower || room < KEY_AT ||
            room < KEY_AT + (int64_t)number(node + KEY_LENGTH_AT, 2))
            return damaged(t, page, "a key crosses its end");
        good = is_leaf ? take_value(t, page, node, at, room)
                       : walk(t, number(node, 6), level + 1);
    }
    return good;
}

bool rt_lmdb_walk(RtReader *file, RtLmdbHook *hook, void *context, RtError *e) {
    Tree t = {.file = file,
              .hook = hook,
              .context = context,
              .e = e,
              .page_bytes = META};
    if (!read_meta(&t, 0) || !read_meta(&t, 1))
        return false;
    if (t.depth > 0) {
        t.pages_left = file->size / t.page_bytes;
        t.level = malloc((size_t)t.depth * (size_t)t.page_bytes);
        bool good = t.level != NULL ? walk(&t, t.root, 0)
                                    : rt_fail(e, EXIT_MEMORY, "out of memory");
        free(t.level);
        if (!good)
            return false;
    }
    return t.found == t.entries || damaged(&t, t.root, "entries are missing");
}
