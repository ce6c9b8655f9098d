// WebDataset: shards, labels, and messages about damaged archives.
#define _POSIX_C_SOURCE 200809L

#include "runtime/data/data.h"
#include "tests/runtime/place.h"
#include "tests/runtime/suites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <png.h>

enum { SIZE = 4, BLOCK = 512, MOST = 64 << 10 };

static RtData data;
static RtError error;
static int64_t max_bad_files;
static bool unlabelled;

// ---- archives ----

// An archive in memory.
static uint8_t tar[MOST];
static size_t length;

static void set_sum(uint8_t *block) {
    unsigned sum = 0;
    memset(block + 148, ' ', 8);
    for (int i = 0; i < BLOCK; i++)
        sum += block[i];
    snprintf((char *)block + 148, 8, "%06o", sum);
}

// Adds a member of any type, with a header of GNU tar's or of ustar.
static void add_as(char type, const char *name, const void *bytes,
                   size_t count) {
    uint8_t *block = tar + length;
    ck_assert_uint_le(length + BLOCK + count + BLOCK, MOST);
    memset(block, 0, BLOCK + count + BLOCK);
    strncpy((char *)block, name, 100);
    memcpy(block + 100, "0000644", 7);
    snprintf((char *)block + 124, 12, "%011o", (unsigned)count);
    block[156] = (uint8_t)type;
    memcpy(block + 257, "ustar\0" "00", 8);
    set_sum(block);
    memcpy(block + BLOCK, bytes, count);
    length += BLOCK + (count + BLOCK - 1) / BLOCK * BLOCK;
}

static void add(const char *name, const void *bytes, size_t count) {
    add_as('0', name, bytes, count);
}

static void add_text(const char *name, const char *text) {
    add(name, text, strlen(text));
}

// An image of one colour.
static void add_image(const char *name, uint8_t red) {
    uint8_t pixel[SIZE * SIZE * 3], bytes[1000];
    png_alloc_size_t count = sizeof bytes;
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .height = SIZE,
                       .width = SIZE,
                       .format = PNG_FORMAT_RGB};
    memset(pixel, red, sizeof pixel);
    ck_assert(png_image_write_to_memory(&image, bytes, &count, 0, pixel, 0,
                                        NULL));
    add(name, bytes, count);
}

static void write_tar(const char *name) {
    memset(tar + length, 0, 2 * BLOCK);
    place_write(name, tar, length + 2 * BLOCK);
    length = 0;
}

// Four samples in two shards, and one for the test.
static void write_good(void) {
    place_folder("d");
    add_text("1.cls", "2");
    add_image("1.png", 10);
    add_image("a.b/2.PNG", 20);
    add_text("a.b/2.cls", " 0\n");
    add_text("a.b/2.txt", "a caption");
    write_tar("d/train-000000.tar");
    add_as('5', "x/", "", 0);
    add_text("x/notes", "no key");
    add_text("x/3.json", "{\"w\": [1, {}], \"label\": 2, \"z\": null}");
    add_image("x/3.png", 30);
    add_image("x/4.png", 40);
    add_text("x/4.cls", "0");
    write_tar("d/train-000001.tar");
    add_image("5.png", 50);
    add_text("5.cls", "1");
    write_tar("d/val-0.tar");
}

static bool open_set(void) {
    const RtDataSpec sample = {.image = {RT_U8, 3, {SIZE, SIZE, 3}},
                               .label = {RT_I32, unlabelled ? -1 : 0, {0}},
                               .classes = 3,
                               .max_bad_files = max_bad_files};
    memset(&error, 0, sizeof error);
    return rt_data_open(&data, "webdataset", "d", &sample, &rt_system_files,
                        &error);
}

static void refused(const char *says) {
    ck_assert_msg(!open_set(), "accepted: %s", says);
    ck_assert_int_eq(error.status, EXIT_DATA);
    ck_assert_msg(strstr(error.text, says) != NULL, "%s", error.text);
}

static void check_sample(const RtSplit *s, int64_t i, int label, int red) {
    uint8_t pixel[SIZE * SIZE * 3];
    int32_t found;
    memcpy(&found, rt_column_at(&s->label, i), sizeof found);
    ck_assert_int_eq(found, label);
    ck_assert_msg(s->fetch(s, i, pixel, &error), "%s", error.text);
    for (size_t k = 0; k < sizeof pixel; k++)
        ck_assert_int_eq(pixel[k], red);
}

