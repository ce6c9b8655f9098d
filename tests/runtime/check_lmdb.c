// LMDB: entries of a file of few small pages, and messages about damaged ones.
// tests/end_to_end/lmdb.sh reads files that LMDB wrote.
#define _POSIX_C_SOURCE 200809L

#include "runtime/data/data.h"
#include "tests/runtime/place.h"
#include "tests/runtime/suites.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIZE = 4, PIXELS = SIZE * SIZE, PAGE = 512, PAGES = 8 };
enum { BRANCH = 1, LEAF = 2, OVERFLOW = 4, META = 8 };
enum { ON_OVERFLOW_PAGES = 1 };

static RtData data;
static RtError error;
static uint8_t file[PAGES * PAGE];

// ---- a file ----

static void put(size_t at, uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        file[at + i] = (uint8_t)(value >> 8 * i);
}

static void put_page(size_t page, unsigned flags) {
    put(page * PAGE, page, 8);
    put(page * PAGE + 10, flags, 2);
    put(page * PAGE + 12, 16, 2);
    put(page * PAGE + 14, PAGE, 2);
}

static void put_meta(size_t page, uint64_t transaction, uint64_t root,
                     unsigned depth, uint64_t entries) {
    size_t at = page * PAGE;
    put_page(page, META);
    put(at + 16, 0xbeefc0de, 4);
    put(at + 20, 1, 4);
    put(at + 40, PAGE, 4);
    put(at + 94, depth, 2);
    put(at + 120, entries, 8);
    put(at + 128, root, 8);
    put(at + 144, transaction, 8);
}

// Adds a node below the others of a page; returns the place of its key.
static size_t put_node(size_t page, uint64_t number, unsigned flags,
                       const char *key, size_t value) {
    size_t at = page * PAGE, length = strlen(key);
    size_t lower = file[at + 12] + 256u * file[at + 13];
    size_t upper = file[at + 14] + 256u * file[at + 15];
    upper -= (8 + length + value + 1) / 2 * 2;
    put(at + lower, upper, 2);
    put(at + 12, lower + 2, 2);
    put(at + 14, upper, 2);
    put(at + upper, number, 6);
    if (flags != 0)
        put(at + upper + 4, flags, 2);
    put(at + upper + 6, length, 2);
    memcpy(file + at + upper + 8, key, length);
    return at + upper + 8;
}

// A Datum of grey pixels of one value, with a field that is unknown; returns
// its length.
static size_t put_datum(size_t at, int side, uint8_t grey, uint8_t label) {
    int count = side * side, n = 0;
    uint8_t *to = file + at;
    to[n++] = 0x08, to[n++] = 1;
    to[n++] = 0x10, to[n++] = (uint8_t)side;
    to[n++] = 0x18, to[n++] = (uint8_t)side;
    to[n++] = 0x22, to[n++] = (uint8_t)(count | 0x80);
    to[n++] = (uint8_t)(count >> 7);
    memset(to + n, grey, (size_t)count);
    n += count;
    to[n++] = 0x28, to[n++] = label;
    to[n++] = 0x7d, to[n++] = 1, to[n++] = 2, to[n++] = 3, to[n++] = 4;
    return (size_t)n;
}

enum { SMALL = 32, LARGE = 416 }; // bytes of records of 4 x 4 and 20 x 20

static void leaf_add(size_t page, const char *key, uint8_t grey,
                     uint8_t label) {
    size_t at = put_node(page, SMALL, 0, key, SMALL);
    ck_assert_uint_eq(put_datum(at + strlen(key), SIZE, grey, label), SMALL);
}

// Pages: meta, meta, branch, leaf, leaf, overflow; an older tree is empty.
static void make_file(void) {
    memset(file, 0, sizeof file);
    put_meta(0, 7, 2, 2, 4);
    put_meta(1, 6, UINT64_MAX, 0, 0);
    put_page(2, BRANCH);
    put_node(2, 3, 0, "", 0);
    put_node(2, 4, 0, "c", 0);
    put_page(3, LEAF);
    leaf_add(3, "a", 10, 2);
    leaf_add(3, "b", 20, 0);
    put_page(4, LEAF);
    size_t key = put_node(4, LARGE, ON_OVERFLOW_PAGES, "c", 8);
    put(key + 1, 5, 8);
    leaf_add(4, "d", 40, 1);
    put_page(5, OVERFLOW);
    ck_assert_uint_eq(put_datum(5 * PAGE + 16, 20, 30, 1), LARGE);
}

