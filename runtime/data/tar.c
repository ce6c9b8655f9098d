// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tar: walks the members of an archive (POSIX.1-2017, pax: ustar and pax
// headers; GNU tar's long names and large sizes).
//
// A member is a block of 512 bytes, then its data, padded to whole blocks.  A
// block of zeros ends the archive, so a file without one is truncated.
#include "runtime/data/data.h"

#include "base/round_up.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    BLOCK = 512,
    NAME_AT = 0,
    NAME_BYTES = 100,
    SIZE_AT = 124,
    SIZE_BYTES = 12,
    SUM_AT = 148,
    SUM_BYTES = 8,
    TYPE_AT = 156,
    MAGIC_AT = 257,
    PREFIX_AT = 345,
    PREFIX_BYTES = 155,
};

static bool damaged(const RtTar *t, const char *why, RtError *e) {
    return rt_fail(e, EXIT_DATA, "%s: %s at byte %" PRId64, t->in.path, why,
                   t->at);
}

// ---- bytes ----

bool rt_tar_read(RtTar *t, int64_t from, size_t count, void *to, RtError *e) {
    return rt_reader_has(&t->in, from, (int64_t)count)
               ? rt_reader_copy(&t->in, from, count, to, e)
               : damaged(t, "the archive is truncated", e);
}

// ---- fields ----

// A number in octal digits, or in base 256 if its first bit is set; -1:
// neither.
static int64_t number(const uint8_t *field, int length) {
    bool binary = field[0] == 0x80;
    int64_t value = 0;
    int i = binary;
    while (!binary && i < length && field[i] == ' ')
        i++;
    for (; i < length; i++) {
        int digit = binary ? field[i] : field[i] - '0';
        if (!binary && (field[i] == ' ' || field[i] == 0))
            return value;
        if (digit < 0 || (!binary && digit > 7) || value > INT64_MAX >> 8)
            return -1;
        value = value * (binary ? 256 : 8) + digit;
    }
    return value;
}

static bool sum_is_right(const uint8_t *block) {
    int64_t sum = 0;
    for (int i = 0; i < BLOCK; i++)
        sum += i >= SUM_AT && i < SUM_AT + SUM_BYTES ? ' ' : block[i];
    return sum == number(block + SUM_AT, SUM_BYTES);
}

static bool is_zero(const uint8_t *block) {
    int i = 0;
    while (i < BLOCK && block[i] == 0)
        i++;
    return i == BLOCK;
}

// ---- headers before a member's own ----

// GNU tar: a name of any length is the data of a member of type L.
static bool read_long_name(RtTar *t, int64_t from, int64_t bytes, RtError *e) {
    if (bytes >= (int64_t)sizeof t->name)
        return damaged(t, "a member's name is too long", e);
    t->name[bytes] = '\0';
    t->is_named = true;
    return rt_tar_read(t, from, (size_t)bytes, t->name, e);
}

// Takes KEY=VALUE of one pax record.
static bool take_record(RtTar *t, const char *text, size_t length, RtError *e) {
    const char *value = memchr(text, '=', length);
    if (value == NULL)
        return damaged(t, "a pax record without = is", e);
    size_t key = (size_t)(value++ - text), rest = length - key - 1;
    if (key == 4 && memcmp(text, "path", 4) == 0) {
        if (rest >= sizeof t->name)
            return damaged(t, "a member's name is too long", e);
        memcpy(t->name, value, rest);
        t->name[rest] = '\0';
        t->is_named = true;
    }
    if (key == 4 && memcmp(text, "size", 4) == 0) {
        for (t->bytes = 0; rest > 0 && *value >= '0' && *value <= '9' &&
                           t->bytes < INT64_MAX >> 8;
             rest--)
            t->bytes = 10 * t->bytes + (*value++ - '0');
        return rest == 0 || damaged(t, "a pax size that is no number is", e);
    }
    return true;
}