static uint64_t check_good(void) {
    ck_assert_msg(open_set(), "%s", error.text);
    ck_assert_int_eq(data.train.count, 4);
    check_sample(&data.train, 0, 2, 10);
    check_sample(&data.train, 1, 0, 20);
    check_sample(&data.train, 2, 2, 30);
    check_sample(&data.train, 3, 0, 40);
    ck_assert_int_eq(data.test.count, 1);
    check_sample(&data.test, 0, 1, 50);
    uint64_t hash = data.hash;
    rt_data_close(&data);
    return hash;
}

// ---- tests ----

START_TEST(shards_are_in_the_order_of_their_names) {
    write_good();
    place_write("d/classes.txt", "cat\nant\ndog\n", 12);
    place_write("d/README.md", "", 0);
    uint64_t hash = check_good();
    ck_assert(open_set());
    ck_assert_str_eq(data.classes, "cat\nant\ndog\n");
    ck_assert_str_eq(data.ignored, "ignored in d, not .tar: 1 .md");
    rt_data_close(&data);
    // An image of an unknown kind is not lost without a word; a caption beside
    // an image is none.
    add_image("6.gif", 60);
    add_text("6.cls", "1");
    add_image("7.png", 70);
    add_text("7.cls", "1");
    add_text("7.txt", "a caption");
    write_tar("d/train-000002.tar");
    ck_assert(open_set());
    ck_assert_int_eq(data.train.count, 5);
    ck_assert_str_eq(data.ignored, "ignored in d, not members .jpg, .jpeg, "
                                   ".png or .webp: 1 .gif");
    rt_data_close(&data);
    ck_assert_int_eq(unlink("d/train-000002.tar"), 0);
    // Labels are part of the data, the names of shards are not.
    rename("d/train-000001.tar", "d/train-7.tar");
    ck_assert_uint_eq(check_good(), hash);
    add_image("5.png", 50);
    add_text("5.cls", "2");
    write_tar("d/val-0.tar");
    ck_assert(open_set());
    ck_assert_uint_ne(data.hash, hash);
    rt_data_close(&data);
}
END_TEST

START_TEST(shards_may_be_in_folders) {
    static const char *const test[] = {"d/test", "d/val", "d/validation"};
    write_good();
    place_folder("d/train");
    place_folder(test[_i]);
    rename("d/train-000000.tar", "d/train/a-0.tar");
    rename("d/train-000001.tar", "d/train/b-test.TAR");
    char name[40];
    snprintf(name, sizeof name, "%s/x.tar", test[_i]);
    rename("d/val-0.tar", name);
    check_good();
}
END_TEST

// A test set goes before one for validation; other words are for training.
START_TEST(a_word_of_the_name_tells_the_set) {
    static const char *const name[] = {"d/in1k-validation-0.tar",
                                       "d/in1k_val_0.tar",
                                       "d/imagenet-Val2012.tar",
                                       "d/test0.tar"};
    write_good();
    rename("d/train-000000.tar", "d/latest-000000.tar");
    rename("d/train-000001.tar", "d/valid.tar");
    rename("d/val-0.tar", name[_i]);
    if (_i == 3)
        place_write("d/val-1.tar", "not read", 8);
    check_good();
}
END_TEST

START_TEST(a_set_of_shards_is_required) {
    write_good();
    unlink("d/val-0.tar");
    refused("d has no .tar file for the test, in a folder test, val or "
            "validation");
    unlink("d/train-000000.tar");
    unlink("d/train-000001.tar");
    refused("d has no .tar file for training");
    place_write("d/train-0.tar.gz", "", 0);
    refused("unpack them with gunzip");
    rename("d/train-0.tar.gz", "d/train-0.tgz");
    refused("unpack them with gunzip");
}
END_TEST

START_TEST(labels_may_be_unused) {
    place_folder("d");
    add_image("1.png", 10);
    add_image("2.png", 20);
    write_tar("d/train.tar");
    add_image("3.png", 30);
    write_tar("d/test.tar");
    refused("d/train.tar:1.png has no 1.cls, nor 1.json with a label, beside "
            "it");
    unlabelled = true;
    ck_assert_msg(open_set(), "%s", error.text);
    check_sample(&data.train, 1, 0, 20);
    rt_data_close(&data);
    unlabelled = false;
}
END_TEST