static bool open_file(void) {
    const RtDataSpec sample = {.image = {RT_U8, 3, {SIZE, SIZE, 3}},
                               .label = {RT_I32, 0, {0}},
                               .classes = 3,
                               .test_optional = true};
    memset(&error, 0, sizeof error);
    place_forget("d");
    place_folder("d");
    place_write("d/data.mdb", file, sizeof file);
    return rt_data_open(&data, "lmdb", "d", &sample, &rt_system_files, &error);
}

START_TEST(entries_are_in_order) {
    static const int label[] = {2, 0, 1, 1};
    make_file();
    ck_assert_msg(open_file(), "%s", error.text);
    ck_assert_int_eq(data.train.count, 4);
    for (int i = 0; i < 4; i++) {
        uint8_t pixel[PIXELS * 3];
        int32_t found;
        memcpy(&found, rt_column_at(&data.train.label, i), sizeof found);
        ck_assert_int_eq(found, label[i]);
        ck_assert_msg(data.train.fetch(&data.train, i, pixel, &error), "%s",
                      error.text);
        for (size_t k = 0; k < sizeof pixel; k++)
            ck_assert_int_eq(pixel[k], 10 * (i + 1));
    }
    rt_data_close(&data);
}
END_TEST

START_TEST(a_damaged_page) {
    enum { TREE = 2 * PAGE, FIRST = 3 * PAGE, SECOND = 4 * PAGE };
    enum { NODE = PAGE - 42 }; // of the first node of a leaf, with its end
    static const struct {
        size_t at, bytes;
        uint64_t value;
        const char *says;
    } cases[] = {
        {16, 4, 0xdec0efbe, "d/data.mdb is no LMDB file"},
        {10, 2, LEAF, "d/data.mdb is no LMDB file"},
        {20, 4, 2, "d/data.mdb is in format 2 of LMDB, but only 1"},
        {40, 4, 1 << 17, "page 0 is damaged or missing: the size of pages"},
        {40, 4, 0, "page 0 is damaged or missing: the size of pages"},
        {40, 4, 1024, "page 1 is damaged or missing: its number is another"},
        {PAGE + 40, 4, 1024, "page 1 is damaged or missing: the size of pages"},
        {94, 2, 33, "page 0 is damaged or missing: its tree is too deep"},
        {94, 2, 1, "page 2 is damaged or missing: it is of another kind"},
        {94, 2, 3, "page 3 is damaged or missing: it is of another kind"},
        {120, 8, 3, "page 4 is damaged or missing: it has more entries"},
        {120, 8, 5, "page 2 is damaged or missing: entries are missing"},
        {128, 8, 77, "page 77 is damaged or missing: the file is truncated"},
        {128, 8, (uint64_t)1 << 63, "damaged or missing: the file is truncat"},
        {128, 8, INT64_MAX, "is damaged or missing: the file is truncated"},
        {TREE, 8, 3, "page 2 is damaged or missing: its number is another"},
        {TREE + 12, 2, 15, "page 2 is damaged or missing: its list of nodes"},
        {TREE + 12, 2, 1000, "page 2 is damaged or missing: its list of nodes"},
        {TREE + 16, 2, 17, "page 2 is damaged or missing: a key crosses"},
        {TREE + 16, 2, PAGE - 7, "page 2 is damaged or missing: a key crosses"},
        {TREE + 16, 2, 65535, "page 2 is damaged or missing: a key crosses"},
        {TREE + PAGE - 8, 6, 2, "page 2 is damaged or missing: it is of anot"},
        {TREE + PAGE - 8, 6, 99, "page 99 is damaged or missing: the file is"},
        {FIRST + NODE, 4, 40, "page 3 is damaged or missing: a value crosses"},
        {FIRST + NODE, 4, UINT32_MAX, "page 3 is damaged or missing: a value"},
        {FIRST + NODE + 6, 2, 40, "page 3 is damaged or missing: a key cros"},
        {FIRST + NODE + 4, 2, 2, "d/data.mdb has databases with names"},
        {FIRST + NODE + 4, 2, 4, "or several values of a key"},
        {SECOND + PAGE - 9, 8, 4, "page 4 is damaged or missing: the file lac"},
        {SECOND + PAGE - 9, 8, 88, "page 88 is damaged or missing: the file"},
        {SECOND + PAGE - 18, 4, 4 * PAGE, "page 5 is damaged or missing: the"},
        {FIRST + NODE + 9, 1, 0x0b, "d/data.mdb:a: it is no message Datum"},
        {FIRST + NODE + 16, 1, 0x7f, "d/data.mdb:a: it is no message Datum"},
        {FIRST + NODE + 34, 1, 0x2f, "d/data.mdb:a: it is no message Datum"},
        {FIRST + NODE + 35, 1, 3, "d/data.mdb:a has label 3, but the model"},
        {FIRST + NODE + 10, 1, 2, "a: its 16 bytes are neither a JPEG"},
        {FIRST + NODE + 12, 1, 0, "a: its 16 bytes are neither a JPEG"},
        {FIRST + NODE + 34, 1, 0x30, "d/data.mdb:a has its pixels in float_"},
    };
    make_file();
    put(cases[_i].at, cases[_i].value, cases[_i].bytes);
    ck_assert_msg(!open_file(), "accepted: %s", cases[_i].says);
    ck_assert_int_eq(error.status, EXIT_DATA);
    ck_assert_msg(strstr(error.text, cases[_i].says) != NULL, "%s, not: %s",
                  error.text, cases[_i].says);
}
END_TEST

