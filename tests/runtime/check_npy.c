// NumPy files: types, and refusals.
#define _POSIX_C_SOURCE 200809L

#include "runtime/data/data.h"
#include "tests/runtime/place.h"
#include "tests/runtime/suites.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static RtData data;
static RtError error;

// `count` samples of 2 x 3 numbers and one integer label each.
static RtDataSpec sample_of(RtType type) {
    return (RtDataSpec){
        .image = {type, 2, {2, 3}}, .label = {RT_I32, 0, {0}}, .classes = 10};
}

static void write_npy(const char *name, int version, const char *header,
                      const void *bytes, size_t length) {
    uint8_t all[4096] = "\x93NUMPY";
    size_t text = strlen(header), at = version == 1 ? 10 : 12;
    all[6] = (uint8_t)version;
    all[8] = (uint8_t)(text & 255);
    all[9] = (uint8_t)(text >> 8);
    memcpy(all + at, header, text);
    memcpy(all + at + text, bytes, length);
    place_write(name, all, at + text + length);
}

static const char *header_of(const char *descr, const char *shape) {
    static char text[200];
    snprintf(text, sizeof text,
             "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }\n",
             descr, shape);
    return text;
}

static void write_good(const char *descr, const void *x, size_t bytes) {
    static const int64_t labels[] = {3, 9};
    place_folder("d");
    write_npy("d/train_x.npy", 1, header_of(descr, "2, 2, 3"), x, bytes);
    write_npy("d/train_y.npy", 2, header_of("<i8", "2,"), labels, 16);
    write_npy("d/test_x.npy", 3, header_of(descr, "2, 2, 3"), x, bytes);
    write_npy("d/test_y.npy", 1, header_of("|u1", "2, 1"), "\4\5", 2);
}

static bool open_npy(const RtDataSpec *sample) {
    memset(&error, 0, sizeof error);
    return rt_data_open(&data, "npy", "d", sample, &rt_system_files, &error);
}

static void refused(const RtDataSpec *sample, const char *says) {
    ck_assert_msg(!open_npy(sample), "accepted: %s", says);
    ck_assert_int_eq(error.status, EXIT_DATA);
    ck_assert_msg(strstr(error.text, says) != NULL, "%s", error.text);
}

static double number(const void *from, RtType type, int i) {
    return type == RT_F32   ? ((const float *)from)[i]
           : type == RT_I32 ? ((const int32_t *)from)[i]
                            : ((const uint8_t *)from)[i];
}