// A name of 150 characters, and one with a prefix in the header.
START_TEST(long_names_are_read) {
    char name[160] = "", text[200], says[300];
    memset(name, 'k', 150);
    place_folder("d");
    if (_i == 0) {
        strcpy(name + 150, ".png");
        add_as('L', "././@LongLink", name, 155);
        add_image("short.png", 10);
        strcpy(name + 150, ".cls");
        add_as('L', "././@LongLink", name, 155);
        add_text("short.cls", "9");
    } else if (_i == 1) {
        snprintf(text, sizeof text, "11 mtime=1\n164 path=%s.png\n", name);
        add_as('g', "pax_global_header", "13 comment=x\n", 13);
        add_as('x', "PaxHeaders/1", text, strlen(text));
        add_image("short.png", 10);
        // It is for the next member, which is none of a sample.
        add_as('x', "PaxHeaders/2", text, strlen(text));
        add_as('5', "folder", "", 0);
        snprintf(text, sizeof text, "164 path=%s.cls\n10 size=1\n", name);
        add_as('x', "PaxHeaders/3", text, strlen(text));
        add_text("short.cls", "9");
    } else {
        add_image("1.png", 10);
        name[145] = '\0';
        memcpy(tar + 345, name, 145);
        set_sum(tar);
        strcpy(name + 145, "/1");
        size_t header = length;
        add_text("1.cls", "9");
        memcpy(tar + header + 345, name, 145);
        set_sum(tar + header);
    }
    name[_i == 2 ? 147 : 150] = '\0';
    write_tar("d/train.tar");
    snprintf(says, sizeof says, "d/train.tar:%s.png has label 9", name);
    place_write("d/test.tar", "", 0);
    refused(says);
}
END_TEST

// A size in base 256, as GNU tar writes it from 8 GiB on.
START_TEST(sizes_may_be_binary) {
    write_good();
    size_t count;
    uint8_t *bytes = place_read("d/val-0.tar", &count);
    long size = strtol((char *)bytes + 124, NULL, 8);
    memset(bytes + 124, 0, 12);
    bytes[124] = 0x80;
    bytes[134] = (uint8_t)(size >> 8);
    bytes[135] = (uint8_t)size;
    set_sum(bytes);
    place_write("d/val-0.tar", bytes, count);
    check_good();
    memset(bytes + 125, 0xff, 11);
    set_sum(bytes);
    place_write("d/val-0.tar", bytes, count);
    refused("d/val-0.tar: a size that is no number is at byte 0");
    memcpy(bytes + 124, "\x80\0\0\0\1\0\0\0\0\0\0\0", 12);
    set_sum(bytes);
    place_write("d/val-0.tar", bytes, count);
    refused("d/val-0.tar: the archive is truncated in the member at byte 0");
    free(bytes);
}
END_TEST

START_TEST(a_bad_sample) {
    static const struct {
        const char *label, *says;
    } bad[] = {
        {"", "6.cls is not the number of a class in digits"},
        {"cat", "6.cls is not the number of a class in digits"},
        {"-1", "6.cls is not the number of a class in digits"},
        {"1 2", "6.cls is not the number of a class in digits"},
        {"1.0", "6.cls is not the number of a class in digits"},
        {"99999999999999999999999999999999",
         "6.png has label 9223372036854775807, but the model has 3 classes"},
        {"3", "6.png has label 3, but the model has 3 classes"},
    };
    write_good();
    add_image("6.png", 60);
    add_text("6.cls", bad[_i].label);
    write_tar("d/train-2.tar");
    refused(bad[_i].says);
    ck_assert_ptr_nonnull(strstr(error.text, "d/train-2.tar:6."));
}
END_TEST

START_TEST(members_of_a_sample_are_neighbours) {
    write_good();
    add_image("6.png", 60);
    add_image("7.png", 70);
    add_text("6.cls", "0");
    write_tar("d/train-2.tar");
    refused("d/train-2.tar:6.png has no 6.cls");
    add_image("6.png", 60);
    add_image("6.jpg", 60);
    write_tar("d/train-2.tar");
    refused("d/train-2.tar: 6.png and 6.jpg are images of one sample");
    add_text("6.cls", "0");
    write_tar("d/train-2.tar");
    check_good(); // members without an image
    rename("d/train-2.tar", "d/test.tar");
    refused("d/test.tar has no sample: expected members KEY.jpg");
}
END_TEST

