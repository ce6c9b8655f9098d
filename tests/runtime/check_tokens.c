// Tokens: starts of samples, and their labels.
#define _POSIX_C_SOURCE 200809L

#include "runtime/data/data.h"
#include "tests/runtime/place.h"
#include "tests/runtime/suites.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static RtData data;
static RtError error;

static bool open_with(const char *path, int length, int vocabulary,
                      const RtFiles *files) {
    const RtSetting setting[] = {{"length", length, NULL},
                                 {"vocabulary", vocabulary, NULL}};
    const RtDataSpec sample = {.image = {RT_I32, 1, {length}},
                               .label = {RT_I32, 1, {length}},
                               .classes = vocabulary,
                               .setting = setting,
                               .num_settings = 2};
    memset(&error, 0, sizeof error);
    return rt_data_open(&data, "tokens", path, &sample, files, &error);
}

static bool open_tokens(const char *path, int length, int vocabulary) {
    return open_with(path, length, vocabulary, &rt_system_files);
}

static void refused(const char *path, int length, int vocabulary,
                    const char *says) {
    ck_assert_msg(!open_tokens(path, length, vocabulary), "accepted: %s", says);
    ck_assert_int_eq(error.status, EXIT_DATA);
    ck_assert_msg(strstr(error.text, says) != NULL, "%s", error.text);
}

// Token i of a file is first + i.
static void write_bytes(const char *name, int first, int count) {
    uint8_t bytes[300];
    for (int i = 0; i < count; i++)
        bytes[i] = (uint8_t)(first + i);
    place_write(name, bytes, (size_t)count);
}

static void check_split(const RtSplit *s, int64_t count, int length,
                        int first) {
    ck_assert_int_eq(s->count, count);
    for (int64_t i = 0; i < count; i++) {
        int32_t x[8], y[8];
        ck_assert(s->fetch(s, i, (uint8_t *)x, &error));
        memcpy(y, rt_column_at(&s->label, i),
               (size_t)length * rt_file_type_bytes(s->label.type));
        rt_file_type_widen(x, (size_t)length, s->image.type, RT_I32);
        rt_file_type_widen(y, (size_t)length, s->label.type, RT_I32);
        for (int k = 0; k < length; k++) {
            ck_assert_int_eq(x[k], first + i * length + k);
            ck_assert_int_eq(y[k], x[k] + 1);
        }
    }
}

START_TEST(labels_are_the_next_tokens) {
    place_folder("d");
    write_bytes("d/train.bin", 10, 81);
    write_bytes("d/val.bin", 0, 24);
    ck_assert_msg(open_tokens("d", 8, 100), "%s", error.text);
    check_split(&data.train, 10, 8, 10);
    check_split(&data.test, 2, 8, 0); // the last seven tokens have no next
    rt_data_close(&data);
}
END_TEST

START_TEST(the_last_tenth_of_a_file_is_for_evaluation) {
    write_bytes("text", 0, 100);
    ck_assert_msg(open_tokens("text", 4, 256), "%s", error.text);
    check_split(&data.train, 22, 4, 0);
    check_split(&data.test, 2, 4, 90);
    rt_data_close(&data);
}
END_TEST

START_TEST(large_vocabularies_have_two_bytes) {
    uint8_t bytes[200];
    for (int i = 0; i < 100; i++) {
        bytes[2 * i] = (uint8_t)(i + 250);
        bytes[2 * i + 1] = (uint8_t)((i + 250) >> 8);
    }
    place_write("text", bytes, sizeof bytes);
    ck_assert_msg(open_tokens("text", 5, 350), "%s", error.text);
    check_split(&data.train, 17, 5, 250);
    rt_data_close(&data);
    refused("text", 5, 349, "token 99 is 349, but the vocabulary has 349");
}
END_TEST