static const uint8_t u1[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
static const uint16_t u2[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
static const int32_t i4[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
static const int64_t i8[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
static const float f4[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
static const double f8[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

static const struct {
    const char *descr;
    const void *x;
    size_t bytes;
    bool u8, i32; // inputs that accept them, besides f32
} kinds[] = {
    {"|u1", u1, sizeof u1, true, true},   {"<u2", u2, sizeof u2, false, true},
    {"<i4", i4, sizeof i4, false, true},  {"<i8", i8, sizeof i8, false, true},
    {"<f4", f4, sizeof f4, false, false}, {"<f8", f8, sizeof f8, false, false},
};

START_TEST(every_kind_of_number) {
    write_good(kinds[_i].descr, kinds[_i].x, kinds[_i].bytes);
    for (int k = 0; k < 3; k++) {
        const RtType type = k == 0 ? RT_U8 : k == 1 ? RT_I32 : RT_F32;
        const RtDataSpec sample = sample_of(type);
        const bool good = k == 2 || (k == 0 ? kinds[_i].u8 : kinds[_i].i32);
        if (!good) {
            refused(&sample, "has numbers of type");
            continue;
        }
        ck_assert_msg(open_npy(&sample), "%s", error.text);
        ck_assert_int_eq(data.train.count, 2);
        float room[6];
        ck_assert(data.train.fetch(&data.train, 1, (uint8_t *)room, &error));
        rt_file_type_widen(room, 6, data.train.image.type, type);
        for (int i = 0; i < 6; i++)
            ck_assert(number(room, type, i) == 6 + i);
        const uint8_t *label = rt_column_at(&data.train.label, 1);
        ck_assert(number(label, RT_I32, 0) == 9);
        rt_data_close(&data);
    }
}
END_TEST

START_TEST(targets_are_numbers) {
    RtDataSpec sample = sample_of(RT_F32);
    sample.label = (RtShape){RT_F32, 1, {3}};
    static const float target[] = {-1, 0.5, 2, 3, 4, 5};
    write_good("<f4", f4, sizeof f4);
    write_npy("d/train_y.npy", 1, header_of("<f4", "2, 3"), target, 24);
    write_npy("d/test_y.npy", 1, header_of("<f4", "2, 3"), target, 24);
    ck_assert_msg(open_npy(&sample), "%s", error.text);
    const void *label = rt_column_at(&data.test.label, 0);
    ck_assert(number(label, RT_F32, 0) == -1);
    ck_assert(number(label, RT_F32, 1) == 0.5);
    rt_data_close(&data);
}
END_TEST

// Two inputs, a label of classes and one of numbers.
START_TEST(arrays_by_name) {
    static const RtArray array[] = {
        {"meta", "input.meta", {RT_F32, 2, {2, 3}}, 0, 0, false},
        {"class", "label.class", {RT_I32, 0, {0}}, 10, 255, false},
        {"box", "label.box", {RT_F32, 2, {2, 3}}, 0, 0, false}};
    RtDataSpec sample = sample_of(RT_U8);
    sample.label.rank = -1;
    sample.image_name = "image";
    sample.array = array;
    sample.num_arrays = 3;
    place_folder("d");
    for (int i = 0; i < 2; i++) {
        char name[40];
        snprintf(name, sizeof name, "d/%s_image.npy", i ? "test" : "train");
        write_npy(name, 1, header_of("|u1", "2, 2, 3"), u1, sizeof u1);
        snprintf(name, sizeof name, "d/%s_meta.npy", i ? "test" : "train");
        write_npy(name, 1, header_of("<f8", "2, 2, 3"), f8, sizeof f8);
        snprintf(name, sizeof name, "d/%s_class.npy", i ? "test" : "train");
        write_npy(name, 1, header_of("|u1", "2,"), "\4\5", 2);
        snprintf(name, sizeof name, "d/%s_box.npy", i ? "test" : "train");
        write_npy(name, 1, header_of("<f4", "2, 2, 3"), f4, sizeof f4);
    }
    ck_assert_msg(open_npy(&sample), "%s", error.text);
    const RtSplit *s = &data.test;
    ck_assert_int_eq(s->num_arrays, 3);
    ck_assert(number(rt_column_at(&s->array[0], 1), RT_F32, 2) == 8);
    ck_assert(*rt_column_at(&s->array[1], 1) == 5);
    ck_assert(number(rt_column_at(&s->array[2], 1), RT_F32, 0) == 6);
    rt_data_close(&data);
    write_npy("d/test_class.npy", 1, header_of("|u1", "2,"), "\4\12", 2);
    refused(&sample, "d/test_class.npy: sample 1 has label 10");
    write_npy("d/test_class.npy", 1, header_of("|u1", "1,"), "\4", 1);
    refused(&sample, "d/test_class.npy has 1 samples, and not 2");
    unlink("d/train_meta.npy");
    refused(&sample, "d/train_meta.npy");
}
END_TEST

START_TEST(labels_that_are_not_used) {
    RtDataSpec sample = sample_of(RT_F32);
    sample.label.rank = -1;
    write_good("<f4", f4, sizeof f4);
    unlink("d/train_y.npy");
    unlink("d/test_y.npy");
    ck_assert_msg(open_npy(&sample), "%s", error.text);
    rt_data_close(&data);
}
END_TEST

START_TEST(a_holdout_needs_no_test_set) {
    RtDataSpec sample = sample_of(RT_F32);
    write_good("<f4", f4, sizeof f4);
    unlink("d/test_x.npy");
    unlink("d/test_y.npy");
    refused(&sample, "d/test_x.npy does not exist: add it, or hold samples out "
                     "with --validation=10%");
    sample.test_optional = true;
    ck_assert_msg(open_npy(&sample), "%s", error.text);
    ck_assert_int_eq(data.test.count, 0);
    rt_data_close(&data);
}
END_TEST

#define X "d/train_x.npy"
#define Y "d/train_y.npy"

static const int64_t negative[] = {1, -1}, large[] = {1, INT64_C(1) << 32};

static const struct {
    const char *file, *descr, *shape;
    const void *bytes;
    size_t length;
    const char *words;
} wrong[] = {
    {X, "|u1", "2, 2, 3", u1, 11,
     "should have 12 bytes after its header, but has 11"},
    {X, "|u1", "2, 3, 2", u1, 12,
     "has samples of 3x2, but the trainer takes 2x3"},
    {X, "<c8", "2, 2, 3", u1, 12, "numbers of type <c8, not u8, bool,"},
    {X, "<\033", "2, 2, 3", u1, 12, "numbers of type <, not"},
    {X, "", "2, 2, 3", u1, 12, "numbers of an unsupported type, not"},
    {X, "|u1", "2, 2, x", u1, 12, "has no shape"},
    {X, "|u1", "2, 2, 3, 1, 1, 1, 1, 1, 1, 1", u1, 12, "has no shape"},
    {X, "|u1", "999999999999, 2, 3", u1, 12, "has no shape"},
    {X, "|u1", "0, 2, 3", u1, 0, X " has no samples"},
    {Y, "|u1", "3,", u1, 3, "has 3 labels for 2 samples"},
    {Y, "|u1", "2,", "\1\12", 2,
     "sample 1 has label 10, but the model has 10 classes: build it with --set "
     "classes=11"},
    {Y, "<i8", "2,", negative, 16, "sample 1 has label -1"},
    {Y, "<i8", "2,", large, 16, "sample 1 has a number outside of 32 bits"},
    {Y, "<f4", "2,", f4, 8,
     "has numbers of type <f4, but the trainer takes i32"},
};

START_TEST(wrong_shapes_and_values_are_refused) {
    RtDataSpec sample = sample_of(RT_U8);
    sample.sets_classes = true;
    write_good("|u1", u1, sizeof u1);
    write_npy(wrong[_i].file, 1, header_of(wrong[_i].descr, wrong[_i].shape),
              wrong[_i].bytes, wrong[_i].length);
    refused(&sample, wrong[_i].words);
}
END_TEST

START_TEST(an_ignored_label_may_be_any) {
    RtDataSpec sample = sample_of(RT_U8);
    write_good("|u1", u1, sizeof u1);
    write_npy(Y, 1, header_of("<i8", "2,"), negative, 16);
    sample.ignored = -1;
    ck_assert_msg(open_npy(&sample), "%s", error.text);
    ck_assert(number(rt_column_at(&data.train.label, 1), RT_I32, 0) == -1);
    rt_data_close(&data);
    sample.ignored = 10;
    refused(&sample, "sample 1 has label -1");
    sample.ignored = 255;
    sample.classes = 3;
    sample.sets_classes = true;
    write_npy(Y, 1, header_of("|u1", "2,"), "\3\377", 2);
    refused(&sample, "sample 0 has label 3, but the model has 3 classes: build "
                     "it with --set classes=4");
}
END_TEST

START_TEST(other_files_are_no_npy_files) {
    RtDataSpec sample = sample_of(RT_U8);
    write_good("|u1", u1, sizeof u1);
    ck_assert_int_eq(truncate(X, 40), 0);
    refused(&sample, "too short for its header");
    ck_assert_int_eq(truncate(X, 7), 0);
    refused(&sample, "too short for its header");
    place_write(X, "PK\3\4 a zip archive", 19);
    refused(&sample, "is not an npy file");
    place_write(X, "\x93NUMPY\2\0\377\377\377\377 and so on", 22);
    refused(&sample, "is not an npy file");
    unlink(X);
    refused(&sample, X);
}
END_TEST

START_TEST(the_order_of_fortran_is_refused) {
    RtDataSpec sample = sample_of(RT_U8);
    write_good("|u1", u1, sizeof u1);
    write_npy(X, 1,
              "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2, 3)}", u1,
              12);
    refused(&sample, "Fortran order");
}
END_TEST

// A file with any one changed byte is read, or refused with a message.
START_TEST(any_byte_may_be_wrong) {
    static const uint8_t change[] = {1, 2, 8, 16, 64, 128, 255};
    const RtDataSpec sample = sample_of(RT_U8);
    size_t length, refusals = 0;
    write_good("|u1", u1, sizeof u1);
    uint8_t *bytes = place_read(X, &length);
    for (size_t i = 0; i < length; i++)
        for (size_t k = 0; k < sizeof change; k++) {
            bytes[i] ^= change[k];
            place_write(X, bytes, length);
            bytes[i] ^= change[k];
            if (open_npy(&sample)) {
                rt_data_close(&data);
                continue;
            }
            ck_assert_int_eq(error.status, EXIT_DATA);
            ck_assert_ptr_nonnull(strstr(error.text, X));
            refusals++;
        }
    ck_assert_uint_gt(refusals, length);
    free(bytes);
}
END_TEST

static int calls, fails_at;

static ssize_t failing_read(int fd, void *to, size_t bytes) {
    if (++calls == fails_at) {
        errno = EIO;
        return -1;
    }
    return read(fd, to, bytes);
}

// The bytes before a header, two more in later versions, the header and each of
// two samples, of four files.
START_TEST(a_read_that_fails) {
    RtDataSpec sample = sample_of(RT_U8);
    RtFiles files = rt_system_files;
    files.read = failing_read;
    write_good("|u1", u1, sizeof u1);
    for (fails_at = 1; fails_at <= 18; fails_at++) {
        calls = 0;
        ck_assert(!rt_data_open(&data, "npy", "d", &sample, &files, &error));
        ck_assert_int_eq(error.status, EXIT_IO);
        ck_assert_ptr_nonnull(strstr(error.text, strerror(EIO)));
    }
    calls = 0;
    ck_assert(rt_data_open(&data, "npy", "d", &sample, &files, &error));
    rt_data_close(&data);
}
END_TEST

Suite *npy_suite(void) {
    Suite *s = suite_create("npy");
    TCase *t = tcase_create("npy");
    tcase_add_checked_fixture(t, place_enter, place_leave);
    tcase_add_loop_test(t, every_kind_of_number, 0, 6);
    tcase_add_test(t, targets_are_numbers);
    tcase_add_test(t, arrays_by_name);
    tcase_add_test(t, labels_that_are_not_used);
    tcase_add_test(t, a_holdout_needs_no_test_set);
    tcase_add_loop_test(t, wrong_shapes_and_values_are_refused, 0,
                        sizeof wrong / sizeof *wrong);
    tcase_add_test(t, an_ignored_label_may_be_any);
    tcase_add_test(t, other_files_are_no_npy_files);
    tcase_add_test(t, the_order_of_fortran_is_refused);
    tcase_add_test(t, any_byte_may_be_wrong);
    tcase_add_test(t, a_read_that_fails);
    suite_add_tcase(s, t);
    return s;
}