START_TEST(a_bad_json) {
    static const char *const text[] = {"",
                                       "3",
                                       "{}",
                                       "{\"label\": -1}",
                                       "{\"label\": \"cat\"}",
                                       "{\"a\": {\"label\": 1}}",
                                       "{\"a\"",
                                       "{\"label\": 1.9}",
                                       "{\"label\": 1e9}",
                                       "{\"label\": 1"};
    write_good();
    add_image("6.png", 60);
    add_text("6.json", text[_i]);
    write_tar("d/train-2.tar");
    refused("d/train-2.tar:6.png has no 6.cls, nor 6.json with a label");
}
END_TEST

// ---- damage ----

START_TEST(a_bad_header) {
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"164 path", "a damaged pax header is at byte 0"},
        {"x path=a\n", "a damaged pax header is at byte 0"},
        {"9 path=a\n8 path=", "a damaged pax header is at byte 0"},
        {"99999999999999999999 path=a\n", "a damaged pax header is at byte 0"},
        {"7 path\n", "a pax record without = is at byte 0"},
        {"2 \n", "a damaged pax header is at byte 0"},
        {"10 size=x\n", "a pax size that is no number is at byte 0"},
        {"15 size=999999\n", "truncated in the member at byte 1024"},
    };
    write_good();
    add_as('x', "pax", bad[_i].text, strlen(bad[_i].text));
    add_image("6.png", 60);
    add_text("6.cls", "0");
    write_tar("d/train-2.tar");
    refused(bad[_i].says);
    ck_assert_ptr_nonnull(strstr(error.text, "d/train-2.tar: "));
}
END_TEST

START_TEST(a_name_has_a_limit) {
    static char name[5000];
    memset(name, 'k', sizeof name - 1);
    write_good();
    add_as('L', "././@LongLink", name, sizeof name);
    write_tar("d/train-2.tar");
    refused("d/train-2.tar: a member's name is too long at byte 0");
    memcpy(name, "5000 path=", 10);
    name[4999] = '\n';
    add_as('x', "pax", name, sizeof name);
    write_tar("d/train-2.tar");
    refused("d/train-2.tar: a member's name is too long at byte 0");
}
END_TEST

// A file without a block of zeros at its end is truncated, and the message has
// the header from which on bytes are missing.
START_TEST(a_cut_shard_is_refused) {
    size_t count;
    write_good();
    uint8_t *bytes = place_read("d/val-0.tar", &count);
    size_t first = (size_t)strtol((char *)bytes + 124, NULL, 8);
    size_t second = 2 * BLOCK, zeros = count - 2 * BLOCK;
    for (size_t cut = count - BLOCK; cut-- > 0;) {
        char at[40];
        ck_assert_int_eq(truncate("d/val-0.tar", (off_t)cut), 0);
        size_t header = cut < BLOCK + first                  ? 0
                        : cut < second + BLOCK + strlen("1") ? second
                                                             : zeros;
        snprintf(at, sizeof at, " at byte %zu", header);
        refused("d/val-0.tar: the archive is truncated");
        ck_assert_msg(strstr(error.text, at) != NULL, "%zu: %s", cut,
                      error.text);
    }
    free(bytes);
}
END_TEST

static void change_file(const char *name, size_t at, const void *bytes,
                        size_t count) {
    FILE *f = fopen(name, "r+b");
    ck_assert(f != NULL && fseek(f, (long)at, SEEK_SET) == 0);
    ck_assert_uint_eq(fwrite(bytes, 1, count, f), count);
    fclose(f);
}

// Any one changed byte is refused with the file's name, or changes an image or
// a label, or nothing.
START_TEST(any_byte_may_be_wrong) {
    static const uint8_t change[] = {1, 16, 255};
    uint8_t pixel[SIZE * SIZE * 3];
    size_t count, refusals = 0, broken = 0;
    write_good();
    uint8_t *bytes = place_read("d/val-0.tar", &count);
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < sizeof change; k++) {
            uint8_t byte = bytes[i] ^ change[k];
            change_file("d/val-0.tar", i, &byte, 1);
            if (!open_set()) {
                ck_assert_ptr_nonnull(strstr(error.text, "d/val-0.tar"));
                refusals++;
                continue;
            }
            if (!data.test.fetch(&data.test, 0, pixel, &error)) {
                ck_assert_ptr_nonnull(strstr(error.text, "d/val-0.tar:5.png"));
                broken++;
            }
            rt_data_close(&data);
        }
        change_file("d/val-0.tar", i, bytes + i, 1);
    }
    ck_assert_uint_gt(refusals, 2 * BLOCK);
    ck_assert_uint_gt(broken, 50);
    free(bytes);
}
END_TEST