START_TEST(tokens_are_refused) {
    place_folder("d");
    write_bytes("d/train.bin", 0, 90);
    write_bytes("d/val.bin", 0, 20);
    switch (_i) {
    case 0:
        unlink("d/val.bin");
        refused("d", 4, 100, "d/val.bin");
        break;
    case 1:
        refused("d", 4, 50, "token 50 is 50, but the vocabulary has 50");
        break;
    case 2:
        write_bytes("d/val.bin", 0, 4);
        refused("d", 4, 100, "d/val.bin has 4 tokens; one sample needs 4");
        break;
    case 3:
        write_bytes("d/train.bin", 0, 91);
        refused("d", 4, 300, "91 bytes, not a multiple of the token size");
        break;
    case 4:
        place_write("d/train.bin", "", 0);
        refused("d", 4, 100, "has 0 tokens");
        break;
    case 5:
        write_bytes("text", 0, 12);
        refused("text", 4, 256, "has 1 tokens for evaluation");
        break;
    }
}
END_TEST

// The n-th read or the mapping fails.
static int calls;

static ssize_t failing_read(int fd, void *to, size_t bytes) {
    if (calls-- > 0)
        return read(fd, to, bytes);
    errno = EIO;
    return -1;
}

static void *failing_map(int fd, size_t bytes) {
    (void)fd;
    (void)bytes;
    errno = ENODEV;
    return NULL;
}

START_TEST(a_failing_disk_is_reported) {
    RtFiles files = rt_system_files;
    write_bytes("text", 0, 100);
    ck_assert(open_with("text", 4, 100, &files));
    uint64_t hash = data.hash;
    rt_data_close(&data);
    calls = 1;
    files.read = failing_read;
    ck_assert_msg(open_with("text", 4, 100, &files), "%s", error.text);
    ck_assert_uint_eq(data.hash, hash); // one read of the file
    rt_data_close(&data);
    ck_assert(!open_with("text", 4, 100, &files));
    ck_assert_int_eq(error.status, EXIT_IO);
    ck_assert_str_eq(error.text, "cannot read text: Input/output error");
    files = rt_system_files;
    files.map = failing_map;
    ck_assert(!open_with("text", 4, 100, &files));
    ck_assert_int_eq(error.status, EXIT_MEMORY);
    ck_assert_str_eq(error.text,
                     "cannot map text into memory: No such device");
}
END_TEST

// Tokens of many parts have the hash of the whole file, and the number of a
// wrong one counts from its start.
START_TEST(a_large_file_is_read_in_parts) {
    enum { BYTES = 1000002 };
    uint8_t *bytes = calloc(BYTES, 1);
    for (int i = 0; i < BYTES; i++)
        bytes[i] = (uint8_t)(i % 2 ? 0 : i / 2);
    place_write("text", bytes, BYTES);
    ck_assert_msg(open_tokens("text", 4, 300), "%s", error.text);
    ck_assert_uint_eq(data.hash, XXH3_64bits(bytes, BYTES));
    rt_data_close(&data);
    bytes[800001] = 2;
    place_write("text", bytes, BYTES);
    free(bytes);
    refused("text", 4, 300, "text: token 400000 is 640, but the vocabulary");
}
END_TEST

// A page of a file that has become shorter ends the program with the status of
// a failed read.
START_TEST(a_shorter_file_ends_the_program) {
    uint8_t token[4];
    write_bytes("text", 0, 100);
    ck_assert(open_tokens("text", 4, 100));
    rt_signals_catch();
    ck_assert_int_eq(truncate("text", 0), 0);
    data.train.fetch(&data.train, 0, token, &error);
}
END_TEST

Suite *tokens_suite(void) {
    Suite *s = suite_create("tokens");
    TCase *t = tcase_create("tokens");
    tcase_add_checked_fixture(t, place_enter, place_leave);
    tcase_add_test(t, labels_are_the_next_tokens);
    tcase_add_test(t, the_last_tenth_of_a_file_is_for_evaluation);
    tcase_add_test(t, large_vocabularies_have_two_bytes);
    tcase_add_loop_test(t, tokens_are_refused, 0, 6);
    tcase_add_test(t, a_failing_disk_is_reported);
    tcase_add_test(t, a_large_file_is_read_in_parts);
    tcase_add_exit_test(t, a_shorter_file_ends_the_program, EXIT_IO);
    suite_add_tcase(s, t);
    return s;
}