// POSIX: records `LENGTH KEY=VALUE\n` are the data of a member of type x.
static bool read_records(RtTar *t, int64_t from, int64_t bytes, RtError *e) {
    char text[RT_TAR_RECORDS];
    if (bytes > (int64_t)sizeof text)
        return damaged(t, "a pax header above 16 KiB is", e);
    if (!rt_tar_read(t, from, (size_t)bytes, text, e))
        return false;
    for (size_t at = 0, end = (size_t)bytes; at < end;) {
        size_t length = 0, digits = at;
        while (digits < end && length < end && text[digits] >= '0' &&
               text[digits] <= '9')
            length = 10 * length + (size_t)(text[digits++] - '0');
        size_t head = digits + 1 - at;
        if (digits == end || text[digits] != ' ' || length <= head ||
            length > end - at || text[at + length - 1] != '\n')
            return damaged(t, "a damaged pax header is", e);
        if (!take_record(t, text + at + head, length - head - 1, e))
            return false;
        at += length;
    }
    return true;
}

// ---- members ----

// The name in a header; ustar's has a prefix.
static void own_name(RtTar *t, const uint8_t *block) {
    const char *name = (const char *)block + NAME_AT;
    const char *prefix = (const char *)block + PREFIX_AT;
    bool ustar = memcmp(block + MAGIC_AT, "ustar", 6) == 0 && *prefix != '\0';
    snprintf(t->name, sizeof t->name, "%.*s%s%.*s", ustar ? PREFIX_BYTES : 0,
             prefix, ustar ? "/" : "", NAME_BYTES, name);
}

// The header at t->at, and the bytes of its data; *end: there is none.
static bool read_header(RtTar *t, uint8_t *block, int64_t *bytes, bool *end,
                        RtError *e) {
    if (!rt_tar_read(t, t->at, BLOCK, block, e))
        return false;
    *end = is_zero(block);
    if (*end)
        return true;
    *bytes = number(block + SIZE_AT, SIZE_BYTES);
    if (!sum_is_right(block))
        return damaged(t, "there is no tar header with a right checksum", e);
    if (t->bytes >= 0)
        *bytes = t->bytes;
    if (*bytes < 0)
        return damaged(t, "a size that is no number is", e);
    if (*bytes > t->in.size - t->at - BLOCK)
        return damaged(t, "the archive is truncated in the member", e);
    return true;
}

// GNU tar writes a file that it has written before as a hard link.
static bool refuse_link(RtTar *t, RtError *e) {
    return rt_fail(e, EXIT_DATA,
                   "%s: %s is a hard link, which has no bytes; tar with "
                   "--hard-dereference writes them",
                   t->in.path, t->name);
}

static bool is_file(char type) {
    return type == '0' || type == '\0' || type == '7';
}

bool rt_tar_next(RtTar *t, RtTarMember *m, RtError *e) {
    *m = (RtTarMember){.name = NULL};
    t->is_named = false;
    t->bytes = -1;
    for (;;) {
        uint8_t block[BLOCK];
        int64_t bytes = 0, first = t->at + BLOCK;
        bool end = false, good = true;
        if (!read_header(t, block, &bytes, &end, e) || end)
            return end;
        char type = (char)block[TYPE_AT];
        bool before = type == 'L' || type == 'x';
        if (type == 'L')
            good = read_long_name(t, first, bytes, e);
        else if (type == 'x')
            good = read_records(t, first, bytes, e);
        else if ((is_file(type) || type == '1') && !t->is_named)
            own_name(t, block);
        if (type == '1')
            good = refuse_link(t, e);
        if (!good)
            return false;
        t->at = first + align_up(bytes, BLOCK);
        if (is_file(type)) {
            *m = (RtTarMember){t->name, first, bytes};
            return true;
        }
        if (!before && type != 'g') {
            t->is_named = false;
            t->bytes = -1;
        }
    }
}

bool rt_tar_open(RtTar *t, const RtFiles *files, const char *path, RtError *e) {
    t->at = 0;
    return rt_reader_open(&t->in, files, path, e);
}

void rt_tar_close(RtTar *t) {
    rt_reader_close(&t->in);
}