// Two pages that name one another would have no end.
START_TEST(pages_form_no_circle) {
    make_file();
    put_meta(0, 7, 2, 32, 4);
    put_page(3, BRANCH);
    put(3 * PAGE + 12, 20, 2);
    for (size_t page = 2; page < 4; page++)
        for (size_t k = 0; k < 2; k++) {
            put(page * PAGE + 16 + 2 * k, PAGE - 8, 2);
            put(page * PAGE + PAGE - 8, 5 - page, 6);
            put(page * PAGE + PAGE - 2, 0, 2);
        }
    ck_assert(!open_file());
    ck_assert_msg(strstr(error.text, "pages form a circle") != NULL, "%s",
                  error.text);
}
END_TEST

// A record of two hundred numbers would take long to read for each of many keys.
START_TEST(a_record_has_few_fields) {
    enum { DATUM = 5 * PAGE + 16, DATA = 6, BYTES = 9 };
    make_file();
    file[DATUM + DATA] = 0x28; // a label of two bytes
    memset(file + DATUM + BYTES, 0x08, 400);
    ck_assert(!open_file());
    ck_assert_str_eq(error.text,
                     "d/data.mdb:c: it is no message Datum of Caffe");
}
END_TEST

// A wrong byte is refused or gives other pixels; it is never read outside of
// the file, which a sanitizer reports.
START_TEST(any_byte_may_be_wrong) {
    uint8_t pixel[PIXELS * 3];
    for (size_t at = (size_t)_i; at < sizeof file; at += 8) {
        make_file();
        file[at] ^= (uint8_t)(1 << at % 7 | 0x80);
        if (!open_file()) {
            ck_assert_int_eq(error.status, EXIT_DATA);
            continue;
        }
        for (int64_t i = 0; i < data.train.count; i++)
            ck_assert_msg(data.train.fetch(&data.train, i, pixel, &error), "%s",
                          error.text);
        rt_data_close(&data);
    }
}
END_TEST

START_TEST(a_file_that_becomes_shorter) {
    uint8_t pixel[PIXELS * 3];
    make_file();
    ck_assert(open_file());
    ck_assert_int_eq(truncate("d/data.mdb", 5 * PAGE), 0);
    ck_assert(!data.train.fetch(&data.train, 2, pixel, &error));
    ck_assert_str_eq(error.text,
                     "cannot read d/data.mdb: the file is truncated");
    ck_assert_int_eq(error.status, EXIT_IO);
    rt_data_close(&data);
}
END_TEST

Suite *lmdb_suite(void) {
    Suite *s = suite_create("lmdb");
    TCase *t = tcase_create("lmdb");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, place_enter, place_leave);
    tcase_add_test(t, entries_are_in_order);
    tcase_add_loop_test(t, a_damaged_page, 0, 38);
    tcase_add_test(t, pages_form_no_circle);
    tcase_add_test(t, a_record_has_few_fields);
    tcase_add_loop_test(t, any_byte_may_be_wrong, 0, 8);
    tcase_add_test(t, a_file_that_becomes_shorter);
    suite_add_tcase(s, t);
    return s;
}