// A changed byte of a header passes if the checksum is made for it.
START_TEST(any_field_may_be_wrong) {
    size_t count;
    write_good();
    uint8_t *bytes = place_read("d/val-0.tar", &count);
    for (size_t i = 0; i < BLOCK; i++)
        for (int k = 0; k < 256; k += 17) {
            uint8_t was[BLOCK];
            memcpy(was, bytes, BLOCK);
            bytes[i] = (uint8_t)k;
            set_sum(bytes);
            change_file("d/val-0.tar", 0, bytes, BLOCK);
            memcpy(bytes, was, BLOCK);
            if (open_set())
                rt_data_close(&data);
            else
                ck_assert_ptr_nonnull(strstr(error.text, "d/val-0.tar"));
        }
    free(bytes);
}
END_TEST

// ---- images ----

// The next image of the class replaces one that cannot be decoded, though
// others lie between.
START_TEST(a_bad_image_may_be_skipped) {
    uint8_t pixel[SIZE * SIZE * 3];
    place_folder("d");
    add_text("1.png", "GIF89a");
    add_text("1.cls", "2");
    add_image("2.png", 20);
    add_text("2.cls", "0");
    add_image("3.png", 30);
    add_text("3.cls", "2");
    write_tar("d/train-0.tar");
    add_image("4.png", 40);
    add_text("4.cls", "0");
    write_tar("d/test-0.tar");
    ck_assert(open_set());
    ck_assert(!data.train.fetch(&data.train, 0, pixel, &error));
    ck_assert_str_eq(error.text,
                     "cannot decode d/train-0.tar:1.png: it is no JPEG, PNG or "
                     "WebP file; mend it, or skip such files with "
                     "--bad-samples");
    rt_data_close(&data);
    max_bad_files = 1;
    ck_assert(open_set());
    check_sample(&data.train, 0, 2, 30);
    check_sample(&data.train, 2, 2, 30);
    // A shard that has become shorter, or has vanished, may come back.
    ck_assert_int_eq(truncate("d/train-0.tar", 3000), 0);
    ck_assert(!data.train.fetch(&data.train, 2, pixel, &error));
    ck_assert_str_eq(error.text,
                     "cannot read d/train-0.tar: the file is truncated");
    ck_assert_int_eq(error.status, EXIT_IO);
    unlink("d/train-0.tar");
    ck_assert(!data.train.fetch(&data.train, 2, pixel, &error));
    ck_assert_int_eq(error.status, EXIT_IO);
    rt_data_close(&data);
    max_bad_files = 0;
}
END_TEST

Suite *webdataset_suite(void) {
    Suite *s = suite_create("webdataset");
    TCase *t = tcase_create("webdataset");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, place_enter, place_leave);
    tcase_add_test(t, shards_are_in_the_order_of_their_names);
    tcase_add_loop_test(t, shards_may_be_in_folders, 0, 3);
    tcase_add_loop_test(t, a_word_of_the_name_tells_the_set, 0, 4);
    tcase_add_test(t, a_set_of_shards_is_required);
    tcase_add_test(t, labels_may_be_unused);
    tcase_add_loop_test(t, long_names_are_read, 0, 3);
    tcase_add_test(t, sizes_may_be_binary);
    tcase_add_loop_test(t, a_bad_sample, 0, 7);
    tcase_add_test(t, members_of_a_sample_are_neighbours);
    tcase_add_loop_test(t, a_bad_json, 0, 10);
    tcase_add_loop_test(t, a_bad_header, 0, 8);
    tcase_add_test(t, a_name_has_a_limit);
    tcase_add_test(t, a_cut_shard_is_refused);
    tcase_add_test(t, any_byte_may_be_wrong);
    tcase_add_test(t, any_field_may_be_wrong);
    tcase_add_test(t, a_bad_image_may_be_skipped);
    suite_add_tcase(s, t);
    return s;
}
